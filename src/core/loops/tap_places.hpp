// Find the source cell of a tap. A window is a box, so one division per axis is enough:
//
//   tap = (row of the window) * width + column
//
// Divisors are window lengths up to 65,536, so a multiplication by a rounded-up reciprocal and a
// shift divide exactly. Source: T. Granlund, P. L. Montgomery, "Division by invariant integers
// using multiplication", PLDI 1994.
#pragma once
#include "loops/when.hpp"

namespace poolgrad::PG_ISA {

/// Compute offsets of taps: for one destination row after the other, or for several small items
/// together. Other threads may write the taps meanwhile: each tap is read once and checked.
template <class Tap>
class TapPlaces {
 public:
  explicit TapPlaces(const Plan& plan) : TapPlaces(plan, false, Piece{0, 0, 0, plan.axis[0].m}) {}
  /// With `entire_items`, every piece is made of complete items. One-axis plans tabulate only the
  /// cells of the piece.
  TapPlaces(const Plan& plan, bool entire_items, Piece p)
      : plan_(plan),
        j0_(plan.rank == 1 ? p.h0 : 0),
        j1_(plan.rank == 1 ? p.h1 : plan.last().m),
        budget_(step_budget()),
        row_lanes_(plan.last().m * plan.inner),
        item_lanes_(row_lanes_ * plan.rows_per_item()),
        size_(plan.axis[0].n * plan.source_slab()),
        fast_(divides_fast()),
        by_lane_(plan.inner < kByLane),
        items_(entire_items && fast_ && by_lane_ && item_lanes_ <= kWhole &&
                       size_ <= INT32_MAX / kRun
                   ? at_once()
                   : 0),
        lanes_(!fast_     ? 0
               : items_   ? items_ * item_lanes_
               : by_lane_ ? (j1_ - j0_) * plan.inner
                          : j1_ - j0_),
        from_(lanes_ + kBlock),
        skip_(lanes_ * levels() + kBlock),
        factor_(lanes_ * levels() + kBlock),
        rows_(items_ ? lanes_ + kBlock : 1) {
    for (int64_t k = 0; k < kBlock; ++k) {  // lanes behind the last, whose results are ignored
      from_[lanes_ + k] = 0;
      skip_[lanes_ * levels() + k] = 0;
      factor_[lanes_ * levels() + k] = 0;
      rows_[items_ ? lanes_ + k : 0] = 1;
    }
    int64_t k = 0;
    for (int64_t i = 0; i < items_; ++i)
      for (int64_t u = 0; u < plan.rows_per_item(); ++u) {
        seek(u);
        k = tabulate(k, i * size_ + base_);
      }
    if (!items_ && fast_) tabulate(0, 0);
  }

  /// Return how many items are computed together; 0 if rows are computed one by one.
  int64_t items() const { return items_; }
  /// Return true if it is known that no window is empty.
  bool no_window_is_empty() const { return fast_; }

  /// Move to destination row u of an item.
  [[gnu::noinline]] void seek(int64_t u) {
    int64_t stride = plan_.last().n * plan_.inner;
    base_ = 0;
    count_ = 1;
    for (int a = plan_.rank - 2; a >= 0; --a) {
      const Axis& axis = plan_.axis[a];
      const int64_t j = u % axis.m, length = axis.length(j);
      u /= axis.m;
      base_ += axis.from(j) * stride;
      count_ *= length;
      level_[a] = {length, stride, fast_ ? static_cast<int32_t>((axis.n - length) * stride) : 0,
                   fast_ && a > 0 ? factor(length) : 0};
      stride *= axis.n;
    }
    if (!items_) rows_[0] = static_cast<Number>(count_);
  }

  /// Call f(lane, element offset) for lanes [begin, end) of this row, or of the items. Return -1,
  /// or the lane of the first tap outside its window; for items, a lane at or before it. Empty
  /// windows have no taps to check.
  template <class F>
  PG_INLINE int64_t each(const Tap* taps, int64_t begin, int64_t end, F&& f) {
    const int64_t base = items_ ? 0 : base_;
    for (int64_t lane = begin; lane < end; lane += kRun) {
      const int64_t count = read_taps(taps, lane, end);
      if (fast_ && find(lane, count))
        for (int64_t k = 0; k < count; ++k) f(lane + k, base + place_[k]);
      else if (const int64_t wrong = items_ ? lane : follow_checked(lane, count, f); wrong >= 0)
        return wrong;
    }
    return -1;
  }

  /// Do the same tap by tap, for lanes of this row.
  template <class F>
  int64_t each_slowly(const Tap* taps, int64_t begin, int64_t end, F&& f) {
    int64_t wrong = -1;
    for (int64_t lane = begin; lane < end && wrong < 0; lane += kRun)
      wrong = follow_checked(lane, read_taps(taps, lane, end), f);
    return wrong;
  }

