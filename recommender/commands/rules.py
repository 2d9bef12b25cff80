"""The rules commands: list the laws of a release, or show one with all that its file says; it must not judge."""

from __future__ import annotations

import json
import sys

from recommender.accounts import account_of
from recommender.commands.inputs import known_format, release_of
from recommender.errors import UsageError
from recommender.facts import nearest
from recommender.render import rules as render
from recommender.render.names import LIST_FORMATS, TEXT_FORMATS
from recommender.rulebook import load_rulebook


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
