// The verbs along rows: for planes whose cells have no inner elements.
#pragma once
#include "loops/row_ring.hpp"
#include "verbs/max.hpp"
#include "verbs/mean.hpp"

namespace poolgrad::PG_ISA {

/// A plan of one axis as one of two, the first of which has a single cell.
inline Plan two_axes(const Plan& plan) {
  static constexpr int64_t zero = 0, one = 1;
  if (plan.rank > 1) return plan;
  Plan p = plan;
  p.rank = 2;
  p.axis[1] = plan.axis[0];
  p.axis[0] = Axis{1,
                   1,
                   &zero,
                   &one,
                   nullptr,
                   plan.axis[0].count ? &one : nullptr,
                   plan.axis[0].count ? &zero : nullptr,
                   1};
  return p;
}

/// What all verbs along rows share: the plan, the piece, the comb of the last axis.
struct Along {
  Along(const Plan& whole, Piece p, int lanes)
      : plan(two_axes(whole)),
        piece(p),
        comb(plan.last(), lanes, may_fit(whole, p)),
        n(plan.last().n),
        m(plan.last().m) {
    if (whole.rank == 1) piece.h0 = 0, piece.h1 = 1;
    fits = comb.fits && comb.teeth >= lanes;
    const int64_t item = plan.rows_per_item() * m;
    const bool items = piece.h0 == 0 && piece.h1 == plan.axis[0].m;
    limit_step = items ? 0 : item;
    limit_from = items ? piece.i1 * item : piece.h1 * plan.dest_slab();
  }
  int64_t taps() const { return Rows::capacity(plan) * plan.last().widest; }
  /// Where what this piece writes without a gap ends, from a row of that item on.
  PG_INLINE int64_t limit(const CombRow& r) const { return limit_from + r.item * limit_step; }
  int64_t source_size() const { return plan.outer * plan.axis[0].n * plan.source_slab(); }
  int64_t dest_size() const { return plan.outer * plan.axis[0].m * plan.dest_slab(); }

  const Plan plan;
  Piece piece;
  const Comb comb;
  const int64_t n, m;  ///< cells of a source row, and of a destination row
  bool fits;

 private:
  /// Whether rows are whole, not too long to be near, and, where each is an item of its own, enough
  /// of them to be worth a look at the windows.
  static bool may_fit(const Plan& plan, Piece p) {
    const bool entire = plan.rank > 1 || (p.h0 == 0 && p.h1 == plan.axis[0].m &&
                                          p.i1 - p.i0 >= kFewRows && plan.last().n <= kLongRow);
    return entire && !plan.plain && plan.inner == 1 && plan.last().n <= kNearBytes / 4;
  }
  static constexpr int64_t kFewRows = 8, kLongRow = 1 << 14;

  int64_t limit_from, limit_step;
};

/// A row of numbers per count, a few of them kept.
template <class W>
class RowPerCount {
 public:
  explicit RowPerCount(int64_t size) : size_(size), rows_(size * kRows) {}
  template <class F>
  const W* operator()(int64_t count, F&& f) {
    for (int i = 0; i < kRows; ++i)
      if (counts_[i] == count) return rows_.get() + i * size_;
    W* row = rows_.get() + next_ * size_;
    counts_[next_] = count;
    next_ = (next_ + 1) % kRows;
    for (int64_t c = 0; c < size_; ++c) row[c] = f(c);
    return row;
  }

