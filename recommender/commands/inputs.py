"""Turns what a user typed into devices, releases, launches and formats; it must not judge."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from recommender import profiles
from recommender.catalogue import RefusalKind
from recommender.errors import UsageError
from recommender.profiles import Gpu
from recommender.session import Launch, Session
from recommender.terms import Unknown

if TYPE_CHECKING:
    from recommender.forms.command import Command
    from recommender.rulebook import Rulebook


def known_format(name: str, formats: Iterable[str]) -> None:
    """Refuse a format that a command does not have.

    Raises:
        UsageError: it names the nearest one.
    """
    if name not in formats:
        near = get_close_matches(name, list(formats), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"--format: {name!r} is none of {', '.join(formats)}{hint}")


def device_of(gpu: str | None, gpus: int | None, *, required: bool) -> Gpu | None:
    """The device that is named, else the one in this machine (said on stderr).

    Raises:
        UsageError: the name is unknown, or none is named, none is found and one is `required`.
    """
    if gpu is None:
        device = profiles.detect_gpu()
        if device is None:
            if required:
                raise UsageError(
                    "no device found here (nvidia-smi and rocminfo are silent): name one with --gpu, for example --gpu b200"
                )
            sys.stderr.write("recommender: no device named or found; hardware is unknown (--gpu NAME)\n")
            return None
        sys.stderr.write(f"recommender: found {device.count} x {device.name}\n")
    else:
        device = profiles.find_gpu(gpu)
    return replace(device, count=gpus) if gpus is not None else device


def release_of(sglang: str | None) -> str | None:
    """The release that is named, else the engine installed beside this tool, else None."""
    if sglang is not None:
        return sglang
    from recommender.library import load

    return installed_version(str(load().one("constraints/sglang/releases.yaml")["package"]))


def release_for(book: Rulebook, sglang: str | None, command: Sequence[str] | None) -> str | None:
    """The release that is named, else that of the official image in the command (said on stderr), else as `release_of`."""
    if sglang is not None or not command:
        return release_of(sglang)
    text = " ".join(command)
    if len(command) == 1:
        from recommender.forms.text import read_form

        text = read_form(text) or text
    found = set(re.findall(book.library.one("constraints/sglang/releases.yaml")["image"], text))
    if len(found) != 1:
        return release_of(None)
    (release,) = found
    try:
        asked, _ = book.covered(release)
    except UsageError as error:
        sys.stderr.write(f"recommender: the image's {error}\n")
        return release_of(None)
    sys.stderr.write(f"recommender: judged as the image's SGLang {asked}; --sglang names another\n")
    return asked


def installed_version(package: str) -> str | None:
    """The version of an installed package, read off the names of the folders beside this one: importlib.metadata costs more."""
    pattern = re.compile(re.escape(package) + r"-(\d[^-]*)\.dist-info")
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        found = [match[1] for match in map(pattern.fullmatch, names) if match]
        if found:
            return found[0]
    return None


def variables(pairs: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE words as a mapping.

    Raises:
        UsageError: a word has no name or no equals sign.
    """
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"--env: {pair!r} is not NAME=VALUE")
        found[name] = value
    return found


def read_command(
    session: Session, command: Sequence[str], env: Sequence[str], image: str | None, gpu: Gpu | None
) -> Launch:
    """The launch that a user's command describes; variables given apart win over those in the command.

    Flags that the engine does not know are refused, but where another project's launcher takes flags of its own beside the
    engine's they cannot be judged.
    """
    split = split_words(session, command)
    say_wrapper(split)
    return launch_of(session, split, variables(env), image, gpu)


def say_wrapper(split: Command) -> None:
    """Say on stderr that another project's launcher is started, whose own flags are not judged."""
    if split.wrapper:
        sys.stderr.write(
            f"recommender: this starts {split.wrapper}; the engine's flags in it are judged, its own are not\n"
        )


def launch_of(
    session: Session, split: Command, own: Mapping[str, str | Unknown], image: str | None, gpu: Gpu | None
) -> Launch:
    """The launch of a command that was taken apart, with its variables and its image; `own` variables win over those in it."""
    given, unread = environment_of(split, own, session.root)
    use = session.image(image, gpu, split.around, given)
    return with_unread(engines_part(session.read(split.argv, given, use), split), unread)


def split_words(session: Session, command: Sequence[str]) -> Command:
    """A user's command taken apart; one word may be a text that holds a launch, or the name of a file that does.

    Raises:
        UsageError: the command is no launch of this engine, or the text does not hold exactly one.
    """
    from recommender.forms.command import shipped_launchers, split_command, without_prefix

    line = session.edition.command_line
    if len(command) == 1:
        from recommender.forms.text import split_form

        split = split_form(command[0], line, frozenset(session.book.settings["internal"]))
    else:
        split = split_command(command)
    bare = without_prefix(split.argv, shipped_launchers(), lambda name: len(line.options(name)) == 1)
    changed = [
        f"{old.partition('=')[0]} as {new.partition('=')[0]}"
        for old, new in zip(split.argv, bare, strict=True)
        if old != new
    ]
    if changed:
        sys.stderr.write(f"recommender: read {', '.join(dict.fromkeys(changed))}\n")
    return replace(split, argv=bare)


def environment_of(
    split: Command, own: Mapping[str, str | Unknown], root: Path
) -> tuple[dict[str, str | Unknown], tuple[str, ...]]:
    """(the variables of a launch, those given apart last; what is asked for that cannot be read here)."""
    if not split.env_files:
        return {**split.env, **own}, split.unread
    from recommender.forms.env_file import read_env_files

    listed, missing = read_env_files(split.env_files, root)
    return {**listed, **split.env, **own}, (*split.unread, *(f"the variables of {name}" for name in missing))


def with_unread(launch: Launch, unread: Sequence[str]) -> Launch:
    """The launch, with what nobody could read here among what is not judged."""
    if not unread:
        return launch
    parsed = replace(launch.parsed, unread=(*launch.parsed.unread, *unread))
    return replace(launch, parsed=parsed)


def engines_part(launch: Launch, command: Command) -> Launch:
    """The launch, with the flags that another project's launcher takes beside the engine's not judged instead of refused."""
    theirs = [refusal for refusal in launch.refusals if refusal.kind is RefusalKind.UNKNOWN_FLAG]
    if not command.wrapper or not theirs:
        return launch
    words = tuple(refusal.words[index] for refusal in theirs for index in refusal.drop)
    parsed = replace(launch.parsed, unread=(*launch.parsed.unread, *words))
    return replace(launch, refusals=tuple(each for each in launch.refusals if each not in theirs), parsed=parsed)
