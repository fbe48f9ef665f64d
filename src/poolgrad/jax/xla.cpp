// Run the pools inside XLA, without Python. Python passes the address of the core once.
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "foreign.hpp"
#include "xla/ffi/api/ffi.h"

namespace poolgrad {
namespace {

namespace ffi = xla::ffi;
using Numbers = ffi::Span<const int64_t>;

const Foreign* core = nullptr;

/// The core's number of an element type, or -1; bytes per element.
struct Type {
  int number;
  int64_t bytes;
};

Type type_of(ffi::DataType type) {
  switch (type) {
    case ffi::DataType::F16: return {0, 2};
    case ffi::DataType::BF16: return {1, 2};
    case ffi::DataType::F32: return {2, 4};
    case ffi::DataType::F64: return {3, 8};
    case ffi::DataType::S8: return {4, 1};
    case ffi::DataType::PRED:
    case ffi::DataType::U8: return {5, 1};
    case ffi::DataType::S16: return {6, 2};
    case ffi::DataType::U16: return {7, 2};
    case ffi::DataType::S32: return {8, 4};
    case ffi::DataType::U32: return {9, 4};
    case ffi::DataType::S64: return {10, 8};
    case ffi::DataType::U64: return {11, 8};
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

void check(bool fine, const Reason& reason) {
  if (!fine) throw Wrong{reason.text};
}

/// Windows as the call brings them, and what the core makes of them.
struct Windows {
  int64_t outer = 1, inner = 1;
  std::vector<int64_t> n, m, start, stop, span;
  std::unique_ptr<void, void (*)(void*)> plan{nullptr, core->drop};
  int64_t source = 0, dest = 0, tap = 0;
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
  Reason reason;
  w->plan.reset(core->plan(w->outer, w->inner, static_cast<int>(w->n.size()), w->n.data(), w->m.data(), w->start.data(), w->stop.data(), &reason));
  check(w->plan != nullptr, reason);
  core->sizes(w->plan.get(), &w->source, &w->dest, &w->tap);
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

void sized(const ffi::AnyBuffer& buffer, int64_t elements, const char* name) {
  if (static_cast<int64_t>(buffer.element_count()) != elements)
    throw Wrong{std::string(name) + ": has " + std::to_string(buffer.element_count()) + " elements, the windows have " + std::to_string(elements)};
}

void sized_taps(const ffi::AnyBuffer& taps, const Windows& w) {
  sized(taps, w.dest, "taps");
  if (taps.element_type() != (w.tap == 1 ? ffi::DataType::U8 : ffi::DataType::U32)) throw Wrong{"taps: got another type than the windows want"};
}

Type typed(const ffi::AnyBuffer& in, const ffi::AnyBuffer& out) {
  const Type type = type_of(in.element_type());
  if (type.number < 0 || in.element_type() != out.element_type()) throw Wrong{"x: got an element type that cannot be pooled"};
  return type;
}

ffi::Error select(ffi::AnyBuffer x, ffi::AnyBuffer bounds, ffi::Result<ffi::AnyBuffer> y, ffi::Result<ffi::AnyBuffer> taps, Numbers axes, bool least, bool nan_wins) {
  return tried([&] {
    const auto w = windows_of(x.dimensions(), axes, bounds);
    sized(x, w->source, "x");
    sized(*y, w->dest, "y");
    sized_taps(*taps, *w);
    Reason reason;
    check(core->choose(w->plan.get(), typed(x, *y).number, {least, nan_wins}, x.untyped_data(), y->untyped_data(), taps->untyped_data(), &reason), reason);
  });
}

ffi::Error follow(ffi::AnyBuffer v, ffi::AnyBuffer bounds, ffi::AnyBuffer taps, ffi::Result<ffi::AnyBuffer> out, Numbers axes, bool back) {
  return tried([&] {
    const auto w = windows_of((back ? *out : v).dimensions(), axes, bounds);
    sized(v, back ? w->dest : w->source, "v");
    sized(*out, back ? w->source : w->dest, "out");
    sized_taps(taps, *w);
    Reason reason;
    const auto verb = back ? core->place : core->pick;
    check(verb(w->plan.get(), typed(v, *out).number, v.untyped_data(), taps.untyped_data(), out->untyped_data(), &reason), reason);
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
  if (type.number == 2) return divide(w, static_cast<const float*>(from), static_cast<float*>(to), factor, spans);
  if (type.number == 3) return divide(w, static_cast<const double*>(from), static_cast<double*>(to), factor, spans);
  throw Wrong{"divisor: got an element type that is not divided here"};
}

/// The numbers of `Mean` and `Share` in the core.
enum : int { kTotal = 4, kOnce = 5, kReciprocal = 0, kQuotient = 2, kWhole = 3 };

ffi::Error fold(ffi::AnyBuffer v, ffi::AnyBuffer bounds, ffi::Result<ffi::AnyBuffer> out, Numbers axes, bool back, bool mean, bool spans, double factor) {
  return tried([&] {
    const auto w = windows_of((back ? *out : v).dimensions(), axes, bounds);
    sized(v, back ? w->dest : w->source, "v");
    sized(*out, back ? w->source : w->dest, "out");
    const Type type = typed(v, *out);
    if (type.number > 3) throw Wrong{"v: got integers, wanted a floating type"};
    const bool divided = spans || factor != 1;
    Reason reason;
    if (!back) {
      check(core->fold(w->plan.get(), type.number, mean ? kOnce : kTotal, v.untyped_data(), out->untyped_data(), &reason), reason);
      if (divided) divide(*w, type, out->untyped_data(), out->untyped_data(), factor, spans);
      return;
    }
    const int share = !mean ? kWhole : type.bytes == 2 ? kQuotient : kReciprocal;
    std::unique_ptr<char[]> shares(divided ? new char[v.size_bytes()] : nullptr);
    if (divided) divide(*w, type, v.untyped_data(), shares.get(), factor, spans);
    check(core->spread(w->plan.get(), type.number, share, divided ? shares.get() : v.untyped_data(), out->untyped_data(), &reason), reason);
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
  poolgrad::core = static_cast<const poolgrad::Foreign*>(table);
  return poolgrad::core != nullptr;
}

#define PG_HANDLER(name, function, binding) \
  extern "C" __attribute__((visibility("default"))) XLA_FFI_Error* name(XLA_FFI_CallFrame*); \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(name, function, binding)

PG_HANDLER(poolgrad_select, poolgrad::select,
           xla::ffi::Ffi::Bind().Arg<Buffer>().Arg<Buffer>().Ret<Buffer>().Ret<Buffer>().Attr<poolgrad::Numbers>("axes").Attr<bool>("least").Attr<bool>("nan_wins"));
PG_HANDLER(poolgrad_follow, poolgrad::follow, xla::ffi::Ffi::Bind().Arg<Buffer>().Arg<Buffer>().Arg<Buffer>().Ret<Buffer>().Attr<poolgrad::Numbers>("axes").Attr<bool>("back"));
PG_HANDLER(poolgrad_fold, poolgrad::fold,
           xla::ffi::Ffi::Bind().Arg<Buffer>().Arg<Buffer>().Ret<Buffer>().Attr<poolgrad::Numbers>("axes").Attr<bool>("back").Attr<bool>("mean").Attr<bool>("spans").Attr<double>("factor"));
PG_HANDLER(poolgrad_address, poolgrad::address, xla::ffi::Ffi::Bind().Arg<Buffer>().Ret<xla::ffi::BufferR0<xla::ffi::DataType::U64>>());
