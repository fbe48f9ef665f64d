"""Load arrays and pictures that a graph embeds under the hash of their bytes, or reads from files."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common import png
from .._common.errors import short_repr
from .literals import numpy_type
from .model import Graph, Json, Limits
from .text import TextError

Array = npt.NDArray[Any]
KINDS = {"npy_base64": ".npy", "png_base64": ".png"}
_KEPT: dict[tuple[str, str], Array] = {}  # ordered by use, the latest last
_MOST_KEPT = 2**26  # bytes of decoded files
_MOST_FILES = 64
_LOCK = threading.Lock()  # guards _KEPT


@dataclass
class Sources:
    """The sources of a page's arrays: the graph's embedded data, and files if `paths` allows them."""

    data: dict[str, Json] = field(default_factory=dict)
    paths: bool = True
    folder: Path = field(default_factory=Path)
    feeds: Mapping[str, Any] = field(default_factory=dict)  # keyed by placeholder id
    limits: Limits | None = None

    @staticmethod
    def of(graph: Graph, paths: bool, folder: Path | None = None) -> Sources:
        """Return the sources of a graph's pages."""
        return Sources(graph.data, paths, folder or Path(), limits=graph.limits)

    def load(self, text: str, kind: str) -> Array:
        """Return the array or picture of a hash or a path; kind is .npy or .png."""
        if text.startswith("sha256:"):
            return self._held(text, kind)
        if not text:
            raise TextError(0, 1, "nothing", f"a {kind} file")
        if not self.paths:
            raise TextError(0, len(text), f"the path {short_repr(text)}", "data that the page holds: choose a file")
        path, _, dtype = text.partition(":") if text.endswith((":bfloat16", ":bf16")) else (text, "", "")
        try:
            return decode((self.folder / path).read_bytes(), kind, "bfloat16" if dtype else "")
        except OSError as error:
            why = (error.strerror or type(error).__name__).lower()
        except ValueError as error:
            why = str(error)
        raise TextError(0, len(text), f"{short_repr(text)} ({why})", f"a {kind} file")

    def lookup(self, name: str) -> Array:
        """Return the array of a hash."""
        return self._held(name, ".npy")

    def _held(self, name: str, kind: str) -> Array:
        entry = self.data.get(name)
        key = next(k for k, suffix in KINDS.items() if suffix == kind)
        if entry is None or not isinstance(entry.get(key), str):
            raise TextError(0, len(name), f"{name[:15]}...", f"the hash of a {kind} file that the graph holds")
        try:
            raw = base64.b64decode(entry[key], validate=True)
            if f"sha256:{hashlib.sha256(raw).hexdigest()}" != name:
                raise ValueError("its bytes have another hash")
            return decode(raw, kind, str(entry.get("dtype", "")))
        except (ValueError, binascii.Error) as error:
            raise TextError(0, len(name), f"{name[:15]}... ({short_repr(str(error), 120)})", f"a {kind} file") from None


def decode(raw: bytes, kind: str, dtype: str = "") -> Array:
    """Return the read-only array in the bytes of a file; decode each file once."""
    key = (hashlib.sha256(raw).hexdigest(), dtype)
    with _LOCK:
        array = _KEPT.get(key)
    if array is None:
        array = png.decode(raw) if kind == ".png" else _npy(raw, dtype)
        array.flags.writeable = False
    with _LOCK:
        _keep(key, array)
    return array


def _keep(key: tuple[str, str], array: Array) -> None:
    """Cache a decoded file; drop the least recently used if there are too many."""
    _KEPT.pop(key, None)
    _KEPT[key] = array
    room = _MOST_KEPT
    for i, (old, held) in enumerate(reversed(list(_KEPT.items()))):
        room -= held.nbytes
        if (room < 0 and held is not array) or i >= _MOST_FILES:
            _KEPT.pop(old, None)


def _npy(raw: bytes, dtype: str) -> Array:
    try:
        array = np.lib.format.read_array(io.BytesIO(raw), allow_pickle=False)
    except Exception as error:  # a header is Python text, so a damaged one raises any error of Python's tokenizer
        pickled = "pickle" in str(error) or "Object" in str(error)
        why = "it holds pickled Python objects, which are never loaded" if pickled else short_repr(str(error), 100)
        raise ValueError(f"not a .npy file that can be read: {why}") from None
    if array.dtype.kind == "V" and array.dtype.itemsize == 2 and dtype == "bfloat16":
        return np.ascontiguousarray(array).view(numpy_type(dtype))
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        raise ValueError(f"dtype {array.dtype}, wanted numbers")
    return np.ascontiguousarray(array).astype(array.dtype.newbyteorder("="))


def embed(name: str, raw: bytes, dtype: str = "") -> tuple[str, Json, Array]:
    """Make a file's bytes an entry of a graph's data; return the hash, the entry and the array."""
    kind = Path(name).suffix.lower()
    if kind not in KINDS.values():
        raise ValueError(f"{short_repr(name)}: wanted a .npy or a .png file")
    array = decode(raw, kind, dtype)
    key = next(k for k, suffix in KINDS.items() if suffix == kind)
    title = Path(name.replace("\\", "/")).name[:100]
    entry = {"name": title, key: base64.b64encode(raw).decode()} | ({"dtype": dtype} if dtype else {})
    return f"sha256:{hashlib.sha256(raw).hexdigest()}", entry, array


def embed_array(array: Array) -> tuple[str, Json]:
    """Make an array an entry of a graph's data; return the hash and the entry."""
    stream = io.BytesIO()
    plain = array.view(np.uint16).view("V2") if array.dtype.name == "bfloat16" else array
    np.lib.format.write_array(stream, np.ascontiguousarray(plain), allow_pickle=False)
    raw = stream.getvalue()
    entry = {"npy_base64": base64.b64encode(raw).decode(), "name": "array.npy"}
    if array.dtype.name == "bfloat16":
        entry["dtype"] = "bfloat16"
    return f"sha256:{hashlib.sha256(raw).hexdigest()}", entry
