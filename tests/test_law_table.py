"""docs/rules.md is what the rulebook says now: every law, its releases, what verified it and a launch that trips it."""

from __future__ import annotations

import re

from recommender.rulebook import load_rulebook
from tools.law_table import FILE, releases, text, verified

BOOK = load_rulebook()


def test_the_catalogue_of_laws_is_not_stale() -> None:
    assert FILE.read_text(encoding="utf-8") == text(BOOK), "python -m tools.law_table"


def test_every_law_is_listed_once() -> None:
    listed = re.findall(r"^\| `([a-z0-9.-]+)`<br>", FILE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(BOOK.rules)


def test_every_law_says_where_it_holds_and_what_verified_it() -> None:
    known = {release.version for release in BOOK.releases}
    for name, editions in BOOK.rules.items():
        said = releases(BOOK, editions)
        assert set(re.findall(r"\d+\.\d+\.\d+", said)) <= known, name
        assert said, f"{name}: holds in no covered release"
        assert verified(editions[0]) in ("engine run", "probe", "source"), name


def test_a_bar_in_a_law_does_not_break_its_row() -> None:
    rows = [line for line in text(BOOK).splitlines() if line.startswith("| `")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 6 for row in rows)
