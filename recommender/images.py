"""Finds the container image a launch runs in, and the variables it sets; it must not know an image by name or judge.

An image is named by the user, read off the command, or assumed where the users of a device run it; `none` is a bare machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from recommender.devices import Gpu, find_gpu
from recommender.errors import UsageError
from recommender.facts import Facts, an_object, book, evaluate, nearest, no_strangers, profiles_of, shortened
from recommender.terms import ImageUse, Unknown

NONE = "none"
_KEYS = ("id", "names", "tags", "platform", "assumed_on", "environment", "source")


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image: `tags` are globs of its references, `assumed_on` an expression over a device's facts or empty."""

    id: str
    platform: str
    environment: Mapping[str, str]
    tags: tuple[str, ...] = ()
    assumed_on: str = ""
    source: str = ""


@cache
def images() -> Mapping[str, Image]:
    """Every image that has a profile, by its id."""
    found = {}
    for stem, document in profiles_of("images"):
        where = f"profiles/images/{stem}.yaml"
        no_strangers(document, _KEYS, where)
        variables = an_object(document["environment"], f"{where}: environment")
        found[document["id"]] = Image(
            id=document["id"],
            platform=document["platform"],
            environment={str(name): str(value) for name, value in variables.items()},
            tags=tuple(document.get("tags", ())),
            assumed_on=document.get("assumed_on", ""),
            source=document.get("source", ""),
        )
    return found


def find_image(name: str) -> Image | None:
    """The image of an id; None for `none`.

    Raises:
        UsageError: no such image; names the nearest one.
    """
    if name == NONE:
        return None
    known = images()
    if name not in known:
        words = (*known, NONE)
        raise UsageError(f"unknown image {shortened(name)}{nearest(name, words)}; known: {', '.join(words)}")
    return known[name]


def image_use(
    name: str | None,
    gpu: Gpu | None,
    words: Sequence[str],
    env: Mapping[str, str | Unknown],
    read: Mapping[str, object],
) -> ImageUse | None:
    """The image of a launch: the named one, else the one among the command's words, else the one assumed on the device.

    `read` are the variables that the rulebook reads; of those the image sets what `env`, the user's own, leaves alone.

    Raises:
        UsageError: no such image, or it is made for another platform than the device's.
    """
    if name is not None:
        image, why = find_image(name), "named"
    else:
        image, why = _in_command(words), "command"
        if image is None and gpu is not None:
            image, why = _assumed(gpu), "assumed"
    if image is None:
        return None
    if gpu is not None and gpu.facts["gpu.platform"] != image.platform:
        raise UsageError(
            f"the image {image.id} is made for {image.platform} devices, and {gpu.name} is {gpu.facts['gpu.platform']}"
        )
    sets = {key: value for key, value in image.environment.items() if key in read and key not in env}
    return ImageUse(id=image.id, why=why, sets=sets, source=image.source)


def _in_command(words: Sequence[str]) -> Image | None:
    if not any(words):
        return None
    for image in images().values():
        if any(fnmatchcase(word, tag) for word in words for tag in image.tags):
            return image
    return None


def _assumed(gpu: Gpu) -> Image | None:
    return _matching(gpu.facts) if gpu.id is None else _assumed_on_profile(gpu.id)


@cache
def _assumed_on_profile(name: str) -> Image | None:
    return _matching(find_gpu(name).facts)


def _matching(facts: Facts) -> Image | None:
    for image in images().values():
        if image.assumed_on and evaluate(book().expression(image.assumed_on), facts) is True:
            return image
    return None
