"""The container image of a launch: named, read off the command, or assumed; and what wins over it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from recommender.api import check, recommend
from recommender.cli import run
from recommender.commands.completion import ids
from recommender.devices import find_gpu, gpu_ids
from recommender.errors import UsageError
from recommender.images import find_image, image_use, images
from recommender.rulebook import load_rulebook
from recommender.terms import Answer, CheckResult

LONG = ["--model-path", "llama-3.1-8b", "--context-length", "200000"]
ALLOWS = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"
READ = load_rulebook().settings["environment"]


def rules(result: CheckResult) -> list[str]:
    return [finding.rule for finding in result.findings]


def answer(words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = run(shlex.split(words))
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.mark.parametrize("name", sorted(images()))
def test_an_image_decides_something_and_says_where_it_is_from(name: str) -> None:
    image = images()[name]
    assert set(image.environment) & set(READ)
    assert "Dockerfile" in image.source
    assert image.tags


def test_it_is_assumed_on_the_devices_it_is_built_for_and_nowhere_else() -> None:
    found = {name: image_use(None, find_gpu(name), (), {}, READ) for name in gpu_ids()}
    assert {name for name, use in found.items() if use} == {"mi300x", "mi325x", "mi350x", "mi355x"}
    assert {(use.id, use.why) for use in found.values() if use} == {("rocm", "assumed")}
    assert image_use(None, None, (), {}, READ) is None


def test_the_image_decides_what_the_bare_machine_refuses() -> None:
    assert check(LONG, gpu="mi300x").verdict is Answer.ACCEPTS
    bare = check(LONG, gpu="mi300x", image="none")
    assert bare.image is None
    assert "context-within-the-model" in rules(bare)
    assert "context-within-the-model" in rules(check(LONG, gpu="b200"))


def test_a_variable_of_the_user_wins() -> None:
    result = check(LONG, gpu="mi300x", env={ALLOWS: "0"})
    assert "context-within-the-model" in rules(result)
    assert result.image is not None
    assert ALLOWS not in result.image.sets
    assert "SGLANG_USE_AITER" in result.image.sets


def test_a_command_that_names_its_image_is_believed() -> None:
    words = ("docker", "run", "lmsysorg/sglang:v0.5.23-rocm700-mi30x", "python", "-m")
    use = image_use(None, find_gpu("mi300x"), words, {}, READ)
    assert use is not None
    assert (use.id, use.why) == ("rocm", "command")


def test_what_an_image_sets_is_not_what_no_rule_covers() -> None:
    assert check(LONG, gpu="mi300x").not_judged_flags == ()


def test_an_unknown_image_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="'rocm'"):
        find_image("rcom")


def test_an_image_for_another_platform_is_refused() -> None:
    with pytest.raises(UsageError, match=r"hip.*cuda"):
        check(LONG, gpu="b200", image="rocm")


def test_ids_complete() -> None:
    assert {"none", "rocm"} <= set(ids("images"))


def test_recommend_rests_on_the_image() -> None:
    pins = {"context_length": 200000}
    assert recommend(gpu="mi300x", model="llama-3.1-8b", pins=pins, top=1).rows
    assert not recommend(gpu="mi300x", model="llama-3.1-8b", pins=pins, top=1, image="none").rows


def test_the_machine_reads_the_image(capsys: pytest.CaptureFixture[str]) -> None:
    command = f"-- {' '.join(LONG)}"
    code, out, _ = answer(f"check --gpu mi300x --format json {command}", capsys)
    assert code == 0
    assert json.loads(out)["image"] == {"id": "rocm", "why": "assumed", "sets": {ALLOWS: "1", "SGLANG_USE_AITER": "1"}}
    code, out, _ = answer(f"check --gpu mi300x --image none --format json {command}", capsys)
    assert code == 1
    assert json.loads(out)["image"] is None
    code, out, _ = answer("recommend --gpu mi300x --model qwen3-8b --top 1 --format json", capsys)
    assert json.loads(out)["image"]["id"] == "rocm"
    code, out, err = answer("recommend --gpu mi300x --model qwen3-8b --format flags", capsys)
    assert "SGLANG_" not in out
    assert "--image none" in err


def test_every_case_has_its_own_image(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    case = {"argv": LONG, "hardware": "mi300x"}
    lines = [case, {**case, "image": "none"}, {**case, "env": {ALLOWS: "0"}}, {**case, "image": "rcom"}]
    file = tmp_path / "cases.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    _, out, _ = answer(f"check --cases {file}", capsys)
    replies = [json.loads(line) for line in out.splitlines()]
    assert [reply.get("verdict") for reply in replies] == ["accepts", "refuses", "refuses", None]
    assert [reply.get("image") and reply["image"]["id"] for reply in replies] == ["rocm", None, "rocm", None]
    assert "'rocm'" in replies[3]["error"]
    _, out, _ = answer(f"check --cases {file} --image none", capsys)
    assert json.loads(out.splitlines()[0])["verdict"] == "refuses"
