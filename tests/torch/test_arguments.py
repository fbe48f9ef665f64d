"""poolgrad.torch refuses wrong words and unusual tensors by name, takes empty tensors by torch's rules, and survives changes in place."""

import re

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import poolgrad.torch as pgt  # noqa: E402

X = torch.arange(32.0).reshape(1, 2, 4, 4)
Y, WHERE = pgt.max_pool2d(X, 2, return_indices=True)
HUGE = 10**400

WRONG = {
    "avg_pool2d: input: got dtype torch.bool": lambda: pgt.avg_pool2d(X > 0, 2),
    "lp_pool2d: input: got dtype torch.int64": lambda: pgt.lp_pool2d(X.long(), 2.0, 2),
    "max_unpool2d: reduce: got 'first'": lambda: pgt.max_unpool2d(Y, WHERE, 2, reduce="first"),
    "max_unpool2d: indices: got torch.float32": lambda: pgt.max_unpool2d(X, X, 2),
    "max_unpool2d: indices: got torch.bool": lambda: pgt.max_unpool2d(X, X > 0, 2),
    "max_unpool2d: indices: got 24 at [0, 0, 1, 1], wanted positions from 0 to 15": lambda: pgt.max_unpool2d(
        Y, torch.where(WHERE == 15, 24, WHERE), 2
    ),
    "max_unpool2d: kernel_size: got 'two'": lambda: pgt.max_unpool2d(Y, WHERE, "two"),
    "max_unpool2d: kernel_size: got (2, 2, 2)": lambda: pgt.max_unpool2d(Y, WHERE, (2, 2, 2)),
    "max_unpool2d: kernel_size: got 1099511627776": lambda: pgt.max_unpool2d(Y, WHERE, 2**40),
    "max_unpool2d: stride: got 0": lambda: pgt.max_unpool2d(Y, WHERE, 2, 0),
    "max_unpool2d: padding: got 3": lambda: pgt.max_unpool2d(Y, WHERE, 2, 2, 3),
    "max_unpool2d: output_size: got 4": lambda: pgt.max_unpool2d(Y, WHERE, 2, output_size=4),
    "max_unpool2d: output_size: got (6, 6), wanted 2 sizes, less than the stride [2, 2] away from [4, 4]": lambda: (
        pgt.max_unpool2d(Y, WHERE, 2, output_size=(6, 6))
    ),
    "fractional_max_pool2d: output_size: got None": lambda: pgt.fractional_max_pool2d(X, 2),
    "fractional_max_pool2d: output_size: got (1, 2, 3)": lambda: pgt.fractional_max_pool2d(X, 2, output_size=(1, 2, 3)),
    "fractional_max_pool2d: output_size: got 0": lambda: pgt.fractional_max_pool2d(X, 2, output_size=0),
    "fractional_max_pool2d: output_ratio: got 1.5": lambda: pgt.fractional_max_pool2d(X, 2, output_ratio=1.5),
    "fractional_max_pool2d: output_ratio: got 0.1": lambda: pgt.fractional_max_pool2d(X, 2, output_ratio=0.1),
    "fractional_max_pool2d: kernel_size: got 5": lambda: pgt.fractional_max_pool2d(X, 5, output_size=2),
    "fractional_max_pool2d: kernel_size: got 0": lambda: pgt.fractional_max_pool2d(X, 0, output_size=2),
    "fractional_avg_pool2d: kernel_size: got 'two'": lambda: pgt.fractional_avg_pool2d(X, "two", output_size=2),
    "fractional_max_pool2d: overlapping: got True, wanted False with kernel_size": lambda: pgt.fractional_max_pool2d(
        X, 2, output_size=2, overlapping=True
    ),
    "fractional_avg_pool2d: pseudo_random: got True": lambda: pgt.fractional_avg_pool2d(
        X, 2, output_size=2, pseudo_random=True
    ),
    "fractional_avg_pool2d: overlapping: got 'yes', wanted a bool": lambda: pgt.fractional_avg_pool2d(
        X, output_size=2, overlapping="yes"
    ),
    "fractional_max_pool2d: seed: got 3, wanted None beside windows": lambda: pgt.fractional_max_pool2d(
        X, windows=[[(0, 2)], [(0, 2)]], seed=3
    ),
    "fractional_max_pool2d: seed: got 1.5": lambda: pgt.fractional_max_pool2d(X, output_size=2, seed=1.5),
    "fractional_max_pool2d: windows: got window": lambda: pgt.fractional_max_pool2d(X, windows=[[(0, 9)], [(0, 2)]]),
    "fractional_max_pool2d: _random_samples: got 'some'": lambda: pgt.fractional_max_pool2d(
        X, 2, output_size=2, _random_samples="some"
    ),
    "fractional_max_pool2d: _random_samples: got torch.float32 of shape [1, 1, 2], wanted floats of shape [1, 2, 2]": (
        lambda: pgt.fractional_max_pool2d(X, 2, output_size=2, _random_samples=torch.rand(1, 1, 2))
    ),
    "fractional_max_pool2d: _random_samples: got a tensor, wanted None without kernel_size": lambda: (
        pgt.fractional_max_pool2d(X, output_size=2, _random_samples=torch.rand(1, 2, 2))
    ),
    "avg_pool2d: divisor_override: got 0": lambda: pgt.avg_pool2d(X, 2, divisor_override=0),
    "avg_pool2d: divisor_override: got True": lambda: pgt.avg_pool2d(X, 2, divisor_override=True),
    "avg_pool2d: divisor_override: got inf": lambda: pgt.avg_pool2d(X, 2, divisor_override=float("inf")),
    f"avg_pool2d: divisor_override: got {HUGE!r:.40}": lambda: pgt.avg_pool2d(X, 2, divisor_override=HUGE),
    "avg_pool2d: count_include_pad: got 'False', wanted a bool": lambda: pgt.avg_pool2d(
        X, 2, count_include_pad="False"
    ),
    "max_pool2d: ceil_mode: got 1, wanted a bool": lambda: pgt.max_pool2d(X, 2, ceil_mode=1),
    "max_pool2d: return_indices: got 'no', wanted a bool": lambda: pgt.max_pool2d(X, 2, return_indices="no"),
    "max_pool2d: kernel_size: got no value": lambda: pgt.max_pool2d(X),
    "min_pool1d: window: got 2, wanted no such argument": lambda: pgt.min_pool1d(X[0], window=2),
    "adaptive_avg_pool2d: output_size: got 4611686018427387904, which makes a result of shape": lambda: (
        pgt.adaptive_avg_pool2d(X, 2**62)
    ),
    "adaptive_max_pool2d: output_size: got (1099511627776, 1)": lambda: pgt.adaptive_max_pool2d(X, (2**40, 1)),
    "max_pool1d: padding: got 549755813893 windows": lambda: pgt.max_pool1d(X[0, 0], 2**40, 1, 3 * 2**38),
    "LPPool": lambda: pgt.LPPool2d("two", 2)(X),
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_words_are_refused_with_the_names_of_function_and_argument(words):
    with pytest.raises((ValueError, TypeError, MemoryError)) as found:
        WRONG[words]()
    wanted = words if words != "LPPool" else "lp_pool2d: norm_type: got 'two'"
    assert str(found.value).startswith(wanted)
    assert re.match(r"\w+\dd: \w+: got .*, wanted ", str(found.value))
    assert str(found.value) == f"{wanted.split(': ')[0]}: " + "; ".join(map(str, found.value.findings))


UNUSUAL = {
    "sparse": (lambda: X.to_sparse(), r"a tensor of layout torch\.sparse_coo"),
    "sparse rows": (lambda: X.to_sparse_csr(dense_dim=2), r"a tensor of layout torch\.sparse_csr"),
    "nested": (lambda: torch.nested.nested_tensor([X[0], X[0]]), "a nested tensor"),
    "jagged": (lambda: torch.nested.nested_tensor([X[0, 0], X[0, 1]], layout=torch.jagged), "a nested tensor"),
    "quantised": (lambda: torch.quantize_per_tensor(X, 0.5, 3, torch.quint8), r"a quantised tensor of torch\.quint8"),
    "complex": (lambda: X.to(torch.complex64), "dtype complex64"),
    "conjugated": (lambda: torch.complex(X, X).conj(), "dtype complex64"),
    "complex halves": (lambda: X.to(torch.complex32), "dtype complex32"),
    "float8": (lambda: X.to(torch.float8_e4m3fn), "dtype float8_e4m3fn"),
    "bits": (lambda: X.to(torch.uint8).view(torch.bits8), "dtype bits8"),
    "no shape yet": (torch.nn.parameter.UninitializedParameter, "an UninitializedParameter"),
    "a list": (lambda: [1.0], r"\[1\.0\]"),
    "two axes": (lambda: X[0, 0], r"shape \[4, 4\]"),
}
POOLS = {
    "max_pool2d": (2,),
    "avg_pool2d": (2,),
    "lp_pool2d": (2, 2),
    "adaptive_avg_pool2d": (2,),
    "fractional_max_pool2d": (2, 2),
}


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("kind", UNUSUAL)
def test_unusual_tensors_are_refused_by_name(kind, pool):
    make, words = UNUSUAL[kind]
    with pytest.raises((ValueError, TypeError), match=rf"^{pool}: input: got {words}.*, wanted"):
        getattr(pgt, pool)(make(), *POOLS[pool])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_subclass_without_our_operators_is_refused_by_name():
    from torch.masked import masked_tensor

    x = masked_tensor(X, X > 3)
    with pytest.raises(TypeError, match="max_pool2d: input: got a MaskedTensor, wanted a tensor that takes poolgrad's"):
        pgt.max_pool2d(x, 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_negated_views_subclasses_and_parts_of_complex_tensors_are_read_right(dtype):
    class Sub(torch.Tensor):
        pass

    x = torch.arange(-16.0, 16).reshape(1, 2, 4, 4).to(dtype)
    seen = [torch._neg_view(-x), x.as_subclass(Sub), torch.nn.Parameter(x), x.repeat_interleave(2, -1)[..., ::2]]
    if dtype in (torch.float32, torch.float64):
        seen.append(torch.complex(x, -x).conj().imag)
    for pool, words in POOLS.items():
        if pool == "fractional_max_pool2d":
            continue
        wanted = getattr(pgt, pool)(x, *words)
        for other in seen:
            assert torch.equal(getattr(pgt, pool)(other, *words), wanted), (pool, type(other), other.is_neg())


# ---- no cells

SHAPES = ("batch", "channels", "length", "batch and channels", "channels without a batch", "length without a batch")
EMPTY = {
    "max_pool": {"kernel_size": 1},
    "min_pool": {"kernel_size": 1},
    "avg_pool": {"kernel_size": 1},
    "lp_pool": {"norm_type": 2, "kernel_size": 1},
    "adaptive_max_pool": {"output_size": 2},
    "adaptive_avg_pool": {"output_size": 2},
    "fractional_max_pool": {"kernel_size": 1, "output_size": 1},
    "max_unpool": {"kernel_size": 2},
}


def empty(where, rank):
    shape = [2, 3, *[4] * rank]
    for part in where.split(" and "):
        shape[{"batch": 0, "channels": 1, "length": 2}[part.split()[0]]] = 0
    return tuple(shape[1:] if where.endswith("without a batch") else shape)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("family", EMPTY)
@pytest.mark.parametrize("where", SHAPES)
def test_tensors_without_cells_are_taken_and_refused_by_torchs_rules(where, family, rank):
    like = "max_pool" if family == "min_pool" else family
    own = getattr(torch.nn.functional, f"{like}{rank}d", None)
    if family == "fractional_max_pool" and rank == 1:
        pytest.skip("torch has no such pool")
    x = torch.zeros(empty(where, rank))
    more = [x.long()] if family == "max_unpool" else []
    try:
        wanted = own(x, *more, **EMPTY[family]).shape
    except RuntimeError:
        with pytest.raises(ValueError, match=rf"^{family}{rank}d: input: got shape \[.*, wanted at least one cell"):
            getattr(pgt, f"{family}{rank}d")(x, *more, **EMPTY[family])
        return
    x.requires_grad_()
    y = getattr(pgt, f"{family}{rank}d")(x, *more, **EMPTY[family])
    assert y.shape == wanted
    assert torch.autograd.grad(y.sum(), x)[0].shape == x.shape


# ---- changes in place between forward and backward


@pytest.mark.parametrize("pool", [p for p in POOLS if p != "lp_pool2d"])
def test_changing_the_input_after_forward_does_not_change_the_gradient(pool):
    leaf = X.clone().requires_grad_()
    torch.manual_seed(0)
    (wanted,) = torch.autograd.grad(getattr(pgt, pool)(leaf * 1, *POOLS[pool]).sum(), leaf)
    x = leaf * 1
    torch.manual_seed(0)
    y = getattr(pgt, pool)(x, *POOLS[pool])
    x.neg_()
    y.data.fill_(7)
    assert torch.equal(torch.autograd.grad(y.sum(), leaf)[0], wanted)


def test_changing_what_backward_needs_is_an_error_of_torchs_version_counter():
    where = WHERE.clone()
    y = pgt.max_unpool2d(Y.clone().requires_grad_(), where, 2)
    where.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    x = (X + 1).requires_grad_() * 1
    y = pgt.lp_pool2d(x, 2, 2)
    x.neg_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize(
    "pool",
    [lambda x: pgt.max_pool2d(x, 1), lambda x: pgt.avg_pool2d(x, 1), lambda x: pgt.adaptive_avg_pool2d(x, 4)],
    ids=["max", "mean", "adaptive"],
)
def test_a_pool_of_single_cells_does_not_share_memory_with_its_input(pool):
    x, g = X.clone().requires_grad_(), torch.ones_like(X)
    y = pool(x)
    (dx,) = torch.autograd.grad(y, x, g)
    y.data.add_(1)
    dx.add_(1)
    assert torch.equal(x, X)
    assert torch.equal(g, torch.ones_like(X))
