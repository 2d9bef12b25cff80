"""Orders the valid rows and says in words why each stands where it does; it must not search, judge or read files.

A row's key is (doubtful, candidate, costs, frame, shape). The frame is every searched setting but the drafted shape; chains come
before trees, then the frame the engine itself would choose. The shape of a chain is its depth: deeper first up to the bound for
the load, then what lies beyond it, nearest first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recommender.terms import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """A bound on num_steps for up to `upto` requests running at once (None: any number)."""

    upto: int | None
    steps: int
    why: str
    source: str


def tier_for(tiers: Sequence[Tier], concurrency: int) -> Tier:
    """The first tier that holds the load; the last one when none does."""
    return next((tier for tier in tiers if tier.upto is None or concurrency <= tier.upto), tiers[-1])


def depth_key(steps: int | None, bound: int) -> tuple[bool, int]:
    """Deeper first up to the bound; what exceeds it comes after, nearest first.

    >>> sorted([1, 2, 3, 4, 5, 6, 7], key=lambda steps: depth_key(steps, 5))
    [5, 4, 3, 2, 1, 6, 7]
    """
    depth = steps or 0
    return (depth > bound, depth if depth > bound else -depth)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """How rows are compared: the domains in order, the roles of the shape's settings, and the depth bound."""

    domains: Mapping[str, tuple[Value, ...]]
    likes: Mapping[str, str]
    given: Mapping[str, Value]
    topk: str
    steps: str
    tokens: str
    bound: int

    def _place(self, name: str, assignment: Mapping[str, Value]) -> int:
        value = assignment[name]
        like = self.likes.get(name)
        if like is not None and value is not None and value == assignment.get(like, self.given.get(like)):
            return -1
        return self.domains[name].index(value)

    def frame_key(self, assignment: Mapping[str, Value]) -> tuple[Any, ...]:
        """Chains first, then by each setting's place in its domain."""
        tree = (assignment.get(self.topk, self.given.get(self.topk)) or 1) > 1
        places = tuple(
            self._place(name, assignment) for name in self.domains if name in assignment and name != self.topk
        )
        width = self.domains[self.topk].index(assignment[self.topk]) if self.topk in assignment else 0
        return (tree, *places, width)

    def shape_key(self, assignment: Mapping[str, Value]) -> tuple[Any, ...]:
        """Depth, then the place of the draft tokens in their domain."""
        depth = depth_key(assignment.get(self.steps, self.given.get(self.steps)), self.bound)
        tokens = assignment.get(self.tokens)
        place = self.domains[self.tokens].index(tokens) if self.tokens in assignment else 0
        return (*depth, place)


def depth_reason(*, steps: int, tier: Tier, stopped_by: Sequence[str], deepest: int, offered: int) -> str:
    """Why a row has its depth. `stopped_by` are the laws that refuse one step more, `deepest` the most steps of rows like it.

    `offered` is the largest number of steps in the domain.
    """
    if steps > tier.steps:
        return f"{_steps(steps)}: more than the {tier.steps} that pay at this load ({tier.why})"
    if steps < min(deepest, tier.steps):
        shallower = min(deepest, tier.steps) - steps
        return (
            f"{_steps(steps)}: {shallower} fewer than the deepest valid row, for less drafting at a lower accept length"
        )
    if steps == tier.steps:
        return f"{_steps(steps)}: {tier.why}; deeper stops at that bound"
    if stopped_by:
        return f"{_steps(steps)}: one more is refused by {', '.join(stopped_by)}"
    if steps >= offered:
        return f"{_steps(steps)}: the deepest that is searched"
    return f"{_steps(steps)}: the deepest valid"


def _steps(count: int) -> str:
    return f"{count} step" if count == 1 else f"{count} steps"
