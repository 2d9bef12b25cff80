"""Lists the engine's environment variables, from the wheels of its releases; it must not say what one does.

    python tools/make_variables.py ~/.cache/sglang-oracle/sglang     # a folder with one unpacked wheel a release

`names`: a name counts when it stands anywhere in a release's files, in code of any language or in a text: what is in no file is
read by nobody. One that ends with an underscore is a beginning that the engine completes while it runs. `since` and `until`
(half open) span the releases that have it, those in between included.

`old`: the names that a release itself calls deprecated, by its tables and descriptors in environ.py, and what it does with one:
`forwards` its text to another name (that text may be changed on the way), lets it `stand in` while the other name is unset, only
`warns` and still reads it, or `ignores` it, as no code of the release reads it. `types`: what environ.py declares a variable to
be, in every release that declares it, where no code reads the text in another way.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recommender.library import sealed
from recommender.versions import parse_release

TABLE = Path(__file__).resolve().parent.parent / "constraints" / "sglang" / "flags" / "variables.json"
FORMAT = "recommender-variables-2"
NAME = re.compile(rb"(?<![A-Za-z0-9_])(?:SGLANG|SGL)_[A-Z0-9][A-Z0-9_]+")
TEXTS = (".md", ".txt", ".json", ".rst")
KINDS = {"EnvBool": "bool", "EnvInt": "int", "EnvFloat": "float"}
TABLES = ("_DEPRECATED_ENVS", "_deprecated_ms_to_s")
CALLS = ("_print_deprecated_env", "_warn_deprecated_env_to_cli_flag")
LOOP_CHANGES = {"_deprecated_ms_to_s": "_ms_to_s"}  # what the loop over an older table does to a text


@dataclass
class Release:
    """What the files of one release hold: names, those that code reads (and how), deprecations, declared types."""

    named: set[str] = field(default_factory=set)
    fields: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    forwards: dict[str, tuple[str, str]] = field(default_factory=dict)
    stands_in: dict[str, str] = field(default_factory=dict)
    warned: set[str] = field(default_factory=set)
    types: dict[str, str] = field(default_factory=dict)

    def old(self, name: str) -> tuple[str, ...] | None:
        """(what the release does with a deprecated name, the name it becomes, how its text is changed)."""
        if name in self.forwards:
            return ("forwards", *filter(None, self.forwards[name]))
        if name in self.stands_in:
            return ("stands in", self.stands_in[name])
        if name in self.warned:
            return ("warns" if name in self.fields | self.texts else "ignores",)
        return None

    def kind(self, name: str) -> str:
        """The declared type of a variable; empty where code reads its text in another way."""
        return "" if name in self.texts else self.types.get(name, "")


def read_release(folder: Path) -> Release:
    """Everything that the files below a folder say of variables."""
    found = Release()
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.suffix == ".pyc":
            continue
        content = path.read_bytes()
        names = {name.decode() for name in NAME.findall(content)}
        found.named |= names
        if names and path.suffix == ".py":
            read_module(ast.parse(content), found, counts="test" not in path.relative_to(folder).parts)
        elif names and path.suffix not in TEXTS:
            found.texts |= names
    return found


def _called(node: ast.AST) -> str:
    function = node.func if isinstance(node, ast.Call) else None
    return (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )


def _text(node: ast.AST | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _keyword(call: ast.AST, name: str) -> ast.expr | None:
    words = call.keywords if isinstance(call, ast.Call) else []
    return next((word.value for word in words if word.arg == name), None)


def read_module(tree: ast.Module, found: Release, counts: bool = True) -> None:
    """Add what one module says; `counts` is false for code whose reading of a variable serves no launch.

    >>> module = ast.parse("A = EnvInt(1)\\n_print_deprecated_env('SGLANG_OLD', 'SGLANG_NEW')\\nx = envs.SGLANG_NEW.get()")
    >>> release = Release(); read_module(module, release); release.old("SGLANG_OLD"), release.fields
    (('forwards', 'SGLANG_NEW'), {'SGLANG_NEW'})
    """
    told = set(_told(tree, found))
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == "Envs":
            for line in node.body:
                if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
                    found.types[line.targets[0].id] = KINDS.get(_called(line.value).removesuffix("WithAlias"), "")
        if not counts:
            continue
        if isinstance(node, ast.Attribute) and NAME.fullmatch(node.attr.encode()):
            found.fields.add(node.attr)
        elif id(node) not in told and NAME.fullmatch(_text(node).encode(errors="replace")):
            found.texts.add(_text(node))


def _told(tree: ast.Module, found: Release) -> Iterator[int]:
    """Add the deprecations of a module; yields the nodes whose texts read nothing."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            yield id(node.value)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            yield id(node.slice)
        elif isinstance(node, ast.Call):
            new = _keyword(node, "deprecated_name")
            yield from (id(item) for item in (new, _keyword(node, "replacement")) if item is not None)
            if _called(node) in CALLS:
                yield from map(id, node.args)
                replacement = _text(node.args[1]) if len(node.args) > 1 and _called(node) == CALLS[0] else ""
                _deprecate(found, _text(node.args[0]), replacement)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            named = target.id if isinstance(target, ast.Name) else ""
            old = _text(_keyword(node.value, "deprecated_name")) if node.value is not None else ""
            if old:
                found.stands_in[old] = named
            if named in TABLES and isinstance(node.value, ast.Dict):
                for key, value in zip(node.value.keys, node.value.values, strict=True):
                    yield from (id(key), id(value))
                    change = _keyword(value, "transform")
                    _deprecate(
                        found,
                        _text(key),
                        _text(value) or _text(_keyword(value, "replacement")),
                        change.id if isinstance(change, ast.Name) else LOOP_CHANGES.get(named, ""),
                    )


