"""Code that all adapters share: static pool specs, and the pools written over a backend."""
