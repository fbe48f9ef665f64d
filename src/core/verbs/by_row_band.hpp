// fold, spread, near, select, choose and recall over row bands, for plans with inner == 1.
#pragma once
#include "loops/row_band.hpp"
#include "reducers/near.hpp"
#include "verbs/max.hpp"
#include "verbs/mean.hpp"

namespace poolgrad::PG_ISA {

/// Maxima by row bands, one axis after the other: first the source rows of a destination row are
/// joined, cell by cell, into one padded row; then windows run along it. So the cells of a row are
/// split into phases once per destination row, not once per source row.
///
///   a b c d e         padded row                windows of 3 cells, stride 2
///   f g h i j    ->   . af bg ch di ej .   ->   [. af bg] [bg ch di] [di ej .]
///
/// Joining rows first changes which of two zeros comes first:
///
///   -1 -0      row by row the first zero is -0, column by column it is +0
///   +0 -1
///
/// The zero that comes first row by row is also the first of its column, so it is among the joined
/// cells. If none of these is -0, the result is right. Else the direct loop computes the band.
///
/// Source: separable maxima, e.g. M. van Herk, "A fast algorithm for local minimum and maximum
/// filters on rectangular and octagonal kernels", Pattern Recognition Letters 13 (1992).
template <class T>
class SelectRows : RowBand<T> {
  using Base = RowBand<T>;
  using Base::V, Base::row_, Base::plan_, Base::x_, Base::places_, Base::most_, Base::neutral_,
      Base::far_, Base::kAhead;
  using typename Base::Cells;
  using typename Base::W;

 public:
  SelectRows(const PaddedRow& row, const RowArrays<T, 1, 0>& a, Start start)
      : SelectRows(row, a, start, rows_per_band<T>(row)) {}

  void run() {
    this->each_band(most_rows_, [&](int64_t s, int64_t slabs, int64_t r0, int64_t r1) {
      checkpoint(step_budget(), slabs * (r1 - r0) * row_.pitch * most_);
      negative_zero_ = false;
      join_band(s, slabs, r0, r1);
      negative_zero_ ? by_taps(s, slabs, r0, r1) : along_band(s, slabs, r0, r1);
    });
  }

 private:
  void join_band(int64_t s, int64_t slabs, int64_t r0, int64_t r1) {
    const int64_t per = row_.slabs_to - row_.slabs_from, size = (r1 - r0) * row_.pitch;
    const bool alike = per == 1;  // the slabs of all items lie alike
    this->each_slab(s, alike ? 1 : slabs, [&](int64_t i, int64_t j, int64_t k) {
      this->each_run(r0, r1, [&](const RowRun& run, int64_t first, int64_t end) {
        join_run(run, i, alike ? slabs : 1, j, first, end,
                 this->band() + k * size + (first - r0) * row_.pitch, size);
      });
    });
  }
  /// Run along the rows of a band: slabs that follow each other in the result together.
  void along_band(int64_t s, int64_t slabs, int64_t r0, int64_t r1) {
    const int64_t rows = r1 - r0, m = plan_.last().m, top = plan_.axis[0].m,
                  per_slab = plan_.rows_per_slab();
    const bool slab = rows == per_slab, items = slab && row_.slabs_to - row_.slabs_from == top;
    int64_t done = 0;
    this->each_slab(s, slabs, [&](int64_t i, int64_t j, int64_t k) {
      if (k < done) return;
      const int64_t left = items ? slabs - k : slab ? row_.slabs_to - j : 1;
      const int64_t here = left < slabs - k ? left : slabs - k,
                    first = (i * top + j) * per_slab + row_.rows_from;
      along(this->band() + k * rows * row_.pitch + row_.window, here * rows, y_ + (first + r0) * m,
            y_ + this->rows_end(i, j) * m);
      done = k + here;
    });
  }

