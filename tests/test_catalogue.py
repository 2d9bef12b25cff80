"""The flag catalogue, the engine's parse replayed from recorded answers, and the tool that makes the table."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from recommender.catalogue import Catalogue, CommandLine, Parsed, Refusal, RefusalKind, load_catalogue
from recommender.errors import RulebookError, UsageError
from recommender.flags import frozen
from recommender.forms.config_file import ConfigFileError, config_words, merge_config
from recommender.library import data_root
from tests.oracle.records import lines_of

RELEASE = "0.5.23"
TABLE = data_root() / "constraints" / "sglang" / "flags" / "catalogue.json"
RECORDED = Path(__file__).parent / "data" / f"parse-{RELEASE}.jsonl.gz"
TOOL = Path(__file__).parent.parent / "tools" / "make_catalogue.py"
LAUGHS = "a: &a [1, 1]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
# argparse itself changed: 3.13 keeps the value of `--flag=--`, 3.14 writes choices without quotes.
NEWER = sys.version_info >= (3, 13)


@pytest.fixture(scope="module")
def document() -> Any:
    return json.loads(TABLE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def line(document: Any) -> CommandLine:
    return load_catalogue(document).command_line(RELEASE)


@pytest.fixture(scope="module")
def recorded() -> list[dict[str, Any]]:
    return lines_of(RECORDED)


def as_the_engine_says(found: Parsed | Refusal, record: dict[str, Any]) -> bool:
    """Whether a parse equals a recorded one. What a type of the engine words itself is compared up to its words."""
    if "asked" in record:
        wanted = {name: frozen(value) for name, value in record["asked"].items()}
        return isinstance(found, Parsed) and repr(sorted(found.asked.items())) == repr(sorted(wanted.items()))
    if not isinstance(found, Refusal):
        return False
    if "crash" in record:
        return found.kind is RefusalKind.BAD_TYPE
    if record["error"] == "help":
        return found.kind is RefusalKind.HELP
    if record["error"].endswith("..."):
        return found.message.startswith(str(record["error"])[:-3])
    if NEWER:
        return found.message.partition(" (choose from ")[0] == str(record["error"]).partition(" (choose from ")[0]
    return found.message == str(record["error"])


def as_an_older_engine_says(found: Parsed | Refusal, record: dict[str, Any]) -> bool:
    """The same, but for the order of an ambiguous flag's candidates, and for the engine's own words on a retired flag."""
    if isinstance(found, Refusal) and found.kind is RefusalKind.RETIRED_FLAG:
        return str(record.get("error")).startswith(f"{found.flag} is no longer supported")
    if isinstance(found, Refusal) and found.kind is RefusalKind.AMBIGUOUS:
        words = str(record.get("error")).replace(",", "").split()
        return sorted(found.message.replace(",", "").split()) == sorted(words)
    return as_the_engine_says(found, record)


def test_the_engines_parse_is_replayed(line: CommandLine, recorded: list[dict[str, Any]]) -> None:
    records = [item for item in recorded[1:] if "config" not in item]
    if NEWER:
        records = [item for item in records if not any(word.endswith("=--") for word in item["argv"])]
    wrong = [item for item in records if not as_the_engine_says(line.parse(item["argv"]), item)]
    assert len(records) > 3000
    assert wrong == []


def test_recorded_launches_have_every_shape(recorded: list[dict[str, Any]], line: CommandLine) -> None:
    """The record is a witness only if every kind of flag and of refusal occurs in it."""
    kinds = {found.kind for item in recorded[1:] if isinstance(found := line.parse(item["argv"]), Refusal)}
    assert kinds == set(RefusalKind) - {RefusalKind.RETIRED_FLAG}  # 0.5.23 has no such flag
    said = {name for item in recorded[1:] for name in item.get("asked", ())}
    assert len(said) > 0.95 * len(line.fields)


def test_config_files_are_merged_as_recorded(line: CommandLine, recorded: list[dict[str, Any]], tmp_path: Path) -> None:
    records = [item for item in recorded[1:] if "config" in item]
    assert len(records) > 200
    for item in records:
        for name in ("c.yaml", "c.txt"):
            (tmp_path / name).write_text(item["config"], encoding="utf-8")
        try:
            words: object = merge_config(item["argv"], "--config", line.file_keys, tmp_path)
        except ConfigFileError:
            words = None
        assert words == item.get("words"), item


def test_an_abbreviation_is_spelled_as_typed(line: CommandLine) -> None:
    parsed = line.parse(["--model", "x", "--tp", "8", "--speculative-num-st=3"])
    assert isinstance(parsed, Parsed)
    assert parsed.asked == {"model_path": "x", "tp_size": 8, "speculative_num_steps": 3}
    assert parsed.spelled == {
        "model_path": "--model",
        "tp_size": "--tp",
        "speculative_num_steps": "--speculative-num-st",
    }


def test_refusals_name_the_nearest_words(line: CommandLine) -> None:
    unknown = line.parse(["--model", "x", "--speculative-eagle-top", "4", "--speculative_num_steps", "3"])
    assert isinstance(unknown, Refusal)
    assert unknown.kind is RefusalKind.UNKNOWN_FLAG
    assert unknown.flag == "--speculative_num_steps"
    assert unknown.near[0] == "--speculative-num-steps"
    choice = line.parse(["--model", "x", "--attention-backend", "tritn"])
    assert isinstance(choice, Refusal)
    assert (choice.kind, choice.field, choice.value) == (RefusalKind.BAD_CHOICE, "attention_backend", "tritn")
    assert choice.near[0] == "triton"
    ambiguous = line.parse(["--model", "x", "--cuda-graph-max-bs", "8"])
    assert isinstance(ambiguous, Refusal)
    assert set(ambiguous.near) == {"--cuda-graph-max-bs-decode", "--cuda-graph-max-bs-prefill"}
    extra = line.parse(["--model", "x", "stray"])
    assert isinstance(extra, Refusal)
    assert extra.kind is RefusalKind.EXTRA_VALUE


def test_every_refusal_is_found_and_the_rest_is_read(line: CommandLine) -> None:
    text = "--tp two --zzz 1 --page-size 64 --attention-backend nope --port --cuda-graph-max-bs 8 --dtype half"
    parsed, refusals = line.parse_all(text.split())
    assert [item.kind.value for item in refusals] == [
        "ambiguous",
        "bad-type",
        "bad-choice",
        "missing-value",
        "missing-required",
        "unknown-flag",
    ]
    assert parsed.asked == {"page_size": 64, "dtype": "half"}


@pytest.mark.parametrize("count", [1, 2])
def test_a_shell_variable_is_unknown_for_its_flag_alone(line: CommandLine, count: int) -> None:
    from recommender.terms import UNKNOWN

    words: list[Any] = ["--model-path", "$MODEL", "--tp", "${TP}", "--page-size", "64", "--gc-threshold", "1", "$X"]
    parsed = line.parse([*words, *(["$ARGS"] if count == 2 else [])])
    assert isinstance(parsed, Parsed)
    assert parsed.asked == {"model_path": UNKNOWN, "tp_size": UNKNOWN, "page_size": 64, "gc_threshold": UNKNOWN}
    assert isinstance(line.parse(["--model-path", UNKNOWN]), Parsed)
    spare = line.parse(["$ARGS", "--tp", "8"])
    assert isinstance(spare, Parsed)  # the model may stand in $ARGS
    assert spare.unread == ("$ARGS",)


def test_a_config_file_stands_before_the_command_line(line: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("tp-size: 4\npage-size: 64\nmodel-path: x\n", encoding="utf-8")
    parsed = line.parse(["--tp-size", "8", "--config", "c.yaml"], tmp_path)
    assert isinstance(parsed, Parsed)
    assert parsed.asked == {"tp_size": 8, "page_size": 64, "model_path": "x"}
    assert parsed.from_config == {"page_size", "model_path"}
    unread = line.parse(["--model", "x", "--config=c.yaml"], tmp_path)  # the launcher looks for the separate word only
    assert isinstance(unread, Parsed)
    assert unread.asked == {"model_path": "x", "config": "c.yaml"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("none.yaml", None),
        ("c.json", "{}"),
        ("c.yaml", "- a"),
        ("c.yaml", "a: ["),
        ("c.yaml", "7: x"),
        ("c.yaml", "lora-paths: [a]"),
        ("c.yaml", "x: \x00"),
        ("c.yaml", LAUGHS),
        ("c.yaml", "a: &a [*a]"),
    ],
)
def test_a_bad_config_file_is_one_refusal(line: CommandLine, tmp_path: Path, name: str, text: str | None) -> None:
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    refusal = line.parse(["--model", "x", "--config", name], tmp_path)
    assert isinstance(refusal, Refusal)
    assert refusal.kind is RefusalKind.CONFIG_FILE
    assert "\n" not in refusal.message
    assert refusal.without(["--model", "x", "--config", name]) == ["--model", "x"]


def test_config_words_spell_keys_as_written(line: CommandLine) -> None:
    assert config_words(
        {"tp_size": 8, "trust-remote-code": True, "enable-metrics": False}, line.file_keys, "c.yaml"
    ) == [
        "--tp_size",
        "8",
        "--trust-remote-code",
    ]


def test_fields_and_defaults(line: CommandLine) -> None:
    assert set(line.defaults) == set(line.fields)
    for name, field in line.fields.items():
        assert field.name == name
        assert field.default == line.defaults[name]
        assert line.flag(field.flag.long) is field.flag
        if field.choices is not None and field.default is not None and not field.many:
            assert field.default in field.choices, name
    twice = line.fields["enable_amd_monokernel"]
    assert [flag.long for flag in twice.flags] == ["--enable-amd-monokernel", "--monokernel-backend"]
    assert "help" not in line.fields


def test_spans_say_which_words_set_a_field(line: CommandLine, recorded: list[dict[str, Any]]) -> None:
    """Taking a field's words away takes exactly that field away."""
    for item in recorded[1:1500]:
        asked = item.get("asked", {})
        for name in asked:
            if name == "model_path" or any(word == "--" or word.endswith("=--") for word in item["argv"]):
                continue
            left = line.parse(line.without(item["argv"], [name]))
            assert isinstance(left, Parsed)
            assert repr(left.asked) == repr({key: frozen(asked[key]) for key in left.asked})
            assert set(left.asked) == set(asked) - {name}


