"""The ONNX backend tests of pooling, through the pythonic API: the same results, but for a list of differences."""

import warnings

import numpy as np
import pytest
from differences import listed

onnx = pytest.importorskip("onnx", reason="onnx is not installed: make test installs it where it can")

from onnx import numpy_helper  # noqa: E402
from onnx.backend.test.loader import load_model_tests  # noqa: E402

import poolgrad as pg  # noqa: E402

ops = pg.like("onnx")
POOLS = ("MaxPool", "AveragePool", "LpPool", "GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool", "MaxUnpool")


def cases():
    """Yield name, operator with attributes, inputs and wanted outputs of every single-node case that pools."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ONNX computes all its cases here, also those that overflow
        every = load_model_tests(kind="node")
    for case in every:
        node = (
            case.model.graph.node[0]
            if case.model is not None
            else onnx.load(f"{case.model_dir}/model.onnx").graph.node[0]
        )
        if node.op_type in POOLS:
            yield case.name, node, case


def data(case):
    """Return inputs and wanted outputs, from memory or from files."""
    if case.data_sets:
        return case.data_sets[0]
    import glob
    import os

    folder = os.path.join(case.model_dir, "test_data_set_0")
    read = lambda kind: [  # noqa: E731
        numpy_helper.to_array(onnx.load_tensor(path)) for path in sorted(glob.glob(f"{folder}/{kind}_*.pb"))
    ]
    return read("input"), read("output")


def words(node, rank):
    """Translate ONNX's attributes into the words of the pythonic API."""
    given = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    auto = given.get("auto_pad", b"NOTSET").decode()
    pads = given.get("pads", [0] * 2 * rank)
    padding = {"SAME_UPPER": "same", "SAME_LOWER": "same_lower", "VALID": "valid"}.get(
        auto, list(zip(pads[:rank], pads[rank:], strict=True))
    )
    return given, {
        "window": tuple(given["kernel_shape"]),
        "stride": tuple(given.get("strides", [1] * rank)),
        "padding": padding,
        "dilation": tuple(given.get("dilations", [1] * rank)),
        "ceil_mode": bool(given.get("ceil_mode", 0)),
    }


def global_pool(op, x):
    axes = tuple(range(2, x.ndim))
    pool = {"GlobalMaxPool": pg.global_max_pool, "GlobalAveragePool": pg.global_avg_pool}[op]
    return [pool(x, axes=axes)]


def unpool(node, x, where, *shape):
    _, more = words(node, x.ndim - 2)
    inner = [
        (n - 1) * s + k - sum(p)
        for n, s, k, p in zip(x.shape[2:], more["stride"], more["window"], more["padding"], strict=True)
    ]
    y = pg.unpool(x, where, (*x.shape[:2], *inner))
    wanted = (
        tuple(shape[0]) if shape else y.shape
    )  # positions count in the smaller array; the larger one begins with it
    return [np.pad(y, [(0, m - n) for n, m in zip(y.shape, wanted, strict=True)])]


def pooled(node, x, *more):
    """Run a node by the pythonic API."""
    if node.op_type.startswith("Global"):
        return global_pool(node.op_type, x)
    if node.op_type == "MaxUnpool":
        return unpool(node, x, *more)
    given, options = words(node, x.ndim - 2)
    if node.op_type == "AveragePool":
        return [ops.avg_pool(x, count_include_pad=bool(given.get("count_include_pad", 0)), **options)]
    if node.op_type == "LpPool":
        return [ops.lp_pool(x, p=given.get("p", 2), **options)]
    if len(node.output) == 1:
        return [ops.max_pool(x, **options)]
    y, taps = ops.max_pool(x, return_taps=True, **options)
    return [y, taps.onnx(given.get("storage_order", 0))]


CASES = {name: (node, case) for name, node, case in cases()}


@pytest.mark.parametrize("name", CASES)
def test_a_case_has_the_wanted_results(name):
    node, case = CASES[name]
    inputs, wanted = data(case)
    if name in {op for op, _ in listed("onnx")}:
        with pytest.raises((AssertionError, ValueError)):
            check(node, inputs, wanted)
        return
    check(node, inputs, wanted)


def check(node, inputs, wanted):
    got = pooled(node, *map(np.asarray, inputs))
    for value, expected in zip(got, wanted, strict=True):
        assert value.dtype == np.asarray(expected).dtype
        assert value.shape == np.shape(expected)
        # ONNX's own tolerance: some wanted values have four digits
        np.testing.assert_allclose(value, expected, rtol=1e-3, atol=1e-7)


def test_there_are_cases_of_every_kind():
    kinds = {node.op_type for node, _ in CASES.values()}
    assert {"MaxPool", "AveragePool", "LpPool", "GlobalMaxPool", "GlobalAveragePool", "MaxUnpool"} <= kinds
    assert len(CASES) >= 50
