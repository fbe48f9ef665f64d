"""The functions have TensorFlow's names, arguments, order and defaults, and docstrings."""

import doctest
import importlib.util
import inspect
import pkgutil
from types import ModuleType

import numpy as np
import pytest
from support import Case, arguments, python

import poolgrad
import poolgrad.graph
import poolgrad.studio
from poolgrad import graph, raw_ops, reference
from poolgrad._ops import semantics, table
from poolgrad._ops.table import OPS, Kind

SIZES = "ksize, strides, padding"
THREE = "orig_input, orig_output, grad"
DRAW = "pooling_ratio, pseudo_random=False, overlapping=False, deterministic=False, seed=0, seed2=0, name=None"
BORDERS = "row_pooling_sequence, col_pooling_sequence, overlapping=False, name=None"
FLAT, SOLID = "data_format='NHWC', name=None", "data_format='NDHWC', name=None"
BATCH = "include_batch_in_index=False, name=None"

SIGNATURES = {
    "AvgPool": f"value, {SIZES}, {FLAT}",
    "AvgPoolGrad": f"orig_input_shape, grad, {SIZES}, {FLAT}",
    "AvgPool3D": f"input, {SIZES}, {SOLID}",
    "AvgPool3DGrad": f"orig_input_shape, grad, {SIZES}, {SOLID}",
    "MaxPool": f"input, {SIZES}, explicit_paddings=[], {FLAT}",
    "MaxPoolV2": f"input, {SIZES}, {FLAT}",
    "MaxPoolGrad": f"{THREE}, {SIZES}, explicit_paddings=[], {FLAT}",
    "MaxPoolGradV2": f"{THREE}, {SIZES}, {FLAT}",
    "MaxPoolGradGrad": f"{THREE}, {SIZES}, {FLAT}",
    "MaxPoolGradGradV2": f"{THREE}, {SIZES}, {FLAT}",
    "MaxPoolWithArgmax": f"input, {SIZES}, Targmax='int64', {BATCH}",
    "MaxPoolGradWithArgmax": f"input, grad, argmax, {SIZES}, {BATCH}",
    "MaxPoolGradGradWithArgmax": f"input, grad, argmax, {SIZES}, {BATCH}",
    "MaxPool3D": f"input, {SIZES}, {SOLID}",
    "MaxPool3DGrad": f"{THREE}, {SIZES}, {SOLID}",
    "MaxPool3DGradGrad": f"{THREE}, {SIZES}, {SOLID}",
    "FractionalMaxPool": f"value, {DRAW}",
    "FractionalMaxPoolGrad": f"orig_input, orig_output, out_backprop, {BORDERS}",
    "FractionalAvgPool": f"value, {DRAW}",
    "FractionalAvgPoolGrad": f"orig_input_tensor_shape, out_backprop, {BORDERS}",
    "QuantizedAvgPool": f"input, min_input, max_input, {SIZES}, name=None",
    "QuantizedMaxPool": f"input, min_input, max_input, {SIZES}, name=None",
}
FIELDS = {
    "MaxPoolWithArgmax": ("output", "argmax"),
    "FractionalMaxPool": ("output", "row_pooling_sequence", "col_pooling_sequence"),
    "FractionalAvgPool": ("output", "row_pooling_sequence", "col_pooling_sequence"),
    "QuantizedAvgPool": ("output", "min_output", "max_output"),
    "QuantizedMaxPool": ("output", "min_output", "max_output"),
}


def test_there_are_these_22_operators_and_no_others():
    assert set(OPS) == set(raw_ops.__all__) == set(SIGNATURES)
    assert len(OPS) == 22


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_signature_is_tensorflow_s_and_keyword_only(name):
    assert str(inspect.signature(getattr(raw_ops, name))) == f"(*, {SIGNATURES[name]})"


@pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="tensorflow is not installed")
def test_the_table_of_signatures_is_that_of_the_installed_tensorflow():
    """Run in a process of its own: a framework in this one would spoil the tests about imports."""
    code = """
import inspect, sys, tensorflow as tf
for name in sys.argv[1:]:
    print(name, inspect.signature(getattr(tf.raw_ops, name)), sep="")
"""
    done = python("-c", code, *SIGNATURES)
    assert done.stdout.replace("tf.int64", "'int64'").splitlines() == [f"{n}({s})" for n, s in SIGNATURES.items()]


@pytest.mark.parametrize("name", OPS)
def test_results_have_the_names_and_types_of_the_original(name):
    result = getattr(raw_ops, name)(
        **arguments(Case(name, OPS[name].dtypes[-1], x=(1, *(4,) * OPS[name].spatial, 2), k=(2,) * OPS[name].spatial))
    )
    fields = FIELDS.get(name)
    if fields is None:
        assert type(result) is np.ndarray
    else:
        assert result._fields == fields
        assert type(result).__name__ == name
        assert all(isinstance(part, np.ndarray) for part in result)


@pytest.mark.parametrize("name", OPS)
def test_a_name_is_accepted_and_ignored(name):
    case = Case(name, OPS[name].dtypes[0], x=(1, *(4,) * OPS[name].spatial, 2), k=(2,) * OPS[name].spatial)
    getattr(raw_ops, name)(**arguments(case), name="anything")


# ---- the table


def deviation_names() -> dict[str, str]:
    """Return the named deviations: upper-case texts of the table that rows promise."""
    promised = {text for op in OPS.values() for text in op.promise.deviations}
    return {
        key: value
        for key, value in vars(table).items()
        if key.isupper() and isinstance(value, str) and value in promised
    }


