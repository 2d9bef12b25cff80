"""Facts of devices and checkpoints: every profile, every way to name one, every broken file a person may hand in."""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender import devices, library, profiles
from recommender.errors import RecommenderError, RulebookError, UsageError
from recommender.facts import FactBook, checked, plain
from recommender.terms import UNKNOWN
from tests.oracle.records import lines_of

DATA = Path(__file__).parent / "data"
FOLDERS = ("gpus", "nodes", "images", "architectures", "config_classes", "models", "drafts")
NAMED_BY = {"architectures": "architecture", "config_classes": "model_type"}
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 2048,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_hidden_layers": 16,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No leftover of another test, and no Hugging Face cache of this machine."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "no-cache"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.delenv("HUGGINGFACE_HUB_CACHE", raising=False)
    profiles.forget()
    yield
    profiles.forget()


def documents(folder: str) -> list[tuple[str, Mapping[str, Any]]]:
    found = [(stem, document) for stem, each in library.load().folder(f"profiles/{folder}") for document in each]
    assert found
    return found


def checkpoint_names() -> list[str]:
    return [*profiles.model_ids("models"), *profiles.model_ids("drafts")]


def write(folder: Path, config: Any, name: str = "config.json") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(config if isinstance(config, str) else json.dumps(config), encoding="utf-8")
    return folder


# --- every profile ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", FOLDERS)
def test_one_profile_a_file_named_by_its_id(folder: str) -> None:
    for stem, document in documents(folder):
        assert document[NAMED_BY.get(folder, "id")] == stem
        assert document.get("source") or folder == "gpus", f"{folder}/{stem} does not say where it is from"


def test_ids_and_names_are_unique() -> None:
    devices_named = [
        devices._squeeze(name)
        for folder in ("gpus", "nodes")
        for _, document in documents(folder)
        for name in dict.fromkeys(devices._squeeze(each) for each in (document["id"], *document["names"]))
    ]
    checkpoints = [
        name.casefold()
        for folder in ("models", "drafts")
        for _, document in documents(folder)
        for name in (document["id"], *document["hf"])
    ]
    assert [name for name, count in Counter(devices_named + checkpoints).items() if count > 1] == []


def test_every_fact_is_listed_well() -> None:
    book = profiles.book()
    for name in book.names():
        spec = book.spec(name)
        assert spec.meaning, name
        assert name.split(".")[0] in ("gpu", "engine", "model", "draft"), name
        assert not (spec.keys and spec.derive), f"{name}: keys or derive, not both"
        if spec.derive:
            scope = "model." if name.startswith(("model.", "draft.")) else "gpu."
            assert all(each.startswith(scope) for each in book.expression(spec.derive).facts), name


@pytest.mark.parametrize("name", checkpoint_names())
def test_every_fact_of_a_checkpoint_has_its_type(name: str) -> None:
    model = profiles.find_model(name)
    assert model.architecture_known, model.architecture
    for fact in profiles.book().names():
        if fact.startswith("model."):
            checked(profiles.book().spec(fact), model.facts[fact], fact)


@pytest.mark.parametrize("name", profiles.gpu_ids())
def test_every_fact_of_a_device_has_its_type(name: str) -> None:
    gpu = profiles.find_gpu(name)
    for fact in profiles.book().names():
        if fact.startswith(("gpu.", "engine.")):
            checked(profiles.book().spec(fact), gpu.facts[fact], fact)
    assert gpu.facts["gpu.platform"] in ("cuda", "hip", "cpu") or gpu.unproven
    assert (gpu.facts["gpu.sm"] is not None) == (gpu.facts["gpu.platform"] == "cuda")
    assert (gpu.facts["gpu.gcn_arch"] is not None) == (gpu.facts["gpu.platform"] == "hip")
    measured = [fact for fact in ("bf16_tflops", "fp8_tflops", "memory_tb_s", "link_gb_s") if fact in gpu.sources]
    assert all(gpu.facts[f"gpu.{fact}"] is not UNKNOWN for fact in measured)


