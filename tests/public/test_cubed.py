"""Jobs on Cubed have the bits of the whole array. Run fuzz/jobs.py for more."""

import numpy as np
import pytest
from job_cases import difference, random_case

import poolgrad as pg

cubed = pytest.importorskip("cubed", reason="cubed is not installed")
pgc = pytest.importorskip("poolgrad.cubed")

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("seed", [4, 8, 9, 12, 22, 23])
def test_random_jobs_have_the_bits_of_the_whole_array(seed, tmp_path):
    case, spec = random_case(seed), cubed.Spec(work_dir=str(tmp_path), allowed_mem="2GB")
    if any(a.dtype.kind not in "biuf" for a in (*case.arrays, *case.want)):
        pytest.skip("Zarr has no bfloat16")
    arrays = [cubed.from_array(a, chunks=tuple(-(-n // 2) for n in a.shape), spec=spec) for a in case.arrays]
    y = pgc.run(case.job, *arrays)
    outs = y if isinstance(y, tuple) else (y,)
    assert not difference(tuple(np.asarray(v.compute()) for v in outs), case.want), case.name


def test_wrong_arrays_are_refused(tmp_path):
    spec = cubed.Spec(work_dir=str(tmp_path), allowed_mem="2GB")
    x = cubed.from_array(np.ones((4, 4)), chunks=(2, 2), spec=spec)
    with pytest.raises(ValueError, match=r"max_pool: x: got shape \[4, 4\], wanted \[8, 8\]"):
        pgc.run(pg.Job("max_pool", (8, 8), "f8", 2), x)
    with pytest.raises(TypeError, match="max_pool: x: got dtype float64, wanted float32"):
        pgc.run(pg.Job("max_pool", (4, 4), "f4", 2), x)
    with pytest.raises(TypeError, match=r"max_pool: x: got .* wanted a Cubed array"):
        pgc.run(pg.Job("max_pool", (4, 4), "f8", 2), np.ones((4, 4)))
