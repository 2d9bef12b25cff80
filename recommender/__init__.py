"""Which speculative-decoding settings of SGLang are valid, and which pay; this file must only name the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recommender.advise import Advice
    from recommender.api import check, explain, load_rulebook, recommend
    from recommender.errors import RecommenderError, RulebookError, UsageError
    from recommender.terms import UNKNOWN, CheckResult, Explanation, Finding, Known, LawAccount

# Where each public name lives; nothing is imported before it is asked for.
_HOMES = {
    "Advice": "recommender.advise",
    "CheckResult": "recommender.terms",
    "Explanation": "recommender.terms",
    "Finding": "recommender.terms",
    "Known": "recommender.terms",
    "LawAccount": "recommender.terms",
    "RecommenderError": "recommender.errors",
    "RulebookError": "recommender.errors",
    "UNKNOWN": "recommender.terms",
    "UsageError": "recommender.errors",
    "check": "recommender.api",
    "explain": "recommender.api",
    "load_rulebook": "recommender.api",
    "recommend": "recommender.api",
}

__all__ = [
    "UNKNOWN",
    "Advice",
    "CheckResult",
    "Explanation",
    "Finding",
    "Known",
    "LawAccount",
    "RecommenderError",
    "RulebookError",
    "UsageError",
    "check",
    "explain",
    "load_rulebook",
    "recommend",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
