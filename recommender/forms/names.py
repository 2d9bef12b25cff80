"""Reads NAME=VALUE as a setting and a typed value, whatever name a person uses; it must not know a setting itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from recommender.command_line import CommandLine, nearest
from recommender.errors import UsageError
from recommender.flags import BadTextError, Field
from recommender.terms import Value

_YES = frozenset({"true", "yes", "on", "1"})
_NO = frozenset({"false", "no", "off", "0"})
_UNSET = frozenset({"none", "null", "unset"})


def field_of(name: str, line: CommandLine, aliases: Mapping[str, str], others: Iterable[str] = ()) -> str:
    """The setting that a name means: a field, a flag's spelling with or without dashes, an alias, or one of `others`.

    Raises:
        UsageError: nothing has this name; the nearest ones are said.
    """
    known = frozenset(others)
    if name in line.fields or name in known:
        return name
    bare = name.lstrip("-").replace("_", "-").lower()
    for alias, target in aliases.items():
        if bare == alias.replace("_", "-").lower():
            return target
    field = bare.replace("-", "_")
    if field in line.fields:
        return field
    flag = line.flag(f"--{bare}")
    if flag is not None and flag.field in line.fields and not bare.startswith("no-"):
        return flag.field
    near = nearest(field, (*line.fields, *(alias.replace("-", "_") for alias in aliases)))
    near = near or nearest(name, tuple(known))
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise UsageError(f"no setting {name!r}{hint}")


def split_pair(text: str) -> tuple[str, str]:
    """NAME=VALUE as its two halves.

    Raises:
        UsageError: there is no equals sign, or nothing before it.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"{text!r} is not NAME=VALUE")
    return name.strip(), value.strip()


def read_value(spec: Field, text: str) -> Value:
    """A text as a value of a setting; `none` unsets unless it is one of the setting's own words.

    Raises:
        UsageError: the text is not of the setting's type, or not one of its words.
    """
    choices = tuple(map(str, spec.choices or ()))
    lowered = text.lower()
    if lowered in _UNSET and text not in choices:
        return None
    if spec.type == "bool":
        if lowered in _YES | _NO:
            return lowered in _YES
        raise UsageError(f"{spec.name}: {text!r} is neither true nor false")
    if spec.many:
        return tuple(_read_word(spec, item, choices) for item in _items(text))
    return _read_word(spec, text, choices)


def _items(text: str) -> list[str]:
    if text.startswith("["):
        try:
            listed = json.loads(text)
        except (ValueError, RecursionError):
            listed = None
        if isinstance(listed, list):
            return [item if isinstance(item, str) else json.dumps(item) for item in listed]
    return [item.strip() for item in text.split(",") if item.strip()]


def _read_word(spec: Field, text: str, choices: tuple[str, ...]) -> Value:
    try:
        value = spec.flag.convert(text)
    except BadTextError as error:
        raise UsageError(f"{spec.name}: {error}") from None
    except (ValueError, TypeError):
        raise UsageError(f"{spec.name}: {text!r} is not of type {spec.type}") from None
    if spec.choices is not None and value not in spec.choices:
        near = nearest(text, choices)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"{spec.name}: {text!r} is none of {', '.join(choices)}{hint}")
    return value
