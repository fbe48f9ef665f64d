#include "api/foreign.hpp"

#include <cstdio>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "api/tasks.hpp"
#include "plan/owned_plan.hpp"
#include "runtime/first_wrong.hpp"
#include "runtime/memory.hpp"

namespace poolgrad {
namespace {

constexpr int64_t kWidth[] = {2, 2, 4, 8, 1, 1, 2, 2, 4, 4, 8, 8};  // bytes, by Dtype

/// Call f(); turn an exception into a reason.
template <class F>
bool guarded(Reason* reason, F&& f) {
  reason->text[0] = 0;
  try {
    f();
    return true;
  } catch (const std::bad_alloc&) {
    std::snprintf(reason->text, sizeof reason->text,
                  "x: got a call that needs too much memory, wanted no more than there is");
  } catch (const std::exception& e) {
    std::snprintf(reason->text, sizeof reason->text, "%s", e.what());
  } catch (...) {
    std::snprintf(reason->text, sizeof reason->text, "the call was ended");
  }
  return false;
}

/// Reject windows with more cells than taps can number.
void check_taps(const OwnedPlan& plan) {
  int64_t cells = 1;
  for (int a = 0; a < plan.forward().rank && cells <= UINT32_MAX; ++a)
    cells *= std::max<int64_t>(plan.forward().axis[a].widest, 1);
  if (cells > UINT32_MAX)
    throw std::invalid_argument("windows: got one with more cells than uint32 can number");
}

const OwnedPlan& plan_of(const void* plan) { return *static_cast<const OwnedPlan*>(plan); }

int64_t tap_bytes(const OwnedPlan& plan) {
  int64_t cells = 1;
  for (int a = 0; a < plan.forward().rank && cells <= 256; ++a)
    cells *= std::max<int64_t>(plan.forward().axis[a].widest, 1);
  return cells > 256 ? 4 : 1;
}

template <class F>
void run(const Plan& plan, int64_t bytes, F&& f, bool item_by_item = false) {
  if (work_of(plan)) piecewise(plan, bytes, nullptr, f, item_by_item);
}

void* make_plan(int64_t outer, int64_t inner, int rank, const int64_t* n, const int64_t* m,
                const int64_t* start, const int64_t* stop, Reason* reason) {
  OwnedPlan* made = nullptr;
  guarded(reason, [&] {
    if (rank < 1 || rank > kMaxRank)
      throw std::invalid_argument("x: got " + std::to_string(rank) +
                                  " pooled axes and axes between them, wanted 1 to " +
                                  std::to_string(kMaxRank));
    std::vector<AxisData> axes;
    for (int a = 0; a < rank; ++a) {
      const int64_t windows = m[a];
      if (windows < 0) throw std::invalid_argument("windows: got a negative number of them");
      axes.push_back({n[a], {start, start + windows}, {stop, stop + windows}, {}});
      start += windows;
      stop += windows;
    }
    made = new OwnedPlan(outer, inner, std::move(axes), false);
  });
  return made;
}

bool fold(const void* plan, int dtype, int mean, const void* x, void* y, Reason* reason) {
  const OwnedPlan& p = plan_of(plan);
  return guarded(reason, [&] {
    Arrays a;
    a.x = x;
    a.out = y;
    const Verbs* verbs = chosen_verbs(Dtype(dtype));
    run(p.forward(), p.source_size() * kWidth[dtype],
        [&](Piece piece) { verbs->fold(p.forward(), a, Mean(mean), piece); });
  });
}

bool spread(const void* plan, int dtype, int share, const void* g, void* dx, Reason* reason) {
  const OwnedPlan& p = plan_of(plan);
  return guarded(reason, [&] {
    Arrays a;
    a.g = g;
    a.out = dx;
    const Verbs* verbs = chosen_verbs(Dtype(dtype));
    run(p.transposed(), p.source_size() * kWidth[dtype],
        [&](Piece piece) { verbs->spread(p.transposed(), a, Share(share), false, piece); });
  });
}

bool follow(const void* plan, int dtype, const void* v, const void* taps, void* out, bool back,
            Reason* reason) {
  const OwnedPlan& p = plan_of(plan);
  return guarded(reason, [&] {
    Arrays a;
    a.g = v;
    a.index = taps;
    a.out = out;
    check_taps(p);
    const Verbs* verbs = chosen_verbs(Dtype(dtype));
    FirstWrong wrong;
    run(
        back ? p.transposed() : p.forward(),
        std::max(p.source_size(), p.dest_size()) * kWidth[dtype],
        [&](Piece piece) {
          wrong.report(back ? verbs->route(p.forward(), p.transposed(), a, piece)
                            : verbs->pick(p.forward(), a, piece));
        },
        follows_single_taps(p.forward()));
    if (wrong.get() >= 0)
      throw std::invalid_argument("taps: got a tap outside its window at flat position " +
                                  std::to_string(wrong.get()));
  });
}

bool pick(const void* plan, int dtype, const void* v, const void* taps, void* out, Reason* reason) {
  return follow(plan, dtype, v, taps, out, false, reason);
}

bool place(const void* plan, int dtype, const void* g, const void* taps, void* dx, Reason* reason) {
  return follow(plan, dtype, g, taps, dx, true, reason);
}

/// Scratch memory of a call.
class WorkBlock {
 public:
  explicit WorkBlock(int64_t bytes)
      : bytes_(static_cast<size_t>(bytes)), data_(allocate_bytes(bytes_)) {}
  WorkBlock(const WorkBlock&) = delete;
  ~WorkBlock() { free_bytes(data_, bytes_); }
  void* data() const { return data_; }

