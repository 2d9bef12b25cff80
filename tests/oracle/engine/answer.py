"""Asks the engine's own argument resolution what it makes of launches; it must not know a rule of this project.

Reads JSON lines {"id", "argv": [...], "env": {...}} from stdin and writes one answer a line:
    {"id", "ok": true, "resolved": {field: value}}            it would go on and load the model
    {"id", "ok": false, "stage": "parse" | "resolve", "type", "message", "at": "file:line",
     "chain": ["file:line:function", ...]}                     it stops here; the chain ends where it raised
    {"id", "ok": null, "stage": "machine", ...}               this machine's own failure: no answer
With --writes also `writes`, the engine's own log of what it declared: [[function, {field: value}], ...]. --fields a,b,c
keeps those of `resolved` and `writes`; without it all. Cases with the same variables should stand together: each change
of variables starts the engine anew, because it reads some of them while it is imported.
"""

from __future__ import annotations

import device  # isort: skip  # noqa: F401  first: it decides what torch reports

import argparse
import contextlib
import enum
import io
import itertools
import json
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

LONGEST_MESSAGE = 800
LONGEST_CHAIN = 6
PARSING = ("parse_args", "merge_config_with_args")


def plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def kept(values: dict[str, Any], fields: frozenset[str]) -> dict[str, Any]:
    return {name: plain(value) for name, value in sorted(values.items()) if not fields or name in fields}


def place(frame: traceback.FrameSummary) -> str:
    inside = "/sglang/" in frame.filename
    name = frame.filename.rpartition("/sglang/")[2] if inside else os.path.basename(frame.filename)
    return f"{name}:{frame.lineno}"


def failure(error: BaseException, printed: str = "") -> dict[str, Any]:
    frames = traceback.extract_tb(error.__traceback__)
    parsing = isinstance(error, SystemExit) or any(frame.name in PARSING for frame in frames)
    message = (isinstance(error, SystemExit) and printed.rpartition(": error: ")[2].strip()) or str(error)
    of_engine = "/sglang/srt/" in frames[-1].filename or "/sglang/kernels/" in frames[-1].filename
    chain = [f"{place(frame)}:{frame.name}" for frame in frames if "/sglang/" in frame.filename][-LONGEST_CHAIN:]
    stage = "parse" if parsing else "resolve" if of_engine else "machine"
    return {
        "ok": None if stage == "machine" else False,
        "stage": stage,
        "type": type(error).__name__,
        "message": message[:LONGEST_MESSAGE],
        "at": place(frames[-1]),
        "chain": chain,
    }


def launch(argv: list[str]) -> tuple[Any, dict[str, Any]]:
    """(the engine's arguments, every resolved value): the launcher's own steps up to the point where it would load."""
    from sglang.srt.server_args import prepare_server_args

    args = prepare_server_args(argv)
    values = vars(args)
    if hasattr(args, "resolve_once"):  # since 0.5.20 it resolves when it is asked to
        args.resolve_once()
        values = args.resolved_dict()
    if hasattr(args, "check_server_args"):
        args.check_server_args()
    return args, values


def arguments_in(error: BaseException) -> Any:
    """The engine's arguments as they stood when it stopped; None when it had not made any."""
    module = sys.modules.get("sglang.srt.server_args")
    if module is None:  # it stopped while it was imported
        return None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        for value in frame.f_locals.values():
            if isinstance(value, module.ServerArgs):
                return value
    return None


def resolve(argv: list[str], fields: frozenset[str], log: bool) -> dict[str, Any]:
    """What the engine makes of one launch."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(io.StringIO()):
            args, values = launch(argv)
        said: dict[str, Any] = {"ok": True, "resolved": kept(values, fields)}
    except (Exception, SystemExit) as error:
        said = failure(error, printed.getvalue())
        args = arguments_in(error)
    if log:
        declared = ((name, kept(written, fields)) for name, written in getattr(args, "_resolved_overrides", None) or ())
        said["writes"] = [[name, written] for name, written in declared if written]
    return said


@contextlib.contextmanager
def own_environment() -> Iterator[None]:
    """The engine sets variables while it resolves; the next launch must not see them."""
    before = dict(os.environ)
    try:
        yield
    finally:
        if dict(os.environ) != before:
            os.environ.clear()
            os.environ.update(before)


def answer_all(cases: Iterable[dict[str, Any]], out: IO[str], ask: Callable[[list[str]], dict[str, Any]]) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    for case in cases:
        with own_environment():
            said = ask(case["argv"])
        out.write(json.dumps({"id": case.get("id"), **said}) + "\n")
        out.flush()


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--fields", default="")
    options.add_argument("--writes", action="store_true")
    given = options.parse_args()
    fields = frozenset(filter(None, given.fields.split(",")))
    out = os.fdopen(os.dup(1), "w")
    cases = (json.loads(line) for line in sys.stdin if line.strip())
    for env, group in itertools.groupby(cases, key=lambda case: case.get("env") or {}):
        together = list(group)
        child = os.fork()  # the engine is imported in the child only, under its variables
        if child:
            if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
                sys.exit("the engine could not be imported, or crashed")
            continue
        code = 1
        try:
            os.environ.update(env)
            answer_all(together, out, lambda argv: resolve(argv, fields, given.writes))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)


if __name__ == "__main__":
    main()
