"""Turns published launch commands into cases, as they stand or with a few changes; it must not judge them.

    python -m tests.oracle.corpus 0.5.23 > cases.jsonl                                  # those whose flags that release knows
    python -m tests.oracle.corpus 0.5.23 --changes 3 --seed 1 --count 500 > cases.jsonl # one to three changes each
    python -m tests.oracle.corpus 0.5.23 --judge                                        # ask the engine, hold our check against it

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
from typing import Any

import yaml

from recommender import profiles
from recommender.api import check_launch
from recommender.errors import UsageError
from recommender.forms.command import split_command
from recommender.rulebook import load_rulebook
from recommender.session import Session
from recommender.terms import Unknown

from .agree import Tally, compare, early
from .client import OracleError
from .devices import USUAL
from .record import answers, reported
from .records import DATA, Answered
from .sample import add_wild_flags, flags_of

COMMANDS = DATA / "launch-commands.jsonl"
NAMES = DATA / "corpus-models.yaml"
ANY_DEVICE = "h200"  # for a command that names none
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
        OSError, ValueError: a file of the corpus is missing or damaged.
    """
    names: Mapping[str, str] = yaml.safe_load(NAMES.read_text(encoding="utf-8"))
    known = {profile: profile for profile in profiles.gpu_ids()}
    found = []
    for line in COMMANDS.read_text(encoding="utf-8").splitlines():
        document = json.loads(line)
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
    donors = [span for each in usable for span in _spans(each.argv) if span[0] not in CHECKPOINT_FLAGS]
    for number in range(count):
        each = rng.choice(usable)
        spans, device = _spans(each.argv), each.device
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


def _spans(argv: Sequence[str]) -> list[tuple[str, ...]]:
    """The words as flags with what follows each."""
    found: list[tuple[str, ...]] = []
    for word in argv:
        if word.startswith("--") or not found:
            found.append((word,))
        else:
            found[-1] = (*found[-1], word)
    return found


def by_device(cases: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Cases by their device."""
    found: dict[str, list[dict[str, Any]]] = {}
    for each in cases:
        found.setdefault(each["device"], []).append(each)
    return found


def without_cure(session: Session, launch: Answered) -> bool:
    """Whether a launch that the engine refuses comes back without a change that helps."""
    gpu = profiles.find_gpu(launch.device)
    result = check_launch(session, session.read(launch.argv, launch.env), gpu)
    return not any(finding.cures for finding in early(result.findings)) and not result.cures


def judge(release: str) -> int:
    """Ask the engine about the complete commands of a release and print where our check parts from it."""
    from .compare import report, session_of

    session, tally = session_of(release), Tally()
    bare: list[Answered] = []
    cases = [case(each) for each in as_published(release)]
    for replies in answers(release, by_device(cases), fields=reported(release), writes=True):
        for reply in replies:
            tally.add(compare(session, reply))
            if reply.ok is False and without_cure(session, reply):
                bare.append(reply)
    report(tally, 2)
    for message, count in Counter(reply.message[:90] for reply in bare).most_common():
        print(f"{count:5d}  refused without a cure: {message}")
    known = [each for each in published() if each.complete and release in each.releases]
    unmapped = Counter(each.unmapped for each in known if each.unmapped)
    print(
        f"{len(cases)} commands judged, {sum(unmapped.values())} left out: {dict(unmapped)}; refused without a cure: {len(bare)}"
    )
    return 1 if tally.causes or bare else 0


def main() -> int:
    """Print cases as JSON lines, or judge."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("release", choices=[release.version for release in load_rulebook().releases])
    options.add_argument("--changes", type=int, default=0)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--count", type=int, default=100)
    options.add_argument("--judge", action="store_true")
    given = options.parse_args()
    try:
        if given.judge:
            return judge(given.release)
        cases = (
            changed(given.seed, given.count, given.changes, given.release)
            if given.changes
            else map(case, as_published(given.release))
        )
        for each in cases:
            print(json.dumps(each))
    except (OracleError, OSError, ValueError) as error:
        print(f"corpus: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
