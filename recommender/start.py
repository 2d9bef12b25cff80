"""The console script: it starts the command line and must not do anything else.

A run is short, so collecting garbage would cost more than the garbage: the collector is off before anything large is imported,
and the process leaves without taking its objects apart one by one, which a cold `check` would pay for.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and leave with its exit code."""
    gc.disable()
    from recommender.cli import run

    leave(run(sys.argv[1:]))


def leave(code: int) -> NoReturn:
    """End the process once all that was printed is out; 2 when it cannot be written (a reader that left early is no error)."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except BrokenPipeError:
            pass
        except OSError as error:
            if stream is sys.stdout and code != 2:
                os.write(2, f"recommender: cannot write the answer: {error.strerror}\n".encode())
            code = 2
    os._exit(code)
