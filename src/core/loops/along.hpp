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

/// A reference to a function of one argument: the loops below are compiled once, for all dtypes.
template <class Argument>
struct Callback {
  template <class F>
  Callback(const F& f)
      : f_(&f), call_([](const void* f, const Argument& a) { (*static_cast<const F*>(f))(a); }) {}
  void operator()(const Argument& a) const { call_(f_, a); }

 private:
  const void* f_;
  void (*call_)(const void*, const Argument&);
};

/// Call f(WindowRuns) for every window of a piece.
[[gnu::noinline]] inline void each_window(const Plan& plan, Piece p, Callback<WindowRuns> f) {
  const Axis& last = plan.last();
  SourceRows rows(plan, false);
  WindowTaps window;
  const auto row = [&](int64_t i, int64_t u, int64_t j0, int64_t j1) __attribute__((noinline)) {
    rows.seek(u, window);
    for (int64_t j = j0; j < j1; ++j) {
      const int64_t columns = last.length(j);
      checkpoint(step_budget(), window.nrows * columns * plan.inner / 4);
      const int64_t span = last.span ? last.span[j] : columns;
      f(WindowRuns{i, u * last.m + j, columns, window.rows, window.nrows,
                   last.from(j) * plan.inner, columns * plan.inner, window.cut || span != columns,
                   window.upper_span * span});
    }
  };
  each_row(plan, p, row);
}

/// Windows side by side: each reads runs of `n` elements at the same distances; the next window
/// begins `step` elements further.
struct EqualWindows {
  int64_t from, count, step, n;  ///< the first window begins at `from`
  const int64_t* row;            ///< the distance of each run
  int64_t rows;
  bool cut;      ///< an edge cut them
  int64_t dest;  ///< the place of the first result
};

/// Call f(EqualWindows) for the windows of a piece of a plan whose covered axes are joined to the
/// first one. `cut`: an edge cut the axes that are joined.
[[gnu::noinline]] inline void each_equal_windows(const Plan& plan, bool cut, Piece p,
                                                 Callback<EqualWindows> f) {
  const Axis& last = plan.last();
  const int64_t item = plan.axis[0].n * plan.source_slab(),
                windows = plan.axis[0].m * plan.dest_slab() / plan.inner;
  const auto cuts = [&](int64_t j) { return cut || (last.span && last.span[j] != last.length(j)); };
  if (plan.rank == 1 && last.m == 1 && p.h0 < p.h1) {
    const int64_t none = 0;
    return f(EqualWindows{p.i0 * item + last.from(0) * plan.inner, p.i1 - p.i0, item,
                          last.length(0) * plan.inner, &none, 1, cuts(0), p.i0});
  }
  SourceRows rows(plan, false);
  WindowTaps window;
  const auto row = [&](int64_t i, int64_t u, int64_t j0, int64_t j1) __attribute__((noinline)) {
    rows.seek(u, window);
    for (int64_t j = j0, end; j < j1; j = end) {
      const bool repeat = last.period == 1 && last.lo <= j && j < last.hi;
      end = !repeat ? j + 1 : last.hi < j1 ? last.hi : j1;
      f(EqualWindows{i * item + last.from(j) * plan.inner, end - j, last.step * plan.inner,
                     last.length(j) * plan.inner, window.rows, window.nrows,
                     window.cut || cuts(j), i * windows + u * last.m + j});
    }
  };
  each_row(plan, p, row);
}

}  // namespace poolgrad::PG_ISA
