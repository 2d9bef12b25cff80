"""Asks the engine about every probe and records the outcomes; it must not judge them.

python -m tests.oracle.probes 0.5.23
"""

from __future__ import annotations

import json
import sys

from tests.oracle.client import OracleError

from . import ask, probes_of, recorded_file


def main() -> int:
    """Record, and print one line a launch."""
    release = sys.argv[1]
    try:
        outcomes = ask(release, probes_of(release))
    except OracleError as error:
        print(f"oracle: {error}", file=sys.stderr)
        return 2
    text = json.dumps({"sglang": release, "outcomes": outcomes}, indent=1)
    recorded_file(release).write_text(text + "\n", encoding="utf-8")
    for name, said in outcomes.items():
        print(f"{name}: {'passes' if said['ok'] else said['type'] + ': ' + said['message'][:100]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
