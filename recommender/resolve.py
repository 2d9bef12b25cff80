"""Replays the engine's own resolution of a launch, forward, step by step; it must not read files, print or search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from recommender.laws import MET, OPEN, SILENT, FactTable, Plan, Scope, Step, rule_out
from recommender.terms import UNKNOWN, Bites, Effect, Known, OriginKind, Value, Verdict


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Struck:
    """A judging rule that did not pass, with the values it read at its place in the walk."""

    step: Step
    verdict: Verdict
    message: str
    reads: Mapping[str, Value]
    values: Mapping[str, Value] = field(default_factory=dict)
    after: str = ""


@dataclass(slots=True, eq=False, repr=False)
class Walk:
    """What one forward walk leaves: final `values`, who `wrote` each rewritten setting last, and what `struck`."""

    values: dict[str, Value]
    asked: Mapping[str, Value]
    wrote: dict[str, str] = field(default_factory=dict)
    struck: list[Struck] = field(default_factory=list)

    def known(self, name: str) -> Known:
        """A setting's final value with its origin."""
        value = self.values[name]
        if name in self.wrote:
            return Known(value=value, origin=OriginKind.RULE, rule=self.wrote[name], asked=self.asked.get(name))
        if name in self.asked:
            return Known(value=value, origin=OriginKind.ASKED, asked=self.asked[name])
        return Known(value=value, origin=OriginKind.DEFAULT)

    @property
    def refused(self) -> bool:
        """Whether the engine stops before it loads anything."""
        return any(stops(item.step) and item.verdict is Verdict.BREAKS and not item.after for item in self.struck)


def stops(step: Step) -> bool:
    """Whether a broken step ends the engine's resolution."""
    return step.rule.effect is Effect.REJECTS and step.rule.bites in (Bites.STARTUP, Bites.PARSE)


def applies_to(step: Step, scope: Scope) -> Value:
    """Whether a step's condition is met; what facts alone decide is asked once a fact table."""
    decided = scope.facts.decided
    position = step.position
    try:
        known = decided[position]
    except IndexError:
        decided.extend(bytes(position + 1 - len(decided)))
        known = 0
    if known == 0:
        if rule_out(step.signs, scope.facts):
            decided[position] = SILENT
            return False
        if not step.is_compiled and rule_out(step.live, scope.values):
            return False
        of_facts = step.condition.of_facts
        met = True if of_facts is None else of_facts(scope)
        known = decided[position] = OPEN if met is UNKNOWN else MET if met else SILENT
    if known == SILENT:
        return False
    rest = step.condition.rest
    value = True if rest is None else rest(scope)
    return value if known == MET or (value is not UNKNOWN and not value) else UNKNOWN


def verdict_of(step: Step, scope: Scope) -> Verdict:
    """What a judging step says of the scope as it stands."""
    return _verdict(step, scope, applies_to(step, scope))


def _verdict(step: Step, scope: Scope, applies: Value) -> Verdict:
    if applies is not UNKNOWN and not applies:
        return Verdict.SILENT
    if step.require is not None:
        met = step.require.evaluate(scope)
        if met is not UNKNOWN and met:
            return Verdict.HOLDS
        if met is UNKNOWN:
            return Verdict.UNKNOWN
    return Verdict.UNKNOWN if applies is UNKNOWN else Verdict.BREAKS


def write(step: Step, scope: Scope, wrote: dict[str, str]) -> bool:
    """Let a writing step write; returns whether it did. Under an unknown condition UNKNOWN is left where it would differ."""
    return _write(step, scope, wrote, applies_to(step, scope))


def _write(step: Step, scope: Scope, wrote: dict[str, str], applies: Value) -> bool:
    if applies is not UNKNOWN and not applies:
        return False
    values = scope.values
    for name, value in step.written(scope):
        if applies is not UNKNOWN:
            scope.put(name, value)
        elif value is UNKNOWN or values[name] is UNKNOWN or values[name] != value:
            scope.put(name, UNKNOWN)
        else:
            continue
        wrote[name] = step.rule.id
    return True


def _always(scope: Scope) -> Value:
    return True


_NOT_SILENT = bytes(0 if code == SILENT else 1 for code in range(256))


