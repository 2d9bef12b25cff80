"""Words devices and checkpoints with their facts; it must not look anything up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recommender.expr import show
from recommender.render.console import console, plain, stacked, table
from recommender.render.explain import plain_value
from recommender.reports import ProfileAccount
from recommender.terms import UNKNOWN, Value

LIST_SCHEMA = "recommender.profiles/1"
SHOW_SCHEMA = "recommender.profile/1"
LONGEST_VALUE = 60
_TITLES = {"gpus": "devices", "models": "models", "drafts": "draft models"}


def value_words(value: Value) -> str:
    """A fact's value as people read it."""
    if value is UNKNOWN:
        return "unknown"
    if value is None or value == "":
        return "none" if value is None else '""'
    if isinstance(value, float):
        return f"{value:g}"
    text = plain(show(value) if not isinstance(value, dict) else str(value))
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."


def print_list(listed: Mapping[str, Sequence[ProfileAccount]]) -> None:
    """What has a profile, by kind."""
    out = console()
    for number, (kind, accounts) in enumerate(listed.items()):
        if number:
            out.print()
        out.print(f"{len(accounts)} {_TITLES[kind]}", style="bold")
        facts = accounts[0].facts if accounts else ()
        shown = table([("id", "left"), *((fact.name.partition(".")[2], "left") for fact in facts)])
        for each in accounts:
            shown.add_row(stacked(each.id, _second_line(each)), *(value_words(fact.value) for fact in each.facts))
        out.print(shown)
    out.print("\nAll facts of one: recommender profiles show NAME")


def _second_line(account: ProfileAccount) -> str:
    if account.algorithm:
        return f"{account.algorithm} for {', '.join(account.targets) or 'any target'}"
    return account.names[0] if account.names else account.name


def print_show(account: ProfileAccount) -> None:
    """Every fact with its value, unit and source; what is not known is marked."""
    out = console()
    title = account.id or account.name
    unknown = sum(fact.value is UNKNOWN for fact in account.facts)
    count = f"{account.count} x " if account.count else ""
    out.print(f"{count}{plain(title)}: {len(account.facts)} facts, {unknown} unknown.", style="bold")
    for label, words in (
        ("also called", ", ".join(account.names)),
        ("drafts for", ", ".join(account.targets)),
        ("algorithm", account.algorithm),
        ("known drafts", ", ".join(account.drafts)),
        ("file", account.path),
    ):
        if words:
            out.print(f"{label}: {plain(words)}")
    out.print()
    shown = table([("fact", "left"), ("value", "left"), ("unit", "left"), ("source", "left")])
    for fact in account.facts:
        value = ("? " if fact.value is UNKNOWN else "") + value_words(fact.value)
        shown.add_row(fact.name.partition(".")[2], value, fact.unit, plain(_short(fact.source)))
    out.print(shown)


def _short(source: str) -> str:
    """The kind of a source; its place is for machines, unless the profile cites a source of its own."""
    kind, colon, _ = source.partition(": ")
    return kind if colon and " " not in kind else source


def list_json(listed: Mapping[str, Sequence[ProfileAccount]], rulebook: str) -> dict[str, Any]:
    """Profiles as plain values."""
    return {
        "schema": LIST_SCHEMA,
        "rulebook": rulebook,
        **{kind: [_head_json(each) | _values_json(each) for each in accounts] for kind, accounts in listed.items()},
    }


def _head_json(account: ProfileAccount) -> dict[str, Any]:
    head = {
        "id": account.id or None,
        "name": account.name,
        "names": list(account.names),
        "count": account.count,
        "drafts": list(account.drafts),
        "algorithm": account.algorithm or None,
        "targets": list(account.targets),
        "path": account.path or None,
    }
    return {key: value for key, value in head.items() if value not in (None, [])} | {"id": head["id"]}


def _values_json(account: ProfileAccount) -> dict[str, Any]:
    return {fact.name.partition(".")[2]: _json(fact.value) for fact in account.facts}


def _json(value: Value) -> Any:
    return "unknown" if value is UNKNOWN else plain_value(value)


def show_json(account: ProfileAccount, rulebook: str) -> dict[str, Any]:
    """A profile as plain values; a fact that nobody knows says so apart from its value."""
    return {
        "schema": SHOW_SCHEMA,
        "rulebook": rulebook,
        "kind": account.kind,
        **_head_json(account),
        "facts": {
            fact.name: {
                "value": None if fact.value is UNKNOWN else plain_value(fact.value),
                "known": fact.value is not UNKNOWN,
                "unit": fact.unit or None,
                "source": fact.source,
                "meaning": fact.meaning,
            }
            for fact in account.facts
        },
    }
