"""Reads what a release's source raises and asserts, srt and kernels, and keeps the start of the words of each law.

    python -m tests.oracle.statements 0.5.15 0.5.16 0.5.17 0.5.18 0.5.19 0.5.20 0.5.21 0.5.22 0.5.23 [--rules ID]

writes tests/data/engine-statements.jsonl.xz from the unpacked wheels; `tests/test_explain.py` leads every line back to its
law. It must not run the engine, and it keeps beginnings only: a message is recognized by those.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from recommender.laws import Rule
from recommender.matching import literals_of, needles_of, trace
from recommender.rulebook import load_rulebook

from .examples import NoRuleError, rules_named
from .records import RecordError, lines_of, write_lines

KEPT = Path(__file__).parents[1] / "data" / "engine-statements.jsonl.xz"
LONGEST = 160
# What may stand where a message has a value, as far as a pattern of ours cares.
VALUES = ("7", "x", "['x']", "x=7", "('x', 7)")
SHORTEST_PATTERN = 12


@dataclass(frozen=True, slots=True)
class Statement:
    """A raise or an assert: the error, its message with stand-ins for values, and its frame."""

    type: str
    message: str
    file: str
    line: int
    function: str

    @property
    def frame(self) -> str:
        """The frame as a traceback names it, with the file's place in the engine."""
        return f"srt/{self.file}:{self.line}:{self.function}"


def source_of(release: str) -> Path:
    """The engine's unpacked srt folder."""
    home = Path(os.environ.get("ORACLE_HOME", Path.home() / ".cache" / "sglang-oracle"))
    return home / "sglang" / release / "sglang" / "srt"


def folded(node: ast.expr, value: str) -> str:
    """The text of a message expression, each part that only a run knows replaced by `value`."""
    match node:
        case ast.Constant(value=constant):
            return str(constant)
        case ast.JoinedStr(values=parts):
            return "".join(folded(part, value) for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return folded(left, value) + folded(right, value)
        case ast.BinOp(left=left, op=ast.Mod()):
            return re.sub(r"%[sdr]", lambda _: value, folded(left, value))
        case ast.Call(func=ast.Attribute(value=text, attr="format")):
            return re.sub(r"\{[^}]*\}", lambda _: value, folded(text, value))
        case ast.IfExp(body=body):
            return folded(body, value)
        case _:
            return value


def _stops(node: ast.AST, function: str = "<module>") -> Iterator[tuple[str, str, int, ast.expr]]:
    """The error, function, line and message expression of each raise and assert below a node."""
    for child in ast.iter_child_nodes(node):
        inside = child.name if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) else function
        match child:
            case ast.Assert(msg=ast.expr() as message):
                yield "AssertionError", function, child.lineno, message
            case ast.Raise(exc=ast.Call(func=raised, args=[message, *_])):
                yield ast.unparse(raised).split(".")[-1], function, child.lineno, message
        yield from _stops(child, inside)


def statements(release: str) -> list[Statement]:
    """Every message that the release can raise, once for each stand-in that its values may have."""
    root = source_of(release)
    found: dict[Statement, None] = {}
    for path in sorted([*root.rglob("*.py"), *(root.parent / "kernels").rglob("*.py")]):
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except SyntaxError:
            continue
        file = os.path.relpath(path, root)
        for error, function, line, message in _stops(tree):
            for value in VALUES:
                found[Statement(error, folded(message, value), file, line, function)] = None
    return list(found)


def raised_by(rule: Rule, said: list[Statement]) -> Statement | None:
    """The statement that a law's pattern was written for: in a file that the law names, else anywhere."""
    pattern = re.compile(rule.engine_error)
    place = re.compile(rule.engine_error_at)
    needles = needles_of(literals_of(rule.engine_error)) or ("",)
    fits = [
        each
        for each in said
        if each.message
        and any(needle in each.message for needle in needles)
        and pattern.search(each.message[:LONGEST])
        and place.search(each.frame)
    ]
    named = {source.file for source in rule.sources}
    here = [each for each in fits if each.file in named]
    if here or len(rule.engine_error) < SHORTEST_PATTERN:
        return _best(rule, here)
    return _best(rule, fits)


def _best(rule: Rule, fits: list[Statement]) -> Statement | None:
    """Of the statements that a pattern fits, one that leads to the law and no other, as its own message does."""
    for each in fits:
        matches = trace(f"{each.type}: {each.message}", [rule]).matches
        if matches:
            return each
    return fits[0] if fits else None


def found_in(releases: Iterable[str], chosen: frozenset[str]) -> dict[str, dict[str, object]]:
    """The statements of the chosen laws, each once with the releases that raise it."""
    book = load_rulebook()
    lines: dict[str, dict[str, object]] = {}
    for release in releases:
        said = statements(release)
        for rule in book.rules_of(release).values():
            statement = raised_by(rule, said) if rule.engine_error and rule.id in chosen else None
            if statement is None:
                continue
            entry = {"rule": rule.id, **asdict(statement), "message": statement.message[:LONGEST].rstrip()}
            key = json.dumps({name: value for name, value in entry.items() if name != "line"}, sort_keys=True)
            lines.setdefault(key, {**entry, "releases": []})
            known = lines[key]["releases"]
            assert isinstance(known, list)
            known.append(release)
    return lines


def main() -> int:
    """Write the statements of all laws of the releases, or of some laws beside those that were kept."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("releases", nargs="+")
    options.add_argument(
        "--rules", default="", help="only laws whose id matches a pattern of a list a,b,c; the others' stay"
    )
    given = options.parse_args()
    try:
        chosen = rules_named(given.rules, load_rulebook().rules)
    except NoRuleError as error:
        sys.stderr.write(f"oracle: {error}\n")
        return 2
    try:
        kept = lines_of(KEPT) if given.rules else []
    except RecordError as error:
        sys.stderr.write(f"statements: {error}\n")
        return 2
    others = [entry for entry in kept if entry["rule"] not in chosen]
    lines = [*others, *found_in(given.releases, chosen).values()]
    lines.sort(key=lambda entry: (str(entry["rule"]), entry["releases"]))
    write_lines(KEPT, lines, sort_keys=True)
    sys.stderr.write(f"{len(lines)} statements of {len(given.releases)} releases\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
