"""OpenVINO: a compiled model of one node, forward only, channels first (its only layout)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cells import Cell
from ..data import Array, Arrays
from .base import Peer, Run, installed, load, version_of
from .onnxruntime import ELEMENT, model


class OpenVino:
    """A request of a model compiled for the CPU; converts other layouts to its own before the clock starts."""

    name = "openvino"
    given = False

    def __init__(self) -> None:
        self.openvino = load("openvino")
        self.core = self.openvino.Core()

    def version(self) -> str:
        """Return the version of OpenVINO."""
        return version_of("openvino")

    def can(self, cell: Cell) -> str | None:
        """Accept forward ops on the types that its models name."""
        if cell.op.order or cell.fractional:
            return "forward only, no fractional pooling"
        return None if cell.dtype in ELEMENT else f"no {cell.dtype}"

    def prepare(self, cell: Cell, arrays: Arrays) -> Run:
        """Compile the model and share the input with it."""
        x = arrays.x if cell.first else np.ascontiguousarray(np.moveaxis(arrays.x, -1, 1))
        y = cell.dest if cell.first else (cell.dest[0], cell.dest[-1], *cell.dest[1:-1])
        exact = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
        compiled = self.core.compile_model(self.core.read_model(model(cell, x.shape, y)), "CPU", exact)
        request = compiled.create_infer_request()
        request.set_input_tensor(self.openvino.Tensor(x, shared_memory=True))
        kept = (request, x)  # keeps the shared array alive

        def result(_: Any) -> Array:
            array = np.array(request.get_output_tensor().data)
            return array if cell.first else np.moveaxis(array, 1, -1)

        return Run(lambda: kept[0].infer(), result)


def peers() -> list[Peer]:
    """Return OpenVINO, if installed."""
    return [OpenVino()] if installed("openvino") else []
