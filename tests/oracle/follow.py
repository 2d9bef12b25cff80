"""Follows a new engine release: sets it up, reads what it changed, asks it and says where we part; it must not write a law.

    python -m tests.oracle.follow LAST NEW                 # setup, tables, read and a first round of ask, one after the other
    python -m tests.oracle.follow LAST NEW STEP...         # some of them; each can be repeated

    setup      the wheel of NEW, when it is not there
    tables     what NEW's command line accepts, its variables, parses and model classes, its line in releases.yaml
    read       the reading list: refusals that no law explains, that are new or gone; laws whose evidence changed; flags; variables
    ask        draw launches, ask NEW, and show the engine's source behind each disagreement, beside LAST's
    examples   ask NEW about the examples of every law that holds in it; keeps the answers
    keep       record NEW's answers to drawn launches for the tests (all devices, unless --devices says others)

LAST is the newest covered release. Lists and reports go to stdout, and how long a step took to stderr. Exit 1 when we and the
engine part, 2 when a step could not be done.
"""

from __future__ import annotations

import argparse
import gc
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from recommender.errors import RecommenderError
from recommender.session import Session
from recommender.versions import parse_release
from tools import make_catalogue, make_variables, trace_classes, trace_laws

from . import client, compare, record
from .agree import compare as compared
from .examples import all_examples
from .places import behind_law, refusal_at, writers_of
from .records import DATA, Answered, RecordError, recorded_file

ROOT = Path(__file__).resolve().parent.parent.parent
RELEASES = ROOT / "constraints" / "sglang" / "releases.yaml"
DEVICE = "b200"  # where the command line is read; it is the same on every device
FIRST = ("setup", "tables", "read", "ask")
QUICK = "b200,h100,mi300x"
KINDS = "plain,harsh,wide,harsh-wild,crossed:40"  # crossed: laws' own examples, where a law that changed shows first
KEPT = "plain:15,others:8,harsh:30,wide:25,plain-wild:12,harsh-wild:20,crossed:20"
ORDER = (
    "refusal + resolution",
    "refusal + unexplained",
    "refusal +",
    "refusal -",
    "law absent",
    "law changed",
    "law moved",
    "law",
    "flag",
    "variable",
)
RESOLUTION = tuple(f"refusal + {place}" for place in ("server_args.py ", "arg_groups/", "configs/model_config.py "))
TITLES = {
    "refusal + resolution": "New refusals of the resolution that no law explains: a launch can meet each",
    "refusal + unexplained": "New refusals elsewhere that no law explains: at load, in a request, or inside",
    "refusal +": "New refusals, and the law whose pattern they match",
    "refusal -": "Refusals that went",
    "law absent": "Laws whose evidence went: `until`, or a new source",
    "law changed": "Laws whose evidence changed: the same, or an edition",
    "law moved": "Laws whose evidence stands elsewhere",
    "law": "Other laws",
    "flag": "Flags (+ new, - gone, ~ changed)",
    "variable": "Environment variables",
}


class FollowError(Exception):
    """A step cannot be done; the message is one line that says what to do."""


# --- pure parts -------------------------------------------------------------------------------------------------------


def registered(text: str, release: str, date: str) -> str:
    """releases.yaml with a release; as it is when it names the release already."""
    if re.search(rf'version: "{re.escape(release)}"', text):
        return text
    lines = text.split("\n")
    last = max(at for at, line in enumerate(lines) if re.match(r"\s+- \{version:", line))
    lines.insert(last + 1, f'  - {{version: "{release}", date: "{date}"}}')
    return "\n".join(lines)


def versions_in(text: str) -> list[str]:
    """The releases that releases.yaml names, oldest first."""
    return sorted(re.findall(r'version: "([\d.]+)"', text), key=parse_release)


def sections(lines: Iterable[str]) -> Iterator[str]:
    """The reading list under titles, what asks for a law first."""
    found: dict[str, list[str]] = {}
    notes = []
    for line in lines:
        kind = next((name for name in ORDER if line.startswith(f"{name} ")), None)
        if kind == "refusal +" and not re.search(r" \[[a-z][\w-]*\]$", line):
            kind = "refusal + resolution" if line.startswith(RESOLUTION) else "refusal + unexplained"
        if kind is None:
            notes.append(line)
        else:
            found.setdefault(kind, []).append(line.removeprefix("refusal + ").removeprefix("refusal - "))
    yield from notes
    for kind in ORDER:
        if kind in found:
            yield from ("", f"{TITLES[kind]}: {len(found[kind])}")
            yield from (f"  {line}" for line in found[kind])


