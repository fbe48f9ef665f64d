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
#include <cstring>

#include "loops/regular_axis.hpp"
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
///
///   a c e .  b d . .                     the first row, split into two phases
struct PaddedRow {
  /// `split`: verbs read copies of rows by phase, if the stride is above 1.
  PaddedRow(const Plan& given, Piece p, int lanes, bool split)
      : whole(given),
        item_is_slab(whole.rank < 3 || (p.i1 - p.i0 >= 8 && whole.rank < kMaxRank &&
                                        whole.rows_per_item() <= kFewRows)),
        plan(three_axes(whole, item_is_slab)),
        slab(below_first(plan)),
        regular(plan.last()) {
    rows_per_cell = whole.rank > 2 ? whole.rows_per_slab() : 1;
    rows_from = item_is_slab && whole.rank > 1 ? p.h0 * rows_per_cell : 0;
    rows_to = item_is_slab && whole.rank > 1 ? p.h1 * rows_per_cell : plan.rows_per_slab();
    slabs_from = item_is_slab ? 0 : p.h0;
    slabs_to = item_is_slab ? 1 : p.h1;
    i0 = p.i0, i1 = p.i1;
    phases = split ? regular.stride : 1;
    if (!regular.fits || (regular.period > 1 && regular.stride > 1)) return;
    int64_t furthest = begin = plan.last().n;
    bool reads = false;
    for (int64_t k = 0; k < regular.period; ++k) {
      if (regular.width(k) == 0) continue;
      const int64_t from = regular.first(k), to = from + regular.width(k);
      begin = reads && begin < from ? begin : from;
      furthest = reads && furthest > to ? furthest : to;
      reads = true;
    }
    if (!reads) return;
    const int64_t n = plan.last().n,
                  reach = regular.stride * (regular.cells_per_phase - 1) + furthest - begin;
    skip = begin > 0 ? begin : 0;
    const int64_t lead = begin < 0 ? -begin : 0;
    cells = n - skip < reach - lead ? n - skip : reach - lead;
    if (cells <= 0) return;
    inside = lead == 0 && cells == reach;
    const auto parts = [](int64_t count, int64_t size) { return (count + size - 1) / size; };
    vectors = parts(cells, phases * lanes) * phases;
    window = -lead;
    const int64_t copied = parts(cells, phases) + parts(lead, phases),
                  read = parts(reach - lead, phases);
    phase = parts(copied > read ? copied : read, lanes) * lanes;
    pitch = phases * phase;
    margin = parts(lead, lanes) * lanes;
    slack = (regular.stride + 1) * lanes + furthest - begin;
    fits = true;
  }
  /// Return where a copied row has cell `at`, counted from its first one.
  int64_t place(int64_t at) const {
    const int64_t number = (at % phases + phases) % phases;
    return number * phase + (at - number) / phases;
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
  int64_t vectors = 0;  ///< vectors that hold them, as many for each phase
  int64_t begin = 0;    ///< the cell at which the first window begins
  int64_t window = 0;   ///< the position of the first window; its neutral cells end the row before
  int64_t margin = 0;   ///< elements before the first padded row
  int64_t phases = 1;   ///< of a copied row
  int64_t phase = 0;    ///< elements from one phase of a row to the next
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
      nrows;     ///< the source rows of the first one: their place in the table, their number
  bool cut;      ///< an edge cut their windows, along an axis above the last
  int64_t back;  ///< if not 0, the row so far before the first one lies like it
};

/// The rows of a slab: all destination rows of a cell of the first axis.
class SlabRows {
 public:
  /// List the runs of rows [from, to). `reversed`: the source rows of the first axis come first.
  SlabRows(const Plan& slab, int64_t from, int64_t to, bool reversed)
      : offsets_((to - from) * SourceRows::capacity(slab)), runs_(to - from) {
    const Axis& axis = slab.axis[slab.rank - 2];
    SourceRows rows(slab, reversed);
    WindowTaps window;
    for (int64_t u = from, list = 0; u < to;) {
      rows.seek(u, window);
      for (int64_t r = 0; r < window.nrows; ++r) offsets_[list + r] = window.rows[r];
      const int64_t j = u % axis.m, alike = axis.next_other(j) - j, left = to - u,
                    count = alike < left ? alike : left;
      const bool repeats = j - axis.period >= axis.lo && j < axis.hi;
      runs_[count_++] = {u - from,     count,      axis.step * slab.last().n, list,
                         window.nrows, window.cut, repeats ? axis.period : 0};
      list += window.nrows;
      u += count;
    }
  }
  int64_t count() const { return count_; }
  /// Return the run that has a row.
  int64_t run_of(int64_t row) {
    int64_t k = 0;
    for (int64_t end = count_; end - k > 1;) {
      const int64_t middle = k + (end - k) / 2;
      (runs_[middle].row <= row ? k : end) = middle;
    }
    return k;
  }
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

/// Call tap(vector of x, vector of v) for each tap of windows of at most S cells, the last tap
/// first.
template <int S, int V, class T, class Tap>
PG_INLINE void each_column_backwards(const T* x, const T* v, int64_t width, Tap&& tap) {
  using Order = std::make_integer_sequence<int, V>;
  Vec<Wide<T>, V> a[S], b[S];
  for (int p = 0; p < S; ++p) a[p] = load<V>(x + p * V), b[p] = load<V>(v + p * V);
  if constexpr (S == 3)
    if (width > 2) tap(deinterleave<2, S>(a, Order{}), deinterleave<2, S>(b, Order{}));
  if (width > 1) tap(deinterleave<1, S>(a, Order{}), deinterleave<1, S>(b, Order{}));
  tap(deinterleave<0, S>(a, Order{}), deinterleave<0, S>(b, Order{}));
}

/// The states of P neighbouring cells.
template <class State, int P>
struct Neighbours {
  State of[P];
};

/// Write P vectors of neighbouring cells, `left` in all.
template <class T, int P, class Cells>
PG_INLINE void store_neighbours(T* to, const Cells (&v)[P], int64_t left, const T* limit) {
  constexpr int V = kLanes<T>;
  using Order = std::make_integer_sequence<int, V>;
  if constexpr (P == 1) {
    left >= V ? store<V>(to, v[0]) : store_rest<T>(to, v[0], left, limit);
  } else {
    store_within<T>(to, interleave<0, P>(v, Order{}), left, limit);
    store_within<T>(to + V, interleave<1, P>(v, Order{}), left - V, limit);
    if constexpr (P == 3)
      store_within<T>(to + 2 * V, interleave<2, P>(v, Order{}), left - 2 * V, limit);
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
  RowBand(const PaddedRow& row, const T* x, W neutral, int64_t padded_rows, int sources = 1,
          bool reversed = false)
      : row_(row),
        plan_(row.plan),
        x_(x + row.skip),
        x_end_(x + plan_.outer * plan_.axis[0].n * plan_.source_slab()),
        far_(plan_.outer * item() * static_cast<int64_t>(sizeof(T)) >= kFetchedBytes),
        neutral_(neutral),
        runs_(row.slab, row.rows_from, row.rows_to, reversed),
        most_(SourceRows::capacity(plan_)),
        places_(most_),
        size_(row.margin + padded_rows * row.pitch + row.slack),
        padded_(sources * size_) {
    fill_neutral(0, neutral);
    for (int64_t c = 0; c < row.phases * V; ++c)
      mask_[c] = (row.vectors - row.phases) * V + c < row.cells ? -1 : 0;
  }

  /// Return the padded rows; each source of a verb has a band of its own.
  W* band(int source = 0) { return padded_.get() + source * size_ + row_.margin; }
  [[gnu::noinline]] void fill_neutral(int source, W neutral) {
    W* const to = padded_.get() + source * size_;
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
    for (int64_t q = runs_.run_of(r0); q < runs_.count() && runs_[q].row < r1; ++q) {
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

  /// Fill padded rows: row k of item i from cells(x + i * g.item + k * g.step + cell, cell). The
  /// longer loop is the inner one. S: the phases of a row.
  template <int S, class F>
  PG_INLINE void fill_rows(const RowGroup& g, const T* x, W* to, int64_t to_item, W outside,
                           F&& cells) {
    using Order = std::make_integer_sequence<int, V>;
    Vec<std::make_signed_t<TapLane<T>>, V> mask[S];
    std::memcpy(mask, mask_, sizeof mask);
    const Cells neutral = all<W, V>(outside);
    const int64_t last = (row_.vectors - S) * V, pitch = row_.pitch, phase = row_.phase;
    const bool by_rows = g.rows >= g.items;
    const int64_t outer = by_rows ? g.items : g.rows, inner = by_rows ? g.rows : g.items,
                  x_outer = by_rows ? g.item : g.step, x_inner = by_rows ? g.step : g.item,
                  to_outer = by_rows ? to_item : pitch, to_inner = by_rows ? pitch : to_item;
    const auto put = [&](W* here, const Cells* v) PG_LAMBDA {
      if constexpr (S == 1) return store<V>(here, v[0]);
      store<V>(here, deinterleave<0, S>(v, Order{}));
      store<V>(here + phase, deinterleave<1, S>(v, Order{}));
      if constexpr (S == 3) store<V>(here + 2 * phase, deinterleave<2, S>(v, Order{}));
    };
    for (int64_t i = 0; i < outer; ++i) {
      const T* from = x + i * x_outer;
      W* row = to + i * to_outer;
      for (int64_t k = 0; k < inner; ++k, from += x_inner, row += to_inner) {
        Cells v[S];
        for (int64_t c = 0; c < last; c += S * V) {
          for (int p = 0; p < S; ++p) v[p] = cells(from + c + p * V, c + p * V);
          put(row + c / S, v);
        }
        for (int p = 0; p < S; ++p)
          v[p] = mask[p] ? cells(from + last + p * V, last + p * V) : neutral;
        put(row + last / S, v);
      }
    }
  }

  /// Copy rows in the same way. Multiply cells by weights if given, and round.
  [[gnu::noinline]] void fill(const RowGroup& g, const T* x, W* to, int64_t to_item, W outside,
                              const W* weights) {
    const int64_t ahead = far_ ? kAhead : 0;
    const auto cells = [ahead](const T* from, int64_t) PG_LAMBDA {
      __builtin_prefetch(from + ahead);
      return load<V>(from);
    };
    if (weights)
      return fill_rows<1>(g, x, to, to_item, outside, [=](const T* from, int64_t c) PG_LAMBDA {
        return rounded<T, V>(cells(from, c) * load<V>(weights + c));
      });
    if (row_.phases == 1) return fill_rows<1>(g, x, to, to_item, outside, cells);
    row_.phases == 2 ? fill_rows<2>(g, x, to, to_item, outside, cells)
                     : fill_rows<3>(g, x, to, to_item, outside, cells);
  }

  const PaddedRow& row_;
  const Plan& plan_;
  const T *const x_,
      *const x_end_;  ///< from the first cell that windows read; the end of the array
  const bool far_;    ///< the source is in no cache
  static constexpr int64_t kAhead = 4096 / static_cast<int64_t>(sizeof(T));  ///< of prefetching
  const W neutral_;
  SlabRows runs_;
  const int64_t most_;  ///< source rows of a destination row
  Scratch<int64_t> places_;
  const int64_t size_;  ///< elements of a band
  Scratch<W> padded_;
  std::make_signed_t<TapLane<T>> mask_[3 * V];
};

/// Return the destination rows of a band whose padded rows, one for each, stay in the first cache.
template <class T>
int64_t rows_per_band(const PaddedRow& row) {
  const int64_t rows = kBandBytes / (row.pitch * static_cast<int64_t>(sizeof(Wide<T>)));
  return rows < 1 ? 1 : rows;
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
/// `list` on; `places`: the lists of its taps. `label`: what a verb says about rows that lie alike.
struct BandRow {
  int64_t shift, list, nrows, places, label;
};

/// The base of verbs that visit the taps of each window: copy the source rows of a band among
/// neutral cells, then compute its destination rows. Rows that need no neutral cells may be read
/// where they are. Those that come from memory and serve several windows are copied: copying reads
/// one row after the other. A band whose copies are there from the band before does not copy them
/// again; rows that were read in place leave them as they were.
template <class T, int Sources>
class BandTaps : protected RowBand<T> {
 protected:
  using Base = RowBand<T>;
  using Base::V, Base::row_, Base::plan_, Base::runs_;
  using typename Base::Cells;
  using typename Base::W;

  /// Destination rows that are computed together: `rows` of each of `items`, from row `to` on. The
  /// source rows of the next item are `item` elements further. Rows up to `limit` are written
  /// later.
  struct Group {
    const W* source[Sources];
    int64_t items, item, rows, to, limit;
    bool in_place;
  };

  /// The order of the taps, and true if a verb can read its rows where they are.
  struct Way {
    Order order;
    bool in_place;
  };

  BandTaps(const PaddedRow& row, const T* const (&x)[Sources], const W (&neutral)[Sources], Way way)
      : BandTaps(row, x, neutral, way, CopiedBand(row, Sources * sizeof(W))) {}

  /// Call reduce(group) until all rows are computed. label(row of the result, source rows) says
  /// what rows of the same list have in common. `weights`, unless null, returns a row of weights
  /// for row r of cell h of the first axis: count(h, r), then row(count).
  template <class Label, class Reduce, class Weights = std::nullptr_t>
  void run_groups(Label&& label, Reduce&& reduce, Weights* weights = nullptr) {
    this->each_band(most_rows_, [&](int64_t s, int64_t slabs, int64_t r0, int64_t r1) {
      checkpoint(step_budget(), slabs * (r1 - r0) * row_.pitch * this->most_ * plan_.last().widest);
      const bool alike = row_.slabs_to - row_.slabs_from == 1;  // the slabs of all items lie alike
      this->each_slab(s, alike ? 1 : slabs, [&](int64_t i, int64_t j, int64_t) {
        reduce(prepare(i, alike ? slabs : 1, j, r0, r1, label, weights));
      });
    });
  }

  /// Call f(row of the result, elements before its source rows, its task) for the rows of a group.
  template <class F>
  PG_INLINE void each_row(const Group& g, F&& f) {
    const int64_t per_item = this->item_rows();
    for (int64_t i = 0; i < g.items; ++i)
      for (int64_t r = 0; r < g.rows; ++r)
        f(g.to + i * per_item + r, i * g.item + tasks_[r].shift, tasks_[r]);
  }
  const int64_t* list(const BandRow& row) { return lists_.get() + row.list; }

  /// A vector of lanes; each stands for P neighbouring cells: the elements before its source rows,
  /// the first cell of the result, and the cells of the row from there on.
  struct Spot {
    int64_t from, at, left;
  };

  /// Reduce the rows of a group: begin(spot) returns P states, step(state, place) visits a tap,
  /// end(states, spot, label) takes them. Vectors of windows that lie alike visit the taps
  /// together, because each step waits for the one before.
  template <int P, class Begin, class Step, class End>
  PG_INLINE void reduce_rows(const Group& g, Begin&& begin, Step&& step, End&& end) {
    constexpr int kTogether = P == 1 ? 4 : 2;
    Spot spots[kTogether];
    const BandRow* alike = nullptr;
    const auto reduce = [&](auto many, bool side_by_side, auto&& spot) PG_LAMBDA {
      constexpr int N = decltype(many)::count;
      decltype(begin(spots[0])) s[N];
      int64_t from[N];
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) s[i] = begin(spot(i)), from[i] = spot(i).from;
      const int64_t* places = places_of_.get() + alike->places;
#pragma GCC unroll 3
      for (int p = 0; p < P; ++p, places += most_taps_)
        for (int64_t k = 0, taps = alike->nrows * widths_[p]; k < taps; ++k)
#pragma GCC unroll 4
          for (int i = 0; i < N; ++i)
            step(s[i].of[p], side_by_side ? from[0] + places[k] + i * V : from[i] + places[k]);
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) end(s[i], spot(i), alike->label);
    };
    const int64_t m = plan_.last().m, per_item = this->item_rows();
    int count = 0;
    for (int64_t i = 0, r = 0; i <= g.items; r + 1 < g.rows ? ++r : (r = 0, ++i)) {
      const BandRow* const task = i < g.items ? tasks_.get() + r : nullptr;
      if (!task || !alike || task->list != alike->list) {
        for (int k = 0; k < count; ++k)
          reduce(Lane<1>{}, false, [&](int) PG_LAMBDA { return spots[k]; });
        count = 0;
        if (!(alike = task)) return;
      }
      Spot next{i * g.item + task->shift, (g.to + i * per_item + r) * m, m};
      if (count == 0)
        for (; next.left > (kTogether - 1) * P * V; next = moved<P>(next, kTogether))
          reduce(Lane<kTogether>{}, true, [&](int k) PG_LAMBDA { return moved<P>(next, k); });
      for (; next.left > 0; next = moved<P>(next, 1)) {
        spots[count] = next;
        if (++count < kTogether) continue;
        reduce(Lane<kTogether>{}, false, [&](int k) PG_LAMBDA { return spots[k]; });
        count = 0;
      }
    }
  }
  template <int P>
  PG_INLINE static Spot moved(Spot spot, int vectors) {
    return {spot.from + vectors * V, spot.at + vectors * P * V, spot.left - vectors * P * V};
  }

  const int64_t most_rows_, lanes_;

 private:
  [[gnu::noinline, gnu::cold]] BandTaps(const PaddedRow& row, const T* const (&x)[Sources],
                                        const W (&neutral)[Sources], Way way, CopiedBand band)
      : Base(row, x[0], neutral[0], band.copied, Sources, way.order == Order::columns),
        most_rows_(band.rows),
        lanes_((row.regular.cells_per_phase + V - 1) / V * V),
        way_(way),
        in_place_(way.in_place && std::is_same_v<T, W> && row.inside &&
                  (!this->far_ || reads_rows_once())),
        most_taps_(this->most_ * plan_.last().widest),
        lists_(most_rows_ * this->most_),
        places_of_(most_rows_ * row.regular.period * most_taps_),
        columns_{Scratch<int64_t>(row.regular.period * plan_.last().widest),
                 Scratch<int64_t>(row.regular.period * plan_.last().widest)},
        tasks_(most_rows_) {
    for (int p = 0; p < row.regular.period; ++p) {
      widths_[p] = row.regular.width(p);
      for (int64_t t = 0; t < widths_[p]; ++t) {
        const int64_t k = p * plan_.last().widest + t,
                      at = row.window + row.regular.first(p) - row.begin + t;
        columns_[0][k] = row.place(at);
        columns_[1][k] = at;
      }
    }
    for (int k = 0; k < Sources; ++k) {
      sources_[k] = x[k] + row.skip;
      neutrals_[k] = neutral[k];
      if (k > 0) this->fill_neutral(k, neutral[k]);
    }
  }

  /// List rows [r0, r1) of slab j of some items, and copy what they read.
  template <class Label, class Weights>
  [[gnu::noinline, gnu::cold]] Group prepare(int64_t i, int64_t items, int64_t j, int64_t r0,
                                             int64_t r1, Label&& label, Weights* weights) {
    const int64_t n = plan_.last().n, slab = plan_.source_slab(), item = this->item(),
                  cells = plan_.axis[0].length(j), start = plan_.axis[0].start[j],
                  row = (i * plan_.axis[0].m + j) * plan_.rows_per_slab() + row_.rows_from;
    find_ends(r0, r1);
    const int64_t low = low_, high = high_, copied = high < low ? 0 : (high - low) / n + 1;
    const int64_t reach = row_.regular.stride * lanes_ + plan_.last().widest + row_.slack;
    const bool in_place =
        in_place_ && this->x_end_ - (this->x_ + i * item) >=
                         (items - 1) * item + (start + cells - 1) * slab + high + reach;
    const int64_t pitch = in_place ? n : row_.pitch, to_slab = in_place ? slab : copied * pitch;
    const int64_t span = plan_.axis[0].span ? plan_.axis[0].span[j] : cells;
    const BandKey key{cells, span, r0, r1, in_place};
    if (!(key == listed_)) {
      listed_ = key;
      list_rows(row, pitch, to_slab, label);
    }
    const BandCopy copy_key{i, items, start, cells, r0, r1};
    const bool known = copy_key == copied_;
    copied_ = copy_key;
    Group g{{},      items,    in_place ? item : cells * to_slab,
            r1 - r0, row + r0, this->rows_end(i, j),
            in_place};
    for (int k = 0; k < Sources; ++k) {
      const int64_t at = i * item + start * slab + low;
      if constexpr (std::is_same_v<T, W>)
        if (in_place) {
          g.source[k] = sources_[k] + i * item + start * slab;
          continue;
        }
      for (int64_t h = 0; h < cells && !known; ++h) {
        const RowGroup rows{items, item, copied, n};
        W* const to = this->band(k) + h * to_slab;
        if constexpr (std::is_same_v<Weights, std::nullptr_t>)
          copy(k, rows, at + h * slab, to, g.item, nullptr);
        else copy_weighed(rows, at + h * slab, to, g.item, start + h, low / n, *weights);
      }
      g.source[k] = this->band(k);
    }
    return g;
  }

  /// Copy rows of the first source: row r0 of cell h of the first axis is at element `at`.
  template <class Weights>
  void copy_weighed(const RowGroup& g, int64_t at, W* to, int64_t to_item, int64_t h, int64_t r0,
                    Weights& weights) {
    for (int64_t r = 0; r < g.rows;) {
      const int64_t first = r, count = weights.count(h, r0 + r);
      while (r < g.rows && weights.count(h, r0 + r) == count) ++r;
      copy(0, {g.items, g.item, r - first, g.step}, at + first * g.step, to + first * row_.pitch,
           to_item, weights.row(count));
    }
  }

  /// Copy rows of source k; the first is at element `at`. Multiply cells by weights if given.
  [[gnu::noinline]] void copy(int k, const RowGroup& g, int64_t at, W* to, int64_t to_item,
                              const W* weights) {
    const T *const x = sources_[k] + at, *const end = x + (this->x_end_ - (this->x_ + at));
    const auto can_read = [&](const T* row) { return end - row >= row_.vectors * V; };
    if (g.rows == 0) return;
    if (can_read(x + (g.items - 1) * g.item + (g.rows - 1) * g.step))
      return this->fill(g, x, to, to_item, neutrals_[k], weights);
    Scratch<T> last(row_.vectors * V);
    for (int64_t i = 0; i < g.items; ++i)
      for (int64_t r = 0; r < g.rows; ++r) {
        const T* from = x + i * g.item + r * g.step;
        if (!can_read(from)) {
          std::memcpy(static_cast<void*>(last.get()), from,
                      static_cast<size_t>(row_.cells) * sizeof(T));
          from = last.get();
        }
        this->fill({1, 0, 1, 0}, from, to + i * to_item + r * row_.pitch, 0, neutrals_[k], weights);
      }
  }

  /// Find the first and the last source row of a slab that rows [r0, r1) read.
  void find_ends(int64_t r0, int64_t r1) {
    if (r0 == ends_of_[0] && r1 == ends_of_[1]) return;
    ends_of_[0] = r0, ends_of_[1] = r1;
    low_ = plan_.source_slab(), high_ = -plan_.last().n;
    this->each_run(r0, r1, [&](const RowRun& run, int64_t first, int64_t end) {
      if (run.nrows == 0) return;
      const int64_t* const at = runs_.offsets(run);
      const int64_t from = at[0] + (first - run.row) * run.step,
                    to = at[run.nrows - 1] + (end - 1 - run.row) * run.step;
      low_ = from < low_ ? from : low_;
      high_ = to > high_ ? to : high_;
    });
  }

  /// List the source rows and the taps of the rows of a band. Rows that lie alike share a list.
  template <class Label>
  void list_rows(int64_t row, int64_t pitch, int64_t to_slab, Label&& label) {
    const int64_t cells = listed_.cells, r0 = listed_.r0, r1 = listed_.r1;
    const bool in_place = listed_.in_place;
    const int64_t n = plan_.last().n;
    int64_t list = 0;
    const BandRow* latest = nullptr;
    this->each_run(r0, r1, [&](const RowRun& run, int64_t first, int64_t end) {
      const int64_t step = run.step / n * pitch;
      BandRow* const task = tasks_.get() + (first - r0);
      if (run.back && first - run.back >= r0) {
        *task = task[-run.back];
        task->shift += step;
      } else {
        const int64_t* const at = runs_.offsets(run);
        int64_t* const rows = lists_.get() + list * this->most_;
        for (int64_t h = 0; h < cells; ++h)
          for (int64_t r = 0; r < run.nrows; ++r)
            rows[way_.order == Order::columns ? r * cells + h : h * run.nrows + r] =
                h * to_slab + (in_place ? at[r] : (at[r] - low_) / n * pitch);
        const int64_t nrows = cells * run.nrows, from = nrows ? rows[0] : 0;
        for (int64_t r = 0; r < nrows; ++r) rows[r] -= from;
        *task = {from + (first - run.row) * step, list * this->most_, nrows,
                 list * row_.regular.period * most_taps_, label(row + first, nrows)};
        if (latest && is_like(*task, *latest)) {
          task->list = latest->list, task->places = latest->places;
        } else {
          list_taps(*task, in_place);
          ++list;
        }
        latest = task;
      }
      for (int64_t r = 1; r < end - first; ++r) {
        task[r] = task[0];
        task[r].shift += r * step;
      }
    });
  }
  /// Return true if the source rows of two rows lie alike.
  [[gnu::noinline, gnu::cold]] bool is_like(const BandRow& a, const BandRow& b) {
    return a.label == b.label && a.nrows == b.nrows &&
           std::memcmp(list(a), list(b), static_cast<size_t>(a.nrows) * sizeof(int64_t)) == 0;
  }
  /// List the taps of the windows of a row, for each cell of a period.
  [[gnu::noinline, gnu::cold]] void list_taps(const BandRow& row, bool in_place) {
    const int64_t *const rows = list(row), *const columns = columns_[in_place].get();
    WindowTaps window;
    window.nrows = row.nrows;
    for (int p = 0; p < row_.regular.period; ++p) {
      int64_t* to = places_of_.get() + row.places + p * most_taps_;
      window.width = widths_[p];
      const auto add = [&](int64_t r, int64_t t) {
        *to++ = rows[r] + columns[p * plan_.last().widest + t];
      };
      if (way_.order == Order::columns) each_tap<Order::columns>(window, add);
      else if (way_.order == Order::backwards) each_tap<Order::backwards>(window, add);
      else each_tap<Order::rows>(window, add);
    }
  }

  /// True if no two windows share a source row: copying a row saves no later read of it.
  bool reads_rows_once() const {
    return this->item_rows() * this->most_ <=
           plan_.axis[0].n * plan_.source_slab() / plan_.last().n;
  }

  /// The lists of a band depend on this: the cells and the span of its windows along the first
  /// axis, and its rows.
  struct BandKey {
    int64_t cells, span, r0, r1;
    bool in_place;
    bool operator==(const BandKey&) const = default;
  };
  /// The copies of a band depend on this. Neighbouring slabs of a gradient may read the same rows.
  struct BandCopy {
    int64_t i, items, start, cells, r0, r1;
    bool operator==(const BandCopy&) const = default;
  };

  const Way way_;
  const bool in_place_;
  const int64_t most_taps_;
  int64_t widths_[3] = {}, ends_of_[2] = {-1, -1}, low_ = 0, high_ = 0;
  BandKey listed_{-1, 0, 0, 0, false};
  BandCopy copied_{-1, 0, 0, 0, 0, 0};
  const T* sources_[Sources];
  W neutrals_[Sources];
  Scratch<int64_t> lists_, places_of_, columns_[2];  ///< columns: of copied rows, and in place
  Scratch<BandRow> tasks_;
};

}  // namespace poolgrad::PG_ISA
