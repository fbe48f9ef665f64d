"""`accelerate()`: torch's own pools by the core give what torch gives, bit by bit, and torch's kernels come back."""

import os
import subprocess
import sys
import threading
import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test installs it where it can")
pytest.importorskip(
    "expecttest", reason="expecttest is not installed, without which torch's samples cannot be imported"
)

import torch.nn.functional as F  # noqa: E402
from torch_same import same  # noqa: E402

import poolgrad.torch as pgt  # noqa: E402
from poolgrad.torch import _compiled  # noqa: E402

COMPILED = _compiled.load()
if COMPILED is None:
    pytest.skip(f"the compiled part is not built: {_compiled.ADVICE}", allow_module_level=True)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

ALL = bool(os.environ.get("POOLGRAD_ALL_SAMPLES"))  # else some of them
POOLS = [o for o in op_db if "pool" in o.name]
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def all_calls():
    """Compute every call that can be the same, small ones too."""
    COMPILED.policy(False)
    yield
    COMPILED.policy(True)


def ours() -> int:
    return sum(ways["poolgrad"] for ways in COMPILED.counters().values())


def gradients() -> int:
    return sum(ways["poolgrad"] for op, ways in COMPILED.counters().items() if op.endswith("backward"))


def several(y):
    return list(y) if isinstance(y, tuple) else [y]


def cotangent(y):
    return ((torch.arange(y.numel()) % 5 - 2) / 3).reshape(y.shape).to(y.dtype)


def in_formats(x):
    """Yield the tensor in the memory formats that it can have."""
    yield x
    kind = {4: torch.channels_last, 5: torch.channels_last_3d}.get(x.ndim)
    if kind is not None:
        yield x.detach().contiguous(memory_format=kind).requires_grad_(x.requires_grad)


def outcome(info, x, sample):
    """Return the results of a sample, its gradient and second derivative; or the error."""
    torch.manual_seed(1)
    try:
        y = several(info.op(x, *sample.args, **sample.kwargs))
    except Exception as error:
        return [], f"{type(error).__name__}: {error}"
    if not y[0].requires_grad or not y[0].numel():
        return y, ""
    g = cotangent(y[0]).requires_grad_()
    (dx,) = torch.autograd.grad(y[0], x, g, create_graph=True)
    (plain,) = torch.autograd.grad(info.op(x, *sample.args, **sample.kwargs) if len(y) == 1 else y[0], x, g.detach())
    if not dx.requires_grad:
        return [*y, dx, plain], ""
    (ddy,) = torch.autograd.grad(dx, g, cotangent(dx))
    return [*y, dx, plain, ddy], ""


@pytest.mark.parametrize("info", POOLS, ids=lambda o: o.name.rpartition(".")[2] + o.variant_test_name)
def test_every_sample_of_torch_is_the_same_with_acceleration(info, all_calls):
    count = 0
    for dtype in sorted(info.supported_dtypes("cpu"), key=str):
        torch.manual_seed(0)
        needs = info.supports_autograd and dtype.is_floating_point
        step = 1 if ALL else 3 if dtype == torch.float32 else 11
        cases = [
            (x, sample)
            for i, sample in enumerate(info.sample_inputs("cpu", dtype, requires_grad=needs))
            if i % step == 0
            for x in in_formats(sample.input)
        ]
        wanted = [outcome(info, *case) for case in cases]
        with pgt.accelerate():
            got = [outcome(info, *case) for case in cases]
        for case, (own, ours), (other, theirs) in zip(cases, got, wanted, strict=True):
            assert ours == theirs
            for a, b in zip(own, other, strict=True):
                assert not same(a, b), (case, same(a, b))
        count += len(cases)
    assert count > 2