 private:
  static constexpr int kRows = 8;
  const int64_t size_;
  int64_t counts_[kRows] = {-1, -1, -1, -1, -1, -1, -1, -1};
  int next_ = 0;
  Scratch<W> rows_;
};

/// Whether some row of windows reads no rows: what sticks out of those along the last axis is in no
/// row either.
inline bool some_row_is_empty(const Plan& plan) {
  for (int a = 0; a + 1 < plan.rank; ++a)
    if (has_empty(plan.axis[a])) return true;
  return false;
}

/// Maxima, first along each source row, then over the rows that a window has: the first of equals
/// wins, as in one pass.
template <class T>
bool select_along(const Plan& whole, const RowArrays<T, 1, 0>& a, Start start, Piece p) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>;
  const Along along(whole, p, V);
  const Comb& comb = along.comb;
  const int64_t lanes = Phases<T>::full(comb.teeth), n = along.n, m = along.m;
  if (!along.fits || comb.P > 1 || start == Start::first) return false;
  // What sticks out is the lowest finite value where the windows say so.
  if (start == Start::infinity && comb.cuts && (comb.odd_cuts || some_row_is_empty(along.plan)))
    return false;
  const W neutral = start_value<T>(start, comb.cuts), from = start_value<T>(start, false);
  Phases<T> phases(n, comb.S, comb.left, lanes + comb.reach(), neutral,
                   a.source[0] + along.source_size());
  const int64_t size = phases.size() + lanes;
  if (!CombRows<W>::small(along.plan, size)) return false;
  CombRows<W> rows(along.plan, false, size);
  const int64_t width = comb.width(0), zero = 0;
  Scratch<int64_t> at(width);
  for (int64_t t = 0; t < width; ++t) at[t] = lanes + phases.place(comb.first(0) + comb.left + t);
  for (int64_t k = 0; k < rows.kept(); ++k) phases.clear(rows.ring() + k * size + lanes);
  const auto greater = [](const W* x) {
    return [=](auto& best, int64_t place) {
      const auto v = load<V>(x + place);
      best = (best < v) ? v : best;
    };
  };
  rows.run(
      along.piece,
      [&](int64_t row, int64_t, W* to) { phases.fill(a.source[0] + row * n, to + lanes); },
      [&](W* to) {
        reduce_full<T, Order::rows>(
            {&zero, 1, at.get(), width}, lanes, [&](int64_t) { return all<W, V>(from); },
            greater(to), [&](auto& best, int64_t c) { store<V>(to + c, best); });
      },
      [&](const CombRow& r) {
        T* y = a.out + r.row * m;
        const T* limit = a.out + along.limit(r);
        const W least = start_value<T>(start, r.cut);
        reduce_taps<T, Order::rows, 1>(
            {r.rows, r.nrows, &zero, 1}, lanes, [&](int64_t) { return all<W, V>(least); },
            greater(rows.ring()),
            [=](auto& best, int64_t c) PG_LAMBDA { put<T>(y + c, best, m - c, limit); });
      });
  return true;
}

/// Number k of a row of divisors, followed by a row of what is 1 over them.
template <class T>
Wide<T> divisor_or_over(int64_t k, int64_t lanes, int64_t m, int64_t upper, const Axis& last,
                        Mean mean) {
  const int64_t j = k % lanes;
  const Wide<T> by = divisor<T>(j < m ? upper * last.length(j) : 1, mean);
  return k < lanes ? by : 1 / by;
}

/// Means, tap after tap in row-major order.
template <class T>
bool fold_along(const Plan& whole, const RowArrays<T, 1, 0>& a, Mean mean, Piece p) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>;
  const Along along(whole, p, V);
  const Comb& comb = along.comb;
  if (!along.fits || comb.P > 1 || along.taps() > kLongSum) return false;
  const int64_t lanes = Phases<T>::full(comb.teeth), width = comb.width(0), n = along.n,
                m = along.m;
  Phases<T> phases(n, comb.S, comb.left, lanes + comb.reach(), W{0},
                   a.source[0] + along.source_size());
  if (!CombRows<W>::small(along.plan, phases.size())) return false;
  CombRows<W> rows(along.plan, false, phases.size());
  RowPerCount<W> divisors(2 * lanes);
  Scratch<int64_t> taps(width);
  for (int64_t t = 0; t < width; ++t) taps[t] = phases.place(comb.first(0) + comb.left + t);
  for (int64_t k = 0; k < rows.kept(); ++k) phases.clear(rows.ring() + k * phases.size());
  rows.run(
      along.piece, [&](int64_t row, int64_t, W* to) { phases.fill(a.source[0] + row * n, to); },
      [](W*) {},
      [&](const CombRow& r) {
        T* y = a.out + r.row * m;
        const T* limit = a.out + along.limit(r);
        const W *by = divisors(r.nrows,
                               [&](int64_t k) {
                                 return divisor_or_over<T>(k, lanes, m, r.nrows, along.plan.last(),
                                                           mean);
                               }),
                *x = rows.ring();
        reduce_full<T, Order::rows>(
            {r.rows, r.nrows, taps.get(), width}, lanes, [=](int64_t) { return Vec<W, V>{}; },
            [=](auto& sum, int64_t place) { sum = rounded<T, V>(sum + load<V>(x + place)); },
            [=](auto& sum, int64_t c) PG_LAMBDA {
              put<T>(y + c, divided<T, V>(sum, load<V>(by + c), load<V>(by + lanes + c)), m - c,
                     limit);
            });
      });
  return true;
}

