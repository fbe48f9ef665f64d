"""`python -m poolgrad.torch`: whether the compiled part is there; `python -m poolgrad.torch build` compiles it."""

import sys

from ._compiled import main

sys.exit(main(sys.argv[1:]))
