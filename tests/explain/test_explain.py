"""Explanations: the sentence, the cells that it rests on, and the same words from the page's own module."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_pages import CASES, page_of
from page_words import NODE, delivered, said_by_page
from support import PACKAGE, Case, arguments

import poolgrad as pg
from poolgrad import raw_ops
from poolgrad._explain.op_calls import operands_of
from poolgrad._explain.sentences import Facts, NamedArray, SentencePart, number, phrases, say
from poolgrad._ops.bind import bind
from poolgrad.graph import GraphError, Scope, ops, service
from poolgrad.graph import check as checks
from poolgrad.graph import report as reports
from poolgrad.graph.executor import execute

F32 = np.float32
SIZES = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
X = np.array([[1, 2], [4, 3]], F32).reshape(1, 2, 2, 1)


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, F32)


# ---- sentences


def test_a_maximum_names_its_window_and_where_it_was_found() -> None:
    why = pg.explain("MaxPool", cell=(0, 0, 0, 0), input=X, **SIZES)
    assert str(why) == "output[0,0,0,0] = 4, the largest of the 4 cells of input[0,0:2,0:2,0], found at input[0,1,0,0]."
    assert (why.value, why.windows[0].hits, why.windows[0].pairs[1]) == (4, ((0, 1, 0, 0),), (0, 2))


def test_a_gradient_cell_says_what_arrived_and_why_another_got_nothing() -> None:
    given = {"orig_input": X, "orig_output": 4 * ones(1, 1, 1, 1), "grad": 7 * ones(1, 1, 1, 1), **SIZES}
    won = pg.explain("MaxPoolGrad", cell=(0, 1, 0, 0), **given)
    assert won.sentence.startswith(
        "output[0,1,0,0] = 7 = grad[0,0,0,0] (7), because orig_input[0,1,0,0] = 4 is the largest"
    )
    assert [(a.cell, a.value, a.divisor) for a in won.arrived] == [((0, 0, 0, 0), 7.0, 1)]
    lost = pg.explain("MaxPoolGrad", cell=(0, 0, 1, 0), **given)
    assert lost.arrived == ()
    assert lost.sentence == (
        "output[0,0,1,0] = 0: 1 window reaches this cell, but the gradient goes elsewhere: "
        "orig_input[0,1,0,0] = 4 for grad[0,0,0,0]."
    )


def test_shares_are_divided_by_the_cells_inside_and_padding_is_said() -> None:
    why = pg.explain(
        "AvgPoolGrad", cell=(0, 2, 2, 0), orig_input_shape=[1, 3, 3, 1], grad=np.arange(4, dtype=F32).reshape(1, 2, 2, 1),
        ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME",
    )  # fmt: skip
    assert why.sentence == "output[0,2,2,0] = 3 = grad[0,1,1,0] (3): 1 window reaches this cell."
    shared = pg.explain(
        "AvgPoolGrad", cell=(0, 0, 1, 0), pin="grad", orig_input_shape=[1, 3, 3, 1], grad=np.arange(4, dtype=F32).reshape(1, 2, 2, 1),
        ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME",
    )  # fmt: skip
    assert "is shared evenly by the 2 cells of output[0,0:2,2,0]: 1/2 each." in shared.sentence
    assert shared.sentence.endswith("Outside the input, and given nothing: 2 cells.")
    assert (shared.windows[0].after, shared.windows[0].cut) == ((0, 0, 1, 0), 2)


def said(parts: tuple[SentencePart, ...]) -> str:
    return "".join(part.text for part in parts)


def test_a_heading_gives_the_reason_and_a_formula_the_numbers() -> None:
    x, g = np.array([11.0, 15, 9, 20]), np.array([3.0, 4])
    zero = pg.explain("max_pool", cell=(0,), x=x, g=g, window=2)
    assert (said(zero.heading), said(zero.formula)) == ("0 because 11 < 15", "dx[0] = 3·0 = 0")
    assert [(p.text, p.pin, p.cell) for p in zero.heading if p.kind == "value"] == [
        ("0", "dx", (0,)), ("11", "x", (0,)), ("15", "x", (1,)),
    ]  # fmt: skip
    both = pg.explain("max_pool", cell=(1,), x=x, g=np.array([3.0, 4, 5]), window=2, stride=1)
    assert (said(both.heading), said(both.formula)) == ("7 because 15 is the largest", "dx[1] = 3·1 + 4·1 = 7")
    tied = pg.explain("max_pool", cell=(1,), x=np.array([7.0, 7]), g=np.array([3.0]), window=2)
    assert said(tied.heading) == "0 because an equal cell comes first"
    mean = pg.explain("avg_pool", cell=(0,), x=x, window=2)
    assert (said(mean.heading), said(mean.formula)) == ("13 is the mean of 2 cells", "y[0] = (11 + 15)/2 = 13")
    share = pg.explain("avg_pool", cell=(0,), x=x, g=g, window=2)
    assert said(share.formula) == "dx[0] = 3/2 = 1.5"


def test_nan_cells_that_a_maximum_passes_over_are_counted() -> None:
    x = np.array([1.0, np.nan, 5.0], F32).reshape(1, 1, 3, 1)
    why = pg.explain(
        "MaxPoolWithArgmax", cell=(0,) * 4, input=x, ksize=[1, 1, 3, 1], strides=[1, 1, 3, 1], padding="VALID"
    )
    assert "NaN cells that were passed over: 1." in str(why)


def test_ties_are_said_by_the_rule_that_acts() -> None:
    flat = {"orig_input": ones(1, 2, 2, 1), "orig_output": ones(1, 1, 1, 1), "grad": 3 * ones(1, 1, 1, 1), **SIZES}
    assert "4 cells are that large; the first one takes all." in str(
        pg.explain("MaxPoolGrad", cell=(0,) * 4, pin="grad", **flat)
    )
    loser = str(pg.explain("MaxPoolGrad", cell=(0, 1, 1, 0), **flat))
    assert loser.endswith("This cell is as large, but the first one takes all.")
    cube = {name: a.reshape(1, *a.shape) for name, a in flat.items() if isinstance(a, np.ndarray)}
    every = pg.explain(
        "MaxPool3DGrad",
        cell=(0,) * 5,
        pin="grad",
        **cube,
        ksize=[1, 1, 2, 2, 1],
        strides=[1, 1, 2, 2, 1],
        padding="VALID",
    )
    assert "goes whole to each of 4 cells of" in every.sentence


def test_a_lost_gradient_is_called_lost() -> None:
    why = pg.explain(
        "MaxPool3DGrad", cell=(0,) * 5, pin="grad", orig_input=X[None], orig_output=9 * ones(1, 1, 1, 1, 1),
        grad=3 * ones(1, 1, 1, 1, 1), ksize=[1, 1, 2, 2, 1], strides=[1, 1, 2, 2, 1], padding="VALID",
    )  # fmt: skip
    assert why.sentence.startswith("grad[0,0,0,0,0] = 3 is lost: none of the 4 cells")


def test_long_lists_are_cut_and_counted() -> None:
    why = pg.explain("AvgPool", cell=(0, 4, 4, 0), pin="value", value=ones(1, 9, 9, 1), ksize=[1, 5, 5, 1],
                     strides=[1, 1, 1, 1], padding="SAME")  # fmt: skip
    assert len(why.windows) == 25
    assert why.sentence.endswith(", 21 more.")


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ({"cell": (0, 0, 0)}, r"cell: got \[0, 0, 0\], wanted a cell of output, shape \[1, 1, 1, 1\]"),
        ({"cell": (0, 0, 0, 1)}, "wanted a cell of output"),
        ({"cell": (0, 0, 0, -1)}, "wanted a cell of output"),
        ({"cell": "abcd"}, "wanted 4 integers"),
        ({"cell": (0,) * 4, "pin": "ksize"}, "pin: got 'ksize', wanted 'input' or 'output'"),
    ],
)
def test_a_cell_that_is_not_there_is_refused(more: dict[str, Any], wanted: str) -> None:
    with pytest.raises(ValueError, match=wanted):
        pg.explain("MaxPool", **more, input=X, **SIZES)


def test_an_unknown_op_an_empty_result_and_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="explain: op: got 'MaxPol'"):
        pg.explain("MaxPol", cell=(0,))
    with pytest.raises(ValueError, match="its result is empty"):
        pg.explain("MaxPool", cell=(0,) * 4, input=ones(0, 2, 2, 1), **SIZES)
    with pytest.raises(ValueError, match="MaxPool: ksize"):
        pg.explain("MaxPool", cell=(0,) * 4, input=X, ksize=[1, 2], strides=[1, 2, 2, 1], padding="VALID")


def test_lists_become_arrays_as_in_the_ops() -> None:
    why = pg.explain("MaxPool", cell=(0,) * 4, input=[[[[1.0], [2.0]], [[4.0], [3.0]]]], **SIZES)
    assert why.value == 4


BACKWARD = [case for case in CASES if operands_of(case.row)[-1].symbol == "dx"]


@pytest.mark.parametrize("case", BACKWARD, ids=lambda c: c.op)
def test_arrivals_add_up_to_the_cell(case: Case) -> None:
    """The numbers in an explanation of a gradient's cell add up to the cell; test_links adds up those of forward ops."""
    given = arguments(case)
    for cell in product(*map(range, case.source)):
        why = pg.explain(case.op, cell=cell, **given)
        assert why.value == pytest.approx(sum(a.value / a.divisor for a in why.arrived), abs=1e-5)


