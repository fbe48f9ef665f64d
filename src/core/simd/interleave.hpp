// Split vectors into their phases, and merge phases again.
//
//   v[0] v[1]   a0 b0 a1 b1 | a2 b2 a3 b3
//   deinterleave<0, 2>  ->  a0 a1 a2 a3        interleave<0, 2>  ->  a0 b0 a1 b1
//   deinterleave<1, 2>  ->  b0 b1 b2 b3        interleave<1, 2>  ->  a2 b2 a3 b3
#pragma once
#include <utility>

#include "simd/vec.hpp"

namespace poolgrad::PG_ISA {

/// Return phase P: cells P, P + S, P + 2 S, … of S vectors.
template <int P, int S, class V, int... I>
PG_INLINE V deinterleave(const V* v, std::integer_sequence<int, I...>) {
  constexpr int L = sizeof...(I);
  const V two = __builtin_shufflevector(v[0], v[1], (P + S * I < 2 * L ? P + S * I : 0)...);
  if constexpr (S == 2) return two;
  else return __builtin_shufflevector(two, v[2], (P + S * I < 2 * L ? I : P + S * I - L)...);
}

/// Return vector P of the S vectors that hold the phases v[0] … v[S - 1] again.
template <int P, int S, class V, int... I>
PG_INLINE V interleave(const V* v, std::integer_sequence<int, I...>) {
  constexpr int L = sizeof...(I);
  const V two = __builtin_shufflevector(
      v[0], v[1], ((P * L + I) % S < 2 ? (P * L + I) % S * L + (P * L + I) / S : 0)...);
  if constexpr (S == 2) return two;
  else
    return __builtin_shufflevector(two, v[2], ((P * L + I) % S < 2 ? I : L + (P * L + I) / S)...);
}

template <int High, class V, int... I>
PG_INLINE V interleave_halves(V a, V b, std::integer_sequence<int, I...>) {
  constexpr int L = sizeof...(I);
  return __builtin_shufflevector(a, b, (I % 2 * L + I / 2 + High * L / 2)...);
}

}  // namespace poolgrad::PG_ISA
