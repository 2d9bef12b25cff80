"""Makes a CPU-only torch report a chosen accelerator; it must not replace or change anything of the engine itself.

Import it before anything of the engine. ORACLE_DEVICE names a JSON file with the device's facts, as profiles/gpus/
states them. What torch, psutil, nvidia-smi and rocminfo say is replaced; what follows from it is the engine's own code.
Compiled packages that the engine imports on its way, and never calls while it resolves arguments, are empty stand-ins.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib.abc
import importlib.machinery
import inspect
import json
import os
import sys
import types
from pathlib import Path
from typing import Any

import psutil
import torch

FACTS: dict[str, Any] = json.loads(Path(os.environ["ORACLE_DEVICE"]).read_text())
BYTES = FACTS["memory_mib"] * 2**20
COMPILED = frozenset({
    "aiter", "av", "cuda", "cutlass", "decord", "deep_ep", "deep_gemm", "flash_attn", "flash_mla", "flashinfer", "gguf",
    "humming", "mooncake", "nvshmem", "pynvml", "quack", "sgl_flash_mla", "sgl_kernel", "smg_grpc_servicer", "tilelang",
    "timm", "torch_memory_saver", "torchaudio", "torchcodec", "watchfiles",
})  # fmt: skip
ABSENT = frozenset({"granian"})  # whatever this machine has: a package that a launch needs and no word of it tells
NO_INFINIBAND = "/sys/class/infiniband"
VERSION = "0.28.0"  # what each stand-in says when it is asked for its version
# Parameters that the engine looks for in a signature before it uses a function; the version that a release pins has them.
PARAMETERS = {"trtllm_batch_decode_with_kv_cache_mla": ("enable_dcp",)}


class Blank(type):
    """A class that can be called, subclassed, subscripted and asked for any attribute: each is such a class."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = Blank(name, (), {})
        setattr(cls, name, found)
        return found

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        decorates = len(args) == 1 and not kwargs and callable(args[0])
        return args[0] if decorates else Blank(cls.__name__, (), {})

    @property
    def __signature__(cls) -> inspect.Signature:
        if cls.__name__ not in PARAMETERS:
            raise AttributeError("__signature__")
        named = (inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in PARAMETERS[cls.__name__])
        return inspect.Signature(tuple(named))

    def __getitem__(cls, key: Any) -> Any:
        return cls

    def __or__(cls, other: Any) -> Any:
        return cls

    def __ror__(cls, other: Any) -> Any:
        return cls

    def __iter__(cls) -> Any:
        return iter(())

    def __bool__(cls) -> bool:
        return True


class BlankModule(types.ModuleType):
    """A module of blanks."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        found = Blank(name, (), {})
        setattr(self, name, found)
        return found


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and makes the stand-in of any module of some packages."""

    def __init__(self, packages: frozenset[str]) -> None:
        self.packages = packages

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in self.packages:
            return None
        spec = importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        spec.origin = "stub"
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        made = BlankModule(spec.name)
        made.__path__ = []
        made.__file__ = "stub"
        made.__version__ = VERSION
        return made

    def exec_module(self, module: types.ModuleType) -> None:
        pass


class Absent(importlib.abc.MetaPathFinder):
    """Finds that some packages are not installed."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        if fullname.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def without_infiniband(real: Any) -> Any:
    """A test for folders that finds no InfiniBand device of this machine."""
    return lambda path: str(path) != NO_INFINIBAND and real(path)


def properties() -> types.SimpleNamespace:
    """What torch.cuda.get_device_properties gives."""
    return types.SimpleNamespace(
        name=FACTS["name"],
        total_memory=BYTES,
        major=FACTS["capability_major"],
        minor=FACTS["capability_minor"],
        multi_processor_count=FACTS["sms"],
        gcnArchName=FACTS.get("gcn_arch") or "",
        shared_memory_per_block_optin=232448,
    )


def present_processor() -> None:
    """Host memory as the profile states it, so that answers do not depend on the machine that asks."""
    real = psutil.virtual_memory

    def stated() -> Any:
        return real()._replace(total=BYTES, available=BYTES, free=BYTES)

    psutil.virtual_memory = stated
    builtins.open = without_nodes(builtins.open)


def without_nodes(real: Any) -> Any:
    """A file opener that finds no memory node of this machine; releases that read one fall back to psutil."""

    def opened(file: Any, *rest: Any, **options: Any) -> Any:
        if str(file).startswith("/sys/devices/system/node/"):
            raise FileNotFoundError(file)
        return real(file, *rest, **options)

    return opened


def present_accelerator() -> None:
    """A CUDA or ROCm device behind torch.cuda."""
    capability = (FACTS["capability_major"], FACTS["capability_minor"])
    cuda = torch.cuda
    cuda.is_available = lambda: True
    cuda.device_count = lambda: FACTS["count"]
    cuda.current_device = lambda: 0
    cuda.get_device_capability = lambda *_, **__: capability
    cuda.get_device_properties = lambda *_, **__: properties()
    cuda.get_device_name = lambda *_, **__: FACTS["name"]
    cuda.mem_get_info = lambda *_, **__: (BYTES, BYTES)
    # Three functions, not one: torch insists that they differ.
    cuda.set_device = lambda *_, **__: None
    cuda.empty_cache = lambda *_, **__: None
    cuda.synchronize = lambda *_, **__: None
    torch.version.cuda = FACTS.get("cuda")
    torch.version.hip = FACTS.get("hip")


def present_packages() -> None:
    """torchvision must look installed to transformers, the compiled packages must not: its checks run in between."""
    sys.meta_path.insert(0, StandIns(frozenset({"torchvision"})))
    import transformers.utils.import_utils as checks

    for name in dir(checks):
        if name.startswith("is_") and name.endswith("_available"):
            with contextlib.suppress(Exception):
                getattr(checks, name)()
    sys.meta_path.insert(0, StandIns(COMPILED))
    sys.meta_path.insert(0, Absent())
    os.path.isdir = without_infiniband(os.path.isdir)


if FACTS["platform"] == "cpu":
    present_processor()
else:
    present_accelerator()
present_packages()
