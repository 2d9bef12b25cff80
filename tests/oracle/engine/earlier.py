"""The engine's own functions under the names and in the places that each release has them; it must not judge a launch.

A probe calls these where releases differ in how a thing is called, not in what it does.
"""

from __future__ import annotations

import importlib.util
import inspect
import types
from collections.abc import Mapping
from typing import Any
from unittest import mock

from probe import Args, existing


def accepted(function: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the keywords that this release's function takes."""
    return {name: value for name, value in given.items() if name in inspect.signature(function).parameters}


def model_config_of(server: Any) -> Any:
    """The target's configuration."""
    from sglang.srt.arg_groups import overrides

    if hasattr(overrides, "model_config_of"):
        return overrides.model_config_of(server)
    return server.get_model_config()


def widths(server: Any) -> dict[str, Any]:
    """How wide each kind of parallelism is, for rank 0."""
    attn_dp = server.dp_size if server.enable_dp_attention else 1
    attn_cp = getattr(server, "attn_cp_size", None) or 1
    dcp = getattr(server, "dcp_size", None) or 1
    sizes = {
        "world_size": server.tp_size * server.pp_size, "tp_size": server.tp_size, "pp_size": server.pp_size,
        "attn_dp_size": attn_dp, "attn_cp_size": attn_cp, "attn_tp_size": server.tp_size // attn_dp // attn_cp,
        "moe_ep_size": server.ep_size, "moe_tp_size": server.tp_size // server.ep_size, "moe_dp_size": 1,
        "dcp_size": dcp, "attn_dcp_size": dcp,
    }  # fmt: skip
    ranks = {name.replace("_size", "_rank"): 0 for name in sizes}
    return {**sizes, **ranks, "dcp_enabled": dcp > 1}


def stand_in_groups(server: Any) -> None:
    """Groups of ranks that have a width and nobody in them."""
    from sglang.srt.distributed import parallel_state

    wide = widths(server)
    for name in ("tp", "attn_tp"):
        group = types.SimpleNamespace(world_size=wide[f"{name}_size"], rank_in_group=0)
        setattr(parallel_state, f"_{name.upper()}", group)


def publish(server: Any) -> None:
    """Publish a launch as a worker does; some releases also say which rank it is, and how wide it is."""
    from sglang.srt import runtime_context as context

    if not hasattr(context, "publish"):
        context.get_context().set_server_args(server)
    else:
        ranks = getattr(context, "SpawnRanks", None)
        context.publish(server, role="scheduler", **({"ranks": ranks(gpu_id=0, world_rank=0)} if ranks else {}))
    parallel = context.get_parallel()
    if hasattr(parallel, "stamp_derived_widths"):
        parallel.stamp_derived_widths(**context.derive_parallel_widths(
            tp_size=server.tp_size, attn_cp_size=server.attn_cp_size, moe_ep_size=server.ep_size,
            attn_dp_size=server.dp_size if server.enable_dp_attention else 1, moe_dp_size=server.moe_dp_size,
            dcp_size=server.dcp_size, dcp_enabled=server.dcp_size > 1,
        ))  # fmt: skip
    elif not hasattr(context, "derive_parallel_widths"):  # earlier it asks process groups, which a probe has none of
        fields = context._PARALLEL_FIELDS
        parallel._overrides.update({name: value for name, value in widths(server).items() if name in fields})
        stand_in_groups(server)


def tell_recurrent_layers(runner: Any) -> None:
    """Earlier a model runner's own properties say which recurrent layers its model has."""
    if importlib.util.find_spec("sglang.srt.configs.hybrid_arch"):
        return
    from sglang.srt.model_executor import model_runner as module

    view = object.__new__(module.ModelRunner)
    view.model_config, view.is_draft_worker = runner.model_config, runner.is_draft_worker
    view._linear_attn_registry_cache = module._UNSET
    for name in ("hybrid_gdn", "hybrid_lightning", "kimi_linear", "mamba2", "mambaish"):
        setattr(runner, f"{name}_config", getattr(view, f"{name}_config"))
    runner.linear_attn_model_spec = view.linear_attn_model_spec


def build_attention_backends(runner: Any) -> None:
    """The attention backends of a model runner, wrappers included."""
    try:
        from sglang.srt.model_executor.model_runner_components.attention_backend_setup import build_attention_backends
    except ImportError:
        from sglang.srt.model_executor.model_runner import ModelRunner

        for name in ("_get_attention_backend", "_get_attention_backend_from_str"):
            setattr(runner, name, types.MethodType(getattr(ModelRunner, name), runner))
        ModelRunner.init_attention_backend(runner)
    else:
        build_attention_backends(model_runner=runner)


def draft_backend_factory(runner: Any, args: Args) -> Any:
    """What makes the attention backends of a draft's steps."""
    from sglang.srt.speculative.draft_utils import DraftBackendFactory

    given = {"server_args": args.server_args, "draft_model_runner": runner}
    given |= {"topk": args.speculative_eagle_topk, "speculative_num_steps": args.speculative_num_steps}
    return DraftBackendFactory(**accepted(DraftBackendFactory.__init__, given))


def linear_backends(args: Args) -> Any:
    """The kernels of linear attention by phase, each by its name."""
    from sglang.srt.layers.attention.linear import utils

    if hasattr(utils, "resolve_linear_attn_backends"):
        return utils.resolve_linear_attn_backends()
    utils.initialize_linear_attn_config(args.server_args)
    phases = [name for name in ("decode", "prefill", "verify") if hasattr(utils, f"get_linear_attn_{name}_backend")]
    return types.SimpleNamespace(**{name: getattr(utils, f"get_linear_attn_{name}_backend")() for name in phases})


def dispatcher(kind: Any, kernels: Any) -> Any:
    """A dispatcher of such kernels."""
    return kind(**accepted(kind.__init__, {f"{phase}_backend": name for phase, name in vars_of(kernels).items()}))


def vars_of(kernels: Any) -> dict[str, Any]:
    """The phases that a release's choice of kernels has."""
    return {name: getattr(kernels, name) for name in ("decode", "prefill", "verify") if hasattr(kernels, name)}


def reserved_tokens(server: Any) -> int:
    """What a server sets aside of every request's context."""
    from sglang.srt.managers import utils

    publish(server)
    if hasattr(utils, "compute_num_reserved_tokens"):
        slots: int = utils.compute_num_reserved_tokens(
            **accepted(utils.compute_num_reserved_tokens, {"server_args": server})
        )
        return slots
    from sglang.srt.managers.tokenizer_manager import TokenizerManager

    manager = types.SimpleNamespace(server_args=server, model_config_class=mock.MagicMock())
    TokenizerManager.init_model_config(manager)
    return int(manager.num_reserved_tokens)


def allocated_per_step(server: Any) -> int:
    """What the scheduler allocates for one decode step of a request."""
    try:
        from sglang.srt.mem_cache.allocation_sizing import get_alloc_len_per_decode
    except ImportError:
        from sglang.srt.mem_cache.common import get_alloc_len_per_decode
    publish(server)
    slots: int = get_alloc_len_per_decode(**accepted(get_alloc_len_per_decode, {"server_args": server}))
    return slots


def hidden_states_of_target(args: Args, target: Any, draft: Any) -> dict[str, Any]:
    """Which hidden states of the target a draft reads; `target` and `draft` are the configurations of both."""
    from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

    publish(args.server_args)
    algorithm = SpeculativeAlgorithm.from_string(args.speculative_algorithm)
    names = ("eagle_use_aux_hidden_state", "eagle_aux_hidden_state_layer_ids",
             "dflash_use_aux_hidden_state", "dflash_target_layer_ids")  # fmt: skip
    try:
        from sglang.srt.model_executor.model_runner_components.spec_aux_hidden_state import (
            resolve_spec_aux_hidden_state_config as resolve,
        )
    except ImportError:  # a part of the model runner's constructor
        from sglang.srt.speculative.dflash_utils import parse_dflash_draft_config

        layers = None
        if algorithm.is_dflash():
            parsed = parse_dflash_draft_config(draft_hf_config=draft.hf_config)
            layers = parsed.resolve_target_layer_ids(
                target_num_layers=int(target.hf_text_config.num_hidden_layers), draft_num_layers=parsed.require_num_layers()
            )
        return dict(zip(names, (algorithm.is_eagle3(), None, algorithm.is_dflash(), layers), strict=True))
    wanted = resolve(
        server_args=args.server_args, model_config=target, spec_algorithm=algorithm, is_draft_worker=False
    )
    return {name: getattr(wanted, name) for name in names}


def capture_hidden_states(model: Any, wanted: Mapping[str, Any], *, is_dspark: bool) -> None:
    """Ask the target's model for them."""
    try:
        from sglang.srt.model_executor.model_runner_components.attention_backend_setup import (
            configure_aux_hidden_state_capture as configure,
        )
    except ImportError:
        from sglang.srt.model_executor.model_runner import ModelRunner

        ModelRunner.init_aux_hidden_state_capture(types.SimpleNamespace(model=model, **wanted))
    else:
        configure(model=model, is_dspark=is_dspark, **wanted)


def fit_states(sizing: Any) -> None:
    """How many states and requests fit where there is plenty of memory."""
    for names, amount in ((("_handle_max_mamba_cache", "handle_max_mamba_cache"), 1e6),
                          (("resolve_max_num_reqs", "_resolve_max_num_reqs"), 1 << 22)):  # fmt: skip
        existing(sizing, *names)(amount)
