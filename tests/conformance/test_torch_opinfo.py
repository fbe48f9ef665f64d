"""torch's own samples of its pooling operators, through poolgrad.torch: the same values and gradients, but for a list of differences."""

import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test installs it where it can")
pytest.importorskip(
    "expecttest", reason="expecttest is not installed, without which torch's samples cannot be imported"
)

from differences import listed  # noqa: E402

import poolgrad.torch as pgt  # noqa: E402

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

POOLS = {
    o.name.rpartition(".")[2] + "." * bool(o.variant_test_name) + o.variant_test_name: o
    for o in op_db
    if "pool" in o.name
}
SEVERAL = 7  # step between the samples that are compared, in dtypes other than float32
pytestmark = pytest.mark.filterwarnings("ignore")


def dtypes(info) -> list[torch.dtype]:
    return sorted(info.supported_dtypes("cpu"), key=lambda d: (d != torch.float32, str(d)))


def samples(info, dtype):
    torch.manual_seed(0)
    needs = info.supports_autograd and dtype.is_floating_point
    for i, sample in enumerate(info.sample_inputs("cpu", dtype, requires_grad=needs)):
        if dtype == torch.float32 or i % SEVERAL == 0:
            yield sample


def words(name, sample):
    """Return the arguments; draw the randomness of fractional pools here, once for both."""
    kwargs = dict(sample.kwargs)
    if name.startswith("fractional") and kwargs.get("_random_samples") is None:
        x, rank = sample.input, int(name[-2])
        planes = (1 if x.ndim == rank + 1 else x.shape[0], x.shape[-rank - 1])
        kwargs["_random_samples"] = torch.rand(*planes, rank, dtype=x.dtype if x.dtype.is_floating_point else None)
    return kwargs


# torch adds halves in halves. Compare ours with float64's results: they may be off by one rounding of the result.
HALVES = {torch.float16: {"rtol": 2**-10, "atol": 1e-6}, torch.bfloat16: {"rtol": 2**-7, "atol": 1e-6}}


def close(got, wanted, **tolerance):
    torch.testing.assert_close(got, wanted, check_stride=False, **tolerance)


def cotangent(y):
    return (torch.arange(y.numel()) % 5 - 2).reshape(y.shape).to(y.dtype)


def gradients(y, own, x):
    g = cotangent(own)
    return torch.autograd.grad(y, x, g)[0], torch.autograd.grad(own, x, g)[0]


def exact(info, sample, kwargs):
    """Return the results of the sample in torch's float64."""
    x = sample.input.detach().double().requires_grad_()
    kwargs = {name: value.double() if name == "_random_samples" else value for name, value in kwargs.items()}
    y = info.op(x, *sample.args, **kwargs)
    y = y if isinstance(y, tuple) else (y,)
    return y, torch.autograd.grad(y[0], x, cotangent(y[0]))[0] if y[0].numel() else x


def repeats(sample) -> bool:
    """Return True if indices of an unpooling repeat in a plane."""
    where = sample.args[0].flatten(-(sample.input.ndim - 2) if sample.input.ndim > 2 else -1)
    return any(len(set(plane.tolist())) < plane.numel() for plane in where.reshape(-1, where.shape[-1]))


def compare(name, info, sample) -> str | None:
    """Compare one sample; return its known kind of difference, if it has one."""
    kwargs = words(name, sample)
    ours = getattr(pgt, name)
    more = {"reduce": "assign"} if "unpool" in name else {}
    y = ours(sample.input, *sample.args, **kwargs, **more)
    y = y if isinstance(y, tuple) else (y,)
    if sample.input.dtype in HALVES:
        own, wanted = exact(info, sample, kwargs)
        for got, value in zip(y, own, strict=True):
            close(got.to(value.dtype), value, **HALVES[sample.input.dtype])
        if y[0].numel() and "unpool" not in name:
            (dx,) = torch.autograd.grad(y[0], sample.input, cotangent(y[0]))
            close(dx.double(), wanted, **HALVES[sample.input.dtype])
        return None
    own = info.op(sample.input, *sample.args, **kwargs)
    own = own if isinstance(own, tuple) else (own,)
    for got, wanted in zip(y, own, strict=True):
        close(got, wanted)
    if not own[0].requires_grad or not own[0].numel():
        return None
    dx, wanted = gradients(y[0], own[0], sample.input)
    if "unpool" in name and not torch.equal(dx, wanted):
        assert repeats(sample)
        return "gradient where indices repeat"
    close(dx, wanted)
    return None


FORWARD = [name for name in POOLS if not name.endswith("backward")]


@pytest.mark.parametrize("name", FORWARD)
def test_every_sample_has_torchs_value_and_gradient(name):
    info, found, count = POOLS[name], set(), 0
    op = name.partition(".")[0]
    for dtype in dtypes(info):
        for sample in samples(info, dtype):
            found.add(compare(op, info, sample))
            count += 1
    assert count > 5
    expected = {what for listed_op, what in listed("opinfo") if listed_op == op and "." not in name}
    assert found - {None} == expected


def test_the_samples_of_torchs_backward_operator_are_our_transpose():
    info, count = POOLS["max_pool2d_with_indices_backward"], 0
    for sample in samples(info, torch.float32):
        y, _ = pgt.max_pool2d(sample.input, **{**sample.kwargs, "return_indices": True})
        (dx,) = torch.autograd.grad(y, sample.input, torch.ones_like(y))
        close(dx, info.op(sample.input.detach(), **sample.kwargs))
        count += 1
    assert count > 100


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("norm", [1, 2, 4])
def test_lp_pools_which_have_no_samples_are_torchs_for_even_norms_and_positive_cells(rank, norm):
    torch.manual_seed(0)
    own, ours = (getattr(module, f"lp_pool{rank}d") for module in (torch.nn.functional, pgt))
    for kernel, stride in ((2, None), (3, 2), (2, 1)):
        x = (torch.rand(2, 3, *[6] * rank, dtype=torch.float64) + 0.1).requires_grad_()
        y, wanted = ours(x, norm, kernel, stride), own(x, norm, kernel, stride)
        close(y, wanted)
        close(*gradients(y, wanted, x))


def test_odd_norms_of_negative_cells_are_norms_and_torchs_are_not():
    x = torch.tensor([[[-2.0, 1.0]]])
    assert pgt.lp_pool1d(x, 3, 2).item() == pytest.approx(9 ** (1 / 3))
    assert torch.nn.functional.lp_pool1d(x, 3, 2).isnan().all()


def test_windows_cut_off_by_ceil_mode_are_not_scaled_up_as_torchs_are():
    x = torch.ones(1, 1, 3)
    assert pgt.lp_pool1d(x, 1, 2, ceil_mode=True).tolist() == [[[2.0, 1.0]]]
    assert torch.nn.functional.lp_pool1d(x, 1, 2, ceil_mode=True).tolist() == [[[2.0, 2.0]]]
