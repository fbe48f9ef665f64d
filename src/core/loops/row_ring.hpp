// The row ring: if windows repeat along the last axis, the lanes are neighbouring cells of a row.
// Source rows are packed (row_packer.hpp) into a ring of slots; each destination row reads the
// slots of its window. Overlapping windows find their common rows packed already:
//
//   source rows      0 1 2 3 4 5 ...          window 3 x 3, stride 1
//   ring             0 1 2 | 3 4 5            3 slots and 3 rows ahead
//   destination 1    reads slots of rows 0 1 2
//   destination 2    reads slots of rows 1 2 3
//
// Source: the filter engines of image libraries keep a ring of padded rows in this way.
#pragma once
#include "loops/regular_axis.hpp"
#include "loops/row_packer.hpp"
#include "loops/when.hpp"

namespace poolgrad::PG_ISA {

/// The taps of a window: offsets `off` in each of the rows at `rows`.
struct RowTaps {
  const int64_t* rows;
  int64_t nrows;
  const int64_t* off;
  int64_t width;
};

/// Reduce whole vectors over their taps, several at a time. K: the number of offsets if known at
/// compile time, else 0.
template <class T, Order order, int K, class Begin, class Step, class End>
PG_INLINE void reduce_rows_of(const RowTaps& w, int64_t lanes, Begin&& begin, Step&& step,
                              End&& end) {
  constexpr int V = kLanes<T>;
  const int64_t nrows = w.nrows, *const rows = w.rows;
  int64_t off[K ? K : 1];
  for (int t = 0; t < K; ++t) off[t] = w.off[t];
  const auto block = [&](auto many, int64_t c) {
    constexpr int N = decltype(many)::count;
    decltype(begin(c)) s[N];
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) s[i] = begin(c + i * V);
    WindowTaps window;
    window.nrows = nrows;
    window.width = K ? K : w.width;
    each_tap<order>(window, [&](int64_t r, int64_t t) {
      const int64_t place = rows[r] + (K ? off[t] : w.off[t]) + c;
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) step(s[i], place + i * V);
    });
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) end(s[i], c + i * V);
  };
  int64_t c = 0;
  for (; c + 4 * V <= lanes; c += 4 * V) block(Lane<4>{}, c);
  for (; c < lanes; c += V) block(Lane<1>{}, c);
}

template <class T, Order order, class Begin, class Step, class End>
PG_INLINE void reduce_rows(const RowTaps& w, int64_t lanes, Begin&& begin, Step&& step, End&& end) {
  if (w.width == 2) return reduce_rows_of<T, order, 2>(w, lanes, begin, step, end);
  if (w.width == 3) return reduce_rows_of<T, order, 3>(w, lanes, begin, step, end);
  reduce_rows_of<T, order, 0>(w, lanes, begin, step, end);
}

/// A destination row: the packed source rows that it reads, in order, and its place.
struct RingRow {
  const int64_t* rows;
  int64_t nrows, item, row;  ///< `row` counts over all items
};

/// Compute the rows of a piece one after the other: pack(source row, count along the other axes,
/// to) fills a slot, compute(RingRow) computes a destination row from its slots. Several rows are
/// packed before any is read: a load that spans two fresh stores has to wait for both.
template <class W>
class RowRing {
 public:
  RowRing(const Plan& plan, bool reversed, int64_t size)
      : plan_(plan),
        reversed_(reversed),
        size_(size),
        rows_per_slab_(plan.rows_per_slab()),
        source_rows_(plan.source_slab() / plan.last().n),
        most_(SourceRows::capacity(plan)),
        width_(most_ / plan.axis[0].widest),
        disjoint_(all_disjoint(plan)),
        slot_count_(slots(plan)),
        slot_of_(plan.axis[0].n),
        lists_(rows_per_slab_ * width_),
        lengths_(rows_per_slab_),
        counts_(plan.last().count ? source_rows_ : 0),
        rows_(most_),
        ring_(slot_count_ * size) {
    const int64_t step = slot_count_ ? source_rows_ % slot_count_ : 0;
    for (int64_t h = 0, slot = 0; h < plan.axis[0].n; ++h) {
      slot_of_[h] = slot * size;
      slot += step < slot_count_ - slot ? step : step - slot_count_;
    }
    Plan below = plan;
    --below.rank;
    for (int a = 0; a < below.rank; ++a) below.axis[a] = plan.axis[a + 1];
    SourceRows rows(below, reversed);
    WindowTaps window;
    for (int64_t u = 0; u < rows_per_slab_; ++u) {
      rows.seek(u, window);
      lengths_[u] = window.nrows;
      for (int64_t r = 0; r < window.nrows; ++r)
        lists_[u * width_ + r] = window.rows[r] / plan.last().n * (disjoint_ ? 1 : size);
    }
    if (!plan.last().count) return;
    for (int64_t r = 0; r < source_rows_; ++r) {
      int64_t rest = r;
      counts_[r] = 1;
      for (int a = plan.rank - 2; a >= 1; rest /= plan.axis[a].n, --a)
        counts_[r] *= plan.axis[a].count[rest % plan.axis[a].n];
    }
  }

