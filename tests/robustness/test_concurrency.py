"""Any number of threads may call at once, also threads of other libraries, and all get the same bits."""

import sys
import sysconfig
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jobs
import numpy as np
import pytest

import poolgrad
from poolgrad import raw_ops
from poolgrad._windows import plan_cache


@pytest.mark.parametrize("limit", [1, 2, 7])
def test_eight_threads_at_once_get_the_right_bits(limit):
    jobs.jobs()
    with poolgrad.threads(limit), ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda seed: jobs.wrong_ops(seed, 2), range(8)))
    assert found == [[]] * 8


def test_the_comparison_sees_a_single_wrong_bit():
    name, args, want = jobs.jobs()[0]
    spoilt = want[0].copy()
    spoilt.reshape(-1).view(np.uint8)[3] ^= 1
    assert jobs.right((name, args, want))
    assert not jobs.right((name, args, [spoilt, *want[1:]]))


def test_the_number_of_threads_may_change_under_running_calls():
    jobs.jobs()
    stop = threading.Event()

    def turn() -> None:
        while not stop.is_set():
            for n in (1, 64, 2, 7):
                poolgrad.set_num_threads(n)

    before = poolgrad.get_num_threads()
    turner = threading.Thread(target=turn)
    turner.start()
    try:
        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(jobs.wrong_ops, range(3)))
    finally:
        stop.set()
        turner.join()
        poolgrad.set_num_threads(before)
    assert found == [[]] * 3


def test_an_array_that_another_thread_writes_gives_some_result_or_a_refusal_but_no_bad_access():
    """Positions are read once and checked where they are used."""
    x = np.zeros((4, 64, 64, 8), np.float32)
    where = np.zeros((4, 32, 32, 8), np.int64)
    sizes = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    stop = threading.Event()

    def spoil() -> None:
        while not stop.is_set():
            where[...] = 2**62
            where[...] = 5

    writer = threading.Thread(target=spoil)
    writer.start()
    refused = 0
    try:
        for _ in range(200):
            try:
                raw_ops.MaxPoolGradWithArgmax(input=x, grad=x[:, ::2, ::2].copy(), argmax=where, **sizes)
            except ValueError:
                refused += 1
    finally:
        stop.set()
        writer.join()
    assert refused > 0


def test_inside_the_threads_of_torch():
    torch = pytest.importorskip("torch")

    class Pooled(torch.autograd.Function):
        """A function whose forward and backward run in whatever thread torch chooses."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return torch.from_numpy(raw_ops.MaxPool(input=x.detach().numpy(), **SIZES))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            x, g = x.detach().numpy(), g.contiguous().numpy()
            y = raw_ops.MaxPool(input=x, **SIZES)
            return torch.from_numpy(raw_ops.MaxPoolGrad(orig_input=x, orig_output=y, grad=g, **SIZES))

    def run(_: int) -> Any:
        x = torch.arange(2 * 64 * 64 * 16, dtype=torch.float32).reshape(2, 64, 64, 16).requires_grad_()
        (Pooled.apply(x) * 2).sum().backward()
        return x.grad

    want = torch.zeros(2, 64, 64, 16)
    want[:, 1::2, 1::2] = 2
    with ThreadPoolExecutor(4) as pool:
        assert all(torch.equal(got, want) for got in pool.map(run, range(12)))


SIZES: dict[str, Any] = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}


def test_inside_the_threads_of_jax():
    jax = pytest.importorskip("jax")
    shape = jax.ShapeDtypeStruct((2, 32, 32, 16), np.float32)

    @jax.jit
    def pooled(x: Any) -> Any:
        return jax.pure_callback(lambda v: raw_ops.MaxPool(input=np.asarray(v), **SIZES), shape, x) + 1

    x = np.arange(2 * 64 * 64 * 16, dtype=np.float32).reshape(2, 64, 64, 16)
    # One after the other: JAX itself waits forever where more callbacks run at once than it has threads.
    assert all((np.asarray(pooled(x)) == x[:, 1::2, 1::2] + 1).all() for _ in range(6))


def test_calls_that_are_new_may_come_from_all_threads_at_once(monkeypatch):
    """Make the caches too small for these calls, so that all threads change them all the time."""
    monkeypatch.setattr(raw_ops, "_CACHE_SIZE", 4)
    monkeypatch.setattr(plan_cache, "SHORT", 16)
    monkeypatch.setattr(plan_cache, "STORE", 256)

    def run(seed: int) -> list[int]:
        wrong = []
        for n in np.random.default_rng(seed).integers(1, 60, 400):
            x = np.arange(2 * n, dtype=np.float32).reshape(1, 1, -1, 1)
            y = raw_ops.MaxPool(input=x, ksize=[1, 1, 2, 1], strides=[1, 1, 2, 1], padding="VALID")
            z = poolgrad.avg_pool(x, (2,), axes=(2,))
            if (y != x[:, :, 1::2]).any() or (z != y - 0.5).any():
                wrong.append(int(n))
        return wrong

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(run, range(8))) == [[]] * 8


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python was built with its lock")
def test_without_the_lock_of_python_it_stays_away():
    assert not sys._is_gil_enabled()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(jobs.wrong_ops, range(8))) == [[]] * 8
