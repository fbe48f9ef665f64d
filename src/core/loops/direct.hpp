// Runs of lanes along a destination row: across the inner elements of a cell, or along neighbouring
// cells.
#pragma once
#include "simd/stream.hpp"

namespace poolgrad::PG_ISA {

/// Sorts the cells of a row by their position modulo S: phase p holds cells p, p + S, ...
template <class T>
void split(const T* row, int64_t cells, int64_t inner, int64_t S, int64_t phase, T* out) {
  for (int64_t p = 0; p < S; ++p) {
    T* to = out + p * phase;
    const T* from = row + p * inner;
    const int64_t count = p < cells ? (cells - p + S - 1) / S : 0;
    if (inner == 1 && S == 2)
      for (int64_t q = 0; q < count; ++q) to[q] = from[2 * q];
    else if (inner == 1)
      for (int64_t q = 0; q < count; ++q) to[q] = from[q * S];
    else
      for (int64_t q = 0; q < count; ++q)
        std::memcpy(to + q * inner, from + q * S * inner, static_cast<size_t>(inner) * sizeof(T));
  }
}

/// Puts every P-th cell back in place.
template <class T>
void join(const T* from, int64_t count, int64_t inner, int64_t P, T* to) {
  if (inner == 1)
    for (int64_t q = 0; q < count; ++q) to[q * P] = from[q];
  else
    for (int64_t q = 0; q < count; ++q)
      std::memcpy(to + q * P * inner, from + q * inner, static_cast<size_t>(inner) * sizeof(T));
}

/// Calls f(item, row of the item, j0, j1) for every destination row of a piece.
template <class F>
PG_INLINE void each_row(const Plan& plan, Piece p, F&& f) {
  const int64_t per = plan.rows_per_slab(), cells = plan.last().m;
  for (int64_t i = p.i0; i < p.i1; ++i) {
    if (plan.rank == 1) f(i, 0, p.h0, p.h1);
    else
      for (int64_t u = p.h0 * per; u < p.h1 * per; ++u) f(i, u, 0, cells);
  }
}

/// The arrays of one row: sources that windows read, partners cell by cell with the destination.
template <class T, int Sources, int Partners>
struct RowArrays {
  const T* source[Sources];
  const T* partner[Partners ? Partners : 1];
  T* out;
  bool far = false;  ///< whether what is written had better go past the caches
};

/// Runs a cell kernel over destination rows. Two lane modes: across the inner elements of one cell,
/// or, where those are few and the windows repeat, along neighbouring cells of the row.
///
/// cell(reach, arrays, at, lanes): arrays point at the run's first lane; at is its place in the
/// row.
template <class T, int Sources, int Partners>
class RowRunner {
 public:
  using Arrays = RowArrays<T, Sources, Partners>;

  explicit RowRunner(const Plan& plan, bool reversed = false)
      : axis_(plan.last()),
        reversed_(reversed),
        inner_(plan.inner),
        along_(worth(plan)),
        slots_(along_ && axis_.step > 1 ? Rows::capacity(plan) : 0),
        by_row_(plan.rank == 2),
        stretch_(plan.rank == 1 ? kStretch : axis_.m),
        cells_(longest()),
        phase_((cells_ + axis_.step - 1) / axis_.step * plan.inner),
        split_(slots_ * Sources * phase_ * axis_.step),
        tags_(slots_),
        slot_rows_(slots_),
        every_((stretch_ < axis_.m ? stretch_ : axis_.m) / axis_.period + 1),
        join_(along_ && axis_.period > 1 ? (Partners + 1) * every_ * inner_ : 0),
        table_(along_ ? axis_.widest : 0),
        taps_(flat_size(plan)),
        lists_(taps_ <= 4096 ? kKept : 0),
        at_(taps_ * (lists_ + 1)),
        counts_(axis_.count ? taps_ * (lists_ + 1) : 0),
        places_(axis_.count ? taps_ * (lists_ + 1) : 0),
        patience_(taps_ ? kManySteps / (taps_ * inner_ + 1) + 1 : 1) {
    for (int64_t i = 0; i < slots_; ++i) tags_[i] = nullptr;
  }

