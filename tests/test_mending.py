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
from recommender.terms import UNKNOWN

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
    "--foo 3 --prompt-tokens-buckets 1": "(without --prompt-tokens-buckets) (without --foo 3)",
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


# words, and the command line that a program is told to run
ARGV = {
    "--cuda-graph-max-bs 8": "--cuda-graph-max-bs-decode 8",
    "--foo 3": "",
    "--foo 3 --attention-backend=trtlm_mha": "--attention-backend trtllm_mha",
    "--cuda-graph-max-bs 8 --speculative-algorithm NGRAM --attention-backend trtllm_mha": (
        "--speculative-algorithm NGRAM --attention-backend trtllm_mha --speculative-ngram-max-bfs-breadth 1"
        " --cuda-graph-max-bs-decode 8"
    ),
    "--dp-size 2 --enable-dp-attention": "",
}


@pytest.mark.parametrize("words", ARGV)
def test_a_program_is_told_the_whole_command(words: str) -> None:
    here = open_session(BOOK, NEWEST)
    result = check_launch(here, here.read(shlex.split(f"{MODEL} {words}")), find_gpu("b200"))
    assert result.cure is not None
    assert " ".join(result.cure.argv) == f"{MODEL} {ARGV[words]}".strip()
    assert not check_launch(here, here.read(result.cure.argv), find_gpu("b200"), cures=False).rejected


def test_each_refusal_is_mended_alone() -> None:
    here = open_session(BOOK, NEWEST)
    result = check_launch(here, here.read(shlex.split(f"{MODEL} --foo 3 --page-size x")), find_gpu("b200"))
    last = [finding.cures[-1].argv for finding in result.findings]
    assert last == [("--foo", "3", *shlex.split(MODEL)), ("--page-size", "x", *shlex.split(MODEL))]


def test_a_command_with_an_unknown_word_is_not_written() -> None:
    here = open_session(BOOK, NEWEST)
    result = check_launch(here, here.read([*shlex.split(MODEL), "--port", UNKNOWN, "--foo", "3"]), find_gpu("b200"))
    assert result.cure is not None
    assert result.cure.argv == ()


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
        again = here.read(cure.argv)
        assert again.refusals == ()
        assert not check_launch(here, again, gpu, cures=False).rejected
