"""Names the devices that agreement is measured on; it must not hold their facts (profiles/gpus does)."""

from __future__ import annotations

from collections.abc import Sequence

from recommender import profiles

USUAL = (
    "a100-80g", "b200", "b300", "cpu", "gb10", "gb200", "gb300", "h100", "h20", "h200", "l40s",
    "mi300x", "mi325x", "mi355x", "rtx4090", "rtx5090", "rtxpro6000",
)  # fmt: skip


def devices_of(words: str) -> Sequence[str]:
    """The devices of a word: `all` that agreement is measured on, `every` one the engine can be told, or a list a,b,c."""
    if words == "every":
        return [name for name in profiles.gpu_ids() if not profiles.find_gpu(name).unproven]
    return USUAL if words == "all" else words.split(",")
