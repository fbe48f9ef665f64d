"""Print one hash per op and per pool, whatever the threads, the instruction set, the memory layout, the entry point and the run.

    python tools/bits.py                  # every op, pool and dtype: some minutes
    python tools/bits.py --quick          # two dtypes an op, each setting against the plainest: what `make test` runs
    python tools/bits.py AvgPool choose max_pool   # these ops, verbs and pools
    python tools/bits.py --write          # the table goes into docs/bits.md, with date and machine

A row's hash covers the op's results on all its dtypes and geometries. All NaN count as one. The verbs that no op reaches have
rows of their own, for the layouts that verbs take. The row of a pool covers its values and derivatives by every entry point:
`pg.*`, its operators, `raw_ops`, and the adapters whose frameworks are installed. It fails if a row has two hashes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(ROOT / "tools")]

import bits_entries as entries  # noqa: E402
from geometry import large  # noqa: E402
from support import FAST, Case, arguments, draw, outputs, rng_of  # noqa: E402

import poolgrad  # noqa: E402
from poolgrad import _core, windows  # noqa: E402
from poolgrad._kernels import native  # noqa: E402
from poolgrad._ops.semantics import Mean, Share  # noqa: E402
from poolgrad._ops.table import ARRAYS, FLOATS, OPS, REALS  # noqa: E402
from poolgrad.windows import Plan  # noqa: E402

PAGE = ROOT / "docs" / "bits.md"
HEAD = """# The same bits

One hash per op over threads, instruction sets, memory layouts and runs, by `python tools/bits.py --write` on {date}, {machine}.
A hash covers the op's results on all its dtypes and geometries, special numbers included. The rows from `choose` on are verbs that no
op reaches; they take arrays that are contiguous already. The rows of pools, from `max_pool` on, cover values and derivatives by every
entry point: `pg.*`, its operators, `raw_ops` for `max_pool`, and the adapters of the frameworks that are installed.
"""
THREADS = (1, 2, 3, 7, 64)
TAKEN = ("C", "one element on", "read-only")  # by verbs, which see what the ops have made contiguous
RUNS = 2
Array = np.ndarray
Calls = Callable[[Callable[[Array], Array]], list[Callable[[], Any]]]


def shifted(a: Array, by: int) -> Array:
    """Return the same elements, this many bytes after a multiple of 64."""
    memory = np.zeros(a.nbytes + 64 + by, np.uint8)
    begin = -memory.ctypes.data % 64 + by
    there = memory[begin : begin + a.nbytes].view(a.dtype).reshape(a.shape)
    there[...] = a
    return there


def strided(a: Array) -> Array:
    """Return the elements as every second one of a wider array's last axis."""
    wide = np.zeros((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)
    wide[..., ::2] = a
    return wide[..., ::2]


def backwards(a: Array) -> Array:
    """Return the elements with negative strides along all axes."""
    flip = (slice(None, None, -1),) * a.ndim
    return np.ascontiguousarray(a[flip])[flip]


def swapped(a: Array) -> Array:
    """Return the elements in the other byte order; bfloat16 has only one."""
    return a if a.dtype.name == "bfloat16" else a.astype(a.dtype.newbyteorder("S"))


def readonly(a: Array) -> Array:
    """Return a read-only copy."""
    a = a.copy()
    a.flags.writeable = False
    return a


def window(a: Array) -> Array:
    """Return the elements as the middle of an array larger in every direction."""
    wide = np.zeros([n + 2 for n in a.shape], a.dtype)
    inside = wide[(slice(1, -1),) * a.ndim]
    inside[...] = a
    return inside


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "C": lambda a: shifted(a, 0),
    "Fortran": np.asfortranarray,
    "strided": strided,
    "backwards": backwards,
    "window": window,
    "one element on": lambda a: shifted(a, a.dtype.itemsize),
    "odd bytes": lambda a: shifted(a, 1),
    "swapped": swapped,
    "read-only": readonly,
}


def digest(results: list[Array]) -> bytes:
    """Hash the bits; treat all NaN as one."""
    total = hashlib.sha256()
    for array in results:
        if array.dtype.kind not in "iu":
            array = np.where(array != array, np.array(np.nan, array.dtype), array)
        total.update(np.ascontiguousarray(array).tobytes())
    return total.digest()


