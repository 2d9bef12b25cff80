"""Traces what the engine's model classes can do through its releases, and holds the profiles to it; it must not judge a launch.

Reads the engine's Python as text (nothing is imported). For each release of a folder of unpacked wheels it notes the classes
that a module of `models/` registers, which of them hand hidden states to a draft (they or a class they inherit from define the
method), and which names the engine rewrites when the checkpoint is its own draft.

    python -m tools.trace_classes ~/.cache/sglang-oracle/sglang          # where profiles/architectures differ; exit 1
    python -m tools.trace_classes ~/.cache/sglang-oracle/sglang --write  # also tests/data/engine-classes.json, and `earlier:`

`--write` adds what a class was in older releases to the profiles that do not say it; what it cannot add it lists.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from recommender.profiles import earlier_facts
from recommender.versions import parse_release
from tools.make_variables import unpacked

ROOT = Path(__file__).resolve().parent.parent
PROFILES = ROOT / "profiles" / "architectures"
TABLE = ROOT / "tests" / "data" / "engine-classes.json"
REGISTERED, REWRITES = "EntryClass", "_config_draft_model"
METHODS = {
    "captures_eagle3": "set_eagle3_layers_to_capture",
    "captures_dflash": "set_dflash_layers_to_capture",
    "captures_dspark": "set_dspark_layers_to_capture",
}
KNOWN = "has_engine_class"
TRAITS = (KNOWN, *METHODS, "rewritten")

Traits = Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class Classes:
    """The classes below `models/` of a release by module and name: (what each defines, what it inherits from).

    `registered` says which module registers a name; several modules may define a class of one name.
    """

    defined: Mapping[tuple[str, str], tuple[frozenset[str], tuple[str, ...]]]
    registered: Mapping[str, str]

    def has(self, name: str, method: str, module: str = "", seen: frozenset[tuple[str, str]] = frozenset()) -> bool:
        """Whether a class, or one that it inherits from, defines a method; without a module the registered class."""
        place = (module or self.registered.get(name, ""), name)
        if place not in self.defined:  # imported: from a module that we do not follow, so from any that defines the name
            place = next((each for each in self.defined if each[1] == name), place)
        if place in seen or place not in self.defined:
            return False
        members, bases = self.defined[place]
        return method in members or any(self.has(base, method, place[0], seen | {place}) for base in bases)


def classes_of(folder: Path) -> Classes:
    """The model classes of an unpacked release."""
    defined: dict[tuple[str, str], tuple[frozenset[str], tuple[str, ...]]] = {}
    registered: dict[str, str] = {}
    for path in sorted((folder / "sglang" / "srt" / "models").rglob("*.py")):
        module = str(path)
        for node in ast.parse(path.read_text(encoding="utf-8-sig")).body:
            if isinstance(node, ast.ClassDef):
                bases = tuple(ast.unparse(base).rpartition(".")[2] for base in node.bases)
                defined[module, node.name] = (frozenset(_members(node)), bases)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)) and REGISTERED in _targets(node) and node.value:
                named = node.value.elts if isinstance(node.value, (ast.List, ast.Tuple)) else [node.value]
                registered.update((each.id, module) for each in named if isinstance(each, ast.Name))
    return Classes(defined, registered)


def _members(node: ast.ClassDef) -> Iterator[str]:
    for each in node.body:
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield each.name
        elif isinstance(each, (ast.Assign, ast.AnnAssign)):
            yield from _targets(each)


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [each.id for each in targets if isinstance(each, ast.Name)]


def rewritten(folder: Path) -> frozenset[str]:
    """Names of the function that gives a checkpoint its draft class; some are compared with, some are given."""
    tree = ast.parse((folder / "sglang" / "srt" / "configs" / "model_config.py").read_text(encoding="utf-8-sig"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == REWRITES]
    return frozenset(
        leaf.value
        for node in found
        for test in ast.walk(node)
        if isinstance(test, ast.Compare)
        for leaf in ast.walk(test)
        if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str)
    )


def traits(classes: Classes, drafts: frozenset[str], name: str) -> dict[str, bool]:
    """What a release makes of an architecture's name."""
    known = name in classes.registered
    return {
        KNOWN: known,
        **{fact: known and classes.has(name, method) for fact, method in METHODS.items()},
        "rewritten": name in drafts,
    }


def table_of(engines: Path) -> dict[str, dict[str, Traits]]:
    """Architecture -> release -> what the release makes of it, the oldest release first."""
    read = {path.name: (classes_of(path), rewritten(path)) for path in unpacked(engines)}
    names = sorted(set[str]().union(*(drafts.union(classes.registered) for classes, drafts in read.values())))
    return {name: {release: traits(*read[release], name) for release in read} for name in names}


def spans(table: Mapping[str, Mapping[str, Traits]]) -> dict[str, Any]:
    """The table with each trait as the releases that have it: true for all, false for none, else a list."""
    releases = list(next(iter(table.values())))
    found: dict[str, dict[str, Any]] = {}
    for name, by_release in table.items():
        for trait in next(iter(by_release.values())):
            having = [release for release in releases if by_release[release][trait]]
            if having:
                found.setdefault(name, {})[trait] = True if having == releases else having
    return {"releases": releases, "classes": found}


