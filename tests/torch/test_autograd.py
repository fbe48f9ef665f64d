"""Every function of poolgrad.torch has every derivative, in every mode of torch, compiled or not; none is silently 0."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test installs it where it can")

import torch.autograd.forward_ad as forward_ad  # noqa: E402
from torch.func import functional_call, grad, jvp, vmap  # noqa: E402
from torch_cases import CASES, NAMES, by_hand, cubes, distinct, small, tower  # noqa: E402

import poolgrad.torch as pgt  # noqa: E402

every_case = pytest.mark.parametrize("case", CASES, ids=NAMES)
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


@every_case
def test_gradcheck_in_reverse_and_forward_mode_alone_and_batched(case):
    x = distinct(case.shape).requires_grad_()
    words = {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True}
    assert torch.autograd.gradcheck(case.pool, x, fast_mode=True, **words)


@every_case
def test_gradgradcheck_reverse_over_reverse_and_forward_over_reverse(case):
    x = distinct(case.shape).requires_grad_()
    words = {"check_fwd_over_rev": True, "check_rev_over_rev": True, "check_batched_grad": True}
    assert torch.autograd.gradgradcheck(case.pool, x, fast_mode=True, **words)


@every_case
def test_every_transform_gives_what_the_dense_jacobian_gives(case):
    x = small(case)
    wanted = by_hand(case, x)
    for name, made in tower(case, x).items():
        got = made()
        assert got.abs().sum() > 0, name
        if name in wanted and not ("lp" in case.name and ("order" in name or "over" in name or name == "hessian")):
            torch.testing.assert_close(got, wanted[name], msg=lambda text, name=name: f"{name}: {text}")


@every_case
def test_every_transform_gives_the_same_numbers_as_torchs_own(case):
    if case.like is None:
        pytest.skip("torch has no such pool")
    x = small(case)
    ours, own = tower(case, x), tower(case._replace(pool=case.like), x)
    for name in ours:
        torch.testing.assert_close(ours[name](), own[name](), msg=lambda text, name=name: f"{name}: {text}")


COMPILED = (
    "jvp",
    "hessian",
    "vmap of grad",
)  # of every function; of two, all but the one on which torch 2.13 itself crashes


@every_case
def test_transforms_compile_whole_and_give_the_same_numbers(case):
    torch._dynamo.reset()
    made = tower(case, small(case))
    names = (
        COMPILED
        if case.name not in ("max_pool1d", "fractional_avg_pool1d")
        else [n for n in made if n != "third order"]
    )
    got = torch.compile(lambda: [made[name]() for name in names], fullgraph=True, backend="aot_eager")()
    for name, value in zip(names, got, strict=True):
        torch.testing.assert_close(value, made[name](), rtol=0, atol=0, msg=lambda text, name=name: f"{name}: {text}")


COMPILED_LAYOUTS = [(case, ["contiguous", "channels last"][number % 2]) for number, case in enumerate(CASES)]


@pytest.mark.parametrize(("case", "layout"), COMPILED_LAYOUTS, ids=lambda value: getattr(value, "name", value))
def test_forward_and_backward_compile_whole_with_inductor(case, layout):
    torch._dynamo.reset()
    x = distinct(case.shape)
    if layout == "channels last":
        x = x.movedim(1, -1).contiguous().movedim(-1, 1)
    x.requires_grad_()
    compiled = torch.compile(lambda x: case.pool(x) * 2, fullgraph=True)(x)
    plain = case.pool(x) * 2
    g = distinct(plain.shape)
    bits = {"rtol": 0, "atol": 0} if "lp" not in case.name else {}  # inductor rounds the power of lp differently
    torch.testing.assert_close(compiled, plain, **bits)
    torch.testing.assert_close(torch.autograd.grad(compiled, x, g)[0], torch.autograd.grad(plain, x, g)[0], **bits)
    assert compiled.stride() == plain.stride()


@every_case
def test_lengths_that_change_are_compiled_as_symbols(case):
    torch._dynamo.reset()
    compiled = torch.compile(case.pool, fullgraph=True, dynamic=True, backend="aot_eager")
    for more in (0, 1, 3):
        x = distinct((2 + more, *case.shape[1:-1], case.shape[-1] + more))
        assert torch.equal(compiled(x), case.pool(x))


def test_dual_numbers_pass_in_eager_code_and_are_refused_in_compiled_code():
    x, v = distinct((1, 1, 6)), distinct((1, 1, 6), seed=1)
    compiled = torch.compile(lambda x: pgt.max_pool1d(x, 2))
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, v)
        tangent = forward_ad.unpack_dual(pgt.max_pool1d(dual, 2)).tangent
        assert torch.equal(compiled(x), pgt.max_pool1d(x, 2))
        with pytest.raises(NotImplementedError, match="got a dual tensor in compiled code, wanted forward mode inside"):
            compiled(dual)
    assert torch.equal(tangent, jvp(lambda x: pgt.max_pool1d(x, 2), (x,), (v,))[1])


def test_nothing_is_differentiated_where_only_the_indices_are_used():
    x = distinct((1, 1, 6)).requires_grad_()
    y, where = pgt.max_pool1d(x, 2, return_indices=True)
    assert y.requires_grad
    assert not where.requires_grad
    assert torch.equal(x.detach().flatten()[where.flatten()], y.detach().flatten())


STRIDES = ["plain", "channels last", "transposed", "gaps"]
STRIDED = [(case, STRIDES[(number + more) % 4]) for number, case in enumerate(CASES) for more in (0, 2)]


@pytest.mark.parametrize(("case", "layout"), STRIDED, ids=lambda value: getattr(value, "name", value))
def test_vmap_over_every_dimension_is_a_loop_whatever_the_strides_of_the_slices(case, layout):
    for at in range(len(case.shape) + 1):
        x = distinct((*case.shape[:at], 3, *case.shape[at:]))
        if layout == "channels last":
            x = x.movedim(1, -1).contiguous().movedim(-1, 1)
        elif layout == "transposed":
            x = x.permute(*reversed(range(x.ndim))).contiguous().permute(*reversed(range(x.ndim)))
        elif layout == "gaps":
            x = x.repeat_interleave(2, -1)[..., ::2]
        for in_dim in (at, at - x.ndim):
            got = vmap(case.pool, in_dims=in_dim)(x)
            torch.testing.assert_close(got, torch.stack([case.pool(row) for row in x.unbind(at)]))
            got = vmap(grad(cubes(case)), in_dims=in_dim)(x)
            torch.testing.assert_close(got, torch.stack([grad(cubes(case))(row) for row in x.unbind(at)]))


def test_a_seed_draws_the_same_windows_inside_vmap():
    x = distinct((3, 2, 8, 8))
    for words in ({}, {"kernel_size": 2}):
        pool = lambda x, words=words: pgt.fractional_max_pool2d(x, output_size=4, seed=(1, 2), **words)  # noqa: E731
        assert torch.equal(vmap(pool)(x[:, None])[:, 0], torch.stack([pool(row[None])[0] for row in x]))


def test_a_batch_of_random_windows_is_one_call_for_each():
    x = distinct((3, 2, 8, 8)).requires_grad_()
    torch.manual_seed(1)
    pool = lambda x: pgt.fractional_max_pool2d(x, output_ratio=0.7, return_indices=True)  # noqa: E731
    y, where = vmap(pool, randomness="different")(x)
    assert torch.equal(x.detach().flatten(-2).gather(-1, where.flatten(-2)).reshape(y.shape), y.detach())
    (dx,) = torch.autograd.grad(y.sum(), x)
    assert dx.sum() == y.numel()
    assert len({tuple(part.flatten().tolist()) for part in where[:, 0]}) > 1
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(pool)(x)


def test_a_compiled_fractional_pool_draws_new_windows_in_every_call():
    torch._dynamo.reset()
    x = torch.arange(40.0).reshape(1, 1, 40)
    compiled = torch.compile(lambda x: pgt.fractional_max_pool1d(x, output_ratio=0.6), fullgraph=True)
    torch.manual_seed(0)
    assert len({tuple(compiled(x).flatten().tolist()) for _ in range(5)}) > 1


def test_a_module_in_a_network_has_hessian_vector_products():
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), pgt.FractionalAvgPool2d(output_ratio=0.7, seed=1), torch.nn.Flatten()
    )
    net.double()
    weights = {name: w.detach() for name, w in net.named_parameters()}
    x = distinct((2, 1, 8, 8))
    loss = lambda w: functional_call(net, w, x).square().sum()  # noqa: E731
    direction = {name: torch.ones_like(w) for name, w in weights.items()}
    _, hvp = jvp(grad(loss), (weights,), (direction,))
    again = grad(lambda w: sum((g * direction[name]).sum() for name, g in grad(loss)(w).items()))(weights)
    for name in weights:
        torch.testing.assert_close(hvp[name], again[name])
        assert hvp[name].abs().sum() > 0
