"""Recorded TensorFlow calls give TensorFlow's answers: a bundled sample, and the whole corpus where it is installed."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from support import FAST, ROOT, SHARED, SLOW, difference, dtype_of, python

from poolgrad._ops.table import OPS

SAMPLE = ROOT / "tests" / "data" / "corpus"
REPLAY = SHARED / "corpus" / "replay_corpus.py"
KNOWN = dict(
    line.split("\t") for line in (Path(__file__).parent / "known.txt").read_text().splitlines() if line[0] != "#"
)


@cache
def sample() -> dict[str, list[dict]]:
    calls: dict[str, list[dict]] = {}
    for line in (SAMPLE / "index.jsonl").read_text().splitlines():
        call = json.loads(line)
        calls.setdefault(call["op"], []).append(call)
    return calls


@cache
def pools(op: str) -> dict[str, np.ndarray]:
    with np.load(SAMPLE / f"{op}.npz", allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def array(op: str, reference: list) -> np.ndarray:
    tag, at, shape = reference
    flat = pools(op)[tag][at : at + int(np.prod(shape, dtype=int))].copy()
    kind = dtype_of(tag[1:] if tag[0] == "q" else tag)
    return (flat.view(kind) if kind.itemsize == flat.itemsize else flat.astype(kind)).reshape(shape)


def line(call: dict) -> str:
    inputs = ", ".join(f"{name}={tag}{shape}" for name, (tag, _, shape) in call["inputs"].items())
    return f"{call['id']}: {call['op']}({inputs}, {call['attrs']})"


def replay(call: dict, run: dict) -> str:
    """Replay a recorded call; return a text if our answer is wrong, or ""."""
    op = call["op"]
    args = {name: array(op, ref) for name, ref in call["inputs"].items()} | call["attrs"]
    wanted = call.get("outputs") or call.get("alt_outputs")
    try:
        got = run[op](**args)
    except (ValueError, TypeError, NotImplementedError) as error:
        return f"refused: {error}" if wanted else ""
    if not wanted:
        return f"accepted, TensorFlow says: {call['error']['message']}"
    return difference(got, tuple(array(op, ref) for ref in wanted))


@pytest.mark.parametrize("run", [FAST, SLOW], ids=["kernels", "reference"])
@pytest.mark.parametrize("op", OPS)
def test_the_sample_gives_the_recorded_bits(op, run):
    calls = sample()[op]
    assert len(calls) >= 30
    assert sum("outputs" in c or "alt_outputs" in c for c in calls) >= 25
    found = [f"{line(call)}\n    {text}" for call in calls if (text := replay(call, run))]
    assert not found, "\n".join(found[:6])


needs_corpus = pytest.mark.skipif(not REPLAY.exists(), reason=f"the recorded corpus is not there: {REPLAY}")


def failing(tmp_path: Path, *options: str) -> tuple[set[str], int]:
    """Return the ids of calls that fail in the replay script, and the number of calls."""
    report = tmp_path / "outcomes.jsonl"
    done = python(str(REPLAY), "--json", str(report), *options)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    outcomes = [json.loads(text) for text in report.read_text().splitlines()]
    return {o["id"] for o in outcomes if not o["ok"]}, len(outcomes)


@needs_corpus
def test_only_the_known_deviations_of_the_corpus_differ(tmp_path):
    bad, count = failing(tmp_path)
    assert count > 10_000
    assert bad == set(KNOWN), f"python {REPLAY} " + " ".join(f"--id {i}" for i in sorted(bad ^ set(KNOWN))[:8])


SOME = ("MaxPoolGrad", "AvgPool3DGrad", "FractionalMaxPoolGrad", "MaxPoolWithArgmax")


@needs_corpus
@pytest.mark.parametrize(
    "options", [("--layout", "strided"), ("--layout", "f"), ("--quantized", "structured")], ids="-".join
)
def test_the_corpus_does_not_depend_on_how_arrays_are_handed_over(tmp_path, options):
    ops = ("QuantizedAvgPool", "QuantizedMaxPool") if "structured" in options else SOME
    bad, count = failing(tmp_path, *options, *(word for op in ops for word in ("--op", op)))
    assert count > 900
    assert not bad - set(KNOWN), f"python {REPLAY} {' '.join(options)} " + " ".join(
        f"--id {i}" for i in sorted(bad)[:8]
    )


def test_every_known_deviation_has_a_reason():
    assert KNOWN
    assert all(len(reason) > 20 for reason in KNOWN.values())
