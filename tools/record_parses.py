"""Records what the engine's own argparse makes of random command lines, for the tests; it must not import our parser.

Runs where the engine can be imported, as tools/make_catalogue.py does:

    python -m tests.oracle.client 0.5.23 b200 --run tools/record_parses.py --prelude device --release 0.5.23 \
        --seed 1 --count 4000 > tests/data/parse-0.5.23.jsonl.gz

One JSON object a line; the first tells the release and the Python that argparse came with.
    {"argv": [...], "asked": {field: value}}       it parses; only what the command line says
    {"argv": [...], "error": "..."}                it stops; a text that a type of the engine words itself ends in "..."
    {"argv": [...], "crash": "AssertionError"}     it leaves with an exception
    {"config": "...", "argv": [...], "words": [...]}   what the launcher makes of a config file (argv names c.yaml)
Choices that the engine keeps in a set are sorted first: their order in a message is random there.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import importlib
import io
import json
import platform
import random
import re
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

STANDARD = re.compile(
    r"unrecognized arguments: |ambiguous option: |the following arguments are required: |"
    r"argument \S+: (?:invalid choice: |invalid \w+ value: |expected |ignored explicit argument )"
)
MERGERS = ("sglang.srt.utils.server_args_config_parser", "sglang.srt.server_args_config_parser")  # newest place first
WORDS = ["x", "8", "-1", "0", "3.5", "-0.5", "-1e5", "1k", "2Ki", "1.5M", "1.5Ki", "true", "None", "", " ", "a b", "-",
         "=", "--", "fa3", "triton", "auto", "EAGLE", "-x", "-7x", "--zzz", "--tp_size", "NaN",
         "1_0", "{}", "[]", "٣", "1" * 30]  # fmt: skip
JSONS = ['{"a": 1}', '{"a": [1, 2, {"b": null}]}', "[1, 2]", '["x"]', "{", "[NaN]", "[18446744073709551616]", '"text"',
         "null",
         '{"decode": {"backend": "full", "bs": [1, 2]}}', '{"decode": {"backend": "tc_piecewise"}}',
         '{"decode": {"nope": 1}}',
         '{"prefill": 3}', '{"verify": {}}', '["\\ud800"]', '{"lora_name": "a", "lora_path": "b"}',
         '{"lora_name": "a"}',
         "{'a': 1}", "[1.0e400]", "[-9223372036854775809]"]  # fmt: skip
OLD = ["--enable-ep-moe", "--enable-flashinfer-mla", "--nsa-prefill-backend", "--mamba-scheduler-strategy",
       "--cuda-graph-max-bs", "--cuda-graph-bs", "--speculative-draft", "--disable-mla", "--tp_size",
       "--enable-spec-v2", "--stream-output"]  # fmt: skip


def value_for(rng: random.Random, action: argparse.Action) -> str:
    kind = rng.random()
    name = getattr(action.type, "__name__", "")
    if action.choices and kind < 0.7:
        return str(rng.choice(list(action.choices)))
    if kind < 0.85:
        if name == "int":
            return str(rng.choice([0, 1, 2, 3, 4, 5, 8, 16, 64, 128, -1, 30000]))
        if name == "float":
            return rng.choice(["0.8", "1", ".5", "-0.5", "1e-3", "inf"])
        if name == "human_readable_int":
            return rng.choice(["8k", "16384", "1.5M", "2Ki", "1.5Ki", "1K", "-1", " 4k "])
        if name in ("loads", "json_list_type", "parse_cuda_graph_config_arg") or "lora" in action.dest:
            return rng.choice(JSONS)
        return rng.choice(["path/to", "model", "EAGLE", "some text"])
    return rng.choice(WORDS + JSONS)


def spelling(rng: random.Random, action: argparse.Action) -> str:
    name = str(rng.choice(action.option_strings))
    if rng.random() < 0.15 and len(name) > 6:
        return name[: rng.randint(3 if rng.random() < 0.2 else len(name) // 2 + 1, len(name) - 1)]
    return name


def piece(rng: random.Random, actions: list[argparse.Action]) -> list[str]:
    if rng.random() < 0.03:
        return [rng.choice(OLD), *([rng.choice(WORDS)] if rng.random() < 0.5 else [])]
    if rng.random() < 0.02:
        return [rng.choice(WORDS)]
    action = rng.choice(actions)
    name = spelling(rng, action)
    if action.nargs == 0:
        return [f"{name}=1"] if rng.random() < 0.04 else [name]
    if action.nargs in ("+", "*", "?"):
        count = rng.choice([0, 1, 1, 2, 3]) if action.nargs != "?" else rng.choice([0, 1])
    else:
        count = 0 if rng.random() < 0.04 else 1
    values = [value_for(rng, action) for _ in range(count)]
    if values and rng.random() < 0.25:
        return [f"{name}={values[0]}", *values[1:]]
    return [name, *values]


def command(rng: random.Random, actions: list[argparse.Action], common: list[argparse.Action]) -> list[str]:
    words: list[str] = [] if rng.random() < 0.04 else [rng.choice(["--model-path", "--model"]), "some/model"]
    for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4, 6])):
        words += piece(rng, actions if rng.random() < 0.8 else common)
    if len(words) > 3 and rng.random() < 0.1:
        words += words[2:4]
    return words


def parse(parser: argparse.ArgumentParser, argv: list[str]) -> dict[str, Any]:
    stderr = io.StringIO()
    try:
        with contextlib.redirect_stderr(stderr), contextlib.redirect_stdout(io.StringIO()):
            return {"asked": vars(parser.parse_args(argv))}
    except SystemExit as stop:
        if stop.code == 0:
            return {"error": "help"}
        text = stderr.getvalue().partition(": error: ")[2].rstrip("\n")
        return {
            "error": text if STANDARD.match(text) else re.sub(r"^(argument \S+: ).*", r"\1...", text, flags=re.DOTALL)
        }
    except (Exception, RecursionError) as error:
        return {"crash": type(error).__name__}


def module_of(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def config_text(rng: random.Random, actions: list[argparse.Action]) -> str:
    content: dict[Any, Any] = {}
    for _ in range(rng.choice([0, 1, 2, 3, 4])):
        action = rng.choice(actions)
        key = action.dest if rng.random() < 0.1 else rng.choice(action.option_strings).lstrip("-")
        key = key.replace("-", "_") if rng.random() < 0.15 else key
        content[key] = (
            rng.random() < 0.7
            if action.nargs == 0 or rng.random() < 0.05
            else rng.choice([1, -2, 0.5, "x", None, [1, 2], [], {"a": 1}, "off", True, value_for(rng, action)])
        )
    if rng.random() < 0.03:
        return rng.choice(["", "- a\n", "a: [", "7: x\n", "text\n"])
    return json.dumps(content)


def merge(parser: argparse.ArgumentParser, text: str, argv: list[str], folder: Path) -> dict[str, Any]:
    module = next(found for found in map(module_of, MERGERS) if found)
    for name in ("c.yaml", "c.txt"):
        (folder / name).write_text(text, encoding="utf-8")
    placed = [str(folder / word) if word in ("c.yaml", "c.txt", "none.yaml") else word for word in argv]
    try:
        return {"words": module.ConfigArgumentMerger(parser).merge_config_with_args(placed)}
    except Exception as error:
        return {"crash": type(error).__name__}


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--release", required=True)
    options.add_argument("--prelude", action="append", default=[])
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--count", type=int, default=4000)
    options.add_argument("--configs", type=int, default=300)
    chosen = options.parse_args()
    for module in chosen.prelude:
        importlib.import_module(module)
    server_args = importlib.import_module("sglang.srt.server_args")
    whole, bare = (argparse.ArgumentParser(prog="sglang serve") for _ in range(2))
    for parser in (whole, bare):
        server_args.ServerArgs.add_cli_args(parser)
        for action in parser._actions:
            if isinstance(action.choices, (set, frozenset)):
                action.choices = sorted(action.choices)
    for action in bare._actions:
        action.default = argparse.SUPPRESS
    defaults = vars(whole.parse_args(["--model-path", "x"]))
    actions = [action for action in whole._actions if action.dest not in ("help", "config")]
    common = [action for action in actions if action.dest.startswith(("speculative_", "cuda_graph_", "lora_", "tp_"))]
    common += [action for action in actions if action.nargs in ("+", "*", "?")] + [whole._actions[0]]
    rng = random.Random(chosen.seed)
    lines: list[dict[str, Any]] = [
        {"release": chosen.release, "python": platform.python_version(), "seed": chosen.seed}
    ]
    for _ in range(chosen.count):
        argv = command(rng, actions, common)
        found = parse(bare, argv)
        if "asked" in found and repr(defaults | found["asked"]) != repr(defaults | vars(whole.parse_args(argv))):
            raise SystemExit(f"defaults change what is asked: {argv}")
        lines.append({"argv": argv, **found})
    with tempfile.TemporaryDirectory() as name:
        for _ in range(chosen.configs):
            text = config_text(rng, actions)
            argv = command(rng, actions, common)
            argv[2:2] = rng.choice([["--config", "c.yaml"]] * 12 + [["--config", "c.txt"], ["--config", "none.yaml"]])
            argv += rng.choice([[]] * 20 + [["--config"], ["--config", "c.yaml"]])
            lines.append({"config": text, "argv": argv, **merge(whole, text, argv, Path(name))})
    raw = "".join(json.dumps(line) + "\n" for line in lines).encode()
    sys.stdout.buffer.write(gzip.compress(raw, mtime=0))


if __name__ == "__main__":
    main()
