"""Laws that bite after argument resolution, each shown by the engine's own check; it must not restate the law.

A probe names a rule, a launch that trips it and a neighbour that does not, both accepted by the engine's resolution, and
the function of engine/probe.py that hands the resolved launch to the check. `python -m tests.oracle.probes 0.5.23` asks the
engine and records what it says in tests/data/.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from recommender.rulebook import load_rulebook
from tests.oracle.client import ENGINE, OracleError, run
from tests.oracle.records import DATA, RecordError

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


def probes_of(release: str) -> tuple[Probe, ...]:
    """The probes of a release: the rule is one of its laws, and the check can be called there."""
    rules = load_rulebook().edition(release).rules
    return tuple(probe for probe in PROBES if release in probe.releases and probe.rule in rules)


def recorded_file(release: str) -> Path:
    """Where the outcomes of a release lie."""
    return DATA / f"probes-{release}.json"


def ask(release: str, probes: Iterable[Probe]) -> dict[str, dict[str, Any]]:
    """What the engine's checks say to these probes, by "NAME/trips" and "NAME/passes".

    Raises:
        OracleError: the engine could not be asked, or left a probe without an answer.
    """
    together: dict[tuple[str, str], list[str]] = {}
    for probe in probes:
        for _, device, case in probe.cases():
            together.setdefault((device, json.dumps(case["env"], sort_keys=True)), []).append(json.dumps(case))
    found: dict[str, dict[str, Any]] = {}
    for (device, _), lines in together.items():
        printed = run(release, device, [str(ENGINE / "probe.py")], text="\n".join(lines) + "\n")
        answers = [json.loads(line) for line in printed.splitlines()]
        if len(answers) != len(lines):
            raise OracleError(
                f"sglang {release} on {device}: {len(lines) - len(answers)} probes were left without an answer"
            )
        found.update({answer.pop("id"): answer for answer in answers})
    return dict(sorted(found.items()))


def recorded(release: str) -> dict[str, dict[str, Any]]:
    """What the engine's checks said when they were recorded.

    Raises:
        RecordError: the file is missing or damaged.
    """
    path = recorded_file(release)
    try:
        outcomes: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["outcomes"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordError(
            f"{path.name}: damaged or missing ({error}); python -m tests.oracle.probes {release}"
        ) from None
    return outcomes
