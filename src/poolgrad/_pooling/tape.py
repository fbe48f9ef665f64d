"""Derivatives of any order of functions made of pools and elementwise arithmetic: a small tape that records itself.

Every pullback is written with operations that are recorded, so a pullback can be differentiated again. Functions may use
variables of the functions around them, to any depth. Three rules make that correct:

1. Each call of `vjp`, `jvp` or `grad` opens a `Level` of its own, gives f a start node of its own, and closes the level when f
   returns. So two derivatives never share a start, even at the same x: there is nothing that could be confused.
2. A variable carries the levels that took part in it: the union of its parents' levels, without those that are closed by then.
   Nobody can begin to differentiate by a closed level, so a closed level is a constant.
3. A pull walks from y to the start through exactly the nodes that carry the start's level. All nodes between them were made while
   the level was open, so rule 2 did not drop it, and no path is lost. The start's own parents are older than the level, so the walk
   ends there by itself; variables of outer functions are not walked through. They stay in the result as factors, and with them all
   paths that an outer pull needs.

A result is a variable if x, v or g is one, or if f(x) carries an open level that is older than f's own. It carries the levels of all
of these, even where its value happens not to depend on them: the derivative is 0 then, as no path leads there. Else it is an array.

Dtypes: a constant takes the dtype of the variable it meets, two variables promote as in NumPy, and a cotangent has the shape and
dtype of its variable.

Arrays: a value that a pullback reads later is copied when it is recorded, if it is the caller's memory (`borrowed`). A pullback reads
the factors of * and /, the base of **, and nothing else; an operator keeps its own copies.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from threading import local
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._common.arrays import Array, as_array
from .._common.errors import ArgumentErrors, short_repr
from .operators import Linear, Traced
from .types import Int, Number, Numbers, S

Pullback = Callable[["Var"], "Var"]
Parents = tuple[tuple["Var", Pullback], ...]

_ages = count()
_running = local()  # depth: how many functions this thread is tracing


class Level:
    """One call of vjp, jvp or grad: open while its function runs. A level with a lower age is an outer one."""

    __slots__ = ("age", "open")

    def __init__(self) -> None:
        self.age, self.open = next(_ages), True


Levels = tuple[Level, ...]


def _join(a: Levels, b: Levels) -> Levels:
    """Return the open levels of a and b."""
    if a is b or not b:
        return a
    if not a:
        return b
    joined = tuple(dict.fromkeys(level for level in (*a, *b) if level.open))
    return a if joined == a else joined


_BY_HAND: Levels = (Level(),)  # older than all others, and never closed


def _by_hand(parents: Parents) -> Levels:
    """Return the levels of a variable that a caller makes: its parents'; without parents, none inside a function that is traced."""
    levels: Levels = ()
    for parent, _ in parents:
        levels = _join(levels, parent.levels)
    inside = bool(getattr(_running, "depth", 0))
    return levels if parents or inside else _BY_HAND


