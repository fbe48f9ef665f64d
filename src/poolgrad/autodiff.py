"""Derivatives of any order of functions made of pools and elementwise arithmetic: a small tape that records itself.

Every pullback is written with the operations that are recorded, so a pullback can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .arrays import Array, as_array
from .errors import Problems, brief
from .operators import Linear

Pullback = Callable[["Var"], "Var"]


class Var:
    """An array that remembers how it was made. Pools, + - * / **, abs, sum and reshape work on it."""

    __array_ufunc__ = None  # NumPy leaves arithmetic with a variable to the variable

    def __init__(self, value: Array, parents: tuple[tuple[Var, Pullback], ...] = ()) -> None:
        self.value, self.parents = value, parents

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the value."""
        return self.value.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions of the value."""
        return self.value.ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the value."""
        return self.value.dtype

    def __array__(self, *_: Any, **__: Any) -> Array:
        raise TypeError(
            "Var: an array that is being differentiated: got a NumPy function, wanted a pool, + - * / **, abs, sum or reshape"
        )

    def __repr__(self) -> str:
        return f"Var({self.value!r})"

    def __add__(self, other: Any) -> Var:
        a, b = self, _var(other, self)
        return Var(
            a.value + b.value, ((a, lambda g: _unbroadcast(g, a.shape)), (b, lambda g: _unbroadcast(g, b.shape)))
        )

    def __mul__(self, other: Any) -> Var:
        a, b = self, _var(other, self)
        return Var(
            a.value * b.value,
            ((a, lambda g: _unbroadcast(g * b, a.shape)), (b, lambda g: _unbroadcast(g * a, b.shape))),
        )

    def __pow__(self, p: float) -> Var:
        """To a constant power."""
        if isinstance(p, Var):
            raise TypeError("Var: **: got a variable as exponent, wanted a number")
        return Var(self.value**p, ((self, lambda g: g * (self ** (p - 1) * p)),) if p else ())

    def __abs__(self) -> Var:
        sign = Var(np.sign(self.value))
        return Var(np.abs(self.value), ((self, lambda g: g * sign),))

    def __neg__(self) -> Var:
        return self * -1

    def __sub__(self, other: Any) -> Var:
        return self + _var(other, self) * -1

    def __rsub__(self, other: Any) -> Var:
        return _var(other, self) - self

    def __truediv__(self, other: Any) -> Var:
        return self * _var(other, self) ** -1

    def __rtruediv__(self, other: Any) -> Var:
        return _var(other, self) / self

    __radd__ = __add__
    __rmul__ = __mul__

    def sum(self) -> Var:
        """The sum of all cells."""
        return Var(np.asarray(self.value.sum(dtype=self.dtype)), ((self, lambda g: _broadcast(g, self.shape)),))

    def reshape(self, *shape: Any) -> Var:
        """The same cells in another shape."""
        return Var(self.value.reshape(*shape), ((self, lambda g: g.reshape(self.shape)),))


def _var(value: Any, like: Var) -> Var:
    return value if isinstance(value, Var) else Var(np.asarray(value, like.dtype))


def _broadcast(v: Var, shape: tuple[int, ...]) -> Var:
    return Var(np.broadcast_to(v.value, shape), ((v, lambda g: _unbroadcast(g, v.shape)),))


def _unbroadcast(g: Var, shape: tuple[int, ...]) -> Var:
    """The sum of g over the axes along which an array of that shape was repeated."""
    if g.shape == shape:
        return g
    extra = g.ndim - len(shape)
    axes = (*range(extra), *(d + extra for d, n in enumerate(shape) if n == 1 and g.shape[d + extra] != 1))
    kept = g.value.sum(axis=axes, dtype=g.dtype, keepdims=True).reshape(shape)
    return Var(kept, ((g, lambda h: _broadcast(h.reshape((1,) * extra + shape), g.shape)),))


def lift(operator: Linear, v: Var, value: Array | None = None) -> Var:
    """The operator on a variable; its value may be known already."""
    if v.shape != operator.source:
        Problems(operator.name).fail("v", f"shape {list(v.shape)}", list(operator.source))
    back = operator.T
    return Var(operator.forth(v.value) if value is None else value, ((v, lambda g: lift(back, g)),))


