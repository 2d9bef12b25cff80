"""Whole conversations at the terminal against golden files, the examples that --help shows, and names for the shell.

`RECOMMENDER_GOLDEN=write pytest tests/test_cli.py` writes the golden files anew; read the difference before you commit it.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recommender
from recommender.cli import run
from recommender.commands.completion import ids
from recommender.commands.helptext import HELP, ending
from recommender.library import load
from recommender.rulebook import load_rulebook

GOLDEN = Path(__file__).parent / "golden"
UPDATE = os.environ.get("RECOMMENDER_GOLDEN") == "write"
# Help is drawn by typer, each release of it a little differently.
DRAWN_BY = "0.29."
COMMANDS = ("check", "recommend", "explain", "rules list", "rules show", "rules diff", "profiles list", "profiles show")
JOBS = (
    "check",
    "check --cases",
    "recommend",
    "explain",
    "rules list",
    "rules show",
    "rules diff",
    "profiles list",
    "profiles show",
)

TRACEBACK = """\
[2026-11-01 10:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/arg_groups/resolution_hooks.py", line 139, in run_hook
    hook(server_args)
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/arg_groups/speculative_hook.py", line 1150, in _handle_eagle_family
    assert server_args.speculative_num_steps is not None
AssertionError

[2026-11-01 10:00:00] Received sigquit from a child process. It usually means the child failed.
"""
LOAD = """\
[2026-11-01 10:00:00] server_args=ServerArgs(model_path='x', speculative_num_steps=3, speculative_eagle_topk=4)
ValueError: trtllm_mla backend can only be used with MLA models.
launch_server.py: error: unrecognized arguments: --nsa-decode-backend fa3
"""

# name: (command line, stdin)
CONVERSATIONS = {
    "explain-rule": ("explain trtllm-mha-chain-only", ""),
    "explain-rule-that-sets": ("explain nextn-means-eagle", ""),
    "explain-message": ("explain 'trtllm_mha backend only supports topk = 1 for speculative decoding.'", ""),
    "explain-bare-assert": ("explain -", TRACEBACK),
    "explain-several": ("explain -", LOAD),
    "explain-json": ("explain - --format json", LOAD),
    "explain-needs-the-traceback": (
        """explain "TypeError: '>' not supported between instances of 'NoneType' and 'int'" """,
        "",
    ),
    "explain-nothing": ("explain 'torch.OutOfMemoryError: CUDA out of memory.'", ""),
    "explain-misspelt": ("explain trtllm-mha-chian-only", ""),
    "explain-bad-format": ("explain x --format jsn", ""),
    "explain-bad-release": ("explain x --sglang newest", ""),
    "rules-list": ("rules list --topic ngram", ""),
    "rules-list-bad-topic": ("rules list --topic atention", ""),
    "rules-show": ("rules show trtllm-mha-chain-only", ""),
    "rules-show-json": ("rules show nextn-means-eagle --format json", ""),
    "rules-show-misspelt": ("rules show nextn-means-eagel", ""),
    "rules-diff-launch": (
        "rules diff 0.5.19 0.5.23 --gpu b200 -- sglang serve --model-path qwen3-next-80b-a3b --tp 4 "
        "--mamba-scheduler-strategy extra_buffer --cuda-graph-max-bs 8 --speculative-algorithm NEXTN",
        "",
    ),
    "profiles-list": ("profiles list gpus", ""),
    "profiles-list-bad-kind": ("profiles list gpu", ""),
    "profiles-show-device": ("profiles show 8xb200", ""),
    "profiles-show-draft-json": ("profiles show eagle3-qwen3-8b --format json", ""),
    "profiles-show-misspelt": ("profiles show deepseek-v33", ""),
    "version": ("--version", ""),
    "version-json": ("--version --format json", ""),
    "help": ("--help", ""),
    **{f"help-{name.replace(' ', '-')}": (f"{name} --help", "") for name in (*COMMANDS, "rules", "profiles")},
}


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 80 columns without colours."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    for name in ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)


def type_in(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Let a command read a text from stdin."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8"))


def said(printed: str) -> str:
    """What was printed, without what differs between two builds."""
    text = printed.replace(load_rulebook().digest, "<digest>")
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_conversation_is_golden(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if name.startswith("help") and not version("typer").startswith(DRAWN_BY):
        pytest.skip(f"drawn by typer {DRAWN_BY}x")
    command, stdin = CONVERSATIONS[name]
    type_in(monkeypatch, stdin)
    code = run(shlex.split(command))
    printed = capsys.readouterr()
    text = f"$ recommender {command.strip()}\n{said(printed.out)}"
    text += f"--- stderr\n{said(printed.err)}" if printed.err else ""
    text += f"--- exit {code}\n"
    file = GOLDEN / f"{name}.txt"
    if UPDATE:
        GOLDEN.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == text, "if this is meant: RECOMMENDER_GOLDEN=write"


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_conversation_fits_the_terminal(name: str) -> None:
    lines = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8").split("--- stderr")[0].splitlines()[1:]
    if "json" not in name:
        assert [line for line in lines if len(line) > 80] == []


# --- help -------------------------------------------------------------------------------------------------------------


def examples() -> list[tuple[str, str]]:
    document = load().one(HELP)
    return [(job, line) for job, lines in document.items() for line in lines]


def test_every_command_has_two_examples() -> None:
    document = load().one(HELP)
    assert tuple(document) == JOBS
    for job, lines in document.items():
        assert len(lines) == 2, job
        assert all(f"recommender {job.split(' -')[0]}" in line for line in lines), job
        assert all(option in line for line in lines for option in job.split() if option.startswith("-")), job
        assert all(len(row) <= 78 for line in lines for row in line.splitlines()), job


@pytest.mark.parametrize("command", COMMANDS)
def test_help_ends_with_the_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command.split(), "--help"]) == 0
    out = capsys.readouterr().out
    assert out.rstrip().endswith(ending(command))
    own = [line for job, line in examples() if job == command or job.startswith(f"{command} -")]
    assert own
    assert all(row.strip() in out for line in own for row in line.splitlines())


@pytest.mark.parametrize(("job", "line"), examples())
def test_an_example_runs_in_a_shell(job: str, line: str) -> None:
    shell = f'recommender() {{ {shlex.quote(sys.executable)} -m recommender "$@"; }}\n{line}\n'
    root = str(Path(recommender.__file__).parents[1])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))
    done = subprocess.run(
        ["bash", "-c", shell],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "80"},
    )
    assert done.returncode in ((0, 1) if job == "check" else (0,)), done.stderr
    assert done.stdout
    assert "internal error" not in done.stderr


# --- machines and shells ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "explain trtllm-mha-chain-only",
        "rules list",
        "rules list --topic ngram",
        "rules show nextn-means-eagle",
        "profiles list",
        "profiles list drafts",
        "profiles show b200",
        "profiles show qwen3-8b",
        "--version",
    ],
)
def test_json_is_json_and_says_which_rulebook(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*shlex.split(command), "--format", "json"]) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert document["schema"].startswith("recommender.")
    assert document["rulebook"] == load_rulebook().digest
    assert printed.err == ""
    if command.split(maxsplit=1)[0] in ("explain", "rules"):
        assert document["judged_as"] == load_rulebook().releases[-1].version


def test_a_release_that_is_not_covered_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "list", "--topic", "ngram", "--sglang", "99.1"]) == 0
    assert "99.1 is not covered" in capsys.readouterr().out
    assert run(["explain", "trtllm-mha-chain-only", "--sglang", "99.1", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["sglang"] == "99.1"
    assert document["judged_as"] != "99.1"


def test_a_config_of_one_s_own_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 4}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert run(["profiles", "show", str(tmp_path), "--format", "json"]) == 0
    facts = json.loads(capsys.readouterr().out)["facts"]
    assert facts["model.num_layers"]["value"] == 4
    assert facts["model.num_layers"]["source"] == "config.json: num_hidden_layers"
    assert not facts["model.weight_gib"]["known"]
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.json").write_text("[1", encoding="utf-8")
    assert run(["profiles", "show", str(broken)]) == 2
    err = capsys.readouterr().err
    assert "config.json" in err
    assert len(err.splitlines()) == 1


def test_every_profile_says_where_each_fact_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ids("profiles"):
        assert run(["profiles", "show", name, "--format", "json"]) == 0
        facts = json.loads(capsys.readouterr().out)["facts"]
        assert all(fact["source"] for fact in facts.values()), name


def test_names_complete_without_parsing_a_rule() -> None:
    assert ids("rules") == sorted(load_rulebook().rules)
    assert set(ids("topics")) == {editions[0].topic for editions in load_rulebook().rules.values()}
    assert ids("releases") == [release.version for release in load_rulebook().releases]
    assert "b200" in ids("gpus")
    assert {"b200", "qwen3-8b", "eagle3-qwen3-8b"} <= set(ids("profiles"))
    assert "qwen3-8b" in ids("models")
    assert ids("no such kind") == []


@pytest.mark.parametrize("kind", ["gpus", "models", "drafts", "profiles", "rules", "topics", "releases"])
def test_a_completed_name_is_a_name(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = {"rules": ["explain"], "topics": ["rules", "list", "--topic"], "releases": ["rules", "list", "--sglang"]}
    for name in ids(kind)[:3]:
        assert run([*command.get(kind, ["profiles", "show"]), name]) == 0
    capsys.readouterr()


words = st.sampled_from(
    [
        "explain",
        "rules",
        "profiles",
        "list",
        "show",
        "--format",
        "json",
        "--topic",
        "--sglang",
        "0.5.23",
        "b200",
        "-h",
        "--version",
    ]
)


@given(st.lists(st.one_of(words, st.text(max_size=12)), max_size=6))
@settings(max_examples=100, deadline=None)
def test_no_command_line_ends_in_a_traceback(argv: list[str]) -> None:
    if argv[:1] in (["check"], ["recommend"]) or "-" in argv:
        return
    assert run(argv) in (0, 1, 2)


def test_the_package_names_its_api_and_imports_nothing_for_it() -> None:
    code = (
        "import sys, recommender; print('recommender.api' in sys.modules); recommender.check; print(dir(recommender))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.startswith("False\n")
    assert set(recommender.__all__) <= set(dir(recommender))
    assert all(getattr(recommender, name) is not None for name in recommender.__all__)
    assert callable(recommender.explain)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = recommender.nothing
