"""What the engine's own checks said to the probes, and how that stands to our check; it must not know a law.

An outcome is the line that engine/probe.py writes: the check passes (`ok` true), it stops the launch (false), or there is no
answer (null): resolution refuses the launch before, the release has no such check, or this machine fails.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from recommender.rulebook import load_rulebook
from recommender.terms import Answer, Bites, CheckResult, Effect, Verdict
from tests.oracle.agree import matches
from tests.oracle.client import ENGINE, LAUNCH_SECONDS, START_SECONDS, OracleError, run
from tests.oracle.records import CHAIN, DATA, Answered, RecordError, lines_of, write_lines

from . import PROBES
from .probe import Probe

Outcomes = dict[str, dict[str, Any]]
RELEASES = tuple(release.version for release in load_rulebook().releases)


def recorded_file(release: str) -> Path:
    """Where the outcomes of a release lie."""
    return DATA / f"probes-{release}.json.xz"


def ask(release: str, probes: Iterable[Probe]) -> Outcomes:
    """What the engine's checks say to these probes, by "NAME/trips" and "NAME/passes".

    Raises:
        OracleError: the engine could not be asked, or left a probe without an answer.
    """
    together: dict[tuple[str, str], list[str]] = {}
    for probe in probes:
        for _, device, case in probe.cases():
            together.setdefault((device, json.dumps(case["env"], sort_keys=True)), []).append(json.dumps(case))
    found: Outcomes = {}
    for (device, _), lines in together.items():
        seconds = START_SECONDS + LAUNCH_SECONDS * len(lines)
        printed = run(release, device, [str(ENGINE / "probe.py")], text="\n".join(lines) + "\n", seconds=seconds)
        answers = [json.loads(line) for line in printed.splitlines()]
        if len(answers) != len(lines):
            raise OracleError(
                f"sglang {release} on {device}: {len(lines) - len(answers)} probes were left without an answer"
            )
        found.update({answer.pop("id"): answer for answer in answers})
    return dict(sorted(found.items()))


def record(release: str, outcomes: Outcomes) -> None:
    """Keep the outcomes of a release; of a traceback, the places nearest to where it was raised."""
    kept = {
        name: said | ({"chain": said["chain"][-CHAIN:]} if "chain" in said else {})
        for name, said in sorted(outcomes.items())
    }
    write_lines(recorded_file(release), ({"sglang": release, "outcomes": kept},))


@cache
def recorded(release: str) -> Outcomes:
    """What the engine's checks said when they were recorded.

    Raises:
        RecordError: the file is missing or damaged.
    """
    path = recorded_file(release)
    (line, *_) = lines_of(path) or ({},)
    if not isinstance(line.get("outcomes"), dict):
        raise RecordError(f"{path.name}: holds no outcomes; python -m tests.oracle.probes {release}")
    return dict(line["outcomes"])


def stopped(said: Mapping[str, Any]) -> Answered:
    """A check's refusal, as the answer to a launch."""
    return Answered(
        device="", argv=(), ok=False, type=said["type"], message=said["message"], at=said["at"], chain=tuple(said["chain"])
    )


def shown(release: str, outcomes: Outcomes) -> frozenset[str]:
    """The probes whose law the engine's own check showed in a release: the one launch stopped by it, its neighbour not."""
    rules = load_rulebook().edition(release).rules
    nothing: Mapping[str, Any] = {"ok": None}
    return frozenset(
        probe.name
        for probe in PROBES
        if probe.rule in rules
        and outcomes.get(f"{probe.name}/passes", nothing)["ok"]
        and (said := outcomes.get(f"{probe.name}/trips", nothing))["ok"] is False
        and matches(rules[probe.rule], stopped(said))
    )


def difference(probe: Probe, said: Mapping[str, Any], result: CheckResult) -> str:
    """How the engine's outcome of a launch differs from what our check says of it; empty where they agree."""
    rules = load_rulebook().edition(result.sglang).rules
    late = {
        item.rule
        for item in result.findings
        if item.verdict is Verdict.BREAKS and item.effect is Effect.REJECTS and item.bites in (Bites.LOAD, Bites.REQUEST)
    }
    ours = f"{probe.rule} {'breaks' if probe.rule in late else 'does not break'} (ours)"
    if said["ok"] is None and said["stage"] == "machine":
        return ""
    if said["ok"] is None and said["stage"] != "absent":
        refused = result.verdict is Answer.REFUSES
        return "" if refused else f"the launch is refused before any check: {said['message']}; {result.verdict} (ours)"
    if result.verdict is not Answer.ACCEPTS:
        return f"the engine resolves it; {result.verdict} (ours)"
    if said["ok"] is not False:
        how = "passes" if said["ok"] else f"has no such check ({said['message']})"
        return f"the engine {how}; {ours}" if probe.rule in late else ""
    named = any(matches(rules[rule], stopped(said)) for rule in late)  # a further law is hidden behind the first
    return "" if named else f"stopped by {said['message']}; {ours}"
