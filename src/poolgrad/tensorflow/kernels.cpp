// Kernels for TensorFlow's own pooling ops, on the CPU, by the core: registered with a higher priority than TensorFlow's.
//
// They use TensorFlow's C interface for kernels alone, looked up at run time: no header of TensorFlow, one binary for
// several versions. Python passes the core's table (poolgrad_connect), then registers (poolgrad_tf_register).
// A kernel cannot hand a call on to TensorFlow's: it handles every attribute, and refuses what TensorFlow refuses with
// TensorFlow's code and words.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "poolgrad.h"

extern "C" {
struct TF_KernelBuilder;
struct TF_OpKernelConstruction;
struct TF_OpKernelContext;
struct TF_Status;
struct TF_Tensor;
}

namespace poolgrad {
namespace {

// ---- TensorFlow's functions

#define PG_TF_FUNCTIONS(X)                                                                                                        \
  X(TF_KernelBuilder*, TF_NewKernelBuilder,                                                                                       \
    (const char*, const char*, void* (*)(TF_OpKernelConstruction*), void (*)(void*, TF_OpKernelContext*), void (*)(void*)))       \
  X(void, TF_KernelBuilder_TypeConstraint, (TF_KernelBuilder*, const char*, int, TF_Status*))                                     \
  X(void, TF_KernelBuilder_Priority, (TF_KernelBuilder*, int32_t))                                                                \
  X(void, TF_RegisterKernelBuilder, (const char*, TF_KernelBuilder*, TF_Status*))                                                 \
  X(void, TF_GetInput, (TF_OpKernelContext*, int, TF_Tensor**, TF_Status*))                                                       \
  X(TF_Tensor*, TF_AllocateOutput, (TF_OpKernelContext*, int, int, const int64_t*, int, size_t, TF_Status*))                      \
  X(void, TF_OpKernelContext_Failure, (TF_OpKernelContext*, TF_Status*))                                                          \
  X(void, TF_OpKernelConstruction_Failure, (TF_OpKernelConstruction*, TF_Status*))                                                \
  X(void, TF_OpKernelConstruction_GetAttrSize, (TF_OpKernelConstruction*, const char*, int32_t*, int32_t*, TF_Status*))           \
  X(void, TF_OpKernelConstruction_GetAttrType, (TF_OpKernelConstruction*, const char*, int*, TF_Status*))                         \
  X(void, TF_OpKernelConstruction_GetAttrInt64, (TF_OpKernelConstruction*, const char*, int64_t*, TF_Status*))                    \
  X(void, TF_OpKernelConstruction_GetAttrBool, (TF_OpKernelConstruction*, const char*, unsigned char*, TF_Status*))               \
  X(void, TF_OpKernelConstruction_GetAttrInt64List, (TF_OpKernelConstruction*, const char*, int64_t*, int, TF_Status*))           \
  X(void, TF_OpKernelConstruction_GetAttrFloatList, (TF_OpKernelConstruction*, const char*, float*, int, TF_Status*))             \
  X(void, TF_OpKernelConstruction_GetAttrString, (TF_OpKernelConstruction*, const char*, char*, size_t, TF_Status*))              \
  X(TF_Status*, TF_NewStatus, ())                                                                                                 \
  X(void, TF_SetStatus, (TF_Status*, int, const char*))                                                                           \
  X(int, TF_GetCode, (const TF_Status*))                                                                                          \
  X(const char*, TF_Message, (const TF_Status*))                                                                                  \
  X(int, TF_NumDims, (const TF_Tensor*))                                                                                          \
  X(int64_t, TF_Dim, (const TF_Tensor*, int))                                                                                     \
  X(void*, TF_TensorData, (const TF_Tensor*))                                                                                     \
  X(void, TF_DeleteTensor, (TF_Tensor*))
#define PG_DECLARE(result, name, arguments) result(*name) arguments = nullptr;
PG_TF_FUNCTIONS(PG_DECLARE)
#undef PG_DECLARE

enum Code : int { kInvalid = 3, kExhausted = 8, kUnimplemented = 12, kInternal = 13 };

const pg_table* core = nullptr;
std::atomic<int32_t> most_threads{0};

/// An element type: TensorFlow's number, the core's, its bytes, and the end of a kernel's name.
struct Type {
  int number;
  int32_t core;
  int64_t bytes;
  const char* name;
};
constexpr Type kFloat{1, PG_F32, 4, "float"}, kDouble{2, PG_F64, 8, "double"}, kInt32{3, PG_I32, 4, "int32"},
    kUint8{4, PG_U8, 1, "uint8"}, kInt16{5, PG_I16, 2, "int16"}, kInt8{6, PG_I8, 1, "int8"}, kInt64{9, PG_I64, 8, "int64"},
    kBfloat16{14, PG_BF16, 2, "bfloat16"}, kUint16{17, PG_U16, 2, "uint16"}, kHalf{19, PG_F16, 2, "half"},
    kUint32{22, PG_U32, 4, "uint32"}, kUint64{23, PG_U64, 8, "uint64"};
constexpr Type kTypes[] = {kFloat, kDouble, kInt32, kUint8, kInt16, kInt8, kInt64, kBfloat16, kUint16, kHalf, kUint32, kUint64};

const Type& type_of(int number) {
  for (const Type& type : kTypes)
    if (type.number == number) return type;
  return kTypes[0];  // no kernel is registered for others
}

/// A call that is refused.
struct Wrong {
  int code;
  std::string text;
};

template <class... Parts>
[[noreturn]] void refuse(int code, const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw Wrong{code, text.str()};
}
template <class... Parts>
void require(bool fine, const Parts&... parts) {
  if (!fine) refuse(kInvalid, parts...);
}

/// The status of this thread, which throws what TensorFlow says. It is made once: a call takes several.
class Status {
 public:
  operator TF_Status*() { return own(); }
  void check() const {
    const int code = TF_GetCode(own());
    if (!code) return;
    Wrong wrong{code, TF_Message(own())};
    TF_SetStatus(own(), 0, "");
    throw wrong;
  }

