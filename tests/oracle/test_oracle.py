"""The harness itself: what it draws, writes and refuses; the marked test asks the engine again what it once answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from recommender.rulebook import load_rulebook
from recommender.session import open_session
from recommender.terms import Cure
from tests.oracle import client, compare, peel, record, sample
from tests.oracle.agree import equal
from tests.oracle.devices import USUAL, devices_of
from tests.oracle.examples import NoRuleError, all_examples, rules_named
from tests.oracle.folders import example_checkpoints, profiles, write_folders
from tests.oracle.records import Answered, answered, read, recorded_file

RELEASE = "0.5.23"


@pytest.mark.parametrize("kind", sample.KINDS)
@pytest.mark.parametrize("wild", [False, True])
def test_equal_seeds_draw_equal_launches(kind: str, wild: bool) -> None:
    first = list(sample.launches(7, 20, "b200", kind, wild=wild))
    assert first == list(sample.launches(7, 20, "b200", kind, wild=wild))
    assert first != list(sample.launches(8, 20, "b200", kind, wild=wild))
    assert len({case["id"] for case in first}) == 20
    assert kind == "examples" or all(case["argv"][1].startswith("models/") for case in first)


def test_a_release_is_asked_about_the_examples_of_all_others() -> None:
    """Every edition's, none twice, and without the flags that only other releases know."""
    drawn = {
        release: list(sample.launches(1, 9999, "b200", "examples", release=release)) for release in ("0.5.15", RELEASE)
    }
    for release, cases in drawn.items():
        asked = {(*case["argv"], *sorted(case.get("env", {}).items())) for case in cases}
        assert len(asked) == len(cases)
        here = load_rulebook().edition(release).command_line
        for example in (each for each in all_examples(load_rulebook()) if each.engine_device == "b200"):
            if all(word in here.names for word in example.argv if word.startswith("--")):
                assert (*example.argv, *sorted(example.env.items())) in asked, example.name
    assert any("--attn-dp-size" in case["argv"] for case in drawn[RELEASE])
    assert not any("--attn-dp-size" in case["argv"] for case in drawn["0.5.15"])


def test_a_flag_of_no_release_stays_in_an_example() -> None:
    cases = sample.launches(1, 9999, "h100", "examples", release="0.5.15")
    assert any("--speculative-num-stepz" in case["argv"] for case in cases)


def test_rules_are_named_by_a_list_of_patterns() -> None:
    ids = ("page-size-positive", "page-size-of-trtllm", "topk-positive")
    assert rules_named("", ids) == frozenset(ids)
    assert rules_named("^page, topk", ids) == frozenset(ids)
    assert rules_named("trtllm,topk", ids) == frozenset(ids[1:])


@pytest.mark.parametrize(
    ("patterns", "told"),
    [
        ("topk,page-size-positiv$", r"'page-size-positiv\$' matches no rule; nearest: page-size-positive"),
        ("zzz", r"'zzz' matches no rule$"),
        ("(", r"'\(' is no pattern: "),
    ],
)
def test_a_pattern_of_no_rule_is_one_line(patterns: str, told: str) -> None:
    with pytest.raises(NoRuleError, match=told) as caught:
        rules_named(patterns, ("page-size-positive", "topk-positive"))
    assert "\n" not in str(caught.value)


def test_examples_of_another_release_are_named() -> None:
    """A rule that ended is asked about at its own last release; elsewhere there is nothing to ask."""
    examples = all_examples(load_rulebook())
    ended = next(each for each in examples if each.release != RELEASE and each.rule.until)
    alone = [each for each in examples if each.rule.id == ended.rule.id and each.release == ended.release]
    with pytest.raises(NoRuleError, match=rf"{RELEASE} is asked about none of their examples, but {ended.release} is"):
        compare.chosen_examples(alone, [RELEASE], f"^{ended.rule.id}$")


def test_a_processor_is_named_as_one() -> None:
    assert all(case["argv"][-2:] == ["--device", "cpu"] for case in sample.launches(7, 5, "cpu", "harsh"))


def test_a_kind_may_say_its_own_count() -> None:
    drawn = record.drawn("b200", [1, 2], 3, ["plain", "harsh:5", "plain-wild:1"], RELEASE)
    assert len(drawn) == 2 * (3 + 5 + 1)


