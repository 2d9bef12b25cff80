"""Holds the flag catalogue, one table for all engine releases; it must not parse words or read files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from recommender.command_line import CommandLine, Parsed, Refusal, RefusalKind, Span
from recommender.errors import RulebookError, UsageError
from recommender.flags import Field, Flag
from recommender.versions import in_range, parse_release

__all__ = [
    "Catalogue",
    "CommandLine",
    "Field",
    "Flag",
    "Parsed",
    "Refusal",
    "RefusalKind",
    "Span",
    "load_catalogue",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Catalogue:
    """Every flag of every known release; `since` and `until` of an entry bound the releases it holds in."""

    releases: tuple[str, ...]
    entries: tuple[Mapping[str, Any], ...]
    _lines: dict[str, CommandLine] = field(default_factory=dict, repr=False, compare=False)

    def command_line(self, release: str) -> CommandLine:
        """The flags of one release.

        Raises:
            UsageError: the release is older than every one in the table.
        """
        line = self._lines.get(release)
        if line is None:
            wanted = parse_release(release)
            if wanted < parse_release(self.releases[0]):
                raise UsageError(f"no flags are known of sglang {release}; known are {', '.join(self.releases)}")
            bounds: dict[tuple[str | None, str | None], bool] = {}
            entries = []
            for entry in self.entries:
                span = (entry.get("since"), entry.get("until"))
                if span not in bounds:
                    bounds[span] = in_range(wanted, *span)
                if bounds[span]:
                    entries.append(entry)
            line = self._lines[release] = CommandLine(release, entries)
        return line


def load_catalogue(document: Any) -> Catalogue:
    """The catalogue from its JSON document.

    Raises:
        RulebookError: the document is not a catalogue.
    """
    try:
        if document["schema"] != 1:
            raise RulebookError(f"flag catalogue: schema {document['schema']!r} is not known")
        return Catalogue(releases=tuple(document["releases"]), entries=tuple(document["flags"]))
    except (KeyError, TypeError, IndexError) as error:
        raise RulebookError(f"flag catalogue: not a catalogue ({error!r})") from None
