"""The bits do not depend on how the calling thread treats subnormals: other libraries switch them off and leave it so."""

import ctypes
import mmap
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support import FAST, Case, arguments, difference, dtype_of

import poolgrad
from poolgrad._ops.table import OPS, Kind

if platform.machine() in ("x86_64", "AMD64"):
    FLUSH = 0x8040  # flush results to zero, and take subnormal operands for zero
    PUT, GET = b"\x0f\xae\x17\xc3", b"\x0f\xae\x1f\xc3"  # ldmxcsr, stmxcsr at the address in rdi; return
elif platform.machine() in ("aarch64", "arm64"):
    FLUSH = 1 << 24 | 1 << 19  # flush results and operands to zero, those of float16 too
    PUT = bytes.fromhex("010040f9 01441bd5 c0035fd6")  # ldr x1, [x0]; msr fpcr, x1; ret
    GET = bytes.fromhex("01443bd5 010000f9 c0035fd6")  # mrs x1, fpcr; str x1, [x0]; ret
else:
    pytest.skip("sets the register of floating-point modes of x86-64 and arm64", allow_module_level=True)


@pytest.fixture(scope="module")
def modes() -> Iterator[tuple[Callable[[], int], Callable[[int], None]]]:
    """Yield a reader and a writer of this thread's floating-point modes: two functions in a page of their own."""
    try:
        with TemporaryFile() as code:  # a file, because code written to memory may miss the cache of instructions
            code.write((PUT + GET).ljust(mmap.PAGESIZE, b"\0"))
            code.flush()
            access = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC  # from_buffer wants a writable page
            page = mmap.mmap(code.fileno(), mmap.PAGESIZE, mmap.MAP_PRIVATE, access)
    except (OSError, AttributeError) as error:
        pytest.skip(f"no executable memory here: {error}")
    start = ctypes.c_char.from_buffer(page)
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    load, store = kind(ctypes.addressof(start)), kind(ctypes.addressof(start) + len(PUT))
    word = ctypes.c_uint64()  # MXCSR takes half of it

    def get() -> int:
        store(ctypes.addressof(word))
        return word.value

    def put(value: int) -> None:
        word.value = value
        load(ctypes.addressof(word))

    yield get, put
    del start
    page.close()


@contextmanager
def flushing(modes: Any) -> Iterator[None]:
    """Switch subnormals off in this thread, within the block."""
    get, put = modes
    before = get()
    put(before | FLUSH)
    try:
        yield
    finally:
        put(before)


def test_a_flushing_thread_has_no_subnormals(modes):
    tiny = np.full(64, 1e-310)
    with flushing(modes):
        flushed = tiny * 1.0
    assert (tiny * 1.0 == tiny).all()
    assert flushed.view(np.uint64).sum() == 0


def subnormal(case: Case) -> dict[str, Any]:
    """Return the arguments of a case, each small integer times the smallest number of its type."""
    kinds = {p.name: p.kind for p in case.row.params}
    smallest = ml_dtypes.finfo(dtype_of(case.dtype)).smallest_subnormal
    return {
        name: value * smallest if kinds[name] in (Kind.SOURCE, Kind.DEST) else value
        for name, value in arguments(case).items()
    }


FLOATS = [(n, d) for n, op in OPS.items() for d in op.dtypes if dtype_of(d).kind not in "iu"]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("name", "dtype"), FLOATS)
def test_results_do_not_depend_on_flushing_in_the_calling_thread(name, dtype, threads, modes):
    spatial = OPS[name].spatial
    for k, s, depth in ((3, 2, 9), (2, 1, 1)):
        shape = (2, *(9,) * spatial, depth)
        args = subnormal(Case(name, dtype, x=shape, k=(k,) * spatial, s=(s,) * spatial, pad="SAME", data="ties"))
        with poolgrad.threads(threads):
            want = FAST[name](**args)
            with flushing(modes):
                got = FAST[name](**args)
                state = modes[0]()
        assert state & FLUSH == FLUSH, "the caller's own mode is given back"
        assert not difference(got, want)
