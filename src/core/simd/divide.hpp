// Quotients by counts, as products that are put right: a division takes several times as long.
#pragma once
#include "simd/vec.hpp"

namespace poolgrad::PG_ISA {

#if defined(__FMA__)
/// a b + c, rounded once.
template <int L>
PG_INLINE Vec<double, L> fused(Vec<double, L> a, Vec<double, L> b, Vec<double, L> c) {
  if constexpr (L == 1) return Vec<double, 1>{__builtin_fma(a[0], b[0], c[0])};
  else if constexpr (L == 2)
    return bitcast<Vec<double, L>>(
        _mm_fmadd_pd(bitcast<__m128d>(a), bitcast<__m128d>(b), bitcast<__m128d>(c)));
  else if constexpr (L == 4)
    return bitcast<Vec<double, L>>(
        _mm256_fmadd_pd(bitcast<__m256d>(a), bitcast<__m256d>(b), bitcast<__m256d>(c)));
#if defined(__AVX512F__)
  else
    return bitcast<Vec<double, L>>(
        _mm512_fmadd_pd(bitcast<__m512d>(a), bitcast<__m512d>(b), bitcast<__m512d>(c)));
#endif
}
#endif

/// v / by, where `over` is 1 / by: a cell of type T by a count. A product, put right by what it
/// leaves, is the quotient rounded once: that of a count and 53 bits is never so near the middle of
/// two numbers that the error of `over` matters. Not so if it may be subnormal. The sign of a zero
/// is lost.
template <class T, int L>
PG_INLINE Vec<double, L> quotient(Vec<double, L> v, double by, [[maybe_unused]] double over) {
#if defined(__FMA__)
  if constexpr (!std::is_same_v<T, double>) {
    const Vec<double, L> about = v * over, left = fused<L>(-about, all<double, L>(by), v);
    return fused<L>(left == left ? left : Vec<double, L>{}, all<double, L>(over),
                    about);  // infinity leaves NaN
  }
#endif
  return v / by;
}

/// Counts up to which `divided` is exact, and the least magnitude of what it divides by a product.
constexpr double kExactCount = 0x1p22, kLeast = 0x1p-100;

/// v / by, where `over` is 1 / by and `by` a count, as above. What is so small that the quotient
/// may be subnormal is divided, as are few lanes.
template <class T, int L>
PG_INLINE Vec<Wide<T>, L> divided(Vec<Wide<T>, L> v, Vec<Wide<T>, L> by,
                                  [[maybe_unused]] Vec<Wide<T>, L> over) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<Wide<T>, float> && L == 16) {
    const __m512 a = bitcast<__m512>(v), n = bitcast<__m512>(by), r = bitcast<__m512>(over),
                 about = _mm512_mul_ps(a, r), left = _mm512_fnmadd_ps(about, n, a);
    const __mmask16 small = _mm512_cmp_ps_mask(
        _mm512_abs_ps(a), _mm512_set1_ps(static_cast<float>(kLeast)), _CMP_LT_OQ);
    if (_mm512_mask_cmp_ps_mask(small, a, _mm512_setzero_ps(), _CMP_NEQ_OQ) == 0)
      return bitcast<Vec<float, L>>(_mm512_mask3_fmadd_ps(
          left, r, about, _mm512_cmp_ps_mask(left, left, _CMP_ORD_Q)));  // infinity leaves NaN
  }
#elif defined(__FMA__)
  if constexpr (std::is_same_v<Wide<T>, float> && L == 8) {
    const __m256 a = bitcast<__m256>(v), n = bitcast<__m256>(by), r = bitcast<__m256>(over),
                 zero = _mm256_setzero_ps(), about = _mm256_mul_ps(a, r),
                 left = _mm256_fnmadd_ps(about, n, a);
    const __m256 small = _mm256_cmp_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a),
                                       _mm256_set1_ps(static_cast<float>(kLeast)), _CMP_LT_OQ);
    if (_mm256_movemask_ps(_mm256_and_ps(small, _mm256_cmp_ps(a, zero, _CMP_NEQ_OQ))) == 0)
      return bitcast<Vec<float, L>>(
          _mm256_fmadd_ps(_mm256_and_ps(left, _mm256_cmp_ps(left, left, _CMP_ORD_Q)), r, about));
  }
#endif
  return v / by;
}

}  // namespace poolgrad::PG_ISA