def added(known: Mapping[str, Any], release: str, folder: Path) -> dict[str, Any]:
    """The table of `spans` with one more release, read from its unpacked wheel; one that it holds already is read anew."""
    releases = sorted({*known["releases"], release}, key=parse_release)
    classes, drafts = classes_of(folder), rewritten(folder)
    old = known["classes"]
    return spans(
        {
            name: {
                each: traits(classes, drafts, name)
                if each == release
                else {trait: had(old.get(name, {}), trait, each) for trait in TRAITS}
                for each in releases
            }
            for name in sorted({*old, *classes.registered, *drafts})
        }
    )


def had(entry: Mapping[str, Any], trait: str, release: str) -> bool:
    """Whether an architecture of `spans` had a trait in a release."""
    having = entry.get(trait, False)
    return having if isinstance(having, bool) else release in having


def stated(document: Mapping[str, Any], fact: str, release: str) -> Any:
    """What an architecture's profile says of a fact as of a release; None when it is silent."""
    told = (*earlier_facts(document, str(document.get("architecture", "")), release), document.get("facts") or {})
    return next((facts[fact] for facts in told if fact in facts), None)


def said(document: Mapping[str, Any], release: str) -> dict[str, bool]:
    """The traced facts of an architecture's profile as of a release; a renamed one is what it is renamed to."""
    return {KNOWN: stated(document, KNOWN, release) is not False} | {
        fact: bool(stated(document, fact, release)) for fact in METHODS
    }


def differences(table: Mapping[str, Any], documents: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """(architecture, fact, release) where a profile says other than the sources."""
    for name, document in documents.items():
        entry = table["classes"].get(name, {})
        facts = document.get("facts") or {}
        if "architectures" in facts or facts.get(KNOWN) is True:
            continue  # it is renamed to another one, or the profile says why it counts as known
        for release in table["releases"]:
            for fact, value in said(document, release).items():
                if fact != KNOWN and stated(document, KNOWN, release) is False:
                    continue  # a class that is not there does nothing
                if value != had(entry, fact, release):
                    yield name, fact, release


def earlier(entry: Mapping[str, Any], releases: Sequence[str]) -> list[dict[str, Any]]:
    """The `earlier` of an architecture: what its class was before the releases in which that changed, the last change first."""
    found: list[dict[str, Any]] = []
    newest, known = releases[-1], [had(entry, KNOWN, release) for release in releases]
    first = known.index(True)
    for place in range(len(releases) - 1, first, -1):
        facts = {
            fact: had(entry, fact, releases[place - 1])
            for fact in METHODS
            if had(entry, fact, releases[place - 1]) != had(entry, fact, releases[place])
        }
        if facts:
            found.append({"until": releases[place], "facts": facts})
    if first:
        since = releases[first]
        found.append({"until": since, "facts": {KNOWN: False, "class_comes_with": since}})
    assert had(entry, KNOWN, newest)
    return found


def written(text: str, entries: Sequence[Mapping[str, Any]]) -> str:
    """An architecture's file with its `earlier` before its sources."""
    lines = ["earlier:"]
    for entry in entries:
        facts = ", ".join(f"{name}: {json.dumps(value)}" for name, value in entry["facts"].items())
        lines.append(f'  - {{until: "{entry["until"]}", facts: {{{facts}}}}}')
    head, mark, tail = text.partition("source:")
    return head + "\n".join(lines) + "\n" + mark + tail


def render(table: Mapping[str, Any]) -> str:
    """The table as its file, one class a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in table["classes"].items()]
    return f'{{"releases": {json.dumps(table["releases"])},\n"classes": {{\n' + ",\n".join(lines) + "\n}}\n"


def main() -> int:
    """Compare, and write when asked to."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("engines", type=Path, help="a folder with one unpacked wheel a release")
    options.add_argument("--write", action="store_true")
    given = options.parse_args()
    table = spans(table_of(given.engines.expanduser()))
    paths = sorted(PROFILES.glob("*.yaml"))
    if given.write:
        TABLE.write_text(render(table), encoding="utf-8")
        wrong = {name for name, _, _ in differences(table, read(paths))}
        for path in paths:
            text = path.read_text(encoding="utf-8")
            entry = table["classes"].get(path.stem, {})
            if path.stem in wrong and "earlier:" not in text and had(entry, KNOWN, table["releases"][-1]):
                path.write_text(written(text, earlier(entry, table["releases"])), encoding="utf-8")
    found = list(differences(table, read(paths)))
    for name, fact, release in found:
        print(f"{name}: {fact} as of {release}")
    return 1 if found else 0


def read(paths: Sequence[Path]) -> dict[str, Mapping[str, Any]]:
    """Architecture -> its profile."""
    return {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in paths}


if __name__ == "__main__":
    sys.exit(main())
