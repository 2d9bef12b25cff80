"""Judges many launches, one JSON line each; it must not word them for people, and one bad line must not stop the rest."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any

from recommender import profiles
from recommender.api import check_launch
from recommender.commands.inputs import launch_of
from recommender.errors import RecommenderError, UsageError
from recommender.forms.command import split_command
from recommender.profiles import Gpu
from recommender.render.check import finding_json, image_json, machine_value
from recommender.rulebook import load_rulebook
from recommender.session import Session, open_session
from recommender.terms import CheckResult

LONGEST_LINE = 1 << 20
# Lines between two collections: what a launch leaves behind is freed at once, so a running collector finds next to nothing.
COLLECT_EVERY = 20_000


def run_cases(
    *, cases: Path, root: Path | None, sglang: str | None, gpu: str | None, image: str | None, format_: str
) -> int:
    """Answer every line of a file; 0 when every line was answered, else 2."""
    if format_ not in ("table", "jsonl", "json"):
        raise UsageError(f"--format {format_}: --cases writes jsonl")
    try:
        stream: IO[bytes] = sys.stdin.buffer if str(cases) == "-" else open(cases, "rb")  # noqa: SIM115
    except OSError as error:
        raise UsageError(f"--cases: {cases}: {error.strerror}") from None
    base = root or (Path.cwd() if str(cases) == "-" else cases.parent)
    answer = answerer(base, sglang, gpu, image)
    gc.disable()
    failed = 0
    with stream:
        for number, line in enumerate(_progress(stream, cases), start=1):
            if number % COLLECT_EVERY == 0:
                gc.collect()
            if not line.strip():
                continue
            reply = answer(line)
            failed += "error" in reply
            sys.stdout.write(json.dumps(reply, separators=(",", ":")) + "\n")
    return 2 if failed else 0


def _progress(stream: IO[bytes], cases: Path) -> Iterable[bytes]:
    if not sys.stderr.isatty() or str(cases) == "-":
        return stream
    from recommender.render.progress import over_lines

    return over_lines(stream, cases.stat().st_size, str(cases))


def answerer(
    base: Path, sglang: str | None = None, gpu: str | None = None, image: str | None = None
) -> Callable[[bytes], dict[str, Any]]:
    """A function from a line to its answer; releases and devices are looked up once."""
    book = load_rulebook()

    @cache
    def session(release: str | None) -> Session:
        return open_session(book, release, base)

    @cache
    def device(name: str | None) -> Gpu | None:
        return None if name is None else profiles.find_gpu(name)

    def answer(line: bytes) -> dict[str, Any]:
        identity: Any = None
        try:
            case = _case(line)
            identity = case.get("id")
            here = session(_text(case, "sglang") or sglang)
            split = split_command(case["argv"])
            where = device(_text(case, "hardware") or gpu)
            launch = launch_of(here, split, _environment(case), _text(case, "image") or image, where)
            result = check_launch(here, launch, where, cures=False)
            return {"id": identity, **case_json(result, here)}
        except RecommenderError as error:
            return {"id": identity, "error": " ".join(str(error).split())}

    return answer


def case_json(result: CheckResult, session: Session) -> dict[str, Any]:
    """The short machine form of a check."""
    reported = session.book.settings["reported"]
    values = result.values.plain
    return {
        "verdict": result.verdict.value,
        **({"unproven": result.unproven} if result.unproven else {}),
        "findings": [finding_json(finding, full=False) for finding in result.findings],
        "not_judged": list(result.not_judged_flags),
        "image": image_json(result.image),
        "resolved": {name: machine_value(values[name]) for name in reported if name in values},
    }


def _case(line: bytes) -> Mapping[str, Any]:
    if len(line) > LONGEST_LINE:
        raise UsageError("the line is too long")
    try:
        case = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"not JSON: {error}") from None
    if not isinstance(case, dict):
        raise UsageError("a case is a JSON object")
    argv = case.get("argv")
    if not isinstance(argv, list) or not all(isinstance(word, str) for word in argv):
        raise UsageError("argv: expected a list of texts")
    return case


def _text(case: Mapping[str, Any], key: str) -> str | None:
    value = case.get(key)
    if value is not None and not isinstance(value, str):
        raise UsageError(f"{key}: expected a text")
    return value


def _environment(case: Mapping[str, Any]) -> dict[str, str]:
    env = case.get("env") or {}
    if not isinstance(env, dict):
        raise UsageError("env: expected an object")
    return {str(name): value if isinstance(value, str) else json.dumps(value) for name, value in env.items()}
