"""The command line: `poolgrad ops`, `run`, `try`, `pool`, `pyramid`, `demo`, `config`, and pages of blocks by `check`, `explain`, `export`, `studio`."""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from . import __version__, raw_ops, reference, show_config
from ._cli import bench, demo, pool, trial
from ._ops import problem
from ._ops.dtypes import short
from ._ops.files import arguments, closest, describe, find, save
from ._ops.table import OPS, REQUIRED, Kind, Op
from .config import core_calls, schedule_reason
from .graph import commands as pages
from .studio import command as studio

Array = npt.NDArray[Any]
Options = argparse.Namespace

_REFUSALS = (ValueError, TypeError, NotImplementedError, MemoryError, OSError, ImportError)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Print the error to stderr, and exit with 2."""
        _complain(f"{self.prog}: {message} (see {self.prog} --help)")
        sys.exit(2)


def _complain(line: str) -> None:
    """Print a line to stderr, if there is one."""
    if sys.stderr is not None:
        print(line, file=sys.stderr)


# ---- ops


def _ops_options(parser: Parser) -> None:
    parser.add_argument("name", nargs="?", help="an op: show everything about it")


def _ops(options: Options) -> int:
    if options.name:
        print(_page(find(options.name)))
        return 0
    head = ("op", "family", "order", "dtypes", "layouts", "against TensorFlow 2.21")
    rows = [head]
    for op in OPS.values():
        promise = f"{op.promise}, {len(op.promise.deviations)} deviations"
        rows.append((op.name, op.family, str(op.order), _dtypes(op), " ".join(op.formats), promise))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print("\norder 0 is the forward op, 1 its gradient, 2 the second order; `poolgrad ops NAME` tells all about one")
    return 0


def _dtypes(op: Op) -> str:
    """Short names, whole ranges of integers by their ends."""
    floats = [short(d) for d in op.dtypes if "float" in d]
    whole = [short(d) for d in op.dtypes if "float" not in d]
    return " ".join(floats + (whole if len(whole) < 3 else [f"{whole[0]}...{whole[-1]}"]))


def _page(op: Op) -> str:
    """One op in full."""
    signature = inspect.signature(getattr(raw_ops, op.name))
    width = max(len(p.name) for p in op.params)
    lines = [f"{op.name}{signature}", "", op.summary, "", "arguments"]
    for p in op.params:
        default = "" if p.default is REQUIRED or p.kind is Kind.NAME else f" (default {p.plain_default!r})"
        lines.append(f"  {p.name:{width}}  {p.kind.doc}{', ' + p.dtype if p.dtype else ''}{default}")
    lines += [
        "returns",
        f"  {', '.join(op.outputs)}",
        "dtypes",
        f"  {', '.join(op.dtypes)}",
        "layouts",
        f"  {', '.join(op.formats)}",
    ]
    if op.param(Kind.PADDING):
        lines += ["padding", f"  {', '.join(op.paddings)}"]
    lines += [f"against TensorFlow 2.21 on CPU: {op.promise}, except"]
    return "\n".join([*lines, *(f"  - {deviation}" for deviation in op.promise.deviations)])


# ---- run


def _run_options(parser: Parser) -> None:
    parser.add_argument("op", help="the op's name, or a page of blocks: page.json, flow.svg, example:NAME")
    parser.add_argument("words", nargs="*", metavar="name=value", help="arrays as .npy files, everything else as text")
    parser.add_argument("--page", metavar="NAME", help="which page of the file (default: the first)")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="where the result goes: .npy (a file per output) or .npz"
    )


def _run(options: Options) -> int:
    if pages.is_page(options.op):
        return pages.run_page(options)
    if options.page is not None:
        raise ValueError(f"--page: got {options.page!r} with the op {options.op!r}, wanted it with a file of pages")
    op = find(options.op)
    given = arguments(op, options.words)
    result = getattr(raw_ops, op.name)(**given)
    if options.output:
        print("\n".join(save(op, result, options.output)))
        return 0
    layout = str(given.get("data_format", op.formats[0]))
    for name, array in _outputs(op, result).items():
        print(f"{name}: {describe(array)}\n{_glimpse(array, layout)}")
    return 0


def _outputs(op: Op, result: Any) -> dict[str, Array]:
    return dict(zip(op.outputs, result if len(op.outputs) > 1 else (result,), strict=True))


def _glimpse(array: Array, layout: str) -> str:
    """Return the first image, channel and slice of an array, in a few lines."""
    where = ""
    if array.ndim == len(layout):
        at = tuple(slice(None) if letter in "HW" else 0 for letter in layout)
        if array.size:
            array, where = array[at], f"  [{', '.join(':' if letter in 'HW' else '0' for letter in layout)}] =\n"
    wide = array.astype(np.float32) if array.dtype.name == "bfloat16" else array
    text = np.array2string(wide, threshold=100, edgeitems=3, precision=5, suppress_small=True, prefix="  ")
    return f"{where}  {text}"


# ---- try


def _try_options(parser: Parser) -> None:
    parser.add_argument("line", help="the problem, in one argument")
    parser.add_argument("--data", type=int, default=0, metavar="SEED", help="draw other data (default 0)")
    parser.add_argument("--real", action="store_true", help="draw real numbers instead of small integers")
    parser.add_argument("--no-check", action="store_true", help="do not compare with the reference, which is slow")
    parser.add_argument("--why", action="store_true", help="tell which schedules of the core run it, and why")


def _try(options: Options) -> int:
    asked = problem.parse(options.line)
    if options.data < 0:
        raise ValueError(f"--data: got {options.data}, wanted 0 or more")
    name, given = trial.draw_call(asked, options.data, not options.real)
    op = OPS[name]
    print(f"{name}: {asked}")
    for key, value in given.items():
        small = not isinstance(value, np.ndarray) or value.ndim <= 1
        print(f"{key}: {value.tolist() if isinstance(value, np.ndarray) and small else value}" if small
              else f"{key}: {describe(value)}\n{_glimpse(value, asked.layout)}")  # fmt: skip
    mine, took = _timed(getattr(raw_ops, name), given)
    for key, array in _outputs(op, mine).items():
        print(f"-> {key}: {describe(array)}\n{_glimpse(array, asked.layout)}")
    if options.why:
        _explain_schedules(lambda: getattr(raw_ops, name)(**given))
    if options.no_check:
        print(f"{took:.3f} ms")
        return 0
    theirs, slow = _timed(raw_ops.make(op, reference), given)
    wrong = [key for key, array in _outputs(op, mine).items() if not _same(array, _outputs(op, theirs)[key])]
    verdict = f"DIFFERS from the reference in {', '.join(wrong)}" if wrong else "the same bits as the reference"
    print(f"{took:.3f} ms, {verdict} ({slow:.1f} ms)")
    return 1 if wrong else 0


def _explain_schedules(run: Callable[[], object]) -> None:
    """Print the core's calls, each with its schedules and the reason for them."""
    for call in core_calls(run):
        shapes = " -> ".join("x".join(map(str, shape)) for shape in (call.source, call.dest))
        print(f"{call.verb} {call.dtype} {shapes}: {call.schedule or 'nothing: there are no cells'}")
        for schedule in filter(None, call.schedule.split("+")):
            print(f"  {schedule}: {schedule_reason(schedule)}")


