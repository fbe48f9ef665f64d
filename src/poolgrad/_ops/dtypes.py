"""Name the element types: the lists that rows of the table use, short names, TensorFlow's names. Imports nothing."""

from __future__ import annotations

HALVES = ("float16", "bfloat16")  # summed in a wider type
FLOATS = (*HALVES, "float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
REALS = FLOATS + INTEGERS
FLOATS_AND_LONG = (*FLOATS, "int32", "int64")
CODES = ("int8", "uint8", "int16", "uint16", "int32")
DTYPES = REALS  # every type of any op
POSITIONS = ("int32", "int64")


def short(dtype: str) -> str:
    """Return a type's short name.

    >>> short("bfloat16"), short("uint8"), short("float32")
    ('bf16', 'u8', 'f32')
    """
    return dtype.replace("float", "f").replace("uint", "u").replace("int", "i")


NAMES = {name: dtype for dtype in DTYPES for name in (dtype, short(dtype))}
ALIASES = {"float": "float32", "double": "float64", "half": "float16", "int": "int32", "qint8": "int8",
           "quint8": "uint8", "qint16": "int16", "quint16": "uint16", "qint32": "int32", **NAMES}  # fmt: skip


def enumerator(name: str) -> str:
    """Return TensorFlow's C++ name of a type."""
    return {"float32": "DT_FLOAT", "float64": "DT_DOUBLE", "float16": "DT_HALF"}.get(name, f"DT_{name.upper()}")
