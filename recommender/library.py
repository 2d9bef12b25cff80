"""Reads every YAML and JSON file of constraints/ and profiles/ as plain values; it must not know what they mean.

A wheel ships one compiled file beside them; a checkout keeps one in the user's cache folder, keyed by the names, sizes and
times of the files. It is JSON throughout: a first line that says where each document lies, then the documents, each parsed
when it is first read. A missing, damaged, foreign or unwritable one costs time only: the files are then read themselves.

Of the files themselves a half is refused: a text ends with a whole line; a table (a file that holds many entries) with the line
`...` of YAML; a JSON file of constraints/ is generated and begins with the checksum of what follows (`sealed`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from recommender.errors import RulebookError

FORMAT = "recommender-library-12"
COMPILED = "library.json"
FOLDERS = ("constraints", "profiles")
SHIPPED = "shipped"
SEAL = re.compile(r'\{"check": "([0-9a-f]{8})", ')
TABLES = re.compile(r"constraints/[^/]+/(?:(?:flags|phases|definitions)/)?[^/]+\.yaml|profiles/[^/]+\.yaml")


class Documents(Mapping[str, list[Any]]):
    """Parsed documents by path; those of a compiled file are parsed when they are first read."""

    def __init__(
        self, parsed: dict[str, list[Any]], blob: bytes = b"", places: Mapping[str, list[int]] | None = None
    ) -> None:
        self._parsed = parsed
        self._blob = blob
        self._places = places or {}

    def __getitem__(self, path: str) -> list[Any]:
        found = self._parsed.get(path)
        if found is None:
            start, stop = self._places[path]
            found = self._parsed[path] = json.loads(self._blob[start:stop])
        return found

    def __contains__(self, path: object) -> bool:
        return path in self._parsed or path in self._places

    def __iter__(self) -> Iterator[str]:
        return iter({**self._parsed, **self._places})

    def __len__(self) -> int:
        return len({**self._parsed, **self._places})


class Stored(Mapping[str, list[Any]]):
    """Derived values of a compiled file, each read and parsed when it is asked for. What is damaged is not there."""

    def __init__(self, path: Path, start: int, places: Mapping[str, list[int]]) -> None:
        self._path = path
        self._start = start
        self._places = places
        self.parsed: dict[str, list[Any]] = {}

    def __getitem__(self, name: str) -> list[Any]:
        found = self.parsed.get(name)
        if found is None:
            found = self.parsed[name] = self._read(name)
        return found

    def _read(self, name: str) -> list[Any]:
        start, stop, check = self._places[name]
        try:
            with open(self._path, "rb") as file:
                file.seek(self._start + start)
                text = file.read(stop - start)
        except OSError:
            raise KeyError(name) from None
        if zlib.crc32(text) != check:
            raise KeyError(name)
        parsed: list[Any] = json.loads(text)
        return parsed

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Library:
    """Every document by its path ("constraints/sglang/attention/x.yaml"), and one digest over all of them.

    `derived` are values that a reader worked out from the documents and stored beside them, by name.
    """

    root: Path
    digest: str
    documents: Documents
    derived: Mapping[str, list[Any]]

    @cached_property
    def folders(self) -> Mapping[str, tuple[str, ...]]:
        """The paths of each folder's files, in file-name order."""
        return _folders(self.documents)

    def folder(self, path: str) -> Iterator[tuple[str, list[Any]]]:
        """The documents of one folder, (file stem, documents), in file-name order."""
        for name in self.folders.get(path, ()):
            yield name.rsplit("/", 1)[-1].rsplit(".", 1)[0], self.documents[name]

    def one(self, path: str) -> Any:
        """The single document of a file.

        Raises:
            RulebookError: the file is missing or holds several documents.
        """
        documents = self.documents.get(path)
        if documents is None or len(documents) != 1:
            raise RulebookError(f"{path}: expected a file with one document")
        return documents[0]


def data_root() -> Path:
    """The folder that holds constraints/ and profiles/: inside an installed wheel, else beside the package."""
    package = Path(__file__).resolve().parent
    shipped = package / "_data"
    return shipped if shipped.is_dir() else package.parent


