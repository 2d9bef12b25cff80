"""Compiles the closed expression language of the rules into callables; it must not execute text or know any name itself.

The language is a whitelisted subset of Python's grammar, read with `ast` and turned into closures. Values are None (unset),
bool, int, float, str, tuples, JSON objects and UNKNOWN, the third truth value: whatever depends on it is UNKNOWN, unless the
known part already decides (`False and UNKNOWN` is False). Ordering with None is False, arithmetic with None is None.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, lru_cache
from typing import Any, Final, Protocol

from recommender import formulas
from recommender.errors import ExpressionError
from recommender.terms import UNKNOWN, Value

MAX_LENGTH = 4000
MAX_DEPTH = 60


class Scope(Protocol):
    """What an expression reads its names from."""

    values: Mapping[str, Value]
    facts: Mapping[str, Value]
    asked: Mapping[str, Value]
    memo: dict[str, Value]


Evaluate = Callable[[Any], Value]


class Forgetful(dict[str, Value]):
    """A memo for scopes whose values change under it: it keeps nothing."""

    def __setitem__(self, name: str, value: Value) -> None:
        return


# In `asked`: whether the setting is asked for is itself still open.
UNDECIDED: Final = object()


class Opaque:
    """Base of a value that stands for others: it can be compared with constants, and whatever looks inside fails."""


class LooksInsideError(Exception):
    """An expression does more with an opaque value than compare it with constants."""


def _no_value(*operands: Value) -> None:
    """What an operation that fails is worth: nothing, unless it failed for a value that stands for others."""
    for operand in operands:
        for part in operand if type(operand) is tuple else (operand,):
            if isinstance(part, Opaque):
                raise LooksInsideError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Expression:
    """A compiled expression: `settings`, `facts` and `asks` are the names it can read, through definitions too."""

    text: str
    evaluate: Evaluate
    settings: frozenset[str]
    facts: frozenset[str]
    asks: frozenset[str] = frozenset()

    @property
    def facts_only(self) -> bool:
        """Whether no setting is read, so that one evaluation serves a whole question."""
        return not self.settings and not self.asks


class Vocabulary(Protocol):
    """The closed list of names."""

    def is_setting(self, name: str) -> bool: ...
    def is_fact(self, name: str) -> bool: ...
    def group(self, name: str) -> tuple[Value, ...] | None: ...
    def definition(self, name: str) -> Expression | None: ...
    def names(self) -> Iterable[str]: ...


_ORDERINGS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def _power(base: Any, exponent: Any) -> Any:
    return base**exponent if abs(exponent) <= 64 and abs(base) <= 1 << 32 else None


def _contains(container: Value, item: Value) -> Value:
    """Membership; UNKNOWN when only an unknown element of a tuple could be the item."""
    if container is None:
        return False
    try:
        found = item in container
    except TypeError:
        _no_value(container, item)
        return False
    return UNKNOWN if not found and _holds_unknown(container) else found


_NOT_LITERAL: Final = object()


def _literal(node: ast.expr) -> Any:
    """The value of a literal or a tuple of literals, else a mark."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.Tuple, ast.List)) and all(isinstance(item, ast.Constant) for item in node.elts):
        return tuple(item.value for item in node.elts if isinstance(item, ast.Constant))
    return _NOT_LITERAL


def _holds_unknown(value: Value) -> bool:
    return type(value) is tuple and UNKNOWN in value


def _any_of(xs: Any, ys: Any) -> bool:
    for x in xs:  # noqa: SIM110  a generator costs more than these short tuples
        if x in ys:
            return True
    return False


def _extreme(pick: Callable[[Any], Any], arguments: tuple[Any, ...]) -> Any:
    """Smallest or largest of what is set; a single tuple counts as its elements."""
    items = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], tuple) else arguments
    present = [item for item in items if item is not None]
    return pick(present) if present else None


_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "unset": lambda x: x is None,
    "upper": lambda s: s.upper(),
    "lower": lambda s: s.lower(),
    "startswith": lambda s, prefix: s.startswith(prefix),
    "endswith": lambda s, suffix: s.endswith(suffix),
    "len": len,
    "min": lambda *xs: _extreme(min, xs),
    "max": lambda *xs: _extreme(max, xs),
    "abs": abs,
    "int": int,
    "float": float,
    "str": str,
    "any_of": _any_of,
    "all_of": lambda xs, ys: all(x in ys for x in xs),
    "first": lambda xs: xs[0] if xs else None,
    "last": lambda xs: xs[-1] if xs else None,
    "get": lambda mapping, key: mapping.get(key),
    "matches": lambda s, pattern: re.search(pattern, s) is not None,
    "is_a": lambda x, kind: type(x).__name__ == kind,
}
_NONE_SAFE = {"unset", "is_a", "min", "max"}


