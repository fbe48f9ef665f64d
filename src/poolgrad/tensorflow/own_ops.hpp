// Ops of our own, so that functions that pool are graphs of nodes, which a SavedModel can hold.
//
// PoolgradSelect, PoolgradFollow and PoolgradFold run the core. PoolgradHost asks Python for what they cannot do; its attribute `call`
// tells what, in words of spec.py. The library registers all when TensorFlow loads it, since `tf.load_op_library` reads what is new then.
#pragma once

#include <bit>

#include "boundaries.hpp"
#include "interface.hpp"

namespace poolgrad {
namespace {

/// Return an element type by TensorFlow's number, booleans among them; the core's number is -1 for types that it does not know.
Type any_type(int number) {
  constexpr Type kBool{10, PG_U8, 1, "bool"};
  if (number == kBool.number) return kBool;
  const Type& found = type_of(number);
  return found.number == number ? found : Type{number, -1, 0, ""};
}

Array array(const Tensor& tensor) { return {tensor.data(), tensor.size, any_type(tensor.type()).core, {tensor.dims.data(), tensor.dims.size()}}; }

/// An input or output of a call of Python.
struct HostArray {
  int32_t type;  ///< TensorFlow's number
  int32_t rank;
  const int64_t* dims;
  void* data;
};

/// The outputs of a call of Python, which asks for their memory.
struct HostOutputs {
  const Context& context;
  const std::vector<int>& types;
  std::vector<Tensor> made;
};

/// Python's function: run `call` on arrays, make outputs of these types, return a code of TensorFlow's, and write what is wrong into a
/// text of 1,024 bytes.
using HostCall = int (*)(const char* call, int32_t inputs, const HostArray* arrays, int32_t results, const int* types, HostOutputs* outputs, char* text);
std::atomic<HostCall> host_call{nullptr};

/// A node of one of the ops.
class Node {
 public:
  virtual ~Node() = default;
  virtual void compute(const Context&) = 0;
};

/// A node that runs the core over boundaries, its second input.
class CoreNode : public Node {
 public:
  explicit CoreNode(const Attributes& given) : axes_(given.long_integers("axes")) {}

 protected:
  Pool pool(const Tensor& bounds) const {
    if (!core) refuse(kInternal, "poolgrad: the library is not connected to the core: import poolgrad.tensorflow");
    return {*core, threads(), {axes_.data(), axes_.size()}, {bounds.data<const int32_t>(), static_cast<size_t>(bounds.size)}};
  }

  /// Return the shape of the result of v.
  Dims shape(const Tensor& v, bool back) const {
    Dims dims = v.dims;
    for (size_t i = 0; i + 2 < axes_.size(); i += 3) {
      const int64_t d = axes_[i];
      require(d >= 0 && d < static_cast<int64_t>(dims.size()), "poolgrad: windows: got axis ", d, " of an array of shape ", text_of(v.dims));
      const int64_t wanted = axes_[i + (back ? 2 : 1)];
      require(dims[static_cast<size_t>(d)] == wanted, "poolgrad: x: got shape ", text_of(v.dims), ", wanted ", wanted, " along axis ", d);
      dims[static_cast<size_t>(d)] = axes_[i + (back ? 1 : 2)];
    }
    return dims;
  }

  const Dims axes_;
};

/// PoolgradSelect(x, windows) -> y, taps.
class Select : public CoreNode {
 public:
  explicit Select(const Attributes& given) : CoreNode(given), taps_(given.type("Taps")), least_(given.flag("least")), nan_wins_(given.flag("nan_wins")) {}
  void compute(const Context& context) override {
    const Tensor x = context.input(0), bounds = context.input(1);
    const Dims dims = shape(x, false);
    const Tensor y = context.output(0, any_type(x.type()), dims), taps = context.output(1, taps_, dims);
    pool(bounds).choose(array(x), array(y), array(taps), least_, nan_wins_);
  }

