"""Makes a checkout forget its newest release, so that adding it can be done again as if it were new; it must not run the engine.

    python -m tools.forget 0.5.23          # on a checkout without changes of its own
    git checkout -- . && git clean -fdn    # undoes it (git reset and git clean tell what else is in the way)

What goes: the release in releases.yaml; its flags and variables; the editions and the phases that begin with it, with the
definitions, groups and settings that nothing reads any more; every `until` that names it, so that what ended with it holds
again; every `earlier` that ended with it; its recorded answers. What stays: the facts in profiles/ (they are of models and
devices, and bounded by no release), and the release that a source was read in. Tests that name the release by hand fail.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tools import make_variables
from tools.make_catalogue import collapse, expand, render
from tools.yaml_edit import documents, folded, items_of, plain_of, replaced, root_of, value_of, without

ROOT = Path(__file__).resolve().parent.parent
NOT_RULES = frozenset({"phases", "definitions", "flags"})
WORD = re.compile(r"[A-Za-z_][\w-]*")
SECTIONS = ("internal", "environment", "groups")  # of settings.yaml: names that somebody has to read


class ForgetError(Exception):
    """The checkout cannot forget; the message is one line that says what to do."""


# --- tables -----------------------------------------------------------------------------------------------------------


def younger_catalogue(table: Mapping[str, Any], release: str) -> dict[str, Any]:
    """The flag catalogue as it was before a release was merged into it."""
    return collapse({known: flags for known, flags in expand(table).items() if known != release})


def fields_of(table: Mapping[str, Any]) -> set[str]:
    """The fields of every flag of a catalogue."""
    return {str(entry["field"]) for entry in table["flags"]}


def gone_flags(table: Mapping[str, Any]) -> set[str]:
    """The flags of a catalogue that its newest release no longer takes."""
    here = {name for entry in table["flags"] if not entry.get("until") for name in entry["names"]}
    return {name for entry in table["flags"] for name in entry["names"]} - here


# --- laws -------------------------------------------------------------------------------------------------------------


def older_rule(text: str, release: str) -> str:
    """A rule file without the editions that begin with a release, and open again where one ended with it."""
    parts = documents(text)
    kept = [part for part in parts if not re.search(rf"(?m)^since: *[\"']?{re.escape(release)}[\"']? *$", part)]
    kept = [re.sub(rf"(?m)^until: *[\"']?{re.escape(release)}[\"']? *\n", "", part) for part in kept]
    whole = [part for part in kept if re.search(r"(?m)^id:", part)]
    return "---\n".join(kept) if whole else ""


def unreferring(text: str, gone: set[str]) -> str:
    """A rule file whose editions come after no law that is gone."""
    if not WORD_OF_ORDER.search(text):
        return text

    def told(keys: Sequence[str], node: yaml.Node) -> bool:
        return keys[0] in ("after", "silent_after") and plain_of(node) in gone

    return "---\n".join(without(part, told) if WORD_OF_ORDER.search(part) else part for part in documents(text))


WORD_OF_ORDER = re.compile(r"(?m)^(?:silent_)?after:")


def phases_of(text: str) -> set[tuple[str, str]]:
    """(law, phase) of every edition in a rule file."""
    found = (re.findall(r"(?m)^(id|phase): *[\"']?([\w-]+)", part) for part in documents(text))
    told = [dict(pairs) for pairs in found]
    return {(each["id"], each.get("phase", "")) for each in told if "id" in each}


def older_phases(text: str, release: str, before: set[tuple[str, str]], after: set[tuple[str, str]]) -> str:
    """A file of phases without those that begin with a release or whose laws are all gone, and without laws that left one."""
    lost, held = {phase for _, phase in before - after}, {phase for _, phase in after}

    def entry(keys: Sequence[str], node: yaml.Node) -> bool:
        if value_of(node, "id") is None:
            return plain_of(node) == release and keys[-1:] == ("until",)
        name = plain_of(value_of(node, "id"))
        return plain_of(value_of(node, "since")) == release or (name in lost and name not in held)

    def law(phase: str) -> Callable[[Sequence[str], yaml.Node], bool]:
        return lambda keys, node: keys[-2:-1] in (("sets",), ("checks",)) and (plain_of(node), phase) in before - after

    made = without(text, entry)
    root = root_of(made)
    for number, node in enumerate(items_of(value_of(root, "phases")) if root else ()):
        wanted = law(plain_of(value_of(node, "id")))
        made = without(made, lambda keys, node, n=str(number), w=wanted: keys[1:2] == (n,) and w(keys, node))  # type: ignore[misc]
    return made


READ = frozenset({"when", "require", "sets", "is", "choose", "fix", "silent_when"})


def settled(text: str, defaults: Mapping[str, str], flags: set[str]) -> str:
    """A document in which a setting that nobody can ask for yet stands as its default, without the examples that ask for it."""
    if not defaults or not re.search(rf"\b(?:{'|'.join(map(re.escape, defaults))})\b", text.replace("-", "_")):
        return text

    def asks(keys: Sequence[str], node: yaml.Node) -> bool:
        if keys[:1] != ("examples",) or len(keys) != 2 or not isinstance(node, yaml.MappingNode):
            return False
        words = [word for _, value in node.value for word in re.split(r"[\s=]+", plain_of(value))]
        return not flags.isdisjoint(words)

    made = without(text, asks)
    word = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, defaults))})\b")
    return replaced(made, lambda keys: bool(READ.intersection(keys)), lambda told: word.sub(lambda m: defaults[m[0]], told))


# --- words that nothing reads any more --------------------------------------------------------------------------------


def words_of(texts: Iterable[str]) -> Counter[str]:
    """How often each word stands in texts, without remarks."""
    return Counter(word for text in texts for word in WORD.findall(re.sub(r"(?m)(^|\s)#.*$", "", text)))


def unread(names: Iterable[str], own: Mapping[str, int], before: Counter[str], after: Counter[str]) -> set[str]:
    """The names that were read somewhere, and are now in no text but their own entry (`own`: how often they stand there)."""
    return {name for name in names if before[name] > after[name] and after[name] <= own.get(name, 1)}


def entries_of(text: str, section: str = "") -> set[str]:
    """The names that a document defines, at its top or in a section."""
    root = root_of(text)
    node = value_of(root, section) if root is not None and section else root
    return {str(key.value) for key, _ in node.value} if isinstance(node, yaml.MappingNode) else set()


# --- the checkout -----------------------------------------------------------------------------------------------------


class Checkout:
    """The files of a checkout as they will be; nothing is written before `save`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.engine = root / "constraints" / "sglang"
        self.texts = {path: path.read_text(encoding="utf-8") for path in sorted(self.engine.rglob("*.yaml"))}
        lists = sorted((root / "tests" / "data").glob("*rules*.txt"))
        self.texts |= {path: path.read_text(encoding="utf-8") for path in lists}
        self.known = dict(self.texts)

    def rules(self) -> list[Path]:
        """The files of laws."""
        return [path for path in self.texts if path.parent.parent == self.engine and path.parent.name not in NOT_RULES]

    def folder(self, name: str) -> list[Path]:
        """The files of one folder beside the laws."""
        return [path for path in self.texts if path.parent == self.engine / name]

    def words(self, texts: Mapping[Path, str]) -> Counter[str]:
        """The words of every file of the rulebook."""
        return words_of(text for path, text in texts.items() if path.suffix == ".yaml")

    def save(self) -> list[str]:
        """Write what changed; returns a line for each kind of file."""
        changed: Counter[str] = Counter()
        for path, text in self.texts.items():
            if text == self.known.get(path):
                continue
            where = path.relative_to(self.root).as_posix()
            kind = "laws" if path in self.rules() else where
            if text:
                path.write_text(text, encoding="utf-8")
                changed[f"changed {kind}"] += 1
            else:
                path.unlink()
                changed[f"deleted {kind}"] += 1
        return [f"{what}: {count} files" if count > 1 else what for what, count in sorted(changed.items())]


