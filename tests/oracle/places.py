"""Finds the engine's statements behind an answer, and whether another release has them too; it must not run the engine.

A place is shown with its lines, the conditions that lead to it, and what the other release has instead.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from recommender.laws import Rule
from tools.trace_laws import Place, Release, Way, bare, context_of, normal, spelled, text_of, writes_of

from .statements import source_of

AROUND = 2  # lines shown before and behind a statement
LONGEST = 12  # lines of one statement
DEPTH = 5  # names within names that are followed
WHOLE = 20_000  # characters of a function that is followed
SHORT = 8  # a shorter name may be anything
CHANGES = 24  # lines that differ in what one name stands for
WIDE = 160
NAME = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Spot:
    """A simple statement of the engine: where it stands, and on which conditions it is reached."""

    file: str
    function: str
    statement: ast.stmt
    way: Way

    @property
    def line(self) -> int:
        """Its first line."""
        return self.statement.lineno

    @property
    def words(self) -> str:
        """The text that it says, values left out."""
        texts = [text for node in ast.walk(self.statement) if isinstance(node, ast.expr) and (text := text_of(node))]
        return max(texts, key=len, default="")

    @property
    def test(self) -> str:
        """What an assert demands, in one spelling; empty for another statement."""
        return f"assert {normal(self.statement.test)}" if isinstance(self.statement, ast.Assert) else ""

    def same_reason(self, other: Spot) -> bool:
        """Whether both are reached on the same conditions, however they are spelled."""
        return spelled(self.way) == spelled(other.way) and self.test == other.test


@cache
def _parsed(root: Path, file: str) -> tuple[Place, ...]:
    return tuple(Release("", root).read([root / file]).places)


@cache
def _text(root: Path, file: str) -> str:
    try:
        return (root / file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


@cache
def _files(root: Path) -> tuple[str, ...]:
    return tuple(path.relative_to(root).as_posix() for path in sorted(root.rglob("*.py")))


def spots_of(root: Path, file: str) -> Iterator[Spot]:
    """Every simple statement of a file."""
    for place in _parsed(root, file):
        for statement, way in place.statements:
            if not isinstance(statement, (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match)):
                yield Spot(file, place.name or "<module>", statement, way)


def spot_at(root: Path, file: str, line: int) -> Spot | None:
    """The statement of a line."""
    found = [spot for spot in spots_of(root, file) if spot.line <= line <= (spot.statement.end_lineno or spot.line)]
    return min(found, key=lambda spot: (spot.statement.end_lineno or 0) - spot.line, default=None)


def files_with(root: Path, word: str, first: Iterable[str] = ()) -> list[str]:
    """The files that hold a text; those of `first` alone, when one of them does."""
    named = [file for file in dict.fromkeys(first) if word in _text(root, file)]
    return named or [file for file in _files(root) if word in _text(root, file)]


def _needle(words: str) -> str:
    """The longest run of a text that a source file can be searched for: on one line, and without what is filled in."""
    return max(re.split(r"[^\w ,.()=>-]+", words), key=len, default="").strip()[:40]


def twins(root: Path, spot: Spot) -> list[Spot]:
    """The statements of another release that say the same, those of the same file first."""
    needle = _needle(spot.words)
    if len(needle) < 8:
        files, name = [spot.file], bare(spot.function.rsplit(".", 1)[-1])
        found = [each for each in spots_of(root, spot.file) if bare(each.function.rsplit(".", 1)[-1]) == name]
        return [each for each in found if type(each.statement) is type(spot.statement) and each.test == spot.test]
    files = files_with(root, needle[:20], [spot.file])
    found = [each for file in files for each in spots_of(root, file) if each.words == spot.words]
    return [each for each in found if type(each.statement) is type(spot.statement)]


def context(root: Path, spot: Spot) -> dict[str, str]:
    """What the names in a statement's conditions stand for, in its own release: locals, constants, helper functions."""
    told = " ".join([*spelled(spot.way), *_given(spot.statement)])
    files: set[str] = {spot.file}
    pairs: frozenset[str] = frozenset()
    for depth in range(2, DEPTH + 1):
        release = Release("", root).read([root / file for file in sorted(files)])
        place = next(each for each in release.places if (each.file, each.name or "<module>") == (spot.file, spot.function))
        pairs = context_of(release, place, told, depth, WHOLE)
        names = {name for text in (told, *pairs) for name in NAME.findall(text)}
        files |= {file for name in names for file in defining(root).get(name, ())[:1] if len(name) > SHORT}
    found: dict[str, str] = {}
    for name, _, text in sorted(line.partition(" := ") for line in pairs):
        found[name] = f"{found[name]}\n{text}" if name in found else text
    return found


def _given(statement: ast.stmt) -> list[str]:
    """The values that a simple statement hands on, in one spelling."""
    return [value for _, value in writes_of(statement)]


@cache
def defining(root: Path) -> dict[str, list[str]]:
    """The files that define a function of each name; a name without what tells a method from a function."""
    found: dict[str, list[str]] = {}
    for file in _files(root):
        for name in dict.fromkeys(re.findall(r"(?m)^\s*(?:async )?def (\w+)\(", _text(root, file))):
            found.setdefault(bare(name), []).append(file)
    return found


