"""Says what to write instead of words that the engine's parser refuses; it must not judge the launch that comes of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import islice, product

from recommender.catalogue import CommandLine, Parsed, Refusal, RefusalKind
from recommender.terms import Value

MOST_MENDS = 4
# Flags and words that look no more like the refused one than this are another's, not a slip of the pen.
ALIKE = 0.8
_NO_MEND = frozenset({RefusalKind.MISSING_REQUIRED, RefusalKind.CONFIG_FILE})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Mend:
    """Words that take the place of refused ones: `words` to write, what they set, and the words `left_out`."""

    words: tuple[str, ...] = ()
    changes: Mapping[str, Value] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


def mends(line: CommandLine, refusal: Refusal) -> tuple[Mend, ...]:
    """What could stand instead of the refused words, the likeliest first; the last one leaves them out."""
    if refusal.kind in _NO_MEND or not refusal.drop:
        return ()
    offending = [refusal.words[index] for index in refusal.drop]
    options = [list(_mends_of(line, refusal, span)) for span in _spans(offending)]
    return tuple(joined(chosen) for chosen in islice(product(*options), MOST_MENDS))


def _spans(words: Sequence[str]) -> list[list[str]]:
    """Each refused flag with the words after it."""
    found: list[list[str]] = []
    for word in words:
        if word.startswith("-") or not found:
            found.append([])
        found[-1].append(word)
    return found


def joined(chosen: Sequence[Mend]) -> Mend:
    """Several mends as one."""
    changes: dict[str, Value] = {}
    for each in chosen:
        changes |= each.changes
    return Mend(
        words=tuple(word for each in chosen for word in each.words),
        changes=changes,
        left_out=tuple(word for each in chosen for word in each.left_out),
    )


def _mends_of(line: CommandLine, refusal: Refusal, span: Sequence[str]) -> Iterator[Mend]:
    flag, equals, value = span[0].partition("=")
    values = [value] if equals else list(span[1:])
    for written in dict.fromkeys(tuple(words) for words in _candidates(line, refusal, flag, values)):
        parsed = line.parse_all(written)
        if not [each for each in parsed[1] if each.kind is not RefusalKind.MISSING_REQUIRED] and _sets(parsed[0]):
            yield Mend(words=written, changes=parsed[0].asked, left_out=() if written[0] == flag else (flag,))
    yield Mend(left_out=tuple(span))


def _sets(parsed: Parsed) -> bool:
    return bool(parsed.asked) and not parsed.unread


def _candidates(line: CommandLine, refusal: Refusal, flag: str, values: Sequence[str]) -> Iterator[Sequence[str]]:
    if refusal.kind is RefusalKind.BAD_CHOICE:
        yield from ([flag, choice] for choice in refusal.near if _alike(choice, refusal.value))
        return
    if refusal.kind in (RefusalKind.UNKNOWN_FLAG, RefusalKind.AMBIGUOUS, RefusalKind.RETIRED_FLAG):
        spelled = flag.replace("_", "-")
        known = line.flag(spelled)
        successor = line.stand_in(spelled) or (known.instead if known else "")
        likely = [name for name in refusal.near if refusal.kind is RefusalKind.AMBIGUOUS or _alike(name, spelled)]
        yield from ([name] if "=" in name else [name, *values] for name in ([successor] if successor else likely))


def _alike(one: str, two: str) -> bool:
    return SequenceMatcher(None, one, two).ratio() >= ALIKE
