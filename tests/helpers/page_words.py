"""Ask the page's own modules, run by Node, to explain cells; compare their words with Python's."""

from __future__ import annotations

import json
import shutil
import subprocess
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import poolgrad
from poolgrad._explain.sentences import SentencePart, phrases
from poolgrad.graph import Scope, report, service
from poolgrad.graph.executor import execute

PACKAGE = Path(poolgrad.__file__).parent
NODE = shutil.which("node")
SCRIPT = """
import { explain } from 'poolgrad/explain';
import { unpack } from 'poolgrad/results';
import { number } from 'poolgrad/sentences';
import { readFileSync } from 'node:fs';
const { cases, numbers, phrases } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const said = cases.map(({ node, values, asks }) => {
  const arrays = Object.fromEntries(Object.entries(values).map(([pin, v]) => [pin, unpack(v)]));
  return asks.map(([pin, cell]) => { const { parts, heading, formula } = explain(node, arrays, phrases, pin, cell); return [parts, heading, formula]; });
});
console.log(JSON.stringify({ said, numbers: unpack(numbers).reduce((all, v) => [...all, number(v, 'float64')], []) }));
"""


Sentences = list[list[list[SentencePart]]]  # per cell: its sentence, its heading, its formula


def delivered(scope: Scope, node: str) -> tuple[dict[str, Any], Sentences]:
    """Return the data that the page gets for a block, every cell it may ask about, and Python's sentences."""
    run = execute(scope.page, scope.sources)
    found = service.run(scope.graph, limit=2**20)["nodes"][node]
    subject = report.subject_of(node, run.checked.seen[node], run.blocks[node], run)
    assert subject is not None
    values = {pin: report.numbers(np.asarray(a)) for pin, a in subject.arrays.items()}
    asks = [(p.pin, list(cell)) for p in subject.operands for cell in product(*map(range, subject.shape(p.side)))]
    whys = [subject.explain(pin, tuple(cell)) for pin, cell in asks]
    sentences = [[list(why.parts), list(why.heading), list(why.formula)] for why in whys]
    return {"node": {"links": found["links"]}, "values": values, "asks": asks}, sentences


def said_by_page(
    folder: Path, cases: list[dict[str, Any]], reals: npt.NDArray[Any]
) -> tuple[list[Sentences], list[str]]:
    """Return what the page says about all cells of the cases, and how it writes numbers."""
    shutil.copytree(PACKAGE / "studio" / "static", folder / "node_modules" / "poolgrad")
    names = {"name": "poolgrad", "type": "module", "exports": {"./*": "./*.js"}}
    (folder / "node_modules" / "poolgrad" / "package.json").write_text(json.dumps(names), "utf-8")
    content = {"cases": cases, "numbers": report.numbers(reals), "phrases": phrases()}
    (folder / "cases.json").write_text(json.dumps(content), "utf-8")
    (folder / "run.mjs").write_text(SCRIPT, "utf-8")
    assert NODE is not None
    done = subprocess.run(
        [NODE, "run.mjs", "cases.json"], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    said = [
        [[[SentencePart(**part | {"cell": tuple(part["cell"])}) for part in form] for form in cell] for cell in case]
        for case in answer["said"]
    ]
    return said, answer["numbers"]
