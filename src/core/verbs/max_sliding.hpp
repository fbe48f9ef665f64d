// Maxima of long windows by sliding over values, or over keys of value and position.
#pragma once
#include "loops/sliding.hpp"
#include "reducers/max.hpp"
#include "reducers/rank.hpp"

namespace poolgrad::PG_ISA {

/// Return true if an edge of this axis cut the window.
PG_INLINE bool is_cut(const Axis& axis, int64_t j) {
  return axis.span && axis.span[j] != axis.length(j);
}

/// Compute maxima by sliding, or minima (`least`), which are maxima of flipped cells. Cells that are
/// not greater than the start value, NaN included, count as the start value. Windows that an edge
/// cut start from the lowest finite value.
template <class T>
[[gnu::noinline]] void select_sliding(const Plan& full_plan, const RowArrays<T, 1, 0>& arrays,
                                      Start start, Piece piece, bool least = false) {
  const LaneBits<Wide<T>> flip = least ? flip_order<T>() : LaneBits<Wide<T>>{0};
  for_rows_or_tiles<T>(
      full_plan, arrays, piece, long_rows(full_plan),
      [&](const Plan& plan, const RowArrays<T, 1, 0>& a, Piece p) {
        const int64_t item = plan.axis[0].n * plan.source_slab(),
                      d_item = plan.axis[0].m * plan.dest_slab();
        using W = Wide<T>;
        const auto raise = [](auto read, auto write, int64_t n, W from, LaneBits<W> before,
                              LaneBits<W> after) {
          for_lanes<T>(n, [&](auto lane, auto many, int64_t first) {
            constexpr int L = decltype(lane)::count, N = decltype(many)::count;
            for (int64_t c = first; c < first + N * L; c += L) {
              const Vec<W, L> v = flipped<W, L>(load<L>(read + c), before), s = all<W, L>(from);
              store<L>(write + c, flipped<W, L>((s < v) ? v : s, after));
            }
          });
        };
        const Wide<T> from = start_value<T>(start, false);
        SlidingReducer<MaxOp<Wide<T>>> slider(plan);
        slider.run(
            p,
            [&](const TileRow& row, Wide<T>* to) {
              row.for_spans(0, row.cells, [&](int64_t place, int64_t at, int64_t n) {
                raise(a.source[0] + row.item * item + place, to + at, n, from, flip, 0);
              });
            },
            [&](const TileRow& row, const Wide<T>* best) {
              bool upper = false;
              for (int k = 0; k + 1 < plan.rank; ++k) upper |= is_cut(plan.axis[k], row.at[k]);
              row.for_equal_runs([&](int64_t j) { return plan.last().next_other(j); },
                                 [&](int64_t j) { return upper || is_cut(plan.last(), j); },
                                 [&](bool any, int64_t w, int64_t end) {
                                   row.for_spans(w, end, [&](int64_t place, int64_t at, int64_t n) {
                                     raise(best + at, a.out + row.item * d_item + place, n,
                                           start_value<T>(start, any), 0, flip);
                                   });
                                 });
            });
      });
}

/// Find the first maximum of each window by sliding over keys: f(destination row, keys).
template <class T, class F>
void positions_sliding(const Plan& plan, const T* x, Piece p, bool in_order, F&& f) {
  const int64_t item = plan.axis[0].n * plan.source_slab(), cells = plan.last().n;
  // The cell of each element of a row along the last axis.
  Scratch<uint32_t> column(cells * plan.inner);
  int64_t lanes = 0;
  SlidingReducer<MaxOp<uint64_t>> slider(plan, in_order);
  slider.run(
      p,
      [&](const TileRow& row, uint64_t* to) {
        if (lanes != row.lanes) {
          lanes = row.lanes;
          for (int64_t k = 0; k < cells * lanes; ++k) column[k] = static_cast<uint32_t>(k / lanes);
        }
        int64_t upper = row.at[0];
        for (int a = 1; a + 1 < plan.rank; ++a) upper = upper * plan.axis[a].n + row.at[a];
        const uint32_t base = 0xffffffffu - static_cast<uint32_t>(upper * cells + row.w0);
        row.for_spans(0, row.cells, [&](int64_t place, int64_t at, int64_t n) {
          const T* source = x + row.item * item + place;
          for_lanes<uint64_t>(n, [&](auto lane, auto many, int64_t first) {
            constexpr int L = decltype(lane)::count, N = decltype(many)::count;
            for (int64_t c = first; c < first + N * L; c += L) {
              const Vec<uint32_t, L> low = base - load<L>(column.get() + at + c);
              const Vec<uint64_t, L> key =
                  (convert<uint64_t, L, uint32_t>(rank_of<T, L>(load<L>(source + c))) << 32) |
                  convert<uint64_t, L, uint32_t>(low);
              std::memcpy(to + at + c, &key, sizeof key);
            }
          });
        });
      },
      f);
}

/// Return v at the first cell of one window where x equals y.
template <class T>
T search_window(const Plan& plan, const T* x, const T* v, T y, const int64_t* cell, int64_t j,
                int64_t c) {
  int64_t at[kMaxRank], lo[kMaxRank], hi[kMaxRank], steps = 0;
  for (int a = 0; a < plan.rank; ++a) {
    const int64_t k = a + 1 < plan.rank ? cell[a] : j;
    at[a] = lo[a] = plan.axis[a].start[k];
    hi[a] = plan.axis[a].stop[k];
  }
  for (;;) {
    int64_t place = 0;
    for (int a = 0; a < plan.rank; ++a) place = place * plan.axis[a].n + at[a];
    if (load<1>(x + place * plan.inner + c)[0] == load<1>(&y)[0]) return v[place * plan.inner + c];
    if (++steps % 1024 == 0) checkpoint(step_budget(), 1024 * 4);
    int a = plan.rank - 1;
    while (a >= 0 && ++at[a] == hi[a]) at[a] = lo[a], --a;
    if (a < 0) return T{};
  }
}

/// Compute the element offsets of keys within an item. Return true if y is the maximum of every
/// window.
template <class T>
bool keys_to_offsets(const uint64_t* keys, const uint32_t* lane, const T* y, int64_t n,
                     uint32_t inner, uint32_t* to) {
  uint32_t differs = 0;
  for_lanes<uint64_t>(n, [&](auto lanes, auto many, int64_t first) {
    constexpr int L = decltype(lanes)::count, N = decltype(many)::count;
    Vec<uint32_t, L> wrong{};
    for (int64_t c = first; c < first + N * L; c += L) {
      const Vec<uint64_t, L> key = load<L>(keys + c);
      const Vec<uint32_t, L> want = rank_of<T, L>(load<L>(y + c)),
                             have = convert<uint32_t, L, uint64_t>(key >> 32);
      wrong |= have ^ want;
      if constexpr (is_real<T>) wrong |= (have == 0u) ? ~have : Vec<uint32_t, L>{};
      store<L>(to + c,
               (0xffffffffu - convert<uint32_t, L, uint64_t>(key)) * inner + load<L>(lane + c));
    }
    for (int k = 0; k < L; ++k) differs |= wrong[k];
  });
  return differs == 0;
}

/// Set out = v where x first equals y. Search a window if y is not its maximum.
template <class T>
void recall_sliding(const Plan& full_plan, const RowArrays<T, 2, 1>& arrays, Piece piece) {
  for_rows_or_tiles<T>(
      full_plan, arrays, piece, long_rows(full_plan),
      [&](const Plan& plan, const RowArrays<T, 2, 1>& a, Piece p) {
        const int64_t slab = plan.source_slab(), item = plan.axis[0].n * slab,
                      d_item = plan.axis[0].m * plan.dest_slab(), inner = plan.inner;
        constexpr int64_t kPart = 256;
        uint32_t at[kPart];
        Scratch<uint32_t> lane(kPart + inner);
        int64_t lanes = 0;
        positions_sliding<T>(
            plan, a.source[0], p, false, [&](const TileRow& row, const uint64_t* keys) {
              const int64_t shift = row.item * item - plan.axis[0].origin * slab;
              const T *x = a.source[0] + shift, *v = a.source[1] + shift + row.c0;
              if (lanes != row.lanes) {
                lanes = row.lanes;
                for (int64_t k = 0; k < kPart + lanes; ++k)
                  lane[k] = static_cast<uint32_t>(k % lanes);
              }
              row.for_spans(0, row.cells, [&](int64_t place, int64_t begin, int64_t total) {
                const T* y = a.partner[0] + row.item * d_item + place;
                T* out = a.out + row.item * d_item + place;
                for (int64_t k = 0; k < total; k += kPart) {
                  const int64_t n = total - k < kPart ? total - k : kPart;
                  const bool sure = keys_to_offsets<T>(keys + begin + k, lane.get() + k % lanes,
                                                       y + k, n, static_cast<uint32_t>(inner), at);
                  for (int64_t c = 0; c < n; ++c) out[k + c] = v[at[c]];
                  if (sure) continue;
                  for (int64_t c = 0; c < n; ++c) {
                    const int64_t cell = (begin + k + c) / lanes,
                                  l = row.c0 + (begin + k + c) % lanes;
                    if (!(load<1>(x + row.c0 + at[c])[0] == load<1>(y + k + c)[0]))
                      out[k + c] =
                          search_window(plan, x, v - row.c0, y[k + c], row.at, row.w0 + cell, l);
                  }
                }
              });
            });
      });
}

}  // namespace poolgrad::PG_ISA
