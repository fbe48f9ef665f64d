"""Fractional sequences and the cache of plans; the public module `windows` holds axes and plans."""
