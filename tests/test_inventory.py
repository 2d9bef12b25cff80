"""Every law of an inventory of engine rules is a rule of ours or is left out for a reason; it must not hold the laws.

Each file of data/inventory maps laws by their id in that inventory to our rules, or says why a law concerns no launch.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from recommender.rulebook import load_rulebook
from tests.oracle.records import DATA

ENGINE = Path(__file__).resolve().parent.parent / "constraints" / "sglang"
FOLDER = DATA / "inventory"
FILES = ("a.yaml", "b.yaml", "c.yaml")
LAWS = 278


def entries() -> list[tuple[str, dict[str, Any]]]:
    """(file, entry) of every law."""
    found: list[tuple[str, dict[str, Any]]] = []
    for path in sorted(FOLDER.glob("*.yaml")):
        listed = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert isinstance(listed, list), f"{path.name}: a list of laws is wanted"
        found.extend((path.name, entry) for entry in listed)
    return found


@cache
def definitions() -> frozenset[str]:
    """The names of the shared definitions."""
    files = (ENGINE / "definitions").glob("*.yaml")
    return frozenset(name for path in files for name in yaml.safe_load(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("file", "entry"), entries(), ids=lambda value: value["law"] if isinstance(value, dict) else ""
)
def test_a_law_is_a_rule_or_left_out_for_a_reason(file: str, entry: dict[str, Any]) -> None:
    assert set(entry) <= {"law", "rules", "definition", "none"}, f"{file}: {entry['law']}: an unknown key"
    assert ("none" in entry) != ("rules" in entry or "definition" in entry), (
        f"{file}: {entry['law']}: rules or a reason"
    )
    if "none" in entry:
        assert len(entry["none"].split()) > 3, f"{file}: {entry['law']}: the reason is a sentence"
        return
    unknown = [rule for rule in entry.get("rules", []) if rule not in load_rulebook().rules]
    assert not unknown, f"{file}: {entry['law']}: no such rules: {', '.join(unknown)}"
    if name := entry.get("definition"):
        assert name in definitions(), f"{file}: {entry['law']}: no definition {name}"


def test_no_law_is_listed_twice() -> None:
    twice = [law for law, times in Counter(entry["law"] for _, entry in entries()).items() if times > 1]
    assert not twice


def test_the_inventory_is_whole() -> None:
    missing = [name for name in FILES if not (FOLDER / name).is_file()]
    if missing:
        pytest.skip(f"not mapped yet: {', '.join(missing)}")
    assert len(entries()) == LAWS
