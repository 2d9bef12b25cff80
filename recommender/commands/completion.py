"""Names that a shell can complete, read off file names so that a key press costs little; it must not parse a rule."""

from __future__ import annotations

from collections.abc import Mapping

from recommender.images import NONE
from recommender.library import Library, load
from recommender.rulebook import ENGINE, NOT_TOPICS

# Which folders of profiles/ hold what each kind completes to.
_FOLDERS: Mapping[str, tuple[str, ...]] = {
    "gpus": ("gpus", "nodes"),
    "models": ("models",),
    "drafts": ("drafts",),
    "images": ("images",),
    "profiles": ("gpus", "nodes", "models", "drafts"),
}


def ids(kind: str) -> list[str]:
    """Every id of a kind: gpus, models, drafts, profiles, rules, topics or releases. An unknown kind has none."""
    library = load()
    if kind in _FOLDERS:
        names = [name for folder in _FOLDERS[kind] for name in _stems(library, f"profiles/{folder}")]
        return sorted([*names, NONE] if kind == "images" else names)
    if kind == "releases":
        return [str(item["version"]) for item in library.one(f"{ENGINE}/releases.yaml")["releases"]]
    topics = {
        folder.rpartition("/")[2]: folder
        for folder in library.folders
        if folder.rpartition("/")[0] == ENGINE and folder.rpartition("/")[2] not in NOT_TOPICS
    }
    if kind == "topics":
        return sorted(topics)
    if kind == "rules":
        return sorted(name for folder in topics.values() for name in _stems(library, folder))
    return []


def _stems(library: Library, folder: str) -> list[str]:
    return [path.rsplit("/", 1)[-1].removesuffix(".yaml") for path in library.folders.get(folder, ())]
