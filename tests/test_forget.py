"""What a checkout is after it forgot its newest release; the engine is not needed."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from recommender.library import check_whole
from tools.forget import (
    Checkout,
    ForgetError,
    forget,
    older_phases,
    older_rule,
    phases_of,
    run,
    settled,
    unread,
    unreferring,
    words_of,
    younger_catalogue,
)
from tools.make_variables import TABLE, Release, added, younger
from tools.make_variables import render as render_variables

ROOT = Path(__file__).resolve().parent.parent
RULE = """id: a
since: "2"
phase: p
when: x
---
id: a
since: "1"
until: "2"
phase: q
when: y
"""


def test_the_older_edition_is_open_again() -> None:
    assert older_rule(RULE, "2") == 'id: a\nsince: "1"\nphase: q\nwhen: y\n'
    assert older_rule(RULE, "1") == RULE.partition("---\n")[0]
    assert older_rule('id: a\nsince: "2"\n', "2") == ""
    assert older_rule(RULE, "3") == RULE


def test_a_law_comes_after_no_law_that_is_gone() -> None:
    assert unreferring("id: a\nafter: [b, c]\nsilent_after: [b]\n", {"b"}) == "id: a\nafter: [c]\n"
    assert unreferring("id: a\nafter: b\nwhen: b\n", {"b"}) == "id: a\nwhen: b\n"


def test_phases_lose_what_left_them() -> None:
    text = (
        "phases:\n  - {id: p, sets: [a]}\n  - {id: q, sets: [a, b], until: '2'}\n  - {id: r, since: '2'}\n  - {id: s}\n"
    )
    after = phases_of(older_rule(RULE, "2"))
    assert older_phases(text, "2", phases_of(RULE), after) == "phases:\n  - {id: q, sets: [a, b]}\n  - {id: s}\n"
    assert older_phases("phases:\n  - {id: q, sets: [a, b]}\n", "2", {("a", "q"), ("b", "q")}, {("b", "q")}) == (
        "phases:\n  - {id: q, sets: [b]}\n"
    )


def test_a_flag_that_is_unknown_stands_as_its_default() -> None:
    text = 'when: a and not new_flag\nmessage: "{new_flag}"\nexamples:\n  - {breaks: --a --new-flag, gpu: x}\n  - {passes: --a, gpu: x}\n'
    assert settled(text, {"new_flag": "False"}, {"--new-flag"}) == (
        'when: a and not False\nmessage: "{new_flag}"\nexamples:\n  - {passes: --a, gpu: x}\n'
    )


def test_names_that_lost_their_readers() -> None:
    before, after = words_of(["a: b c", "is: a # d"]), words_of(["a: c"])
    assert before == Counter({"a": 2, "b": 1, "c": 1, "is": 1})
    assert unread(["a", "b", "c"], {}, before, after) == {"a", "b"}


def test_tables_without_the_newest_release() -> None:
    table = {
        "releases": ["1", "2"],
        "flags": [
            {"names": ["--a"], "field": "a", "since": "2"},
            {"names": ["--b"], "field": "b", "since": "1", "until": "2"},
            {"names": ["--c"], "field": "c", "since": "1"},
        ],
    }
    made = younger_catalogue(table, "2")
    assert made["releases"] == ["1"]
    assert [(each["names"], each.get("until")) for each in made["flags"]] == [(["--b"], None), (["--c"], None)]
    names = {"A": ["2", None], "B": [None, "2"], "C": ["1", None]}
    old = {"C": [[None, "2", "stands in", "B"], ["2", None, "ignores"]], "A": [["2", None, "warns"]]}
    variables = {"releases": ["0", "1", "2"], "names": names, "old": old, "types": {"A": "int", "B": "bool"}}
    before = {
        "releases": ["0", "1"],
        "names": {"B": [None, None], "C": ["1", None]},
        "old": {"C": [[None, None, "stands in", "B"]]},
        "types": {"B": "bool"},
    }
    newest = Release(named={"A", "C"}, fields={"A"}, warned={"A", "C"}, types={"A": "int"})
    assert younger(variables, "2") == before
    assert added(before, "2", newest) == variables
    assert added(variables, "2", newest) == variables


def test_the_table_of_variables_is_written_as_it_was_read() -> None:
    text = TABLE.read_text(encoding="utf-8")
    assert render_variables(json.loads(text)) == text


def test_this_checkout_can_forget() -> None:
    """Nothing is written: only the texts are looked at."""
    book = Checkout(ROOT)
    newest = json.loads((book.engine / "flags" / "catalogue.json").read_text(encoding="utf-8"))["releases"][-1]
    forget(book, newest)
    laws = [path for path in book.rules() if book.texts[path]]
    assert 0 < len(laws) < len(book.rules())
    for path in (*laws, *book.folder("phases"), *book.folder("definitions")):
        assert f'since: "{newest}"' not in book.texts[path]
        assert f'until: "{newest}"' not in book.texts[path]
        check_whole(book.texts[path], path.relative_to(ROOT).as_posix())


def test_only_a_clean_checkout_forgets(tmp_path: Path) -> None:
    with pytest.raises(ForgetError, match="git"):
        run(tmp_path, "0.5.23")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "mine").write_text("", encoding="utf-8")
    with pytest.raises(ForgetError, match="1 files have changes"):
        run(tmp_path, "0.5.23")
