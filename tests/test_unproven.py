"""Devices where nobody could hold the laws against the engine: silence proves nothing there, a refusal still does."""

from __future__ import annotations

import json

import pytest

from recommender import profiles
from recommender.api import check
from recommender.cli import run
from recommender.terms import Answer

UNPROVEN = [name for name in profiles.gpu_ids() if profiles.find_gpu(name).unproven]
PLAIN = ["--model-path", "qwen3-8b"]


def test_only_platforms_that_no_machine_of_ours_has_are_unproven() -> None:
    platforms = {profiles.find_gpu(name).facts["gpu.platform"] for name in UNPROVEN}
    assert platforms == {"npu", "xpu"}
    proven = {profiles.find_gpu(name).facts["gpu.platform"] for name in profiles.gpu_ids() if name not in UNPROVEN}
    assert proven == {"cuda", "hip", "cpu"}


@pytest.mark.parametrize("name", UNPROVEN)
def test_what_nothing_refuses_is_unknown_there(name: str) -> None:
    result = check(PLAIN, gpu=name)
    assert result.verdict is Answer.UNKNOWN
    assert result.unproven == profiles.find_gpu(name).unproven
    assert not result.rejected


def test_the_same_launch_is_accepted_where_laws_were_tried() -> None:
    result = check(PLAIN, gpu="b200")
    assert (result.verdict, result.unproven) == (Answer.ACCEPTS, "")


@pytest.mark.parametrize(
    ("name", "words", "rule"),
    [
        ("ascend-910b", ["--speculative-algorithm", "NGRAM"], "ngram-devices"),
        ("b60", ["--model-path", "gpt-oss-20b", "--dtype", "float16"], "gpt-oss-xpu-needs-bfloat16"),
    ],
)
def test_a_refusal_stays_one(name: str, words: list[str], rule: str) -> None:
    result = check([*PLAIN, *words], gpu=name)
    assert result.verdict is Answer.REFUSES
    assert rule in [item.rule for item in result.findings]


@pytest.mark.parametrize(
    "words", ["Ascend 910B", "Atlas 800I A3", "Intel Arc Pro B60", "Intel(R) Data Center GPU Max 1550"]
)
def test_their_usual_names_are_known(words: str) -> None:
    assert profiles.find_gpu(words).id in UNPROVEN


def test_people_and_machines_are_told_why(capsys: pytest.CaptureFixture[str]) -> None:
    launch = ["--", "python", "-m", "sglang.launch_server", *PLAIN]
    assert run(["check", "--gpu", "ascend-910b", *launch]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("UNKNOWN (source only) for SGLang")
    assert profiles.find_gpu("ascend-910b").unproven in said
    assert run(["check", "--gpu", "ascend-910b", "--strict", *launch]) == 1
    capsys.readouterr()
    run(["check", "--gpu", "ascend-910b", "--format", "json", *launch])
    told = json.loads(capsys.readouterr().out)
    assert (told["verdict"], told["unproven"]) == ("unknown", profiles.find_gpu("ascend-910b").unproven)
