"""Finds devices by name or on this machine, with their facts; it must not know a device by name or judge anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any

from recommender.errors import UsageError
from recommender.facts import (
    MISSING,
    Facts,
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
)
from recommender.terms import UNKNOWN, Value

DETECTION_SECONDS = 5.0
_KEYS = ("id", "names", "family", "facts", "unproven", "source")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A device. `count` is how many the user named or the machine has, None when nobody said.

    `unproven` says why nobody could hold the laws against the engine there; empty where somebody did.
    """

    id: str | None
    name: str
    facts: Facts
    count: int | None = None
    aliases: tuple[str, ...] = ()
    family: str = ""
    unproven: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)
    origin_of: Callable[[str], str] = field(default=str, repr=False, compare=False)


def _gpu_facts(stated: Mapping[str, Value], where: str) -> Facts:
    def work(name: str) -> Value:
        spec = book().spec(name)
        scope, _, short = name.partition(".")
        value = stated.get(short, MISSING) if scope == "gpu" else MISSING
        if value is not MISSING:
            return checked(spec, plain(value), f"{where}: {short}")
        if spec.derive:
            return evaluate(book().expression(spec.derive), facts)
        return UNKNOWN if spec.absent is MISSING else spec.absent

    facts = Facts(work)
    return facts


def _origin(stated: Mapping[str, Value], sources: Mapping[str, str], place: str) -> Callable[[str], str]:
    """Where the value of a device's fact comes from: a word, then after a colon the place; it follows `_gpu_facts`."""

    def origin(name: str) -> str:
        scope, _, short = name.partition(".")
        if scope == "gpu" and short in stated:
            return sources.get(short, place)
        spec = book().spec(name)
        if spec.derive:
            return f"derived: {spec.derive}"
        return "nobody: states it" if spec.absent is MISSING else "default: the engine's own"

    return origin


def _gpu(stem: str, document: Mapping[str, Any], count: int | None = None) -> Gpu:
    where = f"profiles/gpus/{stem}.yaml"
    no_strangers(document, _KEYS, where)
    stated = dict(stated_facts(document, "gpu", where))
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
        unproven=str(document.get("unproven", "")),
        sources=document.get("source", {}),
        origin_of=_origin(stated, document.get("source", {}), f"profile: {where}"),
    )


@cache
def gpu_ids() -> tuple[str, ...]:
    """Every device that has a profile."""
    return tuple(document["id"] for _, document in profiles_of("gpus"))


@cache
def _gpu_names() -> Mapping[str, tuple[str, int | None]]:
    """Plain spelling -> (device, how many of it), for every device and every machine: a machine has a count."""
    found: dict[str, tuple[str, int | None]] = {}
    for stem, document in profiles_of("gpus"):
        for name in (document["id"], *document.get("names", ())):
            found.setdefault(_squeeze(name), (stem, None))
    for _, document in profiles_of("nodes"):
        for name in (document["id"], *document.get("names", ())):
            found.setdefault(_squeeze(name), (document["gpu"], document["count"]))
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
    count, wanted = 1, reference
    counted = _COUNTED.match(reference)
    if counted and _squeeze(reference) not in names:
        count, wanted = int(counted[1]), counted[2]
        if count < 1:
            raise UsageError(f"device {reference!r}: the count must be at least 1")
    known = names.get(_squeeze(wanted))
    if known is not None:
        stem, inside = known
        several = inside is not None or wanted is not reference
        return _gpu(stem, profile_of("gpus", stem), count * (inside or 1) if several else None)
    word = _squeeze(wanted)
    family = [document for _, document in profiles_of("gpus") if word and word in _families(document)]
    if family:
        members = ", ".join(_with_capability(document) for document in family)
        raise UsageError(f"{wanted!r} is a family of devices, name one: {members}")
    near = nearest(word, names, {name: stem for name, (stem, _) in names.items()})
    raise UsageError(f"unknown device {shortened(wanted)}{near}; known: {', '.join(gpu_ids())}")


def _families(document: Mapping[str, Any]) -> set[str]:
    return {_squeeze(str(document.get("family", ""))), _squeeze(str(document["facts"].get("vendor", "")))}


def _with_capability(document: Mapping[str, Any]) -> str:
    facts = document.get("facts", {})
    kind = f"sm{facts['sm']}" if facts.get("sm") else facts.get("gcn_arch") or facts.get("platform")
    return f"{document['id']} ({kind})"


def detect_gpu() -> Gpu | None:
    """The device of this machine, as nvidia-smi or rocminfo name it; None when neither answers."""
    return _detect_nvidia() or _detect_amd()


def _run(*command: str) -> str | None:
    import subprocess

    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DETECTION_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout if done.returncode == 0 else None


def _known_or(name: str, count: int, stated: Mapping[str, Value]) -> Gpu:
    """The profile of a printed name; without one, a device of the facts that the tool prints."""
    try:
        stem, _ = _gpu_names()[_squeeze(name)]
        return replace(_gpu(stem, profile_of("gpus", stem), count), name=name)
    except KeyError:
        facts = {"id": None, "name": name, "count": count, **stated}
        origin = _origin(facts, {}, "machine: as its tools print it")
        return Gpu(id=None, name=name, facts=_gpu_facts(facts, name), count=count, origin_of=origin)


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
        stated |= {
            "sm": int(level[1]) * 10 + int(level[2]),
            "capability_major": int(level[1]),
            "capability_minor": int(level[2]),
        }
    return _known_or(name, count, stated)


def _detect_amd() -> Gpu | None:
    printed = _run("rocminfo") or ""
    agents = [
        agent
        for agent in re.split(r"^Agent \d+", printed, flags=re.MULTILINE)
        if re.search(r"^\s*Name:\s+gfx", agent, re.MULTILINE)
    ]
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
