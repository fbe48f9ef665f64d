// Sums, maxima or minima of the windows of a row, from those of its columns: of integers, which may
// be joined in any order.
//
//   columns   a b c d e f g h      windows of 3 cells, stride 1
//   pairs     ab bc cd de ef fg gh      the row joined with itself, shifted by 1, then by 2, 4, ...
//   results   abc bcd cde def ...       a length is a sum of powers of two: join those
#pragma once
#include <bit>

#include "api/boxes.hpp"

namespace poolgrad {

/// Call f(range) for stretches of the last axis whose rows stay in the first cache: a 128th of a
/// box in cells, so that tests which shorten boxes shorten these, too. Both sides of a cut compute
/// the columns that windows share.
template <class F>
void in_stretches_of_rows(const Plan& plan, Piece p, F&& f) {
  constexpr int64_t kTimesShared = 8;
  const int64_t stretch = box_bytes() / 128;
  const bool along_piece = plan.rank == 1;
  const Axis& last = plan.last();
  const int64_t begin = along_piece ? p.h0 : 0, end = along_piece ? p.h1 : last.m,
                step = std::max<int64_t>(last.n / std::max<int64_t>(last.m, 1), 1),
                cells =
                    std::max(stretch / (step * plan.inner), kTimesShared * last.widest / step) + 1,
                parts = std::max<int64_t>((end - begin + cells - 1) / cells, 1);
  for (int64_t k = 0; k < parts; ++k) {
    const int64_t j0 = begin + (end - begin) * k / parts,
                  j1 = begin + (end - begin) * (k + 1) / parts;
    if (j0 < j1) f(BoxRange{j0, j1, last.start[j0], last.stop[j1 - 1]});
  }
}

/// The results of a range of windows along the last axis, of cells of so many bytes.
class RowFolds {
 public:
  RowFolds(const Axis& axis, int64_t inner, BoxRange range, const RowLoops& loops, int64_t bytes)
      : axis_(axis),
        inner_(inner),
        range_(range),
        loops_(loops),
        bytes_(bytes),
        size_((range.s1 - range.s0) * inner * bytes),
        first_(range.j0),
        last_(range.j0),
        scratch_(size_ * (2 + levels(axis.widest))) {
    if (axis.period != 1 || axis.step < 1) return;
    first_ = std::clamp(axis.lo, range.j0, range.j1);
    last_ = std::clamp(axis.hi, first_, range.j1);
    if (last_ - first_ < 2 || axis.length(first_) == 0) first_ = last_ = range.j0;
  }

  /// Set `to` = the joined columns of each window; `columns` begins at the first one.
  void run(const char* columns, char* to) const {
    for (int64_t j = range_.j0; j < range_.j1; ++j) {
      if (j == first_ && j < last_) {
        repeated(columns + place(axis_.start[j] - range_.s0), to + place(j - range_.j0));
        j = last_ - 1;
        continue;
      }
      loops_.join_cells(columns + place(axis_.start[j] - range_.s0), axis_.length(j), inner_,
                        to + place(j - range_.j0));
    }
  }

 private:
  static constexpr int kShort = 6;  ///< windows of up to so many cells join them one by one
  static constexpr int kLevels = 63;

  static int64_t levels(int64_t cells) {
    return static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(std::max<int64_t>(cells, 1))));
  }
  int64_t place(int64_t cells) const { return cells * inner_ * bytes_; }

  /// Join the cells of the windows that repeat.
  void repeated(const char* from, char* to) const {
    char* free = scratch_.get();
    const int64_t windows = last_ - first_;
    int64_t width = axis_.length(first_), step = axis_.step, cells = (windows - 1) * step + width;
    for (; inner_ == 1 && width % 2 == 0 && step % 2 == 0; width /= 2, step /= 2) {
      cells /= 2;
      loops_.join_pairs(from, free, cells);
      from = free;
      free += cells * bytes_;
    }
    const int64_t dense = ((windows - 1) * step + 1) * inner_;
    if (width == 1 && step > 1) return loops_.pick(from, to, windows, step, inner_);
    char* const dense_to = step == 1 ? to : free;
    if (step > 1) free += size_;
    const void* part[kLevels];
    int parts = 0;
    if (width <= kShort) {
      while (parts < width) part[parts] = from + place(parts), ++parts;
    } else {
      const char* level[kLevels] = {from};
      const int top = static_cast<int>(levels(width)) - 1;
      for (int b = 1; b <= top; ++b) {
        const int64_t half = int64_t{1} << (b - 1);
        const void* const both[] = {level[b - 1], level[b - 1] + place(half)};
        loops_.join(both, 2, free, (cells - 2 * half + 1) * inner_);
        level[b] = free;
        free += size_;
      }
      for (int64_t b = top, at = 0; b >= 0; --b)
        if (width >> b & 1) part[parts++] = level[b] + place(at), at += int64_t{1} << b;
    }
    loops_.join(part, parts, dense_to, dense);
    if (step > 1) loops_.pick(dense_to, to, windows, step, inner_);
  }

  const Axis& axis_;
  const int64_t inner_;
  const BoxRange range_;
  const RowLoops& loops_;
  const int64_t bytes_, size_;
  int64_t first_, last_;  ///< the windows that repeat
  const BoxMemory scratch_;
};

}  // namespace poolgrad
