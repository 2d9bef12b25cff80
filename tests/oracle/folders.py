"""Writes checkpoint profiles as the folders that the engine reads; it must not invent a key that no profile states."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from recommender import library

FOLDERS = ("models", "drafts")
EXAMPLES = "profiles/checkpoints.yaml"


def profiles() -> Iterator[Mapping[str, Any]]:
    """Every checkpoint profile whose config is whole enough for the engine."""
    for folder in FOLDERS:
        for _, documents in library.load().folder(f"profiles/{folder}"):
            if not documents[0].get("partial"):
                yield documents[0]


def write_checkpoint(folder: Path, config: Mapping[str, Any], quantization: Mapping[str, Any] | None = None) -> None:
    """One checkpoint as a folder: config.json, and hf_quant_config.json where it has one."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
    if quantization:
        (folder / "hf_quant_config.json").write_text(json.dumps(quantization, indent=1), encoding="utf-8")


def example_checkpoints() -> Mapping[str, Mapping[str, Any]]:
    """The config.json of checkpoints that only examples name, by that name."""
    found: Mapping[str, Mapping[str, Any]] = library.load().one(EXAMPLES)
    return found


def write_example_checkpoints(root: Path) -> Path:
    """The checkpoints that only examples name, below `root` by that name; returns `root`."""
    for name, config in example_checkpoints().items():
        write_checkpoint(root / name, config)
    return root


def write_folders(root: Path) -> Path:
    """Every checkpoint below `root`: profiles as models/ID, as ID and by their Hugging Face names; returns `root`."""
    write_example_checkpoints(root)
    root.mkdir(parents=True, exist_ok=True)
    (root / "models").symlink_to(".", target_is_directory=True)
    for profile in profiles():
        write_checkpoint(root / profile["id"], profile["config"], profile.get("hf_quant_config"))
    for profile in profiles():
        for name in profile.get("hf", ()):
            link = root / name
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.exists():
                link.symlink_to(Path("..") / profile["id"], target_is_directory=True)
    return root


def kept_folders(home: Path) -> Path:
    """The same folders in a place that stays, written once for each state of the profiles."""
    state = [(profile["id"], profile["config"], profile.get("hf_quant_config")) for profile in profiles()]
    text = json.dumps([state, example_checkpoints()], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    place = home / "checkpoints" / digest
    if not place.is_dir():
        place.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(dir=place.parent, prefix="part-"))
        write_folders(beside)
        try:
            os.replace(beside, place)
        except OSError:  # another process was quicker
            shutil.rmtree(beside, ignore_errors=True)
    return place
