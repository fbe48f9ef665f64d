"""The docstrings of raw_ops, made by tools/docs.py from the table."""

DOCSTRINGS = {
    "AvgPool": """Mean of each window.

Parameters
----------
value : array_like, 4 dimensions
    The array to pool.
ksize : sequence of 4 int
    Window size per dimension, in the order of `data_format`; 1 for the batch.
strides : sequence of 4 int
    Step between windows per dimension, in the order of `data_format`; 1 for the batch.
padding : {'SAME', 'VALID'}
    'VALID': only whole windows. 'SAME': a window per stride, cut off at the edges.
data_format : {'NHWC', 'NCHW'}, default 'NHWC'
    The order of the dimensions: batch N, height H, width W, channels C.
name : str, optional
    Ignored; TensorFlow has it.

Returns
-------
ndarray
    The result, with the shape of the output and the dtype of the arrays.

Raises
------
ValueError
    If a value, shape or size is wrong. The message names every wrong argument: what came, what was wanted.
TypeError
    If an argument has the wrong type, or an array a dtype that the operator does not take.
NotImplementedError
    If the windows pool the batch, or the channels in a way that the operator does not offer.
MemoryError
    If the result does not fit into memory.

See Also
--------
AvgPoolGrad : Gradient of AvgPool: each output's gradient, shared evenly over its window.

Notes
-----
    y[i] = sum of x[j] over the cells j of window i, divided by their number

Windows: cut off at the edges of the input.

Dtypes: float16, bfloat16, float32, float64. Layouts: NHWC, NCHW.

Against TensorFlow 2.21 on CPU: same bits, except:

- subnormals are kept, TensorFlow flushes them to zero
- a channel stride other than 1 with channel window 1 is a ValueError, TensorFlow ignores it
- dtypes and layouts without a CPU kernel in TensorFlow follow the nearest sibling that has one
- sums of more than 64 terms are added up in a wider type, closer to the exact mean than TensorFlow's
- floats in integer lists are a TypeError, TensorFlow truncates them

Examples
--------
>>> import numpy as np
>>> from poolgrad import raw_ops
>>> result = raw_ops.AvgPool(
...     value=np.array([-2, 0, 5, 7, 6, 8, -8, 3, -7], np.float32).reshape(1, 3, 3, 1),
...     ksize=[1, 2, 2, 1],
...     strides=[1, 1, 1, 1],
...     padding='VALID',
... )
>>> result.shape, result.ravel().tolist()
((1, 2, 2, 1), [2.75, 4.75, 2.0, 2.5])
""",
    "AvgPoolGrad": """Gradient of AvgPool: each output's gradient, shared evenly over its window.

Parameters
----------
orig_input_shape : array_like, int32 vector
    The shape of the array that was pooled.
grad : array_like, 4 dimensions
    The gradient of a loss with respect to the output of the forward operator.
ksize : sequence of 4 int
    Window size per dimension, in the order of `data_format`; 1 for the batch.
strides : sequence of 4 int
    Step between windows per dimension, in the order of `data_format`; 1 for the batch.
padding : {'SAME', 'VALID'}
    'VALID': only whole windows. 'SAME': a window per stride, cut off at the edges.
data_format : {'NHWC', 'NCHW'}, default 'NHWC'
    The order of the dimensions: batch N, height H, width W, channels C.
name : str, optional
    Ignored; TensorFlow has it.

Returns
-------
ndarray
    The result, with the shape of the input and the dtype of the arrays.

Raises
------
ValueError
    If a value, shape or size is wrong. The message names every wrong argument: what came, what was wanted.
TypeError
    If an argument has the wrong type, or an array a dtype that the operator does not take.
NotImplementedError
    If the windows pool the batch, or the channels in a way that the operator does not offer.
MemoryError
    If the result does not fit into memory.

See Also
--------
AvgPool : Mean of each window.

Notes
-----
    dx[j] = sum of g[i] / (number of cells of window i) over the windows i that cover j

Windows: cut off at the edges; one longer than the input that begins before it reaches to the
input's end.

Dtypes: float16, bfloat16, float32, float64. Layouts: NHWC, NCHW.

Against TensorFlow 2.21 on CPU: same bits, except:

- subnormals are kept, TensorFlow flushes them to zero
- a channel stride other than 1 with channel window 1 is a ValueError, TensorFlow ignores it
- dtypes and layouts without a CPU kernel in TensorFlow follow the nearest sibling that has one
- shapes and positions must fit exactly, TensorFlow accepts some that do not, or dies
- sums of more than 64 terms are added up in a wider type, closer to the exact mean than TensorFlow's
- floats in integer lists are a TypeError, TensorFlow truncates them

Examples
--------
>>> import numpy as np
>>> from poolgrad import raw_ops
>>> result = raw_ops.AvgPoolGrad(
...     orig_input_shape=np.array([1, 3, 3, 1], np.int32),
...     grad=np.array([9, -8, -4, 4], np.float32).reshape(1, 2, 2, 1),
...     ksize=[1, 2, 2, 1],
...     strides=[1, 1, 1, 1],
...     padding='VALID',
... )
>>> result.shape, result.ravel().tolist()
((1, 3, 3, 1), [2.25, 0.25, -2.0, 1.25, 0.25, -1.0, -1.0, 0.0, 1.0])
""",
    "AvgPool3D": """Mean of each window, three dimensions.

Parameters
----------
input : array_like, 5 dimensions
    The array to pool.
ksize : sequence of 5 int
    Window size per dimension, in the order of `data_format`; 1 for the batch.
strides : sequence of 5 int
    Step between windows per dimension, in the order of `data_format`; 1 for the batch.
padding : {'SAME', 'VALID'}
    'VALID': only whole windows. 'SAME': a window per stride, cut off at the edges.
data_format : {'NDHWC', 'NCDHW'}, default 'NDHWC'
    The order of the dimensions: batch N, depth D, height H, width W, channels C.
name : str, optional
    Ignored; TensorFlow has it.

Returns
-------
ndarray
    The result, with the shape of the output and the dtype of the arrays.

Raises
------
ValueError
    If a value, shape or size is wrong. The message names every wrong argument: what came, what was wanted.
TypeError
    If an argument has the wrong type, or an array a dtype that the operator does not take.
NotImplementedError
    If the windows pool the batch, or the channels in a way that the operator does not offer.
MemoryError
    If the result does not fit into memory.

See Also
--------
AvgPool3DGrad : Gradient of AvgPool3D.

Notes
-----
    y[i] = sum of x[j] over the cells j of window i, divided by their number

Windows: cut off at the edges; under SAME with strides above the window, the first window begins
inside.

Dtypes: float16, bfloat16, float32, float64. Layouts: NDHWC, NCDHW.

Against TensorFlow 2.21 on CPU: same bits, except:

- subnormals are kept, TensorFlow flushes them to zero
- dtypes and layouts without a CPU kernel in TensorFlow follow the nearest sibling that has one
- NaN and signed zero follow one rule at every position, TensorFlow's depends on vector lanes
- a cell of the lowest finite value is a number like any other, TensorFlow takes it for padding and leaves it out
- sums of more than 64 terms are added up in a wider type, closer to the exact mean than TensorFlow's
- floats in integer lists are a TypeError, TensorFlow truncates them

Examples
--------
>>> import numpy as np
>>> from poolgrad import raw_ops
>>> result = raw_ops.AvgPool3D(
...     input=np.array([-2, 0, 5, 7, 6, 8, -8, 3, -7, 6, 7, 0, 9, -8, -4, 4, 8, 6], np.float32).reshape(1, 2, 3, 3, 1),
...     ksize=[1, 2, 2, 2, 1],
...     strides=[1, 1, 1, 1, 1],
...     padding='VALID',
... )
>>> result.shape, result.ravel().tolist()
((1, 1, 2, 2, 1), [3.125, 1.75, 2.625, 1.5])
""",
    "AvgPool3DGrad": """Gradient of AvgPool3D.

Parameters
----------
orig_input_shape : array_like, int32 vector
    The shape of the array that was pooled.
grad : array_like, 5 dimensions
    The gradient of a loss with respect to the output of the forward operator.
ksize : sequence of 5 int
    Window size per dimension, in the order of `data_format`; 1 for the batch.
strides : sequence of 5 int
    Step between windows per dimension, in the order of `data_format`; 1 for the batch.
padding : {'SAME', 'VALID'}
    'VALID': only whole windows. 'SAME': a window per stride, cut off at the edges.
data_format : {'NDHWC', 'NCDHW'}, default 'NDHWC'
    The order of the dimensions: batch N, depth D, height H, width W, channels C.
name : str, optional
    Ignored; TensorFlow has it.

Returns
-------
ndarray
    The result, with the shape of the input and the dtype of the arrays.

Raises
------
ValueError
    If a value, shape or size is wrong. The message names every wrong argument: what came, what was wanted.
TypeError
    If an argument has the wrong type, or an array a dtype that the operator does not take.
NotImplementedError
    If the windows pool the batch, or the channels in a way that the operator does not offer.
MemoryError
    If the result does not fit into memory.

See Also
--------
AvgPool3D : Mean of each window, three dimensions.

Notes
-----
    dx[j] = sum of g[i] / (number of cells of window i) over the windows i that cover j

Windows: cut off at the edges; one longer than the input that begins before it reaches to the
input's end.

Dtypes: float16, bfloat16, float32, float64. Layouts: NDHWC, NCDHW.

Against TensorFlow 2.21 on CPU: same bits, except:

- subnormals are kept, TensorFlow flushes them to zero
- dtypes and layouts without a CPU kernel in TensorFlow follow the nearest sibling that has one
- shapes and positions must fit exactly, TensorFlow accepts some that do not, or dies
- an empty array gives the empty (or zero) result of the computed shape, TensorFlow refuses it
- sums of more than 64 terms are added up in a wider type, closer to the exact mean than TensorFlow's
- floats in integer lists are a TypeError, TensorFlow truncates them

Examples
--------
>>> import numpy as np
>>> from poolgrad import raw_ops
>>> result = raw_ops.AvgPool3DGrad(
...     orig_input_shape=np.array([1, 2, 3, 3, 1], np.int32),
...     grad=np.array([3, -5, 0, -9], np.float32).reshape(1, 1, 2, 2, 1),
...     ksize=[1, 2, 2, 2, 1],
...     strides=[1, 1, 1, 1, 1],
...     padding='VALID',
... )
>>> result.shape, result.ravel().tolist()
((1, 2, 3, 3, 1), [0.375, -0.25, -0.625, 0.375, -1.375, -1.75, 0.0, -1.125, -1.125, 0.375, -0.25, -0.625, 0.375, -1.375, -1.75, 0.0, -1.125, -1.125])
""",
    "MaxPool": """Maximum of each window.

Parameters
----------
input : array_like, 4 dimensions
    The array to pool.
ksize : sequence of 4 int
    Window size per dimension, in the order of `data_format`; 1 for the batch.
strides : sequence of 4 int
    Step between windows per dimension, in the order of `data_format`; 1 for the batch.
padding : {'SAME', 'VALID', 'EXPLICIT'}
    'VALID': only whole windows. 'SAME': a window per stride, cut off at the edges. 'EXPLICIT': as
    `explicit_paddings` says.
explicit_paddings : sequence of 8 int, default []
    Cells before and after, per dimension, in the order of `data_format`; read only if `padding` is
    'EXPLICIT'.
data_format : {'NHWC', 'NCHW'}, default 'NHWC'
    The order of the dimensions: batch N, height H, width W, channels C.
name : str, optional
    Ignored; TensorFlow has it.

Returns
-------
ndarray
    The result, with the shape of the output and the dtype of the arrays.

Raises
------
ValueError
    If a value, shape or size is wrong. The message names every wrong argument: what came, what was wanted.
TypeError
    If an argument has the wrong type, or an array a dtype that the operator does not take.
NotImplementedError
    If the windows pool the batch, or the channels in a way that the operator does not offer.
MemoryError
    If the result does not fit into memory.

See Also
--------
MaxPoolV2 : Maximum of each window; window and stride are arrays.
MaxPoolGrad : Gradient of MaxPool: each output's gradient goes to the first maximum of its window.
MaxPoolGradV2 : Gradient of MaxPoolV2.
MaxPoolGradGrad : Second-order gradient of MaxPool: grad at the first cell of each window that equals orig_output.
MaxPoolGradGradV2 : Second-order gradient of MaxPoolV2.
MaxPoolWithArgmax : Maximum of each window and its flat position.
MaxPoolGradWithArgmax : Gradient of MaxPoolWithArgmax: grad added at the given positions.
MaxPoolGradGradWithArgmax : Second-order gradient of MaxPoolWithArgmax: grad at the given positions.

Notes
-----
    y[i] = largest x[j] over the cells j of window i

Windows: cut off at the edges of the input.

Dtypes: float16, bfloat16, float32, float64, int8, uint8, int16, uint16, int32, uint32, int64,
uint64. Layouts: NHWC, NCHW.

Against TensorFlow 2.21 on CPU: same bits, except:

- subnormals are kept, TensorFlow flushes them to zero
- a channel stride other than 1 with channel window 1 is a ValueError, TensorFlow ignores it
- dtypes and layouts without a CPU kernel in TensorFlow follow the nearest sibling that has one
- NaN and signed zero follow one rule at every position, TensorFlow's depends on vector lanes
- depthwise with spatial strides other than 1 is a ValueError, TensorFlow ignores the strides
- floats in integer lists are a TypeError, TensorFlow truncates them

Examples
--------
>>> import numpy as np
>>> from poolgrad import raw_ops
>>> result = raw_ops.MaxPool(
...     input=np.array([-2, 0, 5, 7, 6, 8, -8, 3, -7], np.float32).reshape(1, 3, 3, 1),
...     ksize=[1, 2, 2, 1],
...     strides=[1, 1, 1, 1],
...     padding='VALID',
... )
>>> result.shape, result.ravel().tolist()
((1, 2, 2, 1), [7.0, 8.0, 7.0, 8.0])
""",
    "MaxPoolV2": """Maximum of each window; window and stride are arrays.

Parameters
----------
input : array_like, 4 dimensions
    The array to pool.
ksize : sequence of 4 int, or an int32 vector
    Window size per dimension, in the order of `data_format`; 1 for the batch.
strides : sequence of 4 int, or an int32 vector
    Step between windows per dimension, in the order of `data_format`; 1 for the batch.
padding : {'SAME', 'VALID'}
    'VALID': only whole windows. 'SAME': a window per stride, cut off at the edges.
data_format : {'NHWC', 'NCHW'}, default 'NHWC'
    The order of the dimensions: batch N, height H, width W, channels C.
name : str, optional
    Ignored; TensorFlow has it.

Returns
-------
ndarray
    The result, with the shape of the output and the dtype of the arrays.

Raises
------
ValueError
    If a value, shape or size is wrong. The message names every wrong argument: what came, what was wanted.
TypeError
    If an argument has the wrong type, or an array a dtype that the operator does not take.
NotImplementedError
    If the windows pool the batch, or the channels in a way that the operator does not offer.
MemoryError
    If the result does not fit into memory.

See Also
--------
MaxPool : Maximum of each window.
MaxPoolGrad : Gradient of MaxPool: each output's gradient goes to the first maximum of its window.
MaxPoolGradV2 : Gradient of MaxPoolV2.
MaxPoolGradGrad : Second-order gradient of MaxPool: grad at the first cell of each window that equals orig_output.
MaxPoolGradGradV2 : Second-order gradient of MaxPoolV2.
MaxPoolWithArgmax : Maximum of each window and its flat position.
MaxPoolGradWithArgmax : Gradient of MaxPoolWithArgmax: grad added at the given positions.
MaxPoolGradGradWithArgmax : Second-order gradient of MaxPoolWithArgmax: grad at the given positions.

Notes
-----
    y[i] = largest x[j] over the cells j of window i

Windows: cut off at the edges of the input.

Dtypes: float16, bfloat16, float32, float64, int8, uint8, int16, uint16, int32, uint32, int64,
uint64. Layouts: NHWC, NCHW.

Against TensorFlow 2.21 on CPU: same bits, except:

- subnormals are kept, TensorFlow flushes them to zero
- a channel stride other than 1 with channel window 1 is a ValueError, TensorFlow ignores it
- dtypes and layouts without a CPU kernel in TensorFlow follow the nearest sibling that has one
- NaN and signed zero follow one rule at every position, TensorFlow's depends on vector lanes
- depthwise with spatial strides other than 1 is a ValueError, TensorFlow ignores the strides

Examples
--------
>>> import numpy as np
>>> from poolgrad import raw_ops
>>> result = raw_ops.MaxPoolV2(
...     input=np.array([-2, 0, 5, 7, 6, 8, -8, 3, -7], np.float32).reshape(1, 3, 3, 1),
...     ksize=np.array([1, 2, 2, 1], np.int32),
...     strides=np.array([1, 1, 1, 1], np.int32),
...     padding='VALID',
... )
>>> result.shape, result.ravel().tolist()
((1, 2, 2, 1), [7.0, 8.0, 7.0, 8.0])
""",
    "MaxPoolGrad": """Gradient of MaxPool: each output's gradient goes to the first maximum of its window.

Parameters
----------
orig_input : array_like, 4 dimensions
    The array that was pooled.
orig_output : array_like, 4 dimensions
    The result of the forward operator for `orig_input`.
grad : array_like, 4 dimensions
    The gradient of a loss with respect to the output of the forward operator.
ksize : sequence of 4 int
    Window size per dimension, in the order of `data_format`; 1 for the batch.
strides : sequence of 4 int
    Step between windows per dimension, in the order of `data_format`; 1 for the batch.
padding : {'SAME', 'VALID', 'EXPLICIT'}
    'VALID': only whole windows. 'SAME': a window per stride, cut off at the edges. 'EXPLICIT': as
    `explicit_paddings` says.
explicit_paddings : sequence of 8 int, default []
    Cells before and after, per dimension, in the order of `data_format`; read only if `padding` is
    'EXPLICIT'.
data_format : {'NHWC', 'NCHW'}, default 'NHWC'
    The order of the dimensions: batch N, height H, width W, channels C.
name : str, optional
    Ignored; TensorFlow has it.

Returns
-------
ndarray
    The result, with the shape of the input and the dtype of the arrays.

Raises
------
ValueError
    If a value, shape or size is wrong. The message names every wrong argument: what came, what was wanted.
TypeError
    If an argument has the wrong type, or an array a dtype that the operator does not take.
NotImplementedError
    If the windows pool the batch, or the channels in a way that the operator does not offer.
MemoryError
    If the result does not fit into memory.

See Also
--------
MaxPool : Maximum of each window.
MaxPoolV2 : Maximum of each window; window and stride are arrays.
MaxPoolGradV2 : Gradient of MaxPoolV2.
MaxPoolGradGrad : Second-order gradient of MaxPool: grad at the first cell of each window that equals orig_output.
MaxPoolGradGradV2 : Second-order gradient of MaxPoolV2.
MaxPoolWithArgmax : Maximum of each window and its flat position.
MaxPoolGradWithArgmax : Gradient of MaxPoolWithArgmax: grad added at the given positions.
MaxPoolGradGradWithArgmax : Second-order gradient of MaxPoolWithArgmax: grad at the given positions.

Notes
-----
    dx[j] = sum of g[i] over the windows i whose first largest cell is j

Windows: cut off at the edges of the input.

Dtypes: float16, bfloat16, float32, float64, int8, uint8, int16, uint16, int32, uint32, int64,
uint64. Layouts: NHWC, NCHW.

Against TensorFlow 2.21 on CPU: same bits, except:

- subnormals are kept, TensorFlow flushes them to zero
- a channel stride other than 1 with channel window 1 is a ValueError, TensorFlow ignores it
- dtypes and layouts without a CPU kernel in TensorFlow follow the nearest sibling that has one
- an empty output gives a gradient of zeros, TensorFlow returns uninitialised memory
- depthwise pooling has its gradients, TensorFlow refuses them
- floats in integer lists are a TypeError, TensorFlow truncates them
- integers of a list that the dtype of the list before it does not hold are refused, TensorFlow wraps them around

Examples
--------
>>> import numpy as np
>>> from poolgrad import raw_ops
>>> result = raw_ops.MaxPoolGrad(
...     orig_input=np.array([-2, 0, 5, 7, 6, 8, -8, 3, -7], np.float32).reshape(1, 3, 3, 1),
...     orig_output=np.array([7, 8, 7, 8], np.float32).reshape(1, 2, 2, 1),
...     grad=np.array([9, -8, -4, 4], np.float32).reshape(1, 2, 2, 1),
...     ksize=[1, 2, 2, 1],
...     strides=[1, 1, 1, 1],
...     padding='VALID',
... )
>>> result.shape, result.ravel().tolist()
((1, 3, 3, 1), [0.0, 0.0, 0.0, 5.0, 0.0, -4.0, 0.0, 0.0, 0.0])
""",
    "MaxPoolGradV2": """Gradient of MaxPoolV2.

Parameters
----------
orig_input : array_like, 4 dimensions
    The array that was pooled.
orig_output : array_like, 4 dimensions
    The result of the forward operator for `orig_input`.
grad : array_like, 4 dimensions
    The gradient of a loss with respect to the output of the forward operator.
ksize : sequence of 4 int, or an int32 vector
    Window size per dimension, in the order of `data_format`; 1 for the batch.
strides : sequence of 4 int, or an int32 vector
    Step between windows per dimension, in the order of `data_format`; 1 for the batch.
padding : {'SAME', 'VALID'}
    'VALID': only whole windows. 'SAME': a window per stride, cut off at the edges.
data_format : {'NHWC', 'NCHW'}, default 'NHWC'
    The order of the dimensions: batch N, height H, width W, channels C.
name : str, optional
    Ignored; TensorFlow has it.

Returns
-------
ndarray
    The result, with the shape of the input and the dtype of the arrays.

Raises
------
ValueError
    If a value, shape or size is wrong. The message names every wrong argument: what came, what was wanted.
TypeError
    If an argument has the wrong type, or an array a dtype that the operator does not take.
NotImplementedError
    If the windows pool the batch, or the channels in a way that the operator does not offer.
MemoryError
    If the result does not fit into memory.

See Also
--------
MaxPool : Maximum of each window.
MaxPoolV2 : Maximum of each window; window and stride are arrays.
MaxPoolGrad : Gradient of MaxPool: each output's gradient goes to the first maximum of its window.
MaxPoolGradGrad : Second-order gradient of MaxPool: grad at the first cell of each window that equals orig_output.
MaxPoolGradGradV2 : Second-order gradient of MaxPoolV2.
MaxPoolWithArgmax : Maximum of each window and its flat position.
MaxPoolGradWithArgmax : Gradient of MaxPoolWithArgmax: grad added at the given positions.
MaxPoolGradGradWithArgmax : Second-order gradient of MaxPoolWithArgmax: grad at the given positions.

Notes
-----
    dx[j] = sum of g[i] over the windows i whose first largest cell is j

Windows: cut off at the edges of the input.

Dtypes: float16, bfloat16, float32, float64, int8, uint8, int16, uint16, int32, uint32, int64,
uint64. Layouts: NHWC, NCHW.

Against TensorFlow 2.21 on CPU: same bits, except:

- subnormals are kept, TensorFlow flushes them to zero
- a channel stride other than 1 with channel window 1 is a ValueError, TensorFlow ignores it
- dtypes and layouts without a CPU kernel in TensorFlow follow the nearest sibling that has one
- an empty output gives a gradient of zeros, TensorFlow returns uninitialised memory
- depthwise pooling has its gradients, TensorFlow refuses them
- integers of a list that the dtype of the list before it does not hold are refused, TensorFlow wraps them around

Examples
--------
>>> import numpy as np
>>> from poolgrad import raw_ops
>>> result = raw_ops.MaxPoolGradV2(
...     orig_input=np.array([-2, 0, 5, 7, 6, 8, -8, 3, -7], np.float32).reshape(1, 3, 3, 1),
...     orig_output=np.array([7, 8, 7, 8], np.float32).reshape(1, 2, 2, 1),
...     grad=np.array([9, -8, -4, 4], np.float32).reshape(1, 2, 2, 1),
...     ksize=np.array([1, 2, 2, 1], np.int32),
...     strides=np.array([1, 1, 1, 1], np.int32),
...     padding='VALID',
... )
>>> result.shape, result.ravel().tolist()
((1, 3, 3, 1), [0.0, 0.0, 0.0, 5.0, 0.0, -4.0, 0.0, 0.0, 0.0])
""",
    "MaxPoolGradGrad": """Second-order gradient of MaxPool: grad at the first cell of each window that equals orig_output.

Parameters
----------
orig_input : array_like, 4 dimensions
    The array that was pooled.
orig_output : array_like, 4 dimensions
    The result of the forward operator for `orig_input`.
grad : array_like, 4 dimensions
    The gradient of a loss with respect to the first-order gradient; it has the shape of the input.
ksize : sequence of 4 int
    Window size per dimension, in the order of `data_format`; 1 for the batch.
strides : sequence of 4 int
    Step between windows per dimension, in the order of `data_format`; 1 for the batch.
padding : {'SAME', 'VALID'}
    'VALID': only whole windows. 'SAME': a window per stride, cut off at the edges.
data_format : {'NHWC', 'NCHW'}, default 'NHWC'
    The order of the dimensions: batch N, height H, width W, channels C.
name : str, optional
    Ignored; TensorFlow has it.

Returns
-------
ndarray
    The result, with the shape of the output and the dtype of the arrays.

Raises
------
ValueError
    If a value, shape or size is wrong. The message names every wrong argument: what came, what was wanted.
TypeError
    If an argument has the wrong type, or an array a dtype that the operator does not take.
NotImplementedError
    If the windows pool the batch, or the channels in a way that the operator does not offer.
MemoryError
    If the result does not fit into memory.

See Also
--------
MaxPool : Maximum of each window.
MaxPoolV2 : Maximum of each window; window and stride are arrays.
MaxPoolGrad : Gradient of MaxPool: each output's gradient goes to the first maximum of its window.
MaxPoolGradV2 : Gradient of MaxPoolV2.
MaxPoolGradGradV2 : Second-order gradient of MaxPoolV2.
MaxPoolWithArgmax : Maximum of each window and its flat position.
MaxPoolGradWithArgmax : Gradient of MaxPoolWithArgmax: grad added at the given positions.
MaxPoolGradGradWithArgmax : Second-order gradient of MaxPoolWithArgmax: grad at the given positions.

Notes
-----
    result[i] = v[j] at the first cell j of window i where x[j] = y[i], 0 if there is none

Windows: cut off at the edges of the input.

Dtypes: float16, bfloat16, float32, float64, int8, uint8, int16, uint16, int32, uint32, int64,
uint64. Layouts: NHWC, NCHW.

Against TensorFlow 2.21 on CPU: same bits, except:

- subnormals are kept, TensorFlow flushes them to zero
- a channel stride other than 1 with channel window 1 is a ValueError, TensorFlow ignores it
- dtypes and layouts without a CPU kernel in TensorFlow follow the nearest sibling that has one
- always computed, TensorFlow returns zeros in some graphs
- depthwise pooling has its gradients, TensorFlow refuses them
- floats in integer lists are a TypeError, TensorFlow truncates them
- integers of a list that the dtype of the list before it does not hold are refused, TensorFlow wraps them around

Examples
--------
>>> import numpy as np
>>> from poolgrad import raw_ops
>>> result = raw_ops.MaxPoolGradGrad(
...     orig_input=np.array([-2, 0, 5, 7, 6, 8, -8, 3, -7], np.float32).reshape(1, 3, 3, 1),
...     orig_output=np.array([7, 8, 7, 8], np.float32).reshape(1, 2, 2, 1),
...     grad=np.array([9, -8, -4, 4, 8, 6, -4, 3, -5], np.float32).reshape(1, 3, 3, 1),
...     ksize=[1, 2, 2, 1],
...     strides=[1, 1, 1, 1],
...     padding='VALID',
... )
>>> result.shape, result.ravel().tolist()
((1, 2, 2, 1), [4.0, 6.0, 4.0, 6.0])
""",
    "MaxPoolGradGradV2": """Second-order gradient of MaxPoolV2.

Parameters
----------
orig_input : array_like, 4 dimensions
    The array that was pooled.
orig_output : array_like, 4 dimensions
    The result of the forward operator for `orig_input`.
grad : array_like, 4 dimensions
    The gradient of a loss with respect to the first-order gradient; it has the shape of the input.
ksize : sequence of 4 int, or an int32 vector
    Window size per dimension, in the order of `data_format`; 1 for the batch.
strides : sequence of 4 int, or an int32 vector
    Step between windows per dimension, in the order of `data_format`; 1 for the batch.
padding : {'SAME', 'VALID'}
    'VALID': only whole windows. 'SAME': a window per stride, cut off at the edges.
data_format : {'NHWC', 'NCHW'}, default 'NHWC'
    The order of the dimensions: batch N, height H, width W, channels C.
name : str, optional
    Ignored; TensorFlow has it.

Returns
-------
ndarray
    The result, with the shape of the output and the dtype of the arrays.

Raises
------
ValueError
    If a value, shape or size is wrong. The message names every wrong argument: what came, what was wanted.
TypeError
    If an argument has the wrong type, or an array a dtype that the operator does not take.
NotImplementedError
    If the windows pool the batch, or the channels in a way that the operator does not offer.
MemoryError
    If the result does not fit into memory.

See Also
--------
MaxPool : Maximum of each window.
MaxPoolV2 : Maximum of each window; window and stride are arrays.
MaxPoolGrad : Gradient of MaxPool: each output's gradient goes to the first maximum of its window.
MaxPoolGradV2 : Gradient of MaxPoolV2.
MaxPoolGradGrad : Second-order gradient of MaxPool: grad at the first cell of each window that equals orig_output.
MaxPoolWithArgmax : Maximum of each window and its flat position.
MaxPoolGradWithArgmax : Gradient of MaxPoolWithArgmax: grad added at the given positions.
MaxPoolGradGradWithArgmax : Second-order gradient of MaxPoolWithArgmax: grad at the given positions.

Notes
-----
    result[i] = v[j] at the first cell j of window i where x[j] = y[i], 0 if there is none

Windows: cut off at the edges of the input.

Dtypes: float16, bfloat16, float32, float64, int8, uint8, int16, uint16, int32, uint32, int64,
uint64. Layouts: NHWC, NCHW.

Against TensorFlow 2.21 on CPU: same bits, except:

- subnormals are kept, TensorFlow flushes them to zero
- a channel stride other than 1 with channel window 1 is a ValueError, TensorFlow ignores it
- dtypes and layouts without a CPU kernel in TensorFlow follow the nearest sibling that has one
- always computed, TensorFlow returns zeros in some graphs
- depthwise pooling has its gradients, TensorFlow refuses them
- integers of a list that the dtype of the list before it does not hold are refused, TensorFlow wraps them around

Examples
--------
>>> import numpy as np
>>> from poolgrad import raw_ops
>>> result = raw_ops.MaxPoolGradGradV2(
...     orig_input=np.array([-2, 0, 5, 7, 6, 8, -8, 3, -7], np.float32).reshape(1, 3, 3, 1),
...     orig_output=np.array([7, 8, 7, 8], np.float32).reshape(1, 2, 2, 1),
...     grad=np.array([9, -8, -4, 4, 8, 6, -4, 3, -5], np.float32).reshape(1, 3, 3, 1),
...     ksize=np.array([1, 2, 2, 1], np.int32),
...     strides=np.array([1, 1, 1, 1], np.int32),
...     padding='VALID',
... )
>>> result.shape, result.ravel().tolist()
((1, 2, 2, 1), [4.0, 6.0, 4.0, 6.0])
""",
    "MaxPoolWithArgmax": """Maximum of each window and its flat position.

Parameters
----------
input : array_like, 4 dimensions
    The array to pool.
ksize : sequence of 4 int
    Window size per dimension, in the order of NHWC; 1 for the batch.
strides : sequence of 4 int
    Step between windows per dimension, in the order of NHWC; 1 for the batch.
padding : {'SAME', 'VALID'}
    'VALID': only whole windows. 'SAME': a window per stride, cut off at the edges.
Targmax : {'int32', 'int64'}, or a dtype, default 'int64'
    The dtype of the positions.
include_batch_in_index : bool, default False
    True: positions count from the first image. False: from the start of their own image.
name : str, optional
    Ignored; TensorFlow has it.

Returns
-------
output : ndarray
    The result, with the shape of the output and the dtype of the arrays.
argmax : ndarray
    Flat position of the first maximum of each window.

The results are the fields of a named tuple.

Raises
------
ValueError
    If a value, shape or size is wrong. The message names every wrong argument: what came, what was wanted.
TypeError
    If an argument has the wrong type, or an array a dtype that the operator does not take.
NotImplementedError
    If the windows pool the batch, or the channels in a way that the operator does not offer.
MemoryError
    If the result does not fit into memory.

See Also
--------
MaxPool : Maximum of each window.
MaxPoolV2 : Maximum of each window; window and stride are arrays.
MaxPoolGrad : Gradient of MaxPool: each output's gradient goes to the first maximum of its window.
MaxPoolGradV2 : Gradient of MaxPoolV2.
MaxPoolGradGrad : Second-order gradient of MaxPool: grad at the first cell of each window that equals orig_output.
MaxPoolGradGradV2 : Second-order gradient of MaxPoolV2.
MaxPoolGradWithArgmax : Gradient of MaxPoolWithArgmax: grad added at the given positions.
MaxPoolGradGradWithArgmax : Second-order gradient of MaxPoolWithArgmax: grad at the given positions.

Notes
-----
    y[i] = largest x[j] over the cells j of window i; argmax[i] = the flat position of the first such j

Windows: cut off at the edges of the input.

Dtypes: float16, bfloat16, float32, float64, int8, uint8, int16, uint16, int32, uint32, int64,
uint64. Layouts: NHWC.

Against TensorFlow 2.21 on CPU: same bits, except:

- subnormals are kept, TensorFlow flushes them to zero
- a channel stride other than 1 with channel window 1 is a ValueError, TensorFlow ignores it
- an empty array gives the empty (or zero) result of the computed shape, TensorFlow refuses it
- depthwise windows are a NotImplementedError, TensorFlow returns its input unpooled
- floats in integer lists are a TypeError, TensorFlow truncates them

Examples
--------
>>> import numpy as np
>>> from poolgrad import raw_ops
>>> result = raw_ops.MaxPoolWithArgmax(
...     input=np.array([-2, 0, 5, 7, 6, 8, -8, 3, -7], np.float32).reshape(1, 3, 3, 1),
...     ksize=[1, 2, 2, 1],
...     strides=[1, 1, 1, 1],
...     padding='VALID',
... )
>>> result.output.shape, result.output.ravel().tolist()
((1, 2, 2, 1), [7.0, 8.0, 7.0, 8.0])
>>> result.argmax.shape, result.argmax.ravel().tolist()
((1, 2, 2, 1), [3, 5, 3, 5])
""",
    "MaxPoolGradWithArgmax": """Gradient of MaxPoolWithArgmax: grad added at the given positions.

Parameters
----------
input : array_like, 4 dimensions
    The array that was pooled.
grad : array_like, 4 dimensions
    The gradient of a loss with respect to the output of the forward operator.
argmax : array_like, 4 dimensions
    Flat position of each maximum in its image, or in the batch if `include_batch_in_index`; int32
    or int64.
ksize : sequence of 4 int
    Window size per dimension, in the order of NHWC; 1 for the batch.
strides : sequence of 4 int
    Step between windows per dimension, in the order of NHWC; 1 for the batch.
padding : {'SAME', 'VALID'}
    'VALID': only whole windows. 'SAME': a window per stride, cut off at the edges.
include_batch_in_index : bool, default False
    True: positions count from the first image. False: from the start of their own image.
name : str, optional
    Ignored; TensorFlow has it.

Returns
-------
ndarray
    The result, with the shape of the input and the dtype of the arrays.

Raises
------
ValueError
    If a value, shape or size is wrong. The message names every wrong argument: what came, what was wanted.
TypeError
    If an argument has the wrong type, or an array a dtype that the operator does not take.
NotImplementedError
    If the windows pool the batch, or the channels in a way that the operator does not offer.
MemoryError
    If the result does not fit into memory.

See Also
--------
MaxPool : Maximum of each window.
MaxPoolV2 : Maximum of each window; window and stride are arrays.
MaxPoolGrad : Gradient of MaxPool: each output's gradient goes to the first maximum of its window.
MaxPoolGradV2 : Gradient of MaxPoolV2.
MaxPoolGradGrad : Second-order gradient of MaxPool: grad at the first cell of each window that equals orig_output.
MaxPoolGradGradV2 : Second-order gradient of MaxPoolV2.
MaxPoolWithArgmax : Maximum of each window and its flat position.
MaxPoolGradGradWithArgmax : Second-order gradient of MaxPoolWithArgmax: grad at the given positions.

Notes
-----
    dx[j] = sum of g[k] over the k with argmax[k] = j

Windows: cut off at the edges of the input.

Dtypes: float16, bfloat16, float32, float64, int8, uint8, int16, uint16, int32, uint32, int64,
uint64. Layouts: NHWC.

Against TensorFlow 2.21 on CPU: same bits, except:

- subnormals are kept, TensorFlow flushes them to zero
- a channel stride other than 1 with channel window 1 is a ValueError, TensorFlow ignores it
- dtypes and layouts without a CPU kernel in TensorFlow follow the nearest sibling that has one
- shapes and positions must fit exactly, TensorFlow accepts some that do not, or dies
- depthwise with spatial strides other than 1 is a ValueError, TensorFlow ignores the strides
- floats in integer lists are a TypeError, TensorFlow truncates them
- integers of a list that the dtype of the list before it does not hold are refused, TensorFlow wraps them around

Examples
--------
>>> import numpy as np
>>> from poolgrad import raw_ops
>>> result = raw_ops.MaxPoolGradWithArgmax(
...     input=np.array([-2, 0, 5, 7, 6, 8, -8, 3, -7], np.float32).reshape(1, 3, 3, 1),
...     grad=np.array([9, -8, -4, 4], np.float32).reshape(1, 2, 2, 1),
...     argmax=np.array([3, 5, 3, 5], np.int64).reshape(1, 2, 2, 1),
...     ksize=[1, 2, 2, 1],
...     strides=[1, 1, 1, 1],
...     padding='VALID',
... )
>>> result.shape, result.ravel().tolist()
((1, 3, 3, 1), [0.0, 0.0, 0.0, 5.0, 0.0, -4.0, 0.0, 0.0, 0.0])
""",
    "MaxPoolGradGradWithArgmax": """Second-order gradient of MaxPoolWithArgmax: grad at the given positions.

Parameters
----------
input : array_like, 4 dimensions
    The array that was pooled.
grad : array_like, 4 dimensions
    The gradient of a loss with respect to the first-order gradient; it has the shape of the input.
argmax : array_like, 4 dimensions
    Flat position of each maximum in its image, or in the batch if `include_batch_in_index`; int32
    or int64.
ksize : sequence of 4 int
    Window size per dimension, in the order of NHWC; 1 for the batch.
strides : sequence of 4 int
    Step between windows per dimension, in the order of NHWC; 1 for the batch.
padding : {'SAME', 'VALID'}
    'VALID': only whole windows. 'SAME': a window per stride, cut off at the edges.
include_batch_in_index : bool, default False
    True: positions count from the first image. False: from the start of their own image.
name : str, optional
    Ignored; TensorFlow has it.

Returns
-------
ndarray
    The result, with the shape of the output and the dtype of the arrays.

Raises
------
ValueError
    If a value, shape or size is wrong. The message names every wrong argument: what came, what was wanted.
TypeError
    If an argument has the wrong type, or an array a dtype that the operator does not take.
NotImplementedError
    If the windows pool the batch, or the channels in a way that the operator does not offer.
MemoryError
    If the result does not fit into memory.

See Also
--------
MaxPool : Maximum of each window.
MaxPoolV2 : Maximum of each window; window and stride are arrays.
MaxPoolGrad : Gradient of MaxPool: each output's gradient goes to the first maximum of its window.
MaxPoolGradV2 : Gradient of MaxPoolV2.
MaxPoolGradGrad : Second-order gradient of MaxPool: grad at the first cell of each window that equals orig_output.
MaxPoolGradGradV2 : Second-order gradient of MaxPoolV2.
MaxPoolWithArgmax : Maximum of each window and its flat position.
MaxPoolGradWithArgmax : Gradient of MaxPoolWithArgmax: grad added at the given positions.

Notes
-----
    result[k] = v[argmax[k]]

Windows: cut off at the edges of the input.

Dtypes: float16, bfloat16, float32, float64, int8, uint8, int16, uint16, int32, uint32, int64,
uint64. Layouts: NHWC.

Against TensorFlow 2.21 on CPU: same bits, except:

- computed on the CPU, where TensorFlow has no kernel
- a channel stride other than 1 with channel window 1 is a ValueError, TensorFlow ignores it
- shapes and positions must fit exactly, TensorFlow accepts some that do not, or dies
- floats in integer lists are a TypeError, TensorFlow truncates them
- integers of a list that the dtype of the list before it does not hold are refused, TensorFlow wraps them around

Examples
--------
>>> import numpy as np
>>> from poolgrad import raw_ops
>>> result = raw_ops.MaxPoolGradGradWithArgmax(
...     input=np.array([-2, 0, 5, 7, 6, 8, -8, 3, -7], np.float32).reshape(1, 3, 3, 1),
...     grad=np.array([9, -8, -4, 4, 8, 6, -4, 3, -5], np.float32).reshape(1, 3, 3, 1),
...     argmax=np.array([3, 5, 3, 5], np.int64).reshape(1, 2, 2, 1),
...     ksize=[1, 2, 2, 1],
...     strides=[1, 1, 1, 1],
...     padding='VALID',
... )
>>> result.shape, result.ravel().tolist()
((1, 2, 2, 1), [4.0, 6.0, 4.0, 6.0])
""",
    "MaxPool3D": """Maximum of each window, three dimensions.

Parameters
----------
input : array_like, 5 dimensions
    The array to pool.
ksize : sequence of 5 int
    Window size per dimension, in the order of `data_format`; 1 for the batch.
strides : sequence of 5 int
    Step between windows per dimension, in the order of `data_format`; 1 for the batch.
padding : {'SAME', 'VALID'}
    'VALID': only whole windows. 'SAME': a window per stride, cut off at the edges.
data_format : {'NDHWC', 'NCDHW'}, default 'NDHWC'
    The order of the dimensions: batch N, depth D, height H, width W, channels C.
name : str, optional
    Ignored; TensorFlow has it.

Returns
-------
ndarray
    The result, with the shape of the output and the dtype of the arrays.

Raises
------
ValueError
    If a value, shape or size is wrong. The message names every wrong argument: what came, what was wanted.
TypeError
    If an argument has the wrong type, or an array a dtype that the operator does not take.
NotImplementedError
    If the windows pool the batch, or the channels in a way that the operator does not offer.
MemoryError
    If the result does not fit into memory.

See Also
--------
MaxPool3DGrad : Gradient of MaxPool3D: to every cell of the window nearer than 1e-5 to orig_output.
MaxPool3DGradGrad : Second-order gradient of MaxPool3D.

Notes
-----
    y[i] = largest x[j] over the cells j of window i

Windows: cut off at the edges; under SAME with strides above the window, the first window begins
inside.

Dtypes: float16, bfloat16, float32, float64, int8, uint8, int16, uint16, int32, uint32, int64,
uint64. Layouts: NDHWC, NCDHW.

Against TensorFlow 2.21 on CPU: same bits, except:

- subnormals are kept, TensorFlow flushes them to zero
- dtypes and layouts without a CPU kernel in TensorFlow follow the nearest sibling that has one
- NaN and signed zero follow one rule at every position, TensorFlow's depends on vector lanes
- floats in integer lists are a TypeError, TensorFlow truncates them

Examples
--------
>>> import numpy as np
>>> from poolgrad import raw_ops
>>> result = raw_ops.MaxPool3D(
...     input=np.array([-2, 0, 5, 7, 6, 8, -8, 3, -7, 6, 7, 0, 9, -8, -4, 4, 8, 6], np.float32).reshape(1, 2, 3, 3, 1),
...     ksize=[1, 2, 2, 2, 1],
...     strides=[1, 1, 1, 1, 1],
...     padding='VALID',
... )
>>> result.shape, result.ravel().tolist()
((1, 1, 2, 2, 1), [9.0, 8.0, 9.0, 8.0])
""",
    "MaxPool3DGrad": """Gradient of MaxPool3D: to every cell of the window nearer than 1e-5 to orig_output.

Parameters
----------
orig_input : array_like, 5 dimensions
    The array that was pooled.
orig_output : array_like, 5 dimensions
    The result of the forward operator for `orig_input`.
grad : array_like, 5 dimensions
    The gradient of a loss with respect to the output of the forward operator.
ksize : sequence of 5 int
    Window size per dimension, in the order of `data_format`; 1 for the batch.
strides : sequence of 5 int
    Step between windows per dimension, in the order of `data_format`; 1 for the batch.
padding : {'SAME', 'VALID'}
    'VALID': only whole windows. 'SAME': a window per stride, cut off at the edges.
data_format : {'NDHWC', 'NCDHW'}, default 'NDHWC'
    The order of the dimensions: batch N, depth D, height H, width W, channels C.
name : str, optional
    Ignored; TensorFlow has it.

Returns
-------
ndarray
    The result, with the shape of the input and the dtype of the arrays.

Raises
------
ValueError
    If a value, shape or size is wrong. The message names every wrong argument: what came, what was wanted.
TypeError
    If an argument has the wrong type, or an array a dtype that the operator does not take.
NotImplementedError
    If the windows pool the batch, or the channels in a way that the operator does not offer.
MemoryError
    If the result does not fit into memory.

See Also
--------
MaxPool3D : Maximum of each window, three dimensions.
MaxPool3DGradGrad : Second-order gradient of MaxPool3D.

Notes
-----
    dx[j] = sum of g[i] over the windows i that cover j and have abs(x[j] - y[i]) < 1e-05

Windows: cut off at the edges; one longer than the input that begins before it reaches to the
input's end.

Dtypes: float16, bfloat16, float32, float64, int8, uint8, int16, uint16, int32, uint32, int64,
uint64. Layouts: NDHWC, NCDHW.

Against TensorFlow 2.21 on CPU: same bits, except:

- subnormals are kept, TensorFlow flushes them to zero
- dtypes and layouts without a CPU kernel in TensorFlow follow the nearest sibling that has one
- floats in integer lists are a TypeError, TensorFlow truncates them
- integers of a list that the dtype of the list before it does not hold are refused, TensorFlow wraps them around

Examples
--------
>>> import numpy as np
>>> from poolgrad import raw_ops
>>> result = raw_ops.MaxPool3DGrad(
...     orig_input=np.array([-2, 0, 5, 7, 6, 8, -8, 3, -7, 6, 7, 0, 9, -8, -4, 4, 8, 6], np.float32).reshape(1, 2, 3, 3, 1),
...     orig_output=np.array([9, 8, 9, 8], np.float32).reshape(1, 1, 2, 2, 1),
...     grad=np.array([3, -5, 0, -9], np.float32).reshape(1, 1, 2, 2, 1),
...     ksize=[1, 2, 2, 2, 1],
...     strides=[1, 1, 1, 1, 1],
...     padding='VALID',
... )
>>> result.shape, result.ravel().tolist()
((1, 2, 3, 3, 1), [0.0, 0.0, 0.0, 0.0, 0.0, -14.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, -9.0, 0.0])
""",
    "MaxPool3DGradGrad": """Second-order gradient of MaxPool3D.

Parameters
----------
orig_input : array_like, 5 dimensions
    The array that was pooled.
orig_output : array_like, 5 dimensions
    The result of the forward operator for `orig_input`.
grad : array_like, 5 dimensions
    The gradient of a loss with respect to the first-order gradient; it has the shape of the input.
ksize : sequence of 5 int
    Window size per dimension, in the order of `data_format`; 1 for the batch.
strides : sequence of 5 int
    Step between windows per dimension, in the order of `data_format`; 1 for the batch.
padding : {'SAME', 'VALID'}
    'VALID': only whole windows. 'SAME': a window per stride, cut off at the edges.
data_format : {'NDHWC', 'NCDHW'}, default 'NDHWC'
    The order of the dimensions: batch N, depth D, height H, width W, channels C.
name : str, optional
    Ignored; TensorFlow has it.

Returns
-------
ndarray
    The result, with the shape of the output and the dtype of the arrays.

Raises
------
ValueError
    If a value, shape or size is wrong. The message names every wrong argument: what came, what was wanted.
TypeError
    If an argument has the wrong type, or an array a dtype that the operator does not take.
NotImplementedError
    If the windows pool the batch, or the channels in a way that the operator does not offer.
MemoryError
    If the result does not fit into memory.

See Also
--------
MaxPool3D : Maximum of each window, three dimensions.
MaxPool3DGrad : Gradient of MaxPool3D: to every cell of the window nearer than 1e-5 to orig_output.

Notes
-----
    result[i] = v[j] at the first cell j of window i where x[j] = y[i], 0 if there is none

Windows: cut off at the edges of the input.

Dtypes: float16, bfloat16, float32, float64, int8, uint8, int16, uint16, int32, uint32, int64,
uint64. Layouts: NDHWC, NCDHW.

Against TensorFlow 2.21 on CPU: same bits, except:

- subnormals are kept, TensorFlow flushes them to zero
- dtypes and layouts without a CPU kernel in TensorFlow follow the nearest sibling that has one
- always computed, TensorFlow returns zeros in some graphs
- an empty array gives the empty (or zero) result of the computed shape, TensorFlow refuses it
- floats in integer lists are a TypeError, TensorFlow truncates them
- integers of a list that the dtype of the list before it does not hold are refused, TensorFlow wraps them around

Examples
--------
>>> import numpy as np
>>> from poolgrad import raw_ops
>>> result = raw_ops.MaxPool3DGradGrad(
...     orig_input=np.array([-2, 0, 5, 7, 6, 8, -8, 3, -7, 6, 7, 0, 9, -8, -4, 4, 8, 6], np.float32).reshape(1, 2, 3, 3, 1),
...     orig_output=np.array([9, 8, 9, 8], np.float32).reshape(1, 1, 2, 2, 1),
...     grad=np.array([3, -5, 0, -9, -7, 8, -5, -8, 4, -7, -5, -9, -5, 7, -6, -1, 0, -6], np.float32).reshape(1, 2, 3, 3, 1),
...     ksize=[1, 2, 2, 2, 1],
...     strides=[1, 1, 1, 1, 1],
...     padding='VALID',
... )
>>> result.shape, result.ravel().tolist()
((1, 1, 2, 2, 1), [-5.0, 8.0, -5.0, 8.0])
""",
    "FractionalMaxPool": """Maximum of windows whose lengths are drawn at random about a ratio.

Parameters
----------
value : array_like, 4 dimensions
    The array to pool.
pooling_ratio : sequence of 4 float
    Length of the input over length of the output, at least 1, per dimension; 1 for batch and
    channels.
pseudo_random : bool, default False
    True: draw one offset and space the borders evenly. False: put shorter and longer windows in
    random order.
overlapping : bool, default False
    True: a window also has the first cell of the next one.
deterministic : bool, default False
    True: draw from the seeds, or from seeds fixed in this process. False: draw anew in every call.
seed : int, default 0
    A 64-bit seed; needs `deterministic`. Both seeds 0: seeds drawn at random.
seed2 : int, default 0
    A 64-bit seed; needs `deterministic`. Both seeds 0: seeds drawn at random.
name : str, optional
    Ignored; TensorFlow has it.

Returns
-------
output : ndarray
    The result, with the shape of the output and the dtype of the arrays.
row_pooling_sequence : ndarray
    Borders of the windows along the height, int64.
col_pooling_sequence : ndarray
    Borders of the windows along the width, int64.

The results are the fields of a named tuple.

Raises
------
ValueError
    If a value, shape or size is wrong. The message names every wrong argument: what came, what was wanted.
TypeError
    If an argument has the wrong type, or an array a dtype that the operator does not take.
NotImplementedError
    If the windows pool the batch, or the channels in a way that the operator does not offer.
MemoryError
    If the result does not fit into memory.

See Also
--------
FractionalMaxPoolGrad : Gradient of FractionalMaxPool.

Notes
-----
    y[i] = largest x[j] over the cells j of window i

Windows: between neighbouring entries of a sequence; overlapping windows also have the cell at their
end.

Dtypes: float16, bfloat16, float32, float64, int8, uint8, int16, uint16, int32, uint32, int64,
uint64. Layouts: NHWC.

Against TensorFlow 2.21 on CPU: same bits, except:

- subnormals are kept, TensorFlow flushes them to zero
- dtypes and layouts without a CPU kernel in TensorFlow follow the nearest sibling that has one
- floats in integer lists are a TypeError, TensorFlow truncates them

Examples
--------
>>> import numpy as np
>>> from poolgrad import raw_ops
>>> result = raw_ops.FractionalMaxPool(
...     value=np.array([-2, 0, 5, 7, 6, 8, -8, 3, -7, 6, 7, 0, 9, -8, -4, 4, 8, 6, -4, 3, -5, 0, -9, -7, 8], np.float32).reshape(1, 5, 5, 1),
...     pooling_ratio=[1.0, 2.0, 2.0, 1.0],
...     overlapping=True,
...     deterministic=True,
...     seed=1,
... )
>>> result.output.shape, result.output.ravel().tolist()
((1, 2, 2, 1), [9.0, 9.0, 8.0, 8.0])
>>> result.row_pooling_sequence.shape, result.row_pooling_sequence.ravel().tolist()
((3,), [0, 3, 5])
>>> result.col_pooling_sequence.shape, result.col_pooling_sequence.ravel().tolist()
((3,), [0, 2, 5])
""",
    "FractionalMaxPoolGrad": """Gradient of FractionalMaxPool.

Parameters
----------
orig_input : array_like, 4 dimensions
    The array that was pooled.
orig_output : array_like, 4 dimensions
    The result of the forward operator for `orig_input`.
out_backprop : array_like, 4 dimensions
    The gradient of a loss with respect to the output of the forward operator.
row_pooling_sequence : array_like, int64 vector
    Borders of the windows, from 0 to the length of the dimension.
col_pooling_sequence : array_like, int64 vector
    Borders of the windows, from 0 to the length of the dimension.
overlapping : bool, default False
    True: a window also has the first cell of the next one.
name : str, optional
    Ignored; TensorFlow has it.

Returns
-------
ndarray
    The result, with the shape of the input and the dtype of the arrays.

Raises
------
ValueError
    If a value, shape or size is wrong. The message names every wrong argument: what came, what was wanted.
TypeError
    If an argument has the wrong type, or an array a dtype that the operator does not take.
NotImplementedError
    If the windows pool the batch, or the channels in a way that the operator does not offer.
MemoryError
    If the result does not fit into memory.

See Also
--------
FractionalMaxPool : Maximum of windows whose lengths are drawn at random about a ratio.

Notes
-----
    dx[j] = sum of g[i] over the windows i whose first largest cell is j

Windows: between neighbouring entries of a sequence; overlapping windows also have the cell at their
end.

Dtypes: float16, bfloat16, float32, float64, int8, uint8, int16, uint16, int32, uint32, int64,
uint64. Layouts: NHWC.

Against TensorFlow 2.21 on CPU: same bits, except:

- subnormals are kept, TensorFlow flushes them to zero
- dtypes and layouts without a CPU kernel in TensorFlow follow the nearest sibling that has one
- shapes and positions must fit exactly, TensorFlow accepts some that do not, or dies
- sequences are checked value by value: strictly increasing, inside 0 to n, ending at n or n - 1, one entry more than cells
- whatever FractionalMaxPool returned is accepted, NaN and -inf included, TensorFlow refuses some of it
- integers of a list that the dtype of the list before it does not hold are refused, TensorFlow wraps them around

Examples
--------
>>> import numpy as np
>>> from poolgrad import raw_ops
>>> result = raw_ops.FractionalMaxPoolGrad(
...     orig_input=np.array([-2, 0, 5, 7, 6, 8, -8, 3, -7, 6, 7, 0, 9, -8, -4, 4, 8, 6, -4, 3, -5, 0, -9, -7, 8], np.float32).reshape(1, 5, 5, 1),
...     orig_output=np.array([9, 9, 8, 8], np.float32).reshape(1, 2, 2, 1),
...     out_backprop=np.array([4, -7, -5, -9], np.float32).reshape(1, 2, 2, 1),
...     row_pooling_sequence=np.array([0, 3, 5], np.int64),
...     col_pooling_sequence=np.array([0, 2, 5], np.int64),
...     overlapping=True,
... )
>>> result.shape, result.ravel().tolist()
((1, 5, 5, 1), [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -3.0, 0.0, 0.0, 0.0, -5.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -9.0])
""",
    "FractionalAvgPool": """Mean of windows whose lengths are drawn at random about a ratio.

Parameters
----------
value : array_like, 4 dimensions
    The array to pool.
pooling_ratio : sequence of 4 float
    Length of the input over length of the output, at least 1, per dimension; 1 for batch and
    channels.
pseudo_random : bool, default False
    True: draw one offset and space the borders evenly. False: put shorter and longer windows in
    random order.
overlapping : bool, default False
    True: a window also has the first cell of the next one.
deterministic : bool, default False
    True: draw from the seeds, or from seeds fixed in this process. False: draw anew in every call.
seed : int, default 0
    A 64-bit seed; needs `deterministic`. Both seeds 0: seeds drawn at random.
seed2 : int, default 0
    A 64-bit seed; needs `deterministic`. Both seeds 0: seeds drawn at random.
name : str, optional
    Ignored; TensorFlow has it.

Returns
-------
output : ndarray
    The result, with the shape of the output and the dtype of the arrays.
row_pooling_sequence : ndarray
    Borders of the windows along the height, int64.
col_pooling_sequence : ndarray
    Borders of the windows along the width, int64.

The results are the fields of a named tuple.

Raises
------
ValueError
    If a value, shape or size is wrong. The message names every wrong argument: what came, what was wanted.
TypeError
    If an argument has the wrong type, or an array a dtype that the operator does not take.
NotImplementedError
    If the windows pool the batch, or the channels in a way that the operator does not offer.
MemoryError
    If the result does not fit into memory.

See Also
--------
FractionalAvgPoolGrad : Gradient of FractionalAvgPool.

Notes
-----
    y[i] = sum of x[j] over the cells j of window i, divided by their number

Windows: between neighbouring entries of a sequence; overlapping windows also have the cell at their
end.

Dtypes: float16, bfloat16, float32, float64, int32, int64. Layouts: NHWC.

Against TensorFlow 2.21 on CPU: same bits, except:

- subnormals are kept, TensorFlow flushes them to zero
- dtypes and layouts without a CPU kernel in TensorFlow follow the nearest sibling that has one
- float16 and bfloat16 exist; sums round at each step, as in AvgPool
- floats in integer lists are a TypeError, TensorFlow truncates them

Examples
--------
>>> import numpy as np
>>> from poolgrad import raw_ops
>>> result = raw_ops.FractionalAvgPool(
...     value=np.array([-2, 0, 5, 7, 6, 8, -8, 3, -7, 6, 7, 0, 9, -8, -4, 4, 8, 6, -4, 3, -5, 0, -9, -7, 8], np.float32).reshape(1, 5, 5, 1),
...     pooling_ratio=[1.0, 2.0, 2.0, 1.0],
...     overlapping=True,
...     deterministic=True,
...     seed=1,
... )
>>> result.output.shape, result.output.ravel().tolist()
((1, 2, 2, 1), [3.3333332538604736, 1.8333333730697632, 0.6666666865348816, -0.5])
>>> result.row_pooling_sequence.shape, result.row_pooling_sequence.ravel().tolist()
((3,), [0, 3, 5])
>>> result.col_pooling_sequence.shape, result.col_pooling_sequence.ravel().tolist()
((3,), [0, 2, 5])
""",
    "FractionalAvgPoolGrad": """Gradient of FractionalAvgPool.

Parameters
----------
orig_input_tensor_shape : array_like, int64 vector
    The shape of the array that was pooled.
out_backprop : array_like, 4 dimensions
    The gradient of a loss with respect to the output of the forward operator.
row_pooling_sequence : array_like, int64 vector
    Borders of the windows, from 0 to the length of the dimension.
col_pooling_sequence : array_like, int64 vector
    Borders of the windows, from 0 to the length of the dimension.
overlapping : bool, default False
    True: a window also has the first cell of the next one.
name : str, optional
    Ignored; TensorFlow has it.

Returns
-------
ndarray
    The result, with the shape of the input and the dtype of the arrays.

Raises
------
ValueError
    If a value, shape or size is wrong. The message names every wrong argument: what came, what was wanted.
TypeError
    If an argument has the wrong type, or an array a dtype that the operator does not take.
NotImplementedError
    If the windows pool the batch, or the channels in a way that the operator does not offer.
MemoryError
    If the result does not fit into memory.

See Also
--------
FractionalAvgPool : Mean of windows whose lengths are drawn at random about a ratio.

Notes
-----
    dx[j] = sum of g[i] / (number of cells of window i) over the windows i that cover j

Windows: between neighbouring entries of a sequence; overlapping windows also have the cell at their
end.

Dtypes: float16, bfloat16, float32, float64, int32, int64. Layouts: NHWC.

Against TensorFlow 2.21 on CPU: same bits, except:

- subnormals are kept, TensorFlow flushes them to zero
- dtypes and layouts without a CPU kernel in TensorFlow follow the nearest sibling that has one
- shapes and positions must fit exactly, TensorFlow accepts some that do not, or dies
- sequences are checked value by value: strictly increasing, inside 0 to n, ending at n or n - 1, one entry more than cells

Examples
--------
>>> import numpy as np
>>> from poolgrad import raw_ops
>>> result = raw_ops.FractionalAvgPoolGrad(
...     orig_input_tensor_shape=np.array([1, 5, 5, 1], np.int64),
...     out_backprop=np.array([4, -7, -5, -9], np.float32).reshape(1, 2, 2, 1),
...     row_pooling_sequence=np.array([0, 3, 5], np.int64),
...     col_pooling_sequence=np.array([0, 2, 5], np.int64),
...     overlapping=True,
... )
>>> result.shape, result.ravel().tolist()
((1, 5, 5, 1), [0.3333333432674408, 0.3333333432674408, -0.25, -0.5833333134651184, -0.5833333134651184, 0.3333333432674408, 0.3333333432674408, -0.25, -0.5833333134651184, -0.5833333134651184, 0.3333333432674408, 0.3333333432674408, -0.25, -0.5833333134651184, -0.5833333134651184, -0.5, -0.5, -2.5833332538604736, -2.0833332538604736, -2.0833332538604736, -0.8333333134651184, -0.8333333134651184, -2.3333332538604736, -1.5, -1.5])
""",
    "QuantizedAvgPool": """Mean of each window of quantised codes, toward zero.

Parameters
----------
input : array_like, 4 dimensions
    The array to pool.
min_input : array_like, float32 scalar
    The number that the smallest code stands for; returned unchanged.
max_input : array_like, float32 scalar
    The number that the largest code stands for; returned unchanged.
ksize : sequence of 4 int
    Window size per dimension, in the order of NHWC; 1 for the batch.
strides : sequence of 4 int
    Step between windows per dimension, in the order of NHWC; 1 for the batch.
padding : {'SAME', 'VALID'}
    'VALID': only whole windows. 'SAME': a window per stride, cut off at the edges.
name : str, optional
    Ignored; TensorFlow has it.

Returns
-------
output : ndarray
    The result, with the shape of the output and the dtype of the arrays.
min_output : ndarray
    `min_input`, unchanged.
max_output : ndarray
    `max_input`, unchanged.

The results are the fields of a named tuple.

Raises
------
ValueError
    If a value, shape or size is wrong. The message names every wrong argument: what came, what was wanted.
TypeError
    If an argument has the wrong type, or an array a dtype that the operator does not take.
NotImplementedError
    If the windows pool the batch, or the channels in a way that the operator does not offer.
MemoryError
    If the result does not fit into memory.

Notes
-----
    y[i] = sum of x[j] over the cells j of window i, divided by their number

Windows: cut off at the edges of the input.

Dtypes: int8, uint8, int16, uint16, int32. Layouts: NHWC.

Against TensorFlow 2.21 on CPU: same bits, except:

- a channel stride other than 1 with channel window 1 is a ValueError, TensorFlow ignores it
- dtypes and layouts without a CPU kernel in TensorFlow follow the nearest sibling that has one
- shapes and positions must fit exactly, TensorFlow accepts some that do not, or dies
- floats in integer lists are a TypeError, TensorFlow truncates them

Examples
--------
>>> import numpy as np
>>> from poolgrad import raw_ops
>>> result = raw_ops.QuantizedAvgPool(
...     input=np.array([7, 9, 14, 16, 15, 17, 1, 12, 2], np.uint8).reshape(1, 3, 3, 1),
...     min_input=np.array(-1.0, np.float32),
...     max_input=np.array(1.0, np.float32),
...     ksize=[1, 2, 2, 1],
...     strides=[1, 1, 1, 1],
...     padding='VALID',
... )
>>> result.output.shape, result.output.ravel().tolist()
((1, 2, 2, 1), [11, 13, 11, 11])
>>> result.min_output.shape, result.min_output.ravel().tolist()
((), [-1.0])
>>> result.max_output.shape, result.max_output.ravel().tolist()
((), [1.0])
""",
    "QuantizedMaxPool": """Maximum of each window of quantised codes.

Parameters
----------
input : array_like, 4 dimensions
    The array to pool.
min_input : array_like, float32 scalar
    The number that the smallest code stands for; returned unchanged.
max_input : array_like, float32 scalar
    The number that the largest code stands for; returned unchanged.
ksize : sequence of 4 int
    Window size per dimension, in the order of NHWC; 1 for the batch.
strides : sequence of 4 int
    Step between windows per dimension, in the order of NHWC; 1 for the batch.
padding : {'SAME', 'VALID'}
    'VALID': only whole windows. 'SAME': a window per stride, cut off at the edges.
name : str, optional
    Ignored; TensorFlow has it.

Returns
-------
output : ndarray
    The result, with the shape of the output and the dtype of the arrays.
min_output : ndarray
    `min_input`, unchanged.
max_output : ndarray
    `max_input`, unchanged.

The results are the fields of a named tuple.

Raises
------
ValueError
    If a value, shape or size is wrong. The message names every wrong argument: what came, what was wanted.
TypeError
    If an argument has the wrong type, or an array a dtype that the operator does not take.
NotImplementedError
    If the windows pool the batch, or the channels in a way that the operator does not offer.
MemoryError
    If the result does not fit into memory.

Notes
-----
    y[i] = largest x[j] over the cells j of window i

Windows: cut off at the edges of the input.

Dtypes: int8, uint8, int16, uint16, int32. Layouts: NHWC.

Against TensorFlow 2.21 on CPU: same bits, except:

- a channel stride other than 1 with channel window 1 is a ValueError, TensorFlow ignores it
- dtypes and layouts without a CPU kernel in TensorFlow follow the nearest sibling that has one
- depthwise with spatial strides other than 1 is a ValueError, TensorFlow ignores the strides
- floats in integer lists are a TypeError, TensorFlow truncates them

Examples
--------
>>> import numpy as np
>>> from poolgrad import raw_ops
>>> result = raw_ops.QuantizedMaxPool(
...     input=np.array([7, 9, 14, 16, 15, 17, 1, 12, 2], np.uint8).reshape(1, 3, 3, 1),
...     min_input=np.array(-1.0, np.float32),
...     max_input=np.array(1.0, np.float32),
...     ksize=[1, 2, 2, 1],
...     strides=[1, 1, 1, 1],
...     padding='VALID',
... )
>>> result.output.shape, result.output.ravel().tolist()
((1, 2, 2, 1), [16, 17, 16, 17])
>>> result.min_output.shape, result.min_output.ravel().tolist()
((), [-1.0])
>>> result.max_output.shape, result.max_output.ravel().tolist()
((), [1.0])
""",
}
