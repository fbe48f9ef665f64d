// Gather and scatter by positions that the caller supplies. Each position is read once and checked where it is used.
#pragma once
#include "kernels.hpp"
#include "route.hpp"

namespace poolgrad::PG_ISA {

/// Where a run of positions ends that begins at k: each may be a wait for memory.
inline int64_t run_end(int64_t k, int64_t end) {
  constexpr int64_t kRun = 1 << 14;
  checkpoint(meter(), 8 * (end - k < kRun ? end - k : kRun));
  return end - k < kRun ? end : k + kRun;
}

/// Cells [k0, k1): out[k] = v[index[k]]; positions count from the image's first cell, or from the array's if absolute.
/// Returns the first k whose position is outside the array, or -1.
template <class T, class Index>
int64_t gather_items(const T* v, const Index* index, T* out, int64_t n, int64_t m, int64_t total, bool absolute, int64_t k0, int64_t k1) {
  constexpr int64_t kBlock = 64;  // checked, then read: two loops without a way out
  checkpoint(meter(), 8 * (k1 - k0));
  for (int64_t k = k0; k < k1;) {
    const int64_t image = absolute ? 0 : k / m, next = absolute ? k1 : (image + 1) * m;
    int64_t stop = k + kBlock;
    if (stop > next) stop = next;
    if (stop > k1) stop = k1;
    const T* from = v + image * n;
    const auto room = static_cast<uint64_t>(total - image * n);
    bool inside = true;
    for (int64_t c = k; c < stop; ++c) inside &= static_cast<uint64_t>(static_cast<int64_t>(index[c])) < room;
    for (int64_t c = k; !inside && c < stop; ++c)
      if (static_cast<uint64_t>(static_cast<int64_t>(index[c])) >= room) return c;
    for (; k < stop; ++k) out[k] = from[index[k]];
  }
  return -1;
}

/// Whether the cells of a window are sooner looked at by vectors than followed one by one.
inline bool blends(const Plan& plan) { return !follows_each(plan) && Rows::capacity(plan) * plan.last().widest <= 32; }

/// out[i] = v at tap i; 0 where the window is empty. T is unsigned: bits are moved. Returns the first cell whose tap is outside
/// its window, or -1.
template <class T, class Tap>
int64_t pick_piece(const Plan& plan, const T* v, const Tap* given, T* out, Piece piece) {
  const int64_t size = plan.axis[0].n * plan.source_slab(), per = plan.rows_per_item(), out_row = plan.last().m * plan.inner;
  if constexpr (sizeof(Tap) == 1)
    if (blends(plan)) {
      TapRows<T, Tap> rows(plan);
      int64_t wrong = -1;
      each_row(plan, piece, [&](int64_t i, int64_t u, int64_t j0, int64_t j1) {
        if (wrong >= 0) return;
        const int64_t row = (i * per + u) * out_row;
        rows.seek(u);
        const int64_t lane = rows.astray(given + row, j0, j1);
        if (lane >= 0) wrong = row + lane;
        else rows.blend(v + i * size, given + row, out + row, j0, j1);
      });
      return wrong;
    }
  Places<Tap> places(plan, piece.h0 == 0 && piece.h1 == plan.axis[0].m, piece);
  const int64_t slab = plan.dest_slab();
  for (int64_t i = piece.i0; !places.full() && i < piece.i1; ++i) clear(out + (i * plan.axis[0].m + piece.h0) * slab, (piece.h1 - piece.h0) * slab);
  return follow(places, plan, given, piece, [&](int64_t place, int64_t from, int64_t) { out[place] = v[from]; });
}

/// Images [i0, i1): out[index[k]] += g[k] in ascending order of k, for the cells [lo, hi) of the array, which are zeroed
/// before. A position outside them is skipped if others see to it. Returns the first k that is outside the array, or
/// outside [lo, hi) and not to be skipped; else -1.
template <class T, class Index>
int64_t scatter_items(const T* g, const Index* index, T* out, int64_t n, int64_t m, int64_t total, bool absolute, Reached r) {
  clear(out + r.lo, r.hi - r.lo);
  const auto room = static_cast<uint64_t>(r.hi - r.lo);
  for (int64_t i = r.i0; i < r.i1; ++i) {
    const int64_t base = absolute ? 0 : i * n;
    for (int64_t k = i * m, end = k; end < (i + 1) * m;) {
      end = run_end(k, (i + 1) * m);
      for (; k < end; ++k) {
        const int64_t at = index[k];
        if (at >= 0 && static_cast<uint64_t>(at) + static_cast<uint64_t>(base - r.lo) < room) out[base + at] = sum_of(out[base + at], g[k]);
        else if (!r.skip || at < 0 || at >= total - base) return k;
      }
    }
  }
  return -1;
}

}  // namespace poolgrad::PG_ISA
