"""Turns names, paths and config.json files into facts of devices and checkpoints; it must not download, judge, or know a name.

Every word about a device, an architecture, a checkpoint or a key of config.json stands in profiles/. A fact is worked out when
it is first read, and kept: from what the checkpoint's profile states, else what its architecture's profile states, else from the
keys of config.json, else from an expression over other facts, else it is UNKNOWN.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

from recommender import library
from recommender.errors import RulebookError, UsageError
from recommender.expr import Expression, compile_expression
from recommender.terms import UNKNOWN, Unknown, Value

FACTS_FILE = "profiles/facts.yaml"
LARGEST_FILE = 16 * 2**20
LARGEST_INTEGER = 2**53
DETECTION_SECONDS = 5.0
CHECKPOINT_SCOPES = ("model", "draft")

_MISSING: Final = object()
_TYPES: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
    "str": (str,),
    "tuple": (tuple,),
    "dict": (dict,),
    "any": (bool, int, float, str, tuple, dict),
}
_WORDS = {bool: "a boolean", int: "an integer", float: "a number", str: "a text", tuple: "a list", dict: "an object"}
_SPEC_KEYS = {"type", "unit", "meaning", "keys", "absent", "derive", "home", "otherwise", "objects"}


# --- what a fact is ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FactSpec:
    """One line of facts.yaml. `keys` are (file, path) pairs, file being "", "text" or "hf_quant_config"."""

    name: str
    type: str
    meaning: str
    unit: str = ""
    keys: tuple[tuple[str, tuple[str, ...]], ...] = ()
    objects: tuple[tuple[str, ...], ...] = ()
    absent: Value = _MISSING
    otherwise: Value = _MISSING
    derive: str = ""
    home: str = ""


def _key(text: str) -> tuple[str, tuple[str, ...]]:
    file, colon, path = text.rpartition(":")
    if colon:
        return file, tuple(path.split("."))
    first, dot, rest = text.partition(".")
    return ("text", tuple(rest.split("."))) if first == "text" and dot else ("", tuple(text.split(".")))


def plain(value: Any) -> Value:
    """A JSON value as a fact's value: lists become tuples, all the way down."""
    if isinstance(value, list):
        return tuple(plain(item) for item in value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def _spec(name: str, entry: Any) -> FactSpec:
    if not isinstance(entry, dict):
        raise RulebookError(f"{FACTS_FILE}: {name}: not an object")
    _no_strangers(entry, _SPEC_KEYS, f"{FACTS_FILE}: {name}")
    kind = entry.get("type", "any")
    if kind not in _TYPES:
        raise RulebookError(f"{FACTS_FILE}: {name}: unknown type {kind!r}{_nearest(str(kind), _TYPES)}")
    return FactSpec(
        name=name,
        type=kind,
        meaning=str(entry.get("meaning", "")),
        unit=str(entry.get("unit", "")),
        keys=tuple(_key(key) for key in entry.get("keys", ())),
        objects=tuple(tuple(path.split(".")) for path in entry.get("objects", ())),
        absent=plain(entry.get("absent", _MISSING)),
        otherwise=plain(entry.get("otherwise", _MISSING)),
        derive=str(entry.get("derive", "")),
        home=str(entry.get("home", "")),
    )


class FactBook:
    """The list of facts: names, where each is read, and the compiled expressions. It is the vocabulary of `derive`."""

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self._entries = entries
        self._specs: dict[str, FactSpec] = {}
        self._expressions: dict[str, Expression] = {}

    def names(self) -> tuple[str, ...]:
        """Every fact an expression may name, those of a draft checkpoint included."""
        model, draft = (f"{scope}." for scope in CHECKPOINT_SCOPES)
        drafts = (draft + name.removeprefix(model) for name in self._entries if name.startswith(model))
        return (*self._entries, *drafts)

    def is_fact(self, name: str) -> bool:
        """Whether facts.yaml lists the name."""
        return self._listed(name) in self._entries

    def is_setting(self, name: str) -> bool:
        """A fact is never derived from a setting."""
        return False

    def group(self, name: str) -> tuple[Value, ...] | None:
        """A fact is never derived from a group of settings' values."""
        return None

    def definition(self, name: str) -> Expression | None:
        """A fact is never derived from a definition."""
        return None

    @staticmethod
    def _listed(name: str) -> str:
        model, draft = CHECKPOINT_SCOPES
        scope, dot, rest = name.partition(".")
        return f"{model}.{rest}" if dot and scope == draft else name

    def spec(self, name: str) -> FactSpec:
        """What facts.yaml says of a fact (`draft.x` is listed as `model.x`).

        Raises:
            RulebookError: no such fact; names the nearest one.
        """
        listed = self._listed(name)
        spec = self._specs.get(listed)
        if spec is None:
            if listed not in self._entries:
                raise RulebookError(f"unknown fact {name!r}{_nearest(name, self.names())}")
            spec = self._specs[listed] = _spec(listed, self._entries[listed])
        return spec

    def expression(self, text: str) -> Expression:
        """A `derive` expression, compiled once."""
        compiled = self._expressions.get(text)
        if compiled is None:
            compiled = self._expressions[text] = compile_expression(text, self)
        return compiled


@cache
def book() -> FactBook:
    """The facts of this installation."""
    return FactBook(_object(library.load().one(FACTS_FILE), FACTS_FILE))


# --- facts ------------------------------------------------------------------------------------------------------------------


class Facts(dict[str, Value]):
    """Facts by name, each worked out when first read. Read only: nothing is ever assigned from outside."""

    __slots__ = ("_work",)

    def __init__(self, work: Callable[[str], Value]) -> None:
        super().__init__()
        self._work = work

    def __missing__(self, name: str) -> Value:
        value = self._work(name)
        super().__setitem__(name, value)
        return value

    def __setitem__(self, name: str, value: Value) -> None:
        raise TypeError("facts are given, not assigned")

    def get(self, name: str, default: Value = None) -> Value:
        """The value of a fact; `default` plays no part, as every listed fact has a value."""
        return self[name]

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


@dataclass(frozen=True, slots=True)
class _FactScope:
    """What a `derive` expression reads: facts, and no settings."""

    facts: Mapping[str, Value]
    values: Mapping[str, Value]
    asked: tuple[str, ...] = ()


_NO_VALUES: Final[Mapping[str, Value]] = {}


def _evaluate(expression: Expression, facts: Mapping[str, Value]) -> Value:
    return expression.evaluate(_FactScope(facts, _NO_VALUES))


def _stated(value: Value, facts: Mapping[str, Value]) -> Value:
    """A value of a profile: a text that starts with "=" is an expression over facts."""
    if isinstance(value, str) and value.startswith("="):
        return _evaluate(book().expression(value[1:]), facts)
    return plain(value)


# --- devices ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A device. `count` is how many the user named or the machine has, None when nobody said."""

    id: str | None
    name: str
    facts: Facts
    count: int | None = None
    aliases: tuple[str, ...] = ()
    family: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)


