// The along loop: reduce long windows that lie far apart along their rows. Neighbouring cells of
// one window fill a vector; a block of partial results runs along each row, and is joined at the
// end of the window:
//
//   row 0      a b c d | e f g h | i j           a window of 2 rows of 10 cells, blocks of 4
//   row 1      k l m n | o p q r | s t
//   partial    aeikos    bfjlpt    cgmq    dhnr
//
// With several inner elements a block holds whole cells, so that each lane keeps its own element.
#pragma once
#include "loops/direct.hpp"

namespace poolgrad::PG_ISA {

/// Join axes that one window covers to the axis before them: the rows of a window then lie one
/// after the other. The first axis stays, because pieces are cut along it.
inline Plan join_covered_axes(const Plan& plan) {
  Plan joined = plan;
  while (joined.rank > 1 && is_covered(joined.last())) {
    joined.inner *= joined.last().n;
    --joined.rank;
  }
  return joined;
}

/// A window of the along loop: `rows` runs of `length` elements; run r begins at from + row[r].
struct WindowRuns {
  int64_t item, cell;  ///< its item, and its number within the item
  int64_t columns;     ///< its cells along the last axis
  const int64_t* row;
  int64_t rows, from, length;
  bool cut;      ///< an edge cut it
  int64_t span;  ///< its cells before an edge cut it
};

/// Call f(WindowRuns) for every window of a piece.
template <class F>
PG_INLINE void each_window(const Plan& plan, Piece p, F&& f) {
  const Axis& last = plan.last();
  SourceRows rows(plan, false);
  WindowTaps window;
  each_row(plan, p, [&](int64_t i, int64_t u, int64_t j0, int64_t j1) PG_LAMBDA {
    rows.seek(u, window);
    for (int64_t j = j0; j < j1; ++j) {
      const int64_t columns = last.length(j);
      checkpoint(step_budget(), window.nrows * columns * plan.inner / 4);
      const int64_t span = last.span ? last.span[j] : columns;
      f(WindowRuns{i, u * last.m + j, columns, window.rows, window.nrows,
                   last.from(j) * plan.inner, columns * plan.inner, window.cut || span != columns,
                   window.upper_span * span});
    }
  });
}

}  // namespace poolgrad::PG_ISA
