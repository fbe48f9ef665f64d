"""Follow the limits that other libraries of the process set on threads, once they are imported: torch's, threadpoolctl's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import config
from ._common.imported import when_imported


def follow_torch(torch: Any) -> None:
    """Let the core ask torch how many threads a call may use: 1 in a worker of a DataLoader, or after torch.set_num_threads(1).

    The core asks in C++, before it starts threads: a call that is too small for threads pays nothing.
    """
    import ctypes  # late: not every program imports torch

    try:
        library = str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so")
        usual = ctypes.CDLL(library)._ZN2at27intraop_default_num_threadsEv()
        config.follow_threads(library, "_ZN2at15get_num_threadsEv", "_ZN2at18in_parallel_regionEv", usual)
    except (OSError, AttributeError, TypeError, ValueError):  # another build of torch: poolgrad's own number holds
        return


def show_to_threadpoolctl(threadpoolctl: Any) -> None:
    """Let threadpoolctl see and limit the threads of poolgrad."""
    if not hasattr(threadpoolctl, "register"):  # before 3.4
        return

    class PoolgradController(threadpoolctl.LibController):  # type: ignore[misc]
        """The threads of poolgrad."""

        user_api = internal_api = "poolgrad"
        filename_prefixes = ("_core",)
        check_symbols = ("poolgrad_threads",)

        def get_num_threads(self) -> int:
            return config.get_num_threads()

        def set_num_threads(self, num_threads: int) -> None:
            config.limit_threads(num_threads)

        def get_version(self) -> str:
            return config.__version__

    threadpoolctl.register(PoolgradController)


when_imported("threadpoolctl", show_to_threadpoolctl)
when_imported("torch", follow_torch)
