"""The jobs of the command line as typed functions with frozen results; it must not print or parse options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from recommender import profiles
from recommender.errors import UsageError
from recommender.judge import (
    apply_changes,
    cures_of_rule,
    findings_of,
    lacking,
    next_findings,
    rejections,
    search_cures,
)
from recommender.laws import FactTable
from recommender.mending import Mend, joined, mends
from recommender.profiles import Gpu
from recommender.resolve import Struck, Walk, walk
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
    NotJudged,
    Settings,
    Unknown,
    Value,
    Verdict,
)
from recommender.variables import variable_text

if TYPE_CHECKING:
    from recommender.advise import Advice
    from recommender.catalogue import Refusal
    from recommender.reports import Explanation

MOST_CURES_IN_A_ROW = 6
MOST_COMPLETED = 8

__all__ = ["check", "explain", "load_rulebook", "recommend"]


def check(
    argv: Sequence[str | Unknown],
    *,
    gpu: Gpu | str | None = None,
    sglang: str | None = None,
    env: Mapping[str, str | Unknown] | None = None,
    image: str | None = None,
    root: Path | None = None,
    cures: bool = True,
    book: Rulebook | None = None,
) -> CheckResult:
    """Judge one launch: the words after the launcher, on a device (None: unknown hardware).

    `image` is a profile of profiles/images or "none"; unnamed it is what users of the device run.

    Raises:
        UsageError: a name or a file cannot be used; one line that names it.
    """
    session = open_session(book or load_rulebook(), sglang, root)
    device = profiles.find_gpu(gpu) if isinstance(gpu, str) else gpu
    use = session.image(image, device, (), env or {})
    return check_launch(session, session.read(argv, env, use), device, cures=cures)


def explain(subject: str, *, sglang: str | None = None, book: Rulebook | None = None) -> Explanation:
    """The law of a rule's id, else the laws behind an error message or a log, most specific first.

    Raises:
        UsageError: the release is no release.
    """
    from recommender.accounts import account_of, editions_of, general_messages, ids_like, law_named, traced_rules
    from recommender.matching import akin, cut_off, trace
    from recommender.reports import Explanation

    rulebook = book or load_rulebook()
    asked, judged = rulebook.covered(sglang)
    edition = rulebook.edition(judged)
    named = law_named(rulebook, subject.strip())
    if named:
        laws = (account_of(rulebook, editions_of(named, judged)[0], edition),)
        return Explanation(laws=laws, sglang=asked, judged_as=judged, rulebook=rulebook.digest)
    rules = traced_rules(rulebook, judged)
    traced = trace(subject, rules, judged if sglang else "")
    general = () if traced.matches else general_messages(rulebook, subject)
    return Explanation(
        laws=tuple(account_of(rulebook, match.rule, edition, match, subject) for match in traced.matches),
        faint=tuple(rule.id for rule in traced.faint),
        last_error=traced.last_error,
        near=() if traced.matches else ids_like(rulebook, subject.strip()),
        akin=() if traced.matches else akin(subject, rules),
        cut=() if traced.matches or traced.faint or general else cut_off(subject, rules),
        general=general,
        sglang=asked,
        judged_as=judged,
        rulebook=rulebook.digest,
    )


def check_launch(session: Session, launch: Launch, gpu: Gpu | None, *, cures: bool = True) -> CheckResult:
    """Judge one launch that was read already."""
    facts = session.facts_of(gpu, launch.asked, session.roles)
    suspects = {refusal.field: refusal.kind for refusal in launch.refusals if refusal.field}
    result = walk(session.plan, launch.asked, facts, suspects=suspects, keep=cures)
    findings, hidden = findings_of(result, facts)
    if cures:
        findings = tuple(_with_cures(session, launch, result, facts, finding) for finding in findings)
        findings, hidden = _with_next(session, launch, facts, findings, hidden)
    refused = tuple(parse_finding(session, refusal.kind, refusal.told) for refusal in launch.refusals)
    whole: tuple[Cure, ...] = ()
    if cures and refused:
        mended = [mends(session.edition.command_line, refusal) for refusal in launch.refusals]
        refused = tuple(
            _mended(session, launch, gpu, *each) for each in zip(refused, launch.refusals, mended, strict=True)
        )
        whole = _whole_mends(session, launch, gpu, mended)
    elif cures:
        whole = _whole_cures(session, launch, facts, findings)
    misread = tuple(parse_finding(session, item.kind, item.message) for item in launch.misread)
    findings = (*refused, *findings, *misread)
    doubts = _doubts(session, launch, gpu)
    return CheckResult(
        verdict=promised(answer_of(findings), gpu),
        findings=findings,
        values=_values(result),
        not_judged_rules=hidden,
        not_judged_flags=session.not_judged(launch),
        doubts=doubts,
        cures=whole,
        sglang=session.asked_release,
        judged_as=session.edition.release,
        gpu=gpu.name if gpu else "",
        unproven=gpu.unproven if gpu else "",
        model=str(launch.asked.get(session.roles["model"], "")),
        rulebook=session.book.digest,
        image=launch.image,
    )


def recommend(
    *,
    gpu: Gpu | str,
    model: str,
    gpus: int = 1,
    draft: str | None = None,
    sglang: str | None = None,
    image: str | None = None,
    pins: Mapping[str, Value] | None = None,
    freed: Sequence[str] = (),
    concurrency: int = 8,
    top: int = 5,
    strict: bool = False,
    root: Path | None = None,
    book: Rulebook | None = None,
) -> Advice:
    """The valid speculative settings for a model on `gpus` devices, best first; `pins` are settings by engine field.

    Raises:
        UsageError: a name or a file cannot be used; one line that names it.
    """
    from recommender.advise import Adviser, Ask

    session = open_session(book or load_rulebook(), sglang, root)
    device = profiles.find_gpu(gpu) if isinstance(gpu, str) else gpu
    own = {session.roles["model"]: model, **({session.roles["draft"]: draft} if draft else {}), **(pins or {})}
    use = session.image(image, device, (), dict.fromkeys(own, ""))
    ask = Ask(
        gpu=device,
        gpus=gpus,
        pins={**session.read((), {}, use).asked, **own},
        freed=frozenset(freed),
        concurrency=concurrency,
        strict=strict,
        image=use,
    )
    return Adviser(session, ask).advise(top)


def answer_of(findings: Sequence[Finding]) -> Answer:
    """The engine's answer at startup, from the findings."""
    early = [item for item in findings if item.effect is Effect.REJECTS and item.bites in (Bites.PARSE, Bites.STARTUP)]
    if any(item.verdict is Verdict.BREAKS for item in early):
        return Answer.REFUSES
    return Answer.UNKNOWN if early else Answer.ACCEPTS


