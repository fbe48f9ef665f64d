"""Each deviation from TensorFlow that a row of the table names is exercised on that row."""

from collections.abc import Callable
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support import FAST, SLOW, Case, arguments, difference, dtype_of, outputs

from poolgrad import raw_ops
from poolgrad._ops import table
from poolgrad._ops.semantics import Kernel
from poolgrad._ops.table import OPS, Kind, Op

Check = Callable[[Op], None]
CHECKS: dict[str, Check] = {}


def exercises(deviation: str) -> Callable[[Check], Check]:
    """Register a check for a deviation, by the name that the table gives it."""

    def enter(check: Check) -> Check:
        CHECKS[getattr(table, deviation)] = check
        return check

    return enter


ROWS = [(name, text) for name, op in OPS.items() for text in op.promise.deviations]


@pytest.mark.parametrize(("name", "text"), ROWS, ids=[f"{name}: {text[:40]}" for name, text in ROWS])
def test_a_named_deviation_is_as_it_says(name, text):
    assert text in CHECKS, f"no check here exercises {text!r}"
    CHECKS[text](OPS[name])


def small(op: Op, dtype: str = "", **fields: Any) -> Case:
    spatial = op.spatial
    return Case(
        op.name,
        dtype or op.dtypes[0],
        **{"x": (2, *(4,) * spatial, 3), "k": (2,) * spatial, "s": (2,) * spatial, **fields},
    )


def run(op: Op, args: dict[str, Any]) -> np.ndarray:
    return outputs(FAST[op.name](**args))[0]


def sizes(op: Op, args: dict[str, Any], name: str, **places: int) -> dict[str, Any]:
    changed = list(args[name])
    for place, value in places.items():
        changed[{"channel": -1, "row": 1}[place]] = value
    return {**args, name: np.array(changed, np.int32) if isinstance(args[name], np.ndarray) else changed}


def first_source(op: Op) -> str:
    return next(p.name for p in op.params if p.kind in (Kind.SOURCE, Kind.DEST))


@exercises("SUBNORMALS")
def subnormals_are_kept(op: Op) -> None:
    case = small(op, "float32", ratio=(2, 2))
    args = arguments(case)
    tiny = np.float32(2.0**-140)  # divisible by 8 and still a number
    for p in op.params:
        if p.kind in (Kind.SOURCE, Kind.DEST):
            args[p.name] = np.full_like(args[p.name], tiny)
    out = run(op, args)
    assert out.any()
    assert (np.abs(out[out != 0]) < np.finfo(np.float32).smallest_normal).all()


@exercises("CHANNEL_STRIDE")
def channel_stride_is_refused(op: Op) -> None:
    args = sizes(op, arguments(small(op)), "strides", channel=2)
    with pytest.raises(
        ValueError, match=rf"^{op.name}: strides: got \[1, 2, 2, 2\], wanted 1 in the channel dimension"
    ):
        run(op, args)


@exercises("GRID")
def every_dtype_and_layout_follows_its_sibling(op: Op) -> None:
    for dtype in op.dtypes:
        args = arguments(small(op, dtype))
        assert run(op, args).dtype == dtype_of(dtype)
    if len(op.formats) == 1:
        return
    last = arguments(small(op, "float32"))
    first = {**last, "data_format": op.formats[1]}
    move = (0, op.spatial + 1, *range(1, op.spatial + 1))
    for p in op.params:
        if p.kind in (Kind.SOURCE, Kind.DEST):
            first[p.name] = last[p.name].transpose(move)
        elif p.kind in (Kind.SHAPE, Kind.SIZES, Kind.SIZES_TENSOR):
            n, *space, c = last[p.name]
            first[p.name] = (
                np.array([n, c, *space], np.int32) if isinstance(last[p.name], np.ndarray) else [n, c, *space]
            )
    assert not difference(run(op, first), np.ascontiguousarray(run(op, last).transpose(move)))


@exercises("EMPTY")
def empty_arrays_give_empty_results(op: Op) -> None:
    for axis in (0, op.spatial + 1):
        shape = tuple(0 if d == axis else 4 for d in range(op.spatial + 2))
        args = arguments(small(op, x=shape))
        out = run(op, args)
        assert out.size == 0
        assert out.shape[1] == (2 if op.order != 1 else 4)


