"""Shrinks an impossible question to a minimal clash, and finds verified ways out; it must not word them or read files.

Clash: drop one law or one pin, ask again, keep it out if the question is still impossible; the user's own pins are tried last,
so that what remains of them is what they would have to change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from recommender.solver import Encoded, Question, Variable, encode, solutions
from recommender.terms import Value

# How many pins a way out may change: beyond two it is no longer the same launch.
MOST_FREED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """Laws and pins that cannot hold together; taking any one away makes the question answerable, unless `sole`."""

    rules: tuple[str, ...]
    pins: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WayOut:
    """Pins to change, and the settings of a valid launch that does so."""

    freed: tuple[str, ...]
    assignment: Mapping[str, Value]
    question: Question


def first_solution(question: Question) -> dict[str, Value] | None:
    """Any assignment that breaks nothing."""
    return next(solutions(encode(question), single=True), None)


def _laws(encoded: Encoded) -> list[str]:
    """Every law in play, those over most settings first: they are dropped first, so the plainest law remains."""
    wide = sorted(encoded.constraints, key=lambda constraint: -len(constraint.scope))
    return [constraint.name for constraint in wide] + [step.rule.id for step in encoded.hopeless]


def free(question: Question, names: Sequence[str], domains: Callable[[str], tuple[Value, ...]]) -> Question:
    """The question with some pins searched instead; `domains` gives the values to try."""
    given = {name: value for name, value in question.given.items() if name not in names}
    added = tuple(
        Variable(name=name, domain=domains(name), stage=0, fixed_point=False)
        for name in names
        if name not in {variable.name for variable in question.variables}
    )
    return replace(question, given=given, variables=added + question.variables)


def minimal_clash(question: Question, pins: Sequence[str], domains: Callable[[str], tuple[Value, ...]]) -> Clash:
    """A minimal set of laws and pins that makes the question impossible. The question must have no solution."""
    encoded = encode(question)
    laws = _laws(encoded)
    if encoded.hopeless:
        laws = [encoded.hopeless[0].rule.id]
    left = _shrink(laws, lambda kept: _impossible(question, kept))
    kept = _shrink(list(pins), lambda kept: _impossible(_freeing(question, pins, kept, domains), left))
    return Clash(rules=tuple(left), pins=tuple(kept))


def _impossible(question: Question, laws: Sequence[str]) -> bool:
    return first_solution(replace(question, only=frozenset(laws))) is None


def _freeing(
    question: Question, pins: Sequence[str], kept: Sequence[str], domains: Callable[[str], tuple[Value, ...]]
) -> Question:
    return free(question, [name for name in pins if name not in kept], domains)


def _shrink(items: Sequence[str], impossible: Callable[[list[str]], bool]) -> list[str]:
    """A minimal sublist that is still impossible; whole blocks are tried first, so that few questions are asked."""
    kept = list(items)
    size = max(1, len(kept) // 2)
    while size:
        start = 0
        while start < len(kept):
            trial = kept[:start] + kept[start + size :]
            if impossible(trial):
                kept = trial
            else:
                start += size
        size //= 2
    return kept


def ways_out(
    question: Question,
    pins: Sequence[str],
    domains: Callable[[str], tuple[Value, ...]],
    best: Callable[[Question], dict[str, Value] | None],
    most: int = 3,
) -> list[WayOut]:
    """Changes of the user's pins that the solver has verified, fewest first; `best` picks the answer of a freed question."""
    found: list[WayOut] = []
    for count in range(1, MOST_FREED + 1):
        for names in combinations(pins, count):
            freed = free(question, names, domains)
            assignment = best(freed)
            if assignment is not None:
                found.append(WayOut(freed=names, assignment=assignment, question=freed))
        if found:
            break
    return found[:most]