# ---- numbers and phrases


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"), (F32(0.1), "0.1"), (1e15, "1e15"), (123456.5, "123457"), (0.00012345678, "0.000123457"),
        (0.000099, "9.9e-5"), (-2.5, "-2.5"), (float("inf"), "inf"), (float("-inf"), "-inf"), (np.int64(2**62), str(2**62)),
        (100000.5, "100001"), (-1.5e-300, "-1.5e-300"),
    ],
)  # fmt: skip
def test_numbers_have_six_digits_at_most(value: Any, text: str) -> None:
    assert number(value) == text


def test_clauses_need_their_facts_and_leave_no_blank() -> None:
    x = NamedArray("value", "x", np.array([1.0]))
    assert say("fold.source", Facts({"reached": 0}, {"here": (0,)}), {"self": x}) == (
        ("x[0]", "cell", "value", (0,)), (" = ", "text", "", ()), ("1", "value", "value", (0,)),
        (": no window reaches this cell.", "text", "", ()),
    )  # fmt: skip
    for verb in ("fold", "spread", "near", "select", "argmax", "route", "recall", "scatter", "gather"):
        assert {f"{verb}.dest", f"{verb}.source"} <= set(phrases()["sentences"])


def test_the_parts_of_a_sentence_name_cells_values_and_windows() -> None:
    why = pg.explain("max_pool", cell=(0,), x=[1.0, 5.0, 2.0], window=2)
    assert "".join(part.text for part in why.parts) == why.sentence
    assert [(part.kind, part.pin, part.cell) for part in why.parts if part.kind != "text"] == [
        ("cell", "y", (0,)), ("value", "y", (0,)), ("window", "x", ()), ("cell", "x", (1,)),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["explain.js", "sentences.js", "relation.js"])
