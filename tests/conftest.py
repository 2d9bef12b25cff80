"""What the tests share: one session a process, questions drawn from the profiles."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from recommender import profiles
from recommender.advise import Adviser, Ask
from recommender.rulebook import Rulebook, load_rulebook
from recommender.session import Session, open_session

NEWEST = load_rulebook().releases[-1].version


@cache
def shared_session(release: str = NEWEST) -> Session:
    """A session of one release; sessions only ever look things up, so tests may share them."""
    return open_session(load_rulebook(), release, Path("/"))


@pytest.fixture
def session() -> Session:
    """A session of the newest release."""
    return shared_session()


@pytest.fixture
def book() -> Rulebook:
    """The rulebook of this installation."""
    return load_rulebook()


def adviser(gpu: str, gpus: int, model: str, concurrency: int = 8, **pins: Any) -> Adviser:
    """An adviser for one question; pins are settings by engine field."""
    given = {"model_path": model, **pins}
    ask = Ask(gpu=profiles.find_gpu(gpu), gpus=gpus, pins=given, concurrency=concurrency)
    return Adviser(shared_session(), ask)


@pytest.fixture
def ask() -> Callable[..., Adviser]:
    """Makes advisers."""
    return adviser


MODELS = (
    ("llama-3.1-8b", "eagle3-llama-8b-draft"), ("llama-3.1-8b", "llama-3.2-1b"), ("qwen3-8b", None), ("deepseek-v3", None),
    ("deepseek-v3.2", None), ("deepseek-v4-flash", None), ("glm-4.5-air", None), ("gpt-oss-20b", None),
    ("qwen3-next-80b-a3b", None), ("qwen3.5-35b-a3b", None), ("kimi-linear-48b-a3b", None), ("mimo-v2-flash", None), ("llama-3.1-70b", "llama-3.2-1b"),
    ("step-3.7-flash", None), ("nemotron-3-nano", None), ("minimax-m2.5", None), ("kimi-k2", None), ("qwen3-30b-a3b", None),
)  # fmt: skip
PINS: tuple[dict[str, Any], ...] = (
    {}, {}, {}, {"attention_backend": "triton"}, {"attention_backend": "flashinfer"}, {"attention_backend": "trtllm_mha"},
    {"attention_backend": "fa3"}, {"page_size": 64}, {"page_size": 1},
    {"speculative_eagle_topk": 1}, {"speculative_eagle_topk": 4}, {"speculative_num_steps": 3}, {"kv_cache_dtype": "fp8_e4m3"}, {"disable_overlap_schedule": True},
    {"disable_radix_cache": True}, {"linear_attn_verify_backend": "flashinfer"}, {"max_running_requests": 64}, {"enable_deterministic_inference": True},
    {"speculative_algorithm": "NGRAM"}, {"mamba_ssm_dtype": "bfloat16"},
)  # fmt: skip


def draw_question(rng: random.Random) -> tuple[str, int, str, dict[str, Any]]:
    """A random question: device, how many, model, pins."""
    gpu = rng.choice([name for name in profiles.gpu_ids() if name != "cpu" and not profiles.find_gpu(name).unproven])
    model, draft = rng.choice(MODELS)
    pins = dict(rng.choice(PINS))
    if draft is not None and rng.random() < 0.8:
        pins["speculative_draft_model_path"] = draft
    return gpu, rng.choice([1, 2, 4, 8]), model, pins
