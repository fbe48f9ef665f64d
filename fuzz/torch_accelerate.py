"""Compare random calls of torch's own pools with `poolgrad.torch.accelerate()` on and off: bits, strides, derivatives, errors.

    python fuzz/torch_accelerate.py --calls 20000 --seed 7

Half of the calls run with the policy (small calls go to torch), half of them without, so that every call that can be computed is.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(ROOT / "fuzz" / "helpers")]

import torch
import torch.nn.functional as F
from differential import Call, Data, Documented, Rng, main, pick
from torch_calls import LAYOUTS, UNDUAL, tensor
from torch_same import same

import poolgrad.torch as pgt
from poolgrad.torch import _compiled

Tensor = torch.Tensor
torch.set_num_threads(1)
warnings.simplefilter("ignore")

FLOATS = ("float32", "float32", "float64", "float16", "bfloat16")
WHOLE = ("int64", "int32", "int16", "int8", "uint8")
KINDS = ("plain", "plain", "ties", "wild", "extreme", "nan", "bits")
USES = (
    "values",
    "values",
    "gradient",
    "gradient",
    "second",
    "vmap",
    "jvp",
    "batched",
    "out",
    "no_grad",
    "inference",
    "checkpoint",
)


def _sizes(rng: Rng, rank: int, most: int, least: int = 1) -> Any:
    one = [int(rng.integers(least, most + 1)) for _ in range(rank)]
    return one[0] if rng.random() < 0.5 else tuple(one)


def draw(rng: Rng) -> Call:
    """Return a random call, wrong ones among them."""
    family = pick(
        rng,
        (
            "max_pool",
            "max_pool",
            "max_pool",
            "avg_pool",
            "avg_pool",
            "adaptive_max_pool",
            "adaptive_avg_pool",
            "fractional_max_pool",
        ),
    )
    rank = int(rng.integers(1, 4))
    if family == "fractional_max_pool":
        rank = max(rank, 2)
    batch = [int(rng.integers(1, 4)), int(pick(rng, (1, 2, 3, 7, 8, 16, 17, 33)))][int(rng.random() < 0.15) :]
    shape = (
        *batch,
        *(int(n) for n in rng.integers(*((1, 4) if rng.random() < 0.1 else (4, (60, 24, 14)[rank - 1])), rank)),
    )
    if rng.random() < 0.03:
        shape = shape[1:] if rng.random() < 0.5 else (2, *shape)
    if rng.random() < 0.03:
        shape = (*shape[:-1], 0)
    words: dict[str, Any] = {}
    if family.startswith("adaptive"):
        words["output_size"] = _sizes(rng, rank, 9)
    elif family.startswith("fractional"):
        words |= {"kernel_size": _sizes(rng, rank, 3), "output_size": _sizes(rng, rank, int(pick(rng, (4, 12))))}
    else:
        kernel = _sizes(rng, rank, int(pick(rng, (2, 3, 4, 5, 11))))
        words["kernel_size"] = kernel
        each = kernel if isinstance(kernel, tuple) else (kernel,) * rank
        if rng.random() < 0.8:
            words["stride"] = _sizes(rng, rank, 4)
        if rng.random() < 0.5:
            words["padding"] = tuple(int(rng.integers(0, k // 2 + 1 + (rng.random() < 0.05))) for k in each)
        if rng.random() < 0.5:
            words["ceil_mode"] = bool(rng.random() < 0.7)
        if family == "max_pool" and rng.random() < 0.1:
            words["dilation"] = _sizes(rng, rank, 2)
        if family == "avg_pool" and rng.random() < 0.5:
            words["count_include_pad"] = bool(rng.random() < 0.5)
        if family == "avg_pool" and rank > 1 and rng.random() < 0.3:
            words["divisor_override"] = int(pick(rng, (1, 2, 3, 7, -3, 0, 100)))
        if rng.random() < 0.03:
            words[pick(rng, list(words))] = pick(rng, (0, -1, (1, 1, 1, 1), ()))
    if "max" in family and rng.random() < 0.4:
        words["return_indices"] = True
    dtype = pick(rng, FLOATS) if rng.random() < 0.85 else pick(rng, WHOLE)
    layout = pick(rng, ("plain", "plain", "channels_last", "channels_last", *LAYOUTS))
    data = Data(dtype, shape, pick(rng, KINDS), int(rng.integers(1 << 30)))
    return Call(
        f"{family}{rank}d", x=data, layout=layout, use=pick(rng, USES), policy=bool(rng.random() < 0.5), **words
    )


def _cotangent(y: Tensor) -> Tensor:
    return ((torch.arange(y.numel()) % 7 - 3).to(torch.float64) / 3).reshape(y.shape).to(y.dtype)


def _several(y: Any) -> list[Tensor]:
    return list(y) if isinstance(y, tuple) else [y]


def _differentiated(run: Callable[[Tensor], Any], x: Tensor, use: str) -> list[Any]:
    """Return the results of a call that is differentiated, or run in one of torch's modes."""
    if use == "no_grad":
        with torch.no_grad():
            return _several(run(x))
    if use == "inference":
        with torch.inference_mode():
            return [y.clone() for y in _several(run(x))]
    if use == "vmap":
        return _several(torch.func.vmap(run)(torch.stack([x, x.flip(-1)])))
    if use == "jvp":
        y, dy = torch.func.jvp(lambda x: _several(run(x))[0], (x.detach(),), (_cotangent(x),))
        return [y, dy]
    leaf = x.detach().clone(memory_format=torch.preserve_format).requires_grad_()
    if use == "checkpoint":
        y = torch.utils.checkpoint.checkpoint(run, leaf, use_reentrant=False)
        return [*_several(y), *torch.autograd.grad(_several(y)[0], leaf, _cotangent(_several(y)[0]))]
    made = _several(run(leaf))
    g = _cotangent(made[0]).requires_grad_(use == "second")
    if use == "batched":
        rows = torch.stack([g, g.flip(-1)])
        return [*made, *torch.autograd.grad(made[0], leaf, rows, is_grads_batched=True)]
    (dx,) = torch.autograd.grad(made[0], leaf, g, create_graph=use == "second")
    if use != "second":
        return [*made, dx]
    (ddy,) = torch.autograd.grad(dx, g, _cotangent(dx))
    return [*made, dx, ddy]


