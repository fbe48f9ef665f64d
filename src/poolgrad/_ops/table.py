"""The ops as data: one row each. Everything that must know an op (functions, stubs, docs, command line, tests) reads it here."""

from __future__ import annotations

from dataclasses import dataclass

from .dtypes import CODES, FLOATS, FLOATS_AND_LONG, REALS
from .kinds import ARRAYS, REQUIRED, Kind, Param
from .semantics import Kernel, Mean, OpSemantics, Promise, Share, Start, WindowRule, bits

__all__ = ["ARRAYS", "OPS", "REQUIRED", "Kind", "Op", "Param"]


@dataclass(frozen=True)
class Op:
    """One row: a name, a signature, a rule, and what it promises."""

    name: str
    summary: str
    family: str  # max, avg, fmax, favg, qmax, qavg
    order: int  # 0 forward, 1 gradient, 2 second-order gradient
    spatial: int  # pooled dimensions: 2 or 3
    params: tuple[Param, ...]
    outputs: tuple[str, ...]
    dtypes: tuple[str, ...]
    rule: OpSemantics
    promise: Promise
    depthwise: bool = False

    def param(self, kind: Kind) -> Param | None:
        """The first argument of a kind."""
        return next((p for p in self.params if p.kind is kind), None)

    @property
    def formats(self) -> tuple[str, ...]:
        """The layouts that data_format may name; the first is the default."""
        last, first = ("NHWC", "NCHW") if self.spatial == 2 else ("NDHWC", "NCDHW")
        return (last, first) if self.param(Kind.FORMAT) else (last,)

    @property
    def paddings(self) -> tuple[str, ...]:
        """The padding words that the op takes."""
        return ("SAME", "VALID", "EXPLICIT") if self.param(Kind.PADS) else ("SAME", "VALID")


SUBNORMALS = "subnormals are kept, TensorFlow flushes them to zero"
CHANNEL_STRIDE = "a channel stride other than 1 with channel window 1 is a ValueError, TensorFlow ignores it"
GRID = "dtypes and layouts without a CPU kernel in TensorFlow follow the nearest sibling that has one"
EMPTY = "an empty array gives the empty (or zero) result of the computed shape, TensorFlow refuses it"
ONE_RULE = "NaN and signed zero follow one rule at every position, TensorFlow's depends on vector lanes"
FITS = "shapes and positions must fit exactly, TensorFlow accepts some that do not, or dies"
ZEROS = "an empty output gives a gradient of zeros, TensorFlow returns uninitialised memory"
DEPTHWISE = "depthwise with spatial strides other than 1 is a ValueError, TensorFlow ignores the strides"
DEPTHWISE_GRAD = "depthwise pooling has its gradients, TensorFlow refuses them"
SEQUENCES = "sequences are checked value by value: strictly increasing, inside 0 to n, ending at n or n - 1, one entry more than cells"
LEGITIMATE = "whatever FractionalMaxPool returned is accepted, NaN and -inf included, TensorFlow refuses some of it"
GRAPHS = "always computed, TensorFlow returns zeros in some graphs"
NOT_DEPTHWISE = "depthwise windows are a NotImplementedError, TensorFlow returns its input unpooled"
NO_KERNEL = "computed on the CPU, where TensorFlow has no kernel"
HALF = "float16 and bfloat16 exist; sums round at each step, as in AvgPool"
LONG_SUMS = "sums of more than 64 terms are added up in a wider type, closer to the exact mean than TensorFlow's"
LOWEST = (
    "a cell of the lowest finite value is a number like any other, TensorFlow takes it for padding and leaves it out"
)
WORDS = "floats in integer lists are a TypeError, TensorFlow truncates them"
LISTS = (
    "integers of a list that the dtype of the list before it does not hold are refused, TensorFlow wraps them around"
)


