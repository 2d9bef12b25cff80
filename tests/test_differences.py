"""Two releases held side by side: laws, flags, and one launch under both."""

from __future__ import annotations

import json
import shlex
from itertools import pairwise

import pytest

from recommender.cli import run
from recommender.differences import changed_definitions, differences, flag_shifts, launch_differences
from recommender.profiles import find_gpu
from recommender.reports import Shift
from recommender.rulebook import load_rulebook
from recommender.session import open_session

BOOK = load_rulebook()
RELEASES = [release.version for release in BOOK.releases]
FIRST, LAST = RELEASES[0], RELEASES[-1]
LAUNCHES = (
    "--model-path qwen3-8b",
    "--model-path deepseek-v3 --tp-size 8 --speculative-algorithm NEXTN --cuda-graph-max-bs 8",
    "--model-path qwen3-next-80b-a3b --tp-size 4 --mamba-scheduler-strategy extra_buffer --speculative-algorithm NEXTN",
)


@pytest.mark.parametrize("release", RELEASES)
def test_a_release_does_not_differ_from_itself(release: str) -> None:
    found = differences(BOOK, release, release)
    assert found.laws == ()
    assert found.flags == ()


@pytest.mark.parametrize(("old", "new"), [*pairwise(RELEASES), (FIRST, LAST)])
def test_turned_round_what_appeared_has_ended(old: str, new: str) -> None:
    there, back = differences(BOOK, old, new), differences(BOOK, new, old)
    for one, other in ((there, back), (back, there)):
        appeared = {law.rule for law in one.laws if law.shift is Shift.APPEARED}
        assert appeared == {law.rule for law in other.laws if law.shift is Shift.ENDED}
        assert appeared.isdisjoint(BOOK.edition(one.old).rules)
        came = {flag.flag for flag in one.flags if flag.shift is Shift.APPEARED}
        assert came <= set(BOOK.edition(one.new).command_line.names) - set(BOOK.edition(one.old).command_line.names)


@pytest.mark.parametrize(("old", "new"), [*pairwise(RELEASES), (FIRST, LAST)])
def test_every_law_and_flag_is_the_same_or_listed(old: str, new: str) -> None:
    found = differences(BOOK, old, new)
    before, after = BOOK.edition(old), BOOK.edition(new)
    listed = {law.rule for law in found.laws}
    for name in {*before.rules, *after.rules} - listed:
        assert before.rules[name] is after.rules[name] or before.rules[name].when == after.rules[name].when
    spelled = {word for flag in found.flags for word in (flag.flag, flag.now)}
    for name in set(before.command_line.names) ^ set(after.command_line.names):
        assert name in spelled, name


def test_a_definition_changes_those_that_read_it() -> None:
    old = {"a": ("f", {"is": "1"}), "b": ("f", {"is": "a + 1"}), "c": ("f", {"is": "2"})}
    new = {**old, "a": ("f", {"is": "3"})}
    assert changed_definitions(old, new) == {"a", "b"}


def test_flags_of_one_release_do_not_shift() -> None:
    line = BOOK.edition(LAST).command_line
    assert flag_shifts(line, line) == ()


@pytest.mark.parametrize("words", LAUNCHES)
def test_a_launch_shows_only_what_touches_it(words: str) -> None:
    sessions = (open_session(BOOK, FIRST), open_session(BOOK, LAST))
    argv = shlex.split(words)
    launches = (sessions[0].read(argv), sessions[1].read(argv))
    found = launch_differences(sessions, launches, argv, find_gpu("b200"))
    assert found.launch is not None
    whole = differences(BOOK, FIRST, LAST)
    assert set(found.laws) <= set(whole.laws)
    assert set(found.flags) <= set(whole.flags)
    typed = {word for word in argv if word.startswith("--")}
    gone = {flag.flag for flag in whole.flags if flag.shift is Shift.ENDED}
    assert typed & gone <= {flag.flag for flag in found.flags}
    for item in found.launch.values:
        assert found.launch.old.values[item.setting].value != found.launch.new.values[item.setting].value
    assert {item.rule for item in found.launch.goes} <= {item.rule for item in found.launch.old.findings}
    assert {item.rule for item in found.launch.comes} <= {item.rule for item in found.launch.new.findings}


def test_a_device_needs_a_launch(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "diff", FIRST, LAST, "--gpu", "b200"]) == 2
    assert "after --" in capsys.readouterr().err


def test_what_machines_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "diff", FIRST, LAST, "--format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["schema"] == "recommender.diff/1"
    assert said["launch"] is None
    assert said["laws"]
    assert said["flags"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--gpu mi300x -- sglang serve --model-path qwen3-8b", "Assumed: the image rocm"),
        ("--gpu mi300x --image none -- sglang serve --model-path qwen3-8b", ""),
        ("--gpu h100 -- python -m dynamo.sglang --model-path qwen3-8b --its-own-flag x", "Dynamo's worker"),
    ],
)
def test_a_launch_is_read_as_check_reads_it(words: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    gpu, command = words.split(" -- ")
    assert run(["check", *gpu.split(), "--sglang", LAST, "--format", "json", "--", *command.split()]) == 0
    checked = json.loads(capsys.readouterr().out)
    assert run(["rules", "diff", FIRST, LAST, *gpu.split(), "--format", "json", "--", *command.split()]) == 0
    launch = json.loads(capsys.readouterr().out)["launch"]
    assert launch["image"] == checked["image"]
    assert launch["verdicts"][1] == checked["verdict"]
    assert run(["rules", "diff", FIRST, LAST, *gpu.split(), "--", *command.split()]) == 0
    printed = capsys.readouterr()
    said = printed.out + printed.err
    assert told in said if told else "image" not in said
