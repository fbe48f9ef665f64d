// Axes whose windows repeat.
#pragma once
#include "plan/plan.hpp"
#include "simd/vec.hpp"

namespace poolgrad::PG_ISA {

/// An axis on which destination cell `period` q + p reads source cells `stride` q + first(p) + t, 0
/// <= t < width(p), as far as they exist. Strides above 3 do not fit: simd/interleave.hpp splits
/// rows into at most 3 phases.
///
///   stride 2, period 1:   source       0 1 2 3 4 5 6
///                         window 0   [-1 0 1]
///                         window 1       [1 2 3]
///                         window 2           [3 4 5]
struct RegularAxis {
  /// Check every window.
  explicit RegularAxis(const Axis& a)
      : axis(a), stride(a.step), period(a.period), cells_per_phase((a.m + period - 1) / period) {
    if (axis.hi - axis.lo <= period || stride > 3) return;
    const auto inside = [&](int64_t c) { return c < 0 ? 0 : c > axis.n ? axis.n : c; };
    const auto is_cut = [&](int64_t j) { return axis.span && axis.span[j] != axis.length(j); };
    for (int64_t p = 0; p < period; ++p) {
      const int64_t length = width(p), begin = first(p);
      const auto fits_pattern = [&](int64_t from, int64_t to) {
        for (int64_t j = from; j < to; j += period) {
          const int64_t at = begin + (j - p) / period * stride, end = at + length;
          if (axis.start[j] != inside(at) || axis.stop[j] != inside(end)) return false;
          cuts |= is_cut(j);
          cuts_elsewhere |= is_cut(j) != (at < 0 || end > axis.n);
        }
        return true;
      };
      // Windows in [lo, hi) repeat, so one of them tells for all.
      const int64_t after = sample(p) + (axis.hi - sample(p) + period - 1) / period * period;
      if (!fits_pattern(p, sample(p) + 1) || !fits_pattern(after, axis.m)) return;
    }
    fits = true;
  }
  int64_t first(int64_t p) const { return axis.start[sample(p)] - sample(p) / period * stride; }
  int64_t width(int64_t p) const { return axis.length(sample(p)); }

  const Axis& axis;
  const int64_t stride, period, cells_per_phase;
  bool fits = false, cuts = false, cuts_elsewhere = false;

 private:
  int64_t sample(int64_t p) const { return axis.lo + (p - axis.lo % period + period) % period; }
};

}  // namespace poolgrad::PG_ISA
