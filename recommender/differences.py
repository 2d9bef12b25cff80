"""Compares two engine releases, their laws, their flags, and one launch under both; it must not print or read files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from recommender.api import check_launch
from recommender.catalogue import CommandLine, Flag
from recommender.expr import show
from recommender.laws import Rule
from recommender.profiles import Gpu
from recommender.reports import Differences, FlagShift, LaunchShift, LawShift, Shift, ValueShift
from recommender.rulebook import Edition, Rulebook
from recommender.session import Launch, Session
from recommender.terms import CheckResult, Finding, Unknown, Value

# What makes a law another law; the rest of its file is words about it.
_KEYS = ("effect", "bites", "phase", "when", "require", "sets")
_A_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


def differences(book: Rulebook, old: str, new: str) -> Differences:
    """Laws and flags of covered release `new` that are not as in `old`.

    Raises:
        RulebookError: a release does not compile.
    """
    before, after = book.edition(old), book.edition(new)
    return Differences(
        old=old,
        new=new,
        laws=law_shifts(before, after),
        flags=flag_shifts(before.command_line, after.command_line),
        rulebook=book.digest,
    )


def law_shifts(before: Edition, after: Edition) -> tuple[LawShift, ...]:
    """Laws that appeared, ended or changed, by topic and name."""
    changed = changed_definitions(before.words.texts, after.words.texts)
    found = []
    for name in sorted({*before.rules, *after.rules}):
        was, now = before.rules.get(name), after.rules.get(name)
        if was is None or now is None:
            rule = now or was
            assert rule is not None
            found.append(_law(rule, Shift.APPEARED if was is None else Shift.ENDED))
            continue
        how = () if was is now else tuple(key for key in _KEYS if getattr(was, key) != getattr(now, key))
        through = tuple(sorted(changed.intersection(_names_of(now))))
        if how or through:
            found.append(_law(now, Shift.CHANGED, how, through))
    return tuple(sorted(found, key=lambda item: (item.topic, item.rule)))


def _law(rule: Rule, shift: Shift, how: tuple[str, ...] = (), through: tuple[str, ...] = ()) -> LawShift:
    return LawShift(
        rule=rule.id,
        topic=rule.topic,
        shift=shift,
        effect=rule.effect,
        bites=rule.bites,
        statement=rule.statement,
        how=how,
        through=through,
    )


def _words(value: Any) -> Iterator[str]:
    """Every name in the texts of a nested value."""
    if isinstance(value, str):
        yield from _A_NAME.findall(value)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _words(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _words(item)


def _names_of(rule: Rule) -> set[str]:
    return {*_words(rule.when), *_words(rule.require), *_words(rule.sets)}


def changed_definitions(old: Mapping[str, tuple[str, Any]], new: Mapping[str, tuple[str, Any]]) -> frozenset[str]:
    """The shared definitions that read otherwise in the newer release, and those that read one of them."""
    changed = {name for name in new if name in old and old[name][1] != new[name][1]}
    readers: dict[str, list[str]] = {}
    for name, (_, entry) in new.items():
        for word in _words(entry):
            readers.setdefault(word, []).append(name)
    waiting = list(changed)
    while waiting:
        for reader in readers.get(waiting.pop(), ()):
            if reader not in changed:
                changed.add(reader)
                waiting.append(reader)
    return frozenset(changed)


def flag_shifts(before: CommandLine, after: CommandLine) -> tuple[FlagShift, ...]:
    """Spellings that came, went, moved to another or take other values, by name."""
    found = []
    for name in sorted({*before.names, *after.names}):
        was, now = before.flag(name), after.flag(name)
        if was is None and now is not None:
            spelled = _long(before, now.field)
            if spelled and after.flag(spelled) is None and name == _long(after, now.field):
                found.append(FlagShift(flag=spelled, setting=now.field, shift=Shift.RENAMED, now=name))
            else:
                found.append(FlagShift(flag=name, setting=now.field, shift=Shift.APPEARED))
        elif now is None and was is not None:
            kept = _long(after, was.field)
            is_renamed = bool(kept) and name == _long(before, was.field) and before.flag(kept) is None
            if not is_renamed:
                found.append(FlagShift(flag=name, setting=was.field, shift=Shift.ENDED, now=kept))
        elif was is not None and now is not None:
            details = tuple(_details(was, now, before, after))
            if details:
                found.append(
                    FlagShift(flag=name, setting=now.field, shift=Shift.CHANGED, now=now.instead, details=details)
                )
    return tuple(found)


def _long(line: CommandLine, setting: str) -> str:
    """The spelling to write a setting with; empty where the release has none."""
    return line.fields[setting].flag.long if setting in line.fields else ""


def _details(was: Flag, now: Flag, before: CommandLine, after: CommandLine) -> Iterator[str]:
    if was.choices != now.choices:
        old, new = set(was.choices or ()), set(now.choices or ())
        if not now.choices or not was.choices:
            yield "takes any word" if not now.choices else f"takes {_listed(now.choices)} only"
        else:
            if new - old:
                yield f"takes {_listed(item for item in now.choices if item not in old)} too"
            if old - new:
                yield f"no longer takes {_listed(item for item in was.choices if item not in new)}"
    if (was.type, was.nargs, was.kind) != (now.type, now.nargs, now.kind) and was.plain_type != now.plain_type:
        yield f"is {now.plain_type}, was {was.plain_type}"
    if now.kind == "retired" and was.kind != "retired":
        yield "stops the launch"
    elif now.deprecated and not was.deprecated:
        yield "deprecated"
    old_default, new_default = (
        line.fields[flag.field].default if flag.field in line.fields else None
        for line, flag in ((before, was), (after, now))
    )
    if old_default != new_default:
        yield f"default {show(new_default)}, was {show(old_default)}"


def _listed(values: Iterable[Value]) -> str:
    return ", ".join(str(value) for value in values)


def launch_differences(
    sessions: tuple[Session, Session],
    launches: tuple[Launch, Launch],
    argv: Sequence[str],
    gpu: Gpu | None,
) -> Differences:
    """What differs between the releases of two sessions and touches one launch, as each of them reads it; `argv` are its words.

    A law touches a launch that it judges or writes to in one of the releases; a flag touches one that spells it.
    """
    old, new = sessions
    results = tuple(check_launch(session, read, gpu) for session, read in zip(sessions, launches, strict=True))
    whole = differences(new.book, old.edition.release, new.edition.release)
    touching = {name for result in results for name in _touching(result)}
    return Differences(
        old=whole.old,
        new=whole.new,
        laws=tuple(law for law in whole.laws if law.rule in touching),
        flags=tuple(flag for flag in whole.flags if any(_spells(launch, argv, flag) for launch in launches)),
        launch=_launch_shift(results[0], results[1], new.order),
        rulebook=whole.rulebook,
    )


def _touching(result: CheckResult) -> Iterator[str]:
    yield from (finding.rule for finding in result.findings)
    yield from (known.rule for known in result.values.values() if known.rule)


def _spells(launch: Launch, argv: Sequence[str], flag: FlagShift) -> bool:
    typed = {word.partition("=")[0] for word in argv}
    asked = flag.setting in launch.asked and launch.spelled.get(flag.setting) in (flag.flag, flag.now)
    return flag.flag in typed or (asked and flag.shift is not Shift.APPEARED)


def _launch_shift(old: CheckResult, new: CheckResult, fields: Sequence[str]) -> LaunchShift:
    shared = [name for name in fields if name in old.values and name in new.values]
    pairs = [(name, old.values[name], new.values[name]) for name in shared]
    return LaunchShift(
        old=old,
        new=new,
        goes=_missing(old.findings, new.findings),
        comes=_missing(new.findings, old.findings),
        values=tuple(
            ValueShift(setting=name, old=was.value, new=now.value, old_rule=was.rule, new_rule=now.rule)
            for name, was, now in pairs
            if not _same(was.value, now.value)
        ),
    )


def _same(one: Value, two: Value) -> bool:
    if isinstance(one, Unknown) or isinstance(two, Unknown):
        return one is two
    return bool(one == two)


def _missing(findings: Sequence[Finding], others: Sequence[Finding]) -> tuple[Finding, ...]:
    known = {(item.rule, item.verdict) for item in others}
    return tuple(item for item in findings if (item.rule, item.verdict) not in known)
