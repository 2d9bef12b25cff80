"""Prints the licence of every package that an installation needs, and fails on one that Apache-2.0 work cannot ship beside.

It must not need the network. Run it with the interpreter of the environment to look at:

    python tools/licences.py
"""

from __future__ import annotations

import re
import sys
from email.message import Message
from importlib.metadata import Distribution, PackageNotFoundError, distribution

ALLOWED = re.compile(r"MIT|BSD|Apache|PSF|Python Software Foundation|ISC|MPL|Mozilla", re.IGNORECASE)
NAME = re.compile(r"[A-Za-z0-9._-]+")


def needed(root: str) -> dict[str, Distribution]:
    """The installed runtime dependencies of a package, however deep."""
    found: dict[str, Distribution] = {}
    waiting = [root]
    while waiting:
        name = waiting.pop()
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue
        for line in package.requires or ():
            match = NAME.match(line)
            if match and "extra ==" not in line and match[0].lower() not in found:
                try:
                    found[match[0].lower()] = distribution(match[0])
                except PackageNotFoundError:
                    continue
                waiting.append(match[0])
    return found


def licence(package: Distribution) -> str:
    """What a package says of its licence."""
    meta: Message = package.metadata  # type: ignore[assignment]
    classifiers = [
        line.rsplit("::", 1)[1].strip() for line in meta.get_all("Classifier") or () if line.startswith("License")
    ]
    stated = meta.get("License-Expression") or ", ".join(classifiers) or (meta.get("License") or "").splitlines()[:1]
    return stated if isinstance(stated, str) else (stated[0] if stated else "")


def main() -> int:
    """Print one line a package; 1 when a licence is not on the list."""
    bad = 0
    for name, package in sorted(needed("recommender").items()):
        words = licence(package)
        fits = ALLOWED.search(words) is not None
        bad += not fits
        print(f"  {name:<22} {package.version:<12} {words}{'' if fits else '   <- not on the list'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
