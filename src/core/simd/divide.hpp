// Divide by a count: multiply by the reciprocal, then correct the product.
//
//   r = fl(1 / n)         once per count
//   q = fl(v * r)         the quotient, up to a few units in the last place
//   e = fma(-q, n, v)     the remainder v - q n, exact
//   q + e r               one more fma: the correctly rounded v / n
//
// A division takes several times as long as these three steps. The last fma rounds q + e r once; it
// equals v / n unless v / n is very close to the middle of two floating-point numbers. Quotients by
// a count n are not: v / n is at least 1 / (2 n) units away from such a middle, and the error of r
// is smaller. The remainder is exact only if nothing is subnormal, so tiny values are divided.
// Source: P. Markstein, "Computation of elementary functions on the IBM RISC System/6000
// processor", IBM J. Res. Dev. 34 (1990); Muller et al., Handbook of Floating-Point Arithmetic,
// section 4.7.
#pragma once
#include "simd/vec.hpp"

namespace poolgrad::PG_ISA {

/// Defined if the steps are faster than a division. Apple's processors divide as fast.
#if defined(__FMA__) || (defined(__aarch64__) && !defined(__APPLE__))
#define PG_FUSED
#endif

#if defined(PG_FUSED)
/// Return a b + c, rounded once.
template <int L>
PG_INLINE Vec<double, L> fused(Vec<double, L> a, Vec<double, L> b, Vec<double, L> c) {
  if constexpr (L == 1) return Vec<double, 1>{__builtin_fma(a[0], b[0], c[0])};
#if defined(__aarch64__)
  else if constexpr (L == 2)
    return bitcast<Vec<double, L>>(
        vfmaq_f64(bitcast<float64x2_t>(c), bitcast<float64x2_t>(a), bitcast<float64x2_t>(b)));
#else
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
#endif
}
#endif

/// Return v / by for a cell of type T and a count; `over` is 1 / by. The sign of a zero is lost.
template <class T, int L>
PG_INLINE Vec<double, L> quotient(Vec<double, L> v, double by, [[maybe_unused]] double over) {
#if defined(PG_FUSED)
  if constexpr (!std::is_same_v<T, double>) {
    const Vec<double, L> about = v * over, left = fused<L>(-about, all<double, L>(by), v);
    return fused<L>(left == left ? left : Vec<double, L>{}, all<double, L>(over),
                    about);  // the remainder of infinity is NaN: skip the correction
  }
#endif
  return v / by;
}

/// `divided` is exact for counts up to kExactCount, and divides values below kLeast.
constexpr double kExactCount = 0x1p22, kLeast = 0x1p-100;

/// Return v / by for a sum and a count, as above. It divides if a quotient may be subnormal, and
/// for short vectors.
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
          left, r, about,
          _mm512_cmp_ps_mask(left, left, _CMP_ORD_Q)));  // the remainder of infinity is NaN
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
#elif defined(PG_FUSED)
  if constexpr (std::is_same_v<Wide<T>, float> && L == 4) {
    const float32x4_t a = bitcast<float32x4_t>(v), n = bitcast<float32x4_t>(by),
                      r = bitcast<float32x4_t>(over), about = vmulq_f32(a, r),
                      left = vfmsq_f32(a, about, n),
                      most = vdupq_n_f32(std::numeric_limits<float>::max());
    const uint32x4_t tiny =
        vbicq_u32(vcaltq_f32(a, vdupq_n_f32(static_cast<float>(kLeast))), vceqzq_f32(a));
    if (vgetq_lane_u64(vreinterpretq_u64_u32(vpmaxq_u32(tiny, tiny)), 0) == 0)
      return bitcast<Vec<float, L>>(
          vfmaq_f32(about, vminnmq_f32(left, most), r));  // the remainder of infinity is NaN: any
                                                          // number may replace it
  }
#endif
  return v / by;
}

}  // namespace poolgrad::PG_ISA
