// The row band: if windows repeat along the last axis, the lanes are neighbouring cells of a row.
// A verb first fills a band of padded rows from the source, then runs windows along them. Neutral
// cells before and behind a row complete the windows that an edge cut. A band has several rows, of
// one item or of many: a load that spans two fresh stores has to wait for both.
//
//   source rows    a b c d e    ->   . a b c d e .    ->   windows of 3 cells, stride 2:
//                                                          [. a b] [b c d] [d e .]
//
// With a stride S, S vectors of a padded row are split into their phases in registers
// (simd/interleave.hpp). Rows of less than a vector take one vector each, and rows of neighbouring
// items lie side by side, so small images need no loop of their own.
//
// Source: the filter engines of image libraries keep padded rows in this way.
#pragma once
#include "loops/regular_axis.hpp"
#include "loops/row_packer.hpp"
#include "loops/when.hpp"
#include "simd/interleave.hpp"

namespace poolgrad::PG_ISA {

/// Return a plan as one with at least three axes; those in front have one cell.
inline Plan three_axes(const Plan& plan, bool item_is_slab) {
  const Plan two = two_axes(plan);
  return two.rank > 2 && !item_is_slab ? two : with_unit_axis(two);
}
inline Plan below_first(const Plan& plan) {
  Plan below = plan;
  --below.rank;
  for (int a = 0; a < below.rank; ++a) below.axis[a] = plan.axis[a + 1];
  return below;
}

/// The geometry of padded rows.
///
///   a b c d e . . .  f g h i j . . .     two padded rows in whole vectors; dots are neutral cells,
///                 ^ first window         which stand before the next row and behind this one
struct PaddedRow {
  PaddedRow(const Plan& given, Piece p, int lanes)
      : whole(given),
        item_is_slab(whole.rank < 3 || (p.i1 - p.i0 >= 8 && whole.rank < kMaxRank &&
                                        whole.rows_per_item() <= kFewRows)),
        plan(three_axes(whole, item_is_slab)),
        slab(below_first(plan)),
        regular(plan.last(), 1) {
    rows_per_cell = whole.rank > 2 ? whole.rows_per_slab() : 1;
    rows_from = item_is_slab && whole.rank > 1 ? p.h0 * rows_per_cell : 0;
    rows_to = item_is_slab && whole.rank > 1 ? p.h1 * rows_per_cell : plan.rows_per_slab();
    slabs_from = item_is_slab ? 0 : p.h0;
    slabs_to = item_is_slab ? 1 : p.h1;
    i0 = p.i0, i1 = p.i1;
    if (!regular.fits || regular.period != 1 || regular.width(0) == 0) return;
    const int64_t first = regular.first(0), n = plan.last().n, m = plan.last().m,
                  reach = regular.stride * (m - 1) + regular.width(0);
    skip = first > 0 ? first : 0;
    const int64_t lead = first < 0 ? -first : 0;
    cells = n - skip < reach - lead ? n - skip : reach - lead;
    if (cells <= 0) return;
    inside = lead == 0 && cells == reach;
    vectors = (cells + lanes - 1) / lanes;
    window = -lead;
    const int64_t size = cells + lead > reach - lead ? cells + lead : reach - lead;
    pitch = (size + lanes - 1) / lanes * lanes;
    margin = (lead + lanes - 1) / lanes * lanes;
    slack = (regular.stride + 1) * lanes + regular.width(0);
    fits = true;
  }

  static constexpr int64_t kFewRows = 256;  ///< of an item, to be listed as one slab

