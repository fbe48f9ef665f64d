"""Define and make windows: axes, plans, random boundaries, and the cache of plans."""
