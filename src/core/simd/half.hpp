// float16 and bfloat16: conversions, rounding, sums that round at each step.
#pragma once
#include "simd/vec.hpp"

namespace poolgrad::PG_ISA {

// ---- conversions: round to nearest even, keep NaN a NaN

template <int L>
PG_INLINE Vec<float, L> widen(Vec<uint16_t, L> h, f16) {
#if defined(__AVX512F__)
  if constexpr (L == 16)
    return bitcast<Vec<float, L>>(_mm512_maskz_cvtph_ps(0xffff, bitcast<__m256i>(h)));
#endif
#if defined(__F16C__)
  if constexpr (L == 8) return bitcast<Vec<float, L>>(_mm256_cvtph_ps(bitcast<__m128i>(h)));
  if constexpr (L == 1) return Vec<float, L>{_cvtsh_ss(h[0])};
#endif
#if defined(__aarch64__)
  if constexpr (L == 2 || L == 4)
    return first_bytes<Vec<float, L>>(vcvt_f32_f16(pad_bytes<float16x4_t>(h)));
  if constexpr (L == 1) return Vec<float, L>{static_cast<float>(bitcast<__fp16>(h))};
#endif
  using U = Vec<uint32_t, L>;
  const U u = __builtin_convertvector(h, U);
  const U sign = (u & 0x8000u) << 16, mag = (u & 0x7fffu) << 13;
  // Shift the exponent by a product: exact, also for subnormals.
  const Vec<float, L> scaled = bitcast<Vec<float, L>>(mag) * 0x1p112f;
  const U special = mag | 0x7f800000u | ((mag & 0x7fffffu) != 0 ? U{} + 0x400000u : U{});
  return bitcast<Vec<float, L>>(sign | (mag >= 0x0f800000u ? special : bitcast<U>(scaled)));
}

template <int L>
PG_INLINE Vec<float, L> widen(Vec<uint16_t, L> h, bf16) {
#if defined(__AVX512BW__)
  if constexpr (L == 16) {
    const Vec<uint16_t, 32> twice{0, 0, 1, 1, 2,  2,  3,  3,  4,  4,  5,  5,  6,  6,  7,  7,
                                  8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15};
    return bitcast<Vec<float, L>>(_mm512_maskz_permutexvar_epi16(
        0xaaaaaaaa, bitcast<__m512i>(twice), _mm512_castsi256_si512(bitcast<__m256i>(h))));
  }
#endif
  return bitcast<Vec<float, L>>(convert<uint32_t, L, uint16_t>(h) << 16);
}

template <int L>
PG_INLINE Vec<uint16_t, L> narrow(Vec<float, L> v, f16) {
#if defined(__AVX512F__)
  if constexpr (L == 16)
    return bitcast<Vec<uint16_t, L>>(_mm512_maskz_cvtps_ph(
        0xffff, bitcast<__m512>(v), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#endif
#if defined(__F16C__)
  if constexpr (L == 8)
    return bitcast<Vec<uint16_t, L>>(
        _mm256_cvtps_ph(bitcast<__m256>(v), _MM_FROUND_TO_NEAREST_INT));
  if constexpr (L == 1) return Vec<uint16_t, L>{_cvtss_sh(v[0], _MM_FROUND_TO_NEAREST_INT)};
#endif
#if defined(__aarch64__)
  if constexpr (L == 4) return bitcast<Vec<uint16_t, L>>(vcvt_f16_f32(bitcast<float32x4_t>(v)));
  if constexpr (L == 2) {
    const float32x2_t two = bitcast<float32x2_t>(v);
    return first_bytes<Vec<uint16_t, L>>(vcvt_f16_f32(vcombine_f32(two, two)));
  }
  if constexpr (L == 1) return bitcast<Vec<uint16_t, L>>(static_cast<__fp16>(v[0]));
#endif
  using U = Vec<uint32_t, L>;
  const U u = bitcast<U>(v), sign = (u >> 16) & 0x8000u, mag = u & 0x7fffffffu;
  // Near 0.5 the last place of a float is 2^-24, which is the spacing of half's subnormals.
  const U tiny = bitcast<U>(bitcast<Vec<float, L>>(mag) + 0.5f) - 0x3f000000u;
  const U normal = (mag + 0xfffu + ((mag >> 13) & 1u) - (112u << 23)) >> 13;
  const U special = mag > 0x7f800000u ? 0x7e00u | ((mag >> 13) & 0x3ffu) : U{} + 0x7c00u;
  const U h = mag >= 0x47800000u ? special : mag < 0x38800000u ? tiny : normal;
  return __builtin_convertvector(sign | h, Vec<uint16_t, L>);
}

/// Round the last `Drop` bits of a float to even; the caller masks them off. NaN needs no test: a
/// NaN that comes from a half has zeros in these bits, so nothing carries. The bit above them
/// decides ties only, so we put it into the last place instead of adding it.
template <int Drop, int L>
PG_INLINE Vec<uint32_t, L> round_bits(Vec<float, L> v) {
  using U = Vec<uint32_t, L>;
  constexpr uint32_t half = 1u << (Drop - 1);
  const U u = bitcast<U>(v);
#if defined(__AVX512F__)
  if constexpr (L == 16) {
    const __m512i w = bitcast<__m512i>(v), one = _mm512_set1_epi32(1);
    return bitcast<U>(_mm512_ternarylogic_epi32(w, bitcast<__m512i>(u >> Drop), one, 0xf8)) +
           (half - 1);  // 0xf8: a | (b & c)
  }
#endif
  return (u | ((u >> Drop) & 1u)) + (half - 1);
}

template <int L>
PG_INLINE Vec<uint16_t, L> narrow(Vec<float, L> v, bf16) {
  return __builtin_convertvector(round_bits<16, L>(v) >> 16, Vec<uint16_t, L>);
}

/// Round a value to T; keep it in the wide type.
template <class T, int L>
PG_INLINE Vec<Wide<T>, L> rounded(Vec<Wide<T>, L> v) {
  if constexpr (std::is_same_v<T, bf16>)
    return bitcast<Vec<float, L>>(round_bits<16, L>(v) & 0xffff0000u);
  else if constexpr (std::is_same_v<T, f16>) return widen<L>(narrow<L>(v, f16{}), f16{});
  else return v;
}

// ---- sums that round to T at each step
//
// float16 sums run at 2^112 times their size. The largest float16 then is the largest float32, and
// an overflow becomes infinity by itself. Subnormals need no care: a sum of two float16 numbers is
// a multiple of the smallest one. A step is one addition and integer arithmetic, a third of the
// latency of two conversions.

template <class T>
constexpr bool is_scaled = std::is_same_v<T, f16>;

/// Return sum + v, not rounded to T.
template <class T, int L>
PG_INLINE Vec<Wide<T>, L> plus(Vec<Wide<T>, L> sum, Vec<Wide<T>, L> v) {
  if constexpr (!is_scaled<T>) {
    return sum + v;
  } else {
    // The product is exact: fused or not, the result is the same.
#if defined(__AVX512F__)
    if constexpr (L == 16)
      return bitcast<Vec<float, L>>(
          _mm512_fmadd_ps(bitcast<__m512>(v), _mm512_set1_ps(0x1p112f), bitcast<__m512>(sum)));
#endif
#if defined(__FMA__)
    if constexpr (L == 8)
      return bitcast<Vec<float, L>>(
          _mm256_fmadd_ps(bitcast<__m256>(v), _mm256_set1_ps(0x1p112f), bitcast<__m256>(sum)));
#elif defined(__aarch64__)
    if constexpr (L == 4)
      return bitcast<Vec<float, L>>(
          vfmaq_n_f32(bitcast<float32x4_t>(sum), bitcast<float32x4_t>(v), 0x1p112f));
#endif
    return sum + v * 0x1p112f;
  }
}

/// Return sum + v, rounded to T.
template <class T, int L>
PG_INLINE Vec<Wide<T>, L> plus_rounded(Vec<Wide<T>, L> sum, Vec<Wide<T>, L> v) {
  constexpr int drop = is_scaled<T> ? 13 : 16;
  if constexpr (is_half<T>)
    return bitcast<Vec<float, L>>(round_bits<drop, L>(plus<T, L>(sum, v)) & ~((1u << drop) - 1));
  else return sum + v;
}

/// Return the value of a sum, without its scale.
template <class T, int L>
PG_INLINE Vec<Wide<T>, L> total(Vec<Wide<T>, L> sum) {
  if constexpr (is_scaled<T>) return sum * 0x1p-112f;
  else return sum;
}

}  // namespace poolgrad::PG_ISA
