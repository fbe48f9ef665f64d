// Means of long windows by sliding.
#pragma once
#include "fold.hpp"
#include "slide.hpp"

namespace poolgrad::PG_ISA {

/// Whether every window of a plan has many cells.
inline bool all_long(const Plan& plan) {
  int64_t least = 1;
  for (int a = 0; a < plan.rank; ++a) {
    int64_t shortest = plan.axis[a].n;
    for (int64_t j = 0; j < plan.axis[a].m; ++j) shortest = plan.axis[a].length(j) < shortest ? plan.axis[a].length(j) : shortest;
    least *= shortest;
  }
  return least > kLongSum;
}

/// Long means and their transposes: sums in a wider type, by sliding; what has few terms is left to the direct way.
template <class T, class Read, class Finish>
void sum_sliding(const Plan& plan, const T* source, T* out, Piece p, Read&& read, Finish&& finish) {
  using A = Long<T>;
  const RowsOf rows(plan);
  const int64_t d_slab = plan.dest_slab(), cells = strip_cells(plan, sizeof(A));
  Slider<Sum<A>> slider(plan, cells);
  each_strip(p, cells, [&](int64_t i, int64_t h0, int64_t h1) {
    const T* item = source + i * plan.axis[0].n * rows.slab;
    T* to = out + i * plan.axis[0].m * d_slab;
    slider.run(
        h0, h1, [&](int64_t h, int64_t r, A* row) { read(h, r, item + rows(h, r), row); },
        [&](int64_t j, const A* sums) {
          each_cell(plan, [&](const int64_t* at, int64_t lane) {
            int64_t count = plan.axis[0].length(j);
            for (int a = 1; a < plan.rank; ++a) count *= plan.axis[a].length(at[a]);
            if (count > kLongSum) finish(sums + lane, to + j * d_slab + lane, count);
          });
        });
  });
}

template <class T>
PG_INLINE void lanes_as(const Long<T>* from, T* to, int64_t lanes, Long<T> by) {
  for_lanes<T>(lanes, [&](auto lane, auto many, int64_t first) {
    constexpr int L = decltype(lane)::count, N = decltype(many)::count;
    for (int64_t c = first; c < first + N * L; c += L) {
      Vec<Long<T>, L> sum;
      std::memcpy(&sum, from + c, sizeof sum);
      store<L>(to + c, convert<Wide<T>, L, Long<T>>(sum / by));
    }
  });
}

template <class T>
void fold_sliding(const Plan& whole, const RowArrays<T, 1, 0>& arrays, Mean mean, Piece piece) {
  const bool short_too = !all_long(whole);
  in_tiles<T>(whole, arrays, piece, [&](const Plan& plan, const RowArrays<T, 1, 0>& a, Piece p) {
    const int64_t row = plan.last().n * plan.inner;
    sum_sliding<T>(
        plan, a.source[0], a.out, p,
        [&](int64_t, int64_t, const T* from, Long<T>* to) {
          for_lanes<T>(row, [&](auto lane, auto many, int64_t first) {
            constexpr int L = decltype(lane)::count, N = decltype(many)::count;
            for (int64_t c = first; c < first + N * L; c += L) {
              const Vec<Long<T>, L> v = convert<Long<T>, L, Wide<T>>(load<L>(from + c));
              std::memcpy(to + c, &v, sizeof v);
            }
          });
        },
        [&](const Long<T>* sums, T* y, int64_t count) { lanes_as<T>(sums, y, plan.inner, static_cast<Long<T>>(count)); });
    if (short_too) fold_piece<T>(plan, a, mean, p, true);
  });
}

template <class T, bool Reversed>
void spread_sliding(const Plan& whole, const RowArrays<T, 1, 0>& arrays, Share share, Piece piece) {
  const bool short_too = !all_long(whole);
  PerCount<Wide<T>> weight;
  in_tiles<T>(whole, arrays, piece, [&](const Plan& plan, const RowArrays<T, 1, 0>& a, Piece p) {
    const Axis& last = plan.last();
    sum_sliding<T>(
        plan, a.source[0], a.out, p,
        [&](int64_t h, int64_t r, const T* from, Long<T>* to) {
          int64_t upper = plan.axis[0].count[h];
          for (int k = plan.rank - 2; k >= 1; --k) {
            upper *= plan.axis[k].count[r % plan.axis[k].n];
            r /= plan.axis[k].n;
          }
          for (int64_t w = 0; w < last.n; ++w) {
            const Wide<T> q = weight(upper * last.count[w], [&](int64_t n) { return reciprocal<T>(n, share); });
            for_lanes<T>(plan.inner, [&](auto lane, auto many, int64_t first) {
              constexpr int L = decltype(lane)::count, N = decltype(many)::count;
              for (int64_t c = w * plan.inner + first; c < w * plan.inner + first + N * L; c += L) {
                const Vec<Long<T>, L> v = convert<Long<T>, L, Wide<T>>(rounded<T, L>(load<L>(from + c) * q));
                std::memcpy(to + c, &v, sizeof v);
              }
            });
          }
        },
        [&](const Long<T>* sums, T* dx, int64_t) { lanes_as<T>(sums, dx, plan.inner, Long<T>{1}); });
    if (short_too) spread_piece<T, Reversed>(plan, a, share, p, true);
  });
}

}  // namespace poolgrad::PG_ISA
