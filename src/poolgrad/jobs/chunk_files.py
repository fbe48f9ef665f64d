"""Read and write the chunks of Zarr arrays on this machine as files, without Zarr's asynchronous machinery."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from io import FileIO
from itertools import product
from math import prod
from typing import Any
from uuid import uuid4

import numpy as np

from .._common.arrays import Array
from .parts import Region, Shape, size_of

_LOCAL = threading.local()


class ChunkError(OSError):
    """A chunk that cannot be read or written; `index` is its place in the grid of chunks."""

    def __init__(self, index: Shape, problem: str) -> None:
        super().__init__(problem)
        self.index = index


def scratch(name: str, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Return an array whose memory the next call with that name in this thread uses again: fresh memory costs as much as a copy."""
    wanted = prod(shape) * dtype.itemsize
    held: dict[str, Array] = _LOCAL.__dict__.setdefault("held", {})
    buffer = held.get(name)
    if buffer is None or not wanted <= buffer.nbytes <= 2 * wanted + 2**16:
        held.pop(name, None)
        buffer = None  # frees the old one first
        buffer = held[name] = np.empty(wanted, np.uint8)
    return np.ndarray(tuple(shape), dtype, buffer.data)


def buffer_of(chunk: int, packed: bool) -> int:
    """Return the bytes that reading or writing chunks of that many bytes holds: a chunk; of compressed ones, the file and a copy too."""
    return (3 if packed else 1) * chunk


def free_scratch() -> None:
    """Let go of the memory of this thread's arrays."""
    _LOCAL.__dict__.pop("held", None)


