"""Shows how far a long job is, on stderr and only at a terminal; it must not change what is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO


def over_lines(stream: IO[bytes], size: int, title: str) -> Iterator[bytes]:
    """The lines of a file of `size` bytes, with a bar once the work has taken a second."""
    from time import monotonic

    from rich.console import Console
    from rich.progress import Progress

    start = monotonic()
    bar = Progress(console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=size)
    shown = False
    try:
        for line in stream:
            if not shown and monotonic() - start > 1:
                bar.start()
                shown = True
            yield line
            if shown:
                bar.update(task, completed=stream.tell())
            else:
                bar.advance(task, len(line))
    finally:
        if shown:
            bar.stop()
