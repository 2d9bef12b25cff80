"""Words a recommendation for people and for machines; it must not judge, rank or search."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recommender.expr import show
from recommender.render.check import image_json, image_words, machine_value, source_text
from recommender.render.console import console, indented, plain, table
from recommender.terms import Value

if TYPE_CHECKING:
    from rich.console import Console

    from recommender.advise import Advice, Adviser, Exit, NoAnswer, Row

SCHEMA = "recommender.recommend/1"


def print_table(advice: Advice, adviser: Adviser, best: str) -> None:
    """The recommendation for people: the best row as flags, all rows, reasons, what else was decided, sources."""
    out = console()
    if not advice.rows:
        print_no_answer(advice, adviser)
        return
    device = f"{adviser.ask.gpus} x {adviser.ask.gpu.name}"
    release = adviser.session.edition.release
    doubt = "; not every law can be judged" if advice.rows[0].unknown else ""
    out.print(f"Best on {device}, SGLang {release}, {adviser.ask.concurrency} requests at once{doubt}:", style="bold")
    out.print(best, style="green", soft_wrap=True)
    if adviser.ask.gpu.unproven:
        out.print(f"Nothing was tried there. {adviser.ask.gpu.unproven}")
    if adviser.ask.image:
        out.print(plain(image_words(adviser.ask.image)))
    _print_rows(out, advice, adviser)
    _print_reasons(out, advice)
    if advice.forced:
        out.print("\nOnly chains are valid here, so the budget goes into depth", style="bold")
        for rule, statement in zip(advice.forced.rules, advice.forced.statements, strict=True):
            out.print(indented(f"{rule}: {statement}"))
    if advice.warnings:
        out.print("\nWarnings", style="bold")
        for rule, message in advice.warnings:
            out.print(indented(f"{rule}: {message}"))
    if advice.rewrites:
        out.print("\nRewritten by the engine", style="bold")
        for name, known in advice.rewrites.items():
            out.print(indented(f"{name}: asked {show(known.asked)}, becomes {show(known.value)}, by rule {known.rule}"))
    if advice.stated:
        out.print("\nAlso stated", style="bold")
        for name, why in advice.stated.items():
            out.print(indented(f"{name} {show(advice.rows[0].asked.get(name))}: {why}"))
    if advice.alternatives:
        out.print("\nAlso possible, whatever the shape", style="bold")
        for name, values in advice.alternatives.items():
            words = ", ".join("left to the engine" if value is None else show(value) for value in values)
            out.print(indented(f"{name}: {words}"))
    _print_excluded(out, advice)
    sources = [advice.tier.source] if advice.tier else []
    sources += [source_text(source) for source in advice.forced.sources] if advice.forced else []
    if sources:
        out.print("\nSources", style="bold")
        for source in dict.fromkeys(sources):
            out.print(indented(source))


def _print_excluded(out: Console, advice: Advice) -> None:
    """A line for each algorithm that is not offered: the reason, and the law behind it."""
    if advice.excluded:
        out.print("\nNot offered", style="bold")
        for item in advice.excluded:
            law = f" ({item.rule})" if item.rule else ""
            out.print(indented(f"{item.algorithm}: {item.reason}{law}"))


def _print_rows(out: Console, advice: Advice, adviser: Adviser) -> None:
    roles = adviser.roles
    columns = [("#", "right"), ("algorithm", "left"), ("steps", "right"), ("topk", "right"), ("tokens", "right")]
    columns += [("page", "right"), ("backend", "left"), ("draft backend", "left")]
    shown = table(columns)
    searched = [entry["setting"] for entry in adviser.search["variables"]]
    backend, draft_backend, page = searched[1], searched[2], searched[3]
    for number, row in enumerate(advice.rows, start=1):
        mark = "?" if row.unknown else "!" if row.costs else ""
        split = [row.asked.get(name) for name in adviser.search["variables"][1]["spans"]]
        words = "/".join(show(value) for value in split if value) or show(row.asked.get(backend))
        shown.add_row(
            f"{number}{mark}",
            row.candidate.algorithm,
            *(show(row.asked.get(roles[role])) for role in ("steps", "topk", "draft_tokens")),
            show(row.asked.get(page)),
            words,
            "-" if row.asked.get(draft_backend) is None else show(row.asked[draft_backend]),
        )
    out.print()
    out.print(shown)
    drafts = dict.fromkeys(
        row.candidate.draft or ("its own head" if row.candidate.own else "none") for row in advice.rows
    )
    out.print(f"draft: {', '.join(map(plain, drafts))}")
    if any(row.unknown for row in advice.rows):
        out.print("?  a law on it cannot be judged")
    if any(row.costs and not row.unknown for row in advice.rows):
        out.print("!  the engine runs it degraded")
    if advice.more:
        out.print("There are more rows: --top 0 shows all.")


def _print_reasons(out: Console, advice: Advice) -> None:
    out.print("\nWhy in this order", style="bold")
    out.print(indented(advice.rows[0].candidate.why))
    for number, row in enumerate(advice.rows[:10], start=1):
        extra = "".join(f"; not judged: {name}" for name in row.unknown[:3]) + "".join(
            f"; degraded: {name}" for name in row.costs[:3]
        )
        out.print(indented(f"{number}. {row.reason}{extra}"))


def print_words(advice: Advice, adviser: Adviser) -> None:
    """A few words for people on stderr, beside a machine's answer on stdout."""
    row = advice.rows[0]
    image = adviser.ask.image
    lines = [image_words(image)] if image else []
    lines += [f"{row.candidate.algorithm}: {row.reason}"]
    if advice.forced:
        lines += [f"only chains are valid: {', '.join(advice.forced.rules)}"]
    lines += [f"warning: {message} ({rule})" for rule, message in advice.warnings]
    lines += [
        f"{name}: asked {show(known.asked)}, becomes {show(known.value)}, by rule {known.rule}"
        for name, known in advice.rewrites.items()
    ]
    if row.unknown:
        lines.append(f"not judged: {', '.join(row.unknown)}")
    for line in lines:
        sys.stderr.write(f"recommender: {plain(line)}\n")


