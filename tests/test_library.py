"""Files that are damaged, foreign or hostile cost a clear line or some time, never a wrong answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from recommender import library
from recommender.errors import RulebookError
from recommender.library import Library, Stored, encode, load_from, parse_yaml, read_files
from recommender.rulebook import Rulebook, _as_of, _members


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tiny data root with a cache folder of its own."""
    (tmp_path / "constraints").mkdir()
    (tmp_path / "profiles").mkdir()
    (tmp_path / "constraints" / "a.yaml").write_text("x: 1\n---\ny: off\n")
    (tmp_path / "profiles" / "b.json").write_text('{"z": [1, 2]}\n')
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def derived(_: Library) -> dict[str, list[int]]:
    return {"worked out": [42]}


def cached(root: Path) -> Path:
    return next((root / "cache" / "recommender").iterdir())


def test_files_are_read_and_kept(root: Path) -> None:
    first = load_from(root, derived)
    second = load_from(root, derived)
    assert dict(first.documents) == dict(second.documents) == {
        "constraints/a.yaml": [{"x": 1}, {"y": "off"}], "profiles/b.json": [{"z": [1, 2]}]
    }  # fmt: skip
    assert first.digest == second.digest
    assert second.derived["worked out"] == [42]
    assert [stem for stem, _ in second.folder("constraints")] == ["a"]


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"null\n",
        b"[]\n{}",
        b'{"format": "other"}\n',
        b"\x00" * 100,
        b'{"format":"recommender-library-12","fingerprint":1}\n',
    ],
)
def test_a_damaged_cache_is_rebuilt(root: Path, damage: bytes) -> None:
    expected = dict(load_from(root, derived).documents)
    cached(root).write_bytes(damage)
    assert dict(load_from(root, derived).documents) == expected


def test_a_flipped_byte_and_a_cut_end_are_noticed(root: Path) -> None:
    expected = dict(load_from(root, derived).documents)
    content = cached(root).read_bytes()
    for changed in (content[:-3], content.replace(b'"x":1', b'"x":2')):
        cached(root).write_bytes(changed)
        assert dict(load_from(root, derived).documents) == expected


def test_a_damaged_derived_value_is_worked_out_again(root: Path) -> None:
    load_from(root, derived)
    content = cached(root).read_bytes()
    cached(root).write_bytes(content.replace(b"[42]", b"[43]"))
    again = load_from(root, derived)
    assert again.documents["constraints/a.yaml"] == [{"x": 1}, {"y": "off"}]
    assert again.derived.get("worked out") is None


def test_of_a_compiled_file_only_the_release_asked_about_is_read(book: Rulebook, tmp_path: Path) -> None:
    """With ever more releases a start stays as quick as it is."""
    (tmp_path / library.COMPILED).write_bytes(encode(book.library, {}, library.SHIPPED))
    shipped = load_from(tmp_path)
    assert isinstance(shipped.derived, Stored)
    assert {f"plan {release.version}" for release in book.releases} < set(shipped.derived)
    newest = book.releases[-1].version
    again = Rulebook(shipped).edition(newest)
    assert list(again.rules) == list(book.edition(newest).rules)
    assert set(shipped.derived.parsed) == {f"plan {newest}"}


def test_a_changed_file_is_seen(root: Path) -> None:
    before = load_from(root, derived)
    (root / "constraints" / "a.yaml").write_text("x: 12345\n")
    after = load_from(root, derived)
    assert after.documents["constraints/a.yaml"] == [{"x": 12345}]
    assert before.digest != after.digest


def test_an_unwritable_cache_is_no_trouble(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    assert load_from(root, derived).documents["constraints/a.yaml"]


def test_the_shipped_form_needs_no_cache(root: Path) -> None:
    read = read_files(root)
    (root / library.COMPILED).write_bytes(encode(read, derived(read), library.SHIPPED))
    shipped = load_from(root)
    assert dict(shipped.documents) == dict(read.documents)
    assert shipped.derived["worked out"] == [42]
    (root / library.COMPILED).write_bytes(b"broken")
    assert dict(load_from(root).documents) == dict(read.documents)


@pytest.mark.parametrize(
    ("text", "word"),
    [("a: 1\na: 2", "twice"), ("a: [1", "x.yaml:"), ("a: !!python/object:os.system x", "x.yaml"), ("\t- 1", "x.yaml")],
)
def test_broken_yaml_names_its_place(text: str, word: str) -> None:
    with pytest.raises(RulebookError, match="x.yaml") as caught:
        parse_yaml(text, "x.yaml")
    assert word in str(caught.value)


def test_yaml_words_stay_words() -> None:
    assert parse_yaml("{a: off, b: yes, c: true, d: 2026-11-30, e: null, f: '1'}", "x") == [
        {"a": "off", "b": "yes", "c": True, "d": "2026-11-30", "e": None, "f": "1"}
    ]


def test_missing_files_are_said(tmp_path: Path) -> None:
    with pytest.raises(RulebookError, match="no constraints"):
        load_from(tmp_path)


@pytest.mark.parametrize(
    ("asked", "judged"),
    [
        ("0.5.23.post1", "0.5.23"),
        ("0.5.20.dev1", "0.5.20"),
        ("0.5.19rc1", "0.5.19"),
        ("0.5.15.post1", "0.5.15"),
        ("0.5.99", "0.5.23"),
        ("1.0", "0.5.23"),
    ],
)
def test_a_release_that_is_not_covered_is_judged_as_its_base(asked: str, judged: str) -> None:
    from recommender.rulebook import load_rulebook

    assert load_rulebook().covered(asked) == (asked, judged)


def test_an_older_release_is_refused_with_those_that_are_covered() -> None:
    from recommender.errors import UsageError
    from recommender.rulebook import load_rulebook

    with pytest.raises(
        UsageError, match=r"0\.5\.14 is older than every covered release; covered are 0\.5\.15, .*0\.5\.23"
    ):
        load_rulebook().covered("0.5.14")


@pytest.mark.parametrize(
    ("release", "members"), [((0, 5, 16), ["a"]), ((0, 5, 17), ["a", "b"]), ((0, 5, 23), ["a", "b", "c"])]
)
def test_a_group_grows_with_the_releases(release: tuple[int, ...], members: list[str]) -> None:
    grew = {"is": ["a", "b", "c"], "joined": {"0.5.17": ["b"], "0.5.20": ["c"]}}
    assert _members("letters", grew, release) == members
    assert _members("letters", ["a", "c"], release) == ["a", "c"]


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"is": ["a"], "joined": {"0.5.17": ["b"]}}, "letters: b joined but is no member"),
        ({"is": ["a"]}, "letters: give a list, or `is` and `joined`"),
        ("a", "letters: give a list, or `is` and `joined`"),
    ],
)
def test_a_group_that_is_not_whole_is_named(entry: object, told: str) -> None:
    with pytest.raises(RulebookError, match=told):
        _members("letters", entry, (0, 5, 23))


@pytest.mark.parametrize(("release", "value"), [((0, 5, 9), "a"), ((0, 5, 10), "b"), ((0, 5, 11), "c")])
def test_what_an_entry_said_earlier_may_stand_in_any_order(release: tuple[int, ...], value: str) -> None:
    said = [{"until": "0.5.11", "is": "b"}, {"until": "0.5.10", "is": "a"}]
    for earlier in (said, said[::-1]):
        assert _as_of({"is": "c", "earlier": earlier}, release)["is"] == value
