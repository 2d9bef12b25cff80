"""Draws random launches that a person might try, about half of them wrong; it must not know whether a launch is right.

    python -m tests.oracle.sample 7 200 b200 [--others | --harsh | --wide | --crossed | --examples] [--wild] > cases.jsonl

Each launch takes a checkpoint, a speculative setting and a few of the flags that interact with it. Equal seeds give
equal launches. --others draws the checkpoints that the plain sampler leaves out; --harsh draws all of them, odd
backends and rarer flags; --wide is as harsh and draws every checkpoint profile there is; --crossed takes the example of
a rule and some of the flags of another one's, so that it lands where laws meet; --examples takes the examples of every
edition of every rule as they stand, so that a release is asked about the laws of all others, and draws at most as many as
there are on the device; --wild adds one to three flags of the whole command line to any of these.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from recommender import library
from recommender.rulebook import load_rulebook
from recommender.versions import in_range, parse_release

from .examples import all_examples

KINDS = ("plain", "others", "harsh", "wide", "crossed", "examples")
OWN_HEAD = None
EAGLE3, SMALL = "eagle3-llama-8b-draft", "llama-3.2-1b"
PLAIN: Mapping[str, Sequence[str | None]] = {  # a checkpoint and the drafts that a person would try with it
    "llama-3.1-8b": [EAGLE3, SMALL, OWN_HEAD],
    "llama-3.1-70b": [EAGLE3, SMALL],
    "llama-4-scout": [EAGLE3],
    "qwen3-8b": [EAGLE3],
    "qwen3-30b-a3b": [EAGLE3],
    "qwen3-235b-a22b-fp8": [EAGLE3],
    "qwen3-next-80b-a3b": [OWN_HEAD],
    "qwen3.5-35b-a3b": [OWN_HEAD],
    "qwen3.5-397b-a17b": [OWN_HEAD],
    "deepseek-v3": [OWN_HEAD],
    "deepseek-v3.1-nvfp4": [OWN_HEAD],
    "deepseek-v3.2": [OWN_HEAD],
    "deepseek-v4-flash": [OWN_HEAD],
    "glm-4.5-air": [OWN_HEAD],
    "glm-5": [OWN_HEAD],
    "gpt-oss-20b": [EAGLE3],
    "gpt-oss-120b": [EAGLE3],
    "kimi-k2": [EAGLE3, OWN_HEAD],
    "kimi-linear-48b-a3b": [OWN_HEAD, SMALL],
    "mimo-v2-flash": [OWN_HEAD],
    "mixtral-8x7b": [SMALL],
    "minimax-m2.5": [EAGLE3],
    "gemma-3-27b": [SMALL],
    "nemotron-3-nano": [OWN_HEAD],
    "step-3.7-flash": [OWN_HEAD],
}
OTHERS: Mapping[str, Sequence[str | None]] = {
    "gemma-4-26b-a4b": [SMALL],
    "glm-5.3-fp8": [OWN_HEAD],
    "kimi-k2.5": [EAGLE3],
    "kimi-k3": [OWN_HEAD],
    "qwen3-32b": [EAGLE3],
    "qwen3-vl-30b-a3b": [EAGLE3],
    "qwen3.6-27b-nvfp4": [OWN_HEAD],
}
HARSH_DRAFTS = (EAGLE3, SMALL, "deepseek-v3", "glm-4.5-air", "gemma-4-26b-a4b")
ALGORITHMS = ("EAGLE",) * 6 + ("EAGLE3",) * 6 + ("NEXTN",) * 4 + ("STANDALONE",) * 2 + ("NGRAM",) * 2 + (
    "DFLASH", "DSPARK", "eagle", None)  # fmt: skip
HARSH_ALGORITHMS = (
    *ALGORITHMS, "DFLASH", "DSPARK", "UNO", "FROZEN_KV_MTP", "eagle3", "nextn", "dspark", "ngram", "Medusa",
)  # fmt: skip
BACKENDS = (
    "fa3", "fa4", "flashinfer", "triton", "trtllm_mha", "trtllm_mla", "flashmla", "cutedsl_mla", "aiter",
    "torch_native",
)  # fmt: skip
HARSH_BACKENDS = (
    *BACKENDS, "flex_attention", "hpc_ops", "dsa", "nsa", "dsv4", "tokenspeed_mla", "intel_amx", "ascend",
    "intel_xpu",
)  # fmt: skip
DRAFT_BACKENDS = ("fa3", "flashinfer", "triton", "trtllm_mha", "fa4", "trtllm_mla", "aiter")
NEVER_WILD = frozenset({"config", "model_path", "host", "port", "device", "log_level", "download_dir", "help"})
VALUELESS = frozenset({"store_true", "store_false", "boolean", "ignored"})
STEPS, TOPK = "--speculative-num-steps", "--speculative-eagle-topk"
TOKENS, DRAFT = "--speculative-num-draft-tokens", "--speculative-draft-model-path"


class Draw:
    """One launch in the making: words so far, and the dice."""

    def __init__(self, rng: random.Random, checkpoint: str) -> None:
        self.rng = rng
        self.argv = ["--model-path", f"models/{checkpoint}", "--trust-remote-code"]

    def add(self, *words: Any) -> None:
        self.argv.extend(map(str, words))

    def flag(self, chance: float, name: str, *values: Any) -> None:
        if self.rng.random() < chance:
            self.add(name, self.rng.choice(values))

    def switch(self, chance: float, name: str) -> None:
        if self.rng.random() < chance:
            self.add(name)


def plain_launch(rng: random.Random, checkpoints: Mapping[str, Sequence[str | None]]) -> list[str]:
    """A launch as users write them."""
    checkpoint = rng.choice(list(checkpoints))
    draw = Draw(rng, checkpoint)
    algorithm = rng.choice(ALGORITHMS)
    if algorithm:
        draw.add("--speculative-algorithm", algorithm)
        draft = rng.choice(checkpoints[checkpoint])
        if draft and algorithm != "NGRAM":
            draw.add(DRAFT, f"models/{draft}")
        topk = rng.choice([1, 1, 1, 2, 4, 8])
        steps = rng.choice([1, 2, 3, 3, 4, 5, 6, 7, 10])
        shape = rng.random()
        if 0.15 <= shape < 0.75:
            tokens = steps + 1 if topk == 1 else rng.choice([steps + 1, 8, 16, 32, 64])
            draw.add(STEPS, steps, TOPK, topk, TOKENS, tokens)
        elif shape >= 0.75:  # some of the three
            draw.flag(0.6, STEPS, steps)
            draw.flag(0.6, TOPK, topk)
            draw.flag(0.6, TOKENS, 4, 8, 16, 32)
        draw.flag(0.1, "--speculative-draft-attention-backend", *DRAFT_BACKENDS[:5])
        draw.flag(0.05, "--speculative-attention-mode", "prefill", "decode")
        draw.switch(0.04, "--speculative-use-rejection-sampling")
        draw.switch(0.04, "--speculative-adaptive")
        draw.switch(0.02, "--enable-multi-layer-eagle")
        draw.flag(0.03, "--speculative-draft-window-size", 0, 128, 4096)
        if algorithm == "NGRAM":
            draw.flag(0.4, "--speculative-ngram-max-bfs-breadth", 1, 4, 10)
        if algorithm == "DFLASH":
            draw.flag(0.4, "--speculative-dflash-block-size", 0, 8, 16)
        if algorithm == "DSPARK":
            draw.flag(0.4, "--speculative-dspark-block-size", 0, 3, 7)
    draw.flag(0.55, "--attention-backend", *BACKENDS)
    draw.flag(0.08, "--prefill-attention-backend", *BACKENDS[:8])
    draw.flag(0.08, "--decode-attention-backend", *BACKENDS[:8])
    draw.flag(0.3, "--page-size", 1, 16, 32, 64, 128)
    draw.flag(0.12, "--kv-cache-dtype", "auto", "fp8_e4m3", "fp8_e5m2", "bfloat16")
    ranks = rng.choice([1, 2, 4, 8])
    draw.add("--tp-size", ranks)
    if ranks > 1 and rng.random() < 0.12:
        draw.add("--dp-size", rng.choice([2, ranks]), "--enable-dp-attention")
        draw.switch(0.4, "--enable-dp-lm-head")
    draw.flag(0.03, "--pp-size", 2)
    draw.flag(0.08, "--linear-attn-decode-backend", "triton", "flashinfer", "cutedsl")
    draw.flag(0.04, "--linear-attn-verify-backend", "triton", "flashinfer")
    draw.flag(0.08, "--mamba-ssm-dtype", "float32", "bfloat16")
    draw.flag(0.04, "--mamba-radix-cache-strategy", "auto", "no_buffer", "extra_buffer")
    draw.flag(0.2, "--max-running-requests", 8, 64, 256)
    draw.flag(0.15, "--mem-fraction-static", 0.7, 0.85)
    draw.flag(0.04, "--disaggregation-mode", "prefill", "decode")
    draw.switch(0.05, "--enable-mixed-chunk")
    draw.switch(0.06, "--disable-overlap-schedule")
    draw.switch(0.08, "--disable-radix-cache")
    draw.switch(0.04, "--enable-deterministic-inference")
    return draw.argv


def harsh_launch(rng: random.Random, checkpoints: Sequence[str], drafts: Sequence[str]) -> list[str]:
    """A launch that nobody sensible would write, in the corners where rules live."""
    draw = Draw(rng, rng.choice(checkpoints))
    algorithm = rng.choice(HARSH_ALGORITHMS)
    if algorithm:
        draw.add("--speculative-algorithm", algorithm)
        draw.flag(0.5, DRAFT, *(f"models/{draft}" for draft in drafts))
        topk = rng.choice([1, 1, 1, 1, 2, 4, 8])
        steps = rng.choice([1, 2, 3, 4, 5, 7])
        shape = rng.random()
        if 0.3 <= shape < 0.75:
            tokens = steps + 1 if topk == 1 else rng.choice([4, 8, 16])
            draw.add(STEPS, steps, TOPK, topk, TOKENS, tokens)
        elif shape >= 0.75:
            draw.flag(0.6, STEPS, steps)
            draw.flag(0.6, TOPK, topk, 0)
            draw.flag(0.6, TOKENS, 1, 4, 8, 9, 16, 300)
        draw.flag(0.15, "--speculative-draft-attention-backend", *DRAFT_BACKENDS)
        draw.flag(0.1, "--speculative-attention-mode", "prefill", "decode")
        draw.switch(0.08, "--speculative-use-rejection-sampling")
        draw.switch(0.06, "--speculative-use-block-verification")
        draw.switch(0.1, "--speculative-adaptive")
        draw.switch(0.04, "--enable-multi-layer-eagle")
        draw.flag(0.08, "--speculative-draft-window-size", 0, 2, 128)
        draw.flag(0.06, "--speculative-draft-sink-size", -1, 0, 4)
        draw.flag(0.06, "--speculative-accept-threshold-single", 0.5, 1.0)
        draw.flag(0.15, "--speculative-ngram-max-bfs-breadth", 1, 4)
        draw.flag(0.15, "--speculative-dflash-block-size", 0, 4, 8)
        draw.flag(0.15, "--speculative-dspark-block-size", 0, 3, 7)
    draw.flag(0.45, "--attention-backend", *HARSH_BACKENDS)
    draw.flag(0.12, "--prefill-attention-backend", *HARSH_BACKENDS)
    draw.flag(0.12, "--decode-attention-backend", *HARSH_BACKENDS)
    draw.flag(0.3, "--page-size", 1, 2, 16, 32, 64, 128, 256)
    draw.flag(0.2, "--kv-cache-dtype", "auto", "fp8_e4m3", "fp8_e5m2", "bfloat16", "bf16")
    ranks = rng.choice([1, 2, 3, 4, 6, 8])
    draw.add("--tp-size", ranks)
    parallel = rng.random()
    if parallel < 0.15:
        draw.add("--dp-size", rng.choice([1, 2, ranks]), "--enable-dp-attention")
    elif parallel < 0.2:
        draw.add("--attn-dp-size", rng.choice([2, ranks]))
    elif parallel < 0.24:
        draw.add("--dp-size", 2)
    draw.switch(0.08, "--enable-dp-lm-head")
    draw.flag(0.06, "--pp-size", 2)
    draw.flag(0.08, "--linear-attn-backend", "triton", "flashinfer", "cutedsl", "flashkda", "helion")
    draw.flag(0.1, "--linear-attn-decode-backend", "triton", "flashinfer", "cutedsl", "flashkda")
    draw.flag(0.06, "--linear-attn-verify-backend", "triton", "flashinfer", "nv_cutedsl")
    draw.flag(0.05, "--linear-attn-prefill-backend", "triton", "flashinfer")
    draw.flag(0.15, "--mamba-ssm-dtype", "float32", "bfloat16")
    draw.flag(0.12, "--mamba-radix-cache-strategy", "auto", "no_buffer", "extra_buffer", "extra_buffer_lazy")
    draw.switch(0.05, "--enable-linear-replayssm-spec")
    draw.switch(0.03, "--enable-linear-replayssm")
    draw.flag(0.2, "--max-running-requests", 1, 8, 64, 256)
    draw.flag(0.1, "--disaggregation-mode", "prefill", "decode")
    draw.switch(0.04, "--disaggregation-decode-enable-radix-cache")
    draw.switch(0.08, "--enable-mixed-chunk")
    draw.switch(0.1, "--disable-overlap-schedule")
    draw.switch(0.12, "--disable-radix-cache")
    draw.switch(0.08, "--enable-deterministic-inference")
    draw.flag(0.06, "--chunked-prefill-size", -1, 1000, 2048)
    draw.flag(0.06, "--moe-runner-backend", "triton", "flashinfer_trtllm", "flashinfer_cutlass", "deep_gemm", "auto")
    draw.flag(0.04, "--moe-a2a-backend", "none", "deepep")
    draw.flag(0.05, "--quantization", "fp8", "modelopt_fp4", "mxfp4")
    draw.switch(0.03, "--enable-two-batch-overlap")
    draw.switch(0.05, "--disable-cuda-graph")
    draw.flag(0.05, "--ep-size", ranks)
    draw.flag(0.05, "--dtype", "bfloat16", "float16")
    return draw.argv


def flags_of(release: str | None) -> list[Mapping[str, Any]]:
    """What a release's command line accepts (the newest catalogued one by default), in the order of its parser."""
    wanted = parse_release(release or max(_catalogue()["releases"], key=parse_release))
    return [flag for flag in _catalogue()["flags"] if in_range(wanted, flag["since"], flag.get("until"))]


