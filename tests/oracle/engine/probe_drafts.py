"""What the engine's workers say to a draft model, its target and its shape when they are built; it must not judge one.

A launch is published as the engine's workers publish it. The engine's own function or constructor gets the checkpoints' real
configurations and the real values of the launch; weights, memory pools and kernels that it would touch are left out.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import types
from typing import Any
from unittest import mock

import torch
from earlier import (
    accepted,
    capture_hidden_states,
    draft_backend_factory,
    hidden_states_of_target,
    model_config_of,
    publish,
    stand_in_groups,
)
from probe import Args, Beyond, PassedError, existing, probe
from probe_backends import on_cpu, runner

PASSED = mock.MagicMock(side_effect=PassedError)


def config_of(args: Args, *, draft: bool) -> Any:
    """The engine's configuration of the target, or of the draft model as a draft worker reads it."""
    from sglang.srt.configs.model_config import ModelConfig

    if not draft:
        return model_config_of(args.server_args)
    path = args.speculative_draft_model_path or args.model_path
    return ModelConfig.from_server_args(args.server_args, model_path=path, is_draft_model=True)


def class_of(config: Any) -> Any:
    """The engine's class of a checkpoint."""
    from sglang.srt.models.registry import ModelRegistry

    return ModelRegistry.resolve_model_cls(config.hf_config.architectures)[0]


@probe
def draft_configuration(args: Args) -> None:
    """The draft's own configuration, with the checks that it makes when it is read."""
    config_of(args, draft=True)


@probe
def target_hidden_states(args: Args) -> None:
    """The layers that the draft's configuration asks of the target."""
    hidden_states_of_target(args, config_of(args, draft=False), config_of(args, draft=True))


@probe
def target_capture(args: Args) -> None:
    """The target's class, asked for the hidden states that the draft reads."""
    config = config_of(args, draft=False)
    wanted = hidden_states_of_target(args, config, config_of(args, draft=True))
    target = class_of(config)
    hooks = [name for name in dir(target) if name.startswith("set_") and name.endswith("_layers_to_capture")]
    with contextlib.ExitStack() as stack:
        for name in hooks:
            stack.enter_context(mock.patch.object(target, name, PASSED))
        capture_hidden_states(object.__new__(target), wanted, is_dspark=args.speculative_algorithm == "DSPARK")


@probe
def draft_steps(args: Args) -> None:
    """The attention backends of the draft's steps, by name."""
    factory = draft_backend_factory(runner(args, draft=True), args)
    built = [
        name
        for name in dir(factory)
        if name.startswith("_create_") and name.endswith("_backend") and name != "_create_backend"
    ]
    answer = mock.MagicMock(return_value=("found", mock.MagicMock()))
    wrapped = "sglang.srt.layers.attention.attention_registry.attn_backend_wrapper_for_draft_extend"
    with mock.patch.multiple(factory, **dict.fromkeys(built, answer)), mock.patch(wrapped, create=True):
        if not args.enable_multi_layer_eagle:  # its worker has no steps of this kind
            factory.create_decode_backend()
        factory.create_draft_extend_backend()


@probe
def shared_vocabulary(args: Args) -> None:
    """STANDALONE's comparison of the two vocabularies, without tokenizers."""
    from sglang.srt.speculative.standalone_worker_v2 import StandaloneWorkerV2

    draft = types.SimpleNamespace(
        draft_runner=types.SimpleNamespace(model_config=config_of(args, draft=True)),
        draft_worker=types.SimpleNamespace(tokenizer=None),
    )
    worker = types.SimpleNamespace(_draft_worker=draft)
    StandaloneWorkerV2._validate_vocab_compatibility(worker, config_of(args, draft=False).vocab_size, None)


@probe
def multi_layer_worker(args: Args) -> None:
    """The worker of several prediction layers, as far as the shape of its draft."""
    from sglang.srt.speculative import multi_layer_eagle_worker_v2 as module

    worker = module.MultiLayerEagleDraftWorker
    publish(args.server_args)
    known = {"server_args": args.server_args, "gpu_id": 0, "ps": None, "nccl_port": 0}
    known["target_worker"] = types.SimpleNamespace(model_config=None)
    wanted = [name for name in inspect.signature(worker.__init__).parameters if name != "self"]
    with (
        mock.patch.object(worker, "_rebuild_topk1_chain_buffers", PASSED, create=True),
        mock.patch.object(module, "TpModelWorker", PASSED),
        mock.patch.object(module, "replace", create=True),
    ):
        worker(**{name: known.get(name, 0) for name in wanted})


