"""The console script as a process: what it prints arrives whole, and it leaves with the command's exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def run(*words: str, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "recommender", *words]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, timeout=120)


@pytest.mark.parametrize(
    ("words", "code"), [(("--version",), 0), (("explain", "no-such-law-at-all"), 1), (("chekc",), 2)]
)
def test_the_exit_code_is_the_commands(words: tuple[str, ...], code: int) -> None:
    assert run(*words).returncode == code


def test_a_long_answer_arrives_whole() -> None:
    answer = run("rules", "list", "--format", "json")
    assert answer.returncode == 0
    assert len(answer.stdout) > 100_000  # more than a pipe holds
    assert answer.stdout.rstrip().endswith(("]", "}"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
@pytest.mark.parametrize("words", [("rules", "list", "--format", "json"), ("--version",)])
def test_a_full_disk_is_said(words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        answer = run(*words, stdout=full.fileno())
    assert answer.returncode == 2
    assert answer.stderr == "recommender: cannot write the answer: No space left on device\n"


def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = f"{sys.executable} -m recommender rules list | head -1; exit ${{PIPESTATUS[0]}}"
    answer = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=120)
    assert answer.returncode == 0
    assert not answer.stderr
