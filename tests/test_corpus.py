"""Published launch commands as cases: each keeps where it was published, equal seeds give equal cases."""

from __future__ import annotations

import json

import pytest
import yaml

from recommender import profiles
from recommender.rulebook import load_rulebook
from tests.oracle.corpus import COMMANDS, NAMES, case, changed, published

RELEASES = [release.version for release in load_rulebook().releases]


def test_every_command_says_where_it_was_published() -> None:
    for line in COMMANDS.read_text(encoding="utf-8").splitlines():
        document = json.loads(line)
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


@pytest.mark.parametrize("release", RELEASES)
def test_changes_are_drawn_again(release: str) -> None:
    once = list(changed(5, 40, 3, release))
    assert once == list(changed(5, 40, 3, release))
    assert once != list(changed(6, 40, 3, release))
    plain = {tuple(each.argv) for each in published()}
    assert sum(tuple(each["argv"]) in plain for each in once) < len(once)
