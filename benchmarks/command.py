"""The command line of the benchmark."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TypeVar

from poolgrad import _core

from . import cells, channels_first, cores, guard, layouts, markdown, models, planes, plot, readme
from .entry import contest, jax_calls, numpy_calls, torch_calls
from .entry import text as entry_text
from .peers import MODULES, available
from .run import Progress, run
from .summary import disturbance, lines
from .targets import WHAT, Targets

VERBS = ("run", "entry", "guard", "readme", "render", "cores", "layouts", "channels-first", "models")
ENTRIES = {"numpy": numpy_calls, "torch": torch_calls, "jax": jax_calls}
OUTPUT = Path("bench-out")
RESULTS = Path(__file__).parent / "results"


def _sources(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "sources",
        nargs="*",
        metavar="FILE|LINE",
        help=f"workload files (*.json), files of problem lines, problem lines; default: {default}",
    )


def _filters(parser: argparse.ArgumentParser, *names: str) -> None:
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="cells whose name contains TEXT; may be repeated"
    )
    for name in names:
        parser.add_argument(f"--{name}", action="append", default=[], help=f"cells of this {name}; may be repeated")


def _measuring(parser: argparse.ArgumentParser, seconds: float, file: str) -> None:
    parser.add_argument("--seconds-per-cell", type=float, default=seconds, metavar="S", help=f"default {seconds}")
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="threads of each side; default: all cores")
    parser.add_argument("--quick", action="store_true", help="small arrays: a check of the harness, not a measurement")
    parser.add_argument("-o", "--output", type=Path, default=OUTPUT, metavar="DIR", help=f"where {file} goes")


def _run_parser(parser: argparse.ArgumentParser) -> None:
    _sources(parser, "the bundled workloads")
    _filters(parser, "kind", "layout", "dtype")
    parser.add_argument(
        "--peer",
        action="append",
        default=[],
        choices=[m for m in MODULES if m != "ours"],
        help="race this peer only; may be repeated",
    )
    parser.add_argument(
        "--quick", action="store_true", help="small arrays and short races: a check of the harness, not a measurement"
    )
    parser.add_argument("--seconds-per-cell", type=float, default=1.5, metavar="S")
    _passes(parser)
    parser.add_argument("--no-targets", action="store_true", help="skip the target report")
    parser.add_argument("--list", action="store_true", help="print the cells and stop")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=OUTPUT,
        metavar="DIR",
        help="where report.json, report.md and the pictures go",
    )


def _cores_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", type=Path, metavar="OLD.so", help="a build of the core")
    parser.add_argument(
        "new", type=Path, nargs="?", metavar="NEW.so", help="another build; default: the core that poolgrad uses"
    )
    parser.add_argument(
        "--cells",
        action="append",
        default=[],
        metavar="FILE|LINE",
        help="workload file (*.json), file of problem lines, problem line; default: the bundled workloads",
    )
    _filters(parser, "kind", "layout", "dtype")
    parser.add_argument("--taps", action="store_true", help="also race the verbs that find and follow taps")
    parser.add_argument("--fill", action="store_true", help="write all results into one array, instead of new ones")
    _measuring(parser, 1.0, "cores.json")


def _layouts_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--verb",
        dest="verbs",
        action="append",
        default=[],
        choices=list(layouts.VERBS),
        help="time this verb of the core; may be repeated",
    )
    _grid(parser)
    _measuring(parser, 0.1, "layouts.json")


def _channels_first_parser(parser: argparse.ArgumentParser) -> None:
    _sources(parser, "the cells of `layouts`")
    parser.add_argument("--kind", action="append", default=[], help="cells of this kind; may be repeated")
    _grid(parser)
    _passes(parser)
    _measuring(parser, 0.5, "channels-first.json")


def _entry_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--group", action="append", default=[], choices=list(ENTRIES), help="race these entry points")
    parser.add_argument("--list", action="store_true", help="print the cells and stop")
    parser.add_argument(
        "--write",
        action="store_true",
        help="also write the entry sections of the page and of the README, and keep the results they come from",
    )
    parser.add_argument("--page", type=Path, default=Path(entry_text.PAGE), help="file that gets the tables")
    parser.add_argument("--readme", type=Path, default=Path("README.md"), help="file that gets the summary")
    parser.add_argument(
        "--results", type=Path, default=RESULTS, metavar="DIR", help="folder that keeps the results of each processor"
    )
    _filters(parser)
    _measuring(parser, 0.25, "entry.json")


def _grid(parser: argparse.ArgumentParser) -> None:
    _filters(parser)
    parser.add_argument(
        "--dtype", action="append", default=[], help="time this dtype; may be repeated; default: float32 and bfloat16"
    )
    parser.add_argument(
        "--sample", type=int, default=0, metavar="N", help="N of the cells, drawn at random, each time the same"
    )


def _passes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--passes", type=int, default=1, metavar="N", help="run close races N times, all contestants alike (default 1)"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Races poolgrad against every installed peer, interleaved, after checking that all agree.",
        epilog="examples:\n  python -m benchmarks --quick\n  python -m benchmarks --only resnet_stem --dtype float32\n  python -m benchmarks guard\n  python -m benchmarks cores OLD.so\n  python -m benchmarks layouts --sample 200",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    _run_parser(verbs.add_parser("run", help="race (the default)"))
    _entry_parser(
        verbs.add_parser("entry", help="race pg.*, poolgrad.torch and poolgrad.jax against what they replace")
    )
    guarding = verbs.add_parser("guard", help="fail if a call is slower than a NumPy loop in the same run")
    guarding.add_argument("--only", default="", metavar="TEXT")
    guarding.add_argument("--seconds", type=float, default=0.05, help="per cell")
    rewriting = verbs.add_parser("readme", help="rewrite the speed sections of README and docs from a report")
    rewriting.add_argument("report", type=Path)
    rewriting.add_argument("--readme", type=Path, default=Path("README.md"), help="file that gets the summary")
    rewriting.add_argument(
        "--page", type=Path, default=Path("docs/performance.md"), help="file that gets the whole table"
    )
    rewriting.add_argument("--picture", default="", help="path of the picture, as the README shall name it")
    rendering = verbs.add_parser("render", help="write Markdown and pictures of a report again")
    rendering.add_argument("report", type=Path)
    _cores_parser(verbs.add_parser("cores", help="race two builds of the core on the workloads, in both layouts"))
    _layouts_parser(verbs.add_parser("layouts", help="time each verb channels first against channels last"))
    _channels_first_parser(
        verbs.add_parser("channels-first", help="race PyTorch, JAX and TensorFlow channels first, with equal threads")
    )
    models.add_arguments(verbs.add_parser("models", help="time whole networks with torch's pools and with ours"))
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run a command line; return 0 if all went well, 1 if the guard found a loss, 2 for a wrong call."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] not in (*VERBS, "-h", "--help"):
        words.insert(0, "run")
    args = _parser().parse_args(words)
    try:
        if args.verb == "guard":
            findings = guard.guard(args.seconds, args.only)
            return 0 if findings and all(finding.passed for finding in findings) else 1
        if args.verb == "readme":
            report = json.loads(args.report.read_text())
            readme.rewrite(args.page, readme.section(report))
            readme.rewrite(args.readme, readme.summary(report, args.picture))
            return 0
        if args.verb == "render":
            _write(json.loads(args.report.read_text()), args.report.parent)
            return 0
        races = {"run": _race, "entry": _entry, "cores": _cores, "layouts": _layouts, "models": models.run}
        return (races | {"channels-first": _channels_first})[args.verb](args)
    except (ValueError, OSError) as error:
        print(f"python -m benchmarks: {error}", file=sys.stderr)
        return 2


def _race(args: argparse.Namespace) -> int:
    wanted = cells.read(args.sources or [str(cells.BUNDLED)])
    chosen = _some(cells.keep(wanted, args.only, args.kind, args.layout, args.dtype))
    if args.list:
        print("\n".join(cell.name for cell in chosen))
        return 0
    budget = args.seconds_per_cell
    if args.quick:
        chosen, budget = [cells.small(cell) for cell in chosen], min(budget, 0.2)
    peers, missing = available(args.peer)
    report = run(chosen, budget, peers, missing, max(args.passes, 1))
    report["settings"]["quick"] = args.quick
    report["targets"] = []
    if not args.no_targets:
        progress = Progress(len(WHAT))
        report["targets"] = Targets(report, peers, min(budget, 0.5), args.quick).measure(progress.step)
        progress.close()
    _write(report, args.output)
    return 0


def _entry(args: argparse.Namespace) -> int:
    if args.threads:
        channels_first.use_threads(args.threads)
    found = contest.Found()
    wanted = [cell for group in args.group or ENTRIES for cell in ENTRIES[group].cells(found, args.quick)]
    chosen = _some([c for c in wanted if not args.only or any(word in f"{c.group} {c.name}" for word in args.only)])
    if args.list:
        print("\n".join(f"{cell.group} {cell.name}" for cell in chosen))
        return 0
    report = contest.compete(
        chosen, args.seconds_per_cell, found, lambda record: print(entry_text.one_line(record), flush=True)
    )
    report["settings"]["quick"] = args.quick
    text = entry_text.markdown(report)
    args.output.mkdir(parents=True, exist_ok=True)
    (args.output / "entry.md").write_text(text)
    if args.write:
        args.results.mkdir(parents=True, exist_ok=True)
        (args.results / entry_text.file_name(report)).write_text(json.dumps(report, indent=1) + "\n")
        reports = entry_text.stored(args.results)
        readme.rewrite(args.page, entry_text.page_of(reports), "entry")
        readme.rewrite(args.readme, entry_text.summary(reports), "entry")
    return _tell(text, report, args.output / "entry.json")


def _cores(args: argparse.Namespace) -> int:
    wanted = cores.in_both_layouts(cells.read(args.cells or [str(cells.BUNDLED)]))
    chosen = _some(cells.keep(wanted, args.only, args.kind, args.layout, args.dtype))
    chosen = [cells.small(cell) for cell in chosen] if args.quick else chosen
    files = (args.old, args.new or Path(_core.__file__))
    with cores.loaded(*files) as (old, new):
        report = cores.race(old, new, chosen, args.seconds_per_cell, args.threads, args.taps, args.fill)
    report["settings"] |= {"old": str(files[0]), "new": str(files[1]), "quick": args.quick}
    return _tell(cores.text(report), report, args.output / "cores.json")


def _layouts(args: argparse.Namespace) -> int:
    items = layouts.items(args.verbs or layouts.VERBS, args.dtype or layouts.DTYPES)
    items = [item for item in items if not args.only or any(word in layouts.name(item) for word in args.only)]
    chosen = _some(planes.sample(items, args.sample))
    chosen = [(cells.small(cell), verb) for cell, verb in chosen] if args.quick else chosen
    report = layouts.compare(chosen, args.seconds_per_cell, args.threads)
    report["settings"]["quick"] = args.quick
    return _tell(layouts.text(report), report, args.output / "layouts.json")


def _channels_first(args: argparse.Namespace) -> int:
    if args.threads:
        channels_first.use_threads(args.threads)
    if args.sources:
        wanted = cells.keep(cells.read(args.sources), args.only, args.kind, ["NCHW", "NCDHW"], args.dtype)
    else:
        grid = list(planes.cells(dtypes=args.dtype or layouts.DTYPES))
        wanted = cells.keep(grid, args.only, args.kind, [], [])
    chosen = _some(planes.sample(wanted, args.sample))
    chosen = [cells.small(cell) for cell in chosen] if args.quick else chosen
    peers, missing = channels_first.contestants()
    report = run(chosen, args.seconds_per_cell, peers, missing, max(args.passes, 1))
    report["settings"]["quick"] = args.quick
    return _tell(channels_first.text(report), report, args.output / "channels-first.json")


Item = TypeVar("Item")


def _some(items: list[Item]) -> list[Item]:
    if not items:
        raise ValueError("no cell passes the filters")
    return items


def _tell(text: str, report: markdown.Record, file: Path) -> int:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(report, indent=1) + "\n")
    print(f"{text}\n\nwritten: {file}")
    return 0


def _write(report: markdown.Record, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    (folder / "report.md").write_text(markdown.render(report))
    pictures = plot.plot(report, folder)
    print("\n".join([*markdown.means_table(lines(report)), ""]))
    if disturbance(report):
        print(f"doubtful: {disturbance(report)}\n")
    for target in report["targets"]:
        verdict = {True: "met", False: "MISSED", None: "open"}[target["met"]]
        print(f"{verdict:6} {target['target']}. {target['what']}: {target['figure']}")
    print("\nwritten:", ", ".join(str(file) for file in (folder / "report.json", folder / "report.md", *pictures)))
