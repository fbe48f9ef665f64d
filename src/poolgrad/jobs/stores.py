"""Read and write stored arrays: NumPy arrays, .npy files, Zarr, HDF5, and anything else with a shape, a dtype and slices."""

from __future__ import annotations

import hashlib
import mmap
import os
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np

from .._common.arrays import Array
from .._common.errors import ArgumentErrors, short_repr
from .chunk_files import ChunkError, ChunkFiles, buffer_of, find_files, scratch
from .parts import Region, Shape, size_of

_HDF5 = (".h5", ".hdf5", ".he5", ".nc")
_SENT = "the path of a .npy file or of a Zarr array, or a Zarr array, with an executor"
_KINDS = "an array, a .npy file, a Zarr array, or an HDF5 dataset as file.h5::name"


class StoredArray(Protocol):
    """An array of NumPy, Zarr or HDF5."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""

    @property
    def dtype(self) -> Any:
        """The dtype."""

    def __getitem__(self, region: Any, /) -> Any:
        """Read a region."""


StoreOrPath: TypeAlias = StoredArray | str | os.PathLike[str]
"""A stored array, or the path of one."""


class StoredGroup(Protocol):
    """A group of arrays, as Zarr has them."""

    @property
    def attrs(self) -> Any:
        """The metadata."""

    def __getitem__(self, name: str, /) -> Any:
        """Open an array."""


@dataclass
class Store:
    """A stored array, and what the loop must know about it."""

    array: Any
    name: str  # for errors
    chunks: Shape | None = None  # what is read at once
    unit: Shape | None = None  # what is written at once: a shard, else a chunk
    path: Path | None = None
    files: ChunkFiles | None = None  # of a Zarr array whose chunks are plain files

    @property
    def shape(self) -> Shape:
        """The shape."""
        return tuple(int(n) for n in self.array.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype in native byte order."""
        found: np.dtype[Any] = np.dtype(self.array.dtype).newbyteorder("=")
        return found

    @property
    def buffer(self) -> int | None:
        """The bytes that are held besides a region while it is read or written; None for as many as the region has."""
        if self.files is not None:
            return self.files.buffer
        if isinstance(self.array, np.ndarray):
            return 0
        if self._asynchronous or self.chunks is None:
            return None
        return buffer_of(prod(self.chunks) * self.dtype.itemsize, True)

    @property
    def _asynchronous(self) -> bool:
        return hasattr(self.array, "store")  # Zarr reads several chunks at a time

    def cells(self, region: Region, slot: str | None = None) -> Array:
        """Read a region. With a slot, use the memory of the last region of this thread again."""
        if self.files is None:
            return np.asarray(self.array[region])
        size = size_of(region)
        made: Array = np.empty(size, self.dtype) if slot is None else scratch(slot, size, self.dtype)
        self.files.read(region, made)
        return made

    def read(self, region: Region, slot: str | None = None) -> Array:
        """Read a region as `cells` does; name the chunk that cannot be read."""
        try:
            return self.cells(region, slot)
        except MemoryError:
            raise
        except Exception as error:
            where = f"chunk {list(error.index)}" if isinstance(error, ChunkError) else self._unreadable(region)
            kind = "" if isinstance(error, ChunkError) else f"{type(error).__name__}: "
            got = f"{where} that cannot be read ({kind}{short_repr(str(error), 120)})"
            ArgumentErrors("pool").fail(self.name, got, "a store that is whole", OSError)

    def _unreadable(self, region: Region) -> str:
        """Name the first chunk of a region that cannot be read."""
        if self.chunks is not None:
            grid = [range(s.start // c, -(-s.stop // c)) for s, c in zip(region, self.chunks, strict=True)]
            for index in product(*grid):
                chunk = [slice(i * c, (i + 1) * c) for i, c in zip(index, self.chunks, strict=True)]
                try:
                    self.array[tuple(slice(s.start, min(s.stop, n)) for s, n in zip(chunk, self.shape, strict=True))]
                except Exception:
                    return f"chunk {list(index)}"
        return f"region {_text(region)}"

    def write(self, region: Region, values: Array) -> None:
        """Write a region."""
        try:
            if self.files is not None and self.files.whole(region):
                self.files.write(region, values)
            else:
                self.array[region] = values
        except OSError as error:
            got = f"region {_text(region)} that cannot be written ({error})"
            ArgumentErrors("pool").fail(self.name, got, "room for it; resume=True goes on from here", OSError)

    def release(self) -> None:
        """Let go of the pages of a memory map: they stay in the file, and in the cache of the system."""
        base = self.array.base if isinstance(self.array, np.memmap) else None
        if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            base.madvise(mmap.MADV_DONTNEED)

    def address(self, problems: ArgumentErrors) -> Any:
        """Return what another process opens the store by: its path, or a Zarr array."""
        if isinstance(self.array, np.memmap) and self.path is not None and self.path.suffix == ".npy":
            return str(self.path)
        if not hasattr(self.array, "store_path"):
            problems.fail(self.name, short_repr(type(self.array).__name__), _SENT, TypeError)
        return self.array

    def fingerprint(self) -> str:
        """Return a digest that changes if the array does: of all files' sizes and times, or of the cells of an array in memory."""
        digest = hashlib.blake2b(f"{self.shape} {self.dtype}".encode(), digest_size=16)
        if self.path is not None:
            for line in _files(self.path):
                digest.update(line.encode())
        elif isinstance(self.array, np.ndarray):
            digest.update(np.ascontiguousarray(self.array).tobytes())
        else:
            digest.update(str(getattr(self.array, "attrs", "")).encode())
        return digest.hexdigest()

    def finish(self) -> None:
        """Write what is still held back."""
        flush = getattr(self.array, "flush", None)
        if callable(flush):
            flush()
        file = getattr(self.array, "file", None)
        if callable(getattr(file, "flush", None)):
            file.flush()  # type: ignore[union-attr]


def _text(region: Region) -> str:
    return "[" + ", ".join(f"{s.start}:{s.stop}" for s in region) + "]"


def _files(path: Path) -> list[str]:
    """Return a line per file: its path, size and time of change."""
    if path.is_file():
        found = path.stat()
        return [f"{found.st_size} {found.st_mtime_ns}\n"]
    lines, folders = [], [str(path)]
    while folders:
        folder = folders.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir():
                    folders.append(entry.path)
                else:
                    found = entry.stat()
                    lines.append(f"{entry.path[len(str(path)) :]} {found.st_size} {found.st_mtime_ns}\n")
    return sorted(lines)


def open_source(problems: ArgumentErrors, name: str, value: Any) -> Store:
    """Open an array for reading."""
    if isinstance(value, Store):
        return value
    if isinstance(value, (str, os.PathLike)):
        return _open_path(problems, name, os.fspath(value), "r")
    return _wrap(problems, name, value)


def _wrap(problems: ArgumentErrors, name: str, value: Any) -> Store:
    if not hasattr(value, "shape") or not hasattr(value, "dtype") or not hasattr(value, "__getitem__"):
        problems.fail(name, short_repr(value), _KINDS, TypeError)
    chunks, shards = _chunks(value, "chunks"), _chunks(value, "shards")
    file = getattr(value, "filename", None) if isinstance(value, np.memmap) else None
    path = _folder(value) if file is None else Path(file)
    return Store(value, name, chunks, shards or chunks, path, None if shards else find_files(value))


def _chunks(value: Any, what: str) -> Shape | None:
    try:
        found = getattr(value, what, None)
    except NotImplementedError:  # of chunks that are not even
        return None
    return tuple(found) if found and all(isinstance(c, int) for c in found) else None


def _folder(value: Any) -> Path | None:
    """Return the folder of a Zarr array, or the file of an HDF5 dataset, on this machine."""
    store = getattr(getattr(value, "store_path", None), "store", None)
    root = getattr(store, "root", None)
    if root is not None:
        return Path(str(root)) / str(getattr(value, "path", ""))
    file = getattr(getattr(value, "file", None), "filename", None)
    return Path(file) if isinstance(file, str) else None


def _open_path(problems: ArgumentErrors, name: str, path: str, mode: str) -> Store:
    file, _, inside = path.partition("::")
    where = Path(file)
    if where.suffix in _HDF5:
        return _open_hdf5(problems, name, where, inside, mode)
    if not where.exists():
        problems.fail(name, repr(path), "a path that exists", FileNotFoundError)
    if where.suffix == ".npy":
        try:
            array = np.load(where, mmap_mode="r" if mode == "r" else "r+")
        except Exception as error:
            problems.fail(name, repr(path), f"a .npy file of numbers ({short_repr(str(error), 120)})")
        return Store(array, path, None, None, where)
    if not where.is_dir():
        problems.fail(name, repr(path), _KINDS)
    return _open_zarr(problems, name, where, mode)


def _open_zarr(problems: ArgumentErrors, name: str, where: Path, mode: str) -> Store:
    zarr = needed(problems, "zarr", name)
    try:
        array = zarr.open_array(str(where), mode=mode)
    except Exception as error:
        problems.fail(name, repr(str(where)), f"a Zarr array ({type(error).__name__}: {short_repr(str(error), 120)})")
    made = _wrap(problems, str(where), array)
    made.path = where
    return made


def _open_hdf5(problems: ArgumentErrors, name: str, where: Path, inside: str, mode: str) -> Store:
    h5py = needed(problems, "h5py", name)
    if not where.exists():
        problems.fail(name, repr(str(where)), "a path that exists", FileNotFoundError)
    file = h5py.File(where, mode)
    found = file.get(inside) if inside else None
    if not isinstance(found, h5py.Dataset):
        names: list[str] = []
        file.visititems(lambda key, item: names.append(key) if isinstance(item, h5py.Dataset) else None)
        file.close()
        problems.fail(name, repr(f"{where}::{inside}"), f"a dataset of it, as file.h5::name: {', '.join(names[:9])}")
    made = _wrap(problems, f"{where}::{inside}", found)
    made.path = where
    return made


def needed(problems: ArgumentErrors, package: str, name: str) -> Any:
    """Import a package that is not always installed."""
    from importlib import import_module

    try:
        return import_module(package)
    except ImportError:
        problems.fail(name, f"a path that {package} reads", f"pip install {package}", ImportError)


@dataclass
class Wanted:
    """The array that a target must be, and how to make it if it does not exist."""

    shape: Shape
    dtype: np.dtype[Any]
    chunks: Shape | None = None
    shards: Shape | None = None
    zarr_format: int = 3
    like: Any = None  # a Zarr array whose compression a new one gets

    @property
    def same_format(self) -> bool:
        """True if the other array has the same format."""
        return getattr(getattr(self.like, "metadata", None), "zarr_format", None) == self.zarr_format


def buffer_of_target(value: Any, wanted: Wanted) -> int | None:
    """Return the bytes that a target will hold besides a region while it is written, before it is made; None for as many again."""
    if value is None or (isinstance(value, (str, os.PathLike)) and Path(value).suffix == ".npy"):
        return 0
    if not isinstance(value, (str, os.PathLike)):
        return (value if isinstance(value, Store) else _wrap(ArgumentErrors("pool"), "out", value)).buffer
    if wanted.chunks is None or wanted.shards is not None:
        return None
    raw = wanted.same_format and not wanted.like.compressors
    return buffer_of(prod(wanted.chunks) * wanted.dtype.itemsize, not raw)


def refuse_to_send(problems: ArgumentErrors, out: Any) -> None:
    """Refuse a target that other processes cannot open for writing."""
    path = isinstance(out, (str, os.PathLike)) and Path(os.fspath(out).partition("::")[0]).suffix not in _HDF5
    if not path and not hasattr(out, "store_path"):
        problems.fail("out", short_repr(out), _SENT, TypeError)


def reopen_target(problems: ArgumentErrors, value: Any) -> Store:
    """Open an array that exists for writing."""
    return _open_path(problems, "out", value, "r+") if isinstance(value, str) else _wrap(problems, "out", value)


def open_target(
    problems: ArgumentErrors, name: str, value: Any, wanted: Wanted, again: bool, overwrite: bool
) -> tuple[Store, bool]:
    """Open an array for writing, and make it if it does not exist; return True with a new one.

    Refuse an array of another shape or dtype. Refuse an existing file unless it is written again (`again`) or anew (`overwrite`).
    """
    if value is None:
        return Store(np.zeros(wanted.shape, wanted.dtype), name), True
    if not isinstance(value, (str, os.PathLike)):
        made = value if isinstance(value, Store) else _wrap(problems, name, value)
        _match(problems, name, made, wanted)
        if isinstance(made.array, np.ndarray) and not made.array.flags.writeable:
            problems.fail(name, "a read-only array", "one that can be written")
        return made, False
    path = os.fspath(value)
    file, _, inside = path.partition("::")
    where = Path(file)
    exists = _has_dataset(problems, where, inside, name) if where.suffix in _HDF5 else where.exists()
    if exists and again:
        made = _open_path(problems, name, path, "r+")
        _match(problems, name, made, wanted)
        return made, False
    if exists and not overwrite:
        problems.fail(name, f"{path!r}, which exists", "resume=True, overwrite=True, or another path", FileExistsError)
    if not where.absolute().parent.is_dir():
        problems.fail(name, repr(path), "a path in a folder that exists", FileNotFoundError)
    _check_chunks(problems, wanted)
    return _create(problems, name, where, inside, wanted), True


def _match(problems: ArgumentErrors, name: str, made: Store, wanted: Wanted) -> None:
    if made.shape != wanted.shape:
        problems.fail(name, f"shape {list(made.shape)}", list(wanted.shape))
    if made.dtype != wanted.dtype:
        problems.fail(name, f"dtype {made.dtype}", wanted.dtype, TypeError)


def _check_chunks(problems: ArgumentErrors, wanted: Wanted) -> None:
    for what, sizes in (("chunks", wanted.chunks), ("shards", wanted.shards)):
        if sizes is not None and (len(sizes) != len(wanted.shape) or any(s < 1 for s in sizes)):
            problems.fail(what, list(sizes), f"{len(wanted.shape)} positive sizes")
    if wanted.shards is not None:
        if wanted.zarr_format == 2:
            problems.fail("shards", list(wanted.shards), "no shards in Zarr 2")
        if wanted.chunks is None or any(s % c for s, c in zip(wanted.shards, wanted.chunks, strict=True)):
            problems.fail("shards", list(wanted.shards), f"multiples of the chunks {list(wanted.chunks or ())}")


def _has_dataset(problems: ArgumentErrors, where: Path, inside: str, name: str) -> bool:
    if not inside:
        problems.fail(name, repr(str(where)), "the name of a dataset too, as file.h5::name")
    if not where.exists():
        return False
    h5py = needed(problems, "h5py", name)
    with h5py.File(where, "r") as file:
        return inside in file


def _create(problems: ArgumentErrors, name: str, where: Path, inside: str, wanted: Wanted) -> Store:
    chunks = wanted.chunks
    if where.suffix == ".npy":
        array: Any = np.lib.format.open_memmap(where, "w+", wanted.dtype, wanted.shape)
        return Store(array, str(where), None, None, where)
    if where.suffix in _HDF5:
        h5py = needed(problems, "h5py", name)
        file = h5py.File(where, "a")
        if inside in file:
            del file[inside]
        made = file.create_dataset(inside, wanted.shape, wanted.dtype, chunks=chunks)
        return Store(made, f"{where}::{inside}", made.chunks, made.chunks, where)
    zarr = needed(problems, "zarr", name)
    words: dict[str, Any] = {}
    if wanted.same_format:
        words["compressors"] = wanted.like.compressors or None
    try:
        array = zarr.create_array(
            str(where), shape=wanted.shape, dtype=wanted.dtype, chunks=chunks or "auto", shards=wanted.shards,
            zarr_format=wanted.zarr_format, overwrite=True, **words,
        )  # fmt: skip
    except (ValueError, TypeError) as error:
        problems.fail(name, repr(str(where)), f"an array that Zarr can hold ({short_repr(str(error), 160)})")
    made_store = _wrap(problems, str(where), array)
    made_store.path = where
    return made_store
