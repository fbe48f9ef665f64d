"""Swap the pool modules of a model for ours, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import nn

from .._common.errors import ArgumentErrors, short_repr
from . import fractional, modules
from ._tensors import Tensor


class _OfPlanes:
    """Fractional max pooling as torch's module does it: other windows for each plane, from torch's generator."""

    _rank: int
    _pool: Callable[..., Any]

    def forward(self: Any, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Draw the samples that torch's module would draw, and pool."""
        samples = self._random_samples
        if samples is None and isinstance(input, torch.Tensor) and input.ndim > self._rank:
            batch = 1 if input.ndim == self._rank + 1 else input.shape[0]
            shape = batch, input.shape[-self._rank - 1], self._rank
            samples = torch.rand(shape, dtype=input.dtype, device=input.device)
        words = self.kernel_size, self.output_size, self.output_ratio, self.return_indices
        return self._pool(input, *words, _random_samples=samples)


class FractionalMaxPool2dOfPlanes(_OfPlanes, nn.FractionalMaxPool2d):
    """Fractional max pooling of planes, each with windows of its own, as `torch.nn.FractionalMaxPool2d`."""

    _rank, _pool = 2, staticmethod(fractional.fractional_max_pool2d)


class FractionalMaxPool3dOfPlanes(_OfPlanes, nn.FractionalMaxPool3d):
    """Fractional max pooling of volumes, each with windows of its own, as `torch.nn.FractionalMaxPool3d`."""

    _rank, _pool = 3, staticmethod(fractional.fractional_max_pool3d)


def _pairs() -> Iterator[tuple[type[nn.Module], type[nn.Module]]]:
    for kind in ("MaxPool", "AvgPool", "LPPool", "AdaptiveMaxPool", "AdaptiveAvgPool", "MaxUnpool"):
        for rank in (1, 2, 3):
            yield getattr(nn, f"{kind}{rank}d"), getattr(modules, f"{kind}{rank}d")
    yield nn.FractionalMaxPool2d, FractionalMaxPool2dOfPlanes
    yield nn.FractionalMaxPool3d, FractionalMaxPool3dOfPlanes


_OURS = dict(_pairs())
_THEIRS = {ours: theirs for theirs, ours in _OURS.items()}


class Swapped(NamedTuple):
    """A module that was swapped: its names in the model, and its class before and after."""

    names: tuple[str, ...]
    before: type[nn.Module]
    after: type[nn.Module]


class Left(NamedTuple):
    """A pool that was left alone: its names in the model, its class, and the reason."""

    names: tuple[str, ...]
    kind: type[nn.Module]
    reason: str


class Replacement(NamedTuple):
    """The result of `replace`: the modules that were swapped, and the pools that were left alone. Print it."""

    model: nn.Module
    swapped: tuple[Swapped, ...]
    left: tuple[Left, ...]

    def __repr__(self) -> str:
        rows = [f"{_listed(s.names)}: {_named(s.before)} -> {_named(s.after)}" for s in self.swapped]
        rows += [f"{_listed(p.names)}: {_named(p.kind)} left alone: {p.reason}" for p in self.left]
        head = f"{len(self.swapped)} pool modules swapped, {len(self.left)} left alone"
        tail = "Calls of torch.nn.functional inside forward() are no modules: poolgrad.torch.accelerate() serves them."
        return "\n".join([head, *(f"  {row}" for row in rows), tail])


def _named(kind: type[nn.Module]) -> str:
    return f"{kind.__module__.split('.')[0]} {kind.__name__}"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(name or "(the model itself)" for name in names)


