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
from recommender.command_line import CommandLine, nearest
from recommender.errors import UsageError
from recommender.expr import Expression, compile_value
from recommender.images import image_use
from recommender.laws import FactTable, Plan, Rule
from recommender.profiles import Gpu, Model
from recommender.rulebook import Edition, Rulebook
from recommender.terms import UNKNOWN, ImageUse, Unknown, Value
from recommender.versions import in_range, parse_release


@dataclass(frozen=True, slots=True, kw_only=True)
class Misread:
    """A variable that does not do what it says: `kind` is that of the law, `message` names variable and text."""

    kind: str
    message: str


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


def environment_value(entry: Mapping[str, Any], readers: Mapping[str, Any], text: str) -> tuple[Value, bool]:
    """(what the engine makes of a variable's text, whether the text is of the variable's type).

    A text of another type leaves what the reader says, else the default; UNKNOWN where that is unset, as being set may count.
    """
    kind = entry.get("type", "str")
    words = readers.get(entry.get("reader", kind))
    if words is not None:
        said = text if words.get("exact") else text.lower()
        if said in words["yes"] or said in words["no"]:
            return said in words["yes"], True
        return words.get("otherwise", entry.get("default")), bool(words.get("exact"))
    try:
        return (int(text) if kind == "int" else float(text) if kind == "float" else text), True
    except ValueError:
        default = entry.get("default")
        return UNKNOWN if default is None else default, False


def variable_text(value: Value) -> str:
    """A variable's value as a shell writes it."""
    return str(int(value)) if isinstance(value, bool) else str(value)


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
        given = {**(image.sets if image else {}), **(env or {})}
        variables, ignored, misread = self.read_variables(given)
        parsed, refusals = self._line(variables).parse_all(argv, self.root)
        return Launch(
            asked={**parsed.asked, **variables},
            spelled=parsed.spelled,
            refusals=refusals,
            env_ignored=ignored,
            parsed=parsed,
            image=image,
            misread=misread,
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

    def read_variables(
        self, given: Mapping[str, str | Unknown]
    ) -> tuple[dict[str, Value], tuple[str, ...], tuple[Misread, ...]]:
        """(values of the variables that rules read, the engine's other variables, those that do not do what they say)."""
        settings = self.book.settings
        prefix, old = settings.get("environment_prefix", ""), settings.get("environment_old_prefix", "")
        values: dict[str, Value] = {}
        ignored: list[str] = []
        misread: list[Misread] = []
        for spelled, text in given.items():
            renamed = bool(old) and spelled.startswith(old)
            name = prefix + spelled.removeprefix(old) if renamed else spelled
            if name in self.variables:
                entry = self.variables[name]
                if not isinstance(text, str):
                    values[name] = UNKNOWN
                    continue
                values[name], fits = environment_value(entry, settings.get("environment_readers", {}), text)
                if not fits:
                    took = "what it then takes is not known" if values[name] is UNKNOWN else f"it takes {values[name]}"
                    misread.append(
                        Misread(
                            kind="bad-variable",
                            message=f"{spelled}={text}: the engine expects {entry.get('type')} there; {took}.",
                        )
                    )
            elif prefix and name.startswith(prefix) and not self._names_variable(name, spelled):
                near = nearest(name, tuple(each for each in self.engine_variables if not each.endswith("_")))
                hint = f"; nearest: {', '.join(near)}" if near else ""
                misread.append(
                    Misread(
                        kind="unknown-variable",
                        message=f"nothing in SGLang {self.edition.release} names {spelled}, so the engine never reads it{hint}.",
                    )
                )
            else:
                ignored.append(spelled)
        return values, tuple(ignored), tuple(misread)

    def _names_variable(self, *names: str) -> bool:
        begun = tuple(name for name in self.engine_variables if name.endswith("_"))
        return any(name in self.engine_variables or name.startswith(begun) for name in names)

    @cached_property
    def laws_of_reading(self) -> Mapping[str, Rule]:
        """The laws of what the reading of flags and variables finds at fault, by its kind."""
        return {rule.parse: rule for rule in self.edition.rules.values() if rule.parse}

    @cached_property
    def engine_variables(self) -> frozenset[str]:
        """Every variable that a file of the release names; one that ends with an underscore is a beginning."""
        names: Mapping[str, tuple[str | None, str | None]] = self.book.library.one(
            "constraints/sglang/flags/variables.json"
        )["names"]
        wanted = parse_release(self.edition.release)
        return frozenset(name for name, span in names.items() if in_range(wanted, *span))

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

    def fixes(self, rule: str) -> tuple[Mapping[str, Expression], ...]:
        """A rule's own cures, compiled; those that the release has no words for are left out."""
        if rule not in self._fixes:
            words = self.edition.words
            fields = self.edition.command_line.fields
            self._fixes[rule] = tuple(
                {name: compile_value(value, words) for name, value in fix.items()}
                for fix in self.edition.rules[rule].fix
                if all(value is None or name in fields or name in self.variables for name, value in fix.items())
            )
        return self._fixes[rule]


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
