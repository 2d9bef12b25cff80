"""Puts what a shell script assigns, where it certainly does, in the place of its variables; it must not run anything.

Only what is assigned as a statement of its own, outside every branch, loop and function, is put in; the rest keeps its
variable, which is then not known.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_ASSIGNS = re.compile(
    r"(?P<before>^|[;\n]|&&)(?P<lead>[ \t]*(?:(?:export|readonly|declare|local|typeset)[ \t]+(?:-[A-Za-z]+[ \t]+)*)?)"
    r"(?P<name>[A-Za-z_]\w*)(?P<more>\+?)=(?P<list>\(?)",
    re.ASCII,
)
_SET_ANYHOW = re.compile(r"(?<![\w$])(?:(?:for|read|unset|select|mapfile|readarray)\b[^\n;]*?\b)(?P<name>[A-Za-z_]\w*)")
_OPENS = re.compile(
    r"(?:^|[;\n]|&&|\|\|)[ \t]*(?:if|for|while|until|case|select|function)\b|\{[ \t]*(?=\n)|\(\)[ \t]*\{"
)
_CLOSES = re.compile(r"(?:^|[;\n])[ \t]*(?:fi|done|esac|\})(?=[\s;&|)]|$)")
_USE = re.compile(
    r"\$(?:\{(?P<list>[A-Za-z_]\w*)\[[@*]\]\}|\{(?P<name>[A-Za-z_]\w*)\}|(?P<bare>[A-Za-z_]\w*))", re.ASCII
)
_END = re.compile(r"[ \t]*(?:$|[;\n]|&&|#)")
_COMMENT = re.compile(r"(?<!\S)#[^\n]*")
LONGEST = 1 << 20


@dataclass(slots=True)
class _Assigned:
    """What a name holds: its words, whether it is a list, and whether words are added that nobody knows."""

    words: list[str] = field(default_factory=list)
    listed: bool = False
    known: bool = True
    times: int = 0


def inlined(text: str) -> str:
    """The script with the variables of its own that are known written out, and without the lists that define them."""
    if "$" not in text or "=" not in text or len(text) > LONGEST:
        return text
    bare = _without_comments(text)
    found, spans = _assignments(bare)
    usable = {name: held for name, held in found.items() if held.listed or (held.known and held.times == 1)}
    if not usable:
        return text
    pieces, last = [], 0
    for start, end in spans:
        pieces.append(bare[last:start])
        last = end
    pieces.append(bare[last:])
    once = _written_out("".join(pieces), usable)
    return _written_out(once, {name: held for name, held in usable.items() if not held.listed})


def _without_comments(text: str) -> str:
    """The text without comments, quotes kept."""
    found, position = [], 0
    for start, end, quoted in _stretches(text):
        found.append(text[start:end] if quoted else _COMMENT.sub("", text[start:end]))
        position = end
    return "".join([*found, text[position:]])


def _stretches(text: str) -> Iterator[tuple[int, int, str]]:
    """The text in stretches: outside of quotes (''), in double and in single ones, the quotes with what they hold."""
    start = position = 0
    while position < len(text):
        letter = text[position]
        if letter == "\\":
            position += 2
        elif letter == "#" and (position == 0 or text[position - 1].isspace()):
            position = _or_end(text.find("\n", position), text)
        elif letter in "'\"":
            end = _closing(text, position)
            if start < position:
                yield start, position, ""
            yield position, end, letter
            start = position = end
        else:
            position += 1
    if start < len(text):
        yield start, len(text), ""


def _or_end(place: int, text: str) -> int:
    return len(text) if place < 0 else place


def _closing(text: str, start: int) -> int:
    """Where a quote ends that begins at a place."""
    position = start + 1
    while position < len(text) and text[position] != text[start]:
        position += 2 if text[position] == "\\" and text[start] == '"' else 1
    return min(position + 1, len(text))


def _assignments(text: str) -> tuple[dict[str, _Assigned], list[tuple[int, int]]]:
    """What every name is assigned, and where the lists stand that can be taken out."""
    quiet = _blanked(text)
    found: dict[str, _Assigned] = {}
    spans: list[tuple[int, int]] = []
    for match in _ASSIGNS.finditer(quiet):
        held = found.setdefault(match["name"], _Assigned())
        held.times += 1
        surely = _depth(quiet[: match.start("name")]) == 0
        end, words = _list_at(text, match.end()) if match["list"] else _word_at(text, match.end())
        if words is None or not _END.match(quiet, end):
            held.known = False
            continue
        if match["list"]:
            held.listed = True
            spans.append((match.start("lead"), end))
        if not surely or (match["more"] and not match["list"]):
            held.known = False
        elif match["more"]:
            held.words += words
        else:
            held.words, held.known = words, held.known and (held.times == 1 or not held.listed)
    for match in _SET_ANYHOW.finditer(quiet):
        if match["name"] in found:
            found[match["name"]].known = False
    return found, spans


def _blanked(text: str) -> str:
    """The text with what stands in quotes blanked, so that only the script's own words are left."""
    return "".join(text[start:end] if not quoted else "x" * (end - start) for start, end, quoted in _stretches(text))


