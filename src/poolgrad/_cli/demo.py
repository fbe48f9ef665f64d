"""Run the demo on a picture: pool it, send gradients back, and show where they go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import raw_ops
from .._common import png
from .._ops.files import store
from .panels import Panel, diverging, sheet

Array = npt.NDArray[Any]

_WINDOWS: dict[str, Any] = {"ksize": [1, 4, 4, 1], "strides": [1, 4, 4, 1], "padding": "VALID"}
_CUBES: dict[str, Any] = {"ksize": [1, 3, 4, 4, 1], "strides": [1, 3, 4, 4, 1], "padding": "VALID"}
_DRAWN: dict[str, Any] = {"pooling_ratio": [1, 3.7, 3.7, 1], "overlapping": True, "deterministic": True, "seed": 7}
_NEXT = (
    ('poolgrad try "max bf16 nchw x=2x3x9x9 k=3x3 s=2x2 pad=same grad"', "any op on random data, checked"),
    ("poolgrad ops MaxPoolGradGrad", "what an op takes, promises and does differently"),
    ("poolgrad run MaxPool input=x.npy ksize=1,2,2,1 strides=1,2,2,1 padding=VALID -o y.npy", "any op on your files"),
)


@dataclass(frozen=True)
class Step:
    """An op's input, result and caption."""

    op: str
    given: Array
    result: Array
    caption: str

    def row(self) -> tuple[str, ...]:
        """Return the op's name, shapes, sums, number of nonzero cells, and largest absolute value."""
        sums = (f"{float(a.sum(dtype=np.float64)):.4f}" for a in (self.given, self.result))
        hit = f"{int(np.count_nonzero(self.result))} of {self.result.size}"
        return self.op, _shape(self.given), _shape(self.result), *sums, hit, f"{np.abs(self.result).max():.4f}"

    def panel(self) -> Panel:
        """Draw the result, summed over colours: blue below zero, red above."""
        flat = self.result[0].sum(axis=0 if self.result.ndim == 5 else 2)
        return Panel(self.op, self.caption, diverging(flat.reshape(flat.shape[:2])))


def _shape(array: Array) -> str:
    return "x".join(map(str, array.shape))


def picture() -> Array:
    """Return the bundled picture: shape (1, 96, 96, 3), float32 from 0 to 1."""
    pixels = png.decode(files("poolgrad").joinpath("data/picture.png").read_bytes())
    return (pixels[None] / np.float32(255)).astype(np.float32)


def contrast(y: Array) -> Array:
    """Return the gradient to send back: each cell minus the mean of its neighbours, large at edges and 0 in plain areas."""
    mean: Array = raw_ops.AvgPool(value=y, ksize=[1, 3, 3, 1], strides=[1, 1, 1, 1], padding="SAME")
    return y - mean


def steps(x: Array) -> tuple[dict[str, Array], list[Step]]:
    """Return the pooled pictures, and the five gradients."""
    average, largest = raw_ops.AvgPool(value=x, **_WINDOWS), raw_ops.MaxPool(input=x, **_WINDOWS)
    g, moved = contrast(average), np.roll(x, -1, axis=2) - x  # how each cell changes when the picture moves left
    shape = np.array(x.shape, np.int32)
    fractional, drawn = _fractional(x)
    spread = raw_ops.AvgPoolGrad(orig_input_shape=shape, grad=g, **_WINDOWS)
    recalled = raw_ops.MaxPoolGradGrad(orig_input=x, orig_output=largest, grad=moved, **_WINDOWS)
    five = [
        *drawn,
        Step("AvgPoolGrad", g, spread, "evenly over each window"),
        _volume(x),
        Step("MaxPoolGradGrad", moved, recalled, "how y changes as x moves left"),
    ]
    return {"y": largest, "fractional": fractional, "g": g}, five