def _deprecate(found: Release, name: str, replacement: str, change: str = "") -> None:
    if replacement:
        found.forwards[name] = (replacement, change)
    else:
        found.warned.add(name)


def spans(named: Mapping[str, set[str]]) -> dict[str, list[str | None]]:
    """Name -> [since, until]; null where it is there from the first release on, or still in the last."""
    releases = list(named)
    table: dict[str, list[str | None]] = {}
    for name in sorted(set().union(*named.values())):
        places = [place for place, release in enumerate(releases) if name in named[release]]
        first, after = places[0], places[-1] + 1
        table[name] = [releases[first] if first else None, releases[after] if after < len(releases) else None]
    return table


def old_names(read: Mapping[str, Release]) -> dict[str, list[list[Any]]]:
    """Deprecated name -> [since, until, what is done with it, ...], one entry for each run of releases that do the same."""
    releases = list(read)
    table: dict[str, list[list[Any]]] = {}
    for name in sorted({old for item in read.values() for old in (*item.forwards, *item.stands_in, *item.warned)}):
        said = [read[release].old(name) for release in releases]
        for place, now in enumerate(said):
            if now is None:
                continue
            if place and said[place - 1] == now:
                table[name][-1][1] = releases[place + 1] if place + 1 < len(releases) else None
            else:
                after = releases[place + 1] if place + 1 < len(releases) else None
                table.setdefault(name, []).append([releases[place] if place else None, after, *now])
    return table


def types(read: Mapping[str, Release]) -> dict[str, str]:
    """Name -> its declared type, where every release that declares it says the same and nothing reads its text itself."""
    kinds: dict[str, set[str]] = {}
    for item in read.values():
        for name in item.types:
            kinds.setdefault(name, set()).add(item.kind(name))
    return {name: min(kind) for name, kind in sorted(kinds.items()) if len(kind) == 1 and min(kind)}


def made(read: Mapping[str, Release]) -> dict[str, Any]:
    """The table of some releases, oldest first."""
    names = spans({release: item.named for release, item in read.items()})
    return {"releases": list(read), "names": names, "old": old_names(read), "types": types(read)}


def younger(table: Mapping[str, Any], release: str) -> dict[str, Any]:
    """The table as it was before its newest release was read for it; of a type it may know less."""

    def open_end(until: str | None) -> str | None:
        return None if until == release else until

    names = {name: [since, open_end(until)] for name, (since, until) in table["names"].items() if since != release}
    runs = {
        name: [[since, open_end(until), *what] for since, until, *what in runs if since != release]
        for name, runs in table["old"].items()
    }
    return {
        "releases": [known for known in table["releases"] if known != release],
        "names": names,
        "old": {name: left for name, left in runs.items() if left},
        "types": {name: kind for name, kind in table["types"].items() if name in names},
    }


def added(table: Mapping[str, Any], release: str, read: Release) -> dict[str, Any]:
    """The table with what a release newer than every one in it says."""
    before = younger(table, release)
    names: dict[str, list[str | None]] = {}
    for name in sorted({*before["names"], *read.named}):
        since, until = before["names"].get(name, [release, None])
        names[name] = [since, None if name in read.named else until or release]
    old: dict[str, list[list[Any]]] = {}
    for name in sorted({*before["old"], *read.forwards, *read.stands_in, *read.warned}):
        runs, now = [list(run) for run in before["old"].get(name, ())], read.old(name)
        same = bool(runs) and runs[-1][1] is None and tuple(runs[-1][2:]) == now
        if runs and runs[-1][1] is None and not same:
            runs[-1][1] = release
        old[name] = [*runs, *([[release, None, *now]] if now and not same else [])]
    kinds: dict[str, str] = {}
    for name in sorted({*before["types"], *read.types}):
        kind = read.kind(name) if name in read.types else before["types"][name]
        if kind and (before["types"].get(name) == kind or name not in before["names"]):
            kinds[name] = kind
    return {"releases": [*before["releases"], release], "names": names, "old": old, "types": kinds}


def render(table: Mapping[str, Any]) -> str:
    """The table as JSON, one entry a line, behind a line that says how many there are."""
    parts = {part: table[part] for part in ("names", "old", "types")}
    counts = {part: len(entries) for part, entries in parts.items()}
    texts = [json.dumps({"format": FORMAT, "releases": table["releases"], "counts": counts})[:-1]]
    for part, entries in parts.items():
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in entries.items())
        texts.append(f'"{part}": {{\n{lines}\n}}')
    return sealed(",\n".join(texts) + "}\n")


def unpacked(root: Path) -> list[Path]:
    """The releases that lie unpacked below a folder, the oldest first."""
    return sorted((path for path in root.iterdir() if path.is_dir()), key=lambda path: parse_release(path.name))


def main(root: Path) -> None:
    """Write the table of every release below a folder."""
    TABLE.write_text(render(made({path.name: read_release(path) for path in unpacked(root)})), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]).expanduser())