 private:
  const Type taps_;
  const bool least_, nan_wins_;
};

/// PoolgradFollow(v, windows, taps) -> result: v at the taps, or added there.
class Follow : public CoreNode {
 public:
  explicit Follow(const Attributes& given) : CoreNode(given), back_(given.flag("back")) {}
  void compute(const Context& context) override {
    const Tensor v = context.input(0), bounds = context.input(1), taps = context.input(2);
    const Tensor result = context.output(0, any_type(v.type()), shape(v, back_));
    pool(bounds).follow(array(v), array(taps), array(result), back_);
  }

 private:
  const bool back_;
};

/// PoolgradFold(v, windows) -> result: sums or means, or their transpose. `factor` holds the bits of a float64.
class Fold : public CoreNode {
 public:
  explicit Fold(const Attributes& given)
      : CoreNode(given), back_(given.flag("back")), mean_(given.flag("mean")), spans_(given.flag("spans")), factor_(std::bit_cast<double>(given.integer("factor"))) {}
  void compute(const Context& context) override {
    const Tensor v = context.input(0), bounds = context.input(1);
    const Tensor result = context.output(0, any_type(v.type()), shape(v, back_));
    pool(bounds).fold(array(v), array(result), back_, mean_, spans_, factor_);
  }

 private:
  const bool back_, mean_, spans_;
  const double factor_;
};

/// PoolgradHost(arrays) -> results: a function of spec.py, by Python.
class Host : public Node {
 public:
  explicit Host(const Attributes& given) : call_(given.word("call")), inputs_(given.types("In").size()), types_(given.types("Out")) {}
  void compute(const Context& context) override {
    const HostCall python = host_call;
    if (!python) refuse(kInternal, "poolgrad: Python is not connected: import poolgrad.tensorflow");
    std::vector<Tensor> held;
    std::vector<HostArray> arrays;
    for (size_t i = 0; i < inputs_; ++i) held.push_back(context.input(static_cast<int>(i)));
    for (const Tensor& tensor : held) arrays.push_back({tensor.type(), static_cast<int32_t>(tensor.dims.size()), tensor.dims.data(), tensor.data()});
    HostOutputs outputs{context, types_, {}};
    char text[1024] = "";
    const int code = python(call_.c_str(), static_cast<int32_t>(arrays.size()), arrays.data(), static_cast<int32_t>(types_.size()), types_.data(), &outputs, text);
    if (code) refuse(code, text);
    if (outputs.made.size() != types_.size()) refuse(kInternal, "poolgrad: got ", outputs.made.size(), " results, wanted ", types_.size());
  }