def print_no_answer(advice: Advice, adviser: Adviser, to_stderr: bool = False) -> None:
    """Why nothing is valid: the clash, the ways out, the sources."""
    out = console(stderr=to_stderr)
    why = advice.no_answer
    assert why is not None
    out.print("No valid speculative setting.", style="bold red")
    if adviser.ask.image:
        out.print(plain(image_words(adviser.ask.image)))
    if why.problem:
        out.print(indented(why.problem))
        return
    if not why.clashes:
        out.print(indented("Speculation off: no algorithm fits what is there."))
    _print_exits(out, why, adviser)
    sources: dict[str, None] = {}
    for candidate, clash in why.clashes:
        draft = f" with {candidate.draft}" if candidate.draft else ""
        out.print(f"\nWhy not {candidate.algorithm}{draft}", style="bold")
        for name in clash.rules:
            rule = adviser.session.edition.rules.get(name)
            out.print(indented(f"{name}: {rule.statement}" if rule else name))
            for source in rule.sources if rule else ():
                sources[f"{name}: {source_text(source)}"] = None
        for name in clash.pins:
            out.print(indented(f"you asked {name} = {show(adviser.pins[name])}"))
    if not advice.excluded:
        for name, reason in advice.skipped:
            out.print(indented(f"{name}: {reason}"))
    _print_excluded(out, advice)
    if sources:
        out.print("\nSources", style="bold")
        for line in sources:
            out.print(indented(line))


def _print_exits(out: Console, why: NoAnswer, adviser: Adviser) -> None:
    for number, item in enumerate(why.exits):
        lead = "Way out" if number == 0 else "     or"
        out.print(f"{lead}: {_exit_words(item, adviser)}", style="green", soft_wrap=True)


