"""Finds the laws behind an error message or a log, by the patterns that rules carry; it must not read files or judge.

A log may be megabytes long and a text hostile, so no rule's pattern scans it. One pass collects its words; a rule stays
in play when the words of its literal text are among them; its pattern then runs over short passages around the places
where that literal text stands.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

from recommender.laws import Rule
from recommender.versions import in_range, parse_release

LONGEST_PASSAGE = 1500
LONGEST_LEAD = 600
LONGEST_MESSAGE_LINES = 12
TOLERANT_TAIL = 1 << 16
OCCURRENCES = 12
NEAR_FRAMES = 6

# How well a passage's place agrees with the place that a rule names.
NO_PLACE, ELSEWHERE, NEARBY, THERE = range(4)

# What the interpreter or a library says in the same words wherever it happens: without its place it names no law.
_NOBODYS = re.compile(
    r"^$|not supported between instances|unsupported operand type|by zero$|object is not |object has no attribute|"
    r"is an empty sequence|index out of range|index k out of range|^'?\w+'?$"
)
_HEAD_END = re.compile(r"(?:Error|Exception|Interrupt|Exit|(?<=: )error)(?::[ \t]*|[ \t\r]*$)")
_FLAT_HEAD_END = re.compile(r"(?:Error|Exception|Interrupt|Exit|(?<=: )error)(?:(:\s*)|(?![\w(.]))")
_LONGEST_NAME = 120
_FRAME = re.compile(r'File "([^"\n]{1,1000})", line (\d{1,7}), in ([^\s,]{1,200})')
_START = "Traceback (most recent call last)"
_COLOURS = re.compile(r"\x1b(?:\[[0-9;:?]{0,32}[@-~]|\][^\x07\x1b\n]{0,500}(?:\x07|\x1b\\)|[@-Z\\-_])")
_BEFORE_A_MESSAGE = re.compile(r"""[\]|:>"'`(] ?""")
_QUOTES = ('"', "'", "`")
_SPELLINGS = (
    ("\r\n", "\n"), ("\r", "\n"), ("\u2028", "\n"), ("\u00a0", " "),
    ("\u2019", "'"), ("\u2018", "'"), ("\u201c", '"'), ("\u201d", '"'),
    ("&#x27;", "'"), ("&#39;", "'"), ("&quot;", '"'), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Literals:
    """What one alternative of a pattern cannot do without: `runs` of literal text, and the alternatives of `groups`."""

    runs: tuple[str, ...]
    groups: tuple[tuple[Literals, ...], ...]

    def needles(self) -> tuple[str, ...]:
        """Texts one of which stands in everything that matches; empty when there is none to go by."""
        longest = max(self.runs, key=len, default="")
        if len(longest) >= 6 or not self.groups:
            return (longest,) if len(longest) >= 3 else ()
        inner = max((needles_of(group) for group in self.groups), key=lambda found: min(map(len, found), default=0))
        return inner if min(map(len, inner), default=0) > len(longest) else (longest,) if longest else ()

    def weight(self, text: str) -> int:
        """How many of a text's characters are the pattern's own words; 0 when this alternative is not in it."""
        if any(run not in text for run in self.runs):
            return 0
        return sum(map(len, self.runs)) + sum(
            max((each.weight(text) for each in group), default=0) for group in self.groups
        )


def needles_of(alternatives: Iterable[Literals]) -> tuple[str, ...]:
    """Texts one of which stands in everything that matches any alternative; empty when one of them has none."""
    found: list[str] = []
    for each in alternatives:
        needles = each.needles()
        if not needles:
            return ()
        found += needles
    return tuple(dict.fromkeys(found))


class _Reader:
    """Reads the literal text out of a pattern, giving up a piece rather than claiming too much."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0

    def alternatives(self) -> tuple[Literals, ...]:
        found = [self.alternative()]
        while self.at < len(self.pattern) and self.pattern[self.at] == "|":
            self.at += 1
            found.append(self.alternative())
        return tuple(found)

    def alternative(self) -> Literals:
        runs: list[str] = []
        groups: list[tuple[Literals, ...]] = []
        current = ""
        last = ""  # what a quantifier would repeat: "character", "group" or ""
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            character = self.pattern[self.at]
            self.at += 1
            if character in "*?{+":
                if last == "character":
                    current, dropped = current[:-1], current[-1:]
                    runs.append(current + dropped if character == "+" else current)
                    current = ""
                elif last == "group" and character != "+":
                    groups.pop()
                if character == "{":
                    self.at = self.pattern.find("}", self.at) + 1 or len(self.pattern)
                last = ""
                continue
            literal = character
            if character == "\\":
                literal = self.escaped()
            elif character in "[(.^$":
                literal = ""
            if literal:
                current += literal
                last = "character"
                continue
            runs.append(current)
            current, last = "", ""
            if character == "[":
                self.skip_class()
            elif character == "(":
                group = self.group()
                if group is not None:
                    groups.append(group)
                    last = "group"
        runs.append(current)
        return Literals(tuple(run for run in runs if run), tuple(groups))

    def escaped(self) -> str:
        letter = self.pattern[self.at : self.at + 1]
        self.at += 1
        return "" if letter.isalnum() else letter

    def skip_class(self) -> None:
        start = self.at
        while self.at < len(self.pattern) and (
            self.pattern[self.at] != "]" or self.at in (start, start + (self.pattern[start] == "^"))
        ):
            self.at += 2 if self.pattern[self.at] == "\\" else 1
        self.at += 1

    def group(self) -> tuple[Literals, ...] | None:
        """The alternatives of the group that starts here; None when nothing of it need stand in a match."""
        head = re.compile(r"\?(?:P<\w+>|:)?").match(self.pattern, self.at)
        looks = self.pattern[self.at : self.at + 2] in ("?=", "?!", "?<") or self.pattern[self.at : self.at + 3] == "?<"
        self.at = head.end() if head else self.at
        inside = self.alternatives()
        self.at += 1
        return None if looks or (head is not None and head.group() == "?") else inside


@lru_cache(maxsize=4096)
def literals_of(pattern: str) -> tuple[Literals, ...]:
    """The literal text of a pattern, by alternative. A pattern that ignores case has none."""
    return () if re.match(r"\(\?[a-zA-Z]*[ixLu]", pattern) else _Reader(pattern).alternatives()


@lru_cache(maxsize=8192)
def _needles_in(pattern: str) -> tuple[str, ...]:
    return needles_of(literals_of(pattern))


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


_WORD_BYTES = bytes(byte if byte < 128 and re.match(r"\w", chr(byte)) else 32 for byte in range(256))


def words_of(text: str) -> frozenset[bytes]:
    """The distinct words of a text."""
    return frozenset(text.encode("utf-8", "replace").translate(_WORD_BYTES).split())


@lru_cache(maxsize=8192)
def _whole_words(needle: str) -> frozenset[bytes]:
    """The words of a needle that stand whole in every text that holds it: neither its first nor its last piece."""
    return frozenset(word.encode() for word in re.findall(r"(?<=\W)\w+(?=\W)", needle, re.ASCII))


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of the text that may be a message: `after_head` when the name of an error stands before it."""

    message: str
    line: str
    after_head: bool
    frames: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A rule and the passage that it explains. `agrees` says how well the places agree; higher is better.

    `absent`: the release that the text is from does not have the rule.
    """

    rule: Rule
    said: str
    frames: tuple[str, ...]
    agrees: int
    after_head: bool
    weight: int
    nobodys: bool = False
    absent: bool = False

    @property
    def level(self) -> tuple[int, int, bool, int]:
        """What a text tells rules apart by, best first: a place that agrees, an error before a mere mention, a rule of its
        release, the longest literal text."""
        return (-max(self.agrees, ELSEWHERE), -self.after_head, self.absent, -self.weight)

    @property
    def rank(self) -> tuple[tuple[int, int, bool, int], str]:
        """Best first; rules that no text tells apart by name."""
        return (self.level, self.rule.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """What was found: `matches` best first, `faint` laws that raise such a message where the text shows no place."""

    matches: tuple[Match, ...] = ()
    faint: tuple[Rule, ...] = ()
    last_error: str = ""


class Text:
    """A text without colours, in the forms that are searched."""

    def __init__(self, raw: str) -> None:
        text = _COLOURS.sub("", raw) if "\x1b" in raw else raw
        for odd, plain in _SPELLINGS:
            if odd in text:
                text = text.replace(odd, plain)
        self.lines = text
        # Loggers that write JSON keep a traceback in one line.
        self.unescaped = text.replace("\\n", "\n").replace('\\"', '"').replace("\\t", "\t") if "\\n" in text else ""
        tail = text[-TOLERANT_TAIL:]
        # A message broken between words, or by a narrow terminal anywhere, is whole again in one of these.
        self.flat = (" ".join(tail.split()), tail.replace("\n", "")) if "\n" in tail.strip() else ()
        self._held: dict[str, bool] = {}
        self.words = words_of(text).union(*(words_of(each) for each in (self.unescaped, *self.flat) if each))

    @property
    def by_lines(self) -> tuple[str, ...]:
        """The forms in which a line is a line."""
        return (self.lines, self.unescaped) if self.unescaped else (self.lines,)

    def holds(self, needle: str) -> bool:
        """Whether a piece of literal text stands in it in any form; editions of a law look for the same pieces."""
        held = self._held.get(needle)
        if held is None:
            here = _whole_words(needle) <= self.words
            held = self._held[needle] = here and any(needle in form for form in (*self.by_lines, *self.flat))
        return held


def occurrences(text: str, needle: str) -> Iterator[int]:
    """Where a needle stands, the last places first: a log ends with what killed the server."""
    end = len(text)
    for _ in range(OCCURRENCES):
        end = text.rfind(needle, 0, end)
        if end < 0:
            return
        yield end
        end += len(needle) - 1
    first = text.find(needle)
    if 0 <= first < end:
        yield first


@dataclass(frozen=True, slots=True)
class _Head:
    """The name of an error in a line: where it starts, where its message starts, whether there is one."""

    start: int
    end: int
    speaks: bool = True


def _heads(line: str, pattern: re.Pattern[str] = _HEAD_END) -> Iterator[_Head]:
    for found in pattern.finditer(line):
        start = found.start()
        lowest = max(0, start - _LONGEST_NAME)
        while start > lowest and (line[start - 1].isalnum() or line[start - 1] in "_."):
            start -= 1
        if (
            pattern is _HEAD_END
            or line[start : start + 1].isupper()
            or "." in line[start : found.start()]
            or start == found.start()
        ):
            yield _Head(start, found.end(), pattern is _HEAD_END or found[1] is not None)


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    text: str


def _line_at(text: str, place: int) -> _Line:
    """The line around a place, cut where it is longer than any message."""
    start = max(text.rfind("\n", max(0, place - LONGEST_LEAD), place) + 1, place - LONGEST_LEAD, 0)
    end = text.find("\n", place, place + LONGEST_PASSAGE)
    end = min(place + LONGEST_PASSAGE, len(text)) if end < 0 else end
    return _Line(start, end, text[start:end])


def _above(text: str, line: _Line, count: int) -> Iterator[_Line]:
    for _ in range(count):
        if line.start <= 0 or text[line.start - 1] != "\n":
            return
        line = _line_at(text, line.start - 1)
        yield line


def _below(text: str, line: _Line, count: int) -> Iterator[_Line]:
    for _ in range(count):
        if line.end >= len(text) or text[line.end] != "\n":
            return
        line = _line_at(text, line.end + 1)
        yield line


def _frames_above(text: str, head: _Line) -> tuple[str, ...]:
    """The frames of the traceback that ends at a line, the raising one last."""
    found: list[str] = []
    gap = 0
    for line in _above(text, head, 400):
        frame = _FRAME.search(line.text)
        if frame:
            found.append(_place(frame))
            gap = 0
            if len(found) >= NEAR_FRAMES:
                break
            continue
        gap += 1
        if gap > 8 or _START in line.text or (not found and gap > 1 and any(_heads(line.text))):
            break
    return tuple(reversed(found))


def _place(frame: re.Match[str]) -> str:
    return f"{frame[1]}:{frame[2]}:{frame[3]}"


def _continued(text: str, line: _Line, lead: int) -> str:
    """A message of several lines: up to a blank line, a traceback, another error, or a line that starts like the first."""
    parts = [line.text[lead:]]
    opening = line.text[: min(lead, 4)].strip()
    for below in _below(text, line, LONGEST_MESSAGE_LINES):
        bare = below.text.strip()
        if not bare or _START in bare or _FRAME.search(bare) or (opening and bare.startswith(opening)):
            break
        if any(_heads(below.text)):
            break
        parts.append(below.text)
    return "\n".join(parts)[:LONGEST_PASSAGE]


def _passages(text: str, place: int) -> Iterator[Passage]:
    """The messages that the line at a place may belong to, likeliest first."""
    line = _line_at(text, place)
    head_line, head = line, _last_head(line.text, place - line.start)
    if head is None:
        for above in _above(text, line, LONGEST_MESSAGE_LINES):
            head_line, head = above, _last_head(above.text, len(above.text))
            if head is not None or not above.text.strip():
                break
    if head is not None:
        message = _continued(text, head_line, head.end)
        if head_line.start + head.end + len(message) >= place:
            yield Passage(
                message, head_line.text[head.start : head.end] + message, True, _frames_above(text, head_line)
            )
    yield Passage(line.text.strip(), line.text, False)


def _last_head(line: str, before: int) -> _Head | None:
    found = None
    for head in _heads(line):
        if head.start > before:
            break
        found = head
    return found


def _flat_passages(text: str, place: int) -> Iterator[Passage]:
    """The same in a text whose lines were joined."""
    start = max(0, place - LONGEST_LEAD)
    window = text[start : place + LONGEST_PASSAGE]
    heads = [head for head in _heads(window, _FLAT_HEAD_END) if head.start <= place - start]
    if heads:
        yield _flat_passage(text, start, window, heads[-1])
    yield Passage(window, window, False)


def _flat_passage(text: str, start: int, window: str, head: _Head) -> Passage:
    frames = [_place(frame) for frame in _FRAME.finditer(text[max(0, start - 4000) : start + head.start])]
    message = window[head.end :] if head.speaks else ""
    return Passage(message, window[head.start : head.end] + message, True, tuple(frames[-NEAR_FRAMES:]))


def _heads_below(text: str, place: int) -> Iterator[Passage]:
    """The error that ends the traceback whose frame stands at a place."""
    line = _line_at(text, place)
    frame = _FRAME.search(line.text)
    if frame is None:
        return
    column = max(frame.start() - 2, 0)
    for below in _below(text, line, 120):
        if _FRAME.search(below.text) or below.text[column : column + 1].isspace():
            continue
        head = next(_heads(below.text), None)
        if head is not None and head.start <= column:
            message = _continued(text, below, head.end)
            yield Passage(message, below.text[head.start : head.end] + message, True, _frames_above(text, below))
            return


def _flat_heads_below(text: str, place: int) -> Iterator[Passage]:
    window = text[place : place + 2 * LONGEST_PASSAGE]
    head = next(_heads(window, _FLAT_HEAD_END), None)
    if head is not None:
        yield _flat_passage(text, place, window, head)


class _Suspect:
    """A rule whose words stand in the text."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.needles = _needles_in(rule.engine_error)
        self.places = _needles_in(rule.engine_error_at)

    @cached_property
    def says(self) -> tuple[Literals, ...]:
        """What the pattern spells out."""
        return literals_of(self.rule.engine_error)

    def possible(self, text: Text) -> bool:
        return any(map(text.holds, self.needles)) or any(map(text.holds, self.places))

    def found_in(self, passage: Passage) -> str | None:
        """The part of a passage that the rule's pattern matches."""
        pattern = _compiled(self.rule.engine_error)
        for message in _wordings(passage, self.rule.engine_error.startswith("^")):
            found = pattern.search(message)
            if found:
                return found.group()
        return None

    def agrees(self, frames: Sequence[str]) -> int:
        if not self.rule.engine_error_at or not frames:
            return NO_PLACE
        pattern = _compiled(self.rule.engine_error_at)
        if pattern.search(frames[-1]):
            return THERE
        return NEARBY if pattern.search(" ".join(frames)) else ELSEWHERE

    def passages(self, text: Text) -> Iterator[Passage]:
        for needle in filter(text.holds, self.needles):
            for form in text.by_lines:
                for place in occurrences(form, needle):
                    yield from _passages(form, place)
            for form in text.flat:
                for place in occurrences(form, needle):
                    yield from _flat_passages(form, place)
        for needle in filter(text.holds, self.places):
            for form in text.by_lines:
                for place in occurrences(form, needle):
                    yield from _heads_below(form, place)
            for form in text.flat:
                for place in occurrences(form, needle):
                    yield from _flat_heads_below(form, place)

    def matches(self, text: Text, absent: bool) -> Iterator[Match]:
        seen: set[Passage] = set()
        for passage in self.passages(text):
            if passage in seen:
                continue
            seen.add(passage)
            found = self.found_in(passage)
            if found is not None:
                weight = max((each.weight(found) for each in self.says), default=0)
                yield Match(
                    rule=self.rule,
                    said=" ".join(passage.line.split()),
                    frames=passage.frames,
                    agrees=self.agrees(passage.frames),
                    after_head=passage.after_head,
                    weight=weight,
                    nobodys=_NOBODYS.search(found) is not None,
                    absent=absent,
                )


@cache
def _suspect(rule: Rule) -> _Suspect:
    return _Suspect(rule)


def _wordings(passage: Passage, anchored: bool) -> Iterator[str]:
    """A passage as a pattern may expect it: as it stands, its first line, in one line.

    A pattern of the start of a message is tried at each place of a bare line that can start one.
    """
    message = passage.message
    if anchored and not passage.after_head:
        line = message[:LONGEST_PASSAGE]
        starts = [0, *(found.end() for found in _BEFORE_A_MESSAGE.finditer(line))]
        for start in starts[:12]:
            yield line[start:].strip()
        return
    yield message.strip() if passage.after_head else message
    if message.rstrip().endswith(_QUOTES):
        yield message.rstrip().rstrip("".join(_QUOTES))
    if "\n" in message:
        yield message.split("\n", 1)[0].rstrip()
        yield " ".join(message.split())


def trace(raw: str, rules: Iterable[Rule], release: str = "") -> Traced:
    """The laws behind a text, most specific first; one entry a rule. `release` is that of the text, where it is known."""
    wanted = parse_release(release) if release else None
    text = Text(raw)
    best: dict[str, Match] = {}
    faint: dict[str, Rule] = {}
    for rule in rules:
        if not rule.engine_error:
            continue
        suspect = _suspect(rule)
        if not suspect.possible(text):
            continue
        absent = wanted is not None and not in_range(wanted, rule.since, rule.until)
        for match in suspect.matches(text, absent):
            if match.nobodys and rule.engine_error_at and match.agrees < NEARBY:
                faint.setdefault(rule.id, rule)
            elif rule.id not in best or match.rank < best[rule.id].rank:
                best[rule.id] = match
    return Traced(
        matches=tuple(sorted(_placed(best.values()), key=lambda match: match.rank)),
        faint=tuple(rule for name, rule in faint.items() if name not in best),
        last_error=last_error(text),
    )


def _placed(matches: Iterable[Match]) -> Iterator[Match]:
    """Of laws that explain the same words, those whose place agrees; all of them where none does."""
    listed = list(matches)
    settled = {match.said for match in listed if match.agrees >= NEARBY}
    for match in listed:
        if match.agrees >= NEARBY or match.said not in settled or not match.rule.engine_error_at:
            yield match


def last_error(text: Text) -> str:
    """The last line of a text that names an error, without what stands before the name; empty when none does."""
    for line in reversed(text.lines[-TOLERANT_TAIL:].splitlines()[-2000:]):
        head = next(_heads(line[:LONGEST_PASSAGE]), None)
        if head is not None:
            return " ".join(line[head.start :].split())[:LONGEST_PASSAGE]
    return ""


SHORTEST_CUT = 20
MOST_CUT = 3


def cut_off(raw: str, rules: Iterable[Rule]) -> tuple[str, ...]:
    """The few laws whose message goes on where a text ends, those with the most of it before the end; often none."""
    end = " ".join(Text(raw[-LONGEST_PASSAGE:]).lines.split()).rstrip(".\u2026\"'`) ")
    begun: dict[str, int] = {}
    for rule in rules:
        begun[rule.id] = max((_begun(end, each.runs) for each in literals_of(rule.engine_error)), default=0)
    longest = max(begun.values(), default=0)
    names = sorted(name for name, length in begun.items() if longest and length == longest)
    return tuple(names) if len(names) <= MOST_CUT else ()


def _begun(end: str, runs: Sequence[str]) -> int:
    """How many characters of a pattern's own words stand at the end of a text that breaks off in them."""
    before = 0
    for run in runs:
        lengths = range(len(run) - 1, SHORTEST_CUT - 1, -1)
        said = next((length for length in lengths if end.endswith(run[:length].rstrip())), 0)
        if said:
            return before + said
        if run not in end:
            return 0
        before += len(run)
    return 0


def said_in(raw: str, pattern: str) -> str:
    """The last line of a text that a pattern is found in; empty when there is none."""
    text = Text(raw[-TOLERANT_TAIL:]).lines
    last = max((found.start() for found in _compiled(pattern).finditer(text)), default=None)
    return "" if last is None else " ".join(_line_at(text, last).text.split())


_AKIN_WORD = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*")
LONGEST_QUESTION = 2000
LEAST_SHARE = 0.5
LEAST_WEIGHT = 12.0


def _vocabulary(text: str) -> frozenset[str]:
    """The words of a text, identifiers whole and in parts."""
    whole = set(_AKIN_WORD.findall(text.lower().replace("-", "_")))
    return frozenset(word for word in whole.union(*(word.split("_") for word in whole)) if len(word) > 2)


def akin(question: str, rules: Iterable[Rule]) -> tuple[str, ...]:
    """The laws that share most of a short text's rare words, for a message that was quoted from memory; often none."""
    if len(question) > LONGEST_QUESTION:
        return ()
    asked = _vocabulary(question)
    shared = {
        rule.id: asked & _vocabulary(f"{rule.id} {rule.statement} {rule.message} {rule.engine_error}") for rule in rules
    }
    counts = Counter(word for words in shared.values() for word in words)
    rarity = {word: math.log(len(shared) / counts.get(word, 1)) for word in asked}
    total = sum(rarity.values())
    weights = {name: sum(rarity[word] for word in words) for name, words in shared.items()}
    best = max(weights.values(), default=0.0)
    if best < LEAST_WEIGHT or best < LEAST_SHARE * total:
        return ()
    ranked = sorted(weights, key=lambda name: (-weights[name], name))
    return tuple(name for name in ranked[:3] if weights[name] >= 0.9 * best)
