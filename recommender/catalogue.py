"""Holds the flag catalogue, one table for all engine releases; it must not parse words or read files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from recommender.command_line import CommandLine, Parsed, Refusal, RefusalKind, Span
from recommender.errors import RulebookError, UsageError
from recommender.flags import Field, Flag
from recommender.versions import Release, in_range, parse_release

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
    """Every flag of every known release; `since` and `until` of an entry bound the releases it holds in.

    `renamed` are flags that went, each with the one that does its work since, where the table itself does not tell.
    """

    releases: tuple[str, ...]
    entries: tuple[Mapping[str, Any], ...]
    renamed: Mapping[str, str] = field(default_factory=dict)
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
            line = self._lines[release] = CommandLine(
                release, entries, partial(self._history, wanted), partial(self._stand_in, wanted)
            )
        return line

    def _history(self, release: Release, flag: str) -> str:
        """What other releases make of a flag that this one does not take: when it comes, or when it went and for what."""
        held = [entry for entry in self.entries if flag in entry["names"]]
        gone = sorted({str(entry["until"]) for entry in held if "until" in entry}, key=parse_release)
        gone = [until for until in gone if parse_release(until) <= release]
        coming = sorted({str(entry["since"]) for entry in held}, key=parse_release)
        coming = [since for since in coming if parse_release(since) > release]
        if gone:
            told = f"{flag} went with {gone[-1]}"
        elif coming:
            told = f"{flag} comes with {coming[0]}"
        else:
            return ""
        other = self._stand_in(release, flag)
        return f"{told}; {other} does its work here" if other else told

    def _stand_in(self, release: Release, flag: str) -> str:
        """The flag of a release that sets what another release's flag does; empty when the table knows of none."""
        held = [entry for entry in self.entries if flag in entry["names"]]
        here = [entry for entry in self.entries if in_range(release, entry.get("since"), entry.get("until"))]
        names = {name for entry in here for name in entry["names"]}
        back = [old for old, new in self.renamed.items() if new.partition("=")[0] == flag]
        named = [str(entry["instead"]) for entry in held if entry.get("instead")]
        named += [*([self.renamed[flag]] if flag in self.renamed else []), *back]
        fields = {entry["field"] for entry in held}
        alike = [entry["names"][0] for entry in here if entry["field"] in fields and not entry.get("deprecated")]
        aging = [name for entry in self.entries if entry.get("instead") == flag for name in entry["names"]]
        return next((name for name in (*named, *alike, *aging) if name.partition("=")[0] in names), "")


def load_catalogue(document: Any, renamed: Mapping[str, str] | None = None) -> Catalogue:
    """The catalogue from its JSON document, with the flags that were renamed.

    Raises:
        RulebookError: the document is not a catalogue.
    """
    try:
        if document["schema"] != 1:
            raise RulebookError(f"flag catalogue: schema {document['schema']!r} is not known")
        return Catalogue(releases=tuple(document["releases"]), entries=tuple(document["flags"]), renamed=renamed or {})
    except (KeyError, TypeError, IndexError) as error:
        raise RulebookError(f"flag catalogue: not a catalogue ({error!r})") from None
