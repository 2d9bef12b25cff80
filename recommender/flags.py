"""What one flag of the engine is, and how its text becomes a value; it must not know a flag's name or read files."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from recommender.errors import RulebookError
from recommender.terms import UNKNOWN, Value

_SHELL = re.compile(r"\$(?:[A-Za-z_@*#?0-9]|\{|\()|`[^`]+`")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)(Ki|Mi|Gi|Ti|k|M|G|T)")
_SIZES = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}

# Kinds of flags that take no value, as the catalogue writes them.
_SWITCHES = frozenset({"help", "store_true", "store_false", "boolean", "ignored", "retired"})


class BadTextError(ValueError):
    """A flag's text is not of its type. `str()` says why in our words; empty where the parser's standard words fit."""


class BadWordError(BadTextError):
    """A flag's text is of its type, but not one of the words it takes."""


def holds_shell_variable(text: str) -> bool:
    """Whether a word holds something that a shell would still expand."""
    return ("$" in text or "`" in text) and _SHELL.search(text) is not None


def frozen(value: Any) -> Value:
    """A JSON or YAML value with its lists as tuples."""
    if isinstance(value, list):
        return tuple(frozen(item) for item in value)
    if isinstance(value, dict):
        return {key: frozen(item) for key, item in value.items()}
    return value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Flag:
    """One entry of the catalogue: option strings that share an action. `nargs` as argparse has it, 0 for a switch."""

    names: tuple[str, ...]
    field: str
    kind: str
    type: str = ""
    nargs: str | int | None = None
    choices: tuple[Value, ...] | None = None
    default: Value = None
    const: Value = None
    required: bool = False
    deprecated: bool = False
    defaultless: bool = False
    instead: str = ""
    role: str = ""
    keys: tuple[str, ...] = ()
    sections: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    word_key: str = ""
    retired_words: tuple[str, ...] = ()

    @property
    def long(self) -> str:
        """The first spelling that a person would write."""
        return next((name for name in self.names if name.startswith("--")), self.names[0])

    @property
    def title(self) -> str:
        """How the engine's parser names the flag in its messages."""
        return "/".join(self.names)

    @property
    def many(self) -> bool:
        """Whether the value is a list of words."""
        return self.nargs in ("+", "*") or (isinstance(self.nargs, int) and self.nargs > 0)

    @property
    def plain_type(self) -> str:
        """The kind of value: bool, int, float, str or json."""
        if self.nargs == 0 or self.kind == "store_const":
            return "bool"
        return _PLAIN_TYPES.get(self.type, self.type)

    def convert(self, text: str) -> Value:
        """One word as a value.

        Raises:
            BadTextError: the word is not of the flag's type.
        """
        reader = _BY_TEXT.get(self.type)
        return _BY_FLAG[self.type](text, self) if reader is None else reader(text)


def make_flag(entry: Mapping[str, Any]) -> Flag:
    """Read one entry of the catalogue.

    Raises:
        RulebookError: a key is missing or a type has no reader.
    """
    try:
        given = {key: frozen(value) for key, value in entry.items() if key not in ("since", "until")}
        if given["kind"] in _SWITCHES:
            given["nargs"] = 0
        flag = Flag(**given)
    except (KeyError, TypeError) as error:
        raise RulebookError(f"flag catalogue: {entry.get('names')}: {error}") from None
    if flag.type not in _BY_TEXT and flag.type not in _BY_FLAG:
        raise RulebookError(f"flag catalogue: {flag.long}: no reader for type {flag.type!r}")
    return flag


# --- text to value ----------------------------------------------------------------------------------------------------


def _nullable(text: str) -> Value:
    return None if text in ("", "None") else text


def _size(text: str) -> Value:
    text = text.strip()
    match = _SIZE.fullmatch(text)
    if match is None:
        try:
            return int(text)
        except ValueError:
            raise BadTextError(f"{text!r} is no whole number; k, M, G, T, Ki, Mi, Gi or Ti may follow one") from None
    number, unit = match.groups()
    if unit.endswith("i"):
        if "." in number:
            raise BadTextError(f"{text!r} needs a whole number before {unit}; a fraction may stand before {unit[0]}")
        return int(number) * _SIZES[unit]
    from decimal import Decimal

    return int(Decimal(number) * _SIZES[unit])


