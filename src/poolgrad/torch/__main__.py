"""`python -m poolgrad.torch`: whether the compiled part is there; `build` compiles it; `run` runs a program with `accelerate()`."""

import sys

from ._accelerate import run
from ._compiled import main

words = sys.argv[1:]
sys.exit(run(words[1:]) if words[:1] == ["run"] and words[1:] not in ([], ["-m"]) else main(words))
