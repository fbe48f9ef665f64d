"""Chunks that are read and written as files have the cells that Zarr reads and writes, and damage to them is named."""

import os

import numpy as np
import pytest

import poolgrad as pg
from poolgrad.jobs.chunk_files import ChunkError, find_files, scratch

zarr = pytest.importorskip("zarr", reason="zarr is not installed")
codecs = zarr.codecs

RNG = np.random.default_rng(0)
PLAIN = {
    "raw": {"compressors": None},
    "raw 2": {"compressors": None, "zarr_format": 2},
    "dots": {"compressors": None, "zarr_format": 2, "chunk_key_encoding": {"name": "v2", "separator": "."}},
    "big end": {"compressors": None, "serializer": codecs.BytesCodec(endian="big")},
    "zstd": {"compressors": codecs.ZstdCodec(level=1, checksum=True)},
    "blosc": {"compressors": codecs.BloscCodec(cname="lz4", shuffle="shuffle")},
    "gzip": {"compressors": codecs.GzipCodec(level=1)},
    "checksum": {"compressors": codecs.Crc32cCodec()},
    "both": {"compressors": [codecs.ZstdCodec(), codecs.Crc32cCodec()]},
    "zstd 2": {"zarr_format": 2},
    "fill": {"compressors": None, "fill_value": 7},
}
OTHERS = {
    "shards": {"shards": (16, 16, 16)},
    "order F": {"zarr_format": 2, "order": "F"},
    "transposed": {"filters": [codecs.TransposeCodec(order=(2, 1, 0))]},
}
DTYPES = ("uint8", "int16", "uint16", "int64", "float16", "float32", "float64", "bool")
SHAPE, CHUNKS = (21, 17, 30), (8, 8, 8)


def cells(dtype, shape=SHAPE):
    return RNG.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)


def create(path, dtype="uint16", shape=SHAPE, chunks=CHUNKS, **words):
    return zarr.create_array(str(path), shape=shape, chunks=chunks, dtype=dtype, **words)


def some_regions(shape):
    yield tuple(slice(0, n) for n in shape)
    for _ in range(8):
        ends = [sorted(RNG.integers(0, n + 1, 2).tolist()) for n in shape]
        yield tuple(slice(a, b) for a, b in ends)


def taken(files, region, dtype):
    out = np.full([s.stop - s.start for s in region], 55, dtype)
    files.read(region, out)
    return out


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.filterwarnings("ignore")  # Zarr warns of what its versions will do
def test_reads_and_writes_as_zarr_does(kind, dtype, tmp_path):
    x = cells(dtype)
    words = {**PLAIN[kind], **({"fill_value": 1} if kind == "fill" else {})}
    array = create(tmp_path / "x", dtype, **words)
    array[...] = x
    array[8:16, 8:16, 8:16] = array.fill_value  # Zarr removes this chunk
    want, files = array[...], find_files(array)
    assert files is not None
    for region in some_regions(SHAPE):
        assert taken(files, region, dtype).tobytes() == np.ascontiguousarray(want[region]).tobytes()
    other = create(tmp_path / "y", dtype, **words)
    find_files(other).write(tuple(slice(0, n) for n in SHAPE), want)
    assert other[...].tobytes() == want.tobytes()
    names = [
        sorted(os.path.relpath(os.path.join(at, f), root) for at, _, found in os.walk(root) for f in found)
        for root in (tmp_path / "x", tmp_path / "y")
    ]
    assert names[0] == names[1]  # no chunk more or less, nothing left over


def test_chunks_of_fill_values_have_files_if_zarr_is_told_so(tmp_path):
    with zarr.config.set({"array.write_empty_chunks": True}):
        array = create(tmp_path / "x")
    find_files(array).write(tuple(slice(0, n) for n in SHAPE), np.zeros(SHAPE, "uint16"))
    assert len([f for _, _, found in os.walk(tmp_path / "x") for f in found]) > 1
    assert not array[...].any()


@pytest.mark.parametrize("kind", OTHERS)
def test_leaves_other_arrays_to_zarr(kind, tmp_path):
    x = cells("uint16")
    array = create(tmp_path / "x", **OTHERS[kind])
    array[...] = x
    assert find_files(array) is None
    assert pg.pool(array, None, "max", 3).tobytes() == pg.max_pool(x, 3).tobytes()


