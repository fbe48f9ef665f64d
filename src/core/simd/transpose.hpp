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

/// Set out[i][j] = in[j][i] for a square of L x L elements. Rows are `from` and `to` elements
/// apart.
template <class T>
PG_INLINE void transpose_square(const T* in, int64_t from, T* out, int64_t to) {
  using U = typename UintOf<sizeof(T)>::type;
  constexpr int L = kSquare<T>;
  using V = Vec<U, L>;
  using Order = std::make_integer_sequence<int, L>;
  V a[L], b[L];
  for (int i = 0; i < L; ++i) std::memcpy(&a[i], in + i * from, sizeof(V));
#pragma GCC unroll 8
  for (int step = 1; step < L; step *= 2) {
    for (int i = 0; i < L / 2; ++i) {
      b[2 * i] = interleave_halves<0>(a[i], a[i + L / 2], Order{});
      b[2 * i + 1] = interleave_halves<1>(a[i], a[i + L / 2], Order{});
    }
    for (int i = 0; i < L; ++i) a[i] = b[i];
  }
  for (int i = 0; i < L; ++i) std::memcpy(out + i * to, &a[i], sizeof(V));
}

/// Set out[c][r] = in[r][c] for `rows` rows of `cols` elements.
template <class T>
void transpose(const T* in, int64_t from, int64_t rows, int64_t cols, T* out, int64_t to) {
  constexpr int L = kSquare<T>;
  int64_t r = 0;
  for (; r + L <= rows; r += L) {
    int64_t c = 0;
    for (; c + L <= cols; c += L) transpose_square(in + r * from + c, from, out + c * to + r, to);
    for (; c < cols; ++c)
      for (int64_t i = 0; i < L; ++i) out[c * to + r + i] = in[(r + i) * from + c];
  }
  for (; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) out[c * to + r] = in[r * from + c];
}

}  // namespace poolgrad::PG_ISA