  const Plan& whole;  ///< the plan of the call
  const bool item_is_slab;
  int64_t rows_per_cell;  ///< destination rows of a cell of its first axis
  const Plan plan;        ///< with at least three axes
  const Plan slab;        ///< without the first one
  const RegularAxis regular;
  int64_t i0, i1, slabs_from, slabs_to, rows_from,
      rows_to;          ///< the items, slabs and rows to compute
  int64_t skip = 0;     ///< the first source cell that windows read
  int64_t cells = 0;    ///< source cells from there on
  int64_t vectors = 0;  ///< vectors that hold them
  int64_t window = 0;   ///< the position of the first window; its neutral cells end the row before
  int64_t margin = 0;   ///< elements before the first padded row
  int64_t pitch = 0;    ///< elements from one padded row to the next
  int64_t slack = 0;    ///< elements behind the last padded row that vectors may read
  bool inside = false;  ///< windows need no neutral cells along the row
  bool fits = false;
};

/// Destination rows whose source rows lie alike: those of row k are `step` elements behind those of
/// row k - 1.
struct RowRun {
  int64_t row, rows;  ///< the first row of a slab, and their number
  int64_t step;
  int64_t list,
      nrows;  ///< the source rows of the first one: their place in the table, their number
  bool cut;   ///< an edge cut their windows, along an axis above the last
};

/// The rows of a slab: all destination rows of a cell of the first axis.
class SlabRows {
 public:
  /// List the runs of rows [from, to).
  SlabRows(const Plan& slab, int64_t from, int64_t to)
      : offsets_((to - from) * SourceRows::capacity(slab)), runs_(to - from) {
    const Axis& axis = slab.axis[slab.rank - 2];
    SourceRows rows(slab, false);
    WindowTaps window;
    for (int64_t u = from, list = 0; u < to;) {
      rows.seek(u, window);
      for (int64_t r = 0; r < window.nrows; ++r) offsets_[list + r] = window.rows[r];
      const int64_t j = u % axis.m, alike = axis.next_other(j) - j, left = to - u,
                    count = alike < left ? alike : left;
      runs_[count_++] = {u - from, count,        axis.step * slab.last().n,
                         list,     window.nrows, window.cut};
      list += window.nrows;
      u += count;
    }
  }
  int64_t count() const { return count_; }
  const RowRun& operator[](int64_t k) { return runs_[k]; }
  const int64_t* offsets(const RowRun& run) { return offsets_.get() + run.list; }

 private:
  Scratch<int64_t> offsets_;
  Scratch<RowRun> runs_;
  int64_t count_ = 0;
};

/// Call tap(vector) for each tap of V windows with stride S; the first begins at `from`. K: the
/// cells of a window if known at compile time, else 0.
template <int S, int K, int V, class T, class Tap>
PG_INLINE void each_column(const T* from, int64_t width, Tap&& tap) {
  using Order = std::make_integer_sequence<int, V>;
  const int64_t taps = K ? K : width;
#pragma GCC unroll 4
  for (int64_t t = 0; t < taps; t += S) {
    if constexpr (S == 1) {
      tap(load<V>(from + t));
    } else {
      Vec<Wide<T>, V> v[S];
      for (int p = 0; p < S; ++p) v[p] = load<V>(from + t + p * V);
      tap(deinterleave<0, S>(v, Order{}));
      if (t + 1 < taps) tap(deinterleave<1, S>(v, Order{}));
      if constexpr (S == 3)
        if (t + 2 < taps) tap(deinterleave<2, S>(v, Order{}));
    }
  }
}

/// Call tap(vector of x, vector of v) in the same way for two rows, the last tap first.
template <int S, int K, int V, class T, class Tap>
PG_INLINE void each_column_backwards(const T* x, const T* v, int64_t width, Tap&& tap) {
  using Order = std::make_integer_sequence<int, V>;
  const int64_t taps = K ? K : width;
#pragma GCC unroll 4
  for (int64_t t = (taps - 1) / S * S; t >= 0; t -= S) {
    if constexpr (S == 1) {
      tap(load<V>(x + t), load<V>(v + t));
    } else {
      Vec<Wide<T>, V> a[S], b[S];
      for (int p = 0; p < S; ++p) a[p] = load<V>(x + t + p * V), b[p] = load<V>(v + t + p * V);
      if constexpr (S == 3)
        if (t + 2 < taps) tap(deinterleave<2, S>(a, Order{}), deinterleave<2, S>(b, Order{}));
      if (t + 1 < taps) tap(deinterleave<1, S>(a, Order{}), deinterleave<1, S>(b, Order{}));
      tap(deinterleave<0, S>(a, Order{}), deinterleave<0, S>(b, Order{}));
    }
  }
}

/// Call f(stride, cells of a window) with numbers that loops know at compile time.
template <int S, class F>
PG_INLINE void with_short_width(int64_t width, F&& f) {
  width == 2 ? f(Lane<S>{}, Lane<2>{}) : f(Lane<S>{}, Lane<3>{});
}
template <class F>
PG_INLINE void with_short_window(int64_t stride, int64_t width, F&& f) {
  if (stride == 1) return with_short_width<1>(width, f);
  if (stride == 2) return with_short_width<2>(width, f);
  with_short_width<3>(width, f);
}
/// The same for windows of any number of cells: 0 stands for numbers other than 2 and 3, and for
/// all numbers without `Short`, for less code.
template <bool Short, class F>
PG_INLINE void with_window(int64_t stride, int64_t width, F&& f) {
  if constexpr (Short)
    if (width == 2 || width == 3) return with_short_window(stride, width, f);
  stride == 1   ? f(Lane<1>{}, Lane<0>{})
  : stride == 2 ? f(Lane<2>{}, Lane<0>{})
                : f(Lane<3>{}, Lane<0>{});
}

/// Rows that lie alike: `rows` of them in each of `items`, `step` and `item` elements apart.
struct RowGroup {
  int64_t items, item, rows, step;
};

/// The base of verbs over row bands: the padded rows, and where source rows and destination rows
/// lie.
template <class T>
class RowBand {
 public:
  using W = Wide<T>;
  static constexpr int V = kLanes<T>;
  using Cells = Vec<W, V>;

