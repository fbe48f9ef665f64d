"""On other devices the pools run by torch's own operations, with the core's numbers and every derivative; nothing goes to the host.

No such device is needed here: `_portable.forced` takes that path for CPU tensors, `Elsewhere` is a tensor that only says it is on
another device and refuses to be read, and meta and fake tensors have no cells at all.
"""

import random
from functools import partial
from typing import ClassVar

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test installs it where it can")

import towers  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.func import functional_call, grad, jvp, vjp, vmap  # noqa: E402
from torch_cases import CASES, FLOATS, NAMES, by_hand, call, cells, distinct, same, small, tower  # noqa: E402

import poolgrad as pg  # noqa: E402
import poolgrad.torch as pgt  # noqa: E402
from poolgrad.torch import _kernels, _portable  # noqa: E402

every_case = pytest.mark.parametrize("case", CASES, ids=NAMES)
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


@pytest.fixture
def forced(monkeypatch):
    """Run pools by torch's operations; fail if one reaches the core."""
    for name in ("choose", "apply", "positions", "choice", "average"):
        monkeypatch.setattr(_kernels, name, lambda *_, name=name: pytest.fail(f"the core was called: {name}"))
    with _portable.forced():
        yield


# ---- the numbers of the core


INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64]


@pytest.mark.parametrize("seed", range(12))
def test_random_calls_have_the_numbers_of_the_core(seed):
    rng = random.Random(seed)
    torch.manual_seed(seed)
    for _ in range(40):
        rank = rng.choice([1, 2, 2, 3])
        lengths = [rng.randint(3, {1: 60, 2: 24, 3: 9}[rank]) for _ in range(rank)]
        name, words = call(rng, rank, lengths)
        dtype = rng.choice(FLOATS)
        x = cells(rng, (rng.randint(1, 2), rng.randint(1, 3), *lengths), dtype)
        best = "return_indices" in words

        def run(x=x, name=name, words=words):
            x = x.clone(memory_format=torch.preserve_format).requires_grad_()
            made = getattr(pgt, name)(x, **words)
            y = made[0] if isinstance(made, tuple) else made
            g = distinct(y.shape, y.dtype).as_strided(y.shape, y.stride())
            return y.detach(), torch.autograd.grad(y, x, g)[0], *(made[1:] if isinstance(made, tuple) else ())

        wanted = run()
        with _portable.forced():
            got = run()
        for a, b in zip(got, wanted, strict=True):
            same(a, b, close=not best)


@pytest.mark.parametrize("dtype", [*INTEGERS, torch.bool])
def test_integers_have_the_numbers_of_the_core(dtype):
    rng = random.Random(str(dtype))
    for rank in (1, 2, 3):
        lengths = {1: (23,), 2: (9, 12), 3: (5, 4, 6)}[rank]
        x = cells(rng, (2, 2, *lengths), dtype)
        if dtype is not torch.bool:  # among them the largest numbers, whose sums leave 64 bits
            x[0] = (
                torch.iinfo(dtype).max - x[0].to(torch.int64).abs() % 100
                if dtype is not torch.uint64
                else -x[0].to(torch.int64).abs()
            ).to(dtype)
        pools = [(kind, {"kernel_size": 3, "stride": 2, "padding": 1}) for kind in ("max_pool", "min_pool")]
        pools += [("adaptive_max_pool", {"output_size": 1}), ("fractional_max_pool", {"output_ratio": 0.6, "seed": 3})]
        if dtype is not torch.bool:
            pools += [
                ("avg_pool", {"kernel_size": 3, "stride": 2, "padding": 1}),
                ("adaptive_avg_pool", {"output_size": 2}),
            ]
            pools += [("avg_pool", {"kernel_size": 2, "divisor_override": 99})]
        for name, words in pools:
            pool = getattr(pgt, f"{name}{rank}d")
            with _portable.forced():
                got = pool(x, **words)
            same(got, pool(x, **words), close=False)


