"""Read an op's arguments from text and .npy files, and write its results to files, for `poolgrad run`."""

from __future__ import annotations

import difflib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from .._common.errors import short_repr
from .dtypes import short
from .kinds import EITHER, REQUIRED, Kind, Param
from .table import OPS, Op
from .text import OutOfRange

Array = npt.NDArray[Any]


def closest(word: str, known: Iterable[str]) -> str:
    """Return the end of an error about an unknown word: the closest known word, or all of them.

    >>> closest("MaxPol", ["AvgPool", "MaxPool"])
    "; did you mean 'MaxPool'?"
    """
    lower = {name.lower(): name for name in known}
    found = difflib.get_close_matches(word.lower(), lower, 1, 0.5)
    return f"; did you mean {lower[found[0]]!r}?" if found else f"; there are {', '.join(lower.values())}"


def find(name: str) -> Op:
    """Return the op of that name."""
    if name not in OPS:
        raise ValueError(f"there is no op {short_repr(name)}{closest(name, OPS)}")
    return OPS[name]


def arguments(op: Op, words: Sequence[str]) -> dict[str, Any]:
    """Parse `name=value` words: read arrays from files, everything else from text.

    >>> arguments(OPS["AvgPoolGrad"], ["orig_input_shape=1,4,4,1", "ksize=1,2,2,1"])["ksize"]
    Traceback (most recent call last):
    ValueError: AvgPoolGrad: still wanted: grad=, strides=, padding=
    """
    params = {p.name: p for p in op.params if p.kind is not Kind.NAME}
    given: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise ValueError(f"{op.name}: got {short_repr(word)}, wanted name=value")
        if name not in params:
            raise ValueError(f"{op.name}: there is no argument {short_repr(name)}{closest(name, params)}")
        if name in given:
            raise ValueError(f"{op.name}: {name}: got it twice")
        given[name] = _value(op, params[name], text)
    missing = [f"{name}=" for name, p in params.items() if p.default is REQUIRED and name not in given]
    if missing:
        raise ValueError(f"{op.name}: still wanted: {', '.join(missing)}")
    return given


def _value(op: Op, param: Param, given: str) -> Any:
    """Return an argument: from a file, as the word that it is, or as its kind reads it."""
    kind, where = param.kind, f"{op.name}: {param.name}"
    if kind.is_cells or (kind.entry == EITHER and ".npy" in given):
        return load(where, given)
    if not kind.like:
        return given  # bind judges the spelling
    try:
        if not given.strip() and param.default is REQUIRED:
            raise ValueError(kind.like)
        return kind.convert(kind.parse(given, op, param), param)
    except OutOfRange as error:
        raise ValueError(f"{where}: got {short_repr(given)}, wanted {error.wanted}") from None
    except ValueError:
        raise ValueError(f"{where}: got {short_repr(given)}, wanted {kind.like}") from None


def load(what: str, text: str) -> Array:
    """Return the array in a .npy file; `file.npy:bfloat16` reads the two-byte values that NumPy cannot name."""
    path, colon, kind = text.rpartition(":")
    if colon and kind not in ("bfloat16", "bf16"):
        path, colon = text, ""
    path = path if colon else text
    try:
        with open(path, "rb") as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
    except Exception as error:  # a header is Python text: a damaged one raises whatever Python's tokenizer does
        raise ValueError(f"{what}: got {short_repr(path)}, wanted a .npy file ({_why(error)})") from None
    if array.dtype.kind == "V" and array.dtype.itemsize == 2 and not array.dtype.names:
        if not colon:
            raise ValueError(
                f"{what}: got {short_repr(path)}, raw two-byte values; if they are bfloat16, say {path}:bfloat16"
            )
        return array.view(ml_dtypes.bfloat16)
    if colon:
        raise ValueError(
            f"{what}: got {short_repr(path)} of dtype {array.dtype}, wanted raw two-byte values for :bfloat16"
        )
    return array


def _why(error: Exception) -> str:
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    if "pickle" in text or "Object" in text:
        return "it holds pickled Python objects, which are never loaded"
    return (
        "it does not begin like one" if "magic" in text else short_repr(text, 100).strip("'\"") or type(error).__name__
    )


def save(op: Op, result: Any, target: str) -> list[str]:
    """Write all outputs; return a line per output that names its file."""
    outputs = dict(zip(op.outputs, result if len(op.outputs) > 1 else (result,), strict=True))
    path = Path(target)
    if path.suffix == ".npz":
        store("-o", {path: lambda file: np.savez(file, allow_pickle=False, **outputs)})
        return [f"{target}[{name}]: {describe(array)}" for name, array in outputs.items()]
    if path.suffix != ".npy":
        raise ValueError(f"-o: got {short_repr(target)}, wanted a name that ends in .npy or .npz")
    places = {name: path if i == 0 else path.with_suffix(f".{name}.npy") for i, name in enumerate(outputs)}
    store("-o", {places[name]: partial(np.save, arr=array, allow_pickle=False) for name, array in outputs.items()})
    lines = []
    for name, array in outputs.items():
        note = f" (read it again as {places[name]}:bfloat16)" if array.dtype.name == "bfloat16" else ""
        lines.append(f"{places[name]}: {describe(array)}{note}")
    return lines


# ---- files that are whole or not there


def store(argument: str, contents: Mapping[Path, bytes | Callable[[IO[bytes]], Any]]) -> None:
    """Write files so that each is complete or unchanged: into new files beside them, which take their places at the end.

    `argument` is the word of the command line that errors name. Pipes and devices are written to directly.
    """
    moves: list[tuple[Path, Path]] = []
    path = Path()
    try:
        for path, content in contents.items():
            _write(path, content, moves)
        while moves:
            part, path = moves[0]
            os.replace(part, path)
            moves.pop(0)
    except OSError as error:
        why = (error.strerror or str(error) or type(error).__name__).lower()
        raise ValueError(
            f"{argument}: got {short_repr(str(path))}, wanted a file that can be written ({why})"
        ) from None
    finally:
        for part, _ in moves:
            part.unlink(missing_ok=True)


def _write(path: Path, content: bytes | Callable[[IO[bytes]], Any], moves: list[tuple[Path, Path]]) -> None:
    """Write one file; if it goes into a new file first, note in `moves` where that belongs."""
    target = Path(os.path.realpath(path))  # a link stays a link
    there = target.stat() if target.exists() else None
    if there is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    direct = there is not None and not stat.S_ISREG(there.st_mode)
    part = target.with_name(f".poolgrad-{secrets.token_hex(8)}.part")
    if not direct:
        try:
            handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        except PermissionError:
            direct = there is not None  # nothing may be added to the folder, but the file may be written
            if not direct:
                raise
        else:
            moves.append((part, target))
    with open(target, "wb") if direct else os.fdopen(handle, "wb") as file:
        if isinstance(content, bytes):
            file.write(content)
        else:
            content(file)
        if not direct:
            file.flush()
            os.fsync(handle)
    if not direct and there is not None:
        os.chmod(part, stat.S_IMODE(there.st_mode))


def describe(array: Array) -> str:
    """Return dtype and shape as text.

    >>> describe(np.zeros((2, 3), np.float32))
    'f32 [2, 3]'
    """
    return f"{short(array.dtype.name)} {list(array.shape)}"