@probe
def frozen_kv_draft_backend(args: Args) -> None:
    """The attention backend of Frozen-KV drafts, by name."""
    from sglang.srt.speculative.frozen_kv_mtp_worker_v2 import FrozenKVMTPDraftWorker

    publish(args.server_args)
    worker = object.__new__(FrozenKVMTPDraftWorker)
    worker.topk, worker.server_args = args.speculative_eagle_topk, args.server_args
    built = ("_init_triton_draft_attn_backend", "_init_trtllm_mha_draft_attn_backend")
    with mock.patch.multiple(
        FrozenKVMTPDraftWorker, draft_model_runner=mock.MagicMock(), create=True, **dict.fromkeys(built, PASSED)
    ):
        worker._init_draft_attn_backend()


@probe
def draft_vocabulary_of_rejection_sampling(args: Args) -> None:
    """The worker's own comparison, with the reduced vocabulary that an EAGLE3 head's configuration states."""
    from sglang.srt.speculative.eagle_worker_v2 import EagleDraftWorker

    publish(args.server_args)
    reduced = getattr(config_of(args, draft=True).hf_config, "draft_vocab_size", None)
    worker = object.__new__(EagleDraftWorker)
    worker.server_args = args.server_args
    worker._draft_worker = worker.draft_worker = mock.MagicMock()
    worker.target_worker = types.SimpleNamespace(model_config=config_of(args, draft=False))
    worker.hot_token_id = None if reduced is None else torch.zeros(reduced, dtype=torch.long)
    with mock.patch.multiple(EagleDraftWorker, init_token_map=mock.MagicMock(), init_lm_head=mock.MagicMock()):
        worker.alloc_memory_pool()


@probe
def dspark_settings(args: Args) -> None:
    """What DSPARK's worker reads from the draft's configuration."""
    from sglang.srt.speculative.dspark_components.dspark_config import resolve_runtime_config

    publish(args.server_args)
    target = config_of(args, draft=False)
    resolve_runtime_config(
        draft_hf_config=config_of(args, draft=True).hf_config,
        speculative_num_draft_tokens=args.speculative_num_draft_tokens,
        target_vocab_size=getattr(target.hf_text_config, "padded_vocab_size", None) or target.vocab_size,
    )


@probe
def dspark_worker(args: Args) -> None:
    """DSPARK's worker, as far as its checks before the draft model is loaded."""
    from sglang.srt.runtime_context import get_parallel
    from sglang.srt.speculative.dspark_components import dspark_worker_v2 as module

    publish(args.server_args)
    known = {"server_args": args.server_args, "gpu_id": 0, "nccl_port": 0, "target_worker": mock.MagicMock()}
    known["ps"] = types.SimpleNamespace(attn_tp_size=get_parallel().attn_tp_size)
    wanted = set(inspect.signature(module.DSparkWorkerV2.__init__).parameters) & set(known)
    changed = {name: mock.MagicMock() for name in ("resolve_draft_parallel_layout", "model_draft_parallel_spec")}
    with contextlib.ExitStack() as stack:
        for name, stand_in in changed.items():
            stack.enter_context(mock.patch.object(module, name, stand_in, create=True))
        stack.enter_context(mock.patch.object(module.DSparkWorkerV2, "_draft_context", PASSED))
        stack.enter_context(mock.patch.object(module, "get_pp_stage_load_group", PASSED, create=True))
        if hasattr(module, "draft_pp_context"):
            wide = args.enable_dp_attention or (getattr(args, "attn_dp_size", None) or 1) > 1
            parallel = types.SimpleNamespace(
                pp_group=types.SimpleNamespace(is_last_rank=True), tp_rank=0, attn_tp_size=get_parallel().attn_tp_size,
                attn_dp_enabled=wide, enable_dp_attention=wide,
            )  # fmt: skip
            stack.enter_context(mock.patch.object(module, "get_parallel", return_value=parallel))
            stack.enter_context(mock.patch.object(module, "draft_pp_context", return_value=contextlib.nullcontext()))
        module.DSparkWorkerV2(**{name: known[name] for name in wanted})


