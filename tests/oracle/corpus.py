"""Turns published launch commands into cases, as they stand or with a few changes; it must not judge them.

    python -m tests.oracle.corpus 0.5.23 > cases.jsonl                                  # those whose flags that release knows
    python -m tests.oracle.corpus 0.5.23 --changes 3 --seed 1 --count 500 > cases.jsonl # one to three changes each
    python -m tests.oracle.corpus 0.5.23 --judge                                        # ask the engine, hold our check against it
    python -m tests.oracle.corpus 0.5.23 --judge --recorded                             # the same by the recorded answers

The commands are tests/data/launch-commands.jsonl, each with the repository, path and commit it was published in; the
checkpoints that they name resolve to profiles by their names, and by tests/data/corpus-models.yaml where a command names
a folder or a served name. Commands with a checkpoint that no profile describes are counted and left out.
"""

from __future__ import annotations

import argparse
import json
import random
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml

from recommender import profiles
from recommender.api import check_launch
from recommender.errors import UsageError
from recommender.forms.command import split_command
from recommender.rulebook import load_rulebook
from recommender.session import Session
from recommender.terms import Unknown, Verdict

from .agree import Tally, compare, early
from .client import OracleError
from .devices import USUAL
from .record import answers, reported
from .records import DATA, Answered, RecordError, lines_of, question, read, recorded_file, write
from .sample import add_wild_flags, flags_of, spans_of

COMMANDS = DATA / "launch-commands.jsonl"
NAMES = DATA / "corpus-models.yaml"
ANY_DEVICE = "h200"  # for a command that names none
EVERY = 3  # of the commands that a release accepts, which are kept where not all of them are
CHECKPOINT_FLAGS = ("--model-path", "--model", "--speculative-draft-model-path", "--speculative-draft-model")


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A published launch as flags; `unmapped` names a checkpoint that no profile describes."""

    id: str
    device: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    releases: tuple[str, ...]
    complete: bool
    unmapped: str = ""


def published() -> list[Published]:
    """Every command of the corpus that starts this engine on a device we know, in its order.

    Raises:
        RecordError, OSError, ValueError: a file of the corpus is missing or damaged.
    """
    names: Mapping[str, str] = yaml.safe_load(NAMES.read_text(encoding="utf-8"))
    known = {profile: profile for profile in profiles.gpu_ids()}
    found = []
    for document in lines_of(COMMANDS):
        device = document.get("hardware") or ANY_DEVICE
        if device in known:
            found.append(_published(document, device, names))
    return found


def _published(document: Mapping[str, Any], device: str, names: Mapping[str, str]) -> Published:
    split = split_command(shlex.split(document["command"]))
    argv, unmapped = _with_profiles(split.argv, names, document["model"])
    return Published(
        id=document["id"],
        device=device,
        argv=argv,
        env={name: value for name, value in split.env.items() if not isinstance(value, Unknown)},
        releases=tuple(document["flags_known_in"]),
        complete=document["complete_command"],
        unmapped=unmapped,
    )


def _with_profiles(argv: Sequence[str], names: Mapping[str, str], model: str) -> tuple[tuple[str, ...], str]:
    """The words with each checkpoint named as its profile is, and the first that none describes.

    `model` is what the publication says the first one is, for a command that names a folder.
    """
    words, unmapped, before = [], "", ""
    expected = False
    for word in argv:
        flag, equals, value = word.partition("=")
        given = word if expected else value if equals and flag in CHECKPOINT_FLAGS else None
        if given is not None:
            made = profile_of(given, names) or (
                "" if "draft" in (before if expected else flag) else profile_of(model, names)
            )
            unmapped = unmapped or ("" if made else given)
            words.append((made or given) if expected else f"{flag}={made or given}")
        else:
            words.append(word)
        expected = not expected and word in CHECKPOINT_FLAGS
        before = word
    return tuple(words), unmapped


def profile_of(name: str, names: Mapping[str, str]) -> str:
    """The id of the profile of a checkpoint as a command names it; empty when there is none."""
    try:
        return profiles.find_model(names.get(name, name)).id or ""
    except UsageError:
        return ""


def as_published(release: str) -> list[Published]:
    """The complete commands that can be judged as of a release: it knows their flags, and profiles their checkpoints."""
    return [each for each in published() if each.complete and release in each.releases and not each.unmapped]


def case(each: Published) -> dict[str, Any]:
    """A published launch as a case."""
    return {"id": f"corpus-{each.id}", "device": each.device, "argv": list(each.argv), "env": dict(each.env)}


def changed(seed: int, count: int, changes: int, release: str) -> Iterator[dict[str, Any]]:
    """Cases of published launches with one to `changes` changes each: a device, a flag left out, moved or added."""
    usable = [each for each in published() if not each.unmapped]
    rng = random.Random(f"corpus-{seed}-{release}")
    flags = flags_of(release)
    donors = [span for each in usable for span in spans_of(each.argv) if span[0] not in CHECKPOINT_FLAGS]
    for number in range(count):
        each = rng.choice(usable)
        spans, device = spans_of(each.argv), each.device
        for _ in range(rng.randint(1, changes)):
            kind = rng.choice(("device", "without", "other", "flag", "flag", "wild"))
            movable = [place for place, span in enumerate(spans) if span[0] not in CHECKPOINT_FLAGS]
            if kind == "device":
                device = rng.choice(USUAL)
            elif kind == "without" and movable:
                del spans[rng.choice(movable)]
            elif kind == "other" and movable:
                place = rng.choice(movable)
                same = [span for span in donors if span[0] == spans[place][0]]
                spans[place] = rng.choice(same or [spans[place]])
            elif kind == "flag":
                spans.append(rng.choice(donors))
            else:
                words: list[str] = []
                add_wild_flags(rng, words, flags)
                spans.append(tuple(words))
        argv = [word for span in spans for word in span]
        if device == "cpu" and "--device" not in argv:
            argv += ["--device", "cpu"]
        yield {"id": f"corpus-{each.id}-{seed}-{number}", "device": device, "argv": argv, "env": dict(each.env)}


def by_device(cases: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Cases by their device."""
    found: dict[str, list[dict[str, Any]]] = {}
    for each in cases:
        found.setdefault(each["device"], []).append(each)
    return found


