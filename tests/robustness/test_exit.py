"""The interpreter may end while a call runs; a second interpreter in the process is refused."""

import sys

import pytest
from support import python

# The object that is slow to delete is in a module of its own: the threads keep the names of this one alive.
RUNNING = """
import os, sys, threading, time, types, numpy as np
from poolgrad import raw_ops
x = np.ones((256, 64, 64, 1), np.float32)
threads = []
class Slow:
    def __del__(self, threads=threads, sleep=time.sleep, write=os.write, exists=os.path.exists):
        sleep(0.2)  # the interpreter is ending, and its lock is free
        write(1, b"held\\n" * sum(exists(f"/proc/self/task/{thread.native_id}") for thread in threads))
sys.modules["slow"] = types.ModuleType("slow")
sys.modules["slow"].slow = Slow()
k = int(sys.argv[1])
def call():
    raw_ops.AvgPool(value=x, ksize=[1, k, k, 1], strides=[1, 1, 1, 1], padding="SAME")
def work():
    while True:
        call()
call()  # once it is checked and planned, nearly all of a call is in the core
for _ in range(3):
    threads.append(threading.Thread(target=work, daemon=True))
    threads[-1].start()
time.sleep(float(sys.argv[2]))
print("end")
"""


@pytest.mark.parametrize("window", ["1", "5", "40"])
@pytest.mark.parametrize("delay", ["0", "0.013", "0.1"])
def test_the_interpreter_ends_cleanly_while_daemon_threads_call(window, delay):
    done = python("-c", RUNNING, window, delay, timeout=60)
    assert (done.returncode, done.stdout.replace("held\n", ""), done.stderr) == (0, "end\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="looks for threads in /proc")
def test_a_thread_whose_call_outlasts_the_interpreter_waits_for_the_end_of_the_process():
    done = python("-c", RUNNING, "40", "0.1", timeout=60)
    assert done.stdout.startswith("end\nheld\n"), done.stdout + done.stderr


SECOND = """
import {module} as interpreters
{before}
for _ in range(5):
    one = interpreters.create({options})
    try:
        {run}(one, '''
try:
    import poolgrad
except ImportError as error:
    print("refused:", error)
''')
    finally:
        interpreters.destroy(one)
import numpy as np, poolgrad
x = np.arange(4.0, dtype=np.float32).reshape(1, 2, 2, 1)
print(poolgrad.raw_ops.MaxPool(input=x, ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="VALID").item())
"""


@pytest.mark.skipif(not (3, 11) <= sys.version_info < (3, 13), reason="uses _xxsubinterpreters of Python 3.11 and 3.12")
@pytest.mark.parametrize("before", ["", "import poolgrad", "import numpy"])
@pytest.mark.parametrize("isolated", [False, True])
def test_a_second_interpreter_is_refused_and_the_first_goes_on(before, isolated):
    words = {
        "module": "_xxsubinterpreters",
        "options": f"isolated={isolated}",
        "run": "interpreters.run_string",
    }
    done = python("-c", SECOND.format(before=before, **words), timeout=60)
    *refusals, last = done.stdout.splitlines() or [""]
    assert last == "3.0", done.stderr
    assert len(refusals) == 5
    assert all(line.startswith("refused:") for line in refusals)
