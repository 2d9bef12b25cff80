"""Reads a command line as one release of the engine does; it must not know a flag by name or judge a value."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recommender.flags import Field, Flag, frozen, holds_shell_variable, make_field, make_flag
from recommender.on_demand import OnDemand
from recommender.terms import Unknown, Value

if TYPE_CHECKING:
    from recommender.forms.config_file import FileKeys

# A word that nobody can read stands in for itself while argparse runs.
_PLACEHOLDER = "$UNKNOWN"
_SEPARATOR = "--"
_NOT_SETTINGS = frozenset({"help", "ignored", "retired"})


class RefusalKind(StrEnum):
    """Why the parser stops."""

    UNKNOWN_FLAG = "unknown-flag"
    AMBIGUOUS = "ambiguous"
    BAD_CHOICE = "bad-choice"
    BAD_TYPE = "bad-type"
    MISSING_VALUE = "missing-value"
    EXTRA_VALUE = "extra-value"
    MISSING_REQUIRED = "missing-required"
    RETIRED_FLAG = "retired-flag"
    CONFIG_FILE = "config-file"
    HELP = "help"


@lru_cache(maxsize=1024)
def nearest(word: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """Up to three of the words that look like the given one, nearest first."""
    from difflib import get_close_matches

    return tuple(get_close_matches(word, words, n=3))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Refusal:
    """What the parser would not take.

    `message` is what it prints after `error: `, in our own words where a type of the engine objects; `flag` is the
    spelling, `value` the offending text, `words` what was read, `drop` which of them offend, `valid` what fits there,
    `history` what other releases make of the flags.
    """

    kind: RefusalKind
    message: str
    flag: str = ""
    field: str = ""
    value: str = ""
    words: tuple[str, ...] = ()
    drop: tuple[int, ...] = ()
    valid: tuple[str, ...] = ()
    history: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        """The message with what other releases make of the flag, and the nearest valid words."""
        near = (f"nearest: {', '.join(self.near)}",) if self.near else ()
        return "; ".join((self.message, *self.history, *near))

    @property
    def near(self) -> tuple[str, ...]:
        """The nearest valid words: flags for a flag, choices for a value."""
        if self.kind is RefusalKind.AMBIGUOUS:
            return self.valid
        if self.kind is RefusalKind.BAD_CHOICE:
            return nearest(self.value, self.valid)
        if self.kind is not RefusalKind.UNKNOWN_FLAG:
            return ()
        flags = [self.words[index].partition("=")[0] for index in self.drop if self.words[index].startswith("-")]
        found = [nearest(flag.replace("_", "-"), self.valid) for flag in flags]
        return found[0] if len(found) == 1 else tuple(words[0] for words in found if words)

    def without(self, words: Sequence[str | Unknown]) -> list[str | Unknown] | None:
        """The words without those that offend; None when none of them is at fault."""
        if not self.drop:
            return None
        gone = set(self.drop)
        read = words if len(words) == len(self.words) else self.words  # a --config file brings words of its own
        return [word for index, word in enumerate(read) if index not in gone]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Parsed:
    """What a command line says, and nothing else: `asked` values by field, `spelled` each field's flag as typed.

    `words` are the words read, those of a --config file first; `unread` are shell variables that stand for whole words;
    `from_config` are the fields that only the file sets.
    """

    asked: Mapping[str, Value]
    spelled: Mapping[str, str]
    words: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    from_config: frozenset[str] = field(default_factory=frozenset)

    @property
    def is_whole(self) -> bool:
        """Whether every word is known, so that the command can be written again."""
        return _PLACEHOLDER not in self.words


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Span:
    """Which words give a flag its value: `words[start:stop]`."""

    flag: Flag
    start: int
    stop: int


class CommandLine:
    """The flags of one engine release."""

    def __init__(
        self,
        release: str,
        entries: Sequence[Mapping[str, Any]],
        history: Callable[[str], str] = lambda flag: "",
        stand_in: Callable[[str], str] = lambda flag: "",
    ) -> None:
        self.release = release
        self.history = history  # a sentence on a flag that only other releases take; empty when none does
        self.stand_in = stand_in  # the flag that does here what another release's flag does; empty when none does
        self._entries = entries
        self._flags: dict[int, Flag] = {}
        self._index: dict[str, int] = {name: i for i, entry in enumerate(entries) for name in entry["names"]}
        self._always = tuple(
            i for i, entry in enumerate(entries) if not all(name.startswith("--") for name in entry["names"])
        )
        self._required = tuple(i for i, entry in enumerate(entries) if entry.get("required"))
        self._config = next((entry["names"][0] for entry in entries if entry.get("role") == "config_file"), "")

    def taking(self, more: Mapping[str, Sequence[str]]) -> CommandLine:
        """The command line that takes further choices, by field."""
        entries = [
            {**entry, "choices": [*entry["choices"], *more[entry["field"]]]}
            if entry.get("choices") and entry.get("field") in more
            else entry
            for entry in self._entries
        ]
        return CommandLine(self.release, entries, self.history, self.stand_in)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every option string, in the parser's order."""
        return tuple(self._index)

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self._index)

    @cached_property
    def _writers(self) -> Mapping[str, tuple[int, ...]]:
        writers: dict[str, tuple[int, ...]] = {}
        for index, entry in enumerate(self._entries):
            if entry["kind"] not in _NOT_SETTINGS:
                writers[entry["field"]] = (*writers.get(entry["field"], ()), index)
        return writers

    @cached_property
    def fields(self) -> Mapping[str, Field]:
        """Every setting that a flag writes, by field; each is made when it is read."""
        return OnDemand(self._writers, self._field)

    @cached_property
    def defaults(self) -> Mapping[str, Value]:
        """Every setting's value on an empty command line."""
        entries = self._entries
        return {
            name: frozen(next((entries[i].get("default") for i in indices if not entries[i].get("defaultless")), None))
            for name, indices in self._writers.items()
        }

    def _field(self, name: str) -> Field:
        flags = tuple(self._flag(index) for index in self._writers[name])
        return make_field(name, flags, self.defaults[name])

    @cached_property
    def file_keys(self) -> FileKeys:
        """How a config file's keys are read."""
        from recommender.forms.config_file import file_keys_of

        return file_keys_of(list(self.flags))

    @property
    def flags(self) -> Iterable[Flag]:
        """Every flag, in the parser's order."""
        return [self._flag(index) for index in range(len(self._entries))]

    def flag(self, name: str) -> Flag | None:
        """The flag with exactly this option string."""
        index = self._index.get(name)
        return None if index is None else self._flag(index)

    def _flag(self, index: int) -> Flag:
        flag = self._flags.get(index)
        if flag is None:
            flag = self._flags[index] = make_flag(self._entries[index])
        return flag

    # --- words --------------------------------------------------------------------------------------------------------

    def options(self, word: str) -> tuple[str, ...]:
        """The option strings that a word can mean: itself, what stands before its `=`, or every one it abbreviates."""
        if word in self._index:
            return (word,)
        if not word.startswith("-") or word == "-":
            return ()
        stem = word.partition("=")[0]
        if stem in self._index:
            return (stem,)
        if not word.startswith("--"):
            return (word[:2],) if word[:2] in self._index else ()
        names = self._sorted
        start = bisect_left(names, stem)
        stop = bisect_left(names, stem + "\U0010ffff")
        return tuple(sorted(names[start:stop], key=self._index.__getitem__))

    def candidates(self, words: Iterable[str]) -> tuple[tuple[Flag, ...], Mapping[str, str]]:
        """The flags that any word can mean, in the parser's order, and the abbreviations by what they stand for."""
        found = {*self._always}
        typed: dict[str, str] = {}
        for word in words:
            index = self._index.get(word)
            if index is not None:
                found.add(index)
            elif word[:1] == "-" and word != _SEPARATOR:
                options = self.options(word)
                found.update(self._index[option] for option in options)
                if len(options) == 1:
                    typed[options[0]] = word.partition("=")[0]
        return tuple(self._flag(index) for index in sorted(found)), typed

    def spans(self, words: Sequence[str]) -> tuple[Span, ...]:
        """Where each flag of a command line stands, with the words that it takes."""
        last = words.index(_SEPARATOR) if _SEPARATOR in words else len(words)
        found: list[Span] = []
        position = 0
        while position < last:
            word = words[position]
            options = self.options(word) if word[:1] == "-" else ()
            if len(options) != 1:
                position += 1
                continue
            flag = self._flag(self._index[options[0]])
            stop = position + 1
            if "=" not in word or word in self._index:
                limit = last if flag.many else stop + (flag.nargs != 0)
                while stop < min(limit, last) and not self._is_option(words[stop]):
                    stop += 1
            found.append(Span(flag=flag, start=position, stop=stop))
            position = stop
        return tuple(found)

    def _is_option(self, word: str) -> bool:
        from recommender.argparse_replay import is_negative_number

        if word[:1] != "-" or word == "-":
            return False
        return bool(self.options(word)) or not (is_negative_number(word) or " " in word)

    def without(self, words: Sequence[str], fields: Iterable[str]) -> list[str]:
        """The words without the flags that write some fields."""
        gone = set(fields)
        dropped = {
            index for span in self.spans(words) if span.flag.field in gone for index in range(span.start, span.stop)
        }
        return [word for index, word in enumerate(words) if index not in dropped]

    # --- parsing ------------------------------------------------------------------------------------------------------

    def parse(self, argv: Sequence[str | Unknown], folder: Path | None = None) -> Parsed | Refusal:
        """What a command line says, or why the parser refuses it. A --config file is looked for below `folder`."""
        words = [word if isinstance(word, str) else _PLACEHOLDER for word in argv]
        own = words
        if self._config and self._config in words:
            from recommender.forms.config_file import ConfigFileError, merge_config

            try:
                words = merge_config(words, self._config, self.file_keys, folder)
            except ConfigFileError as error:
                return self._refused_config(words, str(error))
        from recommender.argparse_replay import replay

        result = replay(self, words)
        if isinstance(result, Refusal) or own is words:
            return result
        said = {span.flag.field for span in self.spans(own)}
        return replace(result, from_config=frozenset(result.asked) - said)

    def parse_all(
        self, argv: Sequence[str | Unknown], folder: Path | None = None
    ) -> tuple[Parsed, tuple[Refusal, ...]]:
        """Like `parse`, but what is refused is left out and listed, so that the rest can be judged."""
        refusals: list[Refusal] = []
        words: Sequence[str | Unknown] = argv
        required = True
        while True:
            result = self.parse(words, folder) if required else self._parse_partly(words)
            if isinstance(result, Parsed):
                return result, tuple(refusals)
            refusals.append(result)
            shorter = result.without(words)
            if shorter is not None:
                words = shorter
            elif required and result.kind is RefusalKind.MISSING_REQUIRED:
                required = False
            else:
                return Parsed(asked={}, spelled={}), tuple(refusals)

    def _parse_partly(self, words: Sequence[str | Unknown]) -> Parsed | Refusal:
        from recommender.argparse_replay import replay

        return replay(self, [word if isinstance(word, str) else _PLACEHOLDER for word in words], required=False)

    def _refused_config(self, words: Sequence[str], message: str) -> Refusal:
        at = words.index(self._config)
        flag = self._flag(self._index[self._config])
        return Refusal(
            kind=RefusalKind.CONFIG_FILE,
            message=message,
            flag=self._config,
            field=flag.field,
            value=words[at + 1] if at + 1 < len(words) else "",
            words=tuple(words),
            drop=tuple(range(at, min(at + 2, len(words)))),
        )

    def missing(self, asked: Mapping[str, Value]) -> tuple[Flag, ...]:
        """The required flags that a command line lacks."""
        flags = (self._flag(index) for index in self._required)
        return tuple(flag for flag in flags if flag.field not in asked)


def unread_words(words: Iterable[str]) -> tuple[str, ...]:
    """Words that stand for other words only a shell knows."""
    return tuple(word for word in words if holds_shell_variable(word))
