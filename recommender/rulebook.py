"""Turns the YAML of constraints/ into rules, settings and one plan per engine release; it must not judge or print."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, overload

from recommender import library as libraries
from recommender.catalogue import Catalogue, CommandLine, load_catalogue
from recommender.errors import ExpressionError, RulebookError, UsageError
from recommender.expr import (
    Expression,
    compile_choice,
    compile_expression,
    compile_template,
    compile_value,
    function_names,
    signs_of,
)
from recommender.gates import gates_of, tables_of
from recommender.laws import Gate, Plan, Rule, Signs, Step, Table
from recommender.library import Documents, Library
from recommender.on_demand import OnDemand
from recommender.terms import Bites, Effect, Value
from recommender.versions import in_range, parse_release

ENGINE = "constraints/sglang"
NOT_TOPICS = frozenset({"phases", "definitions", "flags"})
_RULE_KEYS = frozenset(
    [
        "id",
        "statement",
        "effect",
        "bites",
        "since",
        "until",
        "phase",
        "when",
        "require",
        "sets",
        "message",
        "fix",
        "no_fix",
        "source",
        "engine_error",
        "engine_error_at",
        "verified",
        "examples",
        "after",
        "silent_after",
        "formerly",
        "parse",
    ]
)
# What the walk needs of a rule document; the rest is for people and is read when they ask.
_WALK_KEYS = (
    "id",
    "effect",
    "bites",
    "since",
    "until",
    "phase",
    "when",
    "require",
    "sets",
    "parse",
    "after",
    "silent_after",
)
_REQUIRED = ("id", "statement", "effect", "since", "source")
_EXAMPLE_KINDS = ("breaks", "passes", "sets", "leaves")


def _near(word: str, words: Iterable[str]) -> str:
    close = get_close_matches(word, list(words), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list) else () if value is None else (value,)


def check_document(document: Any, path: str) -> None:
    """Refuse a rule document that does not have a rule's shape.

    Raises:
        RulebookError: a key is missing, unknown or of the wrong kind; the message names the file and the key.
    """
    if not isinstance(document, Mapping):
        raise RulebookError(f"{path}: a rule is a mapping")
    for key in document:
        if key not in _RULE_KEYS:
            raise RulebookError(f"{path}: unknown key {key!r}{_near(str(key), _RULE_KEYS)}")
    for key in _REQUIRED:
        if not document.get(key):
            raise RulebookError(f"{path}: {key}: missing")
    try:
        effect = Effect(document["effect"])
        Bites(document.get("bites", "startup"))
    except ValueError as error:
        raise RulebookError(f"{path}: {error}") from None
    if (effect is Effect.SETS) != bool(document.get("sets")):
        raise RulebookError(f"{path}: `sets` goes with effect: sets, and with it alone")
    stem = path.rsplit("/", 1)[-1].removesuffix(".yaml")
    if document["id"] != stem:
        raise RulebookError(f"{path}: id: {document['id']!r} must equal the file name {stem!r}")
    for source in document["source"] if isinstance(document["source"], list) else [document["source"]]:
        if not isinstance(source, str) and not (isinstance(source, Mapping) and source.get("file")):
            raise RulebookError(f"{path}: source: give file, symbol and release")


def make_rule(document: Mapping[str, Any], path: str, text: Callable[[], Mapping[str, Any]]) -> Rule:
    """One rule from the keys that its walk needs; `text` gives the whole document when people's words are asked for."""
    effect = Effect(document["effect"])
    return Rule(
        id=document["id"],
        effect=effect,
        bites=Bites(document.get("bites", "startup")) if effect is Effect.REJECTS else None,
        since=str(document["since"]),
        until=str(document["until"]) if document.get("until") else None,
        phase=str(document.get("phase", "")),
        when=str(document.get("when", "True")),
        require=None if document.get("require") is None else str(document["require"]),
        sets=document.get("sets") or {},
        topic=path.split("/")[-2],
        path=path,
        text=text,
        parse=str(document.get("parse", "") or ""),
        after=_tuple(document.get("after")),
        silent_after=_tuple(document.get("silent_after")),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Phase:
    """One function of the engine's resolution, or a part of one. `order` lists its writing rules; a refusing phase has none.

    `checks` says in which order the rules of a refusing phase stand, as far as that matters; the others follow by name.
    """

    id: str
    engine: str
    order: tuple[str, ...] | None
    checks: tuple[str, ...]
    since: str | None
    until: str | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Release:
    """A supported engine release; `date` is its day on PyPI."""

    version: str
    date: str


@dataclass(slots=True, eq=False, repr=False)
class _Words:
    """The closed vocabulary of one release; definitions compile when first read. `settings` holds the defaults."""

    settings: Mapping[str, Value]
    facts: frozenset[str]
    groups: Mapping[str, tuple[Value, ...]]
    texts: Mapping[str, tuple[str, Any]]
    compiled: dict[str, Expression] = field(default_factory=dict)
    readers: dict[str, list[str]] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)

    def is_setting(self, name: str) -> bool:
        return name in self.settings

    def is_fact(self, name: str) -> bool:
        return name in self.facts

    def group(self, name: str) -> tuple[Value, ...] | None:
        return self.groups.get(name)

    def names(self) -> Iterable[str]:
        return [*self.settings, *self.facts, *self.groups, *self.texts]

    def definition(self, name: str) -> Expression | None:
        if name in self.compiled:
            return self.compiled[name]
        if name not in self.texts:
            return None
        if name in self.open:
            raise RulebookError(f"definition {name}: reads itself through {' -> '.join(self.open)}")
        path, entry = self.texts[name]
        self.open.append(name)
        try:
            made = self.compiled[name] = self._compile(name, entry)
            for setting in made.settings:
                self.readers.setdefault(setting, []).append(name)
        except ExpressionError as error:
            raise RulebookError(f"{path}: {name}: {error}") from None
        finally:
            self.open.pop()
        return self.compiled[name]

    def _compile(self, name: str, entry: Mapping[str, Any]) -> Expression:
        if "choose" not in entry:
            return compile_expression(str(entry["is"]), self)
        branches = [
            (
                compile_expression(str(branch["when"]), self) if "when" in branch else None,
                compile_value(branch["then"], self),
            )
            for branch in entry["choose"]
        ]
        return compile_choice(branches, name)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Edition:
    """Everything the rulebook says of one engine release."""

    release: str
    rules: Mapping[str, Rule]
    plan: Plan
    words: Any
    command_line: CommandLine


