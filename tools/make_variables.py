"""Lists the engine's environment variables that the wheels of its releases name; it must not say what one does.

    python tools/make_variables.py ~/.cache/sglang-oracle/sglang     # a folder with one unpacked wheel a release

A name counts when it stands anywhere in a release's files, in code of any language or in a text: what is in no file is read by
nobody. One that ends with an underscore is a beginning that the engine completes while it runs. `since` and `until` (half open)
span the releases that have it, those in between included.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TABLE = Path(__file__).resolve().parent.parent / "constraints" / "sglang" / "flags" / "variables.json"
NAME = re.compile(rb"(?<![A-Za-z0-9_])(?:SGLANG|SGL)_[A-Z0-9][A-Z0-9_]+")


def names_in(folder: Path) -> set[str]:
    """Every name that a file below the folder holds."""
    found: set[bytes] = set()
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            found.update(NAME.findall(path.read_bytes()))
    return {name.decode() for name in found}


def spans(named: Mapping[str, set[str]]) -> dict[str, list[str | None]]:
    """Name -> [since, until]; null where it is there from the first release on, or still in the last."""
    releases = list(named)
    table: dict[str, list[str | None]] = {}
    for name in sorted(set().union(*named.values())):
        places = [place for place, release in enumerate(releases) if name in named[release]]
        first, after = places[0], places[-1] + 1
        table[name] = [releases[first] if first else None, releases[after] if after < len(releases) else None]
    return table


def younger(table: Mapping[str, Any], release: str) -> dict[str, Any]:
    """The table as it was before its newest release was read for it."""
    kept = {
        name: [since, None if until == release else until]
        for name, (since, until) in table["names"].items()
        if since != release
    }
    return {"releases": [known for known in table["releases"] if known != release], "names": kept}


def added(table: Mapping[str, Any], release: str, named: set[str]) -> dict[str, Any]:
    """The table with what a release newer than every one in it names."""
    before = younger(table, release)
    names: dict[str, list[str | None]] = {}
    for name in sorted({*before["names"], *named}):
        since, until = before["names"].get(name, [release, None])
        names[name] = [since, None if name in named else until or release]
    return {"releases": [*before["releases"], release], "names": names}


def render(table: Mapping[str, Any]) -> str:
    """The table as JSON, one name a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(span)}" for name, span in table["names"].items()]
    head = f'{{"releases": {json.dumps(table["releases"])},\n"names": {{\n'
    return head + ",\n".join(lines) + "\n}}\n"


def main(root: Path) -> None:
    """Write the table of every release below a folder."""
    found = sorted(
        (path for path in root.iterdir() if path.is_dir()), key=lambda path: [*map(int, path.name.split("."))]
    )
    named = {path.name: names_in(path) for path in found}
    TABLE.write_text(render({"releases": list(named), "names": spans(named)}), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]).expanduser())
