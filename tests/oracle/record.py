"""Asks the engine about drawn launches and keeps its answers; it must not judge them.

    python -m tests.oracle.record 0.5.23 --devices all --seeds 7,8 --count 20 --out answers.jsonl.xz

--kinds plain,others,harsh,wide,crossed,examples (-wild after any: plain-wild; a count of its own: harsh:40). --cases FILE
asks about given launches too ({"device" or "hardware", "argv", "env"}; --count 0 draws none). --add keeps what the file holds
already.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from recommender.rulebook import load_rulebook

from .client import OracleError, ask
from .devices import devices_of
from .records import Answered, RecordError, answered, read, recorded_file, write
from .sample import launches

KINDS = "plain,others,harsh"


def reported(release: str) -> Sequence[str]:
    """The resolved values that are kept and compared: those that the release itself has."""
    book = load_rulebook()
    lines = [book.catalogue.command_line(known) for known in book.catalogue.releases]
    others = {name for line in lines for name in line.fields} - set(book.catalogue.command_line(release).fields)
    return [name for name in book.settings["reported"] if name not in others]


def drawn(device: str, seeds: Iterable[int], count: int, kinds: Iterable[str], release: str) -> list[dict[str, Any]]:
    """The launches of all seeds and kinds on a device; a kind may say its own count, as harsh:40."""
    counted = [(kind, int(own or count)) for kind, _, own in (each.partition(":") for each in kinds)]
    return [
        case
        for seed in seeds
        for kind, count in counted
        for case in launches(
            seed, count, device, kind.removesuffix("-wild"), wild=kind.endswith("-wild"), release=release
        )
    ]


def answers(
    release: str, cases: Mapping[str, Sequence[Mapping[str, Any]]], *, fields: Iterable[str] = (), writes: bool = False
) -> Iterator[list[Answered]]:
    """The engine's answers, one device after the other.

    Raises:
        OracleError: the engine could not be asked.
    """
    for device, asked in cases.items():
        replies = ask(release, device, asked, fields=fields, writes=writes)
        yield [answered(device, case, reply) for case, reply in zip(asked, replies, strict=True)]


def add_draw_options(options: argparse.ArgumentParser) -> None:
    """The options that say which launches to draw."""
    options.add_argument("--devices", default="all", help="all, every, or a list a,b,c")
    options.add_argument("--count", type=int, default=20, help="of each kind, seed and device")
    options.add_argument("--seeds", default="1")
    options.add_argument("--kinds", default=KINDS)


def cases_of(given: argparse.Namespace, release: str) -> dict[str, list[dict[str, Any]]]:
    """The launches that the options ask for, by device."""
    seeds = [int(seed) for seed in given.seeds.split(",")]
    kinds = given.kinds.split(",")
    found = {device: drawn(device, seeds, given.count, kinds, release) for device in devices_of(given.devices)}
    return {device: cases for device, cases in found.items() if cases}


def given_cases(path: Path) -> dict[str, list[dict[str, Any]]]:
    """The launches of a file of JSON lines, by device; a line that starts with # is a remark."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            case = json.loads(line)
            argv = case["argv"]
            case["argv"] = argv.split() if isinstance(argv, str) else argv
            found.setdefault(case.get("device") or case["hardware"], []).append(case)
    return found


def recorded(
    release: str, cases: Mapping[str, Sequence[Mapping[str, Any]]], out: Path, before: Iterable[Answered] = ()
) -> list[Answered]:
    """Ask, and keep the answers in a file after each device, behind those that it held before; returns all of them.

    Raises:
        OracleError: the engine could not be asked.
    """
    found = list(before)
    for each in answers(release, cases, fields=reported(release)):
        found.extend(each)
        print(f"{each[0].device}: {len(each)} answers", file=sys.stderr)
        write(out, release, reported(release), found)
    return found


def main() -> int:
    """Record."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("release")
    add_draw_options(options)
    options.add_argument("--cases", type=Path)
    options.add_argument("--out", type=Path, help="default: the recorded answers of the tests")
    options.add_argument("--add", action="store_true")
    given = options.parse_args()
    out: Path = given.out or recorded_file(given.release)
    try:
        before = read(out)[1] if given.add and out.exists() else []
        cases = cases_of(given, given.release)
        for device, more in given_cases(given.cases).items() if given.cases else ():
            cases.setdefault(device, []).extend(more)
        found = recorded(given.release, cases, out, before)
    except (OracleError, RecordError) as error:
        print(f"oracle: {error}", file=sys.stderr)
        return 2
    print(f"{out}: {len(found)} launches, {out.stat().st_size} bytes", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
