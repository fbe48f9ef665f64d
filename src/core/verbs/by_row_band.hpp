// select and fold over row bands, for plans with inner == 1.
#pragma once
#include "loops/row_band.hpp"
#include "verbs/by_row_ring.hpp"
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
  using Base::V, Base::row_, Base::plan_, Base::x_, Base::runs_, Base::places_, Base::most_;
  using typename Base::Cells;
  using typename Base::W;

 public:
  SelectRows(const PaddedRow& row, const RowArrays<T, 1, 0>& a, Start start)
      : Base(row, a.source[0], start_value<T>(start, row.regular.cuts), rows_per_band<T>(row)),
        a_(a),
        y_(a.out),
        start_(start),
        far_(this->is_far()) {}

  void run() {
    this->each_band(rows_per_band<T>(row_), [&](int64_t s, int64_t slabs, int64_t r0, int64_t r1) {
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
      for (int64_t q = 0; q < runs_.count(); ++q)
        join_run(runs_[q], i, alike ? slabs : 1, j, r0, r1, this->band() + k * size);
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

  /// Join those rows of a run that lie in [r0, r1), of slab j of some items.
  [[gnu::noinline]] void join_run(const RowRun& run, int64_t i, int64_t items, int64_t j,
                                  int64_t r0, int64_t r1, W* to) {
    const int64_t first = run.row > r0 ? run.row : r0,
                  end = run.row + run.rows < r1 ? run.row + run.rows : r1;
    if (first >= end) return;
    const int64_t nrows = this->list(run, j, first), to_item = (r1 - r0) * row_.pitch,
                  item = this->item();
    const T* const x = x_ + i * item;
    const RowGroup g{items, item, end - first, run.step};
    const bool cut = is_cut(run, j);
    to += (first - r0) * row_.pitch;
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
    this->fill_rows(g, x, to, to_item, [&](const T* from) PG_LAMBDA {
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
    with_window(row_.regular.stride, w, [&](auto stride, auto width) PG_LAMBDA {
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

  static constexpr int64_t kAhead = 4096 / static_cast<int64_t>(sizeof(T));

  const RowArrays<T, 1, 0>& a_;
  T* const y_;
  const Start start_;
  const bool far_;
  bool negative_zero_ = false;
};

/// Means by row bands, tap after tap in row-major order: copy the source rows of a band among
/// zeros, then visit the taps of each window. Rows that need no zeros are read where they are,
/// unless they come from memory: copying reads one row after the other.
/// Not for half types, which pay for the conversion of each tap.
template <class T>
class FoldRows : RowBand<T> {
  static_assert(std::is_same_v<T, Wide<T>>);
  using Base = RowBand<T>;
  using Base::V, Base::row_, Base::plan_, Base::x_, Base::x_end_, Base::runs_, Base::places_;
  using typename Base::Cells;
  using typename Base::W;

 public:
  FoldRows(const PaddedRow& row, const RowArrays<T, 1, 0>& a, Mean mean)
      : Base(row, a.source[0], W{0}, CopiedBand(row, sizeof(W)).copied),
        y_(a.out),
        mean_(mean),
        most_rows_(CopiedBand(row, sizeof(W)).rows),
        lanes_((plan_.last().m + V - 1) / V * V),
        in_place_(row.inside && !this->is_far()),
        lists_(most_rows_ * this->most_),
        tasks_(most_rows_),
        divisors_(2 * lanes_) {}

  void run() {
    this->each_band(most_rows_, [&](int64_t s, int64_t slabs, int64_t r0, int64_t r1) {
      checkpoint(step_budget(),
                 slabs * (r1 - r0) * row_.pitch * this->most_ * row_.regular.width(0));
      const bool alike = row_.slabs_to - row_.slabs_from == 1;  // the slabs of all items lie alike
      this->each_slab(s, alike ? 1 : slabs, [&](int64_t i, int64_t j, int64_t) {
        compute(i, alike ? slabs : 1, j, r0, r1);
      });
    });
  }

 private:
  /// The rows that a destination row reads: at `shift` + lists_[list], lists_[list + 1], ...
  struct Task {
    int64_t shift, list, nrows, upper;
  };

  /// Compute rows [r0, r1) of slab j of some items.
  void compute(int64_t i, int64_t items, int64_t j, int64_t r0, int64_t r1) {
    const int64_t n = plan_.last().n, m = plan_.last().m, top = plan_.axis[0].m,
                  per_slab = plan_.rows_per_slab(), item = this->item(),
                  row = (i * top + j) * per_slab + row_.rows_from;
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
    const T* const x = x_ + i * item;
    const int64_t reach = row_.regular.stride * lanes_ + row_.regular.width(0) + row_.slack;
    const bool in_place =
        in_place_ && x_end_ - x >= (items - 1) * item + (start + cells - 1) * slab + high + reach;
    // The tasks: where rows are in the array, or in the band.
    const int64_t pitch = in_place ? n : row_.pitch, to_slab = in_place ? slab : copied * pitch,
                  begin = in_place ? start * slab : 0;
    int64_t list = 0;
    this->each_run(r0, r1, [&](const RowRun& run, int64_t first, int64_t end) {
      const int64_t* const at = runs_.offsets(run);
      const int64_t nrows = cells * run.nrows, at_row = row + first;
      for (int64_t h = 0; h < cells; ++h)
        for (int64_t r = 0; r < run.nrows; ++r)
          lists_[list + h * run.nrows + r] =
              begin + h * to_slab + (in_place ? at[r] : (at[r] - low) / n * pitch);
      for (int64_t r = first; r < end; ++r)
        tasks_[r - r0] = {(r - run.row) * (run.step / n) * pitch, list, nrows,
                          mean_ == Mean::spanned ? span_of_row(plan_, at_row) : nrows};
      list += nrows;
    });
    T* const y = y_ + (row + r0) * m;
    const T* const limit = y_ + this->rows_end(i, j) * m;
    if (in_place) return reduce(x, items, item, r1 - r0, y, limit);
    for (int64_t h = 0; h < cells; ++h)
      copy({items, item, copied, n}, x + (start + h) * slab + low, this->band() + h * to_slab,
           cells * to_slab);
    reduce(this->band() + row_.window, items, cells * to_slab, r1 - r0, y, limit);
  }

  [[gnu::noinline]] void copy(const RowGroup& g, const T* x, W* to, int64_t to_item) {
    const auto cells = [](const T* from) PG_LAMBDA { return load<V>(from); };
    if (this->can_read(x + (g.items - 1) * g.item + (g.rows - 1) * g.step))
      return this->fill_rows(g, x, to, to_item, cells);
    Scratch<T> last(row_.vectors * V);
    for (int64_t i = 0; i < g.items; ++i)
      for (int64_t r = 0; r < g.rows; ++r) {
        const T* from = x + i * g.item + r * g.step;
        if (!this->can_read(from)) {
          std::memcpy(static_cast<void*>(last.get()), from,
                      static_cast<size_t>(row_.cells) * sizeof(T));
          from = last.get();
        }
        this->fill_rows({1, 0, 1, 0}, from, to + i * to_item + r * row_.pitch, 0, cells);
      }
  }

  const W* divisors_of(int64_t upper) {
    return divisors_(upper, [&](int64_t k) {
      return divisor_or_over<T>(k, lanes_, plan_.last().m, upper, plan_.last(), mean_);
    });
  }

  /// Reduce rows of some items; the rows of the next item are `item` elements further.
  [[gnu::noinline]] void reduce(const W* x, int64_t items, int64_t item, int64_t rows, T* y,
                                const T* limit) {
    const int64_t m = plan_.last().m, w = row_.regular.width(0), lanes = lanes_,
                  per_item = this->item_rows() * m;
    with_short_window(row_.regular.stride, w, [&](auto stride, auto width) PG_LAMBDA {
      constexpr int S = decltype(stride)::count, K = decltype(width)::count;
      int64_t upper = -1;
      const W* by = nullptr;
      for (int64_t i = 0; i < items; ++i) {
        T* to = y + i * per_item;
        const Task* task = tasks_.get();
        for (int64_t r = 0; r < rows; ++r, ++task, to += m) {
          if (task->upper != upper) by = divisors_of(upper = task->upper);
          const W* const from = x + i * item + task->shift;
          const int64_t* const at = lists_.get() + task->list;
          const int64_t nrows = task->nrows;
          for (int64_t c = 0; c < m; c += V) {
            Cells sum{};
            for (int64_t t = 0; t < nrows; ++t)
              each_column<S, K, V>(from + at[t] + S * c, w,
                                   [&](Cells v) PG_LAMBDA { sum = rounded<T, V>(sum + v); });
            const Cells mean = divided<T, V>(sum, load<V>(by + c), load<V>(by + lanes + c));
            m - c >= V ? store<V>(to + c, mean) : store_rest<T>(to + c, mean, m - c, limit);
          }
        }
      }
    });
  }

  T* const y_;
  const Mean mean_;
  const int64_t most_rows_, lanes_;
  const bool in_place_;
  Scratch<int64_t> lists_;
  Scratch<Task> tasks_;
  RowPerCount<W> divisors_;
};

}  // namespace poolgrad::PG_ISA
