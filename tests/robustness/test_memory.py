"""Out of memory is MemoryError: nothing is lost, and the next call works."""

import gc
import shutil
import subprocess

import numpy as np
import pytest
from support import ROOT, python, rss

from poolgrad import raw_ops

pytestmark = pytest.mark.clock

HERE = ROOT / "tests" / "robustness"
COMPILER = shutil.which("g++") or shutil.which("clang++")


@pytest.mark.skipif(COMPILER is None, reason="builds a shim for malloc with a C++ compiler")
def test_every_request_for_memory_of_the_core_may_fail(tmp_path):
    shim = str(tmp_path / "scarce.so")
    subprocess.run([str(COMPILER), "-O1", "-shared", "-fPIC", "-o", shim, str(HERE / "scarce.cpp"), "-ldl"], check=True)
    done = python(str(HERE / "scarcity.py"), LD_PRELOAD=shim, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    *wrong, failed = done.stdout.splitlines()
    assert wrong == []
    assert int(failed) > 300


LIMITED = """
import resource, sys, numpy as np, poolgrad
import jobs
from poolgrad import raw_ops
made = jobs.jobs()
poolgrad.set_num_threads(int(sys.argv[1]))
x = np.zeros((8, 256, 256, 16), np.float32)
sizes = {"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "padding": "SAME"}
outcomes = {"fine": 0, "MemoryError": 0}
def used():
    return int(open("/proc/self/statm").read().split()[0]) * 4096
for mib in (0, 1, 2, 4, 8, 16, 33, 64, 200):
    resource.setrlimit(resource.RLIMIT_AS, (used() + mib * 2**20, -1))
    for job in [*made, None]:
        try:
            if job is None:
                raw_ops.MaxPool(input=x, **sizes)
            elif not jobs.right(job):
                print("wrong bits", mib, job[0])
            outcomes["fine"] += 1
        except MemoryError:
            outcomes["MemoryError"] += 1
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    for job in made:
        if not jobs.right(job):
            print("wrong after", mib, job[0])
print(*outcomes.values())
"""


@pytest.mark.parametrize("threads", ["1", "2", "64"])
def test_with_little_address_space_a_call_works_or_raises_memory_error(threads):
    """Also where no thread can be made: then fewer do the work."""
    done = python("-c", LIMITED, threads, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    *wrong, last = done.stdout.splitlines()
    assert wrong == []
    fine, refused = map(int, last.split())
    assert refused > 0
    assert fine > 100


MANY = """
import resource, numpy as np
from poolgrad import _core
axis = (2, np.array([0]), np.array([2]), None)
made, ends = [None] * 2**16, 0
i = 0
while i < len(made):
    used = int(open("/proc/self/statm").read().split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**18, -1))  # less than a table of so many would need
    try:
        for i in range(i, len(made)):
            made[i] = _core.Plan((2,), (1,), 1, 1, [axis])
        i += 1
    except MemoryError:
        ends += 1
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
print(ends > 10)
"""


def test_plans_are_made_until_there_is_no_memory_for_another():
    done = python("-c", MANY)
    assert done.stdout == "True\n", done.stderr


KEPT = """
import resource, numpy as np, poolgrad
from poolgrad import raw_ops
x = np.zeros((16, 512, 512, 8), np.float32)
sizes = {"ksize": [1, 2, 2, 1], "padding": "SAME"}
poolgrad.set_kept_memory(512)
raw_ops.MaxPool(input=x, strides=[1, 1, 1, 1], **sizes)  # 128 MiB, kept
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + 2**23, -1))
print(raw_ops.MaxPool(input=x, strides=[1, 1, 2, 1], **sizes).nbytes)  # another size
"""


def test_kept_memory_is_given_up_before_a_call_fails():
    done = python("-c", KEPT, POOLGRAD_NUM_THREADS="1")
    assert done.stdout == f"{2**26}\n", done.stderr


def test_no_more_than_1024_blocks_are_kept_however_small():
    done = python(
        "-c",
        """
import numpy as np, poolgrad
from poolgrad import _core
poolgrad.set_kept_memory(2**15)
mapped = lambda: int(open("/proc/self/statm").read().split()[0]) * 4096
like, before = np.zeros(1, np.uint8), mapped()
held = [_core.empty((2**21,), like) for _ in range(1100)]
del held
print(round((mapped() - before) / 2**21))
""",
    )
    assert 1000 <= int(done.stdout) <= 1030, done.stderr


def test_refusals_and_results_leave_nothing_behind():
    x = np.zeros((1, 64, 64, 8), np.float32)
    sizes = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1]}

    def round_of_calls() -> None:
        for _ in range(500):
            raw_ops.MaxPool(input=x, padding="VALID", **sizes)
            with pytest.raises(ValueError, match="padding"):
                raw_ops.MaxPool(input=x, padding="valid", **sizes)
            with pytest.raises(ValueError, match="argmax"):
                raw_ops.MaxPoolGradWithArgmax(
                    input=x, grad=x[:, ::2, ::2], argmax=np.full((1, 32, 32, 8), -1), padding="VALID", **sizes
                )

    def held() -> int:
        round_of_calls()
        gc.collect()  # without Python's lock, the objects in an error's traceback wait for this
        return rss()

    before = held()
    assert held() - before < 2**20


SOAK = str(ROOT / "tools" / "soak.py")


@pytest.mark.parametrize(("leak", "verdict"), [("0", "PASS"), ("32000000", "FAIL")])
def test_a_soak_of_some_seconds_passes_unless_memory_is_lost(leak, verdict):
    # 8 % here: in six seconds not all threads have come to need their own working memory, a MiB or more each.
    done = python(SOAK, "--minutes", "0.1", "--flat", "0.08", "--leak", leak, timeout=120)
    assert done.stdout.splitlines()[-1].startswith(f"soak: {verdict}: 0 wrong"), done.stdout + done.stderr
    assert done.returncode == (verdict == "FAIL")