def promised(answer: Answer, gpu: Gpu | None) -> Answer:
    """What can be promised of an answer: where laws were only read, a refusal still quotes the engine, silence proves nothing."""
    return Answer.UNKNOWN if answer is Answer.ACCEPTS and gpu is not None and gpu.unproven else answer


class Values(Settings):
    """Settings with their origins, each made when it is read: a batch reads a few of several hundred."""

    __slots__ = ("_walk",)

    def __init__(self, result: Walk) -> None:
        self._walk = result

    def __getitem__(self, name: str) -> Known:
        return self._walk.known(name)

    @property
    def plain(self) -> Mapping[str, Value]:
        """The values without their origins."""
        return self._walk.values

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self._walk.values)

    def __len__(self) -> int:
        return len(self._walk.values)


def _values(result: Walk) -> Values:
    return Values(result)


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


def _with_cures(session: Session, launch: Launch, result: Walk, facts: FactTable, finding: Finding) -> Finding:
    """The finding with its cures: the rule's own, in their order, and where none leaves the launch clean what a search finds."""
    struck = next(item for item in result.struck if item.step.rule.id == finding.rule and not item.after)
    if finding.verdict is not Verdict.BREAKS or finding.effect not in (Effect.REJECTS, Effect.DEGRADES):
        return finding
    found = _cures(session, result, facts, struck)
    if found:
        return replace(finding, cures=tuple(_spelled(session, launch, cure) for cure in found))
    lack = session.lack(finding.rule)
    return replace(finding, no_cure=lacking(struck, facts, result.asked, lack)) if lack else finding