def cases(name: str, quick: bool) -> list[Case]:
    """Return cases with arrays large enough for several threads; if quick, two dtypes and half the geometries."""
    dtypes = OPS[name].dtypes
    chosen = dict.fromkeys(("float32" if "float32" in dtypes else dtypes[0], dtypes[-1])) if quick else dtypes
    made = [replace(case, data="wild") for dtype in chosen for case in large(name, dtype)]
    return made[::2] if quick else made


def counts(layout: str, quick: bool) -> tuple[int, ...]:
    """Return the thread counts for a layout: all or, if quick, three for layouts that reach the core as copies."""
    return THREADS if layout == "C" or not quick else (3,)


def calls(name: str, quick: bool) -> Calls:
    """Return a function that makes the op's calls on arrays in a given layout."""
    if name in VERBS:
        made = [(plan, arrays) for plan in plans() for arrays in cells(name, plan, quick)]
        return lambda lay: [partial(VERBS[name], plan, *map(lay, arrays)) for plan, arrays in made]
    given = [arguments(case) for case in cases(name, quick)]
    arrays = {p.name for p in OPS[name].params if p.kind in ARRAYS}
    return lambda lay: [
        partial(FAST[name], **{k: lay(v) if k in arrays and np.ndim(v) else v for k, v in args.items()})
        for args in given
    ]


def plans() -> list[Plan]:
    """Return plans large enough for several threads: long and short inner lanes, many images, long windows."""
    return [
        Plan((3, 61, 64, 24), {1: windows.sliding_axis(61, 3, 2, 1, 31), 2: windows.sliding_axis(64, 3, 2, 0, 32)}),
        Plan(
            (18, 127, 131, 1), {1: windows.sliding_axis(127, 3, 1, 1, 127), 2: windows.sliding_axis(131, 3, 1, 1, 131)}
        ),
        Plan((999, 18, 19, 1), {1: windows.sliding_axis(18, 2, 2, 0, 9), 2: windows.sliding_axis(19, 3, 2, 1, 10)}),
        Plan(
            (2, 150, 160, 8),
            {1: windows.sliding_axis(150, 21, 1, 10, 150), 2: windows.sliding_axis(160, 17, 1, 8, 160)},
        ),
    ]


def cells(name: str, plan: Plan, quick: bool) -> list[tuple[Array, ...]]:
    """Return a verb's arrays, for all its dtypes."""
    dtypes = FLOATS if name.split()[0] in ("fold", "spread") else REALS
    made = []
    for dtype in ("float32", dtypes[0]) if quick else dtypes:
        rng = rng_of(f"{plan.source}{dtype}")
        x, g = draw(rng, dtype, plan.source, "wild"), draw(rng, dtype, plan.dest, "wild")
        taps = native.choose(plan, x)[1] if name in ("pick", "place") else x
        of_verb = {"pick": (x, taps), "place": (g, taps), "spread whole": (g,)}
        made.append(of_verb.get(name, (x,)))
    return made


VERBS: dict[str, Callable[..., Any]] = {
    "choose": native.choose,
    "pick": native.pick,
    "place": native.place,
    "fold total": lambda plan, x: native.fold(plan, Mean.TOTAL, x),
    "fold once": lambda plan, x: native.fold(plan, Mean.ONCE, x),
    "spread whole": lambda plan, g: native.spread(plan, Share.WHOLE, False, g),
}


def measure(name: str, quick: bool, adapters: bool = True) -> dict[tuple[int, str, int], str]:
    """Return the hash by threads, layout and run, at this process's instruction set; a pool's layouts name the entry point too."""
    if name in entries.POOLS:
        return measure_pool(name, quick, adapters)
    made, found = calls(name, quick), {}
    for layout, lay in LAYOUTS.items():
        if name in VERBS and layout not in TAKEN:
            continue
        found.update(hashes(layout, layout, made(lay), quick))
    return found