class Way(StrEnum):
    """What our answer to a refused launch leads to."""

    CURED = "with a cure of the whole launch"
    EXPLAINED = "no setting cures it, and the answer says why"
    OPEN = "with a cure of the only law that is known to refuse it; not every law can be judged"
    HELPED = "with a cure of a law, and more in the way"
    BARE = "without a cure"


def way_out(session: Session, launch: Answered) -> Way:
    """What our answer to a launch that the engine refuses leads to."""
    gpu = profiles.find_gpu(launch.device)
    result = check_launch(session, session.read(launch.argv, launch.env), gpu)
    if result.cures:
        return Way.CURED
    if any(finding.no_cure for finding in result.findings):
        return Way.EXPLAINED
    broken = [finding for finding in early(result.findings) if finding.verdict is Verdict.BREAKS]
    if len(broken) == 1 and broken[0].cures:
        return Way.OPEN
    return Way.HELPED if any(finding.cures for finding in broken) else Way.BARE


def recorded(release: str) -> dict[tuple[Any, ...], Answered]:
    """The recorded answers to published commands and to changed ones, by the question.

    Raises:
        RecordError: nothing is recorded, or the file is damaged.
    """
    found = read(recorded_file(release, "corpus"))[1]
    return {question(each.device, each.argv, each.env): each for each in found}


def replies_of(release: str, kept: bool) -> list[Answered]:
    """The engine's answers to the commands of a release: those that are recorded, or all of them asked anew.

    Raises:
        OracleError: the engine could not be asked.
        RecordError: the recorded answers cannot be used.
    """
    cases = [case(each) for each in as_published(release)]
    if not kept:
        asked = answers(release, by_device(cases), fields=reported(release), writes=True)
        return [reply for replies in asked for reply in replies]
    known = recorded(release)
    keys = [question(each["device"], each["argv"], each["env"]) for each in cases]
    return [known[key] for key in keys if key in known]


def thin(release: str, path: Path) -> int:
    """Keep of recorded answers each question once: all refusals, and every third acceptance; returns how many.

    Raises:
        RecordError: the answers cannot be used.
    """
    head, found = read(path)
    once = list({question(each.device, each.argv, each.env): each for each in found}.values())
    accepted = [each for each in once if each.ok]
    kept = [each for each in once if not each.ok] + accepted[::EVERY]
    return write(recorded_file(release, "corpus"), release, head["fields"], kept)


def judge(release: str, kept: bool) -> int:
    """Hold our check against the engine's answers to the complete commands of a release, and print where they part."""
    from .compare import report, session_of

    session, tally = session_of(release), Tally()
    ways: dict[Way, list[Answered]] = {way: [] for way in Way}
    replies = replies_of(release, kept)
    for reply in replies:
        tally.add(compare(session, reply))
        if reply.ok is False:
            ways[way_out(session, reply)].append(reply)
    report(tally, 2)
    for way in (Way.HELPED, Way.BARE):
        for message, count in Counter(reply.message[:90] for reply in ways[way]).most_common():
            print(f"{count:5d}  refused {way.value}: {message}")
    known = [each for each in published() if each.complete and release in each.releases]
    unmapped = Counter(each.unmapped for each in known if each.unmapped)
    print(f"{len(replies)} commands judged, {sum(unmapped.values())} left out: {dict(unmapped)}; refused:")
    for way, found in ways.items():
        print(f"{len(found):5d}  {way.value}")
    return 1 if tally.causes or ways[Way.BARE] else 0


def main() -> int:
    """Print cases as JSON lines, or judge."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("release", choices=[release.version for release in load_rulebook().releases])
    options.add_argument("--changes", type=int, default=0)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--count", type=int, default=100)
    options.add_argument("--judge", action="store_true")
    options.add_argument("--recorded", action="store_true", help="judge by the recorded answers, without the engine")
    options.add_argument(
        "--thin", type=Path, help="keep of the answers in this file the refusals and a part of the others"
    )
    given = options.parse_args()
    try:
        if given.thin:
            print(f"{thin(given.release, given.thin)} launches kept")
            return 0
        if given.judge:
            return judge(given.release, given.recorded)
        cases = (
            changed(given.seed, given.count, given.changes, given.release)
            if given.changes
            else map(case, as_published(given.release))
        )
        for each in cases:
            print(json.dumps(each))
    except (OracleError, RecordError, OSError, ValueError) as error:
        print(f"corpus: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
