"""Named pure functions that a rule may call where an expression would be unreadable; it must not read settings or files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def tree_pool(topk: int | None, steps: int | None) -> int | None:
    """Candidates a draft tree is cut from: topk at the first level, topk * topk at each later one (root not included).

    Source: speculative/eagle_utils.py organize_draft_results, 0.5.23.

    >>> tree_pool(4, 3)
    36
    >>> tree_pool(1, 5)
    5
    """
    if topk is None or steps is None:
        return None
    return topk + max(steps - 1, 0) * topk * topk


def collect(mapping: Any, key: str) -> tuple[str, ...]:
    """The distinct texts, in upper case, that the objects of an object hold under one key; empty when there is none.

    >>> collect({"a": {"quant_algo": "fp8"}, "b": {"quant_algo": "NVFP4"}, "c": 3}, "quant_algo")
    ('FP8', 'NVFP4')
    """
    if not isinstance(mapping, dict):
        return ()
    found = (value.get(key) for value in mapping.values() if isinstance(value, dict))
    return tuple(dict.fromkeys(text.upper() for text in found if isinstance(text, str)))


def join(texts: Any) -> str:
    """The texts of a list with blanks between them.

    >>> join(("a", "b"))
    'a b'
    """
    return " ".join(str(text) for text in texts or ())


FORMULAS: dict[str, Callable[..., Any]] = {"collect": collect, "join": join, "tree_pool": tree_pool}
