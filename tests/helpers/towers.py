"""Nested derivatives in exact numbers: an oracle that shares nothing with the tape, and random programs for both.

A number is a polynomial in infinitesimals over fractions. Every derivative takes infinitesimals of its own, one per direction v, the
product of any two of them being 0; it evaluates its function at x + sum of e*v and reads the coefficients of each e. A program is a
tree of tuples; it is run by `Exact` here and by `Taped` with poolgrad.
"""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import count

import numpy as np

import poolgrad as pg

N = 4  # cells of every vector

_fresh = count()


class Unsuitable(Exception):
    """Floats would round this program: draw another one."""


class Tower:
    """A sum of fractions times products of infinitesimals: from {derivative: direction}, as a frozen set of pairs, to a fraction."""

    __slots__ = ("terms",)

    def __init__(self, terms):
        self.terms = {key: value for key, value in terms.items() if value}
        for value in self.terms.values():
            below = value.denominator
            if below & (below - 1) or below > 2**24 or value.numerator.bit_length() > 24 + below.bit_length():
                raise Unsuitable

    @staticmethod
    def of(value):
        return Tower({frozenset(): Fraction(value)})

    @property
    def real(self):
        return self.terms.get(frozenset(), Fraction(0))

    def __add__(self, other):
        return Tower({k: self.terms.get(k, 0) + other.terms.get(k, 0) for k in {*self.terms, *other.terms}})

    def __neg__(self):
        return Tower({k: -v for k, v in self.terms.items()})

    def __sub__(self, other):
        return self + -other

    def __mul__(self, other):
        found = {}
        for a, p in self.terms.items():
            taken = {e for e, _ in a}
            for b, q in other.terms.items():
                if not any(e in taken for e, _ in b):
                    found[a | b] = found.get(a | b, 0) + p * q
        return Tower(found)

    def inverse(self):
        if not self.real:
            raise Unsuitable
        first = Tower.of(1 / self.real)
        rest = (Tower.of(self.real) - self) * first
        total, power = Tower.of(1), Tower.of(1)
        while power.terms:
            power = power * rest
            total = total + power
        return first * total

    def split(self, e, directions):
        """Return the part without infinitesimals of derivative e, and the coefficient of each of them."""
        parts = [{} for _ in range(directions + 1)]
        for key, value in self.terms.items():
            own = next((pair for pair in key if pair[0] == e), None)
            parts[0 if own is None else 1 + own[1]][key - {own}] = value
        return list(map(Tower, parts))


ZERO, ONE = Tower.of(0), Tower.of(1)


def total(cells):
    done = ZERO
    for cell in cells:
        done = done + cell
    return done


def along(f, x, directions):
    """Return f(x), and its derivative along each of some directions."""
    e = next(_fresh)
    steps = [Tower({frozenset([(e, k)]): Fraction(1)}) for k in range(len(directions))]
    moved = [a + total([s * v[i] for s, v in zip(steps, directions, strict=True)]) for i, a in enumerate(x)]
    return list(zip(*(y.split(e, len(directions)) for y in f(moved)), strict=True))


UNITS = [[ONE if k == j else ZERO for k in range(N)] for j in range(N)]


# ---- pools, as windows and a rule

SLIDE = [(0, 2), (1, 3), (2, 4), (3, 4)]  # window 2, stride 1, "same"
WIDE = [(0, 2), (0, 3), (1, 4), (2, 4)]  # window 3, stride 1, "same"
TIES = ("first", "last", "all", "split")


def chosen(cells, least, ties):
    """Return the best cells of a window, and the weight of each."""
    reals = [c.real for c in cells]
    best = min(reals) if least else max(reals)
    hits = [i for i, r in enumerate(reals) if r == best]
    hits = {"first": hits[:1], "last": hits[-1:]}.get(ties, hits)
    return hits, Tower.of(Fraction(1, len(hits)) if ties == "split" else 1)


def best_of(x, pairs, least, ties):
    """Return the best of each window: its value, and its change by the change of the chosen cells."""
    made = []
    for a, b in pairs:
        cells = x[a:b]
        hits, weight = chosen(cells, least, ties)
        value = Tower.of(cells[hits[0]].real)
        made.append(value + total([weight * (cells[i] - Tower.of(cells[i].real)) for i in hits]))
    return made


