"""Holds our check against the engine and prints where they part; it must not change a rule or a record.

    python -m tests.oracle.compare                                  # the recorded answers; needs no engine
    python -m tests.oracle.compare --recorded FILE FILE             # other ones, each and together
    python -m tests.oracle.compare --live 0.5.23 --devices all --count 60 --seeds 901
    python -m tests.oracle.compare --live all --devices all --count 22 --seeds 901 --keep FOLDER     # every covered release
    python -m tests.oracle.compare --live 0.5.23 --examples         # every rule's examples; records the answers
    python -m tests.oracle.compare --at page_size                   # only causes that match; --show 5 launches of each

Exit 1 when anything differs.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from recommender.rulebook import load_rulebook
from recommender.session import Session, open_session
from recommender.versions import parse_release

from .agree import Tally, compare, grouped
from .client import OracleError, home
from .examples import Example, NoRuleError, all_examples, objection, rules_named
from .folders import kept_folders
from .installation import installed
from .record import add_draw_options, answers, cases_of, reported
from .records import Answered, RecordError, question, read, recorded_file, write


def session_of(release: str) -> Session:
    """Our check as of a release, where models/ID is a folder."""
    return open_session(load_rulebook(), release, kept_folders(home()), installed())


About = Callable[[str, Answered], Iterable[str]]


def report(tally: Tally, show: int, at: str = "", about: About | None = None) -> None:
    """Print what differs, by cause, then the counts; `about` says more of a cause, from one of its launches."""
    for cause, launches in grouped(tally.causes):
        if re.search(at, cause):
            say(f"{len(launches):5d}  {cause}")
            for launch in launches[:show]:
                env = "".join(f"{name}={value} " for name, value in launch.env.items())
                say(f"         {launch.device}: {env}{' '.join(launch.argv)}")
            for line in about(cause, launches[0]) if about else ():
                say(f"       {line}")
    for line in tally.lines():
        say(line)


def say(line: str) -> None:
    """Print."""
    print(line, flush=True)


def tally_of(session: Session, launches: Iterable[Answered], tally: Tally | None = None) -> Tally:
    """Compare every launch."""
    counted = tally or Tally()
    for launch in launches:
        counted.add(compare(session, launch))
    return counted


def ask_examples(
    release: str,
    examples: Sequence[Example],
    known: Mapping[tuple[Any, ...], Answered],
    keep: Path,
    besides: Sequence[Example] = (),
) -> dict[tuple[Any, ...], Answered]:
    """The engine's answers to examples by question, those of `known` without asking again; kept after each device.

    Of `besides`, examples that nobody asks about now, what is known stays in the file.

    Raises:
        OracleError: the engine could not be asked.
    """
    found: dict[tuple[Any, ...], Answered] = {}
    wanted: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {}
    becomes: dict[tuple[Any, ...], set[str]] = {}
    of_engine: set[str] = set()
    flags = load_rulebook().edition(release).command_line.fields
    for example in examples:
        device = example.engine_device
        if device:
            asked = question(device, example.argv, example.env)
            becomes.setdefault(asked, set()).update(example.becomes)
            of_engine.update(name for name in example.becomes if name in flags)
            wanted.setdefault(device, {})[asked] = {"argv": list(example.argv), "env": dict(example.env)}
    for asked, fields in becomes.items():
        answer = known.get(asked)
        seen = {name for _, written in answer.writes for name in written} if answer else set()
        if answer and (not answer.ok or fields & of_engine <= seen):
            found[asked] = answer
            del wanted[asked[0]][asked]
    left = {question(example.engine_device, example.argv, example.env) for example in besides} - becomes.keys()
    others = [known[asked] for asked in sorted(left & known.keys())]
    fields = {*reported(release), *(name for names in becomes.values() for name in names)}
    cases = {device: list(asked.values()) for device, asked in wanted.items() if asked}
    for replies in answers(release, cases, fields=fields, writes=True):
        for answer in replies:
            asked = question(answer.device, answer.argv, answer.env)
            found[asked] = _to_keep(answer, becomes[asked])
        print(f"{replies[0].device}: {len(replies)} answers", file=sys.stderr)
        write(keep, release, reported(release), (*found.values(), *others))
    write(keep, release, reported(release), (*found.values(), *others))
    return found


def _to_keep(answer: Answered, becomes: set[str]) -> Answered:
    """Of what the engine declared only the values that examples are about, and their last values."""
    said = [(name, {field: value}) for name, fields in answer.writes for field, value in fields.items()]
    if answer.ok:
        said += [("", {field: answer.resolved[field]}) for field in sorted(becomes) if field in answer.resolved]
    return replace(answer, writes=tuple((name, fields) for name, fields in said if set(fields) <= becomes))


def chosen_examples(examples: Sequence[Example], releases: Sequence[str], patterns: str) -> list[Example]:
    """The examples that some releases are asked about, of the rules that the patterns name.

    Raises:
        NoRuleError: a pattern matches no rule, or the rules that it matches have no example for these releases.
    """
    named = rules_named(patterns, dict.fromkeys(example.rule.id for example in examples))
    of_rules = [example for example in examples if example.rule.id in named]
    found = [example for example in of_rules if example.release in releases]
    if not found:
        others = ", ".join(sorted({example.release for example in of_rules}, key=parse_release))
        asked = ", ".join(releases)
        raise NoRuleError(f"--rules {patterns!r}: {asked} is asked about none of their examples, but {others} is")
    return found


def run_examples(release: str, named: Sequence[Example], show: int, fresh: bool, about: About | None = None) -> int:
    """Ask the engine about the examples of every rule that it was not asked about yet, and print where it objects."""
    session = session_of(release)
    every = [example for example in all_examples(session.book) if example.release == release]
    chosen = [example for example in named if example.release == release]
    path = recorded_file(release, "examples")
    before = {question(each.device, each.argv, each.env): each for each in read(path)[1]} if path.exists() else {}
    for example in chosen if fresh else ():
        before.pop(question(example.engine_device, example.argv, example.env), None)
    found = ask_examples(release, chosen, before, path, besides=every)
    problems = unasked = 0
    tally = Tally()
    for example in chosen:
        answer = found.get(question(example.engine_device, example.argv, example.env))
        if answer is None:
            unasked += 1
            continue
        tally.add(compare(session, answer))
        problem = objection(example, answer, session.edition.rules.values())
        if problem:
            problems += 1
            say(f"{example.name}: {problem}")
    say("")
    report(tally, show, about=about)
    say(f"examples: {len(chosen)}, objected to: {problems}, not asked: {unasked}")
    return 1 if problems or tally.causes else 0


def main() -> int:
    """Compare."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--live", metavar="RELEASES", help="ask the engine now: a list a,b,c, or all that are covered")
    options.add_argument(
        "--recorded", type=Path, nargs="+", help="files of answers; default: the tests' own of the newest release"
    )
    options.add_argument("--examples", action="store_true", help="with --live: every rule's examples")
    options.add_argument("--fresh", action="store_true", help="with --examples: ask anew")
    options.add_argument(
        "--rules", default="", help="with --examples: only rules whose id matches a pattern of a list a,b,c"
    )
    options.add_argument(
        "--keep", type=Path, help="with --live: a folder that keeps the answers too (examples: in the tests' own)"
    )
    options.add_argument("--show", type=int, default=2)
    options.add_argument("--at", default="", help="only causes that match this pattern")
    add_draw_options(options)
    given = options.parse_args()
    try:
        covered = [release.version for release in load_rulebook().releases]
        live = covered if given.live == "all" else given.live.split(",") if given.live else []
        if given.examples and live:
            chosen = chosen_examples(all_examples(load_rulebook()), live, given.rules)
            asked = [release for release in live if release in {example.release for example in chosen}]
            return max(run_examples(release, chosen, given.show, given.fresh) for release in asked)
        told = (live_tally(release, given) for release in live)
        held = (recorded_tally(path) for path in given.recorded or [recorded_file(covered[-1])])
        return run_all(told if live else held, given)
    except (NoRuleError, OracleError, RecordError) as error:
        print(f"oracle: {error}", file=sys.stderr)
        return 2


