"""Probes of attention backends and kernels: which can be built for a launch, and what their first call refuses."""

from __future__ import annotations

from .probe import shows

LLAMA = "--model-path llama-3.1-8b"
CHAIN = "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
HEAD = f"--speculative-algorithm EAGLE3 --speculative-draft-model-path eagle3-llama-8b-draft {CHAIN}"
V3 = "--model-path deepseek-v3 --tp-size 8"
SPARSE = "--model-path deepseek-v3.2 --tp-size {}"
NEXT = "--model-path qwen3-next-80b-a3b --tp-size 4"
KIMI = "--model-path kimi-linear-48b-a3b --tp-size 4 --trust-remote-code"
MIMO = "--model-path mimo-v2-flash --tp-size 4 --trust-remote-code"
NANO = "--model-path nemotron-3-nano --trust-remote-code --mamba-radix-cache-strategy {}"
GLM_TRTLLM = (
    f"--model-path glm-4.5-air --tp-size 4 --attention-backend trtllm_mha --speculative-algorithm EAGLE {CHAIN}"
)
SCOUT = (
    "--model-path llama-4-scout --tp-size 8 --attention-backend triton --speculative-algorithm EAGLE3 "
    "--speculative-draft-model-path eagle3-llama-8b-draft --speculative-num-steps 3 --speculative-eagle-topk 8 "
    "--speculative-num-draft-tokens 8 {}"
)
K3 = "--model-path kimi-k3 --trust-remote-code --attention-backend aiter --tp-size {}"


def on(backend: str, model: str = LLAMA) -> str:
    """A launch with an attention backend."""
    return f"{model} --attention-backend {backend}"


