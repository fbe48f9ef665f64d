"""Makes tests/data/corpus: a small, varied part of the recorded TensorFlow calls, for tests without the whole.

    python tools/sample_corpus.py [CORPUS]

CORPUS is a directory in the form of ../shared/corpus/public. A call is taken only where the recording itself says what
must come out: no uninitialised memory, no random draw, nothing under a documented deviation.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "tests" / "data" / "corpus"
ANSWERED, REFUSED = 30, 12  # calls per op
LARGEST = 900  # elements of a call, so that the plain reference is quick
WORD = {"float16": np.uint16, "bfloat16": np.uint16, "bool": np.uint8}


def load_replay(path: Path) -> ModuleType:
    """Load the replay script beside the corpus; it reads the corpus format and knows the deviations."""
    spec = importlib.util.spec_from_file_location("replay_corpus", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def references(call: dict[str, Any]) -> list[Any]:
    """Return all arrays of a call."""
    return [*call["inputs"].values(), *call.get("outputs", ()), *call.get("alt_outputs", ())]


def certain(call: dict[str, Any], arrays: Any, replay: ModuleType) -> bool:
    """Return True if the recording determines the result."""
    if any(call.get(k) for k in ("random", "undefined", "malformed", "graph_rejects")):
        return False
    if sum(prod(ref[2]) for ref in references(call)) > LARGEST:
        return False
    error = call.get("error")
    if error and (error["kind"] == "peer_crash" or (error["kind"] == "cpu_unsupported" and "alt_outputs" not in call)):
        return False
    inputs = {name: arrays.get(ref) for name, ref in call["inputs"].items()}
    answered = {k: v for k, v in call.items() if k != "error"} if "alt_outputs" in call else call
    lanes = call["op"] in ("MaxPool3D", "AvgPool3D") and "negzero" in call.get("tags", ())
    return not lanes and not replay.deviation(answered, inputs)


def features(call: dict[str, Any]) -> set[str]:
    """Return the features that set a call apart."""
    found = {"dtype " + "+".join(sorted({ref[0] for ref in call["inputs"].values()}))}
    found |= {f"tag {t}" for t in call.get("tags", ())}
    found |= {f"{k} {v}" for k, v in call["attrs"].items() if isinstance(v, (str, bool))}
    found.add("error " + call["error"]["kind"] + call["error"]["message"][:24] if "error" in call else "answer")
    return found | {f"{a} & {b}" for a in found for b in found if a < b}


def choose(calls: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Choose calls greedily by the features they add, smaller calls first among equals."""
    left, seen, taken = list(calls), set[str](), []
    while left and len(taken) < count:
        best = max(left, key=lambda c: (len(features(c) - seen), -len(json.dumps(c["inputs"])), c["id"]))
        left.remove(best)
        taken.append(best)
        seen |= features(best)
    return taken


def store(calls: list[dict[str, Any]], arrays: Any, path: Path) -> list[dict[str, Any]]:
    """Write one op's arrays; return its calls with the new positions."""
    pools: dict[str, list[np.ndarray]] = {}
    sizes: dict[str, int] = {}

    def move(ref: list[Any]) -> list[Any]:
        tag, _, shape = ref
        array = arrays.get(ref).reshape(-1)
        pools.setdefault(tag, []).append(array.view(WORD[tag]) if tag in WORD else array)
        at = sizes.get(tag, 0)
        sizes[tag] = at + array.size
        return [tag, at, shape]

    moved = []
    for call in calls:
        new = {**call, "inputs": {name: move(ref) for name, ref in call["inputs"].items()}}
        for key in ("outputs", "alt_outputs"):
            if key in call:
                new[key] = [move(ref) for ref in call[key]]
        moved.append(new)
    np.savez_compressed(path, **{tag: np.concatenate(parts) for tag, parts in pools.items()})
    return moved


def main(corpus: Path) -> int:
    """Write the sample and print its size."""
    replay = load_replay(corpus.parent / "replay_corpus.py")
    TARGET.mkdir(parents=True, exist_ok=True)
    lines = []
    for op, calls in replay.read_index(str(corpus)).items():
        arrays = replay.Arrays(str(corpus), op)
        sure = [c for c in calls if certain(c, arrays, replay)]
        answered = [c for c in sure if "outputs" in c or "alt_outputs" in c]
        kept = choose(answered, ANSWERED) + choose([c for c in sure if c not in answered], REFUSED)
        kept.sort(key=lambda c: c["id"])
        lines += [json.dumps(c, separators=(",", ":")) for c in store(kept, arrays, TARGET / f"{op}.npz")]
    (TARGET / "index.jsonl").write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} calls, {sum(f.stat().st_size for f in TARGET.iterdir())} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT.parent / "shared" / "corpus" / "public"))
