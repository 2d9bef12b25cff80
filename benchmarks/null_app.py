"""The floor of the speed figures: a typer program with the commands and options of the tool that prints a one-row rich table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
rules_app = typer.Typer(no_args_is_help=True)
profiles_app = typer.Typer(no_args_is_help=True)
app.add_typer(rules_app, name="rules")
app.add_typer(profiles_app, name="profiles")


def show(name: str) -> None:
    """Print one row."""
    from rich.console import Console
    from rich.table import Table

    table = Table("command", "answer")
    table.add_row(name, "nothing")
    Console().print(table)


@app.command()
def check(
    gpu: Annotated[str | None, typer.Option()] = None,
    gpus: Annotated[int | None, typer.Option()] = None,
    sglang: Annotated[str | None, typer.Option()] = None,
    env: Annotated[list[str] | None, typer.Option()] = None,
    cases: Annotated[Path | None, typer.Option()] = None,
    root: Annotated[Path | None, typer.Option()] = None,
    strict: Annotated[bool, typer.Option()] = False,
    format_: Annotated[str, typer.Option("--format")] = "table",
) -> None:
    """Print one row."""
    show("check")


@app.command()
def recommend(
    gpu: Annotated[str | None, typer.Option()] = None,
    gpus: Annotated[int | None, typer.Option()] = None,
    model: Annotated[str | None, typer.Option()] = None,
    draft: Annotated[str | None, typer.Option()] = None,
    sglang: Annotated[str | None, typer.Option()] = None,
    set_: Annotated[list[str] | None, typer.Option("--set")] = None,
    free: Annotated[list[str] | None, typer.Option()] = None,
    env: Annotated[list[str] | None, typer.Option()] = None,
    concurrency: Annotated[int, typer.Option()] = 8,
    top: Annotated[int, typer.Option()] = 5,
    strict: Annotated[bool, typer.Option()] = False,
    allow_unknown: Annotated[bool, typer.Option("--allow-unknown")] = False,
    format_: Annotated[str, typer.Option("--format")] = "table",
) -> None:
    """Print one row."""
    show("recommend")


@app.command()
def explain(
    subject: str,
    sglang: Annotated[str | None, typer.Option()] = None,
    format_: Annotated[str, typer.Option("--format")] = "text",
) -> None:
    """Print one row."""
    show("explain")


@rules_app.command("list")
def rules_list(
    sglang: Annotated[str | None, typer.Option()] = None,
    topic: Annotated[str | None, typer.Option()] = None,
    format_: Annotated[str, typer.Option("--format")] = "table",
) -> None:
    """Print one row."""
    show("rules list")


@rules_app.command("show")
def rules_show(rule: str, format_: Annotated[str, typer.Option("--format")] = "text") -> None:
    """Print one row."""
    show("rules show")


@profiles_app.command("list")
def profiles_list(kind: str | None = None, format_: Annotated[str, typer.Option("--format")] = "table") -> None:
    """Print one row."""
    show("profiles list")


@profiles_app.command("show")
def profiles_show(profile: str, format_: Annotated[str, typer.Option("--format")] = "text") -> None:
    """Print one row."""
    show("profiles show")


if __name__ == "__main__":
    app()
