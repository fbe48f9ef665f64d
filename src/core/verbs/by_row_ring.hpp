// fold, recall and spread over row rings, for plans with inner == 1, and spread of global windows.
#pragma once
#include "loops/row_ring.hpp"
#include "simd/stream.hpp"
#include "simd/transpose.hpp"
#include "verbs/max.hpp"
#include "verbs/mean.hpp"

namespace poolgrad::PG_ISA {

/// The geometry that the verbs over row rings share.
struct RowRingPlan {
  RowRingPlan(const Plan& whole, Piece p, int lanes)
      : plan(two_axes(whole)),
        piece(p),
        regular(plan.last(), lanes),
        n(plan.last().n),
        m(plan.last().m) {
    if (whole.rank == 1) piece.h0 = 0, piece.h1 = 1;
    fits = regular.fits && regular.cells_per_phase >= lanes;
    const int64_t item = plan.rows_per_item() * m;
    const bool items = piece.h0 == 0 && piece.h1 == plan.axis[0].m;
    limit_step = items ? 0 : item;
    limit_from = items ? piece.i1 * item : piece.h1 * plan.dest_slab();
  }
  int64_t taps() const { return most_taps(plan); }
  /// Return the end of the memory that this piece writes without a gap, from a row of that item on.
  PG_INLINE int64_t limit(const RingRow& r) const { return limit_from + r.item * limit_step; }
  /// Return the lanes of a destination row, and the elements of a packed source row.
  template <class T>
  int64_t lanes() const {
    return RowPacker<T>::round_up(regular.cells_per_phase);
  }
  template <class T>
  int64_t packed_size() const {
    return regular.stride * RowPacker<T>::phase_size_of(n, regular.stride, regular.pad_left,
                                                        lanes<T>() + regular.overhang());
  }
  int64_t source_size() const { return plan.outer * plan.axis[0].n * plan.source_slab(); }
  int64_t dest_size() const { return plan.outer * plan.axis[0].m * plan.dest_slab(); }

  const Plan plan;
  Piece piece;
  const RegularAxis regular;
  const int64_t n, m;  ///< cells of a source row, and of a destination row
  bool fits;

 private:
  int64_t limit_from, limit_step;
};

/// Cache rows of numbers by count.
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

/// Return number k of a row of divisors, followed by a row of their reciprocals.
template <class T>
Wide<T> divisor_or_over(int64_t k, int64_t lanes, int64_t m, int64_t upper, const Axis& last,
                        Mean mean) {
  const int64_t j = k % lanes;
  const Wide<T> by = divisor<T>(j < m ? upper * counted_cells(last, j, mean) : 1, mean);
  return k < lanes ? by : 1 / by;
}

/// Return the cells of the windows of a destination row along all axes but the last, before edges
/// cut them. `row` counts over all items.
inline int64_t span_of_row(const Plan& plan, int64_t row) {
  int64_t span = 1;
  for (int a = plan.rank - 2; a >= 0; row /= plan.axis[a--].m) {
    const Axis& axis = plan.axis[a];
    span *= counted_cells(axis, row % axis.m, Mean::spanned);
  }
  return span;
}

/// Compute means, tap after tap in row-major order.
template <class T>
void fold_by_row_ring(const RowRingPlan& ring, const RowArrays<T, 1, 0>& a, Mean mean) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>;
  const RegularAxis& regular = ring.regular;
  const int64_t lanes = ring.lanes<T>(), width = regular.width(0), n = ring.n, m = ring.m;
  RowPacker<T> packer(n, regular.stride, regular.pad_left, lanes + regular.overhang(), W{0},
                      a.source[0] + ring.source_size());
  RowRing<W> rows(ring.plan, false, packer.size());
  RowPerCount<W> divisors(2 * lanes);
  Scratch<int64_t> taps(width);
  for (int64_t t = 0; t < width; ++t)
    taps[t] = packer.offset_of(regular.first(0) + regular.pad_left + t);
  for (int64_t k = 0; k < rows.slot_count(); ++k)
    packer.fill_neutral(rows.data() + k * packer.size());
  rows.run(
      ring.piece, [&](int64_t row, int64_t, W* to) { packer.pack(a.source[0] + row * n, to); },
      [&](const RingRow& r) {
        T* y = a.out + r.row * m;
        const T* limit = a.out + ring.limit(r);
        const int64_t upper = mean == Mean::spanned ? span_of_row(ring.plan, r.row) : r.nrows;
        const W *by = divisors(upper,
                               [&](int64_t k) {
                                 return divisor_or_over<T>(k, lanes, m, upper, ring.plan.last(),
                                                           mean);
                               }),
                *x = rows.data();
        reduce_rows<T, Order::rows>(
            {r.rows, r.nrows, taps.get(), width}, lanes, [=](int64_t) { return Vec<W, V>{}; },
            [=](auto& sum, int64_t place) { sum = rounded<T, V>(sum + load<V>(x + place)); },
            [=](auto& sum, int64_t c) PG_LAMBDA {
              store_within<T>(y + c, divided<T, V>(sum, load<V>(by + c), load<V>(by + lanes + c)),
                              m - c, limit);
            });
      });
}

