"""Settings of all tests; with POOLGRAD_TEST_FAULT set, the verbs are made wrong first (see meta/test_bite.py)."""

import os
import signal

from hypothesis import settings

settings.register_profile("suite", deadline=None, derandomize=True, database=None, max_examples=80)
settings.load_profile("suite")
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a job in the background of a shell does not have

if os.environ.get("POOLGRAD_TEST_FAULT"):
    import faults

    faults.plant(os.environ["POOLGRAD_TEST_FAULT"])
