"""poolgrad.torch beside the derivatives: operators that pass opcheck, memory shared and formats kept, dtypes, errors, modules."""

import copy
import inspect
import pickle
import re

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test installs it where it can")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch_cases import CASES, FAMILIES, NAMES, distinct  # noqa: E402

import poolgrad as pg  # noqa: E402
import poolgrad.torch as pgt  # noqa: E402
from poolgrad._kernels import native  # noqa: E402
from poolgrad.torch import _arguments, _custom_ops, _tensors, functional  # noqa: E402

every_case = pytest.mark.parametrize("case", CASES, ids=NAMES)
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


def last(x):
    """Return x with its channels behind the pooled axes in memory."""
    return x.movedim(1, -1).contiguous().movedim(-1, 1)


def operators():
    """Yield a call of every operator, with every kind of windows."""
    x = distinct((2, 2, 7, 6), torch.float32)
    windows = _custom_ops.draw(torch.tensor([1, 2]), (7, 6), (4, 4), False, True)
    sliding = _arguments.sliding(x, 2, 3, 2, 1)
    same = _arguments.sliding(last(x), 2, 3, 2, "same")
    shared, drawn = _arguments.sharing(x, 2, (3, 2)), _arguments.drawn(x, 2, (4, 4), None)
    for name, geometry, rows in (
        ("sliding", sliding, None),
        ("same", same, None),
        ("shared", shared, None),
        ("drawn", drawn, windows),
    ):
        y, taps = _custom_ops.choose(x, rows, False, *geometry)
        yield f"choose {name}", _custom_ops.choose, (x, rows, False, *geometry)
        yield f"positions {name}", _custom_ops.positions, (taps, rows, x.shape, *geometry)
        for kind, index in (("taps", taps), ("mean", None), ("sum", None)):
            yield f"apply {kind} {name}", _custom_ops.apply, (x, index, rows, kind, 2.0, False, x.shape, *geometry)
            yield f"transposed {kind} {name}", _custom_ops.apply, (y, index, rows, kind, 2.0, True, x.shape, *geometry)
    y, where = pgt.max_pool2d(x, 2, return_indices=True)
    for kind in ("add", "assign"):
        yield f"apply {kind}", _custom_ops.apply, (y, where, None, kind, 1.0, True, x.shape, *_tensors.TorchWindows(2))
        yield (
            f"transposed {kind}",
            _custom_ops.apply,
            (x, where, None, kind, 1.0, False, x.shape, *_tensors.TorchWindows(2)),
        )
    yield "draw", _custom_ops.draw, (torch.tensor([1, 2]), (7, 6), (4, 4), True, False)


OPERATORS = {name: (op, args) for name, op, args in operators()}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_pass_opcheck(name):
    op, args = OPERATORS[name]
    result = torch.library.opcheck(op, args)
    assert set(result.values()) == {"SUCCESS"}


@every_case
def test_both_memory_formats_are_kept_and_give_the_same_numbers(case):
    x = distinct(case.shape).requires_grad_()
    z = last(x.detach()).requires_grad_()
    y, w = case.pool(x), case.pool(z)
    assert torch.equal(y, w)
    g = distinct(y.shape)
    dx, dz = torch.autograd.grad(y, x, g)[0], torch.autograd.grad(w, z, g)[0]
    assert torch.equal(dx, dz)
    assert y.is_contiguous()
    assert dx.is_contiguous()
    if "unpool" not in case.name:
        assert w.movedim(1, -1).is_contiguous()
        assert dz.movedim(1, -1).is_contiguous()


@pytest.mark.parametrize("layout", ["contiguous", "channels last"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.uint8])
def test_nothing_is_copied_on_the_way_there_and_back(monkeypatch, layout, dtype):
    x = distinct((2, 3, 8, 10), dtype)
    x = last(x) if layout == "channels last" else x
    seen = []

    def select(plan, start, array, **words):
        y = own(plan, start, array, **words)
        seen.extend((array.__array_interface__["data"][0], y.__array_interface__["data"][0]))
        return y

    own = native.select
    monkeypatch.setattr(native, "select", select)
    y = pgt.max_pool2d(x, 2)
    assert seen == [x.data_ptr(), y.data_ptr()]


