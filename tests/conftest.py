"""Settings of all tests. With POOLGRAD_TEST_FAULT set, plant a wrong verb first (see meta/test_bite.py)."""

import os
import signal

from hypothesis import settings

settings.register_profile("suite", deadline=None, derandomize=True, database=None, max_examples=80)
settings.load_profile("suite")
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell does not have this handler

if os.environ.get("POOLGRAD_TEST_FAULT"):
    import faults

    faults.plant(os.environ["POOLGRAD_TEST_FAULT"])
