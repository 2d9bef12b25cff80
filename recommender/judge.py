"""Turns a walk into findings, and finds the cures that a rule itself proposes; it must not read files or word anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, islice, product

from recommender.expr import Expression, Template
from recommender.laws import FactTable, Plan, Scope
from recommender.resolve import Struck, Walk, walk
from recommender.terms import UNKNOWN, Cure, Effect, Finding, NotJudged, Value, Verdict

# Pairs of settings that are tried together when no single change cures a rule.
MOST_PAIRS = 12


def findings_of(result: Walk, facts: FactTable) -> tuple[tuple[Finding, ...], tuple[NotJudged, ...]]:
    """(findings in the engine's order, rules that were not judged because an earlier refusal hid what they read)."""
    struck = [item for item in result.struck if not item.after]
    ids = {item.step.rule.id for item in struck if item.verdict is Verdict.BREAKS}
    findings = tuple(_finding(item, ids, facts) for item in struck)
    hidden = tuple(NotJudged(rule=item.step.rule.id, after=item.after) for item in result.struck if item.after)
    return findings, hidden


def _finding(item: Struck, ids: set[str], facts: FactTable) -> Finding:
    rule = item.step.rule
    return Finding(
        rule=rule.id,
        effect=rule.effect,
        bites=rule.bites,
        verdict=item.verdict,
        message=rule.statement if item.verdict is Verdict.UNKNOWN else item.message,
        statement=rule.statement,
        sources=rule.sources,
        reads=item.reads,
        missing=missing_names(item, facts) if item.verdict is Verdict.UNKNOWN else (),
        under=next((name for name in rule.silent_after if name in ids), ""),
        verified=rule.verified,
    )


def next_findings(
    plan: Plan, asked: Mapping[str, Value], facts: FactTable, hidden: Iterable[str]
) -> tuple[Finding, ...]:
    """Of laws that an earlier refusal hid, those that refuse the launch once it is cured as `asked` says."""
    wanted = set(hidden)
    struck = [item for item in walk(plan, asked, facts, keep=True).struck if not item.after]
    ids = {item.step.rule.id for item in struck if item.verdict is Verdict.BREAKS}
    refusing = (item for item in struck if item.step.rule.id in ids and item.step.rule.effect is Effect.REJECTS)
    return tuple(_finding(item, ids, facts) for item in refusing if item.step.rule.id in wanted)


def missing_names(item: Struck, facts: FactTable) -> tuple[str, ...]:
    """The facts and settings that would have to be known to judge a rule."""
    settings = [name for name, value in item.reads.items() if value is UNKNOWN]
    unknown = [name for name in sorted(item.step.facts) if "." in name and facts[name] is UNKNOWN]
    return tuple(settings + unknown)


def rejections(result: Walk) -> dict[str, Verdict]:
    """The refusing rules that struck, whenever they bite, with their verdicts; hidden ones are left out."""
    return {
        item.step.rule.id: item.verdict
        for item in result.struck
        if not item.after and item.step.rule.effect is Effect.REJECTS
    }


def apply_changes(asked: Mapping[str, Value], changes: Mapping[str, Value]) -> dict[str, Value]:
    """A launch's settings after a change; None unsets."""
    changed = dict(asked)
    for name, value in changes.items():
        if value is None:
            changed.pop(name, None)
        else:
            changed[name] = value
    return changed


def try_changes(
    plan: Plan,
    asked: Mapping[str, Value],
    facts: FactTable,
    changes: Mapping[str, Value],
    rule: str,
    before: Iterable[str],
) -> Cure | None:
    """The change as a cure for `rule`, when the rule is then silent and nothing new is refused; None otherwise."""
    changes = {name: value for name, value in changes.items() if value is not None or name in asked}
    if all(asked.get(name) == value for name, value in changes.items()):
        return None
    again = walk(plan, apply_changes(asked, changes), facts)
    hidden = {item.step.rule.id for item in again.struck if item.after}
    left = rejections(again)
    if rule in left or rule in hidden or not set(left) <= set(before):
        return None
    return Cure(changes=dict(changes), clean=not left and not hidden)


def cures_of_rule(
    plan: Plan, result: Walk, facts: FactTable, item: Struck, fixes: tuple[Mapping[str, Expression], ...]
) -> tuple[Cure, ...]:
    """The rule's own `fix` entries that work on this launch, in their order."""
    scope = Scope(values=dict(item.values), facts=facts, asked=result.asked)
    before = {*rejections(result), *(struck.step.rule.id for struck in result.struck if struck.after)}
    found: list[Cure] = []
    for fix in fixes:
        changes = {name: expression.evaluate(scope) for name, expression in fix.items()}
        if any(value is UNKNOWN for value in changes.values()):
            continue
        cure = try_changes(plan, result.asked, facts, changes, item.step.rule.id, before)
        if cure is not None and all(cure.changes != other.changes for other in found):
            found.append(cure)
    return tuple(found)


def lacking(item: Struck, facts: FactTable, asked: Mapping[str, Value], lack: tuple[Expression, Template]) -> str:
    """What a launch lacks that no setting can give, where the law knows that; empty otherwise."""
    when, says = lack
    scope = Scope(values=dict(item.values), facts=facts, asked=asked)
    return says.fill(scope) if when.evaluate(scope) is True else ""


def search_cures(
    plan: Plan,
    asked: Mapping[str, Value],
    facts: FactTable,
    item: Struck,
    before: Iterable[str],
    moves: Sequence[tuple[str, Sequence[Value]]],
    most: int = 2,
) -> tuple[Cure, ...]:
    """Changes of one setting, then of two, that cure a rule; `moves` are settings with the values to try, in order.

    What leaves the launch clean comes first. The first size of change that cures anything ends the search.
    """
    known = tuple(before)
    found: list[Cure] = []
    for name, values in moves:
        for value in values:
            cure = try_changes(plan, asked, facts, {name: value}, item.step.rule.id, known)
            if cure is not None:
                found.append(replace(cure, from_rule=False))
                break
    if not any(cure.clean for cure in found):
        for (first, firsts), (second, seconds) in islice(combinations(moves, 2), MOST_PAIRS):
            for one, two in product(firsts[:4], seconds[:4]):
                cure = try_changes(plan, asked, facts, {first: one, second: two}, item.step.rule.id, known)
                if cure is not None and cure.clean:
                    found.append(replace(cure, from_rule=False))
                    break
    found.sort(key=lambda cure: (not cure.clean, len(cure.changes)))
    return tuple(found[:most])
