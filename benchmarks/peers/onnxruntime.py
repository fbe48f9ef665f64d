"""ONNX Runtime: a one-node model, forward only, channels first (its only layout)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cells import Cell
from ..data import Array, Arrays
from .base import Peer, Run, installed, load, version_of

ELEMENT = {"float32": 1, "uint8": 2, "int8": 3, "float16": 10, "float64": 11}
OPSET, IR = 19, 9


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _field(number: int, value: int | str | bytes) -> bytes:
    """Encode one protobuf field: a varint, or bytes with their length."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(raw)) + raw


def _attribute(name: str, value: int | list[int]) -> bytes:
    body = _field(1, name)
    if isinstance(value, int):
        return _field(5, body + _field(3, value) + _field(20, 2))
    return _field(5, body + b"".join(_field(8, v) for v in value) + _field(20, 7))


def _tensor(number: int, name: str, element: int, shape: tuple[int, ...]) -> bytes:
    sizes = b"".join(_field(1, _field(1, n)) for n in shape)
    return _field(number, _field(1, name) + _field(2, _field(1, _field(1, element) + _field(2, sizes))))


def model(cell: Cell, x: tuple[int, ...], y: tuple[int, ...]) -> bytes:
    """Return the model as ONNX's protobuf, written by hand to avoid another package."""
    op = "MaxPool" if cell.maximal else "AveragePool"
    pads = [e.before for e in cell.extents] + [e.after for e in cell.extents]
    node = _field(1, "x") + _field(2, "y") + _field(4, op)
    node += (
        _attribute("kernel_shape", list(cell.ksize))
        + _attribute("strides", list(cell.strides))
        + _attribute("pads", pads)
    )
    element = ELEMENT[cell.dtype]
    graph = _field(1, node) + _field(2, "pool") + _tensor(11, "x", element, x) + _tensor(12, "y", element, y)
    return _field(1, IR) + _field(8, _field(1, "") + _field(2, OPSET)) + _field(7, graph)


class OnnxRuntime:
    """An inference session; converts other layouts to its own before the clock starts."""

    name = "onnxruntime"
    given = False

    def __init__(self) -> None:
        self.ort = load("onnxruntime")

    def version(self) -> str:
        """Return the version of onnxruntime."""
        return version_of("onnxruntime")

    def can(self, cell: Cell) -> str | None:
        """Accept forward ops on the types that it names."""
        if cell.op.order or cell.fractional:
            return "forward only, no fractional pooling"
        return None if cell.dtype in ELEMENT else f"no {cell.dtype}"

    def prepare(self, cell: Cell, arrays: Arrays) -> Run:
        """Make the session and its input."""
        x = arrays.x if cell.first else np.ascontiguousarray(np.moveaxis(arrays.x, -1, 1))
        y = cell.dest if cell.first else (cell.dest[0], cell.dest[-1], *cell.dest[1:-1])
        options = self.ort.SessionOptions()
        options.log_severity_level = 4
        session = self.ort.InferenceSession(model(cell, x.shape, y), options, providers=["CPUExecutionProvider"])
        feed = {"x": self.ort.OrtValue.ortvalue_from_numpy(x)}

        def result(outs: Any) -> Array:
            array = np.asarray(outs[0].numpy())
            return array if cell.first else np.moveaxis(array, 1, -1)

        return Run(lambda: session.run_with_ort_values(["y"], feed), result)


def peers() -> list[Peer]:
    """Return ONNX Runtime, if installed."""
    return [OnnxRuntime()] if installed("onnxruntime") else []