 private:
  static TF_Status* own() {
    static thread_local TF_Status* const made = TF_NewStatus();
    return made;
  }
};

using Dims = std::vector<int64_t>;

std::string text_of(const Dims& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? "," : "") + std::to_string(dims[i]);
  return text + "]";
}

/// Count elements; refuse negative sizes and products that overflow, as TensorFlow does.
int64_t count(const Dims& dims) {
  int64_t all = 1;
  for (const int64_t n : dims) {
    require(n >= 0, "Expected a non-negative size, got ", n);
    int64_t product;
    require(!__builtin_mul_overflow(all, n, &product), "Encountered overflow when multiplying ", all, " with ", n, ", result: -1");
    all = product;
  }
  return all;
}

/// An input or an output of a kernel.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(TF_Tensor* t) : t_(t) {
    const int rank = TF_NumDims(t);
    dims.reserve(static_cast<size_t>(rank));
    for (int i = 0; i < rank; ++i) dims.push_back(TF_Dim(t, i));
    size = count(dims);
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  Tensor(Tensor&& other) noexcept : dims(std::move(other.dims)), size(other.size), t_(std::exchange(other.t_, nullptr)) {}
  ~Tensor() {
    if (t_) TF_DeleteTensor(t_);
  }
  template <class T = void>
  T* data() const {
    return static_cast<T*>(TF_TensorData(t_));
  }
  pg_input in() const { return pg_in(data(), size); }
  pg_output out() const { return pg_out(data(), size); }

  Dims dims;
  int64_t size = 0;

 private:
  TF_Tensor* t_ = nullptr;
};

/// The call of a kernel.
class Context {
 public:
  explicit Context(TF_OpKernelContext* c) : c_(c) {}
  Tensor input(int i) const {
    Status status;
    TF_Tensor* t = nullptr;
    TF_GetInput(c_, i, &t, status);
    status.check();
    return Tensor(t);
  }
  Tensor output(int i, const Type& type, const Dims& dims) const {
    Status status;
    const int64_t size = count(dims);
    require(size <= std::numeric_limits<int64_t>::max() / 16, "Encountered overflow when multiplying sizes of ", text_of(dims));
    TF_Tensor* t = TF_AllocateOutput(c_, i, type.number, dims.data(), static_cast<int>(dims.size()), static_cast<size_t>(size * type.bytes), status);
    status.check();
    return Tensor(t);
  }

 private:
  TF_OpKernelContext* c_;
};

/// The attributes of a node.
class Attributes {
 public:
  explicit Attributes(TF_OpKernelConstruction* c) : c_(c) {}
  const Type& type(const char* name) const {
    Status status;
    int number = 0;
    TF_OpKernelConstruction_GetAttrType(c_, name, &number, status);
    status.check();
    return type_of(number);
  }
  bool flag(const char* name) const {
    Status status;
    unsigned char value = 0;
    TF_OpKernelConstruction_GetAttrBool(c_, name, &value, status);
    status.check();
    return value != 0;
  }
  int64_t integer(const char* name) const {
    Status status;
    int64_t value = 0;
    TF_OpKernelConstruction_GetAttrInt64(c_, name, &value, status);
    status.check();
    return value;
  }
  std::string word(const char* name) const {
    Status status;
    char value[64] = {};
    TF_OpKernelConstruction_GetAttrString(c_, name, value, sizeof value - 1, status);
    status.check();
    return value;
  }
  Dims integers(const char* name) const {
    Dims values(length(name));
    Status status;
    TF_OpKernelConstruction_GetAttrInt64List(c_, name, values.data(), static_cast<int>(values.size()), status);
    status.check();
    for (const int64_t value : values)  // TensorFlow reads them as int32
      require(value >= INT32_MIN && value <= INT32_MAX, "Attr ", name, " has value ", value, " out of range for an int32");
    return values;
  }
  std::vector<float> numbers(const char* name) const {
    std::vector<float> values(length(name));
    Status status;
    TF_OpKernelConstruction_GetAttrFloatList(c_, name, values.data(), static_cast<int>(values.size()), status);
    status.check();
    return values;
  }

 private:
  size_t length(const char* name) const {
    Status status;
    int32_t list = 0, total = 0;
    TF_OpKernelConstruction_GetAttrSize(c_, name, &list, &total, status);
    status.check();
    return static_cast<size_t>(std::max(list, int32_t{0}));
  }
  TF_OpKernelConstruction* c_;
};

// ---- plans

using Plan = std::shared_ptr<pg_plan>;

/// Throw the error of the core.
void check(int code, const pg_error& error) {
  if (code == PG_OK) return;
  throw Wrong{code == PG_NO_MEMORY ? kExhausted : code == PG_INVALID ? kInvalid : code == PG_UNSUPPORTED ? kUnimplemented : kInternal,
              std::string("poolgrad: ") + error.text};
}

/// Call a verb of the core on at most as many threads as TensorFlow uses inside an op.
template <class Verb, class... Arguments>
void run(Verb* verb, const Plan& plan, Arguments... arguments) {
  const pg_run how = {most_threads.load(std::memory_order_relaxed), nullptr, nullptr};
  pg_error error;
  check(verb(plan.get(), &how, arguments..., &error), error);
}

