"""Asks the engine about the probes and records the outcomes; it must not judge them.

python -m tests.oracle.probes 0.5.23                  # or several releases, or `all`
python -m tests.oracle.probes 0.5.23 --only WORD...   # probes with the word in their name, rule or check; the others stay
"""

from __future__ import annotations

import argparse
import sys

from tests.oracle.client import OracleError
from tests.oracle.records import RecordError

from . import PROBES
from .outcomes import RELEASES, ask, record, recorded


def main() -> int:
    """Record, and print one line a launch."""
    options = argparse.ArgumentParser(prog="python -m tests.oracle.probes")
    options.add_argument("releases", nargs="+", choices=(*RELEASES, "all"), metavar="RELEASE")
    options.add_argument("--only", nargs="+", default=(), metavar="WORD")
    given = options.parse_args()
    probes = [
        probe
        for probe in PROBES
        if not given.only or any(word in (probe.name + " " + probe.rule + " " + probe.check) for word in given.only)
    ]
    for release in RELEASES if "all" in given.releases else given.releases:
        try:
            outcomes = ask(release, probes)
            record(release, (recorded(release) if given.only else {}) | outcomes)
        except (OracleError, RecordError) as error:
            print(f"oracle: {error}", file=sys.stderr)
            return 2
        print(f"sglang {release}")
        for name, said in outcomes.items():
            how = "stopped" if said["ok"] is False else said.get("stage", "passes")
            print(f"  {name}: {how}" + (f" {said['type']}: {said['message'][:100]}" if "type" in said else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
