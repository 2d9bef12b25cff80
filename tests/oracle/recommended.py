"""Holds recommendations against the engine: round trips and completeness; it must not change what the tool recommends.

    python -m tests.oracle.recommended round-trip 0.5.23 --count 300 --seed 1 --record
    python -m tests.oracle.recommended completeness 0.5.23 --count 100 --seed 1 --record

Round trip: every command recommended for random questions, read back, checks clean, resolves to itself and is accepted by the
engine. Completeness: of random assignments of a question's domains, every one that the engine accepts as it stands, and that no
later law breaks, is among all rows. `--record` keeps the engine's answers for the ordinary tests; with `--known` the engine is
asked only about launches that are not recorded yet.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recommender.advise import Adviser
from recommender.commands.recommend import settings_of
from recommender.forms.emit import flags_for
from recommender.memory import ranks_needed
from recommender.profiles import find_gpu, find_model
from recommender.resolve import Walk, walk
from recommender.solver import Question, asked_of, encode, names_where, solutions
from recommender.terms import Effect, Value, Verdict
from tests.conftest import adviser, draw_question

from .client import ask
from .records import RecordError, lines_of, write_lines

DATA = Path(__file__).resolve().parent.parent / "data"
TOP = 3
DRAWS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question: device, how many, model, load, pins."""

    gpu: str
    gpus: int
    model: str
    concurrency: int
    pins: tuple[tuple[str, Value], ...]

    def adviser(self) -> Adviser:
        """The tool's side of the question."""
        return adviser(self.gpu, self.gpus, self.model, self.concurrency, **dict(self.pins))


def questions(seed: int, count: int) -> Iterator[Asked]:
    """Random questions whose weights fit, so that most have an answer."""
    for number in range(count):
        rng = random.Random(f"{seed}-{number}")
        gpu, gpus, model, pins = draw_question(rng)
        needed = ranks_needed(find_model(model).facts["model.weight_gib"], find_gpu(gpu).facts["gpu.memory_mib"]) or 1
        while gpus < needed:
            gpus *= 2
        yield Asked(gpu=gpu, gpus=gpus, model=model, concurrency=rng.choice([1, 8, 32, 128]), pins=tuple(pins.items()))


def argv_of(here: Adviser, asked: Mapping[str, Value]) -> tuple[str, ...]:
    """The launch of some settings, checkpoints by the names a command uses."""
    session = here.session
    row = _Row(asked=asked)
    return (*flags_for(session.edition.command_line, settings_of(session, row)), "--trust-remote-code")  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    asked: Mapping[str, Value]


def read_back(here: Adviser, argv: Sequence[str]) -> Walk:
    """What our own walk makes of a launch's words."""
    session = here.session
    launch = session.read(argv)
    facts = session.facts_of(here.ask.gpu, launch.asked, session.roles)
    return walk(session.plan, launch.asked, facts)


def broken(result: Walk) -> list[str]:
    """The laws that refuse a launch, whenever they bite."""
    return [
        item.step.rule.id
        for item in result.struck
        if item.step.rule.effect is Effect.REJECTS and item.verdict is Verdict.BREAKS
    ]


def round_trips(seed: int, count: int) -> Iterator[tuple[Asked, tuple[str, ...], dict[str, Value], list[str]]]:
    """(question, argv, searched values, our own complaints) of every recommended command."""
    for question in questions(seed, count):
        here = question.adviser()
        for row in here.advise(TOP).rows:
            argv = argv_of(here, row.asked)
            result = read_back(here, argv)
            complaints = broken(result)
            found = {name: value for name, value in row.found.items() if value is not None}
            complaints += [
                f"{name} becomes {result.values[name]}" for name in found if result.values[name] != found[name]
            ]
            yield question, argv, found, complaints


def draws(here: Adviser, question: Question, rng: random.Random) -> Iterator[dict[str, Value]]:
    """Random assignments of a question's domains; half of them repair the chain's draft tokens, or few would be valid."""
    roles = here.roles
    widths = {variable.name: variable.domain for variable in question.variables}.get(roles["draft_tokens"], ())
    for number in range(DRAWS):
        drawn = {variable.name: rng.choice(variable.domain) for variable in question.variables}
        topk = drawn.get(roles["topk"], question.given.get(roles["topk"]))
        if number % 2 and topk == 1 and roles["steps"] in drawn and drawn[roles["steps"]] + 1 in widths:
            drawn[roles["draft_tokens"]] = drawn[roles["steps"]] + 1
        yield drawn


def completeness(seed: int, count: int) -> Iterator[tuple[Asked, tuple[str, ...], dict[str, Value], bool, bool]]:
    """(question, argv, assignment, whether it is among all rows, whether a later law or a condition excludes it)."""
    for number, question in enumerate(questions(seed, count)):
        here = question.adviser()
        candidates, _ = here.candidates()
        if not candidates:
            continue
        rng = random.Random(f"draw-{seed}-{number}")
        chosen = rng.choice(candidates)
        problem = here.question(chosen)
        encoded = encode(problem)
        rows = {_key(found) for found in solutions(encoded)}
        conditions = {name for name, _ in problem.keeps}
        kept = [constraint for constraint in encoded.constraints if constraint.name in conditions]
        for drawn in draws(here, problem, rng):
            asked = asked_of(problem, drawn)
            argv = argv_of(here, asked)
            result = read_back(here, argv)
            later = [
                item.step.rule.id
                for item in result.struck
                if item.step.rule.effect is Effect.REJECTS
                and item.verdict is Verdict.BREAKS
                and item.step.rule.bites not in ("parse", "startup")
            ]
            excluded = bool(later) or bool(names_where(kept, drawn, Verdict.BREAKS))
            yield question, argv, {k: v for k, v in drawn.items() if v is not None}, _key(drawn) in rows, excluded