Plan make_plan(int64_t outer, int64_t inner, const std::vector<pg_axis>& axes) {
  pg_plan* plan = nullptr;
  pg_error error;
  check(core->plan_new(outer, inner, static_cast<int32_t>(axes.size()), axes.data(), &plan, &error), error);
  return Plan(plan, core->plan_drop);
}

/// Plans by shape. A kernel meets few shapes; one that meets many forgets them all now and then.
class Plans {
 public:
  template <class F>
  Plan get(const Dims& key, F&& make) {
    {
      const std::lock_guard guard(lock_);
      if (const auto found = kept_.find(key); found != kept_.end()) return found->second;
    }
    Plan made = make();
    const std::lock_guard guard(lock_);
    if (kept_.size() >= 64) kept_.clear();
    kept_[key] = made;
    return made;
  }

 private:
  std::mutex lock_;
  std::map<Dims, Plan> kept_;
};

// ---- the ops

/// The rows of _ops/table.py that this file serves: what an op does, and TensorFlow's words for it.
enum class Verb { fold, spread, select, route, recall, near, argmax, scatter, gather, fractional, fractional_route, fractional_spread };

struct Op {
  const char* name;
  Verb verb;
  int spatial;       ///< pooled dimensions
  bool v2;           ///< window and stride are inputs
  bool mean;         ///< not a maximum
  int order;         ///< 0 forward, 1 gradient, 2 second order
  bool any_channel_stride;  ///< TensorFlow ignores it
  const char* depth;        ///< what TensorFlow says of a window over channels; "" if it pools them
};

constexpr const char kDepth2[] = "MaxPooling supports exactly one of pooling across depth or pooling across width/height.";
constexpr const char kDepth3[] = "Pooling is not yet supported on the depth dimension.";
constexpr const char kDepthGrad[] = "MaxPoolingGrad is not yet supported on the depth dimension.";
constexpr Op kOps[] = {
    {"AvgPool", Verb::fold, 2, false, true, 0, true, kDepth2},
    {"AvgPoolGrad", Verb::spread, 2, false, true, 1, true, "Non-spatial pooling is not yet supported. Volunteers? :)"},
    {"AvgPool3D", Verb::fold, 3, false, true, 0, false, kDepth3},
    {"AvgPool3DGrad", Verb::spread, 3, false, true, 1, false, kDepth3},
    {"MaxPool", Verb::select, 2, false, false, 0, true, ""},
    {"MaxPoolV2", Verb::select, 2, true, false, 0, true, ""},
    {"MaxPoolGrad", Verb::route, 2, false, false, 1, false, kDepthGrad},
    {"MaxPoolGradV2", Verb::route, 2, true, false, 1, false, kDepthGrad},
    {"MaxPoolGradGrad", Verb::recall, 2, false, false, 2, false, "MaxPoolingGradGrad is not yet supported on the depth dimension."},
    {"MaxPoolGradGradV2", Verb::recall, 2, true, false, 2, false, kDepthGrad},
    {"MaxPool3D", Verb::select, 3, false, false, 0, false, kDepth3},
    {"MaxPool3DGrad", Verb::near, 3, false, false, 1, false, kDepth3},
    {"MaxPool3DGradGrad", Verb::recall, 3, false, false, 2, false, "MaxPooling3dGradGrad is not yet supported on the depth dimension."},
    {"MaxPoolWithArgmax", Verb::argmax, 2, false, false, 0, true, kDepth2},
    {"MaxPoolGradWithArgmax", Verb::scatter, 2, false, false, 1, true, ""},
    {"MaxPoolGradGradWithArgmax", Verb::gather, 2, false, false, 2, true, ""},
    {"FractionalMaxPool", Verb::fractional, 2, false, false, 0, false, ""},
    {"FractionalMaxPoolGrad", Verb::fractional_route, 2, false, false, 1, false, ""},
    {"FractionalAvgPool", Verb::fractional, 2, false, true, 0, false, ""},
    {"FractionalAvgPoolGrad", Verb::fractional_spread, 2, false, true, 1, false, ""},
};
constexpr int kOpCount = sizeof kOps / sizeof *kOps;
std::atomic<int64_t> runs[kOpCount];

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void compute(const Context&) = 0;
  int number = 0;
};

// ---- windows that slide

/// A kernel of an op with window, stride and padding.
class Sliding : public Kernel {
 public:
  Sliding(const Op& op, const Attributes& given) : op_(op), rank_(static_cast<size_t>(op.spatial) + 2), type_(given.type("T")) {
    const std::string padding = given.word("padding");
    padding_ = padding == "SAME" ? PG_SAME : padding == "VALID" ? PG_VALID : PG_EXPLICIT;
    const bool indexed = op.verb == Verb::argmax || op.verb == Verb::scatter || op.verb == Verb::gather;
    if (indexed) {
      batched_ = given.flag("include_batch_in_index");
      index_ = &given.type("Targmax");
    } else {
      const std::string format = given.word("data_format");
      first_ = format == "NCHW" || format == "NCDHW";
      require(format != "NCHW_VECT_C", "poolgrad: ", op.name, " only supports NHWC and NCHW. Got: ", format);
    }
    channel_ = first_ ? 1 : rank_ - 1;
    if (padding_ == PG_EXPLICIT) pads_ = given.integers("explicit_paddings");
    if (!op.v2) {
      ksize_ = given.integers("ksize");
      strides_ = given.integers("strides");
      check_sizes(ksize_, strides_);
      if (padding_ == PG_EXPLICIT) check_pads(ksize_);
    }
  }

