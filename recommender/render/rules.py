"""Words lists of laws, and one law with all that its file says; it must not read files or judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Protocol

from recommender.render.console import console, stacked, table
from recommender.render.explain import law_json, plain_values, print_law, row
from recommender.reports import LawAccount
from recommender.terms import Bites, Effect
from recommender.versions import uncovered

LIST_SCHEMA = "recommender.rules/1"
SHOW_SCHEMA = "recommender.rule/1"
# What a rule's file holds beyond what an explanation of it says, in the order people read it.
_BEHIND = ("when", "require", "phase", "parse", "after", "silent_after", "engine_error", "engine_error_at", "formerly")


class Law(Protocol):
    """What a list says of a law."""

    @property
    def id(self) -> str: ...
    @property
    def topic(self) -> str: ...
    @property
    def effect(self) -> Effect: ...
    @property
    def bites(self) -> Bites | None: ...
    @property
    def statement(self) -> str: ...


def print_list(laws: Sequence[Law], asked: str, judged_as: str) -> None:
    """The laws by topic, each with its statement."""
    out = console()
    topics = [(topic, list(group)) for topic, group in groupby(laws, key=lambda law: law.topic)]
    out.print(f"{_counted(len(laws), 'law')} of SGLang {judged_as} on {_counted(len(topics), 'topic')}.", style="bold")
    if asked != judged_as:
        out.print(uncovered(asked, judged_as, "listed"))
    for topic, group in topics:
        out.print(f"\n{topic}", style="bold")
        shown = table([("law", "left"), ("effect", "left")])
        for law in group:
            shown.add_row(stacked(law.id, law.statement), effect_words(law.effect, law.bites))
        out.print(shown)
    out.print("\nOne of them in full: recommender rules show LAW")


def effect_words(effect: Effect, bites: Bites | None) -> str:
    """What the engine does where a law applies, and when, in two words."""
    return f"{effect.value} {bites.value}" if bites else effect.value


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def list_json(laws: Iterable[Law], *, rulebook: str, sglang: str, judged_as: str) -> dict[str, Any]:
    """The laws as plain values."""
    return {
        "schema": LIST_SCHEMA,
        "rulebook": rulebook,
        "sglang": sglang,
        "judged_as": judged_as,
        "laws": [
            {
                "rule": law.id,
                "topic": law.topic,
                "effect": law.effect.value,
                "bites": law.bites.value if law.bites else None,
                "statement": law.statement,
            }
            for law in laws
        ],
    }


def print_show(editions: Sequence[tuple[LawAccount, Mapping[str, Any]]], judged_as: str) -> None:
    """A law as explained, then its condition and its examples; an older edition below a newer one."""
    out = console()
    for number, (law, document) in enumerate(editions):
        if number:
            out.print()
        print_law(out, law, "", judged_as)
        for key in _BEHIND:
            value = document.get(key)
            if value:
                row(
                    out,
                    key,
                    " ".join(value.split()) if isinstance(value, str) else ", ".join(map(str, value)),
                    wide=True,
                )
        for example in document.get("examples") or ():
            row(out, "example", example_words(example), wide=True)


def example_words(example: Mapping[str, Any]) -> str:
    """An example in one line: what it shows, the flags, the device, a release."""
    kind = next((key for key in ("breaks", "passes", "sets", "leaves") if key in example), "")
    device = f" on {example['gpu']}" if example.get("gpu") else ""
    device += f" with SGLang {example['release']}" if example.get("release") else ""
    env = "".join(f"{name}={value} " for name, value in (example.get("env") or {}).items())
    becomes = example.get("becomes") or {}
    outcome = " gives " + ", ".join(f"{name} = {value}" for name, value in becomes.items()) if becomes else ""
    return f"{kind}{device}: {env}{example.get(kind, '')}{outcome}"


def show_json(
    editions: Sequence[tuple[LawAccount, Mapping[str, Any]]], *, rulebook: str, sglang: str, judged_as: str
) -> dict[str, Any]:
    """A law as plain values, its editions newest first."""
    return {
        "schema": SHOW_SCHEMA,
        "rulebook": rulebook,
        "sglang": sglang,
        "judged_as": judged_as,
        "rule": editions[0][0].rule,
        "editions": [
            {
                **law_json(law),
                **{key: document[key] for key in _BEHIND if document.get(key)},
                "examples": [plain_values(each) for each in document.get("examples") or ()],
            }
            for law, document in editions
        ],
    }
