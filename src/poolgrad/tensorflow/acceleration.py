"""Run TensorFlow's own pooling ops by the core: kernels for the CPU that TensorFlow prefers to its own.

The kernels are an extension, built once by `python -m poolgrad.tensorflow build`. It needs a C++ compiler and no header of
TensorFlow; one library serves several versions.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

from .._frameworks.build import Extension

EXTENSION = Extension("poolgrad.tensorflow", Path(__file__).parent / "kernels.cpp", "_tensorflow.so")
OLDEST, NEWEST = (2, 18), (2, 21)  # versions that were tried
LIBRARIES = (
    "libtensorflow_framework.so.2",
    "libtensorflow_cc.so.2",
    "libtensorflow_framework.2.dylib",
    "libtensorflow_cc.2.dylib",
)


class Status(NamedTuple):
    """The state of `accelerate`.

    Attributes
    ----------
    on : bool
        True once the kernels are registered.
    ops : dict
        For each op, the calls that our kernel has computed in this process.
    threads : int
        The most threads of one call; 0: as many as poolgrad uses.
    library : Path or None
        The compiled extension.
    """

    on: bool
    ops: dict[str, int]
    threads: int
    library: Path | None

    @property
    def runs(self) -> int:
        """Return the calls of all ops."""
        return sum(self.ops.values())


def _version() -> tuple[int, int]:
    major, minor, *_ = tf.__version__.split(".")
    return int(major), int(minor)


def was_tested() -> bool:
    """Return True if the extension was tried with this version of TensorFlow."""
    return OLDEST <= _version() <= NEWEST


def thread_limit() -> int:
    """Return the threads that TensorFlow's ops may use, or 0 if nobody set them."""
    text = os.environ.get("TF_NUM_INTRAOP_THREADS", "").strip()
    given = tf.config.threading.get_intra_op_parallelism_threads() or (int(text) if text.isdecimal() else 0)
    return min(max(given, 0), 1024)  # TensorFlow ignores a text that is no number, too


def _refuse(got: str, wanted: str) -> Any:
    raise RuntimeError(f"accelerate: tensorflow: got {got}, wanted {wanted}")


class Accelerate:
    """Register the kernels; see `accelerate`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: ctypes.CDLL | None = None
        self._library: Path | None = None
        self._threads = 0

    def __call__(self, *, any_version: bool = False) -> Status:
        """Run TensorFlow's pooling ops by poolgrad's kernels from now on, in this process.

        Every later call of these ops on the CPU runs them: eager, in a `tf.function`, in Keras, in a SavedModel, in TensorFlow's
        C++ programs inside this process. Results have TensorFlow's bits, apart from the deviations that the page of each op lists.
        Call it before the first `tf.function` runs: a function that has run keeps its kernels. A second call changes nothing but the
        number of threads, which follows `tf.config.threading.set_intra_op_parallelism_threads`.

        TensorFlow cannot drop a kernel: start a process without this call to be without it.

        Parameters
        ----------
        any_version : bool, optional
            Also try a version of TensorFlow that was not tested. Default: False.

        Returns
        -------
        Status
            The state; `accelerate.status()` returns it at any time.

        Raises
        ------
        RuntimeError
            If the extension was not built, or this version of TensorFlow was not tested, or lacks a function.

        Examples
        --------
        >>> import tensorflow as tf
        >>> from poolgrad.tensorflow import accelerate
        >>> if accelerate.status().library:
        ...     on = accelerate().on
        """
        with self._lock:
            if self._loaded is None:
                self._register(any_version)
            self._follow_threads()
        return self.status()

    def status(self) -> Status:
        """Return whether the kernels are registered, and how often each ran."""
        if self._loaded is None:
            return Status(False, {}, 0, EXTENSION.find())
        ops = {name: self._loaded.poolgrad_tf_runs(i) for i, name in enumerate(_names(self._loaded))}
        return Status(True, ops, self._threads, self._library)

    def _register(self, any_version: bool) -> None:
        if sys.platform == "win32":
            _refuse("Windows", "Linux or macOS, where TensorFlow exports its functions for kernels")
        if not any_version and not was_tested():
            known = f"{OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"
            _refuse(f"version {tf.__version__}", f"{known}, which were tested, or accelerate(any_version=True)")
        path = EXTENSION.find()
        if path is None:
            _refuse("no compiled kernels", "them built once: python -m poolgrad.tensorflow build")
        assert path is not None
        loaded = EXTENSION.load(path)
        loaded.poolgrad_tf_find.restype = loaded.poolgrad_tf_op.restype = ctypes.c_char_p
        loaded.poolgrad_tf_runs.restype = ctypes.c_int64
        home = Path(tf.__file__).parent
        missing = loaded.poolgrad_tf_find(":".join(str(home / name) for name in LIBRARIES).encode())
        if missing:
            _refuse(f"version {tf.__version__} without {missing.decode()}", "one that exports it")
        for number, name in enumerate(_names(loaded)):
            said = ctypes.create_string_buffer(256)
            loaded.poolgrad_tf_register(number, said)
            if said.value:
                raise RuntimeError(f"accelerate: {name}: TensorFlow refused the kernel: {said.value.decode()}")
        self._loaded, self._library = loaded, path
        _forget_kernels()

    def _follow_threads(self) -> None:
        assert self._loaded is not None
        self._threads = thread_limit()
        self._loaded.poolgrad_tf_threads(self._threads)


def _names(loaded: ctypes.CDLL) -> list[str]:
    """Return the ops that the extension serves."""
    names: list[str] = []
    while (name := loaded.poolgrad_tf_op(len(names))) is not None:
        names.append(name.decode())
    return names


def _forget_kernels() -> None:
    """Let ops that already ran eagerly look up their kernels again."""
    from tensorflow.python.eager import context

    context.context().clear_kernel_cache()


accelerate = Accelerate()


def main(arguments: list[str]) -> int:
    """Build the kernels, or print which are used."""
    if arguments == ["build"]:
        print(f"poolgrad.tensorflow: built {EXTENSION.build()}")
        return 0
    if arguments:
        print("usage: python -m poolgrad.tensorflow [build]", file=sys.stderr)
        return 2
    path = EXTENSION.find()
    print(
        f"accelerate() registers the kernels of {path}"
        if path
        else "accelerate() has no kernels yet; to compile them: python -m poolgrad.tensorflow build"
    )
    return 0