def _depth(before: str) -> int:
    return len(_OPENS.findall(before)) - len(_CLOSES.findall(before))


def _list_at(text: str, start: int) -> tuple[int, list[str] | None]:
    """(where a list ends, its words); None where they cannot be read."""
    position = start
    while position < len(text) and text[position] != ")":
        if text[position] in "'\"":
            position = _closing(text, position)
        elif text[position] in "(`":
            return position, None
        else:
            position += 2 if text[position] == "\\" else 1
    return position + 1, _split(text[start:position].replace("\\\r\n", " ").replace("\\\n", " "))


def _word_at(text: str, start: int) -> tuple[int, list[str] | None]:
    """(where a value ends, the value as its only word); None where a shell would still compute it."""
    position = start
    while position < len(text) and text[position] not in " \t\r\n;&|":
        if text[position] in "'\"":
            position = _closing(text, position)
        else:
            position += 2 if text[position] == "\\" else 1
    piece = text[start:position]
    words = (
        None if re.search(r"\$\(|`|[()]", _unquoted(piece)) or ("$" in piece and "'" not in piece) else _split(piece)
    )
    return position, words if words is None or len(words) == 1 else (None if words else [""])


def _unquoted(piece: str) -> str:
    return "".join(piece[start:end] for start, end, quoted in _stretches(piece) if quoted != "'")


def _split(text: str) -> list[str] | None:
    """The words of a text; None where they cannot be told from what a shell would still expand."""
    if any("$" in text[start:end] for start, end, quoted in _stretches(text) if quoted == "'"):
        return None
    try:
        return shlex.split(text)
    except ValueError:
        return None


def _written_out(text: str, held: Mapping[str, _Assigned]) -> str:
    """The text with every use of a known name replaced by what it holds, quoted as it must be."""
    pieces: list[str] = []
    for start, end, quoted in _stretches(text):
        piece = text[start:end]
        if quoted == "'":
            pieces.append(piece)
        elif quoted:
            pieces.append(_in_quotes(piece, held))
        else:
            pieces.append(_USE.sub(lambda match: _outside(match, held), piece))
    return "".join(pieces)


def _in_quotes(piece: str, held: Mapping[str, _Assigned]) -> str:
    whole = _USE.fullmatch(piece[1:-1])
    if whole and whole["list"] in held and "@" in whole.group():
        return _as_words(whole.group(), held[whole["list"]], split=False)

    def put(match: re.Match[str]) -> str:
        name = match["name"] or match["bare"]
        if name not in held or held[name].listed:
            return match.group()
        return re.sub(r'([\\"`$])', r"\\\1", held[name].words[0])

    return _USE.sub(put, piece)


def _outside(match: re.Match[str], held: Mapping[str, _Assigned]) -> str:
    name = match["list"] or match["name"] or match["bare"]
    if name not in held or held[name].listed != bool(match["list"]):
        return match.group()
    return _as_words(match.group(), held[name], split=True)


def _as_words(use: str, held: _Assigned, *, split: bool) -> str:
    words: Sequence[str] = [part for word in held.words for part in word.split()] if split else held.words
    shown = " ".join(map(_quoted, words))
    return shown if held.known else f"{shown} {use}"


def _quoted(word: str) -> str:
    """A word of a list; a variable in it may still be put in."""
    return '"' + re.sub(r'([\\"`])', r"\\\1", word) + '"' if "$" in word else shlex.quote(word)