  /// Join rows [first, end) of a run, of slab j of some items.
  [[gnu::noinline]] void join_run(const RowRun& run, int64_t i, int64_t items, int64_t j,
                                  int64_t first, int64_t end, W* to, int64_t to_item) {
    const int64_t nrows = this->list(run, j, first), item = this->item();
    const T* const x = x_ + i * item;
    const RowGroup g{items, item, end - first, run.step};
    const bool cut = is_cut(run, j);
    if (this->can_read(x + (items - 1) * item + (g.rows - 1) * g.step + places_[nrows - 1]))
      return join(g, x, places_.get(), nrows, cut, to, to_item);
    for (int64_t k = 0; k < items; ++k)
      for (int64_t r = 0; r < g.rows; ++r)
        join_row(x + k * item + r * g.step, places_.get(), nrows, cut,
                 to + k * to_item + r * row_.pitch);
  }
  bool is_cut(const RowRun& run, int64_t j) const {
    const Axis& top = plan_.axis[0];
    return run.cut || (top.span && top.span[j] != top.length(j));
  }
  [[gnu::noinline, gnu::cold]] void join_row(const T* x, const int64_t* at, int64_t nrows, bool cut,
                                             W* to) {
    if (this->can_read(x + at[nrows - 1])) return join({1, 0, 1, 0}, x, at, nrows, cut, to, 0);
    const int64_t size = row_.vectors * V;  // at the end of the array
    Scratch<T> copies(nrows * size);
    Scratch<int64_t> places(nrows);
    for (int64_t r = 0; r < nrows; ++r) {
      places[r] = r * size;
      std::memcpy(static_cast<void*>(copies.get() + r * size), x + at[r],
                  static_cast<size_t>(row_.cells) * sizeof(T));
    }
    join({1, 0, 1, 0}, copies.get(), places.get(), nrows, cut, to, 0);
  }
  [[gnu::noinline]] void join(const RowGroup& g, const T* x, const int64_t* at, int64_t nrows,
                              bool cut, W* to, int64_t to_item) {
    if (far_) return join_of<0, true>(g, x, at, nrows, cut, to, to_item);
    if (nrows == 2) return join_of<2, false>(g, x, at, 2, cut, to, to_item);
    if (nrows == 3) return join_of<3, false>(g, x, at, 3, cut, to, to_item);
    join_of<0, false>(g, x, at, nrows, cut, to, to_item);
  }
  /// K: the number of rows if known at compile time, else 0. Far: the array is not in a cache.
  template <int K, bool Far>
  PG_INLINE void join_of(const RowGroup& g, const T* x, const int64_t* at, int64_t nrows, bool cut,
                         W* to, int64_t to_item) {
    using Bits = std::make_signed_t<TapLane<T>>;
    const Cells least = all<W, V>(start_value<T>(start_, cut));
    int64_t own[K ? K : 1];
    for (int r = 0; r < K; ++r) own[r] = at[r];
    Vec<Bits, V> lowest{};
    this->template fill_rows<1>(g, x, to, to_item, neutral_, [&](const T* from, int64_t) PG_LAMBDA {
      Cells best = least;
#pragma GCC unroll 4
      for (int64_t r = 0; r < (K ? K : nrows); ++r)
        best = larger<W, V>(best, load<V>(from + (K ? own[r] : at[r])));
      if constexpr (Far) {  // rows that are read in turns are no stream for the processor
        __builtin_prefetch(from + at[nrows - 1] + kAhead);
        if (nrows > 1) __builtin_prefetch(from + at[nrows - 2] + kAhead);
      }
      const auto bits = bitcast<Vec<Bits, V>>(best);
      lowest = bits < lowest ? bits : lowest;
      return best;
    });
    Bits least_bits = 0;
    for (int c = 0; c < V; ++c) least_bits = lowest[c] < least_bits ? lowest[c] : least_bits;
    negative_zero_ |= least_bits == std::numeric_limits<Bits>::min();  // the bits of -0
  }

