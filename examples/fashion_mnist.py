"""Trains a small fractional-max-pooling network on Fashion-MNIST, beside the same network with 2x2 max-pooling.

    python examples/fashion_mnist.py                      # 4 minutes on 2 idle cores; a fifth of the images; the picture beside this file
    python examples/fashion_mnist.py --images 60000       # all of them

The networks have the same six convolutions. In Graham's style (2014) each is followed by a fractional max-pool that shrinks the
image by the square root of 2, its windows disjoint or overlapping, drawn anew for every batch; the other has a 2x2 pool after
every second convolution. As in the paper, a fractional network is asked several times, with other windows, and its answers are
averaged. The images are those of Debian's package dataset-fashion-mnist.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from pathlib import Path

import numpy as np
import torch
from progress import Bar
from torch import nn

import poolgrad.torch as pgt

FOLDER = Path("/usr/share/datasets/fashion-mnist")
CHANNELS = (16, 24, 32, 40, 48, 56)
RATIO = 2**-0.5
POOLS = ("2x2 max", "fractional, disjoint", "fractional, overlapping")


def load(folder: Path, part: str, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Load the first `count` images of a part ("train" or "t10k"), scaled to [-0.5, 0.5], and their labels."""

    def read(name: str, head: int) -> np.ndarray:
        path = folder / f"{part}-{name}-ubyte.gz"
        if not path.exists():
            raise SystemExit(f"{path} is missing: apt-get install dataset-fashion-mnist, or give --data")
        return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=head)

    images = torch.from_numpy(read("images-idx3", 16).reshape(-1, 1, 28, 28)[:count].astype(np.float32)) / 255 - 0.5
    return images, torch.from_numpy(read("labels-idx1", 8)[:count].astype(np.int64))


def network(pool: str) -> nn.Sequential:
    """Build six convolutions with the given pools, then a linear layer on the mean over the remaining image."""
    layers: list[nn.Module] = []
    before = 1
    for i, channels in enumerate(CHANNELS):
        layers += [nn.Conv2d(before, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU()]
        if pool.startswith("fractional"):
            layers.append(pgt.FractionalMaxPool2d(output_ratio=RATIO, overlapping=pool.endswith("overlapping")))
        elif i % 2:
            layers.append(pgt.MaxPool2d(2))
        before = channels
    return nn.Sequential(*layers, pgt.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 10))


@torch.no_grad()
def accuracy(net: nn.Module, images: torch.Tensor, labels: torch.Tensor, times: int) -> float:
    """Return the per cent of images recognised by the mean of `times` answers."""
    net.eval()
    right = 0
    for x, y in zip(images.split(500), labels.split(500), strict=True):
        votes = sum(net(x).softmax(1) for _ in range(times))
        right += int((votes.argmax(1) == y).sum())
    return 100 * right / len(labels)


def train(pool: str, data: dict[str, torch.Tensor], args: argparse.Namespace) -> dict[str, object]:
    """Train one network; return its accuracy after every epoch."""
    torch.manual_seed(args.seed)
    net = network(pool)
    steps = -(-len(data["x"]) // args.batch)
    rule = torch.optim.Adam(net.parameters(), 2e-3)
    plan = torch.optim.lr_scheduler.OneCycleLR(rule, 6e-3, total_steps=steps * args.epochs)
    bar, curve, start = Bar(steps * args.epochs, pool), [], time.perf_counter()
    answers = args.answers if pool.startswith("fractional") else 1
    for _ in range(args.epochs):
        net.train()
        for chosen in torch.randperm(len(data["x"])).split(args.batch):
            loss = nn.functional.cross_entropy(net(data["x"][chosen]), data["y"][chosen])
            rule.zero_grad()
            loss.backward()
            rule.step()
            plan.step()
            bar.step(f"loss {loss.item():.3f}" + (f", {curve[-1]:.1f} %" if curve else ""))
        curve.append(accuracy(net, data["test_x"], data["test_y"], answers))
    return {"pool": pool, "accuracy": curve, "answers": answers, "seconds": round(time.perf_counter() - start, 1)}


def plot(results: list[dict[str, object]], path: Path) -> None:
    """Plot accuracies over epochs."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2))
    for result, mark in zip(results, ("o-", "s-", "^-"), strict=True):
        curve = result["accuracy"]
        axes.plot(range(1, len(curve) + 1), curve, mark, label=f"{result['pool']}: {curve[-1]:.1f} %")
    axes.set(xlabel="epoch", ylabel="test accuracy (%)", title="Fashion-MNIST: six convolutions, three ways to pool")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Train the three networks and print their accuracies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--images", type=int, default=12000, help="how many of the 60000 images to train on (default 12000)"
    )
    parser.add_argument(
        "--test", type=int, default=5000, help="how many of the 10000 test images to use (default 5000)"
    )
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--answers", type=int, default=4, help="answers of a fractional network that are averaged")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--data", type=Path, default=FOLDER, help=f"folder of the four files (default {FOLDER})")
    parser.add_argument("--plot", type=Path, default=Path(__file__).with_suffix(".png"))
    parser.add_argument("--no-plot", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    x, y = load(args.data, "train", args.images)
    test_x, test_y = load(args.data, "t10k", args.test)
    data = {"x": x, "y": y, "test_x": test_x, "test_y": test_y}
    results = [train(pool, data, args) for pool in POOLS]
    print(f"{len(x)} images, {args.epochs} epochs, {len(test_x)} test images")
    for result in results:
        print(f"{result['pool']:26}{result['accuracy'][-1]:6.2f} %   {result['seconds']:6.1f} s")
    if not args.no_plot:
        plot(results, args.plot)
        args.plot.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
        print(f"wrote {args.plot} and its numbers beside it")


if __name__ == "__main__":
    main()
