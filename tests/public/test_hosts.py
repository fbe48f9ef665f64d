"""Limits that others set on threads: OpenMP's variable, the control group, threadpoolctl, torch, TensorFlow, XLA."""

import importlib.util
import os

import numpy as np
import pytest
from support import python

import poolgrad
from poolgrad.config import default_threads

# Count the threads of the process after a call that is worth all of them.
COUNT = """
import os, sys
import numpy as np
import poolgrad as pg
x = np.ones((64, 256, 256), np.float32)
def workers(run=lambda: pg.max_pool(x, 3, 1, axes=(1, 2))):
    before = len(os.listdir("/proc/self/task"))
    for _ in range(3):
        run()
    return len(os.listdir("/proc/self/task")) - before
"""


@pytest.fixture(autouse=True)
def no_limit_from_outside(monkeypatch):
    """Remove the limit that other tests of this process may have left in the environment, such as those with a cluster."""
    for name in [name for name in os.environ if name.endswith("_NUM_THREADS")]:
        monkeypatch.delenv(name)


def needs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(importlib.util.find_spec(name) is None, reason=f"{name} is not installed")


@pytest.mark.parametrize(
    ("text", "threads"), [("3", 3), ("2,4", 2), (" 1 ", 1), ("99", 8), ("0", 8), ("-1", 8), ("many", 8), ("", 8)]
)
def test_openmp_s_variable_is_the_default(text, threads, tmp_path):
    assert default_threads(8, {"OMP_NUM_THREADS": text}, tmp_path) == threads


@pytest.mark.parametrize(
    ("files", "threads"),
    [
        ({"cpu.max": "250000 100000\n"}, 3),
        ({"cpu.max": "10000 100000\n"}, 1),
        ({"cpu.max": "max 100000\n"}, 8),
        ({"cpu.max": "nonsense"}, 8),
        ({"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8),
        ({}, 8),
    ],
)
def test_the_quota_of_the_control_group_is_the_default(files, threads, tmp_path):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert default_threads(8, {}, tmp_path) == threads


@pytest.mark.parametrize(
    ("words", "threads"),
    [
        ({"OMP_NUM_THREADS": "1"}, "1"),
        ({"OMP_NUM_THREADS": "1", "POOLGRAD_NUM_THREADS": "3"}, "3"),
        ({"POOLGRAD_NUM_THREADS": "", "OMP_NUM_THREADS": "1"}, "1"),
    ],
)
def test_poolgrad_s_own_variable_comes_first(words, threads):
    code = "import poolgrad as pg\nprint(pg.get_num_threads())"
    assert python("-c", code, **words).stdout.strip() == threads


def test_the_affinity_of_the_process_is_the_default():
    code = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nimport poolgrad as pg; print(pg.get_num_threads())"
    assert python("-c", code).stdout == "1\n"


@needs("threadpoolctl")
@pytest.mark.parametrize("first", ["threadpoolctl", "poolgrad"])
def test_threadpoolctl_sees_and_limits_the_threads(first):
    second = {"threadpoolctl": "poolgrad", "poolgrad": "threadpoolctl"}[first]
    code = f"""
import sys
import {first}
assert "{second}" not in sys.modules
import {second}
import poolgrad, threadpoolctl
before = poolgrad.get_num_threads()
own = [i for i in threadpoolctl.threadpool_info() if i["user_api"] == "poolgrad"]
assert [(i["num_threads"], i["version"]) for i in own] == [(before, poolgrad.__version__)], own
with threadpoolctl.threadpool_limits(1):
    assert poolgrad.get_num_threads() == 1
with threadpoolctl.threadpool_limits(1, user_api="blas"):
    assert poolgrad.get_num_threads() == before
assert poolgrad.get_num_threads() == before
with threadpoolctl.threadpool_limits({{"poolgrad": 1}}):
    assert poolgrad.get_num_threads() == 1
assert threadpoolctl.__spec__.loader is threadpoolctl.__loader__
assert not any("poolgrad" in type(f).__module__ and f.name == "threadpoolctl" for f in sys.meta_path)
"""
    done = python("-W", "error", "-c", code)
    assert done.returncode == 0, done.stderr


def test_other_packages_are_not_imported():
    code = (
        "import sys, poolgrad as pg\nprint(sorted({'torch', 'threadpoolctl', 'jax', 'tensorflow'} & set(sys.modules)))"
    )
    assert python("-c", code).stdout == "[]\n"


@needs("torch")
@pytest.mark.parametrize("first", ["torch", "poolgrad as pg"])
def test_torch_s_number_is_a_limit_in_each_thread(first):
    code = (
        f"import {first}\n"
        + COUNT
        + """
import torch, threading
most = pg.get_num_threads()
assert most == 3 or most == pg._core.available_threads()
torch.set_num_threads(1)
assert pg.get_num_threads() == 1
print(workers())
with pg.threads(3):
    assert pg.get_num_threads() == 3  # the program's own number comes first
    print(workers())
assert pg.get_num_threads() == 1
"""
    )
    done = python("-c", code)
    assert done.stdout.split() == ["0", "2"], done.stderr


WORKER = (
    COUNT
    + """
import torch
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __len__(self): return 2
    def __getitem__(self, i):
        return workers(), pg.get_num_threads()

if __name__ == "__main__":
    torch.set_num_threads(max(torch.get_num_threads(), 2))
    pg.max_pool(x, 3, 1, axes=(1, 2))
    for batch in DataLoader(Images(), num_workers=2, multiprocessing_context=sys.argv[1]):
        print([int(n) for n in batch])
"""
)


@needs("torch")
@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_a_worker_of_a_dataloader_uses_one_thread(how, tmp_path):
    path = tmp_path / "loader.py"
    path.write_text(WORKER)
    done = python(str(path), how)
    assert done.stdout.splitlines() == ["[0, 1]", "[0, 1]"], done.stderr


@needs("jax")
def test_a_program_of_xla_uses_at_most_xla_s_threads():
    code = (
        COUNT
        + """
import jax, jax.numpy as jnp
import poolgrad.jax as pool
a = jnp.asarray(x)
f = jax.jit(lambda a: pool.max_pool(a, 3, 1, axes=(1, 2)))
jax.block_until_ready(jax.jit(lambda a: a + 1)(a))
f.lower(a).compile()
pg.set_num_threads(6)
print(workers(lambda: f(a).block_until_ready()))
"""
    )
    few = python("-c", code, NPROC="1")
    assert few.stdout == "0\n", few.stderr


@needs("tensorflow")
def test_tensorflow_s_number_is_a_limit_of_its_pools():
    code = (
        COUNT
        + """
import tensorflow as tf
import poolgrad.tensorflow as pool
tf.config.threading.set_intra_op_parallelism_threads(1)
a = tf.constant(x)
print(workers(lambda: pool.max_pool(a, 3, 1, axes=(1, 2))))
print(workers())
"""
    )
    done = python("-c", code, POOLGRAD_NUM_THREADS="3", TF_CPP_MIN_LOG_LEVEL="3")
    assert done.stdout.split() == ["0", "2"], done.stderr[-2000:]


def test_limits_of_a_thread_nest_and_end():
    from poolgrad.config import limit_here

    with poolgrad.threads(4):
        with limit_here(2):
            assert poolgrad.get_num_threads() == 2
            with limit_here(1):
                assert poolgrad.get_num_threads() == 1
            assert poolgrad.get_num_threads() == 2
        assert poolgrad.get_num_threads() == 4
        with limit_here(0):
            assert poolgrad.get_num_threads() == 4
    assert np.array_equal(poolgrad.max_pool(np.arange(4.0), 2), [1, 3])