TARGET, DRAFT, FA4 = "target_backends", "draft_backends", "fa4_kernel"
BACKENDS = (
    shows("aiter-needs-rocm", "first_prefill_without_aiter", "h100", on("aiter"), on("flashinfer")),
    shows("flashinfer-kernels-need-nvidia", TARGET, "mi300x", on("flashinfer"), on="h100"),
    shows("flashinfer-kernels-need-nvidia", TARGET, "mi300x", on("flashmla", V3), on="h200", name="flashmla-on-rocm"),
    shows("flashmla-needs-latent-attention", TARGET, "h100", on("flashmla"), on("flashinfer")),
    shows("dsa-backend-needs-sparse-attention", TARGET, "h100", on("dsa"), on("fa3")),
    shows(
        "dsa-backend-needs-sparse-attention", DRAFT, "h200", f"{SPARSE.format(8)} {HEAD}",
        f"{SPARSE.format(8)} {HEAD} --speculative-draft-attention-backend triton", name="dsa-inherited-by-a-draft",
    ),
    shows("dsv4-backend-needs-deepseek-v4", TARGET, "h100", on("dsv4"), on("fa3")),
    shows("intel-amx-needs-a-cpu-engine", TARGET, "h100", on("intel_amx"), on("triton")),
    shows("ascend-backend-needs-npu", TARGET, "h100", on("ascend"), on("triton")),
    shows(
        "triton-attention-needs-a-gpu", "first_prefill", "cpu", f"{on('triton')} --device cpu",
        f"{on('torch_native')} --device cpu",
    ),
    shows("fa4-devices", FA4, "a100-80g", on("fa4"), on="h100"),
    shows("fa4-absorbs-latent-attention-on-datacenter-blackwell", FA4, "h200", on("fa4", V3), on="b200"),
    shows("fa4-heads-of-256-on-datacenter-blackwell", FA4, "b200", on("fa4", NEXT), on="h200"),
    shows("fa4-head-sizes", FA4, "b200", on("fa4", "--model-path examples/stablelm-2-12b"), on="h100"),
    shows("fa4-fp8-cache", FA4, "b200", f"{on('fa4')} --kv-cache-dtype fp8_e4m3", on("fa4")),
    shows("trtllm-mha-pages-of-128", TARGET, "b200", f"{on('trtllm_mha', MIMO)} --page-size 128", on("triton", MIMO)),
    shows("trtllm-mha-needs-equal-rows", "trtllm_rows", "h200", on("trtllm_mha", MIMO), on("trtllm_mha")),
    shows("attention-sinks-backends", "first_prefill", "h200", on("flashinfer", MIMO), on("fa3", MIMO)),
    shows("aiter-latent-head-counts", TARGET, "mi355x", K3.format(4), K3.format(8)),
    shows(
        "aiter-windows-need-their-pool", "aiter_decode_layer", "mi300x", on("aiter", "--model-path gemma-3-27b --tp-size 2"),
        on("triton", "--model-path gemma-3-27b --tp-size 2"),
    ),
    shows("llada2-backend-without-mla", TARGET, "h200", on("llada2_cfg_flashinfer", V3), on("llada2_cfg_flashinfer")),
    shows("hpc-ops-needs-hopper", TARGET, "b200", on("hpc_ops"), on="h100"),
    shows("hpc-ops-head-shapes", TARGET, "h200", on("hpc_ops", "--model-path glm-4.5-air --tp-size 4"), on("hpc_ops")),
    shows("hpc-ops-cache-types", TARGET, "h100", f"{on('hpc_ops')} --kv-cache-dtype fp8_e4m3", on("hpc_ops")),
    shows("minicpm-sparse-needs-a-sparse-checkpoint", TARGET, "h100", on("minicpm_flashattn"), on("fa3")),
    shows(
        "window-drafts-need-another-backend", DRAFT, "h100",
        f"{LLAMA} {HEAD} --speculative-draft-window-size 512 --speculative-draft-attention-backend flashinfer",
        f"{LLAMA} {HEAD} --speculative-draft-window-size 512 --speculative-draft-attention-backend triton",
    ),
    shows(
        "trtllm-mla-speculates-without-dcp", TARGET, "b200",
        f"{on('trtllm_mla', V3)} --dcp-size 8 --speculative-algorithm EAGLE {CHAIN}",
        f"{on('trtllm_mla', V3)} --dcp-size 8",
    ),
    shows(
        "flashmla-fp8-cache-without-dcp", "flashmla_decode", "h200",
        f"{on('flashmla', V3)} --dcp-size 8 --kv-cache-dtype fp8_e4m3", f"{on('flashmla', V3)} --dcp-size 8",
    ),
    shows(
        "sparse-q8-prefill-only", TARGET, "h200", f"{SPARSE.format(8)} --dsa-decode-backend flashmla_sparse_q8",
        SPARSE.format(8),
    ),
    shows(
        "sparse-q8-prefills-on-hopper", TARGET, "b200",
        f"{SPARSE.format(8)} --dsa-prefill-backend flashmla_sparse_q8 --kv-cache-dtype bfloat16", on="h200",
    ),
    shows(
        "sparse-q8-prefills-on-hopper", TARGET, "b200",
        f"{SPARSE.format(8)} --dsa-prefill-backend flashmla_sparse_q8 --kv-cache-dtype fp8_e4m3", on="h200",
        name="sparse-q8-prefills-on-hopper-over-fp8",
    ),
    shows(
        "sparse-q8-reads-an-fp8-cache", TARGET, "h200", f"{SPARSE.format(8)} --dsa-prefill-backend flashmla_sparse_q8",
        f"{SPARSE.format(8)} --dsa-prefill-backend flashmla_sparse_q8 --kv-cache-dtype fp8_e4m3",
    ),
    shows(
        "sparse-q8-reads-a-packed-cache", TARGET, "b200",
        f"{SPARSE.format(8)} --dsa-prefill-backend flashmla_sparse_q8 --kv-cache-dtype fp8_e4m3", on="h200",
    ),
    shows(
        "sparse-q8-without-mixed-chunk", TARGET, "h200",
        f"{SPARSE.format(8)} --dsa-prefill-backend flashmla_sparse_q8 --kv-cache-dtype bfloat16 --enable-mixed-chunk",
        f"{SPARSE.format(8)} --dsa-prefill-backend flashmla_sparse_q8 --kv-cache-dtype bfloat16",
    ),
    shows(
        "sparse-triton-prefill-devices", TARGET, "mi300x", f"{SPARSE.format(8)} --dsa-prefill-backend triton_sparse_mla",
        on="h200",
    ),
    shows(
        "sparse-triton-prefill-heads", TARGET, "b200", f"{SPARSE.format(2)} --dsa-prefill-backend triton_sparse_mla",
        f"{SPARSE.format(8)} --dsa-prefill-backend triton_sparse_mla",
    ),
    shows(
        "sparse-triton-union-tile", TARGET, "b200",
        f"{SPARSE.format(4)} --dsa-prefill-backend triton_sparse_mla --dsa-triton-union 2",
        f"{SPARSE.format(8)} --dsa-prefill-backend triton_sparse_mla --dsa-triton-union 2",
    ),
    shows(
        "sparse-flashinfer-kernel-is-for-glm-on-sm120", TARGET, "h200",
        "--model-path glm-5-fp8 --tp-size 8 --dsa-decode-backend flashinfer_sparse_mla", "--model-path glm-5-fp8 --tp-size 8",
    ),
    shows(
        "glm-sparse-kernels-on-sm120", TARGET, "rtxpro6000",
        "--model-path glm-5-fp8 --tp-size 8 --kv-cache-dtype fp8_e4m3 --dsa-decode-backend flashmla_kv",
        "--model-path glm-5-fp8 --tp-size 8 --kv-cache-dtype fp8_e4m3",
    ),
    shows("gdn-flashinfer-devices", "gdn_kernels", "a100-80g", f"{NEXT} --linear-attn-backend flashinfer", on="h200"),
    shows("gdn-cutedsl-needs-nvidia", "gdn_kernels", "mi300x", f"{NEXT} --linear-attn-backend cutedsl", NEXT),
    shows("gdn-intel-kernels-need-xpu", "gdn_kernels", "h200", f"{NEXT} --linear-attn-backend intel_xpu", NEXT),
    shows(
        "gdn-flashinfer-prefill-is-not-deterministic", "gdn_kernels", "h200",
        f"{on('fa3', NEXT)} --enable-deterministic-inference --linear-attn-prefill-backend flashinfer",
        f"{on('fa3', NEXT)} --enable-deterministic-inference",
    ),
    shows(
        "gdn-scores-several-items-in-triton", "gdn_kernels", "h200",
        f"{on('flashinfer', NEXT)} --enable-mis --linear-attn-prefill-backend flashinfer",
        f"{on('flashinfer', NEXT)} --enable-mis --linear-attn-prefill-backend triton",
    ),
    shows(
        "mamba2-snapshots-span-a-chunk", "mamba2_backend", "h100", f"{NANO.format('extra_buffer')} --mamba-track-interval 64",
        f"{NANO.format('extra_buffer')} --mamba-track-interval 128",
    ),
    shows(
        "mla-backend-needs-an-mla-draft", DRAFT, "b200", f"{GLM_TRTLLM} --speculative-draft-attention-backend trtllm_mla", GLM_TRTLLM,
        name="mla-backend-for-an-own-head",
    ),
    shows(
        "draft-branches-fit-32-bit-offsets", "draft_offsets", "h200", SCOUT.format(""), SCOUT.format("--context-length 131072"),
    ),
    shows("kda-prefill-kernels", "kda_kernels", "h200", f"{KIMI} --linear-attn-prefill-backend intel_xpu", KIMI),
    shows("kda-kernels-need-nvidia", "kda_kernels", "mi300x", f"{KIMI} --linear-attn-backend helion", KIMI),
    shows(
        "kda-kernels-need-nvidia", "kda_kernels", "mi300x", f"{KIMI} --linear-attn-backend cutedsl", KIMI,
        name="kda-cutedsl-needs-nvidia",
    ),
    shows("kda-flashinfer-prefill-devices", "kda_kernels", "h200", f"{KIMI} --linear-attn-prefill-backend flashinfer", KIMI),
)  # fmt: skip