def _fractional(x: Array) -> tuple[Array, list[Step]]:
    best, mean = raw_ops.FractionalMaxPool(value=x, **_DRAWN), raw_ops.FractionalAvgPool(value=x, **_DRAWN)
    # Both pools have the same borders, because both use the same seed.
    borders: dict[str, Any] = dict(zip(best._fields[1:], best[1:], strict=True))
    g_best, g_mean = contrast(best.output), contrast(mean.output)
    routed = raw_ops.FractionalMaxPoolGrad(
        orig_input=x, orig_output=best.output, out_backprop=g_best, overlapping=True, **borders
    )
    shape = np.array(x.shape, np.int64)
    spread = raw_ops.FractionalAvgPoolGrad(
        orig_input_tensor_shape=shape, out_backprop=g_mean, overlapping=True, **borders
    )
    return best.output, [
        Step("FractionalMaxPoolGrad", g_best, routed, "to the largest cell of windows of 4 or 5"),
        Step("FractionalAvgPoolGrad", g_mean, spread, "evenly over windows of 4 or 5"),
    ]


def _volume(x: Array) -> Step:
    volume = np.ascontiguousarray(np.moveaxis(x, 3, 1)[..., None])  # the colours as depth
    peak = raw_ops.MaxPool3D(input=volume, **_CUBES)
    g = contrast(peak[:, 0])[:, None]
    near = raw_ops.MaxPool3DGrad(orig_input=volume, orig_output=peak, grad=g, **_CUBES)
    return Step("MaxPool3DGrad", g, near, "colours as depth: to every largest cell")


def draw(x: Array, pooled: dict[str, Array], five: Sequence[Step]) -> png.Picture:
    """Draw nine panels: the picture, two pooled pictures, the gradient sent back, and the five results."""
    panels = [
        Panel("x", "the picture, 96x96", _pixels(x)),
        Panel("MaxPool", "4x4 windows: 24x24", _pixels(pooled["y"])),
        Panel("FractionalMaxPool", "ratio 3.7: 25x25", _pixels(pooled["fractional"])),
        Panel("g", "sent back: y minus its local mean", diverging(pooled["g"][0].sum(axis=2))),
        *(step.panel() for step in five),
    ]
    return sheet(panels, columns=3, side=288)


def _pixels(x: Array) -> png.Picture:
    pixels: png.Picture = np.round(np.clip(x[0], 0, 1) * 255).astype(np.uint8)
    return pixels


def table(rows: Sequence[Sequence[str]]) -> str:
    """Format rows as text columns: the first flush left, the others flush right.

    >>> print(table([("op", "sum"), ("AvgPool", "1.5")]))
    op       sum
    AvgPool  1.5
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [str.ljust] + [str.rjust] * (len(widths) - 1)
    return "\n".join("  ".join(map(lambda side, cell, width: side(cell, width), sides, row, widths)) for row in rows)


def run(target: str | Path) -> str:
    """Run the demo, write the picture to `target`, and return the report."""
    x = picture()
    pooled, five = steps(x)
    store("-o", {Path(target): png.encode(draw(x, pooled, five))})
    head = ("op", "given", "result", "sum given", "sum result", "not zero", "largest")
    tries = "\n".join(f"  {command}\n      {what}" for command, what in _NEXT)
    return "\n".join([
        f"A picture x of shape {_shape(x)}, pooled; then g, the contrast of the pooled picture, sent back.", "",
        table([head, *(step.row() for step in five)]), "",
        "The first three hand on all of g: the sums agree. MaxPool3DGrad gives g to every tie of a window, so it gives",
        "some of it more than once. MaxPoolGradGrad goes forward: it takes a change of x and returns the change of y.",
        f"{target}: the picture, the pooled picture, and where the gradients go.", "", "Three things to try:", tries, "",
        "Why is one cell zero and its neighbour not? Point at it: `poolgrad studio`, or `make studio` where you ran `make demo`.",
    ])  # fmt: skip
