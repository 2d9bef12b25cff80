"""The explain command: finds out what it was given, reads it, asks the API; it must not match or word."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections import deque
from typing import IO

from recommender.accounts import law_named
from recommender.api import explain
from recommender.commands.inputs import known_format, release_of
from recommender.errors import UsageError
from recommender.render import explain as render
from recommender.render.names import TEXT_FORMATS
from recommender.rulebook import load_rulebook

LARGEST_TAIL = 32 << 20
LARGEST_INPUT = 4 << 30
CHUNK = 1 << 20


def run(*, subject: str, sglang: str | None, format_: str) -> int:
    """Run `explain`; returns the exit code."""
    known_format(format_, TEXT_FORMATS)
    text = _text_of(subject)
    explanation = explain(text, sglang=release_of(sglang))
    if format_ == "json":
        sys.stdout.write(json.dumps(render.explanation_json(explanation), indent=2) + "\n")
    elif explanation.laws:
        render.print_explanation(explanation)
    else:
        render.print_general(explanation)
    if not explanation.laws:
        sys.stderr.write(f"recommender: {render.no_law(explanation, subject)}\n")
    return 0 if explanation.laws else 1


def _text_of(subject: str) -> str:
    """What to explain: stdin for `-`, the argument when it is an id, else the file of that name, else the argument."""
    if subject == "-":
        return _tail(sys.stdin.buffer, "stdin")
    if law_named(load_rulebook(), subject):
        return subject
    try:
        mode = os.stat(subject).st_mode
    except (OSError, ValueError):
        return subject
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        kind = "a folder" if stat.S_ISDIR(mode) else "a device"
        raise UsageError(f"{subject}: {kind}, not a log file; name the file, or give the text itself")
    try:
        with open(subject, "rb") as stream:
            return _tail(stream, subject)
    except OSError as error:
        raise UsageError(f"{subject}: cannot be read ({error.strerror or error})") from None


def _tail(stream: IO[bytes], name: str) -> str:
    """The end of a stream, as far as a log's last words can matter."""
    if stream.seekable() and name != "stdin":
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - LARGEST_TAIL))
    kept: deque[bytes] = deque()
    read = held = 0
    while chunk := stream.read(CHUNK):
        kept.append(chunk)
        read += len(chunk)
        held += len(chunk)
        if read > LARGEST_INPUT:
            raise UsageError(f"{name}: more than {LARGEST_INPUT >> 30} GiB; give its end, as tail -n 5000 prints it")
        while held - len(kept[0]) >= LARGEST_TAIL:
            held -= len(kept.popleft())
    content = b"".join(kept)
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16", "replace")
    return content.decode("utf-8", "replace")
