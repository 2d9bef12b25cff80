"""Ends a command's --help with the examples of help.yaml; it must not cost anything unless help is shown."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

HELP = "constraints/sglang/help.yaml"


def examples(command: str) -> dict[str, list[str]]:
    """The example command lines of a command ("rules list"), by job: alone, then with options that change its job."""
    from recommender.library import load

    document = load().one(HELP)
    return {
        str(job): [str(line) for line in lines]
        for job, lines in document.items()
        if job == command or str(job).startswith(f"{command} -")
    }


def ending(command: str) -> str:
    """What stands at the end of a command's help: its examples, indented, ready to paste."""
    parts = []
    for job, lines in examples(command).items():
        option = job.removeprefix(command).strip()
        parts.append(f"Examples with {option}:" if option else "Examples:")
        parts += ["\n".join(f"  {row}" for row in line.splitlines()) for line in lines]
    return "\n".join(parts)


def _path(context: Any) -> str:
    """The words of a command without the program's own name."""
    words: list[str] = []
    while context is not None and context.parent is not None:
        words.append(str(context.info_name))
        context = context.parent
    return " ".join(reversed(words))


class LazyEpilogCommand(TyperCommand):
    """A command whose epilog is read from help.yaml when its help is asked for."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help, then the examples."""
        super().format_help(ctx, formatter)
        text = ending(_path(ctx))
        if text:
            from typer import echo

            echo(text)
