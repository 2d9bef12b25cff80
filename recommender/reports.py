"""The value types that `explain`, `rules` and `profiles` answer with; it must not read files or print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from recommender.terms import Bites, CheckResult, Effect, Finding, Source, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One setting of a remedy. `value` None unsets it; a text that starts with "=" is an expression over the launch.

    `flag` is its name on the command line (a variable's own name), `words` say the value; none where it is left out.
    """

    setting: str
    value: Value
    flag: str
    words: tuple[str, ...] = ()
    is_variable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A cure as a law states it; `meanings` says what the names in its expressions stand for."""

    changes: tuple[Change, ...]
    meanings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LawAccount:
    """A law as people read about it.

    `said` is the passage that it explains and `place` the frame that raised it, both empty when the law was asked for
    by its id; `near` are valid words nearest to one that the parser would not take; `writes` is what a law writes;
    `given` are settings that the text shows, which its remedies use; `releases` are the covered releases it holds in,
    `in_force` whether the judged one is among them.
    """

    rule: str
    topic: str
    effect: Effect
    bites: Bites | None
    statement: str
    message: str
    said: str = ""
    place: str = ""
    near: tuple[str, ...] = ()
    writes: Mapping[str, Value] = field(default_factory=dict)
    remedies: tuple[Remedy, ...] = ()
    given: Mapping[str, Value] = field(default_factory=dict)
    since: str = ""
    until: str | None = None
    releases: tuple[str, ...] = ()
    in_force: bool = True
    sources: tuple[Source, ...] = ()
    verified: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class General:
    """A message that names no law, whoever raises it: the words `said`, what they mean, and where to look next."""

    said: str
    means: str
    look: str
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The laws behind a text, most specific first.

    `faint` are laws that raise such a message at places which the text does not show; `last_error` is the last error
    that the text names; `near` are ids that look like a word which is none, `akin` laws that speak of the same things,
    `cut` laws whose message begins as the text ends; `general` is what is known of messages without a law.
    """

    laws: tuple[LawAccount, ...]
    faint: tuple[str, ...] = ()
    last_error: str = ""
    near: tuple[str, ...] = ()
    akin: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    general: tuple[General, ...] = ()
    sglang: str = ""
    judged_as: str = ""
    rulebook: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactAccount:
    """One fact of a profile; `value` is UNKNOWN where nobody knows, `source` says in words where it comes from."""

    name: str
    value: Value
    unit: str = ""
    meaning: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileAccount:
    """A device or a checkpoint as people read about it; `kind` is gpus, models or drafts, `names` its other names."""

    id: str
    name: str
    kind: str
    names: tuple[str, ...] = ()
    count: int | None = None
    drafts: tuple[str, ...] = ()
    algorithm: str = ""
    targets: tuple[str, ...] = ()
    path: str = ""
    facts: tuple[FactAccount, ...] = ()


class Shift(StrEnum):
    """How a law or a flag of one release stands in another; a flag is renamed where its setting keeps another spelling."""

    APPEARED = "appeared"
    ENDED = "ended"
    CHANGED = "changed"
    RENAMED = "renamed"


@dataclass(frozen=True, slots=True, kw_only=True)
class LawShift:
    """A law that differs between two releases; `how` says in which keys, `through` which shared definitions do it."""

    rule: str
    topic: str
    shift: Shift
    effect: Effect
    bites: Bites | None
    statement: str
    how: tuple[str, ...] = ()
    through: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagShift:
    """A spelling of the command line that differs; `now` is what to write instead, `details` what else changed."""

    flag: str
    setting: str
    shift: Shift
    now: str = ""
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueShift:
    """A setting that one launch resolves to different values, with the laws that wrote them."""

    setting: str
    old: Value
    new: Value
    old_rule: str = ""
    new_rule: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchShift:
    """What becomes of one launch: the engine's answers, findings that go and come, values that differ."""

    old: CheckResult
    new: CheckResult
    goes: tuple[Finding, ...]
    comes: tuple[Finding, ...]
    values: tuple[ValueShift, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """Everything that differs between two releases; with a launch, only what touches it."""

    old: str
    new: str
    laws: tuple[LawShift, ...]
    flags: tuple[FlagShift, ...]
    launch: LaunchShift | None = None
    rulebook: str = ""
