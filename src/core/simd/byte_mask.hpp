// Masks of lanes as bytes. GCC 12 would narrow them lane by lane.
#pragma once
#include "simd/vec.hpp"

namespace poolgrad::PG_ISA {

#if defined(__SSE2__)
/// Narrow masks of 32-bit lanes, four of them in each register, to bytes; the last four are in `b`.
PG_INLINE __m128i narrow_masks(__m128i a, __m128i b) {
  const __m128i words = _mm_packs_epi32(a, b);
  return _mm_and_si128(_mm_packs_epi16(words, words), _mm_set1_epi8(1));
}
/// Narrow masks of 64-bit lanes to 32 bits.
PG_INLINE __m128i halve_masks(__m128i a, __m128i b) {
  return _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b), 0x88));
}
#endif

/// Return bytes that are 1 where a lane of a mask is -1, and 0 where it is 0.
template <class M, int L>
PG_INLINE Vec<uint8_t, L> byte_mask(Vec<M, L> mask) {
  constexpr int width = static_cast<int>(sizeof(M));
#if defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
  if constexpr (L == 16 && width == 4)
    return bitcast<Vec<uint8_t, L>>(
        _mm_maskz_set1_epi8(_mm512_movepi32_mask(bitcast<__m512i>(mask)), 1));
  if constexpr (L == 8 && width == 8)
    return first_bytes<Vec<uint8_t, L>>(
        _mm_maskz_set1_epi8(_mm512_movepi64_mask(bitcast<__m512i>(mask)), 1));
#endif
#if defined(__AVX2__)
  if constexpr ((L == 8 && width == 4) || (L == 4 && width == 8)) {
    const __m256i all = bitcast<__m256i>(mask);
    const __m128i low = _mm256_castsi256_si128(all), high = _mm256_extracti128_si256(all, 1);
    const __m128i four = halve_masks(low, high);
    return first_bytes<Vec<uint8_t, L>>(width == 4 ? narrow_masks(low, high)
                                                   : narrow_masks(four, four));
  }
#endif
#if defined(__SSE2__)
  if constexpr (L * width == 16 && width >= 4) {
    const __m128i all = bitcast<__m128i>(mask), four = width == 4 ? all : halve_masks(all, all);
    return first_bytes<Vec<uint8_t, L>>(narrow_masks(four, four));
  }
#endif
  using Bits = typename UintOf<sizeof(M)>::type;
  return convert<uint8_t, L, Bits>(bitcast<Vec<Bits, L>>(mask)) & all<uint8_t, L>(1);
}

}  // namespace poolgrad::PG_ISA
