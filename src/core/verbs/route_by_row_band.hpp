// route over row bands, for plans with inner == 1.
#pragma once
#include "simd/stream.hpp"
#include "verbs/by_row_band.hpp"
#include "verbs/max_grad.hpp"

namespace poolgrad::PG_ISA {

/// The axes of route: rows of the forward plan, and the cells that windows of a row cover. Cell
/// `period` q + p is covered by windows q + first(p) + t, of which it is tap code(p, t) of a row.
struct RouteAxes {
  RouteAxes(const Plan& forward, const Plan& backward)
      : plan(two_axes(forward)),
        transposed(two_axes(backward)),
        ahead(plan.last()),
        behind(transposed.last()) {
    fits = ahead.fits && ahead.period == 1 && behind.fits && behind.stride == 1 &&
           behind.period == ahead.stride && behind.period <= 3 && ahead.width(0) > 0 &&
           !has_empty_window(plan.last());
    for (int64_t p = 0; fits && p < behind.period; ++p)
      for (int64_t t = 0; t < behind.width(p); ++t)
        fits &= code(p, t) >= 0 && code(p, t) < ahead.width(0);
  }
  int64_t code(int64_t p, int64_t t) const {
    return p - ahead.first(0) - ahead.stride * (behind.first(p) + t);
  }

  const Plan plan, transposed;
  const RegularAxis ahead, behind;
  bool fits;
};

/// Route by row bands: find the taps of some rows (ChooseRows), then each row of cells sums the
/// gradients of the covering windows that chose its cells. Taps lie among kNoTap, so that vectors
/// may read beyond the edges of a row of windows:
///
///   taps     - - 0 2 1 - -        one byte per window
///   g            a b c            read where it is: what lies around it is not added
template <class T>
class RouteRows {
  using W = Wide<T>;
  static constexpr int V = kLanes<T>;
  using Cells = Vec<W, V>;

 public:
  [[gnu::noinline, gnu::cold]] RouteRows(const RouteAxes& axes, const T* x, const T* g, T* dx,
                                         Piece p, bool stream)
      : axes_(axes),
        plan_(axes.plan),
        transposed_(axes.transposed),
        x_(x),
        g_(g),
        dx_(dx),
        p_(plan_.axis[0].n == 1 ? Piece{p.i0, p.i1, 0, 1} : p),
        n_(plan_.last().n),
        m_(plan_.last().m),
        period_(axes.behind.period),
        per_slab_(plan_.rows_per_slab()),
        item_rows_(plan_.rows_per_item()),
        cell_rows_(transposed_.rows_per_slab()),
        most_(SourceRows::capacity(transposed_)),
        lead_(reach(true)),
        lanes_((axes.behind.cells_per_phase + V - 1) / V * V),
        tail_(lanes_ + reach(false)),
        pitch_(lead_ + (m_ + V > tail_ ? m_ + V : tail_)),
        together_(group()),
        cells_(strip_cells()),
        rows_(most_rows()),
        taps_(together_ * rows_ * pitch_ + V),
        maxima_(m_ + V),
        lists_((p_.h1 - p_.h0 < cells_ ? p_.h1 - p_.h0 : cells_) * cell_rows_ * most_),
        counts_((p_.h1 - p_.h0 < cells_ ? p_.h1 - p_.h0 : cells_) * cell_rows_),
        heads_((lead_ + m_ - 1) / m_),
        tails_((tail_ + m_ - 1) / m_),
        edges_((heads_ + tails_) * (lead_ + tail_)),
        writer_(dx, stream, n_) {
    std::memset(taps_.get(), kNoTap, static_cast<size_t>(together_ * rows_ * pitch_ + V));
    const int64_t all = plan_.outer * item_rows_;
    for (int64_t k = 0; k < heads_ + tails_; ++k) {
      const int64_t row = k < heads_ ? k : all - heads_ - tails_ + k;
      T* const to = edges_.get() + k * (lead_ + tail_);
      for (int64_t c = 0; c < lead_ + tail_; ++c) to[c] = T{};
      if (row >= 0 && row < all)
        std::memcpy(static_cast<void*>(to + lead_), g + row * m_,
                    static_cast<size_t>(m_ < tail_ ? m_ : tail_) * sizeof(T));
    }
  }