def covered(last: str, new: str, known: list[str]) -> None:
    """Whether a release can follow another.

    Raises:
        FollowError: LAST is not covered, or NEW is not the release after it.
    """
    before = [release for release in known if release != new]
    if last not in before:
        raise FollowError(f"{last} is not covered; the newest release before {new} is {before[-1]}")
    if parse_release(new) <= parse_release(last) or before[-1] != last:
        raise FollowError(f"{new} does not follow {last}; the newest other covered release is {before[-1]}")


# --- steps ------------------------------------------------------------------------------------------------------------


def setup(last: str, new: str, given: argparse.Namespace) -> int:
    """The wheel of NEW."""
    for release in (last, new):
        if not client.is_set_up(release) or (release == new and not _built(new).is_file()):
            done = subprocess.run([str(client.ENGINE / "setup"), release], check=False)
            if done.returncode:
                raise FollowError(f"tests/oracle/engine/setup {release} failed; its last line says why")
    return 0


def _built(release: str) -> Path:
    return client.home() / "sglang" / release / "BUILT"


def tables(last: str, new: str, given: argparse.Namespace) -> int:
    """What NEW's command line accepts, the variables that it names, its parses and its line in releases.yaml."""
    script = str(ROOT / "tools" / "make_catalogue.py")
    dump = json.loads(client.run(new, DEVICE, [script, "dump", "--prelude", "device", "--release", new], folders=ROOT))
    table = json.loads(make_catalogue.TABLE.read_text(encoding="utf-8"))
    make_catalogue.TABLE.write_text(make_catalogue.render(make_catalogue.merge(table, [dump])), encoding="utf-8")
    _say(f"{make_catalogue.TABLE.relative_to(ROOT)}: {len(dump['flags'])} flags in {new}")
    read = make_variables.read_release(client.home() / "sglang" / new)
    known = json.loads(make_variables.TABLE.read_text(encoding="utf-8"))
    made = make_variables.added(known, new, read)
    make_variables.TABLE.write_text(make_variables.render(made), encoding="utf-8")
    _say(f"{make_variables.TABLE.relative_to(ROOT)}: {len(read.named)} variables in {new}")
    _classes(new)
    parses = DATA / f"parse-{new}.jsonl.gz"
    words = [sys.executable, "-m", "tests.oracle.client", new, DEVICE, "--run", "tools/record_parses.py"]
    with parses.open("wb") as out:
        done = subprocess.run([*words, "--prelude", "device", "--release", new], cwd=ROOT, stdout=out, check=False)
    if done.returncode:
        parses.unlink()
        raise FollowError(f"tools/record_parses.py failed for {new}; the line above says why")
    _say(f"{parses.relative_to(ROOT)}: {parses.stat().st_size} bytes")
    if not _built(new).is_file():
        raise FollowError(f"{_built(new)} is missing; run tests/oracle/engine/setup {new}")
    date = _built(new).read_text(encoding="utf-8").strip()
    RELEASES.write_text(registered(RELEASES.read_text(encoding="utf-8"), new, date), encoding="utf-8")
    _say(f"{RELEASES.relative_to(ROOT)}: {new}, built {date}")
    return 0


def _classes(new: str) -> None:
    """Note the model classes of NEW, and say which no profile describes as the sources do."""
    known = json.loads(trace_classes.TABLE.read_text(encoding="utf-8"))
    table = trace_classes.added(known, new, client.home() / "sglang" / new)
    trace_classes.TABLE.write_text(trace_classes.render(table), encoding="utf-8")
    documents = trace_classes.read(sorted(trace_classes.PROFILES.glob("*.yaml")))
    fresh = [name for name in table["classes"] if name not in known["classes"] and name not in documents]
    differ = sorted({f"{name} ({fact})" for name, fact, _ in trace_classes.differences(table, documents)})
    _say(f"{trace_classes.TABLE.relative_to(ROOT)}: new classes without a profile: {', '.join(fresh) or 'none'}")
    _say(f"profiles/architectures that differ from their class now: {', '.join(differ) or 'none'}")


def read(last: str, new: str, given: argparse.Namespace) -> int:
    """The reading list."""
    gc.disable()  # trees are many small objects that all live as long as their release
    engines = client.home() / "sglang"
    for line in sections(trace_laws.follow(last, new, engines, client.home() / "traces")):
        compare.say(line)
    return 0


