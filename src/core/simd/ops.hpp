// Operations on vectors of cells: maximum, comparison of taps, load, store, loops over lanes.
#pragma once
#include <cmath>

#include "simd/half.hpp"

namespace poolgrad::PG_ISA {

/// Return v where v > best, else best: NaN never replaces. GCC 12 would compare and blend.
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

/// Remember if some lane of some vector was NaN.
template <class W, int L>
class NanSeen {
 public:
  /// Look at two vectors: an unordered comparison finds NaN in either.
  PG_INLINE void add(Vec<W, L> a, Vec<W, L> b) {
#if defined(__AVX512F__)
    if constexpr (std::is_same_v<W, float> && L == 16) {
      mask_ |= _mm512_cmp_ps_mask(bitcast<__m512>(a), bitcast<__m512>(b), _CMP_UNORD_Q);
      return;
    }
    if constexpr (std::is_same_v<W, double> && L == 8) {
      mask_ |= _mm512_cmp_pd_mask(bitcast<__m512d>(a), bitcast<__m512d>(b), _CMP_UNORD_Q);
      return;
    }
#endif
    lanes_ |= bitcast<Bits>(a != a) | bitcast<Bits>(b != b);
  }
  PG_INLINE bool some() const { return mask_ != 0 || any<sizeof(Bits)>(lanes_); }

 private:
  using Bits = Vec<uint64_t, static_cast<int>(sizeof(W)) * L / 8>;
  Bits lanes_{};
  uint32_t mask_ = 0;
};

/// Return v where the tap equals `tap`, else 0.
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

/// Return the rounded square roots.
template <class W, int L>
PG_INLINE Vec<W, L> square_root(Vec<W, L> v) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<W, float> && L == 16)
    return bitcast<Vec<W, L>>(_mm512_maskz_sqrt_ps(0xffff, bitcast<__m512>(v)));
  if constexpr (std::is_same_v<W, double> && L == 8)
    return bitcast<Vec<W, L>>(_mm512_maskz_sqrt_pd(0xff, bitcast<__m512d>(v)));
#endif
#if defined(__AVX__)
  if constexpr (std::is_same_v<W, float> && L == 8)
    return bitcast<Vec<W, L>>(_mm256_sqrt_ps(bitcast<__m256>(v)));
  if constexpr (std::is_same_v<W, double> && L == 4)
    return bitcast<Vec<W, L>>(_mm256_sqrt_pd(bitcast<__m256d>(v)));
#endif
  for (int k = 0; k < L; ++k) v[k] = std::sqrt(v[k]);
  return v;
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

/// Write a part of a vector; kept out of the hot code.
template <class T>
[[gnu::noinline, gnu::cold]] void store_part(T* to, const T* from, int64_t count) {
  if (count > 0) std::memcpy(static_cast<void*>(to), from, static_cast<size_t>(count) * sizeof(T));
}

/// Write a vector to a row that ends after `room` cells. It may overwrite memory behind the row, up
/// to `limit`, which is written later.
template <class T>
PG_INLINE void store_within(T* to, Vec<Wide<T>, kLanes<T>> v, int64_t room, const T* limit) {
  constexpr int V = kLanes<T>;
  if (limit - to >= V) return store<V>(to, v);
  T rest[V];
  store<V>(rest, v);
  store_part<T>(to, rest, room < V ? room : V);
}

/// Write the last `rest` cells of a row, less than a vector, in the same way. A shorter store
/// crosses fewer cache lines.
template <class T>
PG_INLINE void store_rest(T* to, Vec<Wide<T>, kLanes<T>> v, int64_t rest, const T* limit) {
  constexpr int V = kLanes<T>;
  if (limit - to < V) return store_within<T>(to, v, rest, limit);
  if constexpr (V >= 4) {
    if (rest <= V / 4) return store<V / 4>(to, first_bytes<Vec<Wide<T>, V / 4>>(v));
    if (rest <= V / 2) return store<V / 2>(to, first_bytes<Vec<Wide<T>, V / 2>>(v));
  }
  store<V>(to, v);
}

/// Call f for vectors of L lanes from lane c on. If `Twice`, the last vector reaches back and
/// covers lanes again. Return the first lane that is left.
template <int L, bool Twice, class F>
PG_INLINE int64_t for_vectors(int64_t n, int64_t c, F&& f) {
  const int64_t end = Twice && n >= L ? n : c + (n - c) / L * L;
  for (; c < end; c += L) f(Lane<L>{}, Lane<1>{}, Twice && c + L > n ? n - L : c);
  return end;
}

/// Call f(Lane<L>, Lane<N>, c) until n lanes are covered: N vectors of L lanes at a time, then
/// single vectors, quarter vectors, single lanes.
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

/// Return the bits of infinity.
template <class T>
constexpr auto infinity_bits() {
  using U = typename UintOf<sizeof(T)>::type;
  if constexpr (is_half<T>) return static_cast<U>(std::is_same_v<T, f16> ? 0x7C00 : 0x7F80);
  else return std::bit_cast<U>(std::numeric_limits<T>::infinity());
}

/// Round a number to T.
template <class T>
PG_INLINE Wide<T> as(double value) {
  if constexpr (is_half<T>) return rounded<T, 1>(Vec<float, 1>{static_cast<float>(value)})[0];
  else return static_cast<T>(value);
}

}  // namespace poolgrad::PG_ISA
