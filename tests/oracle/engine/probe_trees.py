"""The engine's own checks of a draft's shape and of who drafts and verifies it; it must not judge one."""

from __future__ import annotations

import inspect
import types
from importlib.util import find_spec
from typing import Any
from unittest import mock

import earlier
import torch
from probe import Args, Beyond, PassedError, probe
from probe_backends import on_cpu, runner


def speculates(args: Args) -> bool:
    return args.speculative_algorithm is not None


@probe
def reserved_tokens(args: Args) -> None:
    """What a server sets aside of every request's context."""
    earlier.reserved_tokens(args.server_args)


@probe
def allocation_per_step(args: Args) -> None:
    """What the scheduler allocates for one decode step of a request."""
    earlier.allocated_per_step(args.server_args)


@probe
def shortest_prompt(args: Args) -> None:
    """The tokenizer's check of a prompt of one token."""
    from sglang.srt.managers.tokenizer_manager import TokenizerManager

    manager = mock.MagicMock(
        context_len=earlier.model_config_of(args.server_args).context_len,
        num_reserved_tokens=earlier.reserved_tokens(args.server_args),
        allow_auto_truncate=args.allow_auto_truncate, server_args=args.server_args,
    )  # fmt: skip
    TokenizerManager._validate_one_request(manager, mock.MagicMock(sampling_params=Beyond()), [1])


@probe
def transferred_branches(args: Args) -> None:
    """One request's candidates, written where a prefill server hands them over."""
    from sglang.srt.disaggregation.utils import MetadataBuffers

    known = inspect.signature(MetadataBuffers.__init__).parameters
    given = {"max_sampling_mask_tokens": 1} if "max_sampling_mask_tokens" in known else {}
    buffers = MetadataBuffers(size=1, hidden_size=4, hidden_states_dtype=torch.float32, **given)
    branches = args.speculative_eagle_topk * (args.speculative_num_steps if args.enable_multi_layer_eagle else 1)
    request = mock.MagicMock(
        metadata_buffer_index=0, output_ids=[1], return_logprob=False, return_sampling_mask=False,
        cached_tokens=0, cached_tokens_device=0, cached_tokens_host=0, cached_tokens_storage=0,
        hidden_states_tensor=torch.zeros(4), output_topk_p=torch.zeros(branches),
        output_topk_index=torch.zeros(branches, dtype=torch.int64), bootstrap_room=0, output_dsa_topk_indices=None,
        multimodal_inputs=None,
    )  # fmt: skip
    request.get_mm_token_counts.return_value = (0, 0, 0)
    buffers.set_buf(request)


@probe
def verify_window(args: Args) -> None:
    """The FlashAttention backend's metadata of a tree over layers with a window."""
    from sglang.srt.layers.attention.flashattention_backend import FlashAttentionBackend

    made = runner(args)
    if made.model_config.is_hybrid_swa and (args.speculative_eagle_topk or 1) > 1:
        view = Beyond(page_size=made.page_size)
        FlashAttentionBackend._init_sliding_window_attn_spec_metadata(view, Beyond(), Beyond())


@probe
def hybrid_wrapper(args: Args) -> None:
    """The wrapper around the attention of a model with gated delta net layers, as far as its own check."""
    from sglang.srt.layers.attention import attention_registry
    from sglang.srt.layers.attention.linear import gdn_backend

    kernels = "sglang.kernels.ops.attention" if find_spec("sglang.kernels") else "sglang.srt.layers.attention"
    passed = mock.MagicMock(side_effect=PassedError)
    with (
        on_cpu(),
        mock.patch.object(gdn_backend, "GDNAttnBackend", passed),
        mock.patch.object(gdn_backend, "flashinfer_gdn_prefill_default", return_value=None, create=True),
        mock.patch.object(gdn_backend, "maybe_set_default_flashinfer_gdn_prefill", create=True),
        mock.patch(f"{kernels}.fla.utils.check_environments"),
    ):
        attention_registry.attn_backend_wrapper(runner(args), mock.MagicMock())


