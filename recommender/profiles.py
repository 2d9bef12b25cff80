"""Finds checkpoints by name, path or in the local cache, with their facts; it must not download, judge, or know a name.

Every word about an architecture, a checkpoint or a key of config.json stands in profiles/. A fact comes from what the
checkpoint's profile states (before that what its class was `earlier`, as of an older release), else its architecture's or its
configuration class's, else from the keys of config.json,
else from an expression over other facts, else it is UNKNOWN.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any

from recommender import library
from recommender.devices import Gpu, detect_gpu, find_gpu, gpu_ids
from recommender.errors import UsageError
from recommender.facts import (
    MISSING,
    NO_VALUES,
    WORDS,
    Facts,
    FactSpec,
    an_object,
    book,
    checked,
    evaluate,
    nearest,
    no_strangers,
    plain,
    profile_of,
    profiles_of,
    shortened,
    stated_facts,
    stated_value,
    step,
)
from recommender.terms import UNKNOWN, Unknown, Value
from recommender.versions import parse_release

__all__ = [
    "Facts",
    "Gpu",
    "Model",
    "all_facts",
    "book",
    "check_config",
    "detect_gpu",
    "find_gpu",
    "find_model",
    "forget",
    "gpu_ids",
    "model_ids",
    "read_model",
    "read_object",
    "unknown_facts",
    "with_config",
]

LARGEST_FILE = 16 * 2**20
SUBCONFIG = "model.subconfig"
_KEYS = ("id", "hf", "algorithm", "targets", "drafts", "facts", "config", "partial", "hf_quant_config", "source")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Model:
    """A checkpoint: `id` is None unless it has a profile, `name` is what to call it, `origin` profile, file, cache.

    `facts` are those of the newest release; `as_of` gives those of another one.
    """

    id: str | None
    name: str
    origin: str
    facts: Facts
    config: Mapping[str, Any]
    hf_quant_config: Mapping[str, Any]
    hf: tuple[str, ...] = ()
    drafts: tuple[str, ...] = ()
    path: Path | None = None
    architecture: str = ""
    architecture_known: bool = False
    stated: Mapping[str, Value] = field(default_factory=dict)
    algorithm: str = ""
    targets: tuple[str, ...] = ()
    origin_of: Callable[[str], str] = field(default=str, repr=False, compare=False)
    as_of: Callable[[str], Facts] = field(repr=False)


def _merged(defaults: Mapping[str, Any], config: Mapping[str, Any]) -> Mapping[str, Any]:
    """config.json over the defaults of its class, sub-configs alike; a key that is there, even null, stays."""
    if not defaults:
        return config
    merged = dict(defaults)
    for key, value in config.items():
        below = defaults.get(key)
        merged[key] = _merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Checkpoint:
    """Where the facts of one checkpoint come from. A partial one is known in part: a missing key says nothing."""

    where: str
    quant_where: str
    config: Mapping[str, Any]
    quant: Mapping[str, Any]
    given: Mapping[str, Any]
    stated: tuple[Mapping[str, Value], ...]
    stated_in: tuple[str, ...]
    sources: Mapping[str, str]
    architecture_known: bool
    partial: bool
    overlays: tuple[Mapping[str, Value], ...] = ()

    def work(self, name: str, facts: Facts) -> Value:
        spec = book().spec(name)
        short = name.partition(".")[2]
        for source in (*self.overlays, *self.stated):
            if short in source:
                return checked(spec, stated_value(source[short], facts), f"{self.where}: {short}")
        if spec.objects:
            return next((".".join(path) for path in spec.objects if isinstance(step(self.config, path), dict)), None)
        if spec.keys:
            found = self._read(spec, facts)
            if found is not MISSING:
                return found
        elif spec.derive:
            return evaluate(book().expression(spec.derive), facts)
        if spec.home and self.architecture_known and spec.otherwise is not MISSING:
            return spec.otherwise
        return UNKNOWN if spec.absent is MISSING or (self.partial and spec.keys) else spec.absent

    def _read(self, spec: FactSpec, facts: Facts) -> Value:
        answer: Value = MISSING
        for file, path in spec.keys:
            value, shown = self._at(file, path, facts)
            if value is MISSING:
                continue
            if value is not None:
                return checked(
                    spec, plain(value), f"{self.quant_where if file not in ('', 'text') else self.where}: {shown}"
                )
            answer = None
        return answer

    def origin(self, name: str, facts: Facts) -> str:
        """Where the value of a fact comes from: a word, then after a colon the place; it follows `work`."""
        spec = book().spec(name)
        short = name.partition(".")[2]
        for place, source in zip(self.stated_in, self.stated, strict=True):
            if short in source:
                return self.sources.get(short, place) if source is self.stated[0] else place
        if spec.objects:
            return "config.json: its objects"
        for file, path in spec.keys:
            value, shown = self._at(file, path, facts)
            if value is not MISSING and value is not None:
                if file in ("", "text") and step(self.given, tuple(shown.split("."))) is MISSING:
                    return f"class: the default of {shown}"
                return f"{'config.json' if file in ('', 'text') else f'{file}.json'}: {shown}"
        if spec.derive:
            return f"derived: {spec.derive}"
        if facts[name] is UNKNOWN:
            return f"absent: {', '.join('.'.join(path) for _, path in spec.keys)}" if spec.keys else "nobody: states it"
        return "default: the architecture says nothing" if spec.home else "default: the engine's own"

    def _at(self, file: str, path: tuple[str, ...], facts: Facts) -> tuple[Any, str]:
        if file == "text":
            subconfig = facts[SUBCONFIG]
            if subconfig is not None and subconfig is not UNKNOWN:
                path = (*subconfig.split("."), *path)
            return step(self.config, path), ".".join(path)
        return step(self.quant if file else self.config, path), ".".join(path)


def _checkpoint(
    *,
    name: str,
    origin: str,
    config: Mapping[str, Any],
    quant: Mapping[str, Any],
    where: str,
    stated: Mapping[str, Value],
    profile: Mapping[str, Any] = NO_VALUES,
    path: Path | None = None,
) -> Model:
    names = config.get("architectures")
    first = names[0] if isinstance(names, (list, tuple)) and names else ""
    architecture = _single("architectures", first)
    kind = _single("config_classes", config.get("model_type")) or {}
    partial = bool(profile.get("partial"))
    sources = profile.get("source")
    cited = f"profile: {sources if isinstance(sources, str) else where}" if profile else "folder: what lies in it"
    told = [(cited, stated)]
    told += _stated_by(architecture, f"profiles/architectures/{first}.yaml")
    told += _class_facts(kind)
    defaults = _merged(_class_defaults(kind), (architecture or {}).get("config_defaults", {}))
    read = _unfolded(config, kind)
    source = _Checkpoint(
        where=where,
        quant_where=where if origin == "profile" else where.replace("config.json", "hf_quant_config.json"),
        config=read if partial else _merged(defaults, read),
        quant=quant,
        given=read,
        stated=tuple(facts for _, facts in told),
        stated_in=tuple(place for place, _ in told),
        sources=sources if isinstance(sources, Mapping) else {},
        architecture_known=architecture is not None,
        partial=partial,
    )
    facts = _facts_from(source)

    @cache
    def facts_as_of(release: str) -> Facts:
        overlays = earlier_facts(architecture or {}, f"profiles/architectures/{first}.yaml", release)
        return _facts_from(replace(source, overlays=overlays)) if overlays else facts

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
        algorithm=str(profile.get("algorithm", "")),
        targets=tuple(profile.get("targets", ())),
        origin_of=lambda fact: source.origin(fact, facts),
        as_of=facts_as_of,
    )


def _facts_from(source: _Checkpoint) -> Facts:
    facts = Facts(lambda fact: source.work(fact, facts))
    return facts


def earlier_facts(document: Mapping[str, Any], where: str, release: str) -> tuple[Mapping[str, Value], ...]:
    """What an architecture's class was in a release, where that is not what it is now: the first that states a fact holds.

    Raises:
        RulebookError: an `earlier` entry of the profile has another form, or states no fact.
    """
    found = []
    at = parse_release(release)
    for entry in document.get("earlier", ()):
        an_object(entry, f"{where}: earlier")
        no_strangers(entry, ("until", "facts"), f"{where}: earlier")
        facts, until = stated_facts(entry, "model", f"{where}: earlier"), parse_release(str(entry["until"]))
        if at < until:
            found.append((until, facts))
    return tuple(facts for _, facts in sorted(found, key=itemgetter(0)))


def _single(folder: str, name: Any) -> Mapping[str, Any] | None:
    """The document of an architecture or a configuration class, None when it has no file."""
    path = f"profiles/{folder}/{name}.yaml"
    return profile_of(folder, str(name)) if path in library.load().documents else None


def _stated_by(document: Mapping[str, Any] | None, where: str) -> Iterable[tuple[str, Mapping[str, Value]]]:
    if document and document.get("facts"):
        kind = "architecture" if "/architectures/" in where else "class"
        yield f"{kind}: {where}", stated_facts(document, "model", where)


def _class_facts(kind: Mapping[str, Any]) -> Iterable[tuple[str, Mapping[str, Value]]]:
    """What a configuration class, or the class of one of its parts, works out from its keys."""
    yield from _stated_by(kind, f"profiles/config_classes/{kind.get('model_type')}.yaml")
    for name in kind.get("parts", {}).values():
        yield from _stated_by(_single("config_classes", name), f"profiles/config_classes/{name}.yaml")


def _class_defaults(kind: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a configuration class takes for missing keys; a sub-config has a class of its own."""
    defaults = dict(kind.get("defaults", {}))
    for key, name in kind.get("parts", {}).items():
        part = {"model_type": name, **(_single("config_classes", name) or {}).get("defaults", {})}
        defaults[key] = _merged(part, defaults.get(key, {}))
    return defaults


