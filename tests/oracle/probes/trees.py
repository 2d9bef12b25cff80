"""Probes of a draft's shape, and of the backends that draft and verify it."""

from __future__ import annotations

from .backends import DRAFT, HEAD, LLAMA, NEXT, TARGET, V3, on
from .probe import shows

SHAPE = "--speculative-num-steps {} --speculative-eagle-topk {} --speculative-num-draft-tokens {}"
EAGLE3 = f"{LLAMA} --speculative-algorithm EAGLE3 --speculative-draft-model-path eagle3-llama-8b-draft"
MTP = f"{V3} --speculative-algorithm EAGLE"
TREE, CHAIN = SHAPE.format(3, 4, 8), SHAPE.format(3, 1, 4)
OSS = f"--model-path gpt-oss-20b {EAGLE3.removeprefix(LLAMA)} {TREE} --attention-backend fa3 --page-size {{}}"
PREFILL = f"{EAGLE3} {{}} --disaggregation-mode prefill --attention-backend triton --page-size 1"
NGRAM = "--speculative-algorithm NGRAM --speculative-ngram-max-bfs-breadth {}"
QSA = f"--model-path examples/qwen4-exp --speculative-algorithm EAGLE {SHAPE}"
M3 = f"--model-path examples/minimax-m3 {NGRAM} --attention-backend triton --page-size 1"
MANY = "--tp-size 32 --nnodes 4 --node-rank 0 --dist-init-addr 10.0.0.1:5000"  # a rank has one head of each kind
KIMI = f"--model-path kimi-k2 --tp-size 8 --trust-remote-code {HEAD} --attention-backend trtllm_mla {{}}"


def split(base: str, decode: str) -> str:
    """DeepSeek-V3 with MTP on a base backend that takes paged trees and another one that decodes."""
    return f"{MTP} --attention-backend {base} --decode-attention-backend {decode}"


