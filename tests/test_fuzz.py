"""No command line of a user's brings a traceback, hangs, or is executed; every misuse is one line."""

from __future__ import annotations

import json
import os
import string
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recommender.cli import run
from recommender.rulebook import load_rulebook
from tests.conftest import NEWEST

EXAMPLES = int(os.environ.get("RECOMMENDER_FUZZ", "300"))
OWN = (
    "check recommend explain rules profiles list show --help --version --gpu --gpus --model --draft --sglang --set --free --env "
    "--concurrency --top --strict --allow-unknown --format --cases --root --topic -- - = , table json flags yaml command jsonl "
    "b200 8xb200 h100 cpu 0x 0.5.23 0.5.99 0.1 latest topk=4 steps=3 topk=$X llama-3.1-8b deepseek-v3 kimi-linear-48b-a3b "
    "eagle3-llama-8b-draft nobody/knows ../../etc/passwd /dev/null /proc/self/mem . trtllm-mha-chain-only"
).split()
LAUNCH = "python -m sglang.launch_server sglang serve $ARGS --config --model-path --speculative-algorithm EAGLE EAGLE3 NGRAM".split()


def words() -> st.SearchStrategy[list[str]]:
    """Command lines of the tool: its own words, the engine's flags, and anything at all."""
    line = load_rulebook().catalogue.command_line(NEWEST)
    flags = [name for name in line.names if "config" not in name]
    strange = st.text(alphabet=string.printable + "\x00\x1b\u202e\U0001f600é", max_size=12)
    value = st.sampled_from(
        ["1", "4", "-1", "0", "true", "triton", "trtllm_mha", "1e999", "nan", "", "{}", "[1", "99999999999999999999"]
    )
    own = st.lists(st.one_of(st.sampled_from(OWN), value, strange), max_size=7)
    launch = st.lists(st.one_of(st.sampled_from(LAUNCH), st.sampled_from(flags), value, strange), max_size=10)
    start = st.sampled_from(
        [
            ["check", "--gpu", "b200"],
            ["recommend", "--gpu", "h100", "--model", "llama-3.1-8b", "--top", "1"],
            ["check"],
            [],
        ]
    )
    return st.builds(lambda a, b, c, d: [*a, *b, *(["--", *c] if d else [])], start, own, launch, st.booleans())


@pytest.fixture(scope="module", autouse=True)
def quiet_machine() -> Iterator[None]:
    """No device to detect, nothing to read from standard input."""
    path, stdin = os.environ.get("PATH", ""), os.dup(0)
    os.environ["PATH"] = "/nonexistent"
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    yield
    os.dup2(stdin, 0)
    os.environ["PATH"] = path


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(words())
def test_no_command_line_brings_a_traceback(line: list[str]) -> None:
    code = run(line)
    assert code in (0, 1, 2)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.one_of(
        st.binary(max_size=60),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=8),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["id", "argv", "sglang", "hardware", "env"]), inner, max_size=5)
            ),
            max_leaves=8,
        ).map(lambda value: json.dumps(value).encode()),
    )
)
def test_no_line_of_cases_stops_the_rest(line: bytes) -> None:
    from recommender.commands.cases import answerer

    reply = answerer(Path("/"))(line)
    assert "error" in reply or reply["verdict"] in ("accepts", "refuses", "unknown")
    json.dumps(reply)