def _files(root: Path) -> list[tuple[str, os.stat_result]]:
    found: list[tuple[str, os.stat_result]] = []
    stack = [(root / folder, folder) for folder in FOLDERS]
    while stack:
        path, name = stack.pop()
        try:
            entries = list(os.scandir(path))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise RulebookError(f"{name}: cannot be read ({error.strerror})") from None
        for entry in entries:
            here = f"{name}/{entry.name}"
            is_file = entry.name.endswith((".yaml", ".json"))
            if entry.is_dir():
                if is_file:
                    raise RulebookError(f"{here}: a folder, where a file is expected")
                stack.append((Path(entry.path), here))
            elif is_file:
                try:
                    found.append((here, entry.stat()))
                except OSError as error:
                    raise RulebookError(f"{here}: cannot be read ({error.strerror})") from None
    return sorted(found)


def _fingerprint(files: list[tuple[str, os.stat_result]]) -> str:
    code = [
        (path.name, path.stat()) for path in sorted(Path(__file__).parent.glob("*.py"))
    ]  # what was derived, and how
    text = "\n".join(f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in [*files, *code])
    return hashlib.sha256(f"{FORMAT}\n{text}".encode()).hexdigest()


def _strict_loader() -> type[Any]:
    import yaml

    base: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class StrictLoader(base):  # type: ignore[misc]
        """Safe YAML without dates, where only true and false are booleans ("off" is a word), and with every key once."""

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            seen = set()
            for key_node, _ in node.value:
                key = self.construct_object(key_node, deep=True)
                if key in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"key {key!r} stands twice", key_node.start_mark
                    )
                seen.add(key)
            mapping: dict[Any, Any] = super().construct_mapping(node, deep)
            return mapping

    dropped = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool")
    StrictLoader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in dropped]
        for first, resolvers in base.yaml_implicit_resolvers.items()
    }
    StrictLoader.add_implicit_resolver(
        "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|false|False)$"), list("tTfF")
    )
    return StrictLoader