class Rulebook:
    """All rules, settings and releases; `edition()` compiles one release."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.digest = library.digest
        self.settings: Mapping[str, Any] = library.one(f"{ENGINE}/settings.yaml")
        self._editions: dict[str, Edition] = {}
        self._rules: Mapping[str, tuple[Rule, ...]] | None = None
        self._catalogue: Catalogue | None = None

    @property
    def catalogue(self) -> Catalogue:
        """What each release's command line accepts."""
        if self._catalogue is None:
            self._catalogue = load_catalogue(
                self.library.one(f"{ENGINE}/flags/catalogue.json"), self.library.one(f"{ENGINE}/flags/renamed.yaml")
            )
        return self._catalogue

    @property
    def releases(self) -> tuple[Release, ...]:
        """Supported engine releases, oldest first."""
        document = self.library.one(f"{ENGINE}/releases.yaml")
        listed = [Release(version=str(item["version"]), date=str(item["date"])) for item in document["releases"]]
        return tuple(sorted(listed, key=lambda item: parse_release(item.version)))

    @property
    def rules(self) -> Mapping[str, tuple[Rule, ...]]:
        """Every law by id, its editions newest first."""
        if self._rules is None:
            self._rules = _rules(self._lean, self.library.documents)
        return self._rules

    @cached_property
    def _lean(self) -> Mapping[str, Sequence[str]]:
        stored = self.library.derived.get("rules")
        lean: Mapping[str, Sequence[str]] = stored[0] if stored else lean_rules(self.library)
        return lean

    def rule(self, name: str) -> tuple[Rule, ...]:
        """The editions of a law by its id or a former id.

        Raises:
            UsageError: no such id; the nearest one is named.
        """
        if name in self.rules:
            return self.rules[name]
        for editions in self.rules.values():
            if any(name in rule.formerly for rule in editions):
                return editions
        raise UsageError(f"no rule {name!r}{_near(name, self.rules)}; `recommender rules list` names all")

    def covered(self, version: str | None) -> tuple[str, str]:
        """(asked, judged as): the newest covered release up to a version, the newest of all when none is given.

        Raises:
            UsageError: the version is no version, or older than every covered release.
        """
        known = [release.version for release in self.releases]
        if version is None:
            return known[-1], known[-1]
        wanted = parse_release(version)
        fitting = [release for release in known if parse_release(release) <= wanted]
        if not fitting:
            raise UsageError(f"SGLang {version} is older than every covered release; covered are {', '.join(known)}")
        return version, fitting[-1]

    def edition(self, release: str) -> Edition:
        """The rules, phases and plan of one covered release, compiled once.

        Raises:
            RulebookError: a rule, a phase or a definition does not fit the others.
        """
        if release not in self._editions:
            self._editions[release] = self._compile(release)
        return self._editions[release]

    def _vocabulary(self, release: str) -> dict[str, Any]:
        """Facts, groups and definitions of a release as plain values.

        `earlier` lists what a definition was, in any order: the one that ends first after the release is in force.
        `joined` says of a group which members came with which release.

        Raises:
            RulebookError: a definition stands twice, or has neither `is` nor `choose`; a group is not whole.
        """
        wanted = parse_release(release)
        facts = self.library.one("profiles/facts.yaml")
        definitions: dict[str, tuple[str, Any]] = {}
        for path in self.library.folders.get(f"{ENGINE}/definitions", ()):
            for document in self.library.documents[path]:
                for name, entry in document.items():
                    if name in definitions:
                        raise RulebookError(f"{path}: {name}: also defined in {definitions[name][0]}")
                    if not isinstance(entry, Mapping) or ("is" in entry) == ("choose" in entry):
                        raise RulebookError(f"{path}: {name}: give `is` or `choose`")
                    chosen = _as_of(entry, wanted)
                    kept = {key: chosen[key] for key in ("is", "choose") if key in chosen}
                    definitions[name] = (path, kept)
        names = [*facts, *(f"draft.{name[6:]}" for name in facts if name.startswith("model."))]
        groups = {name: _members(name, entry, wanted) for name, entry in (self.settings.get("groups") or {}).items()}
        return {"facts": names, "groups": groups, "definitions": definitions}

    def words(self, given: Mapping[str, Any]) -> _Words:
        """The closed vocabulary of a release without its settings, from its plain values."""
        groups = {name: _frozen(values) for name, values in given["groups"].items()}
        return _Words(settings={}, facts=frozenset(given["facts"]), groups=groups, texts=given["definitions"])

    def phases(self, release: str) -> tuple[Phase, ...]:
        """The engine's phases in their order, as they stand in one release."""
        wanted = parse_release(release)
        found: list[Phase] = []
        for path in self.library.folders.get(f"{ENGINE}/phases", ()):
            for document in self.library.documents[path]:
                if not in_range(wanted, document.get("since"), document.get("until")):
                    continue
                for entry in document.get("phases") or ():
                    if not in_range(wanted, entry.get("since"), entry.get("until")):
                        continue
                    order = entry.get("sets")
                    found.append(
                        Phase(
                            id=entry["id"],
                            engine=str(entry.get("engine", "")),
                            order=None if order is None else tuple(order),
                            checks=tuple(entry.get("checks") or ()),
                            since=entry.get("since"),
                            until=entry.get("until"),
                        )
                    )
        return tuple(found)

    def rules_of(self, release: str) -> Mapping[str, Rule]:
        """The laws that hold in a release, by id.

        Raises:
            RulebookError: two editions of one law hold in it.
        """
        return self._held(self._places(release))

    def _laws(self, places: Mapping[str, int]) -> dict[str, list[Any]]:
        """The editions that hold in a release as plain values: the path of each, its place there, and its walk's part."""
        lean = self._lean
        return {
            name: [lean[name][0], place, json.dumps(json.loads(lean[name][1])[place])] for name, place in places.items()
        }

    def _held(self, places: Mapping[str, int]) -> Mapping[str, Rule]:
        return OnDemand(places, lambda name: self.rules[name][places[name]])

    def _places(self, release: str) -> dict[str, int]:
        """Which edition of each law holds in a release; laws without one are left out.

        Raises:
            RulebookError: two editions of one law hold in it.
        """
        wanted = parse_release(release)
        places: dict[str, int] = {}
        for name, editions in self.rules.items():
            fitting = [place for place, rule in enumerate(editions) if in_range(wanted, rule.since, rule.until)]
            if len(fitting) > 1:
                raise RulebookError(f"{editions[0].path}: two editions hold in {release}")
            if fitting:
                places[name] = fitting[0]
        return places

    def _compile(self, release: str) -> Edition:
        stored = self.library.derived.get(f"plan {release}")
        outline = stored[0] if stored else self.outline(release)
        words = self.words(outline["words"])
        rules = _held_rules(outline["laws"], self.library.documents)
        defaults = {name: _frozen(value) for name, value in outline["defaults"].items()}
        words.settings = defaults
        steps = _Steps(outline["steps"], rules, words)
        plan = Plan(
            release=release,
            steps=steps,
            defaults=defaults,
            touched=frozenset(outline["touched"]),
            readers=words.readers,
            tables=[Table(start, stop, subjects, words) for start, stop, subjects in outline["tables"]],
            gates=[_gate(gate) for _, _, gate, *_ in outline["steps"]],
        )
        line = self.catalogue.command_line(release)
        return Edition(release=release, rules=rules, plan=plan, words=words, command_line=line)

    def outline(self, release: str) -> dict[str, Any]:
        """The walk of a release as plain values: rule, phase and gate of each step, defaults, and what any rule touches.

        Raises:
            RulebookError: a rule, a phase or a definition does not fit the others.
        """
        vocabulary = self._vocabulary(release)
        words = self.words(vocabulary)
        words.settings = self.defaults(release)
        places = self._places(release)
        rules = self._held(places)
        steps = list(_steps(rules, self.phases(release), words, self.rules))
        touched = frozenset[str]().union(*(step.reads | step.targets | step.asks for step in steps))
        return {
            "tables": tables_of(steps, words),
            "words": vocabulary,
            "defaults": dict(words.settings),
            "touched": sorted(touched),
            "laws": self._laws(places),
            "steps": [
                [step.rule.id, step.phase, gate, _plain(step.signs), _plain(step.live)]
                for step, gate in zip(steps, gates_of(steps, words.settings), strict=True)
            ],
        }

    def defaults(self, release: str) -> dict[str, Value]:
        """Every setting of a release with its default: flags, environment variables, fields without a flag.

        The flags that only other releases have are settings too, at their default: without the flag nobody can ask for more.
        """
        wanted = parse_release(release)
        settings: dict[str, Value] = {}
        for known in (*self.catalogue.releases, release):
            settings |= {name: spec.default for name, spec in self.catalogue.command_line(known).fields.items()}
        for section in ("environment", "internal"):
            for name, entry in (self.settings.get(section) or {}).items():
                settings[name] = _frozen(_as_of(entry, wanted).get("default") if isinstance(entry, Mapping) else None)
        return settings


