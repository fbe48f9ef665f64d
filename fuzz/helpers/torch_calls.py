"""Random calls of poolgrad.torch: tensors in every layout, words of every pool, and wrong ones."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import torch
import torch.nn.functional as F
import torch_brute as brute
from differential import Call, Data, Rng, pick

import poolgrad.torch as pgt

Tensor = torch.Tensor

# ---- tensors


def _strided(t: Tensor) -> Tensor:
    room = t.new_zeros([2 * n + 1 for n in t.shape])
    view = room[tuple(slice(1, None, 2) for _ in t.shape)]
    view.copy_(t)
    return view


def _last(t: Tensor, rank: int) -> Tensor:
    at = t.ndim - rank - 1
    return t.movedim(at, -1).contiguous().movedim(-1, at) if at >= 0 else t


def _transposed(t: Tensor, rank: int) -> Tensor:
    order = list(range(t.ndim))[::-1]
    return t.permute(order).contiguous().permute(order)


def _expanded(t: Tensor, rank: int) -> Tensor:
    return t[:1].expand(t.shape) if t.ndim and t.shape[0] else t


def _offset(t: Tensor, rank: int) -> Tensor:
    room = t.new_zeros(t.numel() + 3)
    view = room[3:].view(t.shape)
    view.copy_(t)
    return view


def _view(t: Tensor, rank: int) -> Tensor:
    base = t.reshape(-1).clone()
    if t.dtype.is_floating_point:
        base.requires_grad_()
    return base.view(t.shape)


LAYOUTS: dict[str, Callable[[Tensor, int], Tensor]] = {
    "plain": lambda t, rank: t,
    "channels_last": _last,
    "strided": lambda t, rank: _strided(t),
    "transposed": _transposed,
    "expanded": _expanded,
    "offset": _offset,
    "view": _view,
    "negated": lambda t, rank: torch._neg_view(-t) if t.dtype.is_floating_point else t,
    "parameter": lambda t, rank: torch.nn.Parameter(t, t.dtype.is_floating_point),
}


UNDUAL = ("expanded", "negated")  # of which torch 2.13 makes no dual tensors, or none that have views


def tensor(data: Data, rank: int = 0, layout: str = "plain") -> Tensor:
    """Return the data as a tensor in a layout."""
    array = data.array()
    if array.dtype == ml_dtypes.bfloat16:
        made = torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)
    else:
        made = torch.from_numpy(np.ascontiguousarray(array))
    return LAYOUTS[layout](made, rank)


# ---- what a call asks for

META = ("x", "layout", "vmap", "module", "index")


class Case:
    """A call with its tensors: `run` calls a function of either module."""

    def __init__(self, call: Call) -> None:
        self.name, self.family, self.rank = call.name, call.name[:-2], int(call.name[-2])
        self.words = {n: _value(v) for n, v in call.args.items() if n not in META}
        self.layout = call.args.get("layout", "plain")
        self.vmap = call.args.get("vmap")
        self.module = call.args.get("module", False)
        data = call.args["x"]
        self.whole = tensor(data, self.rank, self.layout) if isinstance(data, Data) else data
        self.x = self.whole if self.vmap is None else self.whole.select(self.vmap, 0)
        if self.family == "max_unpool" and "index" in call.args:
            self.words["indices"] = self._indices(call.args["index"])

    def _indices(self, how: Any) -> Any:
        """Return indices for `max_unpool`: `how` is (kind, seed), or the value itself."""
        if not isinstance(how, tuple):
            return _value(how)
        sizes = self._unpooled()
        if sizes is None:
            return torch.zeros(1, dtype=torch.int64)
        kind, seed = how
        rng, shape = np.random.default_rng(seed), tuple(self.x.shape)
        planes, cells, room = prod(shape[: -self.rank]), prod(shape[-self.rank :]), prod(sizes)
        if kind != "repeat" and room >= cells:
            at = np.array([rng.permutation(room)[:cells] for _ in range(planes)], np.int64).reshape(shape)
        else:
            at = rng.integers(0, max(room, 1), shape)
        if at.size and kind in ("outside", "negative"):
            at.reshape(-1)[int(rng.integers(at.size))] = room + 3 if kind == "outside" else -1
        return torch.from_numpy(at.astype(np.int32 if kind == "int32" else np.int64))

    def _unpooled(self) -> tuple[int, ...] | None:
        """Return the lengths of the planes that `max_unpool` fills; None if the words are wrong."""
        k, s, p = self.each("kernel_size"), self.each("stride"), self.each("padding", 0)
        whole = all(type(n) is int and 0 <= n < 100 for n in (*k, *s, *p)) and len(k) == len(s) == len(p) == self.rank
        if not whole or not isinstance(self.x, Tensor) or self.x.is_nested or self.x.ndim <= self.rank:
            return None
        lengths = self.x.shape[self.x.ndim - self.rank :]
        made = tuple(max((n - 1) * s[i] + k[i] - 2 * p[i], 0) for i, n in enumerate(lengths))
        given = self.words.get("output_size")
        return tuple(given[-self.rank :]) if _near(given, made) else made

    @property
    def has_indices(self) -> bool:
        """Return whether the pool chooses cells and can tell where they are."""
        return self.family in ("max_pool", "min_pool", "adaptive_max_pool", "fractional_max_pool")

    @property
    def is_random(self) -> bool:
        """Return whether the windows are other ones in each call."""
        return self.family.startswith("fractional") and not {"windows", "seed", "_random_samples"} & {*self.words}

    @property
    def is_slow(self) -> bool:
        """Return whether a size is allowed and too large for a loop, ours or torch's."""
        values = [n for v in self.words.values() for n in (v if isinstance(v, (tuple, list)) else (v,))]
        most = 2**62 if self.name == "max_pool1d" else 2**40  # torch's max_pool1d walks through every cell of a window
        return any(type(n) is int and 10**5 < n < most for n in values)

    def each(self, name: str, default: Any = None) -> tuple[Any, ...]:
        """Return one value per pooled axis."""
        value = self.words.get(name, default)
        if name == "stride" and value in (None, [], ()):
            return self.each("kernel_size")
        values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
        return values * self.rank if len(values) == 1 else values

    def function(self, module: Any) -> Callable[..., Any] | None:
        """Return the function, or one that calls the module of the same name, if there is one."""
        found = getattr(pgt if module is pgt else F, self.name, None)
        if not self.module or found is None:
            return found
        title = "".join(word.capitalize() for word in self.name.split("_")).replace("LpPool", "LPPool")
        made = getattr(pgt if module is pgt else torch.nn, title, None)
        if made is None:
            return None

        def run(x: Tensor, **words: Any) -> Any:
            later = {n: words.pop(n) for n in ("indices", "output_size") if self.family == "max_unpool" and n in words}
            return made(**words)(x, **later)

        return run

    def run(self, module: Any, x: Any, **more: Any) -> tuple[Tensor, ...]:
        """Return the results as a tuple."""
        function = self.function(module)
        assert function is not None
        words = {**self.words, **more}
        if module is F and self.family == "max_unpool":
            words.pop("reduce", None)
        y = function(x, **words)
        return y if isinstance(y, tuple) else (y,)

    def windows(self) -> list[list[brute.Window]] | None:
        """Return the windows per pooled axis by definition, if they can be known."""
        lengths = self.x.shape[self.x.ndim - self.rank :]
        if "windows" in self.words:
            return [[brute.given(a, b) for a, b in pairs] for pairs in self.words["windows"]]
        if self.family.startswith("adaptive"):
            sizes = self.each("output_size")
            return [brute.sharing(n, n if m is None else m) for n, m in zip(lengths, sizes, strict=True)]
        if self.family.startswith("fractional") or self.family == "max_unpool":
            return None
        pads = self.words.get("padding", 0)
        pads = (pads,) * self.rank if isinstance(pads, str) else self.each("padding", 0)
        spelled = zip(
            lengths, self.each("kernel_size"), self.each("stride"), pads, self.each("dilation", 1), strict=True
        )
        return [brute.sliding(*words, self.words.get("ceil_mode", False)) for words in spelled]