  void compute(const Context& context) override {
    Dims ksize = ksize_, strides = strides_;
    if (op_.v2) {
      const Tensor k = context.input(op_.order ? 3 : 1), s = context.input(op_.order ? 4 : 2);
      require(k.size == 4, "Sliding window ksize field must specify 4 dimensions");
      require(s.size == 4, op_.order ? "Sliding window strides field must specify 4 dimensions" : "Sliding window stride field must specify 4 dimensions");
      ksize.assign(k.data<int32_t>(), k.data<int32_t>() + 4);
      strides.assign(s.data<int32_t>(), s.data<int32_t>() + 4);
      check_sizes(ksize, strides);
    }
    switch (op_.verb) {
      case Verb::fold:
      case Verb::select: return forward(context, ksize, strides);
      case Verb::spread: return spread(context, ksize, strides);
      case Verb::argmax: return argmax(context, ksize, strides);
      case Verb::scatter:
      case Verb::gather: return indexed(context, ksize, strides);
      default: return gradient(context, ksize, strides);
    }
  }

 private:
  size_t axis(int a) const { return static_cast<size_t>(a) + (first_ ? 2 : 1); }

  void check_sizes(const Dims& ksize, const Dims& strides) const {
    require(ksize.size() == rank_, "Sliding window ksize field must specify ", rank_, " dimensions");
    require(strides.size() == rank_, "Sliding window stride field must specify ", rank_, " dimensions");
    if (ksize[0] != 1 || strides[0] != 1) refuse(kUnimplemented, "Pooling is not yet supported on the batch dimension.");
    for (int a = 0; a < op_.spatial; ++a) require(strides[axis(a)] > 0, "Stride must be > 0, but got ", strides[axis(a)]);
    const int64_t depth = ksize[channel_], step = strides[channel_];
    if (op_.order && *op_.depth && (depth != 1 || (step != 1 && !op_.any_channel_stride))) refuse(kUnimplemented, op_.depth);
    for (const int64_t k : ksize)
      require(k > 0, "Sliding window ksize must be positive. The specified or inferred ksize is: ", text_of(ksize));
    bool spatial = false;
    for (int a = 0; a < op_.spatial; ++a) spatial = spatial || ksize[axis(a)] != 1;
    if (depth == 1 && (step == 1 || op_.any_channel_stride)) return;
    if (*op_.depth) refuse(kUnimplemented, op_.depth);
    if (spatial) refuse(kUnimplemented, kDepth2);
    if (depth != step) refuse(kUnimplemented, "Depthwise max pooling requires the depth window to equal the depth stride.");
    if (padding_ == PG_EXPLICIT) refuse(kUnimplemented, "Depthwise max pooling does not support explicit padding.");
  }

  void check_pads(const Dims& ksize) const {
    require(pads_.size() == 2 * rank_, "explicit_paddings attribute must contain ", 2 * rank_, " values, but got: ", pads_.size());
    for (const int64_t pad : pads_) require(pad >= 0, "All elements of explicit_paddings must be nonnegative");
    require(!pads_[0] && !pads_[1] && !pads_[2 * channel_] && !pads_[2 * channel_ + 1],
            "Nonzero explicit padding in the batch or depth dimensions is not supported");
    constexpr const char* kSides[] = {"Top", "Bottom", "Left", "Right"};
    for (int a = 0; a < op_.spatial; ++a)
      for (size_t end = 0; end < 2; ++end) {
        const int64_t pad = pads_[2 * axis(a) + end], k = ksize[axis(a)];
        require(pad < k, kSides[2 * static_cast<size_t>(a) + end], " padding ", pad, " needs to be smaller than the window size ", k);
      }
  }

  void check_rank(const Tensor& t, const char* name) const {
    require(t.dims.size() == rank_, name, " must be ", rank_, "-dimensional");
  }

  /// Return the shape of the pooled array.
  Dims pooled(const Dims& source, const Dims& ksize, const Dims& strides) const {
    Dims dest = source;
    if (ksize[channel_] != 1) {
      if (source[channel_] % ksize[channel_])
        refuse(kUnimplemented, "Depthwise max pooling requires the depth window to evenly divide the input depth.");
      dest[channel_] = source[channel_] / ksize[channel_];
      return dest;  // strides of other dimensions are ignored
    }
    for (int a = 0; a < op_.spatial; ++a) {
      const size_t d = axis(a);
      const int64_t n = source[d], k = ksize[d], s = strides[d];
      const int64_t pads = padding_ == PG_EXPLICIT ? pads_[2 * d] + pads_[2 * d + 1] : 0;
      dest[d] = padding_ == PG_SAME ? (n + s - 1) / s : (n + pads - k + s) / s;
      require(dest[d] >= 0, "Computed output size would be negative: ", dest[d], " [input_size: ", n, ", effective_filter_size: ", k, ", stride: ", s, "]");
    }
    return dest;
  }

