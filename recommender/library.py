"""Reads every YAML and JSON file of constraints/ and profiles/ as plain values; it must not know what they mean.

A wheel ships one compiled JSON beside the files; a checkout keeps one in the user's cache folder, keyed by the names, sizes
and times of the files. A missing, damaged, foreign or unwritable one costs time only: the files are then read themselves.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from recommender.errors import RulebookError

FORMAT = "recommender-library-3"
COMPILED = "library.json"
FOLDERS = ("constraints", "profiles")

Documents = Mapping[str, list[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """Every document by its path ("constraints/sglang/attention/x.yaml"), and one digest over all of them."""

    root: Path
    digest: str
    documents: Documents
    folders: Mapping[str, tuple[str, ...]]

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
        for entry in entries:
            if entry.is_dir():
                stack.append((Path(entry.path), f"{name}/{entry.name}"))
            elif entry.name.endswith((".yaml", ".json")):
                found.append((f"{name}/{entry.name}", entry.stat()))
    return sorted(found)


def _fingerprint(files: list[tuple[str, os.stat_result]]) -> str:
    text = "\n".join(f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in files)
    return hashlib.sha256(f"{FORMAT}\n{text}".encode()).hexdigest()


def _strict_loader() -> type[Any]:
    import yaml

    base: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class StrictLoader(base):  # type: ignore[misc]
        """Safe YAML without dates, and with every key once."""

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            seen = set()
            for key_node, _ in node.value:
                key = self.construct_object(key_node, deep=True)
                if key in seen:
                    raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", key_node.start_mark)
                seen.add(key)
            mapping: dict[Any, Any] = super().construct_mapping(node, deep)
            return mapping

    StrictLoader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in base.yaml_implicit_resolvers.items()
    }
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


def _read(root: Path, names: list[str]) -> tuple[dict[str, list[Any]], str]:
    documents: dict[str, list[Any]] = {}
    digest = hashlib.sha256()
    for name in names:
        try:
            text = (root / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RulebookError(f"{name}: cannot be read ({error})") from None
        digest.update(f"{name}\0{text}\0".encode())
        if name.endswith(".json"):
            try:
                documents[name] = [json.loads(text)]
            except (ValueError, RecursionError) as error:
                raise RulebookError(f"{name}: not JSON ({error})") from None
        else:
            documents[name] = parse_yaml(text, name)
    return documents, digest.hexdigest()[:12]


def _folders(documents: Documents) -> dict[str, tuple[str, ...]]:
    folders: dict[str, list[str]] = {}
    for name in documents:
        folders.setdefault(name.rsplit("/", 1)[0], []).append(name)
    return {folder: tuple(sorted(names)) for folder, names in folders.items()}


def _library(root: Path, documents: dict[str, list[Any]], digest: str) -> Library:
    return Library(root=root, digest=digest, documents=documents, folders=_folders(documents))


def _load_compiled(path: Path, fingerprint: str) -> tuple[dict[str, list[Any]], str] | None:
    try:
        stored = json.loads(path.read_bytes())
        if stored["format"] != FORMAT or stored["fingerprint"] != fingerprint:
            return None
        documents, digest = stored["documents"], stored["digest"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(documents, dict) or not isinstance(digest, str):
        return None
    return (documents, digest) if all(isinstance(value, list) for value in documents.values()) else None


def compile_library(root: Path, fingerprint: str) -> bytes:
    """The compiled form of all files below a root."""
    documents, digest = _read(root, [name for name, _ in _files(root)])
    return _encode(documents, digest, fingerprint)


def _encode(documents: dict[str, list[Any]], digest: str, fingerprint: str) -> bytes:
    stored = {"format": FORMAT, "fingerprint": fingerprint, "digest": digest, "documents": documents}
    return json.dumps(stored, separators=(",", ":")).encode()


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


def load_from(root: Path, cached: bool = True) -> Library:
    """Load the files below a root, from their compiled form where one fits.

    Raises:
        RulebookError: a file cannot be read or parsed.
    """
    shipped = root / COMPILED
    if shipped.is_file():
        compiled = _load_compiled(shipped, "shipped")
        if compiled is not None:
            return _library(root, *compiled)
    files = _files(root)
    if not files:
        raise RulebookError(f"no constraints/ and profiles/ below {root}")
    fingerprint = _fingerprint(files)
    path = _cache_path(root) if cached else None
    if path is not None:
        compiled = _load_compiled(path, fingerprint)
        if compiled is not None:
            return _library(root, *compiled)
    documents, digest = _read(root, [name for name, _ in files])
    if path is not None:
        _write_atomically(path, _encode(documents, digest, fingerprint))
    return _library(root, documents, digest)


@cache
def load() -> Library:
    """The library of this installation, loaded once a process."""
    return load_from(data_root())
