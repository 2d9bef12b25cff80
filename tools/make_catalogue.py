"""Dumps what the engine's command line accepts and merges dumps into the flag catalogue; it must not judge a flag.

Two steps, because the first one needs the engine and the second one must not:

    # where the engine can be imported; tests/oracle/README.md says how to set it up. --prelude imports a module first:
    # `device` makes torch report an accelerator
    python -m tests.oracle.client 0.5.23 b200 --run tools/make_catalogue.py dump --prelude device --release 0.5.23 \
        > flags-0.5.23.json

    # anywhere
    python tools/make_catalogue.py merge flags-0.5.23.json            # updates constraints/sglang/flags/catalogue.json
    python tools/make_catalogue.py merge --check flags-0.5.23.json    # exit 1 if the file would change

The dump does not depend on the device: 0.5.23 gives the same for NVIDIA, AMD and CPU (compare two dumps to check a
release). Two environment variables and plug-ins can add choices; the dump is made without any.

The table holds one entry a line. `since` and `until` (half open) bound the releases in which exactly this entry holds;
when a flag's choices or default change, a further entry follows. Entries stand in the order of the newest release's own
parser, because argparse lists the candidates of an ambiguous abbreviation in that order; of older releases nothing but
that order may differ. No help texts are kept.
"""

from __future__ import annotations

import argparse
import enum
import importlib
import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

TABLE = Path(__file__).resolve().parent.parent / "constraints" / "sglang" / "flags" / "catalogue.json"
KINDS = {
    "_HelpAction": "help",
    "_StoreAction": "store",
    "_StoreTrueAction": "store_true",
    "_StoreFalseAction": "store_false",
    "_StoreConstAction": "store_const",
    "_AppendAction": "append",
    "BooleanOptionalAction": "boolean",
    "LoRAPathAction": "names_or_objects",
    "DeprecatedAction": "ignored",
    "DeprecatedStoreTrueAction": "store_true",
    "DeprecatedStoreConstAction": "store_const",
    "DeprecatedAliasStoreAction": "store",
}
VALUELESS = frozenset({"help", "store_true", "store_false", "boolean", "ignored", "retired"})
CONFIG_FILE = "--config"  # the launcher, not the parser, reads this one


def plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (str, int, float, bool, dict)):
        return value
    raise TypeError(f"a default or choice that JSON cannot hold: {value!r}")


def structure(action: argparse.Action) -> dict[str, Any]:
    """What the engine's own converters and actions check beyond a word: keys, sections, retired words."""
    if type(action).__name__ == "LoRAPathAction":
        return {"keys": ["lora_path", "lora_name"]}
    name = getattr(action.type, "__name__", "")
    if name not in ("parse_cuda_graph_config_arg", "parse_cuda_graph_backend_arg"):
        return {}
    module = importlib.import_module(str(action.type.__module__))
    retired = []
    check = getattr(module, "parse_cuda_graph_backend_arg", None)
    for word in sorted({str(v) for k, v in vars(module.Backend).items() if k.isupper() and isinstance(v, str)}):
        try:
            if check is not None:
                check(word)
        except argparse.ArgumentTypeError:
            retired.append(word)
    found: dict[str, Any] = {}
    if retired:
        found["retired_words"] = retired
    if name == "parse_cuda_graph_config_arg":
        found["sections"] = {phase: list(module.ALLOWED_KEYS_PER_PHASE[phase]) for phase in module.Phase.ALL}
        found["word_key"] = "backend"
    return found


def describe(action: argparse.Action) -> dict[str, Any]:
    if not action.option_strings:
        raise TypeError(f"a positional argument ({action.dest}): the catalogue has no form for it yet")
    class_name = type(action).__name__
    kind = KINDS[class_name]
    entry: dict[str, Any] = {"names": list(action.option_strings), "field": action.dest}
    const = action.const
    if class_name.startswith("Deprecated"):
        entry["deprecated"] = True
        text = getattr(action, "error_message", None) or getattr(action, "new_flag", None) or ""
        if getattr(action, "error_message", None):
            kind = "retired"
        instead = [word for word in re.findall(r"--[a-z][\w-]*(?:=\S+)?", text) if word not in action.option_strings]
        if instead:
            entry["instead"] = instead[0]
        const = getattr(action, "const_value", None)
    entry["kind"] = kind
    if CONFIG_FILE in action.option_strings:
        entry["role"] = "config_file"
    if action.type is not None:
        entry["type"] = action.type.__name__  # type: ignore[union-attr]
    if action.nargs is not None and kind not in VALUELESS:
        entry["nargs"] = action.nargs
    if action.choices is not None:
        entry["choices"] = plain(list(action.choices) if not isinstance(action.choices, set) else action.choices)
    if const is not None and kind not in VALUELESS:
        entry["const"] = plain(const)
    if action.required:
        entry["required"] = True
    if action.default == argparse.SUPPRESS:
        if kind != "help":
            entry["defaultless"] = True
    elif action.default is not None:
        entry["default"] = plain(action.default)
    return entry | structure(action)