def replace(model: nn.Module, *, back: bool = False) -> Replacement:
    """Swap the pool modules of a model for ours, or ours for torch's.

    A swapped module stays the same object, with its arguments, hooks, buffers, mode and place in the model; only its class, and
    so its `forward`, changes. Modules that occur several times are swapped once.

    Left alone, with a reason: subclasses of torch's modules, objects with a `forward` of their own, scripted modules, those of
    quantised models, and pools that would not compute the same. Calls of `torch.nn.functional` inside a `forward` are not found.

    Parameters
    ----------
    model : torch.nn.Module
        The model, or a pool. It is changed in place.
    back : bool
        If True, swap our modules for torch's.

    Returns
    -------
    Replacement
        The swapped modules (`swapped`) and the others (`left`), with their names; printed, a line for each.

    Raises
    ------
    TypeError
        If the model is not a module, or `back` not a bool.

    See Also
    --------
    MaxPool2d : one of our modules, with the arguments of torch's.

    Examples
    --------
    >>> net = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.MaxPool2d(2), torch.nn.LPPool2d(3, 2))
    >>> replace(net)
    1 pool modules swapped, 1 left alone
      1: torch MaxPool2d -> poolgrad MaxPool2d
      2: torch LPPool2d left alone: torch's norm with norm_type=3 has the sign of the sum
    Calls of torch.nn.functional inside forward() are no modules: poolgrad.torch.accelerate() serves them.
    >>> len(replace(net, back=True).swapped)
    1
    """
    if not isinstance(model, nn.Module):
        ArgumentErrors("replace").fail("model", short_repr(model), "a torch.nn.Module", TypeError)
    if not isinstance(back, bool):
        ArgumentErrors("replace").fail("back", short_repr(back), "a bool", TypeError)
    names: dict[nn.Module, list[str]] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        names.setdefault(module, []).append(name)
    quantised = any(_is_quantised(type(module)) for module in names)
    swapped, left = [], []
    for module, found in names.items():
        before = type(module)
        reason = _reason(module, back)
        if reason is None and quantised and not back:
            reason = "the model is quantised: it may get quantised tensors"
        if reason is None:
            _swap(module, back)
            swapped.append(Swapped(tuple(found), before, type(module)))
        elif reason:
            left.append(Left(tuple(found), before, reason))
    return Replacement(model, tuple(swapped), tuple(left))


def _is_quantised(kind: type[nn.Module]) -> bool:
    """Return whether modules of this class return quantised tensors."""
    path, weights = kind.__module__, kind.__name__.endswith(("PackedParams", "PackedParameter"))
    return path.startswith("torch.ao.nn.") and ".quantized." in path and not (".dynamic." in path or weights)


def _reason(module: nn.Module, back: bool) -> str | None:
    """Return why a pool is left alone; None if it is to be swapped, "" if there is nothing to say about it."""
    kind, wanted = type(module), _THEIRS if back else _OURS
    if kind not in wanted:
        return _other_reason(module, wanted)
    if "forward" in module.__dict__:
        return "the object has a forward of its own"
    return _reason_of_norm(module) or (_reason_back(module) if back else None)


def _other_reason(module: nn.Module, wanted: dict[type[nn.Module], type[nn.Module]]) -> str:
    """Return why a module of no known class is left alone; "" if it is no pool, or already swapped."""
    kind = type(module)
    if isinstance(module, torch.jit.ScriptModule):
        name = getattr(module, "original_name", "")
        return "torch.jit compiled it" if any(name == known.__name__ for known in wanted) else ""
    if kind in wanted.values() or not isinstance(module, tuple(wanted)):
        return ""
    if kind.__module__.startswith("poolgrad.") and wanted is _OURS:
        return ""
    return f"a subclass, {kind.__qualname__}, may compute something else"


def _reason_of_norm(module: Any) -> str | None:
    """Return why a norm of torch's and ours are not the same; None if they are, or it is another pool."""
    if isinstance(module, (nn.LPPool1d, nn.LPPool2d, nn.LPPool3d)):
        if module.norm_type not in (2, 4, 6, 8):
            return f"torch's norm with norm_type={module.norm_type} has the sign of the sum"
        if module.ceil_mode:
            return "torch's norm with ceil_mode scales windows that the edge cuts"
    return None


def _reason_back(module: Any) -> str | None:
    """Return why torch's would not compute the same as this module of ours; None if it does."""
    if isinstance(module, modules._Unpool):
        return None if module.reduce == "assign" else "torch adds no values of one cell up (reduce='sum')"
    padding, kernel = (_each(getattr(module, name, 0)) for name in ("padding", "kernel_size"))
    if not all(isinstance(p, int) for p in padding):
        return f"torch has no padding={module.padding!r}"
    most = max(len(padding), len(kernel))
    if any(2 * p > k for p, k in zip(padding * (most // len(padding)), kernel * (most // len(kernel)), strict=True)):
        return f"torch refuses padding={module.padding!r}, more than half of a window"
    if isinstance(module, nn.AvgPool1d) and module.divisor_override is not None:
        return "torch has no divisor_override in one dimension"
    return None


def _each(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _swap(module: Any, back: bool) -> None:
    """Change the class of a module; give it the arguments that its new class has beyond the old one's, or take them away."""
    module.__class__ = (_THEIRS if back else _OURS)[type(module)]
    more: dict[str, Any] = (
        {"reduce": "assign"} if isinstance(module, (nn.MaxUnpool1d, nn.MaxUnpool2d, nn.MaxUnpool3d)) else {}
    )
    more |= {"divisor_override": None} if isinstance(module, nn.AvgPool1d) else {}
    for name, value in more.items():
        module.__dict__.pop(name, None)
        if not back:
            setattr(module, name, value)