TREES = (
    shows(
        "draft-shape-is-positive", "draft_tree", "h100", f"{EAGLE3} {SHAPE.format(3, 0, 4)}", f"{EAGLE3} {CHAIN}",
    ),
    shows(
        "tree-needs-draft-tokens", "reserved_tokens", "h100",
        f"{EAGLE3} --speculative-num-steps 3 --speculative-eagle-topk 4", f"{EAGLE3} {TREE}",
    ),
    shows(
        "tree-needs-draft-tokens", "allocation_per_step", "h100",
        f"{LLAMA} --speculative-algorithm STANDALONE --speculative-draft-model-path llama-3.2-1b --speculative-num-steps 3 "
        "--speculative-eagle-topk 4",
        f"{LLAMA} --speculative-algorithm STANDALONE --speculative-draft-model-path llama-3.2-1b {TREE}",
        name="standalone-tree-needs-draft-tokens",
    ),
    shows(
        "draft-leaves-room-for-a-prompt", "shortest_prompt", "h100",
        f"{EAGLE3} {SHAPE.format(5, 8, 16)} --context-length 41", f"{EAGLE3} {SHAPE.format(5, 8, 16)} --context-length 42",
    ),
    shows(
        "transfer-carries-16-branches", "transferred_branches", "h100", PREFILL.format(SHAPE.format(2, 17, 32)),
        PREFILL.format(SHAPE.format(2, 16, 32)),
    ),
    shows("sliding-window-trees-need-single-token-pages", "verify_window", "h100", OSS.format(16), OSS.format(1)),
    shows("gdn-backends-on-blackwell", "hybrid_wrapper", "b200", on("fa3", NEXT), on("triton", NEXT)),
    shows(
        "gdn-backends-on-blackwell", "hybrid_wrapper", "b200", on("flashinfer", NEXT), on("fa4", NEXT),
        name="gdn-on-flashinfer-on-blackwell",
    ),
    shows(
        "hpc-ops-never-speculates", TARGET, "h100", f"{EAGLE3} {CHAIN} --attention-backend hpc_ops", on("hpc_ops"),
    ),
    shows("mla-backend-needs-an-mla-model", TARGET, "b200", on("trtllm_mla"), on("flashinfer")),
    shows("mha-backend-needs-a-model-without-mla", TARGET, "b200", on("trtllm_mha", V3), on("flashinfer", V3)),
    shows(
        "mla-backend-needs-an-mla-draft", DRAFT, "b200", KIMI.format(""),
        KIMI.format("--speculative-draft-attention-backend flashinfer"),
    ),
    shows(
        "trtllm-mha-needs-a-draft-without-mla", DRAFT, "b200",
        f"{MTP} {CHAIN} --attention-backend flashinfer --speculative-draft-attention-backend trtllm_mha",
        f"{MTP} {CHAIN} --attention-backend flashinfer",
    ),
    shows(
        "fa3-draft-devices", DRAFT, "b200",
        f"{EAGLE3} {CHAIN} --attention-backend flashinfer --speculative-draft-attention-backend fa3",
        f"{EAGLE3} {CHAIN} --attention-backend flashinfer",
    ),
    shows(
        "eagle-draft-decode-backends", DRAFT, "h100", f"{EAGLE3} {CHAIN} --attention-backend torch_native",
        f"{EAGLE3} {CHAIN} --attention-backend flashinfer", name="torch-native-drafts-no-steps",
    ),
    shows(
        "eagle-draft-extend-backends", DRAFT, "h100", f"{EAGLE3} {SHAPE.format(1, 1, 2)} --attention-backend torch_native",
        f"{EAGLE3} {SHAPE.format(1, 1, 2)} --attention-backend flashinfer", name="torch-native-extends-no-draft",
    ),
    shows(
        "eagle-draft-decode-backends", "decode_steps", "b200", f"{split('flashinfer', 'cutlass_mla')} {CHAIN}",
        f"{split('flashinfer', 'tokenspeed_mla')} --kv-cache-dtype fp8_e4m3 {CHAIN}",
        name="cutlass-mla-drafts-no-steps",
    ),
    shows(
        "latent-draft-backends-chain-only", "decode_steps", "b200",
        f"{split('flashinfer', 'tokenspeed_mla')} --kv-cache-dtype fp8_e4m3 {TREE}",
        f"{split('flashinfer', 'tokenspeed_mla')} --kv-cache-dtype fp8_e4m3 {CHAIN}",
        name="tokenspeed-mla-drafts-a-tree",
    ),
    shows(
        "latent-draft-backends-chain-only", "decode_steps", "b200", f"{split('flashinfer', 'trtllm_mla')} {TREE}",
        f"{split('flashinfer', 'trtllm_mla')} {CHAIN}", name="trtllm-mla-drafts-a-tree",
    ),
    shows(
        "latent-draft-backends-chain-only", "decode_steps", "b200", f"{split('flashinfer', 'cutedsl_mla')} {TREE}",
        f"{split('flashinfer', 'cutedsl_mla')} {CHAIN}", name="cutedsl-mla-drafts-a-tree",
    ),
    shows(
        "latent-draft-backends-chain-only", "decode_steps", "h200", f"{split('fa3', 'flashmla')} {TREE}",
        f"{split('fa3', 'flashmla')} {CHAIN}", name="flashmla-drafts-a-tree",
    ),
    shows(
        "trtllm-mha-pages-of-128", TARGET, "b200", f"{on('trtllm_mha')} {MANY} --page-size 128",
        f"{on('trtllm_mha')} {MANY} --page-size 64", name="trtllm-mha-pages-of-128-for-single-heads",
    ),
    shows(
        "torch-native-never-verifies", "torch_native_verify", "h100", f"{on('torch_native')} {NGRAM.format(1)}",
        on("torch_native"),
    ),
    shows(
        "minicpm-sparse-never-verifies", "minicpm_verify", "h100", f"{on('minicpm_flashattn')} {NGRAM.format(1)}",
        f"{on('triton')} {NGRAM.format(1)}",
    ),
    shows(
        "qwen-sparse-attention-chain-only", "sparse_draft_steps", "b200", QSA.format(3, 2, 4), QSA.format(3, 1, 4),
    ),
    shows("minimax-m3-on-rocm-chain-only", "minimax_sparse_backend", "mi300x", M3.format(10), M3.format(1)),
)  # fmt: skip
