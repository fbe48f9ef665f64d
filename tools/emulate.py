"""The library on processors that this machine is not, by QEMU: the right level and right results on each, a refusal below the lowest.

    python tools/emulate.py [--seconds 60] [MODEL ...]

Random verbs and ops are compared with the reference for that long on each model. QEMU has no AVX-512.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "fuzz" / "helpers"))

from build import Missing, installed, tool  # noqa: E402
from workers import Progress  # noqa: E402

MODELS = {"Nehalem": "x86-64-v2", "SandyBridge": "x86-64-v2", "Haswell": "x86-64-v3"}
TOO_OLD = "core2duo"
LEVEL = "from poolgrad import _core; print(_core.isa())"
ALONE = """
from importlib.util import module_from_spec, spec_from_file_location
import sys
module_from_spec(spec_from_file_location("poolgrad._core", sys.argv[1]))
"""


Run = Callable[..., subprocess.CompletedProcess[str]]


class Failure(Exception):
    """A processor on which something is wrong."""


def python(model: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python on an emulated processor; child processes would run on the real one."""
    emulator = tool("qemu-x86_64", "qemu-x86_64-static")
    return subprocess.run([emulator, "-cpu", model, sys.executable, *words], capture_output=True, text=True, cwd=ROOT)


def compare(processor: str, run: Run, script: str, seconds: float) -> str:
    """Run the random cases of a script with an emulated Python; return what it counted."""
    with tempfile.NamedTemporaryFile() as note:
        note.write(bytes(Progress.SIZE))
        note.flush()
        done = run(str(ROOT / "fuzz" / script), "--note", note.name, "--seconds", str(seconds), "--seed", "11")
        case = Progress(note.name).read()[0]
    if done.returncode:
        raise Failure(
            f"{processor}: {script}, status {done.returncode} at case {case}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        )
    counts = json.loads(done.stdout.strip().splitlines()[-1].removeprefix("counts "))
    return f"{counts['calls']:,} calls of {script.removesuffix('.py')}"


def check(model: str, seconds: float) -> str:
    """Check one processor: its level, and that results equal the reference."""
    level = python(model, "-c", LEVEL)
    if level.stdout.strip() != MODELS[model]:
        raise Failure(f"{model}: wanted {MODELS[model]}, got {level.stdout}{level.stderr[-2000:]}")
    calls = [compare(model, partial(python, model), script, seconds) for script in ("verbs.py", "ops.py")]
    return f"{model}: {MODELS[model]}, {', '.join(calls)}, all right"


def refused(model: str) -> str:
    """Check that a processor below the lowest level gets an error that says so."""
    core = next(installed().glob("_core*.so"))
    done = python(model, "-c", ALONE, str(core))
    if done.returncode != 1 or "ImportError: poolgrad: needs a processor" not in done.stderr:
        raise Failure(f"{model}: not refused, status {done.returncode}\n{done.stderr[-2000:]}")
    return f"{model}: {done.stderr.strip().splitlines()[-1]}"


def main() -> int:
    """Print a line for each processor; return 1 if one failed, 2 without QEMU."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "models", nargs="*", metavar="MODEL", help=f"of {', '.join([*MODELS, TOO_OLD])}; all unless given"
    )
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    if unknown := set(given.models) - {*MODELS, TOO_OLD}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    try:
        for model in given.models or [*MODELS, TOO_OLD]:
            print(refused(model) if model == TOO_OLD else check(model, given.seconds), flush=True)
    except Missing as missing:
        print(f"emulate: {missing}")
        return 2
    except Failure as failure:
        print(f"FAILED: {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
