"""Gives an account of a law: cures as flags, releases, what its names mean; it must not search a text or word one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from typing import Any

from recommender.catalogue import CommandLine
from recommender.command_line import nearest
from recommender.errors import UsageError
from recommender.expr import compile_value
from recommender.forms.emit import flags_for
from recommender.laws import FactTable, Rule, Scope, source_of
from recommender.matching import Match, said_in
from recommender.reports import Change, General, LawAccount, Remedy
from recommender.rulebook import ENGINE, Edition, Rulebook
from recommender.terms import UNKNOWN, Value
from recommender.versions import in_range, parse_release

MOST_WORDS = 40
_AN_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9.]+)*")


def editions_of(editions: Iterable[Rule], release: str) -> list[Rule]:
    """The editions of a law, that of a release first."""
    wanted = parse_release(release)
    return sorted(editions, key=lambda rule: not in_range(wanted, rule.since, rule.until))


def traced_rules(book: Rulebook, release: str) -> list[Rule]:
    """What a message is led back to: every edition of every law, that of a release before its others."""
    return [rule for editions in book.rules.values() for rule in editions_of(editions, release)]


def law_named(book: Rulebook, name: str) -> tuple[Rule, ...]:
    """The editions of the law with this id or former id; none when there is no such law."""
    if not _AN_ID.fullmatch(name):
        return ()
    found = book.rules.get(name)
    return found or next((each for each in book.rules.values() if any(name in rule.formerly for rule in each)), ())


def ids_like(book: Rulebook, word: str) -> tuple[str, ...]:
    """The ids that look like a single word."""
    return nearest(word, tuple(book.rules)) if _AN_ID.fullmatch(word) else ()


def general_messages(book: Rulebook, text: str) -> tuple[General, ...]:
    """What is known of the messages in a text that no law explains, in the order of the file."""
    found = []
    for entry in book.library.one(f"{ENGINE}/messages.yaml")["messages"]:
        said = said_in(text, entry["said"])
        if said:
            source = source_of(entry["source"])
            found.append(General(said=said, means=entry["means"], look=entry["look"], source=source))
    return tuple(found)


def account_of(book: Rulebook, rule: Rule, edition: Edition, match: Match | None = None, text: str = "") -> LawAccount:
    """A law as people read about it; settings that the text shows are put into its cures."""
    releases = tuple(
        release.version
        for release in book.releases
        if any(in_range(parse_release(release.version), each.since, each.until) for each in book.rules[rule.id])
    )
    given: dict[str, Value] = {}
    remedies = tuple(_remedy(book, edition, fix, text, given) for fix in rule.fix)
    return LawAccount(
        rule=rule.id,
        topic=rule.topic,
        effect=rule.effect,
        bites=rule.bites,
        statement=rule.statement,
        message=rule.message,
        said=match.said if match else "",
        place=match.frames[-1] if match and match.frames else "",
        near=_near(edition.command_line, match) if match and rule.parse else (),
        writes=rule.sets,
        remedies=remedies,
        given=given,
        since=rule.since,
        until=rule.until,
        releases=releases,
        in_force=edition.release in releases,
        sources=rule.sources,
        verified=rule.verified,
    )


def _remedy(book: Rulebook, edition: Edition, fix: Mapping[str, Value], text: str, given: dict[str, Value]) -> Remedy:
    variables = book.settings.get("environment") or {}
    changes = []
    names: set[str] = set()
    for name, value in fix.items():
        if is_expression(value):
            worked_out = _worked_out(value, edition, text, given)
            if worked_out is None:
                names |= names_in(value)
            else:
                value = worked_out  # noqa: PLW2901  the text shows what it needs
        changes.append(_change(edition.command_line, name, value, name in variables))
    return Remedy(changes=tuple(changes), meanings=meanings_of(book, names))


def is_expression(value: Value) -> bool:
    """Whether a value of a rule is to be worked out."""
    return isinstance(value, str) and value.startswith("=")


def _change(line: CommandLine, name: str, value: Value, is_variable: bool) -> Change:
    flag = line.fields[name].flag.long if name in line.fields else name
    words: tuple[str, ...] = ()
    if is_variable:
        words = () if value is None or is_expression(value) else (f"{name}={_variable_text(value)}",)
    elif name in line.fields and not is_expression(value):
        try:
            words = flags_for(line, {name: value})
        except UsageError:
            words = ()
    return Change(setting=name, value=value, flag=flag, words=words, is_variable=is_variable)


def _variable_text(value: Value) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def names_in(expression: str) -> set[str]:
    """The names that an expression of a rule reads, dotted ones whole."""
    try:
        tree = ast.parse(expression.removeprefix("=").strip(), mode="eval")
    except SyntaxError:
        return set()
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return {
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Name, ast.Attribute)) and id(node) not in called | inner
    }


def meanings_of(book: Rulebook, names: Iterable[str]) -> dict[str, str]:
    """What definitions and facts stand for; a setting's name speaks for itself."""
    wanted = sorted(names)
    found: dict[str, str] = {}
    if not wanted:
        return found
    facts: Mapping[str, Any] = book.library.one("profiles/facts.yaml")
    defined: dict[str, Any] = {}
    for path in book.library.folders.get(f"{ENGINE}/definitions", ()):
        for document in book.library.documents[path]:
            defined |= document
    for name in wanted:
        listed = f"model.{name.removeprefix('draft.')}" if name.startswith("draft.") else name
        entry = defined.get(name) or facts.get(listed) or {}
        if entry.get("meaning"):
            whose = "Of the draft: " if listed != name else ""
            found[name] = whose + " ".join(str(entry["meaning"]).split())
    return found