def _pull(y: Var, g: Var, x: Var) -> Var:
    """What g at y is worth at x."""
    order: list[Var] = []
    seen: set[int] = set()
    stack: list[tuple[Var, bool]] = [(y, False)]
    while stack:  # parents before children, without recursion: a tape may be long
        node, done = stack.pop()
        if done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            if node is not x:  # what x was made of is not asked for
                stack.extend((parent, False) for parent, _ in node.parents)
    arrived: dict[int, Var] = {id(y): g}
    for node in reversed(order):
        here = arrived.get(id(node))
        if here is None or node is x:
            continue
        for parent, pullback in node.parents:
            add = pullback(here)
            arrived[id(parent)] = arrived[id(parent)] + add if id(parent) in arrived else add
    return arrived.get(id(x), Var(np.zeros(x.shape, x.dtype)))


def _traced(op: str, f: Callable[[Any], Any], x: Any) -> tuple[Var, Var]:
    if isinstance(x, Var):
        start = Var(x.value, ((x, lambda g: g),))
    else:
        problems = Problems(op)
        array = as_array(problems, "x", x)
        problems.settle()
        assert array is not None
        if array.dtype.kind in "iub":
            problems.fail("x", f"dtype {array.dtype}", "a floating dtype: integers have no derivatives", TypeError)
        start = Var(array)
    y = f(start)
    if not isinstance(y, Var):
        Problems(op).fail(
            "f", f"a function that returned {brief(y)}", "one that returns a pooled or computed x", TypeError
        )
    return start, y


def vjp(f: Callable[[Any], Any], x: Any) -> tuple[Any, Callable[[Any], Any]]:
    """f(x), and the function that takes a cotangent of f(x) to the cotangent of x.

    It nests: inside a function that is itself differentiated it returns variables, which gives every order.

    >>> import poolgrad as pg
    >>> y, back = pg.vjp(lambda x: pg.max_pool(x, 2), np.array([1.0, 3.0, 2.0, 0.0]))
    >>> y.tolist(), back(np.array([10.0, 20.0])).tolist()
    ([3.0, 2.0], [0.0, 10.0, 20.0, 0.0])
    """
    start, y = _traced("vjp", f, x)
    outer = isinstance(x, Var)

    def back(g: Any) -> Any:
        cotangent = _var(g, y)
        if cotangent.shape != y.shape:
            Problems("vjp").fail("g", f"shape {list(cotangent.shape)}", list(y.shape))
        dx = _pull(y, cotangent, start)
        return dx if outer or isinstance(g, Var) else dx.value

    return (y if outer else y.value), back


def jvp(f: Callable[[Any], Any], x: Any, v: Any) -> tuple[Any, Any]:
    """f(x), and how it changes where x moves along v: the pullback, which is linear, pulled back.

    >>> import poolgrad as pg
    >>> y, dy = pg.jvp(lambda x: pg.avg_pool(x, 2), np.array([1.0, 3.0]), np.array([1.0, 0.0]))
    >>> y.tolist(), dy.tolist()
    ([2.0], [0.5])
    """
    start, y = _traced("jvp", f, x)
    tangent = _var(v, start)
    if tangent.shape != start.shape:
        Problems("jvp").fail("v", f"shape {list(tangent.shape)}", list(start.shape))
    probe = Var(np.zeros(y.shape, y.dtype))
    dy = _pull(_pull(y, probe, start), tangent, probe)
    return (y, dy) if isinstance(x, Var) or isinstance(v, Var) else (y.value, dy.value)


def grad(f: Callable[[Any], Any], x: Any) -> Any:
    """The gradient at x of a function to a single number.

    >>> import poolgrad as pg
    >>> pg.grad(lambda x: (pg.max_pool(x, 2) ** 2).sum(), np.array([1.0, 3.0])).tolist()
    [0.0, 6.0]
    """
    y, back = vjp(f, x)
    if np.shape(y.value if isinstance(y, Var) else y) != ():
        Problems("grad").fail("f", f"a function to shape {list(y.shape)}", "one to a single number, such as ...sum()")
    return back(np.ones((), y.dtype))
