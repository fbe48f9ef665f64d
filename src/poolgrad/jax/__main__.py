"""`python -m poolgrad.jax`: whether pools are compiled into XLA's programs; `python -m poolgrad.jax build` sees to it."""

import sys

from .native import main

sys.exit(main(sys.argv[1:]))
