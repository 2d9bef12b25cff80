"""Rules compiled for one engine release, in the engine's order, and the scope they read; it must not read files or judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from recommender.errors import ExpressionError, RulebookError
from recommender.expr import (
    Condition,
    Evaluate,
    Expression,
    Template,
    Vocabulary,
    compile_condition,
    compile_expression,
    compile_template,
    compile_value,
)
from recommender.terms import UNKNOWN, Bites, Effect, Source, Value


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Rule:
    """One edition of one law. Its walk stands in the fields; what people read is fetched by `text` when it is asked for.

    Expressions are not compiled yet. `path` is the file below the data root.
    """

    id: str
    effect: Effect
    bites: Bites | None
    since: str
    until: str | None
    phase: str
    when: str
    require: str | None
    sets: Mapping[str, Value]
    topic: str
    path: str
    text: Callable[[], Mapping[str, Any]] = field(repr=False, compare=False)
    parse: str = ""
    after: tuple[str, ...] = ()
    silent_after: tuple[str, ...] = ()

    @cached_property
    def _words(self) -> Mapping[str, Any]:
        return self.text()

    def _line(self, key: str) -> str:
        return " ".join(str(self._words.get(key) or "").split())

    @cached_property
    def statement(self) -> str:
        """The law, in the present tense."""
        return self._line("statement")

    @cached_property
    def message(self) -> str:
        """What to say of a launch; expressions stand in braces."""
        return self._line("message")

    @property
    def fix(self) -> tuple[Mapping[str, Value], ...]:
        """Cures to try, in order."""
        return tuple(self._words.get("fix") or ())

    @property
    def no_fix(self) -> Mapping[str, str]:
        """What a launch lacks that no setting can give: `says` in words, where `when` holds and no cure was found."""
        return self._words.get("no_fix") or {}

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """Where the law was read."""
        given = self._words.get("source") or ()
        listed = given if isinstance(given, (list, tuple)) else (given,)
        return tuple(source_of(item) for item in listed)

    @cached_property
    def engine_error(self) -> str:
        """A pattern that identifies the engine's own message."""
        return str(self._words.get("engine_error") or "")

    @cached_property
    def engine_error_at(self) -> str:
        """A pattern of the place that raises, for messages that say nothing."""
        return str(self._words.get("engine_error_at") or "")

    @cached_property
    def verified(self) -> str:
        """engine: a run or a probe shows the law; source: it was read only."""
        return str(self._words.get("verified") or "")

    @property
    def formerly(self) -> tuple[str, ...]:
        """Earlier ids."""
        given = self._words.get("formerly") or ()
        return tuple(given) if isinstance(given, (list, tuple)) else (str(given),)

    @property
    def examples(self) -> tuple[Mapping[str, Any], ...]:
        """Launches that trip the rule, and neighbours that do not."""
        return tuple(self._words.get("examples") or ())


def source_of(item: Any) -> Source:
    """A source as a document gives it: a public address, or a file with a symbol and a release."""
    if isinstance(item, str):
        return Source(file=item)
    return Source(file=str(item["file"]), symbol=str(item.get("symbol") or ""), release=str(item.get("release") or ""))


class Scope:
    """What expressions read: `values` of settings as they stand, `facts` of this question, the settings that were `asked`."""

    __slots__ = ("asked", "defaults", "facts", "memo", "readers", "values")

    def __init__(
        self,
        *,
        values: dict[str, Value],
        facts: FactTable,
        asked: Mapping[str, Value],
        readers: Mapping[str, Sequence[str]] | None = None,
        defaults: Mapping[str, Value] | None = None,
    ) -> None:
        self.values = values
        self.facts = facts
        self.asked = asked
        self.readers = readers
        self.defaults = defaults
        # What definitions gave while nothing that they read has changed; whoever changes a value must say so.
        self.memo: dict[str, Value] = {}

    def put(self, name: str, value: Value) -> None:
        """Change a value, and forget what definitions made of the old one."""
        values = self.values
        if name in values and values[name] is value:
            return
        values[name] = value
        if self.readers is None:
            self.memo.clear()
            return
        for reader in self.readers.get(name, ()):
            self.memo.pop(reader, None)


class FactTable(dict[str, Value]):
    """The facts of one question by dotted name, with the definitions that read nothing but facts, each computed once."""

    __slots__ = ("_definition", "_given", "_scope", "decided")

    def __init__(self, given: Mapping[str, Value], definition: Callable[[str], Expression | None]) -> None:
        super().__init__()
        self._given = given
        self._definition = definition
        self._scope = Scope(values={}, facts=self, asked={})
        # Per step: 0 not asked yet, else what its conjuncts over facts say (SILENT, MET, OPEN).
        self.decided = bytearray()

    def __missing__(self, name: str) -> Value:
        value: Value
        if "." in name:
            value = self._given[name]
        else:
            definition = self._definition(name)
            value = UNKNOWN if definition is None else definition.evaluate(self._scope)
        self[name] = value
        return value


