"""TensorFlow: eager raw ops on tensors, with its default oneDNN setting."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from poolgrad._ops.table import Kind

from ..cells import Cell
from ..data import Arrays, arguments, in_other_layout
from .base import Peer, Run, installed, load, version_of


class TensorFlow:
    """`tf.raw_ops`, whose signatures are ours."""

    name = "tensorflow"
    given = False

    def __init__(self) -> None:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        self.tf = load("tensorflow")

    def version(self) -> str:
        """Return the version, and the switch that changes its kernels."""
        switch = os.environ.get("TF_ENABLE_ONEDNN_OPTS", "default")
        return f"{version_of('tensorflow-cpu', 'tensorflow')} (TF_ENABLE_ONEDNN_OPTS={switch})"

    def can(self, cell: Cell) -> str | None:
        """Accept channels last only, the one layout of its CPU kernels."""
        return "channels-last only on CPU" if cell.first else None

    def prepare(self, cell: Cell, arrays: Arrays) -> Run:
        """Turn arrays into tensors and bind the cell's op."""
        function, given = getattr(self.tf.raw_ops, cell.kind), self._tensors(cell, arrays)
        many = len(cell.op.outputs) > 1
        return Run(lambda: function(**given), lambda out: np.asarray((out[0] if many else out).numpy()))

    def _tensors(self, cell: Cell, arrays: Arrays) -> dict[str, Any]:
        kinds = {p.name: p.kind for p in cell.op.params}
        tensors = (Kind.SOURCE, Kind.DEST, Kind.SHAPE, Kind.SEQUENCE)
        return {
            name: self.tf.constant(value) if kinds[name] in tensors else value
            for name, value in arguments(cell, arrays).items()
        }  # fmt: skip


class EitherLayout(TensorFlow):
    """`tf.raw_ops` on channels-first cells: in this layout if `first`, else on the same numbers channels last.

    Some of TensorFlow's CPU kernels take channels first, others raise an error; that depends on its version and on oneDNN.
    """

    def __init__(self, first: bool) -> None:
        super().__init__()
        self.first = first
        self.name = "tensorflow" if first else "tensorflow channels_last"

    def can(self, cell: Cell) -> str | None:
        """Try every channels-first cell."""
        return None if cell.first else "the cell's channels come last"

    def prepare(self, cell: Cell, arrays: Arrays) -> Run:
        """Bind the cell's op, or its twin's on arrays converted beforehand."""
        twin = cell.twin
        if self.first or twin is None:
            return super().prepare(cell, arrays)
        run = super().prepare(twin, in_other_layout(cell, arrays))
        return Run(run.call, lambda out: np.moveaxis(run.result(out), -1, 1))


def peers() -> list[Peer]:
    """Return TensorFlow, if installed."""
    return [TensorFlow()] if installed("tensorflow") else []
