"""Pools as modules. Where torch has the module, ours is a subclass with another `forward`, so that code for torch's takes ours.

None has state: nothing is saved, and nothing has to be loaded. A module has the documentation of its function.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, ClassVar

from torch import nn

from . import fractional, functional
from ._tensors import Tensor


class _OfFunction:
    """A module that calls the function `_pool`; it takes the arguments and the documentation of the function."""

    _pool: ClassVar[Callable[..., Any]]

    forward: Callable[..., Any]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "_pool" in cls.__dict__:
            own = cls._pool.__doc__ or ""
            about = own[own.index("Parameters\n") : own.index("\n\nReturns\n")]
            later = (*inspect.signature(cls.forward).parameters, "_random_samples")  # arguments of a call alone
            for name in later:
                about = re.sub(rf"\n{name} :.*(\n .*)*", "", about)
            also = (
                f"See Also\n--------\n{cls._pool.__name__} : the function, with the result, the errors and an example."
            )
            cls.__doc__ = f"{cls.__doc__}\n\n{about}\n\n{also}\n"


class _Max(_OfFunction):
    def forward(self: Any, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Apply the function of the same name to the input."""
        return self._pool(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )


class _Avg(_OfFunction):
    def __init__(
        self: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: float | None = None,
    ) -> None:
        super().__init__(kernel_size, stride, 0, ceil_mode, count_include_pad)  # type: ignore[call-arg]
        # torch would take a word for a sequence of letters
        self.padding = (padding,) if isinstance(self.padding, tuple) and isinstance(padding, int) else padding
        self.divisor_override = divisor_override

    def forward(self: Any, input: Tensor) -> Tensor:
        """Apply the function of the same name to the input."""
        words = (self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)
        return self._pool(input, *words, self.divisor_override)


