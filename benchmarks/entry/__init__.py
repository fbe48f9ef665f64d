"""Race the functions that users call: `pg.*`, `poolgrad.torch` and `poolgrad.jax` against what they replace."""
