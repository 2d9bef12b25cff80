"""Writes docs/rules.md, every law in a table with a launch that trips it; it must not judge.

python -m tools.law_table            # writes the file
python -m tools.law_table --check    # exit 1 when the file is stale
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from recommender.laws import Rule
from recommender.rulebook import Rulebook, load_rulebook
from recommender.versions import in_range, parse_release
from tests.oracle.probes import PROBES
from tests.oracle.probes.outcomes import RELEASES, recorded, shown

FILE = Path(__file__).resolve().parent.parent / "docs" / "rules.md"
_SHOWS = ("breaks", "sets")
_VERIFIED = {"engine": "engine run", "source": "source"}
_BITES = {"parse": "while parsing", "startup": "at startup", "load": "after loading", "request": "at a request"}
_EFFECTS = {"sets": "rewrites", "degrades": "runs degraded", "notes": "sizes"}


def text(book: Rulebook) -> str:
    """The whole catalogue as Markdown."""
    laws = sorted((editions for editions in book.rules.values()), key=lambda each: (each[0].topic, each[0].id))
    newest = book.releases[-1].version
    lines = [
        "# The laws",
        "",
        f"{len(laws)} laws of SGLang {book.releases[0].version} to {newest}, by topic; `python -m tools.law_table` writes it.",
        "",
        "What verified it: *engine run*, the engine's own launch-time resolution on a CPU shows it (`tests/oracle`); *probe*,",
        "the engine's own later check was called and showed it in these releases (`tests/oracle/probes`); *source*, it was read",
        "only. The launch is one that trips the law, on the device before the colon; `recommender rules show LAW` has the",
        "neighbour that does not, the condition, the cures and the source.",
        "",
        "| bites | laws | engine run | probe | source |",
        "|---|---|---|---|---|",
        *_summary(laws),
    ]
    for topic, group in groupby(laws, key=lambda each: each[0].topic):
        lines += [
            "",
            f"## {topic}",
            "",
            "| law | bites | releases | verified by | a launch that trips it |",
            "|---|---|---|---|---|",
        ]
        lines += [_row(book, editions) for editions in group]
    return "\n".join(lines) + "\n"


def _summary(laws: Sequence[Sequence[Rule]]) -> Iterator[str]:
    kinds = [(_when(editions[0]), verified(editions[0])) for editions in laws]
    for when in (*_BITES.values(), *_EFFECTS.values()):
        counted = [sum(kind == (when, how) for kind in kinds) for how in ("engine run", "probe", "source")]
        yield f"| {when} | {sum(counted)} | {' | '.join(map(str, counted))} |"


def _when(rule: Rule) -> str:
    return _BITES[rule.bites.value] if rule.bites is not None else _EFFECTS[rule.effect.value]


def verified(rule: Rule) -> str:
    """engine run, probe or source."""
    probed = any(probe.rule == rule.id for probe in PROBES)
    return "probe" if probed and rule.verified == "engine" else _VERIFIED[rule.verified or "source"]


def releases(book: Rulebook, editions: Iterable[Rule]) -> str:
    """The covered releases that a law holds in, as ranges."""
    spans = [(rule.since, rule.until) for rule in editions]
    return ranges(
        each.version for each in book.releases if any(in_range(parse_release(each.version), *span) for span in spans)
    )


def ranges(versions: Iterable[str]) -> str:
    """Some of the covered releases, as ranges."""
    held = frozenset(versions)
    words = []
    for holds, group in groupby(RELEASES, key=held.__contains__):
        if holds:
            run = list(group)
            words.append(run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}")
    return ", ".join(words)


@cache
def probed(law: str) -> str:
    """The releases in which a probe showed a law, as ranges."""
    names = {probe.name for probe in PROBES if probe.rule == law}
    return ranges(release for release in RELEASES if names & shown(release, recorded(release)))


def _row(book: Rulebook, editions: Sequence[Rule]) -> str:
    rule = editions[0]
    cells = (
        f"`{rule.id}`<br>{rule.statement}",
        _when(rule),
        releases(book, editions),
        f"probe, {probed(rule.id)}" if verified(rule) == "probe" else verified(rule),
        _launch(rule.examples),
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _launch(examples: Sequence[Mapping[str, Any]]) -> str:
    for kind in _SHOWS:
        for example in examples:
            if kind in example:
                device = example.get("gpu")
                variables = "".join(f"{name}={value} " for name, value in (example.get("env") or {}).items())
                where = device if isinstance(device, str) else "a device of its own" if device else "any"
                return f"{where}: `{variables}{' '.join(str(example[kind]).split())}`"
    return ""


def main() -> int:
    """Write the file, or say whether it is stale."""
    made = text(load_rulebook())
    if "--check" in sys.argv[1:]:
        stale = not FILE.exists() or FILE.read_text(encoding="utf-8") != made
        if stale:
            print(f"{FILE.name} is stale: python -m tools.law_table")
        return int(stale)
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(made, encoding="utf-8")
    print(f"{FILE}: {made.count(chr(10))} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