class Var(Traced):
    """An array that records how it was computed, so that `grad`, `vjp` and `jvp` can differentiate it.

    The function that you differentiate receives a variable. It may use every pool, ``+ - * / **``, `abs`, `sum` and `reshape`;
    other NumPy functions raise a TypeError. For more operations, use the adapter of a framework.

    Parameters
    ----------
    value : ndarray
        The value. A constant that meets a variable takes the dtype of the variable.
    parents, levels, borrowed : optional
        Bookkeeping of the tape; leave them out.

    Attributes
    ----------
    value : ndarray
        The value, a plain array. Do not write to it.

    See Also
    --------
    grad, vjp, jvp : Differentiate a function of a variable.

    Notes
    -----
    Functions that are differentiated receive their variables, so you rarely make one. `Var(array)` makes a variable for all
    functions that are differentiated later. Inside such a function it makes a constant.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> def loss(x):  # x is a variable
    ...     y = pg.avg_pool(x, 2)
    ...     return (y * y / 2).sum()
    >>> pg.grad(loss, np.array([1.0, 3.0, 5.0, 7.0])).tolist()
    [1.0, 1.0, 3.0, 3.0]
    """

    __slots__ = ("borrowed", "levels", "parents", "value")
    __array_ufunc__ = None  # NumPy leaves arithmetic with a variable to the variable
    value: Numbers

    def __init__(
        self, value: Array, parents: Parents = (), levels: Levels | None = None, borrowed: bool = False
    ) -> None:
        self.value, self.parents, self.borrowed = value, parents, borrowed
        self.levels: Levels = _by_hand(parents) if levels is None else levels
        if levels is None:
            self.borrowed = True

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

    if not TYPE_CHECKING:  # a type checker must not take a variable for an array-like

        def __array__(self, *_: Any, **__: Any) -> NoReturn:
            raise TypeError(
                "Var: an array that is being differentiated: got a NumPy function, wanted a pool, + - * / **, abs, sum or reshape"
            )

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("Var: pickle: got a variable, whose functions cannot be stored, wanted its array: .value")

    def __copy__(self) -> Var:
        return self  # a copy of a variable is the same variable: a new one would have no derivative

    def __deepcopy__(self, memo: Any) -> Var:
        return self

    def __repr__(self) -> str:
        return f"Var({self.value!r})"

    def __add__(self, other: Var | ArrayLike) -> Var:
        a, b = self, other if isinstance(other, Var) else _constant("+", other, self)
        try:
            value = a.value + b.value
        except (TypeError, ValueError):
            _refuse("+", a, b)
        return Var(value, ((a, lambda g: _fit(g, a)), (b, lambda g: _fit(g, b))), _join(a.levels, b.levels))

    def __sub__(self, other: Var | ArrayLike) -> Var:
        a, b = self, other if isinstance(other, Var) else _constant("-", other, self)
        try:
            value = a.value - b.value
        except (TypeError, ValueError):
            _refuse("-", a, b)
        return Var(value, ((a, lambda g: _fit(g, a)), (b, lambda g: _fit(-g, b))), _join(a.levels, b.levels))

    def __mul__(self, other: Var | ArrayLike) -> Var:
        a, b = self, other if isinstance(other, Var) else _constant("*", other, self)
        try:
            value = a.value * b.value
        except (TypeError, ValueError):
            _refuse("*", a, b)
        if a.borrowed or b.borrowed:
            _keep(a, b.levels)
            _keep(b, a.levels)
        return Var(value, ((a, lambda g: _fit(g * b, a)), (b, lambda g: _fit(g * a, b))), _join(a.levels, b.levels))

    def __truediv__(self, other: Var | ArrayLike) -> Var:
        a, b = self, other if isinstance(other, Var) else _constant("/", other, self)
        try:
            value = a.value / b.value
        except (TypeError, ValueError):
            _refuse("/", a, b)
        levels = _join(a.levels, b.levels)
        _keep(a, b.levels)
        _keep(b, levels)
        return Var(value, ((a, lambda g: _fit(g / b, a)), (b, lambda g: _fit(-(g / b * (a / b)), b))), levels)

    def __pow__(self, p: float) -> Var:
        """Raise to a constant power."""
        p = p if type(p) is int or type(p) is float else _power(p)
        try:
            value = self.value**p
        except OverflowError:  # an integer that no float holds
            ArgumentErrors("Var").fail("**", short_repr(p), "a number as exponent", TypeError)
        if self.borrowed:
            _keep(self, self.levels)
        return Var(value, ((self, lambda g: _slope(g, self, p)),) if p else (), self.levels)

    def __abs__(self) -> Var:
        if not self.levels:
            return Var(np.abs(self.value), (), ())
        sign = Var(np.sign(self.value), (), ())
        return Var(np.abs(self.value), ((self, lambda g: g * sign),), self.levels)

    def __neg__(self) -> Var:
        return Var(-self.value, ((self, lambda g: -g),), self.levels)

    def __rsub__(self, other: Var | ArrayLike) -> Var:
        return _constant("-", other, self) - self

    def __rtruediv__(self, other: Var | ArrayLike) -> Var:
        return _constant("/", other, self) / self

    __radd__ = __add__
    __rmul__ = __mul__

    def through(self, operator: Linear) -> Var:
        """Return the result of a linear operator on this variable."""
        return lift(operator, self)

    def sum(self) -> Var:
        """Return the sum of all cells.

        Returns
        -------
        Var
            A variable of shape `()` and of the same dtype.

        Examples
        --------
        >>> import numpy as np
        >>> import poolgrad as pg
        >>> pg.grad(lambda x: (3 * x).sum(), np.array([1.0, 2.0])).tolist()
        [3.0, 3.0]
        """
        total = np.asarray(self.value.sum(dtype=self.dtype))
        return Var(total, ((self, lambda g: _broadcast(g, self.shape)),), self.levels)

    def reshape(self, *shape: Int | tuple[Int, ...] | list[Int]) -> Var:
        """Return the same cells in another shape.

        Parameters
        ----------
        *shape : int or tuple of int
            The new shape, as `numpy.ndarray.reshape` takes it; one length may be -1.

        Returns
        -------
        Var
            A variable of that shape.

        Raises
        ------
        ValueError
            If the new shape has another number of cells.

        Examples
        --------
        >>> import numpy as np
        >>> import poolgrad as pg
        >>> y, _ = pg.vjp(lambda x: pg.max_pool(x.reshape(2, 2), 2), np.arange(4.0))
        >>> y.tolist()
        [[3.0]]
        """
        try:
            value = self.value.reshape(*shape)  # type: ignore[arg-type]  # NumPy takes a shape or its lengths
        except (TypeError, ValueError, OverflowError):
            ArgumentErrors("Var").fail("reshape", short_repr(shape), f"a shape of as many cells as {list(self.shape)}")
        return Var(value, ((self, lambda g: g.reshape(self.shape)),), self.levels, self.borrowed)