def _unfolded(config: Mapping[str, Any], kind: Mapping[str, Any]) -> Mapping[str, Any]:
    """config.json with the part that its class reads from the top level when the file does not nest it."""
    part = kind.get("unnested")
    if not part or isinstance(config.get(part), dict):
        return config
    own = {"architectures", "model_type", "quantization_config", "vision_config"}
    return {**config, part: {key: value for key, value in config.items() if key not in own}}


def _from_profile(folder: str, stem: str) -> Model:
    document = profile_of(folder, stem)
    where = f"profiles/{folder}/{stem}.yaml"
    no_strangers(document, _KEYS, where)
    return _checkpoint(
        name=document["id"],
        origin="profile",
        config=an_object(document.get("config", {}), f"{where}: config"),
        quant=an_object(document.get("hf_quant_config", {}), f"{where}: hf_quant_config"),
        where=where,
        stated={**stated_facts(document, "model", where), "id": document["id"]},
        profile=document,
    )


@cache
def _model_names() -> Mapping[str, tuple[str, str, str]]:
    """Case-folded id or Hugging Face id -> (folder, file stem, its spelling), models first."""
    found: dict[str, tuple[str, str, str]] = {}
    for folder in ("models", "drafts"):
        for stem, document in profiles_of(folder):
            for name in (document["id"], *document.get("hf", ())):
                found.setdefault(name.casefold(), (folder, stem, name))
    return found


