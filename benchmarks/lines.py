"""Read problem lines: one pooling problem per line of text."""

from __future__ import annotations

from typing import Any

DTYPES = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "i8": "int8", "u8": "uint8",
    "i16": "int16", "u16": "uint16", "i32": "int32", "u32": "uint32", "i64": "int64", "u64": "uint64",
}  # fmt: skip
STEMS = {"max": "MaxPool", "avg": "AvgPool", "fmax": "FractionalMaxPool", "favg": "FractionalAvgPool"}
LAYOUTS = {4: ("nhwc", "nchw"), 5: ("ndhwc", "ncdhw")}
FLAGS = ("grad", "gradgrad", "overlapping")
KEYS = ("x", "k", "s", "pad", "ratio", "seed")


def parse(line: str) -> dict[str, Any]:
    """Return the workload entry of a problem line.

    >>> entry = parse("fmax f32 nhwc x=1x9x9x5 ratio=1.5x1.5 grad overlapping  # by hand")
    >>> entry["kinds"], entry["pooling_ratio"], entry["overlapping"]
    (['FractionalMaxPoolGrad'], [1.0, 1.5, 1.5, 1.0], [True])
    """
    words = line.split("#")[0].split()
    settings = dict(word.split("=", 1) for word in words if "=" in word)
    flags = [word for word in words if "=" not in word]
    _judge(line, flags, settings)
    try:
        return _entry(flags, settings)
    except ValueError as error:
        raise ValueError(f"problem line: got {line!r} ({error}), wanted numbers with an x between them") from None


def _judge(line: str, flags: list[str], settings: dict[str, str]) -> None:
    """Refuse a line whose words describe no problem."""
    unknown = [w for w in flags[3:] if w not in FLAGS] + [key for key in settings if key not in KEYS]
    if unknown:
        wanted = f"one of {', '.join(FLAGS)}, or a setting of {', '.join(KEYS)}"
        raise ValueError(f"problem line: got {unknown[0]!r} in {line!r}, wanted {wanted}")
    needed = ("x", "ratio") if flags and flags[0].startswith("f") else ("x", "k")
    known = len(flags) > 2 and flags[0] in STEMS and flags[1] in DTYPES
    if not known or any(key not in settings for key in needed):
        wanted = "family dtype layout x=… k=… (or ratio=…), such as max f32 nhwc x=2x9x9x5 k=3x3 s=2x2 pad=same grad"
        raise ValueError(f"problem line: got {line!r}, wanted {wanted}")
    rank = settings["x"].count("x") + 1
    axes = settings[needed[1]].count("x") + 1
    if flags[2] not in LAYOUTS.get(rank, ()) or axes != rank - 2:
        wanted = f"{rank} dimensions as one of {', '.join(LAYOUTS.get(rank, ('nhwc', 'ndhwc')))}, and two fewer windows"
        raise ValueError(f"problem line: got {line!r}, wanted {wanted}")


def _sizes(text: str) -> list[int]:
    return [int(word) for word in text.split("x")]


def _entry(flags: list[str], settings: dict[str, str]) -> dict[str, Any]:
    """Turn the words into a workload's fields, x with channels last."""
    x = _sizes(settings["x"])
    x = [x[0], *x[2:], x[1]] if flags[2][1] == "c" else x
    order = "GradGrad" if "gradgrad" in flags else "Grad" if "grad" in flags else ""
    entry: dict[str, Any] = {
        "kinds": [STEMS[flags[0]] + ("3D" if len(x) == 5 else "") + order],
        "layouts": [flags[2].upper()],
        "dtypes": [DTYPES[flags[1]]],
        "x": x,
    }
    name = "x".join(map(str, x))
    if flags[0].startswith("f"):
        seed, _, seed2 = settings.get("seed", "7,11").partition(",")
        ratio = [1.0, *(float(word) for word in settings["ratio"].split("x")), 1.0]
        entry |= {"id": f"{name}_r{settings['ratio']}", "pooling_ratio": ratio, "overlapping": ["overlapping" in flags]}
        return entry | {"seed": int(seed), "seed2": int(seed2 or 0)}
    k, s = settings["k"], settings.get("s", settings["k"])
    entry |= {"id": f"{name}_k{k}_s{s}", "ksize": _sizes(k), "strides": _sizes(s)}
    return entry | {"padding": settings.get("pad", "valid").upper()}