def _as_of(entry: Mapping[str, Any], release: tuple[int, ...]) -> Mapping[str, Any]:
    """What an entry says in a release: of what it said `earlier`, in any order, the one that ends first after the release."""
    held = [old for old in entry.get("earlier", ()) if in_range(release, None, str(old["until"]))]
    return min(held, key=lambda old: parse_release(str(old["until"])), default=entry)


def _members(name: str, entry: Any, release: tuple[int, ...]) -> list[Any]:
    """The members of a group in a release: a list, or `is` without what `joined` lists under a later release.

    Raises:
        RulebookError: the entry is neither, or a member joined that the group does not have.
    """
    if isinstance(entry, list):
        return entry
    if not isinstance(entry, Mapping) or set(entry) != {"is", "joined"}:
        raise RulebookError(f"{ENGINE}/settings.yaml: groups: {name}: give a list, or `is` and `joined`")
    strange = sorted({member for joined in entry["joined"].values() for member in joined} - set(entry["is"]))
    if strange:
        raise RulebookError(f"{ENGINE}/settings.yaml: groups: {name}: {', '.join(strange)} joined but is no member")
    later = {member for since, joined in entry["joined"].items() if parse_release(since) > release for member in joined}
    return [member for member in entry["is"] if member not in later]


def _frozen(value: Any) -> Value:
    return tuple(_frozen(item) for item in value) if isinstance(value, (list, tuple)) else value


