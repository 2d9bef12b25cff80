"""Taking entries out of a YAML text: what goes, and that every other character stays as it was."""

from __future__ import annotations

import pytest

from tools.yaml_edit import Keys, documents, folded, plain_of, replaced, without


def named(*names: str) -> object:
    """A test for the entries of a name or a value."""
    return lambda keys, node: keys[-1] in names or plain_of(node) in names


@pytest.mark.parametrize(
    ("text", "gone", "left"),
    [
        ("a: 1\nb: 2  # of b\n# about c\nc: 3\n", "b", "a: 1\n# about c\nc: 3\n"),
        ("a: 1\nb:\n  - x\n  - y\n\nc: 3\n", "b", "a: 1\n\nc: 3\n"),
        ("a: {x: 1, y: 2, z: 3}\n", "y", "a: {x: 1, z: 3}\n"),
        ("a: {x: 1, y: 2, z: 3}\n", "z", "a: {x: 1, y: 2}\n"),
        ("a: [x, y,\n    z]\n", "x", "a: [y,\n    z]\n"),
        ("a: [x]\nb: 1\n", "x", "b: 1\n"),
        ("a:\n  - x\n  - y\n", "x", "a:\n  - y\n"),
        ("a: >-\n  one\n  two\nb: 1\n", "a", "b: 1\n"),
        ("a: >-\n  one\n  two", "a", ""),
        ("a: 1\n", "b", "a: 1\n"),
    ],
)
def test_an_entry_goes_and_nothing_else(text: str, gone: str, left: str) -> None:
    assert without(text, named(gone)) == left  # type: ignore[arg-type]


def test_every_entry_that_is_wanted_goes() -> None:
    assert without("a: [x, y, z, x]\nx: {b: x, c: 1}\nd: {b: x, c: 1}\n", named("x")) == "a: [y, z]\nd: {c: 1}\n"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('a:\n  is: "new"\n  earlier: [{until: "2", is: "old"}]\n  meaning: M.\n', 'a:\n  is: "old"\n  meaning: M.\n'),
        ('a:\n  earlier: [{until: "2", is: "old"}]\n  is: "new"\n', 'a:\n  is: "old"\n'),
        (
            'a:\n  is: new\n  earlier:\n    - {until: "1", is: oldest}\n    - {until: "2", is: old}\n',
            'a:\n  is: old\n  earlier:\n    - {until: "1", is: oldest}\n',
        ),
        ('E: {type: int, default: 8, earlier: [{until: "2", default: 4}], meaning: M.}\n', "E: {type: int, default: 4, meaning: M.}\n"),
        (
            'a:\n  choose:\n    - {then: 1}\n  earlier:\n    - until: "2"\n      choose:\n        - {when: x, then: 2}\n        - {then: 3}\n  meaning: M.\n',
            "a:\n  choose:\n    - {when: x, then: 2}\n    - {then: 3}\n  meaning: M.\n",
        ),
        ('a:\n  is: "new"\n  earlier: [{until: "1", is: "old"}]\n', 'a:\n  is: "new"\n  earlier: [{until: "1", is: "old"}]\n'),
    ],
)  # fmt: skip
def test_what_ended_with_a_release_holds_again(text: str, left: str) -> None:
    assert folded(text, "2") == left


def test_an_earlier_that_cannot_be_folded_is_named_by_its_line() -> None:
    with pytest.raises(ValueError, match="line 3"):
        folded('b: 1\na:\n  is: x\n  earlier: [{until: "2", is: y, choose: []}]\n', "2")


def test_words_change_only_where_the_keys_say_so() -> None:
    def read(keys: Keys) -> bool:
        return "when" in keys

    made = replaced("when: x and y\nmessage: x\nfix:\n  - {when: x}\n", read, lambda text: text.replace("x", "False"))
    assert made == "when: False and y\nmessage: x\nfix:\n  - {when: False}\n"


def test_documents_are_told_apart_by_their_line() -> None:
    assert documents("a: 1\n---\nb: --- 2\n") == ["a: 1\n", "b: --- 2\n"]
