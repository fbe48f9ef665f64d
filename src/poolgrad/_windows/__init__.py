"""Where windows are: axes, plans, the functions that make them, and the cache of plans."""