OUTS = {
    "max_pool2d": torch.ops.aten.max_pool2d_with_indices,
    "max_pool3d": torch.ops.aten.max_pool3d_with_indices,
    "avg_pool2d": torch.ops.aten.avg_pool2d,
    "avg_pool3d": torch.ops.aten.avg_pool3d,
    "adaptive_max_pool2d": torch.ops.aten.adaptive_max_pool2d,
    "adaptive_max_pool3d": torch.ops.aten.adaptive_max_pool3d,
    "adaptive_avg_pool2d": torch.ops.aten.adaptive_avg_pool2d,
    "adaptive_avg_pool3d": torch.ops.aten.adaptive_avg_pool3d,
    "fractional_max_pool2d": torch.ops.aten.fractional_max_pool2d,
    "fractional_max_pool3d": torch.ops.aten.fractional_max_pool3d,
}
BACK = {  # the gradients into given results, and the words that they take
    "max_pool2d": (torch.ops.aten.max_pool2d_with_indices_backward, True),
    "max_pool3d": (torch.ops.aten.max_pool3d_with_indices_backward, True),
    "adaptive_max_pool2d": (torch.ops.aten.adaptive_max_pool2d_backward, False),
    "adaptive_max_pool3d": (torch.ops.aten.adaptive_max_pool3d_backward, False),
    "fractional_max_pool2d": (torch.ops.aten.fractional_max_pool2d_backward, True),
    "fractional_max_pool3d": (torch.ops.aten.fractional_max_pool3d_backward, True),
}


