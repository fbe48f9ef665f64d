// Vector types and conversions. All intrinsics are in this folder.
//
// Each instruction set compiles this code into its own namespace (PG_ISA), so that no two of them
// share a symbol.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#if defined(__F16C__)
#include <immintrin.h>
#elif defined(__SSSE3__)
#include <tmmintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "plan/dtype.hpp"
#include "plan/inline.hpp"

namespace poolgrad::PG_ISA {

#if defined(__AVX512BW__)
constexpr int kBytes = 64;
#elif defined(__AVX2__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif

template <class W, int L>
struct VecOf {
  typedef W type __attribute__((vector_size(sizeof(W) * L)));
};
template <class W, int L>
using Vec = typename VecOf<W, L>::type;

template <class T>
constexpr bool is_half = std::is_same_v<T, f16> || std::is_same_v<T, bf16>;

/// The type in which cells of type T are computed.
template <class T>
using Wide = std::conditional_t<is_half<T>, float, T>;

template <class T>
constexpr bool is_real = is_half<T> || std::is_floating_point_v<T>;

template <int Size>
struct UintOf;
template <>
struct UintOf<1> {
  using type = uint8_t;
};
template <>
struct UintOf<2> {
  using type = uint16_t;
};
template <>
struct UintOf<4> {
  using type = uint32_t;
};
template <>
struct UintOf<8> {
  using type = uint64_t;
};

/// An unsigned integer as wide as a lane of T, for tap numbers.
template <class T>
using TapLane = typename UintOf<sizeof(Wide<T>)>::type;

template <class T>
constexpr int kLanes = kBytes / static_cast<int>(sizeof(Wide<T>));

template <int L>
struct Lane {
  static constexpr int count = L;
};

template <class To, class From>
PG_INLINE To bitcast(From v) {
  static_assert(sizeof(To) == sizeof(From));
  To r;
  std::memcpy(&r, &v, sizeof r);
  return r;
}

/// Return the first bytes of a vector.
template <class To, class From>
PG_INLINE To first_bytes(From v) {
  static_assert(sizeof(To) <= sizeof(From));
  To r;
  std::memcpy(&r, &v, sizeof r);
  return r;
}

#if defined(__aarch64__)
/// Put a vector of at most 8 bytes into a register of 8 bytes; zeros follow. GCC 12 keeps vectors
/// of 2 and 4 bytes in general registers.
template <class To, class From>
PG_INLINE To pad_bytes(From v) {
  using Bits = typename UintOf<sizeof(From)>::type;
  return bitcast<To>(vcreate_u64(bitcast<Bits>(v)));
}
#endif

template <class W, int L>
PG_INLINE Vec<W, L> all(W value) {
  return value - Vec<W, L>{};  // + would cost an addition: it turns -0 into 0
}

/// Return true if some byte of a mask is set.
template <int L, class Mask>
PG_INLINE bool any(Mask mask) {
  static_assert(sizeof mask == L);
  using Part = std::conditional_t<L % 8 == 0, uint64_t, uint8_t>;
  Part parts[sizeof mask / sizeof(Part)], found = 0;
  std::memcpy(parts, &mask, sizeof mask);
  for (const Part part : parts) found = static_cast<Part>(found | part);
  return found != 0;
}

#if defined(__SSSE3__)
/// Return the lowest byte of each lane of 4 or 8 bytes, in order; the other bytes are arbitrary.
template <int Width>
PG_INLINE __m128i low_bytes(__m128i v) {
  return _mm_shuffle_epi8(v, Width == 4 ? _mm_set1_epi32(0x0c080400) : _mm_set1_epi16(0x0800));
}
#endif

/// Convert lane by lane. Integers widen twofold at a time: GCC 12 converts larger steps lane by
/// lane, and does these in halves.
template <class To, int L, class From>
PG_INLINE Vec<To, L> convert(Vec<From, L> v) {
  [[maybe_unused]] constexpr bool byte = std::is_same_v<From, uint8_t>,
                                  word = std::is_same_v<From, uint16_t>;
#if defined(__AVX512F__)
  if constexpr (byte && sizeof(To) == 4 && L == 16)
    return bitcast<Vec<To, L>>(_mm512_maskz_cvtepu8_epi32(0xffff, bitcast<__m128i>(v)));
  if constexpr (byte && sizeof(To) == 8 && L == 8)
    return bitcast<Vec<To, L>>(
        _mm512_maskz_cvtepu8_epi64(0xff, _mm_cvtsi64_si128(bitcast<long long>(v))));
  if constexpr (word && sizeof(To) == 4 && L == 16)
    return bitcast<Vec<To, L>>(_mm512_maskz_cvtepu16_epi32(0xffff, bitcast<__m256i>(v)));
  if constexpr (std::is_same_v<From, float> && std::is_same_v<To, double> && L == 8)
    return bitcast<Vec<To, L>>(_mm512_maskz_cvtps_pd(0xff, bitcast<__m256>(v)));
#endif
  // GCC 12 would narrow to bytes lane by lane.
  [[maybe_unused]] constexpr bool to_byte = std::is_integral_v<From> && sizeof(To) == 1,
                                  from4 = sizeof(From) == 4, from8 = sizeof(From) == 8;
#if defined(__AVX512F__)
  if constexpr (to_byte && from4 && L == 16)
    return bitcast<Vec<To, L>>(_mm512_maskz_cvtepi32_epi8(0xffff, bitcast<__m512i>(v)));
  if constexpr (to_byte && from8 && L == 8)
    return first_bytes<Vec<To, L>>(_mm512_maskz_cvtepi64_epi8(0xff, bitcast<__m512i>(v)));
#endif
#if defined(__AVX2__)
  if constexpr (to_byte && ((from4 && L == 8) || (from8 && L == 4))) {
    const __m256i all = bitcast<__m256i>(v);
    const __m128i low = low_bytes<sizeof(From)>(_mm256_castsi256_si128(all)),
                  high = low_bytes<sizeof(From)>(_mm256_extracti128_si256(all, 1));
    return first_bytes<Vec<To, L>>(from4 ? _mm_unpacklo_epi32(low, high)
                                         : _mm_unpacklo_epi16(low, high));
  }
#endif
#if defined(__SSSE3__)
  if constexpr (to_byte && ((from4 && L == 4) || (from8 && L == 2)))
    return first_bytes<Vec<To, L>>(low_bytes<sizeof(From)>(bitcast<__m128i>(v)));
#endif
#if defined(__AVX2__)
  if constexpr (byte && sizeof(To) == 4 && L == 8)
    return bitcast<Vec<To, L>>(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(bitcast<long long>(v))));
  if constexpr (byte && sizeof(To) == 8 && L == 4)
    return bitcast<Vec<To, L>>(_mm256_cvtepu8_epi64(_mm_cvtsi32_si128(bitcast<int>(v))));
  if constexpr (word && sizeof(To) == 4 && L == 8)
    return bitcast<Vec<To, L>>(_mm256_cvtepu16_epi32(bitcast<__m128i>(v)));
#endif
#if defined(__aarch64__)  // GCC 12 would convert vectors of at most 8 bytes lane by lane
  [[maybe_unused]] constexpr bool lane4 = std::is_same_v<From, uint32_t>,
                                  lane8 = std::is_same_v<From, uint64_t>;
  if constexpr (byte && sizeof(To) == 4 && L == 4)
    return bitcast<Vec<To, L>>(vmovl_u16(vget_low_u16(vmovl_u8(pad_bytes<uint8x8_t>(v)))));
  if constexpr (byte && sizeof(To) == 8 && L == 2)
    return bitcast<Vec<To, L>>(
        vmovl_u32(vget_low_u32(vmovl_u16(vget_low_u16(vmovl_u8(pad_bytes<uint8x8_t>(v)))))));
  if constexpr (byte && sizeof(To) == 2 && L == 8)
    return bitcast<Vec<To, L>>(vmovl_u8(bitcast<uint8x8_t>(v)));
  if constexpr (word && sizeof(To) == 4 && (L == 2 || L == 4))
    return first_bytes<Vec<To, L>>(vmovl_u16(pad_bytes<uint16x4_t>(v)));
  if constexpr (lane4 && sizeof(To) == 8 && L == 2)
    return bitcast<Vec<To, L>>(vmovl_u32(bitcast<uint32x2_t>(v)));
  if constexpr (std::is_same_v<From, float> && std::is_same_v<To, double> && L == 2)
    return bitcast<Vec<To, L>>(vcvt_f64_f32(bitcast<float32x2_t>(v)));
  if constexpr (lane4 && sizeof(To) == 1 && L == 4) {
    const uint16x4_t half = vmovn_u32(bitcast<uint32x4_t>(v));
    return first_bytes<Vec<To, L>>(vmovn_u16(vcombine_u16(half, half)));
  }
  if constexpr (lane8 && sizeof(To) == 1 && L == 2) {
    const uint32x2_t half = vmovn_u64(bitcast<uint64x2_t>(v));
    const uint16x4_t quarter = vmovn_u32(vcombine_u32(half, half));
    return first_bytes<Vec<To, L>>(vmovn_u16(vcombine_u16(quarter, quarter)));
  }
#endif
  if constexpr (std::is_integral_v<From> && sizeof(To) > 2 * sizeof(From)) {
    using Wider = typename UintOf<2 * sizeof(From)>::type;
    using Next = std::conditional_t<std::is_signed_v<From>, std::make_signed_t<Wider>, Wider>;
    return convert<To, L, Next>(__builtin_convertvector(v, Vec<Next, L>));
  } else {
    return __builtin_convertvector(v, Vec<To, L>);
  }
}

}  // namespace poolgrad::PG_ISA