/// Second order: as recall_piece. Cells outside are NaN, which equals nothing.
template <class T>
bool recall_along(const Plan& whole, const RowArrays<T, 2, 1>& a, Piece p) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>;
  const Along along(whole, p, V);
  const Comb& comb = along.comb;
  if (!along.fits || comb.P > 1) return false;
  const int64_t lanes = Phases<T>::full(comb.teeth), width = comb.width(0), m = along.m,
                n = along.n, read = lanes + comb.reach();
  Phases<T> xs(n, comb.S, comb.left, read, std::numeric_limits<W>::quiet_NaN(),
               a.source[0] + along.source_size());
  Phases<T> vs(n, comb.S, comb.left, read, W{0}, a.source[1] + along.source_size());
  Phases<T> ys(m, 1, 0, lanes, W{0}, a.partner[0] + along.dest_size());
  const int64_t size = xs.size();
  if (!CombRows<W>::small(along.plan, 2 * size)) return false;
  CombRows<W> rows(along.plan, false, 2 * size);
  Scratch<W> line(ys.size());
  Scratch<int64_t> taps(width);
  for (int64_t t = 0; t < width; ++t) taps[t] = xs.place(comb.first(0) + comb.left + t);
  for (int64_t k = 0; k < rows.kept(); ++k)
    xs.clear(rows.ring() + 2 * k * size), vs.clear(rows.ring() + (2 * k + 1) * size);
  rows.run(
      along.piece,
      [&](int64_t row, int64_t, W* to) {
        xs.fill(a.source[0] + row * n, to);
        vs.fill(a.source[1] + row * n, to + size);
      },
      [](W*) {},
      [&](const CombRow& r) {
        T* out = a.out + r.row * m;
        const T* limit = a.out + along.limit(r);
        const W *x = rows.ring(), *v = x + size, *y = line.get();
        ys.fill(a.partner[0] + r.row * m, line.get());
        reduce_full<T, Order::backwards>(
            {r.rows, r.nrows, taps.get(), width}, lanes,
            [=](int64_t c) {
              return Recall<T, V>{load<V>(y + c), Vec<W, V>{}};
            },
            [=](auto& s, int64_t place) {
              s.found = (load<V>(x + place) == s.best) ? load<V>(v + place) : s.found;
            },
            [=](auto& s, int64_t c) PG_LAMBDA { put<T>(out + c, s.found, m - c, limit); });
      });
  return true;
}

/// Puts the phases of a destination row together.
template <class T>
void weave(const Wide<T>* from, int64_t phase, int64_t P, int64_t cells, T* to, const T* limit) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>;
  using Order = std::make_integer_sequence<int, V>;
  const auto by = [&](auto phases) PG_LAMBDA {
    constexpr int S = decltype(phases)::count;
    for (int64_t c = 0; c < cells; c += S * V) {
      Vec<W, V> v[S];
      for (int p = 0; p < S; ++p) v[p] = load<V>(from + p * phase + c / S);
      put<T>(to + c, in_turn<0, S>(v, Order{}), cells - c, limit);
      put<T>(to + c + V, in_turn<1, S>(v, Order{}), cells - c - V, limit);
      if constexpr (S == 3)
        put<T>(to + c + 2 * V, in_turn<2, S>(v, Order{}), cells - c - 2 * V, limit);
    }
  };
  if (P == 2) return by(Lane<2>{});
  if (P == 3) return by(Lane<3>{});
  for (int64_t p = 0; p < P; ++p)
    for (int64_t j = p, q = 0; j < cells; j += P, ++q)
      store<1>(to + j, Vec<W, 1>{from[p * phase + q]});
}

/// Cells of an item that has one window, which covers all of it; 0 if a plan is not such.
inline int64_t cells_of_whole(const Plan& plan) {
  int64_t cells = plan.plain || plan.inner != 1 ? 0 : 1;
  for (int k = 0; k < plan.rank && cells; ++k)
    cells *=
        plan.axis[k].m == 1 ? plan.axis[k].length(0) == plan.axis[k].n ? plan.axis[k].n : 0 : 0;
  return cells;
}

/// Where one window covers everything: vectors go along each item, and only what they leave is
/// turned.
template <class T>
bool select_whole(const Plan& plan, const RowArrays<T, 1, 0>& a, Start start, Piece p) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>, N = 4;
  const int64_t cells = cells_of_whole(plan);
  if (cells < V || start == Start::first) return false;
  bool is_cut = false;
  for (int k = 0; k < plan.rank; ++k)
    is_cut |= plan.axis[k].span && plan.axis[k].span[0] != plan.axis[k].n;
  const W from = start_value<T>(start, is_cut);
  W best[V * V], turned[V * V];
  for (int64_t i = p.i0; i < p.i1; i += V) {
    const int64_t items = p.i1 - i < V ? p.i1 - i : V;
    for (int64_t k = 0; k < items; ++k) {
      const T* const x = a.source[0] + (i + k) * cells;
      checkpoint(meter(), cells);
      Vec<W, V> s[N];
      for (int j = 0; j < N; ++j) s[j] = all<W, V>(from);
      int64_t c = 0;
      for (; c + N * V <= cells; c += N * V)
#pragma GCC unroll 4
        for (int j = 0; j < N; ++j) s[j] = larger<W, V>(s[j], load<V>(x + c + j * V));
      for (; c < cells; c += V)
        s[0] = larger<W, V>(
            s[0],
            load<V>(x + (c + V <= cells ? c : cells - V)));  // what is seen twice changes nothing
      store<V>(best + k * V, larger<W, V>(larger<W, V>(s[0], s[1]), larger<W, V>(s[2], s[3])));
    }
    for (int64_t k = items; k < V; ++k) store<V>(best + k * V, all<W, V>(from));
    turn_square(best, V, turned, V);
    Vec<W, V> most = load<V>(turned);
    for (int k = 1; k < V; ++k) most = larger<W, V>(most, load<V>(turned + k * V));
    put<T>(a.out + i, most, items, a.out + p.i1);
  }
  return true;
}