CASES = {
    "max_pool2d": lambda x: F.max_pool2d(x, 3, 2, 1),
    "max_pool2d with indices": lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True)[0],
    "max_pool1d": lambda x: F.max_pool1d(x.flatten(2), 3, 2, 1),
    "max_pool3d": lambda x: F.max_pool3d(x[:, None], (1, 3, 3), (1, 2, 2), 0),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "avg_pool2d over 81 cells": lambda x: F.avg_pool2d(x, 9, 4),
    "avg_pool3d": lambda x: F.avg_pool3d(x[:, None], 2),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, 5),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 5),
    "adaptive_avg_pool3d": lambda x: F.adaptive_avg_pool3d(x[:, :, None], (1, 5, 5)),
    "fractional_max_pool2d": lambda x: fractional(F.fractional_max_pool2d, x, 2, 23),
    "fractional_max_pool2d of 3x2": lambda x: fractional(F.fractional_max_pool2d, x, (3, 2), 20),
    "fractional_max_pool3d": lambda x: fractional(F.fractional_max_pool3d, x.unflatten(1, (-1, 4)), 2, (2, 20, 20)),
}


def fractional(pool, x, kernel_size, output_size):
    """Pool by windows that are the same in each call."""
    rank = x.ndim - 2
    samples = torch.linspace(0.1, 0.9, x.shape[0] * x.shape[1] * rank).reshape(*x.shape[:2], rank)
    return pool(x, kernel_size, output_size=output_size, _random_samples=samples)


@pytest.mark.parametrize("name", CASES)
def test_large_calls_are_ours_and_have_torchs_bits(name):
    torch.manual_seed(0)
    planes = 32 if "fractional" in name else 4  # per thread, so that no call is small
    x = torch.randn(2, planes * max(torch.get_num_threads(), 2), 33, 34, requires_grad=True)
    wanted = CASES[name](x)
    g = torch.randn_like(wanted)
    (dx,) = torch.autograd.grad(wanted, x, g)
    before, back = ours(), gradients()
    with pgt.accelerate():
        got = CASES[name](x)
        (own,) = torch.autograd.grad(got, x, g)
    assert ours() > before
    if "max_pool1d" not in name and name != "max_pool2d" and name != "max_pool3d":  # which have a node of their own
        assert gradients() > back
    assert not same(got, wanted)
    assert not same(own, dx)


def test_a_max_pool_holds_one_byte_per_output():
    x = torch.randn(2, 8, 32, 32, requires_grad=True)
    kept = []
    with pgt.accelerate(), torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        y = F.max_pool2d(x, 2)
    assert [(t.dtype, t.numel()) for t in kept] == [(torch.uint8, y.numel())]


@pytest.mark.parametrize("values", ["nan", "-inf", "ties", "zeros"])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("rank", [2, 3])
def test_special_cells_choose_torchs_cells(values, last, rank, all_calls):
    torch.manual_seed(3)
    x = torch.randint(-1, 2, (2, 9, *[11] * rank)).float()
    if values == "zeros":
        x = x * 0  # -0 and 0
    if values in ("nan", "-inf"):
        x[torch.rand_like(x) < 0.6] = float(values)
    if last:
        x = x.contiguous(memory_format=torch.channels_last if rank == 2 else torch.channels_last_3d)
    run = getattr(F, f"max_pool{rank}d")
    x.requires_grad_()

    def results():
        y, where = run(x, 2, 2, 1, return_indices=True)
        (dx,) = torch.autograd.grad(run(x, 3, 2, 1).nan_to_num(neginf=-9.0).sum(), x)
        return y, where, dx

    wanted = results()
    with pgt.accelerate():
        got = results()
    for a, b in zip(got, wanted, strict=True):
        assert not same(a, b)


def test_wrong_arguments_raise_torchs_errors():
    x = torch.randn(2, 8, 32, 32)
    wrong = [{"kernel_size": 2, "padding": 2}, {"kernel_size": 0}, {"kernel_size": 99}, {"kernel_size": 2, "stride": 0}]
    for words in wrong:
        with pytest.raises(RuntimeError) as theirs:
            F.max_pool2d(x, **words)
        with pgt.accelerate(), pytest.raises(RuntimeError) as own:
            F.max_pool2d(x, **words)
        assert str(own.value) == str(theirs.value)