def _both(one: bytearray, two: bytearray) -> bytes:
    """The bytes that are set in both."""
    return (int.from_bytes(one) & int.from_bytes(two)).to_bytes(len(one))


def enabled_steps(plan: Plan, asked: Mapping[str, Value]) -> bytearray:
    """One byte a step: 1 where it can matter to a launch that asks for some settings."""
    enabled = bytearray(plan.always)
    gated = plan.gated
    for name, value in asked.items():
        if name in gated:
            gated[name].open(enabled, value)
    return enabled


def scope_of(plan: Plan, asked: Mapping[str, Value], facts: FactTable) -> Scope:
    """The scope at the start: defaults, and over them what the user asked for."""
    values = dict(plan.defaults)
    values.update(asked)
    return Scope(values=values, facts=facts, asked=asked, readers=plan.readers, defaults=plan.defaults)


def walk(
    plan: Plan,
    asked: Mapping[str, Value],
    facts: FactTable,
    *,
    suspects: Mapping[str, str] | None = None,
    keep: bool = False,
) -> Walk:
    """Replay a launch. With `keep`, each struck rule carries every value as it stood (its fixes are computed from them).

    After a refusal by rule R the engine goes no further, so a value written later from what R refused was never reached: a
    rule that breaks on such a value is marked `after` R. `suspects` maps settings that the parser refused to the refusing rule.
    """
    scope = scope_of(plan, asked, facts)
    values, defaults = scope.values, plan.defaults
    result = Walk(values=values, asked=asked)
    tainted: dict[str, str] = dict(suspects or {})
    unreached: dict[str, str] = dict(tainted)
    enabled = enabled_steps(plan, asked)
    steps, made, rests, gated, decided = plan.steps, plan.made, plan.rests, plan.gated, facts.decided
    if len(decided) < len(steps):
        decided.extend(bytes(len(steps) - len(decided)))
    enabled = bytearray(_both(enabled, decided.translate(_NOT_SILENT)))
    tables = iter(plan.tables)
    table = next(tables, None)
    here = -1
    while (here := enabled.find(1, here + 1)) >= 0:
        if table is not None and here >= table.start:
            if here < table.stop:
                table.close(enabled, scope)
            table = next(tables, None)
            here -= 1
            continue
        rest = rests[here]
        if rest is not None and decided[here] == MET:
            # Facts are decided for most steps: asking the open conjuncts here saves a call.
            applies = rest(scope)
            if applies is not UNKNOWN and not applies:
                continue
            step = made[here]
        else:
            if decided[here] == SILENT:
                continue
            step = made[here] = steps[here]
            applies = applies_to(step, scope)
            if step.is_compiled:
                rests[here] = step.condition.rest or _always
            if applies is not UNKNOWN and not applies:
                continue
        if step.rule.sets:
            _write(step, scope, result.wrote, applies)
            for name in step.rule.sets:
                if name in gated and (value := values[name]) is not defaults[name]:
                    gated[name].open(enabled, value)
            if tainted:
                cause = _first(step.reads, tainted)
                for name, _ in step.writes:
                    if cause:
                        tainted[name] = cause
                        # A value made of itself alone (another spelling) is what was asked for: no cure elsewhere changes it.
                        if step.reads != {name}:
                            unreached[name] = cause
                    else:
                        unreached.pop(name, None)
            continue
        verdict = _verdict(step, scope, applies)
        if verdict is Verdict.BREAKS or verdict is Verdict.UNKNOWN:
            after = _first(step.reads, unreached) if unreached else ""
            message = step.message.fill(scope)
            reads = {name: values[name] for name in step.ordered_reads}
            kept = dict(values) if keep else {}
            result.struck.append(
                Struck(step=step, verdict=verdict, message=message, reads=reads, values=kept, after=after)
            )
            if verdict is Verdict.BREAKS and not after and stops(step):
                for name in step.reads:
                    tainted.setdefault(name, step.rule.id)
    return result


def _first(names: frozenset[str], marked: Mapping[str, str]) -> str:
    """What marked the first of the names, by name; empty when none is marked."""
    if names.isdisjoint(marked):
        return ""
    return marked[min(name for name in names if name in marked)]
