"""Wrong calls: refused with one of four exceptions whose text begins with the op and names the argument."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from support import FAST, SHARED, Case, arguments, python

from poolgrad._ops.table import ARRAYS, OPS, Kind, Op

REFUSALS = (ValueError, TypeError, NotImplementedError, MemoryError)
INT32_MAX = 2**31 - 1


def small(name: str) -> Case:
    spatial = OPS[name].spatial
    return Case(name, OPS[name].dtypes[0], x=(2, *(4,) * spatial, 3), k=(2,) * spatial, s=(2,) * spatial)


def refused(name: str, args: dict[str, Any], *blamed: str) -> str:
    """Return the text of the refusal, which names the op, then all these arguments."""
    with pytest.raises(REFUSALS) as caught:
        FAST[name](**args)
    text = str(caught.value)
    assert text.startswith(f"{name}: "), text
    assert "got" in text
    assert "wanted" in text
    for argument in blamed:
        assert f"{argument}: got" in text, f"{argument} is not named: {text}"
    return text


def arrays_of(op: Op, *kinds: Kind) -> list[str]:
    return [p.name for p in op.params if p.kind in (kinds or ARRAYS)]


def test_the_calls_that_are_made_wrong_here_are_right_before():
    for name in OPS:
        FAST[name](**arguments(small(name)))


ARRAY_ARGUMENTS = [(name, argument) for name, op in OPS.items() for argument in arrays_of(op)]


@pytest.mark.parametrize(("name", "argument"), ARRAY_ARGUMENTS)
def test_a_wrong_type_is_refused_by_name(name, argument):
    args = arguments(small(name))
    for wrong in (np.asarray(args[argument]).astype(np.complex64), None, "text", {1: 2}, object()):
        refused(name, {**args, argument: wrong}, argument)
    refused(name, {**args, argument: np.full(np.shape(args[argument]), "a")}, argument)
    refused(name, {**args, argument: np.zeros(np.shape(args[argument]), bool)}, argument)


@pytest.mark.parametrize(("name", "argument"), ARRAY_ARGUMENTS)
def test_a_wrong_rank_is_refused_by_name(name, argument):
    args = arguments(small(name))
    right = np.asarray(args[argument])
    refused(name, {**args, argument: right[None]}, argument)
    if right.ndim > 1:
        refused(name, {**args, argument: right[0]}, argument)
    if right.ndim:
        refused(name, {**args, argument: right.reshape(-1)[0]}, argument)


@pytest.mark.parametrize(
    ("name", "argument"), [(n, a) for n, op in OPS.items() for a in arrays_of(op, Kind.DEST, Kind.INDEX)]
)
def test_a_wrong_shape_is_refused_by_name(name, argument):
    args = arguments(small(name))
    right = np.asarray(args[argument])
    for axis in range(right.ndim):
        for wrong in (np.concatenate([right, right], axis), right.take([], axis)):
            text = refused(name, {**args, argument: wrong})
            # If a sequence does not fit the first output-shaped array, the refusal names the sequence.
            assert argument in text, text


SIZED = [name for name, op in OPS.items() if op.param(Kind.PADDING)]
BAD_SIZES: dict[str, Any] = {
    "zero": lambda sizes: [0 if i == 1 else s for i, s in enumerate(sizes)],
    "negative": lambda sizes: [-2 if i == 2 else s for i, s in enumerate(sizes)],
    "the lowest int32": lambda sizes: [-(2**31) if i == 1 else s for i, s in enumerate(sizes)],
    "batch": lambda sizes: [2, *sizes[1:]],
    "short": lambda sizes: sizes[:-1],
    "long": lambda sizes: [*sizes, 1],
    "empty": lambda sizes: [],
}


def sizes_like(value: Any, changed: list[int]) -> Any:
    return np.array(changed, value.dtype) if isinstance(value, np.ndarray) else changed


@pytest.mark.parametrize("how", BAD_SIZES)
@pytest.mark.parametrize("argument", ["ksize", "strides"])
@pytest.mark.parametrize("name", SIZED)
def test_bad_sizes_are_refused_by_name(name, argument, how):
    args = arguments(small(name))
    refused(name, {**args, argument: sizes_like(args[argument], BAD_SIZES[how](list(args[argument])))}, argument)


@pytest.mark.parametrize(
    "value",
    [[1, 2**31, 2, 1], [1, 2**63, 2, 1], [1, 10**40, 2, 1], [1, 2.5, 2, 1], "1221", 2, None, [1, "2", 2, 1]],
    ids=repr,
)
@pytest.mark.parametrize("argument", ["ksize", "strides"])
@pytest.mark.parametrize("name", [n for n in SIZED if OPS[n].spatial == 2])
def test_sizes_that_are_no_list_of_small_integers_are_refused_by_name(name, argument, value):
    refused(name, {**arguments(small(name)), argument: value}, argument)


@pytest.mark.parametrize("name", SIZED)
def test_enormous_windows_and_strides_cost_nothing(name):
    """With SAME padding the largest attributes are legal; with VALID a window longer than the input is not."""
    args = {**arguments(small(name)), "padding": "VALID"}
    spatial = OPS[name].spatial
    huge = sizes_like(args["ksize"], [1, *(INT32_MAX,) * spatial, 1])
    refused(name, {**args, "ksize": huge}, "ksize")
    # One window over everything, or one cell: the legal answer, without a byte more than it needs.
    case = Case(
        name,
        OPS[name].dtypes[0],
        x=(1, *(4,) * spatial, 1),
        k=(INT32_MAX,) * spatial,
        s=(INT32_MAX,) * spatial,
        pad="SAME",
    )
    wide = arguments(case)
    tracemalloc.start()
    FAST[name](**wide)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


@pytest.mark.parametrize("name", [n for n, op in OPS.items() if op.param(Kind.SHAPE)])
def test_a_shape_that_no_memory_holds_is_refused(name):
    op = OPS[name]
    args = arguments(small(name))
    vector = op.param(Kind.SHAPE)
    biggest = np.iinfo(vector.dtype).max
    for shape in (
        [biggest] * (op.spatial + 2),
        [-1] * (op.spatial + 2),
        [0] * (op.spatial + 2),
        [1, *(30000,) * op.spatial, 30000],
    ):
        text = refused(name, {**args, vector.name: np.array(shape, vector.dtype)})
        assert any(a in text for a in (vector.name, "grad", "out_backprop", "pooling_sequence")), text


WORDS: list[tuple[str, Kind, Any]] = [
    ("padding", Kind.PADDING, "same"),
    ("padding", Kind.PADDING, ""),
    ("padding", Kind.PADDING, None),
    ("padding", Kind.PADDING, 1),
    ("padding", Kind.PADDING, "SAME\0"),
    ("data_format", Kind.FORMAT, "NWHC"),
    ("data_format", Kind.FORMAT, None),
    ("data_format", Kind.FORMAT, "NCHW_VECT_C"),
    ("include_batch_in_index", Kind.FLAG, "no"),
    ("overlapping", Kind.FLAG, 1),
    ("pseudo_random", Kind.FLAG, "yes"),
    ("deterministic", Kind.FLAG, 0.5),
    ("Targmax", Kind.INDEX_TYPE, "int16"),
    ("Targmax", Kind.INDEX_TYPE, "float32"),
    ("Targmax", Kind.INDEX_TYPE, None),
    ("seed", Kind.SEED, 1.5),
    ("seed", Kind.SEED, 2**63),
    ("seed2", Kind.SEED, "7"),
    ("pooling_ratio", Kind.RATIO, [1, 0.5, 1, 1]),
    ("pooling_ratio", Kind.RATIO, [1, float("nan"), 1, 1]),
    ("pooling_ratio", Kind.RATIO, [1, float("inf"), 1, 1]),
    ("pooling_ratio", Kind.RATIO, [1, 10**400, 1, 1]),
    ("pooling_ratio", Kind.RATIO, [2, 1, 1, 1]),
    ("pooling_ratio", Kind.RATIO, [1, 1, 1, 2]),
    ("pooling_ratio", Kind.RATIO, [1, 1, 1]),
    ("pooling_ratio", Kind.RATIO, 1.5),
    ("pooling_ratio", Kind.RATIO, ["1"] * 4),
    ("explicit_paddings", Kind.PADS, [0, 0, 1, 1]),
    ("explicit_paddings", Kind.PADS, [0, 0, -1, 1, 0, 0, 0, 0]),
    ("explicit_paddings", Kind.PADS, [1, 0, 0, 0, 0, 0, 0, 0]),
    ("explicit_paddings", Kind.PADS, [0, 0, 2, 0, 0, 0, 0, 0]),
    ("explicit_paddings", Kind.PADS, [0, 0, 2**31, 0, 0, 0, 0, 0]),
    ("explicit_paddings", Kind.PADS, None),
]


@pytest.mark.parametrize(("argument", "kind", "value"), WORDS, ids=repr)
def test_wrong_attributes_are_refused_by_name(argument, kind, value):
    takers = [name for name, op in OPS.items() if any(p.name == argument and p.kind is kind for p in op.params)]
    assert takers
    for name in takers:
        args = {**arguments(small(name)), argument: value}
        if kind is Kind.PADS:
            args["padding"] = "EXPLICIT"
        refused(name, args, argument)


def fractional(name: str) -> dict[str, Any]:
    return arguments(Case(name, "float32", x=(2, 6, 6, 3), ratio=(2, 2)))


SEQUENCES = {
    "unsorted": [0, 4, 2, 6],
    "repeated": [0, 2, 2, 6],
    "negative": [-1, 2, 4, 6],
    "beyond the input": [0, 2, 4, 7],
    "short": [0, 6],
    "long": [0, 1, 2, 4, 6],
    "enormous": [0, 2, 4, 2**62],
    "lowest": [-(2**63), 2, 4, 6],
    "ends early": [0, 1, 2, 3],
    "empty": [],
    "one": [0],
}


@pytest.mark.parametrize("how", SEQUENCES)
@pytest.mark.parametrize("argument", ["row_pooling_sequence", "col_pooling_sequence"])
@pytest.mark.parametrize("name", ["FractionalMaxPoolGrad", "FractionalAvgPoolGrad"])
def test_sequences_are_checked_value_by_value(name, argument, how):
    refused(name, {**fractional(name), argument: np.array(SEQUENCES[how], np.int64)}, argument)


def test_an_orig_output_that_is_not_the_pooled_input_is_refused_with_its_place():
    args = fractional("FractionalMaxPoolGrad")
    y = args["orig_output"].copy()
    y[1, 2, 0, 1] += 1
    text = refused("FractionalMaxPoolGrad", {**args, "orig_output": y}, "orig_output")
    assert "at [1, 2, 0, 1]" in text


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("name", ["MaxPoolGradWithArgmax", "MaxPoolGradGradWithArgmax"])
def test_positions_outside_the_input_are_refused_with_their_place(name, batched, index):
    case = Case(name, "float32", x=(2, 4, 4, 3), batched=batched, index=index)
    args = arguments(case)
    size = int(np.prod(case.source))
    for bad in (-1, size, np.iinfo(index).min, np.iinfo(index).max):
        where = args["argmax"].copy()
        where[1, 0, 1, 2] = bad
        text = refused(name, {**args, "argmax": where}, "argmax")
        assert f"{bad} at [1, 0, 1, 2]" in text


TOGETHER: list[tuple[str, dict[str, Any]]] = [
    ("MaxPool", {"padding": "same", "ksize": [1, 0, 2, 1], "strides": [1, 2, 2]}),
    ("MaxPoolGrad", {"orig_output": np.zeros((1, 1, 1, 1), np.float16), "grad": np.zeros((9, 9, 9, 9), np.float16)}),
    ("AvgPoolGrad", {"grad": np.zeros(3, np.float16), "padding": "EXPLICIT", "data_format": "NHCW"}),
    ("FractionalAvgPool", {"seed": "a", "seed2": 1.5, "overlapping": "x", "pooling_ratio": 3}),
    ("MaxPoolWithArgmax", {"Targmax": "int8", "include_batch_in_index": 3, "ksize": None}),
    ("QuantizedAvgPool", {"min_input": np.zeros(2, np.float32), "max_input": np.float64(1), "strides": [1]}),
    (
        "FractionalMaxPoolGrad",
        {"row_pooling_sequence": np.array([2, 1, 0]), "col_pooling_sequence": np.array([[0, 4]])},
    ),
]


@pytest.mark.parametrize(("name", "wrong"), TOGETHER, ids=[name for name, _ in TOGETHER])
def test_all_wrong_arguments_of_a_call_are_named_together(name, wrong):
    refused(name, {**arguments(small(name)), **wrong}, *wrong)


def test_unknown_missing_and_positional_arguments_are_type_errors():
    args = arguments(small("MaxPool"))
    with pytest.raises(TypeError, match=r"MaxPool.*ksizes"):
        FAST["MaxPool"](**args, ksizes=[1])
    with pytest.raises(TypeError, match=r"MaxPool.*ksize"):
        FAST["MaxPool"](**{k: v for k, v in args.items() if k != "ksize"})
    with pytest.raises(TypeError, match="MaxPool"):
        FAST["MaxPool"](*args.values())


def test_masked_cells_are_refused():
    args = arguments(small("MaxPool"))
    refused("MaxPool", {**args, "input": np.ma.masked_equal(args["input"], args["input"][0, 0, 0, 0])}, "input")


RUNNER = SHARED / "hostile" / "run_hostile.py"


@pytest.mark.skipif(not RUNNER.exists(), reason=f"the hostile set is not there: {RUNNER}")
@pytest.mark.parametrize("isolation", ["fork", "reuse"])
def test_the_hostile_set_is_answered_as_it_expects(isolation):
    done = python(str(RUNNER), "--strict", "--isolation", isolation)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
