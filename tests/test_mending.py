"""What to write instead of refused words: every mend is taken by the parser, and every cure that is shown as clean is."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recommender.api import check_launch
from recommender.mending import mends
from recommender.profiles import find_gpu
from recommender.rulebook import load_rulebook
from recommender.session import open_session

BOOK = load_rulebook()
NEWEST = BOOK.releases[-1].version
MODEL = "--model-path qwen3-8b"
HYBRID = "--model-path qwen3-next-80b-a3b --tp-size 4"

# words, and how the first cure begins; empty: the refused words go
FIRST = {
    "--cuda-graph-max-bs 8": "--cuda-graph-max-bs-decode 8 (without --cuda-graph-max-bs)",
    "--mamba-scheduler-strategy extra_buffer": "--mamba-radix-cache-strategy extra_buffer",
    "--nsa-decode-backend fa3": "--dsa-decode-backend fa3",
    "--speculative-num-stepz 3": "--speculative-num-steps 3",
    "--attention-backend trtlm_mha": "--attention-backend trtllm_mha",
    "--elastic-ep-rejoin": "(without --elastic-ep-rejoin)",
    "--foo 3": "(without --foo 3)",
    "--page-size x": "(without --page-size x)",
    "--foo 3 --mamba-scheduler-strategy extra_buffer": "--mamba-radix-cache-strategy extra_buffer",
    "--cuda-graph-max-bs 8 --speculative-algorithm NGRAM --attention-backend trtllm_mha": (
        "--cuda-graph-max-bs-decode 8 --speculative-ngram-max-bfs-breadth 1"
    ),
}


@pytest.mark.parametrize("words", FIRST)
def test_the_first_cure(words: str) -> None:
    here = open_session(BOOK, NEWEST)
    model = HYBRID if "mamba" in words else MODEL
    result = check_launch(here, here.read(shlex.split(f"{model} {words}")), find_gpu("b200"))
    assert result.cure is not None
    assert " ".join(result.cure.flags).startswith(FIRST[words])


def test_a_missing_model_has_no_mend() -> None:
    here = open_session(BOOK, NEWEST)
    result = check_launch(here, here.read(["--tp-size", "2"]), find_gpu("b200"))
    assert result.cures == ()


NAMES = sorted({name for release in BOOK.releases for name in BOOK.edition(release.version).command_line.names})


@settings(max_examples=150, deadline=None)
@given(
    flags=st.lists(st.sampled_from(NAMES), min_size=1, max_size=3),
    values=st.lists(st.sampled_from(["", "1", "auto", "triton", "x", "extra_buffer"]), min_size=3, max_size=3),
)
def test_a_clean_cure_is_clean(flags: list[str], values: list[str]) -> None:
    here = open_session(BOOK, NEWEST)
    gpu = find_gpu("h100")
    argv = [word for flag, value in zip(flags, values, strict=False) for word in (flag, value) if word]
    launch = here.read(["--model-path", "qwen3-8b", *argv])
    for refusal in launch.refusals:
        for mend in mends(here.edition.command_line, refusal):
            assert here.read(["--model-path", "qwen3-8b", *mend.words]).refusals == ()
    if not launch.refusals:
        return
    for cure in check_launch(here, launch, gpu).cures:
        left = [word for word in cure.flags if not word.startswith("(")]
        kept = [word for name, word in launch.spelled.items() if name in cure.changes]
        again = here.read(here.edition.command_line.without(launch.parsed.words, cure.changes) + left)
        assert again.refusals == (), kept
        assert not check_launch(here, again, gpu, cures=False).rejected
