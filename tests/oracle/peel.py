"""Cures refused launches one refusal at a time and asks the engine again; it must not judge a launch itself.

    python -m tests.oracle.peel 0.5.23 --count 300 --seeds 4711 [--devices all] [--kinds harsh,wide-wild,crossed] [--show 3]

Of each drawn launch that the engine refuses: the finding that the engine raised is cured with its own first verified fix and
the engine is asked again, until it accepts. What it then raises must have been among the findings of the first answer; a
startup finding that we still make when the engine accepts is false. Every drawn launch is compared as `compare --live` does.
Exit 1 when any launch is missed, a finding false or a launch judged differently.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recommender import profiles
from recommender.api import check_launch
from recommender.session import Session
from recommender.terms import CheckResult, Cure, Finding, Verdict
from recommender.variables import variable_text

from .agree import Tally, early, matches
from .client import OracleError
from .compare import report as report_tally
from .compare import say, session_of, tally_of
from .devices import devices_of
from .record import add_draw_options, answers, drawn, reported
from .records import Answered, RecordError

MOST_ROUNDS = 12
KINDS = "harsh,wide,crossed,plain-wild,crossed-wild"


@dataclass(slots=True, kw_only=True)
class Peeled:
    """One launch on its way: as it stands now, what we said of it at first, and the rules that the engine raised."""

    drawn: Answered
    now: Answered
    first: CheckResult
    result: CheckResult
    raised: list[str] = field(default_factory=list)
    cured: list[tuple[str, Cure]] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Figures:
    """What came of it; each group holds its launches by cause."""

    refused: int = 0
    accepted: int = 0
    rounds: Counter[int] = field(default_factory=Counter)
    refusals: int = 0
    foreseen: int = 0
    findings: int = 0
    uncured: dict[str, list[Peeled]] = field(default_factory=dict)
    missed: dict[str, list[Peeled]] = field(default_factory=dict)
    unhelpful: dict[str, list[Peeled]] = field(default_factory=dict)
    false: dict[str, list[Peeled]] = field(default_factory=dict)
    unasked: dict[str, list[Peeled]] = field(default_factory=dict)
    vanished: dict[str, list[Peeled]] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """The counts."""
        wrong = sum(map(len, self.false.values()))
        share = 100.0 * wrong / self.findings if self.findings else 0.0
        later = f"{self.foreseen} of {self.refusals} were among the first findings"
        return [
            f"refused launches: {self.refused}, accepted in the end: {self.accepted}",
            f"refusals after a cure: {later}",
            f"startup findings of first answers: {self.findings}, false: {wrong} ({share:.2f} %)",
            f"launches without a cure: {_size(self.uncured)}, cures that do not help: {_size(self.unhelpful)}",
            f"launches that could not be asked again: {_size(self.unasked)}",
            f"rounds: {', '.join(f'{count} x {number}' for number, count in sorted(self.rounds.items()))}",
        ]


def _size(groups: Mapping[str, Sequence[Peeled]]) -> int:
    return sum(map(len, groups.values()))


def judge(session: Session, launch: Answered) -> CheckResult:
    """Our check with its cures."""
    return check_launch(session, session.read(launch.argv, launch.env), profiles.find_gpu(launch.device))


def broken(result: CheckResult) -> list[Finding]:
    """The startup findings that are certain."""
    return [item for item in early(result.findings) if item.verdict is Verdict.BREAKS]


def raised_of(session: Session, peeled: Peeled) -> Finding | None:
    """The finding whose law the engine raised."""
    rules = session.edition.rules
    return next((item for item in broken(peeled.result) if matches(rules[item.rule], peeled.now)), None)


def changed(session: Session, launch: Answered, cure: Cure) -> Answered | None:
    """The launch after a cure, as it says to a program; None where no words say it."""
    line = session.edition.command_line
    variables = session.book.settings["environment"]
    env = {name: text for name, text in launch.env.items() if name not in cure.changes}
    for name, value in cure.changes.items():
        if name in variables and value is not None:
            env[name] = variable_text(value)
        elif name not in variables and name not in line.fields:
            return None
    return Answered(device=launch.device, argv=cure.argv, env=env, ok=None) if cure.argv else None


def step(session: Session, peeled: Peeled, figures: Figures) -> Answered | None:
    """What to ask next of a launch that the engine refused; None when it is done with."""
    found = raised_of(session, peeled)
    rules = session.edition.rules
    foreseen = any(matches(rules[item.rule], peeled.now) for item in early(peeled.first.findings))
    if peeled.raised:
        figures.refusals += 1
        figures.foreseen += foreseen
    if not foreseen or found is None:
        hidden = {item.rule: item.after for item in peeled.first.not_judged_rules}
        where = f"{peeled.now.at.partition(':')[0]}: {' '.join(peeled.now.message.split())[:80]}"
        why = "no finding of ours" if found is None else "not told"
        name = found.rule if found else where
        why = f"hidden after {hidden[name]}" if name in hidden else why
        _note(figures.missed, f"{name} ({why}){f', cured: {peeled.raised[-1]}' if peeled.raised else ''}", peeled)
    if found is None:
        return None
    if found.rule in peeled.raised:
        _note(figures.unhelpful, f"{found.rule}: {show(peeled.cured[-1][1])}", peeled)
        return None
    cure = first_cure(found)
    if cure is None or len(peeled.raised) >= MOST_ROUNDS:
        _note(figures.uncured, found.rule, peeled)
        return None
    again = changed(session, peeled.now, cure)
    if again is None:
        _note(figures.unasked, f"{found.rule}: {show(cure)}", peeled)
        return None
    for name in followers(session, peeled.now, found, broken(peeled.result)):
        _note(figures.vanished, f"{name} with {found.rule}", peeled)
    peeled.raised.append(found.rule)
    peeled.cured.append((found.rule, cure))
    return again


def first_cure(found: Finding) -> Cure | None:
    """The first verified cure, the rule's own before searched ones."""
    return next((cure for cure in found.cures if cure.from_rule), next(iter(found.cures), None))


