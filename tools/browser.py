"""Find or install a browser for the tests of the studio, where possible; never fail.

    python tools/browser.py

Debian and its kin have Chromium as a package, which root may install; elsewhere it says what to do and the tests are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find() -> str | None:
    """Return the path of a browser that the tests can drive."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


def install() -> str:
    """Install Chromium with apt-get; return the outcome."""
    if os.name != "posix" or os.geteuid() != 0 or not shutil.which("apt-get"):
        return "install Chromium and see that `chromium` is on the PATH (apt-get is used only by root)"
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["install"], ["update"], ["install"]):  # lists of packages are often missing in containers
        command = [
            "apt-get",
            "-y",
            "-qq",
            *words,
            *(["--no-install-recommends", "chromium"] if words == ["install"] else []),
        ]
        print("$", *command, flush=True)
        try:
            done = subprocess.run(command, env=quiet, stdout=subprocess.DEVNULL, timeout=900, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"apt-get did not work: {error}"
        if words == ["install"] and done.returncode == 0:
            return ""
    return "apt-get could not install chromium"


def main() -> int:
    """Print which browser there is, or why there is none."""
    why = "" if find() else install()
    found = find()
    print(
        f"browser for tests/studio: {found}" if found else f"tests/studio will be skipped, there is no browser: {why}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
