// The first cell that equals a given value.
#pragma once
#include "simd/ops.hpp"

namespace poolgrad::PG_ISA {

/// The value to match, and what belongs to the match. Cells come last to first, so that the first
/// match stays.
template <class T, int L>
struct MatchState {
  Vec<Wide<T>, L> best, found;

  PG_INLINE void step(Vec<Wide<T>, L> cell, Vec<Wide<T>, L> value) {
    found = cell == best ? value : found;
  }
};

}  // namespace poolgrad::PG_ISA
