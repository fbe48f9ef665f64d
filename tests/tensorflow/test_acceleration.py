"""`poolgrad.tensorflow.accelerate`: TensorFlow's own ops run on our kernels, with the same bits, and refuse what TensorFlow refuses.

Each test reads what one of two processes found, with oneDNN off and on: a registered kernel stays in its process.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Any

import pytest
from support import HERE, ROOT, SHARED, python

from poolgrad._ops.table import OPS

pytest.importorskip("tensorflow", reason="needs TensorFlow")
pytest.importorskip("keras", reason="needs Keras")
REPLAY = SHARED / "corpus" / "replay_corpus.py"
KNOWN = {
    line.split("\t")[0]
    for line in (ROOT / "tests" / "conformance" / "known.txt").read_text().splitlines()
    if line[0] != "#"
}
# oneDNN has kernels for these, and TensorFlow rewrites their calls: they stay TensorFlow's while oneDNN is on.
REWRITTEN = {"AvgPool", "AvgPoolGrad", "AvgPool3D", "AvgPool3DGrad", "MaxPool", "MaxPool3D"}
OURS = {"MaxPoolWithArgmax", "MaxPoolGradWithArgmax", "FractionalMaxPool", "FractionalMaxPoolGrad"}
OURS |= {"FractionalAvgPool", "FractionalAvgPoolGrad", "MaxPoolGradGrad", "MaxPool3DGradGrad"}


@pytest.fixture(scope="module", params=["0", "1"], ids=["oneDNN off", "oneDNN on"])
def job(
    request: pytest.FixtureRequest, cache: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[bool, dict[str, Any]]:
    """Return whether oneDNN is on, and what the process found."""
    folder = tmp_path_factory.mktemp("job")
    done = python(str(HERE / "accelerated_job.py"), str(folder), TF_ENABLE_ONEDNN_OPTS=request.param, **cache)
    assert "FOUND" in done.stdout, done.stdout[-2000:] + done.stderr[-4000:]
    return request.param == "1", json.loads(done.stdout.split("FOUND")[1])


def test_status_tells_what_is_on(job):
    found = job[1]
    assert found["status before"] == [False, {}]
    assert found["status after"] == [True, 0]


def test_threads_follow_the_limit_of_tensorflow(job):
    assert job[1]["threads"] == 1


@pytest.mark.parametrize("how", ["eager", "compiled"])
def test_pools_and_their_derivatives_have_the_bits_of_tensorflow(job, how):
    mkl, found = job
    different, runs = found[how]
    assert different == []
    assert set(runs) >= OURS
    if not mkl:
        assert set(runs) >= REWRITTEN | {"MaxPoolGrad", "MaxPool3DGrad"}


@pytest.mark.parametrize("name", ["2-D compiled", "3-D eager"])
def test_keras_models_train_alike(job, name):
    mkl, found = job
    difference, runs = found[f"keras {name}"]
    assert difference <= 1e-6  # sums of convolutions differ from run to run
    if not mkl:
        assert {"2": "MaxPoolGrad", "3": "MaxPool3DGrad"}[name[0]] in runs


def test_a_model_saved_before_runs_our_kernels(job):
    same, runs = job[1]["saved"]
    assert same
    assert set(runs) >= {"MaxPoolWithArgmax", "MaxPoolGradWithArgmax", "FractionalMaxPool", "FractionalMaxPoolGrad"}


def test_calls_from_many_threads_agree(job):
    assert job[1]["at once"] == [80, True]


@pytest.mark.parametrize("name", ["channels first", "float64"])
def test_calls_that_only_the_definition_allows_are_computed(job, name):
    mkl, found = job
    if mkl and name == "float64":
        pytest.skip("oneDNN takes this call")
    assert found[name][0]
    assert sum(found[name][1].values()) == 1


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("shape", "InvalidArgumentError", "Expected grad shape to be [2,6,5,3], but got [2,13,11,3]"),
        ("batch", "UnimplementedError", "Pooling is not yet supported on the batch dimension."),
        ("window", "InvalidArgumentError", "ksize must be positive"),
        ("argmax", "InvalidArgumentError", "a position outside the array"),
        ("ratio", "InvalidArgumentError", "pooling_ratio cannot be smaller than 1"),
        ("wrong version", "RuntimeError", "tensorflow: got version 1.15.0, wanted"),
        ("not built", "RuntimeError", "python -m poolgrad.tensorflow build"),
    ],
)
def test_refusals_have_the_type_of_tensorflow_and_say_what_to_do(job, name, kind, words):
    got, text = job[1][name]
    assert got == kind
    assert words in text


def test_recorded_calls_give_the_recorded_bits_through_tensorflow(cache):
    done = python("-c", SAMPLE, TF_ENABLE_ONEDNN_OPTS="0", **cache)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    calls, differences = json.loads(done.stdout.splitlines()[-1])
    assert calls > 700
    assert differences == []


# Lenient where TensorFlow 2.21 refuses by want of a kernel, or accepts by want of a check: the table names these.
SAMPLE = """
import json, sys
sys.path.insert(0, "tests/conformance")
import accelerated_ops, test_corpus
calls, wrong = 0, []
import tensorflow as tf
for op, recorded in test_corpus.sample().items():
    run = {op: getattr(accelerated_ops, op, None)}
    if run[op] is None:
        continue
    for call in recorded:
        calls += 1
        try:
            text = test_corpus.replay(call, run)
        except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError, tf.errors.NotFoundError) as error:
            text = f"refused: {error}" if call.get("outputs") else ""
        if text and not text.startswith("accepted"):
            wrong.append(test_corpus.line(call) + ": " + text)
