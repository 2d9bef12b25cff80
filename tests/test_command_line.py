"""The small parser against a whole argparse parser built from the same catalogue, on random words."""

from __future__ import annotations

import argparse
import json
from functools import cache
from typing import Any, NoReturn

from hypothesis import given, settings
from hypothesis import strategies as st

from recommender.argparse_replay import replay, replay_whole
from recommender.catalogue import CommandLine, Flag, Parsed, Refusal, RefusalKind, load_catalogue
from recommender.flags import BadTextError
from recommender.library import data_root

RELEASE = "0.5.23"
TABLE = data_root() / "constraints" / "sglang" / "flags" / "catalogue.json"


@cache
def line() -> CommandLine:
    return load_catalogue(json.loads(TABLE.read_text(encoding="utf-8"))).command_line(RELEASE)


class StopError(Exception):
    """The whole parser would leave the process."""


class Whole(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise StopError(message)

    def print_help(self, file: object = None) -> None:
        raise StopError("help")


def plain_type(flag: Flag) -> Any:
    def convert(text: str) -> Any:
        try:
            return flag.convert(text)
        except BadTextError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    convert.__name__ = flag.type
    return convert


@cache
def whole() -> Whole:
    """argparse as anyone would set it up from the table: standard actions, every flag."""
    parser = Whole(prog="x", add_help=False)
    for flag in line().flags:
        common: dict[str, Any] = {"dest": flag.field, "default": argparse.SUPPRESS}
        if flag.kind == "help":
            parser.add_argument(*flag.names, action="help")
        elif flag.kind == "store_true":
            parser.add_argument(*flag.names, action="store_true", **common)
        elif flag.kind == "boolean":
            parser.add_argument(flag.names[0], action=argparse.BooleanOptionalAction, **common)
        elif flag.kind in ("store", "names_or_objects", "store_const"):
            parser.add_argument(
                *flag.names,
                type=plain_type(flag),
                nargs=flag.nargs,
                choices=flag.choices,
                required=flag.required,
                **common,
                **({"const": flag.const} if flag.nargs == "?" else {}),
            )
        else:
            raise AssertionError(flag)
    return parser


def outcome(words: list[str]) -> tuple[dict[str, Any], str]:
    """What the whole parser reads, or why it stops."""
    try:
        return vars(whole().parse_args(words)), ""
    except StopError as stop:
        return {}, str(stop)


OPTIONS = st.sampled_from([name for flag in line().flags for name in flag.names])


@st.composite
def option_word(draw: st.DrawFn) -> str:
    name = draw(OPTIONS)
    name = name[: draw(st.integers(min(3, len(name)), len(name)))] if draw(st.booleans()) else name
    return name + draw(st.sampled_from(["", "", "", "=", "=1", "=auto", "=-1", "= ", "x"]))


VALUES = st.sampled_from(
    [
        "1",
        "-1",
        "-.5",
        "-1e5",
        "auto",
        "triton",
        "",
        " ",
        "a b",
        "-",
        "--",
        "-x",
        "-h",
        "--no",
        "--z z",
        "{}",
        "8k",
        "=",
        "×",
    ]
)
LAUNCH = st.lists(st.one_of(option_word(), option_word(), VALUES, st.text(max_size=4)), max_size=7)


@settings(max_examples=300, deadline=None)
@given(LAUNCH)
def test_leaving_flags_out_changes_nothing(words: list[str]) -> None:
    words = ["--model-path", "m", *words]
    if any("$" in word or "`" in word or "{" in word for word in words) or "--config" in words:
        return
    found = line().parse(words)
    wanted, stopped = outcome(words)
    if isinstance(found, Refusal):
        assert stopped == ("help" if found.kind is RefusalKind.HELP else found.message)
        return
    assert stopped == ""
    for name, value in wanted.items():
        flag = line().fields[name].flags[-1]
        if flag.kind != "store_const":
            assert repr(found.asked[name]) == repr(tuple(value) if isinstance(value, list) else value)
    assert set(found.asked) == set(wanted)


SPELLINGS = {name: flag for flag in line().flags for name in flag.names}
FITTING = {"int": "3", "float": "0.5", "human_readable_int": "8k", "loads": "{}", "json_list_type": "[1]"}
WRONG = ["", "many", "-1", "$X", "a b", "--"]


@st.composite
def plain_flag(draw: st.DrawFn) -> list[str]:
    """A whole flag with a value that mostly fits."""
    name = draw(OPTIONS)
    flag = SPELLINGS[name]
    if flag.nargs == 0:
        return [name]
    choices = [str(choice) for choice in flag.choices or () if choice is not None]
    return [name, draw(st.sampled_from([*(choices or [FITTING.get(flag.type, "x")]) * len(WRONG), *WRONG]))]


@settings(max_examples=300, deadline=None)
@given(st.lists(plain_flag(), max_size=6))
def test_what_is_plain_needs_no_argparse(flags: list[list[str]]) -> None:
    words = ["--model-path", "m", *(word for flag in flags for word in flag)]
    quick, whole_way = replay(line(), words), replay_whole(line(), words)
    assert type(quick) is type(whole_way)
    assert repr(values_of(quick)) == repr(values_of(whole_way))


def values_of(read: Parsed | Refusal) -> tuple[Any, ...]:
    names = (
        ("asked", "spelled", "words", "unread") if isinstance(read, Parsed) else ("kind", "message", "drop", "words")
    )
    return tuple(getattr(read, name) for name in names)


@settings(max_examples=150, deadline=None)
@given(LAUNCH)
def test_everything_refused_can_be_left_out(words: list[str]) -> None:
    parsed, refusals = line().parse_all(words)
    for refusal in refusals:
        assert refusal.message
        json.dumps([refusal.flag, refusal.value, *refusal.near])
    again = line().parse(["--model-path", "m", *parsed.words])
    if "--" not in words and refusals and refusals[-1].drop:
        assert isinstance(again, Parsed)
