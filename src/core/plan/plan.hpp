// Plans: the windows of a call as data. See README.md for a drawing.
#pragma once
#include <atomic>
#include <cstdint>

#include "plan/inline.hpp"
#include "plan/schedule.hpp"

namespace poolgrad {

constexpr int kMaxRank = 16;

/// The axis that an axis was cut from; the axis itself if it was not cut. Long sums are composed by
/// it, so that a part has the bits of the whole.
struct Whole {
  int64_t n = 0;       ///< source length
  int64_t m = 0;       ///< destination length
  int64_t widest = 0;  ///< longest window: the length of the blocks of sliding.hpp
  int64_t first = 0;   ///< the source cell at which the part begins
  bool fits = true;    ///< every window begins or ends with a block, or spans two

  PG_INLINE bool pooled() const { return n != m || widest != 1; }
};

/// Destination cell j of an axis reads source cells start[j] to stop[j] - 1.
struct Axis {
  int64_t n = 0;                   ///< source length
  int64_t m = 0;                   ///< destination length
  const int64_t* start = nullptr;  ///< m values, not decreasing
  const int64_t* stop = nullptr;   ///< m values, not decreasing
  const int64_t* span = nullptr;   ///< m lengths before the windows were cut at the edges
  const int64_t* count = nullptr;  ///< transposed axes only: n lengths of the original windows
  const int64_t* base = nullptr;   ///< transposed axes only: n starts of the original windows
  int64_t widest = 0;              ///< longest window
  int64_t origin = 0;              ///< the source cell at which the given array begins
  int64_t first = 0;               ///< the destination cell at which this piece begins
  Whole whole = {};                ///< the axis that this one was cut from

  /// Per window, the blocks of `whole.widest` cells that sliding.hpp joins. 0: the end of one block
  /// and the start of the next. 1: the start of one block. 2: the end of one block. Null if some
  /// window of the whole axis is none of these.
  const uint8_t* blocks = nullptr;

  // Windows repeat in [lo, hi): start[j + period] == start[j] + step, with equal lengths.
  int64_t lo = 0, hi = 0, period = 1, step = 1;

  PG_INLINE int64_t from(int64_t j) const { return start[j] - origin; }
  PG_INLINE int64_t length(int64_t j) const { return stop[j] - start[j]; }

  /// Return the next window whose length or span may differ from that of window j: windows that
  /// repeat one after the other are alike.
  PG_INLINE int64_t next_other(int64_t j) const {
    return period == 1 && lo <= j && j < hi ? hi : j + 1;
  }
};

/// An array as (outer, pooled axes, inner). Dimensions that are not pooled belong to outer or
/// inner.
struct Plan {
  int64_t outer = 1, inner = 1;
  int rank = 0;
  bool plain = false;  ///< visit taps one by one, in the simplest way; tests compare with it
  bool in_cache = false;  ///< the sources are copies that a cache holds
  Schedule only = kAnySchedule;  ///< the one schedule that may run
  std::atomic<uint8_t>* chosen = nullptr;  ///< rows that the tables chose, see verbs/schedules.hpp
  Axis axis[kMaxRank];

  PG_INLINE const Axis& last() const { return axis[rank - 1]; }

  /// Count the destination rows per cell of the first axis, and per item.
  PG_INLINE int64_t rows_per_slab() const {
    int64_t rows = 1;
    for (int a = 1; a + 1 < rank; ++a) rows *= axis[a].m;
    return rows;
  }
  PG_INLINE int64_t rows_per_item() const { return rank == 1 ? 1 : axis[0].m * rows_per_slab(); }

  /// Count the elements per cell of the first axis, in the source and in the destination.
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

/// Return true to follow taps one by one. Else vectors compare all cells of a window with the tap,
/// which needs enough inner elements to fill them.
PG_INLINE bool follows_single_taps(const Plan& plan) {
  return plan.plain || plan.inner < 8 || plan.only == Schedule::follow_taps;
}

/// A part of a call: items [i0, i1), destination cells [h0, h1) of the first axis. The verbs of
/// gradients cut the transposed plan, whose destination cells are cells of dx.
struct Piece {
  int64_t i0, i1, h0, h1;
};

/// Return the plan of destination cells [a, b) of the first axis, for a source array that begins at
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