def forget(book: Checkout, release: str) -> None:
    """Change the texts of a checkout; the release is its newest.

    Raises:
        ForgetError: an `earlier` entry does not say what its owner would have to say.
    """
    releases = book.engine / "releases.yaml"
    book.texts[releases] = without(
        book.texts[releases], lambda _, node: plain_of(value_of(node, "version")) == release
    )
    table_file, variables_file = book.engine / "flags" / "catalogue.json", book.engine / "flags" / "variables.json"
    table = younger_catalogue(json.loads(table_file.read_text(encoding="utf-8")), release)
    book.texts[table_file] = render(table)
    variables = make_variables.younger(json.loads(variables_file.read_text(encoding="utf-8")), release)
    book.texts[variables_file] = make_variables.render(variables)
    renamed, fields, gone = book.engine / "flags" / "renamed.yaml", fields_of(table), gone_flags(table)
    book.texts[renamed] = without(book.texts[renamed], lambda keys, _: keys[0] not in gone)
    idle = book.engine / "flags" / "without_influence.yaml"
    book.texts[idle] = without(book.texts[idle], lambda keys, _: keys[0] not in fields)

    was = json.loads(table_file.read_text(encoding="utf-8"))
    new = [entry for entry in was["flags"] if entry["field"] not in fields]
    defaults = {str(entry["field"]): _literal(entry) for entry in new}
    flags = {str(name) for entry in was["flags"] for name in entry["names"]}
    flags -= {str(name) for entry in table["flags"] for name in entry["names"]}

    places = {pair for path in book.rules() for pair in phases_of(book.texts[path])}
    for path in book.rules():
        older = documents(older_rule(book.texts[path], release))
        shown = [(part, settled(part, defaults, flags)) for part in older if part]
        book.texts[path] = "---\n".join(now for said, now in shown if "examples:" in now or "examples:" not in said)
    left = {pair for path in book.rules() for pair in phases_of(book.texts[path])}
    lost = {law for law, _ in places} - {law for law, _ in left}
    for path in book.rules():
        book.texts[path] = unreferring(book.texts[path], lost)
    for path in book.folder("phases"):
        book.texts[path] = older_phases(book.texts[path], release, places, left)
    for path in [*book.folder("definitions"), book.engine / "settings.yaml"]:
        try:
            book.texts[path] = settled(folded(book.texts[path], release), defaults, flags)
        except ValueError as error:
            raise ForgetError(f"{path.relative_to(book.root)}: {error}") from None
    _drop_unread(book)
    for path in [path for path in book.texts if path.suffix == ".txt"]:
        lines = book.texts[path].splitlines(keepends=True)
        book.texts[path] = "".join(line for line in lines if line.strip() not in lost)