 private:
  size_t bytes_;
  void* data_;
};

/// Call f(from, to) over stretches of n cells, on several threads if that pays.
template <class F>
void for_stretches(int64_t n, int64_t width, F&& f) {
  constexpr int64_t kCells = 1 << 16;
  const int threads = threads_for(n * width);
  parallel_for((n + kCells - 1) / kCells, threads, nullptr,
               [&](int64_t task) { f(task * kCells, std::min(n, (task + 1) * kCells)); });
}

/// The bits of infinity of a floating-point type.
template <class Bits>
struct Format {
  Bits infinity;
};

/// Compute signed integers in the order of the numbers, reversed for minima; NaN is above or below
/// all of them.
template <class Bits>
void rank_all(const Bits* x, std::make_signed_t<Bits>* ranks, int64_t n, Choice choice,
              Format<Bits> format) {
  using Signed = std::make_signed_t<Bits>;
  constexpr Bits kMagnitude = static_cast<Bits>(~Bits{0}) >> 1;
  const Signed nan =
      choice.nan_wins ? static_cast<Signed>(kMagnitude) : static_cast<Signed>(~kMagnitude);
  for_stretches(n, sizeof(Bits), [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      const Bits magnitude = x[i] & kMagnitude;
      const Bits bits = magnitude ? x[i] : Bits{0};  // -0 equals 0
      const bool negative = bits > kMagnitude;
      const Signed rank = static_cast<Signed>(negative ? bits ^ kMagnitude : bits);
      ranks[i] = magnitude > format.infinity ? nan
                 : choice.least              ? static_cast<Signed>(~rank)
                                             : rank;
    }
  });
}

/// Return false if x has NaN, which has no place in the order of numbers.
bool choose_largest(const OwnedPlan& p, Dtype dtype, const void* x, void* y, void* taps) {
  Arrays a;
  a.x = x;
  a.out = y;
  a.out_index = taps;
  const Verbs* verbs = chosen_verbs(dtype);
  const int64_t bytes = p.source_size() * kWidth[static_cast<int>(dtype)];
  NanGuard guard(p.forward(), verbs, x, bytes);
  run(p.forward(), bytes, [&](Piece piece) {
    guard.run(piece, [&](Piece part) { verbs->choose(p.forward(), a, part); });
  });
  return !guard.found_nan();
}

/// Choose by other numbers, `ranks`, in the wanted order; then pick from x at the taps.
void choose_by(const OwnedPlan& p, Dtype dtype, const void* ranks, Dtype rank_type, const void* x,
               void* y, void* taps) {
  choose_largest(p, rank_type, ranks, y, taps);
  Reason reason;
  if (!pick(&p, static_cast<int>(dtype), x, taps, y, &reason))
    throw std::runtime_error(reason.text);
}

template <class Bits>
void choose_float(const OwnedPlan& p, Dtype dtype, Dtype rank_type, Choice choice, const void* x,
                  void* y, void* taps, Format<Bits> format) {
  const int64_t n = p.source_size();
  const Bits* cells = static_cast<const Bits*>(x);
  if (!choice.least && choose_largest(p, dtype, x, y, taps)) return;
  const WorkBlock ranks(n * static_cast<int64_t>(sizeof(Bits)));
  rank_all(cells, static_cast<std::make_signed_t<Bits>*>(ranks.data()), n, choice, format);
  choose_by(p, dtype, ranks.data(), rank_type, x, y, taps);
}

void choose_integer(const OwnedPlan& p, Dtype dtype, Choice choice, const void* x, void* y,
                    void* taps) {
  if (!choice.least && choose_largest(p, dtype, x, y, taps)) return;
  const int64_t bytes = p.source_size() * kWidth[static_cast<int>(dtype)];
  const WorkBlock reverse_order(bytes);
  const auto* from = static_cast<const uint8_t*>(x);
  auto* to = static_cast<uint8_t*>(reverse_order.data());
  for_stretches(bytes, 1, [&](int64_t i0, int64_t i1) {
    for (int64_t i = i0; i < i1; ++i) to[i] = static_cast<uint8_t>(~from[i]);
  });
  choose_by(p, dtype, reverse_order.data(), dtype, x, y, taps);
}

bool choose(const void* plan, int dtype, Choice choice, const void* x, void* y, void* taps,
            Reason* reason) {
  const OwnedPlan& p = plan_of(plan);
  const auto type = Dtype(dtype);
  return guarded(reason, [&] {
    check_taps(p);
    switch (type) {
      case Dtype::f16:
        return choose_float<uint16_t>(p, type, Dtype::i16, choice, x, y, taps, {0x7C00});
      case Dtype::bf16:
        return choose_float<uint16_t>(p, type, Dtype::i16, choice, x, y, taps, {0x7F80});
      case Dtype::f32:
        return choose_float<uint32_t>(p, type, Dtype::i32, choice, x, y, taps, {0x7F800000});
      case Dtype::f64:
        return choose_float<uint64_t>(p, type, Dtype::i64, choice, x, y, taps,
                                      {0x7FF0000000000000});
      default: return choose_integer(p, type, choice, x, y, taps);
    }
  });
}

void sizes(const void* plan, int64_t* source, int64_t* dest, int64_t* tap) {
  const OwnedPlan& p = plan_of(plan);
  *source = p.source_size();
  *dest = p.dest_size();
  *tap = tap_bytes(p);
}

}  // namespace

const Foreign& foreign() {
  static const Foreign table{make_plan, [](void* plan) { delete static_cast<OwnedPlan*>(plan); },
                             sizes,     fold,
                             spread,    choose,
                             pick,      place};
  return table;
}

}  // namespace poolgrad
