"""Writes settings as flags, as a command or as a config file, so that they read back the same; it must not judge."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recommender.command_line import CommandLine, Parsed
from recommender.errors import UsageError
from recommender.flags import Field, Flag, frozen, is_unknown
from recommender.forms.config_file import can_stand_in_file
from recommender.terms import Value

_SAFE = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """What makes a command say some settings: `add` words at its end, `drop` the flags that no later word undoes."""

    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


def write_setting(line: CommandLine, name: str, value: Value) -> tuple[str, ...]:
    """The words that set one field; none where the value is what an empty command line gives.

    Raises:
        UsageError: no words of this release's command line say so.
    """
    spec = line.fields[name]
    if is_unknown(value):
        raise UsageError(f"{name} is not known, so no flag can say it")
    if value is None:
        if spec.default is None:
            return ()
        raise UsageError(f"{spec.flag.long} cannot unset {name}; leave the flag out (it then is {spec.default!r})")
    if spec.type == "bool":
        return _write_switch(spec, value)
    flag = spec.flag
    if flag.many:
        return _write_list(flag, value)
    if flag.nargs == "?" and value == flag.const:
        return (flag.long,)
    return _write_value(flag, _text(flag, value))


def _write_switch(spec: Field, value: Value) -> tuple[str, ...]:
    for flag in spec.flags:
        if flag.kind == "boolean":
            negative = [option for option in flag.names if option.startswith("--no-")]
            return (flag.long,) if value else (negative[0],)
        if flag.nargs == 0 and (flag.kind == "store_true") == bool(value):
            return (flag.long,)
        if flag.kind == "store_const" and flag.const == value:
            return (flag.long, *map(str, (flag.choices or ())[:1]))
    if value == spec.default:
        return ()
    raise UsageError(f"no flag sets {spec.name} to {value!r}; leave {spec.flag.long} out (it then is {spec.default!r})")


def _write_list(flag: Flag, value: Value) -> tuple[str, ...]:
    items = [_text(flag, item) for item in (value if isinstance(value, (list, tuple)) else (value,))]
    if len(items) == 1:
        return _write_value(flag, items[0])
    if not items and flag.nargs == "+":
        raise UsageError(f"{flag.long} takes at least one value")
    for item in items:
        if _looks_like_flag(item):
            raise UsageError(f"{flag.long}: {item!r} would be read as a flag")
    return (flag.long, *items)


def _looks_like_flag(text: str) -> bool:
    from recommender.argparse_replay import is_negative_number

    return text.startswith("-") and not is_negative_number(text)


def _write_value(flag: Flag, text: str) -> tuple[str, ...]:
    if text == "--":
        raise UsageError(f"{flag.long}: no command line can hold the value '--'")
    return (f"{flag.long}={text}",) if text.startswith("-") else (flag.long, text)


def _text(flag: Flag, value: Value) -> str:
    if flag.plain_type == "json" or isinstance(value, (dict, list, tuple)):
        return json.dumps(value, separators=(",", ":"))
    if isinstance(value, str):
        return value
    return repr(value) if isinstance(value, float) else str(value)


def flags_for(line: CommandLine, settings: Mapping[str, Value]) -> tuple[str, ...]:
    """The words that set some fields, in their order. What has no flag, and what is unset, adds none.

    Raises:
        UsageError: a value cannot be said on the command line.
    """
    words: list[str] = []
    for name, value in settings.items():
        if name in line.fields and value is not None and not _is_off(line.fields[name], value):
            words += write_setting(line, name, value)
    return tuple(words)


def _is_off(spec: Field, value: Value) -> bool:
    """Whether a switch is to be off that has no word for off."""
    return spec.type == "bool" and value is False and all(flag.kind != "boolean" for flag in spec.flags)


def patch_for(line: CommandLine, settings: Mapping[str, Value], parsed: Parsed) -> Patch:
    """What a command lacks, and what it must override or lose, to say the settings. The last word of a flag wins.

    Raises:
        UsageError: a value cannot be said on the command line.
    """
    wanted = {
        name: value
        for name, value in settings.items()
        if name in line.fields and (name not in parsed.asked or _differs(parsed.asked[name], value))
    }
    drop = [
        parsed.spelled.get(name, line.fields[name].flag.long)
        for name, value in wanted.items()
        if name in parsed.asked and (value is None or _is_off(line.fields[name], value))
    ]
    return Patch(add=flags_for(line, wanted), drop=tuple(drop))


def _differs(asked: Value, value: Value) -> bool:
    return is_unknown(asked) or repr(asked) != repr(frozen(value))


def rewrite(line: CommandLine, words: Sequence[str], settings: Mapping[str, Value], parsed: Parsed) -> tuple[str, ...]:
    """The flags of a command that says the settings: what it overrides is taken out, the new words stand at the end.

    Raises:
        UsageError: a value cannot be said, or a config file sets what would have to be unset.
    """
    patch = patch_for(line, settings, parsed)
    changed = {
        name
        for name, value in settings.items()
        if name in parsed.asked and name in line.fields and _differs(parsed.asked[name], value)
    }
    for name in changed & parsed.from_config:
        if settings[name] is None or _is_off(line.fields[name], settings[name]):
            raise UsageError(f"the config file sets {parsed.spelled.get(name, name)}; take it out there")
    return (*line.without(words, changed), *patch.add)


def flags_text(words: Iterable[str]) -> str:
    """The words with blanks between, for a shell to split again.

    Raises:
        UsageError: a word would not survive an unquoted expansion.
    """
    listed = list(words)
    for word in listed:
        if not _SAFE.fullmatch(word):
            raise UsageError(f"{word!r} does not survive a shell's word splitting; take --format json")
    return " ".join(listed)


def config_mapping(line: CommandLine, settings: Mapping[str, Value]) -> dict[str, Any]:
    """The settings as a --config file holds them.

    Raises:
        UsageError: a config file cannot set one of them.
    """
    found: dict[str, Any] = {}
    for name, value in settings.items():
        spec = line.fields.get(name)
        if spec is None or value is None or _is_off(spec, value):
            continue
        flag = next((flag for flag in spec.flags if can_stand_in_file(flag)), None)
        if flag is None or is_unknown(value):
            raise UsageError(f"a config file cannot set {spec.flag.long}; give it on the command line")
        texts = (
            [_text(flag, item) for item in value] if flag.many else [] if spec.type == "bool" else [_text(flag, value)]
        )
        barred = next(filter(_looks_like_flag, texts), None)
        if barred is not None:
            raise UsageError(f"{flag.long}: a config file cannot hold {barred!r}; give it on the command line")
        found[flag.long[2:]] = list(value) if flag.many else _config_value(flag, value)
    return found


def _config_value(flag: Flag, value: Value) -> Any:
    if isinstance(value, tuple) or (isinstance(value, str) and flag.plain_type == "json"):
        return json.dumps(value)
    return value
