"""Probes of draft models: what the workers of an algorithm say to a draft, its target and its shape when they are built."""

from __future__ import annotations

from .probe import shows

CHAIN = "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
LLAMA = "--model-path llama-3.1-8b --speculative-algorithm {} --speculative-draft-model-path {} {}"
EAGLE3 = LLAMA.format("EAGLE3", "eagle3-llama-8b-draft", "{}")
QWEN = "--model-path qwen3-8b --speculative-algorithm {} --speculative-draft-model-path examples/qwen3-8b-{}"
MIXTRAL = "--model-path mixtral-8x7b --tp-size 2 --speculative-algorithm {} --speculative-draft-model-path {}"
KIMI = (
    "--model-path kimi-k2 --tp-size 8 --trust-remote-code --speculative-algorithm EAGLE3 "
    f"--speculative-draft-model-path eagle3-llama-8b-draft {CHAIN} --attention-backend trtllm_mla {{}}"
)
INKLING = f"--model-path examples/inkling --speculative-algorithm EAGLE {CHAIN} {{}}"
MIMO = "--model-path mimo-v2-flash --tp-size 8 --trust-remote-code --attention-backend triton --page-size 1 --speculative-algorithm EAGLE {}"
GLM = "--model-path glm-4.5-air --tp-size 4 --speculative-algorithm EAGLE --enable-multi-layer-eagle {}"
GEMMA = "--model-path gemma-4-26b-a4b --speculative-algorithm FROZEN_KV_MTP --attention-backend triton {}"
SHAPE = "--speculative-num-steps {} --speculative-eagle-topk {} --speculative-num-draft-tokens {}"
V4 = "--model-path deepseek-v4-flash --speculative-algorithm DSPARK --speculative-draft-model-path deepseek-v4-flash --tp-size 4 --enable-dp-lm-head {}"
MTP_IN_MXFP4 = "--model-path {} --tp-size 8 --quantization quark_mxfp4 --speculative-algorithm EAGLE"
COMPACT = {"SGLANG_RAGGED_VERIFY_MODE": "compact"}
SIMULATED = {"SGLANG_SIMULATE_ACC_LEN": "2"}
CAPTURE, STEPS, LAYERS = "target_capture", "draft_steps", "target_hidden_states"
DRAFTS = (
    shows(
        "eagle3-target-hands-over-hidden-states", CAPTURE, "h100",
        MIXTRAL.format("EAGLE3", "eagle3-llama-8b-draft"), EAGLE3.format(""),
    ),
    shows(
        "block-draft-target-hands-over-hidden-states", CAPTURE, "h100",
        MIXTRAL.format("DFLASH", "llama-3.2-1b"), LLAMA.format("DFLASH", "llama-3.2-1b", ""),
    ),
    shows(
        "block-draft-target-hands-over-hidden-states", CAPTURE, "h100",
        "--model-path kimi-k3 --tp-size 8 --trust-remote-code --speculative-algorithm DFLASH "
        "--speculative-draft-model-path examples/qwen3-8b-dflash", QWEN.format("DFLASH", "dflash"),
        name="dflash-on-kimi-k3-before-0.5.20",
    ),
    shows(
        "block-draft-target-hands-over-hidden-states", CAPTURE, "h100",
        "--model-path nemotron-3-nano --trust-remote-code --speculative-algorithm DFLASH --speculative-draft-model-path llama-3.2-1b",
        LLAMA.format("DFLASH", "llama-3.2-1b", ""), name="dflash-on-nemotron-h-before-0.5.19",
    ),
    shows(
        "eagle3-target-hands-over-hidden-states", CAPTURE, "h200",
        "--model-path examples/minimax-m3 --speculative-algorithm EAGLE3 --speculative-draft-model-path eagle3-llama-8b-draft "
        f"{CHAIN}", EAGLE3.format(""), name="eagle3-on-minimax-m3-before-0.5.18",
    ),
    shows(
        "eagle-draft-decode-backends", STEPS, "h100", EAGLE3.format(f"{CHAIN} --attention-backend torch_native"),
        EAGLE3.format(f"{CHAIN} --attention-backend triton"),
    ),
    shows(
        "eagle-draft-extend-backends", STEPS, "h100",
        EAGLE3.format(f"{SHAPE.format(1, 1, 2)} --attention-backend torch_native"),
        EAGLE3.format(f"{SHAPE.format(1, 1, 2)} --attention-backend triton"),
    ),
    shows(
        "mla-backend-needs-an-mla-draft", "draft_backends", "b200", KIMI.format(""),
        KIMI.format("--speculative-draft-attention-backend triton"), name="mla-backend-inherited-by-an-eagle3-head",
    ),
    shows(
        "inkling-drafts-with-all-layers", STEPS, "h100", INKLING.format(""), INKLING.format("--enable-multi-layer-eagle"),
    ),
    shows(
        "draft-quantization-on-rocm", "draft_configuration", "mi355x", MTP_IN_MXFP4.format("deepseek-v3-0324-nvfp4"),
        MTP_IN_MXFP4.format("deepseek-v3"),
    ),
    shows(
        "standalone-shares-the-vocabulary", "shared_vocabulary", "h100", MIXTRAL.format("STANDALONE", "llama-3.2-1b"),
        LLAMA.format("STANDALONE", "llama-3.2-1b", ""),
    ),
    shows(
        "multi-layer-chain-width", "multi_layer_worker", "h200", MIMO.format(SHAPE.format(3, 2, 8)),
        MIMO.format(SHAPE.format(3, 1, 4)), name="multi-layer-chain-width-of-mimo",
    ),
    shows(
        "multi-layer-chain-width", "multi_layer_worker", "h200",
        GLM.format(f"{SHAPE.format(3, 2, 8)} --attention-backend triton --page-size 1"),
        GLM.format(f"{SHAPE.format(3, 1, 4)} --attention-backend triton --page-size 1"),
    ),
    shows("block-draft-layers-are-in-the-target", LAYERS, "h100", QWEN.format("DSPARK", "dspark-of-a-deeper-target"), QWEN.format("DSPARK", "dspark-flat")),
    shows("dspark-markov-head-is-known", LAYERS, "h100", QWEN.format("DSPARK", "dspark-with-an-unknown-head"), QWEN.format("DSPARK", "dspark-flat")),
    shows("dflash-draft-parts-come-in-pairs", LAYERS, "h100", QWEN.format("DFLASH", "dflash-half-a-selector"), QWEN.format("DFLASH", "dflash")),
    shows("domino-draft-is-complete", LAYERS, "h100", QWEN.format("DFLASH", "domino-without-a-gru"), QWEN.format("DFLASH", "domino")),
    shows(
        "dspark-draft-has-a-markov-head", LAYERS, "h100", LLAMA.format("DSPARK", "llama-3.2-1b", ""),
        QWEN.format("DSPARK", "dspark-flat"),
    ),
    shows(
        "dspark-draft-has-a-markov-head", LAYERS, "h100", QWEN.format("DSPARK", "dspark"), QWEN.format("DSPARK", "dspark-flat"),
        name="markov-rank-nested-in-dflash-config",
    ),
    shows(
        "dspark-draft-names-its-mask-token", "dspark_settings", "h100", QWEN.format("DSPARK", "dspark-without-a-mask"),
        QWEN.format("DSPARK", "dspark-flat"),
    ),
    shows(
        "block-draft-mask-token-is-in-the-vocabulary", "dspark_settings", "h100",
        QWEN.format("DSPARK", "dspark-of-a-larger-vocabulary"), QWEN.format("DSPARK", "dspark-flat"),
    ),
    shows(
        "block-draft-mask-token-is-in-the-vocabulary", "dflash_mask_token", "h100", LLAMA.format("DFLASH", "examples/qwen3-8b-dflash", ""),
        QWEN.format("DFLASH", "dflash"), name="dflash-mask-token",
    ),
    shows(
        "dflash-attention-dp-drafts-plainly", "dflash_worker", "h100",
        f"{QWEN.format('DFLASH', 'domino')} --tp-size 2 --attn-dp-size 2 --enable-dp-lm-head",
        f"{QWEN.format('DFLASH', 'dflash')} --tp-size 2 --attn-dp-size 2 --enable-dp-lm-head",
    ),
    shows(
        "domino-shares-the-vocabulary", "dflash_worker", "h100", QWEN.format("DFLASH", "domino-of-a-larger-vocabulary"),
        QWEN.format("DFLASH", "dflash"),
    ),
    shows(
        "domino-candidates-not-negative", "dflash_worker", "h100",
        f"{QWEN.format('DFLASH', 'domino')} --speculative-domino-candidate-pool-size -1", QWEN.format("DFLASH", "dflash"),
    ),
    shows(
        "dspark-moe-draft-needs-whole-attention", "dspark_worker", "b200", V4.format("--dp-size 2 --enable-dp-attention"),
        V4.format("--dp-size 4 --enable-dp-attention"),
    ),
    shows(
        "flashinfer-captures-no-ragged-verification", "ragged_verification", "h100",
        f"{QWEN.format('DSPARK', 'dspark-flat')} --attention-backend flashinfer", env=COMPACT, passes_env={},
    ),
    shows(
        "trtllm-mha-verifies-ragged-on-datacenter-blackwell", "ragged_verification", "h100",
        f"{QWEN.format('DSPARK', 'dspark-flat')} --attention-backend trtllm_mha", on="b200", env=COMPACT,
    ),
    shows(
        "dspark-compact-attention-dp-runs-eagerly", "dspark_loaded_worker", "h100",
        f"{QWEN.format('DSPARK', 'dspark-flat')} --tp-size 4 --dp-size 2 --enable-dp-attention --enable-dp-lm-head",
        env=COMPACT, passes_env={},
    ),
    shows(
        "compact-verification-captures-alone", "decode_graphs", "h100",
        f"{QWEN.format('DSPARK', 'dspark-flat')} --attention-backend fa3 --disable-cuda-graph-padding",
        f"{QWEN.format('DSPARK', 'dspark-flat')} --attention-backend fa3", env=COMPACT,
    ),
    shows("frozen-kv-needs-the-full-triple", "reserved_tokens", "h100", GEMMA.format(""), GEMMA.format(CHAIN)),
    shows(
        "tree-fits-its-candidates", "draft_tree", "h100", GEMMA.format(SHAPE.format(3, 1, 5)), GEMMA.format(CHAIN),
        name="frozen-kv-chain-longer-than-its-steps",
    ),
    shows(
        "frozen-kv-tree-backends", "frozen_kv_draft_backend", "h100",
        GEMMA.format(f"{SHAPE.format(3, 2, 4)} --speculative-draft-attention-backend fa3"), GEMMA.format(SHAPE.format(3, 2, 4)),
    ),
    shows(
        "frozen-kv-tree-backends", "frozen_kv_draft_backend", "b200",
        GEMMA.format(f"{SHAPE.format(3, 2, 4)} --speculative-draft-attention-backend trtllm_mha"), GEMMA.format(SHAPE.format(3, 2, 4)),
        name="frozen-kv-trees-on-trtllm-mha-later",
    ),
    shows(
        "rejection-sampling-needs-the-full-vocabulary", "draft_vocabulary_of_rejection_sampling", "h100",
        EAGLE3.format(f"{CHAIN} --speculative-use-rejection-sampling"), EAGLE3.format(CHAIN),
    ),
    shows(
        "simulated-acceptance-draws-by-a-known-method", "simulated_accept_length", "h100", EAGLE3.format(CHAIN),
        env=SIMULATED | {"SGLANG_SIMULATE_ACC_METHOD": "fixed"}, passes_env=SIMULATED,
    ),
)  # fmt: skip