def _sizes(kind: Kind = Kind.SIZES) -> tuple[Param, ...]:
    return Param("ksize", kind), Param("strides", kind), Param("padding", Kind.PADDING)


NAME = Param("name", Kind.NAME, None)
PADS = Param("explicit_paddings", Kind.PADS, ())
FRACTIONAL = (
    Param("pooling_ratio", Kind.RATIO),
    Param("pseudo_random", Kind.FLAG, False),
    Param("overlapping", Kind.FLAG, False),
    Param("deterministic", Kind.FLAG, False),
    Param("seed", Kind.SEED, 0),
    Param("seed2", Kind.SEED, 0),
    NAME,
)
DRAWN = ("output", "row_pooling_sequence", "col_pooling_sequence")
SEQUENCE_PAIR = (
    Param("row_pooling_sequence", Kind.SEQUENCE, dtype="int64"),
    Param("col_pooling_sequence", Kind.SEQUENCE, dtype="int64"),
    Param("overlapping", Kind.FLAG, False),
    NAME,
)
RANGES = (Param("min_input", Kind.RANGE), Param("max_input", Kind.RANGE))
RANGED = ("output", "min_output", "max_output")
BATCHED = Param("include_batch_in_index", Kind.FLAG, False)


def _format(spatial: int) -> tuple[Param, ...]:
    return Param("data_format", Kind.FORMAT, "NHWC" if spatial == 2 else "NDHWC"), NAME


def _arrays(*names_and_kinds: tuple[str, Kind]) -> tuple[Param, ...]:
    return tuple(Param(name, kind) for name, kind in names_and_kinds)


X = ("orig_input", Kind.SOURCE)
Y = ("orig_output", Kind.DEST)
G = ("grad", Kind.DEST)
V = ("grad", Kind.SOURCE)

SELECT = OpSemantics(WindowRule.CLIP, Kernel.SELECT)
ROUTE = OpSemantics(WindowRule.CLIP, Kernel.ROUTE, start=Start.FIRST)
RECALL = OpSemantics(WindowRule.CLIP, Kernel.RECALL)

