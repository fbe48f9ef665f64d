"""Settings of all tests. With POOLGRAD_TEST_FAULT set, plant a wrong verb first (see meta/test_bite.py)."""

import os
import signal
import sys
import warnings

from hypothesis import settings

settings.register_profile("suite", deadline=None, derandomize=True, database=None, max_examples=80)
settings.load_profile("suite")
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell does not have this handler

if os.environ.get("POOLGRAD_TEST_FAULT"):
    import faults

    faults.plant(os.environ["POOLGRAD_TEST_FAULT"])


def pytest_collection_finish() -> None:
    """Give torch one thread, if a test imported it, so that small tensors do not wait for each other's threads."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
        with warnings.catch_warnings():  # torch itself warns when a test first uses tangents
            warnings.simplefilter("ignore")
            import torch._decomp.decompositions_for_jvp
