"""Trains, saves and loads a small network of all layers under the backend that is named, and prints what came out as JSON."""

import json
import os
import sys
import tempfile

os.environ["KERAS_BACKEND"] = sys.argv[1]
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

import poolgrad.keras as pk


def network() -> keras.Model:
    """Return a network with every kind of layer; taps bypass the middle."""
    x = keras.Input((12, 11, 3))
    h = keras.layers.Conv2D(4, 3, padding="same", activation="relu")(x)
    h = pk.FractionalMaxPooling2D((1.5, 1.4), seed=3)(h)
    y, taps = pk.MaxPoolingWithTaps(3, 2, padding="same")(h)
    back = pk.MaxUnpooling(3, 2, padding="same", size=(8, 7))(y, taps)
    h = keras.layers.Concatenate()([h, back])
    h = pk.FractionalAveragePooling2D(size=(5, 4), overlapping=True, pseudo_random=True, seed=4)(h)
    model = keras.Model(x, keras.layers.Dense(2)(keras.layers.Flatten()(h)))
    rng = np.random.default_rng(5)
    model.set_weights(
        [rng.standard_normal(w.shape).astype("f") / 8 if w.dtype == "float32" else w for w in model.get_weights()]
    )
    return model


def ranks() -> dict[str, object]:
    """Return the values of every fractional layer in both orders of axes, in training; other backends must give the same."""
    found: dict[str, object] = {}
    for kind in ("Max", "Average"):
        for rank in (1, 2, 3):
            x = (
                np.random.default_rng(rank)
                .permutation(np.arange(2 * 7**rank * 2.0))
                .reshape(2, *[7] * rank, 2)
                .astype("f")
            )
            layer = getattr(pk, f"Fractional{kind}Pooling{rank}D")
            last = layer(1.6, seed=9, data_format="channels_last")
            first = layer.from_config({**last.get_config(), "data_format": "channels_first"})
            moved = np.moveaxis(x, -1, 1).copy()
            y = [np.asarray(keras.ops.convert_to_numpy(last(x, training=True))) for _ in range(2)]
            z = np.asarray(keras.ops.convert_to_numpy(first(moved, training=True)))
            assert y[0].shape == last.compute_output_shape(x.shape), (y[0].shape, last.compute_output_shape(x.shape))
            assert z.shape == first.compute_output_shape(moved.shape)
            assert np.array_equal(np.moveaxis(z, 1, -1), y[0])
            found[f"{kind}{rank}"] = [a.tolist() for a in y]
    return found


def main() -> None:
    """Print the loss curve, the predictions of the loaded model, and the layers' values."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20, 12, 11, 3)).astype("f")
    model = network()
    model.compile(keras.optimizers.SGD(0.02), "mse")
    losses = model.fit(x, x[:, :2, 0, 0], batch_size=8, epochs=3, shuffle=False, verbose=0).history["loss"]
    before = model.predict(x, verbose=0)
    with tempfile.TemporaryDirectory() as folder:
        model.save(os.path.join(folder, "model.keras"))
        after = keras.saving.load_model(os.path.join(folder, "model.keras")).predict(x, verbose=0)
    print(json.dumps({"losses": losses, "same": bool(np.array_equal(before, after)), "ranks": ranks()}))


if __name__ == "__main__":
    main()