_ROWS = (
    Op("AvgPool", "Mean of each window.", "avg", 0, 2,
       _arrays(("value", Kind.SOURCE)) + _sizes() + _format(2), ("output",), FLOATS,
       OpSemantics(WindowRule.CLIP, Kernel.FOLD), bits(SUBNORMALS, CHANNEL_STRIDE, GRID, LONG_SUMS, WORDS)),
    Op("AvgPoolGrad", "Gradient of AvgPool: each output's gradient, shared evenly over its window.", "avg", 1, 2,
       (Param("orig_input_shape", Kind.SHAPE, dtype="int32"), *_arrays(G), *_sizes(), *_format(2)), ("output",), FLOATS,
       OpSemantics(WindowRule.REACH, Kernel.SPREAD), bits(SUBNORMALS, CHANNEL_STRIDE, GRID, FITS, LONG_SUMS, WORDS)),
    Op("AvgPool3D", "Mean of each window, three dimensions.", "avg", 0, 3,
       _arrays(("input", Kind.SOURCE)) + _sizes() + _format(3), ("output",), FLOATS,
       OpSemantics(WindowRule.SHIFT, Kernel.FOLD, mean=Mean.EXACT), bits(SUBNORMALS, GRID, ONE_RULE, LOWEST, LONG_SUMS, WORDS)),
    Op("AvgPool3DGrad", "Gradient of AvgPool3D.", "avg", 1, 3,
       (Param("orig_input_shape", Kind.SHAPE, dtype="int32"), *_arrays(G), *_sizes(), *_format(3)), ("output",), FLOATS,
       OpSemantics(WindowRule.REACH, Kernel.SPREAD, share=Share.SHORT_RECIPROCAL, reversed=True), bits(SUBNORMALS, GRID, FITS, EMPTY, LONG_SUMS, WORDS)),
    Op("MaxPool", "Maximum of each window.", "max", 0, 2,
       _arrays(("input", Kind.SOURCE)) + _sizes() + (PADS, *_format(2)), ("output",), REALS,
       SELECT, bits(SUBNORMALS, CHANNEL_STRIDE, GRID, ONE_RULE, DEPTHWISE, WORDS), depthwise=True),
    Op("MaxPoolV2", "Maximum of each window; window and stride are arrays.", "max", 0, 2,
       _arrays(("input", Kind.SOURCE)) + _sizes(Kind.SIZES_TENSOR) + _format(2), ("output",), REALS,
       SELECT, bits(SUBNORMALS, CHANNEL_STRIDE, GRID, ONE_RULE, DEPTHWISE), depthwise=True),
    Op("MaxPoolGrad", "Gradient of MaxPool: each output's gradient goes to the first maximum of its window.", "max", 1, 2,
       _arrays(X, Y, G) + _sizes() + (PADS, *_format(2)), ("output",), REALS,
       ROUTE, bits(SUBNORMALS, CHANNEL_STRIDE, GRID, ZEROS, DEPTHWISE_GRAD, WORDS, LISTS), depthwise=True),
    Op("MaxPoolGradV2", "Gradient of MaxPoolV2.", "max", 1, 2,
       _arrays(X, Y, G) + _sizes(Kind.SIZES_TENSOR) + _format(2), ("output",), REALS,
       ROUTE, bits(SUBNORMALS, CHANNEL_STRIDE, GRID, ZEROS, DEPTHWISE_GRAD, LISTS), depthwise=True),
    Op("MaxPoolGradGrad", "Second-order gradient of MaxPool: grad at the first cell of each window that equals orig_output.", "max", 2, 2,
       _arrays(X, Y, V) + _sizes() + _format(2), ("output",), REALS,
       RECALL, bits(SUBNORMALS, CHANNEL_STRIDE, GRID, GRAPHS, DEPTHWISE_GRAD, WORDS, LISTS), depthwise=True),
    Op("MaxPoolGradGradV2", "Second-order gradient of MaxPoolV2.", "max", 2, 2,
       _arrays(X, Y, V) + _sizes(Kind.SIZES_TENSOR) + _format(2), ("output",), REALS,
       RECALL, bits(SUBNORMALS, CHANNEL_STRIDE, GRID, GRAPHS, DEPTHWISE_GRAD, LISTS), depthwise=True),
    Op("MaxPoolWithArgmax", "Maximum of each window and its flat position.", "max", 0, 2,
       _arrays(("input", Kind.SOURCE)) + _sizes() + (Param("Targmax", Kind.INDEX_TYPE, "int64"), BATCHED, NAME), ("output", "argmax"), REALS,
       OpSemantics(WindowRule.CLIP, Kernel.ARGMAX, start=Start.FIRST), bits(SUBNORMALS, CHANNEL_STRIDE, EMPTY, NOT_DEPTHWISE, WORDS)),
    Op("MaxPoolGradWithArgmax", "Gradient of MaxPoolWithArgmax: grad added at the given positions.", "max", 1, 2,
       _arrays(("input", Kind.SOURCE), G, ("argmax", Kind.INDEX)) + _sizes() + (BATCHED, NAME), ("output",), REALS,
       OpSemantics(WindowRule.CLIP, Kernel.SCATTER), bits(SUBNORMALS, CHANNEL_STRIDE, GRID, FITS, DEPTHWISE, WORDS, LISTS), depthwise=True),
    Op("MaxPoolGradGradWithArgmax", "Second-order gradient of MaxPoolWithArgmax: grad at the given positions.", "max", 2, 2,
       _arrays(("input", Kind.SOURCE), V, ("argmax", Kind.INDEX)) + _sizes() + (BATCHED, NAME), ("output",), REALS,
       OpSemantics(WindowRule.CLIP, Kernel.GATHER), bits(NO_KERNEL, CHANNEL_STRIDE, FITS, WORDS, LISTS), depthwise=True),
    Op("MaxPool3D", "Maximum of each window, three dimensions.", "max", 0, 3,
       _arrays(("input", Kind.SOURCE)) + _sizes() + _format(3), ("output",), REALS,
       OpSemantics(WindowRule.SHIFT, Kernel.SELECT, start=Start.INFINITY), bits(SUBNORMALS, GRID, ONE_RULE, WORDS)),
    Op("MaxPool3DGrad", "Gradient of MaxPool3D: to every cell of the window nearer than 1e-5 to orig_output.", "max", 1, 3,
       _arrays(X, Y, G) + _sizes() + _format(3), ("output",), REALS,
       OpSemantics(WindowRule.REACH, Kernel.NEAR, eps=1e-5), bits(SUBNORMALS, GRID, WORDS, LISTS)),
    Op("MaxPool3DGradGrad", "Second-order gradient of MaxPool3D.", "max", 2, 3,
       _arrays(X, Y, V) + _sizes() + _format(3), ("output",), REALS,
       RECALL, bits(SUBNORMALS, GRID, GRAPHS, EMPTY, WORDS, LISTS)),
    Op("FractionalMaxPool", "Maximum of windows whose lengths are drawn at random about a ratio.", "fmax", 0, 2,
       _arrays(("value", Kind.SOURCE)) + FRACTIONAL, DRAWN, REALS,
       OpSemantics(WindowRule.EDGES, Kernel.SELECT), bits(SUBNORMALS, GRID, WORDS)),
    Op("FractionalMaxPoolGrad", "Gradient of FractionalMaxPool.", "fmax", 1, 2,
       _arrays(X, Y, ("out_backprop", Kind.DEST)) + SEQUENCE_PAIR, ("output",), REALS,
       OpSemantics(WindowRule.EDGES, Kernel.ROUTE, start=Start.FIRST, verify=True), bits(SUBNORMALS, GRID, FITS, SEQUENCES, LEGITIMATE, LISTS)),
    Op("FractionalAvgPool", "Mean of windows whose lengths are drawn at random about a ratio.", "favg", 0, 2,
       _arrays(("value", Kind.SOURCE)) + FRACTIONAL, DRAWN, FLOATS_AND_LONG,
       OpSemantics(WindowRule.EDGES, Kernel.FOLD, mean=Mean.STRICT), bits(SUBNORMALS, GRID, HALF, WORDS)),
    Op("FractionalAvgPoolGrad", "Gradient of FractionalAvgPool.", "favg", 1, 2,
       (Param("orig_input_tensor_shape", Kind.SHAPE, dtype="int64"), *_arrays(("out_backprop", Kind.DEST)), *SEQUENCE_PAIR), ("output",),
       FLOATS_AND_LONG, OpSemantics(WindowRule.EDGES, Kernel.SPREAD, share=Share.QUOTIENT), bits(SUBNORMALS, GRID, FITS, SEQUENCES)),
    Op("QuantizedAvgPool", "Mean of each window of quantised codes, toward zero.", "qavg", 0, 2,
       _arrays(("input", Kind.SOURCE)) + RANGES + _sizes() + (NAME,), RANGED, CODES,
       OpSemantics(WindowRule.CLIP, Kernel.FOLD, mean=Mean.WIDE), bits(CHANNEL_STRIDE, GRID, FITS, WORDS)),
    Op("QuantizedMaxPool", "Maximum of each window of quantised codes.", "qmax", 0, 2,
       _arrays(("input", Kind.SOURCE)) + RANGES + _sizes() + (NAME,), RANGED, CODES,
       SELECT, bits(CHANNEL_STRIDE, GRID, DEPTHWISE, WORDS), depthwise=True),
)  # fmt: skip

OPS: dict[str, Op] = {row.name: row for row in _ROWS}
