// Ranks and keys: integers in the order of the cells. A key holds the rank of a value above its
// inverted position, so that the largest key is the first maximum.
#pragma once
#include "simd/ops.hpp"

namespace poolgrad::PG_ISA {

/// Return a number in the order of the cells: both zeros are equal, NaN is lowest.
template <class T, int L>
PG_INLINE Vec<uint32_t, L> rank_of(Vec<Wide<T>, L> v) {
  if constexpr (is_real<T>) {
    const Vec<uint32_t, L> u = bitcast<Vec<uint32_t, L>>(v + 0.0f);
    const Vec<uint32_t, L> ordered = (u >> 31) != 0 ? ~u : u | 0x80000000u;
    return (v == v) ? ordered : Vec<uint32_t, L>{};
  } else if constexpr (std::is_signed_v<T>) {
    return bitcast<Vec<uint32_t, L>>(convert<int32_t, L, T>(v)) ^ 0x80000000u;
  } else {
    return convert<uint32_t, L, T>(v);
  }
}

/// True for types whose rank and position fit a 64-bit key.
template <class T>
constexpr bool has_keys = sizeof(Wide<T>) <= 4;

/// Return the cell of a key.
PG_INLINE int64_t cell_of_key(uint64_t key) {
  return static_cast<int64_t>(0xffffffffu - static_cast<uint32_t>(key));
}

}  // namespace poolgrad::PG_ISA
