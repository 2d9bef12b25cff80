"""Calls the engine's own checks that run only after argument resolution; it must not decide whether one should refuse.

Reads JSON lines {"id", "probe", "argv": [...], "env": {...}} from stdin, the variables alike in all of them, resolves each launch with the engine, hands what came out to the
probe of that name, and writes one line each:
    {"id", "ok": true}                                               the check lets it pass
    {"id", "ok": false, "type", "message", "at", "chain"}           the check stops it
    {"id", "ok": null, "type", "message", "at", "chain"}            the launch is refused before the check is reached
A probe builds the least that one check needs and calls the real function or constructor. Whatever the engine would touch
after the check is `Beyond`, which ends the probe: the check was passed.
"""

from __future__ import annotations

import device  # isort: skip  # noqa: F401  first: it decides what torch reports

import json
import os
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
from answer import failure, launch, own_environment


class PassedError(Exception):
    """The check is behind us."""


class Beyond:
    """An object that ends the probe when any attribute of it is read, but for those it was given."""

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)

    def __getattr__(self, name: str) -> Any:
        raise PassedError(name)


Args = types.SimpleNamespace
PROBES: dict[str, Callable[[Args], None]] = {}


def probe(function: Callable[[Args], None]) -> Callable[[Args], None]:
    PROBES[function.__name__] = function
    return function


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
def kda_backend(args: Args) -> None:
    """The attention backend of Kimi delta attention, as far as its check of the verify kernel."""
    from sglang.srt.layers.attention.linear import kda_backend as module
    from sglang.srt.layers.attention.linear.utils import LinearAttnKernelBackend as Kernel

    kernels = [
        Kernel(getattr(args, f"linear_attn_{part}_backend") or args.linear_attn_backend)
        for part in ("decode", "prefill", "verify")
    ]
    runner = mock.MagicMock()
    runner.linear_attn_backends = types.SimpleNamespace(decode=kernels[0], prefill=kernels[1], verify=kernels[2])
    with (
        mock.patch.object(module.MambaAttnBackendBase, "__init__", return_value=None),
        mock.patch.object(module, "get_spec", return_value=args),
        mock.patch.object(module, "KDAKernelDispatcher", mock.MagicMock(side_effect=PassedError)),
    ):
        module.KDAAttnBackend(runner)


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
        said = failure(error)
        return {"ok": False, **{key: said[key] for key in ("type", "message", "at", "chain")}}
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
