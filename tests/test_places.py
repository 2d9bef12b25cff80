"""The engine's statements behind an answer, in two small releases that are written here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.places import Spot, context, defining, function_source, lines_of, other_release, spot_at, twins

OLD = """def handle_x(cfg):
    if cfg.mode == "a" and width_of(cfg) > 4:
        raise ValueError(f"mode {cfg.mode} is too wide for it")
    if cfg.mode == "b":
        raise ValueError("mode b wants a width")


def width_of(cfg):
    return cfg.width
"""
NEW = """def handle_x(cfg):
    if cfg.mode == "a" and width_of(cfg) > 4:
        raise ValueError(f"mode {cfg.mode} is too wide for it")
    if cfg.mode == "b" and cfg.width is None:
        raise ValueError("mode b wants a width")
    assert cfg.mode != "c", "mode c went with this release"


def width_of(cfg):
    return cfg.width * cfg.ranks
"""


@pytest.fixture
def roots(tmp_path: Path) -> tuple[Path, Path]:
    """(old, new): the sources of two releases."""
    for name, text in (("old", OLD), ("new", NEW)):
        (tmp_path / name / "hooks").mkdir(parents=True)
        (tmp_path / name / "hooks" / "x.py").write_text(text, encoding="utf-8")
    return tmp_path / "old", tmp_path / "new"


def at(root: Path, line: int) -> Spot:
    """The statement of a line, which is there."""
    found = spot_at(root, "hooks/x.py", line)
    assert found is not None
    return found


def test_a_statement_is_found_by_its_line(roots: tuple[Path, Path]) -> None:
    spot = at(roots[1], 3)
    assert (spot.line, spot.function) == (3, "handle_x")
    assert "too wide for it" in spot.words
    assert lines_of(roots[1], spot)[2] == '>    3          raise ValueError(f"mode {cfg.mode} is too wide for it")'
    assert spot_at(roots[1], "hooks/x.py", 99) is None
    assert spot_at(roots[1], "hooks/none.py", 1) is None


def test_a_new_statement_is_in_no_other_release(roots: tuple[Path, Path]) -> None:
    old, new = roots
    assert other_release(new, old, "1", at(new, 6)) == ["1: no such statement"]


def test_what_leads_to_the_same_words_is_told_apart(roots: tuple[Path, Path]) -> None:
    old, new = roots
    assert other_release(new, old, "1", at(new, 5)) == [
        "1: the same words, hooks/x.py:5 handle_x, reached otherwise:",
        "  + X.mode == 'b' and X.width is None",
        "  - X.mode == 'b'",
    ]


def test_a_helper_that_differs_is_shown(roots: tuple[Path, Path]) -> None:
    old, new = roots
    assert context(new, at(new, 3)) != context(old, at(old, 3))
    assert other_release(new, old, "1", at(new, 3)) == [
        "1: the same, hooks/x.py:3 handle_x",
        "  width differs:",
        "    @@ -1,2 +1,2 @@",
        "     def width_of(cfg):",
        "    -    return cfg.width",
        "    +    return cfg.width * cfg.ranks",
    ]


def test_functions_are_found_by_their_bare_name(roots: tuple[Path, Path]) -> None:
    assert defining(roots[0])["handle_x"] == ["hooks/x.py"]
    assert function_source(roots[0], "width") == ["def width_of(cfg):", "    return cfg.width"]
    assert function_source(roots[0], "nothing") == []
    assert [spot.line for spot in twins(roots[0], at(roots[1], 5))] == [5]