def picked(x, v, pairs, ties):
    """Apply the operator that x chooses to v."""
    made = []
    for a, b in pairs:
        hits, weight = chosen(x[a:b], False, ties)
        made.append(total([weight * v[a + i] for i in hits]))
    return made


def placed(x, g, pairs, ties):
    """Apply the transpose of the operator that x chooses."""
    made = [ZERO] * N
    for (a, b), share in zip(pairs, g, strict=True):
        hits, weight = chosen(x[a:b], False, ties)
        for i in hits:
            made[a + i] = made[a + i] + weight * share
    return made


def assigned(x, g, pairs):
    made = [ZERO] * N
    for (a, b), share in zip(pairs, g, strict=True):
        hits, _ = chosen(x[a:b], False, "first")
        made[a + hits[0]] = share
    return made


def spread(y, pairs):
    made = [ZERO] * N
    for (a, b), share in zip(pairs, y, strict=True):
        for j in range(a, b):
            made[j] = made[j] + share
    return made


def mean_of(x, pairs, by=None):
    return [total(x[a:b]) * Tower.of(Fraction(1, by or b - a)) for a, b in pairs]


HALVES = pg.plan((N,), 2)
SLIDING = pg.plan((N,), 2, 1, padding="same")
ADAPTED = pg.plan((N,), [[(0, 2), (1, 3), (2, 4)]])
DRAWN = {seed: pg.fractional_windows(N, size=2, seed=seed) for seed in (1, 2, 5)}


def _drawn(seed):
    axis = DRAWN[seed]
    return axis.pairs(), pg.summing(pg.Plan((N,), {0: axis})).T


def _unpool(x, reduce, as_positions):
    y, taps = pg.max_pool(x, 2, 1, padding="same", return_taps=True)
    return pg.unpool(y * 2.0, taps.flat() if as_positions else taps, (N,), reduce=reduce)


def pools():
    """Yield by name the pool with poolgrad, and in exact numbers."""
    for ties in TIES:
        words = {"padding": "same", "ties": ties}
        for name, pool, least in (("max", pg.max_pool, False), ("min", pg.min_pool, True)):
            yield (
                f"{name} {ties}",
                lambda x, p=pool, w=words: p(x, 2, 1, **w),
                lambda x, s=least, t=ties: best_of(x, SLIDE, s, t),
            )
        yield (
            f"global max {ties}",
            lambda x, t=ties: x * pg.global_max_pool(x, ties=t),
            lambda x, t=ties: [a * best_of(x, [(0, N)], False, t)[0] for a in x],
        )
        yield (
            f"own operator {ties}",
            lambda x, t=ties: pg.max_operator(x, SLIDING, ties=t)[1].T(x),
            lambda x, t=ties: placed(x, x, SLIDE, t),
        )
    for seed in DRAWN:
        pairs, up = _drawn(seed)
        yield (
            f"fractional max {seed}",
            lambda x, s=seed, u=up: u(pg.fractional_max_pool(x, size=2, seed=s)),
            lambda x, p=pairs: spread(best_of(x, p, False, "first"), p),
        )
        yield (
            f"fractional avg {seed}",
            lambda x, s=seed, u=up: u(pg.fractional_avg_pool(x, size=2, seed=s)),
            lambda x, p=pairs: spread(mean_of(x, p), p),
        )
    adapted = ADAPTED.axes[0].pairs()
    up = pg.summing(ADAPTED).T
    yield (
        "adaptive max",
        lambda x: up(pg.adaptive_max_pool(x, 3)),
        lambda x: spread(best_of(x, adapted, False, "first"), adapted),
    )
    yield "adaptive avg", lambda x: up(pg.adaptive_avg_pool(x, 3)), lambda x: spread(mean_of(x, adapted), adapted)
    yield "avg", lambda x: pg.avg_pool(x, 2, 1, padding="same"), lambda x: mean_of(x, SLIDE)
    yield (
        "avg padded",
        lambda x: pg.avg_pool(x, 2, 1, padding="same", count_include_pad=True),
        lambda x: mean_of(x, SLIDE, 2),
    )
    yield "sum", lambda x: pg.sum_pool(x, 3, 1, padding="same"), lambda x: mean_of(x, WIDE, 1)
    yield (
        "lp 1",
        lambda x: pg.lp_pool(x, 2, 1, p=1, padding="same"),
        lambda x: mean_of(list(map(magnitude, x)), SLIDE, 1),
    )
    yield "global avg", lambda x: x - pg.global_avg_pool(x), lambda x: [a - mean_of(x, [(0, N)])[0] for a in x]
    yield "global sum", lambda x: x * pg.global_sum_pool(x), lambda x: [a * total(x) for a in x]
    yield "averaging", lambda x: pg.averaging(HALVES).T(pg.averaging(HALVES)(x)), _averaged
    for reduce, exact in (
        ("sum", lambda x, g: placed(x, g, SLIDE, "first")),
        ("assign", lambda x, g: assigned(x, g, SLIDE)),
    ):
        for as_positions in (False, True):
            yield (
                f"unpool {reduce} {as_positions}",
                lambda x, r=reduce, a=as_positions: _unpool(x, r, a),
                lambda x, e=exact: e(x, [Tower.of(2) * y for y in best_of(x, SLIDE, False, "first")]),
            )
    yield "reshape", _columns, lambda x: [x[i] * (x[i % 2] + x[i % 2 + 2]) for i in range(N)]