  [[gnu::noinline]] void along(const W* from, int64_t rows, T* y, const T* limit) {
    const int64_t m = plan_.last().m, w = row_.regular.width(0), pitch = row_.pitch,
                  whole = m / V * V, rest = m - whole;
    const Cells least = all<W, V>(start_value<T>(start_, false));
    with_window<true>(row_.regular.stride, w, [&](auto stride, auto width) PG_LAMBDA {
      constexpr int S = decltype(stride)::count, K = decltype(width)::count;
      const W* row = from;
      T* to = y;
      for (int64_t k = 0; k < rows; ++k, row += pitch, to += m) {
        const auto best_of = [&](int64_t c) PG_LAMBDA {
          Cells best = least;
          each_column<S, K, V>(row + S * c, w,
                               [&](Cells v) PG_LAMBDA { best = larger<W, V>(best, v); });
          return best;
        };
        for (int64_t c = 0; c < whole; c += V) store<V>(to + c, best_of(c));
        if (rest) store_rest<T>(to + whole, best_of(whole), rest, limit);
      }
    });
  }

  /// Compute a band in the order of the taps. This may compute rows before and behind it, too.
  [[gnu::noinline, gnu::cold]] void by_taps(int64_t s, int64_t slabs, int64_t r0, int64_t r1) {
    if (!row_.item_is_slab)
      return this->each_slab(s, slabs, [&](int64_t i, int64_t j, int64_t) {
        select_direct<T>(row_.whole, a_, start_, {i, i + 1, j, j + 1});
      });
    const int64_t cell = row_.rows_per_cell, i = row_.i0 + s;
    if (row_.whole.rank == 1)
      return select_direct<T>(row_.whole, a_, start_, {i, i + slabs, 0, row_.whole.axis[0].m});
    select_direct<T>(
        row_.whole, a_, start_,
        {i, i + slabs, (row_.rows_from + r0) / cell, (row_.rows_from + r1 + cell - 1) / cell});
  }

  /// `most_rows`: destination rows of a band.
  SelectRows(const PaddedRow& row, const RowArrays<T, 1, 0>& a, Start start, int64_t most_rows)
      : Base(row, a.source[0], start_value<T>(start, row.regular.cuts), most_rows),
        a_(a),
        y_(a.out),
        start_(start),
        most_rows_(most_rows) {}

  const RowArrays<T, 1, 0>& a_;
  T* const y_;
  const Start start_;
  const int64_t most_rows_;
  bool negative_zero_ = false;
};

/// True for the type whose loops know short windows at compile time.
template <class T>
constexpr bool kKnowsWidths = kBytes == 64 && std::is_same_v<T, float>;

/// Means by row bands, tap after tap in row-major order; neutral cells are zeros.
template <class T>
class FoldRows : BandTaps<T, 1> {
  using Base = BandTaps<T, 1>;
  using Base::V, Base::row_, Base::plan_, Base::lanes_, Base::far_;
  using typename Base::Cells, typename Base::W, typename Base::Group, typename Base::Spot;

 public:
  FoldRows(const PaddedRow& row, const RowArrays<T, 1, 0>& a, Mean mean)
      : Base(row, {a.source[0]}, {W{0}}, {Order::rows, can_read_in_place(row)}),
        y_(a.out),
        mean_(mean),
        divisors_(2 * lanes_),
        writer_(a.out, a.stream, plan_.last().m) {}

  void run() {
    this->run_groups(
        [&](int64_t row, int64_t nrows) {
          return mean_ == Mean::spanned ? span_of_row(plan_, row) : nrows;
        },
        [&](const Group& g) {
          if constexpr (kKnowsWidths<T>)
            if (row_.regular.stride == 1 && has_short_windows(row_)) return reduce_short(g);
          if constexpr (std::is_same_v<T, W>)
            if (row_.regular.stride > 1 && g.in_place) return reduce_short(g);
          reduce(g);
        });
    writer_.close();
  }

 private:
  /// Return true for windows whose loops know their cells per row at compile time.
  static bool has_short_windows(const PaddedRow& row) {
    const int64_t w = row.regular.width(0);
    return w == 2 || w == 3;
  }
  static bool can_read_in_place(const PaddedRow& row) {
    return row.regular.stride == 1 || has_short_windows(row);
  }
  const W* divisors_of(int64_t upper) {
    return divisors_(upper, [&](int64_t k) {
      return divisor_or_over<T>(k, lanes_, plan_.last().m, upper, plan_.last(), mean_);
    });
  }
  PG_INLINE void write(Cells sum, const W* by, T* to, int64_t left, const T* limit) const {
    const Cells mean = divided<T, V>(sum, load<V>(by), load<V>(by + lanes_));
    left >= V ? store<V>(to, mean) : store_rest<T>(to, mean, left, limit);
  }

