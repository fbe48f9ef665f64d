// near under long windows: sliding finds the few cells that may be near to a covering window; only
// these visit their windows.
#pragma once
#include "loops/sliding.hpp"
#include "reducers/max.hpp"
#include "reducers/near.hpp"

namespace poolgrad::PG_ISA {

/// Compute one destination row of a transposed plan after the other.
template <class T>
class NearSearch {
 public:
  NearSearch(const Plan& plan, Wide<T> near)
      : plan_(plan),
        near_(near),
        rows_(plan, true),
        runner_(plan, true),
        list_(plan.last().m * plan.inner),
        off_(taps(plan)) {}

  /// x, y, g and dx belong to one item; x and dx begin at the row.
  void run(const TileRow& row, const Wide<T>* least, const T* x, const T* y, const T* g, T* dx) {
    const int64_t found = list_candidates(row, least, x, dx);
    if (!found) return;
    int64_t u = 0;
    for (int a = 0; a + 1 < plan_.rank; ++a) u = u * plan_.axis[a].m + row.at[a];
    rows_.seek(u, window_);
    if (found * kFew > row.cells * row.lanes && row.lanes == row.inner) {
      const int64_t back = row.w0 * row.inner;
      return runner_.run(window_, {{y, g}, {x - back}, dx - back}, row.w0, row.w0 + row.cells,
                         [&](const WindowTaps& w, const auto& a, int64_t, int64_t lanes) {
                           sum_near<T>(w, a.partner[0], a.source[0], a.source[1], a.out, lanes,
                                       near_);
                         });
    }
    window_.width = -1;
    checkpoint(step_budget(), found * taps(plan_));
    for (int64_t k = 0; k < found; ++k) {
      const int64_t w = list_[k] / row.lanes, c = list_[k] % row.lanes, j = row.w0 + w;
      if (window_.width != plan_.last().length(j)) list_offsets(plan_.last().length(j));
      const int64_t from = plan_.last().from(j) * row.inner + row.c0 + c, at = w * row.inner + c;
      dx[at] = sum_cell(x[at], y + from, g + from);
    }
  }

 private:
  static int64_t taps(const Plan& plan) { return most_taps(plan); }

  void list_offsets(int64_t width) {
    window_.width = width;
    int64_t k = 0;
    each_tap<Order::columns>(
        window_, [&](int64_t r, int64_t t) { off_[k++] = window_.rows[r] + t * plan_.inner; });
  }

  /// Sum one cell over all covering windows, 64 at a time: first find the near ones, then add in
  /// order.
  T sum_cell(T cell, const T* y, const T* g) {
    const int64_t n = window_.nrows * window_.width;
    const int64_t* off = off_.get();
    const Wide<T> here = number(cell), near = near_;
    Wide<T> sum = 0;
    for (int64_t left = n; left > 0; left -= 64, off += 64) {
      uint64_t hits = 0;
      for (int64_t k = 0; k < (left < 64 ? left : 64); ++k) {
        bool hit;
        if constexpr (is_real<T>) {
          const Wide<T> d = here - number(y[off[k]]);
          hit = (d < near) & (d > -near);
        } else {
          hit = here == number(y[off[k]]);
        }
        hits |= uint64_t{hit} << k;
      }
      for (; hits; hits &= hits - 1)
        sum = round_cell(static_cast<Wide<T>>(sum + number(g[off[__builtin_ctzll(hits)]])));
    }
    T r;
    store<1>(&r, Vec<Wide<T>, 1>{sum});
    return r;
  }
  /// Convert by hand: vectors of one lane go through memory.
  PG_INLINE static Wide<T> number(T v) {
    if constexpr (is_half<T>) return load<1>(&v)[0];
    else return v;
  }
  PG_INLINE static Wide<T> round_cell(Wide<T> v) {
    if constexpr (is_half<T>) return rounded<T, 1>(Vec<float, 1>{v})[0];
    else return v;
  }

  static constexpr int64_t kFew =
      6;  ///< one single lane costs as much as this many lanes in vectors

  /// List the lanes that may be near to something, and clear the row.
  int64_t list_candidates(const TileRow& row, const Wide<T>* least, const T* x, T* dx) {
    int64_t found = 0;
    const int64_t begin = row.place;
    row.for_spans(0, row.cells, [&](int64_t place, int64_t at, int64_t n) {
      std::memset(static_cast<void*>(dx + place - begin), 0, static_cast<size_t>(n) * sizeof(T));
      for_lanes<T>(n, [&](auto lane, auto many, int64_t first) {
        constexpr int L = decltype(lane)::count, N = decltype(many)::count;
        for (int64_t c = first; c < first + N * L; c += L) {
          const auto hit =
              may_be_near<T, L>(load<L>(x + place - begin + c), load<L>(least + at + c), near_);
          for (int k = 0; k < L; ++k) {
            list_[found] = at + c + k;
            found += hit[k] ? 1 : 0;
          }
        }
      });
    });
    return found;
  }

  const Plan& plan_;
  const Wide<T> near_;
  SourceRows rows_;
  RowRunner<T, 2, 1> runner_;
  WindowTaps window_;
  Scratch<int64_t> list_, off_;
};

template <class T>
void near_sliding(const Plan& full_plan, const RowArrays<T, 2, 1>& arrays, double eps,
                  Piece piece) {
  for_rows_or_tiles<T>(
      full_plan, arrays, piece, long_rows(full_plan),
      [&](const Plan& plan, const RowArrays<T, 2, 1>& a, Piece p) {
        const int64_t item = plan.axis[0].n * plan.source_slab(),
                      d_item = plan.axis[0].m * plan.dest_slab();
        NearSearch<T> search_near(plan, smallest_rounding_to<T>(as<T>(eps)));
        SlidingReducer<MaxOp<Wide<T>>> slider(plan);
        slider.run(
            p,
            [&](const TileRow& row, Wide<T>* to) {
              row.for_spans(0, row.cells, [&](int64_t place, int64_t at, int64_t n) {
                const T* y = a.source[0] + row.item * item + place;
                for_lanes<T>(n, [&](auto lane, auto many, int64_t first) {
                  constexpr int L = decltype(lane)::count, N = decltype(many)::count;
                  for (int64_t c = first; c < first + N * L; c += L)
                    store<L>(to + at + c, reverse_order<T, L>(load<L>(y + c)));
                });
              });
            },
            [&](const TileRow& row, const Wide<T>* least) {
              const int64_t at = row.item * d_item + row.place;
              search_near.run(row, least, a.partner[0] + at, a.source[0] + row.item * item,
                              a.source[1] + row.item * item, a.out + at);
            });
      });
}

}  // namespace poolgrad::PG_ISA
