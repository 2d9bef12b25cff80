"""Says what the referee's machine is known to lack; it must not name what a launch or a device decides.

No word of a launch tells whether an optional package, a plugin or a file is there. The engine's side makes each of these
absent (`engine/device.py`, and no launch names a file that exists), so our check is told so too, by the names of facts.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping

LACKS = (
    "engine.has_granian",
    "engine.has_infiniband",
    "engine.has_megakernel_plugin",
    "engine.has_monokernel_plugin",
    "engine.has_expert_pack_file",
    "engine.has_watermark_file",
)


def installed() -> Mapping[str, bool]:
    """The facts of the referee's installation."""
    return dict.fromkeys(LACKS, False)