 protected:
  /// `neutral`: the cell outside of the array. `padded_rows`: padded rows of a band.
  RowBand(const PaddedRow& row, const T* x, W neutral, int64_t padded_rows, int bands = 1)
      : row_(row),
        plan_(row.plan),
        x_(x + row.skip),
        x_end_(x + plan_.outer * plan_.axis[0].n * plan_.source_slab()),
        neutral_(neutral),
        runs_(row.slab, row.rows_from, row.rows_to),
        most_(SourceRows::capacity(plan_)),
        places_(most_),
        size_(row.margin + padded_rows * row.pitch + row.slack),
        padded_(bands * size_) {
    fill_neutral(0, neutral);
    for (int c = 0; c < V; ++c) mask_[c] = (row.vectors - 1) * V + c < row.cells ? -1 : 0;
  }

  /// Return the padded rows; each source of a verb has a band of its own.
  W* band(int number = 0) { return padded_.get() + number * size_ + row_.margin; }
  [[gnu::noinline]] void fill_neutral(int number, W neutral) {
    W* const to = padded_.get() + number * size_;
    for (int64_t k = 0; k < size_; ++k) to[k] = neutral;
  }
  int64_t item() const { return plan_.axis[0].n * plan_.source_slab(); }

  /// Call f(first slab, slabs, r0, r1) for all bands of at most `rows` destination rows.
  template <class F>
  void each_band(int64_t most, F&& f) {
    const int64_t rows = row_.rows_to - row_.rows_from, slabs = row_.slabs_to - row_.slabs_from,
                  all = (row_.i1 - row_.i0) * slabs;
    if (rows > most) {  // a band is a part of a slab
      for (int64_t s = 0; s < all; ++s)
        for (int64_t r = 0; r < rows; r += most) f(s, 1, r, r + most < rows ? r + most : rows);
    } else if (rows > 0) {
      const int64_t some = most / rows;
      for (int64_t s = 0; s < all; s += some) f(s, s + some < all ? some : all - s, 0, rows);
    }
  }
  /// Call f(item i, slab j, slabs before it) for the slabs of a band.
  template <class F>
  void each_slab(int64_t s, int64_t slabs, F&& f) {
    const int64_t per = row_.slabs_to - row_.slabs_from;
    for (int64_t k = 0; k < slabs; ++k)
      f(row_.i0 + (s + k) / per, row_.slabs_from + (s + k) % per, k);
  }

