"""Pools of arrays that are distributed over devices: `shard_map` with its checks, and shardings that `jit` keeps.

Axes that are not pooled may be distributed; a pooled axis is gathered first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import jax
import numpy as np
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import PartitionSpec

from .._common.errors import ArgumentErrors
from .._frameworks.spec import PoolSpec

try:  # JAX has no public names for these; without them XLA distributes the portable operations
    from jax._src.dispatch import prim_requires_devices_during_lowering as _REQUIRING
    from jax._src.lib import xla_client
    from jax._src.sharding_impls import GSPMDSharding

    _REPLICATED, _HloSharding = xla_client.OpSharding.Type.REPLICATED, xla_client.HloSharding
    _ = GSPMDSharding._device_assignment, GSPMDSharding._to_xla_hlo_sharding, _HloSharding.subgroup_with_device_ordering
except (ImportError, AttributeError):  # pragma: no cover  # another release of JAX
    _REQUIRING = None


def _varying(kind: Any) -> frozenset[Any]:
    """Return the axes of a mesh along which an array differs from device to device, inside `shard_map`."""
    manual = getattr(kind, "manual_axis_type", None)
    return frozenset(getattr(kind, "vma", ())) if manual is None else frozenset(manual.varying)


def _vary(array: Any, axes: frozenset[Any]) -> Any:
    names = tuple(sorted(axes, key=str))
    return jax.lax.pcast(array, names, to="varying") if hasattr(jax.lax, "pcast") else jax.lax.pvary(array, names)


def aligned(*arrays: Any) -> tuple[Any, ...]:
    """Return arrays that differ along the same axes of a mesh, as the checks of `shard_map` want it."""
    own = [_varying(jax.typeof(array)) for array in arrays]
    every = frozenset().union(*own)
    if not every:
        return arrays
    return tuple(_vary(a, every - has) if every - has else a for a, has in zip(arrays, own, strict=True))


def typed(rule: PoolSpec | None, made: Any, like: Any, *others: Any) -> Any:
    """Return the type of a result of that shape and dtype, distributed like the first operand along axes that are not pooled."""
    spec = tuple(like.sharding.spec)
    pooled = {axis[0] for axis in rule.frame.axes} if rule is not None else set()
    if rule is None or rule.kind == "index" or len(made.shape) != len(like.shape):
        pooled, kept = set(range(len(spec))), (None,) * len(made.shape)
    else:
        kept = tuple(None if d in pooled else axis for d, axis in enumerate(spec))
    apart = [d for d in pooled if d < len(spec) and spec[d] is not None]
    if apart and rule is not None:
        wanted = f"axis {apart[0]} whole on each device, since it is pooled: jax.sharding.reshard(x, ...) gathers it"
        ArgumentErrors(rule.op).fail("x", f"an array with sharding {like.sharding.spec}", wanted)
    where = like.sharding.update(spec=PartitionSpec(*kept))
    return like.update(shape=tuple(made.shape), dtype=made.dtype, weak_type=False, sharding=where)


def needs_devices(primitive: Any) -> None:
    """Tell JAX that lowering this primitive asks for the devices."""
    if _REQUIRING is not None:
        _REQUIRING.add(primitive)


def _over_devices(ctx: Any) -> bool:
    """Return True if the program runs on several devices, and XLA distributes its arrays."""
    where = ctx.module_context.axis_context
    if hasattr(where, "manual_axes"):  # inside shard_map, every part is a program of its own
        return set(where.manual_axes) != set(where.mesh.axis_names)
    return getattr(where, "num_devices", 1) > 1


def distributed(ctx: Any, run: Any, portably: Any, compiled: bool) -> Any:
    """Return the function to lower: `run` on one device, or part by part on several; JAX's own operations where that cannot be."""
    if not _over_devices(ctx):
        return run
    where = ctx.module_context
    exported = getattr(where.lowering_parameters, "for_export", False)
    devices = getattr(where.axis_context, "device_assignment", True)
    known = _REQUIRING is not None and devices is not None and jax.config.jax_use_shardy_partitioner
    if not (compiled and known) or exported:
        return portably
    return partial(_by_parts, run)


def _by_parts(run: Callable[..., list[Any]], *args: Any, rule: PoolSpec, **params: Any) -> list[Any]:
    """Run on the part of the arrays that each device has."""
    local = partial(run, rule=rule, **params)
    made = custom_partitioning(lambda *arrays: tuple(local(*arrays)))
    back = params.get("back", False)
    sides = ("dest", "source") if back else ("source", "dest")
    operands = [_factors(rule, sides[0], args[0].ndim), "row column"]
    operands += [_factors(rule, "dest", a.ndim) for a in args[2:]]  # taps
    results = [_factors(rule, sides[1], args[0].ndim)] * (1 if "back" in params else 1 + rule.picks)
    named = dict.fromkeys(
        " ".join((*operands, *results)).split()
    )  # in the order in which they appear, which Shardy wants
    made.def_partition(
        partial(_partition, rule, local),
        decode_shardings=False,
        sharding_rule=f"{', '.join(operands)} -> {', '.join(results)}",
        need_replication_factors=tuple(name for name in named if not name.startswith("kept")),
    )
    return list(made(*args))


def _factors(rule: PoolSpec, side: str, rank: int) -> str:
    pooled = {axis[0] for axis in rule.frame.axes}
    return " ".join(f"{side if d in pooled else 'kept'}{d}" for d in range(rank))


def _partition(rule: PoolSpec, local: Callable[..., list[Any]], mesh: Any, operands: Any, results: Any) -> Any:
    """Return how to compute a part: on arrays that are distributed along the same axes, and whole along those that are pooled."""
    pooled = [axis[0] for axis in rule.frame.axes]
    tiles = max((_tiles(a, pooled) for a in (operands[0], results[0])), key=lambda t: prod(t.shape[:-1]))
    devices = operands[0].sharding._device_assignment

    made = _HloSharding.subgroup_with_device_ordering(tiles, subgroup_types=[_REPLICATED])
    alike, everywhere = GSPMDSharding(devices, made), GSPMDSharding.get_replicated(devices)
    given = (alike, everywhere, *(alike for _ in operands[2:]))
    return mesh, lambda *arrays: tuple(local(*arrays)), (alike,) * len(results), given


def _tiles(array: Any, pooled: Sequence[int]) -> Any:
    """Return the devices by the part that they have along each axis, those with the same part last; pooled axes are whole."""
    rank, how = len(array.shape), array.sharding._to_xla_hlo_sharding(len(array.shape))
    if not how.is_tiled():
        return np.arange(array.sharding.num_devices, dtype=np.int64).reshape(*[1] * rank, -1)
    sizes = list(how.tile_assignment_dimensions())
    made = np.asarray(how.tile_assignment_devices(), np.int64).reshape(*sizes[:rank], -1)
    apart = [1 if d in pooled else n for d, n in enumerate(made.shape[:-1])]
    turned = np.moveaxis(made, list(pooled), list(range(rank - len(pooled), rank)))
    return np.ascontiguousarray(turned.reshape(*apart, -1))
