"""Runs argparse over just the flags that a command line can mean; it must not read files or know a flag's name.

The engine registers hundreds of flags, and argparse visits all of them at each parse. A flag that no word of the
command line names or abbreviates cannot change what argparse does, so each parse gets a parser with the others only.
"""

from __future__ import annotations

import argparse
import copy
import json
import re
from collections.abc import Sequence
from functools import cache
from typing import Any, NoReturn

from recommender.command_line import CommandLine, Parsed, Refusal, RefusalKind, unread_words
from recommender.flags import BadTextError, BadWordError, Flag, frozen, holds_shell_variable, is_unknown
from recommender.terms import UNKNOWN, Value

_EXPECTED = re.compile(r"expected .*arguments?$")
_EXTRA = re.compile(r"ignored explicit argument (.*)$", re.DOTALL)


class _RefusedError(Exception):
    """The parser stops; the words are not known here."""

    def __init__(self, kind: RefusalKind, message: str, flag: Flag | None = None, value: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.flag = flag
        self.value = value


class _Taken:
    """The namespace: values and spellings of the flags seen."""

    def __init__(self) -> None:
        self.asked: dict[str, Value] = {}
        self.spelled: dict[str, str] = {}


class _Action(argparse.Action):
    """One flag of the catalogue as argparse sees it."""

    def __init__(self, flag: Flag) -> None:
        super().__init__(
            option_strings=list(flag.names),
            dest=flag.field,
            nargs=flag.nargs,
            const=flag.const,
            default=argparse.SUPPRESS,
            choices=flag.choices,
        )
        self.flag = flag

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        flag, spelling = self.flag, option_string or self.flag.long
        kind = flag.kind
        if kind == "help":
            raise _RefusedError(RefusalKind.HELP, "the engine prints its help and launches nothing", flag)
        if kind == "retired":
            instead = f"; {flag.instead} replaces it" if flag.instead else ""
            raise _RefusedError(RefusalKind.RETIRED_FLAG, f"{spelling} is retired{instead}", flag)
        if kind == "ignored":
            return
        if kind == "store":
            value = tuple(values) if isinstance(values, list) else values
            value = UNKNOWN if is_unknown(value) else value
        elif kind == "boolean":
            value = not spelling.startswith("--no-")
        elif kind == "store_true":
            value = True
        elif kind == "store_false":
            value = False
        elif kind == "store_const":
            value = flag.const
        elif kind == "append":
            value = (*namespace.asked.get(flag.field, ()), values)
        else:
            value = _names_or_objects(flag, values)
        namespace.asked[flag.field] = value
        namespace.spelled[flag.field] = spelling


def _names_or_objects(flag: Flag, words: Sequence[Value]) -> Value:
    """A list whose words are names, or JSON objects with certain keys; the engine crashes on other objects."""
    if any(word is UNKNOWN for word in words):
        return UNKNOWN
    found: list[Value] = []
    for word in map(str.strip, words):
        if not (word.startswith("{") and word.endswith("}")):
            found.append(word)
            continue
        try:
            item = json.loads(word)
        except (ValueError, RecursionError) as error:
            raise _RefusedError(RefusalKind.BAD_TYPE, f"argument {flag.title}: not JSON: {error}", flag, word) from None
        lacking = [key for key in flag.keys if key not in item]
        if lacking:
            message = f"argument {flag.title}: {word} lacks {', '.join(lacking)}"
            raise _RefusedError(RefusalKind.BAD_TYPE, message, flag, word)
        found.append(frozen(item))
    return tuple(found)


class _Parser(argparse.ArgumentParser):
    """argparse with the catalogue's types, which raises instead of leaving the process."""

    def _get_value(self, action: Any, arg_string: str) -> Value:
        if holds_shell_variable(arg_string):
            return UNKNOWN
        flag: Flag = action.flag
        try:
            return flag.convert(arg_string)
        except BadTextError as error:
            kind = RefusalKind.BAD_CHOICE if isinstance(error, BadWordError) else RefusalKind.BAD_TYPE
            raise _RefusedError(kind, f"argument {flag.title}: {error}", flag, arg_string) from None
        except (TypeError, ValueError):
            message = f"argument {flag.title}: invalid {flag.type} value: {arg_string!r}"
            raise _RefusedError(RefusalKind.BAD_TYPE, message, flag, arg_string) from None

    def _check_value(self, action: Any, value: Value) -> None:
        if value is UNKNOWN:
            return
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            raise _RefusedError(RefusalKind.BAD_CHOICE, str(error), action.flag, str(value)) from None

    def error(self, message: str) -> NoReturn:
        raise _RefusedError(RefusalKind.AMBIGUOUS, message)


@cache
def _template() -> _Parser:
    return _Parser(prog="", add_help=False, exit_on_error=False)


def is_negative_number(word: str) -> bool:
    """Whether argparse takes a word for a negative number, hence for a value."""
    return _template()._negative_number_matcher.match(word) is not None


def _parser(flags: Sequence[Flag]) -> _Parser:
    parser = copy.copy(_template())
    actions = [_action(flag) for flag in flags]
    parser._actions = list(actions)
    parser._option_string_actions = {name: action for action in actions for name in action.option_strings}
    return parser


_ACTIONS: dict[int, tuple[Flag, _Action]] = {}


def _action(flag: Flag) -> _Action:
    """The flag's action, made once; a catalogue keeps its flags, so the same object comes again."""
    known = _ACTIONS.get(id(flag))
    if known is None:
        known = _ACTIONS[id(flag)] = (flag, _Action(flag))
    return known[1]


def _taken_plainly(line: CommandLine, words: Sequence[str]) -> _Taken | None:
    """What argparse takes from words that are whole flags, each with as many values as it wants; None: it must look itself.

    Such words leave argparse nothing to decide. Whatever it might refuse, abbreviate or leave over is left to it.
    """
    taken = _Taken()
    position, stop = 0, len(words)
    while position < stop:
        spelling = words[position]
        flag = line.flag(spelling) if spelling.startswith("--") else None
        if flag is None:
            return None
        position += 1
        values: Value = []
        if flag.nargs is None:
            word = words[position] if position < stop else "-"
            if word.startswith("-"):
                return None
            position += 1
            try:
                values = UNKNOWN if holds_shell_variable(word) else flag.convert(word)
            except (TypeError, ValueError):
                return None
            if flag.choices is not None and values is not UNKNOWN and values not in flag.choices:
                return None
        elif flag.nargs != 0:
            return None
        try:
            _action(flag)(None, taken, values, spelling)
        except _RefusedError:
            return None
    return taken


def replay(line: CommandLine, words: Sequence[str], required: bool = True) -> Parsed | Refusal:
    """What argparse makes of the words."""
    plainly = _taken_plainly(line, words)
    if plainly is not None and not (required and line.missing(plainly.asked)):
        return Parsed(asked=plainly.asked, spelled=plainly.spelled, words=tuple(words))
    return replay_whole(line, words, required)


def replay_whole(line: CommandLine, words: Sequence[str], required: bool = True) -> Parsed | Refusal:
    """What argparse itself makes of the words, however plain they are."""
    flags, typed = line.candidates(words)
    taken = _Taken()
    try:
        _, extras = _parser(flags).parse_known_args(list(words), taken)
    except _RefusedError as error:
        return _located(line, words, error)
    except argparse.ArgumentError as error:
        return _located(line, words, _standard(line, error))
    unread = unread_words(extras)
    missing = line.missing(taken.asked) if required and not unread else ()
    if missing:
        names = ", ".join(flag.title for flag in missing)
        return Refusal(
            kind=RefusalKind.MISSING_REQUIRED,
            message=f"the following arguments are required: {names}",
            flag=missing[0].long,
            field=missing[0].field,
            words=tuple(words),
        )
    strange = [word for word in extras if word not in unread]
    if strange and not any(word.startswith("-") for word in unread):
        return _unrecognized(line, words, strange)
    spelled = {name: typed.get(flag, flag) for name, flag in taken.spelled.items()} if typed else taken.spelled
    return Parsed(asked=taken.asked, spelled=spelled, words=tuple(words), unread=unread)


def _standard(line: CommandLine, error: argparse.ArgumentError) -> _RefusedError:
    """argparse's own objection with its kind."""
    names = (error.argument_name or "").split("/")
    flag = line.flag(names[0])
    message = str(error)
    extra = _EXTRA.search(error.message)
    if extra is not None:
        return _RefusedError(RefusalKind.EXTRA_VALUE, message, flag, extra.group(1).strip("'\""))
    if _EXPECTED.search(error.message):
        return _RefusedError(RefusalKind.MISSING_VALUE, message, flag)
    return _RefusedError(RefusalKind.AMBIGUOUS, message, flag)


def _located(line: CommandLine, words: Sequence[str], error: _RefusedError) -> Refusal:
    """The refusal with the words at fault."""
    flag = error.flag
    if error.kind is RefusalKind.AMBIGUOUS:
        return _ambiguous(line, words, str(error))
    valid: tuple[str, ...] = ()
    if flag is not None and error.kind is RefusalKind.BAD_CHOICE:
        valid = tuple(map(str, flag.choices or ()))
    return Refusal(
        kind=error.kind,
        message=str(error),
        flag=flag.long if flag else "",
        field=flag.field if flag else "",
        value=error.value,
        words=tuple(words),
        drop=_at_fault(line, words, error) if flag else (),
        valid=valid,
    )


def _at_fault(line: CommandLine, words: Sequence[str], error: _RefusedError) -> tuple[int, ...]:
    for span in line.spans(words):
        if span.flag is not error.flag:
            continue
        first = words[span.start]
        values = [first.partition("=")[2]] if "=" in first else list(words[span.start + 1 : span.stop])
        fits = {
            RefusalKind.MISSING_VALUE: not values,
            RefusalKind.EXTRA_VALUE: "=" in first or not first.startswith("--"),
        }
        if fits.get(error.kind, not error.value or any(_same(error, value) for value in values)):
            return tuple(range(span.start, span.stop))
    return ()


def _same(error: _RefusedError, text: str) -> bool:
    if text.strip() == error.value.strip():
        return True
    try:
        return error.flag is not None and str(error.flag.convert(text)) == error.value
    except ValueError:
        return False


def _ambiguous(line: CommandLine, words: Sequence[str], message: str) -> Refusal:
    for index, word in enumerate(words):
        options = line.options(word) if word != "--" else ()
        if len(options) > 1:
            stop = index + 1
            while stop < len(words) and "=" not in word and not words[stop].startswith("-"):
                stop += 1
            return Refusal(
                kind=RefusalKind.AMBIGUOUS,
                message=message,
                flag=word.partition("=")[0],
                words=tuple(words),
                drop=tuple(range(index, stop)),
                valid=options,
                history=_history(line, [word]),
            )
    return Refusal(kind=RefusalKind.AMBIGUOUS, message=message, words=tuple(words))


def _history(line: CommandLine, flags: Sequence[str]) -> tuple[str, ...]:
    said = (line.history(flag.partition("=")[0].replace("_", "-")) for flag in flags)
    return tuple(dict.fromkeys(text for text in said if text))


def _unrecognized(line: CommandLine, words: Sequence[str], strange: Sequence[str]) -> Refusal:
    """The words that belong to no flag."""
    kept = {index for span in line.spans(words) for index in range(span.start, span.stop)}
    wanted = list(strange)
    drop = []
    for index, word in enumerate(words):
        if index not in kept and word in wanted:
            wanted.remove(word)
            drop.append(index)
    flags = [word for word in strange if word.startswith("-")]
    first = flags[0] if flags else ""
    values = [word for word in strange if word != first]
    return Refusal(
        kind=RefusalKind.UNKNOWN_FLAG if strange[0].startswith("-") else RefusalKind.EXTRA_VALUE,
        message=f"unrecognized arguments: {' '.join(strange)}",
        flag=first,
        value=first.partition("=")[2] if "=" in first else " ".join(values),
        words=tuple(words),
        drop=tuple(drop),
        valid=line.names,
        history=_history(line, flags),
    )
