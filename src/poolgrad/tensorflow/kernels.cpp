// Kernels for TensorFlow's own pooling ops, on the CPU, by the core: registered with a higher priority than TensorFlow's.
//
// Python passes the core's table (poolgrad_connect), then registers (poolgrad_tf_register).
// A kernel cannot hand a call on to TensorFlow's: it handles every attribute, and refuses what TensorFlow refuses with
// TensorFlow's code and words.
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <random>

#include "interface.hpp"
#include "own_ops.hpp"

namespace poolgrad {
namespace {

// ---- plans

using Plan = std::shared_ptr<pg_plan>;

/// Call a verb of the core on at most as many threads as TensorFlow uses inside an op.
template <class Verb, class... Arguments>
void run(Verb* verb, const Plan& plan, Arguments... arguments) {
  const pg_run how = threads();
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
    const pg_run how = threads();
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

PG_API int poolgrad_connect(const void* table) {
  const auto* given = static_cast<const pg_table*>(table);
  if (pg_table_fits(given)) poolgrad::core = given;
  return pg_table_fits(given);
}

/// Look up TensorFlow's functions in its loaded libraries, separated by ':'. Return the first that is missing, or "".
PG_API const char* poolgrad_tf_find(const char* libraries) { return poolgrad::find_functions(libraries); }

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
