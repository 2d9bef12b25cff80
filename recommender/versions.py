"""Engine releases as comparable values; it must not know which releases exist."""

from __future__ import annotations

import re
from functools import lru_cache

from recommender.errors import UsageError

Release = tuple[int, ...]
_PATTERN = re.compile(r"v?(\d+(?:\.\d+){1,3})(?:\.?(post|rc|dev|a|b)(\d*))?(?:\+.*)?")


@lru_cache(maxsize=256)
def parse_release(text: str) -> Release:
    """Return the numbers of a release ("0.5.23.post1" gives (0, 5, 23)).

    Raises:
        UsageError: the text is not a release.
    """
    match = _PATTERN.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not an engine release; write it like 0.5.23")
    return tuple(int(part) for part in match.group(1).split("."))


def uncovered(asked: str, used: str, verb: str) -> str:
    """The sentence on a release that is not covered itself: what it is to the one that stands in for it.

    >>> uncovered("0.5.23.post1", "0.5.23", "judged")
    'SGLang 0.5.23.post1 is not covered: it is 0.5.23 built again; judged as 0.5.23.'
    >>> uncovered("0.5.24", "0.5.23", "judged")
    'SGLang 0.5.24 is not covered: it is newer, and what it changed is not known; judged as 0.5.23.'
    """
    kind = _kind(asked)
    if parse_release(asked) != parse_release(used):
        why = "it is newer, and what it changed is not known"
    elif kind == "post":
        why = f"it is {used} built again"
    elif kind:
        why = f"it comes before {used}, and what it lacks of it is not known"
    else:
        why = f"it is a build of {used}"
    return f"SGLang {asked} is not covered: {why}; {verb} as {used}."


def _kind(text: str) -> str:
    match = _PATTERN.fullmatch(text.strip())
    return (match.group(2) or "") if match else ""


def in_range(release: Release, since: str | None, until: str | None) -> bool:
    """Whether a release lies in [since, until)."""
    return (since is None or parse_release(since) <= release) and (until is None or release < parse_release(until))


def ranges_overlap(first: tuple[str | None, str | None], second: tuple[str | None, str | None]) -> bool:
    """Whether two half-open release ranges share a release."""
    (since_a, until_a), (since_b, until_b) = first, second
    starts_before = until_b is None or since_a is None or parse_release(since_a) < parse_release(until_b)
    ends_after = until_a is None or since_b is None or parse_release(since_b) < parse_release(until_a)
    return starts_before and ends_after