@probe
def dspark_loaded_worker(args: Args) -> None:
    """DSPARK's worker with its draft model loaded, as far as its last check; modes and configurations are real."""
    from sglang.srt.runtime_context import get_parallel
    from sglang.srt.speculative.dspark_components import dspark_worker_v2 as module
    from sglang.srt.speculative.ragged_verify import RaggedVerifyMode, read_ragged_verify_mode

    publish(args.server_args)
    target = mock.MagicMock()
    target.model_runner.model_config = config_of(args, draft=False)
    bundle = mock.MagicMock()
    bundle.draft_model_runner.model_config = config_of(args, draft=True)
    known = {
        "server_args": args.server_args,
        "gpu_id": 0,
        "nccl_port": 0,
        "target_worker": target,
        "ps": mock.MagicMock(),
    }
    known["ps"].attn_tp_size = get_parallel().attn_tp_size
    wanted = set(inspect.signature(module.DSparkWorkerV2.__init__).parameters) & set(known)
    wide = args.attn_dp_size > 1 if hasattr(args, "attn_dp_size") else args.enable_dp_attention
    parallel = mock.MagicMock(attn_dp_enabled=wide, enable_dp_attention=wide, attn_tp_size=get_parallel().attn_tp_size)
    planner = mock.MagicMock(is_compact_mode=read_ragged_verify_mode() is RaggedVerifyMode.COMPACT)
    loaded = ("resolve_draft_parallel_layout", "model_draft_parallel_spec", "get_pp_stage_load_group", "get_dp_tp_group",
              "draft_pp_context", "SpecTpSync", "replace", "build_block_pos_offsets", "make_draft_block_spec_info")  # fmt: skip
    with contextlib.ExitStack() as stack:
        for name in loaded:
            stack.enter_context(mock.patch.object(module, name, mock.MagicMock(), create=True))
        stack.enter_context(mock.patch.object(module, "build_draft_tp_worker", return_value=bundle))
        stack.enter_context(mock.patch.object(module, "get_parallel", return_value=parallel))
        stack.enter_context(mock.patch.object(module, "DSparkVerifyPlanner", return_value=planner))
        stack.enter_context(mock.patch.object(module, "TargetHiddenKvInjector", PASSED))
        stack.enter_context(mock.patch.object(module.DSparkWorkerV2, "_draft_context"))
        module.DSparkWorkerV2(**{name: known[name] for name in wanted})


class Buckets:
    """Token counts to capture; whoever reads them is past the check."""

    def __iter__(self) -> Any:
        raise PassedError


@probe
def decode_graphs(args: Args) -> None:
    """What captures the decode graphs of the target, as far as its check of ragged verification."""
    from sglang.srt.model_executor.runner import decode_cuda_graph_runner as module

    made = runner(args)
    made.device, made.lora_manager = "cuda", None
    made.ngram_embedding_manager.enabled = False
    stand_in_groups(args.server_args)
    made.decode_num_tokens_per_req.return_value = args.speculative_num_draft_tokens
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(module, "get_batch_sizes_to_capture", return_value=([1], [1])))
        stack.enter_context(mock.patch("torch.get_device_module"))
        plugin = "sglang.srt.batch_overlap.two_batch_overlap.TboCudaGraphRunnerPlugin.__init__"
        stack.enter_context(mock.patch(plugin, return_value=None))
        buckets = "_build_ragged_verify_token_buckets"
        stack.enter_context(mock.patch.object(module.DecodeCudaGraphRunner, buckets, return_value=Buckets()))
        stack.enter_context(mock.patch.object(module, "DecodeInputBuffers", mock.MagicMock(create=PASSED), create=True))
        module.DecodeCudaGraphRunner(made)


