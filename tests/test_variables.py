"""Environment variables of a launch: what the engine makes of their text, and which names it never reads."""

from __future__ import annotations

import shlex

import pytest

from recommender.api import check
from recommender.cli import run
from recommender.rulebook import load_rulebook
from recommender.session import environment_value, open_session
from recommender.terms import UNKNOWN, CheckResult, Value

SETTINGS = load_rulebook().settings
LLAMA = ["--model-path", "llama-3.1-8b"]


def said(result: CheckResult, rule: str) -> str:
    return next((finding.message for finding in result.findings if finding.rule == rule), "")


def read(name: str, text: str) -> tuple[Value, bool]:
    return environment_value(SETTINGS["environment"][name], SETTINGS["environment_readers"], text)


@pytest.mark.parametrize(
    ("name", "text", "value", "fits"),
    [
        ("SGLANG_USE_AITER", "Yes", True, True),
        ("SGLANG_USE_AITER", "n", False, True),
        ("SGLANG_USE_AITER", "on", False, False),
        ("SGLANG_USE_AITER", "", False, False),
        ("SGLANG_ENABLE_JIT_DEEPGEMM", "off", True, False),  # the default is yes
        ("SGLANG_USE_CPU_ENGINE", "true", False, True),  # compared with "1", and nothing is said
        ("SGLANG_USE_CPU_ENGINE", "1", True, True),
        ("AITER_ENABLE_AOT_GLUON_PA_MQA_LOGITS", "yes", False, False),
        ("SGLANG_GRPC_WORKER_THREADS", "many", 4, False),
        ("SGLANG_GRPC_WORKER_THREADS", " 8 ", 8, True),
        ("SGLANG_GRPC_PORT", "x", UNKNOWN, False),
        ("SGLANG_SIMULATE_ACC_LEN", "2.5", 2.5, True),
    ],
)
def test_a_text_is_read_as_the_engine_reads_it(name: str, text: str, value: Value, fits: bool) -> None:
    assert read(name, text) == (value, fits)


def test_every_reader_is_one_that_is_described() -> None:
    readers = SETTINGS["environment_readers"]
    for entry in SETTINGS["environment"].values():
        assert entry["type"] in ("bool", "int", "float", "str")
        assert entry.get("reader", "bool") in readers


def test_every_variable_that_rules_read_is_named_by_a_covered_release() -> None:
    book = load_rulebook()
    named = set().union(*(open_session(book, item.version).engine_variables for item in book.releases))
    prefix = SETTINGS["environment_prefix"]
    assert [name for name in SETTINGS["environment"] if name.startswith(prefix) and name not in named] == []


def test_a_misspelt_variable_names_the_nearest() -> None:
    result = check(LLAMA, gpu="h100", env={"SGLANG_USE_AITR": "1"})
    assert "SGLANG_USE_AITER" in said(result, "variables-are-named-by-the-engine")
    assert result.not_judged_flags == ()
    assert not result.rejected


def test_a_variable_of_the_engine_that_no_rule_reads_is_not_judged() -> None:
    result = check(LLAMA, gpu="h100", env={"SGLANG_INT4_WEIGHT": "1", "SGLANG_CACHE_DIT_ANYTHING": "1", "PATH": "/bin"})
    assert result.not_judged_flags == ("SGLANG_INT4_WEIGHT", "SGLANG_CACHE_DIT_ANYTHING")
    assert result.findings == ()


def test_a_variable_of_a_later_release_is_not_known_to_an_earlier_one() -> None:
    env = {"SGLANG_AITER_ASM_PREFILL_HD128": "1"}  # since 0.5.22
    assert said(check(LLAMA, gpu="h100", env=env, sglang="0.5.19"), "variables-are-named-by-the-engine")
    assert not said(check(LLAMA, gpu="h100", env=env, sglang="0.5.23"), "variables-are-named-by-the-engine")


def test_the_old_prefix_means_the_new_one() -> None:
    long = [*LLAMA, "--context-length", "200000"]
    assert check(long, gpu="h100").rejected
    assert not check(long, gpu="h100", env={"SGL_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"}).rejected


def test_a_cure_may_be_a_variable() -> None:
    result = check([*LLAMA, "--context-length", "200000"], gpu="h100")
    assert ("(with SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1)",) in [cure.flags for cure in result.cures]


def test_a_recommended_command_sets_the_variables_it_rests_on(capsys: pytest.CaptureFixture[str]) -> None:
    words = "recommend --gpu b200 --model llama-3.1-8b --set context_length=200000"
    variable = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1"
    assert run(shlex.split(f"{words} --env {variable} --format command")) == 0
    command = capsys.readouterr().out
    assert command.startswith(f"{variable} python -m ")
    assert run(["check", "--gpu", "b200", "--", *shlex.split(command)]) == 0
    capsys.readouterr()
    assert run(shlex.split(f"{words} --env {variable} --format flags")) == 0
    printed = capsys.readouterr()
    assert variable not in printed.out
    assert variable in printed.err


ORACLE = "--model-path qwen3-8b --sampling-backend token_oracle"


@pytest.mark.parametrize("release", ["0.5.19", "0.5.23"])
@pytest.mark.parametrize(("text", "taken"), [("1", True), ("0", False), (UNKNOWN, True), (None, False)])
def test_a_variable_may_bring_a_choice(release: str, text: str | None, taken: bool) -> None:
    env = {} if text is None else {"SGLANG_KV_CANARY_ENABLE_TOKEN_ORACLE": text}
    result = check(shlex.split(ORACLE), gpu="h100", sglang=release, env=env)
    assert result.rejected is not taken


def test_a_class_from_outside_takes_images() -> None:
    words, name = shlex.split("--model-path qwen3-8b --chunked-prefill-size 2048"), "SGLANG_EXTERNAL_MM_MODEL_ARCH"
    alone = check(words, gpu="h100", sglang="0.5.23").values
    named = check(words, gpu="h100", sglang="0.5.23", env={name: "Qwen3ForCausalLM"}).values
    other = check(words, gpu="h100", sglang="0.5.23", env={name: "Qwen3"}).values
    changed = {key for key in named if named[key].value != alone[key].value} - {name}
    assert changed == {key for key in named if named[key].value != other[key].value} - {name}
    assert changed == {"cuda_graph_prefill_backend"}