SILENT, MET, OPEN = 1, 2, 3


Signs = tuple[tuple[str, tuple[Value, ...]], ...]
Gate = tuple[tuple[str, tuple[Value, ...] | None], ...]


def rule_out(signs: Signs, values: Mapping[str, Value]) -> bool:
    """Whether a sign says that a step does not apply, without compiling anything."""
    for name, wanted in signs:
        value = values[name]
        if value is not UNKNOWN and value not in wanted:
            return True
    return False


# Writes that are worth a look whether all that they read stands at its default.
MANY_WRITES = 4


class _AtDefaults:
    """What a step writes while all that its writes read stands at its default: the same wherever the facts are the same."""

    def __init__(self, writes: Sequence[tuple[str, Expression]]) -> None:
        self._writes = writes
        self._settings = sorted(frozenset[str]().union(*(each.settings for _, each in writes)))
        self._asks = frozenset[str]().union(*(each.asks for _, each in writes))
        self._facts = sorted(frozenset[str]().union(*(each.facts for _, each in writes)))
        self._known: dict[tuple[Value, ...], Sequence[tuple[str, Value]]] = {}

    def hold(self, scope: Scope) -> bool:
        """Whether every value that the writes read is its default."""
        values, defaults = scope.values, scope.defaults
        if defaults is None:
            return False
        for name in self._settings:
            if values[name] is not defaults[name]:
                return False
        return self._asks.isdisjoint(scope.asked)

    def written(self, scope: Scope) -> Sequence[tuple[str, Value]]:
        """What is written at defaults."""
        facts = scope.facts
        key = tuple([facts[name] for name in self._facts])
        try:
            found = self._known.get(key)
        except TypeError:  # a fact that is an object
            return [(name, expression.evaluate(scope)) for name, expression in self._writes]
        if found is None:
            found = self._known[key] = [(name, expression.evaluate(scope)) for name, expression in self._writes]
        return found


