"""Error messages and logs led back to their laws: every recorded engine message, every form of log, hostile texts."""

from __future__ import annotations

import html
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recommender
from recommender import matching
from recommender.accounts import law_named, shown_value, traced_rules
from recommender.cli import run
from recommender.laws import Rule
from recommender.matching import Literals, Text, Traced, literals_of, needles_of
from recommender.render.explain import in_words, message_in_words, remedy_words
from recommender.reports import Change, Explanation, Remedy
from recommender.rulebook import load_rulebook
from recommender.terms import UNKNOWN
from tests.oracle import retrace
from tests.oracle.agree import matches
from tests.oracle.examples import all_examples
from tests.oracle.records import Answered, lines_of, read, recorded_file

RECORDED = Path(__file__).parent / "data" / "engine-messages-0.5.23.jsonl"
RELEASE = "0.5.23"
MESSAGE = "ValueError: trtllm_mha backend only supports topk = 1 for speculative decoding."


@cache
def rules() -> tuple[Rule, ...]:
    return tuple(load_rulebook().rules_of(RELEASE).values())


def trace(text: str) -> Traced:
    return matching.trace(text, rules())


def found(text: str) -> list[str]:
    return [match.rule.id for match in trace(text).matches]


def recorded() -> list[dict[str, Any]]:
    return lines_of(RECORDED)


def called(record: dict[str, Any]) -> str:
    return f"{record['rule']}: {record['message'][:40]}"


# --- a recorded refusal as the logs that people have ------------------------------------------------------------------


def traceback(record: dict[str, Any], prefix: str = "[2026-11-01 10:00:00 TP0] ") -> str:
    """The end of a server's log."""
    if record["type"] == "error":
        return f"usage: launch_server.py [-h] --model-path MODEL_PATH\nlaunch_server.py: error: {record['message']}\n"
    lines = [f"{prefix}Scheduler hit an exception: Traceback (most recent call last):"]
    for frame in ("launch_server.py:12:main", *record["frames"]):
        file, line, function = frame.rsplit(":", 2)
        lines.append(f'  File "/opt/venv/lib/python3.12/site-packages/sglang/{file}", line {line}, in {function}')
        lines.append("    something(server_args)")
        lines.append("    ^^^^^^^^^^^^^^^^^^^^^^")
    lines.append(f"{record['type']}: {record['message']}" if record["message"] else record["type"])
    lines += ["", f"{prefix}Received sigquit from a child process. It usually means the child failed."]
    return "\n".join(lines)


def coloured(log: str) -> str:
    return "".join(f"\x1b[31;1m{line}\x1b[0m\r\n" for line in log.split("\n"))


def in_a_container(log: str) -> str:
    return "".join(f"sglang-1  | {line}\n" for line in log.split("\n"))


def narrow(log: str) -> str:
    return re.sub(r"(.{80})", r"\1\n", log)


def wrapped_between_words(log: str) -> str:
    return "\n".join(re.sub(r"(.{50}\S*) ", r"\1\n", line) for line in log.split("\n"))


def in_a_pod(log: str) -> str:
    return "".join(f"2026-11-01T10:00:00.123456789Z stderr F {line}\n" for line in log.split("\n"))


def in_a_journal(log: str) -> str:
    return "".join(f"Nov 01 10:00:00 gpu-07 sglang[4711]: {line}\n" for line in log.split("\n"))


def of_a_worker(log: str) -> str:
    return "".join(f"\x1b[36m(SGLangWorker pid=12, ip=10.0.0.1)\x1b[0m {line}\n" for line in log.split("\n"))


def of_a_slurm_step(log: str) -> str:
    return "".join(f"3: {line}\n" for line in log.split("\n"))


def out_of_a_web_page(log: str) -> str:
    return html.escape(log)


def as_json(log: str) -> str:
    return json.dumps({"time": "2026-11-01T10:00:00Z", "level": "ERROR", "message": log})


