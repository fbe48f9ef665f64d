"""Pool three arrays larger than the memory that is given: a microscopy pyramid, a climate raster with gaps, an audio envelope.

    python examples/large_arrays.py --folder /tmp/large --part 0.05
    python examples/large_arrays.py --folder /tmp/large            # 2.1, 3.4 and 2.0 GB; needs zarr

Each array is made by one process and pooled by another, which prints its time and the most memory that it has held. docs/scale.md shows
the figures.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import poolgrad as pg


def held() -> float:
    """Return the most megabytes that this process has held."""
    text = Path("/proc/self/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0]) / 1e3


def make_cells(folder: Path, part: float) -> None:
    """Make a light-sheet volume."""
    import zarr

    n = max(round(1024 * part ** (1 / 3) / 128), 1) * 128
    source = zarr.create_array(
        str(folder / "cells"), shape=(n, n, n), chunks=(128,) * 3, dtype="uint16", overwrite=True
    )
    rng = np.random.default_rng(0)
    for z in range(0, n, 128):
        source[z : z + 128] = rng.poisson(200, (128, n, n)).astype(np.uint16)


def microscopy(folder: Path) -> str:
    """Make an OME-Zarr pyramid of the volume, by means of 2x2x2."""
    import zarr

    source = zarr.open_array(str(folder / "cells"), mode="r")
    start = time.perf_counter()
    group = pg.pyramid(
        source, folder / "cells.ome.zarr", levels=4, memory="400MB", overwrite=True, scale=(2, 0.65, 0.65)
    )
    levels = ", ".join("x".join(map(str, group[str(k)].shape)) for k in range(4))
    return f"pyramid of {source.nbytes / 1e9:.1f} GB: {levels}: {time.perf_counter() - start:.1f} s"


def make_raster(folder: Path, part: float) -> None:
    """Make a daily raster; cells without a measurement are NaN."""
    import zarr

    days = max(round(360 * part / 30), 1) * 30
    shape = (days, 1080, 2160)
    raster = zarr.create_array(
        str(folder / "raster"), shape=shape, chunks=(30, 270, 540), dtype="float32", overwrite=True
    )
    rng = np.random.default_rng(1)
    for day in range(0, days, 30):
        values = rng.standard_normal((30, *shape[1:]), dtype=np.float32)
        values[rng.random(values.shape, dtype=np.float32) < 0.3] = np.nan
        raster[day : day + 30] = values


def climate(folder: Path) -> str:
    """Take monthly means of the raster, without its NaN."""
    import zarr

    raster = zarr.open_array(str(folder / "raster"), mode="r")
    start = time.perf_counter()
    means = pg.pool(raster, folder / "monthly", "avg", (30, 2, 2), nan="ignore", memory="300MB", overwrite=True)
    took = time.perf_counter() - start
    cut = pg.avg_pool(raster[:30, :40, :40], (30, 2, 2), nan="ignore")
    assert means[:1, :20, :20].tobytes() == cut.tobytes()
    return f"means of {raster.nbytes / 1e9:.1f} GB with 30 % NaN: {'x'.join(map(str, means.shape))}: {took:.1f} s"


def make_sound(folder: Path, part: float) -> None:
    """Make a recording."""
    samples = round(10**9 * part)
    sound = np.lib.format.open_memmap(folder / "sound.npy", "w+", np.int16, (samples,))
    rng = np.random.default_rng(2)
    for a in range(0, samples, 10**7):
        sound[a : a + 10**7] = rng.integers(-3000, 3000, min(10**7, samples - a), dtype=np.int16)
    sound.flush()


def audio(folder: Path) -> str:
    """Find the envelope of the recording: the largest and the least of every 4,410 samples."""
    samples = len(np.load(folder / "sound.npy", mmap_mode="r"))
    start = time.perf_counter()
    words = {"memory": "100MB", "ceil_mode": True, "overwrite": True}
    high = pg.pool(folder / "sound.npy", folder / "high.npy", "max", 4410, **words)
    low = pg.pool(folder / "sound.npy", folder / "low.npy", "min", 4410, **words)
    assert (high[:] >= low[:]).all()
    return f"envelope of {samples:,} samples: {len(high):,} pairs: {time.perf_counter() - start:.1f} s"


PARTS = {"microscopy": (make_cells, microscopy), "climate": (make_raster, climate), "audio": (make_sound, audio)}


def main() -> None:
    """Make and pool each array in processes of their own, so that the memory of each is its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", default="large-arrays")
    parser.add_argument("--part", type=float, default=1.0, help="the part of the full size")
    parser.add_argument("--only", choices=PARTS, help="pool this array alone; it must have been made")
    given = parser.parse_args()
    folder = Path(given.folder)
    folder.mkdir(parents=True, exist_ok=True)
    if given.only:
        print(f"{PARTS[given.only][1](folder)}, at most {held():.0f} MB")
        return
    for name, (make, _) in PARTS.items():
        maker = get_context("spawn").Process(target=make, args=(folder, given.part))
        maker.start()
        maker.join()
        if maker.exitcode:
            sys.exit(f"large_arrays: the {name} array was not made")
        subprocess.run([sys.executable, __file__, "--folder", str(folder), "--only", name], check=True)


if __name__ == "__main__":
    main()
