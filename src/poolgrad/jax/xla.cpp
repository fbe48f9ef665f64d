// Run the pools inside XLA, without Python. Python passes the address of the core once.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "poolgrad.h"
#include "xla/ffi/api/ffi.h"

namespace poolgrad {
namespace {

namespace ffi = xla::ffi;
using Numbers = ffi::Span<const int64_t>;

const pg_table* core = nullptr;

/// The core's number of an element type, or -1; bytes per element.
struct Type {
  int32_t number;
  int64_t bytes;
};

Type type_of(ffi::DataType type) {
  switch (type) {
    case ffi::DataType::F16: return {PG_F16, 2};
    case ffi::DataType::BF16: return {PG_BF16, 2};
    case ffi::DataType::F32: return {PG_F32, 4};
    case ffi::DataType::F64: return {PG_F64, 8};
    case ffi::DataType::S8: return {PG_I8, 1};
    case ffi::DataType::PRED:
    case ffi::DataType::U8: return {PG_U8, 1};
    case ffi::DataType::S16: return {PG_I16, 2};
    case ffi::DataType::U16: return {PG_U16, 2};
    case ffi::DataType::S32: return {PG_I32, 4};
    case ffi::DataType::U32: return {PG_U32, 4};
    case ffi::DataType::S64: return {PG_I64, 8};
    case ffi::DataType::U64: return {PG_U64, 8};
    default: return {-1, 0};
  }
}

struct Wrong {
  std::string what;
};

/// f(), with what it throws as XLA's error.
template <class F>
ffi::Error tried(F&& f) {
  try {
    if (!core) throw Wrong{"poolgrad: the library is not connected to the core"};
    f();
    return ffi::Error::Success();
  } catch (const Wrong& wrong) {
    return ffi::Error::InvalidArgument("poolgrad: " + wrong.what);
  } catch (const std::exception& e) {
    return ffi::Error::Internal(std::string("poolgrad: ") + e.what());
  }
}

/// Call a function of the core; throw its error.
template <class F, class... Arguments>
void call(F* function, Arguments... arguments) {
  pg_error error;
  if (function(arguments..., &error) != PG_OK) throw Wrong{error.text};
}

pg_input in(const ffi::AnyBuffer& buffer) { return pg_in(buffer.untyped_data(), static_cast<int64_t>(buffer.element_count())); }
pg_output out(const ffi::AnyBuffer& buffer) { return pg_out(buffer.untyped_data(), static_cast<int64_t>(buffer.element_count())); }

/// Windows as the call brings them, and what the core makes of them.
struct Windows {
  int64_t outer = 1, inner = 1;
  std::vector<int64_t> n, m, start, stop, span;
  std::unique_ptr<pg_plan, pg_plan_drop_function*> plan{nullptr, core->plan_drop};
  pg_plan_info info{};
};

/// `axes` are triples (dimension, cells, windows); `bounds` has three rows, start, stop and span, with a column per window. Where
/// they would be too many, dimensions between two pooled ones become one axis.
std::shared_ptr<const Windows> make(Numbers dims, Numbers axes, const int32_t* bounds, size_t columns) {
  auto w = std::make_shared<Windows>();
  const size_t first = static_cast<size_t>(axes[0]), last = static_cast<size_t>(axes[axes.size() - 3]);
  for (size_t d = 0; d < first; ++d) w->outer *= dims[d];
  for (size_t d = last + 1; d < dims.size(); ++d) w->inner *= dims[d];
  constexpr size_t kMost = 16;
  const auto keep = [&](int64_t cells) {
    w->n.push_back(cells);
    w->m.push_back(cells);
    for (int64_t i = 0; i < cells; ++i) {
      w->start.push_back(i);
      w->stop.push_back(i + 1);
      w->span.push_back(1);
    }
  };
  size_t column = 0, d = first;
  for (size_t at = 0; at < axes.size(); at += 3, ++d) {
    int64_t between = 1;
    for (; d < static_cast<size_t>(axes[at]); ++d) {
      if (last - first < kMost) keep(dims[d]);
      else between *= dims[d];
    }
    if (between != 1) keep(between);
    const int64_t m = axes[at + 2];
    if (axes[at + 1] != dims[d]) throw Wrong{"windows: they are over axes of another length"};
    if (m < 0 || static_cast<uint64_t>(m) > columns - column) throw Wrong{"windows: there are fewer of them than the result has cells"};
    w->n.push_back(dims[d]);
    w->m.push_back(m);
    for (const size_t end = column + static_cast<size_t>(m); column < end; ++column) {
      w->start.push_back(bounds[column]);
      w->stop.push_back(bounds[columns + column]);
      w->span.push_back(bounds[2 * columns + column]);
    }
  }
  std::vector<pg_axis> made;
  const int64_t *start = w->start.data(), *stop = w->stop.data();
  for (size_t a = 0; a < w->n.size(); ++a) {
    pg_axis axis{};
    axis.kind = PG_AXIS_WINDOWS;
    axis.cells = w->n[a];
    axis.windows = w->m[a];
    axis.start = start;
    axis.stop = stop;
    start += axis.windows;
    stop += axis.windows;
    made.push_back(axis);
  }
  pg_plan* plan = nullptr;
  call(core->plan_new, w->outer, w->inner, static_cast<int32_t>(made.size()), made.data(), &plan);
  w->plan.reset(plan);
  call(core->plan_describe, plan, &w->info);
  return w;
}

/// Plans are kept, since a program brings the same windows at every call.
std::shared_ptr<const Windows> windows_of(Numbers dims, Numbers axes, const ffi::AnyBuffer& bounds) {
  if (axes.size() == 0 || axes.size() % 3 || bounds.element_type() != ffi::DataType::S32 || bounds.element_count() % 3) throw Wrong{"windows: unknown form"};
  for (size_t i = 0; i < axes.size(); i += 3)
    if (axes[i] < 0 || static_cast<size_t>(axes[i]) >= dims.size() || (i && axes[i] <= axes[i - 3])) throw Wrong{"windows: unknown axes"};
  // The boundaries are read once: an array of NumPy's may lie there, which another thread writes. Plan and key are of the same numbers.
  std::vector<int32_t> rows(bounds.element_count());
  if (!rows.empty()) std::memcpy(rows.data(), bounds.untyped_data(), bounds.size_bytes());
  const auto text = [](const void* data, size_t bytes) { return std::string(static_cast<const char*>(data), bytes); };
  const std::string key = text(dims.begin(), dims.size() * 8) + '|' + text(axes.begin(), axes.size() * 8) + '|' + text(rows.data(), bounds.size_bytes());
  static std::mutex lock;
  static std::map<std::string, std::shared_ptr<const Windows>> kept;
  {
    const std::lock_guard guard(lock);
    if (const auto found = kept.find(key); found != kept.end()) return found->second;
  }
  auto made = make(dims, axes, rows.data(), rows.size() / 3);
  const std::lock_guard guard(lock);
  if (kept.size() >= 256) kept.clear();
  kept.emplace(key, made);
  return made;
}

void check_taps(const ffi::AnyBuffer& taps, const Windows& w) {
  if (type_of(taps.element_type()).number != w.info.taps) throw Wrong{"taps: got another type than the windows want"};
}

Type typed(const ffi::AnyBuffer& in, const ffi::AnyBuffer& out) {
  const Type type = type_of(in.element_type());
  if (type.number < 0 || in.element_type() != out.element_type()) throw Wrong{"x: got an element type that cannot be pooled"};
  return type;
}

/// A call uses at most as many threads as XLA has for the program.
pg_run run_of(const ffi::ThreadPool& threads) { return {static_cast<int32_t>(std::min<int64_t>(threads.num_threads(), 1024)), nullptr, nullptr}; }

ffi::Error select(ffi::ThreadPool threads, ffi::AnyBuffer x, ffi::AnyBuffer bounds, ffi::Result<ffi::AnyBuffer> y, ffi::Result<ffi::AnyBuffer> taps, Numbers axes, bool least, bool nan_wins) {
  return tried([&] {
    const pg_run how = run_of(threads);
    const auto w = windows_of(x.dimensions(), axes, bounds);
    check_taps(*taps, *w);
    const int32_t best = nan_wins ? PG_BEST_PROPAGATE_NAN : PG_BEST_IGNORE_NAN;
    call(core->choose, w->plan.get(), &how, typed(x, *y).number, best, static_cast<int>(least), in(x), out(*y), out(*taps));
  });
}

ffi::Error follow(ffi::ThreadPool threads, ffi::AnyBuffer v, ffi::AnyBuffer bounds, ffi::AnyBuffer taps, ffi::Result<ffi::AnyBuffer> result, Numbers axes, bool back) {
  return tried([&] {
    const pg_run how = run_of(threads);
    const auto w = windows_of((back ? *result : v).dimensions(), axes, bounds);
    check_taps(taps, *w);
    call(back ? core->place : core->pick, w->plan.get(), &how, typed(v, *result).number, in(v), in(taps), out(*result));
  });
}

/// to[i] = from[i] / (factor · the product of the window's spans), in the element's own type.
template <class T>
void divide(const Windows& w, const T* from, T* to, double factor, bool spans) {
  std::vector<int64_t> by{1};
  const int64_t* span = w.span.data();
  for (const int64_t m : w.m) {
    std::vector<int64_t> longer;
    for (const int64_t b : by)
      for (int64_t j = 0; j < m; ++j) longer.push_back(b * span[j]);
    by = std::move(longer);
    span += m;
  }
  for (int64_t o = 0, i = 0; o < w.outer; ++o)
    for (const int64_t b : by) {
      const T divisor = static_cast<T>(spans ? static_cast<double>(b) : factor);
      for (const int64_t end = i + w.inner; i < end; ++i) to[i] = from[i] / divisor;
    }
}

void divide(const Windows& w, Type type, const void* from, void* to, double factor, bool spans) {
  if (type.number == PG_F32) return divide(w, static_cast<const float*>(from), static_cast<float*>(to), factor, spans);
  if (type.number == PG_F64) return divide(w, static_cast<const double*>(from), static_cast<double*>(to), factor, spans);
  throw Wrong{"divisor: got an element type that is not divided here"};
}

ffi::Error fold(ffi::ThreadPool threads, ffi::AnyBuffer v, ffi::AnyBuffer bounds, ffi::Result<ffi::AnyBuffer> result, Numbers axes, bool back, bool mean, bool spans, double factor) {
  return tried([&] {
    const pg_run how = run_of(threads);
    const auto w = windows_of((back ? *result : v).dimensions(), axes, bounds);
    const Type type = typed(v, *result);
    if (type.number > PG_F64) throw Wrong{"v: got integers, wanted a floating type"};
    const bool divided = spans || factor != 1;
    if (!back) {
      call(core->fold, w->plan.get(), &how, type.number, int32_t{mean ? PG_MEAN_ONCE : PG_MEAN_TOTAL}, in(v), out(*result));
      if (divided) divide(*w, type, result->untyped_data(), result->untyped_data(), factor, spans);
      return;
    }
    if (static_cast<int64_t>(v.element_count()) != w->info.dest) throw Wrong{"v: got another number of elements than there are windows"};
    const int32_t share = !mean ? PG_SHARE_WHOLE : type.bytes == 2 ? PG_SHARE_QUOTIENT : PG_SHARE_RECIPROCAL;
    std::unique_ptr<char[]> shares(divided ? new char[v.size_bytes()] : nullptr);
    if (divided) divide(*w, type, v.untyped_data(), shares.get(), factor, spans);
    const pg_input g = divided ? pg_in(shares.get(), w->info.dest) : in(v);
    call(core->spread, w->plan.get(), &how, type.number, share, 0, g, out(*result));
  });
}

/// Return the address of an argument; a test checks that XLA copied nothing.
ffi::Error address(ffi::AnyBuffer x, ffi::Result<ffi::BufferR0<ffi::DataType::U64>> where) {
  *where->typed_data() = reinterpret_cast<uint64_t>(x.untyped_data());
  return ffi::Error::Success();
}

using Buffer = ffi::AnyBuffer;

}  // namespace
}  // namespace poolgrad

