"""The tests bite: with a wrong verb planted, the tests that claim the verb is right fail, each by its name."""

import os
import re

import pytest
from faults import FAULTS
from support import ROOT, python

ORACLE = "tests/kernels/test_reference.py::test_kernels_equal_the_reference_on_"
SAMPLE = "tests/conformance/test_corpus.py::test_the_sample_gives_the_recorded_bits[{}-kernels]"
POOLING = "tests/public/test_raw_ops_properties.py::"
SEEDS = "tests/conformance/test_seeds.py::"

# For each fault, the tests that must fail.
NAMED = {
    "shifted_window": [
        ORACLE + "ties[MaxPool-float32]",
        SAMPLE.format("MaxPool"),
        POOLING + "test_the_maximum_is_a_cell_of_its_window_and_below_none",
    ],
    "dropped_tap": [
        ORACLE + "ties[AvgPool-float64]",
        SAMPLE.format("QuantizedAvgPool"),
        SEEDS + "test_pictured_avg_pool",
    ],
    "last_tie": [
        ORACLE + "ties[MaxPoolGrad-int8]",
        SAMPLE.format("MaxPoolGradV2"),
        POOLING + "test_a_maximum_routes_all_of_the_gradient",
    ],
    "swapped_order": [
        ORACLE + "any_values[AvgPool3DGrad-float32]",
        ORACLE + "any_values[AvgPoolGrad-float16]",
        SAMPLE.format("AvgPool3DGrad"),
    ],
    "count_with_padding": [
        ORACLE + "ties[AvgPool-float32]",
        SAMPLE.format("AvgPool"),
        SEEDS + "test_pictured_avg_pool",
    ],
    "contagious_nan": [
        ORACLE + "any_values[MaxPool-float64]",
        SAMPLE.format("MaxPoolV2"),
        SAMPLE.format("FractionalMaxPool"),
    ],
    "zero_start": [ORACLE + "ties[MaxPool3D-int16]", SAMPLE.format("MaxPool3D")],
    "wrong_index_base": [
        ORACLE + "ties[MaxPoolWithArgmax-float32]",
        SAMPLE.format("MaxPoolWithArgmax"),
        SEEDS + "test_pictured_max_pool_with_argmax",
    ],
    "one_based_index": [ORACLE + "ties[MaxPoolWithArgmax-uint8]", SEEDS + "test_pictured_max_pool_with_argmax"],
    "first_near_only": [
        ORACLE + "ties[MaxPool3DGrad-float32]",
        SEEDS + "test_seed003_with_ones_for_orig_output_gives_both_tied_cells_the_gradient",
    ],
    "recall_of_maximum": [ORACLE + "ties[MaxPoolGradGrad-float32]", SEEDS + "test_pictured_max_pool_3d_grad_grad"],
    "overwriting_scatter": [ORACLE + "ties[MaxPoolGradWithArgmax-int64]", SAMPLE.format("MaxPoolGradWithArgmax")],
    "wide_accumulator": [
        ORACLE + "any_values[AvgPool-bfloat16]",
        "tests/conformance/test_deviations.py::test_a_named_deviation_is_as_it_says",
    ],
    "double_reciprocal": [ORACLE + "any_values[AvgPool3DGrad-float64]"],
}

pytestmark = pytest.mark.skipif("POOLGRAD_TEST_FAULT" in os.environ, reason="this process has a fault itself")


def failed(tests: list[str], fault: str = "") -> set[str]:
    """Return those of these tests that fail, in a process of their own."""
    done = python("-m", "pytest", "-q", "-p", "no:cacheprovider", "-rfE", "--tb=no", *tests, POOLGRAD_TEST_FAULT=fault)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return set(re.findall(r"^(?:FAILED|ERROR) (\S+?(?:\[.*?\])?)(?: - .*)?$", done.stdout, re.MULTILINE))


def test_every_fault_names_the_tests_that_notice_it():
    assert set(NAMED) == set(FAULTS)
    assert len(NAMED) >= 8


def test_without_a_fault_all_named_tests_pass():
    assert failed(sorted({test for tests in NAMED.values() for test in tests})) == set()


@pytest.mark.parametrize("fault", NAMED)
def test_a_fault_is_noticed_by_the_tests_it_names(fault):
    found = failed(NAMED[fault], fault)
    missed = [test for test in NAMED[fault] if not any(name.startswith(test) for name in found)]
    assert not missed, f"POOLGRAD_TEST_FAULT={fault} python -m pytest {' '.join(missed)}   (in {ROOT.name}/)"