def _near(given: Any, made: tuple[int, ...]) -> bool:
    """Return whether an `output_size` of `max_unpool` can be right."""
    return isinstance(given, tuple) and len(given) >= len(made) and all(type(n) is int and 0 <= n < 1000 for n in given)


def _value(value: Any) -> Any:
    if isinstance(value, Kind):
        return torch.tensor(2)
    return tensor(value) if isinstance(value, Data) else value


# ---- random calls

FAMILIES = {
    "max_pool": 5,
    "min_pool": 1,
    "avg_pool": 5,
    "lp_pool": 2,
    "adaptive_max_pool": 3,
    "adaptive_avg_pool": 3,
    "fractional_max_pool": 3,
    "fractional_avg_pool": 1,
    "max_unpool": 3,
}
FLOATS = ("float32", "float64", "float16", "bfloat16")
WHOLE = ("bool", "int64", "int32", "uint8", "int8", "int16", "uint16", "uint32", "uint64")


def _some(rng: Rng, rank: int, low: int, high: int) -> Any:
    """Return one number, or one for each axis."""
    if rng.random() < 0.5:
        return int(rng.integers(low, high + 1))
    values = [int(v) for v in rng.integers(low, high + 1, rank)]
    return pick(rng, (tuple, list))(values)


def _most(words: dict[str, Any], name: str) -> int:
    value = words[name]
    return min(value) if isinstance(value, (tuple, list)) else value


