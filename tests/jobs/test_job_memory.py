"""`Job.peak` says what a run holds, and a run holds the same however large the array is."""

import json
import subprocess
import sys

import numpy as np
import pytest

import poolgrad as pg

pytest.importorskip("zarr", reason="zarr is not installed")

_CHILD = """
import json, sys
from pathlib import Path
import numpy as np, zarr
import poolgrad as pg
from poolgrad._common.errors import ArgumentErrors
from poolgrad.jobs.loop import estimate
from poolgrad.jobs.stores import Wanted, buffer_of_target, open_source

def kb(name):
    return int(Path("/proc/self/status").read_text().split(name + ":")[1].split()[0])

source, out, op, words = sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
args = words.pop("args")
store = open_source(ArgumentErrors("test"), "src", source)
job = pg.Job(op, store.shape, store.dtype, *args, **words)
wanted = Wanted(job.result, job.outputs[0].dtype, store.chunks, None, 3, store.array)
buffers = (store.buffer, buffer_of_target(out, wanted))
found = estimate(job, store.chunks, store.chunks, "24MB", 2, buffers)
pg.pool(np.zeros((4, 4), "u2"), None, "max", 2)  # loads what every pool needs
before = kb("VmRSS")
pg.pool(source, out, op, *args, memory="24MB", workers=2, **words)
print(json.dumps([before, kb("VmHWM"), found.peak // 1024, len(found.regions)]))
"""


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    import zarr

    made = {}
    for kind, planes in (("short", 384), ("long", 896)):
        made[kind] = str(tmp_path_factory.mktemp("arrays") / kind)
        x = zarr.create_array(made[kind], shape=(planes, 256, 256), chunks=(64,) * 3, dtype="uint16", compressors=None)
        x[...] = np.random.default_rng(0).integers(0, 60_000, x.shape, dtype=np.uint16)
    return made


def held(source, out, op, **words):
    line = [sys.executable, "-c", _CHILD, source, str(out), op, json.dumps(words)]
    return json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="the most memory is read from /proc")
@pytest.mark.parametrize(("op", "words"), [("max_pool", {"args": [2]}), ("avg_pool", {"args": [2], "dtype": "uint16"})])
def test_the_peak_is_that_of_the_formula_for_any_length(op, words, arrays, tmp_path):
    peaks = []
    for kind, source in arrays.items():
        before, most, formula, regions = held(source, tmp_path / f"{kind}-{op}", op, **words)
        assert regions >= 6
        assert abs(most - before - formula) < 0.15 * (before + formula), (kind, before, most, formula)
        peaks.append(most)
    assert abs(peaks[1] - peaks[0]) < 0.1 * peaks[0]


def test_the_peak_counts_arrays_buffers_and_the_kernel():
    job = pg.Job("max_pool", (512, 512), "uint16", 2)
    arrays = 64 * 64 * 2 + 32 * 32 * 2
    tables = 112 * (32 + 32)
    assert job.peak((32, 32)) == 2 * arrays + tables  # stores that are not known hold a second copy
    assert job.peak((32, 32), buffers=(100, 10)) == arrays + 110 + tables
    assert job.peak((32, 32), 3, (0, None)) == 3 * (arrays + 32 * 32 * 2 + tables)
    with pytest.raises(ValueError, match="max_pool: buffers: got"):
        job.peak((32, 32), buffers=(1,))
    small = pg.Job("avg_pool", (512, 512), "uint16", 2)
    assert small.peak((32, 32), buffers=(0, 0)) == 64 * 64 * 2 + 32 * 32 * 8 + tables  # integers in one pass
    wide = pg.Job("avg_pool", (512, 512), "int64", 2)
    assert wide.peak((32, 32), buffers=(0, 0)) > 64 * 64 * 8 + 32 * 32 * 8  # exact sums


@pytest.mark.parametrize("overlap", [False, True])
def test_a_gradient_of_overlapping_windows_holds_that_of_whole_windows_too(overlap):
    job = pg.Job("avg_pool", (512,), "float32", 3 if overlap else 2, 2).vjp()
    (need,) = job.needs([slice(64, 128)])
    whole = pg.Job("avg_pool", (512,), "float32", 3 if overlap else 2, 2).needs(need)[0][0]
    cells, windows = whole.stop - whole.start, need[0].stop - need[0].start
    more = cells if overlap else 0
    tables = 112 * windows + 48 * (cells + windows)
    assert job.peak([64], buffers=(0, 0)) == 4 * (windows + 64 + more) + 4 * windows + tables


_LONG = """
import json, sys
from pathlib import Path
import numpy as np
import poolgrad as pg

def mb():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1e3

window, stride, back = map(int, sys.argv[1:])
job = pg.Job("max_pool", (4_000_000,), "float32", window, stride)
job = job.vjp() if back else job
arrays = tuple(np.ones(given.shape, given.dtype) for given in job.inputs)
out = np.ones(job.result, "float32")
pg.pool(np.ones(9000, "float32"), None, "max", window, stride)  # loads what every pool needs
before = mb()
pg.pool(arrays, out, job, memory="30MB", workers=2)
print(json.dumps(mb() - before))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the most memory is read from /proc")
@pytest.mark.parametrize("back", [0, 1])
@pytest.mark.parametrize(("window", "stride"), [(3, 1), (4000, 4000)])
def test_windows_along_one_long_axis_stay_within_memory(window, stride, back):
    line = [sys.executable, "-c", _LONG, str(window), str(stride), str(back)]
    most = json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)
    assert most < 45  # some 80 for the tables of all windows


_WIDE = """
import sys
from pathlib import Path
import numpy as np
import poolgrad as pg

def mb():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1e3

source, out = sys.argv[1:]
pg.pool(source, out, "max", 5, 1, padding="same", memory="8MB", overwrite=True)  # loads what every pool needs
before = mb()
pg.pool(source, out, "avg", 5, 1, padding="same", memory="100MB", workers=1, overwrite=True)
print(mb() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the most memory is read from /proc")
def test_results_of_other_regions_are_not_kept_beyond_memory(tmp_path):
    import zarr

    x = zarr.create_array(str(tmp_path / "x"), shape=(5400, 5400), chunks=(256, 256), dtype="uint8", compressors=None)
    x[...] = np.ones(x.shape, np.uint8)
    line = [sys.executable, "-c", _WIDE, str(tmp_path / "x"), str(tmp_path / "y")]
    most = float(subprocess.run(line, check=True, capture_output=True, text=True).stdout)
    assert most < 100
