"""Time whole networks with torch's own pools and with `poolgrad.torch.accelerate()`, in turns; compare losses, gradients and memory.

    python -m benchmarks models --only GoogLeNet --only LeNet
    python -m benchmarks models --compiled --threads 1 --missing    # torch.compile, only cells without figures: goes on after an interruption
    python -m benchmarks models --compiled --threads 1 --below 0.98 # time doubtful cells again, longer
    python -m benchmarks models --render                            # write the tables of docs/torch.md from models.json

Each step of each network runs with acceleration off and on, one after the other, in one process. The figure is the best time without
divided by the best time with it: seconds of the processor with one thread, which other programs change least. Figures are stored after each cell.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

from .markdown import table

RESULTS = Path(__file__).parent / "models.json"
PAGE = Path(__file__).parent.parent / "docs" / "torch.md"
BEGIN, END = "<!-- models: begin -->", "<!-- models: end -->"
LAYOUTS, WAYS = ("contiguous", "channels last"), ("inference", "training")
Record = dict[str, Any]


@contextmanager
def _accelerated(on: bool) -> Iterator[None]:
    from poolgrad.torch import accelerate

    if not on:
        yield
        return
    with accelerate():
        yield


def _compiled(model: Any, on: bool, folder: Path) -> Any:
    """Return the compiled model.

    Both sides share a cache, so that a loop which they have in common is compiled once. The compiler's keys do not know of the kept
    pools: an option without effect on the CPU keeps the programs of the sides apart.
    """
    import torch
    from torch._inductor import config
    from torch._inductor.compile_fx import compile_fx

    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)
    options = {"compile_threads": 1, "triton.spill_threshold": config.triton.spill_threshold + on}

    def backend(graph: Any, inputs: Any) -> Any:  # one per side, so that neither takes the other's program
        return compile_fx(graph, inputs, config_patches=options)

    return torch.compile(model, backend=backend)


def _step(model: Any, x: Any, training: bool) -> Callable[[], Any]:
    import torch

    def infer() -> Any:
        with torch.no_grad():
            return model(x)

    def train() -> Any:
        for parameter in model.parameters():
            parameter.grad = None
        loss = model(x).square().mean()
        loss.backward()
        return loss.detach()

    return train if training else infer


def _held(model: Any, x: Any) -> int:
    """Return the bytes that forward holds for backward, besides parameters and the input."""
    import torch

    own = {p.untyped_storage().data_ptr() for p in [*model.parameters(), x]}
    found: dict[int, int] = {}

    def pack(t: Any) -> Any:
        storage = t.untyped_storage()
        if storage.data_ptr() not in own:
            found[storage.data_ptr()] = storage.nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = model(x)
    del y
    return sum(found.values())


def _measure(name: str, last: bool, training: bool, compiled: bool, seconds: float, folder: Path) -> Record:
    """Return the figures of one cell."""
    import torch

    from .models_torch import MODELS

    if compiled:
        torch._dynamo.reset()  # which counts the programs of all networks together
    torch.manual_seed(0)
    made = MODELS[name]
    model, x = made.make(), torch.randn(made.shape)
    if last:
        kind = torch.channels_last if x.ndim == 4 else torch.channels_last_3d
        model, x = model.to(memory_format=kind), x.contiguous(memory_format=kind)
    model.train(training)
    steps, results, held, began = [], [], [], time.perf_counter()
    for on in (False, True):
        with _accelerated(on):
            step = _step(_compiled(model, on, folder) if compiled else model, x, training)
            y = step()
            results.append([y, *(p.grad.clone() for p in model.parameters() if training and p.grad is not None)])
            held.append(_held(model, x) if training and not compiled else 0)
            step()
        steps.append(step)
    spent, pairs = time.perf_counter() - began, list(zip(*results, strict=True))
    times: list[list[float]] = [[], []]
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 8:
        for on in (False, True) if len(times[0]) % 2 else (True, False):
            with _accelerated(on):
                steps[on]()
                start = clock()
                steps[on]()
                times[on].append(clock() - start)
    off, on_ = (min(side) for side in times)
    return {
        "model": name, "layout": LAYOUTS[last], "way": WAYS[training], "compiled": compiled,
        "torch": off, "ours": on_, "ratio": off / on_, "turns": len(times[0]), "made": spent,
        "equal": all(torch.equal(a, b) for a, b in pairs),
        "close": all(torch.allclose(a, b, 1e-4, 1e-6) for a, b in pairs),
        "held": held, "threads": torch.get_num_threads(), "version": torch.__version__,
        "date": time.strftime("%Y-%m-%d"), "input": list(made.shape),
    }  # fmt: skip


def _stored(file: Path) -> list[Record]:
    found: list[Record] = json.loads(file.read_text()) if file.exists() else []
    return found


def _key(record: Record) -> tuple[Any, ...]:
    return record["model"], record["layout"], record["way"], record["compiled"]


def _cell(found: dict[Any, Record], *key: Any) -> str:
    record = found.get(key)
    if record is None:
        return "–"
    mark = "" if record["equal"] else "~" if record["close"] else "!"
    return f"{record['ratio']:.2f}{mark}"


def render(records: list[Record]) -> str:
    """Return the table of docs/torch.md."""
    from .models_torch import MODELS

    found = {_key(record): record for record in records}
    columns = [(layout, way, compiled) for compiled in (False, True) for layout in LAYOUTS for way in WAYS]
    head = [
        "network",
        "input",
        *(f"{'compiled, ' * c}{layout}, {way}" for layout, way, c in columns),
        "held for backward",
    ]
    rows = []
    for name, made in MODELS.items():
        trained = found.get((name, LAYOUTS[0], WAYS[1], False))
        less = f"{trained['held'][1] / trained['held'][0] - 1:+.0%}" if trained and trained["held"][0] else "–"
        rows.append([name, "x".join(map(str, made.shape)), *(_cell(found, name, *c) for c in columns), less])
    one = records[0] if records else {"date": "–", "version": "–", "threads": "–"}
    threads = {bool(record["compiled"]): record["threads"] for record in records}
    note = f"torch's time over ours per step, measured {one['date']} with torch {one['version']}, {one['threads']} threads."
    if True in threads and threads[True] != one["threads"]:
        note += f" Compiled: {threads[True]}."
    return "\n".join([note, "", *table(head, rows)])


def write_page(text: str) -> None:
    """Replace what is between the markers of the page."""
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line."""
    parser.add_argument("--only", action="append", default=[], metavar="MODEL", help="networks whose name is MODEL")
    parser.add_argument("--compiled", action="store_true", help="through torch.compile")
    parser.add_argument("--layout", action="append", default=[], choices=LAYOUTS)
    parser.add_argument("--way", action="append", default=[], choices=WAYS)
    parser.add_argument("--missing", action="store_true", help="only cells that have no figure")
    parser.add_argument("--below", type=float, metavar="RATIO", help="only cells whose figure is below this")
    parser.add_argument("--seconds-per-cell", type=float, default=1.5, metavar="S")
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="torch's threads; default: torch's choice")
    parser.add_argument("--cache", type=Path, default=Path("bench-out/models"), help="where compiled programs go")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE", help="where figures are stored")
    parser.add_argument("--render", action="store_true", help="only write the tables of docs/torch.md")


