"""Binds one engine release, a device and checkpoints to facts, and a command line to settings; it must not judge or print.

Everything that repeats from launch to launch (profiles, fact tables) is kept, so that a batch costs little per launch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from recommender import profiles
from recommender.catalogue import Parsed, Refusal
from recommender.command_line import CommandLine
from recommender.errors import UsageError
from recommender.expr import Expression, Template, compile_expression, compile_template, compile_value
from recommender.images import image_use
from recommender.laws import FactTable, Plan, Rule
from recommender.profiles import Gpu, Model
from recommender.rulebook import Edition, Rulebook
from recommender.terms import UNKNOWN, ImageUse, Unknown, Value
from recommender.variables import Misread, Reading, Variables, checked_table


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Launch:
    """A command line and environment as settings. `refusals` are what the parser would not take, in its order."""

    asked: Mapping[str, Value]
    spelled: Mapping[str, str]
    refusals: tuple[Refusal, ...] = ()
    env_ignored: tuple[str, ...] = ()
    parsed: Parsed = field(default_factory=lambda: Parsed(asked={}, spelled={}))
    image: ImageUse | None = None
    misread: tuple[Misread, ...] = ()


@dataclass(kw_only=True, eq=False, repr=False)
class Session:
    """One release of the rulebook, what is known of its installation, and what was already looked up for it."""

    book: Rulebook
    edition: Edition
    asked_release: str
    root: Path = field(default_factory=Path.cwd)
    installed: Mapping[str, Value] = field(default_factory=dict)
    _tables: dict[tuple[object, ...], FactTable] = field(default_factory=dict)
    _models: dict[str, Model | Unknown] = field(default_factory=dict)
    _fixes: dict[str, tuple[Mapping[str, Expression], ...]] = field(default_factory=dict)

    @property
    def plan(self) -> Plan:
        """The walk of the release."""
        return self.edition.plan

    def model(self, reference: Value) -> Model | Unknown | None:
        """The checkpoint of a model or draft path; UNKNOWN when nothing is known of it, None when none is named."""
        if reference is None:
            return None
        if not isinstance(reference, str):
            return UNKNOWN
        if reference not in self._models:
            try:
                self._models[reference] = profiles.find_model(reference, self.root)
            except UsageError:
                if profiles._exists(self.root / reference):
                    raise
                self._models[reference] = UNKNOWN
        return self._models[reference]

    def facts(self, gpu: Gpu | None, model: Value, draft: Value) -> FactTable:
        """The facts of a launch on a device with a model path and a draft path."""
        key = (gpu.id if gpu else None, gpu.count if gpu else None, model if isinstance(model, str) else None, draft)
        table = self._tables.get(key)
        if table is None or (gpu is not None and gpu.id is None):
            target = self.model(model)
            known = profiles.all_facts(
                gpu=gpu,
                model=target if isinstance(target, Model) else None,
                draft=self.model(draft),
                engine=self.installed,
                release=self.edition.release,
            )
            table = self._tables[key] = FactTable(known, self.edition.words.definition)
        return table

    def facts_of(self, gpu: Gpu | None, asked: Mapping[str, Value], fields: Mapping[str, str]) -> FactTable:
        """The facts of a launch by its settings; `fields` says which settings hold the model and the draft path."""
        return self.facts(gpu, asked.get(fields["model"]), asked.get(fields["draft"]))

    @cached_property
    def roles(self) -> Mapping[str, str]:
        """Which setting plays which part (model, draft, algorithm, ...), as settings.yaml says."""
        roles: Mapping[str, str] = self.book.settings["roles"]
        return roles

    @property
    def order(self) -> Sequence[str]:
        """The settings of a launch in the order people write them."""
        order: Sequence[str] = self.book.settings["shown"]
        return order

    @cached_property
    def variables(self) -> Mapping[str, Mapping[str, Any]]:
        """The environment variables that rules read, with their types and defaults."""
        known: Mapping[str, Mapping[str, Any]] = self.book.settings.get("environment") or {}
        return known

    @cached_property
    def environment(self) -> Variables:
        """What the release makes of environment variables."""
        return variables_of(self.book, self.edition.release)

    def image(
        self, name: str | None, gpu: Gpu | None, words: Sequence[str], env: Mapping[str, str | Unknown]
    ) -> ImageUse | None:
        """The container image of a launch (images.image_use), with the variables that rules read.

        Raises:
            UsageError: no such image, or it is made for another platform.
        """
        return image_use(name, gpu, words, env, self.variables)

    def read(
        self,
        argv: Sequence[str | Unknown],
        env: Mapping[str, str | Unknown] | None = None,
        image: ImageUse | None = None,
    ) -> Launch:
        """The settings of a command line, its environment and its image. What the parser refuses is left out and named."""
        sets = image.sets if image else {}
        given = {**sets, **(env or {})}
        reading = self.environment.read(given, frozenset(sets).difference(env or {})) if given else Reading()
        parsed, refusals = self._line(reading.values).parse_all(argv, self.root)
        return Launch(
            asked={**parsed.asked, **reading.values},
            spelled=parsed.spelled,
            refusals=refusals,
            env_ignored=reading.ignored,
            parsed=parsed,
            image=image,
            misread=reading.misread,
        )

    def _line(self, variables: Mapping[str, Value]) -> CommandLine:
        """The parser under some variables, each of which may bring choices of flags when it is on."""
        line = self.edition.command_line
        more = {
            name: words
            for variable, value in variables.items()
            if value is not False
            for name, words in self.variables[variable].get("choices", {}).items()
        }
        return line.taking(more) if more else line

    @cached_property
    def laws_of_reading(self) -> Mapping[str, Rule]:
        """The laws of what the reading of flags and variables finds at fault, by its kind."""
        return {rule.parse: rule for rule in self.edition.rules.values() if rule.parse}

    def not_judged(self, launch: Launch) -> tuple[str, ...]:
        """The flags and variables of a launch that no rule covers and that are not known to be without influence."""
        quiet = self.without_influence
        flags = [
            launch.spelled.get(name, name)
            for name in launch.asked
            if name not in self.plan.touched and name not in quiet and name in self.edition.command_line.fields
        ]
        prefix = self.book.settings.get("environment_prefix", "")
        variables = [name for name in launch.env_ignored if prefix and name.startswith(prefix)]
        return tuple(flags + variables + list(launch.parsed.unread))

    @cached_property
    def without_influence(self) -> Mapping[str, str]:
        """Settings that cannot influence validity, each with the reason."""
        document: Mapping[str, str] = self.book.library.one("constraints/sglang/flags/without_influence.yaml")
        return document

    def domain(self, name: str, value: Value) -> tuple[Value, ...]:
        """Values to try instead of one that a user asked for: unset, what search.yaml lists, the flag's choices."""
        search = self.book.library.one("constraints/sglang/search.yaml")
        for entry in (*search["variables"], *search["also"]):
            if entry["setting"] == name:
                return (None, *(item for item in entry["domain"] if item is not None and item != value))
        spec = self.edition.command_line.fields.get(name)
        if spec is not None and spec.choices:
            return (None, *(choice for choice in spec.choices if choice is not None and choice != value))
        if isinstance(value, int) and not isinstance(value, bool):
            return (None, *(smaller for smaller in (8, 4, 2, 1) if smaller < value))
        return (None,)

    def _reads(self, name: str) -> bool:
        return name in self.variables and self.environment.is_live(name)

    def fixes(self, rule: str) -> tuple[Mapping[str, Expression], ...]:
        """A rule's own cures, compiled; those that the release has no words for are left out."""
        if rule not in self._fixes:
            words = self.edition.words
            fields = self.edition.command_line.fields
            self._fixes[rule] = tuple(
                {name: compile_value(value, words) for name, value in fix.items()}
                for fix in self.edition.rules[rule].fix
                if all(value is None or name in fields or self._reads(name) for name, value in fix.items())
            )
        return self._fixes[rule]

    def lack(self, rule: str) -> tuple[Expression, Template] | None:
        """(when no setting can cure a law, what the launch then lacks), compiled; None where its file does not say."""
        given = self.edition.rules[rule].no_fix
        if not given:
            return None
        words = self.edition.words
        return compile_expression(given.get("when", "True"), words), compile_template(given["says"], words)


def variables_of(book: Rulebook, release: str) -> Variables:
    """What a covered release makes of environment variables.

    Raises:
        RulebookError: a table of variables is not whole.
    """
    folder = "constraints/sglang/flags"
    return Variables(
        release=release,
        releases=tuple(item.version for item in book.releases),
        settings=book.settings,
        table=checked_table(book.library.one(f"{folder}/variables.json"), f"{folder}/variables.json"),
        now=book.library.one(f"{folder}/variables.yaml"),
    )


def open_session(
    book: Rulebook,
    sglang: str | None = None,
    root: Path | None = None,
    installed: Mapping[str, Value] | None = None,
) -> Session:
    """A session for an engine release (the newest known one by default); `installed` are known facts of its installation.

    Raises:
        UsageError: the text is no release.
    """
    asked, judged = book.covered(sglang)
    return Session(
        book=book, edition=book.edition(judged), asked_release=asked, root=root or Path.cwd(), installed=installed or {}
    )


FactsOf = Callable[[Mapping[str, Value]], Mapping[str, Value]]
