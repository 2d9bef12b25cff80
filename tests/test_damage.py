"""Every kind of file that the tool or its tests read, cut, emptied, changed, foreign, missing or a folder: never half an answer.

What is read at run time is named in one line, or, where it is a copy that can be made again, made again.
"""

from __future__ import annotations

import gzip
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import recommender
from recommender import library
from recommender.errors import RulebookError
from recommender.facts import a_profile
from recommender.library import Library, check_whole, data_root, load_from, parse_yaml, read_files, sealed
from recommender.rulebook import check_document
from recommender.variables import FORMAT, checked_table
from tests.oracle.probes import outcomes
from tests.oracle.records import DATA, RecordError, lines_of, read, seal

ROOT = data_root()
FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in library.FOLDERS
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".yaml", ".json")
)
TABLES = [name for name in FILES if library.TABLES.fullmatch(name)]
GENERATED = [name for name in FILES if name.endswith(".json")]
PROFILES = [name for name in FILES if name.startswith("profiles/") and name not in TABLES]
RULES = [name for name in FILES if name not in {*TABLES, *GENERATED, *PROFILES}]
JUDGED = frozenset("id effect bites since until phase when require sets parse after silent_after".split())
QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def refusal(call: Callable[[], object]) -> str:
    """What a call is refused with; empty when it is not."""
    try:
        call()
    except RulebookError as error:
        return str(error)
    return ""


def named(told: str, name: str) -> bool:
    """Whether a refusal is one line that begins with its file; the place in it may follow."""
    assert not told or re.match(rf"{re.escape(name)}(:\d+:\d+)?: ", told), told
    assert len(told.splitlines()) <= 1
    return bool(told)


def refused(text: str, name: str) -> bool:
    """Whether a text is refused before it is read."""
    return named(refusal(lambda: check_whole(text, name)), name)


def checked_law(text: str, name: str) -> None:
    """Read every edition of a law.

    Raises:
        RulebookError: one has not the shape of a rule.
    """
    for document in parse_yaml(text, name):
        check_document(document, name)


def in_order(text: str, name: str) -> bool:
    """Whether all that judges stands before the source, in every edition of a law."""
    orders = [list(document) for document in parse_yaml(text, name)]
    return all(JUDGED.isdisjoint(keys[keys.index("source") :]) for keys in orders)


def test_nearly_every_law_says_what_judges_before_its_source() -> None:
    assert sum(not in_order(text_of(name), name) for name in RULES[::10]) <= 2


def test_every_file_is_whole_and_of_a_kind_that_is_tested() -> None:
    assert [name for name in FILES if refused(text_of(name), name)] == []
    assert {name.rsplit("/", 1)[-1] for name in GENERATED} == {"catalogue.json", "variables.json"}
    assert {"constraints/sglang/releases.yaml", "constraints/sglang/flags/renamed.yaml", "profiles/facts.yaml"} <= {
        *TABLES
    }
    assert len(RULES) > 1000
    assert len(PROFILES) > 500


@QUICK
@given(data=st.data(), name=st.sampled_from([*TABLES, *GENERATED]))
def test_a_table_that_is_cut_anywhere_is_refused(data: st.DataObject, name: str) -> None:
    text = text_of(name)
    assert refused(text[: data.draw(st.integers(0, len(text) - 1))], name)


@QUICK
@given(data=st.data(), name=st.sampled_from(GENERATED), mask=st.integers(1, 255))
def test_a_generated_file_with_a_changed_byte_is_refused(data: st.DataObject, name: str, mask: int) -> None:
    content = bytearray(text_of(name).encode())
    content[data.draw(st.integers(0, len(content) - 1))] ^= mask
    assert refused(content.decode(errors="replace"), name)


