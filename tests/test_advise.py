"""Recommendations: round trips, depth by load, refusals with ways out."""

from __future__ import annotations

import random
from typing import Any

import pytest

from recommender.api import check, recommend
from recommender.resolve import walk
from recommender.terms import Effect, Verdict
from tests.conftest import adviser, draw_question

FORCED: list[tuple[str, int, str, dict[str, Any]]] = [
    (
        "b200",
        1,
        "llama-3.1-8b",
        {"speculative_draft_model_path": "eagle3-llama-8b-draft", "attention_backend": "trtllm_mha"},
    ),
    (
        "h200",
        1,
        "llama-3.1-8b",
        {"speculative_draft_model_path": "eagle3-llama-8b-draft", "attention_backend": "trtllm_mha"},
    ),
    ("b300", 1, "gpt-oss-120b", {"attention_backend": "trtllm_mha"}),
    ("b200", 8, "deepseek-v3", {"attention_backend": "trtllm_mla"}),
    ("b200", 4, "deepseek-v4-flash", {}),
]


@pytest.mark.parametrize(("gpu", "gpus", "model", "pins"), FORCED)
def test_depth_falls_with_load_where_only_chains_are_valid(
    gpu: str, gpus: int, model: str, pins: dict[str, Any]
) -> None:
    steps = []
    for concurrency in (1, 8, 32, 128):
        advice = adviser(gpu, gpus, model, concurrency, **pins).advise(5)
        assert advice.rows, advice.no_answer
        row = advice.rows[0]
        assert row.asked["speculative_eagle_topk"] == 1
        assert row.asked["max_running_requests"] >= concurrency
        steps.append(row.asked["speculative_num_steps"])
    assert steps == sorted(steps, reverse=True)
    assert steps[0] > 3
    assert steps[-1] <= 2


@pytest.mark.parametrize(("gpu", "gpus", "model", "pins"), FORCED)
def test_forced_chains_name_the_law_and_its_source(gpu: str, gpus: int, model: str, pins: dict[str, Any]) -> None:
    here = adviser(gpu, gpus, model, **pins)
    forced = here.advise(5).forced
    assert forced is not None
    assert forced.rules
    assert all(rule in here.session.edition.rules for rule in forced.rules)
    assert forced.sources


def test_the_budget_of_a_refused_tree_goes_into_depth() -> None:
    row = (
        adviser(
            "b200",
            1,
            "llama-3.1-8b",
            speculative_draft_model_path="eagle3-llama-8b-draft",
            attention_backend="trtllm_mha",
        )
        .advise(1)
        .rows[0]
    )
    assert (
        row.asked["speculative_eagle_topk"],
        row.asked["speculative_num_steps"],
        row.asked["speculative_num_draft_tokens"],
    ) == (1, 5, 6)


@pytest.mark.parametrize("seed", range(30))
def test_rows_walk_clean_and_stay_as_they_are(seed: int) -> None:
    gpu, gpus, model, pins = draw_question(random.Random(seed + 50))
    here = adviser(gpu, gpus, model, **pins)
    advice = here.advise(4)
    assert advice.rows or advice.no_answer is not None
    for row in advice.rows:
        result = walk(here.plan, row.asked, here.facts(row.asked.get("speculative_draft_model_path")))
        assert not [i for i in result.struck if i.verdict is Verdict.BREAKS and i.step.rule.effect is Effect.REJECTS]
        for name, value in row.found.items():
            assert value is None or result.values[name] == value
        assert row.asked["speculative_algorithm"] == row.candidate.algorithm or "speculative_algorithm" in pins
        assert {"speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens", "page_size"} <= set(
            row.asked
        )
        assert row.reason


def test_unknown_rows_come_last() -> None:
    rows = adviser("h100", 1, "llama-3.1-8b").advise(0).rows
    marks = [bool(row.unknown) for row in rows]
    assert marks == sorted(marks)


