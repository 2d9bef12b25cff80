"""Words what differs between two engine releases, for people and for machines; it must not compare or judge."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from recommender.expr import show
from recommender.render.check import finding_json, image_json, image_words, machine_value
from recommender.render.console import console, indented, plain, stacked, table
from recommender.render.rules import effect_words
from recommender.reports import Differences, FlagShift, LaunchShift, LawShift, Shift
from recommender.terms import Answer, CheckResult, Finding, Verdict

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "recommender.diff/1"
MOST_THROUGH = 3
_LAW_TITLES = {Shift.APPEARED: "Laws that appeared", Shift.ENDED: "Laws that ended", Shift.CHANGED: "Laws that changed"}
_FLAG_TITLES = {
    Shift.APPEARED: "Flags that came",
    Shift.ENDED: "Flags that went",
    Shift.RENAMED: "Flags that were renamed",
    Shift.CHANGED: "Flags that changed",
}
_ANSWERS = {Answer.ACCEPTS: "accepts", Answer.REFUSES: "refuses", Answer.UNKNOWN: "cannot be judged on"}


def print_differences(found: Differences) -> None:
    """The answer in a line, what becomes of the launch, then the laws and the flags that differ."""
    out = console()
    if found.launch is not None:
        _print_launch(out, found, found.launch)
    laws, flags = _counts(found.laws), _counts(found.flags)
    touching = " that touch this launch" if found.launch is not None else ""
    out.print(
        f"SGLang {found.old} to {found.new}{touching}: laws {_said(laws, (*_LAW_TITLES,))}; "
        f"flags {_said(flags, (*_FLAG_TITLES,))}.",
        style="bold" if found.launch is None else None,
    )
    for shift, title in _LAW_TITLES.items():
        _print_laws(out, title, [law for law in found.laws if law.shift is shift])
    for shift, title in _FLAG_TITLES.items():
        _print_flags(out, title, [flag for flag in found.flags if flag.shift is shift])
    if found.laws:
        out.print("\nOne of the laws in full: recommender rules show LAW")


def _counts(items: Sequence[LawShift | FlagShift]) -> dict[Shift, int]:
    return {shift: sum(item.shift is shift for item in items) for shift in Shift}


def _said(counts: dict[Shift, int], shifts: Sequence[Shift]) -> str:
    said = [f"{counts[shift]} {shift.value}" for shift in shifts if counts[shift]]
    return ", ".join(said) or "none"


def _verdict(result: CheckResult) -> str:
    later = result.rejected and result.verdict is not Answer.REFUSES
    return f"{result.judged_as} {'starts, then fails' if later else _ANSWERS[result.verdict]}"


def _print_launch(out: Console, found: Differences, launch: LaunchShift) -> None:
    out.print(f"This launch: SGLang {_verdict(launch.old)}; {_verdict(launch.new)}.", style="bold")
    if launch.new.image:
        out.print(plain(image_words(launch.new.image)))
    cure = launch.new.cure
    if launch.comes and cure is not None and cure.flags:
        out.print(f"Cure on {found.new}:", style="bold green")
        out.print(indented(" ".join(cure.flags)), style="green")
    for title, findings in ((f"Only {found.new} says", launch.comes), (f"Only {found.old} says", launch.goes)):
        if findings:
            out.print(f"\n{title}", style="bold")
            for finding in findings:
                _print_finding(out, finding)
    if launch.values:
        shown = table([("resolves otherwise", "left"), (found.old, "left"), (found.new, "left")])
        for item in launch.values:
            shown.add_row(item.setting, _value(item.old, item.old_rule), _value(item.new, item.new_rule))
        out.print()
        out.print(shown)
    out.print()


def _value(value: object, rule: str) -> str:
    return f"{plain(show(value))}\n  {rule}" if rule else plain(show(value))


def _print_finding(out: Console, finding: Finding) -> None:
    kind = "cannot be judged" if finding.verdict is Verdict.UNKNOWN else finding.effect.value
    when = f" {finding.bites.value}" if finding.bites else ""
    out.print(f"  {finding.rule} ({kind}{when})", soft_wrap=True)
    if finding.verdict is not Verdict.UNKNOWN:
        out.print(indented(finding.message))


def _print_laws(out: Console, title: str, laws: Sequence[LawShift]) -> None:
    if not laws:
        return
    out.print(f"\n{title}", style="bold")
    for topic, group in groupby(laws, key=lambda law: law.topic):
        shown = table([(topic, "left"), ("effect", "left")])
        for law in group:
            shown.add_row(stacked(law.rule, f"{law.statement}{_how(law)}"), effect_words(law.effect, law.bites))
        out.print(shown)


def _how(law: LawShift) -> str:
    parts = [*law.how, *law.through[:MOST_THROUGH]]
    more = len(law.through) - MOST_THROUGH
    return f" [{', '.join(parts)}{f' and {more} more' if more > 0 else ''}]" if parts else ""


def _print_flags(out: Console, title: str, flags: Sequence[FlagShift]) -> None:
    if not flags:
        return
    out.print(f"\n{title}", style="bold")
    for flag in flags:
        now = f" -> {flag.now}" if flag.now else ""
        out.print(f"  {flag.flag}{now}", soft_wrap=True)
        for detail in flag.details:
            out.print(indented(detail))


def differences_json(found: Differences) -> dict[str, Any]:
    """What differs as plain values."""
    return {
        "schema": SCHEMA,
        "rulebook": found.rulebook,
        "old": found.old,
        "new": found.new,
        "laws": [_law_json(law) for law in found.laws],
        "flags": [
            {
                "flag": flag.flag,
                "setting": flag.setting,
                "shift": flag.shift.value,
                "now": flag.now or None,
                "details": list(flag.details),
            }
            for flag in found.flags
        ],
        "launch": None if found.launch is None else _launch_json(found.launch),
    }


def _law_json(law: LawShift) -> dict[str, Any]:
    return {
        "rule": law.rule,
        "topic": law.topic,
        "shift": law.shift.value,
        "effect": law.effect.value,
        "bites": law.bites.value if law.bites else None,
        "statement": law.statement,
        "how": list(law.how),
        "through": list(law.through),
    }


def _launch_json(launch: LaunchShift) -> dict[str, Any]:
    return {
        "image": image_json(launch.new.image),
        "verdicts": [launch.old.verdict.value, launch.new.verdict.value],
        "goes": [finding_json(item, full=False) for item in launch.goes],
        "comes": [finding_json(item, full=False) for item in launch.comes],
        "cures": [list(cure.flags) for cure in launch.new.cures],
        "values": [
            {
                "setting": item.setting,
                "old": machine_value(item.old),
                "new": machine_value(item.new),
                "old_rule": item.old_rule or None,
                "new_rule": item.new_rule or None,
            }
            for item in launch.values
        ],
    }