def _floating(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or dtype.name == "bfloat16"


def _array(problems: ArgumentErrors, name: str, value: Any, like: Var) -> Var:
    """Return a caller's number or array as a constant of the dtype of `like`."""
    given = as_array(problems, name, value, like.value.dtype)
    problems.raise_if_any()
    assert given is not None
    if given.dtype.kind not in "biu" and not _floating(given.dtype):
        problems.fail(name, f"dtype {given.dtype}", "real numbers", TypeError)
    array = given.astype(like.value.dtype, copy=False)
    return Var(array, (), (), array is given)


def _constant(word: str, value: Any, like: Var) -> Var:
    """Return the other operand of an operation with a variable, as a constant."""
    if type(value) is float or (type(value) is int and -(2**53) <= value <= 2**53):
        return Var(np.asarray(value, like.value.dtype), (), ())
    return _array(ArgumentErrors("Var"), word, value, like)


def _power(p: Any) -> Any:
    """Return an exponent as a Python number, whose type never decides the dtype of the result."""
    if isinstance(p, Var):
        raise TypeError("Var: **: got a variable as exponent, wanted a number")
    number = p.item() if isinstance(p, (np.ndarray, np.generic)) and p.ndim == 0 else p
    if not isinstance(number, (int, float)):
        ArgumentErrors("Var").fail("**", short_repr(p), "a number as exponent", TypeError)
    return number


def _slope(g: Var, v: Var, p: float) -> Var:
    """g times the derivative of v**p."""
    if p == 1:
        return g
    return g * (v * p if p == 2 else v ** (p - 1) * p)


def _refuse(word: str, a: Var, b: Var) -> NoReturn:
    """Refuse two operands for which NumPy has no result, and say why."""
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        ArgumentErrors("Var").fail(word, f"shapes {list(a.shape)} and {list(b.shape)}", "shapes that broadcast")
    ArgumentErrors("Var").fail(word, f"dtypes {a.dtype} and {b.dtype}", "dtypes that have a common one", TypeError)


def _keep(v: Var, needed: Levels) -> None:
    """Copy a value that a pullback reads later, if its memory is the caller's."""
    if v.borrowed and needed:
        v.value, v.borrowed = np.array(v.value, order="K"), False


def _zeros(like: Var) -> Var:
    return Var(np.zeros(like.shape, like.dtype), (), ())


def _broadcast(v: Var, shape: tuple[int, ...]) -> Var:
    return Var(np.broadcast_to(v.value, shape), ((v, lambda g: _fit(g, v)),), v.levels, v.borrowed)


def _cast(v: Var, dtype: np.dtype[Any]) -> Var:
    return v if v.dtype == dtype else Var(v.value.astype(dtype), ((v, lambda g: _cast(g, v.dtype)),), v.levels)


def _fit(g: Var, like: Var) -> Var:
    """Return the cotangent of `like` from one of its shape, or of one that it was broadcast or promoted to."""
    shape, dtype = like.value.shape, like.value.dtype
    if g.value.shape != shape:
        g = _unbroadcast(g, shape)
    return g if g.value.dtype == dtype else _cast(g, dtype)


def _unbroadcast(g: Var, shape: tuple[int, ...]) -> Var:
    """Return the sum of g over the axes along which an array of that shape was repeated."""
    extra = g.ndim - len(shape)
    axes = (*range(extra), *(d + extra for d, n in enumerate(shape) if n == 1 and g.shape[d + extra] != 1))
    summed = g.value.sum(axis=axes, dtype=g.dtype, keepdims=True).reshape(shape)
    return Var(summed, ((g, lambda h: _broadcast(h.reshape((1,) * extra + shape), g.shape)),), g.levels)


def lift(operator: Linear, v: Var, value: Array | None = None) -> Var:
    """Apply the operator to a variable; pass `value` if the result is known already."""
    if v.value.shape != operator.source:
        ArgumentErrors(operator.name).fail("v", f"shape {list(v.shape)}", list(operator.source))
    back = operator.T
    return Var(operator.forth(v.value) if value is None else value, ((v, lambda g: lift(back, g)),), v.levels)


def _path(y: Var, level: Level) -> list[Var]:
    """All nodes from y to the start of the level, children before parents; none if y does not depend on it."""
    if level not in y.levels:
        return []
    order: list[Var] = []
    seen: set[int] = set()
    stack: list[tuple[Var, bool]] = [(y, False)]
    while stack:  # without recursion: a tape may be long
        node, done = stack.pop()
        if done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((parent, False) for parent, _ in node.parents if level in parent.levels)
    order.reverse()
    return order


def _pull(path: list[Var], level: Level, g: Var, start: Var) -> Var:
    """Return the cotangent of the start of the level, where g is that of the path's first node."""
    if not path:
        return _zeros(start)
    arrived: dict[int, Var] = {id(path[0]): _fit(g, path[0])}
    for node in path:
        here = arrived[id(node)]
        for parent, pullback in node.parents:
            if level in parent.levels:
                add = pullback(here)
                arrived[id(parent)] = arrived[id(parent)] + add if id(parent) in arrived else add
    return arrived.get(id(start)) or _zeros(start)  # an end without parents: an operation whose derivative is 0


class Trace(NamedTuple):
    """A function that ran: its start, its result y, the nodes between them, and if a variable of an outer function took part."""

    level: Level
    start: Var
    y: Var
    path: list[Var]
    outer: bool

    def pull(self, g: Var) -> Var:
        """Return the cotangent of the start from that of y."""
        return _pull(self.path, self.level, g, self.start)

    def give(self, result: Var, given: Any = None) -> Result:
        """Return a result that shares no memory with the arrays of the caller; `given` is g or v."""
        if not (self.outer or isinstance(given, Var)):
            shared = result.borrowed or not result.value.flags.writeable
            return np.array(result.value, order="K") if shared else result.value
        levels = _join(_join(result.levels, self.y.levels), self.start.levels)
        levels = _join(levels, given.levels) if isinstance(given, Var) else levels
        if levels is result.levels and not result.borrowed:
            return result
        return Var(np.array(result.value, order="K"), ((result, lambda g: g),), levels)


def _begin(op: str, f: Any, x: Any) -> tuple[Level, Var]:
    """Return a level, and its start at x."""
    problems = ArgumentErrors(op)
    if not callable(f):
        problems.fail("f", short_repr(f), "a function", TypeError)
    if isinstance(x, Var):
        level = Level()
        return level, Var(x.value, ((x, lambda g: g),), _join(x.levels, (level,)), x.borrowed)
    array = as_array(problems, "x", x)
    problems.raise_if_any()
    assert array is not None
    if not _floating(array.dtype):
        why = ": integers have no derivatives" if array.dtype.kind in "iub" else ""
        problems.fail("x", f"dtype {array.dtype}", f"a floating dtype{why}", TypeError)
    native = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    level = Level()
    return level, Var(native, (), (level,), native is array)


def _run(op: str, f: Callable[[Any], Any], x: Any, level: Level, start: Var) -> Trace:
    """Call f at the start of the level."""
    depth = getattr(_running, "depth", 0)
    _running.depth = depth + 1
    try:
        y = f(start)
    finally:
        _running.depth = depth
        level.open = False
    if not isinstance(y, Var):
        ArgumentErrors(op).fail(
            "f", f"a function that returned {short_repr(y)}", "one that returns a pooled or computed x", TypeError
        )
    outer = isinstance(x, Var) or any(other.open and other.age < level.age for other in y.levels)
    return Trace(level, start, y, _path(y, level), outer)


def _aligned(op: str, name: str, value: Any, like: Var) -> Var:
    """Return a cotangent or tangent of the shape of `like`, as a variable or a constant."""
    given = value if isinstance(value, Var) else _array(ArgumentErrors(op), name, value, like)
    if given.shape != like.shape:
        ArgumentErrors(op).fail(name, f"shape {list(given.shape)}", list(like.shape))
    return given


T_co = TypeVar("T_co", bound=np.generic, covariant=True)
Function: TypeAlias = Callable[[Var], Var]
Result: TypeAlias = Array | Var
"""The result of a pool: an array, or a variable if its argument is one."""


class ArrayPullback(Protocol[T_co]):
    """The second result of `vjp`: it takes a cotangent of f(x), and returns the cotangent of x."""

    @overload
    def __call__(self, g: Var) -> Var: ...
    @overload
    def __call__(self, g: ArrayLike) -> NDArray[T_co]: ...


@overload
def vjp(f: Function, x: Var) -> tuple[Var, Callable[[Var | ArrayLike], Var]]: ...
@overload
def vjp(f: Function, x: NDArray[S]) -> tuple[NDArray[S], ArrayPullback[S]]: ...
@overload
def vjp(f: Function, x: ArrayLike) -> tuple[Numbers, ArrayPullback[Number]]: ...
def vjp(f: Function, x: ArrayLike | Var) -> tuple[Result, Callable[[ArrayLike | Var], Result]]:
    """Compute f(x), and the function that maps a cotangent of f(x) to the cotangent of x.

    This is reverse mode: the vector-Jacobian product. With J the Jacobian matrix of f at x, the second result maps g to ``J.T @ g``.

    Parameters
    ----------
    f : callable
        A function of one variable. It receives a `Var` and returns one; see `Var` for the operations that it may use.
    x : array_like or Var
        The point at which f is differentiated, of a floating dtype.

    Returns
    -------
    y : ndarray or Var
        f(x).
    back : callable
        ``back(g)`` returns the cotangent of x, an array of the shape and dtype of x. `g` has the shape of y, and may be a `Var`. It
        can be called many times.

    Raises
    ------
    TypeError
        If f is not callable or does not return a variable, or if x has no floating dtype.
    ValueError
        If g has another shape than y.

    See Also
    --------
    grad : The gradient of a function that returns a single number.
    jvp : Forward mode.

    Notes
    -----
    The call nests to any order. If x, g or f(x) depend on a variable of a function that is differentiated itself, the results are
    variables; else they are arrays. A type checker assumes arrays for an array x. You may change x and g afterwards: the pullback
    keeps copies of the values that it reads.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> y, back = pg.vjp(lambda x: pg.max_pool(x, 2), np.array([1.0, 3.0, 2.0, 0.0]))
    >>> y.tolist(), back(np.array([10.0, 20.0])).tolist()
    ([3.0, 2.0], [0.0, 10.0, 20.0, 0.0])
    """
    trace = _run("vjp", f, x, *_begin("vjp", f, x))

    def back(g: ArrayLike | Var) -> Result:
        return trace.give(trace.pull(_aligned("vjp", "g", g, trace.y)), g)

    return trace.give(trace.y), back


@overload
def jvp(f: Function, x: Var, v: Var | ArrayLike) -> tuple[Var, Var]: ...
@overload
def jvp(f: Function, x: ArrayLike, v: Var) -> tuple[Var, Var]: ...
@overload
def jvp(f: Function, x: NDArray[S], v: ArrayLike) -> tuple[NDArray[S], NDArray[S]]: ...
@overload
def jvp(f: Function, x: ArrayLike, v: ArrayLike) -> tuple[Numbers, Numbers]: ...
def jvp(f: Function, x: ArrayLike | Var, v: ArrayLike | Var) -> tuple[Result, Result]:
    """Compute f(x), and the derivative of f at x along v.

    This is forward mode: the Jacobian-vector product ``J @ v``. With ``f = lambda x: pg.grad(loss, x)`` it is the Hessian of `loss`
    times v.

    Parameters
    ----------
    f : callable
        A function of one variable. It receives a `Var` and returns one; see `Var` for the operations that it may use.
    x : array_like or Var
        The point at which f is differentiated, of a floating dtype.
    v : array_like or Var
        The direction, of the shape of x.

    Returns
    -------
    y : ndarray or Var
        f(x).
    dy : ndarray or Var
        The derivative along v, of the shape and dtype of y.

    Raises
    ------
    TypeError
        If f is not callable or does not return a variable, or if x has no floating dtype.
    ValueError
        If v has another shape than x.

    See Also
    --------
    vjp : Reverse mode.
    grad : The gradient of a function that returns a single number.

    Notes
    -----
    The derivative is the pullback of the pullback, which is linear. The results are variables where those of `vjp` are.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> y, dy = pg.jvp(lambda x: pg.avg_pool(x, 2), np.array([1.0, 3.0]), np.array([1.0, 0.0]))
    >>> y.tolist(), dy.tolist()
    ([2.0], [0.5])

    The Hessian of a loss times a vector:

    >>> def loss(x):
    ...     return (pg.max_pool(x, 2) ** 3).sum()
    >>> pg.jvp(lambda x: pg.grad(loss, x), np.array([1.0, 3.0]), np.ones(2))[1].tolist()
    [0.0, 18.0]
    """
    level, start = _begin("jvp", f, x)
    tangent = _aligned("jvp", "v", v, start)
    trace = _run("jvp", f, x, level, start)
    linear = Level()
    probe = Var(np.zeros(trace.y.shape, trace.y.dtype), (), (linear,))
    dx = trace.pull(probe)
    linear.open = False
    dy = _pull(_path(dx, linear), linear, tangent, probe)
    return trace.give(trace.y, v), trace.give(dy, v)


@overload
def grad(f: Function, x: Var) -> Var: ...
@overload
def grad(f: Function, x: NDArray[S]) -> NDArray[S]: ...
@overload
def grad(f: Function, x: ArrayLike) -> Numbers: ...
def grad(f: Function, x: ArrayLike | Var) -> Result:
    """Compute the gradient at x of a function that returns a single number.

    Parameters
    ----------
    f : callable
        A function of one variable. It receives a `Var` and returns one of shape `()`, for example by ``...sum()``; see `Var` for the
        operations that it may use.
    x : array_like or Var
        The point at which f is differentiated, of a floating dtype.

    Returns
    -------
    ndarray or Var
        The gradient, of the shape and dtype of x.

    Raises
    ------
    TypeError
        If f is not callable or does not return a variable, or if x has no floating dtype.
    ValueError
        If f does not return a single number.

    See Also
    --------
    vjp : The same for functions that return arrays.
    jvp : Forward mode, and Hessians times vectors.

    Notes
    -----
    f may use variables of a function around it, which is differentiated too. The gradient is a variable then, as in the second
    example; else it is an array. A type checker assumes an array for an array x.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> pg.grad(lambda x: (pg.max_pool(x, 2) ** 2).sum(), np.array([1.0, 3.0])).tolist()
    [0.0, 6.0]
    >>> pg.grad(lambda a: (a * pg.grad(lambda b: (a * b).sum(), np.ones(2))).sum(), np.array([3.0, 5.0])).tolist()
    [6.0, 10.0]
    """
    trace = _run("grad", f, x, *_begin("grad", f, x))
    if trace.y.value.shape != ():
        shape = list(trace.y.shape)
        ArgumentErrors("grad").fail("f", f"a function to shape {shape}", "one to a single number, such as ...sum()")
    return trace.give(trace.pull(Var(np.ones((), trace.y.dtype), (), ())))
