"""Keras 3 layers on the TensorFlow, JAX and torch backends: fractional pooling, max pooling with taps, unpooling.

>>> import numpy as np
>>> import poolgrad.keras as pool
>>> layer = pool.FractionalMaxPooling1D(1.5, seed=1)
>>> layer.compute_output_shape((None, 9, 4))
(None, 6, 4)
"""

from .layers import (
    FractionalAveragePooling1D,
    FractionalAveragePooling2D,
    FractionalAveragePooling3D,
    FractionalMaxPooling1D,
    FractionalMaxPooling2D,
    FractionalMaxPooling3D,
    MaxPoolingWithTaps,
    MaxUnpooling,
)

__all__ = [
    "FractionalAveragePooling1D",
    "FractionalAveragePooling2D",
    "FractionalAveragePooling3D",
    "FractionalMaxPooling1D",
    "FractionalMaxPooling2D",
    "FractionalMaxPooling3D",
    "MaxPoolingWithTaps",
    "MaxUnpooling",
]