  /// Call f(run, first row, end) for the runs that have rows in [r0, r1).
  template <class F>
  void each_run(int64_t r0, int64_t r1, F&& f) {
    for (int64_t q = 0; q < runs_.count(); ++q) {
      const RowRun& run = runs_[q];
      const int64_t first = run.row > r0 ? run.row : r0,
                    end = run.row + run.rows < r1 ? run.row + run.rows : r1;
      if (first < end) f(run, first, end);
    }
  }
  /// Count the destination rows of an item.
  int64_t item_rows() const { return plan_.axis[0].m * plan_.rows_per_slab(); }
  /// Return the end of the destination rows that this piece writes without a gap, from slab j of
  /// item i on.
  int64_t rows_end(int64_t i, int64_t j) const {
    const int64_t top = plan_.axis[0].m, per_slab = plan_.rows_per_slab();
    if (row_.rows_to - row_.rows_from < per_slab) return (i * top + j) * per_slab + row_.rows_to;
    return row_.slabs_to - row_.slabs_from < top ? (i * top + row_.slabs_to) * per_slab
                                                 : row_.i1 * top * per_slab;
  }
  /// Return true if the source is in no cache.
  bool is_far() const {
    return plan_.outer * item() * static_cast<int64_t>(sizeof(T)) >=
           stream_threshold.load(std::memory_order_relaxed);
  }

  /// List the source rows of row `first` of a run, in slab j. Return their number.
  int64_t list(const RowRun& run, int64_t j, int64_t first) {
    const Axis& top = plan_.axis[0];
    const int64_t *below = runs_.offsets(run), slab = plan_.source_slab();
    int64_t k = 0;
    for (int64_t h = top.start[j]; h < top.stop[j]; ++h)
      for (int64_t r = 0; r < run.nrows; ++r)
        places_[k++] = h * slab + below[r] + (first - run.row) * run.step;
    return k;
  }

  /// Return true if whole vectors of a source row are inside the array.
  bool can_read(const T* row) const { return x_end_ - row >= row_.vectors * V; }

  /// Fill padded rows: row k of item i from cells(x + i * g.item + k * g.step + cell). The longer
  /// loop is the inner one.
  template <class F>
  PG_INLINE void fill_rows(const RowGroup& g, const T* x, W* to, int64_t to_item, W outside,
                           F&& cells) {
    using Bits = std::make_signed_t<TapLane<T>>;
    Vec<Bits, V> mask;
    std::memcpy(&mask, mask_, sizeof mask);
    const Cells neutral = all<W, V>(outside);
    const int64_t last = (row_.vectors - 1) * V, pitch = row_.pitch;
    const bool by_rows = g.rows >= g.items;
    const int64_t outer = by_rows ? g.items : g.rows, inner = by_rows ? g.rows : g.items,
                  x_outer = by_rows ? g.item : g.step, x_inner = by_rows ? g.step : g.item,
                  to_outer = by_rows ? to_item : pitch, to_inner = by_rows ? pitch : to_item;
    for (int64_t i = 0; i < outer; ++i) {
      const T* from = x + i * x_outer;
      W* row = to + i * to_outer;
      for (int64_t k = 0; k < inner; ++k, from += x_inner, row += to_inner) {
        for (int64_t c = 0; c < last; c += V) store<V>(row + c, cells(from + c));
        store<V>(row + last, mask ? cells(from + last) : neutral);
      }
    }
  }