@probe
def decode_steps(args: Args) -> None:
    """The backends of the draft's steps alone, whose first check is the shape of the draft."""
    from sglang.srt.layers.attention import flashinfer_mla_backend, flashmla_backend

    passed = mock.MagicMock(side_effect=PassedError)
    with (
        on_cpu(),
        mock.patch.object(flashinfer_mla_backend, "generate_draft_decode_kv_indices", None),
        mock.patch.object(flashinfer_mla_backend.FlashInferMLAAttnBackend, "__init__", passed),
        mock.patch.object(flashmla_backend.FlashMLABackend, "__init__", passed),
    ):
        made = runner(args, draft=True)
        earlier.draft_backend_factory(made, args).create_decode_backend()


def verifying() -> Any:
    """A batch of drafts to verify: it has lengths and no prefix of its own."""
    from sglang.srt.model_executor.forward_batch_info import ForwardMode

    return types.SimpleNamespace(
        forward_mode=ForwardMode.TARGET_VERIFY, extend_prefix_lens=None, extend_seq_lens=None, encoder_lens=None,
        seq_lens=torch.tensor([4]), req_pool_indices=torch.tensor([0]), out_cache_loc=torch.tensor([0]),
        encoder_out_cache_loc=None,
    )  # fmt: skip


@probe
def minicpm_verify(args: Args) -> None:
    """MiniCPM's sparse attention, given drafts to verify."""
    from sglang.srt.layers.attention.minicpm.backend import MiniCPMSparseBackend

    if speculates(args) and args.attention_backend.startswith("minicpm_"):
        MiniCPMSparseBackend.init_forward_metadata(Beyond(), verifying())


@probe
def torch_native_verify(args: Args) -> None:
    """The torch_native backend, given drafts to verify."""
    from sglang.srt.layers.attention.torch_native_backend import TorchNativeAttnBackend
    from sglang.srt.layers.radix_attention import RadixAttention

    if not (speculates(args) and args.attention_backend == "torch_native"):
        return
    made = runner(args)
    config = made.model_config
    heads, kv = config.num_attention_heads, config.get_num_kv_heads(1)
    layer = RadixAttention(heads, config.head_dim, 1.0, kv, 0, v_head_dim=config.v_head_dim)
    rows = [torch.zeros(4, n * config.head_dim) for n in (heads, kv, kv)]
    TorchNativeAttnBackend(made).forward_extend(*rows, layer, verifying())


@probe
def sparse_draft_steps(args: Args) -> None:
    """The draft steps of Qwen sparse attention."""
    from sglang.srt.layers.attention.qwen_sparse_attn_backend import QwenSparseMultiStepDraftBackend

    QwenSparseMultiStepDraftBackend(Beyond(), args.speculative_eagle_topk, 1)


@probe
def minimax_sparse_backend(args: Args) -> None:
    """MiniMax-M3's sparse attention, as far as what it says about graphs and MSA."""
    from sglang.srt.layers.attention import minimax_sparse_backend as module
    from sglang.srt.model_executor import cuda_graph_config

    shape = {"sparse_index_dim": 128, "sparse_attention_freq": [1], "sparse_block_size": 128, "sparse_topk_blocks": 16}
    shape |= {"sparse_init_block": 1, "sparse_local_block": 1}  # the check does not look at it
    passed = mock.MagicMock(side_effect=PassedError)
    made = runner(args)
    made.token_to_kv_pool = mock.MagicMock(spec=module.MiniMaxSparseKVPool, page_size=made.page_size)
    made.token_to_kv_pool.main_pool = types.SimpleNamespace(dtype=made.kv_cache_dtype, head_num=1)
    with (
        on_cpu(),
        mock.patch.object(cuda_graph_config, "check_cuda_graph_backend", passed),
        mock.patch.object(module, "get_minimax_sparse_attention_config", return_value=shape),
    ):
        module.MiniMaxSparseAttnBackend(made)
