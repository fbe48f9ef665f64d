"""Models with our pools are exported: each file is loaded and run by a process without poolgrad, with the same numbers.

The graphs hold torch's own pools where these mean the same, else slices, comparisons and sums; what no graph can hold is refused.
"""

import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test installs it where it can")

from torch.export import Dim  # noqa: E402
from torch_cases import distinct  # noqa: E402

import poolgrad.torch as pgt  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"),
    pytest.mark.filterwarnings("error::torch.jit.TracerWarning"),
]
LENGTHS = {1: (12,), 2: (12, 11), 3: (6, 7, 6)}


class Pool(torch.nn.Module):
    """A pool as a model, with a convolution's worth of arithmetic before it."""

    def __init__(self, name: str, words: dict[str, Any]) -> None:
        super().__init__()
        self.pool, self.words = getattr(pgt, name), words

    def forward(self, x: torch.Tensor) -> Any:
        return self.pool(x * 2.0 - 1.0, **self.words)


class Unpool(torch.nn.Module):
    """A pool and the unpooling of its result."""

    def __init__(self, reduce: str) -> None:
        super().__init__()
        self.reduce = reduce

    def forward(self, x: torch.Tensor) -> Any:
        y, where = pgt.max_pool2d(x, 3, 2, return_indices=True)
        return pgt.max_unpool2d(y * 1.5, where, 3, 2, reduce=self.reduce)


class Case(NamedTuple):
    """A model, and the names of its pools in ONNX and in torch's graphs; None if it has no standard pool."""

    model: Callable[[], torch.nn.Module]
    rank: int
    onnx: str | None
    aten: str | None


def case(name: str, onnx: str | None, aten: str | None, **words: Any) -> Case:
    return Case(lambda: Pool(name, words), int(name[-2]), onnx, aten)


SEED = {"output_ratio": 0.7, "seed": (3, 4)}
CASES = {
    "max": case("max_pool2d", "MaxPool", "max_pool2d", kernel_size=3, stride=2, padding=1, ceil_mode=True),
    "max, indices": case("max_pool2d", "MaxPool", "max_pool2d_with_indices", kernel_size=2, return_indices=True),
    "max, dilated": case("max_pool1d", "MaxPool", "max_pool1d", kernel_size=3, dilation=2),
    "max, same": case("max_pool2d", "MaxPool", "max_pool2d", kernel_size=3, stride=2, padding="same"),
    "max, far": case("max_pool3d", "MaxPool", "max_pool3d", kernel_size=3, padding=2),
    "max, pairs": case("max_pool2d", None, None, kernel_size=2, padding=((0, 1), (1, 0)), return_indices=True),
    "min": case("min_pool2d", "MaxPool", "max_pool2d", kernel_size=3, stride=2),
    "avg": case("avg_pool2d", "AveragePool", "avg_pool2d", kernel_size=3, stride=2, padding=1, ceil_mode=True),
    "avg, divisor": case("avg_pool2d", "AveragePool", "avg_pool2d", kernel_size=3, padding=1, divisor_override=2.5),
    "avg, same": case("avg_pool3d", "AveragePool", "avg_pool3d", kernel_size=2, padding="same"),
    "avg, true cells": case(
        "avg_pool1d", None, None, kernel_size=3, stride=2, padding="same_lower", count_include_pad=False
    ),
    "norm": case("lp_pool2d", "AveragePool", "avg_pool2d", norm_type=3, kernel_size=2),
    "norm, cut": case("lp_pool1d", None, None, norm_type=2, kernel_size=5, ceil_mode=True),
    "global max": case("adaptive_max_pool2d", "MaxPool|ReduceMax|GlobalMaxPool", "adaptive_max_pool2d", output_size=1),
    "global avg": case("adaptive_avg_pool2d", "ReduceMean|GlobalAveragePool", "adaptive_avg_pool2d", output_size=1),
    "even avg": case("adaptive_avg_pool1d", "AveragePool", "adaptive_avg_pool1d", output_size=4),
    "adaptive max": case("adaptive_max_pool2d", None, "adaptive_max_pool2d", output_size=5, return_indices=True),
    "adaptive avg": case("adaptive_avg_pool3d", None, "adaptive_avg_pool3d", output_size=4),
    "fractional max": case("fractional_max_pool2d", None, None, **SEED, overlapping=True, return_indices=True),
    "fractional max, torch's": case("fractional_max_pool3d", None, None, **SEED, kernel_size=2),
    "fractional avg": case("fractional_avg_pool2d", None, None, **SEED),
    "windows": case("fractional_max_pool1d", None, None, windows=[[(0, 9), (3, 12)]]),
    "unpool": Case(lambda: Unpool("sum"), 2, "ScatterElements", "scatter_add"),
}
BY_DYNAMO = (
    "max",
    "max, same",
    "min",
    "avg, divisor",
    "norm",
    "global avg",
    "adaptive max",
    "fractional max",
    "unpool",
)
every_case = pytest.mark.parametrize("name", CASES)


