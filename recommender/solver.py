"""Encodes a question as constraint satisfaction problems and enumerates their solutions; only here is the solver imported.

It must not rank, word or print. Facts and pins are bound first, by one abstract walk in which every searched setting is
unknown: a rule that is decided by then costs nothing in the search. Each remaining rule becomes a constraint over the searched
settings that can reach what it reads: the callable replays the part of the engine's walk that leads to the rule, and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from recommender.expr import UNDECIDED, Expression
from recommender.laws import FactTable, Plan, Scope, Step
from recommender.resolve import applies_to, enabled_steps, scope_of, verdict_of, write
from recommender.terms import UNKNOWN, Effect, Value, Verdict

Assignment = Mapping[str, Value]


class _Unset:
    """Stands for "leave it to the engine" inside a domain: the solver never sees None."""

    def __repr__(self) -> str:
        return "unset"


_UNSET = _Unset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A searched setting: `domain` in order of preference (None leaves it to the engine); equal `stage`s are solved together.

    A `fixed_point` variable must keep its value through the engine's resolution.
    """

    name: str
    domain: tuple[Value, ...]
    stage: int = 0
    fixed_point: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Facts, settings that are given, settings that are searched.

    `ignore` names constraints to leave out, `only` those that alone count. `follows` are settings computed from the searched
    ones; `keeps` are conditions of the question itself, by name.
    """

    plan: Plan
    facts: FactTable
    given: Mapping[str, Value]
    variables: tuple[Variable, ...]
    follows: tuple[tuple[str, Expression], ...] = ()
    keeps: tuple[tuple[str, Expression], ...] = ()
    strict: bool = False
    ignore: frozenset[str] = frozenset()
    only: frozenset[str] | None = None

    def counts(self, name: str) -> bool:
        """Whether a constraint plays a part."""
        return name not in self.ignore and (self.only is None or name in self.only)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """One law over the searched settings in `scope`; `judge` takes their values in that order."""

    name: str
    scope: tuple[str, ...]
    judge: Callable[..., Verdict]
    step: Step | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """A question ready for search. `hopeless` are rules that the facts and the given settings break by themselves.

    `costs` are the degrading rules that an assignment may break; they prune nothing.
    """

    question: Question
    constraints: tuple[Constraint, ...]
    costs: tuple[Constraint, ...] = ()
    hopeless: tuple[Step, ...] = ()
    doubtful: tuple[Step, ...] = ()
    active: tuple[Step, ...] = field(default=(), repr=False)


def _is_hard(step: Step, strict: bool) -> bool:
    return step.rule.effect is Effect.REJECTS or (strict and step.rule.effect is Effect.DEGRADES)


def encode(question: Question) -> Encoded:
    """Bind what is given, and turn every rule that is still open into a constraint."""
    plan = question.plan
    searched = {variable.name: variable for variable in question.variables}
    start = scope_of(plan, question.given, question.facts)
    base = dict(start.values)
    asked = dict(question.given)
    open_names = (*searched, *(name for name, _ in question.follows))
    for name in open_names:
        start.values[name] = UNKNOWN
        asked[name] = UNDECIDED if name in searched and None in searched[name].domain else UNKNOWN
    abstract = Scope(values=start.values, facts=question.facts, asked=asked)
    active: list[Step] = []
    open_steps: list[tuple[Step, int]] = []
    hopeless: list[Step] = []
    doubtful: list[Step] = []
    wrote: dict[str, str] = {}
    judged = (Effect.REJECTS, Effect.DEGRADES)
    for step in _within_reach(plan, {**asked, **dict.fromkeys(open_names, UNKNOWN)}):
        if step.rule.sets:
            if _never(step, abstract, searched, wrote, plan.defaults, partial(_applies, step, abstract)):
                continue
            if write(step, abstract, wrote):
                active.append(step)
        elif step.rule.effect in judged and question.counts(step.rule.id):
            verdict = verdict_of(step, abstract)
            if verdict is Verdict.UNKNOWN:
                if not _never(step, abstract, searched, wrote, plan.defaults, partial(_strikes, step, abstract)):
                    open_steps.append((step, len(active)))
            elif verdict is Verdict.BREAKS and _is_hard(step, question.strict):
                hopeless.append(step)
    constraints: list[Constraint] = []
    costs: list[Constraint] = []
    for step, reached in open_steps:
        constraint = _constraint(step.rule.id, step, active[:reached], step.reads, base, question)
        if not _is_hard(step, question.strict):
            costs.append(constraint)
        elif constraint.scope:
            constraints.append(constraint)
        elif constraint.judge() is Verdict.BREAKS:
            hopeless.append(step)
        elif constraint.judge() is Verdict.UNKNOWN:
            doubtful.append(step)
    for variable in question.variables:
        name = f"keeps {variable.name}"
        written = any(variable.name in step.targets for step in active)
        if variable.fixed_point and written and question.counts(name):
            constraints.append(_constraint(name, None, active, frozenset({variable.name}), base, question))
    constraints += [
        _condition(name, condition, base, question) for name, condition in question.keeps if question.counts(name)
    ]
    return Encoded(
        question=question,
        constraints=tuple(constraints),
        costs=tuple(costs),
        hopeless=tuple(hopeless),
        doubtful=tuple(doubtful),
        active=tuple(active),
    )


def _within_reach(plan: Plan, asked: Mapping[str, Value]) -> Iterator[Step]:
    """The steps that can matter, in order; what a step writes may bring later ones into reach."""
    enabled = enabled_steps(plan, asked)
    position = enabled.find(1)
    while position >= 0:
        step = plan.steps[position]
        for name in step.targets:
            if name in plan.gated:
                plan.gated[name].open(enabled, UNKNOWN)
        yield step
        position = enabled.find(1, position + 1)


def _never(
    step: Step,
    scope: Scope,
    searched: Mapping[str, Variable],
    wrote: Mapping[str, str],
    defaults: Mapping[str, Value],
    test: Callable[[], bool],
) -> bool:
    """Whether one of the searched settings that a step reads, as it was asked, makes a test fail with every value it may take."""
    return any(
        not _sometimes(
            scope, name, [defaults[name] if value is None else value for value in searched[name].domain], test
        )
        for name in step.reads & searched.keys()
        if name not in wrote
    )


def _sometimes(scope: Scope, name: str, domain: Sequence[Value], test: Callable[[], bool]) -> bool:
    try:
        for value in domain:
            scope.put(name, value)
            if test():
                return True
        return False
    finally:
        scope.put(name, UNKNOWN)


def _applies(step: Step, scope: Scope) -> bool:
    value = applies_to(step, scope)
    return value is UNKNOWN or bool(value)


def _strikes(step: Step, scope: Scope) -> bool:
    return verdict_of(step, scope) in (Verdict.BREAKS, Verdict.UNKNOWN)


def _condition(name: str, condition: Expression, base: Mapping[str, Value], question: Question) -> Constraint:
    """A condition of the question itself, over the searched settings as they are asked."""
    scope = tuple(variable.name for variable in question.variables if variable.name in condition.settings)
    values = {item: base[item] for item in condition.settings}

    def judge(*assigned: Value) -> Verdict:
        chosen = {key: value for key, value in zip(scope, assigned, strict=True) if value is not _UNSET}
        here = {**values, **chosen}
        met = condition.evaluate(Scope(values=here, facts=question.facts, asked=here))
        return Verdict.UNKNOWN if met is UNKNOWN else Verdict.HOLDS if met else Verdict.BREAKS

    return Constraint(name=name, scope=scope, judge=judge)


def _slice(steps: Sequence[Step], wanted: frozenset[str]) -> tuple[tuple[Step, ...], frozenset[str]]:
    """The writing steps that can influence the wanted settings, in order, and every setting they and the wanted ones read."""
    needed = set(wanted)
    chosen: list[Step] = []
    for step in reversed(steps):
        if not needed.isdisjoint(step.targets):
            chosen.append(step)
            needed |= step.reads
            needed |= step.targets
    return tuple(reversed(chosen)), frozenset(needed)


def _constraint(
    name: str,
    step: Step | None,
    steps: Sequence[Step],
    reads: frozenset[str],
    base: Mapping[str, Value],
    question: Question,
) -> Constraint:
    chosen, needed = _slice(steps, reads)
    asks = frozenset[str]().union(*(item.asks for item in chosen), step.asks if step else frozenset())
    follows = tuple((item, value) for item, value in question.follows if item in needed or item in asks)
    needed = needed.union(*(value.settings for _, value in follows))
    scope = tuple(variable.name for variable in question.variables if variable.name in needed or variable.name in asks)
    values = {item: base[item] for item in needed}
    memory: dict[tuple[Value, ...], Verdict] = {}
    kept = next(iter(reads)) if step is None else ""
    facts, given = question.facts, question.given

    def judge(*assigned: Value) -> Verdict:
        verdict = memory.get(assigned)
        if verdict is not None:
            return verdict
        asked = dict(given)
        here = Scope(values=dict(values), facts=facts, asked=asked)
        for key, value in zip(scope, assigned, strict=True):
            if value is not _UNSET:
                asked[key] = value
                if key in values:
                    here.values[key] = value
        for key, expression in follows:
            asked[key] = here.values[key] = expression.evaluate(here)
        for item in chosen:
            write(item, here, {})
        if step is not None:
            verdict = verdict_of(step, here)
        else:
            final = here.values[kept]
            if final is UNKNOWN:
                verdict = Verdict.UNKNOWN
            else:
                verdict = Verdict.HOLDS if asked.get(kept) is None or final == asked[kept] else Verdict.BREAKS
        memory[assigned] = verdict
        return verdict

    return Constraint(name=name, scope=scope, judge=judge, step=step)


def _bound(constraint: Constraint, fixed: Mapping[str, Value]) -> tuple[tuple[str, ...], Callable[..., bool]]:
    """The constraint over what is still free once `fixed` is bound."""
    free = tuple(name for name in constraint.scope if name not in fixed)
    places = [(name, fixed.get(name)) for name in constraint.scope]
    judge = constraint.judge

    def allowed(*assigned: Value) -> bool:
        rest = iter(assigned)
        return judge(*(value if name in fixed else next(rest) for name, value in places)) is not Verdict.BREAKS

    return free, allowed


def _solve_stage(
    variables: Sequence[Variable], constraints: Iterable[Constraint], fixed: Mapping[str, Value], single: bool
) -> list[dict[str, Value]]:
    from constraint import BacktrackingSolver, OptimizedBacktrackingSolver, Problem

    domains = {
        variable.name: [_UNSET if value is None else value for value in variable.domain] for variable in variables
    }
    open_constraints: list[tuple[tuple[str, ...], Callable[..., bool]]] = []
    for constraint in constraints:
        free, allowed = _bound(constraint, fixed)
        if not free:
            if not allowed():
                return []
        elif len(free) == 1:
            domains[free[0]] = [value for value in domains[free[0]] if allowed(value)]
        else:
            open_constraints.append((free, allowed))
    if any(not domain for domain in domains.values()):
        return []
    problem = Problem(BacktrackingSolver() if single else OptimizedBacktrackingSolver())
    for name, domain in domains.items():
        problem.addVariable(name, domain)
    for free, allowed in open_constraints:
        problem.addConstraint(allowed, list(free))
    if single:
        found = problem.getSolution()
        return [found] if found else []
    solutions: list[dict[str, Value]] = problem.getSolutions()
    return solutions


def solutions(
    encoded: Encoded, order: Callable[[int, Assignment], Any] | None = None, single: bool = False
) -> Iterator[dict[str, Value]]:
    """Every assignment of the searched settings that no constraint breaks.

    Stages are solved in turn, each one's solutions sorted by `order(stage, assignment)`, so that a lazy reader gets the best
    first. Solutions of a stage are kept by the earlier values its constraints read; `order` sees those and its own.
    """
    if encoded.hopeless:
        return
    variables = encoded.question.variables
    stages = sorted({variable.stage for variable in variables})
    placed = {variable.name: variable.stage for variable in variables}
    by_stage: dict[int, list[Constraint]] = {stage: [] for stage in stages}
    for constraint in encoded.constraints:
        by_stage[max(placed[name] for name in constraint.scope)].append(constraint)
    memory: dict[tuple[object, ...], list[dict[str, Value]]] = {}

    def descend(index: int, fixed: dict[str, Value]) -> Iterator[dict[str, Value]]:
        if index == len(stages):
            yield _plain(fixed)
            return
        stage = stages[index]
        constraints = by_stage[stage]
        read = sorted({name for constraint in constraints for name in constraint.scope if name in fixed})
        key = (stage, *(fixed[name] for name in read))  # what a stage's solutions and their order depend on
        if key not in memory:
            here = [variable for variable in variables if variable.stage == stage]
            found = _solve_stage(here, constraints, fixed, single and index + 1 == len(stages))
            if order is not None:
                seen = {name: fixed[name] for name in read}
                found.sort(key=lambda item: order(stage, _plain({**seen, **item})))
            memory[key] = found
        for solution in memory[key]:
            yield from descend(index + 1, {**fixed, **solution})

    for found in descend(0, {}):
        yield found
        if single:
            return


def _plain_value(value: Value) -> Value:
    return None if value is _UNSET else value


def _plain(solution: Mapping[str, Value]) -> dict[str, Value]:
    return {name: _plain_value(value) for name, value in solution.items()}


def judge_one(constraint: Constraint, assignment: Assignment) -> Verdict:
    """What one constraint says of an assignment."""
    return constraint.judge(*(_UNSET if assignment[name] is None else assignment[name] for name in constraint.scope))


def is_valid(encoded: Encoded, assignment: Assignment) -> bool:
    """Whether no constraint breaks on an assignment."""
    return all(judge_one(constraint, assignment) is not Verdict.BREAKS for constraint in encoded.constraints)


def names_where(constraints: Iterable[Constraint], assignment: Assignment, verdict: Verdict) -> tuple[str, ...]:
    """The constraints that give a verdict on an assignment, by name."""
    return tuple(constraint.name for constraint in constraints if judge_one(constraint, assignment) is verdict)


def asked_of(question: Question, assignment: Assignment) -> dict[str, Value]:
    """Every setting of a launch that takes an assignment: what is given, what was found, what follows from it."""
    asked = dict(question.given)
    asked.update({name: value for name, value in assignment.items() if value is not None})
    if not question.follows:
        return asked
    scope = Scope(values={**question.plan.defaults, **asked}, facts=question.facts, asked=asked)
    asked.update({name: expression.evaluate(scope) for name, expression in question.follows})
    return asked
