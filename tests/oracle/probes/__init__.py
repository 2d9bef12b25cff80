"""Laws that bite after argument resolution, each shown by the engine's own check; it must not restate the law.

A probe names a rule, a launch that trips it and a neighbour that does not, both accepted by the engine's resolution, and
the function of engine/probe*.py that hands the resolved launch to the check. `python -m tests.oracle.probes RELEASE` asks
the engine and records what it says in tests/data/ (`outcomes.py`).
"""

from __future__ import annotations

from .backends import BACKENDS
from .drafts import DRAFTS
from .probe import Probe
from .recurrent import RECURRENT
from .trees import TREES

KDA = (
    "--model-path kimi-linear-48b-a3b --trust-remote-code --tp-size 4 --attention-backend triton --mamba-ssm-dtype bfloat16 "
    "--speculative-algorithm EAGLE --speculative-draft-model-path llama-3.2-1b --linear-attn-verify-backend {} {}"
)
TREE = "--speculative-num-steps 3 --speculative-eagle-topk 4 --speculative-num-draft-tokens {}"
CHAIN = "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
LLAMA = (
    "--model-path llama-3.1-8b --speculative-algorithm EAGLE3 --speculative-draft-model-path eagle3-llama-8b-draft {}"
)
DEEPSEEK = "--model-path deepseek-v3 --tp-size 8 --attention-backend flashinfer --speculative-algorithm EAGLE {}"
PROBES = (
    Probe(
        name="kda-flashinfer-verifies-a-tree",
        rule="kda-flashinfer-verify-chain-only",
        check="kda_verify_kernel",
        device="b200",
        trips=KDA.format("flashinfer", TREE.format(8)),
        passes=KDA.format("flashinfer", CHAIN),
    ),
    Probe(
        name="kda-backend-for-a-tree",
        rule="kda-flashinfer-verify-chain-only",
        check="kda_backend",
        device="b200",
        trips=KDA.format("flashinfer", TREE.format(8)),
        passes=KDA.format("triton", TREE.format(8)),
    ),
    Probe(
        name="tree-larger-than-its-candidates",
        rule="tree-fits-its-candidates",
        check="draft_tree",
        device="h100",
        trips=LLAMA.format(TREE.format(38)),
        passes=LLAMA.format(TREE.format(37)),
    ),
    Probe(
        name="flashinfer-mla-drafts-a-tree",
        rule="latent-draft-backends-chain-only",
        check="flashinfer_mla_draft",
        device="b200",
        trips=DEEPSEEK.format(TREE.format(8)),
        passes=DEEPSEEK.format(CHAIN),
    ),
    Probe(
        name="fa3-on-blackwell",
        rule="fa3-devices",
        check="attention_backend",
        device="b200",
        trips="--model-path llama-3.1-8b --attention-backend fa3",
        passes="--model-path llama-3.1-8b --attention-backend fa3",
        passes_on="h100",
    ),
    *BACKENDS,
    *DRAFTS,
    *RECURRENT,
    *TREES,
)
