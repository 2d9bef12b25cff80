"""Commands as people hold them, taken apart and written again."""

from __future__ import annotations

import json
import shlex
from functools import partial

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from recommender.errors import RecommenderError, UsageError
from recommender.forms import command as forms
from recommender.forms.command import Command, make_launchers
from recommender.library import data_root
from recommender.terms import UNKNOWN

LAUNCHERS = make_launchers(
    yaml.safe_load((data_root() / "constraints" / "sglang" / "flags" / "launchers.yaml").read_text(encoding="utf-8"))
)
split_command = partial(forms.split_command, launchers=LAUNCHERS)
split_text = partial(forms.split_text, launchers=LAUNCHERS)
FLAGS = ("--model-path", "x", "--tp", "8")


@pytest.mark.parametrize(
    ("words", "env", "argv"),
    [
        ("python -m sglang.launch_server --model-path x --tp 8", {}, FLAGS),
        ("python3.12 -u -m sglang.launch_server --model-path x --tp 8", {}, FLAGS),
        ("/opt/venv/bin/sglang serve --model-path x --tp 8", {}, FLAGS),
        ("sglang serve x --tp 8", {}, FLAGS),
        ("sglang serve --model-type llm x --tp 8", {}, FLAGS),
        ("sglang serve x --model-type=auto --tp 8", {}, FLAGS),
        ("A=1 B= python -m sglang.launch_server --model-path x --tp 8", {"A": "1", "B": ""}, FLAGS),
        ("env A=1 B=x=y numactl -N 0 sglang serve --model-path x --tp 8", {"A": "1", "B": "x=y"}, FLAGS),
        ("export A=1 && python -m sglang.launch_server --model-path x --tp 8", {"A": "1"}, FLAGS),
        ("A=$HOME nohup python -m sglang.launch_server --model-path x --tp 8", {"A": UNKNOWN}, FLAGS),
        ("python /sgl-workspace/sglang/python/sglang/launch_server.py --model-path x --tp 8", {}, FLAGS),
        ("srun --export=ALL,B=2 -N 1 sglang serve --model-path x --tp 8", {}, FLAGS),
        (
            "docker run --gpus all --ulimit memlock=-1 -e A=1 --env=B=2 -eC=3 -e D --env E=4 img sglang serve x --tp 8",
            {"A": "1", "B": "2", "C": "3", "E": "4"},
            FLAGS,
        ),
        ("T=9 docker run -e T img sglang serve --model-path x --tp 8", {"T": "9"}, FLAGS),
        ("docker run img env A=1 sglang serve --model-path x --tp 8", {"A": "1"}, FLAGS),
        ("--model-path x --tp 8", {}, FLAGS),
        ("A=1 --model-path x --tp 8", {"A": "1"}, FLAGS),
    ],
)
def test_launches_are_found(words: str, env: dict[str, object], argv: tuple[str, ...]) -> None:
    command = split_command(words.split())
    assert command.env == env
    assert command.argv == argv


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("python -m sglang.bench_serving --backend sglang", "sglang.bench_serving is a benchmark"),
        ("python -m sglang.bench_one_batch --model x", "benchmark"),
        ("python -m sglang_router.launch_router --x", "router"),
        ("python -m dynamo.vllm --model-path x", "another project's launcher"),
        ("vllm serve x", "another project's launcher"),
        ("python serve.py --model-path x", "it runs 'python'"),
        ("python -m my.server --x", "it runs 'my.server'"),
        ("sglang generate --model-path x", "it runs 'sglang'"),
        ("sglang serve x --model-type diffusion", "--model-type diffusion"),
        ("sglang serve x --model-type", "names no server"),
        ("ls -l", "it runs 'ls'"),
    ],
)
def test_what_is_no_launch_is_said(words: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        split_command(words.split())


def test_a_wrapper_hands_its_flags_on() -> None:
    command = split_command("A=1 python3 -m dynamo.sglang --model-path x --tp 2".split())
    assert command.argv == ("--model-path", "x", "--tp", "2")
    assert command.env == {"A": "1"}
    assert command.wrapper == "Dynamo's worker"
    assert split_command("python -m sglang.launch_server --model-path x".split()).wrapper == ""


def test_continuation_words_are_dropped() -> None:
    words = ["python", "-m", "sglang.launch_server", "\\\n", "--model-path", "x", "\\", "--tp", "8 \\\n", "\n"]
    assert split_command(words).argv == FLAGS
    assert split_command(["--chat-template", "", "--tokenizer-path", "a b"]).argv[1::2] == ("", "a b")


def test_a_script_is_read_as_a_shell_would() -> None:
    text = """
    # how we start it
    export A=1; export B="x y"
    python -m sglang.launch_server \\
        --model-path x \\
        --tp $TP --json-model-override-args '{"a": "b c"}' > log.txt 2>&1 &
    sleep 10
    """
    command = split_text(text)
    assert command.env == {"A": "1", "B": "x y"}
    assert command.argv == ("--model-path", "x", "--tp", "$TP", "--json-model-override-args", '{"a": "b c"}')
    assert command.tail[:3] == (">", "log.txt", "2>&1")
    written = command.text()
    assert split_text(written) == command
    assert "--tp $TP " in written
    assert "B='x y' ;" in written


def test_a_command_in_quotes() -> None:
    words = ["docker", "run", "-e", "A=1", "img", "bash", "-lc", "B=2 sglang serve x --tp 8 | tee log"]
    command = split_command(words)
    assert command.env == {"A": "1", "B": "2"}
    assert command.argv == FLAGS
    written = command.text(["--model-path", "y"])
    assert shlex.split(written)[:-1] == words[:-1]
    assert shlex.split(written)[-1] == "B=2 sglang serve --model-path y | tee log"
    assert split_command(["python -m sglang.launch_server --model-path x --tp 8"]).argv == FLAGS
    with pytest.raises(UsageError, match="two quoted texts"):
        split_command(["ssh", "-c", "bash -c 'sglang serve x'"])
    with pytest.raises(UsageError, match="cannot be read as a shell would"):
        split_text("sglang serve 'x")


def test_nothing_is_an_empty_launch() -> None:
    assert split_command([]) == Command()


WORD = st.one_of(
    st.text(max_size=6),
    st.sampled_from(
        [
            "-m",
            "sglang.launch_server",
            "sglang",
            "serve",
            "docker",
            "-e",
            "A=1",
            "env",
            "-c",
            "bash",
            "--tp",
            "8",
            ";",
            ">",
            "$X",
        ]
    ),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(WORD, max_size=8))
def test_any_words_are_read_or_refused(words: list[str]) -> None:
    try:
        command = split_command(words)
    except RecommenderError:
        return
    assert all(isinstance(word, str) for word in command.argv)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(alphabet="ab -\"'${}\\;|&*=1", min_size=1, max_size=6), max_size=6))
def test_a_written_command_reads_back(values: list[str]) -> None:
    argv = [f"--x{value}" for value in values if "\\" not in value and "$" not in value]
    command = split_command(["A=b c", "sglang", "serve", *argv])
    assert shlex.split(command.text()) == ["A=b c", "sglang", "serve", *argv]


def test_a_wrappers_own_flags_are_not_judged(capsys: pytest.CaptureFixture[str]) -> None:
    from recommender.cli import run

    own = ["--model-path", "qwen3-8b", "--its-own-flag", "x"]
    assert run(["check", "--gpu", "h100", "--format", "json", "--", "python3", "-m", "dynamo.sglang", *own]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["not_judged"] == ["--its-own-flag", "x"]
    assert "Dynamo's worker" in printed.err
    assert run(["check", "--gpu", "h100", "--", "python3", "-m", "sglang.launch_server", *own]) == 1
