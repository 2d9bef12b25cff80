"""Rules compiled for one engine release, in the engine's order, and the scope they read; it must not read files or judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from recommender.expr import Expression, Template
from recommender.terms import UNKNOWN, Bites, Effect, Source, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One edition of one law as it stands in YAML; texts are not compiled yet. `path` is the file below the data root."""

    id: str
    statement: str
    effect: Effect
    bites: Bites | None
    since: str
    until: str | None
    phase: str
    when: str
    require: str | None
    sets: Mapping[str, Value]
    message: str
    fix: tuple[Mapping[str, Value], ...]
    sources: tuple[Source, ...]
    engine_error: str
    engine_error_at: str
    verified: str
    topic: str
    path: str
    parse: str = ""
    after: tuple[str, ...] = ()
    silent_after: tuple[str, ...] = ()
    formerly: tuple[str, ...] = ()
    examples: tuple[Mapping[str, Any], ...] = ()


class Scope:
    """What expressions read: `values` of settings as they stand, `facts` of this question, the settings that were `asked`."""

    __slots__ = ("asked", "facts", "values")

    def __init__(self, *, values: dict[str, Value], facts: Mapping[str, Value], asked: Mapping[str, Value]) -> None:
        self.values = values
        self.facts = facts
        self.asked = asked


class FactTable(dict[str, Value]):
    """The facts of one question by dotted name, with the definitions that read nothing but facts, each computed once."""

    __slots__ = ("_definition", "_given", "_scope")

    def __init__(self, given: Mapping[str, Value], definition: Callable[[str], Expression | None]) -> None:
        super().__init__()
        self._given = given
        self._definition = definition
        self._scope = Scope(values={}, facts=self, asked={})

    def __missing__(self, name: str) -> Value:
        value: Value
        if "." in name:
            value = self._given[name]
        else:
            definition = self._definition(name)
            value = UNKNOWN if definition is None else definition.evaluate(self._scope)
        self[name] = value
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A rule at its place in the walk. `reads` are the settings that decide it, through definitions too.

    `writes` is empty for a rule that judges; `when` alone breaks a judging rule that has no `require`.
    """

    rule: Rule
    position: int
    phase: int
    when: Expression
    require: Expression | None
    writes: tuple[tuple[str, Expression], ...]
    reads: frozenset[str]
    facts: frozenset[str]
    asks: frozenset[str]
    compile_message: Callable[[], Template]

    @property
    def targets(self) -> frozenset[str]:
        """The settings it writes."""
        return frozenset(name for name, _ in self.writes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The walk of one engine release: steps in order, defaults of every setting, and who reads what."""

    release: str
    steps: tuple[Step, ...]
    defaults: Mapping[str, Value]
    touched: frozenset[str]
    by_id: Mapping[str, Step]
