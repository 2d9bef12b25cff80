"""Reads the environment variables of a launch as one release does; it must not judge, read files or know a variable by name.

What each release makes of a name stands in flags/variables.json (which release names it, what it forwards, declared types) and
flags/variables.yaml (what does its work now); how a text is read stands in settings.yaml.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from recommender.command_line import nearest
from recommender.errors import RulebookError
from recommender.terms import UNKNOWN, Unknown, Value
from recommender.versions import in_range, parse_release

FORMAT = "recommender-variables-2"
PARTS = ("names", "old", "types")
READ, FORWARDS, STANDS_IN, WARNS, IGNORES = "reads", "forwards", "stands in", "warns", "ignores"
LATER, RETIRED, NEVER = "later", "retired", "never"
LIVE = (READ, FORWARDS, STANDS_IN, WARNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Misread:
    """A variable that does not do what it says: `kind` is that of the law, `message` names variable and text."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What a release does with a variable; `new` is the name it becomes, `change` how its text is changed on the way.

    `release` is the first that reads it, or the last that did; empty where no covered release does.
    """

    does: str
    new: str = ""
    change: str = ""
    release: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The variables of a launch: values that rules read, the engine's other variables, those that do not do what they say."""

    values: Mapping[str, Value] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
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


def changed_text(how: Mapping[str, Any] | None, text: str) -> str | None:
    """A text as the engine forwards it to another name; None where it cannot and stops.

    >>> changed_text({"over": 1000}, "1500"), changed_text({"over": 1000}, "soon"), changed_text(None, "x")
    ('1.5', None, 'x')
    >>> changed_text({"of": ["true", "1"], "to": "0", "otherwise": "1"}, "True")
    '0'
    """
    if how is None:
        return text
    if "over" in how:
        try:
            return str(float(text) / float(how["over"]))
        except ValueError:
            return None
    return str(how["to"] if text.lower() in how["of"] else how["otherwise"])


