"""Leads the engine's refusal of a launch back through explain, as a user would; it must not judge the launch."""

from __future__ import annotations

from functools import lru_cache

from recommender.accounts import traced_rules
from recommender.laws import Rule
from recommender.matching import Traced, trace
from recommender.rulebook import Rulebook, load_rulebook

from .records import Answered

PARSER = ("SystemExit", "ArgumentError")
LISTED = ("\n- ", "\n  - ")  # the engine tells all its complaints at once, in its own order


def said(type_: str, message: str) -> str:
    """The last line of the log that a user has of a refusal."""
    if type_ in PARSER:
        return f"launch_server.py: error: {message}"
    return f"{type_}: {message}" if message else type_


def logged(type_: str, message: str, frames: tuple[str, ...]) -> str:
    """The end of that log, with the places that the engine went through."""
    lines = ["Traceback (most recent call last):"] if frames else []
    for frame in frames:
        file, line, function = frame.rsplit(":", 2)
        lines.append(f'  File "/usr/lib/python3/site-packages/sglang/{file}", line {line}, in {function}')
    return "\n".join([*lines, said(type_, message), ""])


def frames_of(launch: Answered) -> tuple[str, ...]:
    """The places of a refusal as a traceback names them; the parser of the command line shows none."""
    if launch.type in PARSER:
        return ()
    chain = tuple(place for place in launch.chain if place.count(":") == 2)
    ended = chain and chain[-1].startswith(f"{launch.at}:")
    return chain if ended or launch.at.count(":") != 1 else (*chain, f"{launch.at}:<module>")


def likeliest(traced: Traced, text: str) -> list[str]:
    """The laws that explain a text and that it does not tell apart; all of them where the engine lists its complaints."""
    listed = any(mark in text for mark in LISTED)
    return [match.rule.id for match in traced.matches if listed or match.level == traced.matches[0].level]


def led_elsewhere(release: str, launch: Answered, laws: frozenset[str]) -> str:
    """Where explain leads a refusal instead of to one of the laws that describe it; empty when it leads there.

    With its traceback every refusal must lead there. A message alone may also ask for its traceback.
    """
    if launch.type in PARSER and launch.message.isdigit():
        return ""  # the parser left without a word
    return _led_elsewhere(release, launch.type, launch.message, frames_of(launch), laws)


@lru_cache(maxsize=65536)
def _led_elsewhere(release: str, type_: str, message: str, frames: tuple[str, ...], laws: frozenset[str]) -> str:
    rules = _rules(load_rulebook(), release)
    text = logged(type_, message, frames)
    traced = trace(text, rules, release)
    found = likeliest(traced, text)
    if not laws & set(found):
        return f"with its traceback to {_words(found, traced)}"
    if not message or not frames:
        return ""
    bare = trace(said(type_, message), rules, release)
    found = likeliest(bare, message)
    faint = {rule.id for rule in bare.faint}
    return "" if laws & (set(found) | faint) else f"alone to {_words(found, bare)}"


def _words(found: list[str], traced: Traced) -> str:
    return ", ".join(found) or "nothing" + "".join(f", faintly {rule.id}" for rule in traced.faint)


@lru_cache(maxsize=16)
def _rules(book: Rulebook, release: str) -> tuple[Rule, ...]:
    return tuple(traced_rules(book, release))