/// Compute recall. Neutral cells are NaN, which equals nothing.
template <class T>
void recall_by_row_ring(const RowRingPlan& ring, const RowArrays<T, 2, 1>& a) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>;
  const RegularAxis& regular = ring.regular;
  const int64_t lanes = ring.lanes<T>(), width = regular.width(0), m = ring.m, n = ring.n,
                read = lanes + regular.overhang();
  RowPacker<T> xs(n, regular.stride, regular.pad_left, read, std::numeric_limits<W>::quiet_NaN(),
                  a.source[0] + ring.source_size());
  RowPacker<T> vs(n, regular.stride, regular.pad_left, read, W{0},
                  a.source[1] + ring.source_size());
  RowPacker<T> ys(m, 1, 0, lanes, W{0}, a.partner[0] + ring.dest_size());
  const int64_t size = xs.size();
  RowRing<W> rows(ring.plan, false, 2 * size);
  Scratch<W> line(ys.size());
  Scratch<int64_t> taps(width);
  for (int64_t t = 0; t < width; ++t)
    taps[t] = xs.offset_of(regular.first(0) + regular.pad_left + t);
  for (int64_t k = 0; k < rows.slot_count(); ++k)
    xs.fill_neutral(rows.data() + 2 * k * size), vs.fill_neutral(rows.data() + (2 * k + 1) * size);
  rows.run(
      ring.piece,
      [&](int64_t row, int64_t, W* to) {
        xs.pack(a.source[0] + row * n, to);
        vs.pack(a.source[1] + row * n, to + size);
      },
      [&](const RingRow& r) {
        T* out = a.out + r.row * m;
        const T* limit = a.out + ring.limit(r);
        const W *x = rows.data(), *v = x + size, *y = line.get();
        ys.pack(a.partner[0] + r.row * m, line.get());
        reduce_rows<T, Order::backwards>(
            {r.rows, r.nrows, taps.get(), width}, lanes,
            [=](int64_t c) {
              return MatchState<T, V>{load<V>(y + c), Vec<W, V>{}};
            },
            [=](auto& s, int64_t place) {
              s.step(load<V>(x + place), load<V>(v + place));
            },
            [=](auto& s, int64_t c) PG_LAMBDA { store_within<T>(out + c, s.found, m - c, limit); });
      });
}

/// Merge the phases of a destination row.
template <class T>
void interleave_row(const Wide<T>* from, int64_t phase, int64_t period, int64_t cells, T* to,
                    const T* limit) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>;
  using Order = std::make_integer_sequence<int, V>;
  const auto by = [&](auto packer) PG_LAMBDA {
    constexpr int S = decltype(packer)::count;
    for (int64_t c = 0; c < cells; c += S * V) {
      Vec<W, V> v[S];
      for (int p = 0; p < S; ++p) v[p] = load<V>(from + p * phase + c / S);
      store_within<T>(to + c, interleave<0, S>(v, Order{}), cells - c, limit);
      store_within<T>(to + c + V, interleave<1, S>(v, Order{}), cells - c - V, limit);
      if constexpr (S == 3)
        store_within<T>(to + c + 2 * V, interleave<2, S>(v, Order{}), cells - c - 2 * V, limit);
    }
  };
  if (period == 2) return by(Lane<2>{});
  if (period == 3) return by(Lane<3>{});
  for (int64_t p = 0; p < period; ++p)
    for (int64_t j = p, q = 0; j < cells; j += period, ++q)
      store<1>(to + j, Vec<W, 1>{from[p * phase + q]});
}

