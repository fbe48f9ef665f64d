// The C interface: check every argument, then run the verb. No exception leaves it.
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <new>

#include "api/boxed_verbs.hpp"
#include "api/foreign_plan.hpp"
#include "api/levels.hpp"
#include "plan/fractional.hpp"
#include "runtime/first_wrong.hpp"
#include "runtime/memory.hpp"

#if !defined(PG_VERSION)
#define PG_VERSION "unknown"
#endif

namespace poolgrad {
namespace {

/// Thrown for a call that no kernel serves.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void set(pg_error* error, int code, int64_t at, const char* op, const char* text) {
  if (!error) return;
  error->code = code;
  error->at = at;
  std::snprintf(error->text, sizeof error->text, "%s%s%s", op, *op ? ": " : "", text);
}

/// Call f() with the core started and the caller's executor; turn an exception into a code.
template <class F>
int guarded(const char* op, const pg_run* run, pg_error* error, F&& f) {
  int code = PG_INTERNAL;
  int64_t at = -1;
  try {
    if (!has_a_level()) throw Unsupported("needs a processor with SSE4.2 and POPCNT (x86-64-v2)");
    start_core();
    Executor executor;
    if (run) {
      if (run->threads < 0 || run->threads > 1024)
        throw Refused("run.threads", std::to_string(run->threads), "0 to 1024");
      executor = {run->threads, run->parallel_for, run->context};
    }
    const UseExecutor use(executor);
    f();
    set(error, PG_OK, -1, "", "");
    return PG_OK;
  } catch (const Refused& e) {
    at = e.at;
    set(error, code = PG_INVALID, at, op, e.what());
  } catch (const std::invalid_argument& e) {
    set(error, code = PG_INVALID, at, op, e.what());
  } catch (const std::overflow_error& e) {
    set(error, code = PG_INVALID, at, op, e.what());
  } catch (const Unsupported& e) {
    set(error, code = PG_UNSUPPORTED, at, op, e.what());
  } catch (const std::bad_alloc&) {
    set(error, code = PG_NO_MEMORY, at, op,
        "x: got a call that needs too much memory, wanted no more than there is");
  } catch (const std::length_error&) {
    set(error, code = PG_NO_MEMORY, at, op,
        "x: got a call that needs too much memory, wanted no more than there is");
  } catch (const std::exception& e) {
    set(error, code, at, op, e.what());
  } catch (...) {
    set(error, code, at, op, "the call was ended");
  }
  return code;
}

const pg_plan& checked_plan(const pg_plan* plan) {
  if (!plan) throw Refused("plan", "NULL", "a plan of pg_plan_new");
  return *plan;
}

int rule(const char* name, int got, int count) {
  if (got < 0 || got >= count)
    throw Refused(name, std::to_string(got), "0 to " + std::to_string(count - 1));
  return got;
}

Dtype checked_dtype(int32_t dtype) { return Dtype(rule("dtype", dtype, PG_DTYPES)); }

int64_t index_bytes(int32_t type) {
  if (type != PG_I32 && type != PG_I64)
    throw Refused("index_type", std::to_string(type), "PG_I32 or PG_I64");
  return type == PG_I64 ? 8 : 4;
}

/// An array of the caller, of `size` elements of `width` bytes.
struct Span {
  const char* data;
  int64_t bytes;
};

Span checked(const char* name, const void* data, int64_t size, int64_t wanted, int64_t width) {
  if (wanted >= 0 && size != wanted)
    throw Refused(name, std::to_string(size) + " elements", std::to_string(wanted));
  if (size < 0 || size > std::numeric_limits<int64_t>::max() / 16)
    throw Refused(name, std::to_string(size) + " elements", "a size that memory can have");
  if (!data && size) throw Refused(name, "NULL", std::to_string(size) + " elements");
  if (reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(width))
    throw Refused(name, "an address that is not aligned", "a multiple of " + std::to_string(width));
  return {static_cast<const char*>(data), size * width};
}

void apart(const char* name, Span written, Span other) {
  const auto from = [](Span s) { return reinterpret_cast<uintptr_t>(s.data); };
  const auto to = [](Span s) {
    return reinterpret_cast<uintptr_t>(s.data) + static_cast<uintptr_t>(s.bytes);
  };
  if (written.bytes && other.bytes && from(written) < to(other) && from(other) < to(written))
    throw Refused(name, "memory that another array of the call has", "memory of its own");
}

/// Scratch memory of a call; none if it has no bytes.
class WorkBlock {
 public:
  explicit WorkBlock(int64_t bytes)
      : bytes_(static_cast<size_t>(bytes)), data_(bytes ? allocate_bytes(bytes_) : nullptr) {}
  WorkBlock(const WorkBlock&) = delete;
  WorkBlock& operator=(const WorkBlock&) = delete;
  ~WorkBlock() {
    if (data_) free_bytes(data_, bytes_);
  }
  char* data() const { return static_cast<char*>(data_); }

