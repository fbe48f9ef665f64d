"""Pools for NumPy users as blocks: read their arguments from text, check a call, run it, its gradient, its tangent."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.errors import ArgumentErrors
from .._common.integers import ROUNDINGS
from .._explain.pools import GRADIENT, POOL, TANGENT, pool_subject
from .._explain.subject import Subject
from .._pooling.named import POOLS, WORDS, dtype_of, function_of, options_of, windows_of
from .._pooling.tape import jvp, vjp
from .._windows.plan import Plan
from . import text
from .text import TextError

Array = npt.NDArray[Any]
SECOND = "second"
_FORMS = {"": POOL, "_grad": GRADIENT, "_tangent": TANGENT}
_MOST = 2**20  # in numbers that say how many windows there are, where a page has limits
_PADDINGS = ("valid", "same", "same_lower")
_PAIR = re.compile(r"[(\[{]\s*([-+]?\d+)\s*[,;\s]\s*([-+]?\d+)\s*[)\]}]")


# ---- texts


def _ints(given: str) -> int | list[int]:
    """Read one integer, or one per axis."""
    found = text.ints(given)
    if not found:
        raise TextError(0, max(len(given), 1), "nothing", "an integer, or one per axis")
    return found[0] if len(found) == 1 else found


def _maybe(read: Callable[[str], Any], given: str) -> Any:
    """Read a text that may be empty."""
    return read(given) if given.strip() else None


def _padding(given: str) -> Any:
    """Read a rule, one number of cells, one per axis, or a pair per axis.

    >>> _padding("SAME"), _padding("1"), _padding("1,2"), _padding("(0,1),(2,0)")
    ('same', 1, [1, 2], [[0, 1], [2, 0]])
    """
    if re.search(r"[A-Za-z]", given):
        return text.word(given, _PADDINGS)
    pairs = _PAIR.findall(given)
    rest = _PAIR.sub(lambda found: " " * len(found.group()), given)
    if len(pairs) > 1 or (pairs and re.search(r"[(\[{]", rest)):
        wrong = re.search(r"[^\s,;()\[\]{}]", rest)
        if wrong:
            raise TextError(wrong.start(), 1, repr(wrong.group()), "pairs like (0,1),(2,0)")
        return [[int(a), int(b)] for a, b in pairs]
    return _ints(given)


def _real(given: str) -> float:
    found = text.floats(given)
    if len(found) != 1:
        raise TextError(0, max(len(given), 1), f"{len(found)} numbers", "one number")
    return found[0]


def _reals(given: str) -> float | list[float]:
    found = text.floats(given)
    if not found:
        raise TextError(0, max(len(given), 1), "nothing", "a number, or one per axis")
    return found[0] if len(found) == 1 else found


def _word(words: tuple[str, ...]) -> Callable[[str], str]:
    return partial(text.word, words=words)


def _layout(given: str) -> str | None:
    word = text.quoted(given)[0]
    if word and not word.isalpha():
        raise TextError(0, len(given), repr(word), "a letter per axis, such as NHWC")
    return word.upper() or None


@dataclass(frozen=True)
class Argument:
    """An argument of pools that is typed."""

    doc: str
    type: str
    read: Callable[[str], Any]
    default: str = ""  # in a new block
    example: str = ""
    words: tuple[str, ...] | None = None
    required: bool = False
    unset: str = ""  # shown where nothing is typed


_TIES, _NAN = ("first", "last", "all", "split"), ("propagate", "ignore", "tf")
ARGUMENTS = {
    "window": Argument("the length of the windows: one for all pooled axes, or one per axis", "ints", _ints, "2", "2,3", required=True),
    "stride": Argument("the step from one window to the next; nothing: the window", "ints", partial(_maybe, _ints), "", "1", unset="the window"),
    "padding": Argument("valid, same, same_lower, a number of cells, or a pair (before,after) per axis", "padding",
                        lambda t: _padding(t) if t.strip() else "valid", "valid", "(0,1),(1,0)", _PADDINGS, unset="valid"),
    "size": Argument("the number of windows: one for all pooled axes, or one per axis", "ints", _ints, "2", "3,2", required=True),
    "ratio": Argument("the mean length of the windows, at least 1: one for all pooled axes, or one per axis", "floats", _reals, "1.5", "1.4,1.7", required=True),
    "seed": Argument("an integer, or TensorFlow's pair seed,seed2: it decides the windows", "ints", _ints, "1", "1,2", required=True),
    "layout": Argument("a letter per axis: all but N and C are pooled; nothing: all axes are, or those of axes", "layout", _layout, "NHWC", "NHWC", unset="all axes"),
    "p": Argument("the power of the norm, above 0", "floats", _real, "2", "3", required=True),
    "dilation": Argument("the distance between neighbouring cells of a window", "ints", _ints, "", "2"),
    "axes": Argument("the axes to pool, in ascending order", "ints", partial(_maybe, _ints), "", "1,2"),
    "ceil_mode": Argument("round the number of windows up", "bool", text.boolean, "", "true"),
    "ties": Argument("which of equal cells gets the gradient", "word", _word(_TIES), "", "split", _TIES),
    "nan": Argument("the rule for NaN", "word", _word(_NAN), "", "ignore", _NAN),
    "count_include_pad": Argument("count the padding in means", "bool", text.boolean, "", "true"),
    "divisor": Argument("divide by this instead of the number of cells", "floats", _real, "", "4"),
    "dtype": Argument("the element type of the result", "dtype", text.dtype, "", "float64"),
    "rounding": Argument("how results are rounded to integers", "word", _word(tuple(ROUNDINGS)), "", "floor", tuple(ROUNDINGS)),
    "pseudo_random": Argument("windows that differ less", "bool", text.boolean, "", "true"),
    "overlapping": Argument("windows share the cells at their borders", "bool", text.boolean, "", "true"),
}  # fmt: skip
"""The typed arguments of all pools, by name; `_pooling.named` says which pool has which."""

_PINS = {  # the arguments that have a pin of their own; the text `attrs` holds the others
    "sliding": ("window", "stride", "padding", "layout"),
    "adaptive": ("size", "layout"),
    "global": ("layout",),
    "fractional": ("ratio", "seed", "layout"),
}


@dataclass(frozen=True)
class PoolForm:
    """A pool as a block: itself, or a derivative of it."""

    pool: str
    form: str

    @property
    def inputs(self) -> dict[str, str]:
        """The arrays that it takes, by name, each with what it is."""
        found = {"x": "the array to pool, of any rank" if self.form == POOL else "the array that was pooled"}
        if self.form in (GRADIENT, SECOND):
            found["g"] = "a gradient at the result, with its shape"
        if self.form in (TANGENT, SECOND):
            found["v"] = "a direction, with the shape of x"
        return found

    @property
    def pins(self) -> tuple[str, ...]:
        """The arguments that have a pin of their own."""
        kind, how = POOLS[self.pool]
        return (*_PINS[how], *(("p",) if kind == "lp" else ()))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The arguments in the text `attrs`."""
        kept = (*WORDS[POOLS[self.pool][1]], *options_of(self.pool))
        known = kept if self.form == POOL else tuple(name for name in kept if name not in ("dtype", "rounding"))
        return tuple(name for name in known if name not in self.pins)

    @property
    def doc(self) -> str:
        """Return a sentence that says what the block computes."""
        first = (inspect.getdoc(function_of(self.pool)) or "").partition("\n")[0]
        return {
            POOL: first,
            GRADIENT: f"Gradient of {self.pool}: from a gradient at its result to one at x.",
            TANGENT: f"Derivative of {self.pool} along v.",
            SECOND: f"Gradient of {self.pool}_grad with respect to x, for a gradient v at its result.",
        }[self.form]