@pytest.mark.parametrize("reduce", ["sum", "assign"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32])
def test_unpooling_where_positions_repeat_is_that_of_the_core(reduce, dtype):
    v = distinct((2, 3, 4, 5), dtype) if dtype.is_floating_point else torch.arange(120, dtype=dtype).reshape(2, 3, 4, 5)
    where = torch.randint(0, 9, v.shape, generator=torch.Generator().manual_seed(1))
    pool = lambda v: pgt.max_unpool2d(v, where, 2, reduce=reduce)  # noqa: E731
    with _portable.forced():
        got = pool(v)
    same(got, pool(v), close=dtype.is_floating_point)
    if dtype.is_floating_point:
        assert torch.equal(*(both(pool, v) for both in (_transposed, lambda f, x: _run_forced(_transposed, f, x))))


def _transposed(pool, v):
    v = v.clone().requires_grad_()
    y = pool(v)
    return torch.autograd.grad(y, v, distinct(y.shape, y.dtype))[0]


def _run_forced(function, *words):
    with _portable.forced():
        return function(*words)


@pytest.mark.parametrize("samples", [torch.float32, torch.float64])
def test_windows_of_planes_have_the_numbers_of_the_core(samples):
    x = distinct((2, 3, 8, 9)).requires_grad_()
    where = torch.rand(2, 3, 2, dtype=samples, generator=torch.Generator().manual_seed(1))
    pool = lambda: pgt.fractional_max_pool2d(x, 2, (5, 6), return_indices=True, _random_samples=where)  # noqa: E731
    (y, at), wanted = _run_forced(pool), pool()
    assert torch.equal(y, wanted[0])
    assert torch.equal(at, wanted[1])
    g = distinct(y.shape)
    assert torch.equal(*(torch.autograd.grad(z, x, g)[0] for z in (y, wanted[0])))


@pytest.mark.parametrize("name", ["global", "shared", "overlapping", "dilated", "gaps"])
def test_long_windows_take_few_operations_and_have_the_numbers_of_the_core(name):
    words = {
        "global": {"kernel_size": (50, 70)},
        "shared": {"output_size": (3, 7)},
        "overlapping": {"kernel_size": (20, 31), "stride": (1, 2), "padding": (10, 15)},
        "dilated": {"kernel_size": (16, 30), "stride": 2, "dilation": (3, 2)},
        "gaps": {"kernel_size": (20, 30), "stride": (25, 33)},
    }[name]
    family = "adaptive_{}_pool2d" if name == "shared" else "{}_pool2d"
    x = distinct((1, 2, 50, 70), torch.float32)
    for kind in ("max",) if name == "dilated" else ("max", "avg"):
        pool = getattr(pgt, family.format(kind))
        seen = _Counted()
        with _portable.forced(), seen:
            got = pool(x, **words)
        same(got, pool(x, **words), close=kind == "avg")
        assert seen.count < 200


class _Counted(torch.utils._python_dispatch.TorchDispatchMode):
    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "poolgrad":
            with self:
                return _work(func, args, kwargs)
        self.count += 1
        return func(*args, **(kwargs or {}))


def _work(func, args, kwargs):
    """Run the body of one of our operators, as torch's dispatcher does for a device."""
    from poolgrad.torch import _custom_ops

    return getattr(_custom_ops, func._schema.name.split("::")[1])._init_fn(*args, **(kwargs or {}))


def test_two_runs_of_backward_have_the_same_bits_where_windows_overlap(forced):
    x = torch.randn(2, 3, 30, 30, generator=torch.Generator().manual_seed(1)).requires_grad_()
    pools = [lambda x: pgt.max_pool2d(x, 5, 1), lambda x: pgt.avg_pool2d(x, 9, 1)]
    for pool in pools:
        y = pool(x)
        g = torch.randn(y.shape, generator=torch.Generator().manual_seed(2))
        assert torch.equal(*(torch.autograd.grad(y, x, g, retain_graph=True)[0] for _ in range(2)))


# ---- derivatives


@every_case
def test_gradcheck_and_gradgradcheck_in_both_modes_alone_and_batched(case, forced):
    x = distinct(case.shape).requires_grad_()
    words = {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True}
    assert torch.autograd.gradcheck(case.pool, x, fast_mode=True, **words)
    words = {"check_fwd_over_rev": True, "check_rev_over_rev": True, "check_batched_grad": True}
    assert torch.autograd.gradgradcheck(case.pool, x, fast_mode=True, **words)