def _timed(function: Callable[..., Any], given: dict[str, Any]) -> tuple[Any, float]:
    """Return the result, and the milliseconds of the second call: the first one also plans."""
    function(**given)
    start = time.perf_counter()
    return function(**given), (time.perf_counter() - start) * 1e3


def _same(a: Array, b: Array) -> bool:
    """Return True if two arrays have the same bits; all NaN count as equal."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    bits = f"u{a.dtype.itemsize}"
    return bool(((a.view(bits) == b.view(bits)) | ((a != a) & (b != b))).all())


# ---- demo, config


def _demo_options(parser: Parser) -> None:
    parser.add_argument(
        "-o", "--output", default="demo.png", metavar="FILE", help="where the picture goes (default demo.png)"
    )


def _demo(options: Options) -> int:
    print(demo.run(options.output))
    return 0


def _no_options(parser: Parser) -> None:
    pass


def _config(options: Options) -> int:
    show_config()
    return 0


# ---- all of them


@dataclass(frozen=True)
class Command:
    """One word of the command line."""

    name: str
    summary: str
    options: Callable[[Parser], None]
    run: Callable[[Options], int]


_EXAMPLES = {
    "ops": "poolgrad ops\npoolgrad ops MaxPoolGradGrad",
    "run": """
poolgrad run MaxPool input=x.npy ksize=1,2,2,1 strides=1,2,2,1 padding=SAME -o y.npy
poolgrad run AvgPoolGrad orig_input_shape=1,4,4,2 grad=g.npy ksize=1,2,2,1 strides=1,2,2,1 padding=VALID
poolgrad run FractionalMaxPool value=x.npy:bfloat16 pooling_ratio=1,1.44,1.44,1 overlapping=true -o y.npz
poolgrad run page.json -o arrays.npz
poolgrad run page.json placeholder=x.npy""",
    "try": f"""
