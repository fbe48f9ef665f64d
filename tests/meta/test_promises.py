"""Every promise names what enforces it, and everything that docs/promises.md names exists."""

import re

import pytest
from support import ROOT

PAGE = ROOT / "docs" / "promises.md"
FLOWS = ROOT / ".github" / "workflows"
TESTED = re.compile(r"(tests|tools|fuzz)/[\w./-]+(::\w+)?")
MADE = re.compile(r"make ([\w-]+)")
JOB = re.compile(r"(test|nightly|wheels|docs)/([\w-]+)")


def rows() -> list[list[str]]:
    """Return the cells of every row of the tables."""
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if row[0] != "promise"]


def named(text: str) -> list[str]:
    """Return the texts in code marks."""
    return re.findall(r"`([^`]+)`", text)


def targets() -> set[str]:
    """Return the targets of the Makefile."""
    lines = re.findall(r"^([\w ./$()-]+):(?!=)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    return {target for line in lines for target in line.split()}


def jobs(flow: str) -> dict[str, str]:
    """Return the jobs of a workflow, each with its text."""
    text = (FLOWS / f"{flow}.yml").read_text("utf-8").split("\njobs:\n")[1]
    parts = re.split(r"^  ([\w-]+):\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def exists(name: str) -> bool:
    """Return True if a test, file, make target or job of that name exists."""
    if made := MADE.fullmatch(name):
        return made[1] in targets()
    if job := JOB.fullmatch(name):
        return job[2] in jobs(job[1])
    path, _, test = name.partition("::")
    if not (ROOT / path).exists():
        return False
    return not test or re.search(rf"^def {test}\(", (ROOT / path).read_text("utf-8"), re.MULTILINE) is not None


def test_every_path_target_and_job_exists():
    found = [name for name in named(PAGE.read_text("utf-8")) if any(p.fullmatch(name) for p in (TESTED, MADE, JOB))]
    assert len(found) > 60
    assert [name for name in found if not exists(name)] == []


def test_every_promise_names_what_enforces_it_and_when():
    assert len(rows()) > 30
    for promise, enforced, often in rows():
        assert named(enforced), promise
        assert all(any(p.fullmatch(name) for p in (TESTED, MADE, JOB)) for name in named(enforced)), promise
        assert re.search(r"every run|nightly|release", often), promise


@pytest.mark.parametrize("when", ["nightly", "release"])
def test_what_runs_at_a_time_is_named_by_its_job(when):
    flow = {"nightly": "nightly", "release": "wheels"}[when]
    for promise, enforced, often in rows():
        if when in often:
            assert any(name.startswith(f"{flow}/") for name in named(often + enforced)), promise


def test_a_command_of_a_nightly_row_is_run_by_its_job():
    for promise, enforced, often in rows():
        commands = [name for name in named(enforced) if name.startswith("make ")]
        night = [job for name in named(often) if name.startswith("nightly/") for job in [name.split("/")[1]]]
        if commands and night and "release" not in often:
            text = "".join(jobs("nightly")[job] for job in night)
            assert any(command in text for command in commands), promise


def test_the_nightly_workflow_has_a_schedule_and_installs_the_frameworks():
    text = (FLOWS / "nightly.yml").read_text("utf-8")
    assert re.search(r'^    - cron: "', text, re.MULTILINE)
    for job in ("frameworks", "generators", "bits"):
        assert "test -e .venv/frameworks" in jobs("nightly")[job]


@pytest.mark.parametrize(
    "name", ["tests/robustness/test_none.py", "tests/robustness/test_bits.py::test_none", "make none", "nightly/none"]
)
def test_what_does_not_exist_is_noticed(name):
    assert not exists(name)