class _Nothing(dict[str, Value]):
    def __missing__(self, name: str) -> Value:
        return UNKNOWN


def _worked_out(value: str, edition: Edition, text: str, given: dict[str, Value]) -> Value:
    """An expression's value from the settings that a text shows; None where they do not suffice."""
    if not text:
        return None
    expression = compile_value(value, edition.words)
    shown = _Nothing()
    for name in sorted(expression.settings):
        found = shown_value(text, name, edition.command_line)
        if found is not UNKNOWN:
            shown[name] = found
    facts = FactTable(_Nothing(), edition.words.definition)
    answer = expression.evaluate(Scope(values=shown, facts=facts, asked=_Nothing()))
    if answer is UNKNOWN or answer is None:
        return None
    given.update(shown)
    return answer


_SHOWN = re.compile(r"'([^'\n]{0,200})'|\"([^\"\n]{0,200})\"|(None)\b|(True|False)\b|(-?\d{1,9})(?![\w.])")
_AFTER_A_FLAG = re.compile(r"[= ]+(?:'([^'\n]{0,200})'|([\w./-]{1,200}))")


def shown_value(text: str, name: str, line: CommandLine) -> Value:
    """A setting as a text shows it last, `name=value` or as a flag; UNKNOWN when it does not."""
    place = text.rfind(f"{name}=")
    while place > 0 and (text[place - 1].isalnum() or text[place - 1] in "_.-"):
        place = text.rfind(f"{name}=", 0, place)
    if place >= 0:
        found = _SHOWN.match(text, place + len(name) + 1)
        if found:
            return _python_value(found)
    if name in line.fields:
        for flag in line.fields[name].flag.names:
            place = text.rfind(flag)
            written = _AFTER_A_FLAG.match(text, place + len(flag)) if place >= 0 else None
            if written:
                try:
                    return line.fields[name].flag.convert(written[1] if written[1] is not None else written[2])
                except ValueError:
                    return UNKNOWN
    return UNKNOWN


def _python_value(found: re.Match[str]) -> Value:
    if found[3]:
        return None
    if found[4]:
        return found[4] == "True"
    if found[5]:
        return int(found[5])
    return found[1] if found[1] is not None else found[2]


def _near(line: CommandLine, match: Match) -> tuple[str, ...]:
    """The nearest flags of a release to the first word of the parser's message that looks like one and is none."""
    for word in match.said.split()[:MOST_WORDS]:
        flag = word.strip("'\",;`").partition("=")[0][:200]
        if flag.startswith("--") and line.flag(flag) is None:
            return line.options(flag)[:MOST_WORDS] or nearest(flag.replace("_", "-"), line.names)
    return ()