def inputs(name: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the input for the export, and one of another batch for the run."""
    made = LENGTHS[CASES[name].rank]
    return distinct((2, 3, *made), torch.float32), distinct((5, 3, *made), torch.float32, seed=1)


def results(made: Any) -> list[np.ndarray]:
    return [part.detach().numpy() for part in (made if isinstance(made, tuple) else (made,))]


LOADER = """
import json, sys, numpy as np
for path in json.loads(sys.argv[1]):
    x = np.load(path + ".in.npy")
    if path.endswith(".onnx"):
        import onnxruntime
        onnxruntime.set_default_logger_severity(3)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        made = session.run(None, {session.get_inputs()[0].name: x})
    else:
        import torch
        model = torch.jit.load(path) if path.endswith(".pt") else torch.export.load(path).module()
        with torch.no_grad():
            made = model(torch.from_numpy(x))
        made = [y.numpy() for y in (made if isinstance(made, (tuple, list)) else (made,))]
    np.savez(path + ".out.npz", *made)
assert "poolgrad" not in sys.modules
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Export every case in every way, run all files in another process, and return (graph, results) by case and way."""
    folder, graphs, paths = tmp_path_factory.mktemp("deployed"), {}, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, name in enumerate(CASES):
            for way, (suffix, export) in WAYS.items():
                if way == "onnx" and name not in BY_DYNAMO:
                    continue
                path = folder / f"{number}.{way}.{suffix}"
                graphs[name, way] = export(name, str(path))
                np.save(f"{path}.in.npy", inputs(name)[1].numpy())
                paths.append(str(path))
    done = subprocess.run(
        [sys.executable, "-c", LOADER, json.dumps(paths)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = {}
    for (key, graph), path in zip(graphs.items(), paths, strict=True):
        with np.load(f"{path}.out.npz") as held:
            found[key] = graph, [held[part] for part in held.files]
    return found


def traced(name: str, path: str) -> set[str]:
    model = torch.jit.trace(CASES[name].model().eval(), inputs(name)[0])
    torch.jit.save(model, path)
    return {node.kind().removeprefix("aten::") for node in model.inlined_graph.nodes()}


def exported(name: str, path: str) -> set[str]:
    shapes = ({0: Dim("batch")},)
    program = torch.export.export(CASES[name].model().eval(), inputs(name)[:1], dynamic_shapes=shapes)
    torch.export.save(program, path)
    return {str(node.target).split(".")[1] for node in program.graph.nodes if str(node.target).startswith("aten.")}


def as_onnx(dynamo: bool) -> Callable[[str, str], set[str]]:
    def export(name: str, path: str) -> set[str]:
        onnx = pytest.importorskip("onnx", reason="onnx is not installed: make test installs it where it can")
        for package in ("onnxscript", "onnxruntime"):
            pytest.importorskip(package, reason=f"{package} is not installed: make test installs it where it can")
        model, x = CASES[name].model().eval(), inputs(name)[:1]
        if dynamo:
            shapes = ({0: Dim("batch")},)
            torch.onnx.export(model, x, dynamo=True, dynamic_shapes=shapes, verbose=False).save(path)
        else:
            axes = {"x": {0: "batch"}}
            torch.onnx.export(model, x, path, dynamo=False, input_names=["x"], dynamic_axes=axes)
        return {node.op_type for node in onnx.load(path).graph.node}

    return export


WAYS = {
    "trace": ("pt", traced),
    "export": ("pt2", exported),
    "onnx": ("onnx", as_onnx(True)),
    "onnx by trace": ("onnx", as_onnx(False)),
}


@every_case
@pytest.mark.parametrize("way", WAYS)
def test_another_process_without_poolgrad_gets_the_same_numbers_for_another_batch(files, name, way):
    if way == "onnx" and name not in BY_DYNAMO:
        pytest.skip("torch.export and the other exporter show the same; each export takes a second")
    graph, got = files[name, way]
    wanted = results(CASES[name].model()(inputs(name)[1]))
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if "max" in name or "min" in name:
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    standard = CASES[name].onnx if "onnx" in way else CASES[name].aten
    if standard is not None:
        assert graph & {*standard.split("|")}, graph
    else:
        assert not any("pool" in op.lower() for op in graph), graph


GRADIENTS = ("max", "adaptive max", "fractional max", "fractional avg", "avg, true cells")


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("way", ["trace", "export"])
def test_graphs_of_torch_have_the_gradients_of_our_pools(name, way):
    x = inputs(name)[0].requires_grad_()
    model = CASES[name].model()
    graph = torch.jit.trace(model, x) if way == "trace" else torch.export.export(model, (x,)).module()
    first = lambda made: made[0] if isinstance(made, tuple) else made  # noqa: E731
    y, wanted = first(graph(x)), first(model(x))
    g = distinct(wanted.shape, torch.float32)
    torch.testing.assert_close(*(torch.autograd.grad(part, x, g)[0] for part in (y, wanted)))


def test_standard_pools_are_exported_with_lengths_that_change():
    shapes = ({0: Dim("batch"), 2: Dim("height", min=8), 3: Dim("width", min=8)},)
    slide = {"kernel_size": 3, "stride": 2, "padding": 1}  # with ceil_mode, torch's own pools take no such lengths
    models = [Pool("max_pool2d", slide), Pool("avg_pool2d", slide)]
    models += [CASES[name].model() for name in ("global max", "global avg", "min", "norm")]
    for model in models:
        program = torch.export.export(model, inputs("max")[:1], dynamic_shapes=shapes)
        x = distinct((3, 3, 9, 16), torch.float32)
        torch.testing.assert_close(program.module()(x), model(x))


def test_strict_export_writes_the_same_pools():
    model = CASES["max"].model()
    program = torch.export.export(model, inputs("max")[:1], dynamic_shapes=({0: Dim("batch")},), strict=True)
    assert "max_pool2d" in program.graph_module.code
    x = inputs("max")[1]
    assert torch.equal(program.module()(x), model(x))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.uint8, torch.bool])
def test_integers_are_traced_and_exported(dtype):
    x = (distinct((2, 3, 8, 8), torch.float32) * 3).to(dtype)
    pools = [lambda x: pgt.max_pool2d(x, 2), lambda x: pgt.min_pool2d(x, 3, 1, padding=1)]
    pools += [] if dtype is torch.bool else [lambda x: pgt.avg_pool2d(x, 2)]
    for pool in pools:
        assert torch.equal(torch.jit.trace(pool, x)(x.flip(-1)), pool(x.flip(-1)))


class Net(torch.nn.Module):
    """A model with modules of ours, among them one that torch has not."""

    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), pgt.MaxPool2d(2))
        self.mean, self.drawn = pgt.AvgPool2d(2, padding=1), pgt.FractionalMaxPool2d(output_ratio=0.7, seed=1)
        self.least, self.last = pgt.MinPool2d(2, stride=1), pgt.AdaptiveAvgPool2d(1)

    def forward(self, x):
        return self.last(self.least(self.drawn(self.mean(self.stem(x))))) + pgt.max_pool2d(x, 3, padding="same").sum()


def test_fx_writes_torchs_functions_and_ours_where_torch_has_none():
    model = Net().eval()
    graph = torch.fx.symbolic_trace(model)
    names = [f"{n.target.__module__}.{n.target.__name__}" for n in graph.graph.nodes if n.op == "call_function"]
    assert names[:5] == [
        "torch.nn.functional.max_pool2d",
        "torch._C._nn.avg_pool2d",
        "poolgrad.torch.fractional.fractional_max_pool2d",
        "poolgrad.torch.functional.min_pool2d",
        "torch.nn.functional.adaptive_avg_pool2d",
    ]
    assert "poolgrad.torch.functional.max_pool2d" in names
    for size in (14, 17):  # a graph of calls takes any shape
        x = torch.randn(2, 1, size, size)
        torch.testing.assert_close(graph(x), model(x))


REFUSED = {
    "random windows": (
        lambda x: pgt.fractional_max_pool2d(x, output_ratio=0.7),
        r"fractional_max_pool2d: seed: got None, wanted a seed, or windows: a graph of torch\.\S+ draws no windows",
    ),
    "windows of planes": (
        lambda x: pgt.fractional_max_pool2d(x, 2, 4, _random_samples=torch.rand(2, 3, 2)),
        r"fractional_max_pool2d: _random_samples: got a tensor, wanted None in a graph of torch\.\S+: give a seed",
    ),
    "wrong words": (lambda x: pgt.max_pool2d(x, 0), r"max_pool2d: kernel_size: got 0, wanted"),
}


class _Of(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *x):
        return self.function(*x)


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_graph_holds_is_refused_by_name(name):
    pool, text = REFUSED[name]
    x = torch.randn(2, 3, 8, 8)
    with pytest.raises((NotImplementedError, ValueError), match=text):
        torch.jit.trace(pool, x)
    with pytest.raises((NotImplementedError, ValueError), match=text):
        torch.export.export(_Of(pool), (x,))


def test_windows_that_depend_on_lengths_need_lengths():
    shapes = (({2: Dim("height", min=8)},),)
    x = torch.randn(2, 3, 8, 8)
    with pytest.raises(
        NotImplementedError, match=r"fractional_avg_pool2d: input: got lengths .*, wanted fixed lengths"
    ):
        torch.export.export(
            _Of(lambda x: pgt.fractional_avg_pool2d(x, output_size=4, seed=1)), (x,), dynamic_shapes=shapes
        )


def test_onnx_refuses_to_assign_and_says_why():
    pytest.importorskip("onnxscript", reason="onnxscript is not installed: make test installs it where it can")
    with pytest.raises(Exception, match="ONNX") as refused:
        torch.onnx.export(Unpool("assign"), (torch.randn(1, 1, 7, 7),), dynamo=True, verbose=False)
    text, error = "max_unpool2d: reduce: got 'assign', wanted 'sum': ONNX leaves open", refused.value
    while error is not None and text not in str(error):
        error = error.__cause__
    assert error is not None
