"""`python -m poolgrad.tensorflow`: whether the extension is there; `python -m poolgrad.tensorflow build` compiles it."""

import sys

from .acceleration import main

sys.exit(main(sys.argv[1:]))
