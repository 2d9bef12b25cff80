"""The recommend command: reads what the user pinned, asks the adviser, hands the answer to a renderer; it must not judge."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

from recommender.advise import Advice, Adviser, Ask, Row
from recommender.commands.inputs import (
    device_of,
    engines_part,
    environment_of,
    known_format,
    release_for,
    split_words,
    variables,
)
from recommender.errors import UsageError
from recommender.forms.command import Command
from recommender.forms.emit import config_mapping, flags_for, flags_text, patch_for, rewrite
from recommender.forms.names import field_of, read_value, split_pair
from recommender.profiles import Model, find_model
from recommender.render.names import RECOMMEND_FORMATS
from recommender.rulebook import load_rulebook
from recommender.session import Launch, Session, open_session
from recommender.terms import UNKNOWN, ImageUse, Unknown, Value
from recommender.variables import variable_text


def run(
    *,
    command: Sequence[str] | None,
    gpu: str | None,
    gpus: int | None,
    model: str | None,
    draft: str | None,
    sglang: str | None,
    pins: Sequence[str],
    free: Sequence[str],
    env: Sequence[str],
    image: str | None,
    concurrency: int,
    top: int,
    strict: bool,
    allow_unknown: bool,
    format_: str,
) -> int:
    """Run `recommend`; returns the exit code."""
    known_format(format_, RECOMMEND_FORMATS)
    book = load_rulebook()
    session = open_session(book, release_for(book, sglang, command))
    split = split_words(session, command) if command is not None else Command()
    device = device_of(gpu, gpus, required=True)
    assert device is not None
    told, unread = environment_of(split, variables(env), session.root)
    use = session.image(image, device, split.around, {**told, **{pair.partition("=")[0]: "" for pair in pins}})
    launch = _read(session, split, told, use) if command is not None else session.read((), told, use)
    for message in (*(item.message for item in launch.misread), *(f"not read: {name}" for name in unread)):
        sys.stderr.write(f"recommender: {message}\n")
    given = _pins(session, launch, model, draft, pins)
    if session.roles["model"] not in given:
        raise UsageError(
            "no model: give --model (a profile id, a Hugging Face id or a config.json), or a command after --"
        )
    aliases = session.book.library.one("constraints/sglang/search.yaml")["aliases"]
    freed = frozenset(field_of(name, session.edition.command_line, aliases) for name in free)
    if session.model(given[session.roles["model"]]) is UNKNOWN:
        _refuse_model(session, given[session.roles["model"]])
    devices = gpus or device.count or _ranks(session, given) or 1
    adviser = Adviser(
        session,
        Ask(
            gpu=replace(device, count=devices),
            gpus=devices,
            pins=given,
            freed=freed,
            concurrency=concurrency,
            strict=strict,
            image=use,
        ),
    )
    advice = adviser.advise(max(top, 1) if format_ not in ("table", "json") else top)
    return _print(advice, adviser, split, launch, format_, allow_unknown)


def _read(session: Session, split: Command, env: Mapping[str, str | Unknown], image: ImageUse | None) -> Launch:
    launch = engines_part(session.read(split.argv, env, image), split)
    role = session.roles["model"]
    for refusal in launch.refusals:
        if refusal.field != role or role in launch.asked:
            raise UsageError(f"the command does not parse: {refusal.told}; recommender check -- COMMAND tells more")
    return launch


def _refuse_model(session: Session, reference: Value) -> None:
    """Say that nothing is known of a model, and what to do: without its facts nothing can be recommended.

    Raises:
        UsageError: always.
    """
    if not isinstance(reference, str):
        raise UsageError("the model's name stands in a shell variable: give --model")
    try:
        find_model(reference, session.root)
    except UsageError as error:
        raise UsageError(f"{error}; give the path of its config.json") from None


def _pins(
    session: Session, launch: Launch, model: str | None, draft: str | None, pairs: Sequence[str]
) -> dict[str, Value]:
    given = dict(launch.asked)
    for role, reference in (("model", model), ("draft", draft)):
        if reference is not None:
            given[session.roles[role]] = reference
    line = session.edition.command_line
    aliases = session.book.library.one("constraints/sglang/search.yaml")["aliases"]
    known = session.variables
    for pair in pairs:
        name, text = split_pair(pair)
        field = field_of(name, line, aliases, known)
        if field in known:
            reading = session.environment.read({field: text})
            if not reading.values:
                raise UsageError(f"--set {reading.misread[0].message}")
            given |= reading.values
            continue
        value = read_value(line.fields[field], text)
        if value is None:
            given.pop(field, None)
        else:
            given[field] = value
    return given


def _ranks(session: Session, given: Mapping[str, Value]) -> int | None:
    value = given.get(session.roles["ranks"])
    return value if isinstance(value, int) else None


def public_name(session: Session, reference: Value) -> Value:
    """What a launch command calls a checkpoint: the Hugging Face id of a profile, the folder of a config.json."""
    model = session.model(reference)
    if not isinstance(model, Model):
        return reference
    if model.origin == "profile":
        return reference if reference in model.hf else (model.hf[0] if model.hf else reference)
    return str(model.path.parent) if model.path is not None and str(reference).endswith(".json") else reference


def settings_of(session: Session, row: Row) -> dict[str, Value]:
    """Every setting a row states, checkpoints by the name a launch command uses, in the order people write them."""
    roles = session.roles
    asked = {
        name: public_name(session, value) if name in (roles["model"], roles["draft"]) else value
        for name, value in row.asked.items()
    }
    order = [
        roles["model"],
        roles["ranks"],
        roles["algorithm"],
        roles["draft"],
        roles["steps"],
        roles["topk"],
        roles["draft_tokens"],
    ]
    first = [name for name in order if name in asked]
    return {name: asked[name] for name in [*first, *(name for name in asked if name not in first)]}


def flags_of(session: Session, row: Row, launch: Launch, has_command: bool) -> tuple[str, ...]:
    """A row as flags: what the user's command lacks or must override, or all but the model without a command."""
    settings = settings_of(session, row)
    line = session.edition.command_line
    if not has_command:
        return flags_for(line, {name: value for name, value in settings.items() if name != session.roles["model"]})
    patch = patch_for(line, _as_asked(session, settings, launch), launch.parsed)
    if patch.drop:
        raise UsageError(f"the command must lose {', '.join(patch.drop)}: take --format command")
    return patch.add