using poolgrad::Buffer;

extern "C" __attribute__((visibility("default"))) int poolgrad_connect(const void* table) {
  const auto* given = static_cast<const pg_table*>(table);
  if (pg_table_fits(given)) poolgrad::core = given;
  return pg_table_fits(given);
}

#define PG_HANDLER(name, function, binding) \
  extern "C" __attribute__((visibility("default"))) XLA_FFI_Error* name(XLA_FFI_CallFrame*); \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(name, function, binding)

PG_HANDLER(poolgrad_select, poolgrad::select,
           xla::ffi::Ffi::Bind().Ctx<xla::ffi::ThreadPool>().Arg<Buffer>().Arg<Buffer>().Ret<Buffer>().Ret<Buffer>().Attr<poolgrad::Numbers>("axes").Attr<bool>("least").Attr<bool>("nan_wins"));
PG_HANDLER(poolgrad_follow, poolgrad::follow, xla::ffi::Ffi::Bind().Ctx<xla::ffi::ThreadPool>().Arg<Buffer>().Arg<Buffer>().Arg<Buffer>().Ret<Buffer>().Attr<poolgrad::Numbers>("axes").Attr<bool>("back"));
PG_HANDLER(poolgrad_fold, poolgrad::fold,
           xla::ffi::Ffi::Bind().Ctx<xla::ffi::ThreadPool>().Arg<Buffer>().Arg<Buffer>().Ret<Buffer>().Attr<poolgrad::Numbers>("axes").Attr<bool>("back").Attr<bool>("mean").Attr<bool>("spans").Attr<double>("factor"));
PG_HANDLER(poolgrad_address, poolgrad::address, xla::ffi::Ffi::Bind().Arg<Buffer>().Ret<xla::ffi::BufferR0<xla::ffi::DataType::U64>>());