def test_every_quiet_flag_exists_and_has_a_reason(line: CommandLine) -> None:
    from recommender.library import load

    quiet = load().one("constraints/sglang/flags/without_influence.yaml")
    assert set(quiet) <= set(line.fields)
    assert all(isinstance(reason, str) and reason.endswith(".") for reason in quiet.values())


def test_no_rule_reads_or_writes_a_quiet_flag() -> None:
    from recommender.library import load
    from recommender.rulebook import load_rulebook

    quiet = load().one("constraints/sglang/flags/without_influence.yaml")
    # A flag may be quiet in the releases before the law that reads it.
    book = load_rulebook()
    loud = [book.edition(release.version).plan.touched for release in book.releases]
    assert not set(quiet).intersection(*loud)


@pytest.mark.parametrize("release", ["0.5.15", "0.5.19", "0.5.20"])
def test_older_releases_parse_as_their_engines_did(release: str, document: Any) -> None:
    older = load_catalogue(document).command_line(release)
    records = lines_of(RECORDED.with_name(f"parse-{release}.jsonl.gz"))[1:]
    records = [item for item in records if "config" not in item]
    if NEWER:
        records = [item for item in records if not any(word.endswith("=--") for word in item["argv"])]
    assert len(records) > 1000
    assert [item for item in records if not as_an_older_engine_says(older.parse(item["argv"]), item)] == []


