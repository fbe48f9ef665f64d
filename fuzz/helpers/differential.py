"""Compare random calls of one entry point with its peers. Each generator in this folder uses this module.

A generator supplies two functions: `draw(rng)` returns a random `Call`, `compare(call, counts)` returns "" if all peers agree, a text
that tells the difference, or a `Documented` difference with its reason. This module runs them in worker processes, shrinks a call that
fails, and prints a line that runs the small call alone:

    python fuzz/pools.py --call "Call('max_pool', x=Data('float32', (3,)), window=2)"
"""

from __future__ import annotations

import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import support
import workers
from memory_forms import MEMORY

Rng = np.random.Generator


def pick(rng: Rng, values: Any) -> Any:
    """Return one of the values."""
    return values[int(rng.integers(len(values)))]


# ---- a call that fits a line


@dataclass(frozen=True)
class Data:
    """An array that these few words determine: see `support.draw` for the kinds of data."""

    dtype: str
    shape: tuple[int, ...]
    kind: str = "ties"
    seed: int = 0
    memory: str = "plain"

    def __repr__(self) -> str:
        given = [repr(self.dtype), repr(self.shape)]
        given += [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self)[2:] if getattr(self, f.name) != f.default]
        return f"Data({', '.join(given)})"

    def array(self) -> np.ndarray:
        """Return the array."""
        with np.errstate(all="ignore"):
            made = support.draw(np.random.default_rng(self.seed), self.dtype, self.shape, self.kind)
            return MEMORY[self.memory](made)


class Call:
    """A function by its name, with the arguments that the generator understands."""

    def __init__(self, name: str, **args: Any) -> None:
        self.name, self.args = name, args

    def __repr__(self) -> str:
        return f"Call({', '.join([repr(self.name), *(f'{n}={v!r}' for n, v in self.args.items())])})"

    def but(self, **changed: Any) -> Call:
        """Return the call with other values for some arguments."""
        return Call(self.name, **{**self.args, **changed})

    def without(self, name: str) -> Call:
        """Return the call without one argument."""
        return Call(self.name, **{n: v for n, v in self.args.items() if n != name})


class Documented(str):
    """A difference that the documentation promises; the text is its reason."""


class Raised(str):
    """An error that escaped from a comparison, with its type and place."""

    where: tuple[Any, ...] = ()


# ---- shrinking


def _smaller_data(data: Data) -> Iterator[Data]:
    for i, n in enumerate(data.shape):
        for m in sorted({1, n // 2, n - 1}):
            if 0 < m < n:
                yield replace(data, shape=(*data.shape[:i], m, *data.shape[i + 1 :]))
    if data.memory != "plain":
        yield replace(data, memory="plain")
    if data.kind != "ties":
        yield replace(data, kind="ties")


def _smaller(value: Any) -> Iterator[Any]:
    """Yield simpler values of the same type."""
    if isinstance(value, Data):
        yield from _smaller_data(value)
    elif isinstance(value, bool):
        if value:
            yield False
    elif isinstance(value, int):
        yield from sorted({v for v in (0, 1, value // 2, value - 1) if 0 <= v < value})
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from (type(value)([*value[:i], small, *value[i + 1 :]]) for small in _smaller(item))
        if len(value) > 1 and any(isinstance(item, (list, tuple)) for item in value):  # boundaries: one pair fewer
            yield from (type(value)([*value[:i], *value[i + 1 :]]) for i in range(len(value)))


def smaller(call: Call) -> Iterator[Call]:
    """Yield calls with one argument fewer, or with one argument that is simpler."""
    for name in call.args:
        yield call.without(name)
    for name, value in call.args.items():
        yield from (call.but(**{name: small}) for small in _smaller(value))


def shrink(case: Any, candidates: Callable[[Any], Any], fails: Callable[[Any], bool], seconds: float = 30) -> Any:
    """Take the first candidate that still fails, again and again; skip candidates that raise."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for candidate in candidates(case):
            try:
                if fails(candidate):
                    case = candidate
                    break
            except Exception:
                continue
        else:
            break
    return case


# ---- running

Draw = Callable[[Rng], Call]
Compare = Callable[[Call, Counter[str]], str]


def _caught(compare: Compare) -> Compare:
    """Wrap `compare`: return an escaped error as a text, so that its call is shrunk and shown like others."""

    def run(call: Call, counts: Counter[str]) -> str:
        try:
            return compare(call, counts)
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            found = Raised(f"{call.name}: {type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})")
            found.where = (type(error), last.filename, last.lineno)
            return found

    return run


def _report(call: Call, text: str, compare: Compare) -> str:
    def fails(candidate: Call) -> bool:
        found = compare(candidate, Counter())
        same = getattr(found, "where", None) == getattr(text, "where", None)
        return bool(found) and not isinstance(found, Documented) and same

    small = shrink(call, smaller, fails)
    text = compare(small, Counter()) or text
    return f'{text}\n    python {sys.argv[0]} --call "{small!r}"'


def _loop(draw: Draw, compare: Compare) -> Callable[[Any, workers.Progress], Counter[str]]:
    compare = _caught(compare)

    def run(given: Any, progress: workers.Progress) -> Counter[str]:
        counts: Counter[str] = Counter()
        for number in workers.cases(given, progress, counts, failures=5):
            call = draw(np.random.default_rng([given.seed, number % workers.STRIDE, number // workers.STRIDE]))
            counts["calls"] += 1
            text = compare(call, counts)
            if isinstance(text, Documented):
                counts[f"documented: {text}"] += 1
            elif text:
                print(f"case {given.seed}:{number}: {_report(call, text, compare)}", flush=True)
                counts["failed"] += 1
        return counts

    return run


def main(what: str, doc: str, draw: Draw, compare: Compare, names: Mapping[str, Any] | None = None) -> int:
    """Run random calls, or the one call that `--call` gives; return 1 if any fails. `names` may occur in a call."""
    if "--call" in sys.argv:
        line = sys.argv[sys.argv.index("--call") + 1]
        call = eval(line, {"Call": Call, "Data": Data, "np": np, **(names or {})})
        text = compare(call, Counter())
        print(text or "no difference")
        return int(bool(text) and not isinstance(text, Documented))
    return workers.main(what, doc, _loop(draw, compare))
