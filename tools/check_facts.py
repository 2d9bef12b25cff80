"""Asks the engine's own model configuration about every checkpoint profile and compares; it must not judge a launch.

Two steps, because the first one needs the engine and the second one must not:

    # where the engine can be imported; tests/oracle/README.md says how to set it up. --prelude imports a module first
    python -m tests.oracle.client 0.5.23 b200 --run tools/check_facts.py dump --prelude device --release 0.5.23 \
        > tests/data/engine-facts-0.5.23.jsonl
    python -m tests.oracle.records engine-facts-0.5.23.jsonl      # its checksum

    # anywhere; exit 1 on a difference
    python tools/check_facts.py compare tests/data/engine-facts-0.5.23.jsonl

The dump gives the engine a folder with the profile's `config:` as config.json (and `hf_quant_config:` beside it), so it
shows at the same time that a profile keeps every key that decides. With --folder DIR it asks about DIR/*/config.json
instead. A checkpoint that the engine cannot read (its class needs a download) is reported and left out.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import logging
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SUBJECTS = ("models", "drafts")


def _first(owner: Any, names: str) -> Any:
    found = (getattr(owner, name, None) for name in names.split())
    return next((value for value in found if value is not None), None)


def _questions() -> dict[str, Callable[[Any], Any]]:
    """Fact -> how the engine's ModelConfig answers it."""
    config = importlib.import_module("sglang.srt.configs.model_config")

    def spec(m: Any, name: str) -> bool:
        registry = importlib.import_module("sglang.srt.configs.linear_attn_model_registry")
        found = registry.get_linear_attn_spec(m.hf_config)
        return found is not None and bool(getattr(found, name))

    def quant(m: Any, key: str) -> Any:
        return (m._parse_quant_hf_config() or {}).get(key)

    def root(name: str, default: Any = None) -> Callable[[Any], Any]:
        return lambda m: getattr(m.hf_config, name, default)

    def text(name: str, default: Any = None) -> Callable[[Any], Any]:
        return lambda m: getattr(m.hf_text_config, name, default)

    def own(name: str) -> Callable[[Any], Any]:
        return lambda m: getattr(m, name)

    return {
        "architectures": root("architectures"),
        "model_type": root("model_type"),
        "text_model_type": text("model_type", ""),
        "is_mla": lambda m: m.attention_arch == config.AttentionArch.MLA,
        "is_pure_ssm": lambda m: m.attention_arch == config.AttentionArch.SSM,
        "head_dim": own("head_dim"),
        "v_head_dim": own("v_head_dim"),
        "swa_head_dim": own("swa_head_dim"),
        "swa_v_head_dim": own("swa_v_head_dim"),
        "has_asymmetric_kv": own("has_asymmetric_kv"),
        "has_attention_sinks": own("has_attention_sinks"),
        "num_heads": own("num_attention_heads"),
        "max_num_heads": lambda m: m.get_max_num_attention_heads(),
        "num_kv_heads": lambda m: m.get_total_num_kv_heads(),
        "hidden_size": own("hidden_size"),
        "num_layers": own("num_hidden_layers"),
        "vocab_size": own("vocab_size"),
        "context_length": own("context_len"),
        "dtype": lambda m: str(m.dtype).removeprefix("torch."),
        "is_hybrid_swa": own("is_hybrid_swa"),
        "sliding_window": own("sliding_window_size"),
        "attention_chunk_size": own("attention_chunk_size"),
        "kv_lora_rank": text("kv_lora_rank"),
        "qk_rope_head_dim": text("qk_rope_head_dim"),
        "qk_nope_head_dim": text("qk_nope_head_dim"),
        "hc_mult": text("hc_mult", 1),
        "first_k_dense_replace": own("first_k_dense_replace"),
        "full_attention_interval": own("full_attention_interval"),
        "num_experts": lambda m: _first(
            m.hf_text_config, "num_experts num_local_experts n_routed_experts moe_num_experts"
        ),
        "num_experts_per_token": lambda m: _first(m.hf_text_config, "num_experts_per_tok moe_top_k"),
        "tie_word_embeddings": root("tie_word_embeddings"),
        "quant_method": lambda m: quant(m, "quant_method"),
        "quant_algo": lambda m: quant(m, "quant_algo"),
        "is_fp4_experts": own("is_fp4_experts"),
        "has_nvfp4_moe": lambda m: m.nvfp4_moe_meta is not None,
        "num_nextn_predict_layers": own("num_nextn_predict_layers"),
        "mtp_num_hidden_layers": text("mtp_num_hidden_layers"),
        "is_multimodal": own("is_multimodal"),
        "is_generation": own("is_generation"),
        "is_encoder_decoder": own("is_encoder_decoder"),
        "language_model_only": own("is_lm_only"),
        "is_dsa": lambda m: config.is_deepseek_dsa(m.hf_config),
        "index_topk": root("index_topk"),
        "index_topk_freq": root("index_topk_freq", 1),
        "index_kpool": root("index_kpool", 1),
        "is_deepseek_v4": lambda m: config.is_deepseek_v4(m.hf_config),
        "is_minimax_sparse": lambda m: config.is_minimax_sparse(m.hf_config),
        "uses_kda": lambda m: config.uses_kda_attention(m.hf_config),
        "has_state": lambda m: importlib.import_module("sglang.srt.configs.hybrid_arch").mambaish_config(m) is not None,
        "mamba_chunk_size": root("mamba_chunk_size", 64),
        "linear_registry_radix": lambda m: spec(m, "uses_mamba_radix_cache"),
        "linear_registry_extra_buffer": lambda m: spec(m, "support_mamba_cache_extra_buffer"),
        "linear_num_key_heads": text("linear_num_key_heads"),
        "linear_num_value_heads": text("linear_num_value_heads"),
        "learnable_sink": root("learnable_sink", False),
        "attention_projection_layout": root("attention_projection_layout"),
        "sliding_window_pattern": root("sliding_window_pattern"),
        "draft_vocab_size": root("draft_vocab_size"),
        "block_size": root("block_size"),
        "is_causal": text("is_causal"),
        "has_vision_config": lambda m: getattr(m.hf_config, "vision_config", None) is not None,
    }


