"""The profiles commands: list what has a profile, or show every fact of one; it must not judge or word."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping

from recommender import profiles
from recommender.commands.inputs import known_format
from recommender.errors import UsageError
from recommender.facts import book, nearest
from recommender.library import load
from recommender.profiles import Gpu, Model
from recommender.render import profiles as render
from recommender.render.names import LIST_FORMATS, TEXT_FORMATS
from recommender.reports import FactAccount, ProfileAccount
from recommender.rulebook import load_rulebook

KINDS = ("gpus", "models", "drafts")


def run_list(*, kind: str | None, format_: str) -> int:
    """Run `profiles list`; returns the exit code."""
    known_format(format_, LIST_FORMATS)
    if kind is not None and kind not in KINDS:
        raise UsageError(f"profiles list: {kind!r} is none of {', '.join(KINDS)}{nearest(kind, KINDS)}")
    shown: Mapping[str, list[str]] = load().one("profiles/lists.yaml")
    kinds = KINDS if kind is None else (kind,)
    listed = {each: [_account(profile, each, shown[each]) for profile in _all(each)] for each in kinds}
    if format_ == "json":
        sys.stdout.write(json.dumps(render.list_json(listed, load_rulebook().digest), indent=2) + "\n")
    else:
        render.print_list(listed)
    return 0


def run_show(*, profile: str, format_: str) -> int:
    """Run `profiles show`; returns the exit code."""
    known_format(format_, TEXT_FORMATS)
    found = find_profile(profile)
    account = _full(found)
    if format_ == "json":
        sys.stdout.write(json.dumps(render.show_json(account, load_rulebook().digest), indent=2) + "\n")
    else:
        render.print_show(account)
    return 0


def find_profile(name: str) -> Gpu | Model:
    """The device of a name, else the checkpoint of a name or a path.

    Raises:
        UsageError: nothing of that name; the nearest devices and checkpoints are named.
    """
    try:
        return profiles.find_gpu(name)
    except UsageError as error:
        no_device = error
    try:
        return profiles.find_model(name)
    except UsageError as error:
        no_model = error
    near = nearest(
        name.casefold()[:200], [*profiles.gpu_ids(), *profiles.model_ids("models"), *profiles.model_ids("drafts")]
    )
    if "is a family" in str(no_device):
        raise no_device
    if "unknown model" not in str(no_model):
        raise no_model
    raise UsageError(
        f"no device or model is called {name[:200]!r}{near}; "
        "`recommender profiles list` names all, a path to a config.json works too"
    )


def _all(kind: str) -> Iterator[Gpu | Model]:
    if kind == "gpus":
        yield from map(profiles.find_gpu, profiles.gpu_ids())
    else:
        yield from map(profiles.find_model, profiles.model_ids(kind))


def _full(profile: Gpu | Model) -> ProfileAccount:
    kind = "gpus" if isinstance(profile, Gpu) else "drafts" if profile.algorithm else "models"
    scope = "gpu." if isinstance(profile, Gpu) else "model."
    names = [name for name in book().names() if name.startswith(scope)]
    return _account(profile, kind, names)


def _account(profile: Gpu | Model, kind: str, names: list[str]) -> ProfileAccount:
    facts = []
    for name in names:
        spec = book().spec(name)
        facts.append(
            FactAccount(
                name=name,
                value=profile.facts[name],
                unit=spec.unit,
                meaning=spec.meaning,
                source=profile.origin_of(name),
            )
        )
    if isinstance(profile, Gpu):
        return ProfileAccount(
            id=profile.id or "",
            name=profile.name,
            kind=kind,
            names=profile.aliases,
            count=profile.count,
            facts=tuple(facts),
        )
    return ProfileAccount(
        id=profile.id or "",
        name=profile.name,
        kind=kind,
        names=profile.hf,
        drafts=profile.drafts,
        algorithm=profile.algorithm,
        targets=profile.targets,
        path=str(profile.path or ""),
        facts=tuple(facts),
    )