  [[gnu::noinline]] void reduce(const Group& g) {
    const int64_t m = plan_.last().m;
    const W* const from = g.source[0];
    const T* const limit = y_ + g.limit * m;
    int64_t upper = -1;
    const W* by = nullptr;
    this->template reduce_rows<1>(
        g, [](const Spot&) PG_LAMBDA { return Neighbours<Cells, 1>{}; },
        [=](Cells& sum, int64_t at)
            PG_LAMBDA { sum = plus_rounded<T, V>(sum, load<V>(from + at)); },
        [&](auto& s, const Spot& spot, int64_t label) PG_LAMBDA {
          if (label != upper) by = divisors_of(upper = label);
          T* const to = writer_.open_part(spot.at, spot.left);
          write(total<T, V>(s.of[0]), by + (m - spot.left), to, spot.left, writer_.limit(limit));
        });
  }
  /// Visit the taps one row after the other; split vectors into phases in registers. Rows that come
  /// from memory are read from end to end, because processors fetch one stream of lines best: each
  /// adds to the sums of all windows.
  [[gnu::noinline]] void reduce_short(const Group& g) {
    const int64_t m = plan_.last().m, w = row_.regular.width(0);
    const bool from_memory = far_ && g.in_place;
    Scratch<W> sums(from_memory ? lanes_ : 0);
    int64_t upper = -1;
    const W* by = nullptr;
    const auto by_stride = [&](auto stride, auto width) PG_LAMBDA {
      constexpr int S = decltype(stride)::count, K = decltype(width)::count;
      this->each_row(g, [&](int64_t row, int64_t shift, const BandRow& task) PG_LAMBDA {
        if (task.label != upper) by = divisors_of(upper = task.label);
        T* const to = writer_.open(row * m, m);
        const T* const limit = writer_.limit(y_ + g.limit * m);
        const W* const from = g.source[0] + shift + row_.window;
        const int64_t *const at = this->list(task), nrows = task.nrows;
        int64_t begin = 0, end;
        do {
          end = from_memory && begin < nrows ? begin + 1 : nrows;
          for (int64_t c = 0; c < m; c += V) {
            Cells sum = begin ? load<V>(sums.get() + c) : Cells{};
            for (int64_t t = begin; t < end; ++t)
              each_column<S, K, V>(from + at[t] + S * c, w,
                                   [&](Cells v) PG_LAMBDA { sum = rounded<T, V>(sum + v); });
            end < nrows ? store<V>(sums.get() + c, sum) : write(sum, by + c, to + c, m - c, limit);
          }
        } while ((begin = end) < nrows);
      });
    };
    if constexpr (kKnowsWidths<T>) return with_short_window(row_.regular.stride, w, by_stride);
    row_.regular.stride == 2 ? by_stride(Lane<2>{}, Lane<0>{}) : by_stride(Lane<3>{}, Lane<0>{});
  }

  T* const y_;
  const Mean mean_;
  RowPerCount<W> divisors_;
  StreamWriter<T> writer_;
};

/// The base of verbs that sum, for each cell, what the windows that cover it give. With a stride,
/// P neighbouring cells differ in these windows. The sums of each of them fill a vector; merging
/// the P vectors gives a row.
template <class T, int Sources>
class GatheredRows : protected BandTaps<T, Sources> {
 protected:
  using Base = BandTaps<T, Sources>;
  using Base::V, Base::row_, Base::plan_;
  using typename Base::Cells, typename Base::W, typename Base::Group, typename Base::Spot;

  GatheredRows(const PaddedRow& row, const T* const (&x)[Sources], const W (&neutral)[Sources],
               bool reversed, bool in_place, T* dx, bool stream)
      : Base(row, x, neutral, {reversed ? Order::columns : Order::rows, in_place}),
        dx_(dx),
        writer_(dx, stream, plan_.last().m) {}

