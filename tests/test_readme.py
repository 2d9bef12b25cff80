"""What the README shows is what the tool prints.

`RECOMMENDER_GOLDEN=write pytest tests/test_readme.py` writes the outputs anew; read the difference before you commit it.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from recommender.cli import run

README = Path(__file__).parent.parent / "README.md"
BLOCK = re.compile(r"```console\n\$ recommender (?P<words>[^\n]*)\n(?P<output>.*?)```", re.DOTALL)

pytestmark = pytest.mark.skipif(not README.is_file(), reason="the README is not part of an installed wheel")


def test_the_tour_is_real(capsys: pytest.CaptureFixture[str]) -> None:
    text = README.read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    assert len(blocks) >= 3
    printed = {}
    for block in blocks:
        run(shlex.split(block["words"]))
        printed[block["words"]] = capsys.readouterr().out
    if os.environ.get("RECOMMENDER_GOLDEN") == "write":
        text = BLOCK.sub(
            lambda match: f"```console\n$ recommender {match['words']}\n{printed[match['words']]}```", text
        )
        README.write_text(text, encoding="utf-8")
    for block in BLOCK.finditer(text):
        assert block["output"] == printed[block["words"]]


def test_the_python_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    code = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    exec(code[1], {})
    assert capsys.readouterr().out.startswith("accepts")


def test_two_commands_stand_first_and_no_text_names_a_package_that_is_not_ours() -> None:
    text = README.read_text(encoding="utf-8")
    commands = re.findall(r"```bash\n(.*?)```", text.split("## Words")[0], re.DOTALL)
    assert len(commands) == 2
    assert "recommend" in commands[0]
    assert "pytest" in commands[1]
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        assert "pip install recommender" not in README.with_name(name).read_text(encoding="utf-8")
