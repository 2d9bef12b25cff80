"""The probes against our rules: recorded outcomes in every run, the engine itself where it is set up (-m oracle)."""

from __future__ import annotations

from pathlib import Path

import pytest

from recommender.api import check
from tests.oracle.client import is_set_up
from tests.oracle.folders import write_example_checkpoints

from . import PROBES
from .outcomes import RELEASES, Outcomes, ask, difference, recorded, shown
from .probe import Probe

each_release = pytest.mark.parametrize("release", RELEASES)
each_probe = pytest.mark.parametrize("probe", PROBES, ids=[probe.name for probe in PROBES])


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the checkpoints that only examples name."""
    return write_example_checkpoints(tmp_path_factory.mktemp("checkpoints"))


def differences(release: str, probe: Probe, said: Outcomes, root: Path) -> list[str]:
    """Where the engine's outcomes of a probe and our check disagree."""
    found = []
    for _, device, case in probe.cases():
        result = check(case["argv"], env=case["env"], gpu=device, sglang=release, image="none", cures=False, root=root)
        differs = difference(probe, said[case["id"]], result)
        found += [f"{case['id']} in {release}: {differs}"] if differs else []
    return found


@each_release
@each_probe
def test_our_check_says_what_the_engine_said(release: str, probe: Probe, root: Path) -> None:
    if not {case["id"] for _, _, case in probe.cases()} <= set(recorded(release)):
        pytest.skip(f"the engine was not asked yet: python -m tests.oracle.probes {release} --only {probe.name}")
    assert not differences(release, probe, recorded(release), root)


@each_probe
def test_a_probe_shows_its_law_somewhere(probe: Probe) -> None:
    assert any(probe.name in shown(release, recorded(release)) for release in RELEASES)


@each_release
def test_nothing_recorded_is_left_over(release: str) -> None:
    assert set(recorded(release)) <= {case["id"] for probe in PROBES for _, _, case in probe.cases()}


def test_no_two_probes_have_one_name() -> None:
    assert len({probe.name for probe in PROBES}) == len(PROBES)


@pytest.mark.oracle
@each_release
def test_the_engine_itself_says_it(release: str, root: Path) -> None:
    if not is_set_up(release):
        pytest.skip(f"run tests/oracle/engine/setup {release}")
    said = ask(release, PROBES)
    assert not [differs for probe in PROBES for differs in differences(release, probe, said, root)]
