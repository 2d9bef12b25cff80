"""Words a checked launch for people and for machines; it must not judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recommender.expr import show
from recommender.render.console import console, indented, plain, table
from recommender.terms import (
    UNKNOWN,
    Answer,
    Bites,
    CheckResult,
    Cure,
    Effect,
    Finding,
    ImageUse,
    Known,
    OriginKind,
    Source,
    Value,
    Verdict,
)
from recommender.versions import uncovered

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "recommender.check/1"
MOST_CURES = 4
MOST_MISSING = 6
_WHEN = {
    Bites.PARSE: "while parsing",
    Bites.STARTUP: "at startup",
    Bites.LOAD: "after loading weights",
    Bites.REQUEST: "at the first request",
}


def machine_value(value: Value) -> Any:
    """A value for JSON: unknown becomes the text "unknown", tuples lists."""
    if value is UNKNOWN:
        return "unknown"
    if isinstance(value, tuple):
        return [machine_value(item) for item in value]
    return value


def source_text(source: Source) -> str:
    """A source as people cite it."""
    symbol = f" {source.symbol}" if source.symbol else ""
    release = f" ({source.release})" if source.release else ""
    return f"{source.file}{symbol}{release}"


def finding_json(finding: Finding, full: bool = True) -> dict[str, Any]:
    """A finding as plain values; the short form is that of --cases."""
    short: dict[str, Any] = {
        "rule": finding.rule,
        "effect": finding.effect.value,
        "bites": finding.bites.value if finding.bites else None,
        "message": finding.message,
    }
    if finding.verdict is Verdict.UNKNOWN:
        short["verdict"] = "unknown"
        short["missing"] = list(finding.missing)
    if not full:
        return short
    return {
        **short,
        "statement": finding.statement,
        "under": finding.under or None,
        "verified": finding.verified,
        "sources": [source_text(source) for source in finding.sources],
        "cures": [
            {
                "flags": list(cure.flags),
                **cured_json(cure),
                "clean": cure.clean,
            }
            for cure in finding.cures
        ],
        **({"no_cure": finding.no_cure} if finding.no_cure else {}),
    }


def cured_json(cure: Cure) -> dict[str, Any]:
    """What a program runs instead: the words of the command, null where one is not known, and the settings that changed."""
    return {"argv": list(cure.argv) or None, "changes": {k: machine_value(v) for k, v in cure.changes.items()}}


def image_json(image: ImageUse | None) -> dict[str, Any] | None:
    """The image of a launch as plain values; null for a bare machine."""
    return None if image is None else {"id": image.id, "why": image.why, "sets": dict(image.sets)}


def image_words(image: ImageUse) -> str:
    """Which image is meant, why, what it decides and how to do without it."""
    sets = " ".join(f"{name}={value}" for name, value in image.sets.items())
    does = f"sets {sets}" if sets else "sets nothing beside your own variables"
    if image.why == "assumed":
        return f"Assumed: the image {image.id}, which {does}; --image none: a bare machine."
    return f"In the image {image.id}, which {does}."


def check_json(result: CheckResult, fields: Iterable[str]) -> dict[str, Any]:
    """A whole check as plain values; `fields` are the settings to show resolved."""
    return {
        "schema": SCHEMA,
        "rulebook": result.rulebook,
        "sglang": result.sglang,
        "judged_as": result.judged_as,
        "gpu": result.gpu or None,
        **({"unproven": result.unproven} if result.unproven else {}),
        "model": result.model or None,
        "image": image_json(result.image),
        "verdict": result.verdict.value,
        "cures": [list(cure.flags) for cure in result.cures],
        "cured": [cured_json(cure) for cure in result.cures],
        "findings": [finding_json(finding) for finding in result.findings],
        "not_judged": list(result.not_judged_flags),
        "not_judged_rules": [{"rule": item.rule, "after": item.after} for item in result.not_judged_rules],
        "resolved": {
            name: {
                "value": machine_value(known.value),
                "origin": known.origin.value,
                **({"rule": known.rule} if known.rule else {}),
                **({"asked": machine_value(known.asked)} if known.asked is not None else {}),
            }
            for name in fields
            if (known := result.values[name])
        },
        "doubts": list(result.doubts),
    }


def _headline(result: CheckResult) -> str:
    broken = [item for item in result.findings if item.verdict is Verdict.BREAKS]
    refused = [item for item in broken if item.effect is Effect.REJECTS and not _is_consequence(item, broken)]
    where = f"SGLang {result.judged_as}" + (f" on {result.gpu}" if result.gpu else ", hardware unknown")
    early = [item for item in refused if item.bites in (Bites.PARSE, Bites.STARTUP)]
    if early:
        return f"REFUSED by {where}: {_laws(len(refused))} in the way."
    if refused:
        return f"FAILS LATER on {where}: it starts, then {_laws(len(refused))} in the way."
    if result.verdict is Answer.UNKNOWN and result.unproven and not _unjudged(result):
        return f"UNKNOWN (source only) for {where}: nothing refuses it, but nothing was tried there."
    if result.verdict is Answer.UNKNOWN:
        return f"UNKNOWN for {where}: nothing refuses it, but not every law can be judged."
    later = len({item.rule for item in result.findings if _is_unjudged(item)})
    if later:
        return f"VALID AT STARTUP for {where}; of what bites later, {_counted(later)} cannot be judged."
    degraded = sum(item.effect is Effect.DEGRADES for item in result.findings)
    return f"VALID for {where}" + (f", with {degraded} warning{'s' if degraded > 1 else ''}." if degraded else ".")


def _unjudged(result: CheckResult) -> bool:
    return any(map(_is_unjudged, result.findings))


def _is_unjudged(item: Finding) -> bool:
    return item.verdict is Verdict.UNKNOWN and item.effect is Effect.REJECTS


def _counted(laws: int) -> str:
    return f"{laws} law{'s' if laws > 1 else ''}"


def _laws(count: int) -> str:
    return f"{count} law stands" if count == 1 else f"{count} laws stand"


def print_check(result: CheckResult, fields: Iterable[str]) -> None:
    """The check for people: the answer, the findings with their cures, the resolved settings, the sources."""
    out = console()
    out.print(_headline(result), style="bold")
    if result.sglang != result.judged_as:
        out.print(uncovered(result.sglang, result.judged_as, "judged"))
    if result.unproven:
        out.print(result.unproven)
    if result.image:
        out.print(plain(image_words(result.image)), soft_wrap=False)
    _print_cure(out, result)
    broken = [finding for finding in result.findings if finding.verdict is Verdict.BREAKS]
    causes = [finding for finding in broken if not _is_consequence(finding, broken)]
    for title, effect in (
        ("Laws it breaks", Effect.REJECTS),
        ("Warnings", Effect.DEGRADES),
        ("Notes", Effect.NOTES),
    ):
        chosen = [finding for finding in causes if finding.effect is effect]
        if chosen:
            out.print(f"\n{title}", style="bold")
            _print_findings(out, chosen, broken)
    _print_unknown(out, [finding for finding in result.findings if finding.verdict is Verdict.UNKNOWN])
    _print_rewrites(out, result.rewrites)
    _print_not_judged(out, result)
    _print_resolved(out, result, fields)
    _print_sources(out, result.findings)


def _print_cure(out: Console, result: CheckResult) -> None:
    """The cures that leave the launch clean; where there is none, why no setting gives one, else those that at least help."""
    clean = [cure.flags for cure in result.cures if cure.flags]
    lacking = () if clean else dict.fromkeys(finding.no_cure for finding in result.findings if finding.no_cure)
    for reason in lacking:
        out.print(plain(f"No change of settings helps: {reason}"), style="bold", soft_wrap=False)
    if lacking:
        return
    helping = dict.fromkeys(cure.flags for finding in result.findings for cure in finding.cures if cure.flags)
    broken = sum(item.effect is Effect.REJECTS and item.verdict is Verdict.BREAKS for item in result.findings)
    left = "more stands in the way" if broken > 1 else "not every other law can be judged"
    for number, flags in enumerate((clean or list(helping))[:MOST_CURES]):
        lead = "Cure" if number == 0 else "  or"
        words = " ".join(flags) + ("" if clean else f"   ({left})")
        out.print(f"{lead}: {words}", style="bold green" if number == 0 else "green", soft_wrap=True)


def _is_consequence(finding: Finding, broken: Iterable[Finding]) -> bool:
    return any(finding.under == other.rule for other in broken)


def _print_findings(out: Console, findings: Iterable[Finding], broken: Sequence[Finding]) -> None:
    """Findings by number, each with what is only its consequence below it."""
    for number, finding in enumerate(findings, start=1):
        out.print(f"{number:>2}. {_named(finding)}", soft_wrap=True)
        out.print(indented(finding.message))
        for other in _consequences(finding, broken):
            out.print(f"    and so {_named(other)}", soft_wrap=True)
            out.print(indented(other.message, 8))


def _named(finding: Finding) -> str:
    return finding.rule + (f" ({_WHEN[finding.bites]})" if finding.bites else "")


def _consequences(finding: Finding, broken: Sequence[Finding]) -> Iterator[Finding]:
    for other in broken:
        if other.under == finding.rule:
            yield other
            yield from _consequences(other, broken)


def _print_unknown(out: Console, findings: Sequence[Finding]) -> None:
    """What cannot be judged, by the facts and words that are missing: naming those is what helps."""
    if not findings:
        return
    laws = "1 law" if len(findings) == 1 else f"{len(findings)} laws"
    out.print(f"\nCannot be judged: {laws}", style="bold")
    roots: dict[str, list[str]] = {}
    for finding in findings:
        facts = [name for name in finding.missing if "." in name]
        for name in facts or finding.missing:
            roots.setdefault(name, []).append(finding.rule)
    for name, rules in sorted(roots.items(), key=lambda item: -len(item[1]))[:MOST_MISSING]:
        more = f" and {len(rules) - 3} more" if len(rules) > 3 else ""
        out.print(indented(f"{name} is not known: {', '.join(rules[:3])}{more}"))


def _print_rewrites(out: Console, rewrites: Mapping[str, Known]) -> None:
    if not rewrites:
        return
    out.print("\nRewritten by the engine", style="bold")
    for name, known in rewrites.items():
        out.print(indented(f"{name}: asked {show(known.asked)}, becomes {show(known.value)}, by rule {known.rule}"))


def _print_not_judged(out: Console, result: CheckResult) -> None:
    if result.not_judged_flags:
        out.print("\nNot judged: no rule covers these flags yet", style="bold")
        out.print(indented(", ".join(result.not_judged_flags)))
    if result.not_judged_rules:
        out.print("\nNot judged after an earlier refusal", style="bold")
        out.print(indented(", ".join(f"{item.rule} (after {item.after})" for item in result.not_judged_rules)))
    if result.doubts:
        out.print(f"\nNothing is known of the {' and the '.join(result.doubts)}.", style="bold")


def _print_resolved(out: Console, result: CheckResult, fields: Iterable[str]) -> None:
    shown = table([("setting", "left"), ("resolved", "left")])
    shown.columns[0].no_wrap = True
    defaults: list[str] = []
    unknown: list[str] = []
    for name in fields:
        known = result.values[name]
        if known.origin is OriginKind.DEFAULT or known.value is UNKNOWN:
            (unknown if known.value is UNKNOWN else defaults).append(name)
            continue
        shown.add_row(
            name, f"{plain(show(known.value))}  ({known.origin.value}{' ' + known.rule if known.rule else ''})"
        )
    if shown.row_count:
        out.print(
            "\nResolved" + (", as far as the engine gets" if result.verdict is Answer.REFUSES else ""), style="bold"
        )
        out.print(shown)
    if unknown:
        out.print(indented("not known: " + ", ".join(unknown)))
    if defaults:
        out.print(indented("at their default: " + ", ".join(defaults)))


def _print_sources(out: Console, findings: Iterable[Finding]) -> None:
    lines: dict[str, list[str]] = {}
    for finding in findings:
        for source in finding.sources if finding.verdict is Verdict.BREAKS else ():
            lines.setdefault(source_text(source), []).append(finding.rule)
    if lines:
        out.print("\nSources", style="bold")
        for words, rules in lines.items():
            out.print(indented(f"{words}: {', '.join(dict.fromkeys(rules))}"))