def _sliding(rng: Rng, rank: int, family: str, words: dict[str, Any]) -> None:
    words["kernel_size"] = _some(rng, rank, 1, 4 if rng.random() < 0.9 else 24)
    if rng.random() < 0.6:
        words["stride"] = pick(rng, (None, [], _some(rng, rank, 1, 4)))
    if family != "lp_pool" and rng.random() < 0.5:
        half = _most(words, "kernel_size") // 2
        words["padding"] = _some(rng, rank, 0, half if rng.random() < 0.9 else half + 2)
        if rng.random() < 0.1:
            words["padding"] = pick(
                rng, ("same", "same_lower", "valid", [(int(rng.integers(2)), int(rng.integers(2)))] * rank)
            )
    if family in ("max_pool", "min_pool") and rng.random() < 0.4:
        words["dilation"] = _some(rng, rank, 1, 3)
    if rng.random() < 0.4:
        words["ceil_mode"] = bool(rng.random() < 0.7)


def _boundaries(rng: Rng, n: int) -> list[tuple[int, int]]:
    """Return random windows in ascending order: repeated, of one cell, late, or one for each cell."""
    n = max(n, 1)
    m = int(rng.integers(1, n + 3)) if rng.random() < 0.7 else n
    starts = np.sort(rng.integers(0, n, m))
    if rng.random() < 0.4:
        return [(int(a), int(a) + 1) for a in starts]
    stops = np.maximum.accumulate(np.minimum(starts + 1 + rng.integers(0, 4, m), n))
    return [(int(a), int(b)) for a, b in zip(starts, stops, strict=True)]


def _fractional(rng: Rng, rank: int, family: str, shape: tuple[int, ...], batched: bool, dtype: str) -> dict[str, Any]:
    lengths = shape[len(shape) - rank :]
    if rng.random() < 0.4:
        return {"windows": [_boundaries(rng, n) for n in lengths]}
    words: dict[str, Any] = {}
    if rng.random() < 0.5:
        words["output_size"] = pick(rng, (tuple, list))([int(rng.integers(1, max(n, 1) + 1)) for n in lengths])
    else:
        words["output_ratio"] = tuple(float(rng.integers(3, 10)) / 10 for _ in lengths)
    if rng.random() < 0.5 or family == "fractional_avg_pool":
        if rng.random() < 0.5:
            words["kernel_size"] = _some(rng, rank, 1, 3)
        else:
            words["overlapping"], words["pseudo_random"] = bool(rng.integers(2)), bool(rng.integers(2))
        return {**words, "seed": pick(rng, (3, (5, 6)))}
    words["kernel_size"] = _some(rng, rank, 1, 3)
    planes = (shape[0], shape[1]) if batched else (1, shape[0])
    samples = "float32" if dtype not in FLOATS else dtype
    words["_random_samples"] = Data(samples, (*planes, rank), "plain", int(rng.integers(1 << 20)))
    return words


