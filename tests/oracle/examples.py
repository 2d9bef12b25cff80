"""Reads the example launches of every rule, and what an engine's answer says against one; it must not ask the engine."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from recommender import devices, profiles
from recommender.command_line import nearest
from recommender.facts import stated_facts
from recommender.laws import Rule
from recommender.profiles import Gpu
from recommender.rulebook import Rulebook
from recommender.terms import Bites, Effect
from recommender.versions import in_range, parse_release

from .agree import equal, matches
from .records import Answered


class NoRuleError(ValueError):
    """A pattern of rules matches none; the message is one line that names it and the nearest ids."""


KINDS = ("breaks", "passes", "sets", "leaves")


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A launch of a rule: it breaks it, passes it, makes it write, or leaves it silent; `number` counts from 1."""

    rule: Rule
    number: int
    kind: str
    argv: tuple[str, ...]
    gpu: str | Mapping[str, Any]
    release: str
    env: Mapping[str, str] = field(default_factory=dict)
    becomes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What to call it."""
        return f"{self.rule.id}[{self.number} {self.kind}]"

    @property
    def device(self) -> Gpu:
        """Its device: a profile, or the facts that the example states where no profile has such a device."""
        if isinstance(self.gpu, str):
            return profiles.find_gpu(self.gpu)
        stated = stated_facts({"facts": dict(self.gpu)}, "gpu", self.rule.path)
        return Gpu(id=None, name="stated", facts=devices._gpu_facts(stated, self.rule.path))

    @property
    def engine_device(self) -> str:
        """The device to ask the engine about; empty when it cannot be asked."""
        return self.gpu if isinstance(self.gpu, str) else ""


def editions(book: Rulebook) -> Iterator[tuple[Rule, str]]:
    """Every edition of every rule with the newest covered release in which it holds (empty: in none)."""
    covered = [release.version for release in reversed(book.releases)]
    for laws in book.rules.values():
        for rule in laws:
            holds = (version for version in covered if in_range(parse_release(version), rule.since, rule.until))
            yield rule, next(holds, "")


def examples_of(rule: Rule, release: str) -> list[Example]:
    """The examples of one edition, as of a release of it that is given unless they name another one."""
    found = []
    for number, entry in enumerate(rule.examples, start=1):
        kind = next(kind for kind in KINDS if kind in entry)
        words = entry[kind]
        found.append(
            Example(
                rule=rule,
                number=number,
                kind=kind,
                argv=tuple(shlex.split(words) if isinstance(words, str) else map(str, words)),
                gpu=entry["gpu"],
                release=str(entry.get("release", release)),
                env={name: str(value) for name, value in (entry.get("env") or {}).items()},
                becomes=entry.get("becomes") or {},
            )
        )
    return found


def all_examples(book: Rulebook) -> list[Example]:
    """The examples of every edition that holds in a covered release."""
    return [example for rule, release in editions(book) if release for example in examples_of(rule, release)]


def rules_named(patterns: str, ids: Iterable[str]) -> frozenset[str]:
    """The ids in which one of some patterns with commas between them is found; all of them for an empty text.

    Raises:
        NoRuleError: a pattern is found in none, or is no pattern.
    """
    known = tuple(ids)
    found: set[str] = set()
    for pattern in patterns.split(","):
        try:
            named = [rule for rule in known if re.search(pattern.strip(), rule)]
        except re.error as error:
            raise NoRuleError(f"--rules {pattern.strip()!r} is no pattern: {error}") from None
        if not named:
            near = ", ".join(nearest(pattern.strip(), known))
            raise NoRuleError(f"--rules {pattern.strip()!r} matches no rule" + (f"; nearest: {near}" if near else ""))
        found.update(named)
    return frozenset(found)


def objection(example: Example, answer: Answered, rules: Iterable[Rule]) -> str:
    """What the engine's answer says against an example; empty when it agrees, or when the machine has no answer."""
    rule = example.rule
    said = f"{answer.at} {answer.type}: {' '.join(answer.message.split())[:100]}"
    if answer.ok is None:
        return ""
    if example.kind == "sets":
        return _unwritten(example, answer) or ("" if answer.ok or answer.writes else f"the engine refuses it: {said}")
    hit = answer.ok is False and matches(rule, answer)
    if example.kind == "passes" and hit:
        return f"the engine refuses it with this rule: {said}"
    if example.kind == "breaks":
        stops = rule.effect is Effect.REJECTS and rule.bites in (Bites.STARTUP, Bites.PARSE)
        if stops and answer.ok:
            return "the engine accepts it"
        if stops != hit and not answer.ok:
            others = ", ".join(each.id for each in rules if matches(each, answer)) or "no rule of ours"
            return f"the engine refuses it {'otherwise' if stops else 'at startup'} ({others}): {said}"
    return ""


def _unwritten(example: Example, answer: Answered) -> str:
    for name, value in example.becomes.items():
        seen = [fields[name] for _, fields in answer.writes if name in fields]
        if answer.ok and name in answer.resolved:
            seen.append(answer.resolved[name])
        # Without any: a value that only we carry from function to function; the engine has no name for it.
        if seen and not any(equal(value, each) for each in seen):
            return f"the engine never gives {name} the value {value!r}, but {seen[-3:]}"
    return ""
