"""Makes the rich consoles and the few shapes all renderers share; it must not know a command."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDTH = 80


def console(stderr: bool = False) -> Console:
    """A console that never draws wider than 80 columns where no terminal says otherwise, and never wraps words apart."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    made = Console(file=stream, highlight=False, soft_wrap=False, emoji=False, markup=False)
    if not made.is_terminal:
        made = Console(file=stream, highlight=False, width=WIDTH, emoji=False, markup=False, color_system=None)
    return made


def table(columns: Sequence[tuple[str, str]], title: str | None = None) -> Table:
    """A plain table; each column is (heading, justify)."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False, show_edge=False)
    for heading, justify in columns:
        made.add_column(heading, justify=justify, overflow="fold")  # type: ignore[arg-type]
    return made


def plain(text: str) -> str:
    """Text of a user's or a file's, without control characters."""
    return "".join(character if character.isprintable() or character == "\n" else "?" for character in text)


def indented(text: str, columns: int = 4) -> str:
    """A paragraph some columns in, wrapped between words."""
    import textwrap

    return textwrap.fill(
        plain(text),
        width=WIDTH - 4,
        initial_indent=" " * columns,
        subsequent_indent=" " * columns,
        break_on_hyphens=False,
        break_long_words=False,
    )


def stacked(name: str, words: str, width: int = 60) -> str:
    """A table's cell of a name, and below it a sentence two columns in."""
    import textwrap

    margin = "  "
    below = textwrap.fill(
        plain(words), width=width, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False
    )
    return f"{name}\n{below}"
