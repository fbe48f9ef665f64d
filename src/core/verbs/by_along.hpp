// select and fold of long windows along their rows.
#pragma once
#include "loops/along.hpp"
#include "reducers/max.hpp"
#include "reducers/sum.hpp"

namespace poolgrad::PG_ISA {

/// Set best = max(best, run), block by block: element e of the run belongs to element e % block.
template <class T>
PG_INLINE void raise_by_run(Wide<T>* best, int64_t block, const T* run, int64_t n) {
  for (int64_t b = 0; b < n; b += block)
    for_lanes<T, true>(n - b < block ? n - b : block, [&](auto lane, auto many, int64_t first) {
      constexpr int L = decltype(lane)::count, N = decltype(many)::count;
      for (int64_t c = first; c < first + N * L; c += L)
        store<L>(best + c, larger<Wide<T>, L>(load<L>(best + c), load<L>(run + b + c)));
    });
}

/// Return the largest of L numbers; overwrite them.
template <int L, class W>
PG_INLINE W largest(W* v) {
  if constexpr (L > 1) {
    store<L / 2>(v, larger<W, L / 2>(load<L / 2>(v), load<L / 2>(v + L / 2)));
    return largest<L / 2>(v);
  } else {
    return v[0];
  }
}

/// Return the first zero of a window: both zeros are equal, and the first of equals wins.
template <class T>
T first_zero(const WindowRuns& w, const T* x, int64_t inner) {
  for (int64_t r = 0; r < w.rows; ++r)
    for (int64_t e = 0; e < w.length; e += inner)
      if (load<1>(x + w.row[r] + e)[0] == 0) return x[w.row[r] + e];
  return T{};
}

/// Compute maxima along the rows of windows.
template <class T>
void select_along(const Plan& full_plan, const RowArrays<T, 1, 0>& a, Start start, Piece p) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>;
  const Plan plan = join_covered_axes(full_plan);
  const int64_t inner = full_plan.inner, block = 4 * V * inner,
                item = plan.axis[0].n * plan.source_slab(),
                windows = full_plan.axis[0].m * full_plan.dest_slab();
  bool joined_cut = false;
  for (int k = plan.rank; k < full_plan.rank; ++k)
    joined_cut |= full_plan.axis[k].span && full_plan.axis[k].span[0] != full_plan.axis[k].n;
  Scratch<W> best(block);
  each_window(plan, p, [&](const WindowRuns& w) {
    const T* const x = a.source[0] + w.item * item + w.from;
    const int64_t whole = (w.length + V - 1) / V * V, used = whole < block ? whole : block;
    const W from = start_value<T>(start, w.cut || joined_cut);
    for (int64_t c = 0; c < used; c += V) store<V>(best.get() + c, all<W, V>(from));
    for (int64_t r = 0; r < w.rows; ++r) raise_by_run<T>(best.get(), block, x + w.row[r], w.length);
    T* const y = a.out + w.item * windows + w.cell * inner;
    for (int64_t l = 0; l < inner; ++l) {
      W most = best[l];
      if (inner == 1) {
        Vec<W, V> v = load<V>(best.get());
        for (int64_t c = V; c < used; c += V) v = larger<W, V>(v, load<V>(best.get() + c));
        store<V>(best.get(), v);
        most = largest<V>(best.get());
      } else {
        for (int64_t c = l + inner; c < used; c += inner) most = best[c] > most ? best[c] : most;
      }
      if (is_real<T> && most == 0) y[l] = first_zero<T>(w, x + l, inner);
      else store<1>(y + l, Vec<W, 1>{most});
    }
  });
}

/// Compute sums and means of long windows along their rows, in the order of sum_by_columns.
template <class T>
void fold_along(const Plan& plan, const RowArrays<T, 1, 0>& a, Mean mean, Piece p) {
  const int64_t inner = plan.inner, block = kSumColumns * inner,
                item = plan.axis[0].n * plan.source_slab(),
                windows = plan.axis[0].m * plan.dest_slab();
  Scratch<double> sums(block);
  each_window(plan, p, [&](const WindowRuns& w) {
    const T* const x = a.source[0] + w.item * item + w.from;
    const int64_t used = w.length < block ? w.length : block;
    std::memset(sums.get(), 0, static_cast<size_t>(used) * sizeof(double));
    for (int64_t r = 0; r < w.rows; ++r)
      for (int64_t b = 0; b < w.length; b += block) {
        const T* const run = x + w.row[r] + b;
        const int64_t n = w.length - b < block ? w.length - b : block;
        for_lanes<double>(n, [&](auto lane, auto many, int64_t first) {
          constexpr int L = decltype(lane)::count, N = decltype(many)::count;
          for (int64_t c = first; c < first + N * L; c += L)
            store<L>(sums.get() + c,
                     load<L>(sums.get() + c) + convert<double, L, Wide<T>>(load<L>(run + c)));
        });
      }
    const double by = terms_divisor(w.rows * w.columns, w.span, mean);
    T* const y = a.out + w.item * windows + w.cell * inner;
    for (int64_t l = 0; l < inner; ++l) {
      double total = 0;
      for (int64_t c = l; c < used; c += inner) total += sums[c];
      store<1>(y + l, convert<Wide<T>, 1, double>(Vec<double, 1>{total / by}));
    }
  });
}

}  // namespace poolgrad::PG_ISA
