"""Define a plan: one axis per dimension of an array."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

from .axis import Axis, counted
from .plan_cache import cache_plan
from .sliding import itself, whole

MOST_AXES = 16  # that the core walks through: pooled ones, and those between them


class TooManyAxes(ValueError):
    """More axes than the core walks through."""

    def __init__(self, pooled: int, between: int) -> None:
        self.got = f"{pooled} pooled axes" + (f" and {between} between them" if between else "")
        self.wanted = f"at most {MOST_AXES}"
        super().__init__(f"Plan: source: got {self.got}, wanted {self.wanted}")


@dataclass(frozen=True, eq=False)
class Plan:
    """The windows of a whole array: an axis per pooled dimension.

    `poolgrad.plan` makes plans from the arguments of a pool; operators are made from plans. A plan never changes. It can be pickled
    and copied.

    Parameters
    ----------
    source : sequence of int
        The shape of the array before pooling.
    pooled : dict of int to Axis
        The windows of each pooled dimension.

    Attributes
    ----------
    source, dest : tuple of int
        The shapes before and after pooling.
    by_dimension : tuple of Axis or None
        The windows of each dimension; None if it is not pooled.
    axes : tuple of Axis
        The windows from the first pooled dimension to the last. Dimensions between them are joined if there would be too many.
    outer, inner : int
        The product of the dimensions before the first pooled one, and after the last.

    Raises
    ------
    ValueError
        If an axis has another length than its dimension, or too many dimensions are pooled.

    See Also
    --------
    plan : Make a plan from the arguments of a pool.
    averaging, summing, max_operator, min_operator, picking : Make operators from a plan.

    Examples
    --------
    >>> import poolgrad as pg
    >>> pairs = pg.edges(4, [0, 2, 4])
    >>> plan = pg.Plan((2, 4, 4, 3), {1: pairs, 2: pairs})
    >>> plan.dest, plan.outer, plan.inner, len(plan.axes)
    ((2, 2, 2, 3), 2, 3, 2)
    >>> [axis.length for axis in Plan((4, 5, *[1] * 14, 6, 4), {0: whole(4), 17: whole(4)}).axes]
    [4, 5, 6, 4]
    """

    source: tuple[int, ...]
    dest: tuple[int, ...]
    outer: int
    inner: int
    axes: tuple[Axis, ...]
    by_dimension: tuple[Axis | None, ...]

    def __init__(self, source: Sequence[int], pooled: dict[int, Axis]) -> None:
        source = tuple(source)
        dest = list(source)
        for d, axis in pooled.items():
            if axis.length != source[d]:
                raise ValueError(
                    f"Plan: source: got length {source[d]} in dimension {d}, wanted {axis.length}, as its windows"
                )
            dest[d] = len(axis)
        dimensions = range(len(source))
        kept = [d for d in sorted(pooled) if not pooled[d].identity] or sorted(pooled)[-1:] or [len(source) - 1]
        self.__dict__.update(
            source=source,
            dest=tuple(dest),
            outer=prod(source[: kept[0]]),
            inner=prod(source[kept[-1] + 1 :]),
            axes=_axes(source, pooled, kept),
            by_dimension=tuple(map(pooled.get, dimensions)),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        pooled = ((d, axis) for d, axis in enumerate(self.by_dimension) if axis is not None)
        return planned, (
            tuple(map(int, self.source)),
            *pooled,
        )  # what hangs on a plan, such as the native one, is made again

    def __copy__(self) -> Plan:
        return self  # which nobody can change

    def __deepcopy__(self, memo: Any) -> Plan:
        return self

    def cut(self, region: Sequence[slice]) -> tuple[tuple[slice, ...], Plan]:
        """Return the part of the plan that a region of the result needs.

        Pools over the part give the bits of the whole array, also where sums are long: the part knows its place in the whole.
        Cut a part again, pickle it, or run it in another process.

        Parameters
        ----------
        region : sequence of slice
            The region of the result: one slice without a step per dimension.

        Returns
        -------
        source : tuple of slice
            The region of the array that the windows of the region read.
        plan : Plan
            The windows of the region, over that part of the array.

        Raises
        ------
        ValueError
            If there is not one slice per dimension, or a slice has a step.

        See Also
        --------
        cut_back : The part that a region of the array needs for its gradient.

        Examples
        --------
        >>> import numpy as np
        >>> import poolgrad as pg
        >>> x, plan = np.arange(8.0), pg.plan((8,), 4, 2)
        >>> source, part = plan.cut([slice(1, 3)])
        >>> source
        (slice(2, 8, None),)
        >>> pg.averaging(part)(x[source]).tolist(), pg.averaging(plan)(x)[1:3].tolist()
        ([3.5, 5.5], [3.5, 5.5])
        """
        source, pooled = [], {}
        for d, (part, axis) in enumerate(zip(_slices("region", region, self.dest), self.by_dimension, strict=True)):
            if axis is not None:
                part, pooled[d] = axis.cut(part.start, part.stop)
            source.append(part)
        return tuple(source), Plan([s.stop - s.start for s in source], pooled)

    def cut_back(self, cells: Sequence[slice]) -> tuple[tuple[slice, ...], tuple[slice, ...], Plan]:
        """Return the part of the plan that the gradient of some source cells needs.

        Gradients over the part give these cells the bits of the whole array. Other cells of the part may lack windows.

        Parameters
        ----------
        cells : sequence of slice
            The region of the array: one slice without a step per dimension.

        Returns
        -------
        dest : tuple of slice
            The region of the result whose windows read these cells.
        source : tuple of slice
            The cells that these windows read, and the given ones.
        plan : Plan
            The windows of `dest`, over the cells of `source`.

        Raises
        ------
        ValueError
            If there is not one slice per dimension, or a slice has a step.

        See Also
        --------
        cut : The part that a region of the result needs.

        Examples
        --------
        >>> import numpy as np
        >>> import poolgrad as pg
        >>> g, plan = np.array([1.0, 2.0, 4.0]), pg.plan((8,), 4, 2)
        >>> (dest,), (source,), part = plan.cut_back([slice(4, 6)])
        >>> dest, source
        (slice(1, 3, None), slice(2, 8, None))
        >>> pg.summing(part).T(g[dest])[4 - source.start : 6 - source.start].tolist()
        [6.0, 6.0]
        >>> pg.summing(plan).T(g)[4:6].tolist()
        [6.0, 6.0]
        """
        dest, source, pooled = [], [], {}
        for d, (here, axis) in enumerate(zip(_slices("cells", cells, self.source), self.by_dimension, strict=True)):
            windows = here
            if axis is not None:
                windows, here, pooled[d] = axis.cut_back(here.start, here.stop)
            dest.append(windows)
            source.append(here)
        return tuple(dest), tuple(source), Plan([s.stop - s.start for s in source], pooled)

    @property
    def tables(self) -> set[Axis]:
        """All axes of the plan; the plan cache counts them."""
        return {*self.axes, *filter(None, self.by_dimension)}

    @property
    def tables_by_now(self) -> set[Any]:
        """Everything that has tables by now: the axes of the plan, its parts in the core, and the plans that hang on it."""
        own = self.__dict__
        found: set[Any] = {own["_of_parts"]} if "_of_parts" in own else set()
        for axis in self.tables:
            found |= axis.tables_by_now
        hanging = (own.get("_uncut"), *(part for _, _, part in own.get("_phases", ())))
        return found.union(*(plan.tables_by_now for plan in hanging if plan is not None))

    @property
    def whole(self) -> bool:
        """True if there is one window along the pooled axes, and it covers them."""
        return all(len(axis) == 1 and 0 < axis.length == axis.count[0] for axis in self.axes)


def forward_parts(plan: Plan) -> list[tuple[int, Plan]] | None:
    """Return the parts of one item of a plan whose first axis is long: (first cell, plan) each. Never compute gradients by them.

    Parts with the same windows are the same plan. Return None if the axis is not so long.
    """
    first, *others = plan.axes
    parts = first.formula.forward_parts() if first.formula is not None else None
    if parts is None:
        return None
    made: dict[Axis, Plan] = {}
    for _, axis in parts:
        if axis not in made:
            sizes = [axis.length, *(other.length for other in others), plan.inner]
            made[axis] = Plan(sizes, dict(enumerate([axis, *others])))
    return [(cell, made[axis]) for cell, axis in parts]


def uncut(plan: Plan) -> Plan:
    """Return the plan without padding, cached on the plan: every window's maximum then starts from minus infinity."""
    pooled = {d: axis for d, axis in enumerate(plan.by_dimension) if axis is not None}
    if all(axis.uncut for axis in pooled.values()):
        return plan
    kept: Plan | None = plan.__dict__.get("_uncut")
    if kept is None:
        kept = Plan(plan.source, {d: counted(axis) for d, axis in pooled.items()})
        object.__setattr__(plan, "_uncut", kept)
    return kept


