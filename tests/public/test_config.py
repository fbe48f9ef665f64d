"""Settings have bounds, from code or from the environment: threads, and memory that is kept."""

import numpy as np
import pytest
from support import python

import poolgrad
from poolgrad import _core
from poolgrad.config import schedule_reason, set_kept_memory


def test_the_number_is_restored_after_the_block_even_after_an_error():
    before = poolgrad.get_num_threads()

    def fail_inside() -> None:
        with poolgrad.threads(before + 1):
            assert poolgrad.get_num_threads() == before + 1
            raise KeyError

    with pytest.raises(KeyError):
        fail_inside()
    assert poolgrad.get_num_threads() == before


@pytest.mark.parametrize(
    ("n", "error"),
    [(0, ValueError), (1025, ValueError), (-1, ValueError), (True, TypeError), (1.5, TypeError), ("2", TypeError)],
)
def test_a_number_of_threads_without_meaning_is_refused(n, error):
    with pytest.raises(error, match=r"^set_num_threads: n: got"):
        poolgrad.set_num_threads(n)


def test_the_environment_sets_the_number():
    assert python("-c", "import poolgrad; print(poolgrad.get_num_threads())", POOLGRAD_NUM_THREADS="3").stdout == "3\n"


@pytest.mark.parametrize("text", ["0", "-1", "many", "1e3", "99999"])
def test_a_senseless_environment_is_an_error_at_import(text):
    done = python("-c", "import poolgrad", POOLGRAD_NUM_THREADS=text)
    assert f"POOLGRAD_NUM_THREADS: got '{text}'" in done.stderr


def test_numpy_integers_count_as_numbers():
    with poolgrad.threads(np.int64(1)):
        assert poolgrad.get_num_threads() == 1


def test_show_config_prints_what_config_holds(capsys):
    poolgrad.show_config()
    text = capsys.readouterr().out
    assert all(str(value) in text for value in poolgrad.config().values())


@pytest.mark.parametrize("megabytes", [-1, float("nan"), 2**21])
def test_kept_memory_has_limits(megabytes):
    with pytest.raises(ValueError, match="megabytes"):
        set_kept_memory(megabytes)


KEPT = """
import numpy as np, poolgrad
from support import rss
from poolgrad import raw_ops
poolgrad.set_kept_memory(8)
x = np.ones((1, 1024, 1024, 1), np.float32)
call = lambda: raw_ops.MaxPool(input=x, ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="SAME")
before = [call()] and rss()
many = [call() for _ in range(32)]
del many
print((rss() - before) >> 20)
"""


@pytest.mark.clock
def test_no_more_memory_is_kept_than_was_allowed():
    done = python("-c", KEPT)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 16


# ---- schedules


def test_a_call_tells_the_schedules_that_run_it():
    ask = poolgrad.config.schedule
    assert ask("max f32 x=2x20x20x64 k=3x3 s=2x2") == {"select": "direct"}
    assert ask("avg f32 x=1x80x80x8 k=31x31 s=1x1 grad") == {"spread": "sliding"}
    assert ask("MaxPool", (1, 8, 8, 64), [1, 2, 2, 1], [1, 2, 2, 1], "VALID") == {"select": "direct"}
    strides = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    asked = ask("MaxPoolGrad", orig_input=(1, 8, 8, 64), orig_output=(1, 4, 4, 64), grad=(1, 4, 4, 64), **strides)
    assert asked == {"route": "direct"}
    assert ask("avg_pool", (8, 80, 80), 31, stride=1, axes=(1, 2)) == {"fold": "sliding"}
    assert ask("avg_pool", x=np.zeros((80, 80), np.float16), window=31, stride=1) == {"fold": "sliding"}
    assert ask(lambda: None) == {}


def test_a_function_tells_the_schedules_of_all_its_calls_and_of_no_other():
    x = np.zeros((1, 80, 80, 64), np.float32)

    def inner() -> None:
        assert ask(lambda: poolgrad.avg_pool(x, 2, axes=(1, 2))) == {"fold": "direct"}

    def outer() -> None:
        poolgrad.avg_pool(x, 31, stride=1, axes=(1, 2))
        inner()

    ask = poolgrad.config.schedule
    assert ask(outer) == {"fold": "sliding"}
    poolgrad.avg_pool(x, 2, axes=(1, 2))
    assert ask(lambda: [poolgrad.avg_pool(x, k, stride=1, axes=(1, 2)) for k in (31, 2, 31)]) == {
        "fold": "sliding+direct"
    }


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        ("max x=1x4x4x1 k=2y2", ValueError, "column 15"),
        ("MaxPol", ValueError, "did you mean 'MaxPool'"),
        ("no_pool", ValueError, "there is no op"),
        (3, TypeError, "schedule: call: got int"),
    ],
)
def test_a_schedule_of_nothing_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        poolgrad.config.schedule(call)


def test_an_error_of_the_call_ends_the_record():
    with pytest.raises(ZeroDivisionError):
        poolgrad.config.schedule(lambda: 1 // 0)
    assert _core.watch(None) is None


def test_every_schedule_has_a_reason():
    assert all(schedule_reason(name) == reason != "" for name, reason in _core.schedules().items())
    with pytest.raises(ValueError, match=r"^schedule_reason: name: got 'none', wanted one of sliding, "):
        schedule_reason("none")