@QUICK
@given(data=st.data(), name=st.sampled_from(PROFILES))
def test_a_profile_that_is_cut_lacks_words_about_its_source_alone(data: st.DataObject, name: str) -> None:
    text = text_of(name)
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    if refused(cut, name):
        return
    (whole,) = parse_yaml(text, name)
    held = parse_yaml(cut, name) if not named(refusal(lambda: parse_yaml(cut, name)), name) else []
    if held and not named(refusal(lambda: a_profile(held[0], name)), name):
        assert {**held[0], "source": 0} == {**whole, "source": 0}


@QUICK
@given(data=st.data(), name=st.sampled_from(RULES))
def test_a_law_that_is_cut_is_refused_or_judges_as_before(data: st.DataObject, name: str) -> None:
    """The newest edition, that is: of an older one that is cut off whole, nothing in the file tells."""
    text = text_of(name)
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    if refused(cut, name) or not in_order(text, name):
        return
    if named(refusal(lambda: checked_law(cut, name)), name):
        return
    for was, now in zip(parse_yaml(text, name), parse_yaml(cut, name), strict=False):
        assert {key: was.get(key) for key in JUDGED} == {key: now.get(key) for key in JUDGED}


@pytest.mark.parametrize("damaged", [None, [], {}, {"format": "recommender-variables-1"}, "x", 3])
def test_a_table_of_variables_of_another_format_is_refused(damaged: Any) -> None:
    with pytest.raises(RulebookError, match=f"^v.json: not a table of variables in the format {FORMAT}"):
        checked_table(damaged, "v.json")


@pytest.mark.parametrize("part", ["names", "old", "types"])
def test_a_table_of_variables_that_lost_an_entry_is_refused(part: str) -> None:
    table = json.loads(text_of("constraints/sglang/flags/variables.json"))
    table[part].popitem()
    with pytest.raises(RulebookError, match=rf"^v.json: holds {len(table[part])} of {len(table[part]) + 1} {part}"):
        checked_table(table, "v.json")
    with pytest.raises(RulebookError, match=f"^v.json: holds none of .* {part}"):
        checked_table({**table, part: None}, "v.json")


# --- the files themselves, as a whole -----------------------------------------------------------------------------------


def instead_of(path: Path) -> Path:
    """The place of a file, freed for something else."""
    path.unlink()
    return path


DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "cut at a line": lambda path: path.write_text(
        "".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:-2]), encoding="utf-8"
    ),
    "empty": lambda path: path.write_bytes(b""),
    "zeros": lambda path: path.write_bytes(b"\0" * 4096),
    "not text": lambda path: path.write_bytes(b"\xff\xfe" + path.read_bytes()),
    "foreign": lambda path: path.write_text("<html><body>404</body></html>\n"),
    "a folder": lambda path: instead_of(path).mkdir(),
    "a broken link": lambda path: instead_of(path).symlink_to("nowhere"),
}


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """A data root with the tables, the generated files, and one file of each other kind."""
    for name in (*TABLES, *GENERATED, PROFILES[0], RULES[0]):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


KINDS = [
    "constraints/sglang/releases.yaml",
    "constraints/sglang/flags/catalogue.json",
    "constraints/sglang/flags/variables.json",
    "constraints/sglang/flags/variables.yaml",
    "constraints/sglang/flags/renamed.yaml",
    "constraints/sglang/phases/60-speculative.yaml",
    "profiles/facts.yaml",
]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", KINDS)
def test_a_damaged_file_is_named_in_one_line(tables: Path, name: str, damage: str) -> None:
    DAMAGES[damage](tables / name)
    assert named(refusal(lambda: load_from(tables, cached=False)), name)