  /// Sum the rows of a group: begin(cell of dx) returns P states with a `sum`, step(state, place)
  /// visits a tap.
  template <int P, class Begin, class Step>
  PG_INLINE void sum_rows(const Group& g, Begin&& begin, Step&& step) {
    const T* const limit = dx_ + g.limit * plan_.last().m;
    this->template reduce_rows<P>(
        g, [&](const Spot& spot) PG_LAMBDA { return begin(spot.at); }, step,
        [&](auto& s, const Spot& spot, int64_t) PG_LAMBDA {
          Cells sums[P];
          for (int p = 0; p < P; ++p) sums[p] = total<T, V>(s.of[p].sum);
          T* const to = writer_.open_part(spot.at, spot.left);
          store_neighbours<T>(to, sums, spot.left, writer_.limit(limit));
        });
  }

  T* const dx_;
  StreamWriter<T> writer_;
};

/// Call f(Lane<P>) for a period of 1 to 3.
template <class F>
PG_INLINE void with_period(int64_t period, F&& f) {
  period == 1 ? f(Lane<1>{}) : period == 2 ? f(Lane<2>{}) : f(Lane<3>{});
}

/// Spread by row bands: weigh the rows of the gradient while copying them, then add tap after tap.
template <class T>
class SpreadRows : GatheredRows<T, 1> {
  using Base = GatheredRows<T, 1>;
  using Base::V, Base::row_, Base::plan_;
  using typename Base::Cells, typename Base::W, typename Base::Group, typename Base::Spot;

 public:
  SpreadRows(const PaddedRow& row, const RowArrays<T, 1, 0>& a, Share share, bool reversed)
      : Base(row, {a.source[0]}, {W{0}}, reversed, false, a.out, a.stream),
        share_(share),
        counts_(plan_.source_slab() / plan_.last().n),
        weights_(row.vectors * V) {
    for (int64_t r = 0; r < plan_.source_slab() / plan_.last().n; ++r) {
      counts_[r] = 1;
      for (int64_t a1 = plan_.rank - 2, rest = r; a1 >= 1; rest /= plan_.axis[a1--].n)
        counts_[r] *= plan_.axis[a1].count[rest % plan_.axis[a1].n];
    }
  }

  void run() {
    this->run_groups([](int64_t, int64_t) { return 0; },
                     [&](const Group& g) {
                       with_period(row_.regular.period,
                                   [&](auto period) PG_LAMBDA { sum<decltype(period)::count>(g); });
                     },
                     this);
    this->writer_.close();
  }

  /// Return the cells of the windows of source row r, of cell h of the first axis, along all axes
  /// but the last.
  int64_t count(int64_t h, int64_t r) { return plan_.axis[0].count[h] * counts_[r]; }
  /// Return the weights of a row of such windows.
  const W* row(int64_t count) {
    return weights_(count, [&](int64_t c) {
      return reciprocal<T>(c < row_.cells ? count * plan_.last().count[row_.skip + c] : 1, share_);
    });
  }

 private:
  struct Sum {
    Cells sum;
  };
  template <int P>
  [[gnu::noinline]] void sum(const Group& g) {
    const W* const from = g.source[0];
    this->template sum_rows<P>(
        g, [](int64_t) PG_LAMBDA { return Neighbours<Sum, P>{}; },
        [=](Sum& s, int64_t at)
            PG_LAMBDA { s.sum = plus_rounded<T, V>(s.sum, load<V>(from + at)); });
  }

  const Share share_;
  Scratch<int64_t> counts_;
  RowPerCount<W> weights_;
};

/// Near by row bands; neutral cells are NaN, which nothing is near to.
template <class T>
class NearRows : GatheredRows<T, 2> {
  using Base = GatheredRows<T, 2>;
  using Base::V, Base::row_, Base::plan_;
  using typename Base::Cells, typename Base::W, typename Base::Group, typename Base::Spot;

