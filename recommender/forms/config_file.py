"""Turns a --config file into words ahead of a command line's own, as the launcher does; it must not parse words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recommender.errors import UsageError
from recommender.flags import Flag

LARGEST_FILE = 2**20
LARGEST_VALUE = 10**5
_SUFFIXES = (".yaml", ".yml")


class ConfigFileError(UsageError):
    """The launcher would stop at this file, or at the way it is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKeys:
    """Keys of a file, with underscores: `switches` become a bare flag, `barred` ones stop the launch."""

    switches: frozenset[str]
    barred: frozenset[str]


def merge_config(words: Sequence[str], option: str, keys: FileKeys, folder: Path | None = None) -> list[str]:
    """The words of the file, then those of the command line without the option itself.

    Raises:
        ConfigFileError: the file cannot be used, or holds what a file may not set.
    """
    if words.count(option) > 1:
        raise ConfigFileError(f"{option} stands twice; the launcher takes one file")
    at = words.index(option)
    if at + 1 == len(words):
        raise ConfigFileError(f"{option} names no file")
    name = words[at + 1]
    content = read_config(Path(name) if folder is None else folder / name, name)
    return [*config_words(content, keys, name), *words[:at], *words[at + 2 :]]


def read_config(path: Path, name: str) -> dict[Any, Any]:
    """The mapping that a file holds.

    Raises:
        ConfigFileError: the file is missing, too large, not YAML or not a mapping.
    """
    import yaml

    if path.suffix.lower() not in _SUFFIXES:
        raise ConfigFileError(f"{name}: a config file ends in {' or '.join(_SUFFIXES)}")
    try:
        if not path.is_file():
            raise ConfigFileError(f"{name}: no such file")
        if path.stat().st_size > LARGEST_FILE:
            raise ConfigFileError(f"{name}: larger than {LARGEST_FILE} bytes")
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506  (a safe loader)
    except (OSError, ValueError, TypeError, RecursionError, yaml.YAMLError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f":{mark.line + 1}" if mark else ""
        reason = getattr(error, "problem", None) or getattr(error, "strerror", None) or error
        raise ConfigFileError(f"{name}{place}: {' '.join(str(reason).split())}") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigFileError(f"{name}: holds no mapping of flags to values")
    if _size(content, {}) > LARGEST_VALUE:
        raise ConfigFileError(f"{name}: its values are too large")
    return content


def _size(value: Any, known: dict[int, int]) -> int:
    """How many scalars a value would print; references to one node are counted each time, at the cost of one visit."""
    if not isinstance(value, (dict, list, tuple, set)):
        return 1
    if id(value) not in known:
        known[id(value)] = LARGEST_VALUE + 1  # what holds itself has no end
        parts = [*value.keys(), *value.values()] if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_size(part, known) for part in parts)
    return known[id(value)]


def _keys(flag: Flag) -> set[str]:
    """The keys that name a flag in a file: its field and every long spelling, with underscores."""
    return {flag.field} | {name[2:].replace("-", "_") for name in flag.names if name.startswith("--")}


def can_stand_in_file(flag: Flag) -> bool:
    """Whether the launcher takes the flag from a file: plain switches and flags with values, no others."""
    return _plain_switch(flag) or (flag.kind == "store" and not flag.deprecated) or flag.nargs is None


def _plain_switch(flag: Flag) -> bool:
    return flag.kind == "store_true" and not flag.deprecated


def file_keys_of(flags: Sequence[Flag]) -> FileKeys:
    """How the launcher reads the keys of a file, for one release's flags."""
    usable = {key for flag in flags if can_stand_in_file(flag) for key in _keys(flag)}
    return FileKeys(
        switches=frozenset(key for flag in flags if _plain_switch(flag) for key in _keys(flag)),
        barred=frozenset(
            key
            for flag in flags
            if not can_stand_in_file(flag) and flag.kind != "help" and flag.role != "config_file"
            for key in _keys(flag)
        )
        - usable,
    )


def config_words(content: dict[Any, Any], keys: FileKeys, name: str) -> list[str]:
    """The words of a file's mapping.

    Raises:
        ConfigFileError: a key is no text, or names a flag that a file may not set.
    """
    words: list[str] = []
    for key, value in content.items():
        if not isinstance(key, str):
            raise ConfigFileError(f"{name}: key {key!r} is no text")
        known = key.replace("-", "_")
        if known in keys.barred:
            raise ConfigFileError(f"{name}: {key}: a config file cannot set this flag; give it on the command line")
        if isinstance(value, bool):
            words += ([f"--{key}"] if value else []) if known in keys.switches else [f"--{key}", str(value).lower()]
        elif isinstance(value, list):
            words += [f"--{key}", *map(str, value)] if value else []
        elif isinstance(value, dict):
            words += [f"--{key}", _object(value, key, name)]
        else:
            words += [f"--{key}", str(value)]
    return words


def _object(value: dict[Any, Any], key: str, name: str) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError):
        raise ConfigFileError(f"{name}: {key}: no JSON can hold this value") from None
