"""Replays recorded engine answers against our check; it must not need the engine, and any difference fails."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from recommender.laws import Rule
from recommender.rulebook import load_rulebook
from recommender.session import Session, open_session
from tests.oracle.agree import Tally, compare, grouped
from tests.oracle.examples import Example, all_examples, objection
from tests.oracle.folders import write_folders
from tests.oracle.installation import installed
from tests.oracle.records import Answered, RecordError, question, read, recorded_file, write
from tests.oracle.replay import Replayed, clashes, replay, without

COVERED = [release.version for release in reversed(load_rulebook().releases)]
RELEASES = [version for version in COVERED if recorded_file(version).exists()]  # the newest first
PUBLISHED = [version for version in COVERED if recorded_file(version, "corpus").exists()]
ASKED = [version for version in COVERED if recorded_file(version, "examples").exists()]
WIDE, WIDE_OF_OLDER = 2000, 1100  # launches
DATA = Path(__file__).parent / "data"
UNSHOWN, WITHOUT_EXAMPLES = "unshown-rules.txt", "rules-without-examples.txt"
each_release = pytest.mark.parametrize("release", RELEASES)
each_asked_release = pytest.mark.parametrize("release", ASKED)
newest_release = pytest.mark.parametrize("release", COVERED[:1])  # the lists of unshown rules are about this one
_folders = tempfile.TemporaryDirectory()


@cache
def session(release: str) -> Session:
    """Our check as of a release, where every checkpoint is a folder with a config.json."""
    root = Path(_folders.name, "checkpoints")
    return open_session(load_rulebook(), release, root if root.exists() else write_folders(root), installed())


@cache
def answers(release: str, what: str = "answers") -> list[Answered]:
    """The recorded answers."""
    try:
        return read(recorded_file(release, what))[1]
    except RecordError as error:
        pytest.fail(str(error), pytrace=False)


@cache
def replayed(release: str) -> list[Replayed]:
    """Every recorded launch, walked once."""
    examples = answers(release, "examples") if release in ASKED else []
    published = answers(release, "corpus") if release in PUBLISHED else []
    return replay(session(release), [*answers(release), *published, *examples])


def shown(launch: Answered) -> str:
    """A launch as a line."""
    return (
        f"{launch.device}: {' '.join(f'{name}={value}' for name, value in launch.env.items())} {' '.join(launch.argv)}"
    )


@each_release
def test_we_say_what_the_engine_says(release: str) -> None:
    tally = Tally()
    for item in replayed(release):
        tally.add(item.comparison)
    causes = [
        f"{len(launches)} x {cause}\n    {launches[0].device}: {' '.join(launches[0].argv)}"
        for cause, launches in grouped(tally.causes)
    ]
    assert not causes, "\n".join([*causes[:20], *tally.lines()])


@cache
def listed(name: str) -> frozenset[str]:
    """The rules of a list in tests/data; what stands behind # says why."""
    lines = (line.partition("#")[0].strip() for line in (DATA / name).read_text(encoding="utf-8").splitlines())
    return frozenset(filter(None, lines))


def unshown() -> frozenset[str]:
    """The rules that the engine cannot show on this kind of machine, and those that no launch shows yet."""
    return listed(UNSHOWN) | listed(WITHOUT_EXAMPLES)


def test_the_newest_and_an_older_release_are_recorded() -> None:
    for known in (RELEASES, ASKED):
        assert known[:1] == COVERED[:1]
        assert len(known) > 1


@each_release
def test_the_record_is_wide_enough(release: str) -> None:
    launches = answers(release)
    assert len(launches) >= (WIDE if release == COVERED[0] else WIDE_OF_OLDER)
    assert len({launch.device for launch in launches}) >= 17
    refused = sum(not launch.ok for launch in launches)
    assert 0.2 < refused / len(launches) < 0.8


@each_release
def test_few_differences_are_excused(release: str) -> None:
    excused = [item for item in replayed(release) if item.comparison.excused]
    assert len(excused) <= 0.03 * len(replayed(release))


