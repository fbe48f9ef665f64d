// Small planes whose windows move by single cells: a whole item with neutral cells around it, so that all windows are alike.
#pragma once
#include "along.hpp"

namespace poolgrad::PG_ISA {

/// One item at a time, row behind row; what follows a row's last cell also precedes the next row's first.
template <class T>
class Padded {
 public:
  using W = Wide<T>;
  static constexpr int V = kLanes<T>;

  Padded(const Plan& plan, Piece p) : plan_(plan), upper_(plan.rank - 1) {
    fits = !plan.plain && plan.inner == 1 && plan.rank > 1 && plan.last().m >= V && p.h0 == 0 && p.h1 == plan.axis[0].m;
    size = 1;
    for (int a = upper_; a >= 0 && fits; --a) {
      const Axis& axis = plan.axis[a];
      const Comb comb(axis, 1);
      fits = comb.fits && comb.P == 1 && comb.width(0) > 0 && axis.n > 0 && (a < upper_ || comb.S == 1);
      if (!fits) return;
      const int64_t end = comb.first(0) + comb.S * (axis.m - 1) + comb.width(0), right = end > axis.n ? end - axis.n : 0;
      left_[a] = comb.left;
      first_[a] = comb.first(0) + comb.left;
      step_[a] = comb.S;
      width_[a] = comb.width(0);
      stride_[a] = size;
      size *= a == upper_ ? axis.n + (comb.left > right ? comb.left : right) : axis.n + comb.left + right;
      cuts |= comb.cuts;
      odd_cuts |= comb.odd_cuts;
      if (a < upper_) sources *= axis.n, dests *= axis.m, taps *= width_[a];
    }
    room = size + left_[upper_] + width_[upper_] + Phases<T>::full(plan.last().m) + 2 * V;
    fits = fits && room * static_cast<int64_t>(sizeof(W)) <= 48 << 10 && sources + dests + taps <= 1 << 12;
  }

  /// Where the source rows are kept, where the destination rows begin to read, the rows of a window, and how many of them are inside.
  void lists(int64_t* source, int64_t* dest, int64_t* rows, int64_t* counts) const {
    each([&](int a) { return plan_.axis[a].n; }, [&](int64_t k, const int64_t* at) { source[k] = left_[upper_] + place([&](int a) { return at[a] + left_[a]; }); });
    each([&](int a) { return width_[a]; }, [&](int64_t k, const int64_t* at) { rows[k] = place([&](int a) { return at[a]; }); });
    each([&](int a) { return plan_.axis[a].m; }, [&](int64_t k, const int64_t* at) {
      dest[k] = first_[upper_] + place([&](int a) { return first_[a] + step_[a] * at[a]; });
      counts[k] = 1;
      for (int a = 0; a < upper_; ++a) counts[k] *= plan_.axis[a].length(at[a]);
    });
  }
  int64_t width() const { return width_[upper_]; }
  int64_t left() const { return left_[upper_]; }

  bool fits, cuts = false, odd_cuts = false;
  int64_t size, room = 0, sources = 1, dests = 1, taps = 1;

 private:
  template <class F>
  int64_t place(F&& f) const {
    int64_t sum = 0;
    for (int a = 0; a < upper_; ++a) sum += f(a) * stride_[a];
    return sum;
  }
  template <class Length, class F>
  void each(Length&& length, F&& f) const {
    int64_t at[kMaxRank] = {};
    for (int64_t k = 0;; ++k) {
      f(k, at);
      int a = upper_ - 1;
      while (a >= 0 && ++at[a] == length(a)) at[a--] = 0;
      if (a < 0) return;
    }
  }

