"""Begins or ends editions of laws in a release, as text; it must not know what a law says.

    python -m tools.edition 0.5.23 ID...          # the newest edition of each law ends, and a copy of it begins on top
    python -m tools.edition 0.5.23 --end ID...    # each law ends

A copy names the release as the one that its source was read in. Write its statement, condition and examples anew then.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from recommender.errors import RecommenderError
from recommender.versions import parse_release
from tools.yaml_edit import documents, replaced

RULES = Path(__file__).resolve().parent.parent / "constraints" / "sglang"
BOUND = '(?m)^{}:[ \t]*"?([\\w.]+)"?[ \t]*$'


class EditionError(Exception):
    """An edition cannot begin or end; the message is one line that says why."""


def bound(document: str, name: str) -> str:
    """`since` or `until` of an edition; empty where it has none."""
    found = re.search(BOUND.format(name), document)
    return found.group(1) if found else ""


def ended(document: str, release: str) -> str:
    """An edition that ends in a release.

    Raises:
        EditionError: it has ended, or does not begin before that release.
    """
    since, until = bound(document, "since"), bound(document, "until")
    if until:
        raise EditionError(f"its newest edition ends in {until}")
    if not since or parse_release(since) >= parse_release(release):
        raise EditionError(f"its newest edition begins in {since or 'no release'}, not before {release}")
    return re.sub(BOUND.format("since"), f'since: "{since}"\nuntil: "{release}"', document, count=1)


def begun(document: str, release: str) -> str:
    """A copy of an edition that begins in a release and was read in it."""
    copy = re.sub(BOUND.format("since"), f'since: "{release}"', document, count=1)
    return replaced(copy, lambda keys: (keys[0], keys[-1]) == ("source", "release"), lambda _: f'"{release}"')


def changed(text: str, release: str, end: bool) -> str:
    """A rule file in which the newest edition ends in a release and, unless the law ends, a copy of it begins there."""
    newest, *older = documents(text)
    last = ended(newest, release)
    return "---\n".join([last, *older] if end else [begun(newest, release), last, *older])


def main() -> int:
    """Begin or end editions; a law that cannot be changed is named, and the others are."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("release")
    options.add_argument("laws", nargs="+", metavar="ID")
    options.add_argument("--end", action="store_true", help="the law ends, without a new edition")
    given = options.parse_args()
    wrong = 0
    for law in given.laws:
        try:
            path = next(RULES.glob(f"*/{law}.yaml"), None)
            if path is None:
                raise EditionError(f"no file constraints/sglang/*/{law}.yaml")
            path.write_text(changed(path.read_text(encoding="utf-8"), given.release, given.end), encoding="utf-8")
            print(path.relative_to(RULES.parent.parent))
        except (EditionError, RecommenderError, OSError) as error:
            print(f"edition: {law}: {error}", file=sys.stderr)
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