def run_all(tallies: Iterable[tuple[str, Tally]], given: argparse.Namespace) -> int:
    """Print each tally as soon as it is there, and what they come to together."""
    total, names = Tally(), []
    for name, tally in tallies:
        say(f"{name}:")
        report(tally, given.show, given.at)
        total.merge(tally)
        names.append(name)
    if len(names) > 1:
        say(f"{', '.join(names)}: {total.launches} launches")
        for line in total.lines():
            say(line)
    return 1 if total.causes else 0


def recorded_tally(path: Path) -> tuple[str, Tally]:
    """A file's name, and its launches compared."""
    head, launches = read(path)
    return path.name, tally_of(session_of(head["sglang"]), launches)


def live_tally(release: str, given: argparse.Namespace) -> tuple[str, Tally]:
    """Draw launches, ask the engine, compare."""
    session, tally = session_of(release), Tally()
    kept: list[Answered] = []
    for replies in answers(release, cases_of(given, release), fields=reported(release), writes=True):
        tally_of(session, replies, tally)
        kept.extend(replies)
        if given.keep:
            write(given.keep / f"answers-{release}.jsonl.xz", release, reported(release), kept)
        print(f"{release} {replies[0].device}: {len(replies)} answers", file=sys.stderr)
    return release, tally


if __name__ == "__main__":
    sys.exit(main())
