"""The engine's own construction of attention backends, and the first thing some of them do; it must not judge one.

A launch is published as the engine's workers publish it, a runner is given the least that a constructor reads (small CPU
tensors, the checkpoint's real configuration), and the engine's own functions build its backends.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
import types
from collections.abc import Iterator
from typing import Any
from unittest import mock

import aiter.ops.triton.utils.types  # noqa: F401
import torch
from earlier import (
    accepted,
    build_attention_backends,
    dispatcher,
    draft_backend_factory,
    linear_backends,
    model_config_of,
    publish,
    tell_recurrent_layers,
)
from probe import Args, Beyond, PassedError, existing, probe

sys.modules[
    "aiter.ops.triton.utils.types"
].e4m3_dtype = torch.float8_e4m3fnuz  # AITER's kernels ask torch for its range
SLOTS, REQUESTS, CONTEXT = 256, 4, 64
CACHE_TYPES = {"fp8_e4m3": torch.float8_e4m3fn, "fp8_e5m2": torch.float8_e5m2}


def installed(*packages: str) -> None:
    """Let more stand-ins be found."""
    for finder in sys.meta_path:
        if "sgl_kernel" in getattr(finder, "packages", ()):
            finder.packages |= set(packages)


def without(*packages: str) -> None:
    """Take stand-ins away of packages that a machine of this device does not have."""
    for finder in sys.meta_path:
        if hasattr(finder, "packages"):
            finder.packages -= set(packages)
    for name in [name for name in sys.modules if name.split(".")[0] in packages]:
        del sys.modules[name]


class Pool:
    """A KV pool: rows of the model's real sizes."""

    dsa_kv_cache_store_fp8 = False
    kv_cache_dim = 576
    start_layer = 0

    def __init__(self, keys: int, values: int, heads: int, dtype: torch.dtype) -> None:
        self.dtype, self.size = dtype, SLOTS
        self.k = torch.zeros(SLOTS, heads, keys, dtype=dtype)
        self.v = torch.zeros(SLOTS, heads, values, dtype=dtype)

    def get_key_buffer(self, layer: int) -> torch.Tensor:
        return self.k

    def get_value_buffer(self, layer: int) -> torch.Tensor:
        return self.v

    def get_kv_buffer(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.k, self.v

    def set_kv_buffer(self, *args: Any) -> None:
        """Writes nothing."""

    def get_v_head_dim(self) -> int:
        return self.v.shape[-1]

    def get_kv_cache_quant_method(self) -> Any:
        from sglang.srt.layers.quantization.fp4_kv_cache_quant_method import KVCacheAttentionAccessKind as Kind

        method = mock.MagicMock()
        method.resolve_attention_access.return_value = types.SimpleNamespace(kind=Kind.PLAIN, scale_recipe=None)
        return method


def runner(args: Args, *, draft: bool = False) -> Any:
    """What a constructor reads of a model runner."""
    from sglang.srt import runtime_context as context
    from sglang.srt.configs.model_config import AttentionArch, ModelConfig
    from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

    server = args.server_args
    publish(server)
    config = model_config_of(server)
    if draft:
        path = args.speculative_draft_model_path or args.model_path
        config = ModelConfig.from_server_args(server, model_path=path, is_draft_model=True)
    made = mock.MagicMock()
    made.server_args, made.model_config, made.is_draft_worker = server, config, draft
    made.use_mla_backend = config.attention_arch == AttentionArch.MLA
    made.page_size, made.device, made.dtype = args.page_size, "cpu", torch.bfloat16
    made.kv_cache_dtype_str = args.kv_cache_dtype
    made.kv_cache_dtype = CACHE_TYPES.get(args.kv_cache_dtype, torch.bfloat16)
    made.dcp_size = getattr(args, "dcp_size", None) or 1
    made.max_running_requests, made.prefill_aware_swa = REQUESTS, False
    made.attention_chunk_size = getattr(config, "attention_chunk_size", None)
    made.sliding_window_size = window_of(args, config, draft)
    widths = context.get_parallel()
    made.ps.tp_size, made.ps.attn_tp_size = widths.tp_size, widths.attn_tp_size  # earlier releases ask it
    made.ps.attn_cp_size, made.tp_size = widths.attn_cp_size, widths.tp_size
    made.req_to_token_pool.size = REQUESTS
    made.req_to_token_pool.req_to_token = torch.zeros(REQUESTS + 1, CONTEXT, dtype=torch.int32)
    made.token_to_kv_pool = Pool(config.head_dim, config.v_head_dim, config.get_num_kv_heads(1), made.kv_cache_dtype)
    made.token_to_kv_pool.dsa_kv_cache_store_fp8 = packs_sparse_rows(args, made)
    state = made.req_to_token_pool.mamba_pool.mamba_cache
    state.conv, state.temporal = [torch.zeros(1, 8, 4)], torch.zeros(1, dtype=torch.float32)
    made.token_to_kv_pool_allocator.get_kvcache.return_value = made.token_to_kv_pool
    made.hisparse_coordinator = None
    made.spec_algorithm = SpeculativeAlgorithm.from_string(args.speculative_algorithm)
    made.kv_index_translator.is_translating = False
    made.draft_attention_backend = args.speculative_draft_attention_backend if draft else None
    for mode in ("prefill", "decode"):
        asked = made.draft_attention_backend or getattr(args, f"{mode}_attention_backend") or args.attention_backend
        setattr(made, f"{mode}_attention_backend_str", asked)
    tell_recurrent_layers(made)
    return made


def packs_sparse_rows(args: Args, made: Any) -> bool:
    """Whether the pool of sparse attention keeps FP8 rows with their scales, by the engine's own size of a row."""
    from sglang.srt.configs.model_config import is_deepseek_dsa

    if made.kv_cache_dtype is not torch.float8_e4m3fn or not is_deepseek_dsa(made.model_config.hf_config):
        return False
    from sglang.srt.mem_cache.kv_cache_configurator import calculate_mla_kv_cache_dim as size

    given = {"model_config": made.model_config, "kv_cache_dtype": made.kv_cache_dtype, "server_args": args.server_args}
    plain = made.model_config.kv_lora_rank + made.model_config.qk_rope_head_dim
    return bool(size(**accepted(size, given)) != plain)


def window_of(args: Args, config: Any, draft: bool) -> int | None:
    """The engine asks the model class; the draft head of EAGLE3 answers with the window that was asked for."""
    if draft and config.hf_config.architectures[0] == "LlamaForCausalLMEagle3":
        window: int | None = args.speculative_draft_window_size
        return window
    return None


@contextlib.contextmanager
def on_cpu() -> Iterator[None]:
    """Streams, pinned memory and cuBLAS are the device's; what a constructor makes of them is not looked at.

    `create`: not every release has what is replaced.
    """
    setup = importlib.util.find_spec("sglang.srt.model_executor.model_runner_components")
    make = torch.zeros

    def zeros(*size: Any, pin_memory: bool = False, **how: Any) -> torch.Tensor:
        return make(*size, **how)

    with (
        mock.patch(f"{setup.name}.attention_backend_setup.init_cublas") if setup else contextlib.nullcontext(),
        mock.patch("sglang.srt.layers.attention.trtllm_mla_backend._multi_ctas_kv_counter_bytes", return_value=8, create=True),
        mock.patch("sglang.srt.layers.attention.trtllm_mla_backend._jit_fixup_module", create=True),
        mock.patch("torch.cuda.Stream"),
        mock.patch("torch.zeros", zeros),
        mock.patch("triton.next_power_of_2", lambda n: 1 << max(n - 1, 0).bit_length()),
    ):
        yield


@probe
def target_backends(args: Args) -> None:
    """The attention backends of the target, wrappers included."""
    installed("hpc")
    with on_cpu():
        build_attention_backends(runner(args))


@probe
def draft_backends(args: Args) -> None:
    """The attention backends of the draft model, and those of its steps."""
    with on_cpu():
        made = runner(args, draft=True)
        build_attention_backends(made)
        factory = draft_backend_factory(made, args)
        factory.create_decode_backend()
        factory.create_draft_extend_backend()


@probe
def first_prefill_without_aiter(args: Args) -> None:
    """One prefill of a few tokens on a machine without AITER."""
    without("aiter")
    prefill(args)


@probe
def first_prefill(args: Args) -> None:
    """The backend of prefill, and one prefill of a few tokens."""
    prefill(args)


def prefill(args: Args) -> None:
    from sglang.srt.layers.attention.attention_registry import ATTENTION_BACKENDS
    from sglang.srt.layers.radix_attention import RadixAttention

    with on_cpu():
        made = runner(args)
        backend = ATTENTION_BACKENDS[made.prefill_attention_backend_str](made)
        config = made.model_config
        heads, kv = config.num_attention_heads, config.get_num_kv_heads(1)
        layer = RadixAttention(heads, config.head_dim, 1.0, kv, 0, v_head_dim=config.v_head_dim)
        words = {name: torch.zeros(4, n * size) for name, n, size in (
            ("q", heads, config.head_dim), ("k", kv, config.head_dim), ("v", kv, config.v_head_dim))}  # fmt: skip
        one = torch.tensor
        batch = mock.MagicMock(
            seq_lens=one([4]), extend_seq_lens=one([4]), extend_prefix_lens=one([0]), req_pool_indices=one([0]),
            encoder_lens=None,
        )  # fmt: skip
        batch.attn_attend_prefix_cache = False
        for mode in ("is_target_verify", "is_draft_extend_v2", "is_dllm_extend"):
            getattr(batch.forward_mode, mode).return_value = False
        backend.forward_metadata = mock.MagicMock(image_token_ranges=None)
        extra = {"sinks": torch.zeros(heads)} if config.has_attention_sinks else {}
        backend.forward_extend(words["q"], words["k"], words["v"], layer, batch, **extra)


@probe
def aiter_decode_layer(args: Args) -> None:
    """What aiter's paged decode says to a layer with the model's window."""
    from sglang.srt.layers.attention.aiter_backend import AiterAttnBackend

    config = runner(args).model_config
    window = getattr(config.hf_text_config, "sliding_window", None)
    if args.attention_backend == "aiter":
        layer = types.SimpleNamespace(layer_id=0, sliding_window_size=window)
        existing(AiterAttnBackend, "_reject_paged_decode_sliding_window")(layer)


@probe
def trtllm_rows(args: Args) -> None:
    """trtllm_mha's view of the KV pool."""
    from sglang.srt.layers.attention.trtllm_mha_backend import TRTLLMHAAttnBackend

    made = runner(args)
    if made.prefill_attention_backend_str != "trtllm_mha":
        return
    config, pool = made.model_config, made.token_to_kv_pool
    heads = config.get_num_kv_heads(1)
    layer = types.SimpleNamespace(tp_k_head_num=heads, tp_v_head_num=heads)
    view = types.SimpleNamespace(page_size=made.page_size)
    existing(TRTLLMHAAttnBackend, "_reshape_paged_kv_cache")(view, pool.k, pool.v, layer, config.head_dim)


@probe
def flashmla_decode(args: Args) -> None:
    """FlashMLA's decode, as far as its check of the cache type."""
    from sglang.srt.layers.attention import flashmla_backend as module

    made = runner(args)
    backend = Beyond(
        is_fp8_kvcache=made.kv_cache_dtype in CACHE_TYPES.values(),
        dcp_world_size=args.dcp_size,
        token_to_kv_pool=made.token_to_kv_pool,
    )
    layer = Beyond(layer_id=0, tp_q_head_num=1, head_dim=1)
    batch = Beyond(batch_size=1, out_cache_loc=None)
    module.FlashMLABackend.forward_decode(backend, torch.zeros(1, 1), None, None, layer, batch)


@probe
def fa4_kernel(args: Args) -> None:
    """The fa4 kernel's own checks, for the model's heads, the cache's type and pages."""
    import device
    from torch._subclasses.fake_tensor import FakeTensorMode

    torch._C._cuda_getCurrentRawStream = None  # a CPU build has none; the kernel's module looks it up

    made = runner(args)
    if "fa4" not in (made.prefill_attention_backend_str, made.decode_attention_backend_str):
        return
    if made.use_mla_backend and importlib.util.find_spec("sglang.jit_kernel"):
        with contextlib.suppress(ImportError):  # the kernel is another package's here; what it is handed is checked before
            entry = importlib.import_module("sglang.jit_kernel.flash_attention_v4")
            entry.flash_attn_with_kvcache(*[torch.zeros(1)] * 3, qv=torch.zeros(1))
    from sglang.kernels.ops.attention.flash_attn.cute import interface

    config = made.model_config
    heads, kv = config.num_attention_heads, config.get_num_kv_heads(1)
    arch = device.FACTS["capability_major"] * 10 + device.FACTS["capability_minor"]
    sizes = (64, 512) if made.use_mla_backend else (config.head_dim, config.v_head_dim)
    page = made.page_size
    interface._flash_attn_fwd.compile_cache = {}
    kernels = ("FlashAttentionForwardSm90", "FlashAttentionForwardSm100", "FlashAttentionMLAForwardSm100")
    passed = mock.MagicMock(side_effect=PassedError)
    with FakeTensorMode(), mock.patch.multiple(interface, **dict.fromkeys(kernels, passed)):
        new = torch.empty
        kind = made.kv_cache_dtype
        q = new(8, heads, sizes[0], dtype=torch.bfloat16)
        k, v = (new(4, page, 1 if made.use_mla_backend else kv, size, dtype=kind) for size in sizes)
        qv = new(8, heads, sizes[1], dtype=torch.bfloat16) if made.use_mla_backend else None
        one = torch.int32
        interface._flash_attn_fwd(
            q, k, v, qv=qv, cu_seqlens_q=new(2, dtype=one), seqused_k=new(1, dtype=one), max_seqlen_q=8,
            page_table=new(1, 4, dtype=one), causal=True, softmax_scale=1.0, num_splits=1, _arch=arch,
        )  # fmt: skip


@probe
def kda_kernels(args: Args) -> None:
    """The kernels of Kimi delta attention, by name."""
    from sglang.srt.layers.attention.linear.kda_backend import KDAKernelDispatcher

    runner(args)
    dispatcher(KDAKernelDispatcher, linear_backends(args))


@probe
def gdn_kernels(args: Args) -> None:
    """The kernels of gated delta net layers, by name."""
    from sglang.srt.layers.attention.linear import gdn_backend

    runner(args)
    names = linear_backends(args)
    if hasattr(gdn_backend, "_validate_gdn_linear_attn_backends"):  # not in every release
        gdn_backend._validate_gdn_linear_attn_backends(names)
    if hasattr(gdn_backend, "validate_gdn_mis_backend"):
        gdn_backend.validate_gdn_mis_backend(names.prefill)
    dispatcher(gdn_backend.GDNKernelDispatcher, names)


@probe
def mamba2_backend(args: Args) -> None:
    """The backend of Mamba2 layers."""
    from sglang.srt.layers.attention.hybrid_linear_attn_backend import Mamba2AttnBackend

    Mamba2AttnBackend(runner(args))


@probe
def draft_offsets(args: Args) -> None:
    """What Triton's draft steps set aside for the captured batches."""
    from sglang.srt.layers.attention.triton_backend import TritonMultiStepDraftBackend

    made = runner(args)
    steps = Beyond(topk=args.speculative_eagle_topk, max_context_len=made.model_config.context_len)
    decode = args.cuda_graph_config["decode"]
    captured = decode["max_bs"] if isinstance(decode, dict) else decode.max_bs
    largest = min(captured, args.max_running_requests)
    TritonMultiStepDraftBackend.init_cuda_graph_state(steps, largest, largest * args.speculative_eagle_topk)
