"""Pyramids: levels, scales and metadata as other readers see them, the bits of pools in memory, and a way to go on."""

import numpy as np
import pytest

import poolgrad as pg

zarr = pytest.importorskip("zarr", reason="zarr is not installed")
X = np.random.default_rng(0).integers(0, 60_000, (3, 45, 50), dtype=np.uint16)


def halved(x):
    return pg.avg_pool(x, (1, 2, 2), ceil_mode=True, dtype=x.dtype)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_each_level_is_pooled_from_the_one_before(tmp_path, zarr_format):
    group = pg.pyramid(X, tmp_path / "p.zarr", levels=4, factors=(1, 2, 2), chunks=(1, 16, 16), zarr_format=zarr_format, scale=(2, 0.5, 0.5), memory="100KB")  # fmt: skip
    want = X
    for level in range(4):
        assert group[str(level)][...].tobytes() == want.tobytes()
        assert group[str(level)].chunks == tuple(min(c, n) for c, n in zip((1, 16, 16), want.shape, strict=True))
        want = halved(want)
    assert not list((tmp_path / "p.zarr").glob("*.journal"))


def test_exact_levels_are_means_of_level_0(tmp_path):
    group = pg.pyramid(X, tmp_path / "p.zarr", levels=3, factors={"y": 2, "x": 2}, exact=True, chunks=(3, 16, 16))
    assert group["2"][...].tobytes() == pg.avg_pool(X, (1, 4, 4), ceil_mode=True, dtype=X.dtype).tobytes()
    assert (group["2"][...] != halved(halved(X))).any()  # which rounds twice


def test_other_readers_see_levels_and_scales(tmp_path):
    ngff_zarr = pytest.importorskip("ngff_zarr")
    pg.pyramid(X, tmp_path / "p.zarr", levels=3, factors=2, scale=(4, 1, 0.5), units={"x": "micrometer"}, chunks=(3, 16, 16), zarr_format=2)  # fmt: skip
    images = ngff_zarr.from_ngff_zarr(str(tmp_path / "p.zarr")).images
    assert [i.data.shape for i in images] == [(3, 45, 50), (2, 23, 25), (1, 12, 13)]
    assert [tuple(i.scale.values()) for i in images] == [(4, 1, 0.5), (8, 2, 1), (16, 4, 2)]
    assert [tuple(i.translation.values()) for i in images] == [(0, 0, 0), (2, 0.5, 0.25), (6, 1.5, 0.75)]
    assert np.asarray(images[1].data).tobytes() == pg.avg_pool(X, 2, ceil_mode=True, dtype=X.dtype).tobytes()


@pytest.mark.filterwarnings("ignore")
def test_ome_zarr_reads_the_levels(tmp_path):
    io, reader = pytest.importorskip("ome_zarr.io"), pytest.importorskip("ome_zarr.reader")
    pg.pyramid(X, tmp_path / "p.zarr", levels=3, reduce="max", chunks=(3, 16, 16))
    (node, *_) = reader.Reader(io.parse_url(str(tmp_path / "p.zarr")))()
    assert [level.shape for level in node.data] == [(3, 45, 50), (2, 23, 25), (1, 12, 13)]
    assert np.asarray(node.data[1]).tobytes() == pg.max_pool(X, 2, ceil_mode=True).tobytes()
    scales = [t[0]["scale"] for t in node.metadata["coordinateTransformations"]]
    assert scales == [[1, 1, 1], [2, 2, 2], [4, 4, 4]]


def test_levels_are_added_to_a_group_with_shards(tmp_path):
    group = zarr.open_group(str(tmp_path / "p.zarr"), mode="w")
    group.create_array("0", shape=X.shape, chunks=(1, 8, 8), shards=(1, 32, 32), dtype=X.dtype)[...] = X
    made = pg.pyramid(tmp_path / "p.zarr", levels=3, factors=(1, 2, 2))
    assert made["2"][...].tobytes() == halved(halved(X)).tobytes()
    assert made["1"].shards == (1, 24, 32)
    assert [d["path"] for d in made.attrs["ome"]["multiscales"][0]["datasets"]] == ["0", "1", "2"]


def test_metadata_is_written_last_and_a_run_goes_on(tmp_path):
    def stop(state):
        if state.total > 1 and state.done == 2:
            raise KeyboardInterrupt

    words = {"levels": 3, "factors": (1, 2, 2), "chunks": (1, 16, 16), "memory": "10KB", "workers": 1}
    with pytest.raises(KeyboardInterrupt):
        pg.pyramid(X, tmp_path / "p.zarr", progress=stop, **words)
    assert "ome" not in zarr.open_group(str(tmp_path / "p.zarr"), mode="r").attrs
    group = pg.pyramid(X, tmp_path / "p.zarr", resume=True, **words)
    assert group["2"][...].tobytes() == halved(halved(X)).tobytes()
    assert "ome" in group.attrs


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"levels": 0}, "pyramid: levels: got 0"),
        ({"reduce": "mode"}, "pyramid: reduce: got 'mode'"),
        ({"factors": 1}, "pyramid: factors: got 1"),
        ({"factors": {"w": 2}}, "pyramid: factors: got"),
        ({"factors": (2, 2)}, "pyramid: factors: got"),
        ({"axes": "yx"}, "pyramid: axes: got 'yx'"),
        ({"scale": (1, 1)}, "pyramid: scale: got"),
        ({"rounding": "up"}, "pyramid: rounding: got 'up'"),
        ({"zarr_format": 4}, "pyramid: zarr_format: got 4"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_written(words, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        pg.pyramid(X, tmp_path / "p.zarr", **words)
    assert not list(tmp_path.iterdir())
