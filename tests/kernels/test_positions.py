"""Flat positions: gather and scatter follow each one, and name the first wrong one."""

import numpy as np
import pytest

import poolgrad
from poolgrad import _core


def test_the_first_wrong_position_is_named_whoever_finds_his_first():
    """The wrong positions are the last cell of one task and the first of the next: the second is found long before."""
    index = np.zeros(1 << 17, np.int64)
    index[[(1 << 15) - 1, 1 << 15]] = -1
    v, out = np.zeros(1 << 17, np.float32), np.zeros(1 << 17, np.float32)
    with poolgrad.threads(2):
        found = {_core.gather(1, True, v, index, out) for _ in range(300)}
    assert found == {(1 << 15) - 1}


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_scatter_whose_positions_leave_their_images_is_done_once_more(threads):
    images, cells = 6, 20_000
    rng = np.random.default_rng(0)
    g, index = rng.integers(0, 9, images * cells).astype(np.float32), rng.integers(0, images * cells, images * cells)
    want = np.bincount(index, g, images * cells).astype(np.float32)
    out = np.full(images * cells, 7, np.float32)
    with poolgrad.threads(threads):
        assert _core.scatter(images, True, g, index, out) == -1
    assert (out == want).all()


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("follow", [_core.scatter, _core.gather])
def test_positions_are_followed_up_to_the_last_cell_whatever_number_divides_them(follow, threads):
    cells = 100_003
    index = np.arange(cells)[::-1].copy()
    v, out = np.arange(cells, dtype=np.float32), np.full(cells, -7, np.float32)
    with poolgrad.threads(threads):
        assert follow(1, True, v, index, out) == -1
    assert (out == v[::-1]).all()
