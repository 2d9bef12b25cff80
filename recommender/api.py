"""The jobs of the command line as typed functions with frozen results; it must not print or parse options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from recommender import profiles
from recommender.errors import UsageError
from recommender.judge import cures_of_rule, findings_of
from recommender.profiles import Gpu
from recommender.resolve import Walk, walk
from recommender.rulebook import Rulebook, load_rulebook
from recommender.session import Launch, Session, open_session
from recommender.terms import (
    UNKNOWN,
    Answer,
    Bites,
    CheckResult,
    Cure,
    Effect,
    Finding,
    Known,
    Unknown,
    Verdict,
)

__all__ = ["check", "load_rulebook"]


def check(
    argv: Sequence[str | Unknown],
    *,
    gpu: Gpu | str | None = None,
    sglang: str | None = None,
    env: Mapping[str, str | Unknown] | None = None,
    root: Path | None = None,
    cures: bool = True,
    book: Rulebook | None = None,
) -> CheckResult:
    """Judge one launch: the words after the launcher, on a device (None: unknown hardware).

    Raises:
        UsageError: a name or a file cannot be used; one line that names it.
    """
    session = open_session(book or load_rulebook(), sglang, root)
    device = profiles.find_gpu(gpu) if isinstance(gpu, str) else gpu
    return check_launch(session, session.read(argv, env), device, cures=cures)


def check_launch(session: Session, launch: Launch, gpu: Gpu | None, *, cures: bool = True) -> CheckResult:
    """Judge one launch that was read already."""
    facts = session.facts_of(gpu, launch.asked, session.roles)
    suspects = {refusal.field: refusal.kind for refusal in launch.refusals if refusal.field}
    result = walk(session.plan, launch.asked, facts, suspects=suspects, keep=cures)
    findings, hidden = findings_of(result, facts)
    if cures:
        findings = tuple(_with_cures(session, result, facts, finding) for finding in findings)
    findings = tuple(parse_finding(session, refusal) for refusal in launch.refusals) + findings
    doubts = _doubts(session, launch, gpu)
    return CheckResult(
        verdict=answer_of(findings),
        findings=findings,
        values=_values(result),
        not_judged_rules=hidden,
        not_judged_flags=session.not_judged(launch),
        doubts=doubts,
        sglang=session.asked_release,
        judged_as=session.edition.release,
        gpu=gpu.name if gpu else "",
        model=str(launch.asked.get(session.roles["model"], "")),
        rulebook=session.book.digest,
    )


def answer_of(findings: Sequence[Finding]) -> Answer:
    """The engine's answer at startup, from the findings."""
    early = [item for item in findings if item.effect is Effect.REJECTS and item.bites in (Bites.PARSE, Bites.STARTUP)]
    if any(item.verdict is Verdict.BREAKS for item in early):
        return Answer.REFUSES
    return Answer.UNKNOWN if early else Answer.ACCEPTS


class _Lazy(Mapping[str, Known]):
    """Settings with their origins, each made when it is read: a batch reads a few of several hundred."""

    __slots__ = ("_walk",)

    def __init__(self, result: Walk) -> None:
        self._walk = result

    def __getitem__(self, name: str) -> Known:
        return self._walk.known(name)

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self._walk.values)

    def __len__(self) -> int:
        return len(self._walk.values)


def _values(result: Walk) -> Mapping[str, Known]:
    return _Lazy(result)


def _doubts(session: Session, launch: Launch, gpu: Gpu | None) -> tuple[str, ...]:
    found = []
    if gpu is None:
        found.append("gpu")
    roles = session.roles
    for role in ("model", "draft"):
        reference = launch.asked.get(roles[role])
        if reference is UNKNOWN or (reference is not None and session.model(reference) is UNKNOWN):
            found.append(role)
    return tuple(found)


def _with_cures(session: Session, result: Walk, facts: Mapping[str, object], finding: Finding) -> Finding:
    from dataclasses import replace

    struck = next(item for item in result.struck if item.step.rule.id == finding.rule and not item.after)
    fixes = session.fixes(finding.rule)
    if not fixes or finding.verdict is not Verdict.BREAKS or finding.effect not in (Effect.REJECTS, Effect.DEGRADES):
        return finding
    found = cures_of_rule(session.plan, result, facts, struck, fixes)
    return replace(finding, cures=tuple(replace(cure, flags=flags_of(session, cure)) for cure in found))


def flags_of(session: Session, cure: Cure) -> tuple[str, ...]:
    """A cure as the words of a command line."""
    from recommender.forms.emit import flags_for

    return tuple(flags_for(session.edition.command_line, cure.changes))


def parse_finding(session: Session, refusal: object) -> Finding:
    """What the parser refuses, as a finding of the law for its kind."""
    from recommender.catalogue import Refusal

    assert isinstance(refusal, Refusal)
    rules = session.edition.rules
    law = next((rule for rule in rules.values() if rule.parse == refusal.kind), None)
    if law is None:
        raise UsageError(f"no law for the parser's refusal {refusal.kind!r}: {refusal.message}")
    near = f"; nearest: {', '.join(refusal.near)}" if refusal.near else ""
    return Finding(
        rule=law.id,
        effect=Effect.REJECTS,
        bites=Bites.PARSE,
        verdict=Verdict.BREAKS,
        message=f"{refusal.message}{near}",
        statement=law.statement,
        sources=law.sources,
        verified=law.verified,
    )
