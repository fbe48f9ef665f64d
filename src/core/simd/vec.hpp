// Vectors: all knowledge of vector width, half types and instruction sets is in this file.
// Compiled once per ISA level into its own namespace, so no two levels share a symbol.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#if defined(__F16C__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
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

/// The type in which a cell of type T is computed.
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

/// A tap number as wide as the lane that it accompanies.
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

template <class W, int L>
PG_INLINE Vec<W, L> all(W value) {
  return Vec<W, L>{} + value;
}

/// True if a lane of a mask of bytes is set.
template <int L, class Mask>
PG_INLINE bool any(Mask mask) {
  static_assert(sizeof mask == L);
  using Part = std::conditional_t<L % 8 == 0, uint64_t, uint8_t>;
  Part parts[sizeof mask / sizeof(Part)], found = 0;
  std::memcpy(parts, &mask, sizeof mask);
  for (const Part part : parts) found = static_cast<Part>(found | part);
  return found != 0;
}

/// Lane by lane to another type. Integers grow twofold at a time: GCC 12 takes a longer step lane
/// by lane, and these by halves.
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
#if defined(__AVX2__)
  if constexpr (byte && sizeof(To) == 4 && L == 8)
    return bitcast<Vec<To, L>>(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(bitcast<long long>(v))));
  if constexpr (byte && sizeof(To) == 8 && L == 4)
    return bitcast<Vec<To, L>>(_mm256_cvtepu8_epi64(_mm_cvtsi32_si128(bitcast<int>(v))));
  if constexpr (word && sizeof(To) == 4 && L == 8)
    return bitcast<Vec<To, L>>(_mm256_cvtepu16_epi32(bitcast<__m128i>(v)));
#endif
  if constexpr (std::is_integral_v<From> && sizeof(To) > 2 * sizeof(From)) {
    using Wider = typename UintOf<2 * sizeof(From)>::type;
    using Next = std::conditional_t<std::is_signed_v<From>, std::make_signed_t<Wider>, Wider>;
    return convert<To, L, Next>(__builtin_convertvector(v, Vec<Next, L>));
  } else {
    return __builtin_convertvector(v, Vec<To, L>);
  }
}

// ---- half types: every conversion rounds to nearest even and keeps NaN a NaN

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
  using U = Vec<uint32_t, L>;
  const U u = __builtin_convertvector(h, U);
  const U sign = (u & 0x8000u) << 16, mag = (u & 0x7fffu) << 13;
  // A shift of the exponent as a product: exact, subnormals included.
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
  using U = Vec<uint32_t, L>;
  const U u = bitcast<U>(v), sign = (u >> 16) & 0x8000u, mag = u & 0x7fffffffu;
  // Near 0.5 a float's last place is 2^-24, the spacing of half's subnormals.
  const U tiny = bitcast<U>(bitcast<Vec<float, L>>(mag) + 0.5f) - 0x3f000000u;
  const U normal = (mag + 0xfffu + ((mag >> 13) & 1u) - (112u << 23)) >> 13;
  const U special = mag > 0x7f800000u ? 0x7e00u | ((mag >> 13) & 0x3ffu) : U{} + 0x7c00u;
  const U h = mag >= 0x47800000u ? special : mag < 0x38800000u ? tiny : normal;
  return __builtin_convertvector(sign | h, Vec<uint16_t, L>);
}

/// Rounds away the last `Drop` bits of a float, to even. No test for NaN: one that comes from
/// halves has zeros there, nothing carries. An odd neighbour decides ties only, so its bit may be
/// put into the last place instead of being added.
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

/// The value rounded to T, still as wide as it is computed.
template <class T, int L>
PG_INLINE Vec<Wide<T>, L> rounded(Vec<Wide<T>, L> v) {
  if constexpr (std::is_same_v<T, bf16>)
    return bitcast<Vec<float, L>>(round_bits<16, L>(v) & 0xffff0000u);
  else if constexpr (std::is_same_v<T, f16>) return widen<L>(narrow<L>(v, f16{}), f16{});
  else return v;
}

// ---- sums that round to T at each step
//
// float16 is added up at 2^112 times its size: its largest numbers then are float32's, and overflow
// to infinity together. Its subnormals need no care, since a sum of two numbers is a multiple of
// the smallest one. So a step is an addition and integer arithmetic, a third of the latency of a
// conversion there and back.

template <class T>
constexpr bool is_scaled = std::is_same_v<T, f16>;

/// sum + v, not rounded.
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
#endif
    return sum + v * 0x1p112f;
  }
}

/// sum + v, rounded to T.
template <class T, int L>
PG_INLINE Vec<Wide<T>, L> plus_rounded(Vec<Wide<T>, L> sum, Vec<Wide<T>, L> v) {
  constexpr int drop = is_scaled<T> ? 13 : 16;
  if constexpr (is_half<T>)
    return bitcast<Vec<float, L>>(round_bits<drop, L>(plus<T, L>(sum, v)) & ~((1u << drop) - 1));
  else return sum + v;
}

/// The value of a sum.
template <class T, int L>
PG_INLINE Vec<Wide<T>, L> total(Vec<Wide<T>, L> sum) {
  if constexpr (is_scaled<T>) return sum * 0x1p-112f;
  else return sum;
}

/// v where it is greater, else best: NaN never is. GCC 12 compares and moves where one instruction
/// does.
template <class W, int L>
PG_INLINE Vec<W, L> larger(Vec<W, L> best, Vec<W, L> v) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<W, float> && L == 16)
    return bitcast<Vec<W, L>>(
        _mm512_maskz_max_ps(0xffff, bitcast<__m512>(v), bitcast<__m512>(best)));
  if constexpr (std::is_same_v<W, double> && L == 8)
    return bitcast<Vec<W, L>>(
        _mm512_maskz_max_pd(0xff, bitcast<__m512d>(v), bitcast<__m512d>(best)));
