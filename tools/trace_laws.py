"""Traces every law through the engine's releases by its source, and bounds its editions; it must not judge a launch.

Reads the engine's Python as text (nothing is imported). Where an edition is known to hold, the evidence of a law is taken
from the function that its `source` names:

- a law with an `engine_error`: every statement whose text has that pattern, with the conditions that lead to it;
- a law that writes: every statement that writes the field, with its conditions and its value;
- else, and as a second witness: the whole function.

Conditions are compared after normalisation: what only moved, was renamed from a method to a function, or logs is the same.
Locals, helper functions and constants that a condition reads belong to it. Four words for each release:

    same      the evidence is there as it was
    changed   the message or the function is there, but what leads to it differs
    moved     the message is there, in a function of another name
    absent    the message, or the function, is nowhere in the release

    python tools/trace_laws.py report 0.5.15 ... 0.5.23            # one line a law: the word for each release
    python tools/trace_laws.py report --law ID --show 0.5.20 0.5.23    # the evidence itself
    python tools/trace_laws.py bound 0.5.15 ... 0.5.23 [--write]   # move since and until to where the change happened
    python tools/trace_laws.py follow 0.5.22 0.5.23                # what a new release changed, against the last one

`follow` lists refusals, flags and environment variables that are new or gone, new refusals that no law explains first, and
the laws whose evidence changed. It is the reading list of a new release; what it does not list was not touched.

`bound` lowers `since` while the word is "same" without a gap, moves the border between two editions to where the new
evidence begins, and leaves everything else alone; what it could not decide is listed.
"""

from __future__ import annotations

import argparse
import ast
import copy
import gc
import hashlib
import json
import pickle
import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
RULES = ROOT / "constraints" / "sglang"
NOT_RULES = frozenset({"phases", "definitions", "flags"})
ENGINES = Path.home() / ".cache" / "sglang-oracle" / "sglang"

HOLE = "\N{WHITE SQUARE}"
ROOTS = frozenset({"self", "server_args", "args", "cfg", "view", "sa"})  # names under which the engine holds its settings
VIEWS = frozenset({"resolving_view", "resolved_view", "get_server_args", "get_global_server_args"})
PLATFORM = frozenset({"get_platform", "current_platform"})
SILENT = frozenset({"logger", "print", "print_info_once", "print_warning_once", "log_info_on_rank0", "warnings"})
DECLARES = frozenset({"declare_resolution", "declare_late_resolution", "late_resolution"})


