"""Tests the tracing of model classes, and holds every architecture's profile to what the releases' sources define."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from recommender import profiles
from recommender.rulebook import load_rulebook
from tools import trace_classes
from tools.trace_classes import KNOWN, METHODS, PROFILES, TABLE, classes_of, differences, earlier, had, rewritten

TABLED: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))
MODULE = """
class Base:
    def set_eagle3_layers_to_capture(self): ...
class First(Base): ...
class Second(models.First):
    set_dflash_layers_to_capture = None
class Third: ...
EntryClass = [First, Second]
"""
REWRITING = """
class ModelConfig:
    def _config_draft_model(self):
        if self.is_draft_model and self.architectures[0] in ["First", "Second"]:
            self.architectures[0] = "FirstNextN"
"""


def release(root: Path, version: str, module: str) -> Path:
    for name, text in (("models/some.py", module), ("configs/model_config.py", REWRITING)):
        path = root / version / "sglang" / "srt" / name
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    return root / version


def test_a_class_has_what_it_inherits(tmp_path: Path) -> None:
    classes = classes_of(release(tmp_path, "1.0", MODULE))
    assert set(classes.registered) == {"First", "Second"}
    eagle3, dflash = METHODS["captures_eagle3"], METHODS["captures_dflash"]
    assert [classes.has(name, eagle3) for name in ("Base", "First", "Second", "Third")] == [True, True, True, False]
    assert [classes.has(name, dflash) for name in ("First", "Second", "Nobody")] == [False, True, False]


def test_the_registered_class_counts_where_another_module_has_its_name(tmp_path: Path) -> None:
    folder = release(tmp_path, "1.0", MODULE)
    (folder / "sglang/srt/models/a_text.py").write_text("class First(nn.Module): ...\nEntryClass = First\n", encoding="utf-8")
    (folder / "sglang/srt/models/some.py").write_text(MODULE.replace("First, ", ""), encoding="utf-8")
    classes, eagle3 = classes_of(folder), METHODS["captures_eagle3"]
    assert not classes.has("First", eagle3)
    assert not classes.has("Second", METHODS["captures_dspark"])
    assert classes.has("Second", eagle3)


def test_only_what_is_compared_with_is_rewritten(tmp_path: Path) -> None:
    assert rewritten(release(tmp_path, "1.0", MODULE)) == {"First", "Second"}


def test_what_a_class_was_earlier(tmp_path: Path) -> None:
    release(tmp_path, "1.0", "EntryClass = []")
    release(tmp_path, "1.9", MODULE.replace("(Base)", ""))
    release(tmp_path, "1.10", MODULE)
    table = trace_classes.spans(trace_classes.table_of(tmp_path))
    assert table["releases"] == ["1.0", "1.9", "1.10"]
    assert [had(table["classes"]["First"], KNOWN, version) for version in table["releases"]] == [False, True, True]
    assert earlier(table["classes"]["First"], table["releases"]) == [
        {"until": "1.10", "facts": {"captures_eagle3": False}},
        {"until": "1.9", "facts": {KNOWN: False, "class_comes_with": "1.9"}},
    ]
    silent = {"architecture": "First", "facts": {"captures_eagle3": True}}
    assert list(differences(table, {"First": silent})) == [
        ("First", KNOWN, "1.0"), ("First", "captures_eagle3", "1.0"), ("First", "captures_eagle3", "1.9"),
    ]  # fmt: skip
    told = silent | {"earlier": earlier(table["classes"]["First"], table["releases"])}
    assert not list(differences(table, {"First": told}))


def test_one_more_release_is_as_all_at_once(tmp_path: Path) -> None:
    release(tmp_path, "1.0", MODULE.replace("(Base)", "").replace(", Second]", "]"))
    known = trace_classes.spans(trace_classes.table_of(tmp_path))
    newest = release(tmp_path, "1.1", MODULE)
    at_once = trace_classes.spans(trace_classes.table_of(tmp_path))
    assert trace_classes.added(known, "1.1", newest) == at_once
    assert trace_classes.added(at_once, "1.1", newest) == at_once
    assert json.loads(trace_classes.render(at_once)) == at_once


def test_every_profile_says_what_the_sources_define() -> None:
    documents = trace_classes.read(sorted(PROFILES.glob("*.yaml")))
    assert not [" ".join(each) for each in differences(TABLED, documents)]


def test_the_table_is_of_every_covered_release() -> None:
    assert TABLED["releases"] == [release.version for release in load_rulebook().releases]


@pytest.mark.parametrize(("version", "known"), [("0.5.18", False), ("0.5.19", True), ("0.5.23", True)])
def test_a_checkpoint_as_of_a_release(tmp_path: Path, version: str, known: bool) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"architectures": ["BailingMoeV3ForCausalLM"], "hidden_size": 64}), encoding="utf-8")
    model = profiles.find_model(str(config))
    assert model.as_of(version)["model.has_engine_class"] is known
    assert profiles.all_facts(model=model, release=version)["model.has_engine_class"] is known
    assert profiles.all_facts(draft=model, release=version)["draft.has_engine_class"] is known
    assert model.facts["model.has_engine_class"] is True
    assert model.as_of(version)["model.hidden_size"] == 64
