"""Takes entries out of a YAML text and leaves every other character as it stands; it must not know what the entries mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import yaml

Keys = tuple[str, ...]
Test = Callable[[Keys, yaml.Node], bool]


def value_of(node: yaml.Node, key: str) -> yaml.Node | None:
    """The value of a key of a mapping, where there is one."""
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for name, value in node.value if name.value == key), None)


def plain_of(node: yaml.Node | None) -> str:
    """A scalar's text, quoted or not; empty for anything else."""
    return str(node.value) if isinstance(node, yaml.ScalarNode) else ""


def items_of(node: yaml.Node | None) -> Sequence[yaml.Node]:
    """The entries of a sequence; none for anything else."""
    return node.value if isinstance(node, yaml.SequenceNode) else ()


def root_of(text: str) -> yaml.Node | None:
    """The node of a document; None where nothing but comments is left before the line that ends a table."""
    return yaml.compose(re.sub(r"(?m)^\.\.\.\n\Z", "", text), yaml.SafeLoader)


def _children(node: yaml.Node) -> list[tuple[str, yaml.Node, yaml.Node]]:
    """(name, what it begins with, its value) of each entry of a collection."""
    if isinstance(node, yaml.MappingNode):
        return [(str(key.value), key, value) for key, value in node.value]
    return [(str(place), value, value) for place, value in enumerate(items_of(node))]


def end_of(node: yaml.Node) -> int:
    """Where a node's own text ends, without the remarks and blank lines behind it."""
    if isinstance(node, (yaml.MappingNode, yaml.SequenceNode)) and not node.flow_style and node.value:
        return end_of(_children(node)[-1][2])
    end: int = node.end_mark.index
    return end


def find(root: yaml.Node, wanted: Test, keys: Keys = ()) -> Iterator[tuple[yaml.Node, int]]:
    """(collection, place) of every entry that a test wants, outermost first."""
    for place, (name, _, value) in enumerate(_children(root)):
        here = (*keys, name)
        if wanted(here, value):
            yield root, place
        else:
            yield from find(value, wanted, here)


def cut(text: str, parent: yaml.Node, place: int) -> str:
    """The text without one entry of a collection; of a block its whole lines, of a flow also one comma."""
    children = _children(parent)
    start, end = children[place][1].start_mark.index, end_of(children[place][2])
    if isinstance(parent, yaml.CollectionNode) and parent.flow_style:
        if place + 1 < len(children):
            return text[:start] + text[children[place + 1][1].start_mark.index :]
        start = end_of(children[place - 1][2]) if place else start
        return text[:start] + text[end:]
    stop = text.find("\n", max(end - 1, start) if text[end - 1 : end] == "\n" else end)
    return text[: text.rfind("\n", 0, start) + 1] + (text[stop + 1 :] if stop >= 0 else "")


def without(text: str, wanted: Test) -> str:
    """The text of a document without the entries that a test wants; a collection that is left empty goes with its key."""
    while (root := root_of(text)) is not None:
        found = next(find(root, wanted), None)
        if found is None:
            return text
        parent, place = found
        if len(_children(parent)) == 1 and parent is not root:
            holder = next(find(root, lambda _, node, parent=parent: node is parent), None)  # type: ignore[misc]
            parent, place = holder or found
        text = cut(text, parent, place)
    return text


def replaced(text: str, where: Callable[[Keys], bool], change: Callable[[str], str]) -> str:
    """The text of a document in which the words of its scalars are changed, where the keys that lead to one say so."""
    root = root_of(text)
    spans: list[tuple[int, int]] = []

    def wanted(keys: Keys, node: yaml.Node) -> bool:
        if isinstance(node, yaml.ScalarNode) and where(keys):
            spans.append((node.start_mark.index, node.end_mark.index))
        return False

    list(find(root, wanted) if root is not None else ())
    for start, end in reversed(spans):
        text = text[:start] + change(text[start:end]) + text[end:]
    return text


def documents(text: str) -> list[str]:
    """The documents of a text, without the lines between them."""
    return re.split(r"(?m)^---[ \t]*\n", text)


def folded(text: str, until: str) -> str:
    """The text of a document in which what an `earlier` entry said until then is what its owner says again."""
    while (root := root_of(text)) is not None:
        found = next(find(root, lambda keys, node: "earlier" in keys[-2:-1] and plain_of(value_of(node, "until")) == until), None)
        if found is None:
            return text
        entries, place = found
        owner = next(node for node in _every(root) if value_of(node, "earlier") is entries)
        text = _fold(text, owner, entries, place)
    return text


def _every(node: yaml.Node) -> Iterator[yaml.Node]:
    yield node
    for _, _, value in _children(node):
        yield from _every(value)


def _fold(text: str, owner: yaml.Node, entries: yaml.Node, place: int) -> str:
    said = [(name, key, value) for name, key, value in _children(entries.value[place]) if name != "until"]
    mine = [(name, key, value) for name, key, value in _children(owner) if name not in ("earlier", "meaning", "source", "type")]
    if len(said) != 1 or len(mine) != 1:
        names = ", ".join(name for name, *_ in (*said, *mine))
        raise ValueError(f"line {owner.start_mark.line + 1}: one value is wanted on either side of `earlier`, found {names}")
    (_, old_key, old), (_, key, value) = said[0], mine[0]
    moved = text[old_key.start_mark.index : end_of(old)]
    shift = key.start_mark.column - old_key.start_mark.column
    lines = moved.split("\n")
    moved = "\n".join([lines[0], *(" " * shift + line if shift > 0 else line[-shift:] for line in lines[1:])])
    if len(items_of(entries)) == 1:
        at = next(number for number, (name, *_) in enumerate(_children(owner)) if name == "earlier")
        shorter = cut(text, owner, at)
    else:
        shorter = cut(text, entries, place)
    start, end = key.start_mark.index, end_of(value)
    if entries.start_mark.index < start:
        moved_by = len(text) - len(shorter)
        start, end = start - moved_by, end - moved_by
    return shorter[:start] + moved + shorter[end:]
