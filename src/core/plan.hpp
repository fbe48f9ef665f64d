// Windows as data: intervals per axis, nothing about who uses them.
#pragma once
#include <cstdint>

namespace poolgrad {

constexpr int kMaxRank = 16;

/// Destination cell j of an axis reads source cells start[j] to stop[j] - 1.
struct Axis {
  int64_t n = 0;                   ///< source length
  int64_t m = 0;                   ///< destination length
  const int64_t* start = nullptr;  ///< m values, not decreasing
  const int64_t* stop = nullptr;   ///< m values, not decreasing
  const int64_t* span = nullptr;   ///< m lengths before the windows were cut at the edges
  const int64_t* count = nullptr;  ///< for a transposed axis: n lengths of the windows it came from
  int64_t widest = 0;              ///< longest window

  // In [lo, hi) the windows repeat: start[j + period] == start[j] + step, same length.
  int64_t lo = 0, hi = 0, period = 1, step = 1;
};

/// All axes of an array as (outer, pooled axes, inner); what is not pooled is in outer or inner.
struct Plan {
  int64_t outer = 1, inner = 1;
  int rank = 0;
  bool plain = false;  ///< take the generic path everywhere: the fast ones are tested against it
  Axis axis[kMaxRank];

  const Axis& last() const { return axis[rank - 1]; }
};

}  // namespace poolgrad