@pytest.mark.parametrize(("stem", "document"), documents("architectures"))
def test_every_architecture_states_listed_facts(stem: str, document: Mapping[str, Any], tmp_path: Path) -> None:
    model = profiles.find_model(str(write(tmp_path, {**LLAMA, "architectures": [stem]})))
    for fact in document["facts"]:
        checked(profiles.book().spec(f"model.{fact}"), model.facts[f"model.{fact}"], f"{stem}: {fact}")


def test_parts_of_configuration_classes_have_a_profile() -> None:
    stems = {stem for stem, _ in documents("config_classes")}
    missing = [
        f"{stem}: {part}"
        for stem, document in documents("config_classes")
        for part in document.get("parts", {}).values()
        if part not in stems
    ]
    assert missing == []


def test_a_class_reads_its_part_from_the_top_level_when_the_file_does_not_nest_it(tmp_path: Path) -> None:
    flat = {**LLAMA, "architectures": ["Qwen2VLForConditionalGeneration"], "model_type": "qwen2_vl"}
    nested = {"architectures": flat["architectures"], "model_type": "qwen2_vl", "text_config": dict(LLAMA)}
    for name, config in (("flat", flat), ("nested", nested)):
        facts = profiles.find_model(str(write(tmp_path / name, config))).facts
        assert (facts["model.hidden_size"], facts["model.num_layers"]) == (2048, 16), name


def test_drafts_and_targets_name_each_other() -> None:
    for _, document in documents("drafts"):
        for target in document["targets"]:
            assert document["hf"][0] in profiles.find_model(target).drafts
    for _, document in documents("models"):
        for draft in document.get("drafts", ()):
            assert profiles.find_model(draft).id


def test_a_misspelt_fact_of_a_profile_is_named() -> None:
    document = {"id": "x", "names": ["x"], "facts": {"memory_mb": 5}}
    with pytest.raises(RulebookError, match=r"unknown fact 'memory_mb'; did you mean 'memory_mib'"):
        devices._gpu("x", document)
    with pytest.raises(RulebookError, match=r"unknown key 'alias'"):
        devices._gpu("x", {"id": "x", "alias": ["y"]})


def test_a_misspelt_line_of_the_fact_list_is_named() -> None:
    with pytest.raises(RulebookError, match=r"model\.x: unknown key 'key'; did you mean 'keys'"):
        FactBook({"model.x": {"type": "int", "key": ["x"]}}).spec("model.x")
    with pytest.raises(RulebookError, match="unknown type 'integer'"):
        FactBook({"model.x": {"type": "integer"}}).spec("model.x")
    with pytest.raises(RulebookError, match=r"unknown fact 'model\.y'; did you mean 'model\.x'"):
        FactBook({"model.x": {"type": "int"}}).spec("model.y")


# --- what the engine says ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", sorted(DATA.glob("engine-facts-*.jsonl")), ids=lambda file: file.stem)
def test_facts_equal_the_engines(file: Path) -> None:
    """Recorded by tools/check_facts.py: what the engine's own model configuration makes of every checkpoint profile."""
    lines = lines_of(file)
    known = set(checkpoint_names())
    assert {line["id"] for line in lines} <= known
    assert len(lines) >= 34
    for line in lines:
        facts = profiles.find_model(line["id"]).facts
        for fact, theirs in line["facts"].items():
            assert facts[f"model.{fact}"] == plain(theirs), f"{line['id']}: {fact}"


# --- devices ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "found", "count"),
    [
        ("b200", "b200", None),
        ("B200", "b200", None),
        ("NVIDIA B200", "b200", None),
        ("8xb200", "b200", 8),
        ("4 x NVIDIA H100 80GB HBM3", "h100", 4),
        ("2*mi300x", "mi300x", 2),
        ("DGX H200", "h200", 8),
        ("2x dgx h200", "h200", 16),
        ("rtx 4090", "rtx4090", None),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtxpro6000", None),
        ("AMD Instinct MI355X", "mi355x", None),
        ("spark", "gb10", 1),
        ("cpu", "cpu", None),
    ],
)
def test_a_device_is_found(reference: str, found: str, count: int | None) -> None:
    gpu = profiles.find_gpu(reference)
    assert (gpu.id, gpu.count) == (found, count)
    if count is not None:
        assert gpu.facts["gpu.count"] == count


