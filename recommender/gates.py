"""Works out what must happen before a step of a walk can matter; it must not know a name, read files or judge a launch.

While every setting of a step's gate keeps its default, or takes a value that the gate does not list, the step says nothing
whatever the other settings and the facts are. So a gate saves time and never changes an answer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, product
from typing import Any, ClassVar, NoReturn

from recommender.expr import UNDECIDED, Expression, Forgetful, LooksInsideError, Opaque, Pick, Vocabulary, picks_of
from recommender.laws import Step
from recommender.terms import UNKNOWN, Value

# The most assignments that are tried to let one more value leave a gate closed.
MOST_TRIED = 512
# The fewest steps of a phase that a table is worth.
FEWEST_STEPS = 8
_FALSY: tuple[Value, ...] = (False, 0, 0.0, "")


def _refuse(*_: object) -> NoReturn:
    raise LooksInsideError


class _Nameless(type):
    """Refuses to name its class, which `is_a` would read."""

    __name__ = property(_refuse)


class _Unnamed(Opaque, metaclass=_Nameless):
    """Any value of a setting that a step never compares it with: true, equal to nothing else, of no known type.

    What it was compared with is kept in `named`: every scalar that is neither there nor false behaves just as this one.
    """

    def __init__(self) -> None:
        self.named: list[Value] = []

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is _Unnamed:
            raise LooksInsideError
        if other is None or type(other) in (bool, int, float, str):
            self.named.append(other)
        return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __bool__(self) -> bool:
        self.named.extend(_FALSY)
        return True

    __hash__: ClassVar[Callable[..., int]] = _refuse
    __class__ = property(_refuse)
    __getattr__ = __str__ = __repr__ = __format__ = __int__ = __float__ = __index__ = __iter__ = __len__ = _refuse
    __contains__ = __getitem__ = __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __abs__ = __round__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = _refuse


class _NoFacts(dict[str, Value]):
    def __missing__(self, name: str) -> Value:
        return UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class _Bare:
    values: Mapping[str, Value]
    facts: Mapping[str, Value]
    asked: Mapping[str, Value]
    memo: Forgetful = field(default_factory=Forgetful)


def gates_of(steps: Sequence[Step], defaults: Mapping[str, Value]) -> list[list[Any]]:
    """For each step settings one of which must leave its default, or take a value, before the step can matter; empty: none.

    Such a gate is a minimal set of settings: while all of them stand at their default, the condition is false, or what is
    required holds, whatever the others and the facts are. Of a setting that is only compared with constants the gate lists
    those that matter. One conjunct that is false can be gate enough: the gate that seems to open most rarely is taken.
    """
    weights = _weights(steps, defaults)
    gates: list[list[Any]] = []
    for step in steps:
        candidates = [_Gate((step.when, step.require), defaults, weights).entries()]
        if candidates[0] and len(step.condition.parts) > 1:
            candidates += [_Gate((part, None), defaults, weights).entries() for part in step.condition.parts]
        gates.append(min(filter(None, candidates), key=lambda gate: _cost(gate, weights), default=[]))
    return gates


def _weights(steps: Sequence[Step], defaults: Mapping[str, Value]) -> dict[str, int]:
    """How readily settings leave their defaults: what many steps read is often asked for, and some steps write unasked."""
    weights: dict[str, int] = {}
    for step in steps:
        for name in step.reads | step.asks:
            weights[name] = weights.get(name, 0) + 1
    most = max(weights.values(), default=0)
    for step in steps:
        if step.targets and not _Gate((step.when, step.require), defaults, weights).cannot_matter():
            weights |= {name: weights.get(name, 0) + most for name in step.targets if weights.get(name, 0) < most}
    return weights


def _cost(gate: Sequence[Sequence[Any]], weights: Mapping[str, int]) -> tuple[float, str]:
    """How readily a gate seems to open; a few values open it less readily than all but the default."""
    return sum(
        weights[name] * (1 if values is None else len(values) / (len(values) + 2)) for name, values in gate
    ), repr(gate)


def tables_of(steps: Sequence[Step], words: Vocabulary) -> list[list[Any]]:
    """For each phase that only judges: its first step, the one after its last, and who wants which value of what.

    Only what several steps of a phase compare with constants is worth its own evaluation; single settings have gates.
    """
    tables = []
    for _, phase in groupby(steps, key=lambda step: step.phase):
        members = list(phase)
        if len(members) < FEWEST_STEPS or any(step.targets for step in members):
            continue
        wanted = _wanted({step.position: picks_of(step.rule.when, words) for step in members}, words)
        if len({place for of in wanted.values() for places in of.values() for place in places}) >= FEWEST_STEPS:
            subjects = [[*key, [[value, places] for value, places in of.items()]] for key, of in wanted.items()]
            tables.append([members[0].position, members[-1].position + 1, subjects])
    return tables


def _wanted(picks: Mapping[int, Sequence[Pick]], words: Vocabulary) -> dict[tuple[str, bool], dict[Value, list[int]]]:
    """The steps that want a value, by what they compare with it; steps that ask for what hardly any other asks are left out."""
    kept = {
        place: listed for place, listed in picks.items() if not all(words.is_setting(text) for text, _, _ in listed)
    }
    while True:
        often = Counter(key for listed in kept.values() for key in {pick[:2] for pick in listed})
        shared = {place: listed for place, listed in kept.items() if all(often[pick[:2]] > 1 for pick in listed)}
        if len(shared) == len(kept):
            break
        kept = shared
    wanted: dict[tuple[str, bool], dict[Value, list[int]]] = {}
    for place, listed in kept.items():
        for text, elements, values in listed:
            for value in values:
                wanted.setdefault((text, elements), {}).setdefault(value, []).append(place)
    return wanted


class _Gate:
    """The search for one gate. `values` and `asked` are what the condition and the requirement read at the moment."""

    def __init__(
        self, read: tuple[Expression, Expression | None], defaults: Mapping[str, Value], weights: Mapping[str, int]
    ) -> None:
        self.when, self.require = read
        self.defaults = defaults
        present = [each for each in read if each is not None]
        names = frozenset[str]().union(*(each.settings | each.asks for each in present))
        self.asks = frozenset[str]().union(*(each.asks for each in present))
        self.names = sorted(names, key=lambda name: (-weights[name], name))
        self.values: dict[str, Value] = {name: defaults[name] for name in names}
        self.asked: dict[str, Value] = {}
        self.scope: Any = _Bare(values=self.values, facts=_NoFacts(), asked=self.asked)

    def cannot_matter(self) -> bool:
        """Whether the condition is false, or what is required holds, whatever is unknown at the moment."""
        when = self.when.evaluate(self.scope)
        if when is not UNKNOWN and not when:
            return True
        met = None if self.require is None else self.require.evaluate(self.scope)
        return met is not UNKNOWN and bool(met)

    def entries(self) -> list[list[Any]]:
        """The gate: settings, each with the values that open it, or None where any other than the default does."""
        if not self.cannot_matter():
            return []
        kept = self._minimal()
        closed = self._closed(kept)
        return [[name, closed.get(name)] for name in kept]

    def _minimal(self) -> list[str]:
        """Settings that keep the step out of the way while they keep their defaults; all others become unknown."""
        kept = list(self.names)
        for name in self.names:
            self.values[name], self.asked[name] = UNKNOWN, UNDECIDED
            if self.cannot_matter():
                kept.remove(name)
            else:
                self.values[name] = self.defaults[name]
                del self.asked[name]
        return sorted(kept)

    def _closed(self, kept: Sequence[str]) -> dict[str, list[Value]]:
        """The values that open the gate, for each setting that the step only compares with constants."""
        silent: dict[str, list[Value]] = {name: [self.defaults[name]] for name in kept}
        unnamed: dict[str, _Unnamed] = {}
        for name in kept:
            one = _Unnamed()
            if name not in self.asks and self._stays_silent(silent, name, one):
                silent[name].append(one)
                unnamed[name] = one
        for name, one in unnamed.items():
            for value in _distinct(one.named):
                if not _among(value, silent[name]) and self._stays_silent(silent, name, value):
                    silent[name].append(value)
        return {
            name: [value for value in _distinct([*one.named, None]) if not _among(value, silent[name])]
            for name, one in unnamed.items()
        }

    def _stays_silent(self, silent: Mapping[str, Sequence[Value]], name: str, value: Value) -> bool:
        """Whether the step cannot matter with one more value of a setting, whichever silent values the others have."""
        others = [other for other in silent if other != name]
        if math.prod(len(silent[other]) for other in others) > MOST_TRIED:
            return False
        try:
            for chosen in product(*(silent[other] for other in others)):
                self.values.update(zip(others, chosen, strict=True))
                self.values[name] = value
                if not self.cannot_matter():
                    return False
        except LooksInsideError:
            return False
        return True


def _distinct(values: Sequence[Value]) -> list[Value]:
    """The values, each once; 1 and true are two."""
    return list({(type(value), value): value for value in values}.values())


def _among(value: Value, values: Sequence[Value]) -> bool:
    return any(type(value) is type(other) and value == other for other in values)