def followers(session: Session, launch: Answered, found: Finding, others: Sequence[Finding]) -> list[str]:
    """The findings that go with each of several cures of another: they may be no more than its consequence."""
    told = session.edition.rules
    left = {item.rule for item in others if found.rule not in (item.rule, item.under, *told[item.rule].silent_after)}
    again = [changed(session, launch, cure) for cure in found.cures]
    if len(again) < 2:
        return []
    for each in filter(None, again):
        read = session.read(each.argv, each.env)
        result = check_launch(session, read, profiles.find_gpu(each.device), cures=False)
        left -= {item.rule for item in broken(result)}
    return sorted(left)


def settle(peeled: Peeled, figures: Figures) -> None:
    """Note the findings that the engine does not share when it accepts a launch."""
    left = {item.rule for item in broken(peeled.result)}
    if peeled.now.ok:
        figures.accepted += 1
        figures.rounds[len(peeled.raised)] += 1
        for name in sorted(left):
            _note(figures.false, name, peeled)


def show(cure: Cure) -> str:
    """A cure as a line."""
    return " ".join(cure.flags)


def _note(groups: dict[str, list[Peeled]], cause: str, peeled: Peeled) -> None:
    groups.setdefault(cause, []).append(peeled)


def peel(session: Session, release: str, refused: Iterable[Answered], figures: Figures) -> None:
    """Peel launches that the engine refused, all of a device in one engine start a round."""
    open_: list[Peeled] = []
    for launch in refused:
        result = judge(session, launch)
        figures.refused += 1
        figures.findings += len(broken(result))
        open_.append(Peeled(drawn=launch, now=launch, first=result, result=result))
    while open_:
        asked: dict[str, list[tuple[Peeled, dict[str, Any]]]] = {}
        for peeled in open_:
            again = step(session, peeled, figures)
            if again is not None:
                case = {"argv": list(again.argv), "env": dict(again.env)}
                asked.setdefault(again.device, []).append((peeled, case))
        open_ = []
        cases = {device: [case for _, case in waiting] for device, waiting in asked.items()}
        for replies in answers(release, cases):
            for (peeled, _), answer in zip(asked[replies[0].device], replies, strict=True):
                if answer.ok is None:
                    _note(figures.unasked, "the machine has no answer", peeled)
                    continue
                peeled.now, peeled.result = answer, judge(session, answer)
                settle(peeled, figures)
                if not answer.ok:
                    open_.append(peeled)
        print(f"round: {sum(map(len, cases.values()))} asked, {len(open_)} refused", file=sys.stderr)


def refused_launches(given: argparse.Namespace, session: Session, release: str, tally: Tally) -> list[Answered]:
    """As many drawn launches as wanted that the engine refuses, evenly from devices and kinds; all are compared."""
    devices = devices_of(given.devices)
    kinds = given.kinds.split(",")
    each = -(-2 * given.count // (len(devices) * len(kinds)))
    seeds = [int(seed) for seed in given.seeds.split(",")]
    cases = {device: drawn(device, seeds, each, kinds, release) for device in devices}
    found: list[Answered] = []
    share = -(-given.count // len(devices))
    for replies in answers(release, cases, fields=reported(release)):
        tally_of(session, replies, tally)
        refusals = [answer for answer in replies if answer.ok is False]
        step_ = max(1, len(refusals) // share)
        found.extend(refusals[::step_][:share])
    return found[: given.count]


def report(figures: Figures, show_: int) -> None:
    """Print the groups, then the counts."""
    for title, groups in (
        ("missed", figures.missed),
        ("cures that do not help", figures.unhelpful),
        ("false", figures.false),
        ("without a cure", figures.uncured),
        ("not asked again", figures.unasked),
        ("gone with every cure of another, without silent_after", figures.vanished),
    ):
        if groups:
            say(f"{title}:")
        for cause, launches in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
            say(f"{len(launches):5d}  {cause}")
            for peeled in launches[:show_]:
                env = "".join(f"{name}={value} " for name, value in peeled.drawn.env.items())
                say(f"         {peeled.drawn.device}: {env}{' '.join(peeled.drawn.argv)}")
                for name, cure in peeled.cured:
                    say(f"           {name}: {show(cure)}")
    for line in figures.lines():
        say(line)


def main() -> int:
    """Peel."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("release")
    add_draw_options(options)
    options.set_defaults(count=300, kinds=KINDS)
    options.add_argument("--show", type=int, default=1, help="launches of each cause")
    given = options.parse_args()
    figures, tally = Figures(), Tally()
    try:
        session = session_of(given.release)
        peel(session, given.release, refused_launches(given, session, given.release, tally), figures)
    except (OracleError, RecordError) as error:
        print(f"oracle: {error}", file=sys.stderr)
        return 2
    report_tally(tally, given.show)
    report(figures, given.show)
    return 1 if figures.missed or figures.false or figures.unhelpful or tally.causes else 0


if __name__ == "__main__":
    sys.exit(main())