  void run() {
    int64_t listed = -1;
    for (int64_t i = p_.i0; i < p_.i1; i += together_) {
      const int64_t items = i + together_ < p_.i1 ? together_ : p_.i1 - i;
      for (int64_t a = p_.h0; a < p_.h1; a += cells_) {
        const int64_t b = a + cells_ < p_.h1 ? a + cells_ : p_.h1;
        int64_t first, last;
        windows_touching(plan_.axis[0], a, b, first, last);
        if (first < last) find(i, items, first, last);
        if (listed != a) list(listed = a, b, first);
        for (int64_t k = 0; k < items; ++k) gather(i + k, k, a, b, first);
      }
    }
    writer_.close();
  }

 private:
  /// A row of windows that covers a row of cells: its number in the strip, and the number of its
  /// tap in the first column.
  struct Covering {
    int64_t row;
    uint8_t code;
  };

  /// Return how far vectors read before a row of windows, or behind its lanes.
  int64_t reach(bool before) const {
    int64_t most = 0;
    for (int64_t p = 0; p < axes_.behind.period; ++p) {
      const int64_t first = axes_.behind.first(p),
                    far = before ? -first : first + axes_.behind.width(p);
      most = far > most ? far : most;
    }
    return most;
  }
  bool entire() const { return p_.h0 == 0 && p_.h1 == plan_.axis[0].n; }
  int64_t group() const {
    const int64_t some = kStripTapBytes / (pitch_ * item_rows_), items = p_.i1 - p_.i0;
    return !entire() || some < 1 ? 1 : some < items ? some : items < 1 ? 1 : items;
  }
  int64_t strip_cells() const {
    const Axis& axis = plan_.axis[0];
    if (entire() && pitch_ * item_rows_ <= kStripTapBytes) return axis.n;
    const int64_t cells = kStripTapBytes / (pitch_ * per_slab_) * axis.n / axis.m;
    return cells > 4 * axis.widest ? cells : 4 * axis.widest;
  }
  int64_t most_rows() const {
    int64_t most = 0, first, last;
    for (int64_t a = p_.h0; a < p_.h1; a += cells_) {
      windows_touching(plan_.axis[0], a, a + cells_ < p_.h1 ? a + cells_ : p_.h1, first, last);
      most = last - first > most ? last - first : most;
    }
    return most * per_slab_;
  }

  /// Find the taps of windows [first, last) of some items.
  [[gnu::noinline, gnu::cold]] void find(int64_t i, int64_t items, int64_t first, int64_t last) {
    const PaddedRow row(plan_, Piece{i, i + items, first, last}, V, false);
    uint8_t* const to = taps_.get() + lead_ - (i * item_rows_ + first * per_slab_) * pitch_;
    ChooseRows<T>(row, x_, maxima_.get(), {to, pitch_, true}).run();
  }

  /// List the rows of windows that cover each row of cells [a, b).
  [[gnu::noinline, gnu::cold]] void list(int64_t a, int64_t b, int64_t first) {
    const Plan backward = strip(transposed_, a, b, first);
    SourceRows rows(backward, false);
    WindowTaps window;
    for (int64_t u = 0; u < (b - a) * cell_rows_; ++u) {
      rows.seek(u, window);
      counts_[u] = window.nrows;
      for (int64_t r = 0; r < window.nrows; ++r)
        lists_[u * most_ + r] = {window.rows[r] / m_,
                                 static_cast<uint8_t>(window.row_tap[r] * axes_.ahead.width(0))};
    }
  }

  /// Return row r of g, with readable cells around it.
  PG_INLINE const T* gradients(int64_t row) {
    const int64_t behind = plan_.outer * item_rows_ - row;
    if (row >= heads_ && behind > tails_) return g_ + row * m_;
    const int64_t k = row < heads_ ? row : heads_ + tails_ - behind;
    return edges_.get() + k * (lead_ + tail_) + lead_;
  }

