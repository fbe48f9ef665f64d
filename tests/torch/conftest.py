"""Settings of the tests of adapters: one thread, so that small tensors do not wait for each other's threads."""

import warnings

try:
    import torch
except ImportError:
    pass
else:
    torch.set_num_threads(1)
    with warnings.catch_warnings():  # torch itself warns when a test first uses tangents
        warnings.simplefilter("ignore")
        import torch._decomp.decompositions_for_jvp
