"""The names of the output formats; it must not import anything, since the command line reads it at every start."""

from __future__ import annotations

from typing import Final

CHECK_FORMATS: Final = ("table", "json", "jsonl", "flags")
RECOMMEND_FORMATS: Final = ("table", "flags", "command", "json", "yaml")
LIST_FORMATS: Final = ("table", "json")
TEXT_FORMATS: Final = ("text", "json")
