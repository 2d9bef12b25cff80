"""Estimates whether weights can be held at all, from published sizes; it must not read files or know a model."""

from __future__ import annotations

from recommender.terms import UNKNOWN, Value


def weights_mib(weight_gib: Value) -> float | None:
    """Weights in MiB, None when their size is not known."""
    return (
        float(weight_gib) * 1024 if isinstance(weight_gib, (int, float)) and not isinstance(weight_gib, bool) else None
    )


def ranks_needed(weight_gib: Value, memory_mib: Value) -> int | None:
    """The fewest devices whose memory together holds the weights alone; None when a size is not known.

    >>> ranks_needed(16, 81559)
    1
    >>> ranks_needed(641.3, 183359)
    4
    """
    weights = weights_mib(weight_gib)
    if weights is None or memory_mib is UNKNOWN or not isinstance(memory_mib, (int, float)) or memory_mib <= 0:
        return None
    return max(1, -int(-weights // memory_mib))
