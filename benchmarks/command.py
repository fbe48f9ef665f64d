"""The command line of the benchmark."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from . import cells, guard, markdown, plot, readme
from .peers import MODULES, available
from .run import Progress, run
from .summary import disturbance, lines
from .targets import WHAT, Targets


def _run_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sources",
        nargs="*",
        metavar="FILE|LINE",
        help="workload files (*.json), files of problem lines, problem lines; default: the bundled workloads",
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="cells whose name contains TEXT; may be repeated"
    )
    for name in ("kind", "layout", "dtype"):
        parser.add_argument(f"--{name}", action="append", default=[], help=f"cells of this {name}; may be repeated")
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
    parser.add_argument(
        "--passes", type=int, default=1, metavar="N", help="run close races N times, all contestants alike (default 1)"
    )
    parser.add_argument("--no-targets", action="store_true", help="skip the target report")
    parser.add_argument("--list", action="store_true", help="print the cells and stop")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("bench-out"),
        metavar="DIR",
        help="where report.json, report.md and the pictures go",
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Races poolgrad against every installed peer, interleaved, after checking that all agree.",
        epilog="examples:\n  python -m benchmarks --quick\n  python -m benchmarks --only resnet_stem --dtype float32\n  python -m benchmarks guard",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    _run_parser(verbs.add_parser("run", help="race (the default)"))
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
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run a command line; return 0 if all went well, 1 if the guard found a loss, 2 for a wrong call."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] not in ("run", "guard", "readme", "render", "-h", "--help"):
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
        return _race(args)
    except (ValueError, OSError) as error:
        print(f"python -m benchmarks: {error}", file=sys.stderr)
        return 2


def _race(args: argparse.Namespace) -> int:
    chosen = cells.keep(cells.read(args.sources or [str(cells.BUNDLED)]), args.only, args.kind, args.layout, args.dtype)
    if not chosen:
        raise ValueError("no cell passes the filters")
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
