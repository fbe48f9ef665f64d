"""The grid of ops, layouts and dtypes has no holes, and the tool that prints it can fail."""

from support import ROOT, python

from poolgrad._ops.table import OPS, REALS

GRID = str(ROOT / "tools" / "grid.py")


def rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]


def test_every_cell_of_the_grid_equals_the_reference():
    done = python(GRID)
    assert done.returncode == 0, done.stdout + done.stderr
    head, _, *body = rows(done.stdout)
    assert head[2:] == list(REALS)
    assert [(r[0], r[1]) for r in body] == [(op.name, layout) for op in OPS.values() for layout in op.formats]
    for name, _, *cells in body:
        assert [c == "4 equal" for c in cells] == [d in OPS[name].dtypes for d in REALS], name
        assert set(cells) <= {"4 equal", "refused"}


def test_a_wrong_verb_makes_the_grid_fail():
    """The fault is planted in the tool's process before the tool runs."""
    code = f"import runpy, faults; faults.plant('last_tie'); runpy.run_path({GRID!r}, run_name='__main__')"
    done = python("-c", code)
    assert done.returncode == 1
    assert "| MaxPoolGrad | NHWC | **" in done.stdout
    assert "wrong(Case(op='MaxPoolGrad'" in done.stderr
