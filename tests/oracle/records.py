"""Keeps engine answers as one compressed file of JSON lines; it must not ask the engine or judge an answer.

The first line says the release, the fields and how many launches follow. A launch is one line:
    {"device", "argv", "env"?, "ok": true, "resolved": [values in the order of the fields]}
    {"device", "argv", "env"?, "ok": false, "type", "message", "at", "chain"}
either with "writes", [[engine function, {field: value}], ...], where those were kept.
A launch that the machine could not answer (`ok` null) is not kept.

Other recorded files are lines of JSON too. What is compressed has its checksum inside; what is plain text begins with a line that
holds one of the rest, `python -m tests.oracle.records FILE` writes it.
"""

from __future__ import annotations

import gzip
import json
import lzma
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recommender.errors import RulebookError
from recommender.library import sealed, unsealed

FORMAT = "engine-answers-1"
DATA = Path(__file__).resolve().parent.parent / "data"
CHAIN = 4
BROKEN = (
    lzma.LZMAError,
    EOFError,
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    RecursionError,
    zlib.error,
)


class RecordError(RuntimeError):
    """A file of answers cannot be used; the message is one line that names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A launch on a device, and what the engine made of it. `ok` None: no answer."""

    device: str
    argv: tuple[str, ...]
    ok: bool | None
    env: Mapping[str, str] = field(default_factory=dict)
    resolved: Mapping[str, Any] = field(default_factory=dict)
    type: str = ""
    message: str = ""
    at: str = ""
    chain: tuple[str, ...] = ()
    writes: tuple[tuple[str, Mapping[str, Any]], ...] = ()

    @property
    def where(self) -> str:
        """Where the engine stopped, and the places that it went through on the way, the last one last."""
        return " ".join((self.at, *self.chain))


def answered(device: str, case: Mapping[str, Any], answer: Mapping[str, Any]) -> Answered:
    """A case with the engine's answer."""
    return Answered(
        device=device,
        argv=tuple(case["argv"]),
        env=case.get("env") or {},
        ok=answer["ok"],
        resolved=answer.get("resolved", {}),
        type=answer.get("type", ""),
        message=answer.get("message", ""),
        at=answer.get("at", ""),
        chain=tuple(answer.get("chain", ())),
        writes=tuple((name, fields) for name, fields in answer.get("writes", ())),
    )


def question(device: str, argv: Sequence[str], env: Mapping[str, str]) -> tuple[Any, ...]:
    """What tells two launches apart."""
    return device, tuple(argv), tuple(sorted(env.items()))


def recorded_file(release: str, what: str = "answers") -> Path:
    """Where the recorded answers of a release lie: to drawn launches (`answers`), to the rules' examples (`examples`)."""
    return DATA / f"{what}-{release}.jsonl.xz"


def write(path: Path, release: str, fields: Sequence[str], launches: Iterable[Answered], **about: Any) -> int:
    """Keep the launches that have an answer; returns how many."""
    lines = []
    for launch in launches:
        if launch.ok is None:
            continue
        line: dict[str, Any] = {"device": launch.device, "argv": " ".join(launch.argv), "ok": launch.ok}
        if any(" " in word or not word for word in launch.argv):
            line["argv"] = list(launch.argv)
        if launch.env:
            line["env"] = dict(launch.env)
        if launch.ok:
            line["resolved"] = [launch.resolved.get(name) for name in fields]
        else:
            line |= {
                "type": launch.type,
                "message": launch.message,
                "at": launch.at,
                "chain": list(launch.chain[-CHAIN:]),
            }
        if launch.writes:
            line["writes"] = launch.writes
        lines.append(line)
    head = {"format": FORMAT, "sglang": release, "launches": len(lines), **about, "fields": list(fields)}
    write_lines(path, (head, *lines))
    return len(lines)


def write_lines(path: Path, lines: Iterable[Mapping[str, Any]], *, sort_keys: bool = False) -> None:
    """Keep JSON objects, one a line, as `lines_of` reads them."""
    text = "".join(json.dumps(line, separators=(",", ":"), sort_keys=sort_keys) + "\n" for line in lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def read(path: Path) -> tuple[dict[str, Any], list[Answered]]:
    """(the first line, the launches).

    Raises:
        RecordError: the file is missing, damaged, cut short or of another format.
    """
    try:
        head, *lines = lines_of(path)
        if head["format"] != FORMAT:
            raise RecordError(f"{path.name}: format {head['format']!r}, expected {FORMAT!r}")
        fields = head["fields"]
        found = [_launch(line, fields) for line in lines]
        if len(found) != head["launches"]:
            raise RecordError(f"{path.name}: {len(found)} launches, its first line says {head['launches']}")
    except BROKEN as error:
        raise _damaged(path, error) from None
    return head, found


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The JSON objects of a recorded file, one a line: compressed (.xz, .gz), or plain behind the checksum of the rest.

    Raises:
        RecordError: the file is missing, damaged, cut short or of another format; one line that names it.
    """
    try:
        content = path.read_bytes()
        if path.suffix == ".xz":
            text = lzma.decompress(content, format=lzma.FORMAT_XZ).decode()
        elif path.suffix == ".gz":
            text = gzip.decompress(content).decode()
        else:
            text = unsealed(content.decode(), path.name).split("\n", 1)[1]
        if not text.endswith("\n"):
            raise ValueError("its last line has no end")
        found = [json.loads(line) for line in text.split("\n")[:-1]]
        if not all(isinstance(line, dict) for line in found):
            raise ValueError("a line is no object")
    except RulebookError as error:
        raise RecordError(f"{error}; python -m tests.oracle.records {path.name}") from None
    except BROKEN as error:
        raise _damaged(path, error) from None
    except OSError as error:
        raise RecordError(f"{path.name}: cannot be read ({error.strerror or error})") from None
    return found


def _damaged(path: Path, error: Exception) -> RecordError:
    told = " ".join(f"{type(error).__name__}: {error}".split())
    return RecordError(f"{path.name}: damaged ({told}); record it anew, see tests/oracle/README.md")


def seal(path: Path) -> None:
    """Write the line with the checksum, anew where there is one."""
    lines = path.read_text(encoding="utf-8").split("\n")
    kept = lines[1:] if lines[0].startswith('{"check": ') else lines
    head = json.dumps({"lines": len(kept) - 1})
    path.write_text(sealed("\n".join((head, *kept))), encoding="utf-8")


def _launch(line: Mapping[str, Any], fields: Sequence[str]) -> Answered:
    argv = line["argv"]
    return Answered(
        device=line["device"],
        argv=tuple(argv.split(" ") if isinstance(argv, str) else argv),
        env=line.get("env", {}),
        ok=line["ok"],
        resolved=dict(zip(fields, line["resolved"], strict=True)) if line["ok"] else {},
        type=line.get("type", ""),
        message=line.get("message", ""),
        at=line.get("at", ""),
        chain=tuple(line.get("chain", ())),
        writes=tuple((name, written) for name, written in line.get("writes", ())),
    )


if __name__ == "__main__":
    for named in sys.argv[1:]:
        seal(DATA / Path(named).name)