 public:
  NearRows(const PaddedRow& row, const RowArrays<T, 2, 1>& a, double eps)
      : Base(row, {a.source[0], a.source[1]}, {std::numeric_limits<W>::quiet_NaN(), W{0}}, true,
             true, a.out, a.stream),
        near_(smallest_rounding_to<T>(as<T>(eps))),
        x_(a.partner[0]),
        x_end_(x_ + plan_.outer * this->item_rows() * plan_.last().m) {}

  void run() {
    this->run_groups([](int64_t, int64_t) { return 0; },
                     [&](const Group& g) {
                       with_period(row_.regular.period,
                                   [&](auto period) PG_LAMBDA { sum<decltype(period)::count>(g); });
                     });
    this->writer_.close();
  }

 private:
  template <int P>
  [[gnu::noinline]] void sum(const Group& g) {
    using Order = std::make_integer_sequence<int, V>;
    const W *const y = g.source[0], *const gradient = g.source[1];
    this->template sum_rows<P>(
        g,
        [&](int64_t at) PG_LAMBDA {
          T last[P * V];
          const T* const x = x_end_ - (x_ + at) >= P * V ? x_ + at : last_cells(at, last);
          Cells v[P];
          for (int p = 0; p < P; ++p) v[p] = load<V>(x + p * V);
          if constexpr (P == 1) return Neighbours<NearSum<T, V>, 1>{{{v[0], Cells{}}}};
          else if constexpr (P == 2)
            return Neighbours<NearSum<T, V>, 2>{{{deinterleave<0, 2>(v, Order{}), Cells{}},
                                                 {deinterleave<1, 2>(v, Order{}), Cells{}}}};
          else
            return Neighbours<NearSum<T, V>, 3>{{{deinterleave<0, 3>(v, Order{}), Cells{}},
                                                 {deinterleave<1, 3>(v, Order{}), Cells{}},
                                                 {deinterleave<2, 3>(v, Order{}), Cells{}}}};
        },
        [&, near = near_](NearSum<T, V>& s, int64_t at) PG_LAMBDA {
          s.sum = plus_rounded<T, V>(s.sum,
                                     s.where_near(load<V>(y + at), load<V>(gradient + at), near));
        });
  }
  /// Copy the last cells of x.
  [[gnu::noinline, gnu::cold]] const T* last_cells(int64_t at, T* to) const {
    std::memcpy(static_cast<void*>(to), x_ + at,
                static_cast<size_t>(x_end_ - (x_ + at)) * sizeof(T));
    return to;
  }

  const W near_;
  const T *const x_, *const x_end_;
};

/// The place of the taps: row r of the result is at taps + r * pitch. Taps are numbered over the
/// cells that a window has, or, if `whole`, over the cells that it had before an edge cut it along
/// its row; then lanes behind the end of a row become kNoTap, and y holds one row.
struct TapRowsOut {
  uint8_t* taps;
  int64_t pitch;
  bool whole;
};
constexpr uint8_t kNoTap = 255;

/// Maxima and their taps by row bands; neutral cells are minus infinity. A maximum starts from its
/// first cell, NaN or not; windows that the left edge cut start from the first cell of the row.
/// Each lane numbers its own taps, because windows that an edge cut have fewer cells per row:
///
///   [. a b]    number -1 0 1, then 1 2 3 in the next row: two cells per row
///   [a b c]    number  0 1 2, then 3 4 5
template <class T>
class ChooseRows : BandTaps<T, 1> {
  using Base = BandTaps<T, 1>;
  using Base::V, Base::row_, Base::plan_, Base::lanes_;
  using typename Base::W, typename Base::Group;
  using Cells = Vec<W, V>;
  using Number = TapLane<T>;
  using Numbers = Vec<Number, V>;

