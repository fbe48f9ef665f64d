"""Problem lines: one pooling problem in one line of text."""

from __future__ import annotations

from typing import Any

DTYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "i8": "int8", "u8": "uint8",
          "i16": "int16", "u16": "uint16", "i32": "int32", "u32": "uint32", "i64": "int64", "u64": "uint64"}  # fmt: skip
STEMS = {"max": "MaxPool", "avg": "AvgPool", "fmax": "FractionalMaxPool", "favg": "FractionalAvgPool"}
FLAGS = ("grad", "gradgrad", "overlapping")


def _sizes(text: str) -> list[int]:
    return [int(word) for word in text.split("x")]


def parse(line: str) -> dict[str, Any]:
    """The entry of a workload file that a problem line stands for.

    >>> entry = parse("fmax f32 nhwc x=1x9x9x5 ratio=1.5x1.5 grad overlapping  # by hand")
    >>> entry["kinds"], entry["pooling_ratio"], entry["overlapping"]
    (['FractionalMaxPoolGrad'], [1.0, 1.5, 1.5, 1.0], [True])
    """
    words = line.split("#")[0].split()
    settings = dict(word.split("=", 1) for word in words if "=" in word)
    flags = [word for word in words if "=" not in word]
    if len(flags) < 3 or flags[0] not in STEMS or flags[1] not in DTYPES or "x" not in settings:
        wanted = "family dtype layout x=… k=… s=… pad=… [grad|gradgrad], such as max f32 nhwc x=2x9x9x5 k=3x3 s=2x2 pad=same"
        raise ValueError(f"problem line: got {line!r}, wanted {wanted}")
    unknown = [word for word in flags[3:] if word not in FLAGS] + [key for key in settings if key not in ("x", "k", "s", "pad", "ratio", "seed")]
    if unknown:
        raise ValueError(f"problem line: got {unknown[0]!r} in {line!r}, wanted one of {', '.join(FLAGS)} or x, k, s, pad, ratio, seed")
    x = _sizes(settings["x"])
    return _entry(flags, settings, [x[0], *x[2:], x[1]] if flags[2].upper()[1] == "C" else x)


def _entry(flags: list[str], settings: dict[str, str], x: list[int]) -> dict[str, Any]:
    """The words as a workload's fields; x has its channels last by now."""
    order = "GradGrad" if "gradgrad" in flags else "Grad" if "grad" in flags else ""
    kind = STEMS[flags[0]] + ("3D" if len(x) == 5 else "") + order
    entry = {"id": "x".join(map(str, x)), "kinds": [kind], "layouts": [flags[2].upper()], "dtypes": [DTYPES[flags[1]]], "x": x}
    if flags[0].startswith("f"):
        seed, _, seed2 = settings.get("seed", "7,11").partition(",")
        ratio = [float(word) for word in settings["ratio"].split("x")]
        return {**entry, "pooling_ratio": [1.0, *ratio, 1.0], "overlapping": ["overlapping" in flags], "seed": int(seed), "seed2": int(seed2 or 0)}
    ksize = _sizes(settings["k"])
    return {**entry, "ksize": ksize, "strides": _sizes(settings.get("s", settings["k"])), "padding": settings.get("pad", "valid").upper()}
