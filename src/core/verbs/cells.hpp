// Loops over cells, one table of functions per element type. They change the cells of a box
// (api/boxes.hpp) before a verb reads them, and its results. A null entry means that the type lacks
// the loop.
#pragma once
#include "plan/dtype.hpp"

namespace poolgrad {

/// The way in which an integer result is rounded.
enum class Rounding : int { nearest, floor, ceil, toward_zero };

/// The cells that a copy met.
struct NanFound {
  bool nan;    ///< some NaN
  bool clash;  ///< some number that equals the infinity that stands for NaN
};

/// The number of cells of each window that take part, and how a sum is divided by it.
struct Counts {
  const void* counts;        ///< bytes, or float64
  bool bytes;                ///< one byte each
  double extra;              ///< add this to each
  double all;                ///< the cells of the window
  const void* complete_mean;  ///< the results of windows that count all their cells, or null
};

/// The most rows that a loop adds at a time.
constexpr int kRowsTogether = 8;

/// Loops that join cells: by addition, to the largest or to the least of them.
struct RowLoops {
  /// Set to = `count` arrays of n cells, joined.
  void (*join)(const void* const* from, int count, void* to, int64_t n);
  /// Set to = n pairs of neighbours, joined.
  void (*join_pairs)(const void* from, void* to, int64_t n);
  /// Set to = so many cells, of `inner` elements each, joined.
  void (*join_cells)(const void* from, int64_t cells, int64_t inner, void* to);
  /// Copy n cells of `inner` elements: every step-th.
  void (*pick)(const void* from, void* to, int64_t n, int64_t step, int64_t inner);
};

/// The cells are of type T. Sums are of type S: T for floats; float32 for integers and, if `wide`,
/// for half types; float64 for integers if `wide`.
struct CellLoops {
  /// Copy n cells; with `flip`, -x of floats and ~x of integers. Return true if none is NaN.
  bool (*copy)(const void* x, void* to, int64_t n, bool flip);

  // ---- floats

  /// Do the same; NaN becomes the largest value, plus infinity (`top`), or the least.
  NanFound (*replace_nan)(const void* x, void* to, int64_t n, bool flip, bool top);
  /// Copy n results, perhaps flipped; that infinity becomes NaN.
  void (*restore_nan)(const void* x, void* to, int64_t n, bool flip, bool top);
  /// Set keys, integers as wide as T, in the order of x: both zeros are equal, NaN is the largest
  /// (`top`) or the least.
  void (*rank)(const void* x, void* keys, int64_t n, bool top);

  /// Set to = x^2 or |x|, in float32 for half types. Return true if the square of a cell other than
  /// 0 is 0.
  bool (*powers)(const void* x, void* to, int64_t n, bool squares);
  /// Set y = the root of each sum, or the sum. Return false if a sum is infinite, below `small` but
  /// not 0, or 0 although squares `vanished`.
  bool (*roots)(const void* sums, void* y, int64_t n, bool squares, double small, bool vanished);

  // ---- sums

  /// Copy cells as terms of a sum, exactly if S holds them. With `mask` (floats), NaN becomes 0, and the mask is 1 for
  /// numbers: bytes, or float64. Return true if none is NaN.
  bool (*terms)(const void* x, void* to, int64_t n, bool wide, void* mask, bool bytes);
  /// Set to = the sum of n cells of each of `plus` rows, less that of each of the `minus` rows behind
  /// them, or add it (`more`). `rows` has at most kRowsTogether rows. Integers of at most 32 bits; the
  /// sums are of type u16 (for cells of 8 bits, modulo 2^16), i32 (8 and 16 bits) or f64 (32 bits).
  void (*add_rows)(const void* const* rows, int plus, int minus, void* to, int64_t n, Dtype sum,
                   bool more);
  /// Return the sum of at most 2^16 cells. Integers of at most 32 bits.
  int64_t (*total)(const void* x, int64_t n);
  /// Set y = sum / by, rounded, for sums of type u16 of cells of 8 bits. 1 <= by <= 256; for int8, no
  /// window has more than `by` cells. Return false if T does not hold a result. Null for other types.
  bool (*settle_bytes)(const void* sums, void* y, int64_t n, int64_t by, Rounding);
  /// Set y = sum / by, in S (not `wide`, but float32 for half types), rounded to T. Floats.
  void (*divide)(const void* sums, void* y, int64_t n, double by);
  /// Do the same with a divisor for each. Floats.
  void (*divide_each)(const void* sums, void* y, int64_t n, const Counts& by);
  /// Set y = sum / by, divided in float64 and rounded once to T; sums are float64 if `wide`, else
  /// float32. Return false if T does not hold a result. Null for half types.
  bool (*settle)(const void* sums, bool wide, void* y, int64_t n, double by, Rounding);

  // ---- windows of a row (api/row_folds.hpp)

  RowLoops sums;            ///< of type u16, i32 and f64
  RowLoops largest, least;  ///< integers of 8 and 16 bits; one inner element
};

using CellTable = const CellLoops* (*)(Dtype);

const CellLoops* cells_baseline(Dtype);
#if defined(PG_X86)
const CellLoops* cells_v3(Dtype);
const CellLoops* cells_v4(Dtype);
#endif

}  // namespace poolgrad