def _with_next(
    session: Session, launch: Launch, facts: FactTable, findings: Sequence[Finding], hidden: Sequence[NotJudged]
) -> tuple[tuple[Finding, ...], tuple[NotJudged, ...]]:
    """Findings with the hidden laws that the first cure of one of them would run into, and what stays hidden."""
    found: dict[str, Finding] = {}
    for finding in findings:
        if hidden and finding.cures and finding.effect is Effect.REJECTS:
            asked = apply_changes(launch.asked, finding.cures[0].changes)
            here = next_findings(
                session.plan, asked, facts, (item.rule for item in hidden if item.after == finding.rule)
            )
            found |= {item.rule: item for item in here}
    return (*findings, *found.values()), tuple(item for item in hidden if item.rule not in found)


def _whole_cures(session: Session, launch: Launch, facts: FactTable, findings: Sequence[Finding]) -> tuple[Cure, ...]:
    """Changes that leave the whole launch clean: first the cures that do so alone, then those that need others beside them."""
    refused = [item for item in findings if item.effect is Effect.REJECTS and item.verdict is Verdict.BREAKS]
    listed = [cure for finding in refused or findings for cure in finding.cures]
    found = {_said(cure): cure for cure in listed if cure.clean}
    if refused:
        for cure in listed[:MOST_COMPLETED]:
            changes = None if cure.clean else _changes_to_clean(session, launch.asked, cure.changes, facts)
            if changes:
                made = replace(cure, changes=changes, clean=True, from_rule=False)
                found.setdefault(_said(made), _spelled(session, launch, made))
    return tuple(found.values())


def _mended(
    session: Session, launch: Launch, gpu: Gpu | None, finding: Finding, refusal: Refusal, found: Sequence[Mend]
) -> Finding:
    """A refusal of the parser with what to write instead; a mend is clean where nothing else is in the way."""
    others = [each.words[index] for each in launch.refusals if each is not refusal for index in each.drop]
    cures = []
    for mend in found:
        clean = len(launch.refusals) == 1 and not _left(session, launch, gpu, mend)
        cures.append(_mend_cure(session, launch, mend, mend.changes, clean, others))
    return replace(finding, cures=tuple(cures))


def _left(session: Session, launch: Launch, gpu: Gpu | None, mend: Mend) -> bool:
    """Whether something refuses the launch still, once it is mended."""
    asked = apply_changes(launch.asked, mend.changes)
    return bool(rejections(walk(session.plan, asked, session.facts_of(gpu, asked, session.roles))))


def _mend_cure(
    session: Session,
    launch: Launch,
    mend: Mend,
    changes: Mapping[str, Value],
    clean: bool,
    others: Sequence[str] = (),
) -> Cure:
    """A mend as a cure; `others` are refused words that it leaves where they are."""
    rest = {name: value for name, value in changes.items() if name not in mend.changes or mend.changes[name] != value}
    left_out = (f"(without {' '.join(mend.left_out)})",) if mend.left_out else ()
    words = (*mend.words, *flags_of(session, Cure(changes=rest)), *left_out)
    argv = _argv(session, launch, rest)
    return Cure(changes=changes, flags=words, argv=(*others, *argv, *mend.words) if argv else (), clean=clean)


def _whole_mends(
    session: Session, launch: Launch, gpu: Gpu | None, mended: Sequence[Sequence[Mend]]
) -> tuple[Cure, ...]:
    """What to write instead of all that the parser refuses, with the cures of what the rest of the engine refuses then."""
    if not all(mended):
        return ()
    several = [
        [each[place] for each in mended] for place in (0, -1)
    ]  # the likeliest of each, else all of them left out
    choices = [[mend] for mend in mended[0]] if len(mended) == 1 else several
    found = []
    for chosen in choices:
        mend = joined(chosen)
        asked = apply_changes(launch.asked, mend.changes)
        facts = session.facts_of(gpu, asked, session.roles)
        changes = _changes_to_clean(session, asked, {}, facts)
        if changes is not None and mend.changes.keys().isdisjoint(changes):
            found.append(_mend_cure(session, launch, mend, {**mend.changes, **changes}, clean=True))
    return tuple(found)


