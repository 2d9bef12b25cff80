"""Launches in units, programs, scripts with lists, files, and under another program's prefix; hostile texts."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recommender.catalogue import CommandLine
from recommender.cli import run
from recommender.errors import RecommenderError, UsageError
from recommender.forms.command import Command, shipped_launchers, split_text, without_prefix
from recommender.forms.script import inlined
from recommender.forms.text import split_form
from recommender.rulebook import load_rulebook
from recommender.terms import UNKNOWN

LINE: CommandLine = load_rulebook().edition("0.5.23").command_line
OTHERS = frozenset(load_rulebook().settings["internal"])
SCRIPT = """#!/bin/bash
# starts the engine
MODEL=llama-3.1-8b          # the model
ARGS=(
  --model-path "$MODEL"     # in quotes
  --speculative-algorithm NGRAM
  --served-model-name 'two words'
)
ARGS+=(--tp 2)
python3 -m sglang.launch_server "${ARGS[@]}" --port 1 2>&1 | tee log
"""
UNIT = """[Unit]
Description=an engine
[Service]
Environment="SGLANG_ENABLE_PP_SPEC=1" TP=2
Environment=EXTRA="--dp-size 2"
EnvironmentFile=-/etc/engine.env
ExecStart=/usr/bin/python3 -m sglang.launch_server \\
    --model-path llama-3.1-8b --tp ${TP} $EXTRA --host %H
[Install]
WantedBy=multi-user.target
"""
PROGRAM = """
import os
import sglang as sgl
os.environ["SGLANG_ENABLE_PP_SPEC"] = "1"
os.environ["HF_TOKEN"] = secret()
STEPS = 3
common = {"tp_size": 2, "log_level": "error"}
def main(tokens):
    return sgl.Engine(model_path="llama-3.1-8b", speculative_algorithm="EAGLE3", speculative_num_steps=STEPS,
                      speculative_num_draft_tokens=tokens, disable_radix_cache=True, enable_mixed_chunk=False, **common)
