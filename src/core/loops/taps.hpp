// From a plan to taps: the source rows that a destination row reads, in order.
#pragma once
#include "plan/plan.hpp"
#include "runtime/memory.hpp"
#include "runtime/scratch.hpp"
#include "simd/ops.hpp"

namespace poolgrad::PG_ISA {

/// The element offset of each tap within a row: a table, or a constant step.
struct Offsets {
  const int64_t* table = nullptr;
  int64_t step = 0;
  PG_INLINE int64_t operator[](int64_t t) const { return table ? table[t] : t * step; }
};

/// The taps of a run of lanes: tap t of row r is at rows[r] + off[t].
struct WindowTaps {
  const int64_t* rows = nullptr;
  int64_t nrows = 0;
  Offsets off;
  int64_t width = 0;
  int64_t columns = 0;  ///< of a listed window: its cells along the last axis
  bool cut = false;     ///< an edge cut the window
  int64_t upper_span = 1,
          span = 1;  ///< its cells before it was cut: along all axes but the last, in all
  int64_t slot = -1,
          version = 0;  ///< the list of taps, and its version; -1 if the taps are not listed
  int64_t repeat = 1, from = 0, to = 0;  ///< cells with these taps: the next one is `from` elements
                                         ///< further in the source, `to` in the destination
  // Places that the lanes fetch ahead, if the sources come from memory:
  const char* sources[2] = {};     ///< where lane 0 begins; null if there is no second source
  const int64_t* ahead = nullptr;  ///< bytes from there to each place that is fetched
  int64_t fetched = 0, step = 0;   ///< the number of these places; source lanes per lane
  // For transposed plans only, about the windows that cover a cell:
  const int64_t* row_count =
      nullptr;  ///< per row: the product of the window lengths along all axes but the last
  const int64_t* row_tap =
      nullptr;  ///< per row: the number of the cell within the window, by all axes but the last
  const int64_t* col_count = nullptr;  ///< per tap: the window length along the last axis
  const int64_t* col_base = nullptr;   ///< per tap: the start of the window along the last axis
  int64_t cell = 0;                    ///< the cell along the last axis

  /// Return which tap of the covering window the cell is.
  PG_INLINE int64_t tap(int64_t r, int64_t t) const {
    return row_tap[r] * col_count[t] + cell - col_base[t];
  }
};

/// List the source rows of one destination row after the other.
class SourceRows {
 public:
  SourceRows(const Plan& plan, bool reversed)
      : plan_(plan),
        reversed_(reversed),
        budget_(step_budget()),
        steps_(row_steps(plan)),
        rows_(capacity(plan)),
        counts_(capacity(plan)),
        taps_(capacity(plan)) {
    int64_t stride = plan.last().n * plan.inner;
    for (int a = plan.rank - 2; a >= 0; --a) {
      stride_[a] = stride;
      stride *= plan.axis[a].n;
    }
  }

  /// Return the most rows that a window of the plan reads.
  static int64_t capacity(const Plan& plan) {
    int64_t rows = 1;
    for (int a = 0; a + 1 < plan.rank; ++a) rows *= plan.axis[a].widest;
    return rows;
  }

  /// Move to destination row u of an item.
  void seek(int64_t u, WindowTaps& window) {
    checkpoint(budget_, steps_);
    int64_t at[kMaxRank], digit[kMaxRank], len[kMaxRank], cell[kMaxRank];
    const int upper = plan_.rank - 1;
    int64_t total = 1;
    window.cut = false;
    window.upper_span = 1;
    for (int a = upper - 1; a >= 0; --a) {
      const Axis& axis = plan_.axis[a];
      const int64_t j = u % axis.m;
      u /= axis.m;
      at[a] = axis.start[j];
      cell[a] = axis.first + j;
      len[a] = axis.length(j);
      digit[a] = 0;
      total *= len[a];
      if (axis.span) window.cut |= axis.span[j] != len[a];
      window.upper_span *= axis.span ? axis.span[j] : len[a];
    }
    for (int64_t i = 0; i < total; ++i) {
      int64_t offset = 0, count = 1, tap = 0;
      for (int a = 0; a < upper; ++a) {
        const Axis& axis = plan_.axis[a];
        const int64_t source = at[a] + digit[a];
        offset += (source - axis.origin) * stride_[a];
        if (!axis.count) continue;
        count *= axis.count[source];
        tap = tap * axis.count[source] + cell[a] - axis.base[source];
      }
      rows_[i] = offset;
      counts_[i] = count;
      taps_[i] = tap;
      advance(digit, len, upper);
    }
    window.rows = rows_.get();
    window.row_count = counts_.get();
    window.row_tap = taps_.get();
    window.nrows = total;
  }

 private:
  void advance(int64_t* digit, const int64_t* len, int upper) const {
    for (int i = 0; i < upper; ++i) {
      const int a = reversed_ ? i : upper - 1 - i;
      if (++digit[a] < len[a]) return;
      digit[a] = 0;
    }
  }

  /// Count lanes times taps of a row, up to the steps of a checkpoint.
  static int64_t row_steps(const Plan& plan) {
    int64_t steps;
    if (__builtin_mul_overflow(plan.last().m * plan.inner, capacity(plan) * plan.last().widest,
                               &steps) ||
        steps > kStepsPerCheckpoint)
      return kStepsPerCheckpoint;
    return steps;
  }

  const Plan& plan_;
  bool reversed_;
  StepBudget& budget_;
  int64_t steps_;
  Scratch<int64_t> rows_, counts_, taps_;
  int64_t stride_[kMaxRank];
};

/// The order in which the taps of a window are visited.
enum class Order { rows, columns, backwards };

/// Call f(row, tap) for all taps of a window.
template <Order order, class F>
PG_INLINE void each_tap(const WindowTaps& window, F&& f) {
  const int64_t rows = window.nrows, width = window.width;
  if constexpr (order == Order::rows) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t t = 0; t < width; ++t) f(r, t);
  } else if constexpr (order == Order::columns) {
    for (int64_t t = 0; t < width; ++t)
      for (int64_t r = 0; r < rows; ++r) f(r, t);
  } else {
    for (int64_t r = rows; r-- > 0;)
      for (int64_t t = width; t-- > 0;) f(r, t);
  }
}

/// Call f(offset, number) for all taps of a list.
template <Order order, class F>
PG_INLINE void each_listed(const int64_t* place, int64_t taps, F&& f) {
  if constexpr (order == Order::backwards) {
    for (int64_t k = taps; k-- > 0;) f(place[k], k);
  } else {
    for (int64_t k = 0; k < taps; ++k) f(place[k], k);
  }
}

}  // namespace poolgrad::PG_ISA