def lean_rules(library: Library) -> dict[str, list[str]]:
    """The walk's part of every rule by id: the path of its file, and its editions as JSON, each parsed when it is read.

    Raises:
        RulebookError: a document is no rule, or an id stands in two files.
    """
    lean: dict[str, list[str]] = {}
    for folder, names in library.folders.items():
        parent, _, topic = folder.rpartition("/")
        if parent != ENGINE or topic in NOT_TOPICS:
            continue
        for path in names:
            documents = library.documents[path]
            if not documents:
                raise RulebookError(f"{path}: holds no rule")
            for document in documents:
                check_document(document, path)
            name = documents[0]["id"]
            if name in lean:
                raise RulebookError(f"{path}: id {name!r} also stands in {lean[name][0]}")
            kept = [{key: document[key] for key in _WALK_KEYS if key in document} for document in documents]
            lean[name] = [path, json.dumps(kept)]
    return lean


def _text(documents: Mapping[str, Sequence[Any]], path: str, place: int) -> Mapping[str, Any]:
    document: Mapping[str, Any] = documents[path][place]
    return document


def _rules(lean: Mapping[str, Sequence[str]], documents: Mapping[str, Sequence[Any]]) -> Mapping[str, tuple[Rule, ...]]:
    """Every law's editions by id."""

    def editions(name: str) -> tuple[Rule, ...]:
        path, kept = lean[name]
        return tuple(
            make_rule(document, path, partial(_text, documents, path, place))
            for place, document in enumerate(json.loads(kept))
        )

    return OnDemand(lean, editions)


