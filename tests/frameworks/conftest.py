"""Settings of the tests of adapters: one thread, so that small tensors do not wait for each other's threads."""

import warnings

try:
    import torch
except ImportError:
    pass
else:
    torch.set_num_threads(1)
    with warnings.catch_warnings():  # of torch itself, when tangents are first used: whichever test that is
        warnings.simplefilter("ignore")
        import torch._decomp.decompositions_for_jvp
