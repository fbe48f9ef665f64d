"""Settings of the tests of adapters: one thread, so that small tensors do not wait for each other's threads."""

try:
    import torch
except ImportError:
    pass
else:
    torch.set_num_threads(1)