def model_ids(folder: str = "models") -> tuple[str, ...]:
    """Every checkpoint that has a profile; `folder` is "models" or "drafts"."""
    return tuple(document["id"] for _, document in profiles_of(folder))


def find_model(reference: str, relative_to: Path | None = None) -> Model:
    """The checkpoint of a path to a config.json or its folder, of a profile id, or of a Hugging Face id.

    A Hugging Face id is known when a profile lists it or the local cache holds it; nothing is downloaded.

    Raises:
        UsageError: nothing of that name, or its config.json cannot be used; one line that names file and key.
    """
    return _find_model(reference, os.getcwd() if relative_to is None else str(relative_to))


def forget() -> None:
    """Drop every checkpoint and device found so far, so that changed files and variables are read again."""
    _find_model.cache_clear()
    find_gpu.cache_clear()


@lru_cache(maxsize=4096)
def _find_model(reference: str, base: str) -> Model:
    if not reference.strip() or "\0" in reference:
        raise UsageError(f"{shortened(reference)} is not the name of a model")
    path = Path(base, os.path.expanduser(reference))
    if _exists(path):
        return read_model(path, name=reference)
    known = _model_names().get(reference.casefold().rstrip("/"))
    if known is not None:
        return _from_profile(known[0], known[1])
    snapshot = _cached_snapshot(reference)
    if snapshot is not None:
        return read_model(snapshot, name=reference, origin="cache")
    if _is_folder(path):
        raise UsageError(f"{shortened(reference)}: a folder without a config.json")
    spelling = {name: shown for name, (_, _, shown) in _model_names().items()}
    near = nearest(reference[:200].casefold(), spelling, spelling)
    raise UsageError(
        f"unknown model {shortened(reference)}{near}: no profile, no file below {base}, not in the Hugging Face cache"
    )