def _words(rng: Rng, family: str, rank: int, shape: tuple[int, ...], batched: bool, dtype: str) -> dict[str, Any]:
    words: dict[str, Any] = {}
    if family in ("max_pool", "min_pool", "avg_pool", "lp_pool"):
        if family == "lp_pool":
            words["norm_type"] = pick(rng, (1, 2, 3, 4, 1.5, 2.0))
        _sliding(rng, rank, family, words)
        if family == "lp_pool" and rank == 1:
            words["kernel_size"] = int(rng.integers(1, 5))
        if family == "avg_pool" and rng.random() < 0.5:
            words["count_include_pad"] = bool(rng.integers(2))
        if family == "avg_pool" and rank > 1 and rng.random() < 0.2:
            words["divisor_override"] = pick(rng, (1, 2, 3, -2, 7, 2.5))
    elif family.startswith("adaptive"):
        words["output_size"] = _some(rng, rank, 1 if rng.random() < 0.9 else 0, 5)
        if rng.random() < 0.1 and rank > 1:
            words["output_size"] = (None, *[2] * (rank - 1))
    elif family.startswith("fractional"):
        words = _fractional(rng, rank, family, shape, batched, dtype)
    else:
        words["kernel_size"] = _some(rng, rank, 1, 3)
        if rng.random() < 0.5:
            words["stride"] = pick(rng, (None, _some(rng, rank, 1, 3)))
        if rng.random() < 0.2:
            words["padding"] = int(rng.integers(2))
        if rng.random() < 0.3:
            words["output_size"] = _unpool_size(rng, rank, shape, words)
        words["index"] = (
            pick(rng, ("unique", "unique", "repeat", "int32", "outside", "negative")),
            int(rng.integers(1 << 20)),
        )
        words["reduce"] = pick(rng, ("sum", "assign"))
    if family in ("max_pool", "min_pool", "adaptive_max_pool", "fractional_max_pool") and rng.random() < 0.5:
        words["return_indices"] = True
    return words


def _unpool_size(rng: Rng, rank: int, shape: tuple[int, ...], words: dict[str, Any]) -> Any:
    """Return an output size of `max_unpool` near the default, or not so near."""
    case = Case(Call(f"max_unpool{rank}d", x=Data("float32", shape), **words))
    near = tuple(max(n + int(rng.integers(-1, 3)), 0) for n in case._unpooled() or ())
    return (*shape[:2], *near) if rng.random() < 0.2 and len(shape) == rank + 2 else near


def _shape(rng: Rng, rank: int) -> tuple[tuple[int, ...], bool]:
    batched = bool(rng.random() < 0.75)
    most = {1: 24, 2: 9, 3: 6}[rank]
    most = most if rng.random() < 0.97 else {1: 600, 2: 24, 3: 8}[rank]  # room for windows of more than 256 cells
    lengths = [int(n) for n in rng.integers(1, most + 1, rank)]
    leading = [int(n) for n in rng.integers(1, 4, 1 + batched)]
    shape = [*leading, *lengths]
    if rng.random() < 0.06:
        shape[int(rng.integers(len(shape))) if rng.random() < 0.5 else 0] = 0
    return tuple(shape), batched


class Kind(str):
    """A tensor of a kind that no pool takes as input, by its name."""

    def tensor(self, rank: int) -> Tensor:
        x = torch.ones(2, 2, *[4] * rank)
        if self == "sparse":
            return x.to_sparse()
        if self == "csr":
            return x.to_sparse_csr(dense_dim=x.ndim - 2)
        if self == "nested":
            return torch.nested.nested_tensor([x[0], x[1]])
        if self == "quint8":
            return torch.quantize_per_tensor(x, 0.5, 3, torch.quint8)
        if self == "bits8":
            return x.to(torch.uint8).view(torch.bits8)
        return x.to(getattr(torch, self))

    def __repr__(self) -> str:
        return f"Kind({str(self)!r})"


TWO = Kind("tensor(2)")  # a size that is a tensor