 public:
  [[gnu::noinline, gnu::cold]] ChooseRows(const PaddedRow& row, const T* x, T* y,
                                          const TapRowsOut& out)
      : Base(row, {x}, {minus_infinity<T>()}, {Order::rows, true}),
        y_(y),
        out_(out),
        lanes_of_(4 * lanes_) {
    const Axis& axis = plan_.last();
    for (int64_t j = 0; j < lanes_; ++j) {
      const int64_t at = row.regular.first(0) + j * row.regular.stride,
                    width = row.regular.width(0), lost = j < axis.m ? width - axis.length(j) : 0,
                    lead = j < axis.m && at < 0 ? -at : 0;
      if (lead > 0) left_cut_ = j + 1;
      Number* const lane = lanes_of_.get() + j;
      lane[kFirst * lanes_] = static_cast<Number>(out.whole ? lead : 0);
      lane[kNumber * lanes_] = static_cast<Number>(out.whole ? 0 : -lead);
      lane[kSkip * lanes_] = static_cast<Number>(out.whole ? 0 : lost);
      lane[kOutside * lanes_] = j < axis.m || !out.whole ? 0 : kNoTap;
    }
  }

  void run() {
    this->run_groups([](int64_t, int64_t) { return 0; }, [&](const Group& g) { reduce(g); });
  }

 private:
  /// Numbers per lane: the tap of its first cell, the number of the first tap, what numbers lose
  /// from row to row, kNoTap behind the end of the row.
  enum { kFirst, kNumber, kSkip, kOutside };

  [[gnu::noinline]] void reduce(const Group& g) {
    const int64_t m = plan_.last().m, w = row_.regular.width(0), left_cut = left_cut_,
                  edge = row_.window < 0 ? -row_.window : 0, lanes = lanes_;
    const int64_t y_pitch = out_.whole ? 0 : m;
    const T* const limit = out_.whole ? y_ + lanes : y_ + g.limit * m;
    const uint8_t* const taps_limit = out_.taps + g.limit * out_.pitch;
    const Numbers one = all<Number, V>(1);
    with_window<kKnowsWidths<T>>(row_.regular.stride, w, [&](auto stride, auto width) PG_LAMBDA {
      constexpr int S = decltype(stride)::count, K = decltype(width)::count;
      this->each_row(g, [&](int64_t to, int64_t shift, const BandRow& task) PG_LAMBDA {
        const W* const from = g.source[0] + shift + row_.window;
        const int64_t *const rows = this->list(task), nrows = task.nrows;
        T* const y = y_ + to * y_pitch;
        uint8_t* const taps = out_.taps + to * out_.pitch;
        for (int64_t c = 0; c < m; c += V) {
          const Number* const lane = lanes_of_.get() + c;
          BestTap<T, Number, V> best{};
          each_column<S, 1, V>(from + rows[0] + S * c, 1,
                               [&](Cells v) PG_LAMBDA { best.value = v; });
          if (c < left_cut) {
            best.tap = load<V>(lane + kFirst * lanes);
            best.value = lane_numbers() < static_cast<std::make_signed_t<Number>>(left_cut - c)
                             ? all<W, V>(from[rows[0] + edge])
                             : best.value;
          }
          Numbers number = load<V>(lane + kNumber * lanes);
          const Numbers skip = load<V>(lane + kSkip * lanes);
          for (int64_t t = 0; t < nrows; ++t) {
            each_column<S, K, V>(from + rows[t] + S * c, w,
                                 [&](Cells v) PG_LAMBDA { best.step(v, number), number += one; });
            number -= skip;
          }
          const bool whole = m - c >= V;
          if (!whole) best.tap |= load<V>(lane + kOutside * lanes);
          const Vec<uint8_t, V> kept = convert<uint8_t, V, Number>(best.tap);
          if (whole) {
            store<V>(y + c, best.value);
            std::memcpy(taps + c, &kept, sizeof kept);
          } else {
            store_rest<T>(y + c, best.value, m - c, limit);
            if (taps_limit - (taps + c) >= V) std::memcpy(taps + c, &kept, sizeof kept);
            else store_part<uint8_t>(taps + c, reinterpret_cast<const uint8_t*>(&kept), m - c);
          }
        }
      });
    });
  }
  PG_INLINE static Vec<std::make_signed_t<Number>, V> lane_numbers() {
    Vec<std::make_signed_t<Number>, V> v{};
    for (int k = 0; k < V; ++k) v[k] = k;
    return v;
  }