def test_off_gives_torchs_kernels_back_whoever_switched_on():
    x = torch.randn(2, 8, 32, 32)

    def computed() -> bool:
        before = ours()
        F.avg_pool2d(x, 2)
        return ours() > before

    assert not computed()
    for _ in range(2):
        first, second = pgt.accelerate(), pgt.accelerate()
        first.off()
        first.off()
        assert not first.on
        assert second.on
        assert computed()
        second.off()
        assert not computed()
    with pgt.accelerate() as inner:
        assert computed()
        assert inner.status()["aten::avg_pool2d"].ours > 0
        F.avg_pool2d(x[:1, :1], 2)
        assert inner.status()["aten::avg_pool2d"].torchs["small"] > 0
        assert "avg_pool2d: " in repr(inner)
    assert not computed()


def test_threads_may_call_while_another_switches():
    x = torch.randn(2, 8, 40, 40, requires_grad=True)
    wanted = F.max_pool2d(x, 3, 2, 1)
    (dx,) = torch.autograd.grad(wanted.sum(), x)
    wrong, end = [], threading.Event()

    def call():
        while not end.is_set():
            y = F.max_pool2d(x, 3, 2, 1)
            (own,) = torch.autograd.grad(y.sum(), x)
            if not (torch.equal(y, wanted) and torch.equal(own, dx)):
                wrong.append(y)

    workers = [threading.Thread(target=call) for _ in range(3)]
    for worker in workers:
        worker.start()
    for _ in range(60):
        with pgt.accelerate():
            F.max_pool2d(x, 3, 2, 1)
    end.set()
    for worker in workers:
        worker.join()
    assert not wrong


def test_a_graph_recorded_with_acceleration_runs_without_it_and_the_other_way_round():
    x = torch.randn(2, 8, 32, 32, requires_grad=True)
    (wanted,) = torch.autograd.grad(F.max_pool2d(x, 3, 2).sum(), x)
    with pgt.accelerate():
        y = F.max_pool2d(x, 3, 2)
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], wanted)
    y = F.max_pool2d(x, 3, 2)
    with pgt.accelerate():
        assert torch.equal(torch.autograd.grad(y.sum(), x)[0], wanted)


def test_backward_twice_raises_torchs_error():
    x = torch.randn(2, 8, 32, 32, requires_grad=True)
    with pgt.accelerate():
        y = F.max_pool2d(x, 2).sum()
        y.backward()
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            y.backward()


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        x = torch.full((1, 32, 32, 32), float(i)).cumsum(-1)
        return F.max_pool2d(x, 3, 2, 1)[0], ours()


def switch_on(_):
    """Switch acceleration on in a worker: a new process begins without it."""
    before = Squares()[0][1]
    pgt.accelerate()
    assert Squares()[0][1] > before == 0


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_of_a_data_loader_pool(context):
    wanted = torch.stack([Squares()[i][0] for i in range(6)])
    with pgt.accelerate():
        F.max_pool2d(torch.randn(8, 8, 64, 64), 2)  # which starts threads
        before = ours()
        loader = torch.utils.data.DataLoader(
            Squares(),
            num_workers=2 if context == "fork" else 1,
            multiprocessing_context=context,
            timeout=120,
            worker_init_fn=None if context == "fork" else switch_on,
        )
        got, calls = zip(*[(y[0], int(n)) for y, n in loader], strict=True)
    assert torch.equal(torch.stack(got), wanted)
    assert min(calls) > (before if context == "fork" else 0)
    assert ours() == before  # the workers pooled, each with counters of its own


