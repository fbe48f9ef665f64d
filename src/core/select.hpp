// The best tap of each window, and what is done with it: kept, followed back, or followed forth.
#pragma once
#include "rows.hpp"

namespace poolgrad::PG_ISA {

template <class T>
PG_INLINE Wide<T> start_value(Start start, bool cut) {
  return start == Start::lowest || cut ? lowest<T>() : minus_infinity<T>();
}

/// Best value of a run of windows. A tap replaces the best so far only if it is greater: the first wins ties, NaN never replaces.
template <class T>
PG_INLINE void best_values(const Reach& w, const T* x, T* y, int64_t lanes, Start start) {
  const bool first = start == Start::first && w.nrows * w.width > 0;
  for_lanes<T>(lanes, [&](auto lane, int64_t c) {
    constexpr int L = decltype(lane)::count;
    Vec<Wide<T>, L> best = first ? load<L>(x + w.rows[0] + w.off[0] + c) : all<Wide<T>, L>(start_value<T>(start, w.cut));
    each_tap<false>(w, [&](int64_t r, int64_t t) {
      const Vec<Wide<T>, L> v = load<L>(x + w.rows[r] + w.off[t] + c);
      best = (best < v) ? v : best;
    });
    store<L>(y + c, best);
  });
}

/// Best value and its tap number; the first cell is taken whatever it is.
template <class T, class Tap>
PG_INLINE void best_taps(const Reach& w, const T* x, T* y, Tap* taps, int64_t lanes) {
  for_lanes<T>(lanes, [&](auto lane, int64_t c) {
    constexpr int L = decltype(lane)::count;
    Vec<Wide<T>, L> best = w.nrows * w.width > 0 ? load<L>(x + w.rows[0] + w.off[0] + c) : all<Wide<T>, L>(lowest<T>());
    Vec<Tap, L> tap{};
    Tap k = 0;
    each_tap<false>(w, [&](int64_t r, int64_t t) {
      const Vec<Wide<T>, L> v = load<L>(x + w.rows[r] + w.off[t] + c);
      const auto better = best < v;
      best = better ? v : best;
      using Mask = Vec<std::make_signed_t<Tap>, L>;
      const Mask mask = __builtin_convertvector(better, Mask);
      tap = mask ? all<Tap, L>(k) : tap;
      ++k;
    });
    if (y) store<L>(y + c, best);
    std::memcpy(taps + c, &tap, sizeof tap);
  });
}

template <class T>
void select_rows(const Plan& plan, const T* x, T* y, Start start, int64_t begin, int64_t end, int64_t j0, int64_t j1) {
  Rows rows(plan, false);
  RowRunner<T, 1, 0> runner(plan);
  Reach reach;
  const int64_t per = Rows::per_item(plan), out_row = plan.last().m * plan.inner;
  for (int64_t u = begin; u < end; ++u) {
    rows.seek(u % per, reach);
    runner.run(reach, {{x + u / per * rows.item()}, {}, y + u * out_row}, j0, j1,
               [&](const Reach& w, const auto& a, int64_t, int64_t lanes) { best_values<T>(w, a.source[0], a.out, lanes, start); });
  }
}

/// Row after row of taps, and where each tap is in the source.
template <class T, class Tap>
class TapRows {
 public:
  explicit TapRows(const Plan& plan)
      : plan_(plan), rows_(plan, false), runner_(plan), taps_(plan.last().m * plan.inner),
        jump_(table_size(plan)) {}

  /// Finds the taps of destination row u; y, if given, receives the values.
  void find(const T* x_item, int64_t u, T* y, int64_t j0, int64_t j1) {
    rows_.seek(u, reach_);
    width_ = -1;
    T* none = nullptr;
    runner_.run(reach_, {{x_item}, {}, y ? y : none}, j0, j1, [&](const Reach& w, const auto& a, int64_t at, int64_t lanes) {
      best_taps<T, Tap>(w, a.source[0], y ? a.out : nullptr, taps_.get() + at, lanes);
    });
  }

  /// Calls f(lane in the row, element offset in the item) for cells j0 to j1 - 1 of the row just found.
  template <class F>
  PG_INLINE void each(int64_t j0, int64_t j1, F&& f) {
    const Axis& axis = plan_.last();
    const int64_t inner = plan_.inner;
    for (int64_t j = j0; j < j1; ++j) {
      const int64_t width = axis.stop[j] - axis.start[j], base = axis.start[j] * inner;
      if (width * reach_.nrows == 0) continue;
      const Tap* taps = taps_.get() + j * inner;
      if (width * reach_.nrows > kTable) {
        for (int64_t c = 0; c < inner; ++c) f(j * inner + c, base + place(taps[c], width) + c);
        continue;
      }
      if (width != width_) tabulate(width);
      for (int64_t c = 0; c < inner; ++c) f(j * inner + c, base + jump_[static_cast<int64_t>(taps[c])] + c);
    }
  }