def dump(release: str | None, prelude: Iterable[str]) -> dict[str, Any]:
    for module in prelude:
        importlib.import_module(module)
    server_args = importlib.import_module("sglang.srt.server_args")
    if release is None:
        release = importlib.import_module("sglang.version").__version__
    parser = argparse.ArgumentParser(prog="sglang serve")
    server_args.ServerArgs.add_cli_args(parser)
    return {"release": release, "flags": [describe(action) for action in parser._actions]}


def release_key(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")[:3]))


def _spec(entry: Mapping[str, Any]) -> str:
    return json.dumps({key: value for key, value in entry.items() if key not in ("since", "until")}, sort_keys=True)


def _holds(entry: Mapping[str, Any], release: str) -> bool:
    until = entry.get("until")
    return release_key(entry["since"]) <= release_key(release) and (
        until is None or release_key(release) < release_key(until)
    )


def expand(table: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Every release's own list of entries, without ranges."""
    return {
        release: [
            {key: value for key, value in entry.items() if key not in ("since", "until")}
            for entry in table["flags"]
            if _holds(entry, release)
        ]
        for release in table["releases"]
    }


def _ordered(lists: Mapping[str, list[dict[str, Any]]], releases: list[str]) -> list[dict[str, Any]]:
    """All distinct entries: the newest release's in its order, each older one's after the entry it followed there."""
    order: list[dict[str, Any]] = []
    place: dict[str, int] = {}
    for release in reversed(releases):
        before = -1
        for entry in lists[release]:
            spec = _spec(entry)
            if spec not in place:
                alike = [place[_spec(other)] for other in order if other["names"][0] == entry["names"][0]]
                at = max(alike, default=before) + 1
                place = {known: index + (index >= at) for known, index in place.items()}
                order.insert(at, entry)
                place[spec] = at
            before = place[spec]
    return order


def collapse(lists: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """One table with ranges from every release's own list."""
    releases = sorted(lists, key=release_key)
    present = {release: {_spec(entry) for entry in lists[release]} for release in releases}
    flags = []
    for entry in _ordered(lists, releases):
        spec = _spec(entry)
        ranges: list[dict[str, str]] = []
        for release in releases:
            if spec in present[release]:
                if not ranges or "until" in ranges[-1]:
                    ranges.append({"since": release})
            elif ranges and "until" not in ranges[-1]:
                ranges[-1]["until"] = release
        flags += [entry | span for span in reversed(ranges)]
    return {"releases": releases, "flags": flags}


def merge(table: Mapping[str, Any] | None, dumps: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The table with the dumps' releases added, or replaced where they were known."""
    lists = expand(table) if table else {}
    for item in dumps:
        lists[item["release"]] = list(item["flags"])
    return collapse(lists)


def render(table: Mapping[str, Any]) -> str:
    """The table as JSON, one flag a line."""
    from recommender.library import sealed  # not where the engine is imported

    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in table["flags"])
    return sealed(f'{{"schema": 1, "releases": {json.dumps(table["releases"])}, "flags": [\n{lines}\n]}}\n')


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    dumping = commands.add_parser("dump", help="print this environment's engine as one dump")
    dumping.add_argument("--release", help="the engine's release (default: what the installed engine says)")
    dumping.add_argument("--prelude", action="append", default=[], help="a module to import first")
    merging = commands.add_parser("merge", help="merge dumps into the catalogue")
    merging.add_argument("dumps", nargs="+", type=Path)
    merging.add_argument("--table", type=Path, default=TABLE)
    merging.add_argument("--check", action="store_true", help="write nothing; exit 1 if the table would change")
    options = parser.parse_args(argv)
    if options.command == "dump":
        json.dump(dump(options.release, options.prelude), sys.stdout)
        print()
        return 0
    old = options.table.read_text(encoding="utf-8") if options.table.exists() else ""
    new = render(
        merge(json.loads(old) if old else None, [json.loads(p.read_text(encoding="utf-8")) for p in options.dumps])
    )
    if options.check:
        return int(new != old)
    options.table.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