def _catalogue() -> Mapping[str, Any]:
    found: Mapping[str, Any] = library.load().one("constraints/sglang/flags/catalogue.json")
    return found


def add_wild_flags(rng: random.Random, argv: list[str], flags: Sequence[Mapping[str, Any]]) -> None:
    """Flags of the whole command line, at random."""
    others = (each for each in flags if not each["names"][0].startswith("--speculative"))
    usable = [each for each in others if each["field"] not in NEVER_WILD]
    for chosen in rng.sample(usable, rng.choice([1, 2, 3])):
        argv.append(chosen["names"][0])
        if chosen["kind"] in VALUELESS:
            continue
        choices = sorted(map(str, chosen["choices"])) if chosen.get("choices") else None
        numbers: Mapping[str, Sequence[Any]] = {"int": (1, 2, 8), "float": (0.5, 1.0)}
        argv.append(str(rng.choice(choices or numbers.get(chosen.get("type", ""), ("auto",)))))


def crossed_launch(
    rng: random.Random, examples: Sequence[tuple[Sequence[str], Mapping[str, str]]], flags: Sequence[Mapping[str, Any]]
) -> tuple[list[str], dict[str, str]]:
    """An example of a rule with some flags of another one's, as far as the release knows them."""
    known = {name for flag in flags for name in flag["names"]}
    (base, environment), (other, _) = rng.choice(examples), rng.choice(examples)
    kept = {group[0]: group for group in _groups(base, known)}
    for group in _groups(other, known):
        if group[0] not in kept and rng.random() < 0.6:
            kept[group[0]] = group
    if len(kept) > 2 and rng.random() < 0.3:
        del kept[rng.choice([name for name in kept if name != "--model-path"])]
    # Each set of variables starts the engine anew, so few are kept.
    env = dict(environment) if rng.random() < 0.2 else {}
    return [word for group in kept.values() for word in group], env


