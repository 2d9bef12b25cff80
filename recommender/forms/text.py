"""Tells what a text holds a launch as (a deployment, a unit, a program, a script) and reads files that do; it must not judge."""

from __future__ import annotations

from pathlib import Path

from recommender.command_line import CommandLine
from recommender.errors import UsageError
from recommender.forms.command import Command, shipped_launchers, split_command
from recommender.forms.deployment import is_deployment, split_deployment

LARGEST_FILE = 1 << 20
_DEPLOYMENTS = (".yaml", ".yml")
SUFFIXES = (*_DEPLOYMENTS, ".sh", ".bash", ".service", ".py")


def split_form(text: str, line: CommandLine, others: frozenset[str] = frozenset()) -> Command:
    """The launch that one text holds, or the file of that name.

    Raises:
        UsageError: there is no launch of this engine in it, or several, or the file cannot be read.
    """
    launchers = shipped_launchers()
    content = read_form(text) or text
    if is_deployment(content, launchers):
        return split_deployment(content, launchers)
    from recommender.forms.unit import is_unit, split_unit

    if is_unit(content):
        return split_unit(content, launchers)
    from recommender.forms.program import program_of, split_program

    tree = program_of(content, launchers)
    if tree is not None:
        return split_program(tree, launchers, line, others)
    if content is not text and text.endswith(_DEPLOYMENTS):
        raise UsageError(
            f"{text}: no deployment; one holds a line that begins with {' or '.join(launchers.deployments['marks'])}"
        )
    return split_command([content], launchers)


def read_form(name: str) -> str:
    """The text of the file that a word names; empty when the word names none.

    Raises:
        UsageError: the file is missing, too large or no text.
    """
    path = Path(name)
    if "\n" in name or " " in name.strip() or path.suffix not in SUFFIXES:
        return ""
    try:
        if not path.is_file():
            raise UsageError(f"{name}: no such file")
        if path.stat().st_size > LARGEST_FILE:
            raise UsageError(f"{name}: larger than {LARGEST_FILE} bytes")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{name}: cannot be read ({error.strerror})") from None
    except ValueError:
        raise UsageError(f"{name}: no text") from None
