"""Compare two tensors bit by bit."""

from __future__ import annotations

import torch

Tensor = torch.Tensor


def same(got: Tensor, wanted: Tensor) -> str:
    """Return "" if two tensors have the same bits; NaN is NaN."""
    if got.dtype != wanted.dtype or got.shape != wanted.shape or got.stride() != wanted.stride():
        return f"got {got.dtype} {tuple(got.shape)} {got.stride()}, wanted {wanted.dtype} {tuple(wanted.shape)} {wanted.stride()}"
    got, wanted = got.detach(), wanted.detach()
    if got.dtype.is_floating_point:
        equal = (got == wanted) & (got.signbit() == wanted.signbit()) | (got.isnan() & wanted.isnan())
    else:
        equal = got == wanted
    if equal.all():
        return ""
    at = tuple(int(i) for i in (~equal).nonzero()[0])
    return f"at {at}: got {got[at].item()!r}, wanted {wanted[at].item()!r}; {int((~equal).sum())} of {equal.numel()} cells differ"