@pytest.mark.parametrize(
    ("release", "words", "told"),
    [
        ("0.5.20", "--mamba-scheduler-strategy auto", "went with 0.5.20; --mamba-radix-cache-strategy does"),
        ("0.5.23", "--nsa-decode-backend fa3", "went with 0.5.20; --dsa-decode-backend does"),
        ("0.5.23", "--cuda-graph-max-bs 8", "went with 0.5.20; --cuda-graph-max-bs-decode does"),
        ("0.5.23", "--keep_mm_feature_on_device", "went with 0.5.21; --mm-feature-transport=cuda_ipc does"),
        ("0.5.23", "--torchao-config int8wo", "--torchao-config went with 0.5.18; nearest"),
        ("0.5.15", "--enable-waterfill", "comes with 0.5.16; --enable-deepep-waterfill does"),
        ("0.5.19", "--attn-dp-size 2", "comes with 0.5.22; --enable-dp-attention does"),
    ],
)
def test_a_flag_of_other_releases_leads_to_its_stand_in(release: str, words: str, told: str) -> None:
    from recommender.rulebook import load_rulebook

    line = load_rulebook().catalogue.command_line(release)
    refusal = line.parse(["--model-path", "x", *words.split()])
    assert isinstance(refusal, Refusal)
    assert told in refusal.told