  template <class Cell>
  void run(Reach& reach, const Arrays& a, int64_t j0, int64_t j1, Cell&& cell) {
    const bool upper_cut = reach.cut;
    const int64_t lo = along_ ? clamp(axis_.lo, j0, j1) : j1,
                  hi = along_ ? clamp(axis_.hi, j0, j1) : j1;
    for (bool& kept : kept_) kept = false;
    for (int64_t j = j0; j < lo; j += patience_)
      across(reach, a, j, stretch(j, lo), upper_cut, cell);
    for (int64_t j = lo; j < hi; j += stretch_) {
      if (j > lo) checkpoint(meter(), stretch_ * (axis_.widest + 1));
      along(reach, a, j, j + stretch_ < hi ? j + stretch_ : hi, upper_cut, cell);
    }
    for (int64_t j = hi; j < j1; j += patience_)
      across(reach, a, j, stretch(j, j1), upper_cut, cell);
    reach.cut = upper_cut;
  }

 private:
  /// Cells of a row that is an item that are computed at a time: what is sorted for them stays near
  /// a core. Random tests, whose rows are short, are built with fewer.
#if defined(PG_STRETCH)
  static constexpr int64_t kStretch = PG_STRETCH;
#else
  static constexpr int64_t kStretch = 1 << 13;
#endif

  static bool worth(const Plan& plan) {
    const Axis& axis = plan.last();
    return !plan.plain && plan.inner < kLanes<T> &&
           (axis.hi - axis.lo) / axis.period * plan.inner >= kLanes<T>;
  }
  /// Windows of moderate size are listed tap by tap, so that kernels run one loop over them.
  static int64_t flat_size(const Plan& plan) {
    const int64_t taps = Rows::capacity(plan) * plan.last().widest;
    return taps <= 32768 ? taps : 0;
  }
  /// Versions of different runners never meet: a kernel may outlive the runner whose lists it
  /// knows.
  static int64_t next_runner() {
    static thread_local int64_t runners = 0;
    return ++runners << 32;
  }
  static int64_t clamp(int64_t v, int64_t lo, int64_t hi) { return v < lo ? lo : v > hi ? hi : v; }

  /// Where a stretch of cells ends that begins at j; between two stretches is a checkpoint.
  int64_t stretch(int64_t j, int64_t end) const {
    if (end - j <= patience_) return end;
    checkpoint(meter(), kManySteps);
    return j + patience_;
  }
  /// The cell kernel on all lanes, so many of them between two checkpoints; whole vectors at every
  /// level.
  template <class Cell>
  PG_INLINE void in_runs(const Reach& reach, Arrays& here, int64_t at, int64_t lanes, Cell& cell) {
    constexpr int64_t kMost = 4096;
    for (;;) {
      const int64_t now = lanes < kMost ? lanes : kMost;
      cell(reach, here, at, now);
      if ((lanes -= now) == 0) return;
      checkpoint(meter(), now * reach.nrows * reach.width);
      at += now;
      for (auto& s : here.source) s += now;
      if constexpr (Partners > 0)
        for (auto& p : here.partner) p += now;
      here.out += now;
    }
  }

  template <class Cell>
  void across(Reach& reach, const Arrays& a, int64_t j0, int64_t j1, bool upper_cut, Cell& cell) {
    reach.off = Offsets{nullptr, inner_};
    // Cells that repeat share their list of taps: from the second period on it is there.
    const bool listed = taps_ && axis_.period <= lists_;
    const int64_t known = listed ? clamp(axis_.lo + axis_.period, j0 + axis_.period, j1) : j1,
                  end = listed ? clamp(axis_.hi, known, j1) : j1;
    for (int64_t j = j0; j < j1; ++j) {
      if (j == known && j < end) {
        repeated(a, j, end, cell);
        j = end - 1;
        continue;
      }
      aim(reach, j, upper_cut);
      cell(flatten(reach, j), at_cell(a, j), j * inner_, inner_);
    }
  }

