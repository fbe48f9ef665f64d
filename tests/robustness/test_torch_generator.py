"""Random calls of poolgrad.torch agree with torch, but for differences that docs/torch.md describes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test installs it where it can")

import support
import torch_reasons

ROOT = Path(__file__).parents[2]


def generator(*words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(support.PACKAGE.parent), str(support.HERE)])
    command = [sys.executable, str(ROOT / "fuzz" / "torch_adapter.py"), *words]
    return subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=300, check=False
    )


def test_random_calls_agree_with_torch():
    done = generator("--seconds", "8", "--seed", "18")
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    for what in ("calls", "values", "backward", "double backward", "jvp", "vmap", "refused", "backward beside torch"):
        assert f" {what}," in last, last


def test_a_line_runs_one_call_alone():
    line = "Call('max_pool2d', x=Data('float32', (1, 2, 5, 5)), layout='channels_last', kernel_size=2, return_indices=True)"
    done = generator("--call", line)
    assert (done.returncode, done.stdout) == (0, "no difference\n"), done.stderr


def test_every_reason_is_a_sentence_of_the_page():
    page = " ".join((ROOT / "docs" / "torch.md").read_text("utf-8").split())
    assert not [sentence for sentence in torch_reasons.REASONS.values() if sentence not in page]


def test_every_reason_is_one_that_a_comparison_gives():
    text = "".join(
        (ROOT / "fuzz" / "helpers" / name).read_text("utf-8") for name in ("torch_reasons.py", "torch_checks.py")
    )
    assert not [key for key in torch_reasons.REASONS if text.count(f'"{key}"') < 2]
