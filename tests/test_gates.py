"""Gates and tables only save time: they name what must happen before a step can matter, and never close one that does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from recommender.expr import compile_condition, compile_expression, picks_of
from recommender.gates import _Gate
from recommender.laws import Plan, Scope, Step, Table
from recommender.profiles import find_gpu
from recommender.resolve import walk
from recommender.rulebook import Rulebook
from recommender.session import Session
from recommender.terms import UNKNOWN, Value

CASES = Path(__file__).parents[1] / "benchmarks" / "cases.jsonl"
DEFAULTS: Mapping[str, Value] = {"one": None, "two": None, "mode": "auto", "size": 8, "on": False}


def words(book: Rulebook) -> Any:
    made = book.words({
        "facts": ["gpu.name"],
        "groups": {"pair": ["a", "b"]},
        "definitions": {
            "chosen": ("x", {"is": "two or one"}),
            "both": ("x", {"is": "(chosen, one)"}),
            "listed": ("x", {"choose": [{"when": "mode == 'list'", "then": "= (two,)"}, {"then": []}]}),
        },
    })  # fmt: skip
    made.settings = DEFAULTS
    return made


def gate(book: Rulebook, when: str, require: str | None = None) -> list[list[Any]]:
    vocabulary = words(book)
    needed = None if require is None else compile_expression(require, vocabulary)
    read = (compile_condition(when, vocabulary).whole, needed)
    return _Gate(read, DEFAULTS, dict.fromkeys(DEFAULTS, 1)).entries()


@pytest.mark.parametrize(
    ("when", "wanted"),
    [
        ("on", [["on", None]]),
        ("mode == 'x'", [["mode", ["x"]]]),
        ("mode in pair and size > 4", [["mode", ["a", "b"]]]),
        ("any_of(both, ('a',))", [["one", ["a"]], ["two", ["a"]]]),
        ("chosen == 'a' or any_of(listed, pair)", [["mode", []], ["one", ["a"]], ["two", ["a", "b"]]]),
        ("'ut' in mode and on", [["on", None]]),
        ("unset(one)", []),
        ("one == two and mode == 'x'", [["mode", ["x"]]]),
        ("gpu.name == 'a'", []),
    ],
)
def test_a_gate_names_what_must_happen(book: Rulebook, when: str, wanted: list[list[Any]]) -> None:
    found = [[name, values and [v for v in values if v not in (None, "", 0)]] for name, values in gate(book, when)]
    assert found == wanted


@pytest.mark.parametrize(
    "when",
    [
        "lower(mode) == 'x'",
        "startswith(mode, 'x')",
        "matches(mode, 'x')",
        "mode in 'xyz'",
        "'x' in mode",
        "mode > 'b'",
        "len(mode) == 3",
        "is_a(mode, 'int')",
        "int(mode) == 3",
        "mode + '' == 'x'",
        "str(mode) == 'x'",
        "min(mode, 3) == 3 and mode == 1",
    ],
)
def test_whoever_looks_inside_a_value_wants_every_other(book: Rulebook, when: str) -> None:
    assert gate(book, when) in ([["mode", None]], [])


VALUES: Mapping[str, list[Value]] = {
    "one": [None, "a", "b", "z", UNKNOWN],
    "two": [None, "a", "b", "z", "", UNKNOWN],
    "mode": ["auto", "list", "x", "ax", UNKNOWN],
    "size": [8, 0, 3, 9, UNKNOWN],
    "on": [False, True, UNKNOWN],
}
CONDITIONS = (
    ("any_of(both, pair) and size != 3", None),
    ("chosen == 'a' or any_of(listed, pair)", None),
    ("any_of(listed, pair) or on", None),
    ("not unset(chosen)", "chosen in pair or on"),
    ("size != 8 and (mode == 'x' or any_of(both, ('z',)))", None),
    ("True", "mode in ('auto', 'list') or size == 3"),
    ("(two if mode == 'x' else one) == 'b'", None),
)


@pytest.mark.parametrize(("when", "require"), CONDITIONS)
def test_behind_a_closed_gate_or_table_nothing_happens(book: Rulebook, when: str, require: str | None) -> None:
    vocabulary = words(book)
    condition = compile_condition(when, vocabulary).whole
    needed = None if require is None else compile_expression(require, vocabulary)
    entries = gate(book, when, require)
    picks = picks_of(when, vocabulary)
    subjects = [[text, elements, [[value, [0]] for value in values]] for text, elements, values in picks]
    closed = 0
    for values in product(*VALUES.values()):
        named = dict(zip(VALUES, values, strict=True))
        scope = Scope(values=named, facts={"gpu.name": UNKNOWN}, asked={})  # type: ignore[arg-type]
        met, holds = condition.evaluate(scope), needed and needed.evaluate(scope)
        silent = met is not UNKNOWN and not met
        quiet = silent or (holds is not UNKNOWN and bool(holds))
        shut = entries and not any(opens(named[name], DEFAULTS[name], wanted) for name, wanted in entries)
        enabled = bytearray(b"\x01")
        if picks:
            Table(0, 1, subjects, vocabulary).close(enabled, scope)
        assert quiet or not shut
        assert silent or enabled[0]
        closed += bool(shut) + (not enabled[0])
    assert closed


def opens(value: Value, default: Value, wanted: list[Value] | None) -> bool:
    if value is UNKNOWN:
        return True
    return value != default if wanted is None else value in wanted


def test_asking_for_a_setting_opens_its_gate_whatever_the_value(book: Rulebook) -> None:
    assert gate(book, "asked(mode)") == [["mode", None]]


@pytest.mark.parametrize("extra", [(), ("--attention-backend", "$X"), ("--speculative-algorithm", "$X")], ids=" ".join)
def test_walks_say_the_same_with_every_step_open(session: Session, extra: tuple[str, ...]) -> None:
    plan = session.plan
    steps = tuple(Step(rule=s.rule, position=s.position, phase=s.phase, gate=(), words=s.words) for s in plan.steps)
    opened = Plan(
        release=plan.release,
        steps=steps,
        defaults=plan.defaults,
        touched=plan.touched,
        gates=[() for _ in steps],
        readers=plan.readers,
    )
    assert plan.tables
    for line in CASES.read_text(encoding="utf-8").splitlines()[len(extra) :: 17]:
        case = json.loads(line)
        launch = session.read([*case["argv"], *extra])
        facts = session.facts_of(find_gpu(case["hardware"]), launch.asked, session.roles)
        one, two = walk(plan, launch.asked, facts), walk(opened, launch.asked, facts)
        assert one.values == two.values
        assert one.wrote == two.wrote
        assert [(s.step.rule.id, s.verdict, s.message) for s in one.struck] == [
            (s.step.rule.id, s.verdict, s.message) for s in two.struck
        ]