def test_leaves_arrays_that_are_not_on_this_machine_to_zarr():
    assert find_files(zarr.create_array(zarr.storage.MemoryStore(), shape=(4,), chunks=(2,), dtype="u2")) is None
    assert find_files(np.zeros(4)) is None


@pytest.mark.parametrize("rank", [0, 1, 4])
def test_arrays_of_any_rank(rank, tmp_path):
    shape = (5, 4, 3, 6)[:rank]
    x = cells("float32", shape)
    array = create(tmp_path / "x", "float32", shape, (2,) * rank, compressors=None)
    array[...] = x
    files = find_files(array)
    find_files(array).write(tuple(slice(0, n) for n in shape), x + 1)
    assert array[...].tobytes() == (x + 1).tobytes()
    x = x + 1
    region = tuple(slice(min(1, n - 1), n) for n in shape)
    assert taken(files, region, "float32").tobytes() == np.ascontiguousarray(x[region]).tobytes()


def test_zeros_keep_their_sign_and_nan_its_bits(tmp_path):
    for fill in (0.0, np.nan):
        with zarr.config.set({"array.write_empty_chunks": False}):  # whatever another test has set
            array = create(tmp_path / f"x{fill}", "float64", (4, 4), (2, 2), fill_value=fill)
        x = np.full((4, 4), -0.0 if fill == 0 else np.nan)
        x[:2, :2] = fill
        if fill != 0:
            x[2:, 2:].view(np.uint64)[...] |= 5
        find_files(array).write((slice(0, 4), slice(0, 4)), x)
        assert array[...].tobytes() == x.tobytes()
        assert not os.path.exists(tmp_path / f"x{fill}" / "c" / "0" / "0")


DAMAGE = {
    "short": lambda data: data[:-1],
    "long": lambda data: data + b"x",
    "empty": lambda data: b"",
    "torn": lambda data: data[: len(data) // 2] + bytes(len(data) - len(data) // 2),
    "flipped": lambda data: data[:40] + bytes([data[40] ^ 4]) + data[41:],
}


@pytest.mark.parametrize(
    ("kind", "damage"),
    [("raw", "short"), ("raw", "long"), ("raw", "empty"), ("zstd", "short"), ("zstd", "empty"), ("zstd", "torn"), ("zstd", "flipped"), ("blosc", "short"), ("blosc", "empty"), ("gzip", "torn"), ("checksum", "flipped"), ("checksum", "torn"), ("both", "flipped")],
)  # fmt: skip
def test_a_damaged_chunk_is_named_by_its_index(kind, damage, tmp_path):
    array = create(tmp_path / "x", **PLAIN[kind])
    array[...] = RNG.integers(0, 60_000, SHAPE, dtype=np.uint16)
    path = tmp_path / "x" / "c" / "1" / "0" / "2"
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    with pytest.raises(ChunkError) as caught:
        taken(find_files(array), tuple(slice(0, n) for n in SHAPE), "uint16")
    assert caught.value.index == (1, 0, 2)
    with pytest.raises(OSError, match=r"got chunk \[1, 0, 2\] that cannot be read"):
        pg.pool(str(tmp_path / "x"), tmp_path / "y", "max", 2)


def test_a_chunk_that_is_written_appears_at_once(tmp_path, monkeypatch):
    array = create(tmp_path / "x", compressors=None)
    files, region = find_files(array), (slice(0, 8),) * 3
    files.write(region, np.full((8, 8, 8), 5, np.uint16))

    def stop(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", stop)
        with pytest.raises(OSError, match="No space"):
            files.write(region, np.full((8, 8, 8), 6, np.uint16))
    assert (array[region] == 5).all()
    assert os.listdir(tmp_path / "x" / "c" / "0" / "0") == ["0"]


def test_memory_is_used_again():
    first = scratch("a", (100, 100), np.dtype("float64"))
    assert np.shares_memory(first, scratch("a", (90, 100), np.dtype("float64")))
    assert not np.shares_memory(first, scratch("b", (100, 100), np.dtype("float64")))
    assert scratch("a", (1, 2), np.dtype("uint8")).base is not first.base  # much smaller: the old memory is freed
