"""The console script: it starts the command line and must not do anything else.

A run is short, so collecting garbage would cost more than the garbage; the collector is off before anything large is imported.
"""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Run the command line and leave with its exit code."""
    gc.disable()
    from recommender.cli import run

    sys.exit(run(sys.argv[1:]))
