"""The kernels in Triton have the bits of the portable form, which they replace on GPUs, and of the core.

No GPU is needed: Triton's interpreter runs the kernels on CPU tensors, lane by lane in NumPy. It shows what they compute, not how fast,
nor whether a GPU's compiler takes them. Run this file by itself: triton may abort a process that has imported TensorFlow.
"""

import ast
import math
import random
import subprocess
import sys
import warnings
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test installs it where it can")
pytest.importorskip(
    "triton",
    reason="triton is not installed (286 MB, 1 GB unpacked): pip install triton==3.9.0, and run this file by itself",
)

from torch_cases import CASES, FLOATS, call, cells, distinct, same  # noqa: E402

import poolgrad.torch as pgt  # noqa: E402
from poolgrad._windows.sliding import slide  # noqa: E402
from poolgrad.torch import _devices, _portable  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning", "ignore::UserWarning")


@pytest.fixture
def interpreted(monkeypatch):
    """Run pools by the kernels, in the interpreter; return how often each kernel ran."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    from poolgrad.torch import _triton

    ran = {}
    run = _triton._run

    def counted(kernel, *words, **flags):
        made = run(kernel, *words, **flags)
        assert made, "the interpreter refused a kernel"
        ran[kernel.__name__] = ran.get(kernel.__name__, 0) + 1
        return made

    monkeypatch.setattr(_triton, "_run", counted)
    with _portable.forced(), _devices.interpreted():
        yield ran


def derivatives(x, name, words):
    """Return a pool, its gradient, the gradient of that, and what else the pool returns."""
    x = x.clone(memory_format=torch.preserve_format).requires_grad_()
    made = getattr(pgt, name)(x, **words)
    y, *others = made if isinstance(made, tuple) else (made,)
    g = distinct(y.shape, y.dtype).as_strided(y.shape, y.stride()).requires_grad_()
    (dx,) = torch.autograd.grad(y, x, g, create_graph=True)
    h = distinct(dx.shape, dx.dtype).as_strided(dx.shape, dx.stride())
    second = torch.autograd.grad(dx, g, h)[0] if dx.requires_grad else dx
    return y.detach(), dx.detach(), second, *others


@pytest.mark.parametrize("seed", range(8))
def test_random_calls_have_the_bits_of_the_portable_form(seed, interpreted):
    rng = random.Random(seed)
    torch.manual_seed(seed)
    for _ in range(12):
        rank = rng.choice([1, 2, 2, 3])
        lengths = [rng.randint(3, {1: 60, 2: 24, 3: 9}[rank]) for _ in range(rank)]
        name, words = call(rng, rank, lengths)
        x = cells(rng, (rng.randint(1, 2), rng.randint(1, 3), *lengths), rng.choice(FLOATS))
        got = derivatives(x, name, words)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_devices, "_served", set())
            wanted = derivatives(x, name, words)
        for a, b in zip(got, wanted, strict=True):
            same(a, b, close=False)
    assert set(interpreted) == {"_choose", "_pick", "_fold", "_gather"}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("last", [False, True])
def test_maxima_and_their_derivatives_have_the_bits_of_the_core(dtype, last, interpreted):
    rng = random.Random(f"{dtype} {last}")
    for rank in (1, 2, 3):
        lengths = {1: (37,), 2: (9, 14), 3: (5, 8, 6)}[rank]
        x = cells(rng, (2, 3, *lengths), dtype).contiguous()
        x = x.movedim(1, -1).contiguous().movedim(-1, 1) if last else x
        pools = [
            ("max_pool", {"kernel_size": 3, "stride": 2, "padding": 1, "return_indices": True}),
            ("min_pool", {"kernel_size": 3, "stride": 1, "padding": "same"}),
            ("max_pool", {"kernel_size": 2, "stride": 1, "dilation": 3}),
            ("adaptive_max_pool", {"output_size": 3, "return_indices": True}),
            ("fractional_max_pool", {"output_ratio": 0.7, "seed": 3, "return_indices": True}),
        ]
        for name, words in pools:
            got = derivatives(x, f"{name}{rank}d", words)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(_portable, "_forced", 0)
                wanted = derivatives(x, f"{name}{rank}d", words)
            for a, b in zip(got, wanted, strict=True):
                same(a, b, close=False)
    assert interpreted["_choose"] == 15


def test_means_of_up_to_64_cells_have_the_bits_of_the_core(interpreted):
    for dtype in FLOATS:
        x = distinct((2, 3, 17, 16), dtype)
        for name, words in (
            ("avg_pool2d", {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False}),
            ("avg_pool2d", {"kernel_size": 2, "divisor_override": 3}),
            ("fractional_avg_pool2d", {"output_ratio": 0.7, "seed": 3, "overlapping": True}),
        ):
            got = derivatives(x, name, words)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(_portable, "_forced", 0)
                wanted = derivatives(x, name, words)
            for a, b in zip(got, wanted, strict=True):
                same(a, b, close=False)
    assert interpreted["_fold"] == interpreted["_gather"] + interpreted["_fold"] // 2  # the second order folds again


@pytest.mark.parametrize("case", [c for c in CASES if c.rank == 2], ids=[c.name for c in CASES if c.rank == 2])
def test_gradcheck_passes_by_the_kernels(case, interpreted):
    x = distinct(case.shape).requires_grad_()
    assert torch.autograd.gradcheck(case.pool, x, fast_mode=True, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(case.pool, x, fast_mode=True)


def test_what_the_kernels_leave_to_torchs_operations(interpreted):
    x = distinct((1, 2, 50, 70), torch.float32)
    pools = {
        "long windows": lambda: pgt.max_pool2d(x, 20),
        "long sums": lambda: pgt.avg_pool2d(x, 9),
        "integers": lambda: pgt.max_pool2d(x.to(torch.int32), 2),
        "empty batches": lambda: pgt.max_pool2d(x[:0], 2),
    }
    for name, pool in pools.items():
        pool()
        assert not interpreted, name


def test_two_programs_are_enough_for_no_cell_and_many_planes(interpreted):
    from poolgrad.torch import _triton

    x = torch.randn(7, 5, 13, 11, generator=torch.Generator().manual_seed(1))
    assert x.numel() % _triton._LANES
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_portable, "_forced", 0)
        wanted = pgt.max_pool2d(x, 3, 1)
    assert torch.equal(pgt.max_pool2d(x, 3, 1), wanted)


class Broken:
    """A kernel whose launch raises an error."""

    __name__ = "_choose"

    def __init__(self, error):
        self.error = error

    def __getitem__(self, grid):
        raise self.error


def test_a_kernel_that_does_not_compile_is_given_up_with_one_warning(interpreted, monkeypatch):
    from triton import CompilationError

    from poolgrad.torch import _triton

    x = torch.randn(2, 3, 8, 8)
    wanted = pgt.max_pool2d(x, 2)
    for error in (CompilationError("source", ast.Pass(), "no such device"), ImportError("no such device")):
        monkeypatch.undo()
        monkeypatch.setattr(_triton, "_choose", Broken(error))
        with _devices.interpreted(), _portable.forced():
            with pytest.warns(RuntimeWarning, match="no such device"):
                assert torch.equal(pgt.max_pool2d(x, 2), wanted)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert torch.equal(pgt.max_pool2d(x, 2), wanted)


def test_errors_of_a_device_are_raised_and_kernels_stay(interpreted, monkeypatch):
    from poolgrad.torch import _triton

    x = torch.randn(2, 3, 8, 8)
    choose = _triton._choose
    for error in (RuntimeError("CUDA error: device-side assert triggered"), torch.OutOfMemoryError("no memory")):
        monkeypatch.setattr(_triton, "_choose", Broken(error))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(type(error), match=str(error)):
                pgt.max_pool2d(x, 2)
        assert _devices.kernels(x) is _triton
    monkeypatch.setattr(_triton, "_choose", choose)
    pgt.max_pool2d(x, 2)
    assert interpreted == {"_choose": 1}


def test_a_machine_without_a_driver_is_given_up_before_a_kernel_starts(interpreted, monkeypatch):
    from poolgrad.torch import _triton

    def fail():
        raise RuntimeError("Failed to find C compiler")

    monkeypatch.setattr(_triton.triton.runtime.driver, "_active", SimpleNamespace(get_current_target=fail))
    _triton._driven.cache_clear()
    try:
        with pytest.warns(RuntimeWarning, match="Failed to find C compiler"):
            assert not _triton._driven()
        assert _devices.kernels(torch.ones(1)) is None
    finally:
        _triton._driven.cache_clear()


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("wide", [False, True])
def test_a_tap_outside_its_window_is_refused_and_reads_nothing(rank, wide, interpreted):
    lengths = {1: (9,), 2: (7, 6), 3: (5, 4, 3)}[rank]
    axes = [slide(n, 3, 2, 1, (1, 1), False) for n in lengths]
    x = torch.arange(1.0, 1 + 2 * math.prod(lengths)).reshape(2, *lengths)
    _, taps = _portable.choose_along(x, axes, 1, False)
    taps = taps.to(torch.int32 if wide else torch.uint8)
    assert torch.equal(_portable.pick(x, taps, axes, 1), _portable.choose_along(x, axes, 1, False)[0])
    cells = math.prod(int(axis.count[-1]) for axis in axes)
    for wrong in (cells, 200, *((-1, 2**31 - 1, -(2**31)) if wide else ())):
        taps[(-1,) * (rank + 1)] = wrong  # in the last window: behind it, no memory of x follows
        with pytest.raises(RuntimeError, match=r"^pool: taps: got a tap outside its window, wanted "):
            _portable.pick(x, taps, axes, 1)
    assert interpreted["_pick"] == (6 if wide else 3)


def test_the_switch_leaves_pools_to_torchs_operations(interpreted, monkeypatch):
    monkeypatch.setenv("POOLGRAD_TRITON", "0")
    _devices._loaded.cache_clear()
    try:
        pgt.max_pool2d(torch.randn(1, 1, 4, 4), 2)
    finally:
        _devices._loaded.cache_clear()
    assert not interpreted


def test_pools_on_the_cpu_load_no_kernels():
    code = "import sys, poolgrad.torch as p, torch; p.max_pool2d(torch.ones(1, 4, 4), 2); print(*sys.modules)"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "poolgrad.torch._devices" in made
    assert (
        "poolgrad.torch._triton" not in made
    )  # the one module of poolgrad that imports triton; torch may do so by itself
