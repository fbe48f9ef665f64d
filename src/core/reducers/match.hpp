// The first cell that equals a given value.
#pragma once
#include "simd/ops.hpp"

namespace poolgrad::PG_ISA {

template <class T, int L>
struct MatchState {
  Vec<Wide<T>, L> best, found;
};

}  // namespace poolgrad::PG_ISA
