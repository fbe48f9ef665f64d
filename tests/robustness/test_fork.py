"""Children work, however they were made and whatever the parent's threads were doing."""

import multiprocessing
import os
import threading
import time
import warnings

import jobs
import numpy as np
import pytest
from support import python

import poolgrad

pytestmark = [
    pytest.mark.clock,  # alone, because threads that frameworks have started do not survive a fork
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here"),
]


def count_wrong(seed: int) -> int:
    poolgrad.set_num_threads(2)
    return len(jobs.wrong_ops(seed))


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_a_pool_of_processes_gets_the_right_bits(method):
    assert count_wrong(0) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking while there are threads
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map_async(count_wrong, range(4)).get(120) == [0] * 4


def forked(work: int) -> int:
    """Return the exit code of a child that repeats some jobs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            os._exit(sum(not jobs.right(job) for job in jobs.jobs()[work::11]))
        finally:
            os._exit(99)
    return child


def ended(child: int, seconds: float = 60) -> int:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, 9)
    os.waitpid(child, 0)
    raise AssertionError("the child hangs")


def test_children_made_while_other_threads_are_inside_calls_work():
    jobs.jobs()
    stop = threading.Event()
    found: list[str] = []

    def work(seed: int) -> None:
        while not stop.is_set():
            found.extend(jobs.wrong_ops(seed))

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    with poolgrad.threads(2):
        for worker in workers:
            worker.start()
        try:
            codes = [ended(forked(i % 11)) for i in range(60)]
        finally:
            stop.set()
            for worker in workers:
                worker.join()
    assert codes == [0] * 60
    assert found == []


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="the system does not list a process's threads")
def test_a_child_has_helpers_of_its_own():
    x = np.arange(2**20, dtype=np.float32).reshape(1024, 1024)  # 4 MB: worth waking a thread

    def pool() -> bool:
        return bool((poolgrad.max_pool(x, 2) == x[1::2, 1::2]).all())

    with poolgrad.threads(2):
        assert pool()
        child = os.fork()
        if child == 0:
            os._exit(len(os.listdir("/proc/self/task")) if pool() else 99)
        assert ended(child) == 2, "the child and one helper"


def test_a_child_of_a_child_works():
    with poolgrad.threads(2):
        first = os.fork()
        if first == 0:
            second = forked(0)
            os._exit(ended(second))
        assert ended(first) == 0


def test_a_hundred_forks_between_calls():
    with poolgrad.threads(2):
        job = max(jobs.jobs(), key=lambda j: sum(a.nbytes for a in j[2]))
        for i in range(100):
            child = forked(3) if i % 10 == 0 else os.fork()
            if child == 0:
                os._exit(0)
            assert jobs.right(job)
            assert ended(child) == 0


LOADER = """
import numpy as np, torch, poolgrad
from poolgrad import raw_ops
class Data(torch.utils.data.Dataset):
    def __len__(self): return 24
    def __getitem__(self, i):
        x = np.full((1, 64, 64, 32), i, np.float32)
        return torch.from_numpy(raw_ops.AvgPool(value=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")[0])
if __name__ == "__main__":
    poolgrad.set_num_threads(2)
    Data()[0]
    for method in ("fork", "forkserver", "spawn"):
        loader = torch.utils.data.DataLoader(Data(), batch_size=4, num_workers=2, multiprocessing_context=method)
        got = torch.cat(list(loader))[:, 0, 0, 0].tolist()
        assert got == list(range(24)), (method, got)
    print("fine")
"""


def test_workers_of_a_torch_data_loader_work(tmp_path):
    pytest.importorskip("torch")
    script = tmp_path / "loader.py"
    script.write_text(LOADER)
    done = python(str(script), timeout=200)
    assert done.stdout == "fine\n", done.stderr
