"""poolgrad against its peers: one run, interleaved, after checking that all agree."""

from .command import main

__all__ = ["main"]