@each_release
def test_writing_rules_of_one_phase_exclude_each_other(release: str) -> None:
    found = clashes(replayed(release), session(release))
    lines = [
        f"{name}: {earlier}, then {later} ({' '.join(launch.argv)} on {launch.device})"
        for (name, earlier, later), launch in found.items()
    ]
    assert not lines, "\n".join(lines)


@each_asked_release
def test_the_engine_objects_to_no_example(release: str) -> None:
    known = {
        (launch.device, launch.argv, tuple(sorted(launch.env.items()))): launch
        for launch in answers(release, "examples")
    }
    rules = session(release).edition.rules
    problems, unasked = [], 0
    for example in _examples(release):
        answer = known.get(question(example.engine_device, example.argv, example.env))
        unasked += answer is None
        problem = objection(example, answer, rules.values()) if answer else ""
        if problem and example.rule.id not in unshown():
            problems.append(f"{example.name}: {problem}")
    assert not problems, "\n".join(problems)
    # Some the machine cannot answer; of an older release few editions are its own, so a few of them are a larger share.
    assert unasked <= max(5, 0.05 * len(list(_examples(release)))), (
        f"{unasked} examples have no recorded answer: record them anew"
    )


def _examples(release: str) -> Iterator[Example]:
    return (
        example for example in all_examples(load_rulebook()) if example.release == release and example.engine_device
    )


@pytest.mark.long
@newest_release
def test_every_rule_is_noticed(release: str) -> None:
    """With a rule out of the plan a recorded answer differs, or the engine confirms an example that only this rule meets."""
    here = session(release)
    acting: dict[str, list[Answered]] = {}
    for item in replayed(release):
        for name in item.acted:
            acting.setdefault(name, []).append(item.comparison.launch)
    confirmed = {example.rule.id for example in _confirmed(release)}
    unnoticed = {
        rule.id
        for rule in here.edition.rules.values()
        if rule.id not in confirmed and not any(_notices(here, rule, launch) for launch in acting.get(rule.id, ())[:60])
    }
    missed = sorted(unnoticed - unshown())
    assert not missed, f"{len(missed)} rules can go unnoticed: {' '.join(missed)}"
    noticed = sorted(listed(UNSHOWN) - unnoticed)
    assert not noticed, f"noticed by now, take off {UNSHOWN}: {' '.join(noticed)}"


def _confirmed(release: str) -> Iterator[Example]:
    """Examples that break or write, and to which the engine does not object, as far as it can be asked about their device."""
    known = {question(launch.device, launch.argv, launch.env): launch for launch in answers(release, "examples")}
    for example in all_examples(load_rulebook()):
        if example.release == release and (example.kind == "breaks" or example.becomes):
            answer = known.get(question(example.engine_device, example.argv, example.env))
            if not example.engine_device or (answer and not objection(example, answer, ())):
                yield example


def _notices(here: Session, rule: Rule, launch: Answered) -> bool:
    if rule.parse:
        return False
    with without(here, rule.id):
        again = compare(here, launch)
    return bool(again.differences) or again.excused


@pytest.mark.parametrize("damage", ["cut", "changed", "missing", "foreign", "counted"])
def test_damage_is_one_clear_line(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl.xz"
    launch: dict[str, Any] = {"device": "b200", "argv": ("--model-path", "x"), "ok": True, "resolved": {"page_size": 1}}
    write(path, "0.5.23", ["page_size"], [Answered(**launch)] * 50)
    whole = path.read_bytes()
    assert len(read(path)[1]) == 50
    if damage == "cut":
        path.write_bytes(whole[: len(whole) // 2])
    elif damage == "changed":
        path.write_bytes(whole[:40] + bytes([whole[40] ^ 255]) + whole[41:])
    elif damage == "missing":
        path.unlink()
    elif damage == "foreign":
        path.write_bytes(b"{}")
    else:
        import lzma

        path.write_bytes(lzma.compress(b"\n".join(lzma.decompress(whole).splitlines()[:-1])))
    with pytest.raises(RecordError, match=r"answers\.jsonl\.xz") as raised:
        read(path)
    assert len(str(raised.value).splitlines()) == 1
