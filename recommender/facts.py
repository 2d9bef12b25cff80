"""Says what facts there are and works each out when it is first read; it must not know a fact by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any, Final

from recommender import library
from recommender.errors import RulebookError, UsageError
from recommender.expr import Expression, compile_expression
from recommender.terms import UNKNOWN, Value

FACTS_FILE = "profiles/facts.yaml"
LARGEST_INTEGER = 2**53
CHECKPOINT_SCOPES = ("model", "draft")

MISSING: Final = object()
_TYPES: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
    "str": (str,),
    "tuple": (tuple,),
    "dict": (dict,),
    "any": (bool, int, float, str, tuple, dict),
}
WORDS = {bool: "a boolean", int: "an integer", float: "a number", str: "a text", tuple: "a list", dict: "an object"}
_SPEC_KEYS = {"type", "unit", "meaning", "keys", "absent", "derive", "home", "otherwise", "objects"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class FactSpec:
    """One line of facts.yaml. `keys` are (file, path) pairs, file being "", "text" or "hf_quant_config"."""

    name: str
    type: str
    meaning: str
    unit: str = ""
    keys: tuple[tuple[str, tuple[str, ...]], ...] = ()
    objects: tuple[tuple[str, ...], ...] = ()
    absent: Value = MISSING
    otherwise: Value = MISSING
    derive: str = ""
    home: str = ""


def _key(text: str) -> tuple[str, tuple[str, ...]]:
    file, colon, path = text.rpartition(":")
    if colon:
        return file, tuple(path.split("."))
    first, dot, rest = text.partition(".")
    return ("text", tuple(rest.split("."))) if first == "text" and dot else ("", tuple(text.split(".")))


def plain(value: Any) -> Value:
    """A JSON value as a fact's value: lists become tuples, all the way down."""
    if isinstance(value, list):
        return tuple(plain(item) for item in value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def _spec(name: str, entry: Any) -> FactSpec:
    if not isinstance(entry, dict):
        raise RulebookError(f"{FACTS_FILE}: {name}: not an object")
    no_strangers(entry, _SPEC_KEYS, f"{FACTS_FILE}: {name}")
    kind = entry.get("type", "any")
    if kind not in _TYPES:
        raise RulebookError(f"{FACTS_FILE}: {name}: unknown type {kind!r}{nearest(str(kind), _TYPES)}")
    return FactSpec(
        name=name,
        type=kind,
        meaning=str(entry.get("meaning", "")),
        unit=str(entry.get("unit", "")),
        keys=tuple(_key(key) for key in entry.get("keys", ())),
        objects=tuple(tuple(path.split(".")) for path in entry.get("objects", ())),
        absent=plain(entry.get("absent", MISSING)),
        otherwise=plain(entry.get("otherwise", MISSING)),
        derive=str(entry.get("derive", "")),
        home=str(entry.get("home", "")),
    )


class FactBook:
    """The list of facts: names, where each is read, and the compiled expressions. It is the vocabulary of `derive`."""

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self._entries = entries
        self._specs: dict[str, FactSpec] = {}
        self._expressions: dict[str, Expression] = {}

    def names(self) -> tuple[str, ...]:
        """Every fact an expression may name, those of a draft checkpoint included."""
        model, draft = (f"{scope}." for scope in CHECKPOINT_SCOPES)
        drafts = (draft + name.removeprefix(model) for name in self._entries if name.startswith(model))
        return (*self._entries, *drafts)

    def is_fact(self, name: str) -> bool:
        """Whether facts.yaml lists the name."""
        return self._listed(name) in self._entries

    def is_setting(self, _name: str) -> bool:
        """A fact is never derived from a setting."""
        return False

    def group(self, _name: str) -> tuple[Value, ...] | None:
        """A fact is never derived from a group of settings' values."""
        return None

    def definition(self, _name: str) -> Expression | None:
        """A fact is never derived from a definition."""
        return None

    @staticmethod
    def _listed(name: str) -> str:
        model, draft = CHECKPOINT_SCOPES
        scope, dot, rest = name.partition(".")
        return f"{model}.{rest}" if dot and scope == draft else name

    def spec(self, name: str) -> FactSpec:
        """What facts.yaml says of a fact (`draft.x` is listed as `model.x`).

        Raises:
            RulebookError: no such fact; names the nearest one.
        """
        listed = self._listed(name)
        spec = self._specs.get(listed)
        if spec is None:
            if listed not in self._entries:
                raise RulebookError(f"unknown fact {name!r}{nearest(name, self.names())}")
            spec = self._specs[listed] = _spec(listed, self._entries[listed])
        return spec

    def expression(self, text: str) -> Expression:
        """A `derive` expression, compiled once."""
        compiled = self._expressions.get(text)
        if compiled is None:
            compiled = self._expressions[text] = compile_expression(text, self)
        return compiled


@cache
def book() -> FactBook:
    """The facts of this installation."""
    return FactBook(an_object(library.load().one(FACTS_FILE), FACTS_FILE))


class Facts(dict[str, Value]):
    """Facts by name, each worked out when first read. Read only: nothing is ever assigned from outside."""

    __slots__ = ("_work",)

    def __init__(self, work: Callable[[str], Value]) -> None:
        super().__init__()
        self._work = work

    def __missing__(self, name: str) -> Value:
        value = self._work(name)
        super().__setitem__(name, value)
        return value

    def __setitem__(self, name: str, value: Value) -> None:
        raise TypeError("facts are given, not assigned")

    def get(self, name: str, _default: Value = None) -> Value:
        """The value of a fact; a default plays no part, as every listed fact has a value."""
        return self[name]

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _FactScope:
    """What a `derive` expression reads: facts, and no settings."""

    facts: Mapping[str, Value]
    values: Mapping[str, Value]
    asked: tuple[str, ...] = ()


NO_VALUES: Final[Mapping[str, Value]] = {}


def evaluate(expression: Expression, facts: Mapping[str, Value]) -> Value:
    return expression.evaluate(_FactScope(facts, NO_VALUES))


def stated_value(value: Value, facts: Mapping[str, Value]) -> Value:
    """A value of a profile: a text that starts with "=" is an expression over facts."""
    if isinstance(value, str) and value.startswith("="):
        return evaluate(book().expression(value[1:]), facts)
    return plain(value)


def checked(spec: FactSpec, value: Value, where: str) -> Value:
    """The value, if it has the fact's type.

    Raises:
        UsageError: it has not; names file and key.
    """
    if value is None or value is UNKNOWN:
        return value
    allowed = _TYPES[spec.type]
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
        if spec.type == "int" and isinstance(value, float) and value.is_integer():
            return int(value)
        found = next((word for kind, word in WORDS.items() if isinstance(value, kind)), type(value).__name__)
        raise UsageError(f"{where}: expected {WORDS[allowed[0]]}, found {found} ({shortened(value)})")
    if isinstance(value, (int, float)) and not (math.isfinite(value) and abs(value) <= LARGEST_INTEGER):
        raise UsageError(f"{where}: {shortened(value)} is out of range")
    return value


def shortened(value: Any) -> str:
    """A value as a message shows it."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def step(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return MISSING
        value = value[key]
    return value


def stated_facts(document: Mapping[str, Any], scope: str, where: str) -> Mapping[str, Value]:
    """The `facts:` of a profile.

    Raises:
        RulebookError: facts.yaml lists no such fact; names the nearest one.
    """
    stated = an_object(document.get("facts", {}), f"{where}: facts")
    listed = book()
    for name in stated:
        if not listed.is_fact(f"{scope}.{name}"):
            known = [each.partition(".")[2] for each in listed.names() if each.startswith(f"{scope}.")]
            raise RulebookError(f"{where}: facts: unknown fact {name!r}{nearest(str(name), known)}")
    return stated


def profiles_of(folder: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
    for stem, documents in library.load().folder(f"profiles/{folder}"):
        for document in documents:
            yield stem, a_profile(document, f"profiles/{folder}/{stem}.yaml")


def profile_of(folder: str, stem: str) -> Mapping[str, Any]:
    return a_profile(library.load().one(f"profiles/{folder}/{stem}.yaml"), f"profiles/{folder}/{stem}.yaml")


def a_profile(value: Any, where: str) -> Mapping[str, Any]:
    """A profile as it was written: the last thing that one says is where it has that from.

    Raises:
        RulebookError: it is no object, or does not come to its source.
    """
    profile = an_object(value, where)
    if not profile.get("source"):
        raise RulebookError(f"{where}: cut short; a profile ends with its source")
    return profile


def an_object(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise RulebookError(f"{where}: expected an object")
    return value


def nearest(word: str, names: Iterable[str], shown: Mapping[str, str] | None = None) -> str:
    """ "; did you mean ...?" with the nearest names, each as `shown` spells it; empty when none is near."""
    near = get_close_matches(word, list(names), n=3, cutoff=0.6)
    words = list(dict.fromkeys((shown or {}).get(name, name) for name in near))
    return f"; did you mean {' or '.join(repr(name) for name in words)}?" if words else ""


def no_strangers(entry: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    for key in entry:
        if key not in known:
            raise RulebookError(f"{where}: unknown key {key!r}{nearest(str(key), known)}")