# Values that are wrong in some pool. Both must refuse them, or the page says which of the two takes them.
WRONG: dict[str, tuple[Any, ...]] = {
    "kernel_size": (0, -1, 2.5, "two", True, None, (), (2, 2, 2, 2), 2**40, 2**70, (2, "a"), TWO),
    "stride": (0, -1, 2.5, "two", True, (2, 2, 2, 2), 2**70, (0, 1, 1)),
    "padding": (-1, 1.5, "full", True, None, (1, 1, 1, 1), 2**70, 40),
    "dilation": (0, -2, 1.5, "two", True, None, (1, 1, 1, 1), 2**70),
    "ceil_mode": (1, "yes", None, 0.5),
    "count_include_pad": (1, "False", None),
    "divisor_override": (0, 0.0, "two", True, 10**400, float("nan"), float("inf")),
    "norm_type": (0, -1, "two", None, True, float("inf"), float("nan")),
    "output_size": (-1, 2.5, "two", True, (1, 1, 1, 1, 1, 1), (), 2**62, (1, "a"), 2**70),
    "output_ratio": (0, -0.5, 1.5, "half", None, (0.5, 0.5, 0.5, 0.5), float("nan"), 0.01),
    "overlapping": (1, "yes", None),
    "pseudo_random": (1, "yes", None),
    "seed": (1.5, "one", (1, 2, 3), (1,), 2**70),
    "reduce": ("max", None, 1),
    "windows": ([], [[(0, 99)]] * 3, [[(2, 1)]], [[(0, 1.5)]], "all", [[(-1, 1)]], [[(1, 2), (0, 1)]]),
    "_random_samples": ("none", Data("float32", (1, 1, 5)), Data("float32", (2,)), Data("int64", (1, 1, 2))),
    "return_indices": (1, "yes"),
    "index": ("none", [1, 2], Data("float32", (1, 1, 2)), Data("bool", (1, 1, 2)), None),
    "unknown": (1,),
}


def _spoilt(rng: Rng, call: Call) -> Call:
    """Return the call with one wrong argument; of a function, because a class may refuse it before we see it."""
    call = call.without("module")
    if rng.random() < 0.2:
        x = call.args["x"]
        wrong = (
            None,
            [1.0, 2.0],
            "x",
            replace_shape(x, x.shape[2:]),
            replace_shape(x, (1, 1, *x.shape, 1)),
            Kind("complex64"),
            Kind("float8_e4m3fn"),
            Kind("sparse"),
            Kind("quint8"),
            Kind("nested"),
            Kind("bits8"),
            Kind("csr"),
        )
        return call.without("vmap").but(x=pick(rng, wrong))
    names = [n for n in WRONG if n in call.args]
    if rng.random() < 0.3:
        names = ["unknown", "missing"] if rng.random() < 0.2 else [n for n in WRONG if n in parameters(call.name)]
    name = pick(rng, names or ["unknown"])
    if name == "missing":
        return call.without(pick(rng, [n for n in call.args if n != "x"] or ["x"]))
    return call.but(**{name: pick(rng, WRONG[name])})


def replace_shape(data: Data, shape: tuple[int, ...]) -> Data:
    """Return the data in another shape."""
    return Data(data.dtype, tuple(max(n, 1) for n in shape) or (1,), data.kind, data.seed)


def parameters(name: str) -> Any:
    return inspect.signature(getattr(pgt, name)).parameters


def draw(rng: Rng) -> Call:
    """Return a random call."""
    family = pick(rng, [f for f, often in FAMILIES.items() for _ in range(often)])
    rank = int(pick(rng, (1, 2, 2, 2, 3)))
    shape, batched = _shape(rng, rank)
    dtype = pick(rng, (*FLOATS, "float32", "float64")) if rng.random() < 0.8 else pick(rng, WHOLE)
    words = _words(rng, family, rank, shape, batched, dtype)
    kind = (
        "ties"
        if dtype == "bool"
        else pick(rng, ("ties", "ties", "plain", "wild", "bits" if dtype in WHOLE else "distinct"))
    )
    meta: dict[str, Any] = {}
    if rng.random() < 0.6:
        meta["layout"] = pick(rng, tuple(LAYOUTS))
    if rng.random() < 0.3 and 0 not in shape and family != "max_unpool" and "_random_samples" not in words:
        at = int(rng.integers(len(shape) + 1))
        shape = (*shape[:at], 2, *shape[at:])
        meta["vmap"] = at if rng.random() < 0.7 else at - len(shape)
    if rng.random() < 0.15 and "_random_samples" not in words and "divisor_override" not in words:
        meta["module"] = True
    call = Call(f"{family}{rank}d", x=Data(dtype, shape, kind, int(rng.integers(1 << 20))), **meta, **words)
    return _spoilt(rng, call) if rng.random() < 0.15 else call
