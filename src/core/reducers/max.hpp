// Maxima, with and without taps. A cell replaces the best so far only if it is greater: the first
// of equals wins, and NaN never replaces.
#pragma once
#include "loops/direct.hpp"
#include "plan/dtype.hpp"

namespace poolgrad::PG_ISA {

template <class T>
PG_INLINE Wide<T> start_value(Start start, bool cut) {
  return start == Start::lowest || cut ? lowest<T>() : minus_infinity<T>();
}

/// Return true if none of n cells is NaN: the magnitude bits of NaN exceed those of infinity.
template <class T>
bool no_nan(const T* x, int64_t n) {
  using U = typename UintOf<sizeof(T)>::type;
  constexpr int L = kBytes / static_cast<int>(sizeof(T)), N = 4;
  constexpr U magnitude = static_cast<U>(~U{0}) >> 1;
  Vec<U, L> most[N] = {};
  const auto scan = [&](const T* from, int i) PG_LAMBDA {
    Vec<U, L> v;
    std::memcpy(&v, from, sizeof v);
    v &= all<U, L>(magnitude);
    most[i] = v > most[i] ? v : most[i];
  };
  int64_t c = 0;
  for (; c + N * L <= n; c += N * L)
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) scan(x + c + i * L, i);
  T rest[N * L] = {};
  std::memcpy(static_cast<void*>(rest), x + c, static_cast<size_t>(n - c) * sizeof(T));
  for (int i = 0; i < N; ++i) scan(rest + i * L, i);
  for (int i = 0; i < N; ++i)
    for (int lane = 0; lane < L; ++lane)
      if (most[i][lane] > infinity_bits<T>()) return false;
  return true;
}

/// Compute the maxima of a run of windows.
template <class T>
PG_INLINE void best_values(const WindowTaps& w, const T* x, T* y, int64_t lanes, Start start) {
  const bool first = start == Start::first && w.nrows * w.width > 0;
  const int64_t first_tap = first ? w.rows[0] + w.off[0] : 0;
  const Wide<T> from = start_value<T>(start, w.cut);
  reduce<T, Order::rows>(
      w, lanes,
      [=](auto lane, int64_t, int64_t shift) {
        constexpr int L = decltype(lane)::count;
        return first ? load<L>(x + first_tap + shift) : all<Wide<T>, L>(from);
      },
      [x](auto lane, auto& best, int64_t at, int64_t) {
        constexpr int L = decltype(lane)::count;
        best = larger<Wide<T>, L>(best, load<L>(x + at));
      },
      [y](auto lane, auto& best, int64_t c) { store<decltype(lane)::count>(y + c, best); });
}

/// The maximum so far, and its tap.
template <class T, class Count, int L>
struct BestTap {
  Vec<Wide<T>, L> value;
  Vec<Count, L> tap;

  /// Look at a cell; `number`: its tap.
  PG_INLINE void step(Vec<Wide<T>, L> v, Vec<Count, L> number) {
    const auto better =
        convert<std::make_signed_t<Count>, L, std::make_signed_t<TapLane<T>>>(value < v);
    tap = better ? number : tap;
    value = larger<Wide<T>, L>(value, v);
  }
};

/// Compute maxima and their taps; start from the first cell, NaN or not.
template <class T, class Tap>
PG_INLINE void best_taps(const WindowTaps& w, const T* x, T* y, Tap* taps, int64_t lanes) {
  using Count = std::conditional_t<(sizeof(Tap) > sizeof(TapLane<T>)), Tap, TapLane<T>>;
  const bool any = w.nrows * w.width > 0;
  const int64_t first_tap = any ? w.rows[0] + w.off[0] : 0;
  reduce<T, Order::rows>(
      w, lanes,
      [=](auto lane, int64_t, int64_t shift) {
        constexpr int L = decltype(lane)::count;
        return BestTap<T, Count, L>{
            any ? load<L>(x + first_tap + shift) : all<Wide<T>, L>(lowest<T>()), Vec<Count, L>{}};
      },
      [x](auto lane, auto& best, int64_t at, int64_t k) {
        constexpr int L = decltype(lane)::count;
        best.step(load<L>(x + at), all<Count, L>(static_cast<Count>(k)));
      },
      [y, taps](auto lane, auto& best, int64_t c) {
        constexpr int L = decltype(lane)::count;
        if (y) store<L>(y + c, best.value);
        const Vec<Tap, L> kept = convert<Tap, L, Count>(best.tap);
        std::memcpy(taps + c, &kept, sizeof kept);
      });
}

/// Join two maxima: the earlier of equals wins.
template <class W>
struct MaxOp {
  using Cell = W;
  static constexpr bool idempotent = true;
  static W neutral() { return minus_infinity<W>(); }
  template <int L>
  PG_INLINE static Vec<W, L> join(Vec<W, L> a, Vec<W, L> b) {
    return larger<W, L>(a, b);
  }
};

}  // namespace poolgrad::PG_ISA
