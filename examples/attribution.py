"""Attribution by unpooling: what torch's max_unpool loses where windows overlap, and what adding up conserves.

    python examples/attribution.py                        # a second

Attribution methods of the DeepLIFT kind send the relevance of a pool's outputs back to the cells that the windows chose. Where
windows overlap, one cell may be chosen by several of them. torch's max_unpool then keeps what came last and drops the rest; ours
adds up, as the transpose of pooling does, so the total is conserved.
"""

from __future__ import annotations

import argparse

import torch

import poolgrad.torch as pgt


def route(kernel: int, stride: int, size: int) -> tuple[float, float, float, float]:
    """Return total relevance: a pool's outputs, then after torch's unpooling, ours, and ours with reduce="assign"."""
    torch.manual_seed(0)
    x = torch.randn(4, 8, size, size, dtype=torch.float64)
    y, where = pgt.max_pool2d(x, kernel, stride, return_indices=True)
    relevance = y.abs()
    words = {"kernel_size": kernel, "stride": stride, "output_size": x.shape}
    theirs = torch.nn.functional.max_unpool2d(relevance, where, **words)
    added = pgt.max_unpool2d(relevance, where, **words)
    assigned = pgt.max_unpool2d(relevance, where, reduce="assign", **words)
    return relevance.sum().item(), theirs.sum().item(), added.sum().item(), assigned.sum().item()


def main() -> None:
    """Print how much of the relevance arrives."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=24, help="height and width of the images (default 24)")
    args = parser.parse_args()
    print("windows                 torch's max_unpool   ours (sum)   ours (assign)     of the relevance that was sent")
    for kernel, stride in ((2, 2), (3, 2), (3, 1), (5, 1)):
        total, theirs, added, assigned = route(kernel, stride, args.size)
        shares = f"{100 * theirs / total:12.1f} %{100 * added / total:16.1f} %{100 * assigned / total:13.1f} %"
        print(f"{kernel}x{kernel}, stride {stride}      {shares}")
        if abs(added / total - 1) > 1e-12:
            raise SystemExit("relevance was lost")


if __name__ == "__main__":
    main()
