"""The parts of following a release that need no engine: its line, its order, its reading list."""

from __future__ import annotations

import pytest

from recommender.errors import RecommenderError
from tests.oracle.follow import FIRST, FollowError, covered, registered, sections, steps_of, versions_in

RELEASES = """# remark
releases:
  - {version: "0.5.9", date: "2026-01-01"}
  - {version: "0.5.10", date: "2026-02-01"}

package: x
"""


def test_a_release_is_registered_once() -> None:
    made = registered(RELEASES, "0.5.11", "2026-03-01")
    assert made.split("\n")[3:6] == [
        '  - {version: "0.5.10", date: "2026-02-01"}',
        '  - {version: "0.5.11", date: "2026-03-01"}',
        "",
    ]
    assert versions_in(made) == ["0.5.9", "0.5.10", "0.5.11"]
    assert registered(made, "0.5.11", "2026-04-01") == made


@pytest.mark.parametrize(
    ("last", "new", "told"),
    [
        ("0.5.8", "0.5.11", "0.5.8 is not covered; the newest release before 0.5.11 is 0.5.10"),
        ("0.5.9", "0.5.11", "does not follow 0.5.9; the newest other covered release is 0.5.10"),
        ("0.5.10", "0.5.9", "0.5.9 does not follow"),
        ("0.5.10", "0.5.10", "0.5.10 is not covered"),
    ],
)
def test_a_release_follows_the_newest_covered_one(last: str, new: str, told: str) -> None:
    covered("0.5.10", "0.5.11", ["0.5.9", "0.5.10"])
    covered("0.5.10", "0.5.11", ["0.5.9", "0.5.10", "0.5.11"])
    with pytest.raises(FollowError, match=told):
        covered(last, new, ["0.5.9", "0.5.10"])


def test_a_word_that_is_no_release_is_named() -> None:
    with pytest.raises(RecommenderError, match="next"):
        covered("0.5.10", "next", ["0.5.9", "0.5.10"])


def test_what_no_law_explains_comes_first() -> None:
    lines = [
        "flag + --x",
        "refusal + a.py f: told [a-law]",
        "refusal + a.py f: untold",
        "refusal + arg_groups/b.py f: met at launch",
        "law changed a/b (0.50 alike)",
        "refusal - a.py f: went",
        "flags: run the tables step first",
    ]
    assert [line for line in sections(lines) if line] == [
        "flags: run the tables step first",
        "New refusals of the resolution that no law explains: a launch can meet each: 1",
        "  arg_groups/b.py f: met at launch",
        "New refusals elsewhere that no law explains: at load, in a request, or inside: 1",
        "  a.py f: untold",
        "New refusals, and the law whose pattern they match: 1",
        "  a.py f: told [a-law]",
        "Refusals that went: 1",
        "  a.py f: went",
        "Laws whose evidence changed: the same, or an edition: 1",
        "  law changed a/b (0.50 alike)",
        "Flags (+ new, - gone, ~ changed): 1",
        "  flag + --x",
    ]


def test_steps_are_named() -> None:
    assert steps_of([]) == list(FIRST)
    assert steps_of(["ask", "read"]) == ["ask", "read"]
    with pytest.raises(FollowError, match="no step 'reed'; the steps are setup"):
        steps_of(["reed"])