"""


def form(text: str) -> Command:
    return split_form(text, LINE, OTHERS)


def flags(words: tuple[str, ...]) -> dict[str, Any]:
    parsed, refused = LINE.parse_all(words)
    assert not refused
    return dict(parsed.asked)


def test_a_list_of_a_script_is_put_in_its_place() -> None:
    asked = flags(form(SCRIPT).argv)
    assert asked["model_path"] == "llama-3.1-8b"
    assert (asked["tp_size"], asked["served_model_name"], asked["port"]) == (2, "two words", 1)


@pytest.mark.parametrize(
    ("script", "argv"),
    [
        ("A=(--tp 2)\nsglang serve x ${A[@]}", ["--tp", "2"]),
        ('A=("--served-model-name" "a b")\nsglang serve x "${A[@]}"', ["--served-model-name", "a b"]),
        ("A='--tp 2 --dp 2'\nsglang serve x $A", ["--tp", "2", "--dp", "2"]),
        ("export N=2; sglang serve x --tp ${N}", ["--tp", "2"]),
        ("N=2 && sglang serve x --tp=$N", ["--tp=2"]),
        ("N=2\nsglang serve x --served-model-name '$N'", ["--served-model-name", "$N"]),
        # what a shell would not see so, or nobody can know
        ("N=2 sglang serve x --tp $N", ["--tp", "$N"]),
        ("N=2\nN=4\nsglang serve x --tp $N", ["--tp", "$N"]),
        ("N=$(nproc)\nsglang serve x --tp $N", ["--tp", "$N"]),
        ("for N in 1 2; do\nN=2\ndone\nsglang serve x --tp $N", ["--tp", "$N"]),
        ("N=2\nread N\nsglang serve x --tp $N", ["--tp", "$N"]),
        ("if true; then\nN=2\nfi\nsglang serve x --tp $N", ["--tp", "$N"]),
        ("A=(--tp 2)\nif true; then\nA+=(--dp 2)\nfi\nsglang serve x ${A[@]}", ["--tp", "2", "${A[@]}"]),
        ("A=($(flags))\nsglang serve x ${A[@]}", ["${A[@]}"]),
        ("sglang serve x --tp $N", ["--tp", "$N"]),
    ],
)
def test_only_what_certainly_holds_is_put_in(script: str, argv: list[str]) -> None:
    assert list(split_text(script).argv) == ["--model-path", "x", *argv]


PIECES = [
    "A=(--p 1)\n",
    "A+=(--q '2 3')\n",
    "N=4\n",
    "N='a b'\n",
    "if false; then\n",
    "A+=(--r)\nfi\n",
    "# c\n",
    "true\n",
]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=5))
def test_what_is_put_in_is_what_a_shell_would_put_in(pieces: list[str]) -> None:
    last = '\nprintf \'%s|\' "${A[@]}" $N "$N"\n'
    script = "".join(pieces) + last
    before = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    written = inlined(script)
    after = subprocess.run(["bash", "-c", written], capture_output=True, text=True, check=False)
    if before.returncode == 0 and "${A[@]}" not in written:
        assert after.stdout == before.stdout


def test_a_unit_is_a_launch_with_its_variables() -> None:
    command = form(UNIT)
    assert command.argv[:6] == ("--model-path", "llama-3.1-8b", "--tp", "2", "--dp-size", "2")
    assert command.env["SGLANG_ENABLE_PP_SPEC"] == "1"
    assert command.env_files == ("/etc/engine.env",)
    with pytest.raises(UsageError, match="2 launches"):
        form(UNIT + "ExecStart=/usr/bin/sglang serve x\n")
    with pytest.raises(UsageError, match="it runs"):
        form("[Service]\nExecStart=/bin/true\n")


def test_a_program_is_a_launch_by_the_keywords_of_its_call() -> None:
    command = form(PROGRAM)
    asked = flags(command.argv)
    assert command.env == {"SGLANG_ENABLE_PP_SPEC": "1", "HF_TOKEN": UNKNOWN}
    assert (asked["model_path"], asked["speculative_num_steps"], asked["tp_size"]) == ("llama-3.1-8b", 3, 2)
    assert asked["speculative_num_draft_tokens"] is UNKNOWN
    assert asked["disable_radix_cache"] is True
    assert "enable_mixed_chunk" not in asked


@pytest.mark.parametrize(
    "text",
    [
        'ServerArgs(model_path="m", tp_size=2)',
        'server_args = sglang.srt.server_args.ServerArgs(model_path="m", tp_size=1 + 1 if False else 2, **{"tp_size": 2})',
        'dict(model_path="m", tp_size=2)',
        '{"model_path": "m", "tp_size": 2}',
        'kwargs = {"model_path": "m", "tp_size": 2}',
    ],
)
def test_a_mapping_of_keywords_is_a_launch(text: str) -> None:
    asked = flags(form(text).argv)
    assert (asked["model_path"], asked["tp_size"]) == ("m", 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('Engine(model_path="m", tp_sizes=2)', "did you mean tp_size"),
        ('Engine(model_path="m")\nEngine(model_path="n")', "2 engines"),
        ("gone.sh", "gone.sh: no such file"),
    ],
)
def test_what_is_wrong_is_one_line(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as raised:
        form(text)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        'n = 1\nn = 2\nEngine(model_path="m", tp_size=n)',
        'for n in (1, 2):\n    Engine(model_path="m", tp_size=n)',
        'def f(n=2):\n    Engine(model_path="m", tp_size=n)',
        'Engine(model_path="m", tp_size=__import__("os").system("false"))',
    ],
)
def test_what_a_program_computes_is_not_known(text: str) -> None:
    assert flags(form(text).argv)["tp_size"] is UNKNOWN


def test_arguments_that_cannot_be_read_are_said() -> None:
    assert form('kw = {"tp_size": 2}\nkw["dp_size"] = 2\nEngine(model_path="m", **kw)').unread
    assert form('kw = {"tp_size": 2}\nkw.update(x)\nEngine(model_path="m", **kw)').unread
    assert form('Engine(model_path="m", **load())').unread
    assert form('Engine(model_path="m", enable_mixed_chunk=flag)').unread == ("enable_mixed_chunk",)


def test_a_prefixed_flag_is_the_engines(capsys: pytest.CaptureFixture[str]) -> None:
    own = shlex.split("--model-path llama-3.1-8b --sglang-speculative-algorithm NGRAM --sglang-tp=2")
    assert run(["check", "--gpu", "h100", "--format", "json", "--", *own]) == 0
    printed = capsys.readouterr()
    values = json.loads(printed.out)["resolved"]
    assert values["speculative_algorithm"]["value"] == "NGRAM"
    assert "read --sglang-speculative-algorithm as --speculative-algorithm, --sglang-tp as --tp" in printed.err


def test_another_program_hands_its_prefixed_flags_on() -> None:
    text = """