/// Compute spread of global windows: each cell of an item gets the same share.
template <class T>
void spread_global(const Plan& plan, const RowArrays<T, 1, 0>& a, Share share, Piece p) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>;
  const int64_t count = global_window_count(plan);
  const int64_t slab = plan.dest_slab(), item = plan.axis[0].m * slab, cells = (p.h1 - p.h0) * slab;
  const Vec<W, V> weight = all<W, V>(reciprocal<T>(count, share)), zero{};
  StreamWriter<T> writer(a.out, a.stream, cells);
  for (int64_t i = p.i0; i < p.i1; ++i) {
    const int64_t at = i * item + p.h0 * slab;
    T* const dx = writer.open(at, cells);
    const T* limit = writer.limit(cells == item ? a.out + p.i1 * item : a.out + at + cells);
    checkpoint(step_budget(), cells);
    const Vec<W, V> v = zero + rounded<T, V>(all<W, V>(load<1>(a.source[0] + i)[0]) * weight);
    for (int64_t c = 0; c < cells; c += V) store_within<T>(dx + c, v, cells - c, limit);
  }
  writer.close();
}

/// Compute spread: weigh the rows of the gradient while packing, then add tap after tap.
template <class T, bool Reversed>
void spread_by_row_ring(const RowRingPlan& ring, const RowArrays<T, 1, 0>& a, Share share) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>;
  const RegularAxis& regular = ring.regular;
  const Axis& last = ring.plan.last();
  const int64_t lanes = ring.lanes<T>(), n = ring.n, m = ring.m, period = regular.period;
  RowPacker<T> packer(n, 1, regular.pad_left, lanes + regular.overhang(), W{0},
                      a.source[0] + ring.source_size());
  RowRing<W> rows(ring.plan, Reversed, packer.size());
  RowPerCount<W> weights(RowPacker<T>::round_up(n));
  Scratch<int64_t> taps(last.widest * period), widths(period);
  Scratch<W> phases(period > 1 ? lanes * period : 0);
  for (int64_t q = 0; q < period; ++q)
    for (int64_t t = widths[q] = 0; t < regular.width(q); widths[q] = ++t)
      taps[q * last.widest + t] = regular.first(q) + regular.pad_left + t;
  for (int64_t k = 0; k < rows.slot_count(); ++k)
    packer.fill_neutral(rows.data() + k * packer.size());
  StreamWriter<T> writer(a.out, a.stream, m);
  rows.run(
      ring.piece,
      [&](int64_t row, int64_t upper, W* to) {
        packer.pack(a.source[0] + row * n, to, weights(upper, [&](int64_t c) {
                      return reciprocal<T>(c < n ? upper * last.count[c] : 1, share);
                    }));
      },
      [&](const RingRow& r) {
        T* const dx = writer.open(r.row * m, m);
        const T* limit = writer.limit(a.out + ring.limit(r));
        const W* g = rows.data();
        for (int64_t q = 0; q < period; ++q) {
          W* const run = phases.get() + q * lanes;
          reduce_rows<T, Reversed ? Order::columns : Order::rows>(
              {r.rows, r.nrows, taps.get() + q * last.widest, widths[q]}, lanes,
              [=](int64_t) { return Vec<W, V>{}; },
              [=](auto& sum, int64_t place) { sum = rounded<T, V>(sum + load<V>(g + place)); },
              [=](auto& sum, int64_t c) PG_LAMBDA {
                period == 1 ? store_within<T>(dx + c, sum, m - c, limit) : store<V>(run + c, sum);
              });
        }
        if (period > 1) interleave_row<T>(phases.get(), lanes, period, m, dx, limit);
      });
  writer.close();
}

}  // namespace poolgrad::PG_ISA