def example_launches(
    rng: random.Random, device: str, flags: Sequence[Mapping[str, Any]]
) -> list[tuple[list[str], dict[str, str]]]:
    """The examples of a device in a drawn order, no launch twice: without the flags that only other releases know."""
    known = {name for flag in flags for name in flag["names"]}
    elsewhere = {name for flag in _catalogue()["flags"] for name in flag["names"]} - known
    found: dict[str, tuple[list[str], dict[str, str]]] = {}
    for example in all_examples(load_rulebook()):
        if example.engine_device == device:
            kept = [word for group in _groups(example.argv, known, elsewhere) for word in group]
            found.setdefault(json.dumps([kept, example.env], sort_keys=True), (kept, dict(example.env)))
    return rng.sample(list(found.values()), len(found))


def spans_of(argv: Sequence[str]) -> list[tuple[str, ...]]:
    """The words as flags with what follows each."""
    found: list[tuple[str, ...]] = []
    for word in argv:
        if word.startswith("--") or not found:
            found.append((word,))
        else:
            found[-1] = (*found[-1], word)
    return found


def _groups(argv: Sequence[str], known: Iterable[str], strange: Iterable[str] | None = None) -> Iterator[list[str]]:
    """Each flag with its words; of flags that the release does not know only the newer spelling of attention DP.

    With `strange` only those go that are in it, so that a flag of no release at all stays.
    """
    for name, *words in spans_of(argv):
        plain = name.partition("=")[0]
        if name == "--attn-dp-size" and name not in known:
            yield from (["--dp-size", *words], ["--enable-dp-attention"])
        elif name in known if strange is None else plain not in strange:
            yield [name, *words]


