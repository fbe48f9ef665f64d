"""Race poolgrad against its peers: check that all agree, then time them in turns in one run."""

from .command import main

__all__ = ["main"]
