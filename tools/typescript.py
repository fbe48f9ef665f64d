"""Find or install TypeScript, which checks the types of the studio's modules, where possible; never fail.

    python tools/typescript.py

It goes into the environment that runs this file; npm comes from the PATH. Without npm or a network, the test of the types is skipped.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

VERSION = "5.9.3"
COMPILER = Path(sys.prefix) / "node_modules" / "typescript" / "bin" / "tsc"


def install() -> str:
    """Install TypeScript with npm; return the reason if that did not work, else ""."""
    npm = shutil.which("npm")
    if npm is None:
        return "there is no npm on the PATH"
    command = [npm, "install", "--no-audit", "--no-fund", "--no-save", "--loglevel=error", "--prefix", sys.prefix]
    try:
        done = subprocess.run(
            [*command, f"typescript@{VERSION}"], capture_output=True, text=True, timeout=300, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"npm did not work: {error}"
    return "" if done.returncode == 0 else f"npm could not install it: {done.stderr.strip()[-200:]}"


def main() -> int:
    """Print where the compiler is, or why there is none."""
    why = "" if COMPILER.is_file() else install()
    print(f"types of the studio: {COMPILER}" if COMPILER.is_file() else f"types of the studio are not checked: {why}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