  T* const y_;
  const TapRowsOut out_;
  Scratch<Number> lanes_of_;
  int64_t left_cut_ = 0;  ///< the end of the cells whose windows the left edge cut
};

/// Recall by row bands: visit the taps backwards, so that the first match stays. Neutral cells are
/// NaN, which equals nothing.
template <class T>
class RecallRows : BandTaps<T, 2> {
  using Base = BandTaps<T, 2>;
  using Base::V, Base::row_, Base::plan_;
  using typename Base::Cells, typename Base::W, typename Base::Group, typename Base::Spot;

 public:
  /// Windows that overlap read rows that are split once.
  RecallRows(const PaddedRow& row, const RowArrays<T, 2, 1>& a)
      : Base(row, {a.source[0], a.source[1]}, {std::numeric_limits<W>::quiet_NaN(), W{0}},
             {Order::backwards,
              row.regular.stride == 1 || row.regular.width(0) <= row.regular.stride}),
        y_(a.partner[0]),
        y_end_(y_ + plan_.outer * this->item_rows() * plan_.last().m),
        out_(a.out) {}

  void run() {
    this->run_groups([](int64_t, int64_t) { return 0; },
                     [&](const Group& g) {
                       if constexpr (std::is_same_v<T, W>)
                         if (g.in_place && row_.regular.stride > 1) return reduce_in_place(g);
                       reduce(g);
                     });
  }

 private:
  using Match = MatchState<T, V>;

  PG_INLINE Match begin(int64_t at) const {
    const T* const y = y_ + at;
    return {y_end_ - y >= V ? load<V>(y) : last_cells(y), Cells{}};
  }
  [[gnu::noinline]] void reduce(const Group& g) {
    const int64_t m = plan_.last().m;
    const T* const limit = out_ + g.limit * m;
    const W *const x = g.source[0], *const v = g.source[1];
    this->template reduce_rows<1>(
        g, [&](const Spot& spot) PG_LAMBDA { return Neighbours<Match, 1>{{begin(spot.at)}}; },
        [=](Match& s, int64_t at) PG_LAMBDA { s.step(load<V>(x + at), load<V>(v + at)); },
        [&](auto& s, const Spot& spot, int64_t) PG_LAMBDA {
          const Cells found[1] = {s.of[0].found};
          store_neighbours<T>(out_ + spot.at, found, spot.left, limit);
        });
  }
  /// Split vectors into phases in registers.
  [[gnu::noinline]] void reduce_in_place(const Group& g) {
    const int64_t m = plan_.last().m, w = row_.regular.width(0);
    const T* const limit = out_ + g.limit * m;
    const auto by_stride = [&](auto stride) PG_LAMBDA {
      constexpr int S = decltype(stride)::count;
      this->each_row(g, [&](int64_t row, int64_t shift, const BandRow& task) PG_LAMBDA {
        const W *const x = g.source[0] + shift, *const v = g.source[1] + shift;
        const int64_t *const rows = this->list(task), nrows = task.nrows;
        for (int64_t c = 0; c < m; c += V) {
          Match s = begin(row * m + c);
          for (int64_t t = nrows; t-- > 0;)
            each_column_backwards<S, V>(x + rows[t] + S * c, v + rows[t] + S * c, w,
                                        [&](Cells cell, Cells value)
                                            PG_LAMBDA { s.step(cell, value); });
          const Cells found[1] = {s.found};
          store_neighbours<T>(out_ + row * m + c, found, m - c, limit);
        }
      });
    };
    row_.regular.stride == 2 ? by_stride(Lane<2>{}) : by_stride(Lane<3>{});
  }
  /// Return the last cells of y.
  [[gnu::noinline, gnu::cold]] Cells last_cells(const T* y) const {
    T cells[V] = {};
    std::memcpy(static_cast<void*>(cells), y, static_cast<size_t>(y_end_ - y) * sizeof(T));
    return load<V>(cells);
  }

  const T *const y_, *const y_end_;
  T* const out_;
};

}  // namespace poolgrad::PG_ISA