  /// Return the plan; the arrays are not empty.
  Plan plan(const Dims& source, const Dims& ksize, const Dims& strides, int32_t flags) {
    Dims key = source;
    if (op_.v2) {
      key.insert(key.end(), ksize.begin(), ksize.end());
      key.insert(key.end(), strides.begin(), strides.end());
    }
    return plans_.get(key, [&] {
      std::vector<pg_axis> axes;
      if (ksize[channel_] != 1) {
        axes.push_back(pg_sliding(source[channel_], ksize[channel_], ksize[channel_], PG_VALID));
        int64_t outer = 1, inner = 1;
        for (size_t d = 0; d < rank_; ++d) (d < channel_ ? outer : inner) *= d == channel_ ? 1 : source[d];
        return make_plan(outer, inner, axes);
      }
      for (int a = 0; a < op_.spatial; ++a) {
        const size_t d = axis(a);
        pg_axis one = pg_sliding(source[d], ksize[d], strides[d], padding_);
        if (padding_ == PG_EXPLICIT) {
          one.before = pads_[2 * d];
          one.after = pads_[2 * d + 1];
        }
        one.flags = flags;
        axes.push_back(one);
      }
      return first_ ? make_plan(source[0] * source[1], 1, axes) : make_plan(source[0], source[rank_ - 1], axes);
    });
  }

  void forward(const Context& context, const Dims& ksize, const Dims& strides) {
    const Tensor x = context.input(0);
    if (op_.spatial == 2) require(x.dims.size() == 4, "tensor_in must be 4-dimensional");
    check_rank(x, "tensor_in");
    const Tensor y = context.output(0, type_, pooled(x.dims, ksize, strides));
    if (!y.size) return;
    if (!x.size) return lowest(y);
    const Plan over = plan(x.dims, ksize, strides, op_.spatial == 3 ? PG_SHIFT : 0);
    if (op_.mean)
      return run(core->fold, over, type_.core, int32_t{op_.spatial == 3 ? PG_MEAN_EXACT : PG_MEAN_COUNTED}, x.in(), y.out());
    const bool infinite = op_.spatial == 3 || ksize[channel_] != 1;
    run(core->select, over, type_.core, int32_t{infinite ? PG_BEST_FROM_INFINITY : PG_BEST_FROM_LOWEST}, 0, x.in(), y.out());
  }

  /// Fill maxima of windows that lie in padding alone: of one cell that is as low as can be.
  void lowest(const Tensor& y) const {
    const Plan one = make_plan(y.size, 1, {pg_shares(1, 1)});
    std::vector<char> least(static_cast<size_t>(y.size * type_.bytes), 0);
    for (int64_t i = 0; i < y.size; ++i) {
      void* const at = least.data() + i * type_.bytes;
      const auto put = [&](auto value) { std::memcpy(at, &value, sizeof value); };
      switch (type_.core) {
        case PG_F16: put(uint16_t{0xFC00}); break;
        case PG_BF16: put(uint16_t{0xFF80}); break;
        case PG_F32: put(-std::numeric_limits<float>::infinity()); break;
        case PG_F64: put(-std::numeric_limits<double>::infinity()); break;
        case PG_I8: put(std::numeric_limits<int8_t>::min()); break;
        case PG_I16: put(std::numeric_limits<int16_t>::min()); break;
        case PG_I32: put(std::numeric_limits<int32_t>::min()); break;
        case PG_I64: put(std::numeric_limits<int64_t>::min()); break;
        default: break;
      }
    }
    run(core->select, one, type_.core, int32_t{PG_BEST_FROM_LOWEST}, 0, pg_in(least.data(), y.size), y.out());
  }

  /// AvgPoolGrad, AvgPool3DGrad.
  void spread(const Context& context, const Dims& ksize, const Dims& strides) {
    const Tensor shape = context.input(0), g = context.input(1);
    require(shape.dims.size() == 1 && shape.size == static_cast<int64_t>(rank_),
            op_.spatial == 2 ? "out_backprop must be 1-dimensional and 4 elements" : "tensor_in must be 1-dimensional and 5 elements");
    check_rank(g, "out_backprop");
    const Dims source(shape.data<int32_t>(), shape.data<int32_t>() + rank_);
    const int64_t size = count(source);
    if (!size && op_.spatial == 2) return static_cast<void>(context.output(0, type_, source));
    const Dims dest = pooled(source, ksize, strides);
    require(g.dims == dest, "Expected grad shape to be ", text_of(dest), ", but got ", text_of(g.dims));
    const Tensor dx = context.output(0, type_, source);
    if (!size) return;
    if (!g.size) return zero(dx);
    run(core->spread, plan(source, ksize, strides, PG_REACH), type_.core,
        int32_t{op_.spatial == 3 ? PG_SHARE_SHORT_RECIPROCAL : PG_SHARE_RECIPROCAL}, static_cast<int>(op_.spatial == 3), g.in(), dx.out());
  }

  /// The gradients of maxima that take orig_input, orig_output and grad.
  void gradient(const Context& context, const Dims& ksize, const Dims& strides) {
    const Tensor x = context.input(0), y = context.input(1), g = context.input(2);
    check_rank(x, "tensor_in");
    check_rank(y, "tensor_out");
    check_rank(g, op_.order == 2 ? "out_grad_backprop" : "out_backprop");
    if (op_.spatial == 3 && op_.order == 2)
      require(x.size && y.size && g.size, "received empty tensor ", !x.size ? "tensor_in: " : !y.size ? "tensor_out: " : "out_grad_backprop: ",
              text_of(!x.size ? x.dims : !y.size ? y.dims : g.dims));
    const Dims dest = pooled(x.dims, ksize, strides), &wanted = op_.order == 2 ? x.dims : dest;
    require(y.dims == dest, "Expected orig_output shape to be ", text_of(dest), ", but got ", text_of(y.dims));
    require(g.dims == wanted, "Expected grad shape to be ", text_of(wanted), ", but got ", text_of(g.dims));
    const Tensor out = context.output(0, type_, op_.order == 2 ? dest : x.dims);
    if (!out.size) return;
    if (!x.size || !y.size) return zero(out);
    const Plan over = plan(x.dims, ksize, strides, op_.verb == Verb::near ? PG_REACH : 0);
    if (op_.verb == Verb::near) run(core->near, over, type_.core, 1e-5, x.in(), y.in(), g.in(), out.out());
    else if (op_.verb == Verb::route) run(core->route, over, type_.core, x.in(), pg_in(nullptr, 0), g.in(), out.out());
    else run(core->recall, over, type_.core, x.in(), y.in(), g.in(), out.out());
  }

