// Sums: divisors, weights, rounding.
#pragma once
#include <utility>

#include "loops/direct.hpp"
#include "plan/dtype.hpp"

namespace poolgrad::PG_ISA {

/// L long sums, in float64: those of half types are exact, in any order. A vector of them may be
/// wider than a register, and GCC 12 keeps such a vector in memory; so it has two halves.
template <int L>
class LongSum {
  static constexpr int H = L > kLanes<double> ? L / 2 : L;
  using Half = Vec<double, H>;
  using Order = std::make_integer_sequence<int, H>;

 public:
  template <class W>
  PG_INLINE void add(Vec<W, L> v) {
    if constexpr (H == L) {
      low_ += convert<double, L, W>(v);
    } else {
      low_ += convert<double, H, W>(half<0, W>(v, Order{}));
      high_ += convert<double, H, W>(half<H, W>(v, Order{}));
    }
  }
  PG_INLINE void add(const LongSum& sum) {
    low_ += sum.low_;
    high_ += sum.high_;
  }

  /// Return the quotients, rounded to float64 and then to W; `over` is 1 / by if that is exact, so
  /// that a product has the bits of the quotient, else 0.
  template <class W>
  PG_INLINE Vec<W, L> divided(double by, double over) const {
    const Half low = over != 0 ? low_ * over : low_ / by;
    if constexpr (H == L) {
      return convert<W, L, double>(low);
    } else {
      const Half high = over != 0 ? high_ * over : high_ / by;
      return joined<W>(convert<W, H, double>(low), convert<W, H, double>(high),
                       std::make_integer_sequence<int, L>{});
    }
  }

 private:
  template <int First, class W, int... I>
  PG_INLINE static Vec<W, H> half(Vec<W, L> v, std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(v, v, (First + I)...);
  }
  template <class W, int... I>
  PG_INLINE static Vec<W, L> joined(Vec<W, H> low, Vec<W, H> high,
                                    std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(low, high, I...);
  }

  Half low_{}, high_{};
};

/// Return 1 / by if that is exact, else 0.
PG_INLINE double exact_reciprocal(double by) {
  const auto count = static_cast<uint64_t>(by);
  return (count & (count - 1)) == 0 && count != 0 ? 1 / by : 0;
}

/// The number of partial sums of a long window, see sum_by_columns.
constexpr int64_t kSumColumns = 32;

/// Cache one number per count while the count stays the same.
template <class W>
class PerCount {
 public:
  template <class F>
  PG_INLINE W operator()(int64_t count, F&& f) {
    if (count != count_) {
      count_ = count;
      value_ = f(count);
    }
    return value_;
  }

 private:
  int64_t count_ = -1;
  W value_ = 0;
};

/// Cache rows of numbers by count.
template <class W>
class RowPerCount {
 public:
  explicit RowPerCount(int64_t size) : size_(size), rows_(size * kRows) {}
  template <class F>
  const W* operator()(int64_t count, F&& f) {
    for (int i = 0; i < kRows; ++i)
      if (counts_[i] == count) return rows_.get() + i * size_;
    W* row = rows_.get() + next_ * size_;
    counts_[next_] = count;
    next_ = (next_ + 1) % kRows;
    for (int64_t c = 0; c < size_; ++c) row[c] = f(c);
    return row;
  }

