"""Ends a command's --help with the examples of help.yaml; it must not cost anything unless help is shown."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand


def examples(command: str) -> list[str]:
    """The example command lines of a command ("rules list")."""
    from recommender.library import load

    document = load().one("constraints/sglang/help.yaml")
    return [str(line) for line in document.get(command, ())]


class LazyEpilogCommand(TyperCommand):
    """A command whose epilog is read from help.yaml when its help is asked for."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help, then the examples, each on a line of its own, ready to paste."""
        super().format_help(ctx, formatter)
        path = " ".join(ctx.command_path.split()[1:])
        lines = examples(path)
        if lines:
            from typer import echo

            echo("Examples:")
            for line in lines:
                echo(f"  {line}")
            echo()