@cache_plan(1024)
def planned(source: tuple[int, ...], *pooled: tuple[int, Axis]) -> Plan:
    """Return the plan of these axes; cache it."""
    return Plan(source, dict(pooled))


def _axes(source: tuple[int, ...], pooled: dict[int, Axis], kept: list[int]) -> tuple[Axis, ...]:
    """Return the axes from the first dimension in `kept` to the last, joined where they are too many."""
    first, last = kept[0], kept[-1]
    if last - first < MOST_AXES:
        return tuple([pooled[d] if d in pooled else itself(source[d]) for d in range(first, last + 1)])
    axes: list[Axis | int] = []  # a number stands for so many cells that keep their place
    for d in range(first, last + 1):
        axis, before = pooled.get(d), axes[-1] if axes else None
        if d not in kept:
            axes += [source[d]] if source[d] != 1 else []
        elif axis is not None and axis.covers and isinstance(before, Axis) and before.covers:
            axes[-1] = whole(before.length * axis.length)
        else:
            axes.append(itself(source[d]) if axis is None else axis)
    while len(axes) > MOST_AXES:
        pairs = [(a * b, i) for i, (a, b) in enumerate(pairwise(axes)) if isinstance(a, int) and isinstance(b, int)]
        if not pairs:
            raise TooManyAxes(len(kept), sum(isinstance(axis, int) for axis in axes))
        size, i = min(pairs)
        axes[i : i + 2] = [size]
    return tuple(itself(axis) if isinstance(axis, int) else axis for axis in axes)