  const Rows& rows() const { return rows_; }

 private:
  static constexpr int64_t kTable = 4096;
  static int64_t table_size(const Plan& plan) {
    const int64_t most = Rows::capacity(plan) * plan.last().widest;
    return most < kTable ? most : kTable;
  }
  PG_INLINE int64_t place(Tap tap, int64_t width) const {
    const int64_t k = static_cast<int64_t>(tap);
    return reach_.rows[k / width] + k % width * plan_.inner;
  }
  void tabulate(int64_t width) {
    width_ = width;
    int64_t k = 0;
    for (int64_t r = 0; r < reach_.nrows; ++r)
      for (int64_t t = 0; t < width; ++t) jump_[k++] = reach_.rows[r] + t * plan_.inner;
  }

  const Plan& plan_;
  Rows rows_;
  RowRunner<T, 1, 0> runner_;
  Reach reach_;
  Scratch<Tap> taps_;
  Scratch<int64_t> jump_;
  int64_t width_ = -1;
};

/// Calls f(Tap{}) with the narrowest tap type that holds every tap of the plan.
template <class T, class F>
void with_tap_type(const Plan& plan, F&& f) {
  using Own = TapLane<T>;
  if constexpr (sizeof(Own) >= 4) f(Own{});
  else if (Rows::capacity(plan) * plan.last().widest <= static_cast<int64_t>(std::numeric_limits<Own>::max())) f(Own{});
  else f(uint32_t{});
}

/// Values and flat positions of the best taps; modulo keeps a position within its image.
template <class T, class Index>
void argmax_rows(const Plan& plan, const T* x, T* y, Index* index, int64_t modulo, int64_t begin, int64_t end, int64_t j0, int64_t j1) {
  with_tap_type<T>(plan, [&](auto tag) {
    TapRows<T, decltype(tag)> taps(plan);
    const int64_t per = Rows::per_item(plan), out_row = plan.last().m * plan.inner;
    for (int64_t u = begin; u < end; ++u) {
      const int64_t item = u / per * taps.rows().item();
      taps.find(x + item, u % per, y + u * out_row, j0, j1);
      Index* out = index + u * out_row;
      taps.each(j0, j1, [&](int64_t lane, int64_t at) { out[lane] = static_cast<Index>((item + at) % modulo); });
    }
  });
}

/// The destination rows whose windows touch source cells [h0, h1) of the first axis.
inline void touching(const Axis& axis, int64_t h0, int64_t h1, int64_t& first, int64_t& last) {
  first = 0;
  while (first < axis.m && axis.stop[first] <= h0) ++first;
  last = first;
  while (last < axis.m && axis.start[last] < h1) ++last;
}

template <class T>
PG_INLINE T sum_of(T a, T b) {
  if constexpr (is_half<T>) {
    T r;
    store<1>(&r, load<1>(&a) + load<1>(&b));
    return r;
  } else {
    return static_cast<T>(a + b);
  }
}

/// The smallest normal number: a forward pass that flushes subnormals may have returned 0 for anything smaller.
template <class T>
PG_INLINE Wide<T> smallest_normal() {
  if constexpr (std::is_same_v<T, f16>) return 0x1p-14f;
  else if constexpr (is_real<T>) return std::numeric_limits<Wide<T>>::min();
  else return 0;
}

/// Whether y is what a forward pass may have returned for a window whose best is `best`: equal, NaN for NaN, both too
/// small to tell, or the maximum that starts from the lowest finite value and ignores NaN.
template <class T>
bool agrees(T y, T best, const Reach& w, const T* x) {
  const Wide<T> got = load<1>(&y)[0], want = load<1>(&best)[0];
  if (got == want || (got != got && want != want)) return true;
  const Wide<T> tiny = smallest_normal<T>();
  if (is_real<T> && got < tiny && got > -tiny && want < tiny && want > -tiny) return true;
  T forward;
  best_values<T>(w, x, &forward, 1, Start::lowest);
  return got == load<1>(&forward)[0];
}

/// Items [i0, i1), source cells [h0, h1) of the first axis: dx = g put where x has its maxima. If y is given it must
/// be the pooled x; the first flat position where it is not is returned, else -1.
template <class T>
int64_t route_rows(const Plan& plan, const T* x, const T* y, const T* g, T* dx, int64_t i0, int64_t i1, int64_t h0, int64_t h1) {
  int64_t wrong = -1;
  with_tap_type<T>(plan, [&](auto tag) {
    TapRows<T, decltype(tag)> taps(plan);
    Rows rows(plan, false);
    Scratch<T> values(y ? plan.last().m * plan.inner : 0);
    const int64_t item = taps.rows().item(), per = Rows::per_item(plan), cells = plan.last().m;
    const int64_t slab = item / (plan.axis[0].n ? plan.axis[0].n : 1), lo = h0 * slab, size = (h1 - h0) * slab;
    const bool flat = plan.rank == 1;
    const int64_t per_slab = flat ? 1 : per / (plan.axis[0].m ? plan.axis[0].m : 1);
    int64_t first, last;
    touching(plan.axis[0], h0, h1, first, last);
    for (int64_t i = i0; i < i1; ++i) {
      T* out = dx + i * item;
      std::memset(static_cast<void*>(out + lo), 0, static_cast<size_t>(size) * sizeof(T));
      const int64_t u0 = flat ? 0 : first * per_slab, u1 = flat ? 1 : last * per_slab;
      const int64_t j0 = flat ? first : 0, j1 = flat ? last : cells;
      for (int64_t u = u0; u < u1; ++u) {
        const int64_t row = (i * per + u) * cells * plan.inner;
        taps.find(x + i * item, u, y ? values.get() : nullptr, j0, j1);
        if (y && wrong < 0) wrong = compare(plan, rows, x + i * item, y, values.get(), u, row, j0, j1);
        const T* from = g + row;
        taps.each(j0, j1, [&](int64_t lane, int64_t at) {
          if (static_cast<uint64_t>(at - lo) < static_cast<uint64_t>(size)) out[at] = sum_of(out[at], from[lane]);
        });
      }
    }
  });
  return wrong;
}

template <class T>
int64_t compare(const Plan& plan, Rows& rows, const T* x, const T* y, const T* values, int64_t u, int64_t row, int64_t j0, int64_t j1) {
  const Axis& axis = plan.last();
  for (int64_t j = j0; j < j1; ++j)
    for (int64_t lane = j * plan.inner; lane < (j + 1) * plan.inner; ++lane) {
      if (load<1>(y + row + lane)[0] == load<1>(values + lane)[0]) continue;
      Reach w;
      rows.seek(u, w);
      w.off = Offsets{nullptr, plan.inner};
      w.width = axis.stop[j] - axis.start[j];
      if (!agrees(y[row + lane], values[lane], w, x + axis.start[j] * plan.inner + lane % plan.inner)) return row + lane;
    }
  return -1;
}

/// out[i] = v at the first tap of window i where x equals y[i], 0 if there is none.
template <class T>
void recall_rows(const Plan& plan, const T* x, const T* y, const T* v, T* out, int64_t begin, int64_t end, int64_t j0, int64_t j1) {
  Rows rows(plan, false);
  RowRunner<T, 2, 1> runner(plan);
  Reach reach;
  const int64_t per = Rows::per_item(plan), out_row = plan.last().m * plan.inner;
  for (int64_t u = begin; u < end; ++u) {
    rows.seek(u % per, reach);
    const int64_t item = u / per * rows.item();
    runner.run(reach, {{x + item, v + item}, {y + u * out_row}, out + u * out_row}, j0, j1,
               [&](const Reach& w, const auto& a, int64_t, int64_t lanes) {
                 for_lanes<T>(lanes, [&](auto lane, int64_t c) {
                   constexpr int L = decltype(lane)::count;
                   const Vec<Wide<T>, L> best = load<L>(a.partner[0] + c);
                   Vec<Wide<T>, L> found{};
                   // Backwards, so that the first match is written last.
                   for (int64_t r = w.nrows; r-- > 0;)
                     for (int64_t t = w.width; t-- > 0;) {
                       const int64_t at = w.rows[r] + w.off[t] + c;
                       found = (load<L>(a.source[0] + at) == best) ? load<L>(a.source[1] + at) : found;
                     }
                   store<L>(a.out + c, found);
                 });
               });
  }
}

}  // namespace poolgrad::PG_ISA
