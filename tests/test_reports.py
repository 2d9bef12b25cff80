"""Public reports of failed launches: what `check` must say of each, and where `explain` must lead its message.

The expectations are in data/bug-reports.yaml, written before `check` was asked; bug-reports-answers.yaml names the rules
and what stays wrong. A launch of a release that the rulebook does not cover waits until it does.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import recommender
from recommender.rulebook import load_rulebook
from recommender.terms import CheckResult, Effect, Verdict

DATA = Path(__file__).parent / "data"
LEAST_RIGHT = 0.9


@cache
def reports() -> tuple[dict[str, Any], ...]:
    return tuple(yaml.safe_load((DATA / "bug-reports.yaml").read_text(encoding="utf-8")))


@cache
def answers() -> dict[str, Any]:
    plain = yaml.load((DATA / "bug-reports-answers.yaml").read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    assert isinstance(plain, dict)
    return plain


@cache
def covered() -> frozenset[str]:
    return frozenset(release.version for release in load_rulebook().releases)


@dataclass(frozen=True)
class Reported:
    """One launch of a report."""

    report: int
    place: int
    launch: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.report}.{self.place}"


def every_launch() -> Iterator[Reported]:
    for report in reports():
        for place, launch in enumerate(report.get("launches", [])):
            yield Reported(report["n"], place, launch)


def judged() -> list[Reported]:
    return [each for each in every_launch() if each.launch["release"] in covered()]


@cache
def result_of(name: str) -> CheckResult:
    (reported,) = (each for each in every_launch() if each.name == name)
    launch = reported.launch
    return recommender.check(
        shlex.split(launch["argv"]),
        gpu=launch["gpu"],
        sglang=launch["release"],
        env=launch.get("env"),
        cures=False,
        book=load_rulebook(),
    )


def rewritten_by(result: CheckResult) -> set[str]:
    """The rules that put another value in the place of one that was asked for."""
    return {known.rule for known in result.values.values() if known.rule and known.asked not in (None, known.value)}


def answer_to(name: str) -> str:
    """What a reader of `check` learns: the strongest of what it says."""
    result = result_of(name)
    refusing = [finding for finding in result.findings if finding.effect is Effect.REJECTS]
    if any(finding.verdict is Verdict.BREAKS for finding in refusing):
        return "refused"
    if refusing:
        return "unknown"
    warned = any(finding.effect is Effect.DEGRADES for finding in result.findings) or rewritten_by(result)
    return "degraded" if warned else "accepted"


def is_right(reported: Reported) -> bool:
    answer, expected = answer_to(reported.name), reported.launch["expect"]
    values = result_of(reported.name).values
    resolved = reported.launch.get("resolved", {})
    return (answer == expected or (expected == "accepted" and answer == "degraded")) and all(
        values[name].value == value for name, value in resolved.items()
    )


@pytest.mark.parametrize("reported", judged(), ids=lambda reported: reported.name)
def test_a_reported_launch_is_judged_as_the_report_and_the_source_have_it(reported: Reported) -> None:
    wrong = answers()["wrong"].get(reported.name)
    if wrong is None:
        assert is_right(reported), answer_to(reported.name)
    else:
        assert not is_right(reported), f"{reported.name} is right now: take it off the list"
        assert answer_to(reported.name) == wrong["answers"]


@pytest.mark.parametrize("name", sorted(answers()["laws"]))
def test_the_law_behind_a_report_is_named(name: str) -> None:
    result = result_of(name)
    said = {finding.rule for finding in result.findings if finding.verdict is Verdict.BREAKS} | rewritten_by(result)
    assert set(answers()["laws"][name]) <= said


def test_a_law_that_the_list_states_has_its_rule() -> None:
    stated = {each.name for each in judged() if each.launch.get("law") and each.launch["expect"] != "unknown"}
    assert stated == set(answers()["laws"]) | set(answers()["wrong"])


def test_nine_of_ten_reports_are_judged_right() -> None:
    asked = {each.report for each in judged()}
    wrong = {int(name.split(".")[0]) for name in answers()["wrong"]}
    assert wrong <= asked
    assert len(asked - wrong) / len(asked) >= LEAST_RIGHT


def test_every_report_has_a_class_and_its_reason() -> None:
    assert len(reports()) == len({report["n"] for report in reports()}) == 71
    for report in reports():
        assert report["class"] in ("judgeable", "not-covered", "not-enough"), report["n"]
        assert report["why"], report["n"]
        assert bool(report.get("launches")) == (report["class"] == "judgeable"), report["n"]


# --- their messages ---------------------------------------------------------------------------------------------------


def numbers(kind: str) -> list[str]:
    """The reports whose message is of a kind."""
    return sorted((str(number) for number in answers()[kind]), key=int)


def messages() -> dict[int, str]:
    return {report["n"]: report["message"] for report in reports() if "message" in report}


@pytest.mark.parametrize("number", numbers("messages"))
def test_the_message_of_a_report_leads_to_its_law(number: str) -> None:
    message = messages()[int(number)]
    for text in (
        message,
        f"[2026-11-01 10:00:00 TP0] {message}",
        f"service-1  | \x1b[31m{message}\x1b[0m\nservice-1  | \n",
    ):
        laws = recommender.explain(text).laws
        assert answers()["messages"][number] in {law.rule for law in laws if law.said == laws[0].said}


@pytest.mark.parametrize("number", numbers("offered"))
def test_a_message_that_names_no_law_by_itself_is_offered_one(number: str) -> None:
    explanation = recommender.explain(messages()[int(number)])
    assert not explanation.laws
    assert answers()["offered"][number] in {*explanation.faint, *explanation.akin}


@pytest.mark.parametrize("number", numbers("general"))
def test_a_message_without_a_law_is_explained_as_what_it_is(number: str) -> None:
    explanation = recommender.explain(messages()[int(number)])
    assert not explanation.laws
    assert explanation.general


@pytest.mark.parametrize("number", numbers("silent"))
def test_a_message_that_nothing_is_known_of_names_no_law(number: str) -> None:
    explanation = recommender.explain(messages()[int(number)])
    assert [explanation.laws, explanation.faint, explanation.general, explanation.cut] == [(), (), (), ()]


def test_every_message_of_a_report_is_asked_about() -> None:
    kinds = [answers()[kind] for kind in ("messages", "offered", "general", "silent")]
    listed = [int(number) for kind in kinds for number in kind]
    assert sorted(listed) == sorted(messages())