class _Lp(_OfFunction):
    def forward(self: Any, input: Tensor) -> Tensor:
        """Apply the function of the same name to the input."""
        return self._pool(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class _AdaptiveMax(_OfFunction):
    def forward(self: Any, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Apply the function of the same name to the input."""
        return self._pool(input, self.output_size, self.return_indices)


class _AdaptiveAvg(_OfFunction):
    def forward(self: Any, input: Tensor) -> Tensor:
        """Apply the function of the same name to the input."""
        return self._pool(input, self.output_size)


class _Unpool(_OfFunction):
    def __init__(self: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, reduce: str = "sum") -> None:
        super().__init__(kernel_size, stride, padding)  # type: ignore[call-arg]
        self.reduce = reduce

    def forward(self: Any, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Apply the function of the same name to the input and its indices."""
        words = (self.kernel_size, self.stride, self.padding, output_size)
        return self._pool(input, indices, *words, reduce=self.reduce)


class _Min(_OfFunction, nn.Module):
    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.padding, self.dilation = kernel_size, padding, dilation
        self.stride = kernel_size if stride is None else stride
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def extra_repr(self) -> str:
        """Return the window options."""
        words = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
        return ", ".join(f"{word}={getattr(self, word)}" for word in words)

    forward = _Max.forward


class _Fractional(_OfFunction, nn.Module):
    """Windows are drawn anew in every call, from torch's generator; with a seed they are the same in every call."""

    def __init__(
        self,
        kernel_size: Any = None,
        output_size: Any = None,
        output_ratio: Any = None,
        *,
        windows: Any = None,
        seed: Any = None,
        pseudo_random: bool = False,
        overlapping: bool = False,
    ) -> None:
        super().__init__()
        words = {
            "kernel_size": kernel_size,
            "output_size": output_size,
            "output_ratio": output_ratio,
            "windows": windows,
        }
        self.draw = {**words, "seed": seed, "pseudo_random": pseudo_random, "overlapping": overlapping}

    def extra_repr(self) -> str:
        """Return the options that decide how windows are drawn."""
        return ", ".join(
            f"{word}={value}" for word, value in self.draw.items() if value is not None and value is not False
        )

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Apply the function of the same name to the input."""
        return self._pool(input, **self.draw)


class _FractionalMax(_Fractional):
    def __init__(
        self,
        kernel_size: Any = None,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        **draw: Any,
    ) -> None:
        super().__init__(kernel_size, output_size, output_ratio, **draw)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Apply the function of the same name to the input."""
        return self._pool(input, return_indices=self.return_indices, **self.draw)


class MaxPool1d(_Max, nn.MaxPool1d):
    """The largest cell of each window, along one axis."""

    _pool = staticmethod(functional.max_pool1d)


class MaxPool2d(_Max, nn.MaxPool2d):
    """The largest cell of each window, along two axes."""

    _pool = staticmethod(functional.max_pool2d)


class MaxPool3d(_Max, nn.MaxPool3d):
    """The largest cell of each window, along three axes."""

    _pool = staticmethod(functional.max_pool3d)


class MinPool1d(_Min):
    """The least cell of each window, along one axis."""

    _pool = staticmethod(functional.min_pool1d)


class MinPool2d(_Min):
    """The least cell of each window, along two axes."""

    _pool = staticmethod(functional.min_pool2d)


class MinPool3d(_Min):
    """The least cell of each window, along three axes."""

    _pool = staticmethod(functional.min_pool3d)


class AvgPool1d(_Avg, nn.AvgPool1d):
    """The mean over each window, along one axis."""

    _pool = staticmethod(functional.avg_pool1d)


class AvgPool2d(_Avg, nn.AvgPool2d):
    """The mean over each window, along two axes."""

    _pool = staticmethod(functional.avg_pool2d)


class AvgPool3d(_Avg, nn.AvgPool3d):
    """The mean over each window, along three axes."""

    _pool = staticmethod(functional.avg_pool3d)


class LPPool1d(_Lp, nn.LPPool1d):
    """The p-norm of each window, along one axis."""

    _pool = staticmethod(functional.lp_pool1d)


class LPPool2d(_Lp, nn.LPPool2d):
    """The p-norm of each window, along two axes."""

    _pool = staticmethod(functional.lp_pool2d)


class LPPool3d(_Lp, nn.LPPool3d):
    """The p-norm of each window, along three axes."""

    _pool = staticmethod(functional.lp_pool3d)


class AdaptiveMaxPool1d(_AdaptiveMax, nn.AdaptiveMaxPool1d):
    """The largest cell of each of so many windows, along one axis."""

    _pool = staticmethod(functional.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMax, nn.AdaptiveMaxPool2d):
    """The largest cell of each of so many windows, along two axes."""

    _pool = staticmethod(functional.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMax, nn.AdaptiveMaxPool3d):
    """The largest cell of each of so many windows, along three axes."""

    _pool = staticmethod(functional.adaptive_max_pool3d)


class AdaptiveAvgPool1d(_AdaptiveAvg, nn.AdaptiveAvgPool1d):
    """The mean over each of so many windows, along one axis."""

    _pool = staticmethod(functional.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvg, nn.AdaptiveAvgPool2d):
    """The mean over each of so many windows, along two axes."""

    _pool = staticmethod(functional.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvg, nn.AdaptiveAvgPool3d):
    """The mean over each of so many windows, along three axes."""

    _pool = staticmethod(functional.adaptive_avg_pool3d)


class FractionalMaxPool1d(_FractionalMax):
    """The largest cell of each of windows drawn at random, along one axis."""

    _pool = staticmethod(fractional.fractional_max_pool1d)


class FractionalMaxPool2d(_FractionalMax):
    """The largest cell of each of windows drawn at random, along two axes."""

    _pool = staticmethod(fractional.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMax):
    """The largest cell of each of windows drawn at random, along three axes."""

    _pool = staticmethod(fractional.fractional_max_pool3d)


class FractionalAvgPool1d(_Fractional):
    """The mean over each of windows drawn at random, along one axis."""

    _pool = staticmethod(fractional.fractional_avg_pool1d)


class FractionalAvgPool2d(_Fractional):
    """The mean over each of windows drawn at random, along two axes."""

    _pool = staticmethod(fractional.fractional_avg_pool2d)


class FractionalAvgPool3d(_Fractional):
    """The mean over each of windows drawn at random, along three axes."""

    _pool = staticmethod(fractional.fractional_avg_pool3d)


class MaxUnpool1d(_Unpool, nn.MaxUnpool1d):
    """Cells go back to where their windows found them, along one axis."""

    _pool = staticmethod(functional.max_unpool1d)


class MaxUnpool2d(_Unpool, nn.MaxUnpool2d):
    """Cells go back to where their windows found them, along two axes."""

    _pool = staticmethod(functional.max_unpool2d)


class MaxUnpool3d(_Unpool, nn.MaxUnpool3d):
    """Cells go back to where their windows found them, along three axes."""

    _pool = staticmethod(functional.max_unpool3d)
