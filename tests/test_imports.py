"""The direction of imports, and what may stand in Python at all."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import recommender

PACKAGE = Path(recommender.__file__).parent
FLOOR = {"errors", "expr", "formulas", "versions", "terms", "laws", "reports", "on_demand"}
EDGES = {
    "library",
    "rulebook",
    "gates",
    "catalogue",
    "command_line",
    "flags",
    "argparse_replay",
    "profiles",
    "facts",
    "devices",
    "images",
    "variables",
    "forms",
}
CORE = {"resolve", "judge", "solver", "conflict", "ranking", "memory", "matching"}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "_data" not in path.parts)


def layer(module: str) -> str:
    """The layer of a module by the first part of its name below the package."""
    first = module.split(".", maxsplit=1)[0]
    return "floor" if first in FLOOR else "edge" if first in EDGES else "core" if first in CORE else "face"


def imported(path: Path) -> Iterator[str]:
    """Every module that a file imports, at its top or inside a function, but not for types alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def name_of(path: Path) -> str:
    """A file as a module name below the package."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def own(path: Path) -> set[str]:
    """The modules of the package that a file imports, below the package."""
    known = {name_of(module) for module in MODULES}
    names = {name.removeprefix("recommender.") for name in imported(path) if name.startswith("recommender.")}
    return {name for name in names if name in known or f"{name}.__init__" in known}


ALLOWED = {
    "floor": {"floor"},
    "edge": {"floor", "edge"},
    "core": {"floor", "core"},
    "face": {"floor", "edge", "core", "face"},
}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_run_one_way(path: Path) -> None:
    here = layer(name_of(path))
    wrong = {name for name in own(path) if layer(name) not in ALLOWED[here]}
    assert not wrong, f"{name_of(path)} ({here}) imports {wrong}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_solver_and_rich_have_one_home(path: Path) -> None:
    name = name_of(path)
    names = {found.split(".")[0] for found in imported(path)}
    assert "constraint" not in names or name == "solver"
    assert "rich" not in names or name.startswith("render") or name == "cli"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_nothing_of_a_user_is_executed(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not called & {"eval", "exec", "compile", "__import__"}
    assert not {"pickle", "marshal", "shelve"} & set(imported(path))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_modules_say_what_they_do_and_what_they_must_not(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if path.name == "__init__.py" and not text.strip():
        return
    doc = ast.get_docstring(ast.parse(text)) or ""
    assert doc, "a module opens with what it does"
    if path.name != "__init__.py":
        first = doc.split("\n\n")[0] + doc
        assert any(word in first for word in ("must not", "only ", "no printing")), doc


def words_of_the_engine() -> set[str]:
    """Backends, algorithms, flags and architectures: what belongs in YAML."""
    from recommender.rulebook import load_rulebook

    book = load_rulebook()
    edition = book.edition(book.releases[-1].version)
    settings = {name for name in edition.plan.defaults if "_" in name and len(name) > 8}
    groups = {
        value
        for values in edition.words.groups.values()
        for value in values
        if isinstance(value, str) and len(value) > 4
    }
    return settings | groups | {name for name in edition.command_line.names if len(name) > 6}


def test_rules_are_data() -> None:
    forbidden = words_of_the_engine() - {"--model"}  # our own option too
    found = {}
    for path in MODULES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
        }
        hits = texts & forbidden
        if hits:
            found[name_of(path)] = sorted(hits)
    assert not found
