"""Environment variables of a launch: what the engine makes of their text, and which names it never reads."""

from __future__ import annotations

import shlex

import pytest

from recommender.api import check
from recommender.cli import run
from recommender.rulebook import load_rulebook
from recommender.session import open_session
from recommender.terms import UNKNOWN, CheckResult, Value
from recommender.variables import environment_value

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
    named = set().union(*(open_session(book, item.version).environment.names for item in book.releases))
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
    env = {"SGLANG_AITER_ASM_PREFILL_HD128": "1"}
    law = "variables-come-with-their-release"
    assert "0.5.22 is the first" in said(check(LLAMA, gpu="h100", env=env, sglang="0.5.19"), law)
    assert check(LLAMA, gpu="h100", env=env, sglang="0.5.22").findings == ()


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


BOOK = load_rulebook()
RELEASES = [item.version for item in BOOK.releases]
WORDS = BOOK.library.one("constraints/sglang/flags/variables.yaml")
NAMES = BOOK.library.one("constraints/sglang/flags/variables.json")["names"]
LAWS = {
    "retired": "retired-variables-change-nothing",
    "later": "variables-come-with-their-release",
    "old": "deprecated-variables-still-count",
    "stops": "forwarded-variables-are-converted",
    "bad": "variables-have-their-type",
    "unknown": "variables-are-named-by-the-engine",
}


@pytest.mark.parametrize("release", RELEASES)
def test_no_rule_rests_on_a_variable_that_the_release_does_not_read(release: str) -> None:
    """The value of such a variable is dropped, so a law of this release that asks for it alone would be dead."""
    session = open_session(BOOK, release)
    given = dict.fromkeys(session.variables, "1")
    dead = set(given) - set(session.environment.read(given).values)
    alone = {
        rule.id: names
        for rule in session.edition.rules.values()
        if rule.when.startswith("asked(") and (names := {name for name in dead if rule.when == f"asked({name})"})
    }
    assert alone == {}


@pytest.mark.parametrize("release", RELEASES)
def test_a_variable_is_read_or_what_became_of_it_is_said(release: str) -> None:
    session = open_session(BOOK, release)
    for name in (*NAMES, "SGLANG_NOBODY_EVER_READ_THIS"):
        reading = session.environment.read({name: "1"})
        kinds = {item.kind for item in reading.misread} - {"bad-variable"}
        assert all(item.message.startswith(name) for item in reading.misread)
        if kinds & {"retired-variable", "later-variable", "unknown-variable"}:
            assert (len(kinds), reading.ignored, reading.values) == (1, (), {})
        else:
            assert reading.ignored or reading.values, name


@pytest.mark.parametrize("release", RELEASES)
def test_what_does_the_work_of_an_old_variable_is_there(release: str) -> None:
    session = open_session(BOOK, release)
    for name in NAMES:
        fate = session.environment.fate(name)
        if fate.does not in ("retired", "ignores", "warns"):
            continue
        told = session.environment.instead(name, "1").removeprefix("; ").removesuffix(" does its work")
        spelled, _, value = told.partition("=")
        if spelled.startswith("--"):
            flag = session.edition.command_line.flag(spelled)
            assert flag is not None, (name, told)
            assert not value or not flag.choices or value in flag.choices, (name, told)
        elif spelled in NAMES:
            assert session.environment.is_live(spelled), (name, told)


def test_every_word_on_an_old_variable_is_heard_in_some_release() -> None:
    fates = {name: {open_session(BOOK, release).environment.fate(name).does for release in RELEASES} for name in WORDS}
    assert [name for name, does in fates.items() if not does & {"retired", "ignores", "warns"}] == []
    for name, entry in WORDS.items():
        assert ("now" in entry) != ("instead" in entry), name
        assert set(entry["source"]) == {"file", "symbol", "release"}, name


