"""Finds the launch in a systemd unit, with its variables; it must not parse a flag or run anything."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace

from recommender.errors import UsageError
from recommender.forms.command import Command, Launchers, split_command
from recommender.terms import UNKNOWN, Unknown

_SECTION = re.compile(r"^\[\w+\][ \t]*$", re.MULTILINE)
_RUNS = re.compile(r"^ExecStart[ \t]*=", re.MULTILINE)
_CONTINUED = re.compile(r"\\[ \t]*\r?\n")
_SPECIFIER = re.compile(r"%[A-Za-z]")
_BEFORE_A_PROGRAM = "@-:+!|"


def is_unit(text: str) -> bool:
    """Whether a text is a systemd unit that starts something."""
    return _RUNS.search(text) is not None and _SECTION.search(text) is not None


def split_unit(text: str, launchers: Launchers) -> Command:
    """The launch of a unit.

    Raises:
        UsageError: the unit starts no launch of this engine, or several.
    """
    env: dict[str, str | Unknown] = {}
    files: list[str] = []
    found: list[Command] = []
    refused: list[UsageError] = []
    for key, value in _settings(text):
        if key == "Environment":
            for pair in _words(value):
                name, _, said = pair.partition("=")
                env[name] = UNKNOWN if _SPECIFIER.search(said.replace("%%", "")) else said.replace("%%", "%")
        elif key == "EnvironmentFile":
            files.append(value.lstrip("-"))
        elif key == "ExecStart" and value:
            try:
                words = [word.replace("%%", "%").replace("$$", "$") for word in _words(value.lstrip(_BEFORE_A_PROGRAM))]
                found.append(split_command(_expanded(words, env), launchers))
            except UsageError as error:
                refused.append(error)
    if len(found) > 1:
        raise UsageError(f"the unit starts {len(found)} launches: give one of them")
    if not found:
        raise refused[0] if refused else UsageError("the unit starts nothing")
    command = found[0]
    return replace(command, env={**env, **command.env}, env_files=(*files, *command.env_files))


def _settings(text: str) -> Iterator[tuple[str, str]]:
    """The NAME=VALUE lines of the unit, the variables first: they hold for all it starts."""
    lines = [line.strip() for line in _CONTINUED.sub(" ", text).splitlines()]
    pairs = [line.partition("=") for line in lines if "=" in line and not line.startswith(("#", ";", "["))]
    listed = [(name.strip(), value.strip()) for name, _, value in pairs]
    yield from sorted(listed, key=lambda pair: pair[0] == "ExecStart")


def _words(value: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError as error:
        raise UsageError(f"the unit cannot be read as systemd would: {error}") from None


def _expanded(words: list[str], env: dict[str, str | Unknown]) -> list[str]:
    """The words with the unit's own variables put in: $NAME alone splits into words, ${NAME} does not."""
    found: list[str] = []
    for word in words:
        alone = re.fullmatch(r"\$(\w+)", word)
        held = env.get(alone[1]) if alone else None
        if isinstance(held, str):
            found += held.split()
            continue
        found.append(re.sub(r"\$\{(\w+)\}", lambda match: _held(env, match), word))
    return found


def _held(env: dict[str, str | Unknown], match: re.Match[str]) -> str:
    value = env.get(match[1])
    return value if isinstance(value, str) else match.group()
