"""The typer application: options, exit codes and error lines; it must not judge, solve or word a finding."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from recommender.errors import RecommenderError
from recommender.render.names import CHECK_FORMATS, LIST_FORMATS, RECOMMEND_FORMATS, TEXT_FORMATS

MISUSE = 2
_Function = TypeVar("_Function", bound=Callable[..., None])

app = typer.Typer(
    name="recommender",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    help="Which speculative-decoding settings of SGLang are valid on your hardware, which pay, and how to cure a launch.",
)
rules_app = typer.Typer(no_args_is_help=True, help="List the laws of the engine, show one, or compare releases.")
profiles_app = typer.Typer(no_args_is_help=True, help="List the devices and models that are known, or show one.")
app.add_typer(rules_app, name="rules")
app.add_typer(profiles_app, name="profiles")


def _complete(kind: str) -> Any:
    def complete(incomplete: str) -> list[str]:
        from recommender.commands.completion import ids

        return [name for name in ids(kind) if name.startswith(incomplete)]

    return complete


GpuOption = Annotated[
    str | None,
    typer.Option(
        "--gpu",
        metavar="NAME",
        help="Device: an id, the name nvidia-smi prints, or 8xb200. Default: detected.",
        autocompletion=_complete("gpus"),
    ),
]
SglangOption = Annotated[
    str | None,
    typer.Option(
        "--sglang",
        metavar="VERSION",
        help="Engine release. Default: the one installed here, else the newest known.",
        autocompletion=_complete("releases"),
    ),
]
GpusOption = Annotated[
    int | None, typer.Option("--gpus", min=1, metavar="N", help="How many devices the launch may use.")
]
EnvOption = Annotated[
    list[str] | None,
    typer.Option("--env", metavar="NAME=VALUE", help="An environment variable of the launch (repeatable)."),
]
ImageOption = Annotated[
    str | None,
    typer.Option(
        "--image",
        metavar="ID",
        help="Container image whose variables count; none: a bare machine. Default: what users of the device run.",
        autocompletion=_complete("images"),
    ),
]


def _command(name: str, target: typer.Typer = app) -> Callable[[_Function], _Function]:
    from recommender.commands.helptext import LazyEpilogCommand

    return target.command(name, cls=LazyEpilogCommand)


@app.callback(invoke_without_command=True)
def _main(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the tool, the rulebook digest and the releases.")
    ] = False,
    format_: Annotated[str, typer.Option("--format", hidden=True)] = "text",
) -> None:
    if version:
        from recommender.commands.about import print_version

        print_version(format_)
        raise typer.Exit(0)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(0)


@_command("check")
def check(
    context: typer.Context,
    gpu: GpuOption = None,
    gpus: GpusOption = None,
    sglang: SglangOption = None,
    env: EnvOption = None,
    image: ImageOption = None,
    cases: Annotated[
        Path | None, typer.Option("--cases", metavar="FILE", help="JSON lines of launches; - reads stdin.")
    ] = None,
    root: Annotated[
        Path | None, typer.Option("--root", metavar="DIR", help="Folder that paths in --cases start from.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="What is unknown or degraded also fails (exit 1).")] = False,
    format_: Annotated[str, typer.Option("--format", help=" | ".join(CHECK_FORMATS), metavar="FORMAT")] = "table",
) -> None:
    """Judge a launch command before it runs: what it resolves to, which laws it breaks, and the smallest cure.

    Everything after -- is the command. Exit 0: no law refuses it; 1: a law does; 2: misuse.
    """
    from recommender.commands.check import run

    raise typer.Exit(
        run(
            command=context.obj,
            gpu=gpu,
            gpus=gpus,
            sglang=sglang,
            env=env or [],
            image=image,
            cases=cases,
            root=root,
            strict=strict,
            format_=format_,
        )
    )


@_command("recommend")
def recommend(
    context: typer.Context,
    gpu: GpuOption = None,
    gpus: GpusOption = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="Profile id, Hugging Face id, or path to a config.json.",
            autocompletion=_complete("models"),
        ),
    ] = None,
    draft: Annotated[
        str | None,
        typer.Option(
            "--draft", metavar="MODEL", help="Draft model, named as --model.", autocompletion=_complete("drafts")
        ),
    ] = None,
    sglang: SglangOption = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Pin a setting (repeatable).")
    ] = None,
    free: Annotated[
        list[str] | None,
        typer.Option("--free", metavar="NAME", help="Search a setting that the command pins (repeatable)."),
    ] = None,
    env: EnvOption = None,
    image: ImageOption = None,
    concurrency: Annotated[
        int, typer.Option("--concurrency", min=1, metavar="N", help="Requests running at once.")
    ] = 8,
    top: Annotated[int, typer.Option("--top", min=0, metavar="N", help="Rows to show; 0 shows all.")] = 5,
    strict: Annotated[bool, typer.Option("--strict", help="Leave out what the engine would run degraded.")] = False,
    allow_unknown: Annotated[
        bool, typer.Option("--allow-unknown", help="Let --format flags print a row that cannot be fully judged.")
    ] = False,
    format_: Annotated[str, typer.Option("--format", help=" | ".join(RECOMMEND_FORMATS), metavar="FORMAT")] = "table",
) -> None:
    """Find the valid speculative settings for a device and a model, best first, as launch flags.

    Everything after -- is your command: all that it says is pinned. Exit 0: found; 1: no valid answer; 2: misuse.
    """
    from recommender.commands.recommend import run

    raise typer.Exit(
        run(
            command=context.obj,
            gpu=gpu,
            gpus=gpus,
            model=model,
            draft=draft,
            sglang=sglang,
            pins=set_ or [],
            free=free or [],
            env=env or [],
            image=image,
            concurrency=concurrency,
            top=top,
            strict=strict,
            allow_unknown=allow_unknown,
            format_=format_,
        )
    )


@_command("explain")
def explain(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="RULE|FILE|TEXT",
            help="A rule id, a log file, or an error message; - reads stdin.",
            autocompletion=_complete("rules"),
        ),
    ],
    sglang: SglangOption = None,
    format_: Annotated[str, typer.Option("--format", help=" | ".join(TEXT_FORMATS), metavar="FORMAT")] = "text",
) -> None:
    """Find the law behind an error message or a log: when it bites, what cures it, in which releases. Exit 1: none."""
    from recommender.commands.explain import run

    raise typer.Exit(run(subject=subject, sglang=sglang, format_=format_))


@_command("list", rules_app)
def rules_list(
    sglang: SglangOption = None,
    topic: Annotated[
        str | None,
        typer.Option("--topic", metavar="TOPIC", help="Only this topic.", autocompletion=_complete("topics")),
    ] = None,
    format_: Annotated[str, typer.Option("--format", help=" | ".join(LIST_FORMATS), metavar="FORMAT")] = "table",
) -> None:
    """List the laws by topic."""
    from recommender.commands.rules import run_list

    raise typer.Exit(run_list(sglang=sglang, topic=topic, format_=format_))


@_command("show", rules_app)
def rules_show(
    rule: Annotated[str, typer.Argument(metavar="RULE", autocompletion=_complete("rules"))],
    format_: Annotated[str, typer.Option("--format", help=" | ".join(TEXT_FORMATS), metavar="FORMAT")] = "text",
) -> None:
    """Show one law with its condition, cures, sources and examples."""
    from recommender.commands.rules import run_show

    raise typer.Exit(run_show(rule=rule, format_=format_))


@_command("diff", rules_app)
def rules_diff(
    context: typer.Context,
    old: Annotated[str, typer.Argument(metavar="OLD", autocompletion=_complete("releases"))],
    new: Annotated[str, typer.Argument(metavar="NEW", autocompletion=_complete("releases"))],
    gpu: GpuOption = None,
    gpus: GpusOption = None,
    env: EnvOption = None,
    image: ImageOption = None,
    format_: Annotated[str, typer.Option("--format", help=" | ".join(LIST_FORMATS), metavar="FORMAT")] = "table",
) -> None:
    """Compare two releases: laws that appeared, ended or changed, flags that came, went or were renamed.

    Everything after -- is a launch command: then only what touches it is shown, and what becomes of it.
    """
    from recommender.commands.rules import run_diff

    raise typer.Exit(
        run_diff(
            old=old,
            new=new,
            command=context.obj,
            gpu=gpu,
            gpus=gpus,
            env=env or [],
            image=image,
            format_=format_,
        )
    )


@_command("list", profiles_app)
def profiles_list(
    kind: Annotated[str | None, typer.Argument(metavar="[gpus|models|drafts]")] = None,
    format_: Annotated[str, typer.Option("--format", help=" | ".join(LIST_FORMATS), metavar="FORMAT")] = "table",
) -> None:
    """List the devices, models and drafts that have a profile."""
    from recommender.commands.profiles import run_list

    raise typer.Exit(run_list(kind=kind, format_=format_))


@_command("show", profiles_app)
def profiles_show(
    profile: Annotated[str, typer.Argument(metavar="NAME|PATH", autocompletion=_complete("profiles"))],
    format_: Annotated[str, typer.Option("--format", help=" | ".join(TEXT_FORMATS), metavar="FORMAT")] = "text",
) -> None:
    """Show the facts of a device or of a checkpoint (a profile, or a config.json of yours)."""
    from recommender.commands.profiles import run_show

    raise typer.Exit(run_show(profile=profile, format_=format_))


def split_at_command(words: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """(the tool's own words, the user's command): everything after the first `--` is theirs."""
    if "--" not in words:
        return list(words), None
    place = list(words).index("--")
    return list(words[:place]), list(words[place + 1 :])


def run(words: Sequence[str]) -> int:
    """Run one command line; returns the exit code. Every error is one line on stderr, never a traceback."""
    own, command = split_at_command(words)
    try:
        code = app(args=own, obj=command, prog_name="recommender", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except RecommenderError as error:
        return _complain(str(error))
    except (typer.Abort, KeyboardInterrupt):
        return _complain("stopped")
    except typer.Exit as stop:
        return int(stop.exit_code)
    except BrokenPipeError:
        return _reader_left()
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # rich's way to say that nobody reads any more
            return _reader_left()
        raise
    except OSError as error:
        return _complain(f"{error.filename or 'cannot write the answer'}: {error.strerror}")
    except Exception as error:
        usage = getattr(error, "format_message", None)
        if usage is not None:
            hint = "" if "try" in usage().lower() else "; see recommender --help"
            return _complain(f"{usage()}{hint}", int(getattr(error, "exit_code", MISUSE)))
        if os.environ.get("RECOMMENDER_DEBUG"):
            raise
        return _complain(f"internal error, please report it: {type(error).__name__}: {error}")


def _reader_left() -> int:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _complain(message: str, code: int = MISUSE) -> int:
    text = " ".join(message.split())
    try:
        sys.stderr.write(f"recommender: {text}\n")
    except (OSError, UnicodeEncodeError):
        sys.stderr.write("recommender: " + text.encode("ascii", "backslashreplace").decode() + "\n")
    return code
