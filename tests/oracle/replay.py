"""Walks recorded launches once and notes which rules acted in each; it must not ask the engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from recommender import resolve
from recommender.laws import Scope, Step
from recommender.session import Session
from recommender.terms import Value, Verdict

from .agree import Comparison, compare
from .records import Answered


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """A launch compared, the rules that acted in it, and the writes in their order: (phase, field, rule)."""

    comparison: Comparison
    acted: frozenset[str]
    writes: tuple[tuple[int, str, str], ...]


def replay(session: Session, launches: Iterable[Answered], fields: Sequence[str] | None = None) -> list[Replayed]:
    """Compare every launch, watching the walk."""
    found = []
    with watched() as log:
        for launch in launches:
            log.clear()
            comparison = compare(session, launch, fields)
            result = comparison.result
            struck = {item.rule for item in result.findings} if result else set()
            struck |= {item.rule for item in result.not_judged_rules} if result else set()
            written = tuple((step.phase, name, step.rule.id) for step, values in log for name in values)
            acted = frozenset(struck | {step.rule.id for step, _ in log})
            found.append(Replayed(comparison=comparison, acted=acted, writes=written))
    return found


@contextmanager
def watched() -> Iterator[list[tuple[Step, dict[str, Value]]]]:
    """Note every step that writes, and what."""
    log: list[tuple[Step, dict[str, Value]]] = []
    real = resolve._write

    def write(step: Step, scope: Scope, wrote: dict[str, str], applies: Value) -> bool:
        done = real(step, scope, wrote, applies)
        if done:
            log.append((step, {name: scope.values[name] for name in step.targets}))
        return done

    resolve._write = write
    try:
        yield log
    finally:
        resolve._write = real


@contextmanager
def without(session: Session, rule: str) -> Iterator[None]:
    """The walk as if a rule did not stand in the plan: another step takes its place, one that never applies."""
    steps: Any = session.plan.steps
    step = session.plan.by_id[rule]
    place = step.position
    silent = Step(rule=replace(step.rule, when="False"), position=place, phase=step.phase, gate=(), words=step.words)

    def put(other: Step) -> None:
        steps.made[place] = other
        session.plan.rests[place] = None
        session._tables.clear()  # they remember what facts decided for the other step

    put(silent)
    try:
        yield
    finally:
        put(step)


def clashes(replayed: Iterable[Replayed], session: Session) -> dict[tuple[str, str, str], Answered]:
    """Two rules of one phase that wrote one field in one launch, and the later one does not say `after` the earlier."""
    rules = session.edition.rules
    found: dict[tuple[str, str, str], Answered] = {}
    for item in replayed:
        result = item.comparison.result
        if result is None or any(finding.verdict is Verdict.UNKNOWN for finding in result.findings):
            continue
        last: dict[tuple[int, str], list[str]] = {}
        for phase, name, rule in item.writes:
            for earlier in last.setdefault((phase, name), []):
                if earlier not in _after(rules, rule):
                    found.setdefault((name, earlier, rule), item.comparison.launch)
            last[phase, name].append(rule)
    return found


def _after(rules: Any, rule: str) -> set[str]:
    """What a rule comes after, in any number of steps."""
    seen: set[str] = set()
    waiting = [rule]
    while waiting:
        for earlier in rules[waiting.pop()].after:
            if earlier not in seen and earlier in rules:
                seen.add(earlier)
                waiting.append(earlier)
    return seen