def in_a_longer_log(log: str) -> str:
    before = "".join(
        f"[2026-11-01 09:00:{n % 60:02d} TP{n % 8}] Decode batch. #running-req: {n % 48}\n" for n in range(200)
    )
    return before + log + "\n[2026-11-01 10:00:01] INFO: Shutting down\n"


def chained(log: str) -> str:
    first = (
        'Traceback (most recent call last):\n  File "/a/b.py", line 3, in load\n    return table[key]\nKeyError: 7\n'
    )
    return f"{first}\nDuring handling of the above exception, another exception occurred:\n\n{log}"


LOGS = (
    str,
    coloured,
    in_a_container,
    narrow,
    wrapped_between_words,
    as_json,
    in_a_longer_log,
    chained,
    in_a_pod,
    in_a_journal,
    of_a_worker,
    of_a_slurm_step,
    out_of_a_web_page,
)


def likeliest(text: str) -> set[str]:
    """The law that explains a text, with those that no text tells from it: the same words at the same place."""
    matches = trace(text).matches
    return {match.rule.id for match in matches if match.level == matches[0].level}


def law_of(record: dict[str, Any]) -> Rule:
    return law_named(load_rulebook(), record["rule"])[0]


@pytest.mark.parametrize("record", recorded(), ids=called)
def test_a_log_leads_to_the_law_that_check_names(record: dict[str, Any]) -> None:
    for form in LOGS:
        assert law_of(record).id in likeliest(form(traceback(record))), form.__name__


@pytest.mark.parametrize("record", recorded(), ids=called)
def test_a_message_alone_leads_to_its_law_or_asks_for_the_traceback(record: dict[str, Any]) -> None:
    if not record["message"]:
        return
    for text in (record["message"], f"{record['type']}: {record['message']}", f'> "{record["message"]}"'):
        faint = {rule.id for rule in trace(text).faint}
        assert law_of(record).id in likeliest(text) | faint, text


def test_laws_that_say_nothing_of_their_own_need_their_place() -> None:
    for record in recorded():
        law = law_of(record)
        if law.engine_error_at and record["type"] == "TypeError":
            assert law.id not in found(f"TypeError: {record['message']}")
            elsewhere = {**record, "frames": ["torch/nn/modules.py:7:forward"]}
            assert law.id not in found(traceback(elsewhere))
    assert (
        found('Traceback (most recent call last):\n  File "/a/b.py", line 3, in c\n    assert x\nAssertionError\n')
        == []
    )


def test_several_laws_are_told_most_specific_first() -> None:
    records = [record for record in recorded() if record["type"] == "ValueError" and len(record["message"]) > 60]
    matches = trace(traceback(records[0]) + "\n" + traceback(records[-1])).matches
    assert {law_of(records[0]).id, law_of(records[-1]).id} <= {match.rule.id for match in matches}
    assert [match.rank for match in matches] == sorted(match.rank for match in matches)


# --- every law that the source raises, in every covered release -------------------------------------------------------

STATEMENTS = Path(__file__).parent / "data" / "engine-statements.jsonl.xz"
UNSTATED = Path(__file__).parent / "data" / "rules-without-statements.txt"


@cache
def answered_examples(release: str) -> tuple[Answered, ...]:
    return tuple(read(recorded_file(release, "examples"))[1])


@cache
def statements() -> tuple[dict[str, Any], ...]:
    return tuple(lines_of(STATEMENTS))


def stated_in(release: str) -> list[dict[str, Any]]:
    """The statements of the laws that hold in a release, as records of a refusal."""
    laws = load_rulebook().rules_of(release)
    return [
        {**entry, "frames": [f"srt/{entry['file']}:{entry['line']}:{entry['function']}"]}
        for entry in statements()
        if release in entry["releases"] and entry["rule"] in laws
    ]


