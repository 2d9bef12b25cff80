"""What a launch runs into once the first law is cured was said before: the recorded refusals, peeled by our own cures."""

from __future__ import annotations

import pytest

from recommender.api import check_launch
from recommender.judge import apply_changes, rejections
from recommender.profiles import find_gpu
from recommender.resolve import walk
from tests.oracle.records import Answered
from tests.test_agreement import answers, session, shown

RELEASE = "0.5.23"
REFUSED = [launch for launch in answers(RELEASE) if launch.ok is False][::11]


@pytest.mark.parametrize("launch", REFUSED, ids=range(len(REFUSED)))
def test_the_next_refusal_was_foreseen(launch: Answered) -> None:
    here, gpu = session(RELEASE), find_gpu(launch.device)
    read = here.read(launch.argv, launch.env)
    if read.refusals:
        return
    said = check_launch(here, read, gpu)
    known = {finding.rule for finding in said.findings}
    for finding in said.findings:
        for cure in finding.cures[:1]:
            asked = apply_changes(read.asked, cure.changes)
            left = rejections(walk(here.plan, asked, here.facts_of(gpu, asked, here.roles)))
            assert set(left) <= known | {item.rule for item in said.not_judged_rules}, shown(launch)
            hidden = {item.rule for item in said.not_judged_rules if item.after == finding.rule}
            assert not hidden & set(left), f"{finding.rule} hides what its cure runs into: {shown(launch)}"
