"""What a probe is; it must not ask the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One law shown. `passes_on` is the neighbour's device when that is what differs; `releases` are those that have it."""

    name: str
    rule: str
    check: str
    device: str
    trips: str
    passes: str
    passes_on: str = ""
    releases: tuple[str, ...] = ("0.5.23",)

    def cases(self) -> list[tuple[str, str, dict[str, Any]]]:
        """(which, device, case) of the launch that trips and of its neighbour."""
        launches = (("trips", self.device, self.trips), ("passes", self.passes_on or self.device, self.passes))
        return [
            (which, device, {"id": f"{self.name}/{which}", "probe": self.check, "argv": argv.split()})
            for which, device, argv in launches
        ]