def _into(name: str, x: Tensor, words: dict[str, Any]) -> list[Tensor]:
    """Return the results of the operator with given results: of the right shape, filled with ones."""
    op = OUTS[name]
    rank = int(name[-2])
    pairs = {
        n: [v] * rank if type(v) is int and n not in ("divisor_override",) else v
        for n, v in words.items()
        if n != "return_indices"
    }
    if "_random_samples" in pairs:
        pairs["random_samples"] = pairs.pop("_random_samples")
    made = _several(op(x, **pairs))
    made = [torch.ones_like(y) for y in made]
    if len(made) == 1:
        op.out(x, **pairs, out=made[0])
    elif "random_samples" in pairs:
        op.output(x, **pairs, output=made[0], indices=made[1])
    else:
        op.out(x, **pairs, out=made[0], indices=made[1])
    if name not in BACK or not x.dtype.is_floating_point:
        return made
    back, worded = BACK[name]
    given = {n: v for n, v in pairs.items() if n != "random_samples"} if worded else {}
    if name.startswith("max_pool"):
        one = [1] * rank
        given = {"stride": [], "padding": [0] * rank, "dilation": one, "ceil_mode": False} | given
    dx = torch.ones_like(x)
    back.grad_input(_cotangent(made[0]), x, **given, indices=made[1], grad_input=dx)
    return [*made, dx]


def _run(call: Call) -> list[Any]:
    words = {n: v for n, v in call.args.items() if n not in ("x", "layout", "use", "policy")}
    x, rank = tensor(call.args["x"], int(call.name[-2]), call.args.get("layout", "plain")), int(call.name[-2])
    use = call.args.get("use", "values")
    if use == "jvp" and call.args.get("layout") in UNDUAL:
        use = "values"
    if call.name.startswith("fractional"):
        planes = (1 if x.ndim == rank + 1 else x.shape[0], x.shape[-rank - 1] if x.ndim > rank else 1)
        torch.manual_seed(3)
        words["_random_samples"] = torch.rand(*planes, rank, dtype=x.dtype if x.dtype.is_floating_point else None)
    function = getattr(F, call.name)
    if use == "out" and call.name in OUTS:
        return _into(call.name, x, words)
    if use in ("values", "out") or not x.dtype.is_floating_point:
        return _several(function(x, **words))
    return _differentiated(lambda x: function(x, **words), x, use)


def _attempt(call: Call) -> tuple[list[Any], str]:
    try:
        return _run(call), ""
    except Exception as error:
        return [], f"{type(error).__name__}: {error}"


def compare(call: Call, counts: Counter[str]) -> str:
    """Return "" if a call gives the same with acceleration and without."""
    words = [n for v in call.args.values() for n in (v if isinstance(v, tuple) else (v,)) if type(n) is int]
    if any(10**5 < n < 2**30 for n in words) or prod(call.args["x"].shape) > 10**6:
        return ""
    wanted, theirs = _attempt(call)
    before = sum(ways["poolgrad"] for ways in COMPILED.counters().values())
    COMPILED.policy(call.args.get("policy", False))
    with pgt.accelerate():
        got, ours = _attempt(call)
    COMPILED.policy(True)
    counts["computed by poolgrad"] += sum(w["poolgrad"] for w in COMPILED.counters().values()) > before
    counts["refused"] += bool(theirs)
    if ours != theirs:
        return f"{call.name}: got {ours or 'a result'}, wanted {theirs or 'a result'}"
    underflow = False
    for i, (a, b) in enumerate(zip(got, wanted, strict=True)):
        if not (text := same(a, b)):
            continue
        if not (call.name.startswith("avg") and a.is_floating_point() and not same(a + 0.0, b + 0.0)):
            return f"{call.name}: result {i}: {text}"
        underflow = True
    return Documented("a negative mean that underflows is -0.0, torch's 0.0") if underflow else ""


COMPILED = _compiled.load()

if __name__ == "__main__":
    if COMPILED is None:
        sys.exit(f"torch accelerate: the compiled part is missing: {_compiled.ADVICE}")
    sys.exit(main("torch accelerate", __doc__, draw, compare))
