"""A gradient penalty through fractional pooling: a second derivative that only poolgrad has for Graham's windows.

    python examples/gradient_penalty.py                   # a few seconds

A small critic with fractional max- and average pools learns to tell two kinds of noise apart; as in WGAN-GP the loss holds the
critic's slope near 1, which takes the gradient of a gradient. At the end that second derivative is compared with differences.
TensorFlow raises LookupError here, torch has no fractional average and no disjoint windows.
"""

from __future__ import annotations

import argparse

import torch
from progress import Bar
from torch import nn

import poolgrad.torch as pgt


def critic() -> nn.Sequential:
    """Convolutions with a fractional maximum and a fractional mean; smooth but for the maxima."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.Softplus(),
        pgt.FractionalMaxPool2d(output_ratio=0.7, overlapping=True, seed=1),
        nn.Conv2d(8, 8, 3, padding=1),
        nn.Softplus(),
        pgt.FractionalAvgPool2d(output_ratio=0.6, seed=2),
        nn.Flatten(),
        nn.LazyLinear(1),
    ).double()


def batch(count: int, smooth: bool) -> torch.Tensor:
    """Draw noise, or smoothed noise."""
    x = torch.randn(count, 1, 12, 12, dtype=torch.float64)
    return pgt.avg_pool2d(x, 3, 1, padding="same") * 3 if smooth else x


def penalty(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """The mean of (norm of the slope - 1) squared, differentiable in the weights."""
    x = x.detach().requires_grad_()
    (slope,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    return (slope.flatten(1).norm(dim=1) - 1).square().mean()


def check(net: nn.Module, x: torch.Tensor) -> float:
    """Compare the penalty's derivative along a random change of the weights with a difference quotient; return the relative error."""
    weights = list(net.parameters())
    direction = [torch.randn_like(w) for w in weights]
    exact = sum(
        (g * d).sum()
        for g, d in zip(torch.autograd.grad(penalty(net, x), weights, allow_unused=True), direction, strict=True)
        if g is not None
    )
    step, values = 1e-7, []  # a short step: a longer one may cross a kink, where another cell becomes the maximum
    for sign in (1, -1):
        with torch.no_grad():
            for w, d in zip(weights, direction, strict=True):
                w += sign * step * d
        values.append(penalty(net, x).item())
        with torch.no_grad():
            for w, d in zip(weights, direction, strict=True):
                w -= sign * step * d
    quotient = (values[0] - values[1]) / (2 * step)
    return abs(float(exact) - quotient) / abs(quotient)


def main() -> None:
    """Train the critic and check the second derivative."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--weight", type=float, default=10.0, help="of the penalty (default 10)")
    args = parser.parse_args()
    torch.manual_seed(0)
    net = critic()
    net(batch(2, True))
    rule = torch.optim.Adam(net.parameters(), 3e-3)
    bar, first = Bar(args.steps, "critic"), None
    for _ in range(args.steps):
        real, other = batch(32, True), batch(32, False)
        between = torch.rand(32, 1, 1, 1, dtype=torch.float64)
        slope = penalty(net, between * real + (1 - between) * other)
        gap = net(real).mean() - net(other).mean()
        loss = -gap + args.weight * slope
        rule.zero_grad()
        loss.backward()
        rule.step()
        first = slope.item() if first is None else first
        bar.step(f"gap {gap.item():.3f}, penalty {slope.item():.4f}")
    error = check(net, batch(8, True))
    print(f"penalty {first:.4f} -> {slope.item():.4f}, gap between the two kinds {gap.item():.3f}")
    print(f"derivative of the penalty against a difference quotient: relative error {error:.1e}")
    if error > 1e-4:
        raise SystemExit("the second derivative is wrong")


if __name__ == "__main__":
    main()