  const Plan& plan_;
  const int upper_;
  int64_t left_[kMaxRank], first_[kMaxRank], step_[kMaxRank], width_[kMaxRank], stride_[kMaxRank];
};

/// Items one after the other: each is copied among neutral cells, next(cells) goes on with it, then use(row, place, count) for its rows.
template <class T, class Next, class Use>
void over_padded(const Padded<T>& pad, const Plan& plan, const T* x, Wide<T> neutral, Piece p, Scratch<Wide<T>>& cells, Scratch<int64_t>& rows, Next&& next, Use&& use) {
  const int64_t n = plan.last().n;
  Scratch<int64_t> source(pad.sources), dest(pad.dests), counts(pad.dests);
  pad.lists(source.get(), dest.get(), rows.get(), counts.get());
  for (int64_t k = 0; k < pad.room; ++k) cells[k] = neutral;
  Phases<T> phases(n, 1, 0, 0, neutral, x + plan.outer * pad.sources * n);
  for (int64_t i = p.i0; i < p.i1; ++i) {
    checkpoint(meter(), pad.dests * n * pad.taps);
    const T* row = x + i * pad.sources * n;
    for (int64_t r = 0; r < pad.sources; ++r, row += n) phases.fill(row, cells.get() + source[r]);
    next(source[0] - pad.left(), source[pad.sources - 1] + n);
    for (int64_t u = 0; u < pad.dests; ++u) use(i * pad.dests + u, dest[u], counts[u]);
  }
}

template <class T>
bool select_padded(const Plan& plan, const RowArrays<T, 1, 0>& a, Start start, Piece p) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>;
  const Padded<T> pad(plan, p);
  if (!pad.fits || start == Start::first || (start == Start::infinity && pad.cuts && pad.odd_cuts)) return false;
  const W neutral = start_value<T>(start, pad.cuts), from = start_value<T>(start, false);
  const int64_t m = plan.last().m, lanes = Phases<T>::full(m), width = pad.width(), zero = 0;
  const T* limit = a.out + p.i1 * pad.dests * m;
  Scratch<W> cells(pad.room), best_along(pad.room + V);
  Scratch<int64_t> rows(pad.taps), off(width);
  for (int64_t t = 0; t < width; ++t) off[t] = t;
  for (int64_t k = 0; k < pad.room + V; ++k) best_along[k] = neutral;
  const auto greater = [](const W* x) {
    return [=](auto& best, int64_t place) {
      const auto v = load<V>(x + place);
      best = (best < v) ? v : best;
    };
  };
  over_padded<T>(
      pad, plan, a.source[0], neutral, p, cells, rows,
      [&](int64_t begin, int64_t end) {
        W* const to = best_along.get() + begin;
        reduce_full<T, Order::rows>(
            {&zero, 1, off.get(), width}, Phases<T>::full(end - begin), [=](int64_t) { return all<W, V>(from); }, greater(cells.get() + begin),
            [=](auto& best, int64_t c) { store<V>(to + c, best); });
      },
      [&](int64_t row, int64_t place, int64_t) {
        T* const y = a.out + row * m;
        reduce_taps<T, Order::rows, 1>(
            {rows.get(), pad.taps, &zero, 1}, lanes, [=](int64_t) { return all<W, V>(from); }, greater(best_along.get() + place),
            [=](auto& best, int64_t c) { put<T>(y + c, best, m - c, limit); });
      });
  return true;
}

template <class T>
bool fold_padded(const Plan& plan, const RowArrays<T, 1, 0>& a, Mean mean, Piece p) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>;
  const Padded<T> pad(plan, p);
  if (!pad.fits || pad.taps * pad.width() > kLongSum) return false;
  const int64_t m = plan.last().m, lanes = Phases<T>::full(m), width = pad.width();
  const T* limit = a.out + p.i1 * pad.dests * m;
  RowPerCount<W> divisors(lanes);
  Scratch<W> cells(pad.room);
  Scratch<int64_t> rows(pad.taps), off(width);
  for (int64_t t = 0; t < width; ++t) off[t] = t;
  over_padded<T>(
      pad, plan, a.source[0], W{0}, p, cells, rows, [](int64_t, int64_t) {},
      [&](int64_t row, int64_t place, int64_t count) {
        T* const y = a.out + row * m;
        const W *by = divisors(count, [&](int64_t j) { return divisor<T>(j < m ? count * plan.last().length(j) : 1, mean); }), *x = cells.get() + place;
        reduce_full<T, Order::rows>(
            {rows.get(), pad.taps, off.get(), width}, lanes, [=](int64_t) { return Vec<W, V>{}; }, [=](auto& sum, int64_t at) { sum = rounded<T, V>(sum + load<V>(x + at)); },
            [=](auto& sum, int64_t c) { put<T>(y + c, sum / load<V>(by + c), m - c, limit); });
      });
  return true;
}

}  // namespace poolgrad::PG_ISA