def _key(assignment: Mapping[str, Value]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, repr(value)) for name, value in assignment.items()))


def as_it_stands(assignment: Mapping[str, Value], answer: Mapping[str, Any]) -> bool:
    """Whether the engine accepts a launch and moves nothing of an assignment."""
    if not answer["ok"]:
        return False
    resolved = answer["resolved"]
    return all(resolved.get(name, value) == value for name, value in assignment.items())


def file_of(kind: str, release: str) -> Path:
    """Where the engine's answers are kept."""
    return DATA / f"{kind}-{release}.jsonl.xz"


def keep(kind: str, release: str, lines: Sequence[Mapping[str, Any]]) -> None:
    """Write recorded answers."""
    write_lines(file_of(kind, release), lines, sort_keys=True)


def kept(kind: str, release: str) -> dict[tuple[str, tuple[str, ...]], dict[str, Any]]:
    """Recorded answers by (device, argv)."""
    return {(line["device"], tuple(line["argv"])): line for line in lines_of(file_of(kind, release))}


def engine_answers(
    release: str,
    launches: Sequence[tuple[str, tuple[str, ...]]],
    fields: Sequence[str],
    known: Mapping[tuple[str, tuple[str, ...]], dict[str, Any]],
) -> dict[tuple[str, tuple[str, ...]], dict[str, Any]]:
    """The engine's answers by (device, argv); it is not asked about what is known."""
    found = {launch: known[launch] for launch in launches if launch in known}
    for device in sorted({device for device, argv in launches if (device, argv) not in found}):
        wanted = [*dict.fromkeys(argv for name, argv in launches if name == device and (name, argv) not in found)]
        answers = ask(release, device, [{"id": n, "argv": list(argv)} for n, argv in enumerate(wanted)], fields=fields)
        for argv, answer in zip(wanted, answers, strict=True):
            found[device, argv] = answer
        print(f"  {device}: {len(wanted)} launches", file=sys.stderr)
    return found


FIELDS = [
    "speculative_algorithm",
    "speculative_num_steps",
    "speculative_eagle_topk",
    "speculative_num_draft_tokens",
    "attention_backend",
    "speculative_draft_attention_backend",
    "page_size",
    "linear_attn_verify_backend",
    "mamba_ssm_dtype",
    "mamba_radix_cache_strategy",
]


def _line(device: str, argv: Sequence[str], answer: Mapping[str, Any]) -> dict[str, Any]:
    line: dict[str, Any] = {"device": device, "argv": list(argv), "ok": answer["ok"]}
    if answer["ok"]:
        line["resolved"] = {name: answer["resolved"].get(name) for name in FIELDS}
    else:
        line |= {"at": answer.get("at"), "message": answer.get("message", "")[:200]}
    return line


def main() -> int:
    """Run one of the two experiments; 1 when the engine disagrees."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["round-trip", "completeness"])
    parser.add_argument("release")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--known", action="store_true", help="ask only what was not recorded")
    given = parser.parse_args()
    try:
        known = kept(given.kind, given.release) if given.known else {}
    except RecordError as error:
        print(f"recommended: {error}", file=sys.stderr)
        return 2
    bad = 0
    if given.kind == "round-trip":
        trips = list(round_trips(given.seed, given.count))
        answers = engine_answers(given.release, [(q.gpu, argv) for q, argv, _, _ in trips], FIELDS, known)
        for question, argv, found, complaints in trips:
            answer = answers[question.gpu, argv]
            if complaints or (answer["ok"] is not None and not as_it_stands(found, answer)):
                bad += 1
                print(question, complaints, answer.get("at"), answer.get("message"), " ".join(argv))
        unanswered = sum(answers[q.gpu, argv]["ok"] is None for q, argv, _, _ in trips)
        asked = len({question for question, *_ in trips})
        print(
            f"{given.count} questions, {asked} with rows, {len(trips)} commands, {bad} wrong, {unanswered} unanswered"
        )
    else:
        drawn = list(completeness(given.seed, given.count))
        answers = engine_answers(given.release, [(q.gpu, argv) for q, argv, *_ in drawn], FIELDS, known)
        held = 0
        for question, argv, assignment, listed, excluded in drawn:
            answer = answers[question.gpu, argv]
            stands = as_it_stands(assignment, answer)
            held += stands and not excluded
            if (stands and not excluded) != listed and answer["ok"] is not None:
                bad += 1
                print(
                    question, "listed" if listed else "missing", answer.get("at"), answer.get("message"), " ".join(argv)
                )
        print(f"{len(drawn)} assignments, {held} stand and are no later law's, {bad} wrong")
    if given.record:
        keep(given.kind, given.release, [_line(device, argv, answer) for (device, argv), answer in answers.items()])
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