def _exit_words(item: Exit, adviser: Adviser) -> str:
    from recommender.forms.emit import flags_for

    pins = adviser.pins
    line = adviser.session.edition.command_line
    flags = " ".join(flags_for(line, {name: value for name, value in item.changes.items() if value is not None}))
    gone = [name for name, value in item.changes.items() if value is None and name in pins]
    words = [f"({item.why})"] if item.why else []
    if flags:
        words.append(flags)
    if gone:
        words.append("without " + " ".join(line.fields[name].flag.long for name in gone if name in line.fields))
    return "  ".join(words) or "leave the speculative flags out"


def print_json(advice: Advice, adviser: Adviser, flags: Sequence[Sequence[str]]) -> None:
    """The whole recommendation for machines."""
    json.dump(advice_json(advice, adviser, flags), sys.stdout, indent=2)
    sys.stdout.write("\n")


def advice_json(advice: Advice, adviser: Adviser, flags: Sequence[Sequence[str]]) -> dict[str, Any]:
    """A recommendation as plain values."""
    session = adviser.session
    forced = advice.forced
    return {
        "schema": SCHEMA,
        "rulebook": session.book.digest,
        "sglang": session.asked_release,
        "judged_as": session.edition.release,
        "gpu": adviser.ask.gpu.name,
        **({"unproven": adviser.ask.gpu.unproven} if adviser.ask.gpu.unproven else {}),
        "gpus": adviser.ask.gpus,
        "image": image_json(adviser.ask.image),
        "concurrency": adviser.ask.concurrency,
        "rows": [_row_json(row, words) for row, words in zip(advice.rows, flags, strict=True)],
        "more": advice.more,
        "only_chains": {
            "rules": list(forced.rules),
            "statements": list(forced.statements),
            "sources": [source_text(source) for source in forced.sources],
        }
        if forced
        else None,
        "stated": dict(advice.stated),
        "alternatives": {
            name: [machine_value(value) for value in values] for name, values in advice.alternatives.items()
        },
        "rewrites": {
            name: {"asked": machine_value(known.asked), "becomes": machine_value(known.value), "rule": known.rule}
            for name, known in advice.rewrites.items()
        },
        "warnings": [{"rule": rule, "message": message} for rule, message in advice.warnings],
        "not_offered": [
            {
                "algorithm": item.algorithm,
                "reason": item.reason,
                "rules": item.rule.split(", ") if item.rule else [],
                "sources": [source_text(source) for source in item.sources],
            }
            for item in advice.excluded
        ],
        "skipped": [{"draft": name, "reason": reason} for name, reason in advice.skipped],
        "no_answer": _no_answer_json(advice, adviser),
    }


def _values(settings: Mapping[str, Value]) -> dict[str, Any]:
    return {name: machine_value(value) for name, value in settings.items()}


def _row_json(row: Row, flags: Sequence[str]) -> dict[str, Any]:
    return {
        "algorithm": row.candidate.algorithm,
        "draft": row.candidate.draft,
        "settings": _values(row.asked),
        "searched": _values(row.found),
        "flags": list(flags),
        "reason": row.reason,
        "unknown": list(row.unknown),
        "degraded": list(row.costs),
    }


def _no_answer_json(advice: Advice, adviser: Adviser) -> dict[str, Any] | None:
    why = advice.no_answer
    if why is None:
        return None
    rules = adviser.session.edition.rules
    return {
        "problem": why.problem or None,
        "clashes": [
            {
                "algorithm": candidate.algorithm,
                "draft": candidate.draft,
                "rules": [
                    {
                        "rule": name,
                        "statement": rules[name].statement,
                        "sources": [source_text(s) for s in rules[name].sources],
                    }
                    if name in rules
                    else {"rule": name}
                    for name in clash.rules
                ],
                "pins": {name: machine_value(adviser.pins[name]) for name in clash.pins},
            }
            for candidate, clash in why.clashes
        ],
        "ways_out": [{"changes": _values(item.changes), "why": item.why or None} for item in why.exits],
    }