 private:
  size_t bytes_;
  void* data_;
};

/// The arrays of a call over a plan: checked, and in the order of the plan.
class Call {
 public:
  Call(const pg_plan* plan, int32_t dtype)
      : given(checked_plan(plan)),
        plan(given.owned),
        dtype(checked_dtype(dtype)),
        verbs(chosen_verbs(this->dtype)) {}

  int64_t width() const { return item_bytes(dtype); }
  int64_t size(Side side) const {
    return side == Side::source ? plan.source_size() : plan.dest_size();
  }
  int64_t bytes() const { return std::max(plan.source_size(), plan.dest_size()) * width(); }

  const void* in(const char* name, pg_input array, Side side, int64_t bytes_each = 0) {
    const int64_t each = bytes_each ? bytes_each : width();
    const Span span = checked(name, array.data, array.size, size(side), each);
    read_[reads_++] = span;
    if (!given.sorted()) return span.data;
    const auto& block = blocks_.emplace_back(std::make_unique<WorkBlock>(span.bytes));
    given.copy(side, each, span.data, block->data(), false);
    return block->data();
  }

  void* out(const char* name, pg_output array, Side side, int64_t bytes_each = 0) {
    const int64_t each = bytes_each ? bytes_each : width();
    const Span span = checked(name, array.data, array.size, size(side), each);
    for (size_t i = 0; i < reads_; ++i) apart(name, span, read_[i]);
    for (size_t i = 0; i < writes_; ++i) apart(name, span, results_[i].to);
    Result& result = results_[writes_++] = {span, array.data, side, each, nullptr};
    if (!given.sorted()) return array.data;
    const auto& block = blocks_.emplace_back(std::make_unique<WorkBlock>(span.bytes));
    result.from = block->data();
    return block->data();
  }

  /// Cut the destination of `over` into pieces and run f on them; put the results where they
  /// belong.
  template <class F>
  void run(const Plan& over, F&& f, bool item_by_item = false) {
    if (work_of(over)) piecewise(over, bytes(), nullptr, f, item_by_item);
    finish();
  }

  [[noreturn]] void refuse_at(const char* name, int64_t at, const char* got,
                              const char* wanted) const {
    const int64_t place = given.position(Side::dest, at);
    throw Refused(name, std::string(got) + " at flat position " + std::to_string(place), wanted,
                  place);
  }

  const pg_plan& given;
  const OwnedPlan& plan;
  const Dtype dtype;
  const Verbs* const verbs;
  Arrays a;

 private:
  struct Result {
    Span to;
    void* data;
    Side side;
    int64_t width;
    const void* from;  ///< where the verb wrote, if not there
  };
  void finish() {
    for (const Result& r : results_)
      if (r.from) given.copy(r.side, r.width, r.from, r.data, true);
  }