  /// Return true if the lists and the ring stay in cache.
  static bool fits_cache(const Plan& plan, int64_t size) {
    if (plan.axis[0].widest == 0 || SourceRows::capacity(plan) == 0 || plan.last().n == 0)
      return false;
    return slots(plan) * size * static_cast<int64_t>(sizeof(W)) <= kRingBytes &&
           plan.rows_per_slab() * SourceRows::capacity(plan) <= 1 << 15;
  }

  W* data() { return ring_.get(); }
  int64_t slot_count() const { return slot_count_; }

  template <class Pack, class Compute>
  void run(Piece p, Pack&& pack, Compute&& compute) {
    const Axis& top = plan_.axis[0];
    for (int64_t i = p.i0; i < p.i1; ++i) {
      int64_t made = 0;
      for (int64_t j = p.h0; j < p.h1; ++j) {
        checkpoint(step_budget(), (width_ * rows_per_slab_ + 1) * size_);
        if (!disjoint_ && made < top.stop[j])
          made = ahead(i, made > top.start[j] ? made : top.start[j], top.stop[j],
                       top.stop[p.h1 - 1], pack);
        for (int64_t u = 0; u < rows_per_slab_; ++u)
          compute(
              RingRow{rows_.get(), list(i, j, u, pack), i, (i * top.m + j) * rows_per_slab_ + u});
      }
    }
  }

 private:
  static constexpr int64_t kRowsAhead = 3;
  static int64_t slots(const Plan& plan) {
    return all_disjoint(plan) ? SourceRows::capacity(plan)
                              : (plan.axis[0].widest + (plan.rank == 2 ? kRowsAhead : 0)) *
                                    (plan.source_slab() / plan.last().n);
  }
  static bool all_disjoint(const Plan& plan) {
    for (int a = 0; a + 1 < plan.rank; ++a)
      for (int64_t j = 1; j < plan.axis[a].m; ++j)
        if (plan.axis[a].stop[j - 1] > plan.axis[a].start[j]) return false;
    return true;
  }
  template <class Pack>
  PG_INLINE void pack_row(int64_t i, int64_t h, int64_t r, int64_t at, Pack&& pack) {
    const Axis& top = plan_.axis[0];
    pack((i * top.n + h) * source_rows_ + r, top.count ? top.count[h] * counts_[r] : 1,
         ring_.get() + at);
  }
  /// Pack the rows of source cells [from, to) of the first axis, and some more if a cell has one
  /// row. Return the first cell that is not packed.
  template <class Pack>
  int64_t ahead(int64_t i, int64_t from, int64_t to, int64_t end, Pack&& pack) {
    if (plan_.rank == 2) to = to + kRowsAhead < end ? to + kRowsAhead : end;
    for (int64_t h = from; h < to; ++h)
      for (int64_t r = 0; r < source_rows_; ++r) pack_row(i, h, r, slot_of_[h] + r * size_, pack);
    return to;
  }
  /// List the slots that destination row u of slab j reads, in the order of its taps.
  template <class Pack>
  PG_INLINE int64_t list(int64_t i, int64_t j, int64_t u, Pack&& pack) {
    const Axis& top = plan_.axis[0];
    const int64_t *below = lists_.get() + u * width_, h0 = top.start[j], h1 = top.stop[j],
                  n = lengths_[u];
    int64_t k = 0;
    const auto add = [&](int64_t h, int64_t r) {
      const int64_t at = disjoint_ ? k * size_ : slot_of_[h] + r;
      if (disjoint_) pack_row(i, h, r, at, pack);
      rows_[k++] = at;
    };
    if (reversed_)
      for (int64_t r = 0; r < n; ++r)
        for (int64_t h = h0; h < h1; ++h) add(h, below[r]);
    else
      for (int64_t h = h0; h < h1; ++h)
        for (int64_t r = 0; r < n; ++r) add(h, below[r]);
    return k;
  }

  const Plan& plan_;
  const bool reversed_;
  const int64_t size_, rows_per_slab_, source_rows_, most_, width_;
  const bool disjoint_;
  const int64_t slot_count_;
  Scratch<int64_t> slot_of_, lists_, lengths_;
  Scratch<int64_t> counts_, rows_;
  Scratch<W> ring_;
};

}  // namespace poolgrad::PG_ISA