 private:
  const std::string call_;
  const size_t inputs_;
  const std::vector<int> types_;
};

template <class Kind>
void* create_node(TF_OpKernelConstruction* construction) {
  Node* made = nullptr;
  guarded([&] { made = new Kind(Attributes(construction)); }, [&](TF_Status* status) { TF_OpKernelConstruction_Failure(construction, status); });
  return made;
}

void compute_node(void* node, TF_OpKernelContext* context) {
  auto* const made = static_cast<Node*>(node);
  if (!made) return;  // its construction failed
  guarded(
      [&] {
        try {
          made->compute(Context(context));
        } catch (const Refused& refused) {
          throw Wrong{code_of(refused.code), "poolgrad: " + refused.text};
        }
      },
      [&](TF_Status* status) { TF_OpKernelContext_Failure(context, status); });
}

void destroy_node(void* node) { delete static_cast<Node*>(node); }

/// The definition of an op: attributes, inputs and outputs in TensorFlow's words. `spec` is for Python, which makes gradients from it.
struct OwnOp {
  const char* name;
  void* (*create)(TF_OpKernelConstruction*);
  bool stateful;  ///< a call of Python must not be folded into a constant while a graph is made
  std::vector<const char*> attributes, inputs, outputs;
};

/// Define the ops and register their kernels; return what TensorFlow says, or "".
std::string define_own_ops() {
  const std::string all = "{float, double, half, bfloat16, int8, uint8, int16, uint16, int32, uint32, int64, uint64, bool}", any = "T: " + all,
                    in = "In: list(" + all + ") >= 1", out = "Out: list(" + all + ") >= 1";
  const char *const kT = any.c_str(), *const kIn = in.c_str(), *const kOut = out.c_str();
  constexpr const char *kFloating = "T: {float, double, half, bfloat16}", *kTaps = "Taps: {uint8, uint32}";
  const OwnOp ops[] = {
      {"PoolgradSelect", create_node<Select>, false, {kT, kTaps, "axes: list(int)", "least: bool", "nan_wins: bool", "spec: string"}, {"x: T", "windows: int32"}, {"y: T", "taps: Taps"}},
      {"PoolgradFollow", create_node<Follow>, false, {kT, kTaps, "axes: list(int)", "back: bool", "spec: string"}, {"v: T", "windows: int32", "taps: Taps"}, {"result: T"}},
      {"PoolgradFold", create_node<Fold>, false, {kFloating, "axes: list(int)", "back: bool", "mean: bool", "spans: bool", "factor: int", "spec: string"}, {"v: T", "windows: int32"}, {"result: T"}},
      {"PoolgradHost", create_node<Host>, true, {kIn, kOut, "call: string"}, {"arrays: In"}, {"results: Out"}},
  };
  try {
    Status status;
    for (const OwnOp& op : ops) {
      TF_OpDefinitionBuilder* const builder = TF_NewOpDefinitionBuilder(op.name);
      for (const char* const text : op.attributes) TF_OpDefinitionBuilderAddAttr(builder, text);
      for (const char* const text : op.inputs) TF_OpDefinitionBuilderAddInput(builder, text);
      for (const char* const text : op.outputs) TF_OpDefinitionBuilderAddOutput(builder, text);
      TF_OpDefinitionBuilderSetIsStateful(builder, op.stateful);
      // The interface cannot read lists of attributes here: shapes come from Python, which sets them as it makes nodes.
      TF_OpDefinitionBuilderSetShapeInferenceFunction(builder, [](TF_ShapeInferenceContext* context, TF_Status* said) { TF_ShapeInferenceContextSetUnknownShape(context, said); });
      TF_RegisterOpDefinition(builder, status);
      status.check();
      TF_RegisterKernelBuilder(op.name, TF_NewKernelBuilder(op.name, "CPU", op.create, compute_node, destroy_node), status);
      status.check();
    }
  } catch (const Wrong& wrong) {
    return wrong.text;
  }
  return "";
}

/// The answer of TensorFlow to the registration, as the library was loaded. Without TensorFlow in the process there is nothing to register with.
const std::string own_ops_said = [] {
  const std::string missing = find_functions("libtensorflow_framework.so.2:libtensorflow_cc.so.2:libtensorflow_framework.2.dylib:libtensorflow_cc.2.dylib");
  return missing.empty() ? define_own_ops() : "no " + missing;
}();

}  // namespace
}  // namespace poolgrad

/// Return the answer of TensorFlow to the registration: "" after success.
PG_API const char* poolgrad_tf_own_ops() { return poolgrad::own_ops_said.c_str(); }

/// Set Python's function.
PG_API void poolgrad_tf_host(poolgrad::HostCall call) { poolgrad::host_call = call; }

/// Return the memory of the next output, of that shape, or NULL with what is wrong in a text of 1,024 bytes.
PG_API void* poolgrad_tf_output(poolgrad::HostOutputs* outputs, int32_t rank, const int64_t* dims, int64_t bytes, char* text) {
  try {
    const size_t i = outputs->made.size();
    poolgrad::require(i < outputs->types.size(), "poolgrad: got more results than ", i);
    outputs->made.push_back(outputs->context.output(static_cast<int>(i), {outputs->types[i], 0, bytes, ""}, {dims, dims + rank}));
    return outputs->made.back().data();
  } catch (const poolgrad::Wrong& wrong) {
    wrong.text.copy(text, 1023);
  } catch (const std::exception& error) {
    std::string(error.what()).copy(text, 1023);
  }
  return nullptr;
}
