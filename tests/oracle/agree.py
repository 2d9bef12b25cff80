"""Compares our check of a launch with the engine's answer; it must not ask the engine or print."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recommender import profiles
from recommender.api import check_launch
from recommender.laws import Rule
from recommender.session import Session
from recommender.terms import UNKNOWN, Answer, Bites, CheckResult, Effect, Finding, OriginKind, Verdict

from .records import Answered
from .retrace import led_elsewhere

# The resolved values that agreement is counted over; the other reported ones are compared and listed too.
COUNTED = (
    "speculative_algorithm", "speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens",
    "attention_backend", "prefill_attention_backend", "decode_attention_backend", "speculative_draft_attention_backend",
    "linear_attn_backend", "linear_attn_decode_backend", "linear_attn_prefill_backend", "linear_attn_verify_backend",
    "page_size", "max_running_requests", "kv_cache_dtype", "disable_overlap_schedule", "enable_mixed_chunk",
    "speculative_use_rejection_sampling", "speculative_adaptive", "speculative_draft_model_path",
    "mamba_radix_cache_strategy",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One way in which we and the engine differ; `cause` groups equal ones, `counted` says whether percentages do.

    `name` is the value that differs, `rules` the laws of ours behind it.
    """

    kind: str
    cause: str
    counted: bool = True
    name: str = ""
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A launch judged by both. `excused`: they differ, and we had said that a flag of it is not judged."""

    launch: Answered
    result: CheckResult | None
    differences: tuple[Difference, ...] = ()
    excused: bool = False


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts over many comparisons, and every difference by its cause."""

    launches: int = 0
    no_answer: int = 0
    excused: int = 0
    accepted: int = 0
    refused: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    causes: dict[str, list[Answered]] = field(default_factory=dict)

    def add(self, comparison: Comparison) -> None:
        """Count one more launch."""
        if comparison.launch.ok is None:
            self.no_answer += 1
            return
        self.launches += 1
        self.excused += comparison.excused
        kinds = {item.kind for item in comparison.differences if item.counted}
        self.wrong.update(kinds)
        if not kinds & {"verdict", "unknown"} and not comparison.excused:
            self.accepted += comparison.launch.ok
            self.refused += not comparison.launch.ok
        for item in comparison.differences:
            self.causes.setdefault(item.cause, []).append(comparison.launch)

    def merge(self, other: Tally) -> None:
        """Count what another tally counted too."""
        self.launches += other.launches
        self.no_answer += other.no_answer
        self.excused += other.excused
        self.accepted += other.accepted
        self.refused += other.refused
        self.wrong.update(other.wrong)
        for cause, launches in other.causes.items():
            self.causes.setdefault(cause, []).extend(launches)

    def lines(self) -> list[str]:
        """The counts and percentages."""

        def share(kind: str, whole: int, what: str) -> str:
            right = 100.0 - 100.0 * self.wrong[kind] / whole if whole else 100.0
            return f"{what}: {right:.2f} % of {whole} ({self.wrong[kind]} not)"

        found = [
            share("verdict", self.launches - self.excused, "verdicts not wrong"),
            share("unknown", self.launches - self.excused, "verdicts known"),
            share("value", self.accepted, "both accept, values equal"),
            share("message", self.refused, "both refuse, the engine's message is one of ours"),
            share("explain", self.refused, "both refuse, explain leads the engine's message to that law"),
            f"left out because the machine had no answer: {self.no_answer}",
        ]
        if self.excused:
            found.append(f"they differ, but a flag was said to be not judged: {self.excused}")
        return found


def plain(value: Any) -> Any:
    """A value of ours as JSON gives it."""
    return [plain(item) for item in value] if isinstance(value, (tuple, list)) else value


def equal(ours: Any, theirs: Any) -> bool:
    """Whether two values are the same; true is not 1."""
    if ours is UNKNOWN:
        return False
    return bool(plain(ours) == theirs) and isinstance(ours, bool) == isinstance(theirs, bool)


