// TensorFlow's own C++ functions, on poolgrad's kernels: tensorflow::ops::MaxPool3DGrad in a session.
//
//     TF=$(python -c 'import tensorflow as tf; print(*tf.sysconfig.get_compile_flags(), *tf.sysconfig.get_link_flags())')
//     c++ -O1 -shared -fPIC tensorflow_scope.cpp $TF -l:libtensorflow_cc.so.2 -o tensorflow_scope.so
//     python -c 'import ctypes, tensorflow; from poolgrad.tensorflow import accelerate; accelerate()
//     print(ctypes.CDLL("./tensorflow_scope.so").pool(), accelerate.status().ops["MaxPool3DGrad"])'
#include <tensorflow/cc/ops/const_op.h>
#include <tensorflow/cc/ops/nn_ops.h>
#include <tensorflow/cc/framework/scope.h>
#include <tensorflow/core/framework/graph.pb.h>
#include <tensorflow/core/framework/tensor.h>
#include <tensorflow/core/public/session.h>

#include <memory>
#include <string>
#include <vector>

/// Pool an array of 2 x 2 x 2 x 2 x 2 numbers, 1 to 32, and return the sum of position * gradient; -1 after an error.
extern "C" int pool() {
  using namespace tensorflow;
  const Scope scope = Scope::NewRootScope();
  Tensor x(DT_FLOAT, {2, 2, 2, 2, 2}), g(DT_FLOAT, {2, 1, 1, 1, 2});
  for (int i = 0; i < 32; ++i) x.flat<float>()(i) = static_cast<float>(i + 1);
  for (int i = 0; i < 4; ++i) g.flat<float>()(i) = static_cast<float>(i + 1);
  const auto input = ops::Const(scope, x);
  const ops::MaxPool3D y(scope, input, {1, 4, 3, 2, 1}, {1, 4, 3, 2, 1}, "SAME");
  const ops::MaxPool3DGrad dx(scope, input, y, ops::Const(scope, g), {1, 4, 3, 2, 1}, {1, 4, 3, 2, 1}, "SAME");
  GraphDef graph;
  if (!scope.ToGraphDef(&graph).ok()) return -1;
  const std::unique_ptr<Session> session(NewSession(SessionOptions()));  // the wheel lacks ClientSession
  std::vector<Tensor> results;
  if (!session || !session->Create(graph).ok() || !session->Run({}, {dx.output.name()}, {}, &results).ok()) return -1;
  float sum = 0;
  for (int i = 0; i < 32; ++i) sum += static_cast<float>(i) * results[0].flat<float>()(i);
  return static_cast<int>(sum);  // 14 * 1 + 15 * 2 + 30 * 3 + 31 * 4
}
