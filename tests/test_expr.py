"""The expression language: its values, its three truth values, and what it refuses."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.errors import ExpressionError
from recommender.expr import (
    UNDECIDED,
    Expression,
    compile_choice,
    compile_condition,
    compile_expression,
    compile_template,
    compile_value,
    show,
)
from recommender.terms import UNKNOWN


@dataclass
class Words:
    """A tiny vocabulary."""

    definitions: dict[str, str] = field(default_factory=dict)

    def is_setting(self, name: str) -> bool:
        return name in {"a", "b", "c", "topk", "backend"}

    def is_fact(self, name: str) -> bool:
        return name in {"gpu.sm", "model.kind"}

    def group(self, name: str) -> tuple[Any, ...] | None:
        return ("fa3", "triton") if name == "tree_backends" else None

    def definition(self, name: str) -> Expression | None:
        return compile_expression(self.definitions[name], self) if name in self.definitions else None

    def names(self) -> Iterable[str]:
        return ["a", "b", "c", "topk", "backend", "gpu.sm", "model.kind", "tree_backends", *self.definitions]


@dataclass
class Here:
    """A scope."""

    values: Mapping[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)
    asked: Mapping[str, Any] = field(default_factory=dict)
    memo: dict[str, Any] = field(default_factory=dict)


def value(text: str, words: Words | None = None, facts: Mapping[str, Any] | None = None, **values: Any) -> Any:
    scope = Here(
        {"a": None, "b": None, "c": None, "topk": None, "backend": None, **values},
        facts or {"gpu.sm": 90, "model.kind": None},
    )
    return compile_expression(text, words or Words()).evaluate(scope)


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("topk > 1", {"topk": 4}, True),
        ("topk > 1", {"topk": None}, False),
        ("topk > 1", {"topk": "x"}, False),
        ("1 < topk <= 4", {"topk": 4}, True),
        ("a + 1", {"a": None}, None),
        ("a // b", {"a": 4, "b": 0}, None),
        ("a or b", {"a": None, "b": "fa3"}, "fa3"),
        ("a and b", {"a": 1, "b": 2}, 2),
        ("backend in tree_backends", {"backend": "triton"}, True),
        ("backend not in ('x',)", {"backend": None}, True),
        ("'x' in a", {"a": None}, False),
        ("unset(a) and not unset(b)", {"a": None, "b": 0}, True),
        ("a is None", {"a": None}, True),
        ("a is not None", {"a": None}, False),
        ("max(a, b)", {"a": None, "b": 3}, 3),
        ("min(a, 7, b)", {"a": 9, "b": 3}, 3),
        ("upper(a)", {"a": "eagle"}, "EAGLE"),
        ("upper(a)", {"a": None}, None),
        ("first(a)", {"a": (3, 4)}, 3),
        ("get(a, 'k')", {"a": {"k": 5}}, 5),
        ("any_of((a, b), ('x', 'y'))", {"a": "x", "b": "z"}, True),
        ("a if topk == 1 else b", {"a": "A", "b": "B", "topk": 2}, "B"),
        ("gpu.sm == 90", {}, True),
        ("-a", {"a": 3}, -3),
        ("2 ** a", {"a": 10**9}, None),
        ("tree_pool(a, b)", {"a": 4, "b": 3}, 36),
    ],
)
def test_values(text: str, values: dict[str, Any], expected: Any) -> None:
    assert value(text, **values) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a and False", False),
        ("False and a", False),
        ("a and True", UNKNOWN),
        ("a or True", True),
        ("a or 'fa3'", UNKNOWN),
        ("not a", UNKNOWN),
        ("a == 1", UNKNOWN),
        ("1 in (a, 1)", True),
        ("1 in (a, 2)", UNKNOWN),
        ("1 not in (a, 2)", UNKNOWN),
        ("(a, 1) == (2, 1)", UNKNOWN),
        ("any_of((a, 'x'), ('y',))", UNKNOWN),
        ("b if a else b", None),
        ("1 if a else 2", UNKNOWN),
        ("a + 1", UNKNOWN),
        ("unset(a)", UNKNOWN),
        ("a > 1 or b is None", True),
    ],
)
def test_unknown_spreads_unless_the_known_part_decides(text: str, expected: Any) -> None:
    assert value(text, a=UNKNOWN) is expected or value(text, a=UNKNOWN) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("topkk > 1", ["topkk", "did you mean 'topk'"]),
        ("gpu.smm == 1", ["gpu.smm", "did you mean 'gpu.sm'"]),
        ("uper(a)", ["uper", "did you mean 'upper'"]),
        ("a.b.c", ["dot"]),
        ("lambda: 1", ["Lambda"]),
        ("[x for x in a]", ["ListComp"]),
        ("__import__('os')", ["__import__"]),
        ("a(1)", ["unknown function 'a'"]),
        ("a[0]", ["Subscript"]),
        ("a is b", ["`is`"]),
        ("a =! 1", ["not an expression"]),
        ("b'x'", ["not a value"]),
        ("asked('a')", ["asked() takes"]),
        ("max(*a)", ["Starred"]),
        ("f'{a}'", ["JoinedStr"]),
    ],
)
def test_the_language_is_closed(text: str, words: list[str]) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_expression(text, Words())
    for word in words:
        assert word in str(caught.value)
    assert "column" in str(caught.value)


def test_deep_and_long_texts_are_refused() -> None:
    with pytest.raises(ExpressionError):
        compile_expression("not " * 100 + "a", Words())
    with pytest.raises(ExpressionError):
        compile_expression("a == 1 or " * 1000 + "a", Words())


def test_asked_is_about_the_users_words() -> None:
    asked = compile_expression("asked(a)", Words())
    assert asked.evaluate(Here({"a": 1}, asked={"a": 1})) is True
    assert asked.evaluate(Here({"a": 1})) is False
    assert asked.evaluate(Here({"a": 1}, asked={"a": UNDECIDED})) is UNKNOWN
    assert asked.asks == {"a"}


def test_definitions_read_live_and_tell_what_they_read() -> None:
    words = Words({"either": "a or b", "hopper": "gpu.sm == 90"})
    expression = compile_expression("either == 'x' and hopper", words)
    assert expression.settings == {"a", "b"}
    assert expression.facts == {"gpu.sm"}
    assert expression.evaluate(Here({"a": None, "b": "x"}, {"gpu.sm": 90, "hopper": True})) is True


def test_conditions_are_split_by_what_they_read() -> None:
    condition = compile_condition("gpu.sm == 90 and topk > 1 and a", Words())
    assert condition.of_facts is not None
    assert condition.rest is not None
    assert condition.of_facts(Here({}, {"gpu.sm": 100})) is False
    assert condition.whole.settings == {"topk", "a"}
    assert compile_condition("topk > 1", Words()).of_facts is None


SMALL = st.sampled_from([None, 0, 1, 2, "x", True, False, UNKNOWN])
TEXTS = [
    "a and b",
    "a or b",
    "not a",
    "a == b",
    "a in (b, 1)",
    "a if b else c",
    "a > b",
    "max(a, b)",
    "(a == 1 or b) and not c",
]


@given(st.sampled_from(TEXTS), SMALL, SMALL, SMALL)
def test_a_known_answer_never_depends_on_the_unknown(text: str, a: Any, b: Any, c: Any) -> None:
    """If the language answers although something is unknown, every value of the unknown gives that answer's truth."""
    answer = value(text, a=a, b=b, c=c)
    if answer is UNKNOWN:
        return
    choices = [[0, 1, 2, "x", True, False, None] if item is UNKNOWN else [item] for item in (a, b, c)]
    for one, two, three in itertools.product(*choices):
        assert bool(value(text, a=one, b=two, c=three)) == bool(answer)