def leads_elsewhere(release: str, text: str, rule: str) -> str:
    """Where a text of a release leads instead of to a rule; empty when the rule is among the likeliest."""
    traced = matching.trace(text, traced_rules(load_rulebook(), release), release)
    best = retrace.likeliest(traced, text)
    return "" if rule in best else f"{rule}: {best or traced.faint or 'nothing'}"


COVERED = tuple(release.version for release in load_rulebook().releases)
RELEASES = sorted({release for entry in statements() for release in entry["releases"]} & set(COVERED))


@pytest.mark.parametrize("release", RELEASES)
def test_what_the_source_raises_leads_to_its_law(release: str) -> None:
    lost = [leads_elsewhere(release, traceback(entry), entry["rule"]) for entry in stated_in(release)]
    assert not list(filter(None, lost)), "two laws share these words: make their patterns tell them apart"


@pytest.mark.parametrize("release", RELEASES)
def test_what_the_source_raises_leads_to_its_law_without_a_traceback(release: str) -> None:
    laws = load_rulebook().rules_of(release)
    bare = [entry for entry in stated_in(release) if not laws[entry["rule"]].engine_error_at]
    lost = [leads_elsewhere(release, f"{entry['type']}: {entry['message']}", entry["rule"]) for entry in bare]
    assert len(bare) > 100
    assert not list(filter(None, lost))


@cache
def refused_examples() -> tuple[tuple[str, str, dict[str, Any]], ...]:
    """What the engines said to the examples that break a law: the release, the law, and the refusal."""
    answers = {
        (release, each.device, each.argv, tuple(sorted(each.env.items()))): each
        for release in COVERED
        if recorded_file(release, "examples").exists()
        for each in answered_examples(release)
    }
    found = []
    for example in all_examples(load_rulebook()):
        asked = (example.release, example.engine_device, example.argv, tuple(sorted(example.env.items())))
        answer = answers.get(asked)
        if example.kind != "breaks" or answer is None or answer.ok is not False:
            continue
        if example.rule.engine_error and matches(example.rule, answer):
            said = {"type": answer.type, "message": answer.message, "frames": list(answer.chain)}
            found.append((example.release, example.rule.id, said))
    return tuple(found)


def test_what_an_engine_said_to_an_example_leads_to_its_law() -> None:
    assert len(refused_examples()) > 500
    lost = [leads_elsewhere(release, traceback(said), rule) for release, rule, said in refused_examples()]
    assert not list(filter(None, lost))


def test_the_words_of_every_law_were_found_in_the_source_or_heard_from_an_engine() -> None:
    """The exceptions say nothing of their own, or speak with the words of a library; the list may only shrink."""
    assert tuple(RELEASES) == COVERED, "python -m tests.oracle.statements RELEASES"
    known = {entry["rule"] for entry in statements()} | {rule for _, rule, _ in refused_examples()}
    named = {rule.id for release in RELEASES for rule in load_rulebook().rules_of(release).values()}
    lost = {name for name in named - known if any(rule.engine_error for rule in load_rulebook().rules[name])}
    listed = {line for line in UNSTATED.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"}
    assert lost <= listed, "record their examples, or let python -m tests.oracle.statements RELEASES find their words"
    assert listed <= lost, "found now: take it off the list"


# --- what patterns cannot do without ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "needles"),
    [
        ("plain text here", ("plain text here",)),
        ("^anchored text$", ("anchored text",)),
        (r"topk \(1\) only", ("topk (1) only",)),
        (r"size of \d+ must match", (" must match",)),
        ("first words|other words", ("first words", "other words")),
        ("(alpha|beta) is required", (" is required",)),
        ("colou?r is missing", ("r is missing",)),
        ("is (one thing|another thing) x", ("another thing", "one thing")),
        (r"[Cc]onfig(uration)? files", (" files",)),
        ("must not(?! be) follow", ("must not",)),
        ("repeat+ed words", ("ed words",)),
        ("^$", ()),
        (r"\d+", ()),
        ("(?i)any case", ()),
        ("(?s)dot matches all", ("dot matches all",)),
        ("x{2,3}yyyyyy", ("yyyyyy",)),
        ("good text|.*", ()),
    ],
)
def test_the_literal_text_of_a_pattern(pattern: str, needles: tuple[str, ...]) -> None:
    assert set(needles_of(literals_of(pattern))) == set(needles)