def _slices(name: str, region: Sequence[slice], shape: tuple[int, ...]) -> list[slice]:
    """Return a region with its bounds: 0 <= start <= stop <= length in each dimension."""
    given = tuple(region)
    if len(given) != len(shape) or any(not isinstance(s, slice) or s.step not in (None, 1) for s in given):
        raise ValueError(f"Plan: {name}: got {given!r:.200}, wanted {len(shape)} slices without a step")
    bounds = (s.indices(n) for s, n in zip(given, shape, strict=True))
    return [slice(start, max(start, stop)) for start, stop, _ in bounds]


def phases(plan: Plan) -> Iterable[tuple[tuple[Any, ...], tuple[Any, ...], Plan]]:
    """Dilated windows as plain ones: for each residue of the step, (source index, destination index, plan of that part)."""
    parts: list[tuple[list[Any], list[Any], dict[int, Axis]]] = [([], [], {})]
    for d, axis in enumerate(plan.by_dimension):
        split = [(slice(None), slice(None), None)] if axis is None else axis.phases()
        parts = [
            ([*source, s], [*dest, t], pooled if part is None else {**pooled, d: part})
            for source, dest, pooled in parts
            for s, t, part in split
        ]
    for source, dest, pooled in parts:
        shape = [len(range(*s.indices(n))) for s, n in zip(source, plan.source, strict=True)]
        yield tuple(source), tuple(dest), Plan(shape, pooled)
