"""Ships the compiled form of constraints/ and profiles/ in the wheel; it must not change what they say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface[Any]):
    """Writes build/library.json and adds it to the wheel beside the YAML it was made from."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, unless this is an editable build, which reads the files themselves."""
        if version == "editable":
            return
        root = Path(self.root)
        sys.path.insert(0, self.root)
        from recommender.library import COMPILED
        from recommender.rulebook import shipped_library

        target = root / "build" / COMPILED
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(shipped_library(root))
        build_data["force_include"][str(target)] = f"recommender/_data/{COMPILED}"
