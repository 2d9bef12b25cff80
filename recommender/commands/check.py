"""The check command: reads what the user named, asks the API, hands the result to a renderer; it must not judge or word."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from recommender.api import check_launch
from recommender.commands.inputs import device_of, known_format, read_command, release_for
from recommender.errors import UsageError
from recommender.render.names import CHECK_FORMATS
from recommender.rulebook import load_rulebook
from recommender.session import open_session
from recommender.terms import Answer, CheckResult, Effect, Verdict


def run(
    *,
    command: Sequence[str] | None,
    gpu: str | None,
    gpus: int | None,
    sglang: str | None,
    env: Sequence[str],
    image: str | None,
    cases: Path | None,
    root: Path | None,
    strict: bool,
    format_: str,
) -> int:
    """Run `check`; returns the exit code."""
    known_format(format_, CHECK_FORMATS)
    if cases is not None:
        from recommender.commands.cases import run_cases

        return run_cases(cases=cases, root=root, sglang=sglang, gpu=gpu, image=image, format_=format_)
    if command is None:
        raise UsageError(
            "nothing to check: put the launch command after --, or give --cases FILE; see recommender check --help"
        )
    device = device_of(gpu, gpus, required=False)
    book = load_rulebook()
    session = open_session(book, release_for(book, sglang, command), root)
    launch = read_command(session, command, env, image, device)
    result = check_launch(session, launch, device)
    _print(result, session.book.settings["shown"], format_)
    return exit_code(result, strict)


def exit_code(result: CheckResult, strict: bool) -> int:
    """1 for any law that refuses, whenever it bites; what is unknown or degraded counts under --strict."""
    if result.rejected:
        return 1
    doubtful = result.verdict is Answer.UNKNOWN or any(item.verdict is Verdict.UNKNOWN for item in result.findings)
    degraded = any(item.effect is Effect.DEGRADES for item in result.findings)
    return 1 if strict and (doubtful or degraded or result.not_judged_flags) else 0


def _print(result: CheckResult, shown: Sequence[str], format_: str) -> None:
    from recommender.render import check as render

    fields = [name for name in shown if name in result.values]
    if format_ == "table":
        render.print_check(result, fields)
    elif format_ == "flags":
        if result.cure is not None:
            sys.stdout.write(" ".join(result.cure.flags) + "\n")
    else:
        indent = 2 if format_ == "json" else None
        sys.stdout.write(json.dumps(render.check_json(result, fields), indent=indent) + "\n")