 private:
  using Number = std::conditional_t<sizeof(Tap) == 1, uint32_t, uint64_t>;
  static constexpr int kShift = sizeof(Tap) == 1 ? 16 : 32;
  static constexpr int64_t kMost =
      sizeof(Tap) == 1 ? 256 : 65536;  // up to this, a product and a shift divide exactly
  static constexpr int64_t kRun = 512, kBlock = 16, kWhole = 8192, kByLane = 16;

  struct Level {
    int64_t length, stride;
    int32_t
        skip;  // from the end of a window row to the start of its next row along the axis before
    Number factor;
  };

  static Number factor(int64_t by) {
    return ((Number{1} << kShift) + static_cast<Number>(by) - 1) / static_cast<Number>(by);
  }

  /// Return true if no window is empty or too large, and offsets fit 32 bits.
  bool divides_fast() const {
    bool may = !plan_.plain && most_taps(plan_) <= kMost && size_ <= INT32_MAX && item_lanes_ > 0;
    for (int a = 0; may && a + 1 < plan_.rank; ++a) may = !has_empty_window(plan_.axis[a]);
    return may && !has_empty_window(plan_.last(), j0_, j1_);
  }
  int64_t at_once() const {
    const int64_t some = (kRun + item_lanes_ - 1) / item_lanes_;
    return some < plan_.outer ? some : plan_.outer;
  }
  /// Fill the tables with the lanes, or the cells, of a row from k on.
  int64_t tabulate(int64_t k, int64_t base) {
    const Axis& last = plan_.last();
    for (int64_t j = j0_; j < j1_; ++j)
      for (int64_t c = 0; c < (by_lane_ ? plan_.inner : 1); ++c, ++k) {
        from_[k] = static_cast<int32_t>(base + last.from(j) * plan_.inner + c);
        skip_[k] = static_cast<int32_t>((last.n - last.length(j)) * plan_.inner);
        factor_[k] = c ? factor_[k - 1] : factor(last.length(j));
        if (items_) rows_[k] = static_cast<Number>(count_);
        for (int a = 1; a < levels(); ++a)
          skip_[a * lanes_ + k] = level_[a].skip, factor_[a * lanes_ + k] = level_[a].factor;
      }
    return k;
  }
  /// Count the tables: one for the last axis, and one per axis between it and the first.
  int levels() const { return items_ && plan_.rank > 2 ? plan_.rank - 1 : 1; }

  /// Compute the offsets of taps relative to the base; return false if one is outside its window.
  /// Works in whole blocks: surplus lanes have tap 0.
  [[gnu::noinline]] bool find(int64_t lane, int64_t taps) {
    const int64_t count = (taps + kBlock - 1) / kBlock * kBlock;
    if (items_)
      return divide_last_axis<true, true>(taps_, count, &from_[lane], &skip_[lane], &factor_[lane],
                                          &rows_[lane], place_, row_) &&
             divide_outer_axes<true>(lane, count);
    bool inside = true;
    lane -= j0_ * plan_.inner;
    if (by_lane_)
      inside = divide_last_axis<true, false>(taps_, count, &from_[lane], &skip_[lane],
                                             &factor_[lane], &rows_[0], place_, row_);
    else
      for (int64_t k = 0, now; k < taps; k += now) {
        const int64_t j = (lane + k) / plan_.inner, c = (lane + k) % plan_.inner;
        const int32_t from = static_cast<int32_t>(from_[j] + c);
        now = plan_.inner - c < taps - k ? plan_.inner - c : taps - k;
        inside &= divide_last_axis<false, false>(taps_ + k, now, &from, &skip_[j], &factor_[j],
                                                 &rows_[0], place_ + k, row_ + k);
      }
    return inside && divide_outer_axes<false>(0, by_lane_ ? count : taps);
  }

  /// Divide along the last axis: the offset of each tap, and its row within the window. Lanes
  /// belong to any cells (`Lanes`), or to one cell.
  template <bool Lanes, bool Items>
  PG_INLINE bool divide_last_axis(const Tap* __restrict taps, int64_t count,
                                  const int32_t* __restrict from, const int32_t* __restrict skip,
                                  const Number* __restrict by, const Number* __restrict rows,
                                  int32_t* __restrict place, Number* __restrict row) const {
    const int32_t inner = static_cast<int32_t>(plan_.inner);
    int outside = 0;
    for (int64_t k = 0; k < count; ++k) {
      const int64_t t = Lanes ? k : 0;
      const Number tap = taps[k], r = tap * by[t] >> kShift;
      place[k] = from[t] + static_cast<int32_t>(k - t) + static_cast<int32_t>(tap) * inner +
                 static_cast<int32_t>(r) * skip[t];
      row[k] = r;
      outside |= r >= rows[Items ? k : 0];
    }
    return !outside;
  }