def test_another_library_that_overrides_the_same_operator():
    x = torch.randn(2, 8, 32, 32)
    wanted, marked = F.avg_pool2d(x, 2), torch.full((1,), 7.0)
    switch = pgt.accelerate()
    library = torch.library.Library("aten", "IMPL")  # a later override wins
    library.impl("avg_pool2d", lambda *_: marked.clone(), "CPU")
    assert torch.equal(F.avg_pool2d(x, 2), marked)
    switch.off()  # takes ours away, not the other one
    assert torch.equal(F.avg_pool2d(x, 2), marked)
    with pgt.accelerate():  # now ours is later
        assert torch.equal(F.avg_pool2d(x, 2), wanted)
    assert torch.equal(F.avg_pool2d(x, 2), marked)
    library._destroy()
    assert torch.equal(F.avg_pool2d(x, 2), wanted)


def test_autocast_transforms_and_subclasses_are_as_before():
    torch.manual_seed(0)
    x = torch.randn(2, 8, 32, 32)

    class Named(torch.Tensor):
        pass

    runs = {
        "autocast": lambda: autocast(x),
        "vmap": lambda: torch.func.vmap(lambda x: F.max_pool2d(x, 3, 2, 1))(x),
        "jacrev": lambda: torch.func.jacrev(lambda x: F.avg_pool2d(F.max_pool2d(x, 3, 2), 3, 3))(
            x[:1, :1, :9, :9].clone()
        ),
        "jvp": lambda: torch.func.jvp(lambda x: F.max_pool2d(x, 3, 2, 1), (x,), (torch.ones_like(x),))[1],
        "subclass": lambda: F.max_pool2d(x.as_subclass(Named), 2).as_subclass(torch.Tensor),
        "meta": lambda: torch.tensor(F.max_pool2d(x.to("meta"), 2).shape),
        "trace": lambda: torch.jit.trace(lambda x: F.max_pool2d(x, 3, 2, 1), x)(x),
    }

    def autocast(x):
        with torch.autocast("cpu", torch.bfloat16):
            return F.max_pool2d(F.conv2d(x, torch.ones(4, 8, 3, 3)), 2)

    for name, run in runs.items():
        wanted = run()
        with pgt.accelerate():
            assert not same(run(), wanted), name


def test_export_gives_the_same_graph():
    class Net(torch.nn.Module):
        def forward(self, x):
            return F.avg_pool2d(F.max_pool2d(x, 3, 2, 1), 2)

    def graph():
        made = torch.export.export(Net(), (torch.randn(2, 8, 32, 32),))
        return [str(node.target) for node in made.graph.nodes]

    wanted = graph()
    with pgt.accelerate():
        assert graph() == wanted


def test_an_unknown_torch_is_refused_with_what_to_do(monkeypatch):
    monkeypatch.setattr(_compiled, "KNOWN", ((1, 0),))
    with pytest.raises(
        RuntimeError, match=r"poolgrad.torch: accelerate: got torch .*, wanted 1.0: .*; use poolgrad.torch's"
    ):
        pgt.accelerate()
    assert _compiled.main(["build"]) == 1


def test_without_the_compiled_part_the_error_says_how_to_build_it(tmp_path):
    code = "import poolgrad.torch as p; p.accelerate()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "got no compiled part" in done.stderr
    assert "python -m poolgrad.torch build" in done.stderr


SCRIPT = """
import sys, torch
x = torch.randn(2, 64, 32, 32)
torch.nn.functional.max_pool2d(x, 2)
from poolgrad.torch import _compiled
print(__name__, sys.argv[1:], _compiled.load().counters()["max_pool2d"]["poolgrad"])
"""