def test_every_pattern_has_something_to_go_by() -> None:
    lost = [
        rule.id
        for rule in rules()
        if rule.engine_error
        and not needles_of(literals_of(rule.engine_error))
        and not needles_of(literals_of(rule.engine_error_at))
    ]
    assert not lost, "explain cannot find these: give engine_error literal text, or an engine_error_at"


def test_what_matches_a_pattern_holds_a_needle() -> None:
    messages = [record["message"] for record in recorded()]
    for rule in rules():
        pattern, needles = re.compile(rule.engine_error), needles_of(literals_of(rule.engine_error))
        for message in messages if needles else ():
            assert not pattern.search(message) or any(needle in message for needle in needles), rule.id


pieces = st.recursive(
    st.sampled_from(["a", "bc", "def ", "x1", r"\.", r"\(", ".", "[xy]", r"\d", " "]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda each: f"({'|'.join(each)})"),
        inner.map(lambda each: f"(?:{each})?"),
        st.sampled_from(["a", "b", r"\."]).flatmap(
            lambda each: st.sampled_from(["*", "+", "?", "{2}"]).map(lambda q: each + q)
        ),
    ),
    max_leaves=12,
)


@given(pieces, st.data())
@settings(max_examples=150, deadline=None)
def test_a_needle_is_in_whatever_a_pattern_matches(pattern: str, data: st.DataObject) -> None:
    text = data.draw(st.from_regex(re.compile(pattern, re.ASCII), fullmatch=True))
    needles = needles_of(literals_of(pattern))
    assert not needles or any(needle in text for needle in needles)


def test_the_weight_of_a_match_is_its_literal_text() -> None:
    (simple,) = literals_of("only supports topk")
    assert simple.weight("backend only supports topk = 1") == len("only supports topk")
    (grouped,) = literals_of("(alpha|beta) is required")
    assert grouped.weight("beta is required") == len("beta is required")
    assert Literals(("absent",), ()).weight("nothing") == 0


# --- size and malice --------------------------------------------------------------------------------------------------


def seconds(work: Callable[[], object]) -> float:
    """Processor seconds, so that a busy machine does not count."""
    start = time.process_time()
    work()
    return time.process_time() - start


def test_five_megabytes_take_less_than_a_second() -> None:
    trace("warm")
    line = (
        "[2026-11-01 10:00:{:02d} TP{}] Decode batch. #running-req: {}, #token: {}, token usage: 0.{}, "
        "accept len: 2.{}, cuda graph: True"
    )
    log = "\n".join(line.format(n % 60, n % 8, n % 48, n * 7, n % 99, n % 9) for n in range(44000))
    assert len(log) > 5_000_000
    record = recorded()[0]
    assert seconds(lambda: trace(log)) < 1
    text = f"{log}\n{traceback(record)}"
    assert seconds(lambda: trace(text)) < 1
    assert law_of(record).id in likeliest(text)


