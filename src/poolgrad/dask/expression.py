"""The pool of Dask arrays as an expression, where Dask plans queries."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from dask.array._array_expr._collection import new_collection
from dask.array._array_expr._expr import ArrayExpr

from ..jobs.job import Job


class PoolExpr(ArrayExpr):
    """The blocks of a job's result; the operands after the parameters are the lazy arrays that it reads."""

    _parameters = ["label", "job", "stores", "made", "empty", "which", "tasks"]  # noqa: RUF012  # as Dask has it

    @cached_property
    def _meta(self) -> Any:
        return self.operand("empty")

    @cached_property
    def chunks(self) -> Any:
        """The chunks of the result."""
        return self.operand("made")

    @cached_property
    def _name(self) -> str:
        return f"pool-{self.deterministic_token}"

    def _layer(self) -> dict[Any, Any]:
        arrays = [(array._name, array.chunks) for array in self.operands[len(self._parameters) :]]
        make = self.operand("tasks")
        job, stores, which = (self.operand(name) for name in ("job", "stores", "which"))
        layer: dict[Any, Any] = make(self._name, job, arrays, stores, self.chunks, which)
        return layer


def new_pool(
    name: str,
    job: Job,
    arrays: list[Any],
    stores: list[Any],
    chunks: Any,
    meta: Any,
    which: int | None,
    tasks: Callable[..., Any],
) -> Any:
    """Return the lazy array of a job's result."""
    return new_collection(PoolExpr(name, job, stores, chunks, meta, which, tasks, *(array.expr for array in arrays)))