def _gpu_facts(stated: Mapping[str, Value], where: str) -> Facts:
    def work(name: str) -> Value:
        spec = book().spec(name)
        scope, _, short = name.partition(".")
        value = stated.get(short, _MISSING) if scope == "gpu" else _MISSING
        if value is not _MISSING:
            return _checked(spec, plain(value), f"{where}: {short}")
        if spec.derive:
            return _evaluate(book().expression(spec.derive), facts)
        return UNKNOWN if spec.absent is _MISSING else spec.absent

    facts = Facts(work)
    return facts


def _gpu(stem: str, document: Mapping[str, Any], count: int | None = None) -> Gpu:
    where = f"profiles/gpus/{stem}.yaml"
    stated = dict(_object(document.get("facts", {}), f"{where}: facts"))
    names = tuple(document.get("names", ()))
    stated |= {"id": document["id"], "name": names[0] if names else document["id"]}
    if count is not None:
        stated["count"] = count
    return Gpu(
        id=document["id"],
        name=stated["name"],
        facts=_gpu_facts(stated, where),
        count=count,
        aliases=names,
        family=str(document.get("family", "")),
        sources=document.get("source", {}),
    )


def _folder(folder: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
    for stem, documents in library.load().folder(f"profiles/{folder}"):
        for document in documents:
            yield stem, _object(document, f"profiles/{folder}/{stem}.yaml")


@cache
def gpu_ids() -> tuple[str, ...]:
    """Every device that has a profile."""
    return tuple(document["id"] for _, document in _folder("gpus"))


@cache
def _gpu_names() -> Mapping[str, str]:
    """Plain spelling -> file stem, for every id and every name of a device."""
    found: dict[str, str] = {}
    for stem, document in _folder("gpus"):
        for name in (document["id"], *document.get("names", ())):
            found.setdefault(_squeeze(name), stem)
    return found


def _squeeze(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


_COUNTED = re.compile(r"^\s*(\d{1,5})\s*[x*×]\s*(.+)$", re.IGNORECASE)


@lru_cache(maxsize=256)
def find_gpu(reference: str) -> Gpu:
    """The device of an id, a vendor's name, or the name nvidia-smi prints; "8xb200" counts too.

    Raises:
        UsageError: no such device; names the nearest ones, or all of a family.
    """
    names = _gpu_names()
    count, wanted = None, reference
    counted = _COUNTED.match(reference)
    if counted and _squeeze(reference) not in names:
        count, wanted = int(counted[1]), counted[2]
        if count < 1:
            raise UsageError(f"device {reference!r}: the count must be at least 1")
    stem = names.get(_squeeze(wanted))
    if stem is not None:
        return _gpu(stem, _document("gpus", stem), count)
    family = [document for _, document in _folder("gpus") if _squeeze(document.get("family", "")) == _squeeze(wanted)]
    if family and _squeeze(wanted):
        members = ", ".join(_with_capability(document) for document in family)
        raise UsageError(f"{wanted!r} is a family of devices, name one: {members}")
    raise UsageError(f"unknown device {wanted!r}{_nearest(_squeeze(wanted), names, dict(names))}; known: {', '.join(gpu_ids())}")


def _with_capability(document: Mapping[str, Any]) -> str:
    facts = document.get("facts", {})
    kind = f"sm{facts['sm']}" if facts.get("sm") else facts.get("gcn_arch") or facts.get("platform")
    return f"{document['id']} ({kind})"


def _document(folder: str, stem: str) -> Mapping[str, Any]:
    return _object(library.load().one(f"profiles/{folder}/{stem}.yaml"), f"profiles/{folder}/{stem}.yaml")


def detect_gpu() -> Gpu | None:
    """The device of this machine, as nvidia-smi or rocminfo name it; None when neither answers."""
    return _detect_nvidia() or _detect_amd()


def _run(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DETECTION_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout if done.returncode == 0 else None


def _known_or(name: str, count: int, stated: Mapping[str, Value]) -> Gpu:
    """The profile of a printed name; without one, a device of the facts that the tool prints."""
    try:
        return replace(_gpu(stem := _gpu_names()[_squeeze(name)], _document("gpus", stem), count), name=name)
    except KeyError:
        facts = {"id": None, "name": name, "count": count, **stated}
        return Gpu(id=None, name=name, facts=_gpu_facts(facts, name), count=count)


def _detect_nvidia() -> Gpu | None:
    printed = _run("nvidia-smi", "--query-gpu=name,memory.total,compute_cap", "--format=csv,noheader")
    rows = [[cell.strip() for cell in line.split(",")] for line in (printed or "").splitlines() if line.strip()]
    if not rows or len(rows[0]) != 3:
        return None
    name, memory, capability = rows[0]
    count = sum(row[0] == name for row in rows)
    stated: dict[str, Value] = {"platform": "cuda", "vendor": "nvidia"}
    size = re.match(r"(\d+)", memory)
    if size:
        stated["memory_mib"] = int(size[1])
    level = re.fullmatch(r"(\d+)\.(\d)", capability)
    if level:
        stated |= {"sm": int(level[1]) * 10 + int(level[2]), "capability_major": int(level[1]), "capability_minor": int(level[2])}
    return _known_or(name, count, stated)


def _detect_amd() -> Gpu | None:
    printed = _run("rocminfo") or ""
    agents = [agent for agent in re.split(r"^Agent \d+", printed, flags=re.MULTILINE) if re.search(r"^\s*Name:\s+gfx", agent, re.MULTILINE)]
    if not agents:
        return None
    chip = re.search(r"^\s*Name:\s+(gfx\w+)", agents[0], re.MULTILINE)
    marketing = re.search(r"^\s*Marketing Name:\s+(\S.*?)\s*$", agents[0], re.MULTILINE)
    gcn = chip[1] if chip else ""
    name = marketing[1] if marketing else gcn
    stated: dict[str, Value] = {"platform": "hip", "vendor": "amd", "gcn_arch": gcn, "sm": None}
    units = re.search(r"^\s*Compute Unit:\s+(\d+)", agents[0], re.MULTILINE)
    if units:
        stated["sms"] = int(units[1])
    pools = [int(size) // 1024 for size in re.findall(r"Segment:\s+GLOBAL.*?Size:\s+(\d+)", agents[0], re.DOTALL)]
    if pools:
        stated["memory_mib"] = max(pools)
    return _known_or(name, len(agents), stated)


# --- checkpoints ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A checkpoint: `id` is None unless it has a profile, `name` is what to call it, `origin` profile, file or cache."""

    id: str | None
    name: str
    origin: str
    facts: Facts
    config: Mapping[str, Any]
    hf_quant_config: Mapping[str, Any]
    hf: tuple[str, ...] = ()
    drafts: tuple[Mapping[str, Any], ...] = ()
    path: Path | None = None
    architecture: str = ""
    architecture_known: bool = False
    stated: Mapping[str, Value] = field(default_factory=dict)


def _merged(defaults: Mapping[str, Any], config: Mapping[str, Any]) -> Mapping[str, Any]:
    """config.json over the defaults of its configuration class, sub-configs alike; a key that is there, even null, stays."""
    if not defaults:
        return config
    merged = dict(defaults)
    for key, value in config.items():
        below = defaults.get(key)
        merged[key] = _merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def _step(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return _MISSING
        value = value[key]
    return value


def _checked(spec: FactSpec, value: Value, where: str) -> Value:
    """The value, if it has the fact's type.

    Raises:
        UsageError: it has not; names file and key.
    """
    if value is None or value is UNKNOWN:
        return value
    allowed = _TYPES[spec.type]
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
        if spec.type == "int" and isinstance(value, float) and value.is_integer():
            return int(value)
        found = next((word for kind, word in _WORDS.items() if isinstance(value, kind)), type(value).__name__)
        raise UsageError(f"{where}: expected {_WORDS[allowed[0]]}, found {found} ({_short(value)})")
    if isinstance(value, (int, float)) and not (math.isfinite(value) and abs(value) <= LARGEST_INTEGER):
        raise UsageError(f"{where}: {_short(value)} is out of range")
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    """Where the facts of one checkpoint come from."""

    where: str
    quant_where: str
    config: Mapping[str, Any]
    quant: Mapping[str, Any]
    stated: tuple[Mapping[str, Value], ...]
    architecture_known: bool

    def work(self, name: str, facts: Facts) -> Value:
        spec = book().spec(name)
        short = name.partition(".")[2]
        for source in self.stated:
            if short in source:
                return _checked(spec, _stated(source[short], facts), f"{self.where}: {short}")
        if spec.objects:
            return next((".".join(path) for path in spec.objects if isinstance(_step(self.config, path), dict)), None)
        if spec.keys:
            found = self._read(spec, facts)
            if found is not _MISSING:
                return found
        elif spec.derive:
            return _evaluate(book().expression(spec.derive), facts)
        if spec.home and self.architecture_known and spec.otherwise is not _MISSING:
            return spec.otherwise
        return UNKNOWN if spec.absent is _MISSING else spec.absent

    def _read(self, spec: FactSpec, facts: Facts) -> Value:
        answer: Value = _MISSING
        for file, path in spec.keys:
            value, shown = self._at(file, path, facts)
            if value is _MISSING:
                continue
            if value is not None:
                return _checked(spec, plain(value), f"{self.quant_where if file not in ('', 'text') else self.where}: {shown}")
            answer = None
        return answer

    def _at(self, file: str, path: tuple[str, ...], facts: Facts) -> tuple[Any, str]:
        if file == "text":
            subconfig = facts[SUBCONFIG]
            if subconfig is not None and subconfig is not UNKNOWN:
                path = (*subconfig.split("."), *path)
            return _step(self.config, path), ".".join(path)
        return _step(self.quant if file else self.config, path), ".".join(path)


SUBCONFIG = "model.subconfig"


def _checkpoint(
    *,
    name: str,
    origin: str,
    config: Mapping[str, Any],
    quant: Mapping[str, Any],
    where: str,
    stated: Mapping[str, Value],
    profile: Mapping[str, Any] = _NO_VALUES,
    path: Path | None = None,
) -> Model:
    names = config.get("architectures")
    first = names[0] if isinstance(names, (list, tuple)) and names else ""
    architecture = _single("architectures", first)
    kind = _single("config_classes", config.get("model_type")) or {}
    defaults = _merged(_class_defaults(kind), (architecture or {}).get("config_defaults", {}))
    source = _Checkpoint(
        where=where,
        quant_where=where if origin == "profile" else where.replace("config.json", "hf_quant_config.json"),
        config=_merged(defaults, config),
        quant=quant,
        stated=(stated, (architecture or {}).get("facts", {}), *_class_facts(kind)),
        architecture_known=architecture is not None,
    )
    facts = Facts(lambda fact: source.work(fact, facts))
    return Model(
        id=profile.get("id"),
        name=name,
        origin=origin,
        facts=facts,
        config=config,
        hf_quant_config=quant,
        hf=tuple(profile.get("hf", ())),
        drafts=tuple(profile.get("drafts", ())),
        path=path,
        architecture=first if isinstance(first, str) else "",
        architecture_known=architecture is not None,
        stated=stated,
    )


def _single(folder: str, name: Any) -> Mapping[str, Any] | None:
    """The document of an architecture or a configuration class, None when it has no file."""
    documents = library.load().documents.get(f"profiles/{folder}/{name}.yaml")
    return documents[0] if documents and isinstance(documents[0], dict) else None


def _class_facts(kind: Mapping[str, Any]) -> Iterable[Mapping[str, Value]]:
    """What a configuration class, or the class of one of its parts, works out from its keys."""
    yield kind.get("facts", {})
    for name in kind.get("parts", {}).values():
        yield (_single("config_classes", name) or {}).get("facts", {})


def _class_defaults(kind: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a configuration class takes for missing keys; a sub-config has a class of its own."""
    defaults = dict(kind.get("defaults", {}))
    for key, name in kind.get("parts", {}).items():
        part = {"model_type": name, **(_single("config_classes", name) or {}).get("defaults", {})}
        defaults[key] = _merged(part, defaults.get(key, {}))
    return defaults


def _from_profile(folder: str, stem: str) -> Model:
    document = _document(folder, stem)
    where = f"profiles/{folder}/{stem}.yaml"
    return _checkpoint(
        name=document["id"],
        origin="profile",
        config=_object(document.get("config", {}), f"{where}: config"),
        quant=_object(document.get("hf_quant_config", {}), f"{where}: hf_quant_config"),
        where=where,
        stated={**_object(document.get("facts", {}), f"{where}: facts"), "id": document["id"]},
        profile=document,
    )


@cache
def _model_names() -> Mapping[str, tuple[str, str]]:
    """Case-folded id or Hugging Face id -> (folder, file stem), models first."""
    found: dict[str, tuple[str, str]] = {}
    for folder in ("models", "drafts"):
        for stem, document in _folder(folder):
            for name in (document["id"], *document.get("hf", ())):
                found.setdefault(name.casefold(), (folder, stem))
    return found


def find_model(reference: str, relative_to: Path | None = None) -> Model:
    """The checkpoint of a path to a config.json or its folder, a profile id, or a Hugging Face id with a profile or in the cache.

    Raises:
        UsageError: nothing of that name, or its config.json cannot be used; one line that names file and key.
    """
    return _find_model(reference, str(relative_to or Path.cwd()), os.environ.get("HF_HUB_CACHE"), *_cache_variables())


def _cache_variables() -> tuple[str | None, ...]:
    return tuple(os.environ.get(name) for name in ("HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"))


@lru_cache(maxsize=4096)
def _find_model(reference: str, base: str, *variables: str | None) -> Model:
    if not reference.strip() or "\0" in reference:
        raise UsageError(f"{reference!r} is not the name of a model")
    path = Path(base, os.path.expanduser(reference))
    if _exists(path):
        return read_model(path, name=reference)
    known = _model_names().get(reference.casefold().rstrip("/"))
    if known is not None:
        return _from_profile(*known)
    snapshot = _cached_snapshot(reference, variables)
    if snapshot is not None:
        return read_model(snapshot, name=reference, origin="cache")
    raise UsageError(
        f"unknown model {reference!r}{_nearest(reference.casefold(), _model_names())}: no profile, no file below {base}, "
        "not in the Hugging Face cache"
    )


def _exists(path: Path) -> bool:
    try:
        return path.is_file() or (path / "config.json").exists()
    except (OSError, ValueError):
        return False


def read_model(path: Path, name: str | None = None, origin: str = "file") -> Model:
    """The checkpoint of a config.json or of the folder that holds one, with the hf_quant_config.json beside it.

    Raises:
        UsageError: a file cannot be read, is no JSON object, or a key has a wrong type.
    """
    try:
        file = path / "config.json" if path.is_dir() else path
        beside = file.with_name("hf_quant_config.json")
        quant = read_object(beside) if beside.exists() else {}
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror or error})") from None
    model = _checkpoint(
        name=name or str(path),
        origin=origin,
        config=read_object(file),
        quant=quant,
        where=str(file),
        stated={"id": None, **_weight(file.parent)},
        path=file,
    )
    check_config(model)
    return model


def check_config(model: Model) -> None:
    """Read every fact that comes from a key, so that a wrong type is found at once.

    Raises:
        UsageError: a key has a wrong type.
    """
    for name in book().names():
        if name.startswith("model.") and book().spec(name).keys:
            model.facts[name]


def _weight(folder: Path) -> dict[str, Value]:
    """The size of the weights where the folder says it: the index of sharded safetensors."""
    index = folder / "model.safetensors.index.json"
    try:
        if not index.is_file():
            return {}
        total = _step(read_object(index), ("metadata", "total_size"))
    except (OSError, UsageError):
        return {}
    return {"weight_gib": total / 2**30} if isinstance(total, (int, float)) and 0 < total < 2**53 else {}


def read_object(file: Path) -> Mapping[str, Any]:
    """A JSON file that holds one object.

    Raises:
        UsageError: it cannot be read, is too large, or holds no JSON object; one line that names the file.
    """
    try:
        status = os.stat(file)
        if not stat.S_ISREG(status.st_mode):
            raise UsageError(f"{file}: not a file")
        if status.st_size > LARGEST_FILE:
            raise UsageError(f"{file}: too large for a configuration ({status.st_size // 2**20} MiB)")
        with open(file, "rb") as stream:
            content = stream.read(LARGEST_FILE + 1)
    except OSError as error:
        raise UsageError(f"{file}: cannot be read ({error.strerror or error})") from None
    try:
        value = json.loads(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise UsageError(f"{file}: not UTF-8 text") from None
    except RecursionError:
        raise UsageError(f"{file}: not usable JSON (nested too deeply)") from None
    except ValueError as error:
        raise UsageError(f"{file}: not usable JSON ({error})") from None
    if not isinstance(value, dict):
        found = next((word for kind, word in _WORDS.items() if isinstance(plain(value), kind)), "null")
        raise UsageError(f"{file}: expected a JSON object, found {found}")
    return value


def _cached_snapshot(reference: str, variables: tuple[str | None, ...]) -> Path | None:
    """The folder of a Hugging Face id in the local cache: the revision of refs/main, else the newest that has a config.json."""
    if not re.fullmatch(r"[\w.-]{1,96}/[\w.-]{1,96}", reference) or ".." in reference:
        return None
    hub_cache, older_cache, home, xdg = variables
    default = Path(xdg or os.path.expanduser("~/.cache"), "huggingface")
    root = Path(hub_cache or older_cache or Path(home or default, "hub")).expanduser()
    folder = root / f"models--{reference.replace('/', '--')}"
    try:
        revision = (folder / "refs" / "main").read_text(encoding="utf-8")[:64].strip()
        chosen = folder / "snapshots" / revision
        if re.fullmatch(r"\w+", revision) and (chosen / "config.json").is_file():
            return chosen
    except (OSError, UnicodeDecodeError):
        pass
    try:
        snapshots = [path for path in (folder / "snapshots").iterdir() if (path / "config.json").is_file()]
        return max(snapshots, key=lambda path: (path.stat().st_mtime, path.name), default=None)
    except OSError:
        return None


def with_config(model: Model, changes: Mapping[str, Any]) -> Model:
    """The same checkpoint with keys of its config.json replaced, objects key by key, as a user can ask the engine to.

    Raises:
        UsageError: a key has a wrong type.
    """
    changed = _checkpoint(
        name=model.name,
        origin=model.origin,
        config=_merged(model.config, changes),
        quant=model.hf_quant_config,
        where=str(model.path or model.name),
        stated=model.stated,
        profile={"id": model.id, "hf": model.hf, "drafts": model.drafts},
        path=model.path,
    )
    check_config(changed)
    return changed


# --- all together -----------------------------------------------------------------------------------------------------------


def all_facts(
    *,
    gpu: Gpu | None = None,
    model: Model | None = None,
    draft: Model | Unknown | None = None,
    engine: Mapping[str, Value] = _NO_VALUES,
) -> Facts:
    """The facts of a launch. An unknown device or model has unknown facts; `draft=None` says that none was named.

    `engine` holds what an installation is known to have, by full name; the rest follows facts.yaml.
    """

    def work(name: str) -> Value:
        scope, _, short = name.partition(".")
        if scope == "model":
            return UNKNOWN if model is None and book().is_fact(name) else _owned(model, name)
        if scope == "draft":
            if not isinstance(draft, Model):
                book().spec(name)
                return None if draft is None else UNKNOWN
            return _owned(draft, f"model.{short}")
        if name in engine:
            return engine[name]
        if gpu is not None:
            return gpu.facts[name]
        spec = book().spec(name)
        return _evaluate(book().expression(spec.derive), facts) if spec.derive else UNKNOWN

    facts = Facts(work)
    return facts


def _owned(owner: Model | None, name: str) -> Value:
    if owner is None:
        book().spec(name)
        return UNKNOWN
    return owner.facts[name]


def unknown_facts(facts: Facts, names: Iterable[str]) -> tuple[str, ...]:
    """Those of the names whose value nobody knows."""
    return tuple(name for name in names if facts[name] is UNKNOWN)


# --- words ------------------------------------------------------------------------------------------------------------------


def _object(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise RulebookError(f"{where}: expected an object")
    return value


def _nearest(word: str, names: Iterable[str], shown: Mapping[str, str] | None = None) -> str:
    near = get_close_matches(word, list(names), n=3, cutoff=0.6)
    words = list(dict.fromkeys((shown or {}).get(name, name) for name in near))
    return f"; did you mean {' or '.join(repr(name) for name in words)}?" if words else ""


def _no_strangers(entry: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    for key in entry:
        if key not in known:
            raise RulebookError(f"{where}: unknown key {key!r}{_nearest(str(key), known)}")
