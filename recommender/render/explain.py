"""Words laws for people and for machines; it must not match, judge or look anything up."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recommender.expr import show
from recommender.render.console import WIDTH, console, plain
from recommender.reports import Change, Explanation, LawAccount, Remedy
from recommender.terms import Bites, Effect, Value
from recommender.versions import uncovered

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "recommender.explain/1"
MOST_LAWS = 5
LONGEST_SAID = 320
MARGIN = 12
WIDE_MARGIN = 19
_GLUE = "\u00a0"
_WHEN = {
    Bites.PARSE: "refuses the launch while its command line is parsed",
    Bites.STARTUP: "refuses the launch at startup, before the weights are loaded",
    Bites.LOAD: "stops the server while it loads, after the weights",
    Bites.REQUEST: "fails at the first request",
}
_WHAT = {
    Effect.SETS: "writes settings while the arguments are resolved",
    Effect.DEGRADES: "lets the server run, slower, wrong or without the feature",
    Effect.NOTES: "sizes or limits something, and lets the server run",
}
_SHOWN_BY = {"engine": "a run of the engine shows it", "source": "read in the source, not run"}


def when_it_bites(law: LawAccount) -> str:
    """What the engine does where the law applies, and when."""
    return _WHEN[law.bites] if law.bites is not None else _WHAT[law.effect]


# --- expressions in words ---------------------------------------------------------------------------------------------

_OPERATORS = {
    ast.Eq: "is", ast.NotEq: "is not", ast.Is: "is", ast.IsNot: "is not", ast.Lt: "is less than", ast.LtE: "is at most",
    ast.Gt: "is more than", ast.GtE: "is at least", ast.In: "is one of", ast.NotIn: "is none of",
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
}  # fmt: skip
_CALLS = {
    "max": "the larger of {}", "min": "the smaller of {}", "len": "the number of {}",
    "unset": "{} is unset", "asked": "{} is given", "first": "the first of {}",
    "upper": "{} in upper case", "lower": "{} in lower case",
}  # fmt: skip


def in_words(expression: str) -> str:
    """An expression as people read it; as it stands where its grammar has no words."""
    text = expression.removeprefix("=").strip()
    try:
        return _words(ast.parse(text, mode="eval").body)
    except (SyntaxError, RecursionError):
        return text


def _words(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=value):
            return "unset" if value is None else show(value)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return f"{_words(body)} if {_words(test)}, else {_words(orelse)}"
        case ast.BoolOp(op=ast.Or(), values=[first, second]) if not isinstance(first, (ast.Compare, ast.Call)):
            return f"{_words(first)}, or {_words(second)} where it is unset"
        case ast.BoolOp(op=operation, values=values):
            return (" or " if isinstance(operation, ast.Or) else " and ").join(_words(value) for value in values)
        case ast.Compare(left=left, ops=operators, comparators=others):
            compared = (f"{_OPERATORS[type(o)]} {_words(each)}" for o, each in zip(operators, others, strict=True))
            return " ".join([_words(left), *compared])
        case ast.BinOp(left=left, op=operation, right=right):
            return f"{_operand(left)} {_OPERATORS.get(type(operation), '?')} {_operand(right)}"
        case ast.UnaryOp(op=ast.Not(), operand=ast.Call(func=ast.Name(id="unset"), args=[inner])):
            return f"{_words(inner)} is set"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return f"not {_operand(operand)}"
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in _CALLS:
            return _CALLS[name].format(" and ".join(_words(argument) for argument in arguments))
        case ast.Tuple(elts=items):
            return ", ".join(_words(item) for item in items)
        case _:
            return ast.unparse(node)


def _operand(node: ast.expr) -> str:
    inner = _words(node)
    return inner if isinstance(node, (ast.Name, ast.Attribute, ast.Constant)) else f"({inner})"


def message_in_words(message: str) -> str:
    """A message with the names of its values in angle brackets."""
    pieces = message.replace("}", "{").split("{")
    return "".join(f"<{in_words(piece)}>" if number % 2 else piece for number, piece in enumerate(pieces))


# --- cures ------------------------------------------------------------------------------------------------------------


def change_words(change: Change) -> str:
    """One change as flags; empty when the flag is to be left out."""
    if isinstance(change.value, str) and change.value.startswith("="):
        return f"{change.flag}{'=' if change.is_variable else ' '}<{in_words(change.value)}>"
    return " ".join(change.words)


def remedy_words(remedy: Remedy) -> str:
    """A cure in one line: variables, flags, and what to leave out."""
    said = [words for change in remedy.changes if change.is_variable and (words := change_words(change))]
    said += [words for change in remedy.changes if not change.is_variable and (words := change_words(change))]
    left_out = [change.flag for change in remedy.changes if not change_words(change)]
    parts = [" ".join(said)] if said else []
    if left_out:
        parts.append(("without " if said else "leave out ") + _listed(left_out))
    return ", ".join(parts)


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


# --- for people -------------------------------------------------------------------------------------------------------


def print_explanation(explanation: Explanation) -> None:
    """The laws, the likeliest first: what the law says, when it bites, its cure, then releases and sources."""
    out = console()
    laws = explanation.laws
    if len(laws) > 1:
        out.print(f"{len(laws)} laws explain this text, the likeliest first.\n", style="bold")
    for number, law in enumerate(laws[:MOST_LAWS], start=1):
        print_law(out, law, f"{number}. " if len(laws) > 1 else "", explanation.judged_as)
        out.print()
    if len(laws) > MOST_LAWS:
        rest = ", ".join(law.rule for law in laws[MOST_LAWS:])
        out.print(_filled(f"Also: {rest}.", "", "      "))
        out.print()
    if any(law.remedies for law in laws):
        out.print(_filled("To see which cure fits your launch: recommender check --gpu NAME -- COMMAND", "", "  "))
    if explanation.sglang != explanation.judged_as:
        out.print(uncovered(explanation.sglang, explanation.judged_as, "read"))


def print_general(explanation: Explanation) -> None:
    """What is known of messages that no law is behind."""
    out = console()
    for item in explanation.general[:MOST_LAWS]:
        out.print(_filled(item.means, "", ""), style="bold")
        row(out, "found", shortened(item.said))
        row(out, "look", item.look)
        release = f", {item.source.release}" if item.source.release else ""
        row(out, "source", f"{item.source.file} {item.source.symbol}".strip() + release)
        out.print()


def print_law(out: Console, law: LawAccount, number: str, judged_as: str) -> None:
    """One law: its statement, then labelled lines."""
    out.print(_filled(f"{number}{law.statement}", "", " " * len(number)), style="bold")
    row(out, "law", f"{law.rule} ({law.topic})")
    row(out, "bites", when_it_bites(law))
    if law.said:
        row(out, "found", shortened(law.said))
    if law.place:
        row(out, "raised at", place_words(law.place))
    if law.writes:
        row(out, "writes", ", ".join(f"{name} = {_value_words(value)}" for name, value in law.writes.items()))
    if law.message:
        row(out, "says", message_in_words(law.message))
    if law.near:
        row(out, "nearest", ", ".join(law.near))
    print_cures(out, law)
    row(out, "releases", releases_words(law, judged_as))
    for place, source in enumerate(law.sources):
        release = f", {source.release}" if source.release else ""
        row(out, "" if place else "source", f"{source.file} {source.symbol}".strip() + release)
    if law.verified in _SHOWN_BY:
        row(out, "verified", _SHOWN_BY[law.verified])


def print_cures(out: Console, law: LawAccount) -> None:
    """The cures of a law in their order, then what the names in them mean."""
    meanings: dict[str, str] = {}
    for number, remedy in enumerate(law.remedies):
        row(out, "cure" if number == 0 else "or", remedy_words(remedy), style="green")
        meanings |= remedy.meanings
    for number, (name, meaning) in enumerate(meanings.items()):
        row(out, "" if number else "where", f"{name}: {meaning}")
    if law.given:
        shown = ", ".join(f"{name} {show(value)}" for name, value in law.given.items())
        row(out, "" if meanings else "where", f"the text shows {shown}")


def releases_words(law: LawAccount, judged_as: str) -> str:
    """The covered releases a law holds in, and since when it is known to."""
    covered = ", ".join(law.releases) or "none that is covered"
    bounds = f"known since {law.since}" + (f", until {law.until}" if law.until else "")
    return f"{covered} ({bounds})" + ("" if law.in_force else f"; not in {judged_as}")


def row(out: Console, label: str, text: str, style: str | None = None, wide: bool = False) -> None:
    """A labelled paragraph."""
    margin = WIDE_MARGIN if wide else MARGIN
    out.print(_filled(text, f"  {label:<{margin - 2}}", " " * margin), style=style)


def _filled(text: str, first: str, rest: str) -> str:
    """A paragraph that parts no flag from its dashes and no flag from its value."""
    glued = re.sub(r"(--[\w-]+) (?=[^\s-])", rf"\1{_GLUE}", plain(text))
    lines = textwrap.fill(
        glued, width=WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False, break_long_words=True
    )
    return lines.replace(_GLUE, " ")


def place_words(place: str) -> str:
    """A frame as people look for it: the end of its path, the line, the function."""
    path, line, function = place.rsplit(":", 2)
    return f"{'/'.join(path.split('/')[-3:])} line {line}, {function}"


def shortened(text: str) -> str:
    """A passage as far as people need it."""
    return text if len(text) <= LONGEST_SAID else f"{text[: LONGEST_SAID - 3]}..."


def _value_words(value: Value) -> str:
    return in_words(value) if isinstance(value, str) and value.startswith("=") else show(value)


def no_law(explanation: Explanation, subject: str | None = None) -> str:
    """The one line for a text that no law explains: what was seen, and what to paste instead."""
    if explanation.near:
        return f"no law or file is called {subject!r}; did you mean {' or '.join(explanation.near)}?"
    if explanation.faint:
        count = len(explanation.faint)
        laws = _listed(sorted(explanation.faint)) if count < 4 else f"{count} laws"
        return (
            f"this message alone names no law ({laws} would fit): "
            'paste it with the traceback above it, the lines that read File "...", line N, in ...'
        )
    if explanation.cut:
        laws = _listed(explanation.cut[:MOST_LAWS])
        return f"the text may break off in the words of {laws} (see recommender explain LAW); paste the whole message"
    if explanation.general:
        return f"no law of SGLang {explanation.judged_as} is behind this text; what its words mean is told above"
    if explanation.akin:
        return (
            f"no law raises this message; nearest to it: {', '.join(explanation.akin)} (see recommender explain LAW); "
            "paste the engine's own words for a sure answer"
        )
    seen = f"; the last error in it is: {shortened(plain(explanation.last_error))}" if explanation.last_error else ""
    return (
        f"no law of SGLang {explanation.judged_as} explains this text{seen}; paste the engine's own message, the line "
        "that starts with the name of an error or holds 'error:', with the traceback above it, or name the log file"
    )


# --- for machines -----------------------------------------------------------------------------------------------------


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    """An explanation as plain values."""
    return {
        "schema": SCHEMA,
        "rulebook": explanation.rulebook,
        "sglang": explanation.sglang,
        "judged_as": explanation.judged_as,
        "laws": [law_json(law) for law in explanation.laws],
        "needs_traceback": list(explanation.faint),
        "last_error": explanation.last_error or None,
        "near": list(explanation.near),
        "akin": list(explanation.akin),
        "breaks_off_in": list(explanation.cut),
        "general": [
            {"said": plain(item.said), "means": item.means, "look": item.look, "source": item.source.file}
            for item in explanation.general
        ],
    }


def law_json(law: LawAccount) -> dict[str, Any]:
    """A law as plain values."""
    return {
        "rule": law.rule,
        "topic": law.topic,
        "effect": law.effect.value,
        "bites": law.bites.value if law.bites else None,
        "statement": law.statement,
        "message": law.message or None,
        "said": law.said or None,
        "raised_at": law.place or None,
        "near": list(law.near),
        "writes": plain_values(law.writes),
        "cures": [remedy_json(remedy) for remedy in law.remedies],
        "given": plain_values(law.given),
        "since": law.since,
        "until": law.until,
        "releases": list(law.releases),
        "in_force": law.in_force,
        "sources": [
            {"file": each.file, "symbol": each.symbol or None, "release": each.release or None} for each in law.sources
        ],
        "verified": law.verified or None,
    }


def remedy_json(remedy: Remedy) -> dict[str, Any]:
    """A cure as plain values; `flags` holds a text in angle brackets where a value is still open."""
    return {
        "changes": {change.setting: plain_value(change.value) for change in remedy.changes},
        "flags": [words for change in remedy.changes if (words := change_words(change))],
        "leave_out": [change.flag for change in remedy.changes if not change_words(change)],
        "where": dict(remedy.meanings),
    }


def plain_values(values: Mapping[str, Value]) -> dict[str, Any]:
    """Settings as plain values."""
    return {name: plain_value(value) for name, value in values.items()}


def plain_value(value: Value) -> Any:
    """A value as JSON has it."""
    return [plain_value(item) for item in value] if isinstance(value, (list, tuple)) else value