@exercises("ONE_RULE")
def position_does_not_matter(op: Op) -> None:
    """Channels that hold the same NaN and zeros have the same result, be they 1, 7, 8 or 12."""
    rng = np.random.default_rng(3)
    column = rng.choice(np.array([np.nan, 0.0, -0.0, -np.inf, 1.0], np.float32), (1, *(4,) * op.spatial, 1))
    found = []
    for channels in (1, 7, 8, 12):
        args = arguments(small(op, "float32", x=(1, *(4,) * op.spatial, channels)))
        args[first_source(op)] = np.repeat(column, channels, -1)
        out = run(op, args)
        found += [out[..., c].view(np.uint32).tolist() for c in range(channels)]
    assert all(f == found[0] for f in found)


@exercises("LOWEST")
def the_lowest_value_is_a_number(op: Op) -> None:
    """TensorFlow's means of these windows are NaN, 4 and 4: a lowest cell is neither added nor counted."""
    for dtype in ("float32", "bfloat16"):
        lowest = float(ml_dtypes.finfo(dtype_of(dtype)).min)
        for channels in (1, 8):  # one number, and a vector of them
            for cells, want in (([lowest], lowest), ([lowest, 4], lowest / 2), ([4, lowest], lowest / 2)):
                shape = (1,) * op.spatial + (len(cells), 1)
                column = np.array(cells, dtype_of(dtype)).reshape(shape)
                args = arguments(small(op, dtype, x=(*shape[:-1], channels), k=(1,) * (op.spatial - 1) + (len(cells),)))
                args = {**args, first_source(op): np.repeat(column, channels, -1)}
                assert run(op, args).reshape(-1).tolist() == [want] * channels


@exercises("FITS")
def what_does_not_fit_is_refused(op: Op) -> None:
    args = arguments(small(op, ratio=(2, 2)))
    wrong = [p.name for p in op.params if p.kind in (Kind.DEST, Kind.INDEX)]
    for name in wrong:
        for axis in range(op.spatial + 2):
            with pytest.raises(ValueError, match=rf"^{op.name}: "):
                run(op, {**args, name: np.concatenate([args[name]] * 2, axis)})
    if op.param(Kind.INDEX):
        with pytest.raises(ValueError, match=rf"^{op.name}: argmax: got -1 at \[0, 0, 0, 0\]"):
            run(op, {**args, "argmax": np.full_like(args["argmax"], -1)})
    if not wrong:
        with pytest.raises(ValueError, match=rf"^{op.name}: ksize: .*positive"):
            run(op, sizes(op, args, "ksize", row=0))


@exercises("ZEROS")
def an_empty_output_has_a_zero_gradient(op: Op) -> None:
    case = small(op, x=(2, 3, 3, 2), k=(4, 4), s=(2, 2))
    assert prod(case.dest) == 0
    out = run(op, arguments(case))
    assert out.shape == case.source
    assert not out.any()


@exercises("DEPTHWISE")
def depthwise_strides_are_refused(op: Op) -> None:
    case = small(op, x=(1, 4, 4, 6), depth=3)
    args = arguments(case)
    assert run(op, args).shape == (case.source if op.order == 1 else case.dest)
    with pytest.raises(ValueError, match=rf"^{op.name}: strides: .*wanted 1 in every dimension but the channels"):
        run(op, sizes(op, args, "strides", row=2))


@exercises("DEPTHWISE_GRAD")
def depthwise_pooling_has_its_derivatives(op: Op) -> None:
    for first in (False, True):
        case = small(op, x=(2, 3, 2, 6), depth=3, first=first)
        args = arguments(case)
        assert run(op, args).shape == (case.source if op.order == 1 else case.dest)
        assert not difference(run(op, args), SLOW[op.name](**args))


@exercises("SEQUENCES")
def sequences_are_judged_by_their_values(op: Op) -> None:
    args = arguments(small(op, ratio=(2, 2)))
    for wrong in ([0, 3, 2], [0, 0, 4], [-1, 2, 4], [0, 2, 5], [0, 1, 2], [0, 1, 2, 4], [0, 4]):
        with pytest.raises(ValueError, match=rf"^{op.name}: row_pooling_sequence: got"):
            run(op, {**args, "row_pooling_sequence": np.array(wrong)})


@exercises("LEGITIMATE")
def whatever_the_forward_op_returned_is_accepted(op: Op) -> None:
    nan, inf = np.nan, np.inf
    for values in ([[nan, 1], [2, nan]], [[-inf, -inf], [-inf, -inf]], [[nan, nan], [nan, nan]], [[1, 2], [3, 4]]):
        for ratio in ([1, 1, 1, 1], [1, 2, 2, 1]):
            x = np.array(values, np.float32).reshape(1, 2, 2, 1)
            y, rows, cols = raw_ops.FractionalMaxPool(value=x, pooling_ratio=ratio)
            args = {"orig_input": x, "orig_output": y, "row_pooling_sequence": rows, "col_pooling_sequence": cols}
            assert run(op, {**args, "out_backprop": np.ones_like(y)}).sum() == y.size