  /// Cells [j, end), whose lists of taps are there: one run per list, over so many cells that what
  /// one reads the next finds in cache.
  template <class Cell>
  void repeated(const Arrays& a, int64_t j, int64_t end, Cell& cell) {
    const int64_t period = axis_.period,
                  cells = period == 1
                              ? end - j
                              : (1 + 4096 / (inner_ * period * static_cast<int64_t>(sizeof(T)))) *
                                    period;
    for (; j < end; j += cells)
      for (int64_t p = j; p < j + period && p < end; ++p) {
        const int64_t stop = j + cells < end ? j + cells : end;
        Reach& run = flat_[(p - axis_.lo) % period];
        run.repeat = (stop - p + period - 1) / period;
        run.from = axis_.step * inner_;
        run.to = period * inner_;
        cell(run, at_cell(a, p), p * inner_, inner_);
        run.repeat = 1;
      }
  }

  PG_INLINE Arrays at_cell(Arrays a, int64_t j) const {
    for (auto& s : a.source) s += axis_.from(j) * inner_;
    if constexpr (Partners > 0)
      for (auto& p : a.partner) p += j * inner_;
    a.out += j * inner_;
    return a;
  }

  /// The reach of cell j as a single row of taps, kept for the cells of this row that have the
  /// same.
  const Reach& flatten(const Reach& reach, int64_t j) {
    if (!taps_) return reach;
    const bool repeats = axis_.lo <= j && j < axis_.hi && axis_.period <= lists_;
    const int64_t slot = repeats ? (j - axis_.lo) % axis_.period : lists_;
    Reach& flat = flat_[slot];
    if (!repeats || !kept_[slot]) list(reach, flat, slot * taps_);
    kept_[slot] = repeats;
    flat.cut = reach.cut;
    return flat;
  }

  void list(const Reach& reach, Reach& flat, int64_t begin) {
    flat.slot = begin / taps_;
    flat.version = ++versions_;
    int64_t k = begin;
    const auto add = [&](int64_t r, int64_t t) {
      at_[k] = reach.rows[r] + reach.off[t];
      if (axis_.count) {
        counts_[k] = reach.row_count[r] * reach.col_count[t];
        places_[k] = -reach.tap(r, t);
      }
      ++k;
    };
    if (reversed_) each_tap<Order::columns>(reach, add);
    else each_tap<Order::rows>(reach, add);
    static constexpr int64_t zero = 0, one = 1;
    flat.rows = flat.row_tap = &zero;
    flat.nrows = 1;
    flat.row_count = &one;
    flat.off = Offsets{at_.get() + begin, 0};
    flat.width = k - begin;
    flat.col_count = counts_.get() + begin;
    flat.col_base = places_.get() + begin;
  }

  void aim(Reach& reach, int64_t j, bool upper_cut) const {
    reach.width = axis_.length(j);
    reach.cut = upper_cut || (axis_.span && axis_.span[j] != reach.width);
    if (!axis_.count) return;
    reach.col_count = axis_.count + axis_.start[j];
    reach.col_base = axis_.base + axis_.start[j];
    reach.cell = axis_.first + j;
  }

  template <class Cell>
  void along(Reach& reach, const Arrays& a, int64_t lo, int64_t hi, bool upper_cut, Cell& cell) {
    Arrays base = a;
    const Reach whole = reach;
    if (axis_.step > 1)
      regroup(reach, base, axis_.from(lo) / axis_.step * axis_.step,
              axis_.from(hi - 1) + axis_.length(hi - 1));
    for (int64_t p = 0; p < axis_.period && lo + p < hi; ++p) {
      const int64_t first = lo + p, count = (hi - first + axis_.period - 1) / axis_.period;
      aim(reach, first, upper_cut);
      for (int64_t t = 0; t < reach.width; ++t) {
        const int64_t s = axis_.from(first) + t - from_;
        table_[t] = axis_.step > 1 ? s % axis_.step * phase_ + s / axis_.step * inner_ : s * inner_;
      }
      reach.off = Offsets{table_.get(), 0};
      if (taps_) list(reach, flat_[lists_], lists_ * taps_);
      flat_[lists_].cut = reach.cut;
      const Reach& run = taps_ ? flat_[lists_] : reach;
      if (axis_.period == 1) {
        Arrays here = base;
        if constexpr (Partners > 0)
          for (auto& q : here.partner) q += first * inner_;
        here.out += first * inner_;
        in_runs(run, here, first * inner_, count * inner_, cell);
      } else {
        interleaved(run, base, first, count, cell);
      }
    }
    reach.rows = whole.rows;
  }

