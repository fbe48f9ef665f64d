"""The list of known differences between adapters and frameworks; tests compare it with the differences that they find."""

from pathlib import Path

LIST = Path(__file__).with_suffix(".txt")


def listed(suite: str) -> set[tuple[str, str]]:
    """Return (op, what) of every listed difference of a suite; each has a reason."""
    lines = [line for line in LIST.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    rows = [[part.strip() for part in line.split("|")] for line in lines]
    assert all(len(row) == 4 and all(row) for row in rows)
    return {(row[1], row[2]) for row in rows if row[0] == suite}
