"""Asks an engine release about launches on a device, in one process start; it must not judge the answers.

    python -m tests.oracle.client 0.5.23 b200 < cases.jsonl > answers.jsonl
    python -m tests.oracle.client 0.5.23 b200 --run tools/make_catalogue.py dump --prelude device --release 0.5.23

The second form runs any script where that release can be imported and the device is reported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from recommender import library

from .folders import kept_folders

HERE = Path(__file__).resolve().parent
ENGINE = HERE / "engine"
START_SECONDS = 240.0
LAUNCH_SECONDS = 2.0

Case = Mapping[str, Any]
Answer = dict[str, Any]


class OracleError(RuntimeError):
    """The engine could not be asked; the message is one line that says what to do."""


def home() -> Path:
    """Where `engine/setup` puts the releases."""
    return Path(os.environ.get("ORACLE_HOME") or Path.home() / ".cache" / "sglang-oracle")


def is_set_up(release: str) -> bool:
    """Whether a release can be asked on this machine."""
    return (home() / "sglang" / release / "TRANSFORMERS").is_file() and (home() / "venv" / ".ready").is_file()


def device_facts(device: str) -> dict[str, Any]:
    """A device's facts as the engine's side reads them.

    Raises:
        OracleError: no profile of that name, or one that does not say enough.
    """
    found = dict(library.load().folder("profiles/gpus")).get(device)
    if not found:
        raise OracleError(f"no device {device!r} in profiles/gpus")
    facts = {"name": found[0]["names"][0], **found[0]["facts"]}
    for name in ("platform", "capability_major", "capability_minor", "memory_mib", "sms", "count"):
        if facts.get(name) is None:
            raise OracleError(f"profiles/gpus/{device}.yaml: {name} is needed to ask the engine")
    return facts


def _environment(release: str, facts: Mapping[str, Any], facts_file: Path) -> dict[str, str]:
    transformers = (home() / "sglang" / release / "TRANSFORMERS").read_text(encoding="utf-8").strip()
    search = (ENGINE, home() / "sglang" / release, home() / "transformers" / transformers)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SGLANG_", "SGL_", "HF_"))}
    return kept | {
        "ORACLE_DEVICE": str(facts_file),
        "ORACLE_MEMORY_MIB": str(facts["memory_mib"]),
        "ORACLE_CAPABILITY": f"{facts['capability_major']}.{facts['capability_minor']}",
        "ORACLE_GCN_ARCH": str(facts.get("gcn_arch") or ""),
        "PYTHONPATH": os.pathsep.join(map(str, search)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TVM_FFI_DISABLE_TORCH_C_DLPACK": "1",  # else each start on ROCm compiles an extension that nothing here uses
        "HF_HUB_OFFLINE": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "PATH": f"{ENGINE / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}",
    }


def run(
    release: str,
    device: str,
    words: Sequence[str],
    *,
    text: str = "",
    folders: Path | None = None,
    seconds: float = START_SECONDS,
    through: bool = False,
) -> str:
    """Run a script where the release can be imported and the device is reported; returns what it prints.

    With `through` its words go to our own stdout and stderr instead.

    Raises:
        OracleError: the release is not set up, or the script failed or took too long.
    """
    if not is_set_up(release):
        raise OracleError(f"sglang {release} is not set up: run tests/oracle/engine/setup {release}")
    facts = device_facts(device)
    with tempfile.TemporaryDirectory() as place:
        facts_file = Path(place, "device.json")
        facts_file.write_text(json.dumps(facts), encoding="utf-8")
        try:
            done = subprocess.run(
                [str(home() / "venv" / "bin" / "python"), "-W", "ignore", *words],
                env=_environment(release, facts, facts_file),
                cwd=folders or kept_folders(home()),
                input=text,
                stdout=None if through else subprocess.PIPE,
                stderr=None if through else subprocess.PIPE,
                encoding="utf-8",
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise OracleError(f"sglang {release} on {device}: no answer within {seconds:.0f} s") from None
    if done.returncode:
        last = ((done.stderr or "").strip().splitlines() or [f"exit {done.returncode}"])[-1]
        raise OracleError(f"sglang {release} on {device}: {words[0]} failed: {last}")
    return done.stdout or ""


def ask(
    release: str,
    device: str,
    cases: Sequence[Case],
    *,
    fields: Iterable[str] = (),
    writes: bool = False,
    folders: Path | None = None,
) -> list[Answer]:
    """The engine's answers in the order of the cases; cases of equal variables share one import of the engine.

    Raises:
        OracleError: it could not be asked, or left a case without an answer.
    """
    order = sorted(range(len(cases)), key=lambda number: json.dumps(cases[number].get("env") or {}, sort_keys=True))
    lines = [
        json.dumps({"id": number, "argv": cases[number]["argv"], "env": cases[number].get("env") or {}})
        for number in order
    ]
    environments = len({json.dumps(case.get("env") or {}, sort_keys=True) for case in cases})
    words = [str(ENGINE / "answer.py"), f"--fields={','.join(fields)}", *(["--writes"] if writes else [])]
    seconds = START_SECONDS * environments + LAUNCH_SECONDS * len(cases)
    printed = run(release, device, words, text="\n".join(lines) + "\n", folders=folders, seconds=seconds)
    answers: dict[int, Answer] = {}
    for line in printed.splitlines():
        answer = json.loads(line)
        answers[answer["id"]] = answer | {"id": cases[answer["id"]].get("id")}
    if len(answers) != len(cases):
        raise OracleError(
            f"sglang {release} on {device}: {len(cases) - len(answers)} launches were left without an answer"
        )
    return [answers[number] for number in range(len(cases))]


def main() -> int:
    """Answer the cases of stdin, or run a script."""
    words = sys.argv[1:]
    if len(words) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    release, device, *rest = words
    try:
        if rest[:1] == ["--run"]:
            script = [str(Path(rest[1]).resolve()), *rest[2:]]
            run(release, device, script, folders=Path.cwd(), seconds=3600.0, through=True)
        else:
            cases = [json.loads(line) for line in sys.stdin if line.strip()]
            for answer in ask(release, device, cases, writes="--writes" in rest):
                print(json.dumps(answer))
    except OracleError as error:
        print(f"oracle: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
