"""The native module called directly, past every check in Python: it raises, and touches nothing else."""

import itertools
import mmap
import threading

import ml_dtypes
import numpy as np
import pytest
from support import python

import poolgrad
from poolgrad import _core, raw_ops

F32, I64, U8 = np.float32, np.int64, np.uint8


def plan() -> _core.Plan:
    """Return a plan of three windows of two over six cells, with two channels."""
    start = np.array([0, 2, 4])
    return _core.Plan((1, 6, 2), (1, 3, 2), 1, 2, [(6, start, start + 2, None)])


def cells(count: int, dtype: object = F32) -> np.ndarray:
    return np.zeros(count, dtype)


X, Y = 12, 6  # elements of source and destination


def readonly(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def overlapping(inside: int, outside: int) -> tuple[np.ndarray, np.ndarray]:
    """Return an input and an output that share memory."""
    memory = np.zeros(inside + outside - 1, F32)
    return memory[:inside], memory[inside - 1 :]


VERBS = {
    "fold": lambda x, y: _core.fold(plan(), 0, x, y),
    "select": lambda x, y: _core.select(plan(), 0, x, y),
    "spread": lambda x, y: _core.spread(plan(), 0, False, y, x),
    "argmax": lambda x, y: _core.argmax(plan(), 12, x, y, cells(Y, I64)),
    "near": lambda x, y: _core.near(plan(), 1e-5, x, y, cells(Y), cells(X)),
    "route": lambda x, y: _core.route(plan(), x, None, y, cells(X)),
    "recall": lambda x, y: _core.recall(plan(), x, y, cells(X), cells(Y)),
    "choose": lambda x, y: _core.choose(plan(), x, y, cells(Y, U8)),
    "best": lambda x, y: _core.best(plan(), 0, x, y),
    "best_taps": lambda x, y: _core.best_taps(plan(), 1, x, y, cells(Y, U8)),
    "pick": lambda x, y: _core.pick(plan(), x, cells(Y, U8), y),
    "place": lambda x, y: _core.place(plan(), y, cells(Y, U8), x),
}
SOURCES = {
    "short": lambda: cells(X - 1),
    "long": lambda: cells(X + 1),
    "empty": lambda: cells(0),
    "strided": lambda: cells(2 * X)[::2],
    "reversed": lambda: cells(X)[::-1],
    "unaligned": lambda: np.zeros(4 * X + 1, np.uint8)[1:].view(F32),
    "big-endian": lambda: cells(X, ">f4"),
    "of another dtype": lambda: cells(X, np.float64),
    "complex": lambda: cells(X, np.complex64),
    "objects": lambda: np.array([None] * X),
    "bool": lambda: cells(X, bool),
    "float8": lambda: cells(X, ml_dtypes.float8_e5m2),
    "structured": lambda: cells(X, [("q", "i4")]),
    "list": lambda: [0.0] * X,
    "None": lambda: None,
    "bytes": lambda: b"0" * 48,
}


@pytest.mark.parametrize(
    ("verb", "how"), [(v, h) for v in VERBS for h in SOURCES if h != "None" or v not in ("spread", "place")]
)
def test_a_source_is_refused_that_is(verb, how):
    with pytest.raises((ValueError, TypeError)):
        VERBS[verb](SOURCES[how](), cells(Y))


@pytest.mark.parametrize("how", [h for h in SOURCES if h not in ("list", "bytes", "None")])
@pytest.mark.parametrize("verb", VERBS)
def test_a_destination_is_refused_that_is(verb, how):
    wrong = SOURCES[how]()
    wrong = wrong[: wrong.size - (X - Y)] if wrong.size >= X - 1 else wrong
    with pytest.raises((ValueError, TypeError)):
        VERBS[verb](cells(X), wrong)


OUTPUTS = {
    "fold": lambda out: _core.fold(plan(), 0, cells(X), out(Y)),
    "select": lambda out: _core.select(plan(), 0, cells(X), out(Y)),
    "spread": lambda out: _core.spread(plan(), 0, False, cells(Y), out(X)),
    "argmax": lambda out: _core.argmax(plan(), 12, cells(X), out(Y), cells(Y, I64)),
    "near": lambda out: _core.near(plan(), 1e-5, cells(X), cells(Y), cells(Y), out(X)),
    "route": lambda out: _core.route(plan(), cells(X), None, cells(Y), out(X)),
    "recall": lambda out: _core.recall(plan(), cells(X), cells(Y), cells(X), out(Y)),
    "choose": lambda out: _core.choose(plan(), cells(X), out(Y), cells(Y, U8)),
    "best": lambda out: _core.best(plan(), 0, cells(X), out(Y)),
    "best_taps": lambda out: _core.best_taps(plan(), 1, cells(X), out(Y), cells(Y, U8)),
    "pick": lambda out: _core.pick(plan(), cells(X), cells(Y, U8), out(Y)),
    "place": lambda out: _core.place(plan(), cells(Y), cells(Y, U8), out(X)),
    "gather": lambda out: _core.gather(1, False, cells(X), cells(Y, I64), out(Y)),
    "scatter": lambda out: _core.scatter(1, False, cells(Y), cells(Y, I64), out(X)),
}


@pytest.mark.parametrize("verb", OUTPUTS)
def test_an_output_that_may_not_be_written_is_refused(verb):
    with pytest.raises(ValueError, match="must be writable"):
        OUTPUTS[verb](lambda n: readonly(cells(n)))
    with pytest.raises(ValueError, match="contiguous"):
        OUTPUTS[verb](lambda n: cells(2 * n)[::2])
    with pytest.raises(TypeError):
        OUTPUTS[verb](lambda n: cells(n, np.float64))


def test_an_output_that_shares_memory_with_an_input_is_refused():
    g, out = overlapping(Y, X)
    x, y = overlapping(X, Y)
    v, back = overlapping(X, Y)
    calls = [
        lambda: _core.fold(plan(), 0, x, y),
        lambda: _core.select(plan(), 0, x, y),
        lambda: _core.spread(plan(), 0, False, g, out),
        lambda: _core.argmax(plan(), 12, x, y, cells(Y, I64)),
        lambda: _core.near(plan(), 1e-5, cells(X), g, cells(Y), out),
        lambda: _core.near(plan(), 1e-5, cells(X), cells(Y), g, out),
        lambda: _core.route(plan(), cells(X), None, g, out),
        lambda: _core.route(plan(), cells(X), g, cells(Y), out),
        lambda: _core.recall(plan(), v, cells(Y), cells(X), back),
        lambda: _core.recall(plan(), cells(X), cells(Y), v, back),
        lambda: _core.gather(1, False, v, cells(Y, I64), back),
        lambda: _core.scatter(1, False, g, cells(Y, I64), out),
        lambda: _core.choose(plan(), x, y, cells(Y, U8)),
        lambda: _core.best(plan(), 0, x, y),
        lambda: _core.best_taps(plan(), 0, x, y, cells(Y, U8)),
        lambda: _core.pick(plan(), v, cells(Y, U8), back),
        lambda: _core.place(plan(), g, cells(Y, U8), out),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="shares memory"):
            call()


def test_taps_that_share_memory_with_anything_are_refused():
    memory = np.zeros(64, F32)
    taps = memory.view(U8)[:Y]
    for call in (
        lambda: _core.choose(plan(), cells(X), memory[:Y], taps),
        lambda: _core.choose(plan(), memory[:X], cells(Y), taps),
        lambda: _core.best_taps(plan(), 0, cells(X), memory[:Y], taps),
        lambda: _core.best_taps(plan(), 0, memory[:X], cells(Y), taps),
        lambda: _core.pick(plan(), cells(X), taps, memory[:Y]),
        lambda: _core.place(plan(), cells(Y), taps, memory[:X]),
    ):
        with pytest.raises(ValueError, match="shares memory"):
            call()


@pytest.mark.parametrize("n", [256, 257])
def test_taps_are_of_one_type(n):
    whole = _core.Plan((n,), (1,), 1, 1, [(n, np.array([0]), np.array([n]), None)])
    right = U8 if n == 256 else np.uint32
    _core.choose(whole, cells(n), cells(1), cells(1, right))
    calls = (
        lambda taps: _core.choose(whole, cells(n), cells(1), taps),
        lambda taps: _core.pick(whole, cells(n), taps, cells(1)),
        lambda taps: _core.place(whole, cells(1), taps, cells(n)),
    )
    for wrong, call in itertools.product({U8, np.uint32, np.int8, np.uint16, np.uint64, np.int32} - {right}, calls):
        with pytest.raises(TypeError, match="taps: must be uint"):
            call(cells(1, wrong))


def test_a_tap_outside_its_window_is_named_and_nothing_is_read_there():
    taps = np.array([0, 1, 0, 2, 1, 255], U8)
    assert _core.pick(plan(), cells(X), taps, cells(Y)) == 3
    assert _core.place(plan(), cells(Y), taps, cells(X)) == 3


def test_positions_that_share_memory_with_the_values_are_refused():
    memory = np.zeros(64, I64)
    with pytest.raises(ValueError, match="shares memory"):
        _core.argmax(plan(), 12, cells(X), memory.view(F32)[:Y], memory[:Y])


BAD_NUMBERS = {
    "mean": lambda: _core.fold(plan(), 7, cells(X), cells(Y)),
    "negative mean": lambda: _core.fold(plan(), -1, cells(X), cells(Y)),
    "start": lambda: _core.select(plan(), 7, cells(X), cells(Y)),
    "share": lambda: _core.spread(plan(), 4, False, cells(Y), cells(X)),
    "integers not as quotients": lambda: _core.spread(plan(), 0, False, cells(Y, np.int32), cells(X, np.int32)),
    "modulo": lambda: _core.argmax(plan(), 0, cells(X), cells(Y), cells(Y, I64)),
    "positions beyond int32": lambda: _core.argmax(plan(), 2**31 + 1, cells(X), cells(Y), cells(Y, np.int32)),
    "means of bytes that count in bytes": lambda: _core.fold(plan(), 3, cells(X, np.int8), cells(Y, np.int8)),
    "means of integers by a rule for floats": lambda: _core.fold(plan(), 1, cells(X, np.int32), cells(Y, np.int32)),
    "means of floats in integers": lambda: _core.fold(plan(), 2, cells(X), cells(Y)),
    "means of unsigned integers": lambda: _core.fold(plan(), 0, cells(X, np.uint64), cells(Y, np.uint64)),
    "shares of bytes": lambda: _core.spread(plan(), 2, False, cells(Y, np.uint8), cells(X, np.uint8)),
    "index type": lambda: _core.argmax(plan(), 12, cells(X), cells(Y), cells(Y, np.uint64)),
    "items": lambda: _core.gather(5, False, cells(X), cells(Y, I64), cells(Y)),
    "items of positions alone": lambda: _core.gather(2, False, cells(X + 1), cells(Y, I64), cells(Y)),
    "no items": lambda: _core.gather(0, False, cells(X), cells(Y, I64), cells(Y)),
    "negative items": lambda: _core.scatter(-1, False, cells(Y), cells(Y, I64), cells(X)),
    "fewer positions": lambda: _core.scatter(1, False, cells(Y), cells(Y - 1, I64), cells(X)),
    "float positions": lambda: _core.gather(1, False, cells(X), cells(Y, np.float64), cells(Y)),
    "no threads": lambda: _core.set_num_threads(0),
    "a million threads": lambda: _core.set_num_threads(10**6),
    "no plan": lambda: _core.fold(None, 0, cells(X), cells(Y)),
}


@pytest.mark.parametrize("what", BAD_NUMBERS)
def test_a_number_without_meaning_is_refused(what):
    with pytest.raises((ValueError, TypeError)):
        BAD_NUMBERS[what]()


def nothing() -> np.ndarray:
    return np.array([0])


FOUND = {
    "a shape that NumPy has no array for": (
        ValueError,
        lambda: _core.fold(
            _core.Plan((0, 2**62, 2**62), (0, 2**62, 2**62), 0, 0, [(1, nothing(), nothing() + 1, None)]), 0, cells(0)
        ),
    ),
    "more elements than bytes can be counted for": (
        ValueError,
        lambda: _core.Plan((2**61,), (2**61,), 2**61, 1, [(1, nothing(), nothing() + 1, None)]),
    ),
    "new arrays of objects": (TypeError, lambda: _core.empty((1 << 19,), np.array([None]))),
    "a half type of one byte": (TypeError, lambda: _core.use_bfloat16(cells(0, np.int8))),
    "a half type of another library": (TypeError, lambda: _core.use_bfloat16(cells(0, ml_dtypes.float8_e5m2))),
    "dimensions without end": (ValueError, lambda: _core.empty(itertools.repeat(1), cells(1))),
    "axes without end": (
        ValueError,
        lambda: _core.Plan((1,), (1,), 1, 1, itertools.repeat((1, nothing(), nothing() + 1, None))),
    ),
    "tables larger than the memory": (
        MemoryError,
        lambda: _core.spread(
            _core.Plan((0,), (0,), 0, 1, [(2**45, nothing(), nothing() + 1, None)]), 0, False, np.zeros(0, np.float32)
        ),
    ),
    "sizes that wrap around to those of the shapes": (
        ValueError,
        lambda: _core.Plan((0,), (0,), 2**32, 2**32, [(1, nothing(), nothing() + 1, None)]),
    ),
    "an axis that wraps around": (
        ValueError,
        lambda: _core.Plan((0,), (0,), 2**20, 2**20, [(2**24, nothing(), nothing() + 1, None)]),
    ),
    "a shape of words": (TypeError, lambda: _core.Plan("six", (1,), 1, 1, [(1, nothing(), nothing() + 1, None)])),
}


@pytest.mark.parametrize("what", FOUND)
def test_what_fuzzing_found_is_refused(what):
    kind, call = FOUND[what]
    with pytest.raises(kind):
        call()


def test_an_axis_of_negative_length_is_called_that():
    none = np.zeros(0, I64)
    with pytest.raises(ValueError, match="negative length"):
        _core.Plan((0,), (0,), 0, 1, [(-1, none, none, None)])


def test_nothing_has_any_number_of_images_and_takes_no_time():
    empty, where = cells(0), cells(0, I64)
    assert _core.gather(2**40, False, empty, where, cells(0)) == -1
    assert _core.scatter(2**40, False, empty, where, cells(0)) == -1


def test_a_window_without_cells_is_not_verified_whoever_sees_it():
    start = np.array([0, 2, 2])
    owned = _core.Plan((4,), (3,), 1, 1, [(4, start, np.array([2, 2, 4]), None)])
    x, y, g = np.array([1, 5, 2, 3], F32), np.array([5, 77, 3], F32), np.ones(3, F32)
    assert _core.route(owned, x, y, g).tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("bad", [-1, 12, 2**62, -(2**63), 2**63 - 1])
@pytest.mark.parametrize("absolute", [False, True])
def test_positions_astray_are_reported_not_followed(absolute, bad):
    where = cells(Y, I64)
    where[4] = bad
    assert _core.gather(1, absolute, cells(X), where, cells(Y)) == 4
    assert _core.scatter(1, absolute, cells(Y), where, cells(X)) == 4


def test_threads_may_call_at_once_and_agree():
    x = np.random.default_rng(0).standard_normal((2, 64, 64, 24)).astype(F32)
    args = {"ksize": [1, 3, 3, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
    want = raw_ops.MaxPool(input=x, **args)
    wrong: list[int] = []

    def work(n: int) -> None:
        for _ in range(10):
            if (raw_ops.MaxPool(input=x, **args) != want).any():
                wrong.append(n)

    with poolgrad.threads(2):
        pool = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in pool:
            thread.start()
        for thread in pool:
            thread.join()
    assert wrong == []


FORKED = """
import os, numpy as np, poolgrad
from poolgrad import raw_ops
x = np.ones((2, 64, 64, 24), np.float32)
call = lambda: raw_ops.AvgPool(value=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID").sum()
poolgrad.set_num_threads(2)
want = call()
child = os.fork()
if child == 0:
    os._exit(0 if call() == want else 3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_the_thread_pool_survives_a_fork():
    done = python("-c", FORKED, timeout=60)
    assert done.stdout.strip() == "0", done.stderr


@pytest.mark.parametrize("other", [None, 5, "plan", object(), _core], ids=lambda value: type(value).__name__)
def test_what_is_no_plan_is_refused(other):
    with pytest.raises(TypeError):
        _core.fold(other, 0, cells(X))


def test_a_shape_whose_elements_cannot_be_counted_is_refused():
    for shape in ((2**40, 2**40), (2**31, 2**31, 2**31), (2**58, 2)):
        with pytest.raises(ValueError, match="shape: no shape"):
            _core.empty(shape, cells(1))


def test_a_window_of_more_cells_than_can_be_numbered_is_refused():
    n = 1 << 11
    zero, one = np.zeros(1, I64), np.full(1, n)
    large = _core.Plan((n, n, n), (1, 1, 1), 1, 1, [(n, zero, one, None)] * 3)
    x = np.frombuffer(mmap.mmap(-1, n**3), U8)  # 8 GiB that nobody touches
    with pytest.raises(ValueError, match="more cells than uint32 can number"):
        _core.pick(large, x, np.zeros(1, np.uint32))
