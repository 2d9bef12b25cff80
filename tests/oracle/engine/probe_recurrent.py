"""The engine's own checks of recurrent layers, pools, paged experts and CPU graphs; it must not judge one."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from earlier import dispatcher, fit_states, linear_backends, publish
from probe import Args, Beyond, PassedError, existing, probe
from probe_backends import runner

PASSED = mock.MagicMock(side_effect=PassedError)


def kda_dispatcher(args: Args) -> tuple[Any, float | None]:
    """The kernels of Kimi delta attention, and the lower bound of the model's forget gate."""
    from sglang.srt.layers.attention.linear.kda_backend import KDAKernelDispatcher

    config = runner(args).model_config.hf_text_config
    bound: float | None = config.linear_attn_config.get("gate_lower_bound")
    return dispatcher(KDAKernelDispatcher, linear_backends(args)), bound


@probe
def kda_backend(args: Args) -> None:
    """The attention backend of Kimi delta attention, as far as its check of the verify kernel."""
    from sglang.srt.layers.attention.linear import kda_backend as module

    publish(args.server_args)
    made = mock.MagicMock(server_args=args, linear_attn_backends=linear_backends(args))
    with (
        mock.patch.object(module.MambaAttnBackendBase, "__init__", return_value=None),
        mock.patch.object(module, "get_spec", return_value=args, create=True),
        mock.patch.object(module, "KDAKernelDispatcher", PASSED),
    ):
        module.KDAAttnBackend(made)


@probe
def kda_gated_verify(args: Args) -> None:
    """Verification by those kernels, as far as the kernel itself."""
    kernels, bound = kda_dispatcher(args)
    kernels.verify_kernel.target_verify = PASSED
    one = torch.zeros(1)
    kernels.target_verify(
        one, one, one, one, one, one, one, ssm_states=one, cache_indices=one, query_start_loc=one,
        intermediate_states_buffer=one, intermediate_state_indices=one, cache_steps=args.speculative_num_draft_tokens,
        retrieve_parent_token=None, lower_bound=bound,
    )  # fmt: skip


@probe
def kda_gated_decode(args: Args) -> None:
    """A decode step by those kernels, as far as the kernel itself."""
    kernels, bound = kda_dispatcher(args)
    kernels.decode_kernel.decode = PASSED
    one = torch.zeros(1)
    kernels.decode(
        one, one, one, one, one, A_log=one, dt_bias=one, ssm_states=one, cache_indices=one, query_start_loc=one, lower_bound=bound
    )  # fmt: skip


@probe
def kda_prefill(args: Args) -> None:
    """The attention backend of Kimi delta attention, as far as its tables."""
    from sglang.srt.layers.attention.linear import kda_backend as module

    made = runner(args)
    made.linear_attn_backends = linear_backends(args)

    def base(self: Any, model_runner: Any) -> None:
        self.req_to_token_pool = model_runner.req_to_token_pool

    with (
        mock.patch.object(module.MambaAttnBackendBase, "__init__", base),
        mock.patch.object(module.KDAAttnBackend, "mamba_chunk_size", 64, create=True),
        mock.patch.object(module, "build_verify_intermediate_state_indices", PASSED, create=True),
    ):
        module.KDAAttnBackend(made)


@probe
def gdn_replayed_verify(args: Args) -> None:
    """Replayed verification of gated delta net layers, given the parents that a tree hands over and a chain does not."""
    from sglang.srt.layers.attention.linear.gdn_backend import GDNAttnBackend

    one = torch.zeros(1)
    parents = one if (args.speculative_eagle_topk or 1) > 1 else None
    existing(GDNAttnBackend, "_replayssm_fold_target_verify")(
        Beyond(), layer=Beyond(), query=Beyond(), key=one, value=one, a=one, b=one, layer_cache=Beyond(), ssm_states=one,
        cache_indices=one, query_start_loc=one, retrieve_parent_token=parents,
    )  # fmt: skip


@probe
def lightning_backend(args: Args) -> None:
    """The backend of lightning layers, as far as its first look at the pool."""
    from sglang.srt.layers.attention.linear import lightning_backend as module

    runner(args)
    topk = args.speculative_eagle_topk or 0
    with mock.patch.object(
        module.MambaAttnBackendBase, "__init__", lambda self, model_runner: setattr(self, "topk", topk)
    ):
        module.LightningAttentionBackend(Beyond())


@probe
def mamba1_verify(args: Args) -> None:
    """One step of a Mamba-1 layer: a verification when the launch speculates."""
    from sglang.srt.layers.attention.mamba.mamba1 import MambaMixer1

    step = Beyond(is_target_verify=args.speculative_algorithm is not None)
    MambaMixer1.forward(Beyond(), hidden_states=Beyond(), output=None, layer_cache=Beyond(), metadata=step)


