"""Editions of laws begin and end as text, and nothing else of a file changes."""

from __future__ import annotations

import pytest
import yaml

from tools.edition import RULES, EditionError, changed

LAW = """id: a-law
statement: It holds.
since: "0.5.15"
when: asked
source: {file: a.py, symbol: f, release: 0.5.19}
examples:
  - {breaks: --x, gpu: b200}
"""
OLDER = 'id: a-law\nsince: "0.5.9"\nuntil: "0.5.15"\n'


def test_a_copy_begins_where_the_newest_edition_ends() -> None:
    new, last, older = changed(f"{LAW}---\n{OLDER}", "0.5.23", end=False).split("---\n")
    assert new == LAW.replace('"0.5.15"', '"0.5.23"').replace("release: 0.5.19", 'release: "0.5.23"')
    assert last == LAW.replace('since: "0.5.15"\n', 'since: "0.5.15"\nuntil: "0.5.23"\n')
    assert older == OLDER


def test_a_law_ends_without_a_copy() -> None:
    assert changed(LAW, "0.5.23", end=True) == LAW.replace('since: "0.5.15"\n', 'since: "0.5.15"\nuntil: "0.5.23"\n')


@pytest.mark.parametrize(
    ("text", "told"),
    [(OLDER, "its newest edition ends in 0.5.15"), (LAW, "begins in 0.5.15, not before 0.5.15")],
)
def test_what_cannot_end_is_told(text: str, told: str) -> None:
    with pytest.raises(EditionError, match=told):
        changed(text, "0.5.15", end=True)


def test_every_law_in_force_can_have_an_edition() -> None:
    for path in RULES.glob("*/*.yaml"):
        text = path.read_text(encoding="utf-8")
        if path.parent.name in ("phases", "definitions", "flags") or "\nuntil:" in text.split("\n---\n")[0]:
            continue
        first, second = list(yaml.safe_load_all(changed(text, "9.9.9", end=False)))[:2]
        assert (first["since"], second["until"]) == ("9.9.9", "9.9.9"), path
        assert {**first, "since": None, "source": None} == {
            key: value for key, value in {**second, "since": None, "source": None}.items() if key != "until"
        }, path