def measure_pool(name: str, quick: bool, adapters: bool) -> dict[tuple[int, str, int], str]:
    """Return the hashes of a pool by all entry points."""
    made, found = entries.data(name, ("float32", "bfloat16") if quick else entries.DTYPES), {}
    for layout, lay in LAYOUTS.items():
        laid = [tuple(map(lay, arrays)) for arrays in made]
        for entry in entries.entries_of(name, adapters):
            if entries.takes(entry, layout, quick):
                run = [partial(entries.run, entry, name, arrays) for arrays in laid]
                found.update(hashes(f"{layout} by {entry}", layout, run, quick))
    return found


def hashes(label: str, layout: str, laid: list[Callable[[], Any]], quick: bool) -> dict[tuple[int, str, int], str]:
    """Return the hash of these calls by threads and run."""
    found = {}
    for threads in counts(layout, quick):
        with poolgrad.threads(threads):
            for run in range(RUNS if layout == "C" else 1):
                results = b"".join(digest(outputs(call())) for call in laid)
                found[threads, label, run] = hashlib.sha256(results).hexdigest()[:16]
    return found


def of_level(level: str, names: list[str], quick: bool, adapters: bool) -> dict[str, dict[tuple[int, str, int], str]]:
    """Return all hashes of an instruction set, from a process that uses it."""
    flags = [*(["--quick"] if quick else []), *([] if adapters else ["--no-adapters"])]
    words = [sys.executable, __file__, "--as-json", *flags, *names]
    done = subprocess.run(words, env={**os.environ, "POOLGRAD_ISA": level}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{level}: exit code {done.returncode}\n{done.stderr}")
    return {name: {tuple(key): value for key, value in rows} for name, rows in json.loads(done.stdout).items()}


def verdict(name: str, found: dict[tuple[str, int, str, int], str]) -> tuple[str, bool]:
    """Return the op's line of the table, and True if all hashes are equal."""
    by_hash: dict[str, list[tuple[str, int, str, int]]] = defaultdict(list)
    for key, value in found.items():
        by_hash[value].append(key)
    best = max(by_hash, key=lambda value: len(by_hash[value]))
    others = [key for value, keys in by_hash.items() if value != best for key in keys]
    line = f"| {name} | `{best}` | {len(found)} | {'one' if not others else f'{len(by_hash)} hashes'} |"
    if others:
        line += "".join(f"\n    differs: {isa}, {n} threads, {layout}, run {run}" for isa, n, layout, run in others[:8])
    return line, not others


def main(argv: list[str] | None = None) -> int:
    """Print the table; return 1 if an op has more than one hash."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="op")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--no-adapters", action="store_true", help="leave torch, JAX and autograd out")
    parser.add_argument("--as-json", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    names = options.names or [*OPS, *VERBS, *entries.POOLS]
    if options.as_json:
        found = {name: list(measure(name, options.quick, not options.no_adapters).items()) for name in names}
        json.dump(found, sys.stdout)
        return 0
    first = _core.isa_levels()[0]  # the quick run imports the frameworks once
    levels = {
        level: of_level(level, names, options.quick, not options.quick or level == first)
        for level in _core.isa_levels()
    }
    lines = [
        f"threads {', '.join(map(str, THREADS))}; levels {', '.join(levels)}; layouts {', '.join(LAYOUTS)}; C {RUNS} times",
        f"entry points of pools: {', '.join(entries.entries_of('max_pool', True))}",
        "",
        "| op | hash | settings | hashes |",
        "|---|---|---|---|",
    ]
    all_one = True
    for name in names:
        found = {(isa, *key): value for isa, rows in levels.items() for key, value in rows[name].items()}
        line, one = verdict(name, found)
        all_one &= one
        lines.append(line)
    lines += ["", "every op has one hash" if all_one else "AN OP HAS MORE THAN ONE HASH"]
    print("\n".join(lines))
    if options.write:
        PAGE.write_text(f"{HEAD.format(date=date.today(), machine=machine())}\n" + "\n".join(lines) + "\n")
    return 0 if all_one else 1


def machine() -> str:
    """Return the system's name of the processor."""
    path = Path("/proc/cpuinfo")
    text = path.read_text() if path.exists() else ""
    named = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return named[1] if named else platform.processor() or platform.machine()


if __name__ == "__main__":
    sys.exit(main())