def _held_rules(laws: Mapping[str, Sequence[Any]], documents: Mapping[str, Sequence[Any]]) -> Mapping[str, Rule]:
    """The edition of each law that holds in one release."""

    def edition(name: str) -> Rule:
        path, place, kept = laws[name]
        return make_rule(json.loads(kept), path, partial(_text, documents, path, place))

    return OnDemand(laws, edition)


def _signs(listed: Sequence[Any]) -> Signs:
    return tuple((name, tuple(values)) for name, values in listed)


def _plain(signs: Signs) -> list[Any]:
    return [[name, list(values)] for name, values in signs]


def _gate(listed: Sequence[Any]) -> Gate:
    return tuple((name, None if values is None else tuple(values)) for name, values in listed)


class _Steps(Sequence[Step]):
    """The steps of a plan, each made when the walk first reaches it."""

    def __init__(self, outline: Sequence[Any], rules: Mapping[str, Rule], words: _Words) -> None:
        self._outline = outline
        self._rules = rules
        self._words = words
        self.made: list[Step | None] = [None] * len(outline)

    def __len__(self) -> int:
        return len(self.made)

    @overload
    def __getitem__(self, position: int) -> Step: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[Step]: ...
    def __getitem__(self, position: int | slice) -> Step | Sequence[Step]:
        if isinstance(position, slice):
            return [self[place] for place in range(*position.indices(len(self)))]
        step = self.made[position]
        if step is None:
            name, phase, gate, signs, live = self._outline[position]
            step = self.made[position] = Step(
                rule=self._rules[name],
                position=position,
                phase=phase,
                gate=_gate(gate),
                words=self._words,
                signs=_signs(signs),
                live=_signs(live),
            )
        return step


def derive(library: Library) -> dict[str, list[Any]]:
    """What a compiled library stores beside the documents: the walk's part of the rules, and the outline of each release."""
    lean = lean_rules(library)
    book = Rulebook(replace(library, derived=Documents({"rules": [lean]})))
    return {"rules": [lean], **{f"plan {item.version}": [book.outline(item.version)] for item in book.releases}}


def shipped_library(root: Path) -> bytes:
    """The compiled form of the files below a root, as a wheel ships it."""
    library = libraries.read_files(root)
    return libraries.encode(library, derive(library), libraries.SHIPPED)


