// gather, scatter and pick: follow positions or taps that the caller gives. Each is read once and
// checked before use.
#pragma once
#include "verbs/max_grad.hpp"
#include "verbs/table.hpp"

namespace poolgrad::PG_ISA {

/// Return the end of the run of positions that begins at k, and pass a checkpoint: each position
/// may wait for memory.
inline int64_t run_end(int64_t k, int64_t end) {
  constexpr int64_t kRun = 1 << 14;
  checkpoint(step_budget(), 8 * (end - k < kRun ? end - k : kRun));
  return end - k < kRun ? end : k + kRun;
}

/// Read a position once. Another thread may write it: the compiler must not read it again after the
/// check.
template <class Index>
PG_INLINE int64_t position(const Index* at) {
  return __atomic_load_n(at, __ATOMIC_RELAXED);
}

/// Set out[k] = v[index[k]] for k in [k0, k1). Positions count from the first cell of the item, or
/// of the array if `absolute`. Return the first k whose position is outside the array, or -1.
template <class T, class Index>
int64_t gather_items(const T* v, const Index* index, T* out, int64_t n, int64_t m, int64_t total,
                     bool absolute, int64_t k0, int64_t k1) {
  constexpr int kAtOnce = 8;
  checkpoint(step_budget(), 8 * (k1 - k0));
  for (int64_t k = k0; k < k1;) {
    const int64_t image = absolute ? 0 : k / m, next = absolute ? k1 : (image + 1) * m,
                  stop = next < k1 ? next : k1;
    const T* from = v + image * n;
    const auto room = static_cast<uint64_t>(total - image * n);
    for (; k + kAtOnce <= stop; k += kAtOnce) {
      uint64_t at[kAtOnce];
      bool inside = true;
#pragma GCC unroll 8
      for (int i = 0; i < kAtOnce; ++i) {
        at[i] = static_cast<uint64_t>(position(index + k + i));
        inside &= at[i] < room;
      }
      if (!inside) break;
#pragma GCC unroll 8
      for (int i = 0; i < kAtOnce; ++i) out[k + i] = from[at[i]];
    }
    for (; k < stop; ++k) {  // the last few, or a block with a position outside
      const auto at = static_cast<uint64_t>(position(index + k));
      if (at >= room) return k;
      out[k] = from[at];
    }
  }
  return -1;
}

/// Set out[i] = v at tap i by comparing all taps of a window with it. T is unsigned: it moves bits.
/// Return the first cell whose tap is outside its window, or -1.
template <class T>
int64_t pick_by_compare(const Plan& plan, const T* v, const uint8_t* given, T* out, Piece piece) {
  const int64_t size = plan.axis[0].n * plan.source_slab(), per = plan.rows_per_item(),
                out_row = plan.last().m * plan.inner;
  TapRows<T, uint8_t> rows(plan);
  int64_t wrong = -1;
  each_row(plan, piece, [&](int64_t i, int64_t u, int64_t j0, int64_t j1) {
    if (wrong >= 0) return;
    const int64_t row = (i * per + u) * out_row;
    rows.seek(u);
    const int64_t lane = rows.pick_by_compare(v + i * size, given + row, out + row, j0, j1);
    if (lane >= 0) wrong = row + rows.outside(given + row, lane, j1);
  });
  return wrong;
}

/// Set out[i] = v at tap i, and 0 for empty windows, tap by tap; else as above.
template <class T, class Tap>
int64_t pick_by_following(const Plan& plan, const T* v, const Tap* given, T* out, Piece piece) {
  TapPlaces<Tap> places(plan, piece.h0 == 0 && piece.h1 == plan.axis[0].m, piece);
  const int64_t slab = plan.dest_slab();
  for (int64_t i = piece.i0; !places.no_window_is_empty() && i < piece.i1; ++i)
    clear(out + (i * plan.axis[0].m + piece.h0) * slab, (piece.h1 - piece.h0) * slab);
  return follow(places, plan, given, piece,
                [&](int64_t place, int64_t from, int64_t) { out[place] = v[from]; });
}

/// Call add(index[k] + base - lo, k) in ascending order of k for items [i0, i1) and positions in
/// [lo, hi). With `skip`, other tasks add at positions outside [lo, hi). Return the first k whose
/// position is outside the array, or outside [lo, hi) and not to be skipped; else -1.
template <class Index, class Add>
PG_INLINE int64_t each_position(const Index* index, int64_t n, int64_t m, int64_t total,
                                bool absolute, ScatterRange r, Add&& add) {
  const auto room = static_cast<uint64_t>(r.hi - r.lo);
  for (int64_t i = r.i0; i < r.i1; ++i) {
    const int64_t base = absolute ? 0 : i * n;
    for (int64_t k = i * m, end = k; end < (i + 1) * m;) {
      end = run_end(k, (i + 1) * m);
      for (; k < end; ++k) {
        const int64_t at = position(index + k);
        const uint64_t to = static_cast<uint64_t>(at) + static_cast<uint64_t>(base - r.lo);
        if (at >= 0 && to < room) add(to, k);
        else if (!r.skip || at < 0 || at >= total - base) return k;
      }
    }
  }
  return -1;
}

/// Set out[index[k]] += g[k], from 0, in the order of each_position. Half types round at each
/// addition, or are summed in float32 and rounded once.
template <class T, class Index>
int64_t scatter_items(const T* g, const Index* index, T* out, int64_t n, int64_t m, int64_t total,
                      bool absolute, ScatterRange r) {
  if constexpr (is_half<T>)
    if (r.once) {
      Scratch<float> sums(r.hi - r.lo);
      clear(sums.get(), r.hi - r.lo);
      const int64_t wrong =
          each_position(index, n, m, total, absolute, r,
                        [&](uint64_t to, int64_t k) { sums.get()[to] += load<1>(g + k)[0]; });
      round_sums(sums.get(), out + r.lo, r.hi - r.lo);
      return wrong;
    }
  clear(out + r.lo, r.hi - r.lo);
  T* const cells = out + r.lo;
  return each_position(index, n, m, total, absolute, r,
                       [&](uint64_t to, int64_t k) { cells[to] = sum_of(cells[to], g[k]); });
}

}  // namespace poolgrad::PG_ISA
