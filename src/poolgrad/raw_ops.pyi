# Made by tools/docs.py from the table.
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy.typing as npt

from ._ops.table import Op

Array = npt.NDArray[Any]
Sizes = Sequence[int] | Array

__all__: list[str]

def AvgPool(
    *,
    value: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NHWC", "NCHW"] = ...,
    name: str | None = ...,
) -> Array: ...
def AvgPoolGrad(
    *,
    orig_input_shape: npt.ArrayLike,
    grad: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NHWC", "NCHW"] = ...,
    name: str | None = ...,
) -> Array: ...
def AvgPool3D(
    *,
    input: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NDHWC", "NCDHW"] = ...,
    name: str | None = ...,
) -> Array: ...
def AvgPool3DGrad(
    *,
    orig_input_shape: npt.ArrayLike,
    grad: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NDHWC", "NCDHW"] = ...,
    name: str | None = ...,
) -> Array: ...
def MaxPool(
    *,
    input: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID", "EXPLICIT"],
    explicit_paddings: Sizes = ...,
    data_format: Literal["NHWC", "NCHW"] = ...,
    name: str | None = ...,
) -> Array: ...
def MaxPoolV2(
    *,
    input: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NHWC", "NCHW"] = ...,
    name: str | None = ...,
) -> Array: ...
def MaxPoolGrad(
    *,
    orig_input: npt.ArrayLike,
    orig_output: npt.ArrayLike,
    grad: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID", "EXPLICIT"],
    explicit_paddings: Sizes = ...,
    data_format: Literal["NHWC", "NCHW"] = ...,
    name: str | None = ...,
) -> Array: ...
def MaxPoolGradV2(
    *,
    orig_input: npt.ArrayLike,
    orig_output: npt.ArrayLike,
    grad: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NHWC", "NCHW"] = ...,
    name: str | None = ...,
) -> Array: ...
def MaxPoolGradGrad(
    *,
    orig_input: npt.ArrayLike,
    orig_output: npt.ArrayLike,
    grad: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NHWC", "NCHW"] = ...,
    name: str | None = ...,
) -> Array: ...
def MaxPoolGradGradV2(
    *,
    orig_input: npt.ArrayLike,
    orig_output: npt.ArrayLike,
    grad: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NHWC", "NCHW"] = ...,
    name: str | None = ...,
) -> Array: ...

class _MaxPoolWithArgmax(NamedTuple):
    output: Array
    argmax: Array

def MaxPoolWithArgmax(
    *,
    input: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    Targmax: npt.DTypeLike = ...,
    include_batch_in_index: bool = ...,
    name: str | None = ...,
) -> _MaxPoolWithArgmax: ...
def MaxPoolGradWithArgmax(
    *,
    input: npt.ArrayLike,
    grad: npt.ArrayLike,
    argmax: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    include_batch_in_index: bool = ...,
    name: str | None = ...,
) -> Array: ...
def MaxPoolGradGradWithArgmax(
    *,
    input: npt.ArrayLike,
    grad: npt.ArrayLike,
    argmax: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    include_batch_in_index: bool = ...,
    name: str | None = ...,
) -> Array: ...
def MaxPool3D(
    *,
    input: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NDHWC", "NCDHW"] = ...,
    name: str | None = ...,
) -> Array: ...
def MaxPool3DGrad(
    *,
    orig_input: npt.ArrayLike,
    orig_output: npt.ArrayLike,
    grad: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NDHWC", "NCDHW"] = ...,
    name: str | None = ...,
) -> Array: ...
def MaxPool3DGradGrad(
    *,
    orig_input: npt.ArrayLike,
    orig_output: npt.ArrayLike,
    grad: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NDHWC", "NCDHW"] = ...,
    name: str | None = ...,
) -> Array: ...

class _FractionalMaxPool(NamedTuple):
    output: Array
    row_pooling_sequence: Array
    col_pooling_sequence: Array

def FractionalMaxPool(
    *,
    value: npt.ArrayLike,
    pooling_ratio: Sequence[float] | Array,
    pseudo_random: bool = ...,
    overlapping: bool = ...,
    deterministic: bool = ...,
    seed: int = ...,
    seed2: int = ...,
    name: str | None = ...,
) -> _FractionalMaxPool: ...
def FractionalMaxPoolGrad(
    *,
    orig_input: npt.ArrayLike,
    orig_output: npt.ArrayLike,
    out_backprop: npt.ArrayLike,
    row_pooling_sequence: npt.ArrayLike,
    col_pooling_sequence: npt.ArrayLike,
    overlapping: bool = ...,
    name: str | None = ...,
) -> Array: ...

class _FractionalAvgPool(NamedTuple):
    output: Array
    row_pooling_sequence: Array
    col_pooling_sequence: Array

def FractionalAvgPool(
    *,
    value: npt.ArrayLike,
    pooling_ratio: Sequence[float] | Array,
    pseudo_random: bool = ...,
    overlapping: bool = ...,
    deterministic: bool = ...,
    seed: int = ...,
    seed2: int = ...,
    name: str | None = ...,
) -> _FractionalAvgPool: ...
def FractionalAvgPoolGrad(
    *,
    orig_input_tensor_shape: npt.ArrayLike,
    out_backprop: npt.ArrayLike,
    row_pooling_sequence: npt.ArrayLike,
    col_pooling_sequence: npt.ArrayLike,
    overlapping: bool = ...,
    name: str | None = ...,
) -> Array: ...

class _QuantizedAvgPool(NamedTuple):
    output: Array
    min_output: Array
    max_output: Array

def QuantizedAvgPool(
    *,
    input: npt.ArrayLike,
    min_input: npt.ArrayLike,
    max_input: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    name: str | None = ...,
) -> _QuantizedAvgPool: ...

class _QuantizedMaxPool(NamedTuple):
    output: Array
    min_output: Array
    max_output: Array

def QuantizedMaxPool(
    *,
    input: npt.ArrayLike,
    min_input: npt.ArrayLike,
    max_input: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    name: str | None = ...,
) -> _QuantizedMaxPool: ...
def make(op: Op, verbs: Any = ...) -> Callable[..., Any]: ...
