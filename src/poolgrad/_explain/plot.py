"""Draw a pool: windows over the input, the cells they chose, and where each gradient goes. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from .._common.arrays import Array, as_array
from .._common.errors import ArgumentErrors, short_repr
from .._pooling.operators import Linear
from .._pooling.plan_operators import averaging, max_operator, min_operator, summing
from .._pooling.sources import array_of
from .._pooling.types import Ints, Windows
from .._pooling.window_args import plan
from .._windows.axis import Axis
from .._windows.plan import Plan
from .._windows.sliding import whole

_KINDS = ("max", "min", "avg", "sum")
_MOST = 32  # most cells along an axis for which numbers are drawn


def show(
    x: Any,
    window: Windows,
    stride: Ints | None = None,
    *,
    kind: str = "max",
    g: Any = None,
    at: Sequence[int] | None = None,
    file: Any = None,
    **words: Any,
) -> Any:
    """Draw three matplotlib panels: x with its windows and chosen cells, y, and the gradient of x for g at y.

    Pool at most two axes; `at` picks one place along each other axis (default: the first). `g` is 1 everywhere by default.
    With `file`, also write the figure there. Other arguments as in the pools.
    """
    problems = ArgumentErrors("show")
    if kind not in _KINDS:
        problems.fail("kind", short_repr(kind), "'max', 'min', 'avg' or 'sum'")
    array = array_of(problems, x)
    windows = plan(array.shape, window, stride, **words)
    y, operator = _pooled(kind, array, windows)
    grad = np.ones_like(y) if g is None else as_array(problems, "g", g)
    problems.raise_if_any()
    assert grad is not None
    if grad.shape != y.shape:
        problems.fail("g", f"shape {list(grad.shape)}", list(y.shape))
    dx = operator.T(grad)
    chosen = np.where(operator.T(np.ones(y.shape)) != 0, 1, 0) if kind in ("max", "min") else None
    place = _place(problems, windows, at)
    axes = [axis for axis in windows.by_dimension if axis is not None][-2:]
    flat = [None if a is None else np.atleast_2d(a[place]) for a in (array, y, dx, chosen)]
    figure = _draw(_matplotlib(problems), flat, axes, kind)
    if file is not None:
        figure.savefig(file, dpi=120)
    return figure


def _pooled(kind: str, x: Array, windows: Plan) -> tuple[Array, Linear]:
    if kind in ("max", "min"):
        best: tuple[Array, Linear] = (max_operator if kind == "max" else min_operator)(x, windows)
        return best
    operator = averaging(windows) if kind == "avg" else summing(windows)
    return operator(x), operator


def _place(problems: ArgumentErrors, windows: Plan, at: Sequence[int] | None) -> tuple[Any, ...]:
    pooled = [d for d, axis in enumerate(windows.by_dimension) if axis is not None and not axis.identity]
    shown = pooled if pooled else [len(windows.source) - 1]
    if len(shown) > 2:
        problems.fail("window", f"{len(shown)} pooled axes", "at most two: a picture has no more")
    others = [d for d in range(len(windows.source)) if d not in shown]
    given = [0] * len(others) if at is None else list(at)
    if len(given) != len(others) or not all(0 <= i < windows.source[d] for i, d in zip(given, others, strict=False)):
        problems.fail("at", short_repr(at), f"{len(others)} places, one along each axis that is not pooled")
    if any(windows.source[d] > _MOST for d in shown):
        problems.fail("x", f"shape {list(windows.source)}", f"at most {_MOST} cells along a pooled axis")
    return tuple(slice(None) if d in shown else given[others.index(d)] for d in range(len(windows.source)))


def _matplotlib(problems: ArgumentErrors) -> Any:
    try:
        return import_module("matplotlib.figure").Figure
    except ImportError:
        problems.fail("show", "no matplotlib", "it installed: pip install 'poolgrad[plot]'", ImportError)


def _draw(figure_of: Any, panels: Sequence[Array | None], axes: Sequence[Axis], kind: str) -> Any:
    x, y, dx, chosen = panels
    assert x is not None
    assert y is not None
    assert dx is not None
    figure = figure_of(
        figsize=(4 + 0.42 * (x.shape[1] * 2 + y.shape[1]), 1.6 + 0.42 * x.shape[0]), layout="constrained"
    )
    spread = figure.subplots(1, 3, width_ratios=[x.shape[1], y.shape[1], x.shape[1]])
    _cells(spread[0], x, "viridis", f"x, and the windows of {kind}")
    _cells(spread[1], y, "viridis", "y")
    top = float(np.abs(dx.astype(float)).max(initial=0)) or 1.0
    _cells(spread[2], dx, "RdBu", "gradient of x", -top, top)
    rows = axes[-2] if len(axes) == 2 else whole(x.shape[0])
    _outline(spread[0], rows, axes[-1])
    if chosen is not None:
        for r, c in np.argwhere(chosen):
            spread[0].plot(
                c, r, "o", markersize=17, markerfacecolor="none", markeredgecolor="white", markeredgewidth=1.6
            )
    return figure


def _cells(
    panel: Any, values: Array, colours: str, title: str, low: float | None = None, high: float | None = None
) -> None:
    seen = values.astype(float)
    panel.imshow(seen, cmap=colours, vmin=low, vmax=high)
    panel.set_title(title, fontsize=9)
    panel.set_xticks(range(values.shape[1]))
    panel.set_yticks(range(values.shape[0]))
    panel.tick_params(labelsize=7, length=0)
    middle = np.nanmean([np.nanmin(seen), np.nanmax(seen)]) if low is None else 0
    for (r, c), v in np.ndenumerate(seen):
        dark = v < middle if low is None else abs(v) > 0.6 * (high or 1)
        panel.text(c, r, f"{v:.3g}", ha="center", va="center", fontsize=7, color="white" if dark else "black")


def _outline(panel: Any, rows: Axis, cols: Axis) -> None:
    """Draw a frame per window, each a little smaller than the one before, so that shared borders stay visible."""
    frame = import_module("matplotlib.patches").Rectangle
    tints = ("#e69f00", "#56b4e9", "#f0e442", "#d55e00", "#cc79a7", "#ffffff")  # colour-blind safe
    for k, ((r0, r1), (c0, c1)) in enumerate((r, c) for r in rows for c in cols):
        inset = 0.06 + 0.05 * (k % 4)
        size = (c1 - c0 - 2 * inset, r1 - r0 - 2 * inset)
        panel.add_patch(
            frame((c0 - 0.5 + inset, r0 - 0.5 + inset), *size, fill=False, lw=1.6, ec=tints[k % len(tints)])
        )
