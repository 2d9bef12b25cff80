"""Says which tool, rulebook and releases these are; it must not load a rule."""

from __future__ import annotations

import json
import sys
from importlib.metadata import PackageNotFoundError, version

from recommender.commands.inputs import known_format
from recommender.render.names import TEXT_FORMATS
from recommender.rulebook import load_rulebook

SCHEMA = "recommender.version/1"


def print_version(format_: str) -> None:
    """The tool's version, the rulebook's digest, and the engine releases it covers.

    Raises:
        UsageError: the format is none of this command's.
    """
    known_format(format_, TEXT_FORMATS)
    book = load_rulebook()
    releases = book.releases
    if format_ == "json":
        document = {
            "schema": SCHEMA,
            "version": tool_version(),
            "rulebook": book.digest,
            "releases": [{"sglang": release.version, "date": release.date} for release in releases],
        }
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
        return
    covered = "".join(f"SGLang {release.version} ({release.date})\n" for release in releases)
    sys.stdout.write(f"recommender {tool_version()}\nrulebook {book.digest}\n{covered}")


def tool_version() -> str:
    """The version of the installed package; of a checkout that was never installed, none."""
    try:
        return version("recommender")
    except PackageNotFoundError:
        return "0 (not installed)"
