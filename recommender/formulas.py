"""Named pure functions that a rule may call where an expression would be unreadable; it must not read settings or files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
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


def collect(mapping: Any, key: str, part: str = "") -> tuple[str, ...]:
    """The distinct texts, in upper case, that the objects of an object hold under one key; empty when there is none.

    Only the objects whose own name contains `part` count.

    >>> collect({"a": {"quant_algo": "fp8"}, "b": {"quant_algo": "NVFP4"}, "c": 3}, "quant_algo")
    ('FP8', 'NVFP4')
    """
    if not isinstance(mapping, dict):
        return ()
    found = (value.get(key) for name, value in mapping.items() if part in name and isinstance(value, dict))
    return tuple(dict.fromkeys(text.upper() for text in found if isinstance(text, str)))


def join(texts: Any) -> str:
    """The texts of a list with blanks between them.

    >>> join(("a", "b"))
    'a b'
    """
    return " ".join(str(text) for text in texts or ())


def block_values(blocks: Any, kind: str, key: str) -> tuple[Any, ...]:
    """The distinct values that a list's objects of one block_type hold under a key, in order of appearance.

    >>> block_values(({"block_type": "moe", "n": 8}, {"block_type": "mlp"}, {"block_type": "moe", "n": 16}), "moe", "n")
    (8, 16)
    """
    found = (block.get(key) for block in blocks or () if isinstance(block, dict) and block.get("block_type") == kind)
    return tuple(dict.fromkeys(value for value in found if value is not None))


def any_matches(texts: Any, pattern: str) -> bool:
    """Whether a pattern is found in one of a list's texts.

    >>> any_matches(("a.b", "c:80"), ":")
    True
    """
    return any(re.search(pattern, str(text)) is not None for text in texts or ())


def all_a(items: Any, *kinds: str) -> bool:
    """Whether a value is a list of nothing but values of these kinds.

    >>> all_a(("a", 1), "str")
    False
    """
    return isinstance(items, (tuple, list)) and all(type(item).__name__ in kinds for item in items)


def distinct(items: Any) -> bool:
    """Whether no element of a list stands twice.

    >>> distinct((1, 8, 1))
    False
    """
    return len(set(items or ())) == len(items or ())


def before(text: Any, mark: str) -> Any:
    """What stands before the first mark of a text, or the whole text.

    >>> before("cuda:0", ":")
    'cuda'
    """
    return None if text is None else str(text).split(mark, 1)[0]


def rounded(number: float | None, digits: int) -> float | None:
    """A number rounded as Python rounds it.

    >>> rounded(0.85462, 3)
    0.855
    """
    return None if number is None else round(number, digits)


def aligned(numbers: Any, step: int) -> bool:
    """Whether every number of a list is a multiple.

    >>> aligned((8, 12), 8)
    False
    """
    return all(number % step == 0 for number in numbers or ())


def align_up_all(numbers: Any, step: int) -> tuple[int, ...]:
    """The numbers of a list rounded up to multiples, sorted, each once.

    >>> align_up_all((4, 8, 12), 8)
    (8, 16)
    """
    return tuple(sorted({(number + step - 1) // step * step for number in numbers or ()}))


@lru_cache(maxsize=64)
def prefill_capture_sizes(largest: int | None) -> tuple[int, ...] | None:
    """The token counts that prefill graphs are captured for, in steps that grow with the count.

    Source: arg_groups/cuda_graph_hook.py generate_prefill_cuda_graph_batch_sizes, 0.5.23.

    >>> prefill_capture_sizes(48)
    (4, 8, 12, 16, 20, 24, 28, 32, 48)
    """
    if not isinstance(largest, int):
        return None
    steps = (
        (4, 32, 4),
        (48, 256, 16),
        (288, 512, 32),
        (576, 1024, 64),
        (1280, 4096, 256),
        (4608, min(largest, 1 << 20), 512),
    )
    return tuple(size for first, last, step in steps for size in range(first, last + 1, step) if size <= largest)


def parsed_json(text: Any) -> Any:
    """The value that a JSON text stands for, lists as tuples; None when it is no JSON.

    >>> parsed_json('{"a": [1, 2]}')
    {'a': (1, 2)}
    """
    try:
        return _frozen(json.loads(text))
    except (TypeError, ValueError, RecursionError):
        return None


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    return {name: _frozen(item) for name, item in value.items()} if isinstance(value, dict) else value


def item(items: Any, index: int) -> Any:
    """The element of a list at a place counted from 0; None beyond its end.

    >>> item(("a", "b"), 1)
    'b'
    """
    return items[index] if isinstance(items, tuple) and 0 <= index < len(items) else None


def rest(items: Any) -> tuple[Any, ...]:
    """A list without its first element.

    >>> rest((1, 2, 3))
    (2, 3)
    """
    return tuple(items or ())[1:]


def numbers(texts: Any) -> tuple[float, ...] | None:
    """The numbers that a list of texts spells; None when one of them spells none.

    >>> numbers(("1", "2.5"))
    (1.0, 2.5)
    """
    try:
        return tuple(float(text) for text in texts or ())
    except (TypeError, ValueError):
        return None


def trailing_number(text: Any) -> int | None:
    """The number that a text ends with.

    >>> trailing_number("tcp://*:5557")
    5557
    """
    found = re.search(r"([0-9]{1,9})$", text) if isinstance(text, str) else None
    return int(found.group(1)) if found else None


FORMULAS: dict[str, Callable[..., Any]] = {
    "align_up_all": align_up_all,
    "aligned": aligned,
    "all_a": all_a,
    "any_matches": any_matches,
    "before": before,
    "block_values": block_values,
    "collect": collect,
    "distinct": distinct,
    "item": item,
    "join": join,
    "numbers": numbers,
    "parsed_json": parsed_json,
    "prefill_capture_sizes": prefill_capture_sizes,
    "rest": rest,
    "rounded": rounded,
    "trailing_number": trailing_number,
    "tree_pool": tree_pool,
}