def _columns(x):
    square = x.reshape(2, 2)
    return (square * pg.sum_pool(square, 2, axes=0)).reshape(N)


def _averaged(x):
    half = Tower.of(Fraction(1, 4))
    return [half * (x[i - i % 2] + x[i - i % 2 + 1]) for i in range(N)]


def magnitude(a):
    return a if a.real > 0 else -a if a.real < 0 else ZERO


POOLS = {name: (taped, exact) for name, taped, exact in pools()}

# ---- programs

DERIVATIVES = ("grad", "grad", "vjp", "jvp", "jvp value", "vjp twice")
OPERATIONS = ("add", "sub", *("mul",) * 4, "neg", *("pow",) * 2, "abs", "div", *("pool",) * 6, "scale", "operator")


def leaf(rng, scope):
    if scope and rng.random() < 0.85:
        return "var", rng.choice(scope)
    return "const", tuple(rng.choice((-2, -1, 0, 1, 1, 2, 3)) / rng.choice((1, 1, 2)) for _ in range(N))


def vector(rng, scope, size, depth):
    """Return a random expression for a vector."""
    if size <= 0:
        return leaf(rng, scope)
    if depth and scope and rng.random() < 0.4:
        return derivative(rng, scope, size - 1, depth)
    first = vector(rng, scope, size - 1, depth)
    kind = rng.choice(OPERATIONS)
    match kind:
        case "neg" | "abs":
            return kind, first
        case "pow":
            return kind, first, rng.choice((2, 2, 3, 1, 0, -1))
        case "pool":
            return kind, rng.choice(list(POOLS)), first
        case "operator":
            return kind, rng.choice(TIES), leaf(rng, scope), first
        case "scale":
            return kind, first, vector(rng, scope, size - 2, 0)
    return kind, first, vector(rng, scope, size - 2, depth)


def derivative(rng, scope, size, depth):
    """Return a derivative of a random function, which may use everything in scope, at a random place."""
    own = f"v{len(scope)}"
    body = vector(rng, [*scope, own, own], size, depth - 1)
    if not depends(body):
        body = "add", body, ("var", own)
    at, along = (leaf(rng, scope if rng.random() < 0.4 else []) for _ in range(2))
    return rng.choice(DERIVATIVES), own, body, at, along


def depends(expression):
    """Return the variables that the tape follows an expression to."""
    match expression:
        case ("var", name):
            return {name}
        case ("const", _):
            return set()
        case ("operator", _, _, v):
            return depends(v)
        case ("pool", _, v) | ("pow", v, _):
            return depends(v)
        case ("grad", own, body, at, _):
            return depends(body) - {own} | depends(at)
        case ("jvp value" | "jvp" | "vjp" | "vjp twice", own, body, at, along):
            return depends(body) - {own} | depends(at) | depends(along)
    return set().union(*map(depends, expression[1:]))


