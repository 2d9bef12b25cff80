"""Calls the engine's own checks that run only after argument resolution; it must not decide whether one should refuse.

Reads JSON lines {"id", "probe", "argv": [...], "env": {...}} from stdin, the variables alike in all of them, resolves each
launch with the engine, hands what came out to the probe of that name, and writes one line each:
    {"id", "ok": true}                                              the check lets it pass
    {"id", "ok": false, "type", "message", "at", "chain"}           the check stops it
    {"id", "ok": null, "stage", "type", "message", "at", "chain"}   no answer: the launch is refused before the check is
                                                                    reached (`parse`, `resolve`), this machine fails
                                                                    (`machine`), or the release has no such check (`absent`)
A probe builds the least that one check needs and calls the real function or constructor, where a release has it: under its
present name, or under the one of an earlier release. Whatever the engine would touch after the check is `Beyond`, which ends
the probe: the check was passed.
"""

from __future__ import annotations

import device  # isort: skip  # noqa: F401  first: it decides what torch reports

import json
import os
import sys
import traceback
import types
import warnings
from collections.abc import Callable
from typing import Any

import torch
from answer import failure, launch, own_environment


class PassedError(Exception):
    """The check is behind us."""


class AbsentError(Exception):
    """This release has no such check."""


class Beyond:
    """An object that ends the probe when any attribute of it is read, but for those it was given."""

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)

    def __getattr__(self, name: str) -> Any:
        raise PassedError(name)


Args = types.SimpleNamespace
PROBES: dict[str, Callable[[Args], None]] = {}


def probe(function: Callable[[Args], None]) -> Callable[[Args], None]:
    if function.__name__ in PROBES:
        raise ValueError(f"two probes of the name {function.__name__}")
    PROBES[function.__name__] = function
    return function


def existing(owner: Any, *names: str) -> Any:
    """The first of these attributes that the release has: one thing under its present and its earlier names."""
    for name in names:
        if hasattr(owner, name):
            return getattr(owner, name)
    raise AbsentError(f"{getattr(owner, '__name__', type(owner).__name__)} has no {' or '.join(names)}")


def stage(error: Exception) -> str:
    """Why a check was not called at all; empty when it was.

    `absent`: the release lacks what the probe itself imports or asks for. `machine`: a module of the engine cannot be
    imported, because a library of this machine does not accept what it says.
    """
    if isinstance(error, AbsentError):
        return "absent"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
    own = os.path.dirname(frames[-1].filename) == os.path.dirname(os.path.abspath(__file__))
    if isinstance(error, ImportError) and own and str(error.name).split(".")[0] == "sglang":
        return "absent"
    importing = any(frame.name == "<module>" and "/sglang/" in frame.filename for frame in frames)
    return "machine" if importing and not own and "/sglang/" not in frames[-1].filename else ""


@probe
def kda_verify_kernel(args: Args) -> None:
    """The FlashInfer kernel of Kimi delta attention, given the parents that a tree hands over and a chain does not."""
    from sglang.srt.layers.attention.linear.kernels.kda_flashinfer import FlashInferKDAKernel

    if (args.linear_attn_verify_backend or args.linear_attn_backend) != "flashinfer":
        return
    one = torch.zeros(1)
    parents = one if (args.speculative_eagle_topk or 1) > 1 else None
    FlashInferKDAKernel.target_verify(
        object.__new__(FlashInferKDAKernel), one, one, Beyond(), one, one, one, one,
        ssm_states=one, cache_indices=one, query_start_loc=one, intermediate_states_buffer=one,
        intermediate_state_indices=one, cache_steps=args.speculative_num_draft_tokens, retrieve_parent_token=parents,
    )  # fmt: skip


@probe
def draft_tree(args: Args) -> None:
    """The tree is cut from topk candidates of the first step and topk times topk of each later one."""
    from sglang.srt.speculative.eagle_utils import organize_draft_results

    topk, later = args.speculative_eagle_topk, range(args.speculative_num_steps - 1)
    scores = [torch.rand(2, 1, topk), *(torch.rand(2, topk, topk) for _ in later)]
    words = [torch.zeros(2, topk, dtype=torch.long), *(torch.zeros(2, topk * topk, dtype=torch.long) for _ in later)]
    parents = [torch.zeros(2, topk + 1, dtype=torch.long), *(torch.zeros(2, topk, dtype=torch.long) for _ in later)]
    organize_draft_results(scores, words, parents, args.speculative_num_draft_tokens)


@probe
def flashinfer_mla_draft(args: Args) -> None:
    """The draft's decode backend for latent attention on FlashInfer."""
    from sglang.srt.layers.attention.flashinfer_mla_backend import FlashInferMLAMultiStepDraftBackend

    FlashInferMLAMultiStepDraftBackend(Beyond(), args.speculative_eagle_topk, args.speculative_num_steps)


@probe
def attention_backend(args: Args) -> None:
    """The backend's own constructor, for a model without latent attention."""
    from sglang.srt.layers.attention import attention_registry

    attention_registry.ATTENTION_BACKENDS[args.attention_backend](Beyond(use_mla_backend=False))


def outcome(case: dict[str, Any]) -> dict[str, Any]:
    try:
        server, values = launch(case["argv"])
        args = Args(**values, server_args=server)
    except (Exception, SystemExit) as error:
        return {**failure(error), "ok": None}
    try:
        PROBES[case["probe"]](args)
    except PassedError:
        return {"ok": True}
    except Exception as error:
        said = {key: value for key, value in failure(error).items() if key not in ("ok", "stage")}
        return {"ok": None, "stage": why, **said} if (why := stage(error)) else {"ok": False, **said}
    return {"ok": True}


def main() -> None:
    warnings.simplefilter("ignore")
    out = os.fdopen(os.dup(1), "w")
    sys.stdout = sys.stderr
    for line in filter(str.strip, sys.stdin):
        case = json.loads(line)
        os.environ.update(case.get("env", {}))  # before the first launch imports the engine
        with own_environment():
            said = outcome(case)
        out.write(json.dumps({"id": case["id"], **said}) + "\n")
        out.flush()


if __name__ == "__main__":
    import probe as shared  # further checks register with the module of that name
    import probe_backends  # noqa: F401
    import probe_drafts  # noqa: F401
    import probe_recurrent  # noqa: F401
    import probe_trees  # noqa: F401

    shared.main()