def test_choices_take_the_first_true_branch_and_never_guess() -> None:
    words = Words()
    branches = [(compile_expression("a == 1", words), compile_value("one", words)), (None, compile_value("= b", words))]
    choice = compile_choice(branches, "choice")
    assert choice.evaluate(Here({"a": 1, "b": "two"})) == "one"
    assert choice.evaluate(Here({"a": 2, "b": "two"})) == "two"
    assert choice.evaluate(Here({"a": UNKNOWN, "b": "two"})) is UNKNOWN
    assert choice.evaluate(Here({"a": UNKNOWN, "b": "one"})) == "one"


def test_literals_and_expressions_of_yaml_values() -> None:
    assert compile_value("triton", Words()).evaluate(Here({})) == "triton"
    assert compile_value([1, 2], Words()).evaluate(Here({})) == (1, 2)
    assert compile_value("= a + 1", Words()).evaluate(Here({"a": 2})) == 3


def test_templates_fill_in_and_refuse_strangers() -> None:
    template = compile_template("topk is {topk}, backend {backend or 'none'}, {a}.", Words())
    assert template.fill(Here({"topk": 4, "backend": None, "a": True})) == "topk is 4, backend none, true."
    with pytest.raises(ExpressionError):
        compile_template("{topkk}", Words())


@pytest.mark.parametrize(
    ("shown", "given_value"), [("unset", None), ("unknown", UNKNOWN), ("true", True), ("1, 2", (1, 2)), ("x", "x")]
)
def test_show(shown: str, given_value: Any) -> None:
    assert show(given_value) == shown


def test_unknown_has_no_truth_value() -> None:
    with pytest.raises(TypeError):
        bool(UNKNOWN)
