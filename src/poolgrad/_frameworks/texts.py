"""Write calls of the functions of `spec` as text, and read them in another process: a saved program holds them so.

A text is JSON: the version of this form, the name of the function, and its arguments before the arrays.

>>> from functools import partial
>>> from poolgrad._frameworks import spec, texts
>>> text = texts.write(partial(spec.pairs, 0, 2))
>>> text
'[1, "pairs", 0, 2]'
>>> texts.read(text).args
(0, 2)
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache, partial
from typing import Any

import numpy as np

from . import spec
from .spec import Frame, PoolSpec

VERSION = 1
FUNCTIONS: dict[str, Callable[..., Any]] = {
    f.__name__: f for f in (spec.chosen, spec.carry, spec.whole, spec.settled, spec.positions, spec.draw, spec.pairs)
}
_CLASSES = {"pool": PoolSpec, "frame": Frame}


@lru_cache(4096)
def _written(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    return json.dumps([VERSION, function.__name__, *map(_plain, args)])


def write(call: partial[Any]) -> str:
    """Return the text of a function of `spec` with its first arguments."""
    if FUNCTIONS.get(call.func.__name__) is not call.func:
        raise ValueError(f"write: call: got {call.func.__name__}, wanted one of {', '.join(FUNCTIONS)}")
    return _written(call.func, call.args)


@lru_cache(4096)
def read(text: str) -> partial[Any]:
    """Return the function of a text, with its first arguments."""
    version, name, *args = json.loads(text)
    if version != VERSION or name not in FUNCTIONS:
        raise ValueError(
            f"read: call: got {name!r} of form {version}, which another version of poolgrad wrote, wanted form {VERSION}: "
            "save the model again, or load it with that version"
        )
    return partial(FUNCTIONS[name], *map(_made, args))


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; a dictionary names the class of one that JSON does not know."""
    if isinstance(value, (PoolSpec, Frame)):
        own = {f.name: _plain(getattr(value, f.name)) for f in fields(value) if getattr(value, f.name) != f.default}
        return {next(name for name, kind in _CLASSES.items() if type(value) is kind): own}
    if isinstance(value, np.dtype):
        return {"dtype": value.name}
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def _made(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_made, value))
    if not isinstance(value, dict):
        return value
    ((name, given),) = value.items()
    return np.dtype(given) if name == "dtype" else _CLASSES[name](**{key: _made(v) for key, v in given.items()})
