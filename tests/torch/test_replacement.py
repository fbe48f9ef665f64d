"""`replace` swaps the pool modules of a model and nothing else: same numbers, gradients, state, hooks, names; and back."""

import copy
import io
import pickle

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test installs it where it can")

from torch import nn  # noqa: E402

import poolgrad.torch as pgt  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


class Stem(nn.Module):
    """Convolutions with pools, one of them inside of a block, and a functional pool that stays torch's."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.pool = nn.MaxPool2d(3, 2, 1, ceil_mode=True)
        self.block = nn.Sequential(nn.BatchNorm2d(4), nn.ReLU(), nn.AvgPool2d(2, padding=1, count_include_pad=False))
        self.head = nn.ModuleDict({"global": nn.AdaptiveAvgPool2d(1), "max": nn.AdaptiveMaxPool2d((2, None))})

    def forward(self, x):
        y = self.block(self.pool(self.conv(x)))
        y = nn.functional.max_pool2d(y, 2, 1)
        return self.head["global"](y).flatten(1).sum() + self.head["max"](y).flatten(1)


class Segmentation(nn.Module):
    """Pools that share one module, and unpooling."""

    def __init__(self):
        super().__init__()
        self.down = nn.MaxPool2d(2, return_indices=True)
        self.again = self.down
        self.conv, self.up = nn.Conv2d(2, 2, 3, padding=1), nn.MaxUnpool2d(2)

    def forward(self, x):
        x, first = self.down(x)
        x, second = self.again(self.conv(x))
        return self.up(self.up(x, second), first)


class Fractions(nn.Module):
    """Windows that torch draws for each plane."""

    def __init__(self, rank):
        super().__init__()
        self.pool = getattr(nn, f"FractionalMaxPool{rank}d")(2, output_ratio=0.6, return_indices=True)

    def forward(self, x):
        y, where = self.pool(x)
        return y * (1 + where.to(y.dtype))


def line(rank):
    """Return a model of pools in one, two or three dimensions."""
    made = [getattr(nn, f"{kind}Pool{rank}d") for kind in ("Max", "Avg", "LP", "AdaptiveMax", "AdaptiveAvg")]
    largest, mean, norm, adaptive_max, adaptive_mean = made
    return nn.Sequential(
        largest(3, 1, 1), nn.Tanh(), mean(2, 1), norm(2, 2, stride=1), adaptive_max(5), adaptive_mean(3), nn.Flatten()
    )


MODELS = {
    "stem": (Stem, (2, 2, 14, 13), 4),
    "segmentation": (Segmentation, (2, 2, 12, 8), 2),
    "fractions 2": (lambda: Fractions(2), (2, 3, 9, 8), 1),
    "fractions 3": (lambda: Fractions(3), (2, 2, 6, 7, 5), 1),
    "one": (lambda: line(1), (2, 3, 12), 5),
    "two": (lambda: line(2), (2, 3, 12, 11), 5),
    "three": (lambda: line(3), (2, 3, 8, 9, 8), 5),
    "a pool alone": (lambda: nn.MaxPool2d(3, 2, dilation=2), (1, 2, 9, 9), 1),
}
every_model = pytest.mark.parametrize("name", MODELS)


def run(model, shape):
    """Return the output, and the gradients of input and parameters."""
    torch.manual_seed(5)
    x = torch.randn(shape, requires_grad=True)
    torch.manual_seed(6)  # for the windows
    y = model(x)
    loss = (y * torch.linspace(-1, 1, y.numel()).reshape(y.shape)).sum()
    return [y.detach(), *torch.autograd.grad(loss, [x, *model.parameters()])]


@every_model
@pytest.mark.parametrize("training", [True, False])
def test_outputs_gradients_and_random_numbers_stay_the_same_there_and_back(name, training):
    make, shape, count = MODELS[name]
    torch.manual_seed(1)
    model = make().train(training)
    before, plain, shown = copy.deepcopy(model), dict(vars(model)), repr(model)
    wanted = run(before, shape)
    done = pgt.replace(model)
    assert len(done.swapped) == count
    assert not done.left
    assert [n for n, _ in model.named_modules()] == [n for n, _ in before.named_modules()]
    assert all(m.training == training for m in model.modules())
    assert type(model).__module__.startswith("poolgrad" if name == "a pool alone" else "")
    torch.testing.assert_close(run(model, shape), wanted)
    assert {k for k in vars(model) if not k.startswith("_")} >= {k for k in plain if not k.startswith("_")}
    undone = pgt.replace(model, back=True)
    assert [s.names for s in undone.swapped] == [s.names for s in done.swapped]
    assert [(s.after, s.before) for s in undone.swapped] == [(s.before, s.after) for s in done.swapped]
    assert repr(model) == shown
    assert {n: vars(m).keys() for n, m in model.named_modules()} == {
        n: vars(m).keys() for n, m in before.named_modules()
    }


def test_maxima_and_their_gradients_have_the_same_bits():
    torch.manual_seed(2)
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.MaxPool2d(3, 2), nn.Conv2d(3, 2, 3), nn.AdaptiveMaxPool2d(2))
    wanted = run(model, (2, 2, 20, 20))
    pgt.replace(model)
    assert all(torch.equal(a, b) for a, b in zip(run(model, (2, 2, 20, 20)), wanted, strict=True))


@every_model
def test_swapped_models_are_saved_copied_and_loaded(name):
    make, shape, _ = MODELS[name]
    torch.manual_seed(1)
    model = make()
    state = model.state_dict()
    pgt.replace(model)
    assert list(model.state_dict()) == list(state)
    copied = copy.deepcopy(model)
    again = pickle.loads(pickle.dumps(model)) if not isinstance(model, Fractions) else copied
    memory = io.BytesIO()
    torch.save(model.state_dict(), memory)
    memory.seek(0)
    fresh = make()
    fresh.load_state_dict(torch.load(memory))
    wanted = run(model, shape)
    for other in (copied, again, fresh):
        torch.testing.assert_close(run(other, shape), wanted)


def test_shared_modules_are_swapped_once_and_stay_shared():
    model = Segmentation()
    done = pgt.replace(model)
    assert model.down is model.again
    assert [s.names for s in done.swapped] == [("down", "again"), ("up",)]
    assert "down, again: torch MaxPool2d -> poolgrad MaxPool2d" in repr(done)


def test_hooks_and_references_stay():
    seen = []
    model = Stem()
    pool = model.pool
    model.pool.register_forward_hook(lambda module, args, y: seen.append((module, tuple(y.shape))))
    model.block[2].register_full_backward_hook(lambda *_: seen.append("back"))
    pgt.replace(model)
    assert model.pool is pool
    model(torch.randn(1, 2, 8, 8, requires_grad=True)).sum().backward()
    assert seen == [(pool, (1, 4, 5, 5)), "back"]


class Own(nn.MaxPool2d):
    """A subclass with a forward of its own."""

    def forward(self, x):
        return super().forward(x) + 1


def test_what_is_not_ours_to_swap_is_left_alone_with_a_reason():
    patched = nn.AvgPool2d(2)
    patched.forward = lambda x: x
    model = nn.ModuleDict(
        {
            "own": Own(2),
            "patched": patched,
            "odd": nn.LPPool2d(3, 2),
            "cut": nn.LPPool2d(2, 2, ceil_mode=True),
            "script": torch.jit.script(nn.MaxPool2d(2)),
            "conv": nn.Conv2d(1, 1, 1),
            "good": nn.MaxPool2d(2),
        }
    )
    done = pgt.replace(model)
    assert [s.names for s in done.swapped] == [("good",)]
    reasons = {p.names[0]: p.reason for p in done.left}
    assert reasons == {
        "own": "a subclass, Own, may compute something else",
        "patched": "the object has a forward of its own",
        "odd": "torch's norm with norm_type=3 has the sign of the sum",
        "cut": "torch's norm with ceil_mode scales windows that the edge cuts",
        "script": "torch.jit compiled it",
    }
    assert type(model["own"]) is Own
    text = repr(done)
    assert text.startswith("1 pool modules swapped, 5 left alone\n")
    assert "Own left alone: a subclass" in text
    assert "poolgrad.torch.accelerate()" in text


def test_quantised_models_keep_their_pools_and_dynamically_quantised_ones_do_not():
    static = nn.Sequential(torch.ao.nn.quantized.Conv2d(1, 1, 1), nn.MaxPool2d(2))
    done = pgt.replace(static)
    assert not done.swapped
    assert [p.reason for p in done.left] == ["the model is quantised: it may get quantised tensors"]
    dynamic = nn.Sequential(nn.MaxPool1d(2), torch.ao.nn.quantized.dynamic.Linear(2, 2))
    assert len(pgt.replace(dynamic).swapped) == 1


def test_ours_that_torch_lacks_do_not_go_back():
    model = nn.ModuleDict(
        {
            "same": pgt.MaxPool2d(3, padding="same"),
            "pairs": pgt.AvgPool2d(3, padding=((0, 1), (1, 0))),
            "far": pgt.MaxPool2d(3, padding=2),
            "sum": pgt.MaxUnpool2d(2),
            "divisor": pgt.AvgPool1d(2, divisor_override=3),
            "odd": pgt.LPPool1d(3, 2),
            "least": pgt.MinPool2d(2),
            "plain": pgt.AvgPool3d(2, padding=1, divisor_override=3),
        }
    )
    done = pgt.replace(model, back=True)
    assert [s.names for s in done.swapped] == [("plain",)]
    assert [p.names[0] for p in done.left] == ["same", "pairs", "far", "sum", "divisor", "odd"]
    assert "torch has no padding='same'" in repr(done)
    x = torch.randn(1, 1, 4, 4, 4)
    torch.testing.assert_close(model["plain"](x), nn.functional.avg_pool3d(x, 2, padding=1, divisor_override=3))


def test_twice_is_once():
    model = Stem()
    assert len(pgt.replace(model).swapped) == 4
    second = pgt.replace(model)
    assert not second.swapped
    assert not second.left


def test_wrong_words_are_refused_by_name():
    with pytest.raises(TypeError, match=r"replace: model: got 3, wanted a torch\.nn\.Module"):
        pgt.replace(3)
    with pytest.raises(TypeError, match="replace: back: got 1, wanted a bool"):
        pgt.replace(nn.MaxPool2d(2), back=1)


def test_compiled_and_replaced_models_give_the_same():
    torch._dynamo.reset()
    torch.manual_seed(1)
    model = Stem().eval()
    x = torch.randn(1, 2, 8, 8)
    compiled = torch.compile(model, backend="aot_eager")
    wanted = compiled(x)
    pgt.replace(model)
    torch.testing.assert_close(compiled(x), wanted)