FORMS = {
    **{f"{pool}{end}": PoolForm(pool, form) for end, form in _FORMS.items() for pool in POOLS},
    "lp_pool_second": PoolForm("lp_pool", SECOND),  # all other pools are linear, once their taps are chosen
}
"""The blocks of pools, by name."""


# ---- calls


@dataclass(frozen=True)
class PoolCall:
    """A checked call of a pool, or of a derivative."""

    form: PoolForm
    plan: Plan
    dtype: np.dtype[Any]
    words: Mapping[str, Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return self.plan.dest if self.form.form in (POOL, TANGENT) else self.plan.source

    def run(self, arrays: Mapping[str, Array]) -> Array:
        """Compute the result."""
        pool, words, x = function_of(self.form.pool), self.words, arrays["x"]

        def pooled(a: Any) -> Any:
            return pool(a, **words)

        found: Any
        if self.form.form == POOL:
            found = pooled(x)
        elif self.form.form == GRADIENT:
            found = vjp(pooled, x)[1](arrays["g"])
        elif self.form.form == TANGENT:
            found = jvp(pooled, x, arrays["v"])[1]
        else:
            found = vjp(lambda a: vjp(pooled, a)[1](arrays["g"]), x)[1](arrays["v"])
        return np.asarray(found)

    def subject(self, arrays: Mapping[str, Array], output: Array) -> Subject | None:
        """Return the call that ran, ready to be explained; None for a second derivative."""
        if self.form.form == SECOND:
            return None
        return pool_subject(self.form.pool, self.form.form, self.plan, self.words, {**arrays, "output": output})


def bind_pool(form: PoolForm, values: Mapping[str, Any], arrays: Mapping[str, Array], limited: bool) -> PoolCall:
    """Check everything that does not depend on the arrays' elements; raise an error with findings at arguments."""
    problems = ArgumentErrors(form.pool)
    words = {name: value for name, value in values.items() if name in ARGUMENTS and value is not None}
    if limited:
        _moderate(problems, words)
    x = arrays["x"]
    if form.form != POOL and x.dtype.kind in "iub":
        problems.fail("x", f"dtype {x.dtype.name}", "a floating dtype: integers have no derivatives", TypeError)
    about = windows_of(form.pool, x.shape, words)
    options = {name: words[name] for name in options_of(form.pool) if name in words}
    dtype = dtype_of(form.pool, x.dtype, options)
    for name, shape in (("g", about.plan.dest), ("v", about.plan.source)):
        if name not in arrays:
            continue
        array = arrays[name]
        if array.dtype != x.dtype:
            problems.add(name, f"dtype {array.dtype.name}", f"{x.dtype.name}, the dtype of x", TypeError)
        elif array.shape != shape:
            why = "the shape of the result" if name == "g" else "the shape of x"
            problems.add(name, f"shape {list(array.shape)}", f"{list(shape)}, {why}", shape=shape)
    problems.raise_if_any()
    return PoolCall(form, about.plan, dtype, words)


def _moderate(problems: ArgumentErrors, words: Mapping[str, Any]) -> None:
    """Refuse numbers that would make tables of windows too long for a page with limits."""
    for name in ("window", "padding", "size", "dilation"):
        value = words.get(name)
        if (
            isinstance(value, (int, list))
            and max((abs(n) for n in np.ravel(np.array(value, object))), default=0) > _MOST
        ):
            problems.fail(name, value, f"numbers up to {_MOST} on this page")
