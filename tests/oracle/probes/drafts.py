"""Probes of draft models: what the workers of an algorithm say to a draft, its target and its shape when they are built."""

from __future__ import annotations

from .probe import Probe

DRAFTS: tuple[Probe, ...] = ()