  void argmax(const Context& context, const Dims& ksize, const Dims& strides) {
    const Tensor x = context.input(0);
    require(x.dims.size() == 4, "tensor_in must be 4-dimensional (2)");
    require(x.size, "tensor_in must not be empty (2)");
    const Dims dest = pooled(x.dims, ksize, strides);
    const Tensor y = context.output(0, type_, dest), at = context.output(1, *index_, dest);
    if (!y.size) return;
    const int64_t modulo = batched_ ? 0 : x.size / x.dims[0];
    run(core->argmax, plan(x.dims, ksize, strides, 0), type_.core, index_->core, modulo, x.in(), y.out(), at.out());
  }

  /// MaxPoolGradWithArgmax, MaxPoolGradGradWithArgmax.
  void indexed(const Context& context, const Dims& ksize, const Dims& strides) {
    const Tensor x = context.input(0), g = context.input(1), at = context.input(2);
    check_rank(x, "tensor_in");
    const bool back = op_.verb == Verb::scatter;
    const Dims dest = pooled(x.dims, ksize, strides), &wanted = back ? dest : x.dims;
    require(g.dims == wanted, "Expected grad shape to be ", text_of(wanted), ", but got ", text_of(g.dims));
    require(at.dims == dest, "Expected argmax shape to be ", text_of(dest), ", but got ", text_of(at.dims));
    const Tensor out = context.output(0, type_, back ? x.dims : dest);
    if (!out.size) return;
    if (!at.size) return zero(out);
    const pg_run how = {most_threads.load(std::memory_order_relaxed), nullptr, nullptr};
    pg_error error;
    const int64_t items = x.dims[0];
    check(back ? core->scatter(&how, type_.core, index_->core, items, batched_, 0, g.in(), at.in(), out.out(), &error)
               : core->gather(&how, type_.core, index_->core, items, batched_, g.in(), at.in(), out.out(), &error),
          error);
  }

  void zero(const Tensor& out) const { std::memset(out.data(), 0, static_cast<size_t>(out.size * type_.bytes)); }

  const Op& op_;
  const size_t rank_;
  const Type& type_;
  const Type* index_ = nullptr;
  int32_t padding_;
  bool first_ = false, batched_ = false;
  size_t channel_;
  Dims ksize_, strides_, pads_;
  Plans plans_;
};

// ---- fractional windows

class Fractional : public Kernel {
 public:
  Fractional(const Op& op, const Attributes& given) : op_(op), type_(given.type("T")), overlapping_(given.flag("overlapping")) {
    if (op.verb != Verb::fractional) return;
    ratio_ = given.numbers("pooling_ratio");
    pseudo_random_ = given.flag("pseudo_random");
    deterministic_ = given.flag("deterministic");
    seed_ = static_cast<uint64_t>(given.integer("seed"));
    seed2_ = static_cast<uint64_t>(given.integer("seed2"));
    require(ratio_.size() == 4, "pooling_ratio field must specify 4 dimensions");
    for (const float ratio : ratio_) require(ratio >= 1, "pooling_ratio cannot be smaller than 1, got: ", ratio);
    if (ratio_[0] != 1 || ratio_[3] != 1)
      refuse(kUnimplemented, "Fractional ", op.mean ? "average" : "max", " pooling is not yet supported on the batch nor channel dimension.");
    if (!deterministic_) require(!seed_ && !seed2_, "Both seed and seed2 should be 0 if deterministic is false.");
    else if (!seed_ && !seed2_) draw_seeds(seed_, seed2_);
  }

  void compute(const Context& context) override {
    if (op_.verb == Verb::fractional) return forward(context);
    if (op_.verb == Verb::fractional_route) return route(context);
    spread(context);
  }

 private:
  static void draw_seeds(uint64_t& seed, uint64_t& seed2) {
    std::random_device source;
    const auto word = [&] { return uint64_t{source()} << 32 | source(); };
    seed = word();
    seed2 = word();
  }

  void forward(const Context& context) {
    const Tensor x = context.input(0);
    require(x.dims.size() == 4, "tensor_in must be 4-dimensional");
    Dims dest = x.dims;
    for (size_t d = 0; d < 4; ++d) {
      const auto n = static_cast<float>(x.dims[d]);
      require(n >= ratio_[d], "Pooling ratio is higher than input dimension size for dimension ", d, ". Input dim size: ", x.dims[d], " pooling ratio: ", ratio_[d]);
      dest[d] = static_cast<int64_t>(std::floor(n / ratio_[d]));
      require(dest[d] > 0 && dest[d] <= x.dims[d], "Expected a positive number of windows for dimension ", d, ", got ", dest[d]);
    }
    uint64_t seed = seed_, seed2 = seed2_;
    if (!deterministic_) draw_seeds(seed, seed2);
    Dims borders(static_cast<size_t>(dest[1] + dest[2] + 2));
    pg_error error;
    check(core->draw(2, x.dims.data() + 1, dest.data() + 1, pseudo_random_, seed, seed2, borders.data(), static_cast<int64_t>(borders.size()), &error), error);
    const Tensor y = context.output(0, type_, dest), rows = context.output(1, kInt64, {dest[1] + 1}), columns = context.output(2, kInt64, {dest[2] + 1});
    std::copy_n(borders.data(), dest[1] + 1, rows.data<int64_t>());
    std::copy_n(borders.data() + dest[1] + 1, dest[2] + 1, columns.data<int64_t>());
    const Plan over = plan(x.dims, dest, borders.data(), borders.data() + dest[1] + 1);
    if (op_.mean) run(core->fold, over, type_.core, int32_t{PG_MEAN_STRICT}, x.in(), y.out());
    else run(core->select, over, type_.core, int32_t{PG_BEST_FROM_LOWEST}, 0, x.in(), y.out());
  }

