"""Swaps poolgrad's modules in for torch's in two small networks: the same loss curve where the pool is the same, and time per step.

    python examples/resnet_stem.py                        # about a minute on 2 cores

The first network is the stem of a ResNet (7x7 convolution, 3x3 max-pool with stride 2) with one residual block, a second one pools
by fractional maxima. Both are trained for 20 steps on random images, in both memory formats, with torch's pools and with ours in
turn, step by step, so that both meet the same machine. Fractional windows differ by design; there only the times are compared.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from progress import Bar
from torch import nn

import poolgrad.torch as pgt


class Block(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x plus the block's output."""
        return (x + self.second(self.first(x).relu())).relu()


def stem(pools: object, channels: int) -> nn.Sequential:
    """The first layers of a ResNet and a classifier."""
    return nn.Sequential(
        nn.Conv2d(3, channels, 7, 2, 3, bias=False),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        pools.MaxPool2d(3, 2, 1),
        Block(channels),
        pools.AvgPool2d(2),
        pools.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(channels, 10),
    )


def fractional(pools: object, channels: int) -> nn.Sequential:
    """Three convolutions, each followed by a fractional max-pool."""
    layers: list[nn.Module] = []
    for before, after in ((3, channels), (channels, channels), (channels, channels)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(), pools.FractionalMaxPool2d(2, output_ratio=0.7)]
    return nn.Sequential(*layers, pools.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


class Run:
    """A network in training: its losses, and the seconds of each step and of its pools alone."""

    def __init__(self, make: Callable[..., nn.Sequential], pools: object, channels: int, last: bool) -> None:
        torch.manual_seed(0)
        self.net = make(pools, channels)
        self.net = self.net.to(memory_format=torch.channels_last) if last else self.net
        self.rule = torch.optim.SGD(self.net.parameters(), 0.05)
        self.losses: list[float] = []
        self.seconds: list[float] = []

    def step(self, x: torch.Tensor, y: torch.Tensor) -> None:
        """One step of gradient descent."""
        start = time.perf_counter()
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.rule.zero_grad()
        loss.backward()
        self.rule.step()
        self.seconds.append(time.perf_counter() - start)
        self.losses.append(loss.item())


def pool_seconds(pool: nn.Module, x: torch.Tensor) -> float:
    """Return the seconds of one pool's forward and backward."""
    x = x.detach().requires_grad_()
    start = time.perf_counter()
    y = pool(x)
    y.backward(torch.ones_like(y))
    return time.perf_counter() - start


def compare(name: str, make: Callable[..., nn.Sequential], last: bool, args: argparse.Namespace) -> tuple[float, bool]:
    """Train with torch's pools and with ours in turn; return the ratio of step times, and True if losses agree."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(args.batch, 3, args.size, args.size, generator=generator)
    x = x.contiguous(memory_format=torch.channels_last) if last else x
    y = torch.randint(10, (args.batch,), generator=generator)
    runs = {"torch": Run(make, nn, args.channels, last), "ours": Run(make, pgt, args.channels, last)}
    bar = Bar(args.steps, f"{name}, {'channels last' if last else 'contiguous'}")
    for _ in range(args.steps):
        for run in runs.values():
            run.step(x, y)
        bar.step(f"loss {runs['ours'].losses[-1]:.4f}")
    best = {key: min(run.seconds[1:]) for key, run in runs.items()}
    agree = torch.allclose(torch.tensor(runs["torch"].losses), torch.tensor(runs["ours"].losses), rtol=1e-4)
    print(
        f"{name:12}{'channels last' if last else 'contiguous':15}{1e3 * best['torch']:9.1f} ms{1e3 * best['ours']:9.1f} ms"
        f"{best['torch'] / best['ours']:9.2f}   {runs['torch'].losses[-1]:.6f}   {runs['ours'].losses[-1]:.6f}"
    )
    return best["torch"] / best["ours"], agree


def alone(last: bool, args: argparse.Namespace) -> None:
    """Time the stem's max-pool alone, forward and backward."""
    x = torch.randn(args.batch, args.channels, args.size // 2, args.size // 2)
    x = x.contiguous(memory_format=torch.channels_last) if last else x
    pools = {"torch": nn.MaxPool2d(3, 2, 1), "ours": pgt.MaxPool2d(3, 2, 1)}
    best = dict.fromkeys(pools, float("inf"))
    for _ in range(args.steps):
        for key, pool in pools.items():
            best[key] = min(best[key], pool_seconds(pool, x))
    print(
        f"{'its max-pool':12}{'channels last' if last else 'contiguous':15}{1e3 * best['torch']:9.2f} ms{1e3 * best['ours']:9.2f} ms"
        f"{best['torch'] / best['ours']:9.2f}"
    )


def main() -> None:
    """Run both networks in both layouts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--channels", type=int, default=32)
    parser.add_argument("--size", type=int, default=96, help="height and width of the images (default 96)")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    pgt_threads(args.threads)
    print(
        f"{'network':12}{'layout':15}{'torch':>12}{'ours':>12}{'faster':>9}   loss after {args.steps} steps, torch and ours"
    )
    for last in (False, True):
        _, agree = compare("stem", stem, last, args)
        if not agree:
            raise SystemExit("the loss curves differ")
        compare("fractional", fractional, last, args)
        alone(last, args)


def pgt_threads(count: int) -> None:
    """Give poolgrad as many threads as torch."""
    import poolgrad

    poolgrad.set_num_threads(count)


if __name__ == "__main__":
    main()