def _exists(path: Path) -> bool:
    try:
        return path.is_file() or (path / "config.json").exists()
    except (OSError, ValueError):
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
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
        total = step(read_object(index), ("metadata", "total_size"))
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
        found = next((word for kind, word in WORDS.items() if isinstance(plain(value), kind)), "null")
        raise UsageError(f"{file}: expected a JSON object, found {found}")
    return value


def _cached_snapshot(reference: str) -> Path | None:
    """The folder of a Hugging Face id in the local cache: the revision of refs/main, else the newest one."""
    if not re.fullmatch(r"[\w.-]{1,96}/[\w.-]{1,96}", reference) or ".." in reference:
        return None
    given = os.environ.get
    home = given("HF_HOME") or Path(given("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    root = Path(given("HF_HUB_CACHE") or given("HUGGINGFACE_HUB_CACHE") or Path(home, "hub")).expanduser()
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


def all_facts(
    *,
    gpu: Gpu | None = None,
    model: Model | None = None,
    draft: Model | Unknown | None = None,
    engine: Mapping[str, Value] = NO_VALUES,
    release: str | None = None,
) -> Facts:
    """The facts of a launch. An unknown device or model has unknown facts; `draft=None` says that none was named.

    `release` is the engine's, the newest one when it is not given. `engine` holds what an installation is known to have, by full
    name; the rest follows facts.yaml.
    """

    def work(name: str) -> Value:
        scope, _, short = name.partition(".")
        if scope == "model":
            return UNKNOWN if model is None and book().is_fact(name) else _owned(model, name, release)
        if scope == "draft":
            if not isinstance(draft, Model):
                book().spec(name)
                return None if draft is None else UNKNOWN
            return _owned(draft, f"model.{short}", release)
        if name in engine:
            return engine[name]
        if gpu is not None:
            return gpu.facts[name]
        spec = book().spec(name)
        return evaluate(book().expression(spec.derive), facts) if spec.derive else UNKNOWN

    facts = Facts(work)
    return facts


def _owned(owner: Model | None, name: str, release: str | None) -> Value:
    if owner is None:
        book().spec(name)
        return UNKNOWN
    return (owner.as_of(release) if release else owner.facts)[name]


def unknown_facts(facts: Facts, names: Iterable[str]) -> tuple[str, ...]:
    """Those of the names whose value nobody knows."""
    return tuple(name for name in names if facts[name] is UNKNOWN)
