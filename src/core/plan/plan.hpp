// Windows as data: intervals per axis, nothing about who uses them.
#pragma once
#include <cstdint>

#include "plan/inline.hpp"

namespace poolgrad {

constexpr int kMaxRank = 16;

/// Destination cell j of an axis reads source cells start[j] to stop[j] - 1.
struct Axis {
  int64_t n = 0;                   ///< source length
  int64_t m = 0;                   ///< destination length
  const int64_t* start = nullptr;  ///< m values, not decreasing
  const int64_t* stop = nullptr;   ///< m values, not decreasing
  const int64_t* span = nullptr;   ///< m lengths before the windows were cut at the edges
  const int64_t* count =
      nullptr;                    ///< for a transposed axis: n lengths of the windows it came from,
  const int64_t* base = nullptr;  ///< and n starts of those windows
  int64_t widest = 0;             ///< longest window
  int64_t origin = 0;             ///< the source cell at which the array in hand begins
  int64_t first = 0;              ///< the destination cell at which this piece begins

  /// How a window comes from blocks as long as the longest one: 0, the end of one and the beginning
  /// of the next; 1, the beginning of one; 2, the end of one. Null if some window is none of these.
  const uint8_t* blocks = nullptr;

  // In [lo, hi) the windows repeat: start[j + period] == start[j] + step, same length.
  int64_t lo = 0, hi = 0, period = 1, step = 1;

  PG_INLINE int64_t from(int64_t j) const { return start[j] - origin; }
  PG_INLINE int64_t length(int64_t j) const { return stop[j] - start[j]; }
};

/// All axes of an array as (outer, pooled axes, inner); what is not pooled is in outer or inner.
struct Plan {
  int64_t outer = 1, inner = 1;
  int rank = 0;
  bool plain = false;  ///< take the generic path everywhere: the fast ones are tested against it
  Axis axis[kMaxRank];

  PG_INLINE const Axis& last() const { return axis[rank - 1]; }

  /// Rows of destination cells per cell of the first axis, and per outer item.
  PG_INLINE int64_t rows_per_slab() const {
    int64_t rows = 1;
    for (int a = 1; a + 1 < rank; ++a) rows *= axis[a].m;
    return rows;
  }
  PG_INLINE int64_t rows_per_item() const { return rank == 1 ? 1 : axis[0].m * rows_per_slab(); }

  /// Elements per cell of the first axis, in the source and in the destination.
  PG_INLINE int64_t source_slab() const {
    int64_t size = inner;
    for (int a = 1; a < rank; ++a) size *= axis[a].n;
    return size;
  }
  PG_INLINE int64_t dest_slab() const {
    int64_t size = inner;
    for (int a = 1; a < rank; ++a) size *= axis[a].m;
    return size;
  }
};

/// Whether taps are followed one by one: vectors look at all cells of a window, which takes inner
/// elements.
PG_INLINE bool follows_single_taps(const Plan& plan) { return plan.plain || plan.inner < 8; }

/// A piece of the work: outer items [i0, i1), destination cells [h0, h1) of the first axis.
struct Piece {
  int64_t i0, i1, h0, h1;
};

/// The plan of destination cells [a, b) of the first axis alone, for a source array that begins at
/// cell `origin`.
PG_INLINE Plan strip(const Plan& plan, int64_t a, int64_t b, int64_t origin) {
  Plan p = plan;
  Axis& axis = p.axis[0];
  axis.start += a;
  axis.stop += a;
  if (axis.span) axis.span += a;
  if (axis.blocks) axis.blocks += a;
  axis.m = b - a;
  axis.origin = origin;
  axis.first += a;
  axis.lo = axis.lo > a ? axis.lo - a : 0;
  axis.hi = (axis.hi < b ? axis.hi : b) - a;
  if (axis.hi < axis.lo) axis.lo = axis.hi = 0;
  return p;
}

}  // namespace poolgrad