def _rule_examples() -> list[tuple[list[str], dict[str, str]]]:
    """The launches of every rule's examples with their variables, those of a plain checkpoint; the checkpoint comes first."""
    found = []
    for example in all_examples(load_rulebook()):
        argv = list(example.argv)
        place = argv.index("--model-path") if "--model-path" in argv[:-1] else -1
        if place >= 0 and not argv[place + 1].startswith(("models/", "/", ".")) and ":" not in argv[place + 1]:
            model = f"models/{argv[place + 1]}"
            rest = ["--trust-remote-code", *argv[:place], *argv[place + 2 :]]
            found.append((["--model-path", model, *rest], dict(example.env)))
    return found


def _all_checkpoints() -> tuple[list[str], list[str]]:
    def whole(folder: str) -> list[str]:
        found = (documents[0] for _, documents in library.load().folder(f"profiles/{folder}"))
        return sorted(document["id"] for document in found if not document.get("partial"))

    return whole("models"), sorted([*whole("drafts"), SMALL])


def launches(
    seed: int, count: int, device: str, kind: str = "plain", *, wild: bool = False, release: str | None = None
) -> Iterator[dict[str, Any]]:
    """Cases for a device: equal arguments give equal launches. Of examples at most as many as there are."""
    hard = f"{kind}-" if kind in ("harsh", "wide", "crossed", "examples") else ""
    rng = random.Random(f"{hard}{seed}-{device}")
    flags = flags_of(release)
    examples = _rule_examples() if kind == "crossed" else []
    usual = sorted({*PLAIN, *OTHERS, SMALL})
    wide = _all_checkpoints() if kind == "wide" else None
    whole = example_launches(rng, device, flags)[:count] if kind == "examples" else []
    for number in range(len(whole) if kind == "examples" else count):
        env: dict[str, str] = {}
        if kind == "examples":
            argv, env = whole[number]
        elif kind == "crossed":
            argv, env = crossed_launch(rng, examples, flags)
        elif wide:
            argv = harsh_launch(rng, *wide)
        elif kind == "harsh":
            argv = harsh_launch(rng, usual, HARSH_DRAFTS)
        else:
            argv = plain_launch(rng, OTHERS if kind == "others" else PLAIN)
        if wild:
            add_wild_flags(rng, argv, flags)
        if device == "cpu" and kind != "examples":
            argv += ["--device", "cpu"]
        yield {
            "id": f"{kind}{'-wild' if wild else ''}-{device}-{seed}-{number}",
            "argv": argv,
            **({"env": env} if env else {}),
        }


def main() -> None:
    """Print launches as JSON lines."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("seed", type=int)
    options.add_argument("count", type=int)
    options.add_argument("device")
    chosen = options.add_mutually_exclusive_group()
    for kind in KINDS[1:]:
        chosen.add_argument(f"--{kind}", dest="kind", action="store_const", const=kind, default="plain")
    options.add_argument("--wild", action="store_true")
    options.add_argument("--release", help="whose command line --wild draws from; default: the newest in the catalogue")
    given = options.parse_args()
    for case in launches(given.seed, given.count, given.device, given.kind, wild=given.wild, release=given.release):
        print(json.dumps(case))


if __name__ == "__main__":
    main()
