"""One-line problems: every op has some, line and problem say the same, and a refusal points at the wrong word."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolgrad import raw_ops, reference
from poolgrad._cli.trial import draw_call
from poolgrad._ops.dtypes import short
from poolgrad._ops.problem import FAMILIES, Problem, forward, parse
from poolgrad._ops.semantics import WindowRule
from poolgrad._ops.table import OPS, Kind, Op


def line(op: Op, dtype: str, layout: str, more: str = "") -> str:
    channels, sizes = "3", ["2"] * op.spatial
    shape = ["2", *(["5", "6", "4"][: op.spatial]), channels]
    if layout[1] == "C":
        shape = [shape[0], channels, *shape[1:-1]]
    windows = "ratio=1.5x1.7 overlapping" if op.rule.windows is WindowRule.EDGES else f"k={'x'.join(sizes)} pad=same"
    return f"{op.name} {dtype} {layout.lower()} x={'x'.join(shape)} {windows} {more}".strip()


CELLS = [(op, dtype, layout) for op in OPS.values() for dtype in op.dtypes for layout in op.formats]


@pytest.mark.parametrize(("op", "dtype", "layout"), CELLS, ids=lambda v: getattr(v, "name", v))
def test_every_op_dtype_and_layout_has_a_line_that_runs_and_equals_the_reference(
    op: Op, dtype: str, layout: str
) -> None:
    problem = parse(line(op, dtype, layout))
    name, arguments = draw_call(problem, 3)
    assert (name, problem.dtype, problem.layout) == (op.name, dtype, layout)
    mine, theirs = getattr(raw_ops, name)(**arguments), raw_ops.make(op, reference)(**arguments)
    pairs = zip(mine, theirs, strict=True) if len(op.outputs) > 1 else [(mine, theirs)]
    assert all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs), str(problem)


@pytest.mark.parametrize(("op", "dtype", "layout"), CELLS[::5], ids=lambda v: getattr(v, "name", v))
def test_a_printed_problem_reads_back_as_itself(op: Op, dtype: str, layout: str) -> None:
    problem = parse(line(op, dtype, layout, " # why"))
    assert problem.comment == "why"
    assert parse(str(problem)) == problem


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("max x=1x4x4x1 k=2x2", "MaxPool"),
        ("max x=1x4x4x1 k=2x2 grad", "MaxPoolGrad"),
        ("max x=1x4x4x1 k=2x2 gradgrad", "MaxPoolGradGrad"),
        ("max x=1x4x4x1 k=2x2 argmax", "MaxPoolWithArgmax"),
        ("max x=1x4x4x1 k=2x2 argmax grad", "MaxPoolGradWithArgmax"),
        ("max x=1x4x4x1 k=2x2 argmax=i32 gradgrad", "MaxPoolGradGradWithArgmax"),
        ("max x=1x4x4x4x1 k=2x2x2 gradgrad", "MaxPool3DGradGrad"),
        ("avg ncdhw x=1x1x4x4x4 k=2x2x2 grad", "AvgPool3DGrad"),
        ("fmax x=1x4x4x1 ratio=1.5x1.5 grad", "FractionalMaxPoolGrad"),
        ("favg i64 x=1x4x4x1 ratio=1x1.5x1.5x1", "FractionalAvgPool"),
        ("qmax u8 x=1x4x4x1 k=2x2", "QuantizedMaxPool"),
        ("qavg x=1x4x4x1 k=2x2", "QuantizedAvgPool"),
        ("MaxPoolGradGradV2 x=1x4x4x1 k=2x2 gradgrad", "MaxPoolGradGradV2"),
    ],
)
def test_a_family_and_its_words_pick_the_op_from_the_table(text: str, name: str) -> None:
    assert parse(text).op == name


def test_sizes_are_put_where_the_layout_has_its_pooled_dimensions() -> None:
    problem = parse("max nchw x=2x3x9x8 k=3x2 s=2x1 pad=explicit:1,0/0,1")
    assert (problem.k, problem.s) == ((1, 1, 3, 2), (1, 1, 2, 1))
    assert draw_call(problem)[1]["explicit_paddings"] == [0, 0, 0, 0, 1, 0, 0, 1]
    assert parse("max x=1x2x2x4 k=1x1x1x2").s == (1, 1, 1, 2)


def test_the_same_seed_gives_the_same_data_and_another_one_other_data() -> None:
    problem = parse("max x=1x6x6x2 k=2x2 grad")
    first, again, other = (draw_call(problem, seed)[1]["grad"] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "uint8", "int64"])
def test_data_are_small_integers_unless_real_numbers_are_asked_for(dtype: str) -> None:
    problem = parse(f"max {dtype} x=1x16x16x4 k=2x2")
    whole, real = draw_call(problem)[1]["input"], draw_call(problem, integers=False)[1]["input"]
    assert whole.dtype == real.dtype == np.dtype(getattr(ml_dtypes, dtype, dtype))
    assert np.abs(whole.astype(float)).max() < 19
    assert (whole == np.round(whole.astype(float))).all()
    assert not np.array_equal(whole, real)


def test_gradients_get_the_forward_output_positions_and_sequences() -> None:
    _, a = draw_call(parse("fmax x=2x7x7x2 ratio=1.5x1.5 pseudo overlapping seed=4 seed2=5 grad"))
    again = raw_ops.FractionalMaxPool(value=a["orig_input"], pooling_ratio=[1, 1.5, 1.5, 1], pseudo_random=True,
                                      overlapping=True, deterministic=True, seed=4, seed2=5)  # fmt: skip
    assert np.array_equal(a["orig_output"], again.output)
    assert np.array_equal(a["col_pooling_sequence"], again.col_pooling_sequence)
    _, b = draw_call(parse("max x=2x4x4x2 k=2x2 argmax=i32 batched gradgrad"))
    assert b["argmax"].dtype == np.int32
    assert b["include_batch_in_index"] is True
    assert b["argmax"][1].min() >= 32


WRONG = [
    ("", 1, "a family"),
    ("most x=1x4x4x1", 1, "a family"),
    ("max", 4, "x= with the shape"),
    ("max x=1x4x4", 5, "4 sizes or 5 sizes"),
    ("max x=1x4x4x1", 14, "k= with a number"),
    ("max x=1x4x4x1 k=3y3", 15, "sizes like 3x3"),
    ("max x=1x4x4x1 k=2x2x2", 15, "2 numbers, or 4"),
    ("max x=1x4x4x1 k=2x2 huh", 21, "a type"),
    ("max x=1x4x4x1 k=2x2 k=2x2", 21, "only once"),
    ("max x=1x4x4x1 k=2x2 pad=explicit:1", 21, "pad=explicit:1,1/1,1"),
    ("max x=1x4x4x1 k=2x2 pad=reflect", 21, "pad=same"),
    ("max gradgrad x=1x4x4x1 k=2x2 pad=explicit:1,1/1,1", 30, "pad=same or pad=valid"),
    ("avg i32 x=1x4x4x1 k=2x2", 5, "f16 bf16 f32 f64"),
    ("avg x=1x4x4x1 k=2x2 gradgrad", 21, "grad"),
    ("fmax nchw x=1x4x4x1 ratio=1.5x1.5", 6, "nhwc"),
    ("max ndhwc x=1x4x4x1 k=2x2", 5, "nhwc nchw"),
    ("fmax x=1x4x4x1 k=2x2", 16, "ratio"),
    ("max x=1x4x4x1 k=2x2 overlapping", 21, "k s pad"),
    ("fmax x=1x4x4x1 ratio=1.5x1.5 seed=0", 30, "a seed other than 0"),
    ("fmax x=1x4x4x1 ratio=1.5x1.5 seed=99999999999999999999", 30, "64 bits"),
    ("max x=1x4x4x1 k=2x2 argmax=i16", 21, "argmax=i32"),
    ("MaxPoolGradV2 gradgrad x=1x4x4x1 k=2x2", 15, "grad"),
]


@pytest.mark.parametrize(("text", "column", "wanted"), WRONG)
def test_a_wrong_word_is_named_with_its_column_and_what_would_do(text: str, column: int, wanted: str) -> None:
    with pytest.raises(ValueError, match=rf"^problem: column {column}: got .*, wanted .*{re.escape(wanted)}"):
        parse(text)


def test_an_input_that_no_machine_can_hold_is_refused_before_it_is_drawn() -> None:
    with pytest.raises(MemoryError, match=r"problem: x: got an input of shape \[99999999, "):
        draw_call(parse("max x=99999999x999999x99999x9 k=2x2"))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    op = OPS[draw(st.sampled_from(sorted(OPS)))]
    kinds = {p.kind for p in (*op.params, *forward(op).params)}
    size = st.integers(1, 9)
    rank = op.spatial + 2
    layout = draw(st.sampled_from(op.formats))
    sizes = [tuple(draw(st.lists(size, min_size=rank, max_size=rank))) for _ in range(3)]
    sized = Kind.SIZES in kinds
    padding = draw(st.sampled_from(op.paddings)) if sized else ""
    inner = [d for d, letter in enumerate(layout) if letter not in "NC"]
    pads = (
        tuple(draw(st.integers(0, 9)) if d // 2 in inner else 0 for d in range(2 * rank))
        if padding == "EXPLICIT"
        else ()
    )
    drawn = op.rule.windows is WindowRule.EDGES
    ratio = tuple(draw(st.floats(1, 9).map(lambda v: round(v, 3))) for _ in range(rank)) if drawn else ()
    positions = bool(kinds & {Kind.INDEX, Kind.INDEX_TYPE})
    seeds = draw(st.tuples(st.integers(-9, 9), st.integers(-9, 9)).filter(any)) if drawn else (1, 0)
    flags = draw(st.tuples(st.booleans(), st.booleans(), st.booleans()))
    return Problem(
        op.name,
        sizes[0],
        draw(st.sampled_from(op.dtypes)),
        layout,
        *(sizes[1:] if sized else ((), ())),
        padding=padding,
        pads=pads,
        ratio=ratio,
        overlapping=drawn and flags[0],
        pseudo=drawn and flags[1],
        seed=seeds[0],
        seed2=seeds[1],
        index=draw(st.sampled_from(["int32", "int64"])) if positions else "int64",
        batched=positions and flags[2],
        comment=draw(st.sampled_from(["", "a b"])),
    )


@given(problems())
@settings(max_examples=200, deadline=None)
def test_any_problem_is_said_by_its_line(problem: Problem) -> None:
    assert parse(str(problem)) == problem


def test_short_names_are_unique_and_families_are_those_of_the_table() -> None:
    dtypes = {d for op in OPS.values() for d in op.dtypes}
    assert len({short(d) for d in dtypes}) == len(dtypes)
    assert set(FAMILIES) == {op.family for op in OPS.values()}