def _said(cure: Cure) -> frozenset[tuple[str, str]]:
    return frozenset((name, repr(value)) for name, value in cure.changes.items())


def _changes_to_clean(
    session: Session, asked: Mapping[str, Value], changes: Mapping[str, Value], facts: FactTable
) -> dict[str, Value] | None:
    """`changes`, then the first cure of what is left, until nothing refuses the launch; None: that never happens."""
    changed = apply_changes(asked, changes)
    for _ in range(MOST_CURES_IN_A_ROW):
        result = walk(session.plan, changed, facts, keep=True)
        broken = [item for item in result.struck if not item.after and item.step.rule.id in rejections(result)]
        if not broken:
            names = dict.fromkeys([*changes, *asked, *changed])
            kept = {name: changed.get(name) for name in names if changed.get(name) != asked.get(name)}
            return {**{name: value for name, value in changes.items() if changed.get(name) == value}, **kept}
        fixes = next((found for item in broken if (found := _own_cures(session, result, facts, item))), ())
        if not fixes:
            return None
        changed = apply_changes(changed, fixes[0].changes)
    return None


def _own_cures(session: Session, result: Walk, facts: FactTable, struck: Struck) -> tuple[Cure, ...]:
    return cures_of_rule(session.plan, result, facts, struck, session.fixes(struck.step.rule.id))


def _cures(session: Session, result: Walk, facts: FactTable, struck: Struck) -> tuple[Cure, ...]:
    """The rule's own cures as written, in their order, and where none leaves the launch clean what a search finds."""
    found = _own_cures(session, result, facts, struck)
    if struck.step.rule.effect is Effect.REJECTS and not any(cure.clean for cure in found):
        names = [
            name for name in sorted(struck.step.reads) if name in result.asked and name not in session.roles.values()
        ]
        moves = [(name, session.domain(name, result.asked[name])) for name in names]
        found += search_cures(session.plan, result.asked, facts, struck, rejections(result), moves)
    return found


def _spelled(session: Session, launch: Launch, cure: Cure) -> Cure:
    """The cure with its words, for a reader and for a program."""
    return replace(cure, flags=flags_of(session, cure), argv=_argv(session, launch, cure.changes))


def _argv(session: Session, launch: Launch, changes: Mapping[str, Value]) -> tuple[str, ...]:
    """The whole command line after a change, without what the parser refuses; empty where a word of it is not known."""
    from recommender.forms.emit import rewrite

    parsed = launch.parsed
    if not parsed.is_whole:
        return ()
    own = replace(parsed, from_config=frozenset())  # the words of a --config file stand among its words
    return rewrite(session.edition.command_line, parsed.words, changes, own)


def flags_of(session: Session, cure: Cure) -> tuple[str, ...]:
    """A cure as a reader is told: the words of a command line, then what is set or left out beside them."""
    from recommender.forms.emit import flags_for

    line = session.edition.command_line
    gone = [
        line.fields[name].flag.long for name, value in cure.changes.items() if value is None and name in line.fields
    ]
    order = [*session.order, *cure.changes]
    changes = {name: cure.changes[name] for name in dict.fromkeys(order) if name in cure.changes}
    variables = {name: value for name, value in changes.items() if name in session.variables}
    gone += [name for name, value in variables.items() if value is None]
    added = [f"{name}={variable_text(value)}" for name, value in variables.items() if value is not None]
    words = [f"({lead} {' '.join(names)})" for lead, names in (("with", added), ("without", gone)) if names]
    return (*flags_for(line, changes), *words)


def parse_finding(session: Session, kind: str, message: str) -> Finding:
    """What the reading of a command line or a variable finds at fault, as a finding of the law for its kind.

    Raises:
        UsageError: the release has no law for it.
    """
    law = session.laws_of_reading.get(kind)
    if law is None:
        raise UsageError(f"no law for what reading finds at fault ({kind}): {message}")
    return Finding(
        rule=law.id,
        effect=law.effect,
        bites=law.bites,
        verdict=Verdict.BREAKS,
        message=message,
        statement=law.statement,
        sources=law.sources,
        verified=law.verified,
    )
