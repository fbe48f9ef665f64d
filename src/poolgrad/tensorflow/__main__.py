"""`python -m poolgrad.tensorflow`: whether kernels for `accelerate()` are there; `python -m poolgrad.tensorflow build` compiles them."""

import sys

from .acceleration import main

sys.exit(main(sys.argv[1:]))