def checked_table(table: Any, name: str) -> Mapping[str, Any]:
    """The table of variables, when it is whole.

    Raises:
        RulebookError: it is of another format, or entries are missing.
    """
    if not isinstance(table, Mapping) or table.get("format") != FORMAT:
        raise RulebookError(
            f"{name}: not a table of variables in the format {FORMAT}; tools/make_variables.py writes it"
        )
    counts = table.get("counts")
    for part in PARTS:
        held, told = table.get(part), counts.get(part) if isinstance(counts, Mapping) else None
        if not isinstance(held, Mapping) or len(held) != told:
            number = len(held) if isinstance(held, Mapping) else "none"
            raise RulebookError(f"{name}: holds {number} of {told} {part}; tools/make_variables.py writes it")
    return table


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Variables:
    """The variables of one release: `settings` is settings.yaml, `table` flags/variables.json, `now` flags/variables.yaml."""

    release: str
    releases: Sequence[str]
    settings: Mapping[str, Any]
    table: Mapping[str, Any]
    now: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @cached_property
    def known(self) -> Mapping[str, Mapping[str, Any]]:
        """The variables that rules read, with their types and defaults."""
        entries: Mapping[str, Mapping[str, Any]] = self.settings.get("environment") or {}
        return entries

    @cached_property
    def names(self) -> frozenset[str]:
        """Every variable that a file of the release names; one that ends with an underscore is a beginning."""
        wanted = parse_release(self.release)
        return frozenset(name for name, span in self.table["names"].items() if in_range(wanted, *span))

    @cached_property
    def _begun(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if name.endswith("_"))

    def fate(self, name: str) -> Fate:
        """What the release does with a variable of this name."""
        wanted = parse_release(self.release)
        runs = self.table["old"].get(name, ())
        for since, until, does, *rest in runs:
            if in_range(wanted, since, until):
                new, change = (*rest, "", "")[:2]
                return Fate(does=does, new=new, change=change, release=self._before(since) if does == IGNORES else "")
        more = self.now.get(name, {})
        ignored = more.get("ignored_since")
        if ignored is not None and wanted >= parse_release(ignored):
            return Fate(does=IGNORES if name in self.names else RETIRED, release=self._before(ignored))
        if name in self.names or name.startswith(self._begun):
            warns = more.get("warns")
            return Fate(does=WARNS if warns and in_range(wanted, *warns) else READ)
        span = self.table["names"].get(name)
        if span is None:
            return Fate(does=NEVER)
        since, until = span
        if since is not None and wanted < parse_release(since):
            return Fate(does=LATER, release=since)
        dead = next((run[0] for run in runs if run[2] == IGNORES), until) if runs else until
        return Fate(does=RETIRED, release=self._before(dead))

    def _before(self, release: str | None) -> str:
        """The covered release before one; empty before the first."""
        earlier = [item for item in self.releases if release and parse_release(item) < parse_release(release)]
        return earlier[-1] if earlier else ""

    def instead(self, name: str, text: str) -> str:
        """What does the work of a variable now, as the end of a sentence; empty where nobody wrote it down.

        A name that earlier releases forwarded to another is followed to the one that this release reads.
        """
        more = self.now.get(name, {})
        if more.get("now"):
            return f"; {more['now']}"
        if more.get("instead"):
            return f"; {more['instead']} does its work"
        for _, _, does, *rest in reversed(self.table["old"].get(name, ())):
            if does in (FORWARDS, STANDS_IN) and rest:
                said = changed_text(self._changes.get(rest[1]) if len(rest) > 1 else None, text)
                if self.is_live(rest[0]):
                    return f"; {rest[0]}{'' if said is None else f'={said}'} does its work"
                return self.instead(rest[0], said or text)
        return ""

    @property
    def _changes(self) -> Mapping[str, Any]:
        changes: Mapping[str, Any] = self.settings.get("environment_changes") or {}
        return changes

    def read(self, given: Mapping[str, str | Unknown], silent: frozenset[str] = frozenset()) -> Reading:
        """The variables of a launch as the release reads them; of the `silent` ones nothing is said."""
        fates = {spelled: self._found(spelled) for spelled in given}
        texts = self._texts(given, fates)
        readers = self.settings.get("environment_readers", {})
        values: dict[str, Value] = {}
        misread: list[Misread] = []
        for name, (spelled, text) in texts.items():
            entry = self.known.get(name)
            if entry is None:
                continue
            values[name], fits = environment_value(entry, readers, text) if isinstance(text, str) else (UNKNOWN, True)
            if not fits and spelled not in silent:
                took = "what it then takes is not known" if values[name] is UNKNOWN else f"it takes {values[name]}"
                misread.append(_bad(spelled, text, entry.get("type"), took))
        for spelled, (name, fate) in fates.items():
            if spelled not in silent:
                misread.extend(self._said(spelled, name, fate, given[spelled], texts))
        ignored = tuple(
            spelled
            for spelled, (name, fate) in fates.items()
            if fate.does in LIVE and name not in self.known and fate.new not in self.known
        )
        return Reading(values=values, ignored=ignored, misread=tuple(misread))

    def _found(self, spelled: str) -> tuple[str, Fate]:
        """(the name that a spelling stands for, what is done with it); names of others than the engine count as read."""
        prefix, old = self.settings.get("environment_prefix", ""), self.settings.get("environment_old_prefix", "")
        if old and spelled.startswith(old):
            own = self.fate(spelled)
            name = prefix + spelled.removeprefix(old)
            return (spelled, own) if own.does in LIVE and not self.is_live(name) else (name, self.fate(name))
        return spelled, self.fate(spelled) if prefix and spelled.startswith(prefix) else Fate(does=READ)

    def is_live(self, name: str) -> bool:
        """Whether the release reads a variable of this name in some way."""
        return self.fate(name).does in LIVE

    def _texts(
        self, given: Mapping[str, str | Unknown], fates: Mapping[str, tuple[str, Fate]]
    ) -> dict[str, tuple[str, str | Unknown]]:
        """What the engine finds under each name that it reads: (how that was spelled, the text).

        Its order: a forwarded text replaces one that was given, and one under the old prefix replaces both; one that stands in
        is looked at last.
        """
        found = {
            name: (name, given[name]) for name, (full, fate) in fates.items() if full == name and fate.does in LIVE
        }
        for does in (FORWARDS, "", STANDS_IN):
            for spelled, (name, fate) in fates.items():
                text = given[spelled]
                if does == "" and name != spelled and fate.does in LIVE:
                    found[name] = (spelled, text)
                elif does and fate.does == does and (does == FORWARDS or fate.new not in found):
                    said = changed_text(self._changes.get(fate.change), text) if isinstance(text, str) else text
                    if said is not None:
                        found[fate.new] = (spelled, said)
        return found

    def _said(
        self, spelled: str, name: str, fate: Fate, text: str | Unknown, texts: Mapping[str, tuple[str, str | Unknown]]
    ) -> Iterator[Misread]:
        """What to say of one variable beside its value."""
        shown = text if isinstance(text, str) else ""
        here = f"SGLang {self.release}"
        if fate.does == NEVER:
            near = nearest(name, tuple(each for each in self.names if not each.endswith("_")))
            hint = f"; nearest: {', '.join(near)}" if near else ""
            yield Misread(
                kind="unknown-variable",
                message=f"{spelled}: nothing in {here} names it, so the engine never reads it{hint}.",
            )
        elif fate.does == LATER:
            yield Misread(
                kind="later-variable", message=f"{spelled}: {here} does not read it, {fate.release} is the first to."
            )
        elif fate.does in (RETIRED, IGNORES):
            last = (
                f"{fate.release} was the last release to read it" if fate.release else "as does every covered release"
            )
            yield Misread(
                kind="retired-variable", message=f"{spelled}: {here} ignores it, {last}{self.instead(name, shown)}."
            )
        elif fate.does == WARNS:
            yield Misread(
                kind="deprecated-variable",
                message=f"{spelled}: {here} still reads it, and warns that it is deprecated{self.instead(name, shown)}.",
            )
        elif fate.does in (FORWARDS, STANDS_IN):
            said = changed_text(self._changes.get(fate.change), shown)
            if said is None and isinstance(text, str):
                yield Misread(
                    kind="unreadable-variable",
                    message=f"{spelled}={text}: {here} turns it into a number while it is imported, and stops.",
                )
                return
            value = f"={said}" if isinstance(text, str) else ""
            passed = fate.does == STANDS_IN and texts.get(fate.new, (spelled,))[0] != spelled
            what = f"takes {fate.new} instead, which is set too" if passed else f"takes it as {fate.new}{value}"
            yield Misread(kind="deprecated-variable", message=f"{spelled}: a deprecated name; {here} warns and {what}.")
        elif name != spelled:
            yield Misread(
                kind="deprecated-variable",
                message=f"{spelled}: a deprecated name; {here} warns and takes it as {name}.",
            )
        if fate.does in LIVE and name not in self.known and isinstance(text, str):
            yield from self._bad_text(spelled, fate.new or name, text)

    def _bad_text(self, spelled: str, name: str, text: str) -> Iterator[Misread]:
        """A text that is not of the type which the engine declares for a variable that no rule reads."""
        kind = self.table["types"].get(name)
        if kind is None or name in self.known:
            return
        readers = self.settings.get("environment_readers", {})
        if not environment_value({"type": kind, "default": None}, readers, text)[1]:
            yield _bad(spelled, text, kind, "it takes its default")


def _bad(spelled: str, text: str | Unknown, kind: str | None, took: str) -> Misread:
    return Misread(kind="bad-variable", message=f"{spelled}={text}: the engine expects {kind} there; {took}.")