def matches(rule: Rule, launch: Answered) -> bool:
    """Whether the engine's refusal is the one that the rule describes."""
    if rule.parse and not rule.engine_error:  # asking for help, which argparse answers by leaving without a word
        return launch.type == "SystemExit" and launch.message == "0"
    if not rule.engine_error or not re.search(rule.engine_error, launch.message):
        return False
    return not rule.engine_error_at or re.search(rule.engine_error_at, launch.where) is not None


def early(findings: Iterable[Finding]) -> list[Finding]:
    """The findings that decide the verdict."""
    return [item for item in findings if item.effect is Effect.REJECTS and item.bites in (Bites.PARSE, Bites.STARTUP)]


def compare(session: Session, launch: Answered, fields: Sequence[str] | None = None) -> Comparison:
    """Judge a launch and hold it against the engine's answer; `fields` are the values to compare, else all reported."""
    if launch.ok is None:
        return Comparison(launch=launch, result=None)
    read = session.read(launch.argv, launch.env)
    result = check_launch(session, read, profiles.find_gpu(launch.device), cures=False)
    differences = tuple(_differences(session, launch, result, fields or session.book.settings["reported"]))
    excused = bool(result.not_judged_flags) and bool(differences) and result.verdict is not Answer.REFUSES
    return Comparison(launch=launch, result=result, differences=() if excused else differences, excused=excused)


def _differences(
    session: Session, launch: Answered, result: CheckResult, fields: Sequence[str]
) -> Iterable[Difference]:
    rules = session.edition.rules
    if result.verdict is not (Answer.ACCEPTS if launch.ok else Answer.REFUSES):
        kind = "unknown" if result.verdict is Answer.UNKNOWN else "verdict"
        laws = tuple(item.rule for item in early(result.findings)) if launch.ok else ()
        yield Difference(kind=kind, cause=_verdict_cause(launch, result), rules=laws)
    elif launch.ok:
        for name in fields:
            if name in launch.resolved and not equal(result.values[name].value, launch.resolved[name]):
                cause, known = _value_cause(launch, result, name), result.values[name]
                laws = (str(known.rule),) if known.origin is OriginKind.RULE else ()
                yield Difference(kind="value", cause=cause, counted=name in COUNTED, name=name, rules=laws)
        return
    if launch.ok:
        return
    told = frozenset(item.rule for item in result.findings if item.rule in rules and matches(rules[item.rule], launch))
    if told:
        elsewhere = led_elsewhere(session.edition.release, launch, told)
        if elsewhere:
            cause = f"explain: {_refusal(launch)}; {', '.join(sorted(told))} is led {elsewhere}"
            yield Difference(kind="explain", cause=cause)
    elif result.verdict is Answer.REFUSES:
        ours = ", ".join(item.rule for item in early(result.findings))
        yield Difference(kind="message", cause=f"message: {_refusal(launch)}; ours: {ours}")


def _refusal(launch: Answered) -> str:
    return f"{launch.at} {launch.type}: {' '.join(launch.message.split())[:90]}"


def _verdict_cause(launch: Answered, result: CheckResult) -> str:
    if not launch.ok:
        return f"verdict: engine refuses, we say {result.verdict.value}: {_refusal(launch)}"
    found = [
        f"{item.rule} [{', '.join(item.missing)}]" if item.verdict is Verdict.UNKNOWN else item.rule
        for item in early(result.findings)
    ]
    return f"verdict: engine accepts, we say {result.verdict.value}: {', '.join(found)}"


def _value_cause(launch: Answered, result: CheckResult, name: str) -> str:
    known = result.values[name]
    writer = next((function for function, written in reversed(launch.writes) if name in written), "")
    theirs = f"{launch.resolved[name]!r}{f' by {writer}' if writer else ''}"
    ours = known.rule if known.origin is OriginKind.RULE else known.origin.value
    return f"value of {name}: engine {theirs}, we {plain(known.value)!r} ({ours})"


def grouped(causes: Mapping[str, Sequence[Answered]]) -> list[tuple[str, Sequence[Answered]]]:
    """The causes, most frequent first."""
    return sorted(causes.items(), key=lambda item: (-len(item[1]), item[0]))