  /// Divide along the axes between the first and the last.
  template <bool Items>
  PG_INLINE bool divide_outer_axes(int64_t lane, int64_t count) {
    for (int a = plan_.rank - 2; a > 0; --a) {
      const Number* const by = Items ? &factor_[a * lanes_ + lane] : &level_[a].factor;
      const int32_t* const skip = Items ? &skip_[a * lanes_ + lane] : &level_[a].skip;
      for (int64_t k = 0; k < count; ++k) {
        row_[k] = row_[k] * by[Items ? k : 0] >> kShift;
        place_[k] += static_cast<int32_t>(row_[k]) * skip[Items ? k : 0];
      }
    }
    return true;
  }

  /// Copy some taps.
  [[gnu::noinline]] int64_t read_taps(const Tap* taps, int64_t lane, int64_t end) {
    const int64_t count = end - lane < kRun ? end - lane : kRun;
    checkpoint(budget_, count);
    std::memcpy(taps_, taps + lane, static_cast<size_t>(count) * sizeof(Tap));
    std::memset(taps_ + count, 0, kBlock * sizeof(Tap));
    return count;
  }

  template <class F>
  [[gnu::noinline]] int64_t follow_checked(int64_t lane, int64_t count, F& f) const {
    for (int64_t k = 0; k < count; ++k) {
      const int64_t at = lane + k, j = at / plan_.inner, width = plan_.last().length(j);
      if (count_ * width == 0) continue;
      if (static_cast<uint64_t>(taps_[k]) >= static_cast<uint64_t>(count_ * width)) return at;
      f(at, base_ + plan_.last().from(j) * plan_.inner + at % plan_.inner +
                offset(static_cast<int64_t>(taps_[k]), width));
    }
    return -1;
  }
  int64_t offset(int64_t tap, int64_t width) const {
    int64_t row = tap / width, at = tap % width * plan_.inner;
    for (int a = plan_.rank - 2; a >= 0; row /= level_[a--].length)
      at += row % level_[a].length * level_[a].stride;
    return at;
  }

  const Plan& plan_;
  const int64_t j0_, j1_;  // the range of cells of the last axis
  StepBudget& budget_;
  const int64_t row_lanes_, item_lanes_, size_;
  const bool fast_, by_lane_;
  const int64_t items_, lanes_;  // items computed together, or 0; lanes or cells in a table
  Scratch<int32_t> from_, skip_;
  Scratch<Number> factor_, rows_;
  int64_t base_ = 0,
          count_ = 1;  // the offset of the first window of the row; the rows of its windows
  Level level_[kMaxRank];
  Tap taps_[kRun + kBlock];
  int32_t place_[kRun];
  Number row_[kRun];
};

/// Call f(flat position of the tap, element offset in the source, the same in its item) for all
/// taps of a piece. Return the first position whose tap is outside its window, or -1.
template <class Tap, class F>
PG_INLINE int64_t follow(TapPlaces<Tap>& places, const Plan& plan, const Tap* taps, Piece p,
                         F&& f) {
  const int64_t per = plan.rows_per_slab(), row = plan.last().m * plan.inner,
                item = plan.rows_per_item() * row, size = plan.axis[0].n * plan.source_slab();
  const bool line = plan.rank == 1;
  int64_t i = p.i0;
  for (int64_t end; i < p.i1 && places.items(); i = end) {
    end = i + places.items() < p.i1 ? i + places.items() : p.i1;
    if (places.each(taps + i * item, 0, (end - i) * item,
                    [&](int64_t k, int64_t at) { f(i * item + k, i * size + at, at); }) >= 0)
      break;
  }
  for (; i < p.i1; ++i)  // row by row, or items with a tap outside its window
    for (int64_t u = line ? 0 : p.h0 * per; u < (line ? 1 : p.h1 * per); ++u) {
      const int64_t place = i * item + u * row, begin = line ? p.h0 * plan.inner : 0,
                    stop = line ? p.h1 * plan.inner : row;
      const auto put = [&](int64_t k, int64_t at) { f(place + k, i * size + at, at); };
      places.seek(u);
      const int64_t lane = places.items() ? places.each_slowly(taps + place, begin, stop, put)
                                          : places.each(taps + place, begin, stop, put);
      if (lane >= 0) return place + lane;
    }
  return -1;
}

}  // namespace poolgrad::PG_ISA