  size_t reads_ = 0, writes_ = 0;
  std::array<Span, 3> read_{};
  std::array<Result, 3> results_{};
  std::vector<std::unique_ptr<WorkBlock>> blocks_;
};

/// Return the bytes of a tap; refuse windows with more cells than taps can number.
int64_t tap_bytes(const OwnedPlan& plan, bool refuse = true) {
  int64_t cells = 1;
  for (int a = 0; a < plan.forward().rank && cells <= UINT32_MAX; ++a)
    cells *= std::max<int64_t>(plan.forward().axis[a].widest, 1);
  if (refuse && cells > UINT32_MAX)
    throw Refused("plan", "a window with more cells than uint32 can number", "smaller windows");
  return cells > 256 ? 4 : 1;
}

struct Best {
  NanRule nan;
  Start start;
};

Best best_of(int32_t best, bool least, bool choose) {
  rule("best", best, PG_BEST_FROM_INFINITY + 1);
  const bool tf = best > PG_BEST_IGNORE_NAN;
  if (choose && tf && best != PG_BEST_FROM_FIRST)
    throw Refused("best", std::to_string(best),
                  "PG_BEST_PROPAGATE_NAN, PG_BEST_IGNORE_NAN or PG_BEST_FROM_FIRST");
  if (least && tf) throw Refused("least", "1", "0 with a rule of TensorFlow");
  if (best == PG_BEST_PROPAGATE_NAN) return {NanRule::propagate, Start::infinity};
  if (best == PG_BEST_IGNORE_NAN) return {NanRule::ignore, Start::infinity};
  return {NanRule::tf, best == PG_BEST_FROM_LOWEST  ? Start::lowest
                       : best == PG_BEST_FROM_FIRST ? Start::first
                                                    : Start::infinity};
}

/// Run the verbs of a maximum.
void run_best(Call& call, Best best, bool least, const void* x, void* y, void* taps) {
  if (best.nan == NanRule::tf && !taps) {
    call.a.x = x;
    call.a.out = y;
    return call.run(call.plan.forward(), [&](Piece p) {
      call.verbs->select(call.plan.forward(), call.a, best.start, p);
    });
  }
  const BestCall over{call.plan.forward(),
                      call.dtype,
                      static_cast<const char*>(x),
                      static_cast<char*>(y),
                      static_cast<char*>(taps),
                      least,
                      best.nan};
  call.run(call.plan.forward(), [&](Piece p) { over.run(p); });
}

/// pick, or place if `back`.
void follow(Call& call, pg_input v, pg_input taps, pg_output out, bool back) {
  call.a.g = call.in(back ? "g" : "v", v, back ? Side::dest : Side::source);
  call.a.index = call.in("taps", taps, Side::dest, tap_bytes(call.plan));
  call.a.out = call.out(back ? "dx" : "out", out, back ? Side::source : Side::dest);
  FirstWrong wrong;
  const Plan& forward = call.plan.forward();
  call.run(
      back ? call.plan.transposed() : forward,
      [&](Piece p) {
        wrong.report(back ? call.verbs->route(forward, call.plan.transposed(), call.a, p)
                          : call.verbs->pick(forward, call.a, p));
      },
      follows_single_taps(forward));
  if (wrong.get() >= 0)
    call.refuse_at("taps", wrong.get(), "a tap outside its window", "a number below its cells");
}

/// The arrays of gather and scatter: `source` is indexed, `dest` has an element per position.
struct Indexed {
  Indexed(int32_t type, int32_t index_type, int64_t items, Span source, Span dest, Span index)
      : dtype(checked_dtype(type)), verbs(chosen_verbs(dtype)), wide(index_bytes(index_type) == 8) {
    const int64_t width = item_bytes(dtype);
    total = source.bytes / width;
    cells = index.bytes / (wide ? 8 : 4);
    if (dest.bytes / width != cells)
      throw Refused("index", std::to_string(cells) + " elements",
                    std::to_string(dest.bytes / width));
    if (items < 0 || (items == 0 && (total || cells)) ||
        (items && (total % items || cells % items)))
      throw Refused("items", std::to_string(items), "a number that divides both arrays");
    n = items ? total / items : 0;
    m = items ? cells / items : 0;
    bytes = source.bytes + dest.bytes;
    arrays.index = index.data;
  }
  Dtype dtype;
  const Verbs* verbs;
  bool wide;
  int64_t n, m, total, cells, bytes;
  Arrays arrays;
};

void refuse_position(int64_t at) {
  if (at >= 0)
    throw Refused("index", "a position outside the array at flat position " + std::to_string(at),
                  "positions inside it", at);
}

/// Run f once, with the usual rounding.
template <class F>
void alone(F&& f) {
  parallel_for(1, 1, nullptr, [&](int64_t) { f(); });
}

}  // namespace
}  // namespace poolgrad

