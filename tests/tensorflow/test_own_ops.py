"""Ops of our own: a function that pools is saved as a SavedModel, and gives the same bits in another process that imports poolgrad.tensorflow."""

import json
import struct

import numpy as np
import pytest
from support import HERE, python, rss, same_bits
from traced_cases import ALL, LINEAR

tf = pytest.importorskip("tensorflow", reason="needs TensorFlow")
pytest.importorskip("keras", reason="needs Keras")

import poolgrad as pg  # noqa: E402
import poolgrad.tensorflow as pool  # noqa: E402
from poolgrad._frameworks import texts  # noqa: E402
from poolgrad.tensorflow import own_ops  # noqa: E402

built = pytest.mark.skipif(own_ops.OWN is None, reason="needs the ops: python -m poolgrad.tensorflow build")
FORWARD = [case for case in ALL if case in LINEAR or case.op == "lp_pool"]


@pytest.fixture(scope="module")
def loaded(cache, tmp_path_factory):
    """Save models in one process, load them in another, and return what it found."""
    folder = str(tmp_path_factory.mktemp("models"))
    job = str(HERE / "saved_models.py")
    done = python(job, "save", folder, **cache)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    done = python(job, "load", folder, **cache)
    assert "FOUND" in done.stdout, done.stdout[-2000:] + done.stderr[-4000:]
    return folder, json.loads(done.stdout.split("FOUND")[1])


def test_values_and_derivatives_of_a_loaded_model_have_the_bits_of_the_saved_one(loaded):
    assert loaded[1]["different"] == []


def test_a_saved_model_holds_nodes_and_no_function_of_its_process(loaded):
    assert loaded[1]["kinds"] == ["PoolgradSelect", "PoolgradFollow", "PoolgradFold", "PoolgradHost"]


def test_loaded_functions_run_on_many_threads_and_in_a_data_set(loaded):
    assert loaded[1]["at once"] == [132, True]


def test_an_exported_keras_model_predicts_like_the_original(loaded):
    assert loaded[1]["keras"]


def test_a_process_without_the_ops_says_which_is_missing(loaded, cache):
    code = "import sys, tensorflow as tf\ntf.saved_model.load(sys.argv[1])"
    done = python("-c", code, loaded[0] + "/module", **cache)
    assert done.returncode
    assert "Op type not registered 'Poolgrad" in done.stderr


def test_without_the_extension_saving_is_refused_and_training_works(cache, tmp_path):
    code = (
        "import sys, tensorflow as tf, poolgrad.tensorflow as pool\n"
        "f = tf.function(lambda x: pool.max_pool(x, 2), input_signature=[tf.TensorSpec([8])])\n"
        "m = tf.Module(); m.f = f; x = tf.Variable(tf.range(8.0))\n"
        "with tf.GradientTape() as tape:\n    y = f(x)\n"
        "print(tape.gradient(y, x).numpy().tolist())\n"
        "try:\n    tf.saved_model.save(m, sys.argv[1])\n"
        "except (AssertionError, KeyError) as e:\n    print(str(e))\n"
        "def forward(x):\n"
        "    with tf.autodiff.ForwardAccumulator(x, x) as acc:\n        y = pool.max_pool(x, 2)\n"
        "    return acc.jvp(y)\n"
        "try:\n    tf.function(forward)(tf.range(4.0))\n"
        "except NotImplementedError as e:\n    print(str(e))\n"
    )
    empty = {**cache, "XDG_CACHE_HOME": str(tmp_path)}
    done = python("-c", code, str(tmp_path / "m"), **empty)
    assert done.stdout.startswith("[0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]\n"), done.stdout + done.stderr[-2000:]
    assert "SavedModel: got a function that pools through Python, wanted one traced after" in done.stdout
    assert "python -m poolgrad.tensorflow build" in done.stdout
    assert "max_pool: x: got a tensor with a tangent in a tf.function, wanted one" in done.stdout
    assert not (tmp_path / "m" / "saved_model.pb").exists()


@built
@pytest.mark.parametrize("around", [False, True], ids=["inside", "around"])
@pytest.mark.parametrize("case", FORWARD[::3], ids=str)
def test_forward_mode_works_inside_and_around_a_function(case, around):
    x, v = case.x(), case.x()[::-1].copy()

    def run(x, v):
        pooled = tf.function(lambda x: case.run(pool, x)) if around else lambda x: case.run(pool, x)
        with tf.autodiff.ForwardAccumulator(x, v) as acc:
            y = pooled(x)
        return acc.jvp(y)

    got = (run if around else tf.function(run))(tf.constant(x), tf.constant(v)).numpy()
    want = pg.jvp(lambda a: case.run(pg, a), x, v)[1]
    assert same_bits(got, want).all() or (case.op == "lp_pool" and np.allclose(got, want, rtol=1e-14))


