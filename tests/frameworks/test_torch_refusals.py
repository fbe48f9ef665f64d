"""Bad words of torch's kind are refused by name."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import poolgrad.torch as pgt  # noqa: E402

X = torch.zeros(1, 1, 4, 4)
WRONG = {
    "input: got dtype torch.int64": lambda: pgt.lp_pool2d(X.long(), 2.0, 2),
    "reduce: got 'first'": lambda: pgt.max_unpool2d(X, X.long(), 2, reduce="first"),
    "indices": lambda: pgt.max_unpool2d(X, X, 2),
    "output_size: got None": lambda: pgt.fractional_max_pool2d(X, 2),
    "size": lambda: pgt.fractional_max_pool2d(X, 2, output_size=(1, 2, 3)),
    "output_ratio: got 1.5": lambda: pgt.fractional_max_pool2d(X, 2, output_ratio=1.5),
}


@pytest.mark.parametrize("words", WRONG)
def test_it_is_refused_by_name(words):
    with pytest.raises((ValueError, TypeError), match=words):
        WRONG[words]()
