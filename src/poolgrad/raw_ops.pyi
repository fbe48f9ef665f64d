# Made by tools/docs.py from the table.
from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

import numpy as np
import numpy.typing as npt

from ._ops.table import Op

S = TypeVar("S", bound=np.generic)
Array = npt.NDArray[Any]
Sizes = Sequence[int] | Array

__all__: list[str]

@overload
def AvgPool(
    *,
    value: npt.NDArray[S],
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NHWC", "NCHW"] = ...,
    name: str | None = ...,
) -> npt.NDArray[S]: ...
@overload
def AvgPool(
    *,
    value: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NHWC", "NCHW"] = ...,
    name: str | None = ...,
) -> npt.NDArray[np.number[Any]]: ...
@overload
def AvgPoolGrad(
    *,
    orig_input_shape: npt.ArrayLike,
    grad: npt.NDArray[S],
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NHWC", "NCHW"] = ...,
    name: str | None = ...,
) -> npt.NDArray[S]: ...
@overload
def AvgPoolGrad(
    *,
    orig_input_shape: npt.ArrayLike,
    grad: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NHWC", "NCHW"] = ...,
    name: str | None = ...,
) -> npt.NDArray[np.number[Any]]: ...
@overload
def AvgPool3D(
    *,
    input: npt.NDArray[S],
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NDHWC", "NCDHW"] = ...,
    name: str | None = ...,
) -> npt.NDArray[S]: ...
@overload
def AvgPool3D(
    *,
    input: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NDHWC", "NCDHW"] = ...,
    name: str | None = ...,
) -> npt.NDArray[np.number[Any]]: ...
@overload
def AvgPool3DGrad(
    *,
    orig_input_shape: npt.ArrayLike,
    grad: npt.NDArray[S],
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NDHWC", "NCDHW"] = ...,
    name: str | None = ...,
) -> npt.NDArray[S]: ...
@overload
def AvgPool3DGrad(
    *,
    orig_input_shape: npt.ArrayLike,
    grad: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NDHWC", "NCDHW"] = ...,
    name: str | None = ...,
) -> npt.NDArray[np.number[Any]]: ...
@overload
def MaxPool(
    *,
    input: npt.NDArray[S],
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID", "EXPLICIT"],
    explicit_paddings: Sizes = ...,
    data_format: Literal["NHWC", "NCHW"] = ...,
    name: str | None = ...,
) -> npt.NDArray[S]: ...
@overload
def MaxPool(
    *,
    input: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID", "EXPLICIT"],
    explicit_paddings: Sizes = ...,
    data_format: Literal["NHWC", "NCHW"] = ...,
    name: str | None = ...,
) -> npt.NDArray[np.number[Any]]: ...
@overload
def MaxPoolV2(
    *,
    input: npt.NDArray[S],
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NHWC", "NCHW"] = ...,
    name: str | None = ...,
) -> npt.NDArray[S]: ...
@overload
def MaxPoolV2(
    *,
    input: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NHWC", "NCHW"] = ...,
    name: str | None = ...,
) -> npt.NDArray[np.number[Any]]: ...
@overload
def MaxPoolGrad(
    *,
    orig_input: npt.NDArray[S],
    orig_output: npt.ArrayLike,
    grad: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID", "EXPLICIT"],
    explicit_paddings: Sizes = ...,
    data_format: Literal["NHWC", "NCHW"] = ...,
    name: str | None = ...,
) -> npt.NDArray[S]: ...
@overload
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
) -> npt.NDArray[np.number[Any]]: ...
@overload
def MaxPoolGradV2(
    *,
    orig_input: npt.NDArray[S],
    orig_output: npt.ArrayLike,
    grad: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NHWC", "NCHW"] = ...,
    name: str | None = ...,
) -> npt.NDArray[S]: ...
@overload
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
) -> npt.NDArray[np.number[Any]]: ...
@overload
def MaxPoolGradGrad(
    *,
    orig_input: npt.NDArray[S],
    orig_output: npt.ArrayLike,
    grad: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NHWC", "NCHW"] = ...,
    name: str | None = ...,
) -> npt.NDArray[S]: ...
@overload
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
) -> npt.NDArray[np.number[Any]]: ...
@overload
def MaxPoolGradGradV2(
    *,
    orig_input: npt.NDArray[S],
    orig_output: npt.ArrayLike,
    grad: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NHWC", "NCHW"] = ...,
    name: str | None = ...,
) -> npt.NDArray[S]: ...
@overload
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
) -> npt.NDArray[np.number[Any]]: ...

class _MaxPoolWithArgmax(NamedTuple, Generic[S]):
    output: npt.NDArray[S]
    argmax: npt.NDArray[np.int32 | np.int64]

