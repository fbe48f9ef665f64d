"""The contestants: one module per peer, each with `peers() -> list[Peer]`, empty if the peer is not installed."""

from __future__ import annotations

from importlib import import_module

from .base import Peer, Run

MODULES = ("ours", "tensorflow", "torch", "jax", "onednn", "onnxruntime", "openvino", "scipy", "skimage", "xarray")

__all__ = ["MODULES", "Peer", "Run", "available"]


def available(names: list[str] | None = None) -> tuple[list[Peer], dict[str, str]]:
    """Return all contestants available here, poolgrad first, and why the others are not."""
    found: list[Peer] = []
    missing: dict[str, str] = {}
    for name in MODULES:
        if names and name != "ours" and name not in names:
            continue
        try:
            peers: list[Peer] = import_module(f"{__name__}.{name}").peers()
        except Exception as error:  # a broken installation of a peer must not stop the others
            missing[name] = f"{type(error).__name__}: {error}"
            continue
        found += peers
        if not peers:
            missing[name] = "not installed"
    return found, missing
