// Sum the gradient of the windows whose maximum a cell is near to.
#pragma once
#include "loops/direct.hpp"

namespace poolgrad::PG_ISA {

/// A cell of x, and its sum.
template <class T, int L>
struct NearSum {
  Vec<Wide<T>, L> here, sum;

  /// Return the gradient where the cell is near to the maximum of a window, else 0.
  PG_INLINE Vec<Wide<T>, L> where_near(Vec<Wide<T>, L> best, Vec<Wide<T>, L> gradient,
                                       Wide<T> near) const {
    const Vec<Wide<T>, L> zero{};
    if constexpr (is_real<T>) {
      const Vec<Wide<T>, L> d = here - best;
      return ((d < near) & (d > -near)) ? gradient : zero;
    } else {
      return here == best ? gradient : zero;
    }
  }
};

/// Return the smallest number that rounds to `limit` or more, so that a comparison needs no
/// rounding.
template <class T>
Wide<T> smallest_rounding_to(Wide<T> limit) {
  if constexpr (is_half<T>) {
    uint32_t below = 0, reached = bitcast<uint32_t>(limit);
    while (reached - below > 1) {
      const uint32_t middle = below + (reached - below) / 2;
      (rounded<T, 1>(Vec<float, 1>{bitcast<float>(middle)})[0] < limit ? below : reached) = middle;
    }
    return bitcast<float>(reached);
  } else {
    return limit;
  }
}

/// Set dx = sum of g over the windows w that cover a run of cells and have abs(x - y) < near, once
/// rounded.
template <class T>
PG_INLINE void sum_near(const WindowTaps& w, const T* x, const T* y, const T* g, T* dx,
                        int64_t lanes, Wide<T> near) {
  reduce<T, Order::columns>(
      w, lanes,
      [x](auto lane, int64_t c, int64_t) {
        constexpr int L = decltype(lane)::count;
        return NearSum<T, L>{load<L>(x + c), Vec<Wide<T>, L>{}};
      },
      [=](auto lane, auto& s, int64_t at, int64_t) {
        constexpr int L = decltype(lane)::count;
        s.sum = plus_rounded<T, L>(s.sum, s.where_near(load<L>(y + at), load<L>(g + at), near));
      },
      [dx](auto lane, auto& s, int64_t c) {
        store<decltype(lane)::count>(dx + c, total<T, decltype(lane)::count>(s.sum));
      });
}

/// Reverse the order of values. NaN comes last: nothing is near to it.
template <class T, int L>
PG_INLINE Vec<Wide<T>, L> reverse_order(Vec<Wide<T>, L> v) {
  if constexpr (is_real<T>) return (v == v) ? -v : all<Wide<T>, L>(minus_infinity<T>());
  else return ~v;
}

/// Return where a cell may be near to some window that covers it; `least` is their smallest y in
/// reversed order.
template <class T, int L>
PG_INLINE auto may_be_near(Vec<Wide<T>, L> x, Vec<Wide<T>, L> least, Wide<T> near) {
  // A cell too far below the smallest y is too far below all of them.
  if constexpr (is_real<T>) return x + least > -near;
  else return x >= ~least;
}

}  // namespace poolgrad::PG_ISA