@built
@pytest.mark.parametrize("shape", [(1, 1500, 1500, 0), (0, 1500, 1500, 1)])
def test_an_array_without_cells_needs_no_table_of_its_windows(shape):
    run = tf.function(lambda x: pool.max_pool(x, 3, 1, axes=(1, 2)))
    run(tf.zeros((*shape[:1], 9, 9, *shape[3:])))
    x = tf.zeros(shape)
    run.get_concrete_function(x)
    before = rss()
    assert run(x).shape == (*shape[:1], 1498, 1498, *shape[3:])
    assert rss() - before < 16 << 20, "an entry per window is 18 MB, and more with those of its cells"


WINDOWS = [[0, 2], [2, 4], [2, 2]]


CELLS = np.arange(8.0)


def select(x=CELLS, windows=WINDOWS, axes=(0, 8, 2), taps=tf.uint8):
    words = {"axes": list(axes), "least": False, "nan_wins": True, "spec": "", "Taps": taps}
    return own_ops.OWN.nodes.poolgrad_select(x=tf.constant(x), windows=tf.constant(windows, tf.int32), **words)


def follow(v=(1.0, 2.0), taps=(0, 1), back=True, axes=(0, 8, 2), kind=tf.uint8):
    words = {"axes": list(axes), "back": back, "spec": ""}
    state = tf.constant(taps, kind)
    return own_ops.OWN.nodes.poolgrad_follow(
        v=tf.constant(v), windows=tf.constant(WINDOWS, tf.int32), taps=state, **words
    )


def fold(v, factor=1.0, spans=False):
    (bits,) = struct.unpack("<q", struct.pack("<d", factor))
    words = {"axes": [0, 8, 2], "back": False, "mean": False, "spans": spans, "factor": bits, "spec": ""}
    return own_ops.OWN.nodes.poolgrad_fold(v=tf.constant(v), windows=tf.constant(WINDOWS, tf.int32), **words)


def host(call, out=(tf.int32,)):
    return own_ops.OWN.nodes.poolgrad_host(arrays=[tf.constant(WINDOWS, tf.int32)], Out=list(out), call=call)


@built
@pytest.mark.parametrize(
    ("run", "words"),
    [
        (lambda: select(axes=[0, 8]), "windows: unknown form"),
        (lambda: select(axes=[]), "windows: unknown form"),
        (lambda: select(axes=[5, 8, 2]), r"got axis 5 of an array of shape \[8\]"),
        (lambda: select(axes=[-1, 8, 2]), "got axis -1"),
        (lambda: select(axes=[0, 9, 2]), r"x: got shape \[8\], wanted 9 along axis 0"),
        (lambda: select(axes=[0, 8, 3]), "fewer of them than the result has cells"),
        (lambda: select(axes=[0, 8, 2**60]), "overflow"),
        (lambda: select(axes=[0, 8, -1]), "non-negative"),
        (lambda: select(np.zeros((2, 2)), axes=[1, 2, 1, 0, 2, 1]), "unknown axes"),
        (lambda: select(windows=[[0, 2], [2, 40], [2, 2]]), "window 1 is outside its axis"),
        (lambda: select(windows=[[0, 2]]), "unknown form"),
        (lambda: select(taps=tf.uint32), "taps: got another type"),
        (lambda: follow(taps=[0, 200]), "got a tap outside its window"),
        (lambda: follow(taps=[0]), "taps: got 1 elements, wanted 2"),
        (lambda: follow([1.0]), r"x: got shape \[1\], wanted 2 along axis 0"),
        (lambda: fold(np.arange(8, dtype=np.float16), spans=True), "not divided here"),
        (lambda: host(""), "JSON"),
        (lambda: host('[2, "pairs", 0, 1]'), "which another version of poolgrad wrote, wanted form 1"),
        (lambda: host('[1, "eval", "1"]'), "got 'eval' of form 1"),
        (lambda: host('[1, "pairs", 0, 2]', [tf.int32, tf.int32]), "ValueError"),
        (lambda: host('[1, "pairs", 0, 2]', [tf.string]), "Out"),
    ],
)
def test_a_damaged_node_is_refused(run, words):
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        run()


@built
def test_a_factor_keeps_all_its_bits():
    want = np.array([0.0 + 1.0, 2.0 + 3.0]) / 3.3
    assert same_bits(fold(np.arange(8.0), factor=3.3).numpy(), want).all()


@pytest.mark.parametrize("case", ALL, ids=str)
def test_texts_hold_every_pool(case, monkeypatch):
    written, run = [], pool._host
    monkeypatch.setattr(pool, "_host", lambda call, *rest: written.append(call) or run(call, *rest))
    case.run(pool, tf.constant(case.x(np.float32)))
    assert written
    for call in written:
        again = texts.read(texts.write(call))
        assert (again.func, again.args) == (call.func, call.args)


def test_importing_leaves_the_number_of_threads_to_the_program(cache):
    code = (
        "import tensorflow as tf, poolgrad.tensorflow as pool\n"
        "tf.config.threading.set_intra_op_parallelism_threads(1)\n"
        "print(tf.function(lambda x: pool.max_pool(x, 2))(tf.range(4.0)).numpy().tolist())\n"
    )
    done = python("-c", code, **cache)
    assert done.stdout == "[1.0, 3.0]\n", done.stderr[-2000:]
