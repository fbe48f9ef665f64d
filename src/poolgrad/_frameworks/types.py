"""The types of the pools of a framework: A is its array type, T its taps. They have the arguments of the NumPy pools, except `out`."""

from __future__ import annotations

from typing import Literal, Protocol, TypeVar, Unpack, overload

from numpy.typing import ArrayLike, DTypeLike

from .._pooling.types import (
    AdaptiveAvgOptions,
    AdaptiveMaxOptions,
    AdaptiveSize,
    AvgOptions,
    FractionalAvgOptions,
    FractionalMaxOptions,
    GlobalAvgOptions,
    GlobalMaxOptions,
    GlobalSumOptions,
    Int,
    LpOptions,
    MaxOptions,
    Ratio,
    Reduce,
    Stride,
    SumOptions,
    Windows,
)
from .._windows.axis import Axis

A = TypeVar("A")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)


class MaxPool(Protocol[A, T_co]):
    """`max_pool` and `min_pool`."""

    @overload
    def __call__(
        self,
        x: A | ArrayLike,
        window: Windows,
        stride: Stride = ...,
        *,
        return_taps: Literal[False] = ...,
        **options: Unpack[MaxOptions],
    ) -> A: ...
    @overload
    def __call__(
        self,
        x: A | ArrayLike,
        window: Windows,
        stride: Stride = ...,
        *,
        return_taps: Literal[True],
        **options: Unpack[MaxOptions],
    ) -> tuple[A, T_co]: ...


class AvgPool(Protocol[A]):
    """`avg_pool`."""

    def __call__(
        self,
        x: A | ArrayLike,
        window: Windows,
        stride: Stride = ...,
        *,
        dtype: DTypeLike | None = ...,
        **options: Unpack[AvgOptions],
    ) -> A: ...


class SumPool(Protocol[A]):
    """`sum_pool`."""

    def __call__(
        self,
        x: A | ArrayLike,
        window: Windows,
        stride: Stride = ...,
        *,
        dtype: DTypeLike | None = ...,
        **options: Unpack[SumOptions],
    ) -> A: ...


class LpPool(Protocol[A]):
    """`lp_pool`."""

    def __call__(self, x: A | ArrayLike, window: Windows, stride: Stride = ..., **options: Unpack[LpOptions]) -> A: ...


class FractionalMaxPool(Protocol[A, T_co]):
    """`fractional_max_pool`; the windows are arrays of pairs if they are drawn when the pool runs."""

    @overload
    def __call__(
        self,
        x: A | ArrayLike,
        ratio: Ratio = ...,
        *,
        return_taps: Literal[False] = ...,
        return_windows: Literal[False] = ...,
        **options: Unpack[FractionalMaxOptions],
    ) -> A: ...
    @overload
    def __call__(
        self,
        x: A | ArrayLike,
        ratio: Ratio = ...,
        *,
        return_taps: Literal[True],
        return_windows: Literal[False] = ...,
        **options: Unpack[FractionalMaxOptions],
    ) -> tuple[A, T_co]: ...
    @overload
    def __call__(
        self,
        x: A | ArrayLike,
        ratio: Ratio = ...,
        *,
        return_taps: Literal[False] = ...,
        return_windows: Literal[True],
        **options: Unpack[FractionalMaxOptions],
    ) -> tuple[A, tuple[Axis | A, ...]]: ...
    @overload
    def __call__(
        self,
        x: A | ArrayLike,
        ratio: Ratio = ...,
        *,
        return_taps: Literal[True],
        return_windows: Literal[True],
        **options: Unpack[FractionalMaxOptions],
    ) -> tuple[A, T_co, tuple[Axis | A, ...]]: ...


class FractionalAvgPool(Protocol[A]):
    """`fractional_avg_pool`; the windows are arrays of pairs if they are drawn when the pool runs."""

    @overload
    def __call__(
        self,
        x: A | ArrayLike,
        ratio: Ratio = ...,
        *,
        dtype: DTypeLike | None = ...,
        return_windows: Literal[False] = ...,
        **options: Unpack[FractionalAvgOptions],
    ) -> A: ...
    @overload
    def __call__(
        self,
        x: A | ArrayLike,
        ratio: Ratio = ...,
        *,
        dtype: DTypeLike | None = ...,
        return_windows: Literal[True],
        **options: Unpack[FractionalAvgOptions],
    ) -> tuple[A, tuple[Axis | A, ...]]: ...


class AdaptiveMaxPool(Protocol[A, T_co]):
    """`adaptive_max_pool`."""

    @overload
    def __call__(
        self,
        x: A | ArrayLike,
        size: AdaptiveSize,
        *,
        return_taps: Literal[False] = ...,
        **options: Unpack[AdaptiveMaxOptions],
    ) -> A: ...
    @overload
    def __call__(
        self, x: A | ArrayLike, size: AdaptiveSize, *, return_taps: Literal[True], **options: Unpack[AdaptiveMaxOptions]
    ) -> tuple[A, T_co]: ...


class AdaptiveAvgPool(Protocol[A]):
    """`adaptive_avg_pool`."""

    def __call__(
        self,
        x: A | ArrayLike,
        size: AdaptiveSize,
        *,
        dtype: DTypeLike | None = ...,
        **options: Unpack[AdaptiveAvgOptions],
    ) -> A: ...


class GlobalMaxPool(Protocol[A]):
    """`global_max_pool` and `global_min_pool`."""

    def __call__(self, x: A | ArrayLike, **options: Unpack[GlobalMaxOptions]) -> A: ...


class GlobalAvgPool(Protocol[A]):
    """`global_avg_pool`."""

    def __call__(
        self, x: A | ArrayLike, *, dtype: DTypeLike | None = ..., **options: Unpack[GlobalAvgOptions]
    ) -> A: ...


class GlobalSumPool(Protocol[A]):
    """`global_sum_pool`."""

    def __call__(
        self, x: A | ArrayLike, *, dtype: DTypeLike | None = ..., **options: Unpack[GlobalSumOptions]
    ) -> A: ...


class Unpool(Protocol[A, T_contra]):
    """`unpool`."""

    def __call__(
        self,
        y: A | ArrayLike,
        taps: T_contra | A | ArrayLike,
        shape: tuple[Int, ...] | list[Int] | None = ...,
        *,
        reduce: Reduce = ...,
        items: int = ...,
    ) -> A: ...
