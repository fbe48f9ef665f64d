// Element types, and the rules that a caller chooses.
#pragma once
#include <cstdint>

namespace poolgrad {

struct f16 {
  uint16_t bits;
};
struct bf16 {
  uint16_t bits;
};

enum class Dtype : int { f16, bf16, f32, f64, i8, u8, i16, u16, i32, u32, i64, u64, count };

/// Return the bytes of a cell.
constexpr int64_t item_bytes(Dtype dtype) {
  constexpr int64_t bytes[] = {2, 2, 4, 8, 1, 1, 2, 2, 4, 4, 8, 8};
  return bytes[static_cast<int>(dtype)];
}

/// Longer windows are summed in float64, in any order, unless the rule is `strict`.
constexpr int64_t kLongSum = 64;

/// The rule by which fold turns a sum into a result.
enum class Mean : int {
  counted,        ///< divide by the count, capped at the largest integer that T counts up to
  exact,          ///< divide by the count, rounded to T
  wide,           ///< sum in 64-bit integers, divide toward zero
  strict,         ///< like `exact`, and add tap after tap however long the window is
  total,          ///< do not divide; sum half types in float64 and round once
  once,           ///< like `exact`; sum half types in float64 and round once
  spanned,        ///< like `once`, and divide by the cells before an edge cut the window
  short_spanned,  ///< `spanned` in float32, for halves and short windows; no caller can name it
};

/// Return true if a rule has a meaning for a dtype. Integers are not divided, or divided toward
/// zero by a count that fits: `strict` counts in the dtype itself, where 8 and 16 bits are too few.
constexpr bool takes_mean(Dtype dtype, Mean mean) {
  if (dtype <= Dtype::f64) return mean != Mean::wide;
  return mean == Mean::wide || mean == Mean::total || (mean == Mean::strict && dtype >= Dtype::i32);
}

/// The rule by which spread weighs a cell of the gradient.
enum class Share : int {
  reciprocal,        ///< multiply by 1/count, computed in float64 and rounded to T
  short_reciprocal,  ///< multiply by 1/count, computed in float32 and rounded to T
  quotient,          ///< add cell/count in float64, round the sum
  whole,             ///< add the cell itself; sum half types in float64, round the sum
};

/// The value that a maximum starts from.
enum class Start : int {
  first,     ///< the first cell of the window, NaN or not
  lowest,    ///< the lowest finite value
  infinity,  ///< minus infinity, but the lowest finite value if an edge cut the window
};

/// The rule for NaN. propagate: a window with NaN gives NaN. ignore: only a window of NaN alone
/// does. tf: NaN never replaces the start value.
enum class NanRule : int { propagate, ignore, tf };

}  // namespace poolgrad
