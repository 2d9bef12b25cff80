"""Finds the launch in a deployment's YAML (compose services, Kubernetes objects); it must not parse a flag or run anything."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from recommender.errors import UsageError
from recommender.flags import holds_shell_variable
from recommender.forms.command import Command, Launchers, shipped_launchers, split_command
from recommender.terms import UNKNOWN, Unknown

LARGEST_TEXT = 1 << 20
_DEEPEST = 24


def is_deployment(text: str, launchers: Launchers | None = None) -> bool:
    """Whether a text is the YAML of a deployment: a line of it begins as launchers.yaml says."""
    marks = (launchers or shipped_launchers()).deployments.get("marks", ())
    return "\n" in text and any(line.startswith(tuple(marks)) for line in text.splitlines())


def split_deployment(text: str, launchers: Launchers | None = None) -> Command:
    """The one launch of the engine among the containers of a deployment, with the variables of its container.

    Raises:
        UsageError: the text is no YAML, or it holds no launch or several; it names them.
    """
    words = launchers or shipped_launchers()
    found: list[tuple[str, Command]] = []
    refused: list[str] = []
    for name, container in _containers(_documents(text), words):
        try:
            found.append((name, _launch(container, words)))
        except UsageError as error:
            refused.append(f"{name}: {error}")
    if len(found) > 1:
        names = ", ".join(name for name, _ in found)
        raise UsageError(f"the deployment starts {len(found)} launches ({names}): give one of them")
    if not found:
        raise UsageError(refused[0] if refused else "the deployment has no container with a command")
    return found[0][1]


def _documents(text: str) -> list[Any]:
    import yaml

    if len(text) > LARGEST_TEXT:
        raise UsageError("the deployment is too large")
    try:
        return list(yaml.safe_load_all(text))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"the deployment is no YAML: {' '.join(str(error).split())}") from None


def _containers(
    node: Any, launchers: Launchers, name: str = "", depth: int = 0
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every mapping that has words to run, with the name it goes by."""
    if depth > _DEEPEST:
        return
    if isinstance(node, Mapping):
        if any(isinstance(node.get(key), (str, list)) for key in launchers.deployments["words"]):
            yield str(node.get("name") or name), node
            return
        for key, value in node.items():
            yield from _containers(value, launchers, str(key), depth + 1)
    elif isinstance(node, list):
        for value in node:
            yield from _containers(value, launchers, name, depth + 1)


def _launch(container: Mapping[str, Any], launchers: Launchers) -> Command:
    keys = launchers.deployments
    argv: list[str] = []
    for key in keys["words"]:
        value = container.get(key)
        argv += _shell_words(value) if isinstance(value, str) else [str(word) for word in value or ()]
    split = split_command([word.replace("$$", "$") for word in argv], launchers)
    files = [name for key in keys["files"] for name in _names(container.get(key))]
    return replace(
        split,
        env={**_variables(container, keys["variables"]), **split.env},
        env_files=(*files, *split.env_files),
        image=str(container.get(keys["image"]) or ""),
    )


def _shell_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"the command cannot be read as a shell would: {error}") from None


def _variables(container: Mapping[str, Any], keys: Sequence[str]) -> dict[str, str | Unknown]:
    """Variables as a mapping, as NAME=VALUE words, or as objects of a name and a value (elsewhere than here: not known)."""
    found: dict[str, str | Unknown] = {}
    for key in keys:
        listed = container.get(key)
        for item in listed.items() if isinstance(listed, Mapping) else listed or ():
            if isinstance(item, tuple):
                name, value = item
            elif isinstance(item, Mapping):
                name, value = item.get("name"), item.get("value")
            else:
                name, equals, value = str(item).partition("=")
                value = value if equals else None
            found[str(name)] = UNKNOWN if value is None else _value(value)
    return found


def _value(value: Any) -> str | Unknown:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    plain = text.replace("$$", "")
    return UNKNOWN if holds_shell_variable(plain) else text.replace("$$", "$")


def _names(value: Any) -> list[str]:
    items = value if isinstance(value, list) else [value] if value else []
    return [str(item.get("path") if isinstance(item, Mapping) else item) for item in items]