def function_names() -> frozenset[str]:
    """The names an expression may call."""
    return frozenset(_FUNCTIONS) | frozenset(formulas.FORMULAS) | {"asked"}


class _Compiler:
    def __init__(self, text: str, vocabulary: Vocabulary) -> None:
        self.text = text
        self.vocabulary = vocabulary
        self.settings: set[str] = set()
        self.facts: set[str] = set()
        self.asks: set[str] = set()

    def fail(self, message: str, node: ast.AST) -> ExpressionError:
        return ExpressionError(message, text=self.text, column=getattr(node, "col_offset", 0) + 1)

    def compile(self, node: ast.expr, depth: int = 0) -> Evaluate:
        if depth > MAX_DEPTH:
            raise self.fail("the expression nests too deeply", node)
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise self.fail(f"{type(node).__name__} is not part of the language", node)
        compiled: Evaluate = method(node, depth + 1)
        return compiled

    def _constant(self, node: ast.Constant, depth: int) -> Evaluate:
        value = node.value
        if value is not None and not isinstance(value, (bool, int, float, str)):
            raise self.fail(f"{value!r} is not a value of the language", node)
        return lambda scope: value

    def _tuple(self, node: ast.Tuple | ast.List, depth: int) -> Evaluate:
        if all(isinstance(element, ast.Constant) for element in node.elts):
            constant = tuple(element.value for element in node.elts if isinstance(element, ast.Constant))
            return lambda scope: constant
        parts = [self.compile(element, depth) for element in node.elts]
        return lambda scope: tuple([part(scope) for part in parts])  # quicker than a generator

    _list = _tuple

    def _name(self, node: ast.Name, depth: int) -> Evaluate:
        return self._lookup(node.id, node)

    def _attribute(self, node: ast.Attribute, depth: int) -> Evaluate:
        if not isinstance(node.value, ast.Name):
            raise self.fail("only facts have a dot in their name", node)
        return self._lookup(f"{node.value.id}.{node.attr}", node)

    def _lookup(self, name: str, node: ast.expr) -> Evaluate:
        vocabulary = self.vocabulary
        if vocabulary.is_setting(name):
            self.settings.add(name)
            return lambda scope: scope.values[name]
        if vocabulary.is_fact(name):
            self.facts.add(name)
            return lambda scope: scope.facts[name]
        group = vocabulary.group(name)
        if group is not None:
            return lambda scope: group
        definition = vocabulary.definition(name)
        if definition is not None:
            self.settings |= definition.settings
            self.facts |= definition.facts
            self.asks |= definition.asks
            if definition.facts_only:
                return lambda scope: scope.facts[name]
            evaluate = definition.evaluate

            def remembered(scope: Any) -> Value:
                memo = scope.memo
                if name in memo:
                    return memo[name]
                value = memo[name] = evaluate(scope)
                return value

            return remembered
        near = get_close_matches(name, list(vocabulary.names()), n=1)
        raise self.fail(f"unknown name {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""), node)

    def _boolop(self, node: ast.BoolOp, depth: int) -> Evaluate:
        parts = tuple(self.compile(value, depth) for value in node.values)
        if isinstance(node.op, ast.And):
            return _conjunction(parts)

        if len(parts) == 2:
            first, second = parts

            def either(scope: Any) -> Value:
                one = first(scope)
                if one is UNKNOWN:
                    two = second(scope)
                    return two if two is True else UNKNOWN
                return one or second(scope)

            return either

        def disjunction(scope: Any) -> Value:
            unknown, value = False, False
            for part in parts:
                value = part(scope)
                if value is UNKNOWN:
                    unknown = True
                elif value:
                    if unknown and value is not True:
                        return UNKNOWN
                    return value
            return UNKNOWN if unknown else value

        return disjunction

    def _unaryop(self, node: ast.UnaryOp, depth: int) -> Evaluate:
        part = self.compile(node.operand, depth)
        setting = self._asked_unset(node.operand) if isinstance(node.op, ast.Not) else None
        if setting is not None:

            def is_set(scope: Any) -> Value:
                a = scope.values[setting]
                return UNKNOWN if a is UNKNOWN else a is not None

            return is_set
        if isinstance(node.op, ast.Not):

            def negation(scope: Any) -> Value:
                value = part(scope)
                return UNKNOWN if value is UNKNOWN else not value

            return negation
        if isinstance(node.op, ast.USub):

            def minus(scope: Any) -> Value:
                value = part(scope)
                if value is UNKNOWN:
                    return UNKNOWN
                return -value if isinstance(value, (int, float)) else None

            return minus
        raise self.fail(f"{type(node.op).__name__} is not part of the language", node)

    def _binop(self, node: ast.BinOp, depth: int) -> Evaluate:
        operation = _power if isinstance(node.op, ast.Pow) else _ARITHMETIC.get(type(node.op))
        if operation is None:
            raise self.fail(f"{type(node.op).__name__} is not part of the language", node)
        left, right = self.compile(node.left, depth), self.compile(node.right, depth)

        def arithmetic(scope: Any) -> Value:
            a, b = left(scope), right(scope)
            if a is UNKNOWN or b is UNKNOWN:
                return UNKNOWN
            try:
                return operation(a, b)
            except (TypeError, ZeroDivisionError, OverflowError):
                return _no_value(a, b)

        return arithmetic

    def _compare(self, node: ast.Compare, depth: int) -> Evaluate:
        if len(node.ops) > 1:
            pairs = list(zip([node.left, *node.comparators], node.ops, node.comparators, strict=False))
            single = [ast.copy_location(ast.Compare(left=a, ops=[op], comparators=[b]), a) for a, op, b in pairs]
            return self._boolop(ast.copy_location(ast.BoolOp(op=ast.And(), values=list(single)), node), depth)
        comparator = node.comparators[0]
        kind = type(node.ops[0])
        left, right = self.compile(node.left, depth), self.compile(comparator, depth)
        name = self._setting(node.left)
        if kind in (ast.Is, ast.IsNot) and not (isinstance(comparator, ast.Constant) and comparator.value is None):
            raise self.fail("`is` compares with None only; write ==", node)
        if kind in (ast.Eq, ast.NotEq, ast.Is, ast.IsNot):
            wanted = kind in (ast.Eq, ast.Is)

            literal = self._literal(comparator)
            if literal is not _NOT_LITERAL and name is not None:

                def setting_equals(scope: Any) -> Value:
                    a = scope.values[name]
                    return UNKNOWN if a is UNKNOWN else (a == literal) is wanted

                return setting_equals
            if literal is not _NOT_LITERAL:

                def equals_literal(scope: Any) -> Value:
                    a = left(scope)
                    if a is UNKNOWN or (type(a) is tuple and _holds_unknown(a)):
                        return UNKNOWN
                    return (a == literal) is wanted

                return equals_literal

            def equality(scope: Any) -> Value:
                a, b = left(scope), right(scope)
                if a is UNKNOWN or b is UNKNOWN or _holds_unknown(a) or _holds_unknown(b):
                    return UNKNOWN
                return (a == b) is wanted

            return equality
        if kind in (ast.In, ast.NotIn):
            wanted = kind is ast.In

            literal = self._literal(comparator)
            if isinstance(literal, tuple) and name is not None:

                def setting_among(scope: Any) -> Value:
                    a = scope.values[name]
                    return UNKNOWN if a is UNKNOWN else (a in literal) is wanted

                return setting_among
            if isinstance(literal, tuple):

                def among_literals(scope: Any) -> Value:
                    a = left(scope)
                    return UNKNOWN if a is UNKNOWN else (a in literal) is wanted

                return among_literals

            def membership(scope: Any) -> Value:
                a, b = left(scope), right(scope)
                if a is UNKNOWN or b is UNKNOWN:
                    return UNKNOWN
                found = _contains(b, a)
                return UNKNOWN if found is UNKNOWN else found is wanted

            return membership
        compare = _ORDERINGS[kind]
        if isinstance(comparator, ast.Constant):
            bound = comparator.value

            def ordering_to_literal(scope: Any) -> Value:
                a = left(scope)
                if a is UNKNOWN:
                    return UNKNOWN
                try:
                    return compare(a, bound)
                except TypeError:
                    _no_value(a)
                    return False

            return ordering_to_literal

        def ordering(scope: Any) -> Value:
            a, b = left(scope), right(scope)
            if a is UNKNOWN or b is UNKNOWN:
                return UNKNOWN
            try:
                return compare(a, b)
            except TypeError:
                _no_value(a, b)
                return False

        return ordering

    def _asked_unset(self, node: ast.expr) -> str | None:
        """The setting of which a node asks whether it is unset, when it does."""
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "unset"
        return self._setting(node.args[0]) if isinstance(node, ast.Call) and called and len(node.args) == 1 else None

    def _setting(self, node: ast.expr) -> str | None:
        """The setting that a node is, when it is one."""
        return node.id if isinstance(node, ast.Name) and self.vocabulary.is_setting(node.id) else None

    def _literal(self, node: ast.expr) -> Any:
        """The value of a literal, a tuple of literals or a group, else a mark."""
        if (
            isinstance(node, ast.Name)
            and not self.vocabulary.is_setting(node.id)
            and not self.vocabulary.is_fact(node.id)
        ):
            group = self.vocabulary.group(node.id)
            return _NOT_LITERAL if group is None else group
        return _literal(node)

    def _ifexp(self, node: ast.IfExp, depth: int) -> Evaluate:
        test = self.compile(node.test, depth)
        body, otherwise = self.compile(node.body, depth), self.compile(node.orelse, depth)

        def conditional(scope: Any) -> Value:
            chosen = test(scope)
            if chosen is UNKNOWN:
                a, b = body(scope), otherwise(scope)
                return a if a is not UNKNOWN and a == b else UNKNOWN
            return body(scope) if chosen else otherwise(scope)

        return conditional

    def _call(self, node: ast.Call, depth: int) -> Evaluate:
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise self.fail("only the functions of the language can be called, with plain arguments", node)
        name = node.func.id
        if name == "asked":
            return self._asked(node)
        function = _FUNCTIONS.get(name) or formulas.FORMULAS.get(name)
        if function is None:
            near = get_close_matches(name, function_names(), n=1)
            raise self.fail(f"unknown function {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""), node)
        parts = tuple(self.compile(argument, depth) for argument in node.args)
        setting = self._asked_unset(node)
        if setting is not None:

            def is_unset(scope: Any) -> Value:
                a = scope.values[setting]
                return UNKNOWN if a is UNKNOWN else a is None

            return is_unset
        literal = self._literal(node.args[1]) if len(node.args) == 2 else _NOT_LITERAL
        if name == "any_of" and isinstance(literal, tuple):
            return _any_literal(parts[0], literal)
        if name == "matches" and isinstance(literal, str):
            return self._search(parts[0], literal, node)
        none_safe = name in _NONE_SAFE or name in formulas.FORMULAS

        def call(scope: Any) -> Value:
            arguments = []
            for part in parts:
                argument = part(scope)
                if argument is UNKNOWN or (type(argument) is tuple and UNKNOWN in argument):
                    return UNKNOWN
                arguments.append(argument)
            if not none_safe and arguments and arguments[0] is None:
                return None
            try:
                return function(*arguments)
            except (TypeError, ValueError, AttributeError, OverflowError, re.error):
                return _no_value(*arguments)

        return call

    def _search(self, text: Evaluate, pattern: str, node: ast.Call) -> Evaluate:
        try:
            search = re.compile(pattern).search
        except re.error as error:
            raise self.fail(f"{pattern!r} is no pattern: {error}", node) from None

        def search_text(scope: Any) -> Value:
            value = text(scope)
            if value is UNKNOWN:
                return UNKNOWN
            return search(value) is not None if isinstance(value, str) else None

        return search_text

    def _asked(self, node: ast.Call) -> Evaluate:
        argument = node.args[0] if len(node.args) == 1 else None
        if not isinstance(argument, ast.Name) or not self.vocabulary.is_setting(argument.id):
            raise self.fail("asked() takes the name of one setting", node)
        name = argument.id
        self.asks.add(name)

        def was_asked(scope: Any) -> Value:
            asked = scope.asked
            return name in asked and (UNKNOWN if asked[name] is UNDECIDED else True)

        return was_asked


@lru_cache(maxsize=4096)
def _parse(text: str) -> ast.expr:
    if len(text) > MAX_LENGTH:
        raise ExpressionError("the expression is too long", text=text[:80])
    flat = " ".join(text.split())
    try:
        return ast.parse(flat, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(
            f"not an expression: {error}", text=text, column=getattr(error, "offset", 1) or 1
        ) from None


def compile_expression(text: str, vocabulary: Vocabulary) -> Expression:
    """Compile one expression.

    Raises:
        ExpressionError: a name or a construct is not of the language; it names the column and the nearest word.
    """
    compiler = _Compiler(" ".join(text.split()), vocabulary)
    evaluate = compiler.compile(_parse(text))
    return Expression(
        text=text,
        evaluate=evaluate,
        settings=frozenset(compiler.settings),
        facts=frozenset(compiler.facts),
        asks=frozenset(compiler.asks),
    )


def _any_literal(items: Evaluate, literal: tuple[Value, ...]) -> Evaluate:
    """Whether a tuple shares an element with a literal one; UNKNOWN when only an unknown element could be it."""

    def any_literal(scope: Any) -> Value:
        values = items(scope)
        if values is UNKNOWN or values is None:
            return values
        unknown = False
        for value in values:
            if value is UNKNOWN:
                unknown = True
            elif value in literal:
                return True
        return UNKNOWN if unknown else False

    return any_literal


class Condition:
    """A condition, compiled conjunct by conjunct when a part is first asked for.

    `of_facts` reads no setting, so one answer serves a question; `rest` does. Either is None when there is no such conjunct.
    """

    def __init__(self, text: str, vocabulary: Vocabulary) -> None:
        node = _parse(text)
        conjunction = isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And)
        nodes = node.values if isinstance(node, ast.BoolOp) and conjunction else [node]
        self._text = " ".join(text.split())
        self._vocabulary = vocabulary
        self._split: tuple[list[ast.expr], list[ast.expr]] = ([], [])
        for part in nodes:
            self._split[_reads_settings(part, vocabulary)].append(part)

    def _compile(self, node: ast.expr) -> Expression:
        compiler = _Compiler(self._text, self._vocabulary)
        evaluate = compiler.compile(node)
        return Expression(
            text=self._text,
            evaluate=evaluate,
            settings=frozenset(compiler.settings),
            facts=frozenset(compiler.facts),
            asks=frozenset(compiler.asks),
        )

    @cached_property
    def _fixed(self) -> tuple[Expression, ...]:
        return tuple(map(self._compile, self._split[False]))

    @cached_property
    def _open(self) -> tuple[Expression, ...]:
        return tuple(map(self._compile, self._split[True]))

    @cached_property
    def of_facts(self) -> Evaluate | None:
        """The conjuncts over facts alone."""
        return _conjunction(tuple(part.evaluate for part in self._fixed)) if self._fixed else None

    @cached_property
    def rest(self) -> Evaluate | None:
        """The conjuncts that read settings."""
        return _conjunction(tuple(part.evaluate for part in self._open)) if self._open else None

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The conjuncts."""
        return (*self._fixed, *self._open)

    @cached_property
    def whole(self) -> Expression:
        """The condition as one expression."""
        return Expression(
            text=self._text,
            evaluate=_conjunction(tuple(part.evaluate for part in self.parts)),
            settings=frozenset[str]().union(*(part.settings for part in self.parts)),
            facts=frozenset[str]().union(*(part.facts for part in self.parts)),
            asks=frozenset[str]().union(*(part.asks for part in self.parts)),
        )


Sign = tuple[str, list[Value]]


def signs_of(text: str, vocabulary: Vocabulary) -> tuple[list[Sign], list[Sign]]:
    """Conjuncts that ask one name for certain values, over (facts and definitions of facts, settings): others rule it out.

    `hip` asks for true, `not hip` for false, `x == 'a'` and `x in ('a', 'b')` for what they list, `unset(x)` for None.
    """
    node = _parse(text)
    nodes = node.values if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) else [node]
    facts: list[Sign] = []
    settings: list[Sign] = []
    for part in nodes:
        sign = _sign(part, vocabulary)
        if sign is not None:
            (settings if vocabulary.is_setting(sign[0]) else facts).append(sign)
    return facts, settings


def _sign(node: ast.expr, vocabulary: Vocabulary) -> Sign | None:
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "unset"
        and len(node.args) == 1
    ):
        name = _plain_name(node.args[0], vocabulary)
        return (name, [None]) if name else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        name = _truth_name(node.operand, vocabulary)
        return (name, [False]) if name else None
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.Eq, ast.In)):
        name = _plain_name(node.left, vocabulary)
        literal = _literal(node.comparators[0])
        if isinstance(node.comparators[0], ast.Name):
            literal = vocabulary.group(node.comparators[0].id) or _NOT_LITERAL
        if name is None or literal is _NOT_LITERAL:
            return None
        wanted = list(literal) if isinstance(node.ops[0], ast.In) and isinstance(literal, tuple) else [literal]
        return (name, wanted) if all(isinstance(item, (str, int, type(None))) for item in wanted) else None
    name = _truth_name(node, vocabulary)
    return (name, [True]) if name else None


# (subject, whether its elements are meant, values): a comparison of an expression over settings with constants.
Pick = tuple[str, bool, list[Value]]


def picks_of(text: str, vocabulary: Vocabulary) -> list[Pick]:
    """Comparisons with constants one of which must hold where a condition does; empty: there are none such.

    `any_of(x, ('a', 'b'))` compares the elements of x, `x == 'a'` and `x in ('a', 'b')` its value.
    """
    return _picks(_parse(text), vocabulary)


def _picks(node: ast.expr, vocabulary: Vocabulary) -> list[Pick]:
    if isinstance(node, ast.BoolOp):
        found = [_picks(part, vocabulary) for part in node.values]
        if isinstance(node.op, ast.And):
            return min(filter(None, found), key=lambda picks: _pick_order(picks, vocabulary), default=[])
        return [pick for picks in found for pick in picks] if all(found) else []
    if isinstance(node, ast.Name) and not vocabulary.is_setting(node.id):
        definition = vocabulary.definition(node.id)
        if definition is None or definition.facts_only or definition.text == node.id:
            return []
        return _picks(_parse(definition.text), vocabulary)
    elements = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "any_of"
    if isinstance(node, ast.Call) and elements and len(node.args) == 2:
        subject, listed = node.args
        wanted = _constants(listed, vocabulary)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.Eq, ast.In)):
        subject, listed = node.left, node.comparators[0]
        one = _literal(listed) if isinstance(node.ops[0], ast.Eq) else _NOT_LITERAL
        wanted = _constants(listed, vocabulary) if isinstance(node.ops[0], ast.In) else [one]
    else:
        return []
    if not wanted or not all(item is None or isinstance(item, (str, int)) for item in wanted):
        return []
    return [(ast.unparse(subject), elements, wanted)] if _reads_settings(subject, vocabulary) else []


def _pick_order(picks: list[Pick], vocabulary: Vocabulary) -> tuple[bool, int]:
    """What many settings make up tells steps apart best; gates already know the values of single settings."""
    return all(vocabulary.is_setting(subject) for subject, _, _ in picks), len(picks)


def _constants(node: ast.expr, vocabulary: Vocabulary) -> list[Value]:
    """The elements of a tuple of literals or of a group; empty for anything else."""
    literal = _literal(node)
    if isinstance(node, ast.Name) and not vocabulary.is_setting(node.id) and not vocabulary.is_fact(node.id):
        literal = vocabulary.group(node.id)
    return list(literal) if isinstance(literal, tuple) else []


def _plain_name(node: ast.expr, vocabulary: Vocabulary) -> str | None:
    """The setting or the fact that a node is, when it is one."""
    if isinstance(node, ast.Name):
        return node.id if vocabulary.is_setting(node.id) else None
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        name = f"{node.value.id}.{node.attr}"
        return name if vocabulary.is_fact(name) else None
    return None


def _truth_name(node: ast.expr, vocabulary: Vocabulary) -> str | None:
    """A definition over facts that is itself a comparison, so that its value is true, false or unknown."""
    if not isinstance(node, ast.Name) or vocabulary.is_setting(node.id):
        return None
    definition = vocabulary.definition(node.id)
    if definition is None or not definition.facts_only:
        return None
    try:
        inner = _parse(definition.text)
    except ExpressionError:
        return None
    itself = isinstance(inner, ast.Name) and inner.id == node.id  # a decision list has no text of its own
    return node.id if not itself and _is_boolean(inner, vocabulary) else None


def _is_boolean(node: ast.expr, vocabulary: Vocabulary) -> bool:
    if isinstance(node, (ast.Compare, ast.UnaryOp)):
        return not isinstance(node, ast.UnaryOp) or isinstance(node.op, ast.Not)
    if isinstance(node, ast.BoolOp):
        return all(_is_boolean(value, vocabulary) for value in node.values)
    return isinstance(node, ast.Name) and _truth_name(node, vocabulary) is not None


def _reads_settings(node: ast.expr, vocabulary: Vocabulary) -> bool:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            if vocabulary.is_setting(inner.id):
                return True
            definition = vocabulary.definition(inner.id)
            if definition is not None and not definition.facts_only:
                return True
    return False


def compile_condition(text: str, vocabulary: Vocabulary) -> Condition:
    """A condition whose conjuncts compile when they are needed.

    Raises:
        ExpressionError: the text is no expression; what a conjunct does wrong is raised when it is compiled.
    """
    return Condition(text, vocabulary)


def _conjunction(parts: tuple[Evaluate, ...]) -> Evaluate:
    if len(parts) == 1:
        return parts[0]
    first, others = parts[0], parts[1:]
    if len(parts) == 2:
        second = parts[1]

        def both(scope: Any) -> Value:
            one = first(scope)
            if one is not UNKNOWN and not one:
                return one
            two = second(scope)
            return UNKNOWN if one is UNKNOWN and (two is UNKNOWN or two) else two

        return both

    def conjunction(scope: Any) -> Value:
        value = first(scope)
        unknown = value is UNKNOWN
        if not unknown and not value:
            return value
        for part in others:
            value = part(scope)
            if value is UNKNOWN:
                unknown = True
            elif not value:
                return value
        return UNKNOWN if unknown else value

    return conjunction


def constant(value: Value) -> Expression:
    """An expression that is one literal value; lists become tuples."""
    literal = tuple(value) if isinstance(value, list) else value
    return Expression(text=repr(literal), evaluate=lambda scope: literal, settings=frozenset(), facts=frozenset())


def compile_value(value: Value, vocabulary: Vocabulary) -> Expression:
    """Compile a YAML value: a text that starts with "=" is an expression, everything else a literal."""
    if isinstance(value, str) and value.startswith("="):
        return compile_expression(value[1:], vocabulary)
    return constant(value)


def compile_choice(branches: Iterable[tuple[Expression | None, Expression]], text: str) -> Expression:
    """Compile a decision list: the value of the first branch whose condition is true, None when there is none."""
    listed = tuple(branches)
    parts = tuple((when.evaluate if when else None, then.evaluate) for when, then in listed)

    def choose(scope: Any, start: int = 0) -> Value:
        for index in range(start, len(parts)):
            when, then = parts[index]
            chosen = True if when is None else when(scope)
            if chosen is UNKNOWN:
                value = then(scope)
                return value if value is not UNKNOWN and choose(scope, index + 1) == value else UNKNOWN
            if chosen:
                return then(scope)
        return None

    read = [expression for branch in listed for expression in branch if expression is not None]
    return Expression(
        text=text,
        evaluate=choose,
        settings=frozenset[str]().union(*(expression.settings for expression in read)),
        facts=frozenset[str]().union(*(expression.facts for expression in read)),
        asks=frozenset[str]().union(*(expression.asks for expression in read)),
    )


_FIELD = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Template:
    """A sentence with expressions in braces."""

    text: str
    parts: tuple[str | Expression, ...]

    def fill(self, scope: Any) -> str:
        """The sentence with the values of this moment."""
        return "".join(part if isinstance(part, str) else show(part.evaluate(scope)) for part in self.parts)

    @property
    def settings(self) -> frozenset[str]:
        """The settings it shows."""
        return frozenset[str]().union(*(part.settings for part in self.parts if isinstance(part, Expression)))


def compile_template(text: str, vocabulary: Vocabulary) -> Template:
    """Compile a message; whatever stands in braces is an expression.

    Raises:
        ExpressionError: as `compile_expression`.
    """
    pieces = _FIELD.split(" ".join(text.split()))
    parts: list[str | Expression] = []
    for index, piece in enumerate(pieces):
        if index % 2:
            parts.append(compile_expression(piece, vocabulary))
        elif piece:
            parts.append(piece)
    return Template(text=text, parts=tuple(parts))


def show(value: Value) -> str:
    """A value as people write it: `unset` for None, lower-case booleans, lists with commas."""
    if value is None:
        return "unset"
    if value is UNKNOWN:
        return "unknown"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(show(item) for item in value)
    return str(value)