def test_blackwell_is_four_different_things() -> None:
    levels = {name: profiles.find_gpu(name).facts["gpu.sm"] for name in ("b200", "b300", "rtx5090", "gb10")}
    assert levels == {"b200": 100, "b300": 103, "rtx5090": 120, "gb10": 121}
    with pytest.raises(
        UsageError, match=r"a family of devices, name one: b200 \(sm100\), b300 \(sm103\), gb10 \(sm121\)"
    ):
        profiles.find_gpu("blackwell")


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("b201", r"unknown device 'b201'; did you mean 'b200'"),
        ("0xb200", "the count must be at least 1"),
        ("", "unknown device ''"),
        ("8x", "unknown device '8x'"),
        ("nvidia", "a family of devices"),
    ],
)
def test_an_unknown_device_is_named(reference: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        profiles.find_gpu(reference)


@given(st.text(max_size=40))
def test_any_text_is_a_device_or_one_clear_line(reference: str) -> None:
    message = ""
    try:
        assert profiles.find_gpu(reference).id
    except UsageError as error:
        message = str(error)
    assert "\n" not in message


def tool(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


ROCMINFO = """cat <<'END'
Agent 1
  Name:                    AMD EPYC 9654
  Marketing Name:          AMD EPYC 9654
Agent 2
  Name:                    gfx942
  Marketing Name:          AMD Instinct MI300X
  Compute Unit:            304
  Pool 1
    Segment:                 GLOBAL; FLAGS: COARSE GRAINED
    Size:                    201310208(0xbffc000) KB
Agent 3
  Name:                    gfx942
  Marketing Name:          AMD Instinct MI300X
END"""


@pytest.mark.parametrize(
    ("printed", "found", "facts"),
    [
        (("nvidia-smi", "echo 'NVIDIA B200, 183359 MiB, 10.0'\n" * 2), "b200", {"count": 2}),
        (
            ("nvidia-smi", "echo 'NVIDIA B999, 9 MiB, 11.0'"),
            None,
            {"sm": 110, "memory_mib": 9, "count": 1, "sms": None},
        ),
        (("rocminfo", ROCMINFO), "mi300x", {"count": 2, "gcn_arch": "gfx942"}),
        (("rocminfo", ROCMINFO.replace("MI300X", "X")), None, {"sms": 304, "memory_mib": 196592, "sm": None}),
    ],
)
def test_the_device_at_hand_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, printed: tuple[str, str], found: str | None, facts: dict[str, Any]
) -> None:
    tool(tmp_path / "bin", *printed)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    gpu = profiles.detect_gpu()
    assert gpu is not None
    assert gpu.id == found
    assert {fact: gpu.facts[f"gpu.{fact}"] for fact in facts} == facts


@pytest.mark.parametrize(
    "script", ["exit 1", "echo nonsense", "printf '\\377\\376'", "echo 'No devices were found'", "sleep 9"]
)
def test_no_device_at_hand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> None:
    for name in ("nvidia-smi", "rocminfo"):
        tool(tmp_path / "bin", name, script)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(devices, "DETECTION_SECONDS", 0.2)
    assert profiles.detect_gpu() is None


# --- checkpoints ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("deepseek-v3", "deepseek-v3"),
        ("deepseek-ai/DeepSeek-R1", "deepseek-v3"),
        ("Qwen/qwen3-8b", "qwen3-8b"),
        ("yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", "eagle3-llama-8b-draft"),
    ],
)
def test_a_checkpoint_with_a_profile_is_found(reference: str, found: str) -> None:
    model = profiles.find_model(reference)
    assert (model.id, model.origin) == (found, "profile")


def test_a_checkpoint_of_a_folder_or_a_file_is_found(tmp_path: Path) -> None:
    folder = write(tmp_path / "mine", LLAMA)
    for reference in (str(folder), str(folder / "config.json")):
        model = profiles.find_model(reference)
        assert (model.id, model.origin, model.facts["model.head_dim"]) == (None, "file", 64)
    assert profiles.find_model("mine", tmp_path).facts["model.num_kv_heads"] == 8