@pytest.mark.parametrize("name", OPS)
def test_a_row_is_complete(name):
    op = OPS[name]
    assert op.name == name
    assert op.summary.endswith(".")
    assert op.dtypes
    assert len(set(op.dtypes)) == len(op.dtypes)
    assert len({p.name for p in op.params}) == len(op.params)
    assert op.params[-1].kind is Kind.NAME
    assert op.outputs == FIELDS.get(name, ("output",))
    assert set(op.promise.deviations) <= set(deviation_names().values())
    assert all(len(text) > 20 for text in op.promise.deviations)


def test_no_text_of_the_table_is_a_deviation_that_no_row_has():
    texts = {k for k, v in vars(table).items() if k.isupper() and isinstance(v, str)}
    assert texts == set(deviation_names())


@pytest.mark.parametrize(
    "kind", [semantics.Kernel, semantics.WindowRule, semantics.Mean, semantics.Share, semantics.Start]
)
def test_every_word_of_the_rules_is_used_by_a_row(kind):
    used = {word for op in OPS.values() for word in vars(op.rule).values() if isinstance(word, kind)}
    pythonic = {
        semantics.Mean: {"TOTAL", "ONCE", "SPANNED"},
        semantics.Share: {"WHOLE"},
    }  # which the pools use, and no operator
    assert {word.name for word in used} == {word.name for word in kind} - pythonic.get(kind, set())


# ---- what they say about themselves


@pytest.mark.parametrize("name", OPS)
def test_a_docstring_names_every_argument_dtype_and_deviation(name):
    op, text = OPS[name], getattr(raw_ops, name).__doc__
    assert text.startswith(op.summary)
    heads = ("Parameters", "Returns", "Raises", "Notes", "Examples")
    assert all(f"\n{head}\n{'-' * len(head)}\n" in text for head in heads)
    parameters = text.partition("Parameters\n")[2].partition("Returns\n")[0]
    assert [line.partition(" : ")[0] for line in parameters.splitlines() if " : " in line] == [
        p.name for p in op.params
    ]
    words = " ".join(text.split())
    assert all(d in words for d in (*op.dtypes, *op.promise.deviations))


@pytest.mark.parametrize("name", OPS)
def test_the_example_of_an_op_is_true(name):
    text = getattr(raw_ops, name).__doc__
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


VERBS = [
    name
    for name, f in vars(reference).items()
    if name[0] != "_" and inspect.isfunction(f) and f.__module__ == "poolgrad.reference"
]
CALLS = [
    *((reference, name) for name in VERBS), (graph, "gradients"), (graph.Session, "run"), (graph.Scope, "of"), (graph.Scope, "add"),
    (graph.Scope, "explain"), (graph.Scope, "output"), (graph.Scope, "new_root_scope"), (graph.Graph, "from_json"),
    *((graph.service, name) for name in ("parse", "check", "run", "tensor", "repair", "embed", "gradients", "export", "import_")),
]  # fmt: skip


@pytest.mark.parametrize(("owner", "name"), CALLS, ids=lambda v: getattr(v, "__name__", v))
def test_a_docstring_describes_every_parameter_and_the_result(owner, name):
    function = getattr(owner, name)
    text = inspect.getdoc(function)
    parameters, _, rest = text.partition("Parameters\n----------\n")[2].partition("\nReturns\n-------\n")
    described = [part for line in parameters.splitlines() if " : " in line for part in line.split(" : ")[0].split(", ")]
    assert described == [p for p in inspect.signature(function).parameters if p != "self"]
    assert rest.strip()


@pytest.mark.parametrize("name", VERBS)
def test_the_example_of_a_verb_is_true(name):
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(getattr(reference, name)), {}, name, None, None)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def test_every_public_name_has_a_docstring():
    for name in poolgrad.__all__:
        thing = getattr(poolgrad, name)
        assert isinstance(thing, str) or (thing.__doc__ or "").strip(), name


def modules() -> list[str]:
    """List every module of the package except those of framework adapters, which have tests of their own."""
    found = (m for m in pkgutil.walk_packages(poolgrad.__path__, "poolgrad.") if not m.ispkg)
    apart = ("torch", "jax", "keras", "problem", "_core", "__main__")
    return [m.name for m in found if m.name.split(".")[1] not in apart and not m.name.endswith(".__main__")]


def imported(name: str) -> ModuleType:
    """Return the module; skip if it needs a framework that is not installed."""
    needs = {"autograd": "autograd", "tensorflow": "tensorflow", "_explain.plot": "matplotlib"}
    needed = needs.get(name.removeprefix("poolgrad."))
    if needed:
        pytest.importorskip(needed)
    return importlib.import_module(name)


@pytest.mark.parametrize("module", modules())
def test_every_public_function_and_class_of_a_module_has_a_docstring(module):
    loaded = imported(module)
    assert (loaded.__doc__ or "").strip()
    own = [v for k, v in vars(loaded).items() if k[0] != "_" and getattr(v, "__module__", "") == module and callable(v)]
    silent = [v.__name__ for v in own if getattr(v, "__name__", "") and not (v.__doc__ or "").strip()]
    assert not silent


@pytest.mark.parametrize("module", modules())
def test_the_examples_in_docstrings_are_true(module):
    failed, _ = doctest.testmod(imported(module))
    assert failed == 0