using namespace poolgrad;

extern "C" {

int32_t pg_abi(void) { return PG_ABI; }
const char* pg_version(void) { return PG_VERSION; }

const char* pg_isa(void) {
  const char* name = "";
  guarded("isa", nullptr, nullptr, [&] { name = start_core().name; });
  return name;
}

int32_t pg_threads(int32_t threads) {
  if (threads < 0 || threads > 1024) return -1;
  int32_t now = -1;
  guarded("threads", nullptr, nullptr, [&] {
    if (threads) thread_limit = threads;
    now = thread_limit;
  });
  return now;
}

int pg_plan_new(int64_t outer, int64_t inner, int32_t rank, const pg_axis* axes, pg_plan** plan,
                pg_error* error) {
  return guarded("plan_new", nullptr, error, [&] {
    if (!plan) throw Refused("plan", "NULL", "the address of a pointer");
    *plan = nullptr;
    if (rank < 1 || rank > kMaxRank)
      throw Refused("rank", std::to_string(rank), "1 to " + std::to_string(kMaxRank));
    if (!axes) throw Refused("axes", "NULL", "an array of rank axes");
    if (outer < 0) throw Refused("outer", std::to_string(outer), "0 or more");
    if (inner < 0) throw Refused("inner", std::to_string(inner), "0 or more");
    alone([&] {
      std::vector<AxisData> data;
      std::vector<AxisOrder> order;
      for (int a = 0; a < rank; ++a) {
        MadeAxis made = AxisMaker(axes[a], a).make();
        data.push_back(std::move(made.data));
        order.push_back(std::move(made.order));
      }
      *plan = new pg_plan(outer, inner, std::move(data), std::move(order));
    });
  });
}

void pg_plan_drop(pg_plan* plan) { delete plan; }

int pg_plan_describe(const pg_plan* plan, pg_plan_info* info, pg_error* error) {
  return guarded("plan_describe", nullptr, error, [&] {
    const OwnedPlan& owned = checked_plan(plan).owned;
    if (!info) throw Refused("info", "NULL", "the address of a pg_plan_info");
    *info = {};
    info->source = owned.source_size();
    info->dest = owned.dest_size();
    info->taps = tap_bytes(owned, false) == 1 ? PG_U8 : PG_U32;
    info->rank = owned.forward().rank;
    for (int a = 0; a < info->rank; ++a) {
      info->cells[a] = owned.forward().axis[a].n;
      info->windows[a] = owned.forward().axis[a].m;
    }
  });
}

int pg_draw(int32_t rank, const int64_t* cells, const int64_t* windows, int pseudo_random,
            uint64_t seed, uint64_t seed2, int64_t* borders, int64_t size, pg_error* error) {
  return guarded("draw", nullptr, error, [&] {
    if (rank < 1 || rank > kMaxRank)
      throw Refused("rank", std::to_string(rank), "1 to " + std::to_string(kMaxRank));
    if (!cells) throw Refused("cells", "NULL", "an array of rank lengths");
    if (!windows) throw Refused("windows", "NULL", "an array of rank numbers");
    if (!borders) throw Refused("borders", "NULL", "an array");
    int64_t needed = 0;
    for (int a = 0; a < rank; ++a) {
      if (windows[a] < 1 || windows[a] > cells[a] || cells[a] > int64_t{1} << 52)
        throw Refused(
            "windows", std::to_string(windows[a]),
            "1 to the " + std::to_string(cells[a]) + " cells of axis " + std::to_string(a));
      needed += windows[a] + 1;
    }
    if (size != needed)
      throw Refused("borders", std::to_string(size) + " elements", std::to_string(needed));
    alone([&] {
      Philox source(seed, seed2);
      int64_t* to = borders;
      for (int a = 0; a < rank; ++a) {
        draw_borders(cells[a], windows[a], pseudo_random != 0, source, to);
        to += windows[a] + 1;
      }
    });
  });
}

int pg_fold(const pg_plan* plan, const pg_run* run, int32_t dtype, int32_t mean, pg_input x,
            pg_output y, pg_error* error) {
  return guarded("fold", run, error, [&] {
    Call call(plan, dtype);
    const auto by = Mean(rule("mean", mean, PG_MEAN_SPANNED + 1));
    if (!call.verbs->fold) throw Unsupported("dtype: got one without sums, wanted another");
    if (!takes_mean(call.dtype, by))
      throw Refused("mean", std::to_string(mean),
                    is_float(call.dtype) ? "another for floating types"
                                         : "PG_MEAN_WIDE, PG_MEAN_TOTAL, or PG_MEAN_STRICT from 32 "
                                           "bits on, for integers");
    call.a.x = call.in("x", x, Side::source);
    call.a.out = call.out("y", y, Side::dest);
    call.run(call.plan.forward(),
             [&](Piece p) { call.verbs->fold(call.plan.forward(), call.a, by, p); });
  });
}

int pg_spread(const pg_plan* plan, const pg_run* run, int32_t dtype, int32_t share, int reversed,
              pg_input g, pg_output dx, pg_error* error) {
  return guarded("spread", run, error, [&] {
    Call call(plan, dtype);
    const auto by = Share(rule("share", share, PG_SHARE_WHOLE + 1));
    if (!call.verbs->spread) throw Unsupported("dtype: got one without shares, wanted another");
    if (!is_float(call.dtype) && by != Share::quotient)
      throw Refused("share", std::to_string(share), "PG_SHARE_QUOTIENT for integers");
    call.a.g = call.in("g", g, Side::dest);
    call.a.out = call.out("dx", dx, Side::source);
    const Plan& over = call.plan.transposed();
    call.run(over, [&](Piece p) { call.verbs->spread(over, call.a, by, reversed != 0, p); });
  });
}

int pg_select(const pg_plan* plan, const pg_run* run, int32_t dtype, int32_t best, int least,
              pg_input x, pg_output y, pg_error* error) {
  return guarded("select", run, error, [&] {
    Call call(plan, dtype);
    const Best by = best_of(best, least != 0, false);
    const void* const in = call.in("x", x, Side::source);
    run_best(call, by, least != 0, in, call.out("y", y, Side::dest), nullptr);
  });
}

int pg_choose(const pg_plan* plan, const pg_run* run, int32_t dtype, int32_t best, int least,
              pg_input x, pg_output y, pg_output taps, pg_error* error) {
  return guarded("choose", run, error, [&] {
    Call call(plan, dtype);
    const Best by = best_of(best, least != 0, true);
    const void* const in = call.in("x", x, Side::source);
    void* const out = call.out("y", y, Side::dest);
    run_best(call, by, least != 0, in, out,
             call.out("taps", taps, Side::dest, tap_bytes(call.plan)));
  });
}

int pg_argmax(const pg_plan* plan, const pg_run* run, int32_t dtype, int32_t index_type,
              int64_t modulo, pg_input x, pg_output y, pg_output index, pg_error* error) {
  return guarded("argmax", run, error, [&] {
    Call call(plan, dtype);
    const int64_t each = index_bytes(index_type),
                  all = std::max<int64_t>(call.plan.source_size(), 1);
    if (modulo < 0) throw Refused("modulo", std::to_string(modulo), "0 or more");
    const int64_t by = modulo ? modulo : all;
    if (each == 4 && std::min(by, all) - 1 > std::numeric_limits<int32_t>::max())
      throw Refused("index_type", "PG_I32", "PG_I64, which holds every position");
    call.a.x = call.in("x", x, Side::source);
    call.a.out = call.out("y", y, Side::dest);
    call.a.out_index = call.out("index", index, Side::dest, each);
    const int64_t inside = call.given.sorted() ? all : by;
    call.run(call.plan.forward(), [&](Piece p) {
      call.verbs->argmax(call.plan.forward(), call.a, each == 8, inside, p);
    });
    if (!call.given.sorted()) return;
    const auto mend = [&](auto* at) {
      for (int64_t i = 0; i < index.size; ++i)
        at[i] = static_cast<std::remove_reference_t<decltype(*at)>>(
            call.given.position(Side::source, at[i]) % by);
    };
    each == 8 ? mend(static_cast<int64_t*>(index.data)) : mend(static_cast<int32_t*>(index.data));
  });
}

int pg_pick(const pg_plan* plan, const pg_run* run, int32_t dtype, pg_input v, pg_input taps,
            pg_output out, pg_error* error) {
  return guarded("pick", run, error, [&] {
    Call call(plan, dtype);
    follow(call, v, taps, out, false);
  });
}

int pg_place(const pg_plan* plan, const pg_run* run, int32_t dtype, pg_input g, pg_input taps,
             pg_output dx, pg_error* error) {
  return guarded("place", run, error, [&] {
    Call call(plan, dtype);
    follow(call, g, taps, dx, true);
  });
}

int pg_route(const pg_plan* plan, const pg_run* run, int32_t dtype, pg_input x, pg_input y,
             pg_input g, pg_output dx, pg_error* error) {
  return guarded("route", run, error, [&] {
    Call call(plan, dtype);
    call.a.x = call.in("x", x, Side::source);
    if (y.data) call.a.y = call.in("y", y, Side::dest);
    call.a.g = call.in("g", g, Side::dest);
    call.a.out = call.out("dx", dx, Side::source);
    FirstWrong wrong;
    const Plan& over = call.plan.transposed();
    call.run(over, [&](Piece p) {
      wrong.report(call.verbs->route(call.plan.forward(), over, call.a, p));
    });
    if (wrong.get() >= 0)
      call.refuse_at("y", wrong.get(), "another number than the maximum", "the pooled x");
  });
}

int pg_recall(const pg_plan* plan, const pg_run* run, int32_t dtype, pg_input x, pg_input y,
              pg_input v, pg_output out, pg_error* error) {
  return guarded("recall", run, error, [&] {
    Call call(plan, dtype);
    call.a.x = call.in("x", x, Side::source);
    call.a.y = call.in("y", y, Side::dest);
    call.a.g = call.in("v", v, Side::source);
    call.a.out = call.out("out", out, Side::dest);
    call.run(call.plan.forward(),
             [&](Piece p) { call.verbs->recall(call.plan.forward(), call.a, p); });
  });
}

int pg_near(const pg_plan* plan, const pg_run* run, int32_t dtype, double eps, pg_input x,
            pg_input y, pg_input g, pg_output dx, pg_error* error) {
  return guarded("near", run, error, [&] {
    Call call(plan, dtype);
    if (!std::isfinite(eps)) throw Refused("eps", std::to_string(eps), "a finite number");
    call.a.x = call.in("x", x, Side::source);
    call.a.y = call.in("y", y, Side::dest);
    call.a.g = call.in("g", g, Side::dest);
    call.a.out = call.out("dx", dx, Side::source);
    const Plan& over = call.plan.transposed();
    call.run(over, [&](Piece p) { call.verbs->near(over, call.a, eps, p); });
  });
}

int pg_gather(const pg_run* run, int32_t dtype, int32_t index_type, int64_t items, int absolute,
              pg_input v, pg_input index, pg_output out, pg_error* error) {
  return guarded("gather", run, error, [&] {
    const int64_t width = item_bytes(checked_dtype(dtype));
    const Span from = checked("v", v.data, v.size, -1, width),
               to = checked("out", out.data, out.size, -1, width),
               at = checked("index", index.data, index.size, -1, index_bytes(index_type));
    apart("out", to, from);
    apart("out", to, at);
    Indexed k(dtype, index_type, items, from, to, at);
    if (!k.cells) return;
    k.arrays.g = v.data;
    k.arrays.out = out.data;
    constexpr int64_t kCells = 1 << 15;
    FirstWrong wrong;
    parallel_for((k.cells + kCells - 1) / kCells, threads_for(k.bytes), nullptr, [&](int64_t task) {
      wrong.report(k.verbs->gather(k.arrays, k.wide, k.n, k.m, k.total, absolute != 0,
                                   task * kCells, std::min(k.cells, (task + 1) * kCells)));
    });
    refuse_position(wrong.get());
  });
}

int pg_scatter(const pg_run* run, int32_t dtype, int32_t index_type, int64_t items, int absolute,
               int once, pg_input g, pg_input index, pg_output dx, pg_error* error) {
  return guarded("scatter", run, error, [&] {
    const int64_t width = item_bytes(checked_dtype(dtype));
    const Span from = checked("g", g.data, g.size, -1, width),
               to = checked("dx", dx.data, dx.size, -1, width),
               at = checked("index", index.data, index.size, -1, index_bytes(index_type));
    apart("dx", to, from);
    apart("dx", to, at);
    Indexed k(dtype, index_type, items, to, from, at);
    if (!k.total && !k.cells) return;
    k.arrays.g = g.data;
    k.arrays.out = dx.data;
    refuse_position(scatter_pieces(k.verbs, k.arrays,
                                   {k.wide, absolute != 0, once != 0 && k.dtype <= Dtype::bf16},
                                   {items, k.n, k.m, k.total, k.bytes}, nullptr));
  });
}

int pg_average(const pg_plan* plan, const pg_run* run, int32_t dtype, int32_t divisor,
               double number, pg_input x, pg_output y, pg_error* error) {
  return guarded("average", run, error, [&] {
    Call call(plan, dtype);
    const auto by = Divisor(rule("divisor", divisor, PG_BY_NUMBER + 1));
    if (!is_float(call.dtype)) throw Unsupported("dtype: got integers, wanted a floating type");
    if (by == Divisor::number && !(std::isfinite(number) && number != 0))
      throw Refused("number", std::to_string(number), "a finite number but 0");
    const void* const in = call.in("x", x, Side::source);
    const MeanCall means{call.plan.forward(),
                         call.dtype,
                         call.dtype,
                         static_cast<const char*>(in),
                         static_cast<char*>(call.out("y", y, Side::dest)),
                         by,
                         number,
                         false,
                         Rounding::nearest};
    call.run(call.plan.forward(), [&](Piece p) { means.run(p); });
  });
}

int pg_squares(const pg_plan* plan, const pg_run* run, int32_t dtype, pg_input x, pg_output y,
               pg_error* error) {
  return guarded("squares", run, error, [&] {
    Call call(plan, dtype);
    if (!is_float(call.dtype)) throw Unsupported("dtype: got integers, wanted a floating type");
    const int64_t width = std::max<int64_t>(call.width(), 4);
    const void* const in = call.in("x", x, Side::source);
    const NormCall sums{call.plan.forward(),
                        call.dtype,
                        static_cast<const char*>(in),
                        static_cast<char*>(call.out("y", y, Side::dest, width)),
                        true,
                        0,
                        false};
    call.run(call.plan.forward(), [&](Piece p) { sums.run(p); });
  });
}

const pg_table* pg_functions(void) {
  static const pg_table table = {PG_ABI,           static_cast<int32_t>(sizeof(pg_table)),
                                 pg_abi,           pg_version,
                                 pg_isa,           pg_threads,
                                 pg_plan_new,      pg_plan_drop,
                                 pg_plan_describe, pg_draw,
                                 pg_fold,          pg_spread,
                                 pg_select,        pg_choose,
                                 pg_argmax,        pg_pick,
                                 pg_place,         pg_route,
                                 pg_recall,        pg_near,
                                 pg_gather,        pg_scatter,
                                 pg_average,       pg_squares};
  return &table;
}

}  // extern "C"