@overload
def MaxPoolWithArgmax(
    *,
    input: npt.NDArray[S],
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    Targmax: npt.DTypeLike = ...,
    include_batch_in_index: bool = ...,
    name: str | None = ...,
) -> _MaxPoolWithArgmax[S]: ...
@overload
def MaxPoolWithArgmax(
    *,
    input: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    Targmax: npt.DTypeLike = ...,
    include_batch_in_index: bool = ...,
    name: str | None = ...,
) -> _MaxPoolWithArgmax[np.number[Any]]: ...
@overload
def MaxPoolGradWithArgmax(
    *,
    input: npt.NDArray[S],
    grad: npt.ArrayLike,
    argmax: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    include_batch_in_index: bool = ...,
    name: str | None = ...,
) -> npt.NDArray[S]: ...
@overload
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
) -> npt.NDArray[np.number[Any]]: ...
@overload
def MaxPoolGradGradWithArgmax(
    *,
    input: npt.NDArray[S],
    grad: npt.ArrayLike,
    argmax: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    include_batch_in_index: bool = ...,
    name: str | None = ...,
) -> npt.NDArray[S]: ...
@overload
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
) -> npt.NDArray[np.number[Any]]: ...
@overload
def MaxPool3D(
    *,
    input: npt.NDArray[S],
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NDHWC", "NCDHW"] = ...,
    name: str | None = ...,
) -> npt.NDArray[S]: ...
@overload
def MaxPool3D(
    *,
    input: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NDHWC", "NCDHW"] = ...,
    name: str | None = ...,
) -> npt.NDArray[np.number[Any]]: ...
@overload
def MaxPool3DGrad(
    *,
    orig_input: npt.NDArray[S],
    orig_output: npt.ArrayLike,
    grad: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NDHWC", "NCDHW"] = ...,
    name: str | None = ...,
) -> npt.NDArray[S]: ...
@overload
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
) -> npt.NDArray[np.number[Any]]: ...
@overload
def MaxPool3DGradGrad(
    *,
    orig_input: npt.NDArray[S],
    orig_output: npt.ArrayLike,
    grad: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    data_format: Literal["NDHWC", "NCDHW"] = ...,
    name: str | None = ...,
) -> npt.NDArray[S]: ...
@overload
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
) -> npt.NDArray[np.number[Any]]: ...

class _FractionalMaxPool(NamedTuple, Generic[S]):
    output: npt.NDArray[S]
    row_pooling_sequence: npt.NDArray[np.int64]
    col_pooling_sequence: npt.NDArray[np.int64]

@overload
def FractionalMaxPool(
    *,
    value: npt.NDArray[S],
    pooling_ratio: Sequence[float] | Array,
    pseudo_random: bool = ...,
    overlapping: bool = ...,
    deterministic: bool = ...,
    seed: int = ...,
    seed2: int = ...,
    name: str | None = ...,
) -> _FractionalMaxPool[S]: ...
@overload
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
) -> _FractionalMaxPool[np.number[Any]]: ...
@overload
def FractionalMaxPoolGrad(
    *,
    orig_input: npt.NDArray[S],
    orig_output: npt.ArrayLike,
    out_backprop: npt.ArrayLike,
    row_pooling_sequence: npt.ArrayLike,
    col_pooling_sequence: npt.ArrayLike,
    overlapping: bool = ...,
    name: str | None = ...,
) -> npt.NDArray[S]: ...
@overload
def FractionalMaxPoolGrad(
    *,
    orig_input: npt.ArrayLike,
    orig_output: npt.ArrayLike,
    out_backprop: npt.ArrayLike,
    row_pooling_sequence: npt.ArrayLike,
    col_pooling_sequence: npt.ArrayLike,
    overlapping: bool = ...,
    name: str | None = ...,
) -> npt.NDArray[np.number[Any]]: ...

class _FractionalAvgPool(NamedTuple, Generic[S]):
    output: npt.NDArray[S]
    row_pooling_sequence: npt.NDArray[np.int64]
    col_pooling_sequence: npt.NDArray[np.int64]

@overload
def FractionalAvgPool(
    *,
    value: npt.NDArray[S],
    pooling_ratio: Sequence[float] | Array,
    pseudo_random: bool = ...,
    overlapping: bool = ...,
    deterministic: bool = ...,
    seed: int = ...,
    seed2: int = ...,
    name: str | None = ...,
) -> _FractionalAvgPool[S]: ...
@overload
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
) -> _FractionalAvgPool[np.number[Any]]: ...
@overload
def FractionalAvgPoolGrad(
    *,
    orig_input_tensor_shape: npt.ArrayLike,
    out_backprop: npt.NDArray[S],
    row_pooling_sequence: npt.ArrayLike,
    col_pooling_sequence: npt.ArrayLike,
    overlapping: bool = ...,
    name: str | None = ...,
) -> npt.NDArray[S]: ...
@overload
def FractionalAvgPoolGrad(
    *,
    orig_input_tensor_shape: npt.ArrayLike,
    out_backprop: npt.ArrayLike,
    row_pooling_sequence: npt.ArrayLike,
    col_pooling_sequence: npt.ArrayLike,
    overlapping: bool = ...,
    name: str | None = ...,
) -> npt.NDArray[np.number[Any]]: ...

class _QuantizedAvgPool(NamedTuple, Generic[S]):
    output: npt.NDArray[S]
    min_output: npt.NDArray[np.float32]
    max_output: npt.NDArray[np.float32]

@overload
def QuantizedAvgPool(
    *,
    input: npt.NDArray[S],
    min_input: npt.ArrayLike,
    max_input: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    name: str | None = ...,
) -> _QuantizedAvgPool[S]: ...
@overload
def QuantizedAvgPool(
    *,
    input: npt.ArrayLike,
    min_input: npt.ArrayLike,
    max_input: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    name: str | None = ...,
) -> _QuantizedAvgPool[np.number[Any]]: ...

class _QuantizedMaxPool(NamedTuple, Generic[S]):
    output: npt.NDArray[S]
    min_output: npt.NDArray[np.float32]
    max_output: npt.NDArray[np.float32]

@overload
def QuantizedMaxPool(
    *,
    input: npt.NDArray[S],
    min_input: npt.ArrayLike,
    max_input: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    name: str | None = ...,
) -> _QuantizedMaxPool[S]: ...
@overload
def QuantizedMaxPool(
    *,
    input: npt.ArrayLike,
    min_input: npt.ArrayLike,
    max_input: npt.ArrayLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Literal["SAME", "VALID"],
    name: str | None = ...,
) -> _QuantizedMaxPool[np.number[Any]]: ...
def make(op: Op, verbs: Any = ...) -> Callable[..., Any]: ...
