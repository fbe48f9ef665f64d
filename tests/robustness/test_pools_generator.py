"""Seconds of the random calls of fuzz/pools.py, and checks that the generator finds faults and prints them small."""

import re
import sys
from collections import Counter
from types import ModuleType

import numpy as np
import pytest
from support import ROOT, python

import poolgrad as pg

FUZZ = ROOT / "fuzz"
SECONDS = "8"


@pytest.fixture
def pools(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FUZZ))
    monkeypatch.setattr(sys, "argv", ["fuzz/pools.py"])
    import pools

    return pools


def test_random_calls_of_the_pools_equal_exact_numbers_and_other_libraries():
    done = python(str(FUZZ / "pools.py"), "--seconds", SECONDS, "--seed", "20")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    last = done.stdout.strip().splitlines()[-1]
    found = re.search(r"([\d,]+) calls", last)
    assert found, last
    assert int(found[1].replace(",", "")) > 200


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("scipy", ("scipy maximum_filter", "scipy minimum_filter", "scipy uniform_filter", "scipy generic_filter")),
        ("skimage", ("scikit-image block_reduce",)),
        ("xarray", ("xarray coarsen", "xarray rolling")),
    ],
)
def test_a_peer_that_is_installed_is_asked(pools, module, words):
    pytest.importorskip(module)
    from differential import Call, Data

    counts: Counter[str] = Counter()
    x = Data("float64", (6, 4), "plain")
    for name in ("max_pool", "min_pool", "avg_pool", "sum_pool"):
        assert pools.compare(Call(name, x=x, window=2), counts) == ""
        assert pools.compare(Call(name, x=x, window=(2, 1)), counts) == ""
        assert pools.compare(Call(name, x=x, window=3, stride=2, padding=1), counts) == ""
    assert all(counts[word] for word in words), counts


FAULTS = {
    "max_pool": lambda y: y + 1,
    "avg_pool": lambda y: np.nextafter(y, np.inf),
    "sum_pool": lambda y: y.astype(np.float64),
    "adaptive_max_pool": lambda y: y[..., :-1],
    "global_min_pool": lambda y: -y,
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_pool_is_noticed_and_its_call_made_small(pools, monkeypatch, name):
    import differential
    from differential import Call, Data

    right = getattr(pg, name)
    monkeypatch.setattr(pg, name, lambda *args, **words: FAULTS[name](right(*args, **words)))
    words = {"size": 2} if "adaptive" in name else {} if "global" in name else {"window": 3, "stride": 2}
    call = Call(name, x=Data("float32", (5, 6, 7), memory="fortran"), **words)
    text = pools.compare(call, Counter())
    assert text
    line = differential._report(call, text, pools.compare)
    assert '--call "Call(' in line
    shape = re.search(r"Data\('float32', \(([\d, ]+)\)", line)
    assert shape, line
    assert np.prod([int(n) for n in shape[1].split(",") if n.strip()]) <= 8


def test_a_pool_that_writes_to_its_input_is_noticed(pools, monkeypatch):
    from differential import Call, Data

    call = Call("max_pool", x=Data("float32", (3,)), window=1)
    values = call.args["x"].array()
    monkeypatch.setattr(pg, "max_pool", lambda x, window: (x.__setitem__(-1, 9), values)[1])
    assert pools.compare(call, Counter()) == "x was written"


@pytest.mark.parametrize("fault", ["accepted", "named otherwise"])
def test_a_refusal_that_is_missing_or_names_another_argument_is_noticed(pools, monkeypatch, fault):
    from differential import Call, Data

    def wrong(*args, **words):
        if fault == "accepted":
            return np.zeros(2)
        raise ValueError("max_pool: window: got 0, wanted something")

    call = Call("max_pool", x=Data("float32", (4,)), window=2, wrong=("stride", 0))
    assert pools.compare(call, Counter()) == ""
    monkeypatch.setattr(pg, "max_pool", wrong)
    assert pools.compare(call, Counter())


def test_every_documented_difference_stands_in_the_documentation(pools):
    text = " ".join((ROOT / "docs" / "pools.md").read_text().split())
    missing = [reason for reason in pools.REASONS.values() if reason not in text]
    assert not missing


def test_a_call_is_the_same_whenever_it_is_drawn(pools):
    import pool_calls

    first, again = (repr([pool_calls.draw(np.random.default_rng([3, i])) for i in range(50)]) for _ in range(2))
    assert first == again


def test_all_pools_dtypes_and_layouts_are_drawn(pools):
    import differential
    import pool_calls

    drawn = [pool_calls.draw(np.random.default_rng([4, i])) for i in range(4000)]
    assert {call.name for call in drawn} == set(pools.COMPARE)
    assert {call.args["x"].dtype for call in drawn} == set(pool_calls.DTYPES)
    assert {call.args["x"].memory for call in drawn} == set(differential.MEMORY)
    assert {len(call.args["x"].shape) for call in drawn} == set(range(7))
    assert {call.args["wrong"][0] for call in drawn if "wrong" in call.args} == set(pool_calls.WRONG)
    assert {call.args.get("library") for call in drawn} == {None, *pool_calls.LIBRARIES}


def test_every_pool_of_the_api_is_compared(pools):
    names = {name for name in pg.__all__ if name.endswith(("_pool", "ing", "imum"))}
    assert names - {"unpooling"} <= set(pools.COMPARE)