@every_case
def test_every_transform_gives_what_the_dense_jacobian_gives(case, forced):
    x = small(case)
    wanted = by_hand(case, x)
    for name, made in tower(case, x).items():
        got = made()
        assert got.abs().sum() > 0, name
        if name in wanted and not ("lp" in case.name and ("order" in name or "over" in name or name == "hessian")):
            torch.testing.assert_close(got, wanted[name], msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("case", [c for c in CASES if c.rank == 2], ids=[c.name for c in CASES if c.rank == 2])
def test_compiled_code_gives_the_same_numbers(case, forced):
    torch._dynamo.reset()
    x = distinct(case.shape).requires_grad_()
    plain, compiled = case.pool(x), torch.compile(case.pool, fullgraph=True, backend="aot_eager")(x)
    g = distinct(plain.shape)
    assert torch.equal(compiled, plain)
    assert torch.equal(*(torch.autograd.grad(y, x, g)[0] for y in (compiled, plain)))
    made = tower(case, small(case))
    names = ("jvp", "hessian", "vmap of grad")
    got = torch.compile(lambda: [made[name]() for name in names], fullgraph=True, backend="aot_eager")()
    for name, value in zip(names, got, strict=True):
        torch.testing.assert_close(value, made[name](), rtol=0, atol=0, msg=lambda text, name=name: f"{name}: {text}")


def _torch_pools():
    """Return the pools of `towers` that poolgrad.torch has, by name: with torch's tensors, and in exact numbers."""
    drawn = {seed: axis.pairs() for seed, axis in towers.DRAWN.items()}

    def up(y, pairs):
        rows = torch.zeros(len(pairs), towers.N, dtype=torch.float64)
        for i, (a, b) in enumerate(pairs):
            rows[i, a:b] = 1
        return y @ rows

    def unpool(reduce):
        def run(x):
            y, where = pgt.max_pool1d(x, 2, 1, padding="same", return_indices=True)
            return pgt.max_unpool1d(y * 2.0, where, 1, reduce=reduce, output_size=(towers.N,))

        return run

    adapted = towers.ADAPTED.axes[0].pairs()
    made = {
        "max first": lambda x: pgt.max_pool1d(x, 2, 1, padding="same"),
        "min first": lambda x: pgt.min_pool1d(x, 2, 1, padding="same"),
        "global max first": lambda x: x * pgt.adaptive_max_pool1d(x, 1),
        "adaptive max": lambda x: up(pgt.adaptive_max_pool1d(x, 3), adapted),
        "adaptive avg": lambda x: up(pgt.adaptive_avg_pool1d(x, 3), adapted),
        "avg": lambda x: pgt.avg_pool1d(x, 2, 1, padding="same", count_include_pad=False),
        "avg padded": lambda x: pgt.avg_pool1d(x, 2, 1, padding="same"),
        "sum": lambda x: pgt.avg_pool1d(x, 3, 1, padding="same", divisor_override=1),
        "global avg": lambda x: x - pgt.adaptive_avg_pool1d(x, 1),
        "global sum": lambda x: x * pgt.avg_pool1d(x, towers.N, divisor_override=1),
        "unpool sum True": unpool("sum"),
        "unpool assign True": unpool("assign"),
    }
    for seed, pairs in drawn.items():
        for kind in ("max", "avg"):
            pool = getattr(pgt, f"fractional_{kind}_pool1d")
            made[f"fractional {kind} {seed}"] = lambda x, p=pool, s=seed, w=pairs: up(p(x, output_size=2, seed=s), w)
    return {name: (lambda x, f=f: f(x[None, None])[0, 0], towers.POOLS[name][1]) for name, f in made.items()}


class OnTorch(towers.Taped):
    """A run of a program of `towers` with poolgrad.torch."""

    def run(self, expression, scope):
        if expression[0] == "const":
            return torch.tensor(expression[1], dtype=torch.float64)
        if expression[0] in towers.DERIVATIVES:
            return self.derive(expression, scope)
        return super().run(expression, scope)

    def derive(self, expression, scope):
        kind, own, body, at, direction = expression

        def f(x):
            return self.run(body, {**scope, own: x})

        x, v = self.run(at, scope), self.run(direction, scope)
        if kind == "grad":
            return grad(lambda u: f(u).sum())(x)
        if kind.startswith("jvp"):
            return jvp(f, (x,), (v,))[kind == "jvp"]
        _, back = vjp(f, x)
        return back(v)[0] if kind == "vjp" else back(v * 0.5)[0] + back(v * 0.5)[0]


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_nested_derivatives_are_those_of_exact_numbers(first, forced, monkeypatch):
    monkeypatch.setattr(towers, "POOLS", _torch_pools())
    monkeypatch.setattr(towers, "OPERATIONS", tuple(o for o in towers.OPERATIONS if o != "operator"))
    for seed in range(first, first + 20):
        made, wanted = towers.program(seed)
        got = OnTorch().run(made, {}).tolist()
        assert got == pytest.approx(wanted, rel=1e-12, abs=1e-12), made


# ---- tensors that the host cannot read


AWAY = "meta"  # the only other device on which autograd runs everywhere


class Elsewhere(torch.Tensor):
    """A tensor that says it is on another device; its cells lie in a CPU tensor, which only operations on it may read."""

    cells: torch.Tensor
    seen: ClassVar[set[str]] = set()

    @staticmethod
    def __new__(cls, cells):
        return torch.Tensor._make_wrapper_subclass(
            cls, cells.shape, strides=cells.stride(), dtype=cells.dtype, device=AWAY, requires_grad=cells.requires_grad
        )

    def __init__(self, cells):
        self.cells = cells.detach()

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func.namespace == "poolgrad":
            return _work(func, args, kwargs)
        name = func._schema.name
        cls.seen.add(name)
        leaves = torch.utils._pytree.tree_leaves((args, kwargs))
        assert name not in ("aten::_local_scalar_dense", "aten::item", "aten::equal"), "the host reads a cell"
        assert "scatter" not in name
        assert "index_put" not in name
        if "device" in kwargs:
            assert torch.device(kwargs["device"]).type == AWAY, "cells go to the host"
            kwargs["device"] = "cpu"
        for t in leaves:
            assert not isinstance(t, torch.Tensor) or isinstance(t, Elsewhere) or t.ndim == 0, "tensors on two devices"
        inner = torch.utils._pytree.tree_map_only(Elsewhere, lambda t: t.cells, (args, kwargs))
        return torch.utils._pytree.tree_map_only(torch.Tensor, Elsewhere, func(*inner[0], **inner[1]))


@pytest.fixture
def elsewhere(monkeypatch):
    """Make tables of windows on the device that does not exist."""
    monkeypatch.setattr(_portable, "_tensor", partial(_moved, _portable._tensor))
    for name in ("arange", "tensor", "zeros"):
        monkeypatch.setattr(torch, name, partial(_moved, getattr(torch, name)))
    Elsewhere.seen = set()
    _portable._known.cache_clear()
    yield Elsewhere
    _portable._known.cache_clear()


def _moved(make, *words, device=None, **named):
    if len(words) == 2 and isinstance(words[1], torch.device):
        words, device = words[:1], words[1]
        return Elsewhere(make(*words, torch.device("cpu"))) if device.type == AWAY else make(*words, device)
    if device is not None and torch.device(device).type == AWAY:
        return Elsewhere(make(*words, device="cpu", **named))
    return make(*words, **named) if device is None else make(*words, device=device, **named)


@every_case
def test_a_tensor_on_another_device_is_pooled_there(case, elsewhere):
    if "unpool" in case.name:
        pytest.skip("the case makes its indices on the CPU; see below")
    x = distinct(case.shape)
    y = case.pool(elsewhere(x))
    assert isinstance(y, Elsewhere)
    assert y.device.type == AWAY
    torch.testing.assert_close(y.cells, case.pool(x))
    x.requires_grad_()
    z = elsewhere(x.detach()).requires_grad_()
    y, wanted = case.pool(z), case.pool(x)
    g = distinct(wanted.shape)
    (dz,) = torch.autograd.grad(y, z, elsewhere(g), create_graph=True)
    torch.testing.assert_close(dz.cells, torch.autograd.grad(wanted, x, g)[0].detach())
    assert elsewhere.seen


def test_positions_and_unpooling_stay_on_the_device(elsewhere):
    x = distinct((2, 2, 6, 6))
    wanted, at = pgt.max_pool2d(x, 3, 2, return_indices=True)
    y, where = pgt.max_pool2d(elsewhere(x), 3, 2, return_indices=True)
    assert torch.equal(where.cells, at)
    for reduce in ("sum", "assign"):
        made = pgt.max_unpool2d(y, where, 3, 2, output_size=(6, 6), reduce=reduce)
        assert torch.equal(made.cells, pgt.max_unpool2d(wanted, at, 3, 2, output_size=(6, 6), reduce=reduce))
    with pytest.raises(ValueError, match="max_unpool2d: indices: got a tensor on cpu, wanted one on meta"):
        pgt.max_unpool2d(y, at, 3, 2)


@every_case
def test_meta_tensors_have_shapes_dtypes_and_layouts(case):
    if "unpool" in case.name:
        pytest.skip("the case makes its indices on the CPU")
    for x in (distinct(case.shape), distinct(case.shape).movedim(1, -1).contiguous().movedim(-1, 1)):
        wanted = case.pool(x)
        for dtype in (torch.float32, torch.bfloat16):
            got = case.pool(x.to(dtype).to("meta").requires_grad_())
            assert (got.shape, got.stride(), got.dtype, got.device.type) == (
                wanted.shape,
                wanted.stride(),
                dtype,
                "meta",
            )
    z = x.to("meta").requires_grad_()
    (dx,) = torch.autograd.grad(case.pool(z).sum(), z)
    assert (dx.shape, dx.stride()) == (x.shape, x.stride())


@every_case
def test_fake_tensors_on_other_devices_have_shapes_dtypes_and_layouts(case):
    if "unpool" in case.name:
        pytest.skip("the case makes its indices on the CPU")
    wanted = case.pool(distinct(case.shape))
    for device in ("cuda", "xpu"):  # without a graph: torch's autograd ends the process if it lacks the device
        with FakeTensorMode():
            y = case.pool(torch.empty(case.shape, device=device, dtype=torch.float16))
        assert (y.shape, y.dtype, y.device.type) == (wanted.shape, torch.float16, device)


def test_random_windows_are_drawn_on_the_host_whatever_the_default_device_is():
    x = torch.arange(40.0).reshape(1, 1, 40)
    torch.manual_seed(3)
    wanted = pgt.fractional_max_pool1d(x, output_ratio=0.6), pgt.fractional_max_pool1d(x, 2, output_ratio=0.6)
    torch.manual_seed(3)
    try:
        torch.set_default_device("meta")
        got = pgt.fractional_max_pool1d(x, output_ratio=0.6), pgt.fractional_max_pool1d(x, 2, output_ratio=0.6)
    finally:
        torch.set_default_device(None)
    assert torch.equal(got[0], wanted[0])
    assert torch.equal(got[1], wanted[1])


def test_a_module_in_a_network_has_hessian_vector_products(forced):
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), pgt.FractionalAvgPool2d(output_ratio=0.7, seed=1)).double()
    weights = {name: w.detach() for name, w in net.named_parameters()}
    x = distinct((2, 1, 8, 8))
    loss = lambda w: functional_call(net, w, x).square().sum()  # noqa: E731
    direction = {name: torch.ones_like(w) for name, w in weights.items()}
    _, product = jvp(grad(loss), (weights,), (direction,))
    again = grad(lambda w: sum((g * direction[name]).sum() for name, g in grad(loss)(w).items()))(weights)
    for name in weights:
        torch.testing.assert_close(product[name], again[name])
        assert product[name].abs().sum() > 0


def test_the_switch_goes_back_and_nests():
    x = torch.tensor([[[1.0, 3.0, 2.0]]])
    with _portable.forced(), _portable.forced():
        assert _portable.serves(x)
    assert not _portable.serves(x)
    assert torch.equal(pgt.max_pool1d(x, 2), torch.tensor([[[3.0]]]))


def test_a_batch_is_one_call_for_each_set_of_windows(forced):
    x = distinct((3, 2, 8, 8))
    torch.manual_seed(1)
    pool = lambda x: pgt.fractional_max_pool2d(x, output_ratio=0.7, return_indices=True)  # noqa: E731
    y, where = vmap(pool, randomness="different")(x)
    assert torch.equal(x.flatten(-2).gather(-1, where.flatten(-2)).reshape(y.shape), y)


def test_numbers_are_those_of_numpy_too(forced):
    x = distinct((2, 3, 9, 8), torch.float32)
    assert torch.equal(pgt.avg_pool2d(x, 3, 2), torch.from_numpy(pg.avg_pool(x.numpy(), 3, 2, axes=(2, 3))))