  void route(const Context& context) {
    const Tensor x = context.input(0), y = context.input(1), g = context.input(2), rows = context.input(3), columns = context.input(4);
    require(x.dims.size() == 4, "orig_input should be a tensor of rank 4, got shape ", text_of(x.dims));
    require(x.size, "orig_input must not be empty, got shape ", text_of(x.dims));
    require(y.dims.size() == 4, "orig_output should be a tensor of rank 4, got shape ", text_of(y.dims));
    require(y.size, "orig_output must not be empty, got shape ", text_of(y.dims));
    require(g.dims == y.dims, "Expected out_backprop shape to be ", text_of(y.dims), ", but got ", text_of(g.dims));
    const Plan over = plan_of(x.dims, y.dims, rows, columns);
    const Tensor dx = context.output(0, type_, x.dims);
    try {
      run(core->route, over, type_.core, x.in(), y.in(), g.in(), dx.out());
    } catch (const Wrong& wrong) {
      if (wrong.code != kInvalid) throw;
      refuse(kInvalid, "tensor_out_dup is not the same as tensor_out (", wrong.text, ")");
    }
  }

  void spread(const Context& context) {
    const Tensor shape = context.input(0), g = context.input(1), rows = context.input(2), columns = context.input(3);
    require(shape.dims.size() == 1 && shape.size == 4, "original input tensor shape must be 1-dimensional and 4 elements");
    require(g.dims.size() == 4, "out_backprop must be 4-dimensional");
    for (const int64_t n : g.dims) require(n > 0, "out_backprop must be positive for all dimension, got:", n);
    const Dims source(shape.data<int64_t>(), shape.data<int64_t>() + 4);
    constexpr const char* kNames[] = {"Batch", "Rows", "Columns", "Depth"};
    for (size_t d = 0; d < 4; ++d) require(source[d] != 0, kNames[d], " dimension of input must not be 0");
    count(source);
    const Plan over = plan_of(source, g.dims, rows, columns);
    const Tensor dx = context.output(0, type_, source);
    run(core->spread, over, type_.core, int32_t{PG_SHARE_QUOTIENT}, 0, g.in(), dx.out());
  }

  /// Check the borders of both axes, read once, and make the plan.
  Plan plan_of(const Dims& source, const Dims& dest, const Tensor& rows, const Tensor& columns) {
    require(source[0] == dest[0] && source[3] == dest[3], "Expected the gradient to have batch and channels of the input ", text_of(source), ", but got ", text_of(dest));
    const Dims r = borders("row_pooling_sequence", rows, source[1], dest[1]), c = borders("col_pooling_sequence", columns, source[2], dest[2]);
    return plan(source, dest, r.data(), c.data());
  }

  static Dims borders(const char* name, const Tensor& given, int64_t n, int64_t m) {
    require(given.dims.size() == 1, name, " must be a vector, received shape ", text_of(given.dims));
    require(given.size == m + 1, name, " must have ", m + 1, " elements, one more than windows, but got ", given.size);
    const Dims values(given.data<int64_t>(), given.data<int64_t>() + given.size);
    bool good = values[0] >= 0 && values.back() <= n && values.back() >= n - 1;
    for (size_t i = 1; i < values.size(); ++i) good = good && values[i - 1] < values[i];
    require(good, name, " must rise from 0 or more to the ", n, " cells of the input, or to the cell before: got ", text_of(values));
    return values;
  }

  Plan plan(const Dims& source, const Dims& dest, const int64_t* rows, const int64_t* columns) {
    const auto make = [&] {
      return make_plan(source[0], source[3], {pg_between(source[1], rows, dest[1], overlapping_), pg_between(source[2], columns, dest[2], overlapping_)});
    };
    if (op_.verb == Verb::fractional && !deterministic_) return make();  // no other call has these windows
    Dims key = source;
    key.insert(key.end(), rows, rows + dest[1] + 1);
    key.insert(key.end(), columns, columns + dest[2] + 1);
    return plans_.get(key, make);
  }

  const Op& op_;
  const Type& type_;
  bool overlapping_, pseudo_random_ = false, deterministic_ = false;
  uint64_t seed_ = 0, seed2_ = 0;
  std::vector<float> ratio_;
  Plans plans_;
};

// ---- TensorFlow calls these

/// Call f(); return an exception as a status that `fail` receives.
template <class F, class Fail>
void guarded(F&& f, Fail&& fail) {
  Wrong wrong{0, ""};
  try {
    return f();
  } catch (const Wrong& caught) {
    wrong = caught;
  } catch (const std::bad_alloc&) {
    wrong = {kExhausted, "poolgrad: the call needs more memory than there is"};
  } catch (const std::exception& e) {
    wrong = {kInternal, std::string("poolgrad: ") + e.what()};
  }
  Status status;
  TF_SetStatus(status, wrong.code, wrong.text.c_str());
  fail(static_cast<TF_Status*>(status));
  TF_SetStatus(status, 0, "");
}