@pytest.mark.parametrize("name", [name for name in KINDS if "/phases/" not in name])
def test_a_missing_table_is_named_in_one_line(tables: Path, name: str) -> None:
    (tables / name).unlink()
    with pytest.raises(RulebookError, match=f"^{name}: "):
        read_files(tables).one(name)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("constraints/sglang/flags/catalogue.json", "cut"),
        ("constraints/sglang/flags/variables.json", "a folder"),
        ("constraints/sglang/releases.yaml", "cut at a line"),
    ],
)
def test_a_damaged_checkout_ends_with_one_line_and_no_verdict(tables: Path, name: str, damage: str) -> None:
    shutil.copytree(Path(recommender.__file__).parent, tables / "recommender", ignore=shutil.ignore_patterns("_data"))
    DAMAGES[damage](tables / name)
    words = [sys.executable, "-m", "recommender", "check", "--gpu", "b200", "--", "--model-path", "qwen3-8b"]
    env = {**os.environ, "PYTHONPATH": str(tables), "XDG_CACHE_HOME": str(tables / "cache")}
    done = subprocess.run(words, cwd=tables, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"recommender: {name}: ")
    assert len(done.stderr.splitlines()) == 1


# --- the compiled copy --------------------------------------------------------------------------------------------------


def derived(_: Library) -> dict[str, list[int]]:
    return {"worked out": [42], "another": [1, 2]}


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """(a tiny data root, its compiled copy in a cache folder of its own)."""
    (tmp_path / "constraints").mkdir()
    (tmp_path / "constraints" / "a.yaml").write_text("x: 1\n---\ny: off\n")
    (tmp_path / "constraints" / "c.json").write_text(sealed('{"z": [1, 2]}\n'))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    load_from(tmp_path, derived)
    return tmp_path, next((tmp_path / "cache" / "recommender").iterdir())


def reads_as_written(root: Path) -> bool:
    """Whether a load gives every document, and of what was derived nothing that is false."""
    found = load_from(root, derived)
    wanted = {"constraints/a.yaml": [{"x": 1}, {"y": "off"}]}
    assert {name: list(found.documents[name]) for name in wanted} == wanted
    assert found.documents["constraints/c.json"][0]["z"] == [1, 2]
    return all(found.derived.get(name) in (None, value) for name, value in derived(found).items())


def test_a_compiled_copy_that_is_cut_anywhere_is_made_again(small: tuple[Path, Path]) -> None:
    root, compiled = small
    whole = compiled.read_bytes()
    for length in range(len(whole)):
        compiled.write_bytes(whole[:length])
        assert reads_as_written(root)
        assert compiled.read_bytes() == whole


def test_a_compiled_copy_with_a_changed_byte_gives_no_false_word(small: tuple[Path, Path]) -> None:
    root, compiled = small
    whole = compiled.read_bytes()
    for place in range(len(whole)):
        for mask in (1, 255):
            changed = bytearray(whole)
            changed[place] ^= mask
            compiled.write_bytes(changed)
            assert reads_as_written(root), place


def test_a_folder_or_a_locked_file_in_the_place_of_the_copy_is_no_trouble(small: tuple[Path, Path]) -> None:
    root, compiled = small
    compiled.chmod(0)
    assert reads_as_written(root)
    compiled.unlink()
    compiled.mkdir()
    assert reads_as_written(root)
    assert [item for item in compiled.parent.iterdir() if item != compiled] == []


# --- what was recorded for the tests ------------------------------------------------------------------------------------

RECORDED = sorted(path.name for path in DATA.iterdir() if path.name.endswith((".jsonl", ".jsonl.xz", ".jsonl.gz")))
PROBES = sorted(DATA.glob("probes-*.json.xz"))


