"""Every rule of every edition: its words, its examples and its cures; it must not need the engine."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from recommender.api import check_launch
from recommender.errors import RecommenderError
from recommender.expr import compile_template
from recommender.judge import cures_of_rule
from recommender.laws import Rule, Step
from recommender.resolve import Walk, walk
from recommender.rulebook import check_document, check_rule, load_rulebook
from recommender.session import Session, open_session
from recommender.terms import Effect, Verdict
from tests.oracle.agree import plain
from tests.oracle.examples import Example, editions, examples_of
from tests.oracle.folders import write_example_checkpoints
from tests.oracle.replay import watched

EDITIONS = [(rule, release) for rule, release in editions(load_rulebook())]
IDS = [rule.id if release else f"{rule.id}-{rule.since}" for rule, release in EDITIONS]
each_rule = pytest.mark.parametrize(("rule", "release"), EDITIONS, ids=IDS)
MUST_SHOW = (Effect.REJECTS, Effect.SETS)


@cache
def root() -> Path:
    """A folder with the checkpoints that only examples name; one a process."""
    kept.append(tempfile.TemporaryDirectory())
    return write_example_checkpoints(Path(kept[0].name))


kept: list[tempfile.TemporaryDirectory[str]] = []


@cache
def session(release: str) -> Session:
    """One session a release."""
    return open_session(load_rulebook(), release, root())


@each_rule
def test_its_document_is_whole(rule: Rule, release: str) -> None:
    assert release, "no covered release is within since and until"
    check_document(dict(rule.text()), rule.path)
    here = session(release)
    assert check_rule(rule, here.edition.words) == []
    if not rule.parse:
        step: Step = here.plan.by_id[rule.id]
        step.when, step.require, step.writes, step.message  # noqa: B018  each compiles when it is read
    compile_template(rule.message, here.edition.words)
    assert rule.statement.endswith("."), "a statement is a sentence"
    if rule.effect is not Effect.SETS and not rule.parse:
        assert rule.message, "a law that judges has a message"
    for earlier in (*rule.after, *rule.silent_after):
        assert earlier in here.edition.rules, f"{earlier}: no such rule"
    assert rule.id not in causes_of(rule, here.edition.rules), "a law is no consequence of itself"


def causes_of(rule: Rule, rules: Mapping[str, Rule]) -> set[str]:
    """The laws that a finding can be a consequence of, through others too."""
    found: set[str] = set()
    waiting = list(rule.silent_after)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += rules[name].silent_after if name in rules else ()
    return found


@each_rule
def test_its_examples(rule: Rule, release: str) -> None:
    problems = [problem for example in examples_of(rule, release) if (problem := problem_of(example))]
    assert not problems, "\n".join(problems)


def problem_of(example: Example) -> str:
    """What is wrong with an example; empty when it holds."""
    here = session(example.release)
    name, rule = example.name, example.rule.id
    try:
        launch = here.read(example.argv, example.env)
        with watched() as log:
            result = check_launch(here, launch, example.device, cures=False)
    except RecommenderError as error:
        return f"{name}: {error}"
    found = {item.rule: item.verdict for item in result.findings}
    wrote = [values for step, values in log if step.rule.id == rule]
    if example.kind == "breaks":
        others = ", ".join(found) or "nothing"
        return "" if found.get(rule) is Verdict.BREAKS else f"{name}: not among the findings ({others})"
    if example.kind == "passes":
        return f"{name}: is among the findings ({found[rule].value})" if rule in found else ""
    if example.kind == "leaves":
        return f"{name}: it writes {wrote}" if wrote else ""
    if not wrote:
        return f"{name}: it does not write"
    wrong = [field for field, value in example.becomes.items() if plain(wrote[-1].get(field)) != plain(value)]
    return f"{name}: it writes {', '.join(f'{field} = {wrote[-1].get(field)!r}' for field in wrong)}" if wrong else ""


def without_examples() -> frozenset[str]:
    """Rules that no launch here can show yet (a device, a package or a file is missing); the list may only get shorter."""
    lines = (Path(__file__).parent / "data" / "rules-without-examples.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


@each_rule
def test_its_two_examples(rule: Rule, release: str) -> None:
    if rule.effect not in MUST_SHOW:
        return
    kinds = {example.kind for example in examples_of(rule, release)}
    wanted = {"sets", "leaves"} if rule.effect is Effect.SETS else {"breaks", "passes"}
    missing = sorted(wanted - kinds)
    if rule.id in without_examples():
        assert missing, f"{rule.path}: is whole now, take it off tests/data/rules-without-examples.txt"
    else:
        assert not missing, f"{rule.path}: no example that {' or '.join(missing)}"


@each_rule
def test_its_cures_work(rule: Rule, release: str) -> None:
    fixes = session(release).fixes(rule.id)
    launches = [example for example in examples_of(rule, release) if example.kind == "breaks"]
    if not fixes or not launches:
        return
    left = set(range(len(fixes)))
    for example in launches:
        here = session(example.release)
        asked = here.read(example.argv, example.env).asked
        facts = here.facts_of(example.device, asked, here.roles)
        result: Walk = walk(here.plan, asked, facts, keep=True)
        struck = next((item for item in result.struck if item.step.rule.id == rule.id), None)
        if struck is not None:
            left -= {number for number in left if cures_of_rule(here.plan, result, facts, struck, (fixes[number],))}
    assert not left, f"{rule.path}: cures no example: {', '.join(str(rule.fix[number]) for number in sorted(left))}"


@pytest.mark.parametrize(
    ("no_fix", "said"),
    [
        ({"says": "it is {no_such_name}."}, "no_such_name"),
        ({"says": "it is so.", "when": "no_such_name"}, "no_such_name"),
        ({"when": "hip"}, "give `says`"),
        ({"says": "it is so.", "why": "hip"}, "give `says`"),
    ],
)
def test_a_wrong_word_on_what_a_launch_lacks_is_named(no_fix: dict[str, str], said: str) -> None:
    edition = load_rulebook().edition(load_rulebook().releases[-1].version)
    rule = edition.rules["quantization-on-rocm"]
    (problem,) = check_rule(replace(rule, text=lambda: {**rule.text(), "no_fix": no_fix}), edition.words)
    assert problem.startswith("no_fix: ")
    assert said in problem