def key_of(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


# --- normalising ------------------------------------------------------------------------------------------------------


def bare(name: str) -> str:
    """A function's name without what tells a method from a function, or a getter from a property."""
    name = name.lstrip("_")
    for start in ("get_", "resolved_"):
        name = name.removeprefix(start)
    return name.removesuffix("_of")


def _called(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _first(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


class _Normal(ast.NodeTransformer):
    """One spelling for what the engine has spelled in several ways over its releases."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Name(id="X" if node.id in ROOTS else node.id.lstrip("_") or "_", ctx=ast.Load())

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Call) and _called(node.value.func) in PLATFORM:
            return ast.Name(id=node.attr, ctx=ast.Load())
        if isinstance(node.value, ast.Name) and node.value.id in PLATFORM:
            return ast.Name(id=node.attr, ctx=ast.Load())
        return ast.Attribute(value=self.visit(node.value), attr=node.attr.lstrip("_"), ctx=ast.Load())

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        return ast.Subscript(value=self.visit(node.value), slice=self.visit(node.slice), ctx=ast.Load())

    def visit_Call(self, node: ast.Call) -> ast.expr:
        name = _called(node.func)
        arguments = [self.visit(each) for each in node.args]
        keywords = [ast.keyword(arg=each.arg, value=self.visit(each.value)) for each in node.keywords]
        root = arguments and isinstance(arguments[0], ast.Name) and arguments[0].id == "X"
        if name in VIEWS and (root or not arguments):
            return ast.Name(id="X", ctx=ast.Load())
        if name == "getattr" and root and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
            return ast.Attribute(value=arguments[0], attr=str(node.args[1].value), ctx=ast.Load())
        if isinstance(node.func, ast.Name):
            if name.lstrip("_").startswith("is_") and not node.args and not keywords:
                return ast.Name(id=name.lstrip("_"), ctx=ast.Load())
            rest = arguments[1:] if root else arguments
            return ast.Call(func=ast.Name(id=bare(name), ctx=ast.Load()), args=rest, keywords=keywords)
        target = self.visit(node.func)
        if isinstance(target, ast.Name):
            return target  # a question to the platform
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "X":
            target = ast.Name(id=bare(target.attr), ctx=ast.Load())
        return ast.Call(func=target, args=arguments, keywords=keywords)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        return ast.Constant(value=text_of(node))


def normal(node: ast.expr) -> str:
    """An expression in its one spelling."""
    return ast.unparse(_Normal().visit(copy.deepcopy(node)))


def text_of(node: ast.AST) -> str | None:
    """The text of a string constant, f-string or sum of them; what is filled in stands as a hole."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else HOLE for part in node.values
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mod)):
        left, right = text_of(node.left), text_of(node.right)
        if isinstance(node.op, ast.Mod):
            return None if left is None else re.sub(r"%[sdrif]", HOLE, left)
        return None if left is None and right is None else (left or HOLE) + (right or HOLE)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("format", "join"):
        found = text_of(node.func.value)
        return None if found is None else re.sub(r"\{[^}]*\}", HOLE, found)
    return None


# --- a release --------------------------------------------------------------------------------------------------------

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(eq=False)
class Place:
    """A function of the engine, or a module's own body."""

    file: str
    name: str  # dotted: class and function
    node: Function | ast.Module

    @cached_property
    def last(self) -> str:
        return bare(self.name.rsplit(".", 1)[-1])

    @cached_property
    def statements(self) -> list[tuple[ast.stmt, Way]]:
        """Every statement of it, with the conditions on the way, outermost first; nested functions are places of their own."""
        return list(_walk(self.node.body, ()))

    @cached_property
    def assigned(self) -> dict[str, list[ast.expr]]:
        """What its local names were given."""
        found: dict[str, list[ast.expr]] = {}
        for statement, _ in self.statements:
            targets: list[ast.expr] = []
            if isinstance(statement, ast.Assign):
                targets = statement.targets
            elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
                targets = [statement.target]
            for target in targets:
                value = statement.value  # type: ignore[attr-defined]
                names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
                for name in names:
                    if isinstance(name, ast.Name):
                        found.setdefault(name.id.lstrip("_"), []).append(value)
        return found

    @cached_property
    def whole(self) -> str:
        """Everything it does, in one text: each statement that is no logging, under its conditions."""
        lines = []
        for statement, way in self.statements:
            said = _deed(statement)
            if said:
                lines.append(" & ".join((*spelled(way), said)))
        return "\n".join(lines)


Way = tuple[tuple[str, ast.AST], ...]  # (how, the condition), outermost first


def _leaves(body: Sequence[ast.stmt]) -> bool:
    last = body[-1] if body else None
    return isinstance(last, (ast.Return, ast.Continue, ast.Break)) and all(
        isinstance(each, (ast.Return, ast.Continue, ast.Break)) or _is_logging(each) for each in body
    )


def spelled(way: Way) -> list[str]:
    """The conditions of a way, each in one spelling."""
    return [
        f"{how} {ast.unparse(node) if isinstance(node, ast.pattern) else normal(node)}".strip()  # type: ignore[arg-type]
        if how != "except"
        else how
        for how, node in way
    ]


def _walk(body: Sequence[ast.stmt], way: Way) -> Iterator[tuple[ast.stmt, Way]]:
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)):
            continue
        yield statement, way
        if isinstance(statement, ast.If):
            yield from _walk(statement.body, (*way, ("", statement.test)))
            yield from _walk(statement.orelse, (*way, ("else", statement.test)))
            if _leaves(statement.body) and not statement.orelse:
                way = (*way, ("past", statement.test))
        elif isinstance(statement, (ast.For, ast.AsyncFor)):
            yield from _walk(statement.body, (*way, ("for", statement.iter)))
        elif isinstance(statement, ast.While):
            yield from _walk(statement.body, (*way, ("while", statement.test)))
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            yield from _walk(statement.body, way)
        elif isinstance(statement, ast.Try):
            yield from _walk(statement.body, way)
            for handler in statement.handlers:
                yield from _walk(handler.body, (*way, ("except", handler)))
            yield from _walk([*statement.orelse, *statement.finalbody], way)
        elif isinstance(statement, ast.Match):
            for case in statement.cases:
                yield from _walk(case.body, (*way, ("case", case.pattern)))


