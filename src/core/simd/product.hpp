// Products of integers.
#pragma once
#include "simd/vec.hpp"

namespace poolgrad::PG_ISA {

/// Return the high halves of products of 16-bit numbers. GCC 12 would widen them.
template <int L>
PG_INLINE Vec<uint16_t, L> high_product(Vec<uint16_t, L> a, Vec<uint16_t, L> b) {
#if defined(__AVX512BW__)
  if constexpr (L == 32)
    return bitcast<Vec<uint16_t, L>>(
        _mm512_mulhi_epu16(bitcast<__m512i>(a), bitcast<__m512i>(b)));
#endif
#if defined(__AVX2__)
  if constexpr (L == 16)
    return bitcast<Vec<uint16_t, L>>(
        _mm256_mulhi_epu16(bitcast<__m256i>(a), bitcast<__m256i>(b)));
#endif
#if defined(__SSE2__)
  if constexpr (L == 8)
    return bitcast<Vec<uint16_t, L>>(_mm_mulhi_epu16(bitcast<__m128i>(a), bitcast<__m128i>(b)));
#endif
  return __builtin_convertvector((__builtin_convertvector(a, Vec<uint32_t, L>) *
                                  __builtin_convertvector(b, Vec<uint32_t, L>)) >>
                                     16,
                                 Vec<uint16_t, L>);
}

}  // namespace poolgrad::PG_ISA
