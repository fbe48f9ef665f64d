"""Take a 3-D volume larger than memory through a max-pooling layer and back: the gradient of the layer, region by region.

    python examples/volume_gradients.py --side 256 --memory 40MB
    python examples/volume_gradients.py --side 1024 --memory 500MB      # 4.3 GB

Forward stores maxima and taps, one byte per window. Backward reads the taps and the gradient from above, not the volume. A cut-out is
compared with the layer in memory, bit by bit. Needs zarr.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import zarr

import poolgrad as pg

WINDOW, STRIDE = 3, 2


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=256)
    parser.add_argument("--memory", default="40MB")
    parser.add_argument("--folder", default="volume-gradients")
    given = parser.parse_args()
    folder, n = Path(given.folder), given.side
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    volume = zarr.create_array(str(folder / "x"), shape=(n, n, n), chunks=(64,) * 3, dtype="float32", overwrite=True)
    for z in range(0, n, 64):
        volume[z : z + 64] = rng.standard_normal((min(64, n - z), n, n), dtype=np.float32)

    layer = {"padding": "same"}
    forward = pg.Job("max_pool", volume.shape, volume.dtype, WINDOW, STRIDE, returns=("values", "taps"), **layer)
    start = time.perf_counter()
    y, taps = pg.pool(volume, (folder / "y", folder / "taps"), forward, memory=given.memory, overwrite=True)
    print(f"forward: {forward!r}, {time.perf_counter() - start:.1f} s, taps {taps.dtype}")

    # The loss is the sum of y**2 / 2, so the gradient from above is y itself.
    backward = pg.Job("max_pool", volume.shape, volume.dtype, WINDOW, STRIDE, **layer).vjp(from_taps=True)
    start = time.perf_counter()
    dx = pg.pool((taps, y), folder / "dx", backward, memory=given.memory, chunks=(64,) * 3, overwrite=True)
    print(f"backward: {backward!r}, {time.perf_counter() - start:.1f} s")

    # In memory: a cut-out whose windows are those of the whole volume, compared where all its windows are inside.
    side = min(n, 96)
    cut = volume[:side, :side, :side]
    loss = lambda x: (pg.max_pool(x, WINDOW, STRIDE, **layer) ** 2).sum() * 0.5  # noqa: E731
    want, inner = pg.grad(loss, cut), side if side == n else side - 2 * WINDOW
    same = dx[:inner, :inner, :inner].tobytes() == np.ascontiguousarray(want[:inner, :inner, :inner]).tobytes()
    print(f"{inner}x{inner}x{inner} cells of the gradient: {'the same bits as in memory' if same else 'DIFFERENT'}")
    if not same:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