def _json(text: str) -> Value:
    try:
        return frozen(json.loads(text))
    except RecursionError:
        raise BadTextError("the JSON is nested too deeply") from None


def _refuse_constant(text: str) -> Any:
    raise BadTextError(f"{text} is no JSON")


def _wide_integer(text: str) -> int | float:
    number = int(text)
    return number if -(2**63) <= number < 2**64 else float(text)


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise BadTextError(f"{text} is too large")
    return number


def _strict_json(text: str) -> Value:
    try:
        value = json.loads(text, parse_constant=_refuse_constant, parse_int=_wide_integer, parse_float=_finite)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise BadTextError(f"{text!r} is no JSON list") from None
    return frozen(value)


def _live_word(text: str, flag: Flag) -> Value:
    if text in flag.retired_words:
        left = f"; it takes {', '.join(map(str, flag.choices))}" if flag.choices else ""
        raise BadWordError(f"{text!r} is retired{left}")
    return text


def _sections(text: str, flag: Flag) -> Value:
    try:
        given = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadTextError(f"not JSON: {error}") from None
    except RecursionError:
        raise BadTextError("the JSON is nested too deeply") from None
    if not isinstance(given, dict):
        raise BadTextError("not a JSON object")
    for section, settings in given.items():
        if section not in flag.sections:
            raise BadTextError(f"no section {section!r}; sections are {', '.join(flag.sections)}")
        if not isinstance(settings, dict):
            raise BadTextError(f"section {section!r} is not a JSON object")
        word = settings.get(flag.word_key)
        if isinstance(word, str):
            _live_word(word, flag)
        keys = flag.sections[section]
        for key in settings:
            if key not in keys:
                raise BadTextError(f"section {section!r} has no key {key!r}; keys are {', '.join(keys)}")
    return frozen(given)


# By the name the engine gives the type; the name stands in the parser's own message for a bad value.
_BY_TEXT: Final[Mapping[str, Callable[[str], Value]]] = {
    "": str,
    "str": str,
    "int": int,
    "float": float,
    "nullable_str": _nullable,
    "human_readable_int": _size,
    "loads": _json,
    "json_list_type": _strict_json,
}
_BY_FLAG: Final[Mapping[str, Callable[[str, Flag], Value]]] = {
    "parse_cuda_graph_backend_arg": _live_word,
    "parse_cuda_graph_config_arg": _sections,
}
_PLAIN_TYPES: Final[Mapping[str, str]] = {
    "": "str",
    "nullable_str": "str",
    "human_readable_int": "int",
    "loads": "json",
    "json_list_type": "json",
    "parse_cuda_graph_backend_arg": "str",
    "parse_cuda_graph_config_arg": "json",
}


# --- fields -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Field:
    """One setting: the flags that write it, the one to prefer first; `type` is bool, int, float, str or json."""

    name: str
    type: str
    default: Value
    choices: tuple[Value, ...] | None
    flags: tuple[Flag, ...]

    @property
    def flag(self) -> Flag:
        """The flag to write the setting with."""
        return self.flags[0]

    @property
    def many(self) -> bool:
        """Whether the value is a list."""
        return self.flag.many

    @property
    def takes_value(self) -> bool:
        """Whether the flag stands before a value."""
        return self.flag.nargs != 0

    @property
    def deprecated(self) -> bool:
        """Whether no current spelling is left."""
        return self.flag.deprecated


def make_field(name: str, flags: tuple[Flag, ...], default: Value) -> Field:
    """A setting from all flags that write it, in the parser's order."""
    first = min(flags, key=lambda flag: flag.deprecated)
    return Field(
        name=name,
        type=first.plain_type,
        default=default,
        choices=first.choices if first.kind != "store_const" else None,
        flags=(first, *(flag for flag in flags if flag is not first)),
    )


def is_unknown(value: Value) -> bool:
    """Whether a value, or a part of a list, is not known."""
    return value is UNKNOWN or (isinstance(value, tuple) and any(item is UNKNOWN for item in value))