def pools(args: Args) -> Iterator[Any]:
    """The sizing of memory pools, for the published launch and the model's own configuration."""
    made = runner(args)
    width = getattr(args, "attn_dp_size", None) or 1
    given = {
        "model_config": made.model_config, "spec_algorithm": made.spec_algorithm, "attn_dp_size": width, "pp_size": 1,
        "ps": types.SimpleNamespace(attn_dp_size=width, pp_size=1), "device": "cpu", "extra_mamba_cache_bytes_per_req": 0,
        "fused_entry_bytes": lambda self, kind: None, "layer_info": types.SimpleNamespace(start_layer=0, end_layer=1),
        "server_args": args.server_args, "dp_size": args.dp_size,
    }  # fmt: skip
    try:
        from sglang.srt.configs import hybrid_arch
        from sglang.srt.mem_cache.kv_cache_configurator import KVCacheConfigurator
    except ImportError:  # a part of the model runner, whose class reads the model's configuration itself
        from sglang.srt.model_executor import model_runner as module

        kind: Any = module.ModelRunner
        given |= {"is_draft_worker": False, "_linear_attn_registry_cache": module._UNSET}
    else:
        kind = KVCacheConfigurator
        given |= {
            name: getattr(hybrid_arch, name)(made.model_config)
            for name in ("mambaish_config", "hybrid_gdn_config", "hybrid_kda_config")
            if hasattr(hybrid_arch, name)
        }
    with mock.patch.multiple(kind, create=True, **given):
        yield object.__new__(kind)


@probe
def hybrid_request_pool(args: Args) -> None:
    """The pool of requests of a hybrid model, as far as the pool itself."""
    from sglang.srt.mem_cache import kv_cache_configurator as module

    for sizing in pools(args):
        with (
            mock.patch.object(module, "HybridReqToTokenPool", PASSED),
            mock.patch.object(module.KVCacheConfigurator, "_get_mamba_layer_ids_for_req_pool", PASSED, create=True),
        ):
            sizing._build_hybrid_req_pool(max_num_reqs=8, extra_max_context_len=0)


@probe
def state_slots(args: Args) -> None:
    """How many states and requests fit where there is plenty of memory."""
    for sizing in pools(args):
        fit_states(sizing)


@probe
def compressed_pool(args: Args) -> None:
    """The pool sizes of DeepSeek-V4."""
    from sglang.srt.model_executor.pool_configurator import DSV4PoolConfigurator

    made = runner(args)
    layers = len(made.model_config.compress_ratios)
    made.layer_info = types.SimpleNamespace(start_layer=0, end_layer=layers)
    made.start_layer, made.end_layer = 0, layers
    made.dp_size = made.pp_size = made.attn_dp_size = made.ps.pp_size = made.ps.attn_dp_size = 1
    made.sliding_window_size = made.model_config.window_size
    DSV4PoolConfigurator(made)


@probe
def qwen_sparse_verify(args: Args) -> None:
    """What Qwen's sparse attention says to a batch that verifies."""
    from sglang.srt.layers.attention.qwen_sparse_attn_backend import QwenSparseAttnBackend
    from sglang.srt.model_executor.forward_batch_info import ForwardMode

    config = runner(args).model_config.hf_text_config
    layers = types.SimpleNamespace(compress_ratio=config.indexer_compress_ratio)
    draft = types.SimpleNamespace(topk=args.speculative_eagle_topk, draft_token_num=args.speculative_num_draft_tokens)
    QwenSparseAttnBackend._require_chain_speculation(layers, ForwardMode.TARGET_VERIFY, draft)


@probe
def prefill_backend(args: Args) -> None:
    """The engine's maker of the backend that prefills, as far as the backend."""
    from sglang.srt.layers.attention import triton_backend
    from sglang.srt.layers.attention.attention_registry import ATTENTION_BACKENDS

    made = runner(args)
    with mock.patch.object(triton_backend.TritonAttnBackend, "__init__", PASSED):
        ATTENTION_BACKENDS[made.prefill_attention_backend_str](made)


@probe
def paged_experts(args: Args) -> None:
    """What paged experts say to a layer of the model."""
    from sglang.srt.layers.moe.paged_experts.method import check_paged_experts_compat

    config = runner(args).model_config.hf_text_config
    layer = types.SimpleNamespace(top_k=config.num_experts_per_tok, quant_method=None, num_fused_shared_experts=0)
    check_paged_experts_compat(layer=layer, expert_format=object())


@probe
def cpu_graphs(args: Args) -> None:
    """The runner of CPU graphs, as far as the batches it captures."""
    from sglang.srt.model_executor import cpu_graph_runner as module

    made = runner(args)
    with mock.patch.object(module, "get_batch_sizes_to_capture", PASSED):
        module.CPUGraphRunner(made)


@probe
def ports(args: Args) -> None:
    """The ports and endpoints of a launch."""
    from sglang.srt.server_args import PortArgs

    PortArgs.init_new(args.server_args)
