"""Run torch's own pooling operators by the core: `accelerate` switches that on, for the process."""

from __future__ import annotations

import os
import runpy
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import torch

from . import _compiled, _inductor

_lock = threading.Lock()
_handles: set[object] = set()  # those that are on; a program may drop what `accelerate` returned


class Calls(NamedTuple):
    """Calls of an operator since the process began: those that poolgrad computed, and those that torch did, by reason."""

    ours: int
    torchs: dict[str, int]


class Acceleration:
    """The switch that `accelerate` returns. As a context manager it switches off at its end."""

    def __enter__(self) -> Acceleration:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.off()

    def off(self) -> None:
        """Give torch's kernels back, unless another `Acceleration` is still on. A second call does nothing."""
        with _lock:
            _handles.discard(self)
            if not _handles:
                _compiled.load().override(False)
                _inductor.give_back()
                _inductor.forget()

    @property
    def on(self) -> bool:
        """True until `off`."""
        return self in _handles

    def status(self) -> dict[str, Calls]:
        """Return, for each operator of torch that poolgrad computes, where its calls went."""
        found = _compiled.load().counters()
        return {
            f"aten::{op}": Calls(ways["poolgrad"], {way: n for way, n in ways.items() if n and way != "poolgrad"})
            for op, ways in found.items()
        }

    def __repr__(self) -> str:
        """Say whether it is on, and where the calls went."""
        rows = [f"{op}: {calls.ours} ours, {sum(calls.torchs.values())} torch's" for op, calls in self.status().items()]
        return "\n".join([f"<poolgrad.torch.accelerate: {'on' if self.on else 'off'}>", *rows])


def accelerate() -> Acceleration:
    """Compute torch's own pooling operators on the CPU by poolgrad's kernels, in every model of this process.

    Nothing else changes: values, indices, ties, NaN, gradients, memory formats, dtypes and errors are torch's. Calls that the kernels
    cannot give the same, or not faster, go to torch's own kernels, each by itself; `status` counts them by reason.

    Returns:
        A switch: `off()` gives torch's kernels back; `with accelerate(): ...` does so at the end of the block.

    Raises:
        RuntimeError: If the compiled part is missing (`python -m poolgrad.torch build`), or torch has another version than the ones
            that were compared.
    """
    if _compiled.torch_version() not in _compiled.KNOWN:
        raise RuntimeError(f"poolgrad.torch: accelerate: {_compiled.unknown_version()}")
    made = _compiled.load()
    if made is None:
        raise RuntimeError(
            f"poolgrad.torch: accelerate: got no compiled part for torch {torch.__version__}, "
            f"wanted one: {_compiled.ADVICE}"
        )
    handle = Acceleration()
    with _lock:
        if not _handles:
            made.override(True)
            _inductor.take()
            _inductor.forget()
        _handles.add(handle)
    return handle


def run(words: list[str]) -> int:
    """Run a program with acceleration on: a script and its arguments, or "-m", a module and its arguments."""
    accelerate()
    os.environ["POOLGRAD_TORCH"] = "1"  # for processes that it starts
    if words[0] == "-m":
        sys.argv = words[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path.insert(0, str(Path(words[0]).resolve().parent))
        runpy.run_path(words[0], run_name="__main__")
    return 0


if os.environ.get("POOLGRAD_TORCH") == "1":
    accelerate()