def parse_yaml(text: str, name: str) -> list[Any]:
    """The documents of a YAML text.

    Raises:
        RulebookError: it is not YAML; the message names file, line and column.
    """
    import yaml

    try:
        return [document for document in yaml.load_all(text, Loader=_strict_loader()) if document is not None]
    except (yaml.YAMLError, RecursionError, ValueError, TypeError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise RulebookError(f"{name}{place}: {getattr(error, 'problem', None) or error}") from None


def sealed(text: str) -> str:
    """A JSON object that begins with the checksum of what follows, as generated files do.

    >>> sealed('{"a": 1}')
    '{"check": "f2d50346", "a": 1}'
    """
    body = text.removeprefix("{")
    return f'{{"check": "{zlib.crc32(body.encode()):08x}", {body}'


def unsealed(text: str, name: str) -> str:
    """The text of a generated file, when what follows its checksum is as it was written.

    Raises:
        RulebookError: it is not, or there is no checksum; the message names the file.
    """
    seal = SEAL.match(text)
    if seal is None or zlib.crc32(text[seal.end() :].encode()) != int(seal[1], 16):
        raise RulebookError(f"{name}: damaged, or changed by hand; it is written by a program")
    return text


def check_whole(text: str, name: str) -> None:
    """Refuse the text of a file that is cut, or that is generated and no longer as it was written.

    Raises:
        RulebookError: the message names the file.
    """
    if not text.strip():
        raise RulebookError(f"{name}: empty")
    if not text.endswith("\n"):
        raise RulebookError(f"{name}: cut short; its last line has no end")
    if TABLES.fullmatch(name) and not text.endswith("\n...\n"):
        raise RulebookError(f"{name}: cut short; a table ends with the line ...")
    if name.endswith(".json") and name.startswith(f"{FOLDERS[0]}/"):
        unsealed(text, name)


def _read(root: Path, names: list[str]) -> tuple[dict[str, list[Any]], str]:
    documents: dict[str, list[Any]] = {}
    digest = hashlib.sha256()
    for name in names:
        try:
            text = (root / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RulebookError(f"{name}: cannot be read ({error})") from None
        check_whole(text, name)
        digest.update(f"{name}\0{text}\0".encode())
        if name.endswith(".json"):
            try:
                documents[name] = [json.loads(text)]
            except (ValueError, RecursionError) as error:
                raise RulebookError(f"{name}: not JSON ({error})") from None
        else:
            documents[name] = parse_yaml(text, name)
    return documents, digest.hexdigest()[:12]


def _folders(documents: Iterable[str]) -> dict[str, tuple[str, ...]]:
    folders: dict[str, list[str]] = {}
    for name in documents:
        folders.setdefault(name.rsplit("/", 1)[0], []).append(name)
    return {folder: tuple(sorted(names)) for folder, names in folders.items()}


def _load_compiled(path: Path, fingerprint: str) -> Library | None:
    try:
        with open(path, "rb") as file:
            first = file.readline()
            check, _, head = first.partition(b" ")
            if int(check, 16) != zlib.crc32(head):
                return None
            stored = json.loads(head)
            if stored["format"] != FORMAT or stored["fingerprint"] != fingerprint:
                return None
            blob = file.read(stored["read"])
            size = os.fstat(file.fileno()).st_size
        places, derived, digest = stored["documents"], stored["derived"], stored["digest"]
        if not (isinstance(places, dict) and isinstance(derived, dict) and isinstance(digest, str)):
            return None
        if len(first) + stored["size"] != size or zlib.crc32(blob) != stored["check"]:
            return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return Library(
        root=path.parent,
        digest=digest,
        documents=Documents({}, blob, places),
        derived=Stored(path, len(first), derived),
    )


def encode(library: Library, derived: Mapping[str, Any], fingerprint: str) -> bytes:
    """The compiled form of a library, with values worked out from it by name.

    The documents stand first and are read at once; each derived value has its own place and checksum behind them, so that
    what another release needs is never read.
    """
    blob = bytearray()

    def placed(values: Mapping[str, Any]) -> dict[str, list[int]]:
        places = {}
        for name in values:
            text = json.dumps(values[name], separators=(",", ":")).encode()
            places[name] = [len(blob), len(blob) + len(text)]
            blob.extend(text)
        return places

    documents = placed(library.documents)
    read = len(blob)
    stored = placed({**dict(library.derived), **derived})
    head = {
        "format": FORMAT,
        "fingerprint": fingerprint,
        "digest": library.digest,
        "documents": documents,
        "derived": {name: [start, stop, zlib.crc32(blob[start:stop])] for name, (start, stop) in stored.items()},
        "read": read,
        "size": len(blob),
        "check": zlib.crc32(blob[:read]),
    }
    first = json.dumps(head, separators=(",", ":")).encode() + b"\n"
    return b"%08x " % zlib.crc32(first) + first + bytes(blob)


def _write_atomically(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
    except OSError:
        return


def _cache_path(root: Path) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "recommender" / f"{hashlib.sha256(str(root).encode()).hexdigest()[:16]}.json"


def read_files(root: Path) -> Library:
    """The library of the files themselves, whatever was compiled.

    Raises:
        RulebookError: there are none, or one cannot be read or parsed.
    """
    names = [name for name, _ in _files(root)]
    if not names:
        raise RulebookError(f"no constraints/ and profiles/ below {root}")
    documents, digest = _read(root, names)
    return Library(root=root, digest=digest, documents=Documents(documents), derived=Documents({}))


def load_from(root: Path, derive: Callable[[Library], Mapping[str, Any]] | None = None, cached: bool = True) -> Library:
    """Load the files below a root, from their compiled form where one fits; else read them, `derive` and compile them anew.

    Raises:
        RulebookError: a file cannot be read or parsed.
    """
    shipped = _load_compiled(root / COMPILED, SHIPPED)
    if shipped is not None:
        return shipped
    files = _files(root)
    fingerprint = _fingerprint(files)
    if cached:
        compiled = _load_compiled(_cache_path(root), fingerprint)
        if compiled is not None:
            return Library(root=root, digest=compiled.digest, documents=compiled.documents, derived=compiled.derived)
    library = read_files(root)
    derived = dict(derive(library)) if derive is not None else {}
    if cached and derived:
        _write_atomically(_cache_path(root), encode(library, derived, fingerprint))
    return Library(
        root=root,
        digest=library.digest,
        documents=library.documents,
        derived=Documents(dict(derived)),
    )


@cache
def load() -> Library:
    """The library of this installation, loaded once a process, with what rulebook.py derives from it."""
    from recommender.rulebook import derive

    return load_from(data_root(), derive)