  const PaddedRow& row_;
  const Plan& plan_;
  const T *const x_,
      *const x_end_;  ///< from the first cell that windows read; the end of the array
  const W neutral_;
  SlabRows runs_;
  const int64_t most_;  ///< source rows of a destination row
  Scratch<int64_t> places_;
  const int64_t size_;  ///< elements of a band
  Scratch<W> padded_;
  std::make_signed_t<TapLane<T>> mask_[V];
};

/// Return the destination rows of a band whose padded rows, one for each, stay in the first cache.
template <class T>
int64_t rows_per_band(const PaddedRow& row) {
  const int64_t rows = kBandBytes / (row.pitch * static_cast<int64_t>(sizeof(Wide<T>)));
  return rows < 1 ? 1 : rows;
}

/// Return true if it pays to copy source rows whole, and to split each tap into phases. Rows that
/// need no neutral cells are not copied. Rows that leave the first cache pay for phases that are
/// split once (row_ring.hpp).
template <class T>
bool copies_pay(const PaddedRow& row) {
  if (row.inside) return row.cells * 4 >= 3 * kLanes<T>;
  const bool unit = row.regular.stride == 1;
  return row.cells * 2 >= (unit ? 3 : 4) * kLanes<T> &&
         (unit || row.pitch * static_cast<int64_t>(sizeof(T)) <= kBandBytes / 8);
}

/// A band of copied source rows: its destination rows, and the most source rows that these read.
/// Neighbouring bands copy the rows that both read, so a band has at least some rows.
struct CopiedBand {
  /// `width`: bytes of a cell, of all sources.
  CopiedBand(const PaddedRow& row, size_t width) {
    constexpr int64_t kLeast = 8;
    const Axis& axis = row.slab.axis[row.slab.rank - 2];
    const int64_t bytes = row.pitch * static_cast<int64_t>(width), cells = row.plan.axis[0].widest,
                  slab = row.plan.source_slab() / row.plan.last().n * cells,
                  all = row.rows_to - row.rows_from, budget = 2 * kBandBytes / bytes;
    if (row.slab.rank > 2 || slab <= budget) {  // whole slabs
      const int64_t some = row.slabs_to - row.slabs_from > 1 || slab > budget ? 1 : budget / slab;
      rows = all * some;
      copied = slab * some;
      return;
    }
    rows = (budget / cells - axis.widest) * axis.m / axis.n + 1;
    rows = rows < kLeast ? kLeast : rows;
    rows = rows < all ? rows : all;
    copied = 0;
    for (int64_t r = row.rows_from; r < row.rows_to; r += rows) {
      const int64_t end = r + rows < row.rows_to ? r + rows : row.rows_to,
                    read = (axis.stop[end - 1] - axis.start[r]) * cells;
      copied = read > copied ? read : copied;
    }
  }
  int64_t rows, copied;
};

/// A destination row of a band: source row r of its windows is at `shift` + the r-th number from
/// `list` on. `label`: what a verb says about rows that lie alike.
struct BandRow {
  int64_t shift, list, nrows, label;
};

/// The base of verbs that visit the taps of each window in row-major order: copy the source rows of
/// a band among neutral cells, then compute its destination rows. Rows that need no neutral cells
/// are read where they are, unless they come from memory: copying reads one row after the other.
template <class T, int Sources>
class CopiedRows : protected RowBand<T> {
 protected:
  using Base = RowBand<T>;
  using Base::V, Base::row_, Base::plan_, Base::runs_;
  using typename Base::W;

  /// Destination rows that are computed together: `rows` of each of `items`, from row `to` on. The
  /// source rows of the next item are `item` elements further. Rows up to `limit` are written
  /// later.
  struct Group {
    const W* source[Sources];
    int64_t items, item, rows, to, limit;
  };

  CopiedRows(const PaddedRow& row, const T* const (&x)[Sources], const W (&neutral)[Sources])
      : CopiedRows(row, x, neutral, CopiedBand(row, Sources * sizeof(W))) {}

  /// Call reduce(group) until all rows are computed. label(row of the result, source rows) says
  /// what rows of the same list have in common.
  template <class Label, class Reduce>
  void run_groups(Label&& label, Reduce&& reduce) {
    this->each_band(most_rows_, [&](int64_t s, int64_t slabs, int64_t r0, int64_t r1) {
      checkpoint(step_budget(),
                 slabs * (r1 - r0) * row_.pitch * this->most_ * row_.regular.width(0));
      const bool alike = row_.slabs_to - row_.slabs_from == 1;  // the slabs of all items lie alike
      this->each_slab(s, alike ? 1 : slabs, [&](int64_t i, int64_t j, int64_t) {
        reduce(prepare(i, alike ? slabs : 1, j, r0, r1, label));
      });
    });
  }

  const BandRow* tasks() { return tasks_.get(); }
  const int64_t* list(const BandRow& row) { return lists_.get() + row.list; }

  const int64_t most_rows_, lanes_;

 private:
  [[gnu::noinline, gnu::cold]] CopiedRows(const PaddedRow& row, const T* const (&x)[Sources],
                                          const W (&neutral)[Sources], CopiedBand band)
      : Base(row, x[0], neutral[0], band.copied, Sources),
        most_rows_(band.rows),
        lanes_((plan_.last().m + V - 1) / V * V),
        in_place_(std::is_same_v<T, W> && row.inside && !this->is_far()),
        lists_(most_rows_ * this->most_),
        tasks_(most_rows_) {
    for (int k = 0; k < Sources; ++k) {
      sources_[k] = x[k] + row.skip;
      neutrals_[k] = neutral[k];
      if (k > 0) this->fill_neutral(k, neutral[k]);
    }
  }

