"""The search agrees with brute force, every law in play is a constraint, and the final walk removes nothing."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from typing import Any

import pytest

from recommender.advise import Adviser
from recommender.resolve import walk
from recommender.solver import Question, asked_of, encode, names_where, solutions
from recommender.terms import Effect, Verdict
from tests.conftest import adviser, draw_question


def valid(question: Question, assignment: dict[str, Any]) -> bool:
    """Brute force: the engine's whole walk refuses nothing and moves nothing that was searched."""
    result = walk(question.plan, asked_of(question, assignment), question.facts)
    broken = any(i.verdict is Verdict.BREAKS and i.step.rule.effect is Effect.REJECTS for i in result.struck)
    kept = all(value is None or result.values[name] == value for name, value in assignment.items())
    return not broken and kept


def first_question(here: Adviser) -> Question | None:
    """The question of the first candidate."""
    candidates, _ = here.candidates()
    return here.question(candidates[0]) if candidates else None


def narrowed(question: Question, rng: random.Random, most: int = 3) -> Question:
    """The same question over small random domains."""
    variables = tuple(
        replace(variable, domain=tuple(rng.sample(variable.domain, min(most, len(variable.domain)))))
        for variable in question.variables
    )
    return replace(question, variables=variables)


def _key(assignment: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, repr(value)) for name, value in assignment.items()))


@pytest.mark.parametrize("seed", range(24))
def test_solver_and_brute_force_agree(seed: int) -> None:
    rng = random.Random(seed)
    gpu, gpus, model, pins = draw_question(rng)
    question = first_question(adviser(gpu, gpus, model, **pins))
    if question is None:
        pytest.skip("no algorithm fits")
    small = narrowed(question, rng)
    conditions = {name for name, _ in small.keeps}
    names = [variable.name for variable in small.variables]
    everything = [
        dict(zip(names, values, strict=True)) for values in itertools.product(*(v.domain for v in small.variables))
    ]
    encoded = encode(small)
    kept = [c for c in encoded.constraints if c.name in conditions]
    expected = {_key(a) for a in everything if valid(small, a) and not names_where(kept, a, Verdict.BREAKS)}
    found = [_key(a) for a in solutions(encoded)]
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_a_law_left_out_changes_the_rows() -> None:
    here = adviser(
        "b200", 1, "llama-3.1-8b", speculative_draft_model_path="eagle3-llama-8b-draft", attention_backend="trtllm_mha"
    )
    question = first_question(here)
    assert question is not None
    with_it = {_key(a) for a in solutions(encode(question))}
    without = {
        _key(a)
        for a in solutions(
            encode(replace(question, ignore=frozenset({"trtllm-mha-chain-only", "paged-trees-need-a-cascade-backend"})))
        )
    }
    assert with_it < without
    widths = {dict(row)["speculative_eagle_topk"] for row in with_it}
    assert widths == {"1"}


@pytest.mark.parametrize("seed", range(6))
def test_every_rule_in_play_is_a_constraint_over_what_it_reads(seed: int) -> None:
    gpu, gpus, model, pins = draw_question(random.Random(seed + 1000))
    question = first_question(adviser(gpu, gpus, model, **pins))
    if question is None:
        pytest.skip("no algorithm fits")
    encoded = encode(question)
    searched = {variable.name for variable in question.variables}
    names = {constraint.name for constraint in (*encoded.constraints, *encoded.costs)}
    for constraint in encoded.constraints:
        assert set(constraint.scope) <= searched
        if constraint.step is not None:
            assert constraint.step.reads & searched <= set(constraint.scope) or constraint.step.reads.isdisjoint(
                searched
            )
    rng = random.Random(seed)
    for _ in range(40):
        assignment = {variable.name: rng.choice(variable.domain) for variable in question.variables}
        result = walk(question.plan, asked_of(question, assignment), question.facts)
        broken = {
            item.step.rule.id
            for item in result.struck
            if item.step.rule.effect is Effect.REJECTS and item.verdict is Verdict.BREAKS
        }
        hopeless = {step.rule.id for step in encoded.hopeless}
        assert broken <= names | hopeless


def test_only_callables_and_no_none_reach_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    import constraint

    seen: list[Any] = []
    original = constraint.Problem.addConstraint
    domain = constraint.Problem.addVariable

    def add(self: Any, law: Any, variables: Any = None) -> Any:
        seen.append(law)
        return original(self, law, variables)

    def variable(self: Any, name: Any, values: Any) -> Any:
        assert values
        assert None not in values
        return domain(self, name, values)

    monkeypatch.setattr(constraint.Problem, "addConstraint", add)
    monkeypatch.setattr(constraint.Problem, "addVariable", variable)
    question = first_question(adviser("h100", 1, "llama-3.1-8b", speculative_draft_model_path="eagle3-llama-8b-draft"))
    assert question is not None
    assert next(solutions(encode(question)), None) is not None
    assert seen
    assert all(callable(law) and not isinstance(law, str) for law in seen)
