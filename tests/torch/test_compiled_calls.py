"""Repeated calls of poolgrad.torch's functions run in the extension: the same bits as through Python, and every derivative."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test installs it where it can")

from torch_same import same  # noqa: E402

import poolgrad.torch as pgt  # noqa: E402
from poolgrad.torch import _compiled, _resolved, fractional, functional  # noqa: E402

if _compiled.load() is None:
    pytest.skip(f"the compiled part is not built: {_compiled.ADVICE}", allow_module_level=True)

CALLS = {
    "max_pool1d": (1, (3,), {}),
    "max_pool2d": (2, (3, 2, 1), {"return_indices": True}),
    "max_pool3d": (3, ((2, 1, 3),), {"ceil_mode": True}),
    "min_pool2d": (2, (2,), {"return_indices": True}),
    "avg_pool1d": (1, (3, 2), {}),
    "avg_pool2d": (2, (3, 1, 1), {"count_include_pad": False}),
    "avg_pool3d": (3, (2,), {}),
    "adaptive_max_pool2d": (2, (3,), {"return_indices": True}),
    "adaptive_avg_pool2d": (2, ((3, 2),), {}),
    "adaptive_max_pool3d": (3, (3,), {}),
    "adaptive_avg_pool3d": (3, (2,), {}),
    "avg_pool2d padded": (2, (3, 2, 1), {}),
    "avg_pool2d same": (2, (3, 2), {"padding": "same"}),
    "avg_pool3d padded": (3, (3, 2, 1), {}),
    "avg_pool2d divided": (2, (3, 2), {"divisor_override": 7}),
    "avg_pool2d divided by a fraction": (2, (3, 1), {"divisor_override": 2.5}),
    "avg_pool2d sums": (2, (3, 1), {"divisor_override": 1}),
    "avg_pool1d padded": (1, (5, 1, 2), {"ceil_mode": True}),
    "lp_pool2d": (2, (2, 2), {}),
    "lp_pool3d": (3, (2.0, 3, 2), {"ceil_mode": True}),
    "lp_pool2d far": (2, (2, 2, 3), {}),
    "lp_pool1d cubes": (1, (3, 3, 1), {}),
    "lp_pool2d of 1": (2, (1, 2), {}),
    "fractional_max_pool2d": (2, (2,), {"output_ratio": 0.7, "return_indices": True}),
    "fractional_max_pool3d": (3, ((2, 3, 1),), {"output_size": (3, 4, 5)}),
    "fractional_max_pool1d borders": (1, (), {"output_ratio": 0.6, "overlapping": True}),
    "fractional_max_pool2d borders": (2, (), {"output_ratio": 0.6, "pseudo_random": True, "return_indices": True}),
    "fractional_avg_pool2d": (2, (), {"output_size": (4, 5)}),
    "fractional_avg_pool3d seeded": (3, (), {"output_size": 4, "seed": 5, "overlapping": True}),
    "fractional_avg_pool2d kernel": (2, (3,), {"output_ratio": (0.5, 0.4)}),
}


def several(y):
    return list(y) if isinstance(y, tuple) else [y]


def results(run, x):
    """Return values, gradient and second derivative; random windows are the same in each run."""
    torch.manual_seed(7)
    leaf = x.detach().clone(memory_format=torch.preserve_format)
    plain = several(run(leaf))
    if not x.dtype.is_floating_point:
        return plain
    leaf.requires_grad_()
    y = several(run(leaf))
    g = ((torch.arange(y[0].numel()) % 5 - 2) / 3).reshape(y[0].shape).to(x.dtype).requires_grad_()
    (dx,) = torch.autograd.grad(y[0], leaf, g.detach(), retain_graph=True)
    (watched,) = torch.autograd.grad(y[0], leaf, g, create_graph=True)
    (ddy,) = torch.autograd.grad(watched, g, torch.ones_like(dx))
    return [*plain, *y, dx, watched, ddy]


@pytest.fixture
def spy(monkeypatch):
    """Count the calls that Python runs."""

    class Spy:
        calls = 0

    def plain(pool, x, run=_resolved.CorePool.plain):
        Spy.calls += 1
        return run(pool, x)

    monkeypatch.setattr(_resolved.CorePool, "plain", plain)
    return Spy


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32], ids=str)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("last", [False, True], ids=["contiguous", "channels last"])
def test_a_repeated_call_has_the_bits_of_the_first(name, dtype, last, spy):
    rank, args, named = CALLS[name]
    torch.manual_seed(0)
    if "lp" in name and not dtype.is_floating_point:
        pytest.skip("norms of integers are refused")
    for n in (7, 13, 40 if rank < 3 else 25):  # few cells, and more; long windows
        x = (torch.randn(2, 5, *[n] * rank) * 4).to(dtype)
        if x.dtype.is_floating_point:
            x.view(-1)[3] = float("nan")
        if last and rank > 1:
            x = x.contiguous(memory_format=torch.channels_last if rank == 2 else torch.channels_last_3d)
        public = getattr(pgt, name.split()[0])
        run = lambda x: public(x, *args, **named)  # noqa: E731, B023
        first = results(through_python(name, args, named), x)
        run(x)  # which teaches the call
        asked = spy.calls
        run(x)
        if dtype.is_floating_point or "avg" not in name:
            assert spy.calls == asked  # it did not go through Python
        again = results(run, x)
        for a, b in zip(again, first, strict=True):
            assert not same(a, b), (n, same(a, b))


def through_python(name, args, named):
    """Return the pool without the extension: each call resolves it anew, and runs its kernels from Python."""
    name = name.split()[0]
    rank = int(name[-2])
    resolve = getattr(fractional if name.startswith("fractional") else functional, f"_{name[:-2]}")
    return lambda x: resolve(rank, x, *args, **named).run(x)


def test_words_of_other_types_are_other_calls():
    x = torch.randn(1, 1, 4, 4)
    for _ in range(3):
        assert pgt.max_pool2d(x, 1).shape == (1, 1, 4, 4)
        with pytest.raises(TypeError, match="max_pool2d: kernel_size: got True"):
            pgt.max_pool2d(x, True)
        with pytest.raises(TypeError, match=r"max_pool2d: kernel_size: got 1\.0"):
            pgt.max_pool2d(x, 1.0)


@pytest.mark.parametrize(
    "axes",
    [
        [(4, [0, 1, 2], [0, 0, 0], [1, 1, 1])],  # windows without cells, which end before those behind them begin
        [(4, [9, 9], [0, 0], [1, 1])],
        [(4, [2, 0], [3, 1], [1, 1])],
        [(4, [0, 2], [2, 9], [2, 2])],
        [(4, [0, 2], [2], [2, 2])],
        [(4, [0, 2], [2, 4], [])],
    ],
    ids=str,
)
def test_a_lesson_with_wrong_windows_is_refused(axes):
    x = torch.zeros(1, 1, 4)
    lesson = _resolved.Lesson(1, 1, axes, _resolved.Kind.MEAN)
    try:
        learnt = _compiled.load().teach(99, 1, (x,), {}, None, lesson)
    except RuntimeError:
        return
    assert not learnt or _compiled.load().repeat(99, 1, (x,), {}).isfinite().all()


def test_the_names_of_words_count():
    x = torch.randn(1, 1, 6, 6)
    for _ in range(3):
        assert pgt.max_pool2d(x, 2, stride=1).shape == (1, 1, 5, 5)
        assert pgt.max_pool2d(x, 2, padding=1).shape == (1, 1, 4, 4)
        assert pgt.max_pool2d(x, stride=1, kernel_size=2).shape == (1, 1, 5, 5)
        assert pgt.max_pool2d(kernel_size=2, input=x).shape == (1, 1, 3, 3)


def test_transforms_of_a_taught_call():
    x = torch.randn(3, 2, 8, 8)
    run = lambda x: pgt.max_pool2d(x, 2)  # noqa: E731
    for _ in range(3):
        wanted = run(x)
    assert torch.equal(torch.func.vmap(run)(x), torch.stack([run(part) for part in x]))
    _, dy = torch.func.jvp(run, (x,), (torch.ones_like(x),))
    assert torch.equal(dy, torch.ones_like(wanted))
    leaf = x.clone().requires_grad_()
    rows = torch.autograd.grad(run(leaf), leaf, torch.stack([torch.ones_like(wanted)] * 2), is_grads_batched=True)[0]
    assert torch.equal(rows[0], rows[1])
    assert torch.autograd.gradcheck(lambda x: pgt.avg_pool2d(x, 3, 2), x.double()[:1, :1].requires_grad_())


def test_memory_that_is_not_aligned_or_negated_goes_through_python():
    raw = torch.zeros(1 + 4 * 64, dtype=torch.uint8).numpy()
    odd = torch.frombuffer(raw.data, dtype=torch.float32, count=64, offset=1).view(1, 1, 8, 8)
    plain = torch.zeros(1, 1, 8, 8)
    for _ in range(3):
        assert torch.equal(pgt.max_pool2d(odd, 2), pgt.max_pool2d(plain, 2))
        assert torch.equal(pgt.max_pool2d(torch._neg_view(plain + 1), 2), -torch.ones(1, 1, 4, 4))


def test_backward_twice_raises_torchs_error():
    x = torch.randn(1, 1, 8, 8, requires_grad=True)
    for _ in range(2):
        y = pgt.max_pool2d(x, 2).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()
