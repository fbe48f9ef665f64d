// fold and spread of long windows by sliding.
#pragma once
#include "loops/sliding.hpp"
#include "verbs/mean.hpp"

namespace poolgrad::PG_ISA {

/// Return true if the sums of a row fill vectors without a transposed tile.
inline bool long_rows_of_sums(const Plan& plan) {
  return long_rows(plan) && (plan.inner >= 8 || extends_edges(plan.last().whole));
}

/// Set y = sums / by, rounded to T. Multiply by slightly smaller and slightly larger reciprocals
/// first: if both products round alike, the quotient rounds so too. A division takes three times as
/// long.
template <class T>
PG_INLINE void divide_sums(const double* sums, T* y, int64_t n, double by) {
  const double least = 1 / by * (1 - 0x1p-50), most = 1 / by * (1 + 0x1p-50);
  for_lanes<double>(n, [&](auto lane, auto many, int64_t first) {
    constexpr int L = decltype(lane)::count, N = decltype(many)::count;
    [[maybe_unused]] Vec<int32_t, L> unsure{};
    // A sum starts at +0, so it is never -0.
    if constexpr (!std::is_same_v<T, double>)
      for (int64_t c = first; c < first + N * L; c += L) {
        const Vec<double, L> sum = load<L>(sums + c) + 0.0;
        const Vec<float, L> a = convert<float, L, double>(sum * least),
                            b = convert<float, L, double>(sum * most);
        unsure |= a != b;
        store<L>(y + c, a);
      }
    bool divide = std::is_same_v<T, double>;
    for (int k = 0; k < L; ++k) divide |= unsure[k] != 0;
    if (!divide) return;
    for (int64_t c = first; c < first + N * L; c += L)
      store<L>(y + c, convert<Wide<T>, L, double>((load<L>(sums + c) + 0.0) / by));
  });
}

/// The cells of a window, now and before an edge cut it.
struct Counts {
  int64_t cells, span;
  Counts operator*(Counts b) const { return {cells * b.cells, span * b.span}; }
  bool operator==(const Counts&) const = default;
};
PG_INLINE Counts counts_of(const Axis& axis, int64_t j) {
  return {axis.length(j), counted_cells(axis, j, Mean::spanned)};
}

/// Compute long sums in float64 by sliding. The direct loop computes short windows before this,
/// because it may overwrite other cells of the row. read(row, cells) supplies the terms; each sum
/// is divided by divisor(Counts).
template <class T, class Read, class Divisor>
void sum_sliding(const Plan& plan, T* out, Piece p, Read&& read, Divisor&& divisor) {
  const int64_t d_item = plan.axis[0].m * plan.dest_slab();
  SlidingReducer<SumOp> slider(plan);
  slider.run(p, read, [&](const TileRow& row, const double* sums) PG_LAMBDA {
    Counts upper{1, 1};
    for (int a = 0; a + 1 < plan.rank; ++a) upper = upper * counts_of(plan.axis[a], row.at[a]);
    row.for_equal_runs([&](int64_t j) PG_LAMBDA { return plan.last().next_other(j); },
                       [&](int64_t j) PG_LAMBDA { return upper * counts_of(plan.last(), j); },
                       [&](Counts window, int64_t w, int64_t end) PG_LAMBDA {
                         if (window.cells <= kLongSum) return;
                         const double by = divisor(window);
                         row.for_spans(w, end, [&](int64_t place, int64_t at, int64_t n) PG_LAMBDA {
                           T* const to = out + row.item * d_item + place;
                           if (by != 1) return divide_sums<T>(sums + at, to, n, by);
                           for_lanes<double>(n, [&](auto lane, auto many, int64_t first) {
                             constexpr int L = decltype(lane)::count, N = decltype(many)::count;
                             for (int64_t c = first; c < first + N * L; c += L)
                               store<L>(to + c,
                                        convert<Wide<T>, L, double>(load<L>(sums + at + c) + 0.0));
                           });
                         });
                       });
  });
}

/// Weigh terms by q and round each to T.
template <class T>
PG_INLINE void weigh_terms(const T* from, double* to, int64_t n, Wide<T> q) {
  for_lanes<double>(n, [&](auto lane, auto many, int64_t first) {
    constexpr int L = decltype(lane)::count, N = decltype(many)::count;
    for (int64_t c = first; c < first + N * L; c += L) {
      const Vec<double, L> v = convert<double, L, Wide<T>>(rounded<T, L>(load<L>(from + c) * q));
      std::memcpy(to + c, &v, sizeof v);
    }
  });
}

template <class T>
void fold_sliding(const Plan& full_plan, const RowArrays<T, 1, 0>& arrays, Mean mean, Piece piece) {
  const bool some_short = !all_windows_long(full_plan);
  for_rows_or_tiles<T>(
      full_plan, arrays, piece, long_rows_of_sums(full_plan),
      [&](const Plan& plan, const RowArrays<T, 1, 0>& a, Piece p) {
        const int64_t item = plan.axis[0].n * plan.source_slab();
        if (some_short) fold_direct<T>(plan, a, mean, p, true);
        sum_sliding<T>(
            plan, a.out, p,
            [&](const TileRow& row, double* to) PG_LAMBDA {
              row.for_spans(0, row.cells, [&](int64_t place, int64_t at, int64_t n) PG_LAMBDA {
                const T* const from = a.source[0] + row.item * item + place;
                for_lanes<double>(n, [&](auto lane, auto many, int64_t first) {
                  constexpr int L = decltype(lane)::count, N = decltype(many)::count;
                  for (int64_t c = first; c < first + N * L; c += L) {
                    const Vec<double, L> v = convert<double, L, Wide<T>>(load<L>(from + c));
                    std::memcpy(to + at + c, &v, sizeof v);
                  }
                });
              });
            },
            [mean](Counts w) { return terms_divisor(w.cells, w.span, mean); });
      });
}

template <class T, bool Reversed>
void spread_sliding(const Plan& full_plan, const RowArrays<T, 1, 0>& arrays, Share share,
                    Piece piece) {
  const bool some_short = !all_windows_long(full_plan);
  PerCount<Wide<T>> weight;
  for_rows_or_tiles<T>(
      full_plan, arrays, piece, long_rows_of_sums(full_plan),
      [&](const Plan& plan, const RowArrays<T, 1, 0>& a, Piece p) {
        const int64_t item = plan.axis[0].n * plan.source_slab();
        if (some_short) spread_taps<T, Reversed>(plan, a, share, p, true);
        sum_sliding<T>(
            plan, a.out, p,
            [&](const TileRow& row, double* to) PG_LAMBDA {
              int64_t upper = 1;
              for (int k = 0; k + 1 < plan.rank; ++k) upper *= plan.axis[k].count[row.at[k]];
              row.for_equal_runs(
                  [](int64_t w) PG_LAMBDA { return w + 1; },
                  [&](int64_t w) PG_LAMBDA { return plan.last().count[w]; },
                  [&](int64_t count, int64_t w, int64_t end) PG_LAMBDA {
                    const Wide<T> q =
                        weight(upper * count, [&](int64_t n) { return reciprocal<T>(n, share); });
                    row.for_spans(w, end, [&](int64_t place, int64_t at, int64_t n) PG_LAMBDA {
                      weigh_terms<T>(a.source[0] + row.item * item + place, to + at, n, q);
                    });
                  });
            },
            [](Counts) PG_LAMBDA { return 1.0; });
      });
}

}  // namespace poolgrad::PG_ISA
