"""Which speculative-decoding settings of SGLang are valid, and which pay; this file must only name the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recommender.advise import Advice
    from recommender.api import check, explain, load_rulebook, recommend
    from recommender.errors import RecommenderError, RulebookError, UsageError
    from recommender.reports import Change, Explanation, LawAccount, Remedy
    from recommender.terms import (
        UNKNOWN,
        Answer,
        Bites,
        CheckResult,
        Cure,
        Effect,
        Finding,
        Known,
        OriginKind,
        Source,
        Verdict,
    )

# Where each public name lives; nothing is imported before it is asked for.
_HOMES = {
    "Advice": "recommender.advise",
    "Answer": "recommender.terms",
    "Bites": "recommender.terms",
    "Change": "recommender.reports",
    "CheckResult": "recommender.terms",
    "Cure": "recommender.terms",
    "Effect": "recommender.terms",
    "Explanation": "recommender.reports",
    "Finding": "recommender.terms",
    "Known": "recommender.terms",
    "LawAccount": "recommender.reports",
    "OriginKind": "recommender.terms",
    "RecommenderError": "recommender.errors",
    "Remedy": "recommender.reports",
    "RulebookError": "recommender.errors",
    "Source": "recommender.terms",
    "UNKNOWN": "recommender.terms",
    "UsageError": "recommender.errors",
    "Verdict": "recommender.terms",
    "check": "recommender.api",
    "explain": "recommender.api",
    "load_rulebook": "recommender.api",
    "recommend": "recommender.api",
}

__all__ = [
    "UNKNOWN",
    "Advice",
    "Answer",
    "Bites",
    "Change",
    "CheckResult",
    "Cure",
    "Effect",
    "Explanation",
    "Finding",
    "Known",
    "LawAccount",
    "OriginKind",
    "RecommenderError",
    "Remedy",
    "RulebookError",
    "Source",
    "UsageError",
    "Verdict",
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
