"""Many images of one channel: rows in two and three parts, items that lie flat, taps of whole images, quotients by products."""

import ml_dtypes
import numpy as np
import pytest
from support import plain_verbs

import poolgrad
from poolgrad import _core, reference
from poolgrad._kernels import native
from poolgrad._ops.semantics import Mean, Share, Start
from poolgrad.windows import Plan, sliding_axis

REAL = [np.dtype(t) for t in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)]


def pool(items: int, sizes: tuple[int, ...], window: tuple[int, ...], strides: tuple[int, ...], pad: int) -> Plan:
    axes = {}
    for d, (n, k, s) in enumerate(zip(sizes, window, strides, strict=True)):
        p = min(pad, k - 1)
        axes[d + 1] = sliding_axis(n, k, s, p, (n + 2 * p - k) // s + 1)
    return Plan((items, *sizes), axes)


PLANS = {
    "threes": pool(40, (5, 61), (3, 2), (2, 3), 0),
    "threes, windows longer than strides": pool(17, (6, 100), (3, 5), (2, 3), 2),
    "threes, one row": pool(18, (149,), (4,), (3,), 1),
    "threes, boxes": pool(16, (4, 5, 52), (2, 2, 3), (2, 2, 3), 0),
    "fours": pool(33, (7, 90), (2, 4), (2, 4), 0),
    "twos": pool(83, (8, 30), (2, 2), (2, 2), 0),
    "small boxes": pool(70, (4, 6, 6), (2, 2, 2), (2, 2, 2), 0),
    "windows as large as images": pool(200, (7, 7), (7, 7), (7, 7), 0),
    "images of many taps": pool(35, (120, 130), (2, 2), (2, 2), 0),
    "one window over all, longer than vectors": pool(19, (9, 33), (9, 33), (9, 33), 0),
    "flat": pool(5, (35, 35), (3, 3), (1, 1), 1),
    "flat, in two parts": pool(5, (40, 37), (3, 3), (2, 2), 1),
    "flat, windows without overlap or gap": pool(9, (20, 64), (2, 2), (2, 2), 0),
    "flat, many at once": pool(300, (3, 20), (2, 3), (1, 1), 1),
    "flat, one row": pool(70, (90,), (3,), (1,), 1),
    "flat, boxes": pool(3, (8, 12, 28), (3, 3, 3), (1, 1, 1), 1),
    "flat, boxes in bands": pool(2, (40, 48, 40), (2, 2, 2), (2, 2, 2), 0),
    "flat, bands that overlap": pool(2, (60, 50, 36), (3, 2, 3), (2, 1, 1), 1),
    "flat, gaps between windows": pool(6, (33, 70), (2, 2), (3, 3), 0),
    "one image more than is done at once": pool(4097, (4, 4), (2, 2), (2, 2), 0),
}


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype, special: bool) -> np.ndarray:
    x = rng.integers(-4, 5, shape).astype(dtype) if special else rng.standard_normal(shape).astype(dtype)
    if special:
        x.reshape(-1)[:: max(x.size // 7, 1)] = [np.nan, -np.inf, np.inf][int(rng.integers(3))]
    return x


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("what", PLANS)
def test_every_verb_equals_the_plain_path(what, dtype, special, threads):
    plan, plain = PLANS[what], plain_verbs()
    rng = np.random.default_rng(len(what))
    x, g = values(rng, plan.source, dtype, special), rng.standard_normal(plan.dest).astype(dtype)
    y, taps = plain.choose(plan, x)
    calls = [
        lambda v: v.choose(plan, x)[0],
        lambda v: v.choose(plan, x)[1],
        lambda v: v.pick(plan, x, taps),
        lambda v: v.place(plan, g, taps),
        lambda v: v.route(plan, x, g),
        lambda v: v.recall(plan, x, y, x),
        lambda v: v.near(plan, 1.5, x, y, g),
        *(lambda v, start=start: v.select(plan, start, x) for start in Start),
        *(lambda v, share=share: v.spread(plan, share, False, g) for share in Share),
        lambda v: v.fold(plan, Mean.COUNTED, np.nan_to_num(x.astype(np.float32), posinf=1, neginf=1).astype(dtype)),
    ]
    with poolgrad.threads(threads):
        for number, call in enumerate(calls):
            _core.go_far_from(-(number % 2))  # every other result goes past the caches
            got, want = call(native), call(plain)
            _core.go_far_from(-1)
            same = (got.view(f"u{got.itemsize}") == want.view(f"u{got.itemsize}")) | ((got != got) & (want != want))
            assert same.all(), number


@pytest.mark.parametrize("stride", [2, 3])
def test_flat_items_of_any_size_keep_their_parts_apart(stride):
    rng = np.random.default_rng(stride)
    for width in range(16, 84):  # every number of cells that vectors can leave at the end of a part
        plan = pool(5, (11, width), (stride, stride), (stride, stride), width % 2)
        x, g = (rng.integers(-50, 50, shape).astype(np.float32) for shape in (plan.source, plan.dest))
        y = reference.select(plan, Start.LOWEST, x)
        assert np.array_equal(native.near(plan, 1e-6, x, y, g), reference.near(plan, 1e-6, x, y, g)), width
        assert np.array_equal(
            native.spread(plan, Share.RECIPROCAL, False, g), reference.spread(plan, Share.RECIPROCAL, False, g)
        ), width


@pytest.mark.parametrize("axes", [{1: (1, 0)}, {1: (4, 0), 2: (1, 0)}, {1: (1, 0), 2: (3, 3)}, {2: (1, 0)}], ids=str)
def test_images_without_windows_have_gradients_of_zero(axes):
    plan = Plan(
        (40, *(axes.get(d, (2, 2))[0] for d in (1, 2))), {d: sliding_axis(n, 1, 1, 0, m) for d, (n, m) in axes.items()}
    )
    x = np.ones(plan.source, np.float32)
    got = native.route(plan, x, np.ones(plan.dest, np.float32), None, np.full(plan.source, 7, np.float32))
    assert (got == 0).all()
    assert (native.place(plan, np.ones(plan.dest, np.float32), np.zeros(plan.dest, np.uint8)) == 0).all()


def test_the_plain_path_is_right_about_images():
    """Check the plain path, which the tests of images trust."""
    rng = np.random.default_rng(0)
    for plan in (PLANS["threes"], PLANS["threes, boxes"], PLANS["windows as large as images"]):
        x, g = rng.integers(-4, 5, plan.source).astype(np.float32), rng.standard_normal(plan.dest).astype(np.float32)
        assert plain_verbs().route(plan, x, g).tobytes() == reference.route(plan, x, g).tobytes()
        assert plain_verbs().choose(plan, x)[1].tobytes() == reference.choose(plan, x)[1].tobytes()


@pytest.mark.parametrize("channels", [1, 5, 16, 33])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("cells", [1, 2, 3, 6, 7, 49, 63])
def test_a_quotient_is_what_division_gives(cells, dtype, channels):
    """Any bits, subnormals, infinities and NaN: cell / count in float64, rounded once, then added up."""
    rng = np.random.default_rng(cells)
    plan = Plan(
        (2, 80, channels), {1: sliding_axis(80, cells, max(cells // 2, 1), 0, (80 - cells) // max(cells // 2, 1) + 1)}
    )
    if np.dtype(dtype).kind == "i":
        kinds = [rng.integers(-(2**24), 2**24, plan.dest).astype(dtype)]
    else:
        bits = np.dtype(f"u{np.dtype(dtype).itemsize}")
        kinds = [
            np.frombuffer(rng.bytes(int(np.prod(plan.dest)) * bits.itemsize), dtype).reshape(plan.dest),
            rng.integers(0, 500, plan.dest).astype(bits).view(dtype),  # subnormals
        ]
    for g in kinds:
        want = np.zeros(plan.source)
        with np.errstate(all="ignore"):
            for j, (a, b) in enumerate(plan.by_dimension[1].pairs()):
                want[:, a:b] += (g[:, j].astype(np.float64) / np.float64(cells))[:, None]
            rounded = want.astype(dtype)
        got = native.spread(plan, Share.QUOTIENT, False, g)
        assert ((got == rounded) | ((got != got) & (rounded != rounded))).all()


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("cells", [1, 2, 3, 5, 6, 7, 12, 49, 63])
def test_a_mean_is_what_division_gives(cells, dtype, first):
    """Any bits over any count, subnormals, infinities and NaN: windows of one number and zeros."""
    rng = np.random.default_rng(cells)
    n, m = 40 * cells, 40
    plan = (
        Plan((6, 4, n), {2: sliding_axis(n, cells, cells, 0, m)})
        if first
        else Plan((6, n, 19), {1: sliding_axis(n, cells, cells, 0, m)})
    )
    bits = np.dtype(f"u{dtype.itemsize}")
    for numbers in (
        np.frombuffer(rng.bytes(int(np.prod(plan.dest)) * bits.itemsize), dtype).reshape(plan.dest),
        rng.integers(0, 500, plan.dest).astype(bits).view(dtype),  # subnormals
        rng.standard_normal(plan.dest).astype(dtype),
    ):
        x = np.zeros(plan.source, dtype)
        x[
            (slice(None), slice(None), slice(cells - 1, None, cells))
            if first
            else (slice(None), slice(cells - 1, None, cells))
        ] = numbers
        with np.errstate(all="ignore"):
            wide = numbers.astype(np.float64 if dtype == np.float64 else np.float32)
            want = (wide / wide.dtype.type(cells)).astype(dtype)
        got = native.fold(plan, Mean.EXACT, x)
        assert ((got == want) | ((got != got) & (want != want))).all()
