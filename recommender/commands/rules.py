"""The rules commands: list the laws of a release, show one whole, or compare two releases; it must not judge."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from recommender.accounts import account_of
from recommender.commands.inputs import (
    device_of,
    known_format,
    launch_of,
    release_of,
    say_wrapper,
    split_words,
    variables,
)
from recommender.errors import UsageError
from recommender.facts import nearest
from recommender.render import rules as render
from recommender.render.names import LIST_FORMATS, TEXT_FORMATS
from recommender.rulebook import load_rulebook
from recommender.session import open_session
from recommender.versions import uncovered


def run_list(*, sglang: str | None, topic: str | None, format_: str) -> int:
    """Run `rules list`; returns the exit code."""
    known_format(format_, LIST_FORMATS)
    book = load_rulebook()
    asked, judged = book.covered(release_of(sglang))
    laws = sorted(book.rules_of(judged).values(), key=lambda rule: (rule.topic, rule.id))
    topics = sorted({rule.topic for rule in laws})
    if topic is not None:
        if topic not in topics:
            raise UsageError(f"--topic: {topic!r} is none of {', '.join(topics)}{nearest(topic, topics)}")
        laws = [rule for rule in laws if rule.topic == topic]
    if format_ == "json":
        document = render.list_json(laws, rulebook=book.digest, sglang=asked, judged_as=judged)
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        render.print_list(laws, asked, judged)
    return 0


def run_show(*, rule: str, format_: str) -> int:
    """Run `rules show`; returns the exit code."""
    known_format(format_, TEXT_FORMATS)
    book = load_rulebook()
    editions = book.rule(rule)
    newest = book.releases[-1].version
    edition = book.edition(newest)
    accounts = [(account_of(book, each, edition), each.text()) for each in editions]
    if format_ == "json":
        document = render.show_json(accounts, rulebook=book.digest, sglang=newest, judged_as=newest)
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        render.print_show(accounts, newest)
    return 0


def run_diff(
    *,
    old: str,
    new: str,
    command: Sequence[str] | None,
    gpu: str | None,
    gpus: int | None,
    env: Sequence[str],
    image: str | None,
    format_: str,
) -> int:
    """Run `rules diff`; returns the exit code."""
    from recommender.differences import differences, launch_differences
    from recommender.render import differences as words

    known_format(format_, LIST_FORMATS)
    book = load_rulebook()
    sessions = (open_session(book, old), open_session(book, new))
    for session in sessions:
        if session.asked_release != session.edition.release:
            sys.stderr.write(f"recommender: {uncovered(session.asked_release, session.edition.release, 'compared')}\n")
    if command is None:
        if gpu is not None or gpus is not None or env or image is not None:
            raise UsageError("--gpu, --gpus, --env and --image go with a launch: put its command after --")
        found = differences(book, sessions[0].edition.release, sessions[1].edition.release)
    else:
        split = split_words(sessions[0], command)
        device = device_of(gpu, gpus, required=False)
        say_wrapper(split)
        old_launch, new_launch = (launch_of(each, split, variables(env), image, device) for each in sessions)
        found = launch_differences(sessions, (old_launch, new_launch), split.argv, device)
    if format_ == "json":
        sys.stdout.write(json.dumps(words.differences_json(found), indent=2) + "\n")
    else:
        words.print_differences(found)
    return 0
