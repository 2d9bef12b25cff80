"""The value types that every other module speaks: frozen, typed, without behaviour; it must not read files or print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, final


@final
class Unknown:
    """The third truth value: a fact or a shell variable that nobody knows. It has no truth value of its own."""

    __slots__ = ()

    def __bool__(self) -> bool:
        raise TypeError("UNKNOWN has no truth value: handle it before testing")

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __reduce__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()

# A scalar, a tuple of values, a JSON object (dict), None for unset, or UNKNOWN.
Value = Any


class Effect(StrEnum):
    """What the engine does where the rule applies."""

    SETS = "sets"
    REJECTS = "rejects"
    DEGRADES = "degrades"
    NOTES = "notes"


class Bites(StrEnum):
    """When a refusal comes: while the command line is parsed, while arguments resolve, while loading, at a request."""

    PARSE = "parse"
    STARTUP = "startup"
    LOAD = "load"
    REQUEST = "request"


class Verdict(StrEnum):
    """What one rule says of one launch."""

    SILENT = "silent"
    HOLDS = "holds"
    BREAKS = "breaks"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a law was read: `file` relative to the engine's srt folder, or a public address."""

    file: str
    symbol: str = ""
    release: str = ""


class OriginKind(StrEnum):
    """Who decided a value."""

    ASKED = "asked for"
    DEFAULT = "default"
    RULE = "set by rule"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A setting's value with its origin; `rule` is the id of the rule that wrote it last, `asked` what the user wrote."""

    value: Value
    origin: OriginKind
    rule: str = ""
    asked: Value = None


class Settings(Mapping[str, Known]):
    """Every setting of a launch with its origin."""

    @property
    def plain(self) -> Mapping[str, Value]:
        """The values without their origins."""
        return {name: self[name].value for name in self}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cure:
    """A verified change of a launch: `changes` maps settings to new values (None unsets), `flags` tells them to a reader.

    For a program: `argv` is the whole command line after the change, empty where a word of it is not known; the variables
    of the environment are in `changes` only.
    """

    changes: Mapping[str, Value]
    flags: tuple[str, ...] = ()
    argv: tuple[str, ...] = ()
    clean: bool = False
    from_rule: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One law that a launch breaks, or that cannot be judged (`verdict` unknown, `missing` names what is not known).

    `no_cure` says what the launch lacks where no change of settings cures it and the law knows why.
    """

    rule: str
    effect: Effect
    bites: Bites | None
    verdict: Verdict
    message: str
    statement: str = ""
    sources: tuple[Source, ...] = ()
    reads: Mapping[str, Value] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    under: str = ""
    verified: str = ""
    cures: tuple[Cure, ...] = ()
    no_cure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotJudged:
    """A rule that reads a value which the engine never reached because rule `after` refused first."""

    rule: str
    after: str


class Answer(StrEnum):
    """What the engine does with a launch before it loads anything."""

    ACCEPTS = "accepts"
    REFUSES = "refuses"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageUse:
    """The container image of a launch: `why` named, command or assumed; `sets` are the variables that it decides here."""

    id: str
    why: str
    sets: Mapping[str, str]
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What the engine makes of a launch.

    `values` holds every setting with its origin; `findings` are in the engine's order; `not_judged_rules` read what an earlier
    refusal hid; `not_judged_flags` are covered by no rule; `doubts` name what was not known (device, model); `cures` are changes
    that leave the whole launch clean, the best first. `unproven` says why nothing can be promised on this device.
    """

    verdict: Answer
    findings: tuple[Finding, ...]
    values: Settings
    not_judged_rules: tuple[NotJudged, ...] = ()
    not_judged_flags: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    cures: tuple[Cure, ...] = ()
    sglang: str = ""
    judged_as: str = ""
    gpu: str = ""
    unproven: str = ""
    model: str = ""
    rulebook: str = ""
    image: ImageUse | None = None

    @property
    def cure(self) -> Cure | None:
        """The first change that leaves the whole launch clean."""
        return self.cures[0] if self.cures else None

    @property
    def rejected(self) -> bool:
        """Whether any law refuses the launch, whenever it bites."""
        return any(item.effect is Effect.REJECTS and item.verdict is Verdict.BREAKS for item in self.findings)

    @property
    def rewrites(self) -> Mapping[str, Known]:
        """The settings that were asked for and come out otherwise."""
        return {
            name: known
            for name, known in self.values.items()
            if known.origin is OriginKind.RULE and known.asked is not None and known.value not in (known.asked, UNKNOWN)
        }
