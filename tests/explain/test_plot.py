"""The picture shows the windows, the taps and the numbers."""

import sys

import numpy as np
import pytest

import poolgrad as pg

x = np.array([[1, 2, 5, 0], [4, 3, 0, 6], [7, 1, 2, 2], [0, 8, 3, 9]])


def texts(panel) -> list[str]:
    return [t.get_text() for t in panel.texts]


def test_it_shows_windows_taps_and_gradients(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    figure = pg.show(x, 2, g=np.array([[1, 2], [3, 4]]), file=tmp_path / "pool.png")
    source, pooled, gradient = figure.axes
    assert texts(source) == [str(v) for v in x.ravel()]
    assert texts(pooled) == ["4", "6", "8", "9"]
    assert [t for t in texts(gradient) if t != "0"] == ["1", "2", "3", "4"]
    assert len(source.patches) == 4
    assert sorted((int(line.get_ydata()[0]), int(line.get_xdata()[0])) for line in source.lines) == [
        (1, 0),
        (1, 3),
        (3, 1),
        (3, 3),
    ]
    assert (tmp_path / "pool.png").stat().st_size > 1000


@pytest.mark.parametrize("kind", ["min", "avg", "sum"])
def test_every_kind_of_pool_and_any_rank_can_be_shown(kind):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    block = np.arange(2 * 6 * 6 * 3.0).reshape(2, 6, 6, 3)
    figure = pg.show(block, 3, kind=kind, layout="NHWC", at=(1, 2))
    pool = {"min": pg.min_pool, "avg": pg.avg_pool, "sum": pg.sum_pool}[kind]
    want = pool(block, 3, layout="NHWC")[1, :, :, 2]
    assert texts(figure.axes[1]) == [f"{v:.3g}" for v in want.ravel()]
    assert len(pg.show(np.arange(6.0), 2, kind=kind).axes) == 3


def test_what_cannot_be_shown_is_refused(monkeypatch):
    with pytest.raises(ValueError, match="show: kind: got 'median'"):
        pg.show(x, 2, kind="median")
    with pytest.raises(ValueError, match="show: window: got 3 pooled axes, wanted at most two"):
        pg.show(np.zeros((4, 4, 4)), 2)
    with pytest.raises(ValueError, match="show: at: got"):
        pg.show(np.zeros((2, 4, 4)), 2, axes=(1, 2), at=(5,))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(
        ImportError, match=r"show: show: got no matplotlib, wanted it installed: pip install 'poolgrad\[plot\]'"
    ):
        pg.show(x, 2)


def test_pictures_refuse_gradients_of_another_shape_and_long_axes():
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError, match=r"show: g: got shape \[1\], wanted \[2, 2\]"):
        pg.show(np.zeros((4, 4)), 2, g=np.zeros(1))
    with pytest.raises(ValueError, match=r"at most .* cells along a pooled axis"):
        pg.show(np.zeros((4, 4000)), 2)
