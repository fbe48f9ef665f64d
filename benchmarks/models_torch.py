"""Networks for images, volumes and video, as far as their pools and the shapes around them go: random weights, small inputs.

Written from their papers' tables. Batch norm is left out where it changes nothing for the pools; classifiers are short.
"""

# mypy: disable-error-code="misc, no-untyped-call, no-any-return"
from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def conv(i: int, o: int, k: int = 3, s: int = 1, p: int | None = None, rank: int = 2) -> nn.Sequential:
    """Return a convolution with a rectifier."""
    kind = nn.Conv3d if rank == 3 else nn.Conv2d
    return nn.Sequential(kind(i, o, k, s, k // 2 if p is None else p), nn.ReLU(inplace=True))


class Branches(nn.Module):
    """Branches side by side, joined along the channels."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        """Join what the branches return."""
        return torch.cat([branch(x) for branch in self.branches], 1)


class Residual(nn.Module):
    """A sum of a block and its input."""

    def __init__(self, block: nn.Module, short: nn.Module | None = None) -> None:
        super().__init__()
        self.block, self.short = block, short or nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Add the input, or what the shortcut makes of it."""
        return F.relu(self.block(x) + self.short(x))


def head(channels: int, classes: int = 10, rank: int = 2) -> list[nn.Module]:
    """Return a global mean and a classifier."""
    mean = nn.AdaptiveAvgPool3d(1) if rank == 3 else nn.AdaptiveAvgPool2d(1)
    return [mean, nn.Flatten(), nn.Linear(channels, classes)]


def lenet() -> nn.Module:
    """LeNet-5 with maxima."""
    return nn.Sequential(
        conv(1, 6, 5), nn.MaxPool2d(2), conv(6, 16, 5, p=0), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip


def alexnet() -> nn.Module:
    """AlexNet: windows of 3x3 with stride 2."""
    pool = lambda: nn.MaxPool2d(3, 2)  # noqa: E731
    return nn.Sequential(
        conv(3, 64, 11, 4, 2), pool(), conv(64, 192, 5), pool(), conv(192, 384), conv(384, 256), conv(256, 256), pool(),
        nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(256 * 9, 512), nn.ReLU(), nn.Linear(512, 10),
    )  # fmt: skip


def vgg11() -> nn.Module:
    """VGG-11: windows of 2x2."""
    layers: list[nn.Module] = []
    channels = 3
    for word in (64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0):
        layers.append(conv(channels, word) if word else nn.MaxPool2d(2))
        channels = word or channels
    return nn.Sequential(*layers, *head(512))


def _inception(i: int, a: int, b: tuple[int, int], c: tuple[int, int], d: int) -> nn.Module:
    return Branches(
        conv(i, a, 1),
        nn.Sequential(conv(i, b[0], 1), conv(b[0], b[1])),
        nn.Sequential(conv(i, c[0], 1), conv(c[0], c[1])),
        nn.Sequential(nn.MaxPool2d(3, 1, 1, ceil_mode=True), conv(i, d, 1)),
    )


def googlenet() -> nn.Module:
    """GoogLeNet: a pool with stride 1 in each of nine blocks."""
    pool = lambda: nn.MaxPool2d(3, 2, ceil_mode=True)  # noqa: E731
    return nn.Sequential(
        conv(3, 64, 7, 2), pool(), conv(64, 64, 1), conv(64, 192), pool(),
        _inception(192, 64, (96, 128), (16, 32), 32), _inception(256, 128, (128, 192), (32, 96), 64), pool(),
        _inception(480, 192, (96, 208), (16, 48), 64), _inception(512, 160, (112, 224), (24, 64), 64),
        _inception(512, 128, (128, 256), (24, 64), 64), _inception(512, 112, (144, 288), (32, 64), 64),
        _inception(528, 256, (160, 320), (32, 128), 128), pool(),
        _inception(832, 256, (160, 320), (32, 128), 128), _inception(832, 384, (192, 384), (48, 128), 128), *head(1024),
    )  # fmt: skip


def _mixed(i: int, pooled: int) -> nn.Module:
    return Branches(
        conv(i, 64, 1),
        nn.Sequential(conv(i, 48, 1), conv(48, 64, 5)),
        nn.Sequential(conv(i, 64, 1), conv(64, 96), conv(96, 96)),
        nn.Sequential(nn.AvgPool2d(3, 1, 1), conv(i, pooled, 1)),
    )


def inception3() -> nn.Module:
    """Inception-v3, its first half: means of 3x3 with stride 1, and a reduction with maxima."""
    return nn.Sequential(
        conv(3, 32, 3, 2, 0), conv(32, 32, 3, 1, 0), conv(32, 64), nn.MaxPool2d(3, 2), conv(64, 80, 1), conv(80, 192, 3, 1, 0),
        nn.MaxPool2d(3, 2), _mixed(192, 32), _mixed(256, 64), _mixed(288, 64),
        Branches(conv(288, 384, 3, 2, 0), nn.Sequential(conv(288, 64, 1), conv(64, 96), conv(96, 96, 3, 2, 0)), nn.MaxPool2d(3, 2)),
        *head(768),
    )  # fmt: skip


def _fire(i: int, squeezed: int, expanded: int) -> nn.Module:
    return nn.Sequential(conv(i, squeezed, 1), Branches(conv(squeezed, expanded, 1), conv(squeezed, expanded)))


def squeezenet() -> nn.Module:
    """SqueezeNet 1.0."""
    pool = lambda: nn.MaxPool2d(3, 2, ceil_mode=True)  # noqa: E731
    return nn.Sequential(
        conv(3, 96, 7, 2, 0), pool(), _fire(96, 16, 64), _fire(128, 16, 64), _fire(128, 32, 128), pool(),
        _fire(256, 32, 128), _fire(256, 48, 192), _fire(384, 48, 192), _fire(384, 64, 256), pool(), _fire(512, 64, 256), *head(512),
    )  # fmt: skip


def _basic(i: int, o: int, s: int) -> nn.Module:
    short = nn.Conv2d(i, o, 1, s) if s > 1 or i != o else None
    return Residual(nn.Sequential(conv(i, o, 3, s), nn.Conv2d(o, o, 3, 1, 1)), short)


def _bottleneck(i: int, m: int, s: int) -> nn.Module:
    short = nn.Conv2d(i, 4 * m, 1, s) if s > 1 or i != 4 * m else None
    return Residual(nn.Sequential(conv(i, m, 1), conv(m, m, 3, s), nn.Conv2d(m, 4 * m, 1)), short)


def _resnet(make: Callable[[int, int, int], nn.Module], counts: tuple[int, ...], wide: int) -> nn.Module:
    layers: list[nn.Module] = [conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for level, count in enumerate(counts):
        for i in range(count):
            layers.append(make(channels, 64 << level, 2 if level and not i else 1))
            channels = (64 << level) * wide
    return nn.Sequential(*layers, *head(channels))


def resnet18() -> nn.Module:
    """ResNet-18: one pool, in the stem."""
    return _resnet(_basic, (2, 2, 2, 2), 1)


def resnet50() -> nn.Module:
    """ResNet-50: one pool, in the stem."""
    return _resnet(_bottleneck, (3, 4, 6, 3), 4)


def densenet() -> nn.Module:
    """DenseNet: means of 2x2 between blocks."""

    def block(i: int, count: int) -> nn.Module:
        return nn.Sequential(
            *(Branches(nn.Identity(), nn.Sequential(conv(i + 32 * n, 128, 1), conv(128, 32))) for n in range(count))
        )

    between = lambda i: nn.Sequential(conv(i, i // 2, 1), nn.AvgPool2d(2))  # noqa: E731
    return nn.Sequential(
        conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1), block(64, 6), between(256), block(128, 12), between(512), block(256, 8), *head(512),
    )  # fmt: skip


def shufflenet() -> nn.Module:
    """ShuffleNet: means of 3x3 with stride 2 as shortcuts, grouped convolutions."""

    def unit(i: int, o: int) -> nn.Module:
        path = nn.Sequential(
            conv(i, o // 4, 1), nn.Conv2d(o // 4, o // 4, 3, 2, 1, groups=o // 4), nn.Conv2d(o // 4, o - i, 1)
        )
        return Branches(path, nn.AvgPool2d(3, 2, 1))

    def stay(c: int) -> nn.Module:
        return Residual(
            nn.Sequential(
                conv(c, c // 4, 1), nn.Conv2d(c // 4, c // 4, 3, 1, 1, groups=c // 4), nn.Conv2d(c // 4, c, 1)
            )
        )

    return nn.Sequential(
        conv(3, 24, 3, 2), nn.MaxPool2d(3, 2, 1), unit(24, 144), stay(144), stay(144), unit(144, 288), stay(288), stay(288),
        unit(288, 576), stay(576), *head(576),
    )  # fmt: skip


class UNet(nn.Module):
    """A U-Net of three levels."""

    def __init__(self, rank: int, wide: int) -> None:
        super().__init__()
        block = lambda i, o: nn.Sequential(conv(i, o, rank=rank), conv(o, o, rank=rank))  # noqa: E731
        self.pool = nn.MaxPool3d(2) if rank == 3 else nn.MaxPool2d(2)
        self.down = nn.ModuleList([block(1 if not n else wide << (n - 1), wide << n) for n in range(3)])
        self.middle = block(wide << 2, wide << 3)
        self.up = nn.ModuleList([block((wide << (n + 1)) + (wide << n), wide << n) for n in (2, 1, 0)])
        self.last = (nn.Conv3d if rank == 3 else nn.Conv2d)(wide, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return a map of two classes, flattened."""
        kept = []
        for block in self.down:
            x = block(x)
            kept.append(x)
            x = self.pool(x)
        x = self.middle(x)
        for block in self.up:
            x = block(torch.cat([F.interpolate(x, scale_factor=2.0), kept.pop()], 1))
        y: Tensor = self.last(x)
        return y.flatten(2).mean(2)


def unet() -> nn.Module:
    """U-Net for images."""
    return UNet(2, 32)


def unet3d() -> nn.Module:
    """U-Net for volumes."""
    return UNet(3, 16)


def s3d() -> nn.Module:
    """S3D's blocks for video: a pool of 3x3x3 with stride 1 in each."""

    def block(i: int, o: int) -> nn.Module:
        return Branches(
            conv(i, o // 4, 1, rank=3),
            nn.Sequential(conv(i, o // 4, 1, rank=3), conv(o // 4, o // 2, rank=3)),
            nn.Sequential(nn.MaxPool3d(3, 1, 1), conv(i, o // 4, 1, rank=3)),
        )

    flat = lambda: nn.MaxPool3d((1, 3, 3), (1, 2, 2), (0, 1, 1))  # noqa: E731
    return nn.Sequential(
        conv(3, 32, 3, 2, rank=3), flat(), conv(32, 64, 1, rank=3), conv(64, 96, rank=3), flat(), block(96, 128), block(128, 192),
        nn.MaxPool3d(3, 2, 1), block(192, 256), block(256, 256), *head(256, rank=3),
    )  # fmt: skip


class Pyramid(nn.Module):
    """YOLO's SPP: windows of 5x5, 9x9 and 13x13 with stride 1, joined."""

    def forward(self, x: Tensor) -> Tensor:
        """Join the maps of all sizes."""
        return torch.cat([x, *(F.max_pool2d(x, k, 1, k // 2) for k in (5, 9, 13))], 1)


def yolo_spp() -> nn.Module:
    """The end of a YOLO backbone with SPP."""
    return nn.Sequential(
        conv(3, 32, 3, 2),
        conv(32, 64, 3, 2),
        conv(64, 128, 3, 2),
        conv(128, 64, 1),
        Pyramid(),
        conv(256, 128),
        *head(128),
    )


def no_pools() -> nn.Module:
    """A control: convolutions with strides, and a mean that is no pool."""

    class Mean(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.mean((2, 3))

    return nn.Sequential(
        conv(3, 64, 7, 2), conv(64, 64, 3, 2), _basic(64, 128, 2), _basic(128, 256, 2), Mean(), nn.Linear(256, 10)
    )


class Model(NamedTuple):
    """A function that makes a network, and the shape of its input."""

    make: Callable[[], nn.Module]
    shape: tuple[int, ...]


MODELS = {
    "GoogLeNet": Model(googlenet, (4, 3, 128, 128)),
    "SqueezeNet": Model(squeezenet, (4, 3, 128, 128)),
    "S3D": Model(s3d, (1, 3, 16, 64, 64)),
    "LeNet": Model(lenet, (64, 1, 28, 28)),
    "YOLO-SPP": Model(yolo_spp, (2, 3, 160, 160)),
    "ShuffleNet": Model(shufflenet, (8, 3, 128, 128)),
    "Inception-v3": Model(inception3, (2, 3, 149, 149)),
    "ResNet-18": Model(resnet18, (4, 3, 128, 128)),
    "VGG-11": Model(vgg11, (2, 3, 96, 96)),
    "U-Net": Model(unet, (2, 1, 64, 64)),
    "3-D U-Net": Model(unet3d, (1, 1, 32, 32, 32)),
    "AlexNet": Model(alexnet, (8, 3, 160, 160)),
    "DenseNet": Model(densenet, (2, 3, 128, 128)),
    "ResNet-50": Model(resnet50, (2, 3, 96, 96)),
    "no pools": Model(no_pools, (4, 3, 128, 128)),
}
