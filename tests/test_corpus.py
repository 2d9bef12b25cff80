"""Published launch commands as cases: each keeps where it was published, equal seeds give equal cases."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from recommender import profiles
from recommender.rulebook import load_rulebook
from recommender.session import open_session
from tests.oracle.agree import compare
from tests.oracle.corpus import COMMANDS, NAMES, Way, case, changed, published, replies_of, way_out
from tests.oracle.folders import write_folders
from tests.oracle.installation import installed
from tests.oracle.records import lines_of, recorded_file

RELEASES = [release.version for release in load_rulebook().releases]
RECORDED = [version for version in RELEASES if recorded_file(version, "corpus").exists()]


def test_every_command_says_where_it_was_published() -> None:
    for document in lines_of(COMMANDS):
        assert document["repo"]
        assert document["path"]
        assert len(document["commit"]) == 40


def test_the_table_names_profiles() -> None:
    for name, profile in yaml.safe_load(NAMES.read_text(encoding="utf-8")).items():
        assert profiles.find_model(profile).id == profile, name


def test_checkpoints_are_profiles() -> None:
    mapped = [each for each in published() if not each.unmapped]
    assert len(mapped) > 200
    for each in mapped:
        named = [
            word for flag, word in zip(each.argv, each.argv[1:], strict=False) if flag in ("--model-path", "--model")
        ]
        assert all(profiles.find_model(name).id == name for name in named), case(each)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folders(tmp_path_factory.mktemp("checkpoints") / "all")


@pytest.mark.parametrize("release", RECORDED)
def test_no_published_command_is_refused_alone_or_without_a_way_out(release: str, checkpoints: Path) -> None:
    """The engine shares every refusal, and each comes with a cure of what is known or with why no setting is one."""
    session = open_session(load_rulebook(), release, checkpoints, installed())
    replies = replies_of(release, kept=True)
    assert sum(not reply.ok for reply in replies) > 10
    for reply in replies:
        said = f"{reply.device}: {' '.join(reply.argv)}"
        assert not compare(session, reply).differences, said
        if not reply.ok:
            assert way_out(session, reply) in (Way.CURED, Way.EXPLAINED, Way.OPEN), said


@pytest.mark.parametrize("release", RELEASES)
def test_changes_are_drawn_again(release: str) -> None:
    once = list(changed(5, 40, 3, release))
    assert once == list(changed(5, 40, 3, release))
    assert once != list(changed(6, 40, 3, release))
    plain = {tuple(each.argv) for each in published()}
    assert sum(tuple(each["argv"]) in plain for each in once) < len(once)
