"""Prints the speed figures as ratios in one run: cold commands against a bare typer program, and launches a second in a batch.

It must not judge: the figures are for people. Run it with the interpreter of an environment where the wheel is installed:

    python benchmarks/speed.py [--runs 15]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

NULL = [sys.executable, str(Path(__file__).with_name("null_app.py"))]
TOOL = [str(Path(sys.executable).with_name("recommender"))]
CHECK = [
    "check",
    "--gpu",
    "b200",
    "--",
    "python",
    "-m",
    "sglang.launch_server",
    "--model-path",
    "meta-llama/Llama-3.1-8B-Instruct",
    "--speculative-algorithm",
    "EAGLE3",
    "--speculative-draft-model-path",
    "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B",
    "--speculative-num-steps",
    "3",
    "--speculative-eagle-topk",
    "1",
    "--speculative-num-draft-tokens",
    "4",
]
BROKEN = [*CHECK[:-3], "4", "--speculative-num-draft-tokens", "8", "--attention-backend", "trtllm_mha"]
RECOMMEND = ["recommend", "--gpu", "b200", "--gpus", "8", "--model", "deepseek-ai/DeepSeek-V3"]
PAIRS = (
    ("check, valid", [*TOOL, *CHECK], [*NULL, "check"], 1.5),
    ("check, refused, with cures", [*TOOL, *BROKEN], [*NULL, "check"], 1.5),
    ("recommend", [*TOOL, *RECOMMEND], [*NULL, "recommend"], 2.5),
)


def seconds(command: Sequence[str], environment: dict[str, str]) -> tuple[float, float]:
    """(wall, processor) seconds of one run of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ratios(command: Sequence[str], base: Sequence[str], runs: int, environment: dict[str, str]) -> tuple[float, float]:
    """The median ratios, wall and processor time, of a command to a base that runs in turn with it."""
    pairs = []
    for number in range(runs + 1):
        one, two = seconds(command, environment), seconds(base, environment)
        if number:
            pairs.append((one[0] / two[0], one[1] / two[1]))
    return statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)


def batch_rate(environment: dict[str, str]) -> float:
    """Launches a second of `check --cases` on recorded launches, without the start."""
    cases = Path(__file__).with_name("cases.jsonl")
    command = [*TOOL, "check", "--cases"]
    with tempfile.TemporaryDirectory() as folder:
        once, many = Path(folder, "once.jsonl"), Path(folder, "many.jsonl")
        lines = cases.read_text(encoding="utf-8")
        repeats = 12
        once.write_text(lines, encoding="utf-8")
        many.write_text(lines * (repeats + 1), encoding="utf-8")
        seconds([*command, str(once)], environment)
        short = min(seconds([*command, str(once)], environment)[1] for _ in range(3))
        long = min(seconds([*command, str(many)], environment)[1] for _ in range(3))
    return len(lines.splitlines()) * repeats / (long - short)


def main() -> None:
    """Print every figure beside its bound."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=15)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as empty:
        os.chmod(empty, 0o555)
        environment = {**os.environ, "XDG_CACHE_HOME": empty}
        print("cold start, median of pairs, empty read-only cache folder        wall  processor  bound")
        for name, command, base, bound in PAIRS:
            wall, processor = ratios(command, base, arguments.runs, environment)
            print(f"  {name:<60} {wall:6.2f} {processor:10.2f} {bound:6.1f}")
        print(f"check --cases: {batch_rate(environment):.0f} launches a second on one core (bound 2000)")


if __name__ == "__main__":
    main()