template <int Number>
void* create(TF_OpKernelConstruction* construction) {
  Kernel* made = nullptr;
  guarded(
      [&] {
        const Op& op = kOps[Number];
        const Attributes given(construction);
        if (op.verb >= Verb::fractional) made = new Fractional(op, given);
        else made = new Sliding(op, given);
        made->number = Number;
      },
      [&](TF_Status* status) { TF_OpKernelConstruction_Failure(construction, status); });
  return made;
}

void compute(void* kernel, TF_OpKernelContext* context) {
  auto* const made = static_cast<Kernel*>(kernel);
  if (!made) return;  // its construction failed
  guarded(
      [&] {
        made->compute(Context(context));
        runs[made->number].fetch_add(1, std::memory_order_relaxed);
      },
      [&](TF_Status* status) { TF_OpKernelContext_Failure(context, status); });
}

void destroy(void* kernel) { delete static_cast<Kernel*>(kernel); }

// ---- registration

/// The types that TensorFlow's definition of an op allows and the core serves.
std::vector<Type> types_of(const Op& op) {
  const std::string name = op.name;
  if (op.verb >= Verb::fractional) return {kFloat, kDouble, kInt32, kInt64};
  if (op.mean) return {kFloat, kDouble, kBfloat16, kHalf};
  if (name == "MaxPool3D" || name == "MaxPool3DGrad") return {kFloat, kBfloat16, kHalf};
  if (name == "MaxPool" || name == "MaxPoolV2") return {kFloat, kDouble, kInt32, kInt64, kUint8, kInt16, kInt8, kUint16, kBfloat16, kHalf};
  return {std::begin(kTypes), std::end(kTypes)};
}

using Create = void* (*)(TF_OpKernelConstruction*);
template <int... Numbers>
Create creator(int number, std::integer_sequence<int, Numbers...>) {
  static constexpr Create all[] = {create<Numbers>...};
  return all[number];
}

void add(int number, const Type& type, const Type* index) {
  const Op& op = kOps[number];
  Status status;
  TF_KernelBuilder* const builder =
      TF_NewKernelBuilder(op.name, "CPU", creator(number, std::make_integer_sequence<int, kOpCount>()), compute, destroy);
  TF_KernelBuilder_TypeConstraint(builder, "T", type.number, status);
  status.check();
  if (!std::strcmp(op.name, "MaxPool3DGrad")) TF_KernelBuilder_TypeConstraint(builder, "TInput", type.number, status);
  if (index) TF_KernelBuilder_TypeConstraint(builder, "Targmax", index->number, status);
  status.check();
  TF_KernelBuilder_Priority(builder, 1);
  const std::string name = std::string("Poolgrad") + op.name + "_" + type.name + (index ? std::string("_") + index->name : "");
  TF_RegisterKernelBuilder(name.c_str(), builder, status);
  status.check();
}

}  // namespace
}  // namespace poolgrad

#define PG_API extern "C" __attribute__((visibility("default")))

PG_API int poolgrad_connect(const void* table) {
  const auto* given = static_cast<const pg_table*>(table);
  if (pg_table_fits(given)) poolgrad::core = given;
  return pg_table_fits(given);
}

/// Look up TensorFlow's functions in its loaded libraries, separated by ':'. Return the first that is missing, or "".
PG_API const char* poolgrad_tf_find(const char* libraries) {
  std::vector<void*> handles;
  std::istringstream paths(libraries);
  for (std::string path; std::getline(paths, path, ':');)
    if (void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD)) handles.push_back(handle);
  const auto find = [&](const char* name) -> void* {
    for (void* const handle : handles)
      if (void* const found = dlsym(handle, name)) return found;
    return nullptr;
  };
#define PG_FIND(result, name, arguments)                                        \
  if (!(poolgrad::name = reinterpret_cast<result(*) arguments>(find(#name)))) \
    return #name;
  PG_TF_FUNCTIONS(PG_FIND)
#undef PG_FIND
  return "";
}

/// Return the name of an op, or NULL; and how often its kernel ran.
PG_API const char* poolgrad_tf_op(int number) {
  return number >= 0 && number < poolgrad::kOpCount ? poolgrad::kOps[number].name : nullptr;
}
PG_API int64_t poolgrad_tf_runs(int number) { return poolgrad::runs[number]; }

PG_API void poolgrad_tf_threads(int32_t most) { poolgrad::most_threads = most; }

/// Register the kernels of an op; write what TensorFlow says into a text of 256 bytes, empty after success.
PG_API void poolgrad_tf_register(int number, char* text) {
  text[0] = 0;
  try {
    const poolgrad::Op& op = poolgrad::kOps[number];
    const bool indexed = op.verb == poolgrad::Verb::argmax || op.verb == poolgrad::Verb::scatter || op.verb == poolgrad::Verb::gather;
    for (const poolgrad::Type& type : poolgrad::types_of(op)) {
      if (!indexed) poolgrad::add(number, type, nullptr);
      else
        for (const poolgrad::Type* index : {&poolgrad::kInt32, &poolgrad::kInt64}) poolgrad::add(number, type, index);
    }
  } catch (const poolgrad::Wrong& wrong) {
    std::strncpy(text, wrong.text.c_str(), 255);
    text[255] = 0;
  } catch (const std::exception& error) {
    std::strncpy(text, error.what(), 255);
    text[255] = 0;
  }
}