def test_a_folder_comes_before_a_profile_of_its_name(tmp_path: Path) -> None:
    write(tmp_path / "llama-3.1-8b", LLAMA)
    assert profiles.find_model("llama-3.1-8b", tmp_path).origin == "file"
    assert profiles.find_model("llama-3.1-8b", tmp_path / "elsewhere").origin == "profile"


def test_the_files_beside_config_json_are_read(tmp_path: Path) -> None:
    write(tmp_path, LLAMA)
    write(tmp_path, {"quantization": {"quant_algo": "NVFP4"}}, "hf_quant_config.json")
    write(tmp_path, {"metadata": {"total_size": 2**31}}, "model.safetensors.index.json")
    facts = profiles.find_model(str(tmp_path)).facts
    assert facts["model.quant_method"] == "modelopt_fp4"
    assert facts["model.weight_gib"] == 2.0


@pytest.mark.parametrize("variable", ["HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"])
def test_the_hugging_face_cache_is_looked_at(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str) -> None:
    monkeypatch.setenv(variable, str(tmp_path))
    hub = tmp_path / "hub" if variable == "HF_HOME" else tmp_path
    folder = hub / "models--someone--model"
    write(folder / "snapshots" / "abc", {**LLAMA, "vocab_size": 7})
    write(folder / "snapshots" / "def", LLAMA)
    assert profiles.find_model("someone/model").origin == "cache"
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("abc", encoding="utf-8")
    profiles.forget()
    assert profiles.find_model("someone/model").facts["model.vocab_size"] == 7


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("qwen3-8", "unknown model 'qwen3-8'; did you mean 'qwen3-8b'"),
        ("someone/other", "unknown model 'someone/other'"),
        ("", "not the name of a model"),
        ("a\0b", "not the name of a model"),
        ("../../x", "unknown model"),
        (".", "a folder without a config.json"),
        ("x" * 5000, "unknown model"),
    ],
)
def test_an_unknown_checkpoint_is_named(tmp_path: Path, reference: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        profiles.find_model(reference, tmp_path)


def test_an_unknown_architecture_leaves_its_facts_unknown(tmp_path: Path) -> None:
    model = profiles.find_model(
        str(write(tmp_path, {**LLAMA, "architectures": ["NewForCausalLM"], "model_type": "new"}))
    )
    facts = profiles.all_facts(model=model)
    assert not model.architecture_known
    assert facts["model.is_mla"] is UNKNOWN
    assert facts["model.num_kv_heads"] == 8
    assert profiles.unknown_facts(facts, ["model.is_mla", "model.vocab_size"]) == ("model.is_mla",)


def test_a_partial_file_takes_the_defaults_of_its_class(tmp_path: Path) -> None:
    partial = {"architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next"}
    facts = profiles.find_model(str(write(tmp_path, partial))).facts
    assert (facts["model.num_layers"], facts["model.num_kv_heads"], facts["model.head_dim"]) == (48, 2, 256)


def test_a_key_that_is_null_is_not_a_default(tmp_path: Path) -> None:
    write(tmp_path, {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "kv_lora_rank": None})
    assert profiles.find_model(str(tmp_path)).facts["model.kv_lora_rank"] is None


def test_a_checkpoint_known_in_part_guesses_nothing() -> None:
    facts = profiles.find_model("eagle3-qwen3-8b").facts
    assert facts["model.draft_kind"] == "eagle3"
    assert facts["model.num_layers"] is UNKNOWN
    assert facts["model.draft_vocab_size"] is UNKNOWN


def test_the_scopes_of_a_launch() -> None:
    model, draft = profiles.find_model("llama-3.1-8b"), profiles.find_model("eagle3-llama-8b-draft")
    with_draft = profiles.all_facts(gpu=profiles.find_gpu("b200"), model=model, draft=draft)
    assert with_draft["draft.draft_vocab_size"] == 32000
    assert with_draft["model.draft_vocab_size"] is None
    assert with_draft["engine.has_flashinfer"] is True
    assert profiles.all_facts(model=model)["draft.vocab_size"] is None
    assert profiles.all_facts(model=model, draft=UNKNOWN)["draft.vocab_size"] is UNKNOWN
    assert profiles.all_facts()["model.vocab_size"] is UNKNOWN
    assert profiles.all_facts()["gpu.sm"] is UNKNOWN
    assert profiles.all_facts(engine={"engine.has_flashinfer": False})["engine.has_flashinfer"] is False
    with pytest.raises(RulebookError, match=r"unknown fact 'model\.vocabsize'; did you mean 'model\.vocab_size'"):
        profiles.all_facts(model=model)["model.vocabsize"]


def test_facts_cannot_be_assigned() -> None:
    facts = profiles.find_gpu("b200").facts
    with pytest.raises(TypeError):
        facts["gpu.sm"] = 90


def test_keys_can_be_overridden_as_the_engine_lets_a_user() -> None:
    model = profiles.find_model("deepseek-v3.2")
    changed = profiles.with_config(model, {"index_topk": None, "rope_scaling": {"factor": 2}})
    assert (model.facts["model.is_dsa"], changed.facts["model.is_dsa"]) == (True, False)
    assert changed.config["rope_scaling"]["original_max_position_embeddings"] == 4096
    with pytest.raises(UsageError, match="index_topk: expected an integer"):
        profiles.with_config(model, {"index_topk": "many"})


# --- files that cannot be used ----------------------------------------------------------------------------------------


def folder_instead(folder: Path) -> None:
    (folder / "config.json").mkdir()


def fifo_instead(folder: Path) -> None:
    os.mkfifo(folder / "config.json")


def too_large(folder: Path) -> None:
    with (folder / "config.json").open("wb") as file:
        file.truncate(100 * 2**20)


def not_text(folder: Path) -> None:
    (folder / "config.json").write_bytes(b"\xff\xfe{}")


HOSTILE: list[tuple[str | Callable[[Path], None], str]] = [
    ("", "not usable JSON"),
    ("{", "not usable JSON"),
    ("nonsense", "not usable JSON"),
    ("[]", "expected a JSON object, found a list"),
    ("3", "expected a JSON object, found an integer"),
    ("null", "expected a JSON object, found null"),
    ('"text"', "expected a JSON object, found a text"),
    ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
    ('{"a":' * 100_000 + "1" + "}" * 100_000, "nested too deeply"),
    ('{"hidden_size": ' + "9" * 5000 + "}", "config.json"),
    (json.dumps({**LLAMA, "hidden_size": "wide"}), "hidden_size: expected an integer, found a text"),
    (json.dumps({**LLAMA, "hidden_size": True}), "hidden_size: expected an integer, found a boolean"),
    (json.dumps({**LLAMA, "hidden_size": 1.5}), "hidden_size: expected an integer, found a number"),
    (json.dumps({**LLAMA, "hidden_size": [1]}), "hidden_size: expected an integer, found a list"),
    (json.dumps({**LLAMA, "hidden_size": 10**30}), "hidden_size: .* out of range"),
    (json.dumps({**LLAMA, "vocab_size": float("inf")}), "vocab_size: expected an integer"),
    (json.dumps({**LLAMA, "architectures": "LlamaForCausalLM"}), "architectures: expected a list, found a text"),
    (json.dumps({**LLAMA, "quantization_config": "fp8"}), "quantization_config: expected an object, found a text"),
    (
        json.dumps({**LLAMA, "quantization_config": {"quant_method": 8}}),
        "quant_method: expected a text, found an integer",
    ),
    (json.dumps({**LLAMA, "layer_types": {"a": 1}}), "layer_types: expected a list, found an object"),
    (json.dumps({**LLAMA, "text_config": {"vocab_size": {}}}), "text_config.vocab_size: expected an integer, found an"),
    (folder_instead, "config.json: not a file"),
    (fifo_instead, "config.json: not a file"),
    (too_large, "too large for a configuration"),
    (not_text, "not UTF-8 text"),
]


@pytest.mark.parametrize(("content", "message"), HOSTILE, ids=range(len(HOSTILE)))
def test_a_broken_config_is_one_clear_line(tmp_path: Path, content: str | Callable[[Path], None], message: str) -> None:
    if callable(content):
        content(tmp_path)
    else:
        write(tmp_path, content)
    with pytest.raises(UsageError, match=message) as caught:
        profiles.find_model(str(tmp_path))
    assert "\n" not in str(caught.value)
    assert "config.json" in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_broken_hf_quant_config_is_named(tmp_path: Path) -> None:
    write(tmp_path, LLAMA)
    write(tmp_path, {"quantization": {"quant_algo": 4}}, "hf_quant_config.json")
    with pytest.raises(UsageError, match=r"hf_quant_config\.json: quantization\.quant_algo: expected a text"):
        profiles.find_model(str(tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_config_is_named(tmp_path: Path) -> None:
    write(tmp_path, LLAMA)
    (tmp_path / "config.json").chmod(0)
    with pytest.raises(UsageError, match=r"config\.json: cannot be read \(Permission denied\)"):
        profiles.find_model(str(tmp_path))


def test_numbers_that_json_does_not_have_are_read_as_the_engine_reads_them(tmp_path: Path) -> None:
    write(tmp_path, json.dumps({**LLAMA, "time_step_limit": [0.0, float("inf")]}))
    assert profiles.find_model(str(tmp_path)).facts["model.num_layers"] == 16


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KEYS = sorted(
    {
        path[0]
        for name in profiles.book().names()
        for file, path in profiles.book().spec(name).keys
        if file in ("", "text")
    }
)


@given(st.dictionaries(st.sampled_from([*KEYS, "text_config", "llm_config"]), JSON, max_size=6), st.data())
def test_any_config_gives_facts_or_one_clear_line(config: dict[str, Any], data: st.DataObject) -> None:
    base = data.draw(st.sampled_from([{}, LLAMA, *(document["config"] for _, document in documents("models")[:6])]))
    model = profiles.find_model("llama-3.1-8b")
    message = ""
    try:
        facts = profiles.with_config(model, {**base, **config}).facts
        for name in profiles.book().names():
            if name.startswith("model."):
                facts[name]
    except RecommenderError as error:
        message = str(error)
    assert "\n" not in message


# The drafts that published launch commands and measurements name most; `--speculative-draft-model-path` must resolve them.
NAMED_DRAFTS = {
    "Tengyunw/qwen3_8b_eagle3": "eagle3",
    "mistralai/Mistral-Small-4-119B-2603-eagle": "eagle",
    "lightseekorg/kimi-k2.5-eagle3": "eagle3",
    "lmsys/sglang-EAGLE-llama2-chat-7B": "eagle",
    "moonshotai/Kimi-K3-DSpark": "dspark",
    "lmsys/sglang-EAGLE3-Llama-4-Scout-17B-16E-Instruct-v1": "eagle3",
    "AQ-MedAI/Ling-Flash-2.0-eagle3": "eagle3",
    "lmsys/SGLang-EAGLE3-Qwen3-Coder-30B-A3B-Instruct-SpecForge": "eagle3",
    "z-lab/Qwen3-4B-DFlash-b16": "dflash",
    "google/gemma-4-31B-it-assistant": "assistant",
    "google/gemma-4-12B-it-assistant": "assistant",
}


@pytest.mark.parametrize("name", NAMED_DRAFTS)
def test_a_published_draft_is_known_by_its_kind(name: str) -> None:
    model = profiles.find_model(name)
    assert model.facts["model.draft_kind"] == NAMED_DRAFTS[name]
    assert model.algorithm


def test_a_draft_says_how_wide_its_target_is() -> None:
    for name in profiles.model_ids("drafts"):
        model = profiles.find_model(name)
        for target in model.targets:
            wide = profiles.find_model(target).facts["model.hidden_size"]
            kind = model.facts["model.draft_kind"]
            fact = "model.backbone_hidden_size" if kind == "assistant" else "model.hidden_size"
            assert model.facts[fact] in (wide, UNKNOWN), (name, target)