print(json.dumps([calls, wrong]))
"""


@pytest.mark.skipif(
    not REPLAY.exists() or not os.environ.get("POOLGRAD_WHOLE_CORPUS"),
    reason="replays 11,000 calls for a minute; POOLGRAD_WHOLE_CORPUS=1 runs it where the corpus is",
)
def test_the_whole_corpus_gives_the_recorded_bits_through_tensorflow(cache, tmp_path):
    report = tmp_path / "outcomes.jsonl"
    ops = [word for op in OPS if not op.startswith("Quantized") for word in ("--op", op)]
    words = ["--module", "accelerated_ops", "--path", str(HERE), "--json", str(report), *ops]
    python(str(REPLAY), *words, TF_ENABLE_ONEDNN_OPTS="0", timeout=1200, **cache)
    outcomes = [json.loads(line) for line in report.read_text().splitlines()]
    assert len(outcomes) > 10_000
    assert {o["id"] for o in outcomes if not o["ok"]} <= KNOWN


# A library that registers a kernel of its own for an op that ours serves too: it fills its result with sevens.
RIVAL = r"""
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
static void* tf(const char* name) {
  void* found = dlsym(dlopen("libtensorflow_framework.so.2", RTLD_NOW | RTLD_NOLOAD), name);
  return found ? found : dlsym(dlopen("libtensorflow_cc.so.2", RTLD_NOW | RTLD_NOLOAD), name);
}
static void* made(void* construction) { (void)construction; return 0; }
static void gone(void* kernel) { (void)kernel; }
static void compute(void* kernel, void* context) {
  void *status = ((void* (*)(void))tf("TF_NewStatus"))(), *y = 0;
  int64_t dims[4];
  int64_t size = 1;
  (void)kernel;
  ((void (*)(void*, int, void**, void*))tf("TF_GetInput"))(context, 1, &y, status);
  for (int i = 0; i < 4; ++i) size *= dims[i] = ((int64_t(*)(void*, int))tf("TF_Dim"))(y, i);
  void* out = ((void* (*)(void*, int, int, const int64_t*, int, size_t, void*))tf("TF_AllocateOutput"))(context, 0, 1, dims, 4, (size_t)size * 4, status);
  float* cells = ((void* (*)(void*))tf("TF_TensorData"))(out);
  for (int64_t i = 0; i < size; ++i) cells[i] = 7;
}
void register_rival(int32_t priority) {
  void* status = ((void* (*)(void))tf("TF_NewStatus"))();
  void* builder = ((void* (*)(const char*, const char*, void*, void*, void*))tf("TF_NewKernelBuilder"))("MaxPoolGradGrad", "CPU", (void*)made, (void*)compute, (void*)gone);
  ((void (*)(void*, const char*, int, void*))tf("TF_KernelBuilder_TypeConstraint"))(builder, "T", 1, status);
  ((void (*)(void*, int32_t))tf("TF_KernelBuilder_Priority"))(builder, priority);
  ((void (*)(const char*, void*, void*))tf("TF_RegisterKernelBuilder"))("Rival", builder, status);
}
"""
BESIDE_A_RIVAL = """
import ctypes, sys
import tensorflow as tf
from poolgrad.tensorflow import accelerate
rival, priority, first = ctypes.CDLL(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "first"
if first:
    rival.register_rival(priority)
accelerate()
if not first:
    rival.register_rival(priority)
x = tf.reshape(tf.range(16.0), (1, 4, 4, 1))
words = dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
y = tf.raw_ops.MaxPool(input=x, **words)
try:
    print(tf.raw_ops.MaxPoolGradGrad(orig_input=x, orig_output=y, grad=x, **words).numpy().ravel().tolist())
except Exception as error:
    print(type(error).__name__, error)
print(accelerate.status().ops["MaxPoolGradGrad"])
"""


@pytest.fixture(scope="module")
def rival(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Compile the other library; return its path."""
    folder = tmp_path_factory.mktemp("rival")
    (folder / "rival.c").write_text(RIVAL)
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("needs a C compiler")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", "rival.so", "rival.c", "-ldl"], cwd=folder, check=True)
    return str(folder / "rival.so")


@pytest.mark.parametrize(
    ("priority", "order", "said"),
    [
        (2, "first", "[7.0, 7.0, 7.0, 7.0]"),
        (2, "later", "[7.0, 7.0, 7.0, 7.0]"),
        (1, "later", "Multiple OpKernel registrations"),
    ],
)
def test_of_two_libraries_the_higher_priority_counts_and_equal_ones_are_an_error(cache, rival, priority, order, said):
    done = python("-c", BESIDE_A_RIVAL, rival, str(priority), order, **cache)
    *answer, runs = done.stdout.splitlines()
    assert said in "\n".join(answer), done.stdout + done.stderr[-2000:]
    assert int(runs) == 0


FORKED = """
import multiprocessing, sys
import tensorflow as tf
from poolgrad.tensorflow import accelerate
if sys.argv[1] == "before":
    accelerate(), accelerate()

def work(n):
    accelerate()
    x = tf.reshape(tf.range(float(n * 64 * 64)), (n, 64, 64, 1))
    data = tf.data.Dataset.from_tensor_slices([x] * 4).map(pooled, num_parallel_calls=2)
    sums = {float(tf.reduce_sum(y)) for y in data}
    y, at = tf.nn.max_pool_with_argmax(x, 2, 2, "SAME")
    return len(sums), float(tf.reduce_sum(y)) in sums, accelerate.status().ops["MaxPoolWithArgmax"]

def pooled(x):
    return tf.nn.max_pool_with_argmax(x, 2, 2, "SAME")[0]

with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map_async(work, [1, 1, 1, 1], chunksize=2).get(60))
assert accelerate.status().on == (sys.argv[1] == "before")
print(work(1))
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_forked_workers_and_their_data_sets_run_our_kernels(cache, when):
    done = python("-W", "ignore", "-c", FORKED, when, **cache)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    workers, own = done.stdout.splitlines()
    assert workers.count("(1, True, ") == 4
    assert "(1, True, 5)" in workers
    assert own == "(1, True, 5)"


def test_a_version_that_was_not_tried_is_refused_with_what_to_do(cache):
    code = (
        "import tensorflow as tf\ntf.__version__ = '2.99.0'\nimport poolgrad.tensorflow as pool\n"
        "assert pool.own_ops.OWN is None\n"
        "try:\n    pool.accelerate()\nexcept RuntimeError as e:\n    print(e)\n"
        "print(pool.accelerate(any_version=True).on, pool.accelerate().on)\n"
    )
    done = python("-c", code, **cache)
    words = "accelerate: tensorflow: got version 2.99.0, wanted 2.18 to 2.21, which were tested, or accelerate(any_version=True)"
    assert done.stdout.splitlines() == [words, "True True"], done.stderr[-2000:]