#endif
#if defined(__AVX__)
  if constexpr (std::is_same_v<W, float> && L == 8)
    return bitcast<Vec<W, L>>(_mm256_max_ps(bitcast<__m256>(v), bitcast<__m256>(best)));
  if constexpr (std::is_same_v<W, double> && L == 4)
    return bitcast<Vec<W, L>>(_mm256_max_pd(bitcast<__m256d>(v), bitcast<__m256d>(best)));
#endif
  return (best < v) ? v : best;
}

/// v where a tap is the given one, else 0.
template <int L, class W>
PG_INLINE Vec<W, L> where_tap(Vec<uint8_t, L> taps, uint8_t tap, Vec<W, L> v) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  const __m128i wanted = _mm_set1_epi8(static_cast<char>(tap));
  if constexpr (L == 16 && sizeof(W) == 4) {
    const __mmask16 mine = _mm_cmpeq_epi8_mask(bitcast<__m128i>(taps), wanted);
    return bitcast<Vec<W, L>>(_mm512_maskz_mov_ps(mine, bitcast<__m512>(v)));
  }
  if constexpr (L == 8 && sizeof(W) == 8) {
    const __mmask16 mine = _mm_cmpeq_epi8_mask(_mm_cvtsi64_si128(bitcast<long long>(taps)), wanted);
    return bitcast<Vec<W, L>>(
        _mm512_maskz_mov_pd(static_cast<__mmask8>(mine & 0xff), bitcast<__m512d>(v)));
  }
#endif
  using Count = typename UintOf<sizeof(W)>::type;
  return convert<Count, L, uint8_t>(taps) == static_cast<Count>(tap) ? v : Vec<W, L>{};
}
template <int L, class W>
PG_INLINE Vec<W, L> where_tap(const uint8_t* taps, uint8_t tap, Vec<W, L> v) {
  Vec<uint8_t, L> here;
  std::memcpy(&here, taps, sizeof here);
  return where_tap<L, W>(here, tap, v);
}

// ---- memory

template <int L, class T>
PG_INLINE Vec<Wide<T>, L> load(const T* p) {
  if constexpr (is_half<T>) {
    Vec<uint16_t, L> h;
    std::memcpy(&h, p, sizeof h);
    return widen<L>(h, T{});
  } else {
    Vec<T, L> v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
}

template <int L, class T>
PG_INLINE void store(T* p, Vec<Wide<T>, L> v) {
  if constexpr (is_half<T>) {
    const Vec<uint16_t, L> h = narrow<L>(v, T{});
    std::memcpy(p, &h, sizeof h);
  } else {
    std::memcpy(p, &v, sizeof v);
  }
}

constexpr int64_t kCacheLine = 64;  ///< bytes that memory moves at once

/// Moves whole lines to memory past the caches, where there is a way to; `to` begins a line.
PG_INLINE void stream_lines(char* to, const char* from, int64_t bytes) {
#if defined(__SSE2__)
  for (int64_t i = 0; i < bytes; i += kBytes) {
#if defined(__AVX512F__)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_loadu_si512(from + i));
#elif defined(__AVX2__)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
#else
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
#endif
  }
#else
  std::memcpy(to, from, static_cast<size_t>(bytes));
#endif
}

/// Before another thread is told of what went past the caches.
PG_INLINE void stream_fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

/// Vectors of L lanes from lane c on; the last one reaches back if lanes may be covered twice.
/// Returns the first lane left over.
template <int L, bool Twice, class F>
PG_INLINE int64_t for_vectors(int64_t n, int64_t c, F&& f) {
  const int64_t end = Twice && n >= L ? n : c + (n - c) / L * L;
  for (; c < end; c += L) f(Lane<L>{}, Lane<1>{}, Twice && c + L > n ? n - L : c);
  return end;
}

/// Calls f(Lane<L>, Lane<N>, c) so that n lanes are covered: N vectors of L lanes at a time, then
/// single vectors, quarters, lanes.
template <class T, bool Twice = false, class F>
PG_INLINE void for_lanes(int64_t n, F&& f) {
  constexpr int V = kLanes<T>;
  int64_t c = 0;
  for (; c + 4 * V <= n; c += 4 * V) f(Lane<V>{}, Lane<4>{}, c);
  c = for_vectors<V, Twice>(n, c, f);
  if constexpr (V >= 8) c = for_vectors<V / 4, Twice>(n, c, f);
  for (; c < n; ++c) f(Lane<1>{}, Lane<1>{}, c);
}

// ---- values

template <class T>
PG_INLINE Wide<T> lowest() {
  if constexpr (std::is_same_v<T, f16>) return -65504.0f;
  else if constexpr (std::is_same_v<T, bf16>) return -0x1.fep127f;
  else return std::numeric_limits<T>::lowest();
}

template <class T>
PG_INLINE Wide<T> minus_infinity() {
  if constexpr (is_real<T>) return -std::numeric_limits<Wide<T>>::infinity();
  else return std::numeric_limits<T>::lowest();
}

/// The bits of infinity.
template <class T>
constexpr auto infinity_bits() {
  using U = typename UintOf<sizeof(T)>::type;
  if constexpr (is_half<T>) return static_cast<U>(std::is_same_v<T, f16> ? 0x7C00 : 0x7F80);
  else return std::bit_cast<U>(std::numeric_limits<T>::infinity());
}

/// A number rounded to T.
template <class T>
PG_INLINE Wide<T> as(double value) {
  if constexpr (is_half<T>) return rounded<T, 1>(Vec<float, 1>{static_cast<float>(value)})[0];
  else return static_cast<T>(value);
}

}  // namespace poolgrad::PG_ISA