def ask(last: str, new: str, given: argparse.Namespace) -> int:
    """Ask NEW about drawn launches, and show what is behind each disagreement."""
    _, tally = compare.live_tally(new, given)
    compare.report(tally, given.show, given.at, partial(behind, compare.session_of(new), last))
    return 1 if tally.causes else 0


def behind(session: Session, last: str, cause: str, launch: Answered) -> list[str]:
    """The engine's source behind one disagreement."""
    new = session.edition.release
    if not launch.ok:
        chain = [f"through {' > '.join(launch.chain)}"] if launch.chain else []
        return [*refusal_at(new, last, launch.at), *chain]
    differences = compared(session, launch).differences
    difference = next((each for each in differences if each.cause == cause), None)
    if difference is None:
        return []
    writer = next(
        (function for function, written in reversed(launch.writes) if difference.name in written and function), ""
    )
    lines = writers_of(new, last, writer, difference.name) if difference.name else []
    laws = [law for each in difference.rules for law in session.book.rules.get(each, ())[:1]]
    return [*lines, *(line for law in laws if not lines for line in behind_law(new, last, law))]


def examples(last: str, new: str, given: argparse.Namespace) -> int:
    """Ask NEW about the examples of every law that holds in it."""
    session = compare.session_of(new)
    chosen = compare.chosen_examples(all_examples(session.book), [new], given.rules)
    return compare.run_examples(new, chosen, given.show, False, partial(behind, session, last))


def keep(last: str, new: str, given: argparse.Namespace) -> int:
    """Record NEW's answers to drawn launches."""
    given.devices, given.kinds = given.devices if given.devices != QUICK else "all", KEPT
    out = recorded_file(new)
    found = record.recorded(new, record.cases_of(given, new), out)
    _say(f"{out.relative_to(ROOT)}: {len(found)} launches, {out.stat().st_size} bytes")
    tally = compare.tally_of(compare.session_of(new), found)
    compare.report(tally, given.show, given.at)
    return 1 if tally.causes else 0


STEPS: Mapping[str, Callable[[str, str, argparse.Namespace], int]] = {
    "setup": setup, "tables": tables, "read": read, "ask": ask, "examples": examples, "keep": keep
}  # fmt: skip


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def steps_of(asked: list[str]) -> list[str]:
    """The steps to do, in the order that they were asked for.

    Raises:
        FollowError: there is no such step.
    """
    unknown = [name for name in asked if name not in STEPS]
    if unknown:
        raise FollowError(f"no step {unknown[0]!r}; the steps are {', '.join(STEPS)}")
    return asked or list(FIRST)


def one(step: str, given: argparse.Namespace) -> int:
    """Do one step, and say how long it took."""
    began = time.monotonic()
    done = STEPS[step](given.last, given.new, given)
    _say(f"{step}: {time.monotonic() - began:.0f} s")
    return done


def several(steps: list[str], words: list[str], given: argparse.Namespace) -> int:
    """Do steps, each in a process of its own, as one reads what another wrote; a step that fails is the last."""
    done = 0
    for step in steps:
        own = [word for word in words if word not in STEPS]
        code = subprocess.run(
            [sys.executable, "-m", "tests.oracle.follow", *own, step], cwd=ROOT, check=False
        ).returncode
        if code > 1:
            return code
        done = max(done, code)
    return done


def main() -> int:
    """Follow a release."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("last")
    options.add_argument("new")
    options.add_argument("steps", nargs="*", metavar="STEP")
    record.add_draw_options(options)
    options.set_defaults(devices=QUICK, count=8, kinds=KINDS, keep=None)
    options.add_argument("--keep", type=Path, help="with ask: a folder that keeps the answers too")
    options.add_argument("--rules", default="", help="with examples: only rules whose id matches")
    options.add_argument("--show", type=int, default=2)
    options.add_argument("--at", default="", help="only causes that match this pattern")
    given = options.parse_args()
    try:
        steps = steps_of(given.steps)
        covered(given.last, given.new, versions_in(RELEASES.read_text(encoding="utf-8")))
        return one(steps[0], given) if len(steps) == 1 else several(steps, sys.argv[1:], given)
    except (FollowError, client.OracleError, RecordError, RecommenderError, OSError, ValueError) as error:
        print(f"follow: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 2


if __name__ == "__main__":
    sys.exit(main())