def _literal(entry: Mapping[str, Any]) -> str:
    """What an expression says for a flag's default."""
    return repr(entry.get("default", False if entry["kind"] in ("store_true", "boolean") else None))


def _drop_unread(book: Checkout) -> None:
    settings = book.engine / "settings.yaml"
    before = book.words(book.known)
    while True:
        after = book.words(book.texts)
        dropped = False
        for path in [*book.folder("definitions"), settings]:
            sections = SECTIONS if path == settings else ("",)
            for section in sections:
                names = unread(entries_of(book.texts[path], section), {}, before, after)
                if names:
                    depth = 2 if section else 1
                    book.texts[path] = without(
                        book.texts[path],
                        lambda keys, _, n=names, d=depth, s=section: (  # type: ignore[misc]
                            len(keys) == d and keys[-1] in n and (not s or keys[0] == s)
                        ),
                    )
                    dropped = True
        if not dropped:
            return


def recorded(root: Path, release: str) -> list[Path]:
    """What was recorded of a release."""
    return sorted((root / "tests" / "data").glob(f"*-{release}.*"))


def main(argv: Sequence[str]) -> int:
    """Forget a release."""
    if len(argv) != 1 or argv[0].startswith("-"):
        print("\n".join((__doc__ or "").splitlines()[2:4]).replace("    python", "usage: python"), file=sys.stderr)
        return 0 if argv[:1] in (["-h"], ["--help"]) else 2
    try:
        for line in run(ROOT, argv[0]):
            print(line)
    except (ForgetError, ValueError, OSError) as error:
        print(f"forget: {error}", file=sys.stderr)
        return 2
    return 0


def run(root: Path, release: str) -> list[str]:
    """Forget a release in a checkout that has no changes of its own; returns what was done.

    Raises:
        ForgetError: it is not the newest release, or the checkout has changes.
    """
    git = subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True, text=True, check=False)
    if git.returncode or git.stdout.strip():
        told = git.stderr.strip() or f"{len(git.stdout.splitlines())} files have changes that undoing this would lose"
        raise ForgetError(f"{told}; commit or stash them first")
    book = Checkout(root)
    listed = yaml.safe_load(book.texts[book.engine / "releases.yaml"])["releases"]
    newest = max((str(each["version"]) for each in listed), key=lambda text: [*map(int, text.split("."))])
    if release != newest:
        raise ForgetError(f"only the newest release can be forgotten, and that is {newest}, not {release}")
    forget(book, release)
    files = recorded(root, release)
    lines = book.save()
    for path in files:
        path.unlink()
    lines += [f"deleted {path.relative_to(root)}" for path in files]
    table = [sys.executable, "-m", "tools.law_table"]
    env = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(table, cwd=root, capture_output=True, text=True, check=False, env=env)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no word of why"])[-1]
        raise ForgetError(f"the rulebook that is left does not load: {last} (undo: git checkout -- .)")
    return [*lines, "undo: git checkout -- . (and `git clean -n` lists files that were made since)"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
