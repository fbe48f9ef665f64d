// oneDNN's pooling behind four C functions, so that Python can time it without a framework around it.
// Primitives and memory objects are made once; a call only sets pointers and executes.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>

using dnnl::memory;

namespace {

struct Shape {
  int spatial, maximal, dtype, channels_last, training;
  const int64_t *x, *y;  // N, C, space
  const int64_t *window, *stride, *before, *after;
};

memory::data_type type_of(int dtype) {
  using T = memory::data_type;
  constexpr T types[] = {T::f32, T::bf16, T::f16, T::u8, T::s8};
  return types[dtype];
}

memory::format_tag tag_of(const Shape& s) {
  using F = memory::format_tag;
  if (s.spatial == 2) return s.channels_last ? F::nhwc : F::nchw;
  return s.channels_last ? F::ndhwc : F::ncdhw;
}

memory::dims dims(const int64_t* values, int count) { return memory::dims(values, values + count); }

class Pool {
 public:
  explicit Pool(const Shape& s) : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    using dnnl::algorithm;
    const auto algo = s.maximal ? algorithm::pooling_max : algorithm::pooling_avg_exclude_padding;
    const auto prop = s.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    const memory::desc x(dims(s.x, s.spatial + 2), type_of(s.dtype), tag_of(s));
    const memory::desc y(dims(s.y, s.spatial + 2), type_of(s.dtype), tag_of(s));
    const auto stride = dims(s.stride, s.spatial), window = dims(s.window, s.spatial);
    const auto before = dims(s.before, s.spatial), after = dims(s.after, s.spatial);
#if DNNL_VERSION_MAJOR >= 3
    const memory::dims dense(static_cast<size_t>(s.spatial), 0);
    const dnnl::pooling_forward::primitive_desc forward(engine_, prop, algo, x, y, stride, window, dense, before, after);
#else
    const dnnl::pooling_forward::primitive_desc forward({prop, algo, x, y, stride, window, before, after}, engine_);
#endif
    forward_ = dnnl::pooling_forward(forward);
    x_ = memory(x, engine_, nullptr), y_ = memory(y, engine_, nullptr);
    if (!s.training) return;
    if (s.maximal) workspace_ = memory(forward.workspace_desc(), engine_);
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::pooling_backward::primitive_desc backward(engine_, algo, x, y, stride, window, dense, before, after, forward);
#else
    const dnnl::pooling_backward::primitive_desc backward({algo, x, y, stride, window, before, after}, engine_, forward);
#endif
    backward_ = dnnl::pooling_backward(backward);
  }

  void forward(void* x, void* y) {
    x_.set_data_handle(x), y_.set_data_handle(y);
    run(forward_, {{DNNL_ARG_SRC, x_}, {DNNL_ARG_DST, y_}});
  }

  void backward(void* g, void* dx) {
    y_.set_data_handle(g), x_.set_data_handle(dx);
    run(backward_, {{DNNL_ARG_DIFF_DST, y_}, {DNNL_ARG_DIFF_SRC, x_}});
  }

 private:
  void run(dnnl::primitive& what, std::unordered_map<int, memory> arguments) {
    if (workspace_) arguments.insert({DNNL_ARG_WORKSPACE, workspace_});
    what.execute(stream_, arguments);
    stream_.wait();
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::primitive forward_, backward_;
  memory x_, y_, workspace_;
};

std::string failure;

template <class F>
auto guarded(F what) -> decltype(what()) {
  try {
    failure.clear();
    return what();
  } catch (const std::exception& error) {
    failure = error.what();
    return {};
  }
}

}  // namespace

extern "C" {

const char* pool_failure() { return failure.c_str(); }

const char* pool_version() {
  static char text[32];
  const auto* v = dnnl_version();
  std::snprintf(text, sizeof text, "%d.%d.%d", v->major, v->minor, v->patch);
  return text;
}

void* pool_make(int spatial, int maximal, int dtype, int channels_last, int training, const int64_t* x, const int64_t* y,
                const int64_t* window, const int64_t* stride, const int64_t* before, const int64_t* after) {
  const Shape shape{spatial, maximal, dtype, channels_last, training, x, y, window, stride, before, after};
  return guarded([&] { return static_cast<void*>(new Pool(shape)); });
}

int pool_forward(void* pool, void* x, void* y) {
  return guarded([&] { return static_cast<Pool*>(pool)->forward(x, y), 1; });
}

int pool_backward(void* pool, void* g, void* dx) {
  return guarded([&] { return static_cast<Pool*>(pool)->backward(g, dx), 1; });
}

void pool_free(void* pool) { delete static_cast<Pool*>(pool); }
}
