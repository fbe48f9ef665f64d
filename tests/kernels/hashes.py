"""Print a digest of every op's results on every dtype: the lines are the same at every instruction set."""

import hashlib

import numpy as np
from geometry import cases, large
from support import FAST, Case, arguments, outputs

import poolgrad
from poolgrad import _core
from poolgrad._ops.table import OPS


def digest(results: list[np.ndarray]) -> str:
    """Return a digest of bits, all NaN made one."""
    total = hashlib.sha256()
    for array in results:
        raw = array.copy()
        if raw.dtype.kind not in "iu":
            raw[raw != raw] = np.nan
        total.update(raw.tobytes())
    return total.hexdigest()[:16]


def chosen(name: str, dtype: str) -> list[Case]:
    """Return all small cases with wild data, and one large case in which several threads take part."""
    return cases(name, dtype, "wild") + large(name, dtype)[:1]


if __name__ == "__main__":
    print("level", poolgrad.config()["isa"])
    for name, op in OPS.items():
        for dtype in op.dtypes:
            for k, case in enumerate(chosen(name, dtype)):
                _core.go_far_from(-(k % 2))
                print(digest(outputs(FAST[name](**arguments(case)))), repr(case))
