"""What a person reads: whole conversations with check and recommend, word for word.

`RECOMMENDER_GOLDEN=write pytest tests/test_conversations.py` writes them anew; read the difference before you commit it.
"""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

from recommender.cli import run

GOLDEN = Path(__file__).with_name("golden")
LLAMA = (
    "python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct --speculative-algorithm EAGLE3 "
    "--speculative-draft-model-path yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"
)
KIMI = "python -m sglang.launch_server --model-path moonshotai/Kimi-Linear-48B-A3B-Instruct --tp 2"
CONVERSATIONS = {
    "check-two-laws": (1, f"check --gpu b200 -- {LLAMA} --attention-backend trtllm_mha --speculative-eagle-topk 4"),
    "check-kda-tree": (
        1,
        f"check --gpu b200 -- {KIMI} --speculative-algorithm NGRAM --speculative-ngram-max-bfs-breadth 4 "
        "--linear-attn-verify-backend flashinfer --mamba-ssm-dtype bfloat16",
    ),
    "check-valid": (
        0,
        f"check --gpu h100 -- {LLAMA} --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4 "
        "--max-running-requests 64",
    ),
    "check-parser": (1, f"check --gpu h100 -- {LLAMA} --speculative-num-stepz 3 --attention-backend fa9"),
    "check-unknown-model": (
        0,
        "check --gpu h100 -- python -m sglang.launch_server --model-path nobody/knows --page-size 1",
    ),
    "check-unknown-draft": (
        0,
        "check --gpu h100 -- --model-path qwen3-8b --speculative-algorithm DFLASH --speculative-draft-model-path nobody/knows",
    ),
    "check-assumed-image": (0, "check --gpu mi300x -- --model-path llama-3.1-8b --context-length 200000"),
    "check-no-image": (1, "check --gpu mi300x --image none -- --model-path llama-3.1-8b --context-length 200000"),
    "check-image-misspelt": (2, "check --gpu mi300x --image rcom -- --model-path llama-3.1-8b"),
    "check-variables": (
        0,
        "check --gpu h100 --env SGLANG_USE_AITR=1 --env SGLANG_ENABLE_PP_SPEC=on -- --model-path llama-3.1-8b",
    ),
    "recommend-assumed-image": (0, "recommend --gpu 8xmi300x --model deepseek-ai/DeepSeek-V3 --top 2"),
    "recommend-excluded": (
        0,
        "recommend --gpu b200 --top 1 --model meta-llama/Llama-3.1-8B-Instruct --draft lmsys/sglang-EAGLE-LLaMA3-Instruct-8B",
    ),
    "check-eagle3-with-eagle-head": (
        1,
        "check --gpu h100 -- --model-path llama-3.1-8b --speculative-algorithm EAGLE3 "
        "--speculative-draft-model-path lmsys/sglang-EAGLE-LLaMA3-Instruct-8B",
    ),
    "check-draft-of-another-vocabulary": (
        0,
        "check --gpu h100 -- --model-path llama-3.1-8b --speculative-algorithm EAGLE3 "
        "--speculative-draft-model-path Tengyunw/qwen3_8b_eagle3",
    ),
    "recommend-deepseek": (0, "recommend --gpu b200 --gpus 8 --model deepseek-ai/DeepSeek-V3 --concurrency 32"),
    "recommend-chain-only": (
        0,
        f"recommend --gpu b200 --top 3 -- {LLAMA} --attention-backend trtllm_mha",
    ),
    "recommend-clash": (
        1,
        f"recommend --gpu b200 -- {LLAMA} --attention-backend trtllm_mha --speculative-eagle-topk 4",
    ),
    "recommend-too-big": (1, "recommend --gpu h100 --gpus 1 --model deepseek-ai/DeepSeek-V3"),
}


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_conversation(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, words = CONVERSATIONS[name]
    assert run(shlex.split(words)) == code
    printed = capsys.readouterr()
    text = f"$ recommender {words}\n{printed.out}{'--- stderr' + chr(10) + printed.err if printed.err else ''}"
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("RECOMMENDER_GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
    long = [
        line for line in printed.out.splitlines() if len(line) > 80 and " --" not in line and not line.startswith("--")
    ]
    assert not long, "a line is wider than 80 columns and is no command to copy"


def answer(words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = run(shlex.split(words))
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_flags_are_nothing_but_flags(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = answer("recommend --gpu b200 --gpus 8 --model deepseek-ai/DeepSeek-V3 --format flags", capsys)
    assert code == 0
    assert out.count("\n") == 1
    assert all(word.startswith("--") or not word.startswith("-") for word in out.split())
    assert "--speculative-num-steps 5" in out
    assert "--tp-size 8" in out
    assert "--model-path" not in out
    assert err.startswith("recommender: ")


def test_flags_beside_a_command_are_only_what_it_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = answer(
        f"recommend --gpu b200 --format flags -- {LLAMA} --attention-backend trtllm_mha --tp 1", capsys
    )
    assert code == 0
    assert "--attention-backend" not in out.split()
    assert "--speculative-algorithm" not in out
    assert "--page-size 64" in out


def test_a_whole_command_checks_clean(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = answer(f"recommend --gpu b200 --format command -- {LLAMA} --attention-backend trtllm_mha", capsys)
    assert code == 0
    assert out.startswith("python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct")
    code, out, _ = answer(f"check --gpu b200 --format json -- {out}", capsys)
    assert code == 0
    report = json.loads(out)
    assert report["verdict"] == "accepts"
    assert {"schema", "rulebook", "sglang", "judged_as"} <= set(report)


def test_yaml_is_what_the_engine_reads(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    import yaml

    code, out, _ = answer("recommend --gpu b200 --gpus 8 --model deepseek-ai/DeepSeek-V3 --format yaml", capsys)
    assert code == 0
    content = yaml.safe_load(out)
    assert content["speculative-num-steps"] == 5
    (tmp_path / "launch.yaml").write_text(out)
    code, out, _ = answer(
        f"check --gpu 8xb200 -- python -m sglang.launch_server --config {tmp_path}/launch.yaml", capsys
    )
    assert code == 0, out


def test_json_carries_what_it_rests_on(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = answer("recommend --gpu b200 --gpus 8 --model deepseek-ai/DeepSeek-V3 --format json --top 2", capsys)
    assert code == 0
    report = json.loads(out)
    assert {"schema", "rulebook", "sglang", "judged_as", "rows"} <= set(report)
    assert len(report["rows"]) == 2
    assert report["rows"][0]["settings"]["speculative_algorithm"] == "EAGLE"


def test_unknown_rows_are_printed_only_on_request(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = tmp_path / "model"
    config.mkdir()
    (config / "config.json").write_text('{"architectures": ["NobodyKnowsForCausalLM"], "model_type": "llama"}')
    words = f"recommend --gpu h100 --model {config} --format flags"
    code, out, err = answer(words, capsys)
    assert (code, out) == (1, "")
    assert "--allow-unknown" in err
    code, out, _ = answer(words + " --allow-unknown", capsys)
    assert code == 0
    assert out.startswith("--")


@pytest.mark.parametrize(
    ("words", "hints"),
    [
        ("check --gpu b20 -- x", ["b200"]),
        ("recommend --model x", ["--gpu"]),
        ("recommend --gpu b200", ["--model"]),
        ("recommend --gpu b200 --model deepseek-v33", ["deepseek-v3", "config.json"]),
        ("recommend --gpu b200 --model deepseek-v3 --set topkk=1", ["topk"]),
        ("recommend --gpu b200 --model deepseek-v3 --set topk", ["NAME=VALUE"]),
        ("recommend --gpu b200 --model deepseek-v3 --set topk=many", ["topk", "many"]),
        ("recommend --gpu b200 --model deepseek-v3 --format tabel", ["table"]),
        ("check --gpu b200", ["--"]),
        ("check --gpu b200 --sglang newest -- --model-path x", ["newest", "0.5.23"]),
        ("check --cases /nonexistent", ["/nonexistent"]),
        ("recommend --gpu b200 -- python -m sglang.launch_server --model-path x --page-sizee 1", ["page-size"]),
    ],
)
def test_misuse_names_the_word_and_the_way(
    words: str, hints: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    code, out, err = answer(words, capsys)
    assert code == 2
    assert out == ""
    assert err.count("\n") <= 2
    for hint in hints:
        assert hint in err


def test_cases(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    good = {"id": 1, "sglang": "0.5.23", "hardware": "b200", "argv": ["--model-path", "llama-3.1-8b"]}
    bad = {**good, "id": "two", "argv": ["--model-path", "llama-3.1-8b", "--page-sizze", "1"]}
    later = {**good, "id": 3, "sglang": "0.5.99"}
    strange = {**good, "id": 4, "hardware": "b2000"}
    lines = [
        json.dumps(good),
        json.dumps(bad),
        json.dumps(later),
        "not json",
        json.dumps(strange),
        "[]",
        json.dumps({"id": 5, "argv": "x"}),
    ]
    cases.write_text("\n".join(lines) + "\n")
    code, out, _ = answer(f"check --cases {cases} --format jsonl", capsys)
    replies = [json.loads(line) for line in out.splitlines()]
    assert code == 2
    assert [reply.get("verdict") for reply in replies] == ["accepts", "refuses", "accepts", None, None, None, None]
    assert replies[1]["findings"][0]["bites"] == "parse"
    assert replies[0]["resolved"]["page_size"] == 1 or replies[0]["resolved"]["page_size"] == 64
    assert "b200" in replies[4]["error"]
    assert all("error" in reply for reply in replies[3:])
    cases.write_text(json.dumps(good) + "\n")
    assert answer(f"check --cases {cases} --format jsonl", capsys)[0] == 0