  /// List rows [r0, r1) of slab j of some items, and copy what they read.
  template <class Label>
  [[gnu::noinline, gnu::cold]] Group prepare(int64_t i, int64_t items, int64_t j, int64_t r0,
                                             int64_t r1, Label&& label) {
    const int64_t n = plan_.last().n, top = plan_.axis[0].m, per_slab = plan_.rows_per_slab(),
                  item = this->item(), row = (i * top + j) * per_slab + row_.rows_from;
    int64_t low = plan_.source_slab(), high = 0;  // source rows of a slab that the band reads
    this->each_run(r0, r1, [&](const RowRun& run, int64_t first, int64_t end) {
      const int64_t* const at = runs_.offsets(run);
      const int64_t from = at[0] + (first - run.row) * run.step,
                    to = at[run.nrows - 1] + (end - 1 - run.row) * run.step;
      low = from < low ? from : low;
      high = to > high ? to : high;
    });
    const int64_t copied = (high - low) / n + 1, cells = plan_.axis[0].length(j),
                  slab = plan_.source_slab(), start = plan_.axis[0].start[j];
    const int64_t reach = row_.regular.stride * lanes_ + row_.regular.width(0) + row_.slack;
    const bool in_place =
        in_place_ && this->x_end_ - (this->x_ + i * item) >=
                         (items - 1) * item + (start + cells - 1) * slab + high + reach;
    const int64_t pitch = in_place ? n : row_.pitch, to_slab = in_place ? slab : copied * pitch,
                  begin = in_place ? start * slab : 0;
    int64_t list = 0;
    this->each_run(r0, r1, [&](const RowRun& run, int64_t first, int64_t end) {
      const int64_t* const at = runs_.offsets(run);
      const int64_t nrows = cells * run.nrows;
      for (int64_t h = 0; h < cells; ++h)
        for (int64_t r = 0; r < run.nrows; ++r)
          lists_[list + h * run.nrows + r] =
              begin + h * to_slab + (in_place ? at[r] : (at[r] - low) / n * pitch);
      const int64_t common = label(row + first, nrows);
      for (int64_t r = first; r < end; ++r)
        tasks_[r - r0] = {(r - run.row) * (run.step / n) * pitch, list, nrows, common};
      list += nrows;
    });
    Group g{{}, items, in_place ? item : cells * to_slab, r1 - r0, row + r0, this->rows_end(i, j)};
    for (int k = 0; k < Sources; ++k) {
      const int64_t at = i * item + start * slab + low;
      if constexpr (std::is_same_v<T, W>)
        if (in_place) {
          g.source[k] = sources_[k] + i * item;
          continue;
        }
      for (int64_t h = 0; h < cells; ++h)
        copy(k, {items, item, copied, n}, at + h * slab, this->band(k) + h * to_slab, g.item);
      g.source[k] = this->band(k) + row_.window;
    }
    return g;
  }

  /// Copy rows of source k; the first is at element `at`.
  [[gnu::noinline]] void copy(int k, const RowGroup& g, int64_t at, W* to, int64_t to_item) {
    const T *const x = sources_[k] + at, *const end = x + (this->x_end_ - (this->x_ + at));
    const auto cells = [](const T* from) PG_LAMBDA { return load<V>(from); };
    const auto can_read = [&](const T* row) { return end - row >= row_.vectors * V; };
    if (can_read(x + (g.items - 1) * g.item + (g.rows - 1) * g.step))
      return this->fill_rows(g, x, to, to_item, neutrals_[k], cells);
    Scratch<T> last(row_.vectors * V);
    for (int64_t i = 0; i < g.items; ++i)
      for (int64_t r = 0; r < g.rows; ++r) {
        const T* from = x + i * g.item + r * g.step;
        if (!can_read(from)) {
          std::memcpy(static_cast<void*>(last.get()), from,
                      static_cast<size_t>(row_.cells) * sizeof(T));
          from = last.get();
        }
        this->fill_rows({1, 0, 1, 0}, from, to + i * to_item + r * row_.pitch, 0, neutrals_[k],
                        cells);
      }
  }

  const bool in_place_;
  const T* sources_[Sources];
  W neutrals_[Sources];
  Scratch<int64_t> lists_;
  Scratch<BandRow> tasks_;
};

}  // namespace poolgrad::PG_ISA
