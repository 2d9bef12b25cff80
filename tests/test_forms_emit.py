"""Settings written as flags, a command or a config file, and read back; names and values that people type."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from recommender.catalogue import CommandLine, Field, Parsed, load_catalogue
from recommender.errors import UsageError
from recommender.forms.emit import config_mapping, flags_for, flags_text, patch_for, rewrite, write_setting
from recommender.forms.names import field_of, read_value, split_pair
from recommender.library import data_root
from recommender.terms import UNKNOWN

T = TypeVar("T")
TABLE = data_root() / "constraints" / "sglang" / "flags" / "catalogue.json"


@cache
def line() -> CommandLine:
    return load_catalogue(json.loads(TABLE.read_text(encoding="utf-8"))).command_line("0.5.23")


def read(words: tuple[str, ...] | list[str], folder: Path | None = None) -> Parsed:
    found = line().parse(["--model-path", "m", *words], folder)
    assert isinstance(found, Parsed), found
    return found


def attempt(write: Callable[[], T]) -> tuple[T | None, str]:
    """What was written, or why not."""
    try:
        return write(), ""
    except UsageError as error:
        return None, str(error)


def value_of(field: Field) -> st.SearchStrategy[Any]:
    """Values that a launch could give the field."""
    if field.type == "bool":
        return st.booleans() if any(flag.kind == "boolean" for flag in field.flags) else st.just(True)
    if field.flag.sections:
        return st.just({"decode": {"bs": (1, 2)}})
    if field.choices is not None:
        one: st.SearchStrategy[Any] = st.sampled_from(field.choices)
    else:
        one = {
            "int": st.integers(-5, 10**9),
            "float": st.floats(allow_nan=False, width=32),
            "json": st.sampled_from([(1, "a b"), {"a": (1, {"b": None})}, (), "x"]),
            "str": st.text(alphabet="abc/. _-{", max_size=8).filter(
                lambda text: text.strip() == text and "{" not in text
            ),
        }[field.type]
    if field.flag.type == "nullable_str":
        one = one.filter(bool)
    if field.many:
        return st.lists(one, min_size=1, max_size=3).map(tuple)
    return one


@st.composite
def some_settings(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(
        st.lists(
            st.sampled_from([n for n in line().fields if n not in ("model_path", "config")]), unique=True, max_size=5
        )
    )
    return {name: draw(value_of(line().fields[name])) for name in names}


@settings(max_examples=300, deadline=None)
@given(some_settings())
def test_what_is_written_reads_back(wanted: dict[str, Any]) -> None:
    words, refused = attempt(lambda: flags_for(line(), wanted))
    if words is None:
        assert "would be read as a flag" in refused or "'--'" in refused
        return
    asked = dict(read(words).asked)
    asked.pop("model_path")
    assert repr(sorted(asked.items())) == repr(sorted(wanted.items()))


@settings(max_examples=120, deadline=None)
@given(some_settings())
def test_a_config_file_reads_back(wanted: dict[str, Any]) -> None:
    import tempfile

    mapping, refused = attempt(lambda: config_mapping(line(), wanted))
    if mapping is None:
        assert "config file cannot" in refused
        return
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "c.yaml").write_text(yaml.safe_dump(mapping), encoding="utf-8")
        asked = dict(read(["--config", "c.yaml"], Path(folder)).asked)
    asked.pop("model_path")
    assert repr(sorted(asked.items())) == repr(sorted(wanted.items()))


def test_flags_are_the_first_long_spelling() -> None:
    wanted = {
        "tp_size": 8,
        "enable_mixed_chunk": True,
        "disable_radix_cache": False,
        "dllm_fdfo": False,
        "attention_backend": None,
        "offload_group_size": -1,
        "cuda_graph_bs_decode": (1, 2),
        "radix_eviction_policy_config": {"a": (1,)},
        "model_checksum": "",
        "SGLANG_X": "1",
    }
    assert flags_for(line(), wanted) == (
        "--tp-size", "8", "--enable-mixed-chunk", "--no-dllm-fdfo", "--offload-group-size=-1", "--cuda-graph-bs-decode",
        "1", "2", "--radix-eviction-policy-config", '{"a":[1]}', "--model-checksum",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("page_size", UNKNOWN, "not known"),
        ("moe_a2a_backend", None, "leave the flag out"),
        ("enable_mixed_chunk", False, None),
        ("enable_multimodal", False, "leave --enable-multimodal out"),
        ("numa_node", (), "at least one"),
        ("lora_target_modules", ("-x", "y"), "would be read as a flag"),
        ("chat_template", "--", "'--'"),
    ],
)
def test_what_cannot_be_said_is_an_error(name: str, value: Any, said: str | None) -> None:
    if said is None:
        assert write_setting(line(), name, value) == ()
        return
    with pytest.raises(UsageError, match=said):
        write_setting(line(), name, value)


def test_flags_text_survives_word_splitting() -> None:
    assert (
        flags_text(["--tp-size", "8", "--x=-1", "--model", "a/b.c:d@e,f%"]) == "--tp-size 8 --x=-1 --model a/b.c:d@e,f%"
    )
    for word in ("a b", "it's", '"', "*", "[1,2]", "", "$X", "a\n", "~"):
        with pytest.raises(UsageError, match="--format json"):
            flags_text(["--x", word])


def test_only_what_a_command_lacks_or_must_override() -> None:
    words = [
        "--model-path",
        "m",
        "--tp",
        "8",
        "--page-size",
        "1",
        "--enable-mixed-chunk",
        "--dtype",
        "$D",
        "--speculative-eagle-topk=4",
    ]
    parsed = line().parse(words)
    assert isinstance(parsed, Parsed)
    wanted = {
        "tp_size": 8,
        "page_size": 64,
        "enable_mixed_chunk": False,
        "dtype": "auto",
        "speculative_eagle_topk": None,
    }
    patch = patch_for(line(), wanted, parsed)
    assert patch.add == ("--page-size", "64", "--dtype", "auto")
    assert patch.drop == ("--enable-mixed-chunk", "--speculative-eagle-topk")
    assert rewrite(line(), words, wanted, parsed) == (
        "--model-path",
        "m",
        "--tp",
        "8",
        "--page-size",
        "64",
        "--dtype",
        "auto",
    )


def test_a_config_files_own_settings_are_unset_there(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("enable-mixed-chunk: true\npage-size: 1\n", encoding="utf-8")
    words = ["--model-path", "m", "--config", "c.yaml"]
    parsed = line().parse(words, tmp_path)
    assert isinstance(parsed, Parsed)
    assert rewrite(line(), words, {"page_size": 64}, parsed) == (*words, "--page-size", "64")
    with pytest.raises(UsageError, match="config file sets --enable-mixed-chunk"):
        rewrite(line(), words, {"enable_mixed_chunk": False}, parsed)


def test_names_that_people_use() -> None:
    aliases = {"topk": "speculative_eagle_topk", "draft-tokens": "speculative_num_draft_tokens"}
    for name in (
        "speculative_eagle_topk",
        "--speculative-eagle-topk",
        "speculative-eagle-topk",
        "topk",
        "TOPK",
        "--topk",
    ):
        assert field_of(name, line(), aliases) == "speculative_eagle_topk"
    assert field_of("draft_tokens", line(), aliases) == "speculative_num_draft_tokens"
    assert field_of("tensor-parallel-size", line(), aliases) == "tp_size"
    assert field_of("SGLANG_X", line(), aliases, others=["SGLANG_X"]) == "SGLANG_X"
    with pytest.raises(UsageError, match="did you mean speculative_eagle_topk"):
        field_of("speculative_eagle_top", line(), aliases)
    with pytest.raises(UsageError, match=r"no setting 'zzzzzz'$"):
        field_of("zzzzzz", line(), aliases)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("page_size", "64", 64),
        ("page_size", "none", None),
        ("moe_a2a_backend", "none", "none"),
        ("disaggregation_mode", "null", "null"),
        ("enable_mixed_chunk", "On", True),
        ("enable_mixed_chunk", "0", False),
        ("mem_fraction_static", ".8", 0.8),
        ("context_length", "8k", 8000),
        ("cuda_graph_bs_decode", "1,2, 4", (1, 2, 4)),
        ("cuda_graph_bs_decode", "[1, 2]", (1, 2)),
        ("radix_eviction_policy_config", '{"a": [1]}', {"a": (1,)}),
    ],
)
def test_texts_become_typed_values(name: str, text: str, value: Any) -> None:
    assert read_value(line().fields[name], text) == value
    assert type(read_value(line().fields[name], text)) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("page_size", "many", "not of type int"),
        ("enable_mixed_chunk", "maybe", "neither true nor false"),
        ("attention_backend", "tritn", "did you mean triton"),
        ("context_length", "8q", "no whole number"),
        ("cuda_graph_backend_decode", "tc_piecewise", "retired"),
        ("radix_eviction_policy_config", "{", "not of type json"),
    ],
)
def test_bad_texts_are_said(name: str, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read_value(line().fields[name], text)


def test_pairs() -> None:
    assert split_pair("a = b=c ") == ("a", "b=c")
    for text in ("a", "=b", " =b"):
        with pytest.raises(UsageError, match="NAME=VALUE"):
            split_pair(text)