def run(given: argparse.Namespace) -> int:
    """Run the cells asked for, and store their figures; return 1 if a result differs."""
    if given.render:
        write_page(render(_stored(given.results)))
        return 0
    import torch

    if given.threads:
        torch.set_num_threads(given.threads)
    kept = {_key(record): record for record in _stored(given.results)}
    wrong = 0
    for name, last, training in _cells(given, kept):
        record = _measure(name, last, training, given.compiled, given.seconds_per_cell, given.cache.absolute())
        kept[_key(record)] = record
        wrong += not record["close"]
        print(
            f"{name}, {record['layout']}, {record['way']}{', compiled' * given.compiled}: "
            f"{record['torch'] * 1e3:.2f} -> {record['ours'] * 1e3:.2f} ms, {record['ratio']:.3f}, "
            f"{'equal' if record['equal'] else 'close' if record['close'] else 'DIFFERENT'}, held {record['held']}, "
            f"made in {record['made']:.0f} s",
            flush=True,
        )
        part = given.results.with_suffix(".part")
        part.write_text(json.dumps(list(kept.values()), indent=1) + "\n")
        part.replace(given.results)  # whole, whenever the run ends
    return int(wrong > 0)


def _cells(given: argparse.Namespace, kept: dict[Any, Record]) -> Iterator[tuple[str, bool, bool]]:
    """Return the cells asked for: the network, whether channels last, whether in training."""
    from .models_torch import MODELS

    for name, last, training in product(given.only or MODELS, (False, True), (False, True)):
        layout, way = LAYOUTS[last], WAYS[training]
        old = kept.get((name, layout, way, given.compiled))
        if (given.layout and layout not in given.layout) or (given.way and way not in given.way):
            continue
        if (given.missing and old) or (given.below is not None and not (old and old["ratio"] < given.below)):
            continue
        yield name, last, training
