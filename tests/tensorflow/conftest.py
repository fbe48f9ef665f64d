"""Share the compiled extension among the tests of TensorFlow."""

import pytest
from support import python


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Build the kernels; return the environment of the processes that use them."""
    quiet = {
        "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "CUDA_VISIBLE_DEVICES": "",
    }
    done = python("-m", "poolgrad.tensorflow", "build", **quiet)
    if "no C++ compiler" in done.stderr:
        pytest.skip("needs a C++ compiler")
    assert done.returncode == 0, done.stderr
    return quiet