def _parted(here: Path, root: Path, now: Mapping[str, str], old: Mapping[str, str]) -> list[str]:
    """What differs in what the same conditions stand for: of a function its source, of anything else its values."""
    lines = []
    for name in sorted(name for name in now.keys() & old.keys() if now[name] != old[name]):
        before, after = function_source(root, name), function_source(here, name)
        if not before or not after or before == after:
            before, after = old[name].split("\n"), now[name].split("\n")
        changes = list(difflib.unified_diff(before, after, lineterm="", n=1))[2:]
        rest = [f"    ... {len(changes) - CHANGES} lines more"] if len(changes) > CHANGES else []
        lines += [f"  {name} differs:", *(f"    {line}"[:WIDE] for line in changes[:CHANGES]), *rest]
    return lines


def function_source(root: Path, name: str) -> list[str]:
    """The lines of the one function of a name; none when there are several, or none."""
    files = defining(root).get(name, [])
    found = [place for file in files[:1] for place in _parsed(root, file) if place.name and place.last == name]
    if len(files) != 1 or len(found) != 1 or isinstance(found[0].node, ast.Module):
        return []
    return _text(root, files[0]).split("\n")[found[0].node.lineno - 1 : found[0].node.end_lineno]


def other_release(here_root: Path, root: Path, release: str, spot: Spot) -> list[str]:
    """What another release has of a statement."""
    found = twins(root, spot)
    if not found:
        return [f"{release}: no such statement"]
    for each in found:
        if spot.same_reason(each):
            told = f"{release}: the same, {each.file}:{each.line} {each.function}"
            return [told, *_parted(here_root, root, context(here_root, spot), context(root, each))]
    here, there = spelled(spot.way), spelled(found[0].way)
    lines = [f"{release}: the same words, {found[0].file}:{found[0].line} {found[0].function}, reached otherwise:"]
    lines += [f"  + {each}" for each in here if each not in there] + [f"  - {each}" for each in there if each not in here]
    if spot.test != found[0].test:
        lines += [f"  + {spot.test}", f"  - {found[0].test}"]
    return lines


def lines_of(root: Path, spot: Spot) -> list[str]:
    """The source around a statement, its own lines marked."""
    text = _text(root, spot.file).split("\n")
    last = min(spot.statement.end_lineno or spot.line, spot.line + LONGEST)
    numbers = range(max(1, spot.line - AROUND), min(len(text), last + AROUND) + 1)
    return [f"{'>' if spot.line <= at <= last else ' '}{at:5d}  {text[at - 1]}".rstrip() for at in numbers]


def shown(release: str, last: str, spot: Spot) -> list[str]:
    """A statement of a release, how it is reached, and what the last release has of it."""
    reached = " and ".join(f"({each})" if " " in each else each for each in spelled(spot.way))
    lines = [f"{release} srt/{spot.file}:{spot.line} {spot.function}", *lines_of(source_of(release), spot)]
    lines += [f"reached when {reached}"] if reached else []
    return [*lines, *other_release(source_of(release), source_of(last), last, spot)]


def refusal_at(release: str, last: str, at: str) -> list[str]:
    """The statement of a refusal by the place that an answer gives (srt/FILE:LINE)."""
    file, _, line = at.removeprefix("srt/").rpartition(":")
    spot = spot_at(source_of(release), file, int(line)) if line.isdigit() else None
    return shown(release, last, spot) if spot else []


def writers_of(release: str, last: str, function: str, field: str) -> list[str]:
    """The statements of a function that write a field."""
    root, name = source_of(release), bare(function)
    files = defining(root).get(name, [])[:4]
    found = [
        spot
        for file in files
        for spot in spots_of(root, file)
        if bare(spot.function.rsplit(".", 1)[-1]) == name and field in {each for each, _ in writes_of(spot.statement)}
    ]
    if not found:
        return [f"{release} srt/{file} {function} writes {field}, in no statement that names it" for file in files[:1]]
    return [line for spot in found[:4] for line in shown(release, last, spot)]


def behind_law(release: str, last: str, rule: Rule) -> list[str]:
    """What a release has of a law's own statement: where it stands, how it is reached; what the last one has of it."""
    lines = [f"law {rule.id}: {source.file} {source.symbol}" for source in rule.sources[:1]]
    now, old = _raised(release, rule), _raised(last, rule)
    if now:
        return [*lines, *(line for spot in now[:2] for line in shown(release, last, spot))]
    if old:
        gone = [f"{release}: no statement says {rule.engine_error!r}", f"{last} srt/{old[0].file}:{old[0].line} {old[0].function}"]
        return [*lines, *gone, *lines_of(source_of(last), old[0])]
    return [*lines, *(line for name in sorted(rule.sets or ()) for line in _written(release, last, rule, name))]


def _raised(release: str, rule: Rule) -> list[Spot]:
    if not rule.engine_error:
        return []
    root = source_of(release)
    pattern = re.compile(rule.engine_error)
    named = [source.file for source in rule.sources]
    literal = max(re.split(r"[^A-Za-z _]+", rule.engine_error), key=len, default="").strip()
    files = files_with(root, literal[:16], named) if len(literal) > 5 else named
    return [
        spot
        for file in files
        for spot in spots_of(root, file)
        if isinstance(spot.statement, (ast.Raise, ast.Assert)) and pattern.search(" ".join(spot.words.split()))
    ]


def _written(release: str, last: str, rule: Rule, name: str) -> list[str]:
    symbols: Sequence[str] = [source.symbol.rsplit(".", 1)[-1] for source in rule.sources if source.symbol]
    return [line for symbol in symbols for line in writers_of(release, last, symbol, name)]

