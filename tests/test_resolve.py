"""The forward walk: order, origins, refusals that hide what comes after, and values nobody knows."""

from __future__ import annotations

from typing import Any

import pytest

from recommender.api import check, check_launch
from recommender.profiles import find_gpu
from recommender.resolve import walk
from recommender.session import Launch, Session
from recommender.terms import UNKNOWN, Answer, Bites, Effect, OriginKind, Verdict

LLAMA = "--model-path llama-3.1-8b --speculative-algorithm EAGLE3 --speculative-draft-model-path eagle3-llama-8b-draft"


GATED = (
    (LLAMA, "h100"),
    ("--model-path deepseek-v3.2 --tp-size 8 --speculative-algorithm EAGLE --dp-size 8 --enable-dp-attention", "b200"),
    ("--model-path qwen3-next-80b-a3b --tp-size 4 --speculative-algorithm NEXTN --disable-radix-cache", "mi300x"),
)


def judged(words: str, gpu: str | None = "b200", **options: Any) -> Any:
    return check(words.split(), gpu=gpu, **options)


def ids(result: Any, effect: Effect = Effect.REJECTS) -> list[str]:
    return [f.rule for f in result.findings if f.effect is effect and f.verdict is Verdict.BREAKS]


def test_the_two_laws_of_the_start_share_one_cure() -> None:
    result = judged(f"{LLAMA} --attention-backend trtllm_mha --speculative-eagle-topk 4")
    assert ids(result)[:2] == ["eagle-triple-starts-with-steps", "trtllm-mha-chain-only"]
    wanted = ("--speculative-eagle-topk", "1", "--speculative-num-steps", "4", "--speculative-num-draft-tokens", "5")
    first = {f.rule: f.cures[0].flags for f in result.findings if f.rule in ids(result)[:2]}
    assert set(first.values()) == {wanted}
    assert result.cure is not None
    assert result.cure.flags == wanted


def test_a_kda_tree_on_flashinfer_has_three_ways_out() -> None:
    words = (
        "--model-path kimi-linear-48b-a3b --tp-size 2 --speculative-algorithm NGRAM --speculative-ngram-max-bfs-breadth 4 "
        "--linear-attn-verify-backend flashinfer --mamba-ssm-dtype bfloat16"
    )
    result = judged(words)
    assert result.verdict is Answer.ACCEPTS
    finding = next(f for f in result.findings if f.rule == "kda-flashinfer-verify-chain-only")
    assert finding.bites is Bites.LOAD
    changes = [dict(cure.changes) for cure in finding.cures]
    assert any(change.get("linear_attn_verify_backend") == "triton" for change in changes)
    assert any(change.get("speculative_algorithm", 0) is None for change in changes)


def test_origins() -> None:
    result = judged(f"{LLAMA} --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 9")
    values = result.values
    assert values["speculative_num_steps"].origin is OriginKind.ASKED
    assert values["speculative_num_draft_tokens"].value == 4
    assert values["speculative_num_draft_tokens"].rule
    assert values["speculative_num_draft_tokens"].asked == 9
    assert "speculative_num_draft_tokens" in result.rewrites
    assert values["tp_size"].origin is OriginKind.DEFAULT


def test_what_a_refusal_hides_is_not_a_finding() -> None:
    result = judged("--model-path deepseek-v4-flash --tp-size 8 --speculative-algorithm NEXTN --disable-radix-cache")
    refusals = ids(result)
    assert refusals
    hidden = {item.rule for item in result.not_judged_rules}
    assert hidden.isdisjoint(refusals)


def test_another_spelling_hides_nothing() -> None:
    """The engine refuses before it reads the name in upper case; that name is unknown whatever cures the refusal."""
    result = judged("--model-path llama-3.1-8b --attention-backend flex_attention --speculative-algorithm Medusa")
    assert ids(result)[:2] == ["flex-attention-never-speculates", "algorithm-name-is-known"]
    assert not result.not_judged_rules


def test_unknown_hardware_is_never_guessed() -> None:
    result = judged(f"{LLAMA} --attention-backend trtllm_mha", gpu=None)
    assert result.verdict is Answer.UNKNOWN
    unknown = [f for f in result.findings if f.verdict is Verdict.UNKNOWN]
    assert unknown
    assert any(name.startswith("gpu.") for f in unknown for name in f.missing)


def test_an_unknown_model_is_unknown_and_named() -> None:
    result = judged("--model-path nobody/knows-this --speculative-algorithm EAGLE")
    assert result.verdict is Answer.UNKNOWN
    assert "model" in result.doubts


def test_shell_variables_are_unknown(session: Session) -> None:
    words = [*LLAMA.split(), "--attention-backend", "$BACKEND"]
    result = check(words, gpu="b200")
    assert result.values["attention_backend"].value is UNKNOWN
    assert result.verdict is not Answer.ACCEPTS


def test_walks_do_not_depend_on_the_gates(session: Session) -> None:
    """Gates only save time: with every step opened the walk says the same."""
    from recommender.laws import Plan, Step

    plan = session.plan
    steps = tuple(Step(rule=s.rule, position=s.position, phase=s.phase, gate=(), words=s.words) for s in plan.steps)
    gates: list[Any] = [() for _ in steps]
    opened = Plan(
        release=plan.release,
        steps=steps,
        defaults=plan.defaults,
        touched=plan.touched,
        gates=gates,
        readers=plan.readers,
    )
    assert plan.always != opened.always
    for words, gpu in GATED:
        launch: Launch = session.read(words.split())
        facts = session.facts_of(find_gpu(gpu), launch.asked, session.roles)
        one, two = walk(plan, launch.asked, facts), walk(opened, launch.asked, facts)
        assert one.values == two.values
        assert one.wrote == two.wrote
        assert [s.step.rule.id for s in one.struck] == [s.step.rule.id for s in two.struck]


@pytest.mark.parametrize(
    "words",
    ["--model-path llama-3.1-8b --page-size many", "--model-path llama-3.1-8b --speculative-num-stepz 3", "--tp 2"],
)
def test_the_parsers_refusals_come_first(words: str, session: Session) -> None:
    result = check_launch(session, session.read(words.split()), find_gpu("h100"))
    assert result.findings[0].bites is Bites.PARSE
    assert result.verdict is Answer.REFUSES
