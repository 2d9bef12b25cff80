"""The probes against our rules: recorded outcomes in every run, the engine itself where it is set up (-m oracle)."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from recommender.api import check
from recommender.rulebook import load_rulebook
from recommender.terms import Answer, Bites, Verdict
from tests.oracle.agree import matches
from tests.oracle.client import is_set_up
from tests.oracle.folders import write_example_checkpoints
from tests.oracle.records import Answered, RecordError

from . import ask, probes_of, recorded
from .probe import RELEASES, Probe

each_release = pytest.mark.parametrize("release", RELEASES)
each_probe = pytest.mark.parametrize(
    ("release", "probe"),
    [
        pytest.param(release, probe, id=f"{release}-{probe.name}")
        for release in RELEASES
        for probe in probes_of(release)
    ],
)


@cache
def outcomes(release: str) -> dict[str, dict[str, Any]]:
    """The recorded outcomes."""
    try:
        return recorded(release)
    except RecordError as error:
        pytest.fail(str(error), pytrace=False)


def agrees(release: str, probe: Probe, said: dict[str, dict[str, Any]]) -> None:
    """The engine's check stops the one launch with the rule's own message, and lets its neighbour pass."""
    rule = load_rulebook().edition(release).rules[probe.rule]
    stopped = said[f"{probe.name}/trips"]
    assert stopped["ok"] is False, stopped
    launch = Answered(
        device=probe.device,
        argv=(),
        ok=False,
        message=stopped["message"],
        at=stopped["at"],
        chain=tuple(stopped["chain"]),
    )
    assert matches(rule, launch), f"{probe.rule} does not match: {stopped['message']}"
    assert said[f"{probe.name}/passes"] == {"ok": True}


@each_probe
def test_the_recorded_engine_shows_the_law(release: str, probe: Probe) -> None:
    if not {case["id"] for _, _, case in probe.cases()} <= set(outcomes(release)):
        pytest.skip(f"the engine was not asked yet: python -m tests.oracle.probes {release} records what it says")
    agrees(release, probe, outcomes(release))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the checkpoints that only examples name."""
    return write_example_checkpoints(tmp_path_factory.mktemp("checkpoints"))


@each_probe
def test_our_check_says_the_same(release: str, probe: Probe, root: Path) -> None:
    for which, device, case in probe.cases():
        result = check(case["argv"], env=case["env"], gpu=device, sglang=release, image="none", cures=False, root=root)
        found = {item.rule: item for item in result.findings}
        assert result.verdict is Answer.ACCEPTS, "the engine resolves it"
        if which == "passes":
            assert probe.rule not in found
        else:
            assert found[probe.rule].verdict is Verdict.BREAKS
            assert found[probe.rule].bites in (Bites.LOAD, Bites.REQUEST)


@each_release
def test_nothing_recorded_is_left_over(release: str) -> None:
    assert set(outcomes(release)) <= {case["id"] for probe in probes_of(release) for _, _, case in probe.cases()}


@pytest.mark.oracle
@each_release
def test_the_engine_itself_shows_the_laws(release: str) -> None:
    if not is_set_up(release):
        pytest.skip(f"run tests/oracle/engine/setup {release}")
    said = ask(release, probes_of(release))
    for probe in probes_of(release):
        agrees(release, probe, said)