def _as_asked(session: Session, settings: Mapping[str, Value], launch: Launch) -> dict[str, Value]:
    """The settings with checkpoints under the name that the user's command already gives them."""
    roles = (session.roles["model"], session.roles["draft"])
    return {name: launch.asked.get(name, value) if name in roles else value for name, value in settings.items()}


def command_of(session: Session, row: Row, split: Command, launch: Launch) -> str:
    """A row as a whole command, without a command of the user's with the variables that it rests on."""
    settings = settings_of(session, row)
    line = session.edition.command_line
    if split.head:
        words = rewrite(line, split.argv, _as_asked(session, settings, launch), launch.parsed)
        return split.text(words)
    launcher = session.book.library.one("constraints/sglang/releases.yaml")["launcher"]
    own = [f"{name}={text}" for name, text in variables_of(session, row, split, launch).items()]
    return Command(head=(*own, *launcher), argv=flags_for(line, settings)).text()


def variables_of(session: Session, row: Row, split: Command, launch: Launch) -> dict[str, str]:
    """The variables that a row rests on and that neither the user's command nor the image sets."""
    elsewhere = {*split.env, *(launch.image.sets if launch.image else ())}
    return {
        name: variable_text(value)
        for name, value in row.asked.items()
        if name in session.variables and name not in elsewhere and value not in (None, UNKNOWN)
    }


def _print(advice: Advice, adviser: Adviser, split: Command, launch: Launch, format_: str, allow_unknown: bool) -> int:
    from recommender.render import recommend as render

    session = adviser.session
    has_command = bool(split.argv or split.head)
    if format_ == "json":
        flags = [list(flags_for(session.edition.command_line, settings_of(session, row))) for row in advice.rows]
        render.print_json(advice, adviser, flags)
        return 0 if advice.rows else 1
    if format_ == "table":
        best = " ".join(flags_of(session, advice.rows[0], launch, has_command)) if advice.rows else ""
        render.print_table(advice, adviser, best)
        return 0 if advice.rows else 1
    if not advice.rows:
        render.print_no_answer(advice, adviser, to_stderr=True)
        return 1
    row = advice.rows[0]
    if row.unknown and not allow_unknown:
        sys.stderr.write(
            f"recommender: every valid row depends on laws that cannot be judged ({', '.join(row.unknown[:3])}); "
            "--allow-unknown prints the best of them\n"
        )
        return 1
    if format_ == "flags":
        text = flags_text(flags_of(session, row, launch, has_command))
    elif format_ == "command":
        text = command_of(session, row, split, launch)
    else:
        import yaml

        text = yaml.safe_dump(
            config_mapping(session.edition.command_line, settings_of(session, row)), sort_keys=False
        ).rstrip()
    render.print_words(advice, adviser)
    beside = variables_of(session, row, split, launch)
    if beside and not (format_ == "command" and not split.head):
        words = " ".join(f"{name}={value}" for name, value in beside.items())
        sys.stderr.write(f"recommender: it rests on {words}, which the launch must set\n")
    sys.stdout.write(text + "\n")
    return 0