SGLANG_ARGS=(
   --rollout-num-gpus-per-engine 2
   --sglang-speculative-algorithm NGRAM
)
ray job submit -- python3 train.py --hf-checkpoint llama-3.1-8b --lr 3 ${SGLANG_ARGS[@]} --sglang-enable-mixed-chunk --seed 1
"""
    command = form(text)
    argv = without_prefix(command.argv, shipped_launchers(), lambda name: len(LINE.options(name)) == 1)
    asked = flags(argv)
    assert asked == {
        "model_path": "llama-3.1-8b", "tp_size": 2, "speculative_algorithm": "NGRAM", "enable_mixed_chunk": True,
    }  # fmt: skip
    assert "--sglang-*" in command.wrapper
    nameless = form("python3 train.py --sglang-tp 2 --lr 3")
    assert "${MODEL}" in nameless.argv


@pytest.mark.parametrize(
    ("name", "text"), [("a.sh", SCRIPT), ("a.service", UNIT), ("a.py", PROGRAM.replace("=tokens", "=4"))]
)
def test_a_file_is_read_as_its_text_is(
    name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(text)
    assert form(name) == form(text)
    for command in ("check", "recommend"):
        run([command, "--gpu", "h100", "--format", "json", "--", name])
        assert json.loads(capsys.readouterr().out)
    (tmp_path / name).write_bytes(b"\xff\xfe\x00")
    assert run(["check", "--gpu", "h100", "--", name]) == 2
    assert "no text" in capsys.readouterr().err


WORDS = "A=( ) ' \" $A ${A[@]} ; # \\ Engine( model_path= ExecStart= if fi { } sglang serve --sglang-tp 1 , **".split(
    " "
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([*WORDS, "\n", " ", "[Service]\n", "sglang serve x"]), max_size=14).map("".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        command = form(text)
    except RecommenderError:
        return
    assert all(isinstance(word, str) for word in command.argv)


def test_a_text_may_hold_a_container_that_runs_a_text() -> None:
    text = "docker run -e A=1 lmsysorg/sglang:latest bash -c 'sglang serve x --tp 2 | tee log'"
    command = form(text)
    assert (command.env, command.argv) == ({"A": "1"}, ("--model-path", "x", "--tp", "2"))
    assert shlex.split(command.text(["--tp", "4"]))[-1] == "sglang serve --tp 4 | tee log"


@pytest.mark.parametrize(
    ("image", "release", "said"),
    [
        ("lmsysorg/sglang:v0.5.19-rocm700-mi30x", "0.5.19", "judged as the image's SGLang 0.5.19"),
        ("rocm/sgl-dev:0.5.16-x", "0.5.16", "judged as the image's SGLang 0.5.16"),
        ("lmsysorg/sglang:v0.5.10-rocm700", "0.5.23", "0.5.10 is older than every covered release"),
        ("lmsysorg/sglang:latest", "0.5.23", ""),
        ("other/image:v0.5.19", "0.5.23", ""),
    ],
)
def test_an_official_image_names_the_release(
    image: str, release: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["docker", "run", image, "sglang", "serve", "llama-3.1-8b"]
    run(["check", "--gpu", "mi300x", "--format", "json", "--", *words])
    printed = capsys.readouterr()
    assert json.loads(printed.out)["judged_as"] == release
    assert said in printed.err
    run(["check", "--sglang", "0.5.21", "--gpu", "mi300x", "--format", "json", "--", *words])
    assert json.loads(capsys.readouterr().out)["judged_as"] == "0.5.21"


def test_an_image_of_another_platform_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split("docker run --device=/dev/kfd lmsysorg/sglang:v0.5.23-rocm700-mi30x sglang serve llama-3.1-8b")
    assert run(["check", "--gpu", "h100", "--", *words]) == 2
    assert "made for hip devices" in capsys.readouterr().err