def test_the_page_writes_no_words_of_a_sentence(name: str) -> None:
    """The texts in the modules that explain are names; none has a word beside a blank."""
    code = re.sub(r"/\*.*?\*/|//.*?$", "", (PACKAGE / "studio/static" / name).read_text("utf-8"), flags=re.S | re.M)
    texts = [text for pair in re.findall(r"'([^'\n]*)'|`([^`]*)`", code) for text in pair if text]
    assert len(texts) > 3
    assert [text for text in texts if re.search(r"[A-Za-z]\s|\s[A-Za-z]", re.sub(r"\$\{.*?\}", "", text))] == []


# ---- in a graph


def test_in_a_graph_tensors_are_called_by_their_blocks() -> None:
    s = Scope.new_root_scope()
    x = ops.Const(s.with_op_name("x"), X)
    y = ops.MaxPool(s.with_op_name("y"), x, **SIZES)
    dx = ops.MaxPoolGrad(s.with_op_name("dx"), x, y, 7 * ones(1, 1, 1, 1), **SIZES)
    assert str(s.explain(dx, (0, 1, 0, 0))).startswith("dx[0,1,0,0] = 7 = grad[0,0,0,0] (7), because x[0,1,0,0] = 4")
    assert str(s.explain("y", (0,) * 4)).startswith("y[0,0,0,0] = 4, the largest")
    with pytest.raises(GraphError, match="x: got a Const, wanted a pooling op"):
        s.explain(x, (0,) * 4)