  /// One residue class of destination cells, through contiguous scratch.
  template <class Cell>
  void interleaved(const Reach& reach, const Arrays& base, int64_t first, int64_t count,
                   Cell& cell) {
    Arrays here = base;
    if constexpr (Partners > 0)
      for (int i = 0; i < Partners; ++i) {
        T* to = join_.get() + (i + 1) * every_ * inner_;
        for (int64_t q = 0; q < count; ++q)
          std::memcpy(to + q * inner_, base.partner[i] + (first + q * axis_.period) * inner_,
                      static_cast<size_t>(inner_) * sizeof(T));
        here.partner[i] = to;
      }
    here.out = join_.get();
    in_runs(reach, here, first * inner_, count * inner_, cell);
    join(join_.get(), count, inner_, axis_.period, base.out + first * inner_);
  }

  /// The most source cells that a stretch reads.
  int64_t longest() const {
    const int64_t all = axis_.m ? axis_.stop[axis_.m - 1] - axis_.origin : 0,
                  some = (stretch_ / axis_.period + 3) * axis_.step + axis_.widest;
    return all < some ? all : some;
  }

  /// Source rows sorted by phase, as far as they are read, kept from one destination row to the
  /// next.
  void regroup(Reach& reach, Arrays& base, int64_t from, int64_t to) {
    const int64_t length = axis_.n * inner_, slot_size = phase_ * axis_.step;
    if (from != from_ || to != to_)
      for (int64_t i = 0; i < slots_; ++i) tags_[i] = nullptr;
    from_ = from;
    to_ = to;
    for (int64_t r = 0; r < reach.nrows; ++r) {
      const int64_t slot = by_row_ ? reach.rows[r] / length % slots_ : r;
      const T* row = base.source[0] + reach.rows[r];
      slot_rows_[r] = slot * slot_size;
      if (tags_[slot] == row) continue;
      tags_[slot] = row;
      for (int i = 0; i < Sources; ++i)
        split(base.source[i] + reach.rows[r] + from * inner_, to - from, inner_, axis_.step, phase_,
              split_.get() + (i * slots_ + slot) * slot_size);
    }
    for (int i = 0; i < Sources; ++i) base.source[i] = split_.get() + i * slots_ * slot_size;
    reach.rows = slot_rows_.get();
  }

  const Axis& axis_;
  const bool reversed_;
  const int64_t inner_;
  const bool along_;
  const int64_t slots_;
  const bool by_row_;
  const int64_t stretch_;  // destination cells that are computed at a time where windows repeat
  const int64_t cells_;    // of a source row, the most that they read
  const int64_t phase_;
  int64_t from_ = 0, to_ = 0;  // of the source rows, what is sorted
  Scratch<T> split_;
  Scratch<const T*> tags_;
  Scratch<int64_t> slot_rows_;
  const int64_t every_;  // of them, the most with the same residue
  Scratch<T> join_;
  Scratch<int64_t> table_;
  const int64_t taps_;
  static constexpr int kKept = 4;
  const int64_t lists_;  // of taps for cells that repeat; there is one more for those that do not
  Scratch<int64_t> at_, counts_, places_;
  const int64_t patience_;  // cells between two checkpoints
  Reach flat_[kKept + 1];
  int64_t versions_ = next_runner();
  bool kept_[kKept + 1] = {};
};

}  // namespace poolgrad::PG_ISA
