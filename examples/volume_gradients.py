"""Take a 3-D volume larger than memory through a max-pooling layer and back: the gradient of the layer, region by region.

    python examples/volume_gradients.py --side 256 --memory 40MB
    python examples/volume_gradients.py --side 1024 --memory 500MB                    # 4.3 GB
    python examples/volume_gradients.py --side 1024 --memory 2GB --engine dask        # on a cluster of two workers

The loop stores maxima and taps, one byte per window. Backward it reads the taps and the gradient from above, not the volume.
On Dask, `vjp` gives the lazy gradient, whose tasks read the volume again. Cut-outs in a corner and in the middle are compared with the
layer in memory, bit by bit. Needs zarr, and distributed for --engine dask.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import zarr

import poolgrad as pg

WINDOW, STRIDE, LAYER = 3, 2, {"padding": "same"}
CHUNK = 64


def by_loop(volume: Any, folder: Path, memory: str) -> Any:
    """Run the layer and its gradient by the loop on this machine."""
    forward = pg.Job("max_pool", volume.shape, volume.dtype, WINDOW, STRIDE, returns=("values", "taps"), **LAYER)
    start = time.perf_counter()
    y, taps = pg.pool(volume, (folder / "y", folder / "taps"), forward, memory=memory, overwrite=True)
    print(f"forward: {forward!r}, {time.perf_counter() - start:.1f} s, taps {taps.dtype}")

    # The loss is the sum of y**2 / 2, so the gradient from above is y itself.
    backward = pg.Job("max_pool", volume.shape, volume.dtype, WINDOW, STRIDE, **LAYER).vjp(from_taps=True)
    start = time.perf_counter()
    dx = pg.pool((taps, y), folder / "dx", backward, memory=memory, chunks=(CHUNK,) * 3, overwrite=True)
    print(f"backward: {backward!r}, {time.perf_counter() - start:.1f} s")
    return dx


def by_dask(volume: Any, folder: Path, memory: str) -> Any:
    """Run the layer and its gradient on a cluster whose workers have half of the memory each."""
    from distributed import Client, LocalCluster

    import poolgrad.dask as pgd
    from poolgrad._common.errors import ArgumentErrors
    from poolgrad.jobs.regions import as_bytes

    limit = as_bytes(ArgumentErrors("volume_gradients"), "memory", memory) // 2
    dx = zarr.create_array(
        str(folder / "dx"), shape=volume.shape, chunks=(CHUNK,) * 3, dtype=volume.dtype, overwrite=True
    )
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=limit, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        start = time.perf_counter()
        y, back = pgd.vjp(lambda x: pgd.max_pool(x, WINDOW, STRIDE, memory=limit // 8, **LAYER), volume)
        gradient = back(y)  # the loss is the sum of y**2 / 2; its blocks are whole chunks
        gradient.store(dx, lock=False)
        most = max(client.run(_held).values())
        print(f"forward and backward on Dask: {gradient.npartitions} blocks, {time.perf_counter() - start:.1f} s")
        print(f"a worker held {most:.0f} MB at most, of {limit / 1e6:.0f}; the volume has {volume.nbytes / 1e6:.0f}")
    return dx


def _held() -> float:
    """Return the most megabytes that a worker has held."""
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1e3


def same_as_in_memory(volume: Any, dx: Any, at: int, side: int) -> bool:
    """Compare a cut-out with the layer in memory, where the windows of all its cells lie inside of it.

    The cut begins at a multiple of the stride, so its windows are those of the volume; at a border that is not the volume's, some lack.
    """
    n = volume.shape[0]
    here = slice(at, min(at + side, n))
    x = volume[here, here, here]
    low = 0 if at == 0 else 2 * WINDOW
    high = len(range(*here.indices(n))) - (0 if here.stop == n else 2 * WINDOW)
    even = n % STRIDE == 0 and (here.stop == n or (here.stop - at) % STRIDE == 0)
    assert even, "the padding of the cut must be that of the volume"
    want = pg.grad(lambda x: (pg.max_pool(x, WINDOW, STRIDE, **LAYER) ** 2).sum() * 0.5, x)
    inner = slice(low, high)
    found = dx[slice(at + low, at + high), slice(at + low, at + high), slice(at + low, at + high)]
    same = found.tobytes() == np.ascontiguousarray(want[inner, inner, inner]).tobytes()
    size = high - low
    print(
        f"{size}x{size}x{size} cells of the gradient from {at + low} on: {'the same bits as in memory' if same else 'DIFFERENT'}"
    )
    return same


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=256)
    parser.add_argument("--memory", default="40MB")
    parser.add_argument("--engine", choices=("loop", "dask"), default="loop")
    parser.add_argument("--folder", default="volume-gradients")
    given = parser.parse_args()
    folder, n = Path(given.folder), given.side
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    volume = zarr.create_array(str(folder / "x"), shape=(n,) * 3, chunks=(CHUNK,) * 3, dtype="float32", overwrite=True)
    for z in range(0, n, CHUNK):
        volume[z : z + CHUNK] = rng.standard_normal((min(CHUNK, n - z), n, n), dtype=np.float32)
    dx = (by_loop if given.engine == "loop" else by_dask)(volume, folder, given.memory)
    middle = n // 2 // STRIDE * STRIDE
    if not all(same_as_in_memory(volume, dx, at, 96) for at in (0, middle)):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