@pytest.mark.parametrize("way", ["script", "module", "variable", "nothing"])
def test_a_program_runs_accelerated_without_a_change(way, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(SCRIPT if way != "variable" else "import poolgrad.torch\n" + SCRIPT)
    run = {
        "script": ["-m", "poolgrad.torch", "run", str(path)],
        "module": ["-m", "poolgrad.torch", "run", "-m", "program"],
    }
    setting = {"POOLGRAD_TORCH": "1"} if way == "variable" else {}
    done = subprocess.run(
        [sys.executable, *run.get(way, [str(path)]), "a", "-b"],
        env=os.environ | setting,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.split() == ["__main__", "['a',", "'-b']", "0" if way == "nothing" else "1"], done.stderr


def test_run_without_a_program_says_what_it_wants():
    done = subprocess.run([sys.executable, "-m", "poolgrad.torch", "run"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "run script.py" in done.stderr


def calls_of(run):
    """Return the pools of a compiled program that ours computed, and its result."""
    torch._dynamo.reset()
    with torch._inductor.config.patch(force_disable_caches=True), pgt.accelerate() as switch, torch.no_grad():
        compiled = torch.compile(run, fullgraph=True)
        compiled()  # a run that compiles is watched
        before = {op: calls.ours for op, calls in switch.status().items()}
        y = compiled()
        return {op: calls.ours - before[op] for op, calls in switch.status().items() if calls.ours > before[op]}, y


@pytest.mark.parametrize("indices", [False, True])
def test_compiled_maxima_of_contiguous_maps_are_ours(indices):
    x = torch.randn(4, 32, 32, 32)
    run = lambda: F.max_pool2d(torch.relu(x), 3, 2, 1, return_indices=indices)  # noqa: E731
    calls, y = calls_of(run)
    assert calls == {"aten::max_pool2d_with_indices" if indices else "aten::max_pool2d": 1}
    for a, b in zip(y if indices else [y], run() if indices else [run()], strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("first", [False, True], ids=["pool behind", "pool before"])
def test_compiled_pools_beside_convolutions_stay_the_compilers(first):
    x, weight = torch.randn(4, 32, 32, 32), torch.randn(32, 32, 1, 1) / 8  # which it lays out channels last

    def run():
        y = x if first else F.conv2d(x, weight)
        y = F.max_pool2d(F.avg_pool2d(torch.relu(y), 2), 2)
        return F.conv2d(y, weight) if first else y

    calls, y = calls_of(run)
    assert not calls
    torch.testing.assert_close(y, run())


def program(run):
    """Return the code of a compiled program, without its number."""
    from torch._inductor.utils import run_and_get_code

    torch._dynamo.reset()
    with torch._inductor.config.patch(force_disable_caches=True), torch.no_grad():
        _, codes = run_and_get_code(torch.compile(run, fullgraph=True))
    return codes[-1].split("\n", 1)[1]


def test_the_loops_of_pools_that_stay_the_compilers_are_as_without_us():
    x, weight = torch.randn(2, 3, 40, 40), torch.randn(16, 3, 3, 3)
    run = lambda: F.max_pool2d(torch.relu(F.conv2d(x, weight)), 3, 2)  # noqa: E731
    wanted = program(run)
    with pgt.accelerate():
        assert program(run) == wanted


def test_compiled_programs_call_the_operators_while_it_is_on():
    def loss(x):
        return F.avg_pool2d(F.max_pool2d(torch.relu(x), 3, 2, 1), 2).square().sum()

    def gradient(run):
        (dx,) = torch.autograd.grad(run(x), x)
        return dx

    def ours(switch):
        return {op: calls.ours for op, calls in switch.status().items()}

    torch.manual_seed(0)
    x = torch.randn(4, 32, 32, 32, requires_grad=True)
    wanted = gradient(loss)
    with torch._inductor.config.patch(force_disable_caches=True):
        with pgt.accelerate() as switch:
            before = ours(switch)
            got = gradient(torch.compile(loss, fullgraph=True))
            calls = {op: now - before[op] for op, now in ours(switch).items()}
        assert (
            calls["aten::max_pool2d_with_indices"]
            == calls["aten::avg_pool2d"]
            == calls["aten::avg_pool2d_backward"]
            == 1
        )
        torch.testing.assert_close(got, wanted)
        torch._dynamo.reset()
        before = ours(switch)
        torch.testing.assert_close(gradient(torch.compile(loss, fullgraph=True)), wanted)
        assert ours(switch) == before