@dataclass(frozen=True)
class ChunkFiles:
    """The files of an array's chunks: where they are, and how their bytes become cells."""

    folder: str
    shape: Shape
    chunks: Shape
    dtype: np.dtype[Any]  # as it is stored, with its byte order
    fill: Any  # the value of the cells of chunks without a file
    key: Callable[[Shape], str]  # the path of a chunk in the folder
    codecs: tuple[Any, ...]  # from the bytes of the cells to those of the file
    keep_empty: bool = False  # a chunk that has the fill value in all cells has a file too

    @property
    def nbytes(self) -> int:
        """The bytes of the cells of a chunk."""
        return prod(self.chunks) * self.dtype.itemsize

    @property
    def buffer(self) -> int:
        """The bytes that reading or writing holds besides the cells."""
        return buffer_of(self.nbytes, bool(self.codecs))

    def read(self, region: Region, out: Array) -> None:
        """Read a region into an array of its shape."""
        for index, here in self._grid(region):
            to: Any = tuple(
                slice(max(h.start, r.start) - r.start, min(h.stop, r.stop) - r.start)
                for h, r in zip(here, region, strict=True)
            )
            of = tuple(
                slice(max(h.start, r.start) - h.start, min(h.stop, r.stop) - h.start)
                for h, r in zip(here, region, strict=True)
            )
            try:
                self._read_chunk(index, of, out[(*to, ...)])
            except (ChunkError, MemoryError):
                raise
            except Exception as error:
                raise ChunkError(index, f"{type(error).__name__}: {error}") from error

    def _grid(self, region: Region) -> Iterator[tuple[Shape, Region]]:
        """Yield the chunks that a region touches: the place in the grid, and the cells."""
        if 0 in size_of(region):
            return
        lines = [range(s.start // c, -(-s.stop // c)) for s, c in zip(region, self.chunks, strict=True)]
        for index in product(*lines):
            yield index, tuple(slice(i * c, (i + 1) * c) for i, c in zip(index, self.chunks, strict=True))

    def _read_chunk(self, index: Shape, of: Region, out: Array) -> None:
        try:
            file = FileIO(os.path.join(self.folder, self.key(index)))
        except FileNotFoundError:
            out[...] = self.fill
            return
        with file:
            there = os.fstat(file.fileno()).st_size
            if self.codecs:
                data = scratch("file", (there,), np.dtype(np.uint8))
                _fill(file, data)
                out[...] = self._decoded(index, data)[of]
                return
            if there != self.nbytes:
                raise ChunkError(index, f"{there} bytes, wanted {self.nbytes}")
            first, last = (of[0].start, of[0].stop) if of else (0, 1)
            rows = scratch("chunk", (last - first, *self.chunks[1:]), self.dtype)  # the planes that hold the part
            file.seek(first * (self.nbytes // (self.chunks[0] if of else 1)))
            _fill(file, rows)
            out[...] = rows[(slice(None), *of[1:])] if of else rows[0]

    def _decoded(self, index: Shape, data: Any) -> Array:
        for codec in reversed(self.codecs):
            if codec.codec_id == "blosc":
                _check_blosc(index, data)
            data = codec.decode(data)
        flat = np.frombuffer(data, np.uint8)
        if flat.size != self.nbytes:
            raise ChunkError(index, f"{flat.size} bytes when decoded, wanted {self.nbytes}")
        return flat.view(self.dtype).reshape(self.chunks)

    def whole(self, region: Region) -> bool:
        """Return True if a region consists of whole chunks, cut off by the end of the array alone."""
        return all(
            s.start % c == 0 and (s.stop % c == 0 or s.stop == n)
            for s, c, n in zip(region, self.chunks, self.shape, strict=True)
        )

    def write(self, region: Region, values: Array) -> None:
        """Write whole chunks, each of which appears at once. As in Zarr, a chunk of fill values has no file unless `keep_empty`."""
        for index, here in self._grid(region):
            place: Any = tuple(
                slice(h.start - r.start, min(h.stop, r.stop) - r.start) for h, r in zip(here, region, strict=True)
            )
            part = values[(*place, ...)]
            path = os.path.join(self.folder, self.key(index))
            if not self.keep_empty and self._empty(part):
                with suppress(FileNotFoundError):
                    os.unlink(path)
                continue
            cells = part
            if part.shape != self.chunks or part.dtype != self.dtype or not part.flags.c_contiguous:
                cells = scratch("chunk", self.chunks, self.dtype)
                if part.shape != self.chunks:
                    cells[...] = self.fill
                cells[tuple(slice(0, n) for n in part.shape)] = part
            data: Any = cells.reshape(-1).view(np.uint8)
            for codec in self.codecs:
                data = codec.encode(data)
            _appear(path, data)

    def _empty(self, part: Array) -> bool:
        """Return True if all cells have the bits of the fill value."""
        kind = np.dtype(f"u{part.dtype.itemsize}")
        fill = np.array(self.fill).astype(part.dtype).view(kind)
        bits = part.view(kind)
        return bool(bits[(0,) * bits.ndim] == fill and (bits == fill).all())


def _check_blosc(index: Shape, data: Any) -> None:
    """Refuse bytes that are fewer than their header says: Blosc reads on behind their end."""
    flat = np.frombuffer(data, np.uint8)
    wanted = int(flat[12:16].view("<u4")[0]) if flat.size >= 16 else 16
    if flat.size != wanted:
        raise ChunkError(index, f"{flat.size} bytes of Blosc, wanted {wanted}")


def _fill(file: FileIO, array: Array) -> None:
    """Fill an array with the next bytes of a file."""
    view = array.reshape(-1).view(np.uint8).data
    while len(view):
        got = file.readinto(view)
        if not got:
            raise OSError(f"the file ends {len(view)} bytes too early")
        view = view[got:]


def _appear(path: str, data: Any) -> None:
    """Write a file under another name, then give it its name: a reader sees all of it or nothing."""
    partial = f"{path}.{uuid4().hex}.partial"
    try:
        file = FileIO(partial, "x")
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        file = FileIO(partial, "x")
    try:
        with file:
            view = memoryview(data).cast("B")
            while len(view):
                view = view[file.write(view) :]
        os.replace(partial, path)
    except BaseException:
        os.unlink(partial)
        raise


def find_files(array: Any) -> ChunkFiles | None:
    """Return the files of a Zarr array whose chunks are files of this machine and plain: rows in order, known compressors, no shards."""
    try:
        zarr = import_module("zarr")
        numcodecs = import_module("numcodecs")
    except ImportError:
        return None
    if not isinstance(array, zarr.Array) or type(array.store) is not zarr.storage.LocalStore:
        return None
    metadata = array.metadata
    dtype = np.dtype(array.dtype)
    if dtype.kind not in "biuf" or array.fill_value is None or metadata.fill_value is None:
        return None
    if metadata.zarr_format == 2:
        found = _codecs_2(metadata)
    else:
        if type(metadata.chunk_grid).__name__ != "RegularChunkGrid" or metadata.storage_transformers:
            return None
        found, order = _codecs_3(numcodecs, metadata)
        dtype = dtype.newbyteorder(order)
    if found is None:
        return None
    folder = os.path.join(str(array.store.root), str(array.path))
    chunks = tuple(int(c) for c in array.chunks)
    fill = np.array(metadata.fill_value).astype(dtype)[()]
    keep_empty = bool(array.config.write_empty_chunks)
    return ChunkFiles(folder, tuple(array.shape), chunks, dtype, fill, metadata.encode_chunk_key, found, keep_empty)


_COMPRESSORS = ("zstd", "blosc", "gzip", "zlib", "lz4", "bz2", "lzma")


def _codecs_2(metadata: Any) -> tuple[Any, ...] | None:
    if metadata.order != "C" or metadata.filters:
        return None
    compressor = metadata.compressor
    if compressor is None:
        return ()
    return (compressor,) if getattr(compressor, "codec_id", None) in _COMPRESSORS else None


def _codecs_3(numcodecs: Any, metadata: Any) -> tuple[tuple[Any, ...] | None, str]:
    """Return the codecs after that of the bytes, and the byte order; None for codecs that are not known."""
    first, *rest = (codec.to_dict() for codec in metadata.codecs)
    if first["name"] != "bytes":
        return None, "="
    order = {"little": "<", "big": ">"}.get(first.get("configuration", {}).get("endian", "little"))
    if order is None:
        return None, "="
    made = []
    for codec in rest:
        words = dict(codec.get("configuration", {}))
        if codec["name"] == "zstd" and set(words) <= {"level", "checksum"}:
            made.append(numcodecs.Zstd(**words))
        elif codec["name"] == "gzip" and set(words) <= {"level"}:
            made.append(numcodecs.GZip(**words))
        elif codec["name"] == "crc32c" and not words:
            made.append(numcodecs.CRC32C(location="end"))
        elif codec["name"] == "blosc" and set(words) <= {"cname", "clevel", "shuffle", "blocksize", "typesize"}:
            shuffles = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}
            made.append(numcodecs.Blosc(**{**words, "shuffle": shuffles[words["shuffle"]]}))
        else:
            return None, "="
    return tuple(made), order
