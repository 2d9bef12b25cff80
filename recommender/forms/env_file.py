"""Reads the files of variables that a container is given; it must not judge a variable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from recommender.terms import UNKNOWN, Unknown

LARGEST_FILE = 1 << 20


def read_env_files(names: Iterable[str], root: Path) -> tuple[dict[str, str | Unknown], tuple[str, ...]]:
    """(the variables of the files, a later one over an earlier; the files that cannot be read here)."""
    found: dict[str, str | Unknown] = {}
    missing: list[str] = []
    for name in names:
        lines = _lines(root / name)
        if lines is None:
            missing.append(name)
        else:
            found |= _variables(lines)
    return found, tuple(missing)


def _lines(path: Path) -> list[str] | None:
    try:
        if not path.is_file() or path.stat().st_size > LARGEST_FILE:
            return None
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return None


def _variables(lines: Iterable[str]) -> Mapping[str, str | Unknown]:
    """NAME=VALUE lines; a name alone takes what the caller's own environment holds, which is not known."""
    found: dict[str, str | Unknown] = {}
    for line in lines:
        text = line.strip()
        if text and not text.startswith("#"):
            name, equals, value = text.removeprefix("export ").partition("=")
            found[name.strip()] = _unquoted(value.strip()) if equals else UNKNOWN
    return found


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value