def _answered(questions: Mapping[str, Callable[[Any], Any]], model: Any) -> Iterator[tuple[str, Any]]:
    """The answers that a release can give: an older one has no name for some of the questions."""
    for fact, answer in questions.items():
        with contextlib.suppress(AttributeError, ImportError):
            yield fact, answer(model)


def _profiles(work: Path) -> Iterator[tuple[str, Path]]:
    """(profile id, a folder with its configuration as the engine reads it)."""
    yaml = importlib.import_module("yaml")
    for subject in SUBJECTS:
        for file in sorted((ROOT / "profiles" / subject).glob("*.yaml")):
            profile = yaml.safe_load(file.read_text(encoding="utf-8"))
            if profile.get("partial"):
                continue
            folder = work / profile["id"]
            folder.mkdir()
            (folder / "config.json").write_text(json.dumps(profile["config"]), encoding="utf-8")
            if "hf_quant_config" in profile:
                (folder / "hf_quant_config.json").write_text(json.dumps(profile["hf_quant_config"]), encoding="utf-8")
            yield profile["id"], folder


def dump(release: str, folder: Path | None) -> None:
    """Print one line a checkpoint: what the engine makes of it."""
    logging.disable(logging.CRITICAL)
    build = importlib.import_module("sglang.srt.configs.model_config").ModelConfig
    questions = _questions()
    with tempfile.TemporaryDirectory() as work:
        given = ((each.parent.name, each.parent) for each in sorted(folder.glob("*/config.json"))) if folder else None
        for name, path in given or _profiles(Path(work)):
            line: dict[str, Any] = {"id": name, "release": release}
            try:
                with contextlib.redirect_stdout(sys.stderr):
                    model = build(str(path))
                    line["facts"] = dict(_answered(questions, model))
            except Exception as error:
                line["error"] = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
            print(json.dumps(line, default=str), flush=True)


def compare(file: Path, folder: Path | None) -> int:
    """Print every difference between our facts and the dump, and how many answers agree."""
    sys.path.insert(0, str(ROOT))
    profiles = importlib.import_module("recommender.profiles")
    plain = importlib.import_module("recommender.facts").plain
    agree = differ = left_out = 0
    for line in importlib.import_module("tests.oracle.records").lines_of(file):
        if "error" in line:
            left_out += 1
            print(f"{line['id']}: left out, {line['error']}")
            continue
        model = profiles.find_model(str(folder / line["id"]) if folder else line["id"])
        for fact, theirs in line["facts"].items():
            ours = model.as_of(line["release"])[f"model.{fact}"]
            if ours == plain(theirs):
                agree += 1
            else:
                differ += 1
                print(f"{line['id']}: {fact}: {ours!r}, the engine says {theirs!r}")
    print(f"{agree} answers agree, {differ} differ, {left_out} checkpoints left out")
    return 1 if differ else 0


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(dest="step", required=True)
    first = steps.add_parser("dump")
    first.add_argument("--release", required=True)
    first.add_argument("--prelude")
    first.add_argument("--folder", type=Path)
    second = steps.add_parser("compare")
    second.add_argument("file", type=Path)
    second.add_argument("--folder", type=Path)
    options = parser.parse_args()
    if options.step == "compare":
        return compare(options.file, options.folder)
    if options.prelude:
        importlib.import_module(options.prelude)
    dump(options.release, options.folder)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
