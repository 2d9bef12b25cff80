"""What a probe is; it must not ask the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One law shown. `passes_on` and `passes_env` are the neighbour's device and variables where they differ.

    Every release is asked about both launches. That the one trips and the other passes is expected where our check says so:
    a release may have no such law, no such flag, or no such check.
    """

    name: str
    rule: str
    check: str
    device: str
    trips: str
    passes: str
    passes_on: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    passes_env: Mapping[str, str] | None = None

    def cases(self) -> list[tuple[str, str, dict[str, Any]]]:
        """(which, device, case) of the launch that trips and of its neighbour."""
        beside = self.env if self.passes_env is None else self.passes_env
        launches = (
            ("trips", self.device, self.trips, self.env),
            ("passes", self.passes_on or self.device, self.passes, beside),
        )
        return [
            (which, device, {"id": f"{self.name}/{which}", "probe": self.check, "argv": argv.split(), "env": dict(env)})
            for which, device, argv, env in launches
        ]


def shows(
    rule: str, check: str, device: str, trips: str, passes: str = "", *, on: str = "", name: str = "",
    env: Mapping[str, str] | None = None, passes_env: Mapping[str, str] | None = None,
) -> Probe:  # fmt: skip
    """A probe; without a neighbour of its own the same launch passes on the device `on` or under `passes_env`."""
    return Probe(
        name=name or rule, rule=rule, check=check, device=device, trips=trips, passes=passes or trips, passes_on=on,
        env=env or {}, passes_env=passes_env,
    )  # fmt: skip