def hostile() -> Iterator[tuple[str, str]]:
    million = 1_000_000
    wild = [rule.engine_error for rule in rules() if ".*" in rule.engine_error]
    beginnings = [max(literals_of(pattern)[0].runs, key=len) for pattern in wild if literals_of(pattern)[0].runs]
    yield "newlines", "\n" * million
    yield "one line", "A" * million
    yield "dots", "A." * (million // 2)
    yield "errors", "ValueError: " * (million // 12)
    yield "bare asserts", "AssertionError\n" * (million // 15)
    yield "frames", '  File "a", line 1, in _handle\n' * (million // 31)
    yield "half frames", 'File "' * (million // 6)
    yield "escapes", "\x1b[" * (million // 2)
    yield "zeros", "\0" * million
    yield "emoji", "\U0001f600" * (million // 4)
    yield "surrogates", "\ud800" * (million // 4)
    yield "backslashes", "\\n" * (million // 2)
    yield "every pattern", "\n".join(rule.engine_error for rule in rules()) * 20
    yield "every needle", " ".join(" ".join(needles_of(literals_of(rule.engine_error))) for rule in rules()) * 20
    for beginning in beginnings[:12]:
        yield f"half of {beginning!r}", beginning * (million // len(beginning))
        yield f"lines of half of {beginning!r}", f"{beginning}\n" * (million // len(beginning))


@pytest.mark.parametrize(("name", "text"), list(hostile()), ids=[name for name, _ in hostile()])
def test_a_hostile_text_does_not_hang(name: str, text: str) -> None:
    assert seconds(lambda: trace(text)) < 10, name


def test_no_pattern_of_the_rulebook_is_catastrophic() -> None:
    def worst(pattern: str) -> float:
        compiled = re.compile(pattern)
        runs = [run for each in literals_of(pattern) for run in each.runs] or ["x"]
        texts = ["".join(runs) * 40, *(run * (1500 // len(run)) for run in runs)]
        return max(seconds(lambda text=text: compiled.search(text[:1500])) for text in texts)  # type: ignore[misc]

    patterns = {
        (rule.id, pattern) for rule in rules() for pattern in (rule.engine_error, rule.engine_error_at) if pattern
    }
    slow = {name for name, pattern in patterns if worst(pattern) > 0.1}
    assert not slow, "give these patterns fewer wildcards"


@given(st.text(max_size=400))
@settings(max_examples=60, deadline=None)
def test_any_text_has_an_answer(text: str) -> None:
    assert isinstance(recommender.explain(text), Explanation)


@given(st.sampled_from(recorded()), st.integers(0, 2000), st.integers(0, 2000), st.text(max_size=20))
@settings(max_examples=60, deadline=None)
def test_a_damaged_log_has_an_answer(record: dict[str, Any], start: int, stop: int, noise: str) -> None:
    log = traceback(record)
    assert isinstance(recommender.explain(log[:start] + noise + log[stop:]), Explanation)


def test_a_text_is_read_without_colours_in_one_spelling() -> None:
    text = Text("\x1b[1;31mred\x1b[0m\r\nsecond \u2019quoted\u2019\x1b]8;;http://x\x07link\x1b]8;;\x07")
    assert text.lines == "red\nsecond 'quoted'link"


# --- what is told of a law --------------------------------------------------------------------------------------------


def test_an_id_is_explained_without_a_text() -> None:
    explanation = recommender.explain("trtllm-mha-chain-only")
    (law,) = explanation.laws
    assert law.rule == "trtllm-mha-chain-only"
    assert law.said == ""
    assert law.releases
    assert law.sources
    assert law.in_force
    assert explanation.judged_as == RELEASE


def test_settings_that_the_text_shows_are_put_into_the_cure() -> None:
    text = (
        'server_args=ServerArgs(model_path="x", speculative_num_steps=3, speculative_eagle_topk=4, '
        f"speculative_num_draft_tokens=8)\n{MESSAGE}"
    )
    (law,) = recommender.explain(text).laws
    assert remedy_words(law.remedies[0]) == (
        "--speculative-eagle-topk 1 --speculative-num-steps 4 --speculative-num-draft-tokens 5"
    )
    assert law.given["speculative_eagle_topk"] == 4
    bare = recommender.explain(text.split("\n")[1]).laws[0]
    assert "<" in remedy_words(bare.remedies[0])
    assert not bare.given


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("page_size=64, x", 64),
        ("page_size=None)", None),
        ("page_size=1 then page_size=16,", 16),
        ("my_page_size=7", UNKNOWN),
        ("page_size=1.5", UNKNOWN),
        ("sglang serve --page-size 32 --tp 2", 32),
        ("sglang serve --page-size=32", 32),
        ("sglang serve --page-size many", UNKNOWN),
        ("nothing", UNKNOWN),
        ("page_size=", UNKNOWN),
    ],
)
def test_a_setting_is_read_off_a_text(text: str, value: object) -> None:
    line = load_rulebook().edition(RELEASE).command_line
    assert shown_value(text, "page_size", line) == value


def test_the_parser_s_refusal_names_the_nearest_flag() -> None:
    (law,) = recommender.explain("launch_server.py: error: unrecognized arguments: --mamba-scheduler-strateg auto").laws
    assert any(flag.startswith("--mamba") for flag in law.near)
    (law,) = recommender.explain("error: ambiguous option: --speculative-draft could match --a, --b").laws
    assert "--speculative-draft-model-path" in law.near


def test_a_word_that_is_no_id_has_neighbours() -> None:
    explanation = recommender.explain("trtllm-mha-chian-only")
    assert not explanation.laws
    assert explanation.near[0] == "trtllm-mha-chain-only"


def test_a_message_from_memory_has_kin() -> None:
    explanation = recommender.explain("AttributeError (set_embed or hot_token_id is missing on the target class)")
    assert not explanation.laws
    assert "eagle3-needs-an-eagle3-draft" in explanation.akin
    assert recommender.explain("hello world").akin == ()


def test_a_message_that_breaks_off_has_the_laws_that_would_go_on() -> None:
    explanation = recommender.explain("ValueError: Currently standalone speculative decoding d...")
    assert not explanation.laws
    assert explanation.cut == ("standalone-excludes-attention-dp",)
    assert recommender.explain("ValueError: something is not supp").cut == ()
    assert recommender.explain("hello world").cut == ()


def test_most_messages_cut_at_four_fifths_are_led_on() -> None:
    whole = [record for record in recorded() if len(record["message"]) > 50]
    led = 0
    for record in whole:
        text = f"{record['type']}: {record['message'][: len(record['message']) * 4 // 5]}"
        explanation = recommender.explain(text)
        laws = {law.rule for law in explanation.laws} | {*explanation.faint, *explanation.akin, *explanation.cut}
        led += law_of(record).id in laws
    assert led / len(whole) > 0.9


GENERAL = load_rulebook().library.one("constraints/sglang/messages.yaml")["messages"]


def test_a_general_message_is_explained_but_names_no_law(capsys: pytest.CaptureFixture[str]) -> None:
    text = "[2026-11-01 10:00:00 TP0] RuntimeError: CUDA error: an illegal memory access was encountered"
    assert run(["explain", text]) == 1
    printed = capsys.readouterr()
    assert "CUDA_LAUNCH_BLOCKING=1" in printed.out
    assert "no law" in printed.err
    explanation = recommender.explain(text)
    assert not explanation.laws
    assert explanation.general[0].said == text


def test_a_law_comes_before_what_is_general() -> None:
    explanation = recommender.explain(f"{MESSAGE}\nReceived sigquit from a child process. It usually means")
    assert explanation.laws
    assert not explanation.general


@pytest.mark.parametrize("entry", GENERAL, ids=lambda entry: entry["said"][:30])
def test_no_law_is_raised_in_the_words_of_a_general_message(entry: dict[str, Any]) -> None:
    pattern = re.compile(entry["said"])
    assert not [each["rule"] for each in statements() if pattern.search(each["message"])]


def test_the_last_error_is_named_when_no_law_explains_it() -> None:
    explanation = recommender.explain("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\nbye")
    assert explanation.last_error.startswith("torch.OutOfMemoryError: CUDA out of memory")


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("= chain_depth + 1", "chain_depth + 1"),
        (
            "= max(speculative_num_steps, speculative_eagle_topk)",
            "the larger of speculative_num_steps and speculative_eagle_topk",
        ),
        ("= max_running_requests or 64", "max_running_requests, or 64 where it is unset"),
        ("= 'bf16' if kv_cache_dtype == 'bfloat16' else 'auto'", "bf16 if kv_cache_dtype is bfloat16, else auto"),
        ("= (speculative_num_steps or 3) + 1", "(speculative_num_steps, or 3 where it is unset) + 1"),
        ("= a if not unset(b) else c", "a if b is set, else c"),
        ("= model.context_length", "model.context_length"),
        ("= len(lora_paths)", "the number of lora_paths"),
        ("= get(x, 'y')", "get(x, 'y')"),
        ("= not a sentence", "not a sentence"),
    ],
)
def test_expressions_in_words(expression: str, words: str) -> None:
    assert in_words(expression) == words


def test_every_cure_and_message_has_words() -> None:
    book = load_rulebook()
    for rule in rules():
        (law,) = recommender.explain(rule.id, book=book).laws
        assert all(remedy_words(remedy) for remedy in law.remedies), rule.id
        assert "{" not in message_in_words(law.message).replace("{{", ""), rule.id


def test_a_cure_says_what_to_leave_out() -> None:
    gone = Change(setting="b", value=None, flag="--b")
    kept = Change(setting="a", value=1, flag="--a", words=("--a", "1"))
    env = Change(setting="V", value=True, flag="V", words=("V=1",), is_variable=True)
    assert remedy_words(Remedy(changes=(kept, gone))) == "--a 1, without --b"
    assert remedy_words(Remedy(changes=(gone,))) == "leave out --b"
    assert remedy_words(Remedy(changes=(kept, env))) == "V=1 --a 1"


# --- the command ------------------------------------------------------------------------------------------------------


def test_a_file_is_read_by_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recommender.commands.explain.LARGEST_TAIL", 1 << 12)
    monkeypatch.setattr("recommender.commands.explain.CHUNK", 1 << 10)
    log = tmp_path / "server.log"
    log.write_text("x" * 50_000 + "\n" + MESSAGE, encoding="utf-8")
    assert run(["explain", str(log)]) == 0
    assert "chains only" in capsys.readouterr().out
    log.write_text(MESSAGE + "\n" + "x" * 50_000, encoding="utf-8")
    assert run(["explain", str(log)]) == 1


def test_a_file_of_any_bytes_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "bytes.log"
    log.write_bytes(bytes(range(256)) + b"\n" + MESSAGE.encode() + b"\xff\xfe")
    assert run(["explain", str(log)]) == 0
    log.write_bytes(("\ufeff" + MESSAGE).encode("utf-16"))
    assert run(["explain", str(log)]) == 0
    log.write_bytes(b"")
    assert run(["explain", str(log)]) == 1


def test_a_pipe_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(MESSAGE, encoding="utf-8"))
    writer.start()
    assert run(["explain", str(pipe)]) == 0
    writer.join()


def test_what_is_no_log_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", str(tmp_path)]) == 2
    assert run(["explain", "/dev/null"]) == 2
    secret = tmp_path / "secret.log"
    secret.write_text(MESSAGE, encoding="utf-8")
    secret.chmod(0)
    expected = 0 if os.access(secret, os.R_OK) else 2
    assert run(["explain", str(secret)]) == expected
    err = capsys.readouterr().err
    assert "Traceback" not in err
    assert all(line.startswith("recommender: ") for line in err.splitlines())


def test_json_keeps_stdout_to_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", MESSAGE, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["laws"][0]["rule"] == "trtllm-mha-chain-only"
    assert {"schema", "rulebook", "sglang", "judged_as"} <= document.keys()
    assert run(["explain", "no such thing", "--format", "json"]) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["laws"] == []
    assert printed.err.startswith("recommender: no law")
