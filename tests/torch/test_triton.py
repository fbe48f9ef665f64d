"""The kernels in Triton have the bits of the portable form, which they replace on GPUs, and of the core.

No GPU is needed: Triton's interpreter runs the kernels on CPU tensors, lane by lane in NumPy. It shows what they compute, not how fast,
nor whether a GPU's compiler takes them. Run this file by itself: triton may abort a process that has imported TensorFlow.
"""

import random
import subprocess
import sys
import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test installs it where it can")
pytest.importorskip(
    "triton",
    reason="triton is not installed (286 MB, 1 GB unpacked): pip install triton==3.9.0, and run this file by itself",
)

from torch_cases import CASES, FLOATS, call, cells, distinct, same  # noqa: E402

import poolgrad.torch as pgt  # noqa: E402
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


def test_a_kernel_that_does_not_start_is_given_up_with_one_warning(interpreted, monkeypatch):
    from poolgrad.torch import _triton

    x = torch.randn(2, 3, 8, 8)
    wanted = pgt.max_pool2d(x, 2)

    class Broken:
        __name__ = "_choose"

        def __getitem__(self, grid):
            raise RuntimeError("no driver")

    monkeypatch.undo()
    monkeypatch.setattr(_triton, "_choose", Broken())
    with _devices.interpreted(), _portable.forced():
        with pytest.warns(RuntimeWarning, match="no driver"):
            assert torch.equal(pgt.max_pool2d(x, 2), wanted)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert torch.equal(pgt.max_pool2d(x, 2), wanted)


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
