"""Finds the launch inside a user's command, its variables and its flags; it must not parse a flag or run anything.

A command is the words a shell gave, or one text as a shell script holds it. What stands around the launch (variables,
a container, `bash -c`) is kept, so that the whole can be written again with other flags.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from recommender.errors import UsageError
from recommender.flags import holds_shell_variable
from recommender.forms.script import inlined
from recommender.terms import UNKNOWN, Unknown

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=", re.ASCII)
_PYTHON = re.compile(r"python(?:\d+(?:\.\d+)*)?")
_REDIRECTION = re.compile(r"(?:\d*|&)(?:>>?|<<?)(?:&\d+)?.*|\|\|?|&&?|;+")
_CONTINUATION = re.compile(r"\\[ \t]*\r?\n")
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./${}-]+")
_SHELL_STRING = re.compile(r"-[A-Za-z]*c")
_DEEPEST = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A launch as a user wrote it: `argv` are the flags, `head` the words before them, `tail` a shell's words after.

    `env` holds the variables of the launch; one whose value needs a shell is UNKNOWN. A launch inside a quoted text of
    an outer command has the words around that text in `before` and `after`. `wrapper` says in words whose launcher it is
    that hands the flags on, and has flags of its own; empty for the engine's. `env_files` hold further variables, which those
    of `env` win over; `image` is that of a container described elsewhere than in the words; `unread` says what else is
    asked for that nobody can read.
    """

    env: Mapping[str, str | Unknown] = field(default_factory=dict)
    argv: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    quoted: bool = False
    wrapper: str = ""
    env_files: tuple[str, ...] = ()
    image: str = ""
    unread: tuple[str, ...] = ()

    @property
    def around(self) -> tuple[str, ...]:
        """The words around the flags, among which a container's image stands."""
        return (*self.before, *self.head, self.image)

    def text(self, argv: Sequence[str] | None = None) -> str:
        """The whole command for a shell, with other flags where some are given."""
        flags = self.argv if argv is None else argv
        inner = " ".join([*map(_quote_head, self.head), *map(quote, flags), *self.tail])
        if not self.quoted:
            return inner
        return " ".join([*map(_quote_head, self.before), shlex.quote(inner), *map(quote, self.after)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Launchers:
    """How a launch begins; the words come from launchers.yaml."""

    modules: frozenset[str]
    wrappers: Mapping[str, str]
    programs: tuple[tuple[str, ...], ...]
    scripts: tuple[str, ...]
    model: str
    selector: str
    selects: frozenset[str]
    containers: frozenset[str]
    variables: tuple[str, ...]
    files: tuple[str, ...]
    deployments: Mapping[str, Any]
    others: tuple[tuple[tuple[str, ...], str], ...]
    calls: frozenset[str] = frozenset()
    prefix: str = ""
    stands_for: Mapping[str, str] = field(default_factory=dict)

    @property
    def forms(self) -> str:
        """How a person would write a launch."""
        return ", ".join([f"python -m {name}" for name in sorted(self.modules)] + [" ".join(p) for p in self.programs])


def make_launchers(document: Mapping[str, Any]) -> Launchers:
    """Read launchers.yaml's mapping."""
    return Launchers(
        modules=frozenset(document["modules"]),
        wrappers=document["wrappers"],
        programs=tuple(map(tuple, document["programs"])),
        scripts=tuple(document["scripts"]),
        model=document["model"],
        selector=document["selector"],
        selects=frozenset(document["selects"]),
        containers=frozenset(document["containers"]["programs"]),
        variables=tuple(document["containers"]["variables"]),
        files=tuple(document["containers"]["files"]),
        deployments=document["deployments"],
        others=tuple((tuple(item["names"]), item["what"]) for item in document["others"]),
        calls=frozenset(document["calls"]),
        prefix=document["prefixed"]["prefix"],
        stands_for=document["prefixed"]["stands_for"],
    )


@cache
def shipped_launchers() -> Launchers:
    """The launchers of this installation."""
    from recommender.library import load

    return make_launchers(load().one("constraints/sglang/flags/launchers.yaml"))


def split_command(words: Sequence[str], launchers: Launchers | None = None) -> Command:
    """Take a command apart. Words that begin with a flag are flags alone.

    Raises:
        UsageError: the command is no launch of this engine; it says what it is instead.
    """
    if not words or words[0].startswith("-"):
        return Command(argv=tuple(_without_continuations(words)))
    return _split(tuple(_without_continuations(words)), launchers or shipped_launchers(), 0)


def split_text(text: str, launchers: Launchers | None = None) -> Command:
    """Take a command apart that is one text: several lines, comments, redirections and all.

    Raises:
        UsageError: the quotes do not match, or the command is no launch of this engine.
    """
    return _split_text(text, launchers or shipped_launchers(), 0)


def quote(word: str) -> str:
    """A word for a shell; a variable in it still expands."""
    if not holds_shell_variable(word):
        return shlex.quote(word)
    if _PLAIN.fullmatch(word):
        return word
    return '"' + re.sub(r'(["\\])', r"\\\1", word) + '"'


def _quote_head(word: str) -> str:
    if _ASSIGNMENT.match(word):
        name, _, value = word.partition("=")
        return f"{name}={quote(value) if value else ''}"
    return word if _REDIRECTION.fullmatch(word) else quote(word)


def _without_continuations(words: Sequence[str]) -> list[str]:
    """The words without those that only continued a line, and without continuations at their ends."""
    kept = []
    for word in words:
        if "\\" in word or "\n" in word:
            bare = _CONTINUATION.sub(" ", word) if _CONTINUATION.search(word) else word
            if not bare.strip(" \t\r\n\\"):
                continue
            kept.append(bare.strip(" \t\r\n") if bare is not word else word)
        else:
            kept.append(word)
    return kept


def _shell_words(text: str) -> list[str]:
    """The words of a shell text; the end of a line or statement is a word of its own."""
    lines = [line for line in _CONTINUATION.sub(" ", text).splitlines() if not line.lstrip().startswith("#")]
    lexer = shlex.shlex("\n".join(lines), posix=True, punctuation_chars="\n;")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    words: list[str] = []
    try:
        for word in lexer:
            ends = bool(word) and not word.strip("\n;")
            if not ends:
                words.append(word)
            elif words and not _REDIRECTION.fullmatch(words[-1]):
                words.append(";")
    except ValueError as error:
        raise UsageError(f"the command cannot be read as a shell would: {error}") from None
    return words[:-1] if words[-1:] == [";"] else words


def _split_text(text: str, launchers: Launchers, depth: int) -> Command:
    words = _shell_words(inlined(text))
    if words and words[0].startswith("-"):
        command = Command(argv=tuple(words))
    else:
        command = _split(tuple(words), launchers, depth)
    if command.quoted:
        return command
    cut = next((i for i, word in enumerate(command.argv) if _REDIRECTION.fullmatch(word)), len(command.argv))
    return replace(command, argv=command.argv[:cut], tail=command.argv[cut:])


def _split(words: tuple[str, ...], launchers: Launchers, depth: int) -> Command:
    for index, word in enumerate(words):
        stop = _launch_end(words, index, launchers)
        if stop:
            return _command(words, stop, launchers, serves=not word.startswith("-"))
        if depth < _DEEPEST and _holds_text(words, index, launchers):
            inner = _split_text(word, launchers, depth + 1)
            if len(words) == 1:
                return inner
            env = {**_variables(words[:index], launchers), **inner.env}
            if inner.quoted:
                raise UsageError("a launch inside two quoted texts cannot be read; give the innermost command")
            files = (*_env_files(words[:index], launchers), *inner.env_files)
            return replace(
                inner, env=env, env_files=files, before=words[:index], after=words[index + 1 :], quoted=index > 0
            )
    return _flags_alone(words, launchers)


def _launch_end(words: Sequence[str], index: int, launchers: Launchers) -> int:
    """Where the words of a launcher end that begins at `index`; 0 when none does."""
    word = words[index]
    after = words[index + 1] if index + 1 < len(words) else ""
    if word == "-m" and index and (after in launchers.modules or after in launchers.wrappers):
        return index + 2
    if word.endswith(launchers.scripts) and index and _PYTHON.fullmatch(_base(words[index - 1])):
        return index + 1
    name = _base(word)
    for program in launchers.programs:
        if name == program[0] and tuple(words[index + 1 : index + len(program)]) == program[1:]:
            return index + len(program)
    return 0


def _base(word: str) -> str:
    return word.rsplit("/", 1)[-1]


def _holds_text(words: Sequence[str], index: int, launchers: Launchers) -> bool:
    """Whether a word is a command text of its own: the only word, or what a shell is told to run."""
    word = words[index]
    if " " not in word.strip() and "\n" not in word:
        return False
    if len(words) > 1 and not (index and _SHELL_STRING.fullmatch(words[index - 1])):
        return False
    names = [
        *launchers.modules,
        *launchers.wrappers,
        *(" ".join(program) for program in launchers.programs),
        *launchers.scripts,
    ]
    return len(words) == 1 or any(name in " ".join(word.split()) for name in names)


def _command(words: tuple[str, ...], stop: int, launchers: Launchers, serves: bool) -> Command:
    head, argv = list(words[:stop]), list(words[stop:])
    env = _variables(head, launchers)
    files = _env_files(head, launchers)
    if serves:
        head, argv = _serve_words(head, argv, launchers)
    wrapper = launchers.wrappers.get(words[stop - 1], "")
    return Command(env=env, argv=tuple(argv), head=tuple(head), wrapper=wrapper, env_files=files)


def _serve_words(head: list[str], argv: list[str], launchers: Launchers) -> tuple[list[str], list[str]]:
    """The words that the parser sees: the selector taken off, the model's flag put before a bare first word."""
    kept: list[str] = []
    position = 0
    while position < len(argv):
        word = argv[position]
        name, equals, value = word.partition("=")
        if name != launchers.selector:
            kept.append(word)
            position += 1
            continue
        if not equals:
            if position + 1 == len(argv):
                raise UsageError(f"{launchers.selector} names no server")
            value = argv[position + 1]
        if value not in launchers.selects and not holds_shell_variable(value):
            raise UsageError(f"{launchers.selector} {value} selects another server, whose flags are not known here")
        head = [*head, launchers.selector, value]
        position += 1 if equals else 2
    if kept and not kept[0].startswith("-") and not holds_shell_variable(kept[0]):
        kept.insert(0, launchers.model)
    return head, kept


def _variables(head: Sequence[str], launchers: Launchers) -> dict[str, str | Unknown]:
    """The variables that the words before a launch set for it."""
    start = next((i for i, word in enumerate(head) if _base(word) in launchers.containers), None)
    outer = _assigned(head if start is None else head[:start])
    if start is None:
        return outer
    inner: dict[str, str | Unknown] = {}
    position = start
    while position < len(head):
        word = head[position]
        for option in launchers.variables:
            pair = None
            if word == option and position + 1 < len(head):
                position += 1
                pair = head[position]
            elif word.startswith(f"{option}="):
                pair = word[len(option) + 1 :]
            elif not option.startswith("--") and word.startswith(option) and _ASSIGNMENT.match(word[len(option) :]):
                pair = word[len(option) :]
            if pair is not None:
                name, equals, value = pair.partition("=")
                if equals:
                    inner[name] = _value(value)
                elif name in outer:
                    inner[name] = outer[name]
                break
        position += 1
    return inner | _assigned_last(head[start:])


def _env_files(head: Sequence[str], launchers: Launchers) -> tuple[str, ...]:
    """The files of variables that a container among the words is given."""
    start = next((i for i, word in enumerate(head) if _base(word) in launchers.containers), len(head))
    found = []
    for place in range(start, len(head)):
        name, equals, value = head[place].partition("=")
        if name in launchers.files and (equals or place + 1 < len(head)):
            found.append(value if equals else head[place + 1])
    return tuple(found)


def _assigned(words: Sequence[str]) -> dict[str, str | Unknown]:
    pairs = (word.partition("=") for word in words if _ASSIGNMENT.match(word))
    return {name: _value(value) for name, _, value in pairs}


def _assigned_last(words: Sequence[str]) -> dict[str, str | Unknown]:
    """The assignments of an `env` inside a container."""
    starts = [index for index, word in enumerate(words) if _base(word) == "env"]
    return _assigned(words[starts[-1] :]) if starts else {}


def _value(text: str) -> str | Unknown:
    return UNKNOWN if holds_shell_variable(text) else text


def _prefixed(words: Sequence[str], launchers: Launchers) -> tuple[str, ...]:
    """Of another program's words the flags that it hands on to the engine, as it spells them; none without one of these."""
    if not launchers.prefix or not any(word.startswith(launchers.prefix) for word in words):
        return ()
    kept: list[str] = []
    taking = False
    for word in words:
        if word.startswith("--") or _REDIRECTION.fullmatch(word):
            name = word.partition("=")[0]
            taking = name.startswith(launchers.prefix) or name in launchers.stands_for
        if taking:
            kept.append(word)
    models = {launchers.model, *(name for name, ours in launchers.stands_for.items() if ours == launchers.model)}
    if not models & {word.partition("=")[0] for word in kept}:
        kept += [launchers.model, "${MODEL}"]  # where it comes from is the other program's own matter
    return tuple(kept)


def without_prefix(words: Sequence[str], launchers: Launchers, known: Callable[[str], bool]) -> tuple[str, ...]:
    """The words with each flag in place of the one that another program takes for it."""
    found = []
    for word in words:
        name, equals, value = word.partition("=")
        bare = launchers.stands_for.get(name) or f"--{name[len(launchers.prefix) :]}"
        ours = name in launchers.stands_for or (launchers.prefix and name.startswith(launchers.prefix) and known(bare))
        found.append(f"{bare}{equals}{value}" if ours and not known(name) else word)
    return tuple(found)


def _flags_alone(words: tuple[str, ...], launchers: Launchers) -> Command:
    start = 0
    while start < len(words) and (_ASSIGNMENT.match(words[start]) or words[start] in ("env", "export", ";", "&&")):
        start += 1
    if start == len(words) or words[start].startswith("-"):
        return Command(env=_assigned(words[:start]), argv=words[start:], head=words[:start])
    prefixed = _prefixed(words, launchers)
    if prefixed:
        theirs = f"a program that hands its {launchers.prefix}* flags on"
        return Command(env=_variables(words, launchers), argv=prefixed, wrapper=theirs)
    named = [words[i + 1] for i, word in enumerate(words[:-1]) if word == "-m"]
    named += [_base(word) for word in words if not word.startswith("-")]
    for name in named:
        for patterns, what in launchers.others:
            if any(fnmatchcase(name, pattern) for pattern in patterns):
                raise UsageError(
                    f"{name} is {what}, no launch of the engine; that is {launchers.forms}, or flags alone"
                )
    shown = named[0] if "-m" in words else words[start]
    raise UsageError(f"no launch in this command (it runs {shown!r}); that is {launchers.forms}, or flags alone")
