// Fill the tables of an axis: sliding windows, windows between borders, shares of an axis.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>

#include "runtime/threads.hpp"

namespace poolgrad {

/// The tables of m windows over n cells. Their cells lie `step` apart.
struct WindowTables {
  int64_t n, m, step;
  int64_t *start, *stop, *count, *span;  ///< span may be null
};

/// The first condition of an axis that its windows break.
enum class WindowFault { none, outside, falling };

namespace detail {
using Wide = __int128;  ///< holds sums and products of two 64-bit numbers

inline int64_t narrowed(Wide value) {
  constexpr Wide lowest = std::numeric_limits<int64_t>::min(),
                 highest = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::clamp(value, lowest, highest));
}

/// Divide, rounding up; the divisor is positive.
inline Wide ceil_divide(Wide a, int64_t by) {
  if (by == 1) return a;
  return a / by + (a % by > 0);
}
}  // namespace detail

/// Count the cells of each window, and check the windows: inside the axis, and ascending unless
/// their cells lie apart.
inline WindowFault count_and_check(const WindowTables& t) {
  StepBudget& steps = step_budget();
  bool inside = t.n >= 0, rising = true;
  for (int64_t j = 0; j < t.m; ++j) {
    checkpoint(steps, 1);
    const detail::Wide cells = detail::Wide{t.stop[j]} - t.start[j];
    t.count[j] = detail::narrowed(detail::ceil_divide(cells, t.step));
    inside &= t.start[j] >= 0 && t.stop[j] <= t.n && t.count[j] >= 0;
    if (j) rising &= t.start[j - 1] <= t.start[j] && t.stop[j - 1] <= t.stop[j];
  }
  if (!inside) return WindowFault::outside;
  return rising || t.step > 1 ? WindowFault::none : WindowFault::falling;
}

/// Slide windows of k cells, `t.step` apart, every s, from `before` cells before the axis on. Cut
/// them at its edges. Spans count the cells before the cut, up to `after` cells behind the axis.
/// Return the first window without a cell, or -1.
inline int64_t fill_sliding(const WindowTables& t, int64_t k, int64_t s, int64_t before,
                            int64_t after) {
  using detail::Wide;
  const Wide reach = Wide{t.step} * (Wide{k} - 1) + 1, end = Wide{t.n} + after;
  StepBudget& steps = step_budget();
  int64_t empty = -1;
  for (int64_t j = 0; j < t.m; ++j) {
    checkpoint(steps, 1);
    const Wide first = Wide{j} * s - before, stop = std::min<Wide>(first + reach, t.n);
    Wide start = first;
    if (first < 0) start = t.step == 1 ? 0 : (first % t.step + t.step) % t.step;
    if (start >= stop && empty < 0) empty = j;
    t.start[j] = detail::narrowed(std::min(start, stop));
    t.stop[j] = detail::narrowed(stop);
    t.span[j] = detail::narrowed(detail::ceil_divide(std::min(reach, end - first), t.step));
  }
  return empty;
}

/// Put a window between each two neighbours of m + 1 borders. Windows that overlap have the cell at
/// the border, too.
inline void fill_between(const WindowTables& t, const int64_t* borders, bool overlapping) {
  StepBudget& steps = step_budget();
  for (int64_t j = 0; j < t.m; ++j) {
    checkpoint(steps, 1);
    t.start[j] = borders[j];
    t.stop[j] = borders[j + 1] < t.n ? borders[j + 1] + overlapping : t.n;
  }
}

/// Place m windows of k cells evenly over the axis, 1 <= k <= n, from a random offset 0 <= u <= 1 on;
/// the last window ends with the axis.
inline void fill_placed(const WindowTables& t, int64_t k, double u) {
  StepBudget& steps = step_budget();
  const double alpha =
      static_cast<double>(t.n - k) / static_cast<double>(std::max<int64_t>(t.m - 1, 1));
  const auto first = static_cast<int64_t>(u * alpha);
  for (int64_t j = 0; j < t.m; ++j) {
    checkpoint(steps, 1);
    const auto at = static_cast<int64_t>((static_cast<double>(j) + u) * alpha);
    t.start[j] = j + 1 < t.m ? at - first : t.n - k;
    t.stop[j] = t.start[j] + k;
  }
}

/// Divide the axis into m windows as evenly as whole cells allow.
inline void fill_shares(const WindowTables& t) {
  using detail::Wide;
  StepBudget& steps = step_budget();
  for (int64_t j = 0; j < t.m; ++j) {
    checkpoint(steps, 1);
    t.start[j] = detail::narrowed(Wide{j} * t.n / t.m);
    t.stop[j] = detail::narrowed(detail::ceil_divide((Wide{j} + 1) * t.n, t.m));
  }
}

}  // namespace poolgrad
