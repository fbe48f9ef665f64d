"""The bits do not depend on how the calling thread treats subnormals: other libraries switch them off and leave it so."""

import ctypes
import mmap
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support import FAST, Case, arguments, difference, dtype_of

import poolgrad
from poolgrad._ops.table import OPS, Kind

FLUSH = 0x8040  # flush results to zero, and take subnormal operands for zero
LDMXCSR, STMXCSR = b"\x0f\xae\x17\xc3", b"\x0f\xae\x1f\xc3"  # at the address in rdi; return

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="sets MXCSR, an x86 register")


@pytest.fixture(scope="module")
def mxcsr() -> Iterator[tuple[Callable[[], int], Callable[[int], None]]]:
    """Yield a reader and a writer of this thread's MXCSR: two instructions in a page of their own."""
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except (OSError, AttributeError) as error:
        pytest.skip(f"no executable memory here: {error}")
    page.write(LDMXCSR + STMXCSR)
    start = ctypes.c_char.from_buffer(page)
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    load, store = kind(ctypes.addressof(start)), kind(ctypes.addressof(start) + len(LDMXCSR))
    word = ctypes.c_uint32()

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
def flushing(mxcsr: Any) -> Iterator[None]:
    """Switch subnormals off in this thread, within the block."""
    get, put = mxcsr
    before = get()
    put(before | FLUSH)
    try:
        yield
    finally:
        put(before)


def test_a_flushing_thread_has_no_subnormals(mxcsr):
    tiny = np.full(64, 1e-310)
    with flushing(mxcsr):
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
def test_results_do_not_depend_on_flushing_in_the_calling_thread(name, dtype, threads, mxcsr):
    spatial = OPS[name].spatial
    for k, s, depth in ((3, 2, 9), (2, 1, 1)):
        shape = (2, *(9,) * spatial, depth)
        args = subnormal(Case(name, dtype, x=shape, k=(k,) * spatial, s=(s,) * spatial, pad="SAME", data="ties"))
        with poolgrad.threads(threads):
            want = FAST[name](**args)
            with flushing(mxcsr):
                got = FAST[name](**args)
                state = mxcsr[0]()
        assert state & FLUSH == FLUSH, "the caller's own mode is given back"
        assert not difference(got, want)