@pytest.mark.parametrize(
    ("release", "name", "text", "law", "words"),
    [
        ("0.5.15", "SGLANG_ENABLE_SPEC_V2", "1", "retired", "--disable-overlap-schedule"),
        ("0.5.23", "SGLANG_ENABLE_SPEC_V2", "0", "retired", "as does every covered release"),
        ("0.5.20", "SGLANG_NSA_FUSE_TOPK", "0", "old", "takes it as SGLANG_DSA_FUSE_TOPK=0"),
        (
            "0.5.21",
            "SGLANG_NSA_FUSE_TOPK",
            "0",
            "retired",
            "0.5.20 was the last release to read it; SGLANG_DSA_FUSE_TOPK=0",
        ),
        ("0.5.19", "SGLANG_ENABLE_CP_V2", "1", "", ""),
        ("0.5.20", "SGLANG_ENABLE_CP_V2", "1", "retired", "0.5.19 was the last"),
        ("0.5.17", "SGLANG_MORI_FP8_DISP", "1", "old", "SGLANG_MORI_DISPATCH_DTYPE=fp8 does its work"),
        ("0.5.18", "SGLANG_CUTLASS_MOE", "1", "retired", "0.5.17 was the last"),
        ("0.5.15", "SGLANG_ENABLE_GRPC", "1", "", ""),
        ("0.5.16", "SGLANG_ENABLE_GRPC", "1", "retired", "--grpc-port does its work"),
        ("0.5.18", "SGLANG_DISABLE_TP_MEMORY_INBALANCE_CHECK", "1", "old", "SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK=0"),
        ("0.5.23", "SGLANG_FORWARD_TIMEOUT_MS", "1500", "retired", "SGLANG_REQ_RUNNING_TIMEOUT=1.5 does its work"),
        ("0.5.20", "SGLANG_QUEUED_TIMEOUT_MS", "5s", "stops", "5s"),
        ("0.5.21", "SGLANG_QUEUED_TIMEOUT_MS", "5s", "retired", "SGLANG_REQ_WAITING_TIMEOUT does its work"),
        ("0.5.23", "SGLANG_USE_TRITON_ROUTER_SUM", "1", "old", "SGLANG_USE_CUSTOM_ROUTER_SUM=1"),
        ("0.5.18", "SGLANG_AITER_HONOR_EXPLICIT_MEM_FRACTION", "1", "later", "0.5.19 is the first"),
        ("0.5.22", "SGLANG_USE_CUDA_IPC_TRANSPORT", "1", "old", "--mm-feature-transport=cuda_ipc"),
        ("0.5.22", "SGL_USE_DEEPGEMM_BMM", "1", "old", "takes it as SGLANG_USE_DEEPGEMM_BMM"),
        ("0.5.23", "SGL_CPU_QUANTIZATION", "1", "old", "takes it as SGLANG_CPU_QUANTIZATION"),
        ("0.5.23", "SGLANG_DSA_FUSE_TOPK", "yes please", "bad", "expects bool"),
        ("0.5.15", "SGLANG_NSA_FUSE_TOPK", "yes please", "bad", "expects bool"),
        ("0.5.23", "SGLANG_ENABLE_SPEC_V3", "1", "unknown", "nothing in SGLang 0.5.23 names it"),
    ],
)
def test_what_became_of_a_variable(release: str, name: str, text: str, law: str, words: str) -> None:
    result = check(LLAMA, gpu="h100", sglang=release, env={name: text})
    heard = {finding.rule for finding in result.findings} & set(LAWS.values())
    assert heard >= ({LAWS[law]} if law else set())
    assert heard <= {LAWS[law], LAWS["old"]} if law else not heard
    assert not law or words in said(result, LAWS[law])
    assert result.rejected is (law == "stops")


def test_a_deprecated_name_gives_its_value_to_the_new_one() -> None:
    environment = open_session(BOOK, "0.5.20").environment
    old, new = "SGLANG_CUTEDSL_MOE_NVFP4_DISPATCH", "SGLANG_MOE_NVFP4_DISPATCH"
    assert environment.read({old: "1"}).values == {new: True}
    assert environment.read({new: "0", old: "1"}).values == {new: True}  # the table of the engine writes over it
    assert open_session(BOOK, "0.5.21").environment.read({old: "1"}).values == {}


@pytest.mark.parametrize("turned", [False, True])
def test_the_old_prefix_writes_over_the_new_name(turned: bool) -> None:
    given = [("SGLANG_ENABLE_PP_SPEC", "0"), ("SGL_ENABLE_PP_SPEC", "1")]
    environment = open_session(BOOK, "0.5.23").environment
    assert environment.read(dict(reversed(given) if turned else given)).values == {"SGLANG_ENABLE_PP_SPEC": True}


def test_a_variable_that_a_release_does_not_read_moves_nothing() -> None:
    words = shlex.split("--model-path llama-3.1-8b --attention-backend aiter --mem-fraction-static 0.8")
    env = {"SGLANG_AITER_HONOR_EXPLICIT_MEM_FRACTION": "1"}
    for release in ("0.5.18", "0.5.19"):
        alone, under = (check(words, gpu="mi300x", sglang=release, env=given).values for given in ({}, env))
        assert (alone["mem_fraction_static"] == under["mem_fraction_static"]) is (release == "0.5.18")


def test_what_an_image_sets_is_not_said_to_its_user() -> None:
    environment = open_session(BOOK, "0.5.15").environment
    env = {"SGLANG_AITER_HONOR_EXPLICIT_MEM_FRACTION": "1", "SGLANG_USE_AITER": "maybe"}
    assert environment.read(env, frozenset(env)).misread == ()
    assert len(environment.read(env, frozenset({"SGLANG_USE_AITER"})).misread) == 1


def test_a_pinned_variable_that_the_release_does_not_read_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    words = "recommend --gpu b200 --model llama-3.1-8b --sglang 0.5.23 --set SGLANG_ENABLE_CP_V2=1"
    assert run(shlex.split(words)) == 2
    assert "SGLANG_ENABLE_CP_V2: SGLang 0.5.23 ignores it" in capsys.readouterr().err
