// Element types, and the enums by which the caller picks a rule.
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

/// Windows of more cells are summed in a wider type, in any order, except where the rule is strict.
constexpr int64_t kLongSum = 64;

/// How a fold turns a sum into a result.
enum class Mean : int {
  counted,  ///< divide by the count, which stops growing where the type runs out of digits
  exact,    ///< divide by the count rounded to the type
  wide,     ///< sum in 64-bit integers, divide toward zero
  strict,   ///< as exact, however long the window
  total,    ///< the sum itself; halves are summed in float64 and rounded once
  once,     ///< as exact; halves are summed in float64 and rounded once
};

/// How a transposed fold weighs a source cell.
enum class Share : int {
  reciprocal,        ///< multiply by 1/count, computed in float64, rounded to the type
  short_reciprocal,  ///< multiply by 1/count, computed in float32, rounded to the type
  quotient,          ///< add cell/count in float64, round at the end
  whole,             ///< add the cell itself; halves in float64, rounded at the end
};

/// What a window's maximum starts from.
enum class Start : int {
  first,     ///< its first cell, NaN or not
  lowest,    ///< the lowest finite value
  infinity,  ///< minus infinity; the lowest finite value where the window was cut at an edge
};

}  // namespace poolgrad