# ---- the same words on the page


@pytest.mark.skipif(NODE is None, reason="node, which runs the page's module here, is not installed")
def test_the_page_says_the_same_about_every_cell_of_every_op(tmp_path: Path) -> None:
    found = [delivered(page_of(case)[0], "out") for case in CASES]
    rng = np.random.default_rng(3)
    reals = np.concatenate(
        [rng.standard_normal(300) * 10.0 ** rng.integers(-12, 20, 300), [0.1, 1e15, 9.99999e14, 1e-4, 100000.5, 0.5]]
    )
    said, numbers = said_by_page(tmp_path, [case for case, _ in found], reals)
    for case, (_, wanted), page in zip(CASES, found, said, strict=True):
        assert page == wanted, case.op
    assert sum(len(wanted) for _, wanted in found) > 2000
    assert numbers == [number(v) for v in reals]


def test_no_sentence_has_a_gap() -> None:
    for case in CASES:
        for forms in delivered(page_of(case)[0], "out")[1]:
            sentence, heading, formula = ("".join(part.text for part in parts) for parts in forms)
            assert "{" not in sentence + heading + formula
            assert sentence.endswith(".")
            assert heading
            assert ".." not in heading


# ---- bound once


def test_an_edit_binds_each_op_once_and_known_shapes_only_in_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    def page(value: float) -> Scope:
        s = Scope.new_root_scope()
        x = ops.Const(s.with_op_name("x"), value * X)
        ops.MaxPoolGrad(
            s.with_op_name("dx"), x, ops.MaxPool(s.with_op_name("y"), x, **SIZES), ones(1, 1, 1, 1), **SIZES
        )
        return s

    cache = service.Cache()
    service.run(page(1).graph, cache=cache)
    edited, bound = page(2).graph, []
    for module in (checks, reports, raw_ops):
        monkeypatch.setattr(module, "bind", lambda *given: bound.append(given[0].name) or bind(*given))
    answer = service.run(edited, cache=cache)
    assert [answer["ran"], answer["nodes"]["dx"]["links"]["verb"]] == [3, "route"]
    assert bound == ["MaxPool", "MaxPoolGrad"]


def test_links_follow_the_sequences_that_the_run_drew() -> None:
    """A fractional pool without seeds draws in the check and again in the run; its gradient uses those of the run."""
    s = Scope.new_root_scope()
    x = ops.Const(s.with_op_name("x"), "arange(0,900)", shape="[1,30,30,1]", dtype="DT_FLOAT")
    y = ops.FractionalMaxPool(s.with_op_name("y"), x, [1, 1.7, 1.7, 1])
    rows, cols = y.row_pooling_sequence, y.col_pooling_sequence
    ops.FractionalMaxPoolGrad(s.with_op_name("dx"), x, y.output, y.output, rows, cols)
    run = execute(s.page, s.sources)
    assert run.problems == []
    drawn = run.array("y.row_pooling_sequence")
    assert drawn is not None
    subject = reports.subject_of("dx", run.checked.seen["dx"], run.blocks["dx"], run)
    assert subject is not None
    assert subject.plan.axes[0].start.tolist() == drawn[:-1].tolist()
