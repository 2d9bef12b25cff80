"""The tool that bounds laws by the engine's source: what it takes for the same, and how it edits a rule file."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).parent.parent / "tools" / "trace_laws.py"
RULE = {
    "effect": "rejects",
    "source": {"file": "hook.py", "symbol": "handle_x", "release": "2"},
    "engine_error": "no x",
}

METHOD = """
class ServerArgs:
    def _handle_x(self):
        if is_hip():
            return
        if self.mode == "a" and self.width > LIMIT:
            raise ValueError(f"no x for {self.mode}")
LIMIT = 4
"""
FUNCTION = """
LIMIT = 4
def handle_x(server_args):
    cfg = resolving_view(server_args)
    logger.info("here")
    if get_platform().is_hip:
        return
    if cfg.mode == "a" and cfg.width > LIMIT:
        raise ValueError("no x for " + cfg.mode)
"""


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    if not TOOL.exists():
        pytest.skip("the tools are not beside the tests")
    spec = importlib.util.spec_from_file_location("trace_laws", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["trace_laws"] = module
    spec.loader.exec_module(module)
    return module


def told(tool: ModuleType, root: Path, was: str, now: str, file: str = "hook.py") -> str:
    found = []
    for name, text in (("1", was), ("2", now)):
        folder = root / name / "sglang" / "srt"
        folder.mkdir(parents=True)
        (folder / (file if name == "2" else "old.py")).write_text(text, encoding="utf-8")
        found.append(tool.gather(tool.Release(name, folder).read(), RULE))
    return str(tool.word(found[1], found[0]))


def test_a_method_that_became_a_function_is_the_same(tool: ModuleType, tmp_path: Path) -> None:
    assert told(tool, tmp_path, METHOD, FUNCTION) == "same"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('== "a"', '== "b"', "changed"),
        ("LIMIT = 4", "LIMIT = 8", "changed"),
        ("if is_hip():", "if is_cuda():", "changed"),
        ("no x", "no y", "absent"),
        ("_handle_x(self):", "_handle_z(self, more=None):", "same"),
        ('== "a"', '== "c"', "changed"),
    ],
)
def test_what_differs_is_told(tool: ModuleType, tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in METHOD
    assert told(tool, tmp_path, METHOD.replace(old, new), FUNCTION) == expected


def test_only_the_bounds_are_edited(tool: ModuleType) -> None:
    text = 'id: a  # kept\nsince: "3"\nwhen: x\n---\nid: a\nsince: "2"\nuntil: "3"\n'
    moves = [tool.Move("1.5", None), tool.Move("1", "1.5")]
    assert tool.edited(text, moves) == 'id: a  # kept\nsince: "1.5"\nwhen: x\n---\nid: a\nsince: "1"\nuntil: "1.5"\n'


def test_since_goes_down_an_unbroken_run(tool: ModuleType) -> None:
    words = {"1": ("same", 1.0), "2": ("changed", 0.5), "3": ("same", 1.0), "4": ("same", 1.0)}
    assert tool.lowered("4", words, ["1", "2", "3", "4"], None) == "3"
    assert tool.lowered("4", words, ["1", "2", "3", "4"], "4") == "4"
