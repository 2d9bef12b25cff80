"""What a person reads of findings: a consequence stands under its cause, and nothing is lost or said twice."""

from __future__ import annotations

import pytest

from recommender.api import check
from recommender.render.check import check_json, print_check
from recommender.terms import Answer, Bites, CheckResult, Effect, Finding, Verdict
from recommender.terms import Settings as NoSettings


class Empty(NoSettings):
    def __getitem__(self, name: str):  # type: ignore[no-untyped-def]
        raise KeyError(name)

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(())

    def __len__(self) -> int:
        return 0


def finding(rule: str, under: str = "", effect: Effect = Effect.REJECTS, verdict: Verdict = Verdict.BREAKS) -> Finding:
    bites = Bites.STARTUP if effect is Effect.REJECTS else None
    return Finding(
        rule=rule,
        effect=effect,
        bites=bites,
        verdict=verdict,
        message=f"message of {rule}",
        under=under,
        missing=("model.x",),
    )


SETS = {
    "one cause, two consequences": [finding("a"), finding("b", "a"), finding("c", "a")],
    "a consequence of a consequence": [finding("a"), finding("b", "a"), finding("c", "b")],
    "a warning under a refusal": [finding("a"), finding("b", "a", Effect.DEGRADES)],
    "a cause that is not known": [finding("a", verdict=Verdict.UNKNOWN), finding("b", "a")],
    "a cause that is not there": [finding("b", "a")],
    "a consequence before its cause": [finding("b", "a"), finding("a")],
}


@pytest.mark.parametrize("name", SETS)
def test_every_finding_is_said_once(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    findings = SETS[name]
    print_check(CheckResult(verdict=Answer.REFUSES, findings=tuple(findings), values=Empty()), [])
    lines = capsys.readouterr().out.splitlines()
    known = {item.rule for item in findings if item.verdict is Verdict.BREAKS}
    numbered = [line for line in lines if line[:3].strip(" .").isdigit()]
    for item in findings:
        if item.verdict is Verdict.BREAKS:
            assert sum(line.strip() == item.message for line in lines) == 1
            beneath = any(line.strip().startswith(f"and so {item.rule}") for line in lines)
            assert beneath is (item.under in known)
            assert any(f". {item.rule}" in line for line in numbered) is not beneath
    causes = sum(
        item.effect is Effect.REJECTS and item.verdict is Verdict.BREAKS and item.under not in known
        for item in findings
    )
    assert f"{causes} law" in lines[0]


NVFP4 = "--model-path deepseek-v3-0324-nvfp4 --tp-size 8"


def test_what_no_setting_cures_is_said_with_what_the_launch_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    result = check(NVFP4.split(), gpu="mi300x")
    assert result.cures == ()
    (lacking,) = {finding.no_cure for finding in result.findings if finding.no_cure}
    assert "stored as modelopt_fp4" in lacking
    assert check_json(result, [])["findings"][0]["no_cure"] == lacking
    print_check(result, [])
    said = " ".join(capsys.readouterr().out.split())
    assert f"No change of settings helps: {lacking}" in said
    assert "Cure:" not in said


@pytest.mark.parametrize(("gpu", "flags"), [("mi355x", NVFP4), ("mi300x", f"{NVFP4} --quantization awq")])
def test_a_refusal_has_a_cure_or_what_the_launch_lacks(gpu: str, flags: str) -> None:
    result = check(flags.split(), gpu=gpu)
    assert bool(result.cures) is not any(finding.no_cure for finding in result.findings)


def test_a_cure_of_the_whole_launch_is_shown_alone(capsys: pytest.CaptureFixture[str]) -> None:
    result = check([*NVFP4.split(), "--speculative-algorithm", "EAGLE"], gpu="mi355x")
    assert result.cures[0].changes["quantization"] == "quark_mxfp4"
    print_check(result, [])
    assert "No change of settings helps" not in " ".join(capsys.readouterr().out.split())