INTEGERS = [
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.bool,
]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_maxima_of_integers_in_every_rank(dtype, rank):
    x = torch.arange(2 * 4**rank).reshape(1, 2, *[4] * rank).to(dtype)
    y = getattr(pgt, f"max_pool{rank}d")(x, 2)
    assert y.dtype == dtype
    assert torch.equal(y.to(torch.int64), torch.as_tensor(getattr(pgt, f"max_pool{rank}d")(x.to(torch.int64), 2)))


def test_means_of_integers_are_cut_off_toward_zero_as_torchs():
    x = torch.arange(-9, 7).reshape(1, 1, 4, 4)
    assert torch.equal(pgt.avg_pool2d(x, 2), torch.nn.functional.avg_pool2d(x, 2))
    assert pgt.avg_pool2d(x.to(torch.int8), 2).dtype == torch.int8


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint64])
@pytest.mark.parametrize("value", [2**53 + 1, 2**62 + 3, 2**63 - 1])
def test_means_of_integers_are_exact_beyond_what_float64_holds(value, dtype):
    x = torch.tensor([[[value, value, value, value - 2]]]).to(dtype)
    assert pgt.avg_pool1d(x, 2).tolist() == [[[value, value - 1]]]
    assert pgt.avg_pool1d(x, 3, 1, padding=1).tolist() == [
        [[2 * value // 3, value, (3 * value - 2) // 3, (2 * value - 2) // 3]]
    ]
    assert pgt.avg_pool2d(x[None], (1, 2), divisor_override=4).tolist() == [[[[value // 2, (2 * value - 2) // 4]]]]
    if dtype == torch.int64:
        assert pgt.adaptive_avg_pool1d(-x, 1).tolist() == [[[-((4 * value - 2) // 4)]]]


def test_integers_divided_by_less_than_one_are_exact_or_refused():
    x = torch.full((1, 1, 1, 4), 100, dtype=torch.int8)
    assert pgt.avg_pool2d(x, (1, 2), divisor_override=2.5).tolist() == [[[[80, 80]]]]
    with pytest.raises(
        ValueError, match=r"avg_pool2d: input: got int8 for a mean of 200.* wanted a mean from -128 to 127"
    ):
        pgt.avg_pool2d(x, (1, 2), divisor_override=1)


def test_a_large_mean_of_halves_is_exact():
    for dtype in (torch.float16, torch.bfloat16):
        x = torch.ones(1, 1, 64, 64, dtype=dtype)
        assert pgt.avg_pool2d(x, 64).item() == 1
        assert pgt.adaptive_avg_pool2d(x, 1).item() == 1


@pytest.mark.parametrize("layout", ["contiguous", "channels last"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_norm_of_halves_is_added_up_in_float32_and_rounded_once(dtype, layout):
    x = torch.tensor([300.0, 400.0, 3e-4, 4e-4]).to(dtype).reshape(1, 1, 2, 2).repeat(1, 2, 1, 1)
    x = (last(x) if layout == "channels last" else x).requires_grad_()
    y = pgt.lp_pool2d(x, 2, (1, 2))
    assert torch.equal(y, x.detach().double().square().sum(-1, keepdim=True).sqrt().to(dtype))
    (dx,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(dx.double(), x.detach().double() / y.detach().double(), rtol=2**-7, atol=0)
    assert dx.stride() == x.stride()


def test_empty_batches_and_inputs_without_a_batch():
    assert pgt.max_pool2d(torch.zeros(0, 3, 4, 4), 2).shape == (0, 3, 2, 2)
    x = distinct((3, 4, 4))
    assert torch.equal(pgt.avg_pool2d(x, 2), pgt.avg_pool2d(x[None], 2)[0])
    assert torch.equal(pgt.max_pool2d(x.permute(0, 2, 1), 2), pgt.max_pool2d(x.permute(0, 2, 1).contiguous(), 2))


def test_windows_of_more_than_256_cells_have_taps_of_four_bytes():
    x = distinct((1, 1, 40, 40)).requires_grad_()
    y, where = pgt.adaptive_max_pool2d(x, 1, return_indices=True)
    assert where.item() == x.argmax()
    assert torch.autograd.grad(y, x)[0].flatten()[where.item()] == 1


@pytest.mark.parametrize("pool", ["max", "min", "mean", "adaptive max", "adaptive mean"])
def test_windows_of_more_than_256_cells_keep_the_dtype_of_uint32(pool):
    x = (torch.arange(400) + 2**32 - 400).to(torch.uint32).reshape(1, 1, 20, 20)
    run = {
        "max": lambda x: pgt.max_pool2d(x, 20),
        "min": lambda x: pgt.min_pool2d(x, 20),
        "mean": lambda x: pgt.avg_pool2d(x, 20),
        "adaptive max": lambda x: pgt.adaptive_max_pool2d(x, 1),
        "adaptive mean": lambda x: pgt.adaptive_avg_pool2d(x, 1),
    }[pool]
    y = run(x)
    assert y.dtype == torch.uint32
    assert y.item() == run(x.to(torch.int64)).item()


NUMPY = {
    "kernel 0": (lambda x: pg.max_pool(x, 0, axes=(2, 3)), lambda x: pgt.max_pool2d(x, 0)),
    "kernel 2.5": (lambda x: pg.max_pool(x, 2.5, axes=(2, 3)), lambda x: pgt.max_pool2d(x, 2.5)),
    "kernel True": (lambda x: pg.max_pool(x, True, axes=(2, 3)), lambda x: pgt.max_pool2d(x, True)),
    "three kernels": (lambda x: pg.max_pool(x, (2, 2, 2), axes=(2, 3)), lambda x: pgt.max_pool2d(x, (2, 2, 2))),
    "stride 0": (lambda x: pg.max_pool(x, 2, 0, axes=(2, 3)), lambda x: pgt.max_pool2d(x, 2, 0)),
    "padding word": (
        lambda x: pg.max_pool(x, 2, padding="full", axes=(2, 3)),
        lambda x: pgt.max_pool2d(x, 2, padding="full"),
    ),
    "padding": (lambda x: pg.max_pool(x, 2, padding=2, axes=(2, 3)), lambda x: pgt.max_pool2d(x, 2, padding=2)),
    "size": (lambda x: pg.adaptive_max_pool(x, -1, axes=(2, 3)), lambda x: pgt.adaptive_max_pool2d(x, -1)),
    "norm": (lambda x: pg.lp_pool(x, 2, p=0, axes=(2, 3)), lambda x: pgt.lp_pool2d(x, 0, 2)),
    "complex": (lambda x: pg.max_pool(x.astype(complex), 2, axes=(2, 3)), lambda x: pgt.max_pool2d(x.cdouble(), 2)),
}


@pytest.mark.parametrize("name", NUMPY)
def test_bad_words_get_the_error_of_numpy_in_torchs_names(name):
    ours, adapted = NUMPY[name]
    x = np.zeros((1, 2, 6, 6))
    with pytest.raises((ValueError, TypeError)) as wanted:
        ours(x)
    with pytest.raises(wanted.type) as got:
        adapted(torch.from_numpy(x))
    argument, text = str(wanted.value).split(": ", 2)[1:]
    names = {
        "window": "kernel_size",
        "divisor": "divisor_override",
        "size": "output_size",
        "p": "norm_type",
        "x": "input",
    }
    assert str(got.value).split(": ", 2)[1:] == [names.get(argument, argument), text]
    assert str(got.value).split(": ")[0].endswith("2d")
    assert [found.argument for found in got.value.findings] == [names.get(argument, argument)]


def test_errors_have_the_words_that_the_caller_used():
    for kernels in ([2, 2, 2], (2, 2, 2)):
        with pytest.raises(ValueError, match=re.escape(f"max_pool2d: kernel_size: got {kernels}, wanted one window")):
            pgt.max_pool2d(torch.zeros(1, 1, 4, 4), kernels)


@pytest.mark.parametrize(
    "x", [[1.0], torch.zeros(4, 4), torch.zeros(1, 1, 1, 4, 4)], ids=["a list", "2 axes", "5 axes"]
)
def test_what_is_no_image_is_refused(x):
    with pytest.raises((TypeError, ValueError), match=r"max_pool2d: input: got .*, wanted"):
        pgt.max_pool2d(x, 2)


def test_positions_outside_their_plane_are_refused():
    with pytest.raises(ValueError, match=r"max_unpool1d: indices: got 9 at \[0, 0, 1\], wanted positions from 0 to 3"):
        pgt.max_unpool1d(torch.ones(1, 1, 2), torch.tensor([[[0, 9]]]), 2)


MODULES = {
    "MaxPool": {"kernel_size": 3, "stride": 2, "padding": "same"},
    "MinPool": {"kernel_size": 2},
    "AvgPool": {"kernel_size": 2, "padding": 1},
    "LPPool": {"norm_type": 2, "kernel_size": 2},
    "AdaptiveMaxPool": {"output_size": 2},
    "AdaptiveAvgPool": {"output_size": 2},
    "FractionalMaxPool": {"output_ratio": 0.7, "seed": 5},
    "FractionalAvgPool": {"output_ratio": 0.7, "seed": 5, "overlapping": True},
}


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("name", MODULES)
def test_modules_have_no_state_and_survive_pickling(name, rank):
    module = getattr(pgt, f"{name}{rank}d")(**MODULES[name])
    x = distinct((2, 2, *[6] * rank))
    again = pickle.loads(pickle.dumps(copy.deepcopy(module)))
    assert not module.state_dict()
    assert torch.equal(module(x), again(x))
    assert repr(module) == repr(again)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("name", [n for n in MODULES if not n.startswith(("Min", "Fractional"))])
def test_modules_are_of_torchs_kind_and_print_as_torchs(name, rank):
    words = {**MODULES[name], **({"padding": 1} if name == "MaxPool" else {})}
    ours, own = (getattr(module, f"{name}{rank}d")(**words) for module in (pgt, torch.nn))
    x = distinct((2, 2, *[6] * rank)).abs()
    assert isinstance(ours, type(own))
    assert repr(ours) == repr(own)
    torch.testing.assert_close(ours(x), own(x))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_unpooling_modules_undo_disjoint_pools_as_torchs(rank):
    x = distinct((2, 2, *[6] * rank))
    y, where = getattr(pgt, f"MaxPool{rank}d")(2, return_indices=True)(x)
    ours, own = (getattr(module, f"MaxUnpool{rank}d")(2) for module in (pgt, torch.nn))
    assert torch.equal(ours(y, where), own(y, where))
    assert repr(ours) == repr(own)


def test_fractional_modules_draw_from_torchs_generator():
    x = torch.arange(60.0).reshape(1, 1, 60)
    for drawn in ({}, {"kernel_size": 2}, {"overlapping": True, "pseudo_random": True}):
        pool = pgt.FractionalMaxPool1d(output_ratio=0.6, **drawn)
        torch.manual_seed(7)
        first, second = pool(x), pool(x)
        torch.manual_seed(7)
        assert torch.equal(pool(x), first)
        assert not torch.equal(first, second)


@pytest.mark.parametrize("starts", [(1, 1, 1), (0, 1, 1), (1, 1, 2), (0, 0, 2), (2, 2, 2)])
def test_windows_of_one_cell_read_the_cell_that_they_name(starts):
    x = distinct((1, 2, 3, 4)).requires_grad_()
    windows = [[(a, a + 1) for a in starts], [(0, 4)]]
    wanted = torch.stack([x[:, :, a].amax(-1) for a in starts], 2)[..., None]
    for pool, like in ((pgt.fractional_max_pool2d, wanted), (pgt.fractional_avg_pool2d, None)):
        like = torch.stack([x[:, :, a].mean(-1) for a in starts], 2)[..., None] if like is None else like
        y = pool(x, windows=windows)
        torch.testing.assert_close(y, like)
        g = distinct(y.shape)
        torch.testing.assert_close(torch.autograd.grad(y, x, g)[0], torch.autograd.grad(like, x, g)[0])


def test_supplied_windows_leave_nothing_to_chance():
    x = distinct((2, 2, 8, 9))
    windows = pg.fractional_windows((8, 9), (1.5, 1.4), seed=3, overlapping=True)
    wanted = pg.max_pool(x.numpy(), list(windows), axes=(2, 3))
    assert torch.equal(pgt.fractional_max_pool2d(x, windows=windows), torch.from_numpy(wanted))
    pairs = [axis.pairs() for axis in windows]
    assert torch.equal(
        pgt.fractional_avg_pool2d(x, windows=pairs), torch.from_numpy(pg.avg_pool(x.numpy(), pairs, axes=(2, 3)))
    )


def test_a_seed_gives_the_windows_of_tensorflows_seeds():
    x = distinct((1, 1, 10, 7))
    wanted = pg.fractional_max_pool(x.numpy(), size=(6, 4), seed=(1, 2), axes=(2, 3))
    assert torch.equal(pgt.fractional_max_pool2d(x, output_size=(6, 4), seed=(1, 2)), torch.from_numpy(wanted))


@pytest.mark.parametrize("family", [f for f in FAMILIES if f not in ("min_pool", "fractional_avg_pool")])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_arguments_come_in_torchs_order_with_torchs_defaults(family, rank):
    own = getattr(torch.nn.functional, f"{family}{rank}d", None)
    try:
        wanted = inspect.signature(own) if own is not None else None
    except ValueError:
        wanted = None
    if wanted is None or "args" in wanted.parameters:
        pytest.skip("torch's own has no signature to read")
    ours = inspect.signature(getattr(pgt, f"{family}{rank}d")).parameters
    assert [p for p in ours if ours[p].kind != ours[p].KEYWORD_ONLY][: len(wanted.parameters)] == list(
        wanted.parameters
    )


def test_the_differences_from_torch_that_the_page_lists():
    own = torch.nn.functional
    x = torch.tensor([[[0.0, float("nan"), float("nan"), 1.0]]])
    assert pgt.max_pool1d(x, 4, return_indices=True)[1].item() == 1
    assert own.max_pool1d(x, 4, return_indices=True)[1].item() == 2
    assert pgt.max_pool2d(torch.zeros(1, 1, 3, 3), 4).shape == (1, 1, 0, 0)
    with pytest.raises(RuntimeError, match="too small"):
        own.max_pool2d(torch.zeros(1, 1, 3, 3), 4)
    assert pgt.max_pool1d(torch.zeros(1, 1, 4), 4, padding=3).shape == (1, 1, 2)
    with pytest.raises(RuntimeError, match="at most half"):
        own.max_pool1d(torch.zeros(1, 1, 4), 4, padding=3)


class Seen(TorchDispatchMode):
    """A mode that records the operators of poolgrad that torch dispatches."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names += [func.name()] if "poolgrad" in func.name() else []
        return func(*args, **(kwargs or {}))


def test_whoever_looks_on_sees_every_operator():
    x = distinct((1, 2, 6, 6)).requires_grad_()
    with Seen() as seen:
        y, _ = pgt.max_pool2d(x, 2, return_indices=True)
        y.sum().backward()
        pgt.fractional_avg_pool2d(x, output_ratio=0.7)
    assert seen.names == [f"poolgrad::{name}" for name in ("choose", "positions", "apply", "draw", "apply")]
    assert torch.equal(make_fx(lambda x: pgt.max_pool2d(x, 2))(x.detach())(-x.detach()), pgt.max_pool2d(-x.detach(), 2))


def test_only_plain_tensors_that_nothing_looks_at_go_past_the_dispatcher():
    x, found = torch.zeros(2, 3), []
    assert _tensors.unwatched(x)
    assert _tensors.unwatched(torch.nn.Parameter(x))
    with torch.inference_mode():
        assert _tensors.unwatched(x)
        assert _tensors.unwatched(torch.zeros(1))
    assert not _tensors.unwatched(x.to("meta"))
    assert not _tensors.unwatched(torch._neg_view(x))
    note = lambda t: found.append(_tensors.unwatched(t)) or t * 1  # noqa: E731
    torch.func.vmap(note)(x)
    torch.func.grad(lambda t: note(t).sum())(x)
    torch._vmap_internals._vmap(note)(x)
    torch.jit.trace(note, (x,), check_trace=False)
    make_fx(note)(x)
    assert found
    assert not any(found)


def test_words_that_are_remembered_are_not_taken_for_others_that_are_equal():
    x = distinct((1, 1, 4, 4))
    for good, bad in ((1, True), ((1, 1), (True, 1)), (2, 2.0)):
        assert torch.equal(pgt.max_pool2d(x, good), pgt.max_pool2d(x, good))
        for pool in (pgt.max_pool2d, pgt.adaptive_max_pool2d):
            pool(x, good)
            with pytest.raises((TypeError, ValueError), match="got"):
                pool(x, bad)


@pytest.mark.parametrize("words", [(3, 2, 1), ((3, 2), (2, 1)), (2, None, "same")], ids=str)
def test_a_repeated_call_resolves_no_arguments(monkeypatch, words):
    seen = []

    def sliding(x, *words):
        seen.append(words)
        return own(x, *words)

    own = functional.sliding
    monkeypatch.setattr(functional, "sliding", sliding)
    x = distinct((1, 2, 9, 11)).requires_grad_()
    for layout, times in ((lambda x: x, 1), (last, 2)):
        for _ in range(3):
            pgt.max_pool2d(layout(x), *words).sum().backward()
            pgt.max_pool2d(layout(x.detach()), *words)
        assert len(seen) == times


def test_arguments_by_name_are_not_taken_for_others():
    x = distinct((1, 1, 6, 6))
    shapes = lambda: [  # noqa: E731
        pgt.max_pool2d(x, 2, 1).shape,
        pgt.max_pool2d(x, 2, padding=1).shape,
        pgt.max_pool2d(x, 2, dilation=1).shape,
        pgt.max_pool2d(x, stride=1, kernel_size=2).shape,
        pgt.max_pool2d(input=x, kernel_size=1, stride=2).shape,
    ]
    wanted = [(1, 1, 5, 5), (1, 1, 4, 4), (1, 1, 3, 3), (1, 1, 5, 5), (1, 1, 3, 3)]
    assert shapes() == wanted
    assert shapes() == wanted
    with pytest.raises((TypeError, ValueError), match=r"max_pool2d: (stride|padding): got"):
        pgt.max_pool2d(x, 2, "stride", 1)


def test_a_list_that_changes_between_calls_is_read_again():
    x, kernel = distinct((1, 1, 6, 6)), [2, 2]
    assert pgt.max_pool2d(x, kernel).shape == (1, 1, 3, 3)
    kernel[:] = 3, 3
    assert pgt.max_pool2d(x, kernel).shape == (1, 1, 2, 2)


def test_memory_that_is_not_aligned_and_numbers_that_are_nan_take_the_longer_way():
    for dtype in (torch.float32, torch.float64):
        values = distinct((1, 2, 4, 6), dtype)
        data = bytearray(b"0" + values.numpy().tobytes())
        x = torch.frombuffer(data, dtype=dtype, offset=1).reshape(values.shape)
        holed = values.clone()
        holed[0, 0, 1, 1] = float("nan")
        for pool in (pgt.max_pool2d, pgt.min_pool2d, pgt.avg_pool2d):
            assert torch.equal(pool(x, 2), pool(values, 2))
            y = pool(values, 2)
            g = torch.frombuffer(bytearray(b"0" + y.numpy().tobytes()), dtype=dtype, offset=1).reshape(y.shape)
            v, w = (t.clone().requires_grad_() for t in (x, values))
            pool(v, 2).backward(g)
            (dx,) = torch.autograd.grad(pool(w, 2), w, y)
            assert torch.equal(v.grad, dx)
            assert torch.isnan(pool(holed, 2)).sum() == 1
            assert torch.isnan(pool(holed.requires_grad_(), 2)).sum() == 1
            holed = holed.detach()


@pytest.mark.parametrize("pool", ["max", "max with indices", "mean", "padded mean", "norm", "adaptive"])
def test_a_graph_that_is_gone_cannot_be_used_again(pool):
    x = distinct((1, 2, 6, 6)).requires_grad_()
    y = {
        "max": lambda: pgt.max_pool2d(x, 2),
        "max with indices": lambda: pgt.max_pool2d(x, 2, return_indices=True)[0],
        "mean": lambda: pgt.avg_pool2d(x, 2),
        "padded mean": lambda: pgt.avg_pool2d(x, 3, 2, 1),
        "norm": lambda: pgt.lp_pool2d(x, 2, 2),
        "adaptive": lambda: pgt.adaptive_avg_pool2d(x, 2),
    }[pool]()
    g = torch.ones_like(y)
    y.backward(g, retain_graph=True)
    first = x.grad.clone()
    y.backward(g)
    assert torch.equal(x.grad, 2 * first)
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward(g)


def test_checkpoints_compute_a_pool_again():
    from torch.utils.checkpoint import checkpoint

    x = distinct((1, 2, 5, 7)).requires_grad_()
    for pool in (lambda x: pgt.max_pool2d(x, 2), lambda x: pgt.avg_pool2d(x, 2), lambda x: pgt.lp_pool2d(x, 2, 2)):
        (wanted,) = torch.autograd.grad(pool(x).square().sum(), x)
        for _ in range(2):  # the second call finds the pool of the first
            y = checkpoint(pool, x, use_reentrant=False)
            assert torch.equal(torch.autograd.grad(y.square().sum(), x)[0], wanted)


def test_taps_that_a_hook_changes_are_checked():
    x = distinct((1, 1, 4, 4)).requires_grad_()
    for change, refused in ((lambda t: t.long().to(torch.uint8), False), (lambda t: t + 4, True)):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, change):
            y = pgt.max_pool2d(x, 2)
        if refused:
            with pytest.raises(ValueError, match=r"a tap at .* outside its window"):
                y.sum().backward()
        else:
            y.sum().backward()
            assert torch.equal(x.grad, torch.autograd.grad(pgt.max_pool2d(x, 2).sum(), x)[0])


def test_only_pools_with_short_tables_are_kept():
    x = torch.zeros(1, 1, 5000)
    pool = functional.best(x, None, False, _arguments.sliding(x, 1, 2, 2, 0), False)
    assert not pool.short()
    assert functional.best(x[..., :64], None, False, _arguments.sliding(x[..., :64], 1, 2, 2, 0), False).short()
    for _ in range(2):
        assert pgt.max_pool1d(x, 2).shape == (1, 1, 2500)


@pytest.mark.parametrize("layout", ["contiguous", "channels last"])
def test_without_a_graph_the_numbers_are_the_same(layout):
    x = distinct((2, 3, 7, 6), torch.float32)
    x = last(x) if layout == "channels last" else x
    wanted = pgt.max_pool2d(x.requires_grad_(), 3, 2, 1)
    assert wanted.grad_fn is not None
    with torch.no_grad():
        assert torch.equal(pgt.max_pool2d(x, 3, 2, 1), wanted)
        assert pgt.max_pool2d(x, 3, 2, 1).stride() == wanted.stride()
    with torch.inference_mode():
        assert pgt.max_pool2d(x, 3, 2, 1).is_inference()
        assert torch.equal(pgt.max_pool2d(x, 3, 2, 1), wanted)


def test_a_byte_per_output_is_held_for_backward():
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        pgt.max_pool2d(torch.randn(1, 1, 8, 8, requires_grad=True), 2)
    assert [(t.dtype, t.numel()) for t in kept] == [(torch.uint8, 16)]
