"""Settings have bounds, from code or from the environment: threads, and memory that is kept."""

import numpy as np
import pytest
from support import python

import poolgrad
from poolgrad.config import set_kept_memory


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
