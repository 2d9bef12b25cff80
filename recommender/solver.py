"""Encodes a question as constraint satisfaction problems and enumerates their solutions; only here is the solver imported.

It must not rank, word or print. Facts and pins are bound first, by one abstract walk in which every searched setting is
unknown: a rule that is decided by then costs nothing in the search. Each remaining rule becomes a constraint over the searched
settings that can reach what it reads: the callable replays the part of the engine's walk that leads to the rule, and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from recommender.laws import Plan, Scope, Step
from recommender.resolve import scope_of, verdict_of, write
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
    """Facts, settings that are given, settings that are searched; `ignore` names constraints to leave out."""

    plan: Plan
    facts: Mapping[str, Value]
    given: Mapping[str, Value]
    variables: tuple[Variable, ...]
    strict: bool = False
    ignore: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """One law over the searched settings in `scope`; `judge` takes their values in that order."""

    name: str
    scope: tuple[str, ...]
    judge: Callable[..., Verdict]
    step: Step | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """A question ready for search. `hopeless` are rules that the facts and the given settings break by themselves."""

    question: Question
    constraints: tuple[Constraint, ...]
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
    for name in searched:
        start.values[name] = UNKNOWN
        asked[name] = UNKNOWN
    abstract = Scope(values=start.values, facts=question.facts, asked=asked)
    active: list[Step] = []
    open_steps: list[tuple[Step, int]] = []
    hopeless: list[Step] = []
    doubtful: list[Step] = []
    wrote: dict[str, str] = {}
    for step in plan.steps:
        if step.writes:
            if write(step, abstract, wrote):
                active.append(step)
        elif _is_hard(step, question.strict) and step.rule.id not in question.ignore:
            verdict = verdict_of(step, abstract)
            if verdict is Verdict.BREAKS:
                hopeless.append(step)
            elif verdict is Verdict.UNKNOWN:
                open_steps.append((step, len(active)))
    constraints: list[Constraint] = []
    for step, reached in open_steps:
        constraint = _constraint(step.rule.id, step, active[:reached], step.reads, base, question, searched)
        if constraint.scope:
            constraints.append(constraint)
            continue
        verdict = constraint.judge()
        if verdict is Verdict.BREAKS:
            hopeless.append(step)
        elif verdict is Verdict.UNKNOWN:
            doubtful.append(step)
    for variable in question.variables:
        if variable.fixed_point and any(variable.name in step.targets for step in active):
            name = f"keeps {variable.name}"
            if name not in question.ignore:
                constraints.append(
                    _constraint(name, None, active, frozenset({variable.name}), base, question, searched)
                )
    return Encoded(
        question=question,
        constraints=tuple(constraints),
        hopeless=tuple(hopeless),
        doubtful=tuple(doubtful),
        active=tuple(active),
    )


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
    searched: Mapping[str, Variable],
) -> Constraint:
    chosen, needed = _slice(steps, reads)
    asks = frozenset[str]().union(*(item.asks for item in chosen), step.asks if step else frozenset())
    scope = tuple(variable.name for variable in question.variables if variable.name in needed or variable.name in asks)
    values = {item: base[item] for item in needed if item in base}
    memory: dict[tuple[Value, ...], Verdict] = {}
    kept = next(iter(reads)) if step is None else ""
    facts, given = question.facts, question.given

    def judge(*assigned: Value) -> Verdict:
        verdict = memory.get(assigned)
        if verdict is not None:
            return verdict
        asked = dict(given)
        for key, value in zip(scope, assigned, strict=True):
            if value is not _UNSET:
                asked[key] = value
        here = Scope(values=dict(values), facts=facts, asked=asked)
        for key, value in zip(scope, assigned, strict=True):
            if key in here.values:
                here.values[key] = None if value is _UNSET else value
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


def _allows(constraint: Constraint) -> Callable[..., bool]:
    judge = constraint.judge

    def allowed(*assigned: Value) -> bool:
        return judge(*assigned) is not Verdict.BREAKS

    return allowed


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

    domains = {variable.name: [_UNSET if value is None else value for value in variable.domain] for variable in variables}
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


def solutions(encoded: Encoded, order: Callable[[int, Assignment], object] | None = None, single: bool = False) -> Iterator[dict[str, Value]]:
    """Every assignment of the searched settings that no constraint breaks.

    Stages are solved in turn, each one's solutions sorted by `order(stage, assignment)`, so that a lazy reader gets the best
    first. Solutions of a stage are kept by the earlier values its constraints read.
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
            yield {name: None if value is _UNSET else value for name, value in fixed.items()}
            return
        stage = stages[index]
        constraints = by_stage[stage]
        read = sorted({name for constraint in constraints for name in constraint.scope if name in fixed})
        key = (stage, *(fixed[name] for name in read))
        if key not in memory:
            here = [variable for variable in variables if variable.stage == stage]
            found = _solve_stage(here, constraints, fixed, single)
            if order is not None:
                found.sort(key=lambda item: order(stage, _plain(item)))  # type: ignore[arg-type,return-value]
            memory[key] = found
        for solution in memory[key]:
            yield from descend(index + 1, {**fixed, **solution})

    for found in descend(0, {}):
        yield found
        if single:
            return


def _plain(solution: Mapping[str, Value]) -> dict[str, Value]:
    return {name: None if value is _UNSET else value for name, value in solution.items()}


def doubts(encoded: Encoded, assignment: Assignment) -> tuple[str, ...]:
    """The constraints that cannot be judged on an assignment, by name."""
    found = [step.rule.id for step in encoded.doubtful]
    for constraint in encoded.constraints:
        values = (_UNSET if assignment[name] is None else assignment[name] for name in constraint.scope)
        if constraint.judge(*values) is Verdict.UNKNOWN:
            found.append(constraint.name)
    return tuple(found)
