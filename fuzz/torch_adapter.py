"""Compare random calls of poolgrad.torch with torch itself: values, indices, every derivative, vmap, refusals.

    python fuzz/torch_adapter.py --seconds 60 --seed 7

Where torch has no such pool or refuses the call, the oracle is a Python loop over windows (`torch_brute`). A difference that
docs/torch.md describes counts under its reason, which is a sentence of that page (`torch_reasons`).
"""

from __future__ import annotations

import re
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(ROOT / "fuzz" / "helpers")]

import torch
import torch.nn.functional as F
from differential import Call, Documented, main
from torch_calls import Case, Kind, draw, parameters
from torch_checks import attempt, averaged, chosen, mapped, normed, unpooled
from torch_reasons import OURS_ALONE, REASONS, TORCHS_ALONE

import poolgrad.torch as pgt

torch.set_num_threads(1)
warnings.simplefilter("ignore")


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:300]


def _well_said(case_name: str, call: Call, error: Exception) -> str:
    """Return "" if the error names the function and one of its arguments, what came and what was wanted."""
    found = re.match(rf"{case_name}: (\w+): got .*, wanted .+", str(error), re.DOTALL)
    if found is None or not isinstance(error, (ValueError, TypeError, NotImplementedError, MemoryError)):
        return f"{call.name}: refused without name, argument, got and wanted: {_said(error)}"
    known = {*parameters(call.name), "unknown"}
    return "" if found[1] in known else f"{call.name}: refused with an argument of another function: {_said(error)}"


def _reason(table: list[tuple[str, str]], error: Exception) -> Documented | None:
    return next((Documented(REASONS[key]) for pattern, key in table if re.search(pattern, str(error), re.DOTALL)), None)


def compare(call: Call, counts: Counter[str]) -> str:
    """Return "" if poolgrad.torch and torch agree about a call."""
    given = call.args["x"]
    case = Case(call.but(x=given.tensor(int(call.name[-2]))) if isinstance(given, Kind) else call)
    if case.is_slow or case.is_random:
        return ""
    own = case.function(F) if _in_torchs_words(case) else None
    got, ours = attempt(lambda: case.run(pgt, case.x))
    wanted, theirs = attempt(lambda: case.run(F, case.x)) if own is not None else (None, None)
    if ours is not None:
        counts["refused"] += 1
        return _refusal(case, call, ours, own is not None and theirs is None)
    counts["values"] += 1
    reason = None if theirs is None else _reason(OURS_ALONE, theirs)
    if theirs is not None and reason is None:
        return f"{call.name}: torch refuses, we take it: {_said(theirs)}"
    text = _check(case, got, wanted, counts)
    if case.vmap is not None and (not text or isinstance(text, Documented)):
        counts["vmap"] += 1
        text = mapped(case, wanted is not None and not text) or text
    return text or reason or ""


def _refusal(case: Case, call: Call, error: Exception, torch_takes_it: bool) -> str:
    """Check that we refuse what torch refuses, and say why."""
    if case.module and "__init__()" in str(error):
        return ""  # Python refuses the arguments of a class
    text = _well_said(case.name, call, error)
    if text or not torch_takes_it:
        return text
    return _reason(TORCHS_ALONE, error) or f"{call.name}: torch takes it, we refuse: {_said(error)}"


def _in_torchs_words(case: Case) -> bool:
    """Return whether torch has the words of the call."""
    if any(n in case.words for n in ("windows", "seed", "overlapping", "pseudo_random")):
        return False
    if case.family == "max_unpool" and case.words.get("reduce", "sum") not in ("sum", "assign"):
        return False
    if case.module and "divisor_override" in case.words and case.rank == 1:
        return False
    pads = case.words.get("padding", 0)
    return not isinstance(pads, str) and not (isinstance(pads, list) and pads and isinstance(pads[0], tuple))


def _check(case: Case, got: Any, wanted: Any, counts: Counter[str]) -> str:
    if case.family == "max_unpool":
        return unpooled(case, got[0], wanted, counts)
    if case.has_indices:
        return chosen(case, got, wanted, counts)
    if case.family == "lp_pool":
        return normed(case, got[0], wanted, counts)
    return averaged(case, got[0], wanted, counts)


if __name__ == "__main__":
    sys.exit(main("torch adapter", __doc__, draw, compare, {"Kind": Kind}))