@exercises("GRAPHS")
def second_order_is_computed_where_input_and_output_have_one_size(op: Op) -> None:
    case = small(op, "float32", k=(2,) * op.spatial, s=(1,) * op.spatial, pad="SAME", data="distinct")
    args = arguments(case)
    y = FAST["MaxPool" if op.spatial == 2 else "MaxPool3D"](
        input=args["orig_input"], **{k: args[k] for k in ("ksize", "strides", "padding")}
    )
    assert (run(op, {**args, "orig_output": y, "grad": args["orig_input"]}) == y).all()


@exercises("NOT_DEPTHWISE")
def depthwise_windows_are_refused(op: Op) -> None:
    args = sizes(op, arguments(small(op, x=(1, 4, 4, 4), k=(1, 1), s=(1, 1))), "ksize", channel=2)
    with pytest.raises(NotImplementedError, match=rf"^{op.name}: ksize: .*does not pool over channels"):
        run(op, sizes(op, args, "strides", channel=2))


@exercises("NO_KERNEL")
def the_op_without_a_kernel_gathers(op: Op) -> None:
    args = arguments(small(op, batched=True))
    assert (run(op, args) == args["grad"].reshape(-1)[args["argmax"]]).all()


@exercises("HALF")
def half_types_round_at_each_step(op: Op) -> None:
    for dtype, digits in (("float16", 11), ("bfloat16", 8)):
        kind = dtype_of(dtype)
        x = np.array([2**digits, 1, 1, 0], kind).reshape(1, 1, 4, 1)
        y = FAST[op.name](value=x, pooling_ratio=[1, 1, 4, 1]).output
        assert y.item() == 2**digits / 4, "2**digits + 1 rounds back to even, twice"


@exercises("WORDS")
def floats_are_no_integers(op: Op) -> None:
    args = arguments(small(op))
    name = "ksize" if op.param(Kind.SIZES) else "seed"
    wrong = [1, *(2.0,) * op.spatial, 1] if name == "ksize" else 1.0
    with pytest.raises(TypeError, match=rf"^{op.name}: {name}: got"):
        run(op, {**args, name: wrong})


@exercises("LISTS")
def lists_that_the_first_does_not_hold_are_refused(op: Op) -> None:
    args = arguments(small(op))
    names = [p.name for p in op.params if p.kind in (Kind.SOURCE, Kind.DEST)]
    lists = {name: np.ones(np.shape(args[name]), int).tolist() for name in names}
    lists[names[-1]] = np.full(np.shape(args[names[-1]]), 2**40).tolist()
    with pytest.raises(ValueError, match=rf"^{op.name}: {names[-1]}: got .*, wanted integers that int32 holds"):
        run(op, {**args, **lists})


def test_every_check_belongs_to_a_deviation_that_some_row_has():
    assert set(CHECKS) == {text for _, text in ROWS}


def test_an_argmax_row_is_the_only_one_that_refuses_depthwise_by_name():
    assert [name for name, text in ROWS if text == table.NOT_DEPTHWISE] == [
        n for n, op in OPS.items() if op.rule.verb is Kernel.ARGMAX
    ]


@exercises("LONG_SUMS")
def long_sums_are_nearer_to_the_exact_mean(op: Op) -> None:
    """A window of 4,096 halves: added one by one in float16, ones would stop at 2,048."""
    case = small(
        op,
        "float16",
        x=(1, *(64 if d < 2 else 1 for d in range(op.spatial)), 3),
        k=(64, 64, 1)[: op.spatial],
        s=(64, 64, 1)[: op.spatial],
    )
    args = arguments(case)
    if op.order == 0:
        args[first_source(op)] = np.ones_like(args[first_source(op)])
        assert (run(op, args) == 1).all()
        return
    case = small(
        op,
        "float16",
        x=(1, *(33 if d < 2 else 1 for d in range(op.spatial)), 3),
        k=(17, 17, 1)[: op.spatial],
        s=(1,) * op.spatial,
    )
    args = arguments(case)
    args[first_source(op)] = np.ones_like(args[first_source(op)])
    share = float(np.float16(1 / 289))
    middle = run(op, args)[0, 16, 16].astype(np.float64)
    assert (abs(middle - 289 * share) <= 2**-11).all()