@probe
def dflash_worker(args: Args) -> None:
    """DFLASH's worker, as far as its checks of the loaded draft; the draft's class and configuration are real."""
    from sglang.srt.speculative import dflash_worker_v2 as module

    existing(module, "validate_domino_runtime")
    publish(args.server_args)
    config, target = config_of(args, draft=True), mock.MagicMock()
    target.model_runner.model_config = config_of(args, draft=False)
    has_head = config.hf_config.architectures[0] == "LiLiCorrDraftModel"
    model = mock.MagicMock(candidate_selector=None, lilicorr=mock.MagicMock() if has_head else None)
    model.config = config.hf_config
    bundle = mock.MagicMock(draft_model=model)
    bundle.draft_model_runner.model_config = config
    group = types.SimpleNamespace(world_size=args.tp_size)
    wide = args.enable_dp_attention or (getattr(args, "attn_dp_size", None) or 1) > 1
    parallel = mock.MagicMock(attn_dp_enabled=wide, enable_dp_attention=wide, tp_rank=0, tp_group=group)
    target.device, target.tokenizer, target.model_runner.tp_rank = args.device, None, 0
    given = {"server_args": args.server_args, "gpu_id": 0, "nccl_port": 0, "target_worker": target}
    given["ps"] = mock.MagicMock(tp_rank=0)
    loaded = ("resolve_draft_parallel_layout", "model_draft_parallel_spec", "SpecTpSync", "get_dp_tp_group", "replace")
    with contextlib.ExitStack() as stack:
        for name in loaded:
            stack.enter_context(mock.patch.object(module, name, create=True))
        for name in ("draft_pp_context", "draft_tp_context"):
            context = mock.MagicMock(return_value=contextlib.nullcontext())
            stack.enter_context(mock.patch.object(module, name, context, create=True))
        stack.enter_context(mock.patch.object(module, "get_tp_group", return_value=group, create=True))
        stack.enter_context(mock.patch.object(module, "build_draft_tp_worker", return_value=bundle))
        stack.enter_context(mock.patch.object(module, "get_parallel", return_value=parallel, create=True))
        stack.enter_context(mock.patch.object(module.DFlashWorkerV2, "_maybe_merge_trained_mask_embedding", PASSED))
        module.DFlashWorkerV2(**accepted(module.DFlashWorkerV2.__init__, given))


@probe
def dflash_mask_token(args: Args) -> None:
    """The mask token that DFLASH's worker puts into its blocks."""
    from sglang.srt.speculative.dflash_utils import parse_dflash_draft_config
    from sglang.srt.speculative.dflash_worker_v2 import DFlashWorkerV2

    publish(args.server_args)
    draft = parse_dflash_draft_config(draft_hf_config=config_of(args, draft=True).hf_config)
    target = types.SimpleNamespace(
        tokenizer=None, model_runner=types.SimpleNamespace(model_config=config_of(args, draft=False))
    )
    worker = object.__new__(DFlashWorkerV2)
    worker._target_worker = target
    if draft.mask_token_id is not None:
        worker._resolve_mask_token_id(mask_token=draft.mask_token, mask_token_id=draft.mask_token_id)


@probe
def nemotron_head(args: Args) -> None:
    """The prediction head of Nemotron-H, as far as its number of layers."""
    from sglang.srt.models import nemotron_h_mtp as module

    publish(args.server_args)
    config = config_of(args, draft=True).hf_config
    known = {"vocab_size": config.vocab_size, "num_hidden_layers": config.num_hidden_layers}
    layers = getattr(config, "num_nextn_predict_layers", 1)
    module.NemotronHMultiTokenPredictor(Beyond(**known, num_nextn_predict_layers=layers))


@probe
def ragged_verification(args: Args) -> None:
    """The target's attention backend, given a verification of unequal lengths in a captured graph."""
    from sglang.srt.layers.attention.attention_registry import ATTENTION_BACKENDS

    publish(args.server_args)
    if os.environ.get("SGLANG_RAGGED_VERIFY_MODE") != "compact":
        return
    with on_cpu():
        made = runner(args)
        backend = ATTENTION_BACKENDS[made.prefill_attention_backend_str](made)
    if hasattr(backend, "_assert_ragged_verify_supported"):
        backend._assert_ragged_verify_supported()
        return
    batch = mock.MagicMock()
    batch.forward_mode.is_target_verify.return_value = True
    if type(backend).__name__ == "FlashInferAttnBackend":
        backend.init_forward_metadata_out_graph(batch)


@probe
def simulated_accept_length(args: Args) -> None:
    """How a pretended accept length is drawn."""
    from sglang.srt.speculative import spec_utils

    publish(args.server_args)
    if spec_utils.SIMULATE_ACC_LEN > 0:
        existing(spec_utils, "sample_simulated_acc_len", "_sample_simulated_acc_len")(
            spec_utils.SIMULATE_ACC_LEN, spec_utils.SIMULATE_ACC_METHOD, args.speculative_num_steps + 1
        )