class Step:
    """A rule at its place in the walk, compiled when the walk first reaches it.

    `gate` are settings one of which must leave its default, or take one of the values named, before the step can matter;
    empty: it always can. `signs` are conjuncts that ask one fact, and `live` those that ask one setting, for certain values:
    any other value rules the step out.
    """

    __slots__ = ("__dict__", "gate", "live", "phase", "position", "rule", "signs", "words")

    def __init__(
        self,
        *,
        rule: Rule,
        position: int,
        phase: int,
        gate: Gate,
        words: Vocabulary,
        signs: Signs = (),
        live: Signs = (),
    ) -> None:
        self.rule = rule
        self.position = position
        self.phase = phase
        self.gate = gate
        self.words = words
        self.signs = signs
        self.live = live

    @property
    def is_compiled(self) -> bool:
        """Whether the condition was compiled already, so that signs are no longer worth a look."""
        return "condition" in self.__dict__

    def _compiled(self, key: str, make: Callable[[], Any]) -> Any:
        try:
            return make()
        except ExpressionError as error:
            raise RulebookError(f"{self.rule.path}: {key}: {error}") from None

    @cached_property
    def condition(self) -> Condition:
        """When the rule applies."""
        made: Condition = self._compiled("when", lambda: compile_condition(self.rule.when, self.words))
        return made

    @property
    def when(self) -> Expression:
        """The whole condition as one expression."""
        return self.condition.whole

    @cached_property
    def require(self) -> Expression | None:
        """What must hold where the rule applies; None: the rule is broken wherever it applies."""
        text = self.rule.require
        made: Expression | None = (
            None if text is None else self._compiled("require", lambda: compile_expression(text, self.words))
        )
        return made

    @cached_property
    def writes(self) -> tuple[tuple[str, Expression], ...]:
        """What a writing rule writes; empty for a rule that judges."""
        return tuple(
            (name, self._compiled(f"sets: {name}", partial(compile_value, value, self.words)))
            for name, value in self.rule.sets.items()
        )

    @cached_property
    def _at_defaults(self) -> _AtDefaults | None:
        return _AtDefaults(self.writes) if len(self.writes) >= MANY_WRITES else None

    def written(self, scope: Scope) -> Sequence[tuple[str, Value]]:
        """What the rule writes now, by setting."""
        known = self._at_defaults
        if known is not None and known.hold(scope):
            return known.written(scope)
        return [(name, expression.evaluate(scope)) for name, expression in self.writes]

    @cached_property
    def message(self) -> Template:
        """The rule's sentence, to be filled with the values of the moment."""
        text = self.rule.message or self.rule.statement
        made: Template = self._compiled("message", lambda: compile_template(text, self.words))
        return made

    @cached_property
    def _read(self) -> tuple[Expression, ...]:
        require = (self.require,) if self.require else ()
        return (self.condition.whole, *require, *(expression for _, expression in self.writes))

    @cached_property
    def reads(self) -> frozenset[str]:
        """The settings that decide it, through definitions too."""
        return frozenset[str]().union(*(expression.settings for expression in self._read))

    @cached_property
    def ordered_reads(self) -> tuple[str, ...]:
        """The settings that decide it, by name."""
        return tuple(sorted(self.reads))

    @cached_property
    def facts(self) -> frozenset[str]:
        """The facts that decide it."""
        return frozenset[str]().union(*(expression.facts for expression in self._read))

    @cached_property
    def asks(self) -> frozenset[str]:
        """The settings of which it matters whether the user wrote them."""
        return frozenset[str]().union(*(expression.asks for expression in self._read))

    @cached_property
    def targets(self) -> frozenset[str]:
        """The settings it writes."""
        return frozenset(self.rule.sets)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Plan:
    """The walk of one engine release: steps in order, defaults of every setting, and the settings that any rule touches.

    `readers` are the definitions that read a setting; `tables` spare most steps of the phases that only judge.
    """

    release: str
    steps: Sequence[Step]
    defaults: Mapping[str, Value]
    touched: frozenset[str]
    gates: Sequence[Gate]
    readers: Mapping[str, Sequence[str]]
    tables: Sequence[Table] = ()

    @cached_property
    def by_id(self) -> Mapping[str, Step]:
        """The steps by their rule."""
        return {step.rule.id: step for step in self.steps}

    @cached_property
    def always(self) -> bytes:
        """One byte a step: 1 where nothing must change before it can matter."""
        return bytes(not gate for gate in self.gates)

    @cached_property
    def rests(self) -> list[Evaluate | None]:
        """The compiled open conjuncts of the steps that were walked already, at their positions."""
        return [None] * len(self.steps)

    @cached_property
    def made(self) -> list[Any]:
        """The steps that were walked already, at their positions."""
        return [None] * len(self.steps)

    @cached_property
    def gated(self) -> Mapping[str, Opened]:
        """The steps that a setting opens once it leaves its default."""
        whole: dict[str, list[int]] = {}
        always: dict[str, list[int]] = {}
        valued: dict[str, dict[Value, list[int]]] = {}
        for position, gate in enumerate(self.gates):
            for name, values in gate:
                whole.setdefault(name, []).append(position)
                if values is None:
                    always.setdefault(name, []).append(position)
                for value in values or ():
                    valued.setdefault(name, {}).setdefault(value, []).append(position)
        return {
            name: Opened(
                whole=tuple(positions),
                always=tuple(always.get(name, ())),
                valued={value: tuple(found) for value, found in valued.get(name, {}).items()},
            )
            for name, positions in whole.items()
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Opened:
    """The steps that a setting opens: `always` by leaving its default, `valued` by taking a value, `whole` all of them."""

    whole: tuple[int, ...]
    always: tuple[int, ...]
    valued: Mapping[Value, tuple[int, ...]]

    def open(self, enabled: bytearray, value: Value) -> None:
        """Mark the steps that a new value opens."""
        if value is UNKNOWN or isinstance(value, (dict, tuple)):
            for position in self.whole:
                enabled[position] = 1
            return
        for position in self.always:
            enabled[position] = 1
        for position in self.valued.get(value, ()):
            enabled[position] = 1


class Table:
    """Which steps of a phase that only judges can matter, by the values of a few expressions that stay as they are there.

    `subjects` are (expression, whether its elements are meant, the steps that want a value by that value). A step that
    stands in the table needs one of the values that it wants; the steps of the phase that do not are left alone.
    """

    def __init__(self, start: int, stop: int, subjects: Sequence[Any], words: Vocabulary) -> None:
        self.start = start
        self.stop = stop
        self._listed = subjects
        self._words = words

    @cached_property
    def _subjects(self) -> tuple[tuple[Evaluate, bool, int, Mapping[Value, int]], ...]:
        return tuple(
            (
                compile_expression(text, self._words).evaluate,
                elements,
                self._mask(place for _, places in wanted for place in places),
                {value: self._mask(places) for value, places in wanted},
            )
            for text, elements, wanted in self._listed
        )

    @cached_property
    def _others(self) -> int:
        everything = self._mask(range(self.start, self.stop))
        return everything & ~self._mask(
            place for *_, wanted in self._listed for _, places in wanted for place in places
        )

    def _mask(self, places: Iterable[int]) -> int:
        return sum(1 << 8 * (place - self.start) for place in set(places))

    def close(self, enabled: bytearray, scope: Scope) -> None:
        """Unmark the steps that want a value which is not there."""
        mask = self._others
        for evaluate, elements, whole, valued in self._subjects:
            value = evaluate(scope)
            if value is None and elements:
                continue
            if value is UNKNOWN or (type(value) is tuple) is not elements:
                mask |= whole
                continue
            for item in value if elements else (value,):
                if item is UNKNOWN or isinstance(item, (tuple, dict)):
                    mask |= whole
                else:
                    mask |= valued.get(item, 0)
        start, stop = self.start, self.stop
        opened = int.from_bytes(enabled[start:stop], "little") & mask
        enabled[start:stop] = opened.to_bytes(stop - start, "little")