 private:
  static constexpr int kRows = 8;
  const int64_t size_;
  int64_t counts_[kRows] = {-1, -1, -1, -1, -1, -1, -1, -1};
  int next_ = 0;
  Scratch<W> rows_;
};

/// The count that no longer grows when T adds one to it.
template <class T>
constexpr int64_t count_limit() {
  if constexpr (std::is_same_v<T, f16>) return int64_t{1} << 11;
  else if constexpr (std::is_same_v<T, bf16>) return int64_t{1} << 8;
  else if constexpr (std::is_same_v<T, float>) return int64_t{1} << 24;
  else if constexpr (std::is_same_v<T, double>) return int64_t{1} << 53;
  else return std::numeric_limits<int64_t>::max();
}

/// Return true if short sums are rounded to T once, not at each step.
template <class T>
PG_INLINE bool rounds_once(Mean mean) {
  return is_half<T> && (mean == Mean::total || mean == Mean::once || mean == Mean::spanned ||
                        mean == Mean::short_spanned);
}
template <class T>
PG_INLINE bool rounds_once(Share share) {
  return share == Share::quotient || (is_half<T> && share == Share::whole);
}

template <class T>
PG_INLINE Wide<T> divisor(int64_t count, Mean mean) {
  if (mean == Mean::total) count = 1;
  if constexpr (is_real<T>)
    return as<T>(static_cast<double>(
        mean == Mean::counted && count > count_limit<T>() ? count_limit<T>() : count));
  else return static_cast<T>(count);
}

/// Convert float64 sums to T. An integer type turns a sum that it cannot hold into its lowest
/// value.
template <class T, int L>
PG_INLINE Vec<Wide<T>, L> to_cells(Vec<double, L> sum) {
  if constexpr (is_real<T>) return __builtin_convertvector(sum, Vec<Wide<T>, L>);
  else {
    const Vec<double, L> top =
        all<double, L>(-2.0 * static_cast<double>(std::numeric_limits<T>::lowest() / 2));
    const auto fits = (sum < top) & (sum > -top - 1.0);
    const Vec<double, L> safe =
        fits ? sum : all<double, L>(static_cast<double>(std::numeric_limits<T>::lowest()));
    return __builtin_convertvector(safe, Vec<T, L>);
  }
}

/// Return the weight that a window of n cells gives to each of them.
template <class T>
PG_INLINE Wide<T> reciprocal(int64_t n, Share share) {
  if (share == Share::whole) return 1;
  return as<T>(share == Share::short_reciprocal ? static_cast<double>(1.0f / static_cast<float>(n))
                                                : 1.0 / static_cast<double>(n));
}

/// Multiply lanes by a number, rounded to T.
template <class T>
PG_INLINE void scale_row(const T* from, T* to, int64_t lanes, Wide<T> by) {
  for_lanes<T>(lanes, [&](auto lane, auto many, int64_t first) {
    constexpr int L = decltype(lane)::count, N = decltype(many)::count;
    for (int64_t c = first; c < first + N * L; c += L) store<L>(to + c, load<L>(from + c) * by);
  });
}

/// Round float32 sums to a half type.
template <class T>
void round_sums(const float* sums, T* to, int64_t count) {
  for (int64_t i = 0; i < count; i += kStepsPerCheckpoint) {
    const int64_t here = count - i < kStepsPerCheckpoint ? count - i : kStepsPerCheckpoint;
    for_lanes<float>(here, [&](auto lane, auto many, int64_t first) {
      constexpr int L = decltype(lane)::count, N = decltype(many)::count;
      for (int64_t c = i + first; c < i + first + N * L; c += L)
        store<L>(to + c, load<L>(sums + c));
    });
    checkpoint(step_budget(), here);
  }
}

/// Return true if long windows are summed by columns.
PG_INLINE bool sums_by_columns(Mean mean) {
  return mean == Mean::total || mean == Mean::once || mean == Mean::spanned;
}

/// Return the divisor of a long sum of a window of `count` cells, of `span` before it was cut.
PG_INLINE double terms_divisor(int64_t count, int64_t span, Mean mean) {
  return static_cast<double>(mean == Mean::total ? 1 : mean == Mean::spanned ? span : count);
}

/// Return the cells of window j along an axis that a mean divides by.
PG_INLINE int64_t counted_cells(const Axis& axis, int64_t j, Mean mean) {
  return mean == Mean::spanned && axis.span ? axis.span[j] : axis.length(j);
}

/// Return number k of a row of divisors, followed by a row of their reciprocals.
template <class T>
Wide<T> divisor_or_over(int64_t k, int64_t lanes, int64_t m, int64_t upper, const Axis& last,
                        Mean mean) {
  const int64_t j = k % lanes;
  const Wide<T> by = divisor<T>(j < m ? upper * counted_cells(last, j, mean) : 1, mean);
  return k < lanes ? by : 1 / by;
}

/// Return the cells of the windows of a destination row along all axes but the last, before edges
/// cut them. `row` counts over all items.
inline int64_t span_of_row(const Plan& plan, int64_t row) {
  int64_t span = 1;
  for (int a = plan.rank - 2; a >= 0; row /= plan.axis[a--].m) {
    const Axis& axis = plan.axis[a];
    span *= counted_cells(axis, row % axis.m, Mean::spanned);
  }
  return span;
}

/// Sum a long window in float64. Column c, along the last axis, belongs to partial sum c %
/// kSumColumns, which adds its cells row by row; then the partial sums are added in order. So the
/// cells of a row can be added side by side (fold_along), and windows too (here).
template <class T, class End>
PG_INLINE void sum_by_columns(const WindowTaps& w, const T* x, int64_t lanes, End&& end) {
  const bool listed = w.slot >= 0;
  const int64_t columns = listed ? w.columns : w.width,
                rows = listed ? (columns ? w.width / columns : 0) : w.nrows,
                parts = columns < kSumColumns ? columns : kSumColumns;
  for (int64_t q = 0; q < w.repeat; ++q)
    for_lanes<T, true>(lanes, [&](auto lane, auto many, int64_t first) PG_LAMBDA {
      constexpr int L = decltype(lane)::count, N = decltype(many)::count;
      const T* const from = x + first + q * w.from;
      LongSum<L> total[N];
      for (int64_t k = 0; k < parts; ++k) {
        LongSum<L> part[N];
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = k; c < columns; c += kSumColumns) {
            const T* const at = from + (listed ? w.off[r * columns + c] : w.rows[r] + w.off[c]);
#pragma GCC unroll 4
            for (int i = 0; i < N; ++i) part[i].template add<Wide<T>>(load<L>(at + i * L));
          }
#pragma GCC unroll 4
        for (int i = 0; i < N; ++i) total[i].add(part[i]);
      }
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) end(lane, total[i], first + q * w.to + i * L);
    });
}

struct SumOp {
  using Cell = double;
  static constexpr bool idempotent = false;
  static double neutral() { return 0; }
  template <int L>
  PG_INLINE static Vec<double, L> join(Vec<double, L> a, Vec<double, L> b) {
    return a + b;
  }
};

}  // namespace poolgrad::PG_ISA
