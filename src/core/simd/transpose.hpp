// Transpose arrays, a square of registers at a time.
//
// Each round interleaves vector i with vector i + L / 2. After log2(L) rounds the square is
// transposed:
//
//   a0 a1 a2 a3      a0 c0 a1 c1      a0 b0 c0 d0
//   b0 b1 b2 b3  ->  a2 c2 a3 c3  ->  a1 b1 c1 d1
//   c0 c1 c2 c3      b0 d0 b1 d1      a2 b2 c2 d2
//   d0 d1 d2 d3      b2 d2 b3 d3      a3 b3 c3 d3
//
// L loads, L log2(L) shuffles and L stores move L * L elements. Source: the perfect shuffle, H. S.
// Stone, "Parallel Processing with the Perfect Shuffle", IEEE Trans. Computers C-20 (1971).
#pragma once
#include "simd/interleave.hpp"

namespace poolgrad::PG_ISA {

/// The side of the square that fits the registers.
template <class T>
constexpr int kSquare = kBytes / static_cast<int>(sizeof(T)) < 16
                            ? kBytes / static_cast<int>(sizeof(T))
                            : 16;

/// Interleave the rows of a square until it is transposed.
template <class V, int L>
PG_INLINE void interleave_rounds(V (&a)[L]) {
  using Order = std::make_integer_sequence<int, L>;
  V b[L];
#pragma GCC unroll 8
  for (int step = 1; step < L; step *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < L / 2; ++i) {
      b[2 * i] = interleave_halves<0>(a[i], a[i + L / 2], Order{});
      b[2 * i + 1] = interleave_halves<1>(a[i], a[i + L / 2], Order{});
    }
#pragma GCC unroll 16
    for (int i = 0; i < L; ++i) a[i] = b[i];
  }
}

/// Set out[i][j] = in[j][i] for a square of L x L elements. Rows are `from` and `to` elements
/// apart.
template <class T>
PG_INLINE void transpose_square(const T* in, int64_t from, T* out, int64_t to) {
  constexpr int L = kSquare<T>;
  Vec<typename UintOf<sizeof(T)>::type, L> a[L];
#pragma GCC unroll 16
  for (int i = 0; i < L; ++i) std::memcpy(&a[i], in + i * from, sizeof a[i]);
  interleave_rounds(a);
#pragma GCC unroll 16
  for (int i = 0; i < L; ++i) std::memcpy(out + i * to, &a[i], sizeof a[i]);
}

#if defined(__AVX512BW__) && defined(__AVX512VL__)
/// Load the first `count` elements of a row as bits; zeros follow.
template <int L, class T>
PG_INLINE auto load_first(const T* p, int64_t count) {
  using V = Vec<typename UintOf<sizeof(T)>::type, L>;
  const auto mask = (1u << count) - 1;
  if constexpr (sizeof(V) == 64 && sizeof(T) == 8)
    return bitcast<V>(_mm512_maskz_loadu_epi64(static_cast<__mmask8>(mask), p));
  else if constexpr (sizeof(V) == 64)
    return bitcast<V>(_mm512_maskz_loadu_epi32(static_cast<__mmask16>(mask), p));
  else if constexpr (sizeof(V) == 32)
    return bitcast<V>(_mm256_maskz_loadu_epi16(static_cast<__mmask16>(mask), p));
  else return bitcast<V>(_mm_maskz_loadu_epi8(static_cast<__mmask16>(mask), p));
}
template <int L, class T, class V>
PG_INLINE void store_first(T* p, V v, int64_t count) {
  const auto mask = (1u << count) - 1;
  if constexpr (sizeof(V) == 64 && sizeof(T) == 8)
    _mm512_mask_storeu_epi64(p, static_cast<__mmask8>(mask), bitcast<__m512i>(v));
  else if constexpr (sizeof(V) == 64)
    _mm512_mask_storeu_epi32(p, static_cast<__mmask16>(mask), bitcast<__m512i>(v));
  else if constexpr (sizeof(V) == 32)
    _mm256_mask_storeu_epi16(p, static_cast<__mmask16>(mask), bitcast<__m256i>(v));
  else _mm_mask_storeu_epi8(p, static_cast<__mmask16>(mask), bitcast<__m128i>(v));
}
#endif

/// Do the same for `rows` x `cols` elements of a square.
template <class T>
[[gnu::noinline]] void transpose_part(const T* in, int64_t from, int64_t rows, int64_t cols, T* out,
                                      int64_t to) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  constexpr int L = kSquare<T>;
  Vec<typename UintOf<sizeof(T)>::type, L> a[L] = {};
#pragma GCC unroll 16
  for (int i = 0; i < L; ++i)
    if (i < rows) a[i] = load_first<L>(in + i * from, cols);
  interleave_rounds(a);
#pragma GCC unroll 16
  for (int i = 0; i < L; ++i)
    if (i < cols) store_first<L>(out + i * to, a[i], rows);
#else
  for (int64_t c = 0; c < cols; ++c)
    for (int64_t r = 0; r < rows; ++r) out[c * to + r] = in[r * from + c];
#endif
}

/// Set out[c][r] = in[r][c] for `rows` rows of `cols` elements. The last squares reach back and
/// move elements again.
template <class T>
void transpose(const T* in, int64_t from, int64_t rows, int64_t cols, T* out, int64_t to) {
  constexpr int64_t L = kSquare<T>;
  const auto each = [](int64_t count, auto&& f) PG_LAMBDA {
    for (int64_t k = 0; k < count; k += L)
      if (count < L) f(k, count);
      else f(k + L > count ? count - L : k, L);
  };
  each(rows, [&](int64_t r, int64_t height) PG_LAMBDA {
    each(cols, [&](int64_t c, int64_t width) PG_LAMBDA {
      if (height == L && width == L)
        transpose_square(in + r * from + c, from, out + c * to + r, to);
      else transpose_part(in + r * from + c, from, height, width, out + c * to + r, to);
    });
  });
}

}  // namespace poolgrad::PG_ISA