def test_a_clash_is_minimal_and_its_ways_out_work() -> None:
    here = adviser(
        "b200", 1, "llama-3.1-8b",
        speculative_draft_model_path="eagle3-llama-8b-draft", attention_backend="trtllm_mha", speculative_eagle_topk=4,
    )  # fmt: skip
    answer = here.advise(5).no_answer
    assert answer is not None
    candidate, clash = answer.clashes[0]
    assert candidate.algorithm == "EAGLE3"
    assert clash.rules == ("trtllm-mha-chain-only",)
    assert set(clash.pins) == {"attention_backend", "speculative_eagle_topk"}
    assert len(answer.exits) >= 2
    for way in answer.exits:
        facts = here.facts(way.asked.get("speculative_draft_model_path"))
        struck = walk(here.plan, way.asked, facts).struck
        assert not [i for i in struck if i.verdict is Verdict.BREAKS and i.step.rule.effect is Effect.REJECTS]
    assert answer.exits[0].asked["speculative_eagle_topk"] == 1


def test_weights_beyond_memory_and_ranks_beyond_devices_are_said() -> None:
    too_big = adviser("h100", 1, "deepseek-v3").advise(5).no_answer
    assert too_big is not None
    assert "--gpus" in too_big.problem
    too_many = adviser("h100", 2, "llama-3.1-8b", tp_size=4).advise(5).no_answer
    assert too_many is not None
    assert "4 ranks" in too_many.problem


def test_a_pin_that_the_engine_rewrites_stays_and_is_reported() -> None:
    advice = adviser("b200", 8, "deepseek-v3", attention_backend="trtllm_mla", page_size=1).advise(1)
    assert advice.rows
    assert advice.rows[0].asked["page_size"] == 1
    assert advice.rewrites["page_size"].value == 64
    assert advice.rewrites["page_size"].rule


def test_reasons_name_the_bound_that_stopped_the_deeper_row() -> None:
    rows = adviser("b200", 8, "deepseek-v3", 32).advise(3).rows
    assert rows[0].asked["speculative_num_steps"] == 3
    assert "17 to 32" in rows[0].reason
    assert "fewer than the deepest" in rows[1].reason


# --- what is not offered ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "draft", "laws"),
    [
        (
            "llama-3.1-8b",
            "lmsys/sglang-EAGLE-LLaMA3-Instruct-8B",
            {
                "EAGLE3": "eagle3-needs-an-eagle3-draft",
                "DFLASH": "dflash-needs-a-dflash-draft",
                "FROZEN_KV_MTP": "frozen-kv-drafts-with-an-assistant",
                "STANDALONE": "standalone-drafts-with-a-language-model",
            },
        ),
        ("qwen3-32b", "qwen3-8b", {"EAGLE": "plain-model-is-no-eagle-draft", "EAGLE3": "eagle3-needs-an-eagle3-draft"}),
        ("gemma-4-26b-a4b", "google/gemma-4-26B-A4B-it-assistant", {"EAGLE3": "gemma4-assistant-is-no-eagle3-draft"}),
        ("qwen3-32b", "z-lab/Qwen3-8B-DFlash-b16", {"DFLASH": "dflash-draft-fits-the-target-width"}),
        ("deepseek-v3", None, {"DFLASH": "dflash-needs-a-draft", "DSPARK": "dspark-needs-a-draft"}),
    ],
)
def test_an_algorithm_that_is_not_offered_names_the_law(model: str, draft: str | None, laws: dict[str, str]) -> None:
    advice = recommend(gpu="b200", gpus=8, model=model, draft=draft, top=1)
    found = {item.algorithm: item.rule for item in advice.excluded}
    assert {name: found.get(name) for name in laws} == laws
    assert not set(found) & {row.candidate.algorithm for row in advice.rows}
    assert all(item.reason for item in advice.excluded)


def test_every_law_that_excludes_strikes_a_launch_with_that_algorithm() -> None:
    draft = "lmsys/sglang-EAGLE-LLaMA3-Instruct-8B"
    advice = recommend(gpu="b200", model="llama-3.1-8b", draft=draft, top=1)
    named = [item for item in advice.excluded if item.rule]
    assert named
    shape = "--speculative-num-steps 1 --speculative-eagle-topk 1 --speculative-num-draft-tokens 2".split()
    for item in named:
        words = ["--model-path", "llama-3.1-8b", "--speculative-draft-model-path", draft, *shape]
        result = check([*words, "--speculative-algorithm", item.algorithm], gpu="b200")
        assert item.rule in {finding.rule for finding in result.findings}


def test_an_algorithm_that_the_user_named_is_not_compared_with_others() -> None:
    advice = recommend(gpu="b200", model="qwen3-8b", pins={"speculative_algorithm": "NGRAM"}, top=1)
    assert advice.excluded == ()