def _deed(statement: ast.stmt) -> str:
    """What a simple statement does, in one spelling; empty for what does nothing that matters here."""
    if isinstance(statement, ast.Expr):
        value = statement.value
        if isinstance(value, ast.Constant) or _first(value) in SILENT or _called(getattr(value, "func", value)) in SILENT:
            return ""
        if isinstance(value, ast.Call) and _called(value.func).lstrip("_") in DECLARES:
            return "; ".join(f"{name} = {normal(given)}" for name, given in _declared(value))
        return normal(value)
    if isinstance(statement, ast.Assign):
        given = normal(statement.value)
        target = ", ".join(normal(each) for each in statement.targets)
        return "" if given == "X" and target == "X" else f"{target.removeprefix('X.')} = {given}"
    if isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        return f"{normal(statement.target)} = {normal(statement.value)}" if statement.value is not None else ""
    if isinstance(statement, ast.Raise):
        return f"raise {_called(statement.exc.func) if isinstance(statement.exc, ast.Call) else ''}"
    if isinstance(statement, ast.Assert):
        return f"assert {normal(statement.test)}"
    if isinstance(statement, ast.Return):
        return f"return {normal(statement.value)}" if statement.value is not None else "return"
    return ""


def _declared(call: ast.Call) -> list[tuple[str, ast.expr]]:
    return [(each.arg or "**", each.value) for each in call.keywords]