def test_given_launches_are_read_by_device(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(
        '# a remark\n{"hardware": "b200", "argv": "--tp-size 2"}\n{"device": "h100", "argv": ["--tp-size", "2"]}\n'
    )
    found = record.given_cases(path)
    assert [case["argv"] for cases in found.values() for case in cases] == [["--tp-size", "2"]] * 2
    assert list(found) == ["b200", "h100"]


def test_every_whole_checkpoint_is_a_folder(tmp_path: Path) -> None:
    root = write_folders(tmp_path / "all")
    for profile in profiles():
        for name in (profile["id"], f"models/{profile['id']}", *profile.get("hf", ())):
            assert json.loads((root / name / "config.json").read_text()) == profile["config"]
        assert (root / profile["id"] / "hf_quant_config.json").exists() == bool(profile.get("hf_quant_config"))
    for name, config in example_checkpoints().items():
        assert json.loads((root / name / "config.json").read_text()) == config


def test_devices_say_what_the_engine_is_told() -> None:
    assert set(USUAL) <= set(devices_of("every"))
    assert devices_of("b200,h100") == ["b200", "h100"]
    for device in devices_of("every"):
        assert client.device_facts(device)["name"]
    with pytest.raises(client.OracleError, match="no device 'b20'"):
        client.device_facts("b20")


def test_an_engine_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ORACLE_HOME", str(tmp_path))
    with pytest.raises(client.OracleError, match=r"not set up: run tests/oracle/engine/setup 0\.5\.23"):
        client.ask(RELEASE, "b200", [{"argv": []}])


def test_true_is_not_one() -> None:
    assert equal((1, "a"), [1, "a"])
    assert not equal(True, 1)
    assert not equal(1, True)


@pytest.mark.oracle
def test_the_engine_still_says_what_was_recorded() -> None:
    if not client.is_set_up(RELEASE):
        pytest.skip(f"run tests/oracle/engine/setup {RELEASE}")
    known = [launch for launch in read(recorded_file(RELEASE))[1] if launch.device == "mi300x"][::12]
    replies = client.ask(RELEASE, "mi300x", [{"argv": list(launch.argv)} for launch in known])
    for launch, reply in zip(known, replies, strict=True):
        assert _said(launch) == {name: reply[name] for name in _said(launch) if name != "resolved"} | _values(
            launch, reply
        )


def _said(launch: Answered) -> dict[str, object]:
    if launch.ok:
        return {"ok": True, "resolved": dict(launch.resolved)}
    return {"ok": False, "type": launch.type, "message": launch.message, "at": launch.at}


def _values(launch: Answered, reply: client.Answer) -> dict[str, object]:
    return {"resolved": {name: reply["resolved"].get(name) for name in launch.resolved}} if launch.ok else {}


def test_a_cure_is_asked_as_it_tells_a_program(tmp_path: Path) -> None:
    session = open_session(load_rulebook(), RELEASE, tmp_path)
    launch = Answered(device="b200", argv=("--model-path", "x"), ok=False, env={"SGLANG_USE_AITER": "1"})
    argv = ("--model-path", "x", "--attention-backend", "triton")
    again = peel.changed(session, launch, Cure(changes={"SGLANG_USE_AITER": None}, argv=argv))
    assert again is not None
    assert (again.argv, again.env) == (argv, {})
    assert peel.changed(session, launch, Cure(changes={"no_such_setting": 1}, argv=argv)) is None
    assert peel.changed(session, launch, Cure(changes={})) is None
    stated = peel.changed(session, launch, Cure(changes={"SGLANG_RAGGED_VERIFY_MODE": "static"}, argv=argv))
    assert stated is not None
    assert stated.env == {"SGLANG_USE_AITER": "1", "SGLANG_RAGGED_VERIFY_MODE": "static"}


def test_peeling_finds_what_the_first_answer_hid(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A stand-in for the engine refuses twice: by a law that was told, then by one that was not."""
    session = open_session(load_rulebook(), RELEASE, write_folders(tmp_path / "checkpoints"))
    argv = ("--model-path", "llama-3.1-8b", "--tp-size", "2", "--attention-backend", "trtllm_mla")
    refused = Answered(device="h100", argv=argv, ok=False, message="TRTLLM MLA backend is only supported on Blackwell")
    other = {"ok": False, "message": "a refusal that no rule knows", "at": "srt/server_args.py:1"}

    def answers(release: str, cases: dict[str, list[dict[str, object]]]) -> Iterator[list[Answered]]:
        for device, asked in cases.items():
            yield [answered(device, case, other) for case in asked]

    monkeypatch.setattr(peel, "answers", answers)
    figures = peel.Figures()
    peel.peel(session, RELEASE, [refused], figures)
    assert (figures.refused, figures.refusals, figures.foreseen) == (1, 1, 0)
    assert any("no finding of ours" in cause for cause in figures.missed)