class Exact:
    """A run of a program in exact numbers."""

    def run(self, expression, scope):
        match expression:
            case ("var", name):
                return scope[name]
            case ("const", values):
                return [Tower.of(v) for v in values]
            case ("neg", a):
                return [-p for p in self.run(a, scope)]
            case ("abs", a):
                return [magnitude(p) for p in self.run(a, scope)]
            case ("pow", a, p):
                return [self.power(c, p) for c in self.run(a, scope)]
            case ("pool", name, a):
                return POOLS[name][1](self.run(a, scope))
            case ("operator", ties, x, v):
                return picked(self.run(x, scope), self.run(v, scope), SLIDE, ties)
            case ("scale", a, b):
                q = total(self.run(b, scope))
                return [p * q for p in self.run(a, scope)]
            case (kind, a, b):
                left, right = self.run(a, scope), self.run(b, scope)
                if kind == "div":
                    return [p * q.inverse() for p, q in zip(left, right, strict=True)]
                by = {"add": Tower.__add__, "sub": Tower.__sub__, "mul": Tower.__mul__}[kind]
                return [by(p, q) for p, q in zip(left, right, strict=True)]
        return self.derive(expression, scope)

    def power(self, a, p):
        if p < 0:
            return a.inverse()
        done = ONE
        for _ in range(p):
            done = done * a
        return done

    def derive(self, expression, scope):
        kind, own, body, at, direction = expression

        def f(x):
            return self.run(body, {**scope, own: x})

        x, v = self.run(at, scope), self.run(direction, scope)
        if kind == "jvp":
            return along(f, x, [v])[1]
        if kind == "jvp value":
            return f(x)
        columns = along(f, x, UNITS)[1:]
        weights = [ONE] * N if kind == "grad" else v
        return [total([w * c for w, c in zip(weights, column, strict=True)]) for column in columns]


class Taped:
    """A run of a program with poolgrad."""

    def run(self, expression, scope):
        match expression:
            case ("var", name):
                return scope[name]
            case ("const", values):
                return np.array(values)
            case ("neg", a):
                return -self.run(a, scope)
            case ("abs", a):
                return abs(self.run(a, scope))
            case ("pow", a, p):
                return self.run(a, scope) ** p
            case ("pool", name, a):
                return POOLS[name][0](self.run(a, scope))
            case ("operator", ties, x, v):
                return pg.max_operator(self.run(x, scope), SLIDING, ties=ties)[1](self.run(v, scope))
            case ("scale", a, b):
                return self.run(a, scope) * self.run(b, scope).sum()
            case ("add", a, b):
                return self.run(a, scope) + self.run(b, scope)
            case ("sub", a, b):
                return self.run(a, scope) - self.run(b, scope)
            case ("mul", a, b):
                return self.run(a, scope) * self.run(b, scope)
            case ("div", a, b):
                return self.run(a, scope) / self.run(b, scope)
        made = self.derive(expression, scope)
        assert isinstance(made, pg.Var) == bool(depends(expression)), f"{type(made)} of {expression}"
        return made

    def derive(self, expression, scope):
        kind, own, body, at, direction = expression

        def f(x):
            return self.run(body, {**scope, own: x})

        x, v = self.run(at, scope), self.run(direction, scope)
        if kind == "grad":
            return pg.grad(lambda u: f(u).sum(), x)
        if kind.startswith("jvp"):
            return pg.jvp(f, x, v)[kind == "jvp"]
        _, back = pg.vjp(f, x)
        return back(v) if kind == "vjp" else back(v * 0.5) + back(v * 0.5)


def program(seed):
    """Return a program, its outermost step a derivative at constants, with derivatives up to four deep; and its result."""
    rng = random.Random(seed)
    deep = 1 + seed % 4
    while True:
        made = derivative(rng, [], rng.randint(deep, deep + 3), deep)
        if depth(made) < deep or len(repr(made)) > 1500:
            continue
        try:
            result = [float(y.real) for y in Exact().run(made, {})]
        except Unsuitable:
            continue
        if any(result) or rng.random() < 0.05:
            return made, result


def depth(expression):
    """Return the number of derivatives inside each other."""
    if not isinstance(expression, tuple):
        return 0
    return (expression[0] in DERIVATIVES) + max((depth(e) for e in expression[1:]), default=0)
