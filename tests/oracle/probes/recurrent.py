"""Probes of recurrent layers, memory pools and graphs: what they refuse once a launch is resolved."""

from __future__ import annotations

from .probe import shows

CHAIN = "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
NEXT = "--model-path qwen3-next-80b-a3b --tp-size 4"
KIMI = "--model-path kimi-linear-48b-a3b --tp-size 4 --trust-remote-code"
K3 = "--model-path kimi-k3 --tp-size 8 --trust-remote-code --mamba-ssm-dtype bfloat16 {}"
NGRAM = "--speculative-algorithm NGRAM"
DRAFT = "--speculative-algorithm EAGLE --speculative-draft-model-path llama-3.2-1b"
NGRAM_CHAIN = f"{NGRAM} --speculative-ngram-max-bfs-breadth 1"
LING = "--model-path examples/ling-2.5-flash --attention-backend triton --page-size 1 --speculative-algorithm EAGLE {}"
TREE = "--speculative-num-steps 3 --speculative-eagle-topk 2 --speculative-num-draft-tokens 4"
V4 = "--model-path deepseek-v4-flash --tp-size 8 --speculative-algorithm EAGLE {}"
V4_SHAPE = "--speculative-num-steps {} --speculative-eagle-topk 1 --speculative-num-draft-tokens {}"
QWEN4 = "--model-path examples/qwen4-exp --speculative-algorithm EAGLE --speculative-eagle-topk 1 {}"
PAGED = "--model-path qwen3-30b-a3b --enable-paged-experts"
RESIDENT = f"{PAGED} --paged-experts-num-resident 32"
ONLINE = {"SGLANG_OPT_USE_ONLINE_COMPRESS": "1"}
RECURRENT = (
    shows("gdn-has-no-helion-kernels", "gdn_kernels", "h200", f"{NEXT} --linear-attn-backend helion", NEXT),
    shows("kda-verify-kernels", "kda_kernels", "b200", f"{KIMI} --linear-attn-verify-backend cutedsl", KIMI),
    shows(
        "kda-verify-kernels", "kda_kernels", "b200", f"{KIMI} --linear-attn-verify-backend helion", KIMI,
        name="kda-verifies-on-helion-later",
    ),
    shows(
        "kda-prefill-kernels", "kda_kernels", "h200", f"{KIMI} --linear-attn-prefill-backend flashinfer", KIMI,
        name="kda-prefills-on-flashinfer-later",
    ),
    shows("kda-decode-kernels", "kda_kernels", "b200", f"{KIMI} --linear-attn-decode-backend ptx_kda", KIMI),
    shows(
        "kda-decode-kernels", "kda_kernels", "b200",
        f"{KIMI} --mamba-ssm-dtype bfloat16 --linear-attn-decode-backend flashinfer", KIMI,
        name="kda-decodes-on-flashinfer-since-0.5.16",
    ),
    shows(
        "kda-flashinfer-verify-chain-only", "kda_backend", "b200",
        f"{KIMI} {DRAFT} {TREE} --attention-backend triton --mamba-ssm-dtype bfloat16 --linear-attn-decode-backend flashinfer",
        f"{KIMI} {DRAFT} {CHAIN} --attention-backend triton --mamba-ssm-dtype bfloat16 --linear-attn-decode-backend flashinfer",
        name="kda-verifies-a-tree-where-it-decodes",
    ),
    shows(
        "kda-flashinfer-needs-blackwell", "kda_kernels", "h200",
        f"{KIMI} --mamba-ssm-dtype bfloat16 --linear-attn-decode-backend flashinfer", on="b200",
    ),
    shows(
        "kda-safe-gate-verify-kernels", "kda_gated_verify", "b200",
        K3.format(f"{NGRAM_CHAIN} --linear-attn-verify-backend flashinfer"), K3.format(NGRAM_CHAIN),
    ),
    shows(
        "kda-safe-gate-decode-kernels", "kda_gated_decode", "b200", K3.format("--linear-attn-decode-backend flashinfer"),
        K3.format("--linear-attn-decode-backend triton"),
    ),
    shows(
        "kda-flashinfer-prefills-eagerly", "kda_prefill", "b200",
        f"{KIMI} --linear-attn-prefill-backend flashinfer --cuda-graph-backend-prefill full",
        f"{KIMI} --linear-attn-prefill-backend flashinfer --cuda-graph-backend-prefill breakable",
    ),
    shows(
        "replayed-block-drafts-need-kda", "hybrid_request_pool", "h200",
        f"{NEXT} --speculative-algorithm DFLASH --speculative-draft-model-path llama-3.2-1b --enable-linear-replayssm-spec",
        f"{KIMI} --speculative-algorithm DFLASH --speculative-draft-model-path llama-3.2-1b --enable-linear-replayssm-spec",
    ),
    shows(
        "replayed-verification-needs-a-chain", "gdn_replayed_verify", "h200",
        f"{NEXT} {NGRAM} --enable-linear-replayssm-spec --page-size 1",
        f"{NEXT} {NGRAM_CHAIN} --enable-linear-replayssm-spec --page-size 1",
    ),
    shows("lightning-verifies-chains-only", "lightning_backend", "h100", LING.format(TREE), LING.format(CHAIN)),
    shows(
        "mamba1-never-speculates", "mamba1_verify", "h100", f"--model-path examples/falcon-mamba-7b {NGRAM}",
        "--model-path examples/falcon-mamba-7b",
    ),
    shows(
        "state-slots-hold-a-request", "state_slots", "h200", f"{KIMI} --max-mamba-cache-size 4",
        f"{KIMI} --max-mamba-cache-size 5",
    ),
    shows(
        "state-slots-hold-a-request", "state_slots", "h200",
        f"{KIMI} --max-mamba-cache-size 2 --mamba-radix-cache-strategy no_buffer --disable-overlap-schedule",
        f"{KIMI} --max-mamba-cache-size 3 --mamba-radix-cache-strategy no_buffer --disable-overlap-schedule",
        name="state-slots-without-a-buffer",
    ),
    shows(
        "state-slots-hold-a-request", "state_slots", "h200", f"{KIMI} --max-mamba-cache-size 0 --disable-radix-cache",
        f"{KIMI} --max-mamba-cache-size 1 --disable-radix-cache", name="state-slots-without-a-tree",
    ),
    shows(
        "lazy-extra-buffer-needs-overlap", "state_slots", "h200",
        f"{KIMI} --mamba-radix-cache-strategy extra_buffer_lazy --disable-overlap-schedule --max-mamba-cache-size 64",
        f"{KIMI} --mamba-radix-cache-strategy extra_buffer_lazy --max-mamba-cache-size 64",
    ),
    shows(
        "uno-over-states-needs-a-request-limit", "state_slots", "h100",
        "--model-path qwen3.5-35b-a3b --attention-backend fa3 --page-size 1 --speculative-algorithm UNO "
        "--uno-lora-path adapter --speculative-num-draft-tokens 8 --max-mamba-cache-size 64",
        "--model-path qwen3.5-35b-a3b --attention-backend fa3 --page-size 1 --speculative-algorithm UNO "
        "--uno-lora-path adapter --speculative-num-draft-tokens 8 --max-mamba-cache-size 64 --max-running-requests 16",
    ),
    shows(
        "deepseek-v4-verifies-10-tokens-at-most", "compressed_pool", "b200", V4.format(V4_SHAPE.format(10, 11)),
        V4.format(V4_SHAPE.format(9, 10)),
    ),
    shows(
        "deepseek-v4-online-compression-without-speculation", "compressed_pool", "b200", V4.format(CHAIN),
        env=ONLINE, passes_env={**ONLINE, "SGLANG_EXPERIMENTAL_ONLINE_C128_MTP": "1"},
    ),
    shows(
        "qwen-sparse-attention-width", "qwen_sparse_verify", "b200",
        QWEN4.format("--speculative-num-steps 7 --speculative-num-draft-tokens 8"),
        QWEN4.format("--speculative-num-steps 3 --speculative-num-draft-tokens 4"),
    ),
    shows(
        "encoder-decoder-excludes-triton", "prefill_backend", "h100",
        "--model-path examples/whisper-large-v3 --attention-backend triton", "--model-path llama-3.1-8b --attention-backend triton",
    ),
    shows("paged-experts-never-speculate", "paged_experts", "h100", f"{RESIDENT} {NGRAM}", RESIDENT),
    shows("paged-experts-fill-one-gpu", "paged_experts", "h100", f"{RESIDENT} --tp-size 2", RESIDENT),
    shows(
        "paged-experts-capture-what-they-can", "paged_experts", "h100", f"{RESIDENT} --cuda-graph-backend-prefill full", RESIDENT,
    ),
    shows(
        "paged-experts-hold-a-token-s-experts", "paged_experts", "h100", f"{PAGED} --paged-experts-num-resident 7",
        f"{PAGED} --paged-experts-num-resident 8",
    ),
    shows("paged-experts-exclusions", "paged_experts", "h100", f"{RESIDENT} --load-format dummy", RESIDENT),
    shows(
        "cpu-graphs-never-verify", "cpu_graphs", "cpu", f"--model-path llama-3.1-8b --device cpu --enable-torch-compile {NGRAM}",
        "--model-path llama-3.1-8b --device cpu --enable-torch-compile",
    ),
    shows(
        "decoupled-speculation-names-its-endpoints", "ports", "h100", "--model-path llama-3.1-8b --decoupled-spec-role verifier",
        "--model-path llama-3.1-8b",
    ),
)  # fmt: skip