def told(call: Callable[[], object], name: str) -> bool:
    """Whether a reading is refused, in one line that names the file."""
    try:
        call()
    except RecordError as error:
        said = str(error)
    else:
        return False
    assert said.startswith(f"{name}: ")
    assert len(said.splitlines()) == 1
    return True


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for copies of recorded files."""
    return tmp_path_factory.mktemp("recorded")


def test_every_recorded_file_is_read() -> None:
    assert len(RECORDED) > 20
    assert {Path(name).suffix for name in RECORDED} == {".jsonl", ".xz", ".gz"}
    for name in RECORDED:
        assert len(lines_of(DATA / name)) > 10, name


@QUICK
@given(data=st.data(), name=st.sampled_from(RECORDED), cut=st.booleans(), mask=st.integers(1, 255))
def test_a_recorded_file_that_is_cut_or_changed_anywhere_is_refused(
    copies: Path, data: st.DataObject, name: str, cut: bool, mask: int
) -> None:
    content = bytearray((DATA / name).read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    if cut:
        del content[place:]
    else:
        content[place] ^= mask
    (copies / name).write_bytes(content)
    assert told(lambda: lines_of(copies / name), name) or lines_of(copies / name) == lines_of(DATA / name)


@pytest.mark.parametrize("damage", [*DAMAGES, "missing"])
@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.xz", ".jsonl.gz"])
def test_a_damaged_recorded_file_is_named_in_one_line(tmp_path: Path, suffix: str, damage: str) -> None:
    name = next(name for name in RECORDED if name.endswith(suffix))
    shutil.copy(DATA / name, tmp_path / name)
    if damage == "missing":
        (tmp_path / name).unlink()
    elif damage == "cut at a line" and suffix != ".jsonl":
        pack = lzma.compress if suffix.endswith(".xz") else gzip.compress
        (tmp_path / name).write_bytes(pack(b'{"a": 1}\n{"b": 2'))
    else:
        DAMAGES[damage](tmp_path / name)
    assert told(lambda: lines_of(tmp_path / name), name)


@pytest.mark.parametrize("content", [b"[1]\n", b"3\n", b"null\n", b"{}", b'{"a": 1}\n\n', b"\xff\n"])
def test_packed_lines_that_are_no_objects_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.jsonl.xz").write_bytes(lzma.compress(content))
    assert told(lambda: lines_of(tmp_path / "a.jsonl.xz"), "a.jsonl.xz")


@pytest.mark.parametrize(
    "head",
    [
        {},
        {"format": "other"},
        {"format": "engine-answers-1"},
        {"format": "engine-answers-1", "fields": 3, "launches": 1},
    ],
)
@pytest.mark.parametrize(
    "line", [{}, {"device": "b200", "argv": "x", "ok": True}, {"device": "b200", "argv": 3, "ok": False}]
)
def test_answers_of_another_form_are_refused(tmp_path: Path, head: dict[str, Any], line: dict[str, Any]) -> None:
    path = tmp_path / "a.jsonl.xz"
    path.write_bytes(lzma.compress(f"{json.dumps(head)}\n{json.dumps(line)}\n".encode()))
    assert told(lambda: read(path), path.name)


def test_plain_lines_are_sealed_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n{"b": 2}\n')
    assert told(lambda: lines_of(path), path.name)
    for _ in range(2):
        seal(path)
        assert lines_of(path) == [{"a": 1}, {"b": 2}]
    path.write_text(path.read_text() + '{"c": 3}\n')
    assert told(lambda: lines_of(path), path.name)


@pytest.mark.parametrize("damage", [*DAMAGES, "missing", "changed"])
def test_damaged_outcomes_of_probes_are_named_in_one_line(
    tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = PROBES[-1].name.removeprefix("probes-").removesuffix(".json.xz")
    read_again = outcomes.recorded.__wrapped__
    assert read_again(release)
    monkeypatch.setattr(outcomes, "DATA", tmp_path)
    path = outcomes.recorded_file(release)
    shutil.copy(PROBES[-1], path)
    if damage == "missing":
        path.unlink()
    elif damage == "changed":
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    elif damage == "cut at a line":
        path.write_bytes(lzma.compress(b'{"sglang": "1", "outcomes": {'))
    else:
        DAMAGES[damage](path)
    assert told(lambda: read_again(release), path.name)


def test_a_comparison_with_a_damaged_file_ends_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.xz").write_bytes(b"half")
    words = [sys.executable, "-m", "tests.oracle.compare", "--recorded", str(tmp_path / "a.jsonl.xz")]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "a.jsonl.xz: damaged" in done.stderr
    assert len(done.stderr.splitlines()) == 1
