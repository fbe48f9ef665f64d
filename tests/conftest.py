"""Settings of all tests; with POOLGRAD_TEST_FAULT set, the verbs are made wrong first (see meta/test_bite.py)."""

import os

from hypothesis import settings

settings.register_profile("suite", deadline=None, derandomize=True, database=None, max_examples=80)
settings.load_profile("suite")

if os.environ.get("POOLGRAD_TEST_FAULT"):
    import faults

    faults.plant(os.environ["POOLGRAD_TEST_FAULT"])