  /// Sum the rows of cells [a, b) of item i, which is item k of the taps.
  void gather(int64_t i, int64_t k, int64_t a, int64_t b, int64_t first) {
    if (period_ == 1) return gather_by<1>(i, k, a, b, first);
    period_ == 2 ? gather_by<2>(i, k, a, b, first) : gather_by<3>(i, k, a, b, first);
  }
  template <int P>
  [[gnu::noinline]] void gather_by(int64_t i, int64_t k, int64_t a, int64_t b, int64_t first) {
    using Order = std::make_integer_sequence<int, V>;
    const Axis& top = plan_.axis[0];
    const int64_t n = n_, windows = (i * top.m + first) * per_slab_,
                  limit_row = (entire() ? p_.i1 * top.n : i * top.n + p_.h1) * cell_rows_;
    int64_t columns[P], begin[P];
    uint8_t code[P];
    for (int p = 0; p < P; ++p) {
      columns[p] = axes_.behind.width(p);
      begin[p] = axes_.behind.first(p);
      code[p] = static_cast<uint8_t>(columns[p] ? axes_.code(p, 0) : 0);
    }
    for (int64_t u = 0; u < (b - a) * cell_rows_; ++u) {
      const Covering* const covering = lists_.get() + u * most_;
      const int64_t nrows = counts_[u], row = (i * top.n + a) * cell_rows_ + u;
      const T* g[kMaxCovering];
      const uint8_t* taps[kMaxCovering];
      for (int64_t r = 0; r < nrows; ++r) {
        g[r] = gradients(windows + covering[r].row);
        taps[r] = taps_.get() + lead_ + (k * rows_ + covering[r].row) * pitch_;
      }
      T* const to = writer_.open(row * n, n);
      const T* const limit = writer_.limit(dx_ + limit_row * n);
      checkpoint(step_budget(), n * nrows);
      for (int64_t q = 0; q * P < n; q += V) {
        Cells sum[P];
        for (int p = 0; p < P; ++p) {
          sum[p] = Cells{};
          for (int64_t r = 0; r < nrows; ++r) {
            const T* const from = g[r] + q + begin[p];
            const uint8_t* const chosen = taps[r] + q + begin[p];
            uint8_t tap = static_cast<uint8_t>(covering[r].code + code[p]);
            for (int64_t t = 0; t < columns[p]; ++t, tap = static_cast<uint8_t>(tap - P))
              sum[p] = rounded<T, V>(sum[p] + where_tap<V, W>(chosen + t, tap, load<V>(from + t)));
          }
        }
        T* const here = to + q * P;
        const int64_t left = n - q * P;
        if constexpr (P == 1) {
          left >= V ? store<V>(here, sum[0]) : store_rest<T>(here, sum[0], left, limit);
        } else {
          store_within<T>(here, interleave<0, P>(sum, Order{}), left, limit);
          store_within<T>(here + V, interleave<1, P>(sum, Order{}), left - V, limit);
          if constexpr (P == 3)
            store_within<T>(here + 2 * V, interleave<2, P>(sum, Order{}), left - 2 * V, limit);
        }
      }
    }
  }

  const RouteAxes& axes_;
  const Plan &plan_, &transposed_;
  const T *const x_, *const g_;
  T* const dx_;
  const Piece p_;
  const int64_t n_, m_, period_, per_slab_, item_rows_, cell_rows_, most_;
  const int64_t lead_, lanes_, tail_, pitch_;  ///< elements of a row of taps
  const int64_t together_;                     ///< items whose taps are found together
  const int64_t cells_, rows_;  ///< source cells of a strip, and the most rows of windows of one
  Scratch<uint8_t> taps_;
  Scratch<T> maxima_;  ///< of a row; not used
  Scratch<Covering> lists_;
  Scratch<int64_t> counts_;
  const int64_t heads_, tails_;  ///< rows of g at the ends of the array, which are copied
  Scratch<T> edges_;
  StreamWriter<T> writer_;
};

}  // namespace poolgrad::PG_ISA
