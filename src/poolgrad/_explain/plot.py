"""Draw a pool: windows over the input, the tap of each, and where each gradient goes. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from os import PathLike
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array, as_array
from .._common.errors import ArgumentErrors, short_repr
from .._pooling.families import averaging, maximum, minimum, plan, summing
from .._pooling.operators import Linear
from .._pooling.pools import array_of
from .._pooling.window_args import Ints, Padding, Windows
from ..windows import Axis, Plan, whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .._pooling.tape import Var

_KINDS = ("max", "min", "avg", "sum")
_MOST = 32  # most cells along an axis for which numbers are drawn


def show(
    x: npt.ArrayLike | Var,
    window: Windows,
    stride: Ints | None = None,
    *,
    kind: Literal["max", "min", "avg", "sum"] = "max",
    g: npt.ArrayLike | None = None,
    at: Sequence[int] | None = None,
    file: str | PathLike[str] | IO[bytes] | None = None,
    padding: Padding = "valid",
    dilation: Ints = 1,
    axes: Ints | None = None,
    layout: str | None = None,
    ceil_mode: bool = False,
) -> Figure:
    """Draw a pool as three panels: x with its windows and taps, y, and the gradient of x.

    Needs matplotlib: ``pip install 'poolgrad[plot]'``. Numbers are drawn for at most 32 cells along a pooled axis.

    Parameters
    ----------
    x : array_like
        Array to pool; at most two of its axes are pooled.
    window : int, sequence of int, Axis, or pairs of boundaries
        Window size or explicit windows: one value, or one per pooled axis.
    stride : int or sequence of int, optional
        Step between windows. Default: `window`.
    kind : {"max", "min", "avg", "sum"}
        Pool to draw.
    g : array_like, optional
        Gradient at y, of the shape of y. Default: 1 everywhere.
    at : sequence of int, optional
        One index along each axis that is not pooled: the slice to draw. Default: the first slice.
    file : str, path or binary file, optional
        File to which the figure is also written.
    padding : {"valid", "same", "same_lower"}, int, or pairs
        Moves the windows; padded cells are never read.
    dilation : int or sequence of int
        Distance between neighbouring cells of a window.
    axes : int or sequence of int, optional
        Pooled axes, in ascending order. Default: all axes.
    layout : str, optional
        Letter per axis, such as ``"NHWC"``, instead of `axes`: all axes but N and C are pooled.
    ceil_mode : bool
        Add a last window for cells that remain at the end of an axis.

    Returns
    -------
    matplotlib.figure.Figure
        The figure; its three axes are the panels.

    Raises
    ------
    ValueError
        If an argument has a wrong value or `g` a wrong shape, if more than two axes are pooled, or if an axis is too long to draw.
    TypeError
        If an argument has a wrong type.
    ImportError
        If matplotlib is not installed.

    See Also
    --------
    explain : Explain the value of one cell in a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> figure = pg.show(np.array([[1, 2, 5, 0], [4, 3, 0, 6]]), 2)
    >>> [panel.get_title() for panel in figure.axes]
    ['x, and the windows of max', 'y', 'gradient of x']
    >>> [(int(tap.get_ydata()[0]), int(tap.get_xdata()[0])) for tap in figure.axes[0].lines]
    [(1, 0), (1, 3)]
    """
    problems = ArgumentErrors("show")
    if kind not in _KINDS:
        problems.fail("kind", short_repr(kind), "'max', 'min', 'avg' or 'sum'")
    array = array_of(problems, x)
    words = {"padding": padding, "dilation": dilation, "axes": axes, "layout": layout, "ceil_mode": ceil_mode}
    windows = plan(array.shape, window, stride, **words)
    y, operator = _pooled(kind, array, windows)
    grad = np.ones_like(y) if g is None else as_array(problems, "g", g)
    problems.raise_if_any()
    assert grad is not None
    if grad.shape != y.shape:
        problems.fail("g", f"shape {list(grad.shape)}", list(y.shape))
    dx = operator.T(grad)
    taps = np.where(operator.T(np.ones(y.shape)) != 0, 1, 0) if kind in ("max", "min") else None
    place = _place(problems, windows, at)
    pooled = [axis for axis in windows.by_dimension if axis is not None][-2:]
    flat = [None if a is None else np.atleast_2d(a[place]) for a in (array, y, dx, taps)]
    figure = _draw(_matplotlib(problems), flat, pooled, kind)
    if file is not None:
        figure.savefig(file, dpi=120)
    return figure


def _pooled(kind: str, x: Array, windows: Plan) -> tuple[Array, Linear]:
    if kind in ("max", "min"):
        best: tuple[Array, Linear] = (maximum if kind == "max" else minimum)(x, windows)
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


def _matplotlib(problems: ArgumentErrors) -> type[Figure]:
    try:
        figure: type[Figure] = import_module("matplotlib.figure").Figure
    except ImportError:
        problems.fail("show", "no matplotlib", "it installed: pip install 'poolgrad[plot]'", ImportError)
    return figure


def _draw(figure_of: type[Figure], panels: Sequence[Array | None], axes: Sequence[Axis], kind: str) -> Figure:
    x, y, dx, taps = panels
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
    if taps is not None:
        for r, c in np.argwhere(taps):
            spread[0].plot(
                c, r, "o", markersize=17, markerfacecolor="none", markeredgecolor="white", markeredgewidth=1.6
            )
    return figure


def _cells(
    panel: Axes, values: Array, colours: str, title: str, low: float | None = None, high: float | None = None
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


def _outline(panel: Axes, rows: Axis, cols: Axis) -> None:
    """Draw a frame per window, each a little smaller than the one before, so that shared borders stay visible."""
    frame = import_module("matplotlib.patches").Rectangle
    tints = ("#e69f00", "#56b4e9", "#f0e442", "#d55e00", "#cc79a7", "#ffffff")  # colour-blind safe
    for k, ((r0, r1), (c0, c1)) in enumerate((r, c) for r in rows for c in cols):
        inset = 0.06 + 0.05 * (k % 4)
        size = (c1 - c0 - 2 * inset, r1 - r0 - 2 * inset)
        panel.add_patch(
            frame((c0 - 0.5 + inset, r0 - 0.5 + inset), *size, fill=False, lw=1.6, ec=tints[k % len(tints)])
        )
