// Run the pools inside XLA, without Python. Python passes the address of the core once.
#include <algorithm>
#include <string>

#include "boundaries.hpp"
#include "xla/ffi/api/ffi.h"

namespace poolgrad {
namespace {

namespace ffi = xla::ffi;
using Axes = ffi::Span<const int64_t>;

const pg_table* core = nullptr;

/// The core's number of an element type, or -1.
int32_t type_of(ffi::DataType type) {
  switch (type) {
    case ffi::DataType::F16: return PG_F16;
    case ffi::DataType::BF16: return PG_BF16;
    case ffi::DataType::F32: return PG_F32;
    case ffi::DataType::F64: return PG_F64;
    case ffi::DataType::S8: return PG_I8;
    case ffi::DataType::PRED:
    case ffi::DataType::U8: return PG_U8;
    case ffi::DataType::S16: return PG_I16;
    case ffi::DataType::U16: return PG_U16;
    case ffi::DataType::S32: return PG_I32;
    case ffi::DataType::U32: return PG_U32;
    case ffi::DataType::S64: return PG_I64;
    case ffi::DataType::U64: return PG_U64;
    default: return -1;
  }
}

Array array(const ffi::AnyBuffer& buffer) {
  const auto dims = buffer.dimensions();
  return {buffer.untyped_data(), static_cast<int64_t>(buffer.element_count()), type_of(buffer.element_type()), {dims.begin(), dims.size()}};
}

/// Run f on the pool of a call, with what it throws as XLA's error. A call uses at most as many threads as XLA has for the program.
template <class F>
ffi::Error tried(const ffi::ThreadPool& threads, Axes axes, const ffi::AnyBuffer& bounds, F&& f) {
  try {
    if (!core) throw Refused{PG_INTERNAL, "the library is not connected to the core"};
    if (bounds.element_type() != ffi::DataType::S32) throw Refused{PG_INVALID, "windows: unknown form"};
    const pg_run how = {static_cast<int32_t>(std::min<int64_t>(threads.num_threads(), 1024)), nullptr, nullptr};
    f(Pool{*core, how, {axes.begin(), axes.size()}, {static_cast<const int32_t*>(bounds.untyped_data()), bounds.element_count()}});
    return ffi::Error::Success();
  } catch (const Refused& refused) {
    return ffi::Error::InvalidArgument("poolgrad: " + refused.text);
  } catch (const std::exception& e) {
    return ffi::Error::Internal(std::string("poolgrad: ") + e.what());
  }
}

ffi::Error select(ffi::ThreadPool threads, ffi::AnyBuffer x, ffi::AnyBuffer bounds, ffi::Result<ffi::AnyBuffer> y, ffi::Result<ffi::AnyBuffer> taps, Axes axes, bool least, bool nan_wins) {
  return tried(threads, axes, bounds, [&](const Pool& pool) { pool.choose(array(x), array(*y), array(*taps), least, nan_wins); });
}

ffi::Error follow(ffi::ThreadPool threads, ffi::AnyBuffer v, ffi::AnyBuffer bounds, ffi::AnyBuffer taps, ffi::Result<ffi::AnyBuffer> result, Axes axes, bool back) {
  return tried(threads, axes, bounds, [&](const Pool& pool) { pool.follow(array(v), array(taps), array(*result), back); });
}

ffi::Error fold(ffi::ThreadPool threads, ffi::AnyBuffer v, ffi::AnyBuffer bounds, ffi::Result<ffi::AnyBuffer> result, Axes axes, bool back, bool mean, bool spans, double factor) {
  return tried(threads, axes, bounds, [&](const Pool& pool) { pool.fold(array(v), array(*result), back, mean, spans, factor); });
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
           xla::ffi::Ffi::Bind().Ctx<xla::ffi::ThreadPool>().Arg<Buffer>().Arg<Buffer>().Ret<Buffer>().Ret<Buffer>().Attr<poolgrad::Axes>("axes").Attr<bool>("least").Attr<bool>("nan_wins"));
PG_HANDLER(poolgrad_follow, poolgrad::follow, xla::ffi::Ffi::Bind().Ctx<xla::ffi::ThreadPool>().Arg<Buffer>().Arg<Buffer>().Arg<Buffer>().Ret<Buffer>().Attr<poolgrad::Axes>("axes").Attr<bool>("back"));
PG_HANDLER(poolgrad_fold, poolgrad::fold,
           xla::ffi::Ffi::Bind().Ctx<xla::ffi::ThreadPool>().Arg<Buffer>().Arg<Buffer>().Ret<Buffer>().Attr<poolgrad::Axes>("axes").Attr<bool>("back").Attr<bool>("mean").Attr<bool>("spans").Attr<double>("factor"));
PG_HANDLER(poolgrad_address, poolgrad::address, xla::ffi::Ffi::Bind().Arg<Buffer>().Ret<xla::ffi::BufferR0<xla::ffi::DataType::U64>>());