def _steps(
    rules: Mapping[str, Rule], phases: tuple[Phase, ...], words: _Words, known_rules: Container[str]
) -> Iterable[Step]:
    known = [phase.id for phase in phases]
    if len(set(known)) != len(known):
        twice = sorted({name for name in known if known.count(name) > 1})
        raise RulebookError(f"phases: {', '.join(twice)} listed twice")
    judging: dict[str, list[Rule]] = {}
    for rule in rules.values():
        if rule.parse:
            continue
        if rule.phase not in known:
            raise RulebookError(f"{rule.path}: phase: no phase {rule.phase!r}{_near(rule.phase, known)}")
        if rule.effect is not Effect.SETS:
            judging.setdefault(rule.phase, []).append(rule)
    listed: set[str] = set()
    position = 0
    for number, phase in enumerate(phases):
        order: list[Rule] = []
        if phase.order is None:
            places = {name: place for place, name in enumerate(phase.checks)}
            order = sorted(judging.get(phase.id, []), key=lambda rule: places.get(rule.id, len(places)))
        else:
            if phase.id in judging:
                judge = judging[phase.id][0]
                raise RulebookError(f"{judge.path}: phase {phase.id!r} writes; a judging rule needs a refusing one")
            for name in phase.order:
                if name not in rules and name in known_rules:
                    continue  # a law of other releases
                if name not in rules:
                    raise RulebookError(f"phase {phase.id}: no rule {name!r}{_near(name, rules)}")
                if rules[name].phase != phase.id:
                    raise RulebookError(
                        f"{rules[name].path}: phase is {rules[name].phase!r}, but {phase.id!r} lists it"
                    )
                listed.add(name)
                order.append(rules[name])
        for rule in order:
            for name in rule.sets:
                if not words.is_setting(name):
                    raise RulebookError(f"{rule.path}: sets: {name}: no such setting{_near(name, words.names())}")
            try:
                facts, settings = signs_of(rule.when, words)
            except ExpressionError as error:
                raise RulebookError(f"{rule.path}: when: {error}") from None
            yield Step(
                rule=rule,
                position=position,
                phase=number,
                gate=(),
                words=words,
                signs=_signs(facts),
                live=_signs(settings),
            )
            position += 1
    for rule in rules.values():
        if rule.effect is Effect.SETS and rule.id not in listed:
            raise RulebookError(f"{rule.path}: no phase lists this rule; add it to `sets` of {rule.phase!r}")


def check_rule(rule: Rule, words: Any) -> list[str]:
    """What is wrong with a rule beyond its expressions: message, fix, patterns, examples. Empty when all is well."""
    problems = []
    try:
        compile_template(rule.message, words)
    except ExpressionError as error:
        problems.append(f"message: {error}")
    for number, fix in enumerate(rule.fix):
        for name, value in fix.items():
            if not words.is_setting(name):
                problems.append(f"fix {number + 1}: no such setting {name!r}{_near(name, words.names())}")
            try:
                compile_value(value, words)
            except ExpressionError as error:
                problems.append(f"fix {number + 1}: {name}: {error}")
    try:
        compile_expression(rule.no_fix.get("when", "True"), words)
        compile_template(rule.no_fix.get("says", ""), words)
    except ExpressionError as error:
        problems.append(f"no_fix: {error}")
    if rule.no_fix and (rule.no_fix.keys() - {"when", "says"} or not rule.no_fix.get("says")):
        problems.append("no_fix: give `says`, and `when` where it does not always hold")
    for key in ("engine_error", "engine_error_at"):
        try:
            re.compile(getattr(rule, key))
        except re.error as error:
            problems.append(f"{key}: not a pattern ({error})")
    wrong = [example for example in rule.examples if sum(kind in example for kind in _EXAMPLE_KINDS) != 1]
    return problems + [f"examples: give exactly one of {', '.join(_EXAMPLE_KINDS)}" for _ in wrong]


def language_names() -> frozenset[str]:
    """The functions that expressions may call."""
    return function_names()


@cache
def load_rulebook() -> Rulebook:
    """The rulebook of this installation, loaded once a process.

    Raises:
        RulebookError: a shipped file is damaged.
    """
    return Rulebook(libraries.load())