def writes_of(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """(field, value in one spelling) for every field that a simple statement may write."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Attribute):
                yield target.attr, normal(statement.value)
            if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
                yield str(target.slice.value), normal(statement.value)
    for node in ast.walk(statement) if isinstance(statement, (ast.Expr, ast.Return, ast.Assign)) else ():
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg:
                    yield keyword.arg, normal(keyword.value)
        if isinstance(node, ast.Dict):
            for name, value in zip(node.keys, node.values, strict=True):
                if isinstance(name, ast.Constant) and isinstance(name.value, str):
                    yield name.value, normal(value)


@dataclass(eq=False)
class Release:
    """The engine's source of one release."""

    version: str
    root: Path
    places: list[Place] = field(default_factory=list)
    constants: dict[str, list[ast.expr]] = field(default_factory=dict)

    def read(self, files: Iterable[Path] | None = None) -> Release:
        """Parse some files of it, else all."""
        beside = self.root.parent / "kernels"
        for path in [*sorted(self.root.rglob("*.py")), *sorted(beside.rglob("*.py"))] if files is None else files:
            inside = self.root in path.parents
            file = path.relative_to(self.root).as_posix() if inside else f"../{path.relative_to(self.root.parent)}"
            try:
                tree = ast.parse(path.read_text(encoding="utf-8"))
            except (SyntaxError, UnicodeDecodeError, FileNotFoundError):
                continue
            self.places.append(Place(file, "", tree))
            self._collect(file, "", tree)
        return self

    def _collect(self, file: str, prefix: str, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                self._collect(file, f"{prefix}{child.name}.", child)
            elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.places.append(Place(file, prefix + child.name, child))
                self._collect(file, f"{prefix}{child.name}.", child)
            elif isinstance(child, (ast.If, ast.Try, ast.With)):
                self._collect(file, prefix, child)
            elif isinstance(child, ast.Assign) and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for target in child.targets:
                    if isinstance(target, ast.Name):
                        self.constants.setdefault(target.id.lstrip("_"), []).append(child.value)

    @cached_property
    def by_name(self) -> Mapping[str, list[Place]]:
        found: dict[str, list[Place]] = {}
        for place in self.places:
            if place.name:
                found.setdefault(place.last, []).append(place)
        return found

    @cached_property
    def said(self) -> list[tuple[str, Place, ast.stmt, Way]]:
        """Every text in the engine, with the simple statement that holds it."""
        found = []
        for place in self.places:
            for statement, way in place.statements:
                if isinstance(statement, (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match)):
                    continue
                found += [(text, place, statement, way) for text in _texts(statement)]
        return found

    @cached_property
    def _lines(self) -> str:
        return "\n".join(text.replace("\n", " ") for text, *_ in self.said)

    @cached_property
    def _starts(self) -> list[int]:
        starts, at = [], 0
        for text, *_ in self.said:
            starts.append(at)
            at += len(text) + 1
        return starts

    def matching(self, pattern: str) -> list[tuple[Place, ast.stmt, Way]]:
        try:
            wanted = re.compile(pattern, re.MULTILINE)
        except re.error:
            return []
        lines = self._lines
        places = dict.fromkeys(bisect_right(self._starts, found.start()) - 1 for found in wanted.finditer(lines))
        found = [self.said[place][1:] for place in places]
        raising = [item for item in found if not _is_logging(item[1])]
        return raising or found

    def other(self, file: str, symbol: str) -> str:
        """What a source names that is no function: a file in another language, a class, a constant."""
        path = self.root / file
        if not file.endswith(".py"):
            return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        last = symbol.rsplit(".", 1)[-1]
        within = [place for place in self.places if place.file == file and f".{place.name}".find(f".{last}.") >= 0]
        given = self.constants.get(last.lstrip("_"), [])
        return "\n".join([*(place.whole for place in within), *(normal(value) for value in given[:1])])

    def resolve(self, file: str, symbol: str) -> list[Place]:
        """The function that a source names: where it was, else wherever a function of that name is."""
        last = bare(symbol.rsplit(".", 1)[-1])
        exact = [place for place in self.by_name.get(last, ()) if place.file == file]
        if exact:
            return exact
        alike = self.by_name.get(last, ())
        return list(alike) if len(alike) <= 4 else []


def _is_logging(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and (
        _first(statement.value) in SILENT or _called(getattr(statement.value, "func", statement.value)) in SILENT
    )


def _texts(statement: ast.stmt) -> Iterator[str]:
    stack: list[ast.AST] = [statement]
    while stack:
        node = stack.pop()
        text = text_of(node)
        if text is not None and len(text) > 5:
            yield text
            if isinstance(node, (ast.Constant, ast.JoinedStr)):
                continue
        stack.extend(ast.iter_child_nodes(node))


# --- evidence ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Evidence:
    """What a release shows of a law: conditions and deeds, and the functions they stand in."""

    parts: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()
    found: str = "absent"  # "here", "moved", "absent"
    by: str = ""  # "message", "writes" or "function"


def context_of(release: Release, place: Place, text: str, depth: int = 2, longest: int = 3000) -> frozenset[str]:
    """What the names in a condition stand for: locals, constants, helper functions."""
    seen: set[str] = set()
    out: set[str] = set()
    level = [text]
    for _ in range(depth):
        names = {name for each in level for name in re.findall(r"(?<![\w.'\"])[A-Za-z_]\w*", each)} - seen
        seen |= names
        level = []
        for name in sorted(names):
            told: list[str] = []
            if name in place.assigned:
                told = sorted({f"{name} := {normal(value)}" for value in place.assigned[name]})
            elif name in release.constants and len(release.constants[name]) == 1 and (name.isupper() or "_" in name):
                told = [f"{name} := {normal(release.constants[name][0])}"]
            elif name in release.by_name and len(release.by_name[name]) == 1 and name not in ("X", "config", "is"):
                whole = release.by_name[name][0].whole
                told = [f"{name} := {whole}"] if len(whole) < longest else []
            out |= set(told)
            level += told
    return frozenset(out)


def _part(release: Release, place: Place, way: Way, deed: str) -> str:
    last = next((i for i in range(len(way), 0, -1) if way[i - 1][0] != "else"), 0)  # what an own last branch excludes
    hard = spelled(tuple(each for i, each in enumerate(way) if each[0] != "else" or i >= last))
    line = " & ".join([*hard, deed])
    context = context_of(release, place, " ".join([*hard, deed]))
    return "\n    ".join([line, *sorted(context)])


def gather(release: Release, rule: Mapping[str, Any]) -> Evidence:
    """The evidence of one edition in one release."""
    sources = rule["source"] if isinstance(rule["source"], list) else [rule["source"]]
    named = [s for s in sources if isinstance(s, Mapping) and s.get("symbol")]
    places = [place for s in named for place in release.resolve(s["file"], s["symbol"])]
    lasts = {bare(s["symbol"].rsplit(".", 1)[-1]) for s in named}
    whole = frozenset(place.whole for place in places) | frozenset(release.other(s["file"], s["symbol"]) for s in named)
    whole = frozenset(each for each in whole if each)
    pattern = rule.get("engine_error")
    if pattern:
        hits = release.matching(str(pattern))
        inside = [hit for hit in hits if hit[0].last in lasts]
        chosen = inside or hits
        parts = frozenset(
            _part(release, place, way, _deed(statement) if isinstance(statement, ast.Assert) else "says")
            for place, statement, way in chosen[:8]
        )
        if chosen:
            return Evidence(parts, whole, "here" if inside else "moved", "message")
        return Evidence(frozenset(), whole, "absent", "message")
    fields = set(rule.get("sets") or {})
    if fields and places:
        parts = frozenset(
            _part(release, place, way, f"{name} = {value}")
            for place in places
            for statement, way in place.statements
            if not isinstance(statement, (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match))
            for name, value in writes_of(statement)
            if name in fields
        )
        if parts:
            return Evidence(parts, whole, "here", "writes")
    return Evidence(frozenset(), whole, "here" if places else "absent", "function")


def word(known: Evidence, other: Evidence) -> str:
    """How a release's evidence compares with that of a release in which the edition holds."""
    if known.found == "absent":  # the engine puts its message together elsewhere: the function alone is the witness
        if not known.whole:
            return "unknown"
        return "same" if known.whole == other.whole else "changed" if other.whole else "absent"
    if other.found == "absent":
        return "absent"
    if known.parts and other.parts:
        if known.parts == other.parts:
            return "same"
    elif known.whole and known.whole == other.whole and known.by == other.by:
        return "same"
    return "moved" if other.found == "moved" and known.found == "here" else "changed"


class Store:
    """Evidence kept between runs, as reading a release takes seconds; it is dropped when what reads them changes."""

    def __init__(self, folder: Path | None, version: str) -> None:
        self.path = folder / f"{version}.pickle" if folder else None
        reading = Path(__file__).read_text(encoding="utf-8").partition("# --- laws ")[0]
        self.stamp = hashlib.sha256(reading.encode()).hexdigest()
        self.known: dict[str, Evidence] = {}
        self.fresh = False
        if self.path and self.path.is_file():
            try:
                stamp, known = pickle.loads(self.path.read_bytes())
            except (pickle.UnpicklingError, ImportError, AttributeError, EOFError, ValueError):
                return  # cut short, or of another make
            if stamp == self.stamp:
                self.known = {name: Evidence(*told) for name, told in known.items()}

    def evidence(self, release: Release, edition: Mapping[str, Any]) -> Evidence:
        read = [edition["source"], edition.get("engine_error"), sorted(edition.get("sets") or {})]
        name = json.dumps(read, sort_keys=True)
        if name not in self.known:
            if not release.places:
                release.read()
            self.known[name] = gather(release, edition)
            self.fresh = True
        return self.known[name]

    def save(self) -> None:
        if self.path and self.fresh:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            known = {name: (each.parts, each.whole, each.found, each.by) for name, each in self.known.items()}
            self.path.write_bytes(pickle.dumps((self.stamp, known)))


# --- laws -------------------------------------------------------------------------------------------------------------


def laws(only: Iterable[str] = ()) -> Iterator[tuple[Path, list[dict[str, Any]]]]:
    wanted = set(only)
    for path in sorted(RULES.glob("*/*.yaml")):
        if path.parent.name in NOT_RULES or (wanted and path.stem not in wanted):
            continue
        editions = [each for each in yaml.load_all(path.read_text(encoding="utf-8"), yaml.CBaseLoader) if each]
        if editions and not editions[0].get("parse"):
            yield path, editions


def likeness(known: Evidence, other: Evidence) -> float:
    """How many lines two releases' evidence has in common, 0 to 1."""
    a, b = ({line for part in each.parts or each.whole for line in part.split("\n")} for each in (known, other))
    return len(a & b) / len(a | b) if a and b else 0.0


def known_at(edition: Mapping[str, Any]) -> list[str]:
    """The releases that an edition's sources were read in."""
    sources = edition["source"] if isinstance(edition["source"], list) else [edition["source"]]
    return sorted({str(s["release"]) for s in sources if isinstance(s, Mapping) and s.get("release")}, key=key_of)


def words_of(edition: Mapping[str, Any], evidence: Mapping[str, Evidence]) -> dict[str, tuple[str, float]]:
    """(word, likeness) of each release; of several known ones the best word counts."""
    known = [version for version in known_at(edition) if version in evidence] or [max(evidence, key=key_of)]
    if edition.get("since") in evidence and edition["since"] not in known:
        known.append(edition["since"])
    order = ["same", "moved", "changed", "absent", "unknown"]
    out = {}
    for version in evidence:
        found = [(word(evidence[k], evidence[version]), likeness(evidence[k], evidence[version])) for k in known]
        best = min(found, key=lambda item: (order.index(item[0]), -item[1]))
        out[version] = ("same", 1.0) if version in known else best
    return out


# --- bounds -----------------------------------------------------------------------------------------------------------


@dataclass
class Move:
    """Where an edition's bounds go."""

    since: str
    until: str | None


def lowered(since: str, words: Mapping[str, tuple[str, float]], versions: Sequence[str], floor: str | None) -> str:
    """The first release of an unbroken run of "same" that ends at `since`."""
    below = [v for v in versions if key_of(v) < key_of(since) and (floor is None or key_of(v) >= key_of(floor))]
    for version in reversed(below):
        if words[version][0] != "same":
            break
        since = version
    return since


def ended(move: Move, words: Mapping[str, tuple[str, float]], versions: Sequence[str]) -> str | None:
    """The first release in which the evidence of a law that went is gone."""
    later = [v for v in versions if key_of(move.since) < key_of(v) < key_of(str(move.until))]
    return next((v for v in later if words[v][0] == "absent"), move.until)


def border(
    new: Mapping[str, tuple[str, float]], old: Mapping[str, tuple[str, float]], old_since: str, new_since: str,
    versions: Sequence[str],
) -> tuple[str, bool]:  # fmt: skip
    """(the first release of the newer edition, whether every release between is certain)."""
    between = [v for v in versions if key_of(old_since) < key_of(v) < key_of(new_since)]
    certain = True
    sides = []
    for version in between:
        is_new, is_old = new[version][0] == "same", old[version][0] == "same"
        if is_new != is_old:
            sides.append((version, is_new, 2.0))
        else:
            certain = False
            lean = new[version][1] - old[version][1]
            sides.append((version, lean > 0, abs(lean)))
    best, cost = new_since, None
    for place in range(len(between) + 1):
        wrong = sum(weight for at, (_, is_new, weight) in enumerate(sides) if is_new != (at >= place))
        if cost is None or wrong < cost:
            best, cost = (between[place] if place < len(between) else new_since), wrong
    return best, certain and not cost


def edited(text: str, moves: Sequence[Move]) -> str:
    """A rule file's text with the bounds of its editions moved, nothing else touched."""
    parts = re.split(r"(?m)^---\s*\n", text)
    at = [i for i, part in enumerate(parts) if re.search(r"(?m)^id:", part)]
    for index, move in zip(at, moves, strict=True):
        part = re.sub(r'(?m)^since: *"?[\d.]+"?', f'since: "{move.since}"', parts[index], count=1)
        if move.until is not None:
            part = re.sub(r'(?m)^until: *"?[\d.]+"?', f'until: "{move.until}"', part, count=1)
        parts[index] = part
    return "---\n".join(parts)


# --- following --------------------------------------------------------------------------------------------------------

# Where the engine decides whether a launch starts, and how; the rest of the tree says what it says of single requests.
LAUNCH = ("server_args.py", "arg_groups/", "speculative/", "configs/", "platforms/", "environ.py", "model_executor/",
          "layers/attention/", "layers/moe/", "mem_cache/", "managers/scheduler", "disaggregation/")  # fmt: skip
VARIABLE = re.compile(r"(?:SGLANG|SGL)_[A-Z0-9_]+")


def refusals(release: Release) -> dict[str, str]:
    """The engine's refusals where launches are decided: the text, and where it stands."""
    found: dict[str, str] = {}
    for text, place, statement, _ in release.said:
        if isinstance(statement, (ast.Raise, ast.Assert)) and place.file.startswith(LAUNCH) and len(text) > 15:
            found.setdefault(" ".join(text.split()), f"{place.file} {place.name}")
    return found


def variables(release: Release) -> set[str]:
    """The environment variables that the engine's Python names."""
    names = {text for text, *_ in release.said if VARIABLE.fullmatch(text)}
    texts = (name for name in release.constants if VARIABLE.fullmatch(name))
    declared = {
        target.id
        for place in release.places
        if place.file == "environ.py"
        for node in ast.walk(place.node)
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and VARIABLE.fullmatch(target.id)
    }
    return names | set(texts) | declared


def flags_of(version: str) -> dict[str, str]:
    """The flags of a release in the catalogue, each with everything the table says of it."""
    table = json.loads((RULES / "flags" / "catalogue.json").read_text(encoding="utf-8"))
    wanted = key_of(version)
    found = {}
    for entry in table["flags"]:
        if key_of(entry["since"]) <= wanted and (not entry.get("until") or wanted < key_of(entry["until"])):
            kept = {key: value for key, value in entry.items() if key not in ("since", "until")}
            found.update({name: json.dumps(kept, sort_keys=True) for name in entry["names"]})
    return found


def follow(last: str, new: str, engines: Path, keep: Path | None = None) -> Iterator[str]:
    """The reading list of a release, one line each."""
    old, now = (Release(v, engines / v / "sglang" / "srt").read() for v in (last, new))
    stores = [Store(keep, version) for version in (last, new)]
    before, after = flags_of(last), flags_of(new)
    known = " ".join(path.read_text(encoding="utf-8") for path in RULES.glob("*/*.yaml"))
    if before == after:
        yield f"flags: the catalogue tells {last} and {new} apart by nothing; run tools/make_catalogue.py first"
    for sign, names in (("+", set(after) - set(before)), ("-", set(before) - set(after))):
        yield from (f"flag {sign} {name}" for name in sorted(names))
    yield from (f"flag ~ {name}" for name in sorted(set(before) & set(after)) if before[name] != after[name])
    for sign, names in (("+", variables(now) - variables(old)), ("-", variables(old) - variables(now))):
        yield from (f"variable {sign} {name}{' (a law reads it)' if name in known else ''}" for name in sorted(names))
    patterns = {
        str(edition["engine_error"]): path.stem
        for path, editions in laws()
        for edition in editions
        if edition.get("engine_error")
    }
    said, gone = refusals(now), refusals(old)
    fresh: list[tuple[str, str, str]] = []
    for text in sorted(set(said) - set(gone)):
        law = next((name for pattern, name in patterns.items() if re.search(pattern, text)), "")
        fresh.append((law, said[text], text))
    yield from (f"refusal + {place}: {text}" + (f" [{law}]" if law else "") for law, place, text in sorted(fresh))
    for text in sorted(set(gone) - set(said)):
        law = next((name for pattern, name in patterns.items() if re.search(pattern, text)), "")
        yield f"refusal - {gone[text]}: {text}" + (f" [{law}]" if law else "")
    for path, editions in laws():
        held = next((e for e in editions if _in_force(e, last)), None)
        if held is None or held.get("until") == new:  # nothing to read, or somebody has written what follows
            continue
        was, is_now = (store.evidence(release, held) for store, release in zip(stores, (old, now), strict=True))
        told = word(was, is_now)
        if told not in ("same", "unknown"):
            yield f"law {told} {path.parent.name}/{path.stem} ({likeness(was, is_now):.2f} alike)"
    for store in stores:
        store.save()


def _in_force(edition: Mapping[str, Any], version: str) -> bool:
    until = edition.get("until")
    return key_of(str(edition["since"])) <= key_of(version) and (not until or key_of(version) < key_of(str(until)))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["report", "bound", "follow"])
    parser.add_argument("releases", nargs="+")
    parser.add_argument("--engines", type=Path, default=ENGINES, help="a folder of RELEASE/sglang/srt trees")
    parser.add_argument("--keep", type=Path, default=ENGINES.parent / "traces", help="where evidence is kept between runs")
    parser.add_argument("--law", action="append", default=[])
    parser.add_argument("--show", action="store_true", help="print the evidence itself")
    parser.add_argument("--write", action="store_true", help="edit the rule files")
    options = parser.parse_args(argv)
    versions = sorted(options.releases, key=key_of)
    gc.disable()  # trees are many small objects that all live as long as their release
    if options.what == "follow":
        if len(versions) != 2:
            parser.error("follow compares two releases: LAST NEW")
        for line in follow(versions[0], versions[1], options.engines, options.keep):
            print(line)
        return 0
    chosen = list(laws(options.law))
    shown: list[list[dict[str, Evidence]]] = [[{} for _ in editions] for _, editions in chosen]
    for version in versions:
        store = Store(options.keep, version)
        release = Release(version, options.engines / version / "sglang" / "srt")
        for (_, editions), kept in zip(chosen, shown, strict=True):
            for edition, seen in zip(editions, kept, strict=True):
                seen[version] = store.evidence(release, edition)
        store.save()
        del release
        gc.collect()
    for (path, editions), kept in zip(chosen, shown, strict=True):
        found = [words_of(edition, seen) for edition, seen in zip(editions, kept, strict=True)]
        moves = [Move(str(e["since"]), str(e["until"]) if e.get("until") else None) for e in editions]
        doubt = []
        for place in range(len(editions)):
            older = place + 1 < len(editions)
            if older and moves[place + 1].until == moves[place].since:
                at, certain = border(found[place], found[place + 1], moves[place + 1].since, moves[place].since, versions)
                moves[place].since = moves[place + 1].until = at
                doubt += [] if certain else [f"border at {at}"]
            else:
                floor = moves[place + 1].until if older else None
                moves[place].since = lowered(moves[place].since, found[place], versions, floor)
                if place == 0 and moves[place].until:
                    moves[place].until = ended(moves[place], found[place], versions)
                below = [v for v in versions if key_of(v) < key_of(moves[place].since)]
                if below and found[place][below[-1]][0] in ("changed", "moved"):
                    doubt.append(f"{below[-1]} {found[place][below[-1]][0]} {found[place][below[-1]][1]:.2f}")
        for edition, words, move, seen in zip(editions, found, moves, kept, strict=True):
            was = f"{edition['since']}..{edition.get('until') or ''}"
            now = f"{move.since}..{move.until or ''}"
            listed = " ".join(f"{v.rsplit('.', 1)[-1]}:{words[v][0]}" for v in versions)
            print(f"{path.parent.name}/{path.stem} [{edition['effect']}] {was} -> {now} | {listed} | {'; '.join(doubt)}")
            if options.show:
                for version in versions:
                    evidence = seen[version]
                    print(f"  {version}: {evidence.found} by {evidence.by}")
                    print("\n".join(f"    {part}" for part in sorted(evidence.parts)))
        if options.what == "bound" and options.write:
            text = path.read_text(encoding="utf-8")
            new = edited(text, moves)
            if new != text:
                path.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
