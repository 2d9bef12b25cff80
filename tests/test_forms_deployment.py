"""Launches in a deployment's YAML, and the files of variables that containers are given."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from recommender.cli import run
from recommender.errors import UsageError
from recommender.forms.command import split_command
from recommender.forms.deployment import is_deployment, split_deployment
from recommender.forms.env_file import read_env_files
from recommender.terms import UNKNOWN

COMPOSE = """
services:
  cache: {image: redis, command: redis-server}
  engine:
    image: lmsysorg/sglang:v0.5.23-rocm700-mi30x
    entrypoint: python3 -m sglang.launch_server
    command: --model-path llama-3.1-8b --context-length 200000
    environment:
      SGLANG_USE_AITER: 1
      SGLANG_GRPC_PORT: ${PORT}
      PRICE: a$$b
    env_file: [.env, {path: more.env}]
"""
KUBERNETES = """
apiVersion: v1
kind: Service
---
apiVersion: apps/v1
kind: Deployment
spec:
  template:
    spec:
      initContainers:
        - {name: wait, command: [sh, -c, sleep 1]}
      containers:
        - name: engine
          image: lmsysorg/sglang:latest
          command: [bash, -c]
          args: ["export SGLANG_USE_AITER=1; python3 -m sglang.launch_server --model-path llama-3.1-8b"]
          env:
            - {name: SGLANG_ENABLE_PP_SPEC, value: "1"}
            - {name: HF_TOKEN, valueFrom: {secretKeyRef: {name: a, key: b}}}
"""


def test_a_compose_service_is_a_launch() -> None:
    assert is_deployment(COMPOSE)
    split = split_deployment(COMPOSE)
    assert split.argv == ("--model-path", "llama-3.1-8b", "--context-length", "200000")
    assert split.env == {"SGLANG_USE_AITER": "1", "SGLANG_GRPC_PORT": UNKNOWN, "PRICE": "a$b"}
    assert split.env_files == (".env", "more.env")
    assert split.image in split.around


def test_a_compose_environment_may_be_a_list() -> None:
    split = split_deployment(
        COMPOSE.replace(
            "      SGLANG_USE_AITER: 1\n      SGLANG_GRPC_PORT: ${PORT}\n      PRICE: a$$b\n",
            "      - SGLANG_USE_AITER=0\n      - HOME\n",
        )
    )
    assert split.env == {"SGLANG_USE_AITER": "0", "HOME": UNKNOWN}


def test_a_kubernetes_container_is_a_launch() -> None:
    split = split_deployment(KUBERNETES)
    assert split.argv == ("--model-path", "llama-3.1-8b")
    assert split.env == {"SGLANG_ENABLE_PP_SPEC": "1", "HF_TOKEN": UNKNOWN, "SGLANG_USE_AITER": "1"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (COMPOSE + COMPOSE.replace("services:", "").replace("engine:", "second:"), r"2 launches \(engine, second\)"),
        ("services:\n  cache: {image: redis, command: redis-server}\n", "cache: no launch"),
        ("services:\n  cache: {image: redis}\n", "no container with a command"),
        ("services:\n  - [\n", "no YAML"),
        ('services:\n  a: {command: "python \'x"}\n', "as a shell would"),
    ],
)
def test_a_deployment_without_the_one_launch_says_so(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        split_deployment(text)


def test_a_shell_text_is_no_deployment() -> None:
    assert not is_deployment("export A=1\npython -m sglang.launch_server --model-path services:\n")


@pytest.mark.parametrize("option", ["--env-file vars.env", "--env-file=vars.env"])
def test_a_container_names_files_of_variables(option: str) -> None:
    words = shlex.split(f"docker run {option} -e A=1 image python -m sglang.launch_server --model-path x")
    assert split_command(words).env_files == ("vars.env",)


def test_a_file_of_variables_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.env").write_text("# words\n\nA=1\nB='two words'\nHOME\nexport C=3\n")
    (tmp_path / "b.env").write_text("A=2\n")
    found, missing = read_env_files(["a.env", "gone.env", "b.env"], tmp_path)
    assert found == {"A": "2", "B": "two words", "HOME": UNKNOWN, "C": "3"}
    assert missing == ("gone.env",)


def test_a_deployment_is_checked_with_its_variables(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1\n")
    text = COMPOSE.replace("      SGLANG_GRPC_PORT: ${PORT}\n", "").replace("-rocm700-mi30x", "")
    (tmp_path / "compose.yaml").write_text(text)
    assert run(shlex.split("check --gpu b200 --format json -- compose.yaml")) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["not_judged"] == ["the variables of more.env"]
    assert report["findings"] == []
    (tmp_path / ".env").write_text("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=0\n")
    assert run(shlex.split("check --gpu b200 --format json -- compose.yaml")) == 1


def test_a_deployment_names_its_image(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--gpu", "mi300x", "--format", "json", "--", COMPOSE.replace("${PORT}", "1234")]) == 0
    assert json.loads(capsys.readouterr().out)["image"]["why"] == "command"