/// Where one window covers everything its gradient goes everywhere.
template <class T>
bool spread_whole(const Plan& plan, const RowArrays<T, 1, 0>& a, Share share, Piece p) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>;
  if (plan.plain || plan.inner != 1 || rounds_once<T>(share)) return false;
  int64_t count = 1;
  for (int k = 0; k < plan.rank; ++k) {
    const Axis& axis = plan.axis[k];
    if (axis.n != 1) return false;
    count *= axis.count[0];
    for (int64_t j = 0; j < axis.m; ++j)
      if (axis.length(j) != 1) return false;
  }
  const int64_t slab = plan.dest_slab(), item = plan.axis[0].m * slab, cells = (p.h1 - p.h0) * slab;
  const Vec<W, V> weight = all<W, V>(reciprocal<T>(count, share)), zero{};
  Outlet<T> outlet(a.out, a.far, cells);
  for (int64_t i = p.i0; i < p.i1; ++i) {
    const int64_t at = i * item + p.h0 * slab;
    T* const dx = outlet.open(at, cells);
    const T* limit = outlet.limit(cells == item ? a.out + p.i1 * item : a.out + at + cells);
    checkpoint(meter(), cells);
    const Vec<W, V> v = zero + rounded<T, V>(all<W, V>(load<1>(a.source[0] + i)[0]) * weight);
    for (int64_t c = 0; c < cells; c += V) put<T>(dx + c, v, cells - c, limit);
  }
  outlet.close();
  return true;
}

/// Transposed means: the source rows are weighed as they are read, then added tap after tap.
template <class T, bool Reversed>
bool spread_along(const Plan& whole, const RowArrays<T, 1, 0>& a, Share share, Piece p) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>;
  const Along along(whole, p, V);
  const Comb& comb = along.comb;
  if (!along.fits || comb.S > 1 || rounds_once<T>(share) || along.taps() > kLongSum) return false;
  const Axis& last = along.plan.last();
  const int64_t lanes = Phases<T>::full(comb.teeth), n = along.n, m = along.m, P = comb.P;
  Phases<T> phases(n, 1, comb.left, lanes + comb.reach(), W{0}, a.source[0] + along.source_size());
  if (!CombRows<W>::small(along.plan, phases.size())) return false;
  CombRows<W> rows(along.plan, Reversed, phases.size());
  RowPerCount<W> weights(Phases<T>::full(n));
  Scratch<int64_t> taps(last.widest * P), widths(P);
  Scratch<W> apart(P > 1 ? lanes * P : 0);
  for (int64_t q = 0; q < P; ++q)
    for (int64_t t = widths[q] = 0; t < comb.width(q); widths[q] = ++t)
      taps[q * last.widest + t] = comb.first(q) + comb.left + t;
  for (int64_t k = 0; k < rows.kept(); ++k) phases.clear(rows.ring() + k * phases.size());
  Outlet<T> outlet(a.out, a.far, m);
  rows.run(
      along.piece,
      [&](int64_t row, int64_t upper, W* to) {
        phases.fill(a.source[0] + row * n, to, weights(upper, [&](int64_t c) {
                      return reciprocal<T>(c < n ? upper * last.count[c] : 1, share);
                    }));
      },
      [](W*) {},
      [&](const CombRow& r) {
        T* const dx = outlet.open(r.row * m, m);
        const T* limit = outlet.limit(a.out + along.limit(r));
        const W* g = rows.ring();
        for (int64_t q = 0; q < P; ++q) {
          W* const run = apart.get() + q * lanes;
          reduce_full<T, Reversed ? Order::columns : Order::rows>(
              {r.rows, r.nrows, taps.get() + q * last.widest, widths[q]}, lanes,
              [=](int64_t) { return Vec<W, V>{}; },
              [=](auto& sum, int64_t place) { sum = rounded<T, V>(sum + load<V>(g + place)); },
              [=](auto& sum, int64_t c) PG_LAMBDA {
                P == 1 ? put<T>(dx + c, sum, m - c, limit) : store<V>(run + c, sum);
              });
        }
        if (P > 1) weave<T>(apart.get(), lanes, P, m, dx, limit);
      });
  outlet.close();
  return true;
}

}  // namespace poolgrad::PG_ISA
