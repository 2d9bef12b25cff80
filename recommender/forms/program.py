"""Reads the settings that a Python program hands to the engine; it must not run, import or evaluate anything.

Literals are read; a name is followed to the one literal that the program assigns to it. Everything else is not known.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from recommender.command_line import CommandLine, nearest
from recommender.errors import UsageError
from recommender.forms.command import Command, Launchers
from recommender.forms.emit import write_setting
from recommender.terms import UNKNOWN, Unknown

LONGEST = 1 << 20
_CHANGES = frozenset({"update", "pop", "setdefault", "clear", "append", "extend", "popitem"})
_LITERALS = (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.UnaryOp)


@dataclass(slots=True)
class _Program:
    """What a program assigns once, by name; and what it puts into its environment."""

    names: dict[str, ast.expr | None] = field(default_factory=dict)
    env: dict[str, str | Unknown] = field(default_factory=dict)


def program_of(text: str, launchers: Launchers) -> ast.Module | None:
    """The program that a text is, where it hands settings to the engine; None where the text is something else."""
    if len(text) > LONGEST or not ("(" in text or "{" in text):
        return None
    try:
        tree = ast.parse(text.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tree if any(_calls(tree, launchers)) or _mapping(tree) is not None else None


def split_program(tree: ast.Module, launchers: Launchers, line: CommandLine, others: frozenset[str]) -> Command:
    """The one launch of a program, as flags; `others` are settings of the engine that have no flag.

    Raises:
        UsageError: the program holds several launches, or a keyword names no setting.
    """
    calls = list(_calls(tree, launchers))
    if len(calls) > 1:
        places = ", ".join(f"line {call.lineno}" for call in calls)
        raise UsageError(f"the program starts {len(calls)} engines ({places}): give one of them")
    program = _read(tree)
    given = _keywords(calls[0], program) if calls else _entries(_mapping(tree), program)
    words: list[str] = []
    unread: list[str] = []
    for name, value in given:
        words += _flag(name, value, line, others, unread)
    return Command(env=program.env, argv=tuple(words), unread=tuple(unread))


def _calls(tree: ast.Module, launchers: Launchers) -> Iterator[ast.Call]:
    """The calls that start an engine, by the last part of what is called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.keywords and _called(node.func) in launchers.calls:
            yield node


def _called(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _mapping(tree: ast.Module) -> ast.expr | None:
    """The mapping of keyword arguments that a text consists of: {...} or dict(...), assigned to a name or not."""
    if len(tree.body) != 1 or not isinstance(tree.body[0], (ast.Expr, ast.Assign)):
        return None
    value = tree.body[0].value
    if isinstance(value, ast.Dict) and value.keys and all(_is_text(key) for key in value.keys):
        return value
    return value if isinstance(value, ast.Call) and _called(value.func) == "dict" and value.keywords else None


def _is_text(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _read(tree: ast.Module) -> _Program:
    """What the program assigns: a name that is assigned twice, or anywhere but once at the top, is not followed."""
    found = _Program()
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and id(node) in top and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name):
                found.names[target.id] = None if target.id in found.names else node.value
            elif isinstance(target, ast.Subscript) and _called(target.value) == "environ" and _is_text(target.slice):
                value = _value(node.value, found)
                found.env[str(_constant(target.slice))] = value if isinstance(value, str) else UNKNOWN
        elif isinstance(node, (ast.Name, ast.arg)):
            stored = isinstance(node, ast.arg) or (isinstance(node.ctx, ast.Store) and not _stored_at_top(node, tree))
            if stored:
                found.names[node.arg if isinstance(node, ast.arg) else node.id] = None
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            found.names[node.value.id] = None
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.attr in _CHANGES
        ):
            found.names[node.func.value.id] = None
    return found


def _stored_at_top(name: ast.Name, tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.Assign) and len(node.targets) == 1 and node.targets[0] is name for node in tree.body
    )


def _constant(node: ast.expr) -> Any:
    return node.value if isinstance(node, ast.Constant) else UNKNOWN


def _keywords(call: ast.Call, program: _Program) -> Iterator[tuple[str, Any]]:
    for keyword in call.keywords:
        if keyword.arg is not None:
            yield keyword.arg, _value(keyword.value, program)
        else:
            yield from _entries(_followed(keyword.value, program), program)
    if call.args:
        yield "", UNKNOWN


def _followed(node: ast.expr | None, program: _Program) -> ast.expr | None:
    return program.names.get(node.id) if isinstance(node, ast.Name) else node


def _entries(node: ast.expr | None, program: _Program) -> Iterator[tuple[str, Any]]:
    """The settings of a mapping; an empty name stands for some that nobody knows."""
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if _is_text(key):
                yield str(_constant(key)) if key is not None else "", _value(value, program)
            elif key is None:
                yield from _entries(_followed(value, program), program)
            else:
                yield "", UNKNOWN
    elif isinstance(node, ast.Call) and _called(node.func) == "dict":
        yield from _keywords(node, program)
    else:
        yield "", UNKNOWN


def _value(node: ast.expr, program: _Program) -> Any:
    """The literal that an expression is, or that the name stands for; UNKNOWN for any other."""
    source = _followed(node, program)
    if not isinstance(source, _LITERALS):
        return UNKNOWN
    try:
        return ast.literal_eval(source)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return UNKNOWN


def _flag(name: str, value: Any, line: CommandLine, others: frozenset[str], unread: list[str]) -> tuple[str, ...]:
    """The words that say one keyword; what no flag says is noted as not judged."""
    if not name:
        unread.append("arguments whose names are not written out")
        return ()
    if name not in line.fields:
        if name in others:
            unread.append(name)
            return ()
        near = nearest(name, (*line.fields, *others))
        raise UsageError(f"{name}: no setting of the engine{f'; did you mean {near[0]}?' if near else ''}")
    spec = line.fields[name]
    if value is UNKNOWN:
        if spec.type == "bool":
            unread.append(name)
            return ()
        return (spec.flag.long, f"${{{name}}}")
    try:
        return write_setting(line, name, value)
    except UsageError:
        if value is not None and not isinstance(value, (bool, int, float, str, list, tuple, dict)):
            raise
        unread.append(f"{name}={value!r}")
        return ()