poolgrad try "max f32 nhwc x=2x9x9x5 k=3x3 s=2x2 pad=same grad"
poolgrad try --why "avg f16 nchw x=1x64x56x56 k=3x3"
poolgrad try "favg f64 x=1x8x8x1 ratio=1.5x1.5 overlapping seed=7"

{problem.__doc__}""",
    "demo": "poolgrad demo\npoolgrad demo -o page.png",
    "config": "poolgrad config\nPOOLGRAD_ISA=x86-64-v2 poolgrad config",
    **pool.EXAMPLES,
    **pages.EXAMPLES,
    "studio": studio.EXAMPLES,
    "bench": "poolgrad bench --quick\npoolgrad bench --only resnet_stem --dtype float32\npoolgrad bench guard",
}

COMMANDS = (
    Command("ops", "list the operators, or tell all about one", _ops_options, _ops),
    Command("run", "any operator on .npy files, or a page of blocks", _run_options, _run),
    Command("try", "a problem in one line, on random data, checked", _try_options, _try),
    Command("pool", "pool a stored array of any size: Zarr, HDF5, .npy", pool.pool_options, pool.pool_run),
    Command("pyramid", "make an OME-Zarr pyramid of a stored array", pool.pyramid_options, pool.pyramid_run),
    Command("demo", "pool a picture, and draw where the gradients go", _demo_options, _demo),
    Command("config", "version, instruction sets, threads, compiler", _no_options, _config),
    *(Command(*words) for words in pages.COMMANDS),
    Command("studio", "wire blocks and point at cells, in the browser", studio.options, studio.run),
    Command(
        "bench", "race every installed peer on the same work, in a source tree", _no_options, lambda _: bench.run([])
    ),
)


def _parser() -> tuple[Parser, dict[str, Command]]:
    top = Parser("poolgrad", description="TensorFlow's pooling operators and their derivatives, without TensorFlow.")
    top.add_argument("--version", action="version", version=f"poolgrad {__version__}")
    words = top.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for command in COMMANDS:
        end = "examples:\n" + "\n".join("  " + line for line in _EXAMPLES[command.name].strip().splitlines())
        word = words.add_parser(command.name, help=command.summary, description=command.summary + ".", epilog=end,
                                formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
        command.options(word)
    return top, {command.name: command for command in COMMANDS}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return 0 on success or a closed pipe, 1 if a check failed, 2 if an argument was refused."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        try:
            return _run_command(words)
        finally:  # also after --help, which ends with SystemExit
            if sys.stdout is not None:  # it is None if the program was started without one
                sys.stdout.flush()
    except BrokenPipeError:  # the reader, `head` for instance, has seen enough
        _silence()
        return 0
    except OSError as error:  # a full disk
        _silence()
        _complain(f"poolgrad: output: got {(error.strerror or type(error).__name__).lower()}, wanted to write it")
        return 2


def _silence() -> None:
    """Drop all output that is still to come: Python writes the rest of it when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _run_command(words: list[str]) -> int:
    parser, commands = _parser()
    if words[:1] == ["bench"]:  # the benchmarks parse their own arguments
        return _run_or_complain("bench", lambda: bench.run(words[1:]))
    if words and not words[0].startswith("-") and words[0] not in commands:
        parser.error(f"there is no command {words[0]!r}{closest(words[0], commands)}")
    options = parser.parse_args(words)
    if options.command is None:
        parser.print_help()
        return 0
    return _run_or_complain(options.command, lambda: commands[options.command].run(options))


def _run_or_complain(command: str, run: Callable[[], int]) -> int:
    """Run a command; turn an error about its arguments into one line and status 2."""
    try:
        return run()
    except _REFUSALS as error:
        if isinstance(error, OSError) and error.filename is None and not hasattr(error, "findings"):
            raise  # not about a file: the output cannot be written
        _complain(f"poolgrad {command}: {' '.join(str(error).split()) or type(error).__name__}")
        return 2


if __name__ == "__main__":
    sys.exit(main())
