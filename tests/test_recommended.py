"""Recommendations against what the engine said of them: round trips and completeness, replayed from recorded answers.

`python -m tests.oracle.recommended round-trip 0.5.23 --seed 11 --record` (and `completeness`) asks the engine anew.
"""

from __future__ import annotations

import itertools

import pytest

from tests.oracle.recommended import as_it_stands, completeness, file_of, kept, round_trips

RELEASE = "0.5.23"
SEED = 11


def check_round_trips(count: int) -> None:
    recorded = kept("round-trip", RELEASE)
    seen = 0
    for question, argv, found, complaints in round_trips(SEED, count):
        assert not complaints, (question, complaints, " ".join(argv))
        answer = recorded.get((question.gpu, argv))
        assert answer is not None, f"not recorded, ask the engine anew: {question.gpu}: {' '.join(argv)}"
        assert answer["ok"] is None or as_it_stands(found, answer), (question, answer)
        seen += answer["ok"] is True
    assert seen > count


def check_completeness(count: int) -> None:
    recorded = kept("completeness", RELEASE)
    stand = 0
    for question, argv, assignment, listed, excluded in completeness(SEED, count):
        answer = recorded.get((question.gpu, argv))
        assert answer is not None, f"not recorded, ask the engine anew: {question.gpu}: {' '.join(argv)}"
        if answer["ok"] is None:
            continue
        stands = as_it_stands(assignment, answer) and not excluded
        stand += stands
        assert stands == listed, (question, " ".join(argv), answer)
    assert stand


def test_recommended_commands_are_accepted_as_they_stand() -> None:
    check_round_trips(12)


@pytest.mark.long
def test_every_recommended_command_is_accepted_as_it_stands() -> None:
    check_round_trips(300)


needs_answers = pytest.mark.skipif(not file_of("completeness", RELEASE).is_file(), reason="no answers recorded")


@needs_answers
def test_what_the_engine_accepts_is_among_all_rows() -> None:
    check_completeness(4)


@pytest.mark.long
@needs_answers
def test_all_that_the_engine_accepts_is_among_all_rows() -> None:
    check_completeness(100)


def test_questions_are_drawn_alike_every_time() -> None:
    from tests.oracle.recommended import questions

    assert list(itertools.islice(questions(SEED, 5), 5)) == list(questions(SEED, 5))