def test_every_renamed_flag_went_and_its_successor_is_there(line: CommandLine, document: Any) -> None:
    from recommender.library import load

    known = {name for entry in document["flags"] for name in entry["names"]}
    for old, new in load().one("constraints/sglang/flags/renamed.yaml").items():
        assert old in known
        assert line.flag(old) is None
        assert line.flag(new.partition("=")[0]) is not None


def test_releases_outside_the_table(document: Any) -> None:
    catalogue = load_catalogue(document)
    assert catalogue.command_line("0.5.99").names == catalogue.command_line(RELEASE).names
    with pytest.raises(UsageError, match="no flags are known"):
        catalogue.command_line("0.4.0")


@pytest.mark.parametrize("damaged", [{}, [], {"schema": 2}, {"schema": 1, "releases": 3, "flags": []}, None])
def test_a_damaged_table_is_named(damaged: Any) -> None:
    with pytest.raises(RulebookError, match="flag catalogue"):
        load_catalogue(damaged)


def test_an_unknown_type_is_named() -> None:
    entry = {"names": ["--x"], "field": "x", "kind": "store", "type": "mystery", "since": "1.0"}
    line = load_catalogue({"schema": 1, "releases": ["1.0"], "flags": [entry]}).command_line("1.0")
    with pytest.raises(RulebookError, match="no reader for type 'mystery'"):
        line.parse(["--x", "1"])


# --- the tool ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    if not TOOL.exists():
        pytest.skip("the tools are not beside the tests")
    spec = importlib.util.spec_from_file_location("make_catalogue", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def entry(name: str, **more: Any) -> dict[str, Any]:
    return {"names": [f"--{name}"], "field": name, "kind": "store", "type": "int", **more}


def test_the_shipped_table_is_what_the_tool_writes(tool: ModuleType, document: Any) -> None:
    assert tool.render(tool.collapse(tool.expand(document))) == TABLE.read_text(encoding="utf-8")


def test_merged_releases_are_told_apart(tool: ModuleType) -> None:
    a, b, c, d = entry("a"), entry("b"), entry("c"), entry("d")
    changed = entry("b", default=3)
    lists = {"1.0": [a, b, c], "1.1": [a, changed, d], "1.2": [d, changed, c]}
    table: Any = None
    for release in ("1.2", "1.0", "1.1"):
        table = tool.merge(table, [{"release": release, "flags": lists[release]}])
    for release, flags in lists.items():
        found = tool.expand(table)[release]
        assert sorted(map(json.dumps, found)) == sorted(map(json.dumps, flags))
    assert tool.expand(table)["1.2"] == lists["1.2"]
    assert [item for item in table["flags"] if item["field"] == "c"] == [
        c | {"since": "1.2"},
        c | {"since": "1.0", "until": "1.1"},
    ]
    catalogue: Catalogue = load_catalogue(table | {"schema": 1})
    assert catalogue.command_line("1.0").defaults == {"a": None, "b": None, "c": None}
    assert catalogue.command_line("1.1.post1").defaults["b"] == 3
    assert "a" not in catalogue.command_line("1.2").fields


def test_retired_and_ignored_flags() -> None:
    flags = [
        entry("new", since="1.0"),
        {"names": ["--old"], "field": "old", "kind": "retired", "deprecated": True, "instead": "--new", "since": "1.0"},
        {"names": ["--noop"], "field": "noop", "kind": "ignored", "deprecated": True, "since": "1.0"},
        {"names": ["--alias"], "field": "new", "kind": "store", "type": "int", "deprecated": True, "since": "1.0"},
    ]
    line = load_catalogue({"schema": 1, "releases": ["1.0"], "flags": flags}).command_line("1.0")
    refusal = line.parse(["--new", "1", "--old"])
    assert isinstance(refusal, Refusal)
    assert refusal.kind is RefusalKind.RETIRED_FLAG
    assert "--new" in refusal.message
    assert refusal.without(["--new", "1", "--old"]) == ["--new", "1"]
    parsed = line.parse(["--noop", "--alias", "2"])
    assert isinstance(parsed, Parsed)
    assert parsed.asked == {"new": 2}
    assert set(line.fields) == {"new"}
    assert line.fields["new"].flag.long == "--new"
