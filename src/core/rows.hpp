// From a plan to runs of lanes: which source rows a destination row reads, and in which order.
#pragma once
#include "lanes.hpp"
#include "plan.hpp"
#include "threads.hpp"

namespace poolgrad::PG_ISA {

/// Memory for one task, from the stack while it is small. Destroyed in reverse order of construction.
template <class T, int Small = 64>
class Scratch {
 public:
  explicit Scratch(int64_t count) : count_(count), p_(count <= Small ? small_ : static_cast<T*>(borrow(bytes()))) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (p_ != small_) give_back(p_, bytes());
  }
  T* get() { return p_; }
  T& operator[](int64_t i) { return p_[i]; }

 private:
  int64_t bytes() const { return count_ * static_cast<int64_t>(sizeof(T)); }

  int64_t count_;
  T small_[Small];
  T* p_;
};

/// Element offset of each tap within a row: a table, or a constant step.
struct Offsets {
  const int64_t* table = nullptr;
  int64_t step = 0;
  PG_INLINE int64_t operator[](int64_t t) const { return table ? table[t] : t * step; }
};

/// What one run of lanes reads: tap t of row r is at rows[r] + off[t].
struct Reach {
  const int64_t* rows = nullptr;
  int64_t nrows = 0;
  Offsets off;
  int64_t width = 0;
  bool cut = false;                     ///< the window was cut off at an edge
  // Of a transposed plan only, about the windows that cover a cell:
  const int64_t* row_count = nullptr;  ///< product of the other axes' window lengths, per row
  const int64_t* row_tap = nullptr;    ///< the cell's place in the window, by all axes but the last, per row
  const int64_t* col_count = nullptr;  ///< window length along the last axis, per tap
  const int64_t* col_base = nullptr;   ///< where the window begins along the last axis, per tap
  int64_t cell = 0;                    ///< the cell along the last axis

  /// Which tap of the covering window the cell is.
  PG_INLINE int64_t tap(int64_t r, int64_t t) const { return row_tap[r] * col_count[t] + cell - col_base[t]; }
};

/// The source rows of one destination row after the other.
class Rows {
 public:
  Rows(const Plan& plan, bool reversed)
      : plan_(plan), reversed_(reversed), rows_(capacity(plan)), counts_(capacity(plan)), taps_(capacity(plan)) {
    int64_t stride = plan.last().n * plan.inner;
    for (int a = plan.rank - 2; a >= 0; --a) {
      stride_[a] = stride;
      stride *= plan.axis[a].n;
    }
  }

  /// The widest list this plan can ask for.
  static int64_t capacity(const Plan& plan) {
    int64_t rows = 1;
    for (int a = 0; a + 1 < plan.rank; ++a) rows *= plan.axis[a].widest;
    return rows;
  }

  /// Moves to destination row u of an item.
  void seek(int64_t u, Reach& reach) {
    int64_t at[kMaxRank], digit[kMaxRank], len[kMaxRank], cell[kMaxRank];
    const int upper = plan_.rank - 1;
    int64_t total = 1;
    reach.cut = false;
    for (int a = upper - 1; a >= 0; --a) {
      const Axis& axis = plan_.axis[a];
      const int64_t j = u % axis.m;
      u /= axis.m;
      at[a] = axis.start[j];
      cell[a] = axis.first + j;
      len[a] = axis.length(j);
      digit[a] = 0;
      total *= len[a];
      if (axis.span) reach.cut |= axis.span[j] != len[a];
    }
    for (int64_t i = 0; i < total; ++i) {
      int64_t offset = 0, count = 1, tap = 0;
      for (int a = 0; a < upper; ++a) {
        const Axis& axis = plan_.axis[a];
        const int64_t source = at[a] + digit[a];
        offset += (source - axis.origin) * stride_[a];
        if (!axis.count) continue;
        count *= axis.count[source];
        tap = tap * axis.count[source] + cell[a] - axis.base[source];
      }
      rows_[i] = offset;
      counts_[i] = count;
      taps_[i] = tap;
      advance(digit, len, upper);
    }
    reach.rows = rows_.get();
    reach.row_count = counts_.get();
    reach.row_tap = taps_.get();
    reach.nrows = total;
  }

 private:
  void advance(int64_t* digit, const int64_t* len, int upper) const {
    for (int i = 0; i < upper; ++i) {
      const int a = reversed_ ? i : upper - 1 - i;
      if (++digit[a] < len[a]) return;
      digit[a] = 0;
    }
  }

  const Plan& plan_;
  bool reversed_;
  Scratch<int64_t> rows_, counts_, taps_;
  int64_t stride_[kMaxRank];
};

/// The order in which the taps of a window are visited.
enum class Order { rows, columns, backwards };

/// Calls f(row, tap) over a reach.
template <Order order, class F>
PG_INLINE void each_tap(const Reach& reach, F&& f) {
  const int64_t rows = reach.nrows, width = reach.width;
  if constexpr (order == Order::rows) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t t = 0; t < width; ++t) f(r, t);
  } else if constexpr (order == Order::columns) {
    for (int64_t t = 0; t < width; ++t)
      for (int64_t r = 0; r < rows; ++r) f(r, t);
  } else {
    for (int64_t r = rows; r-- > 0;)
      for (int64_t t = width; t-- > 0;) f(r, t);
  }
}

/// Reduces each lane of a run over its taps: s = begin(lane, c), step(lane, s, place of the tap, number of the tap), end(lane, s, c).
/// Several vectors go through the taps together, since each step waits for the one before.
template <class T, Order order, class Begin, class Step, class End>
PG_INLINE void reduce(const Reach& w, int64_t lanes, Begin&& begin, Step&& step, End&& end) {
  const int64_t* const rows = w.rows;
  const Offsets off = w.off;
  for_lanes<T>(lanes, [&](auto lane, auto many, int64_t c) {
    constexpr int L = decltype(lane)::count, N = decltype(many)::count;
    decltype(begin(lane, c)) s[N];
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) s[i] = begin(lane, c + i * L);
    int64_t k = 0;
    each_tap<order>(w, [&](int64_t r, int64_t t) {
      const int64_t at = rows[r] + off[t] + c;
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) step(lane, s[i], at + i * L, k);
      ++k;
    });
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) end(lane, s[i], c + i * L);
  });
}

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
      for (int64_t q = 0; q < count; ++q) std::memcpy(to + q * inner, from + q * S * inner, static_cast<size_t>(inner) * sizeof(T));
  }
}

/// Puts every P-th cell back in place.
template <class T>
void join(const T* from, int64_t count, int64_t inner, int64_t P, T* to) {
  if (inner == 1)
    for (int64_t q = 0; q < count; ++q) to[q * P] = from[q];
  else
    for (int64_t q = 0; q < count; ++q) std::memcpy(to + q * P * inner, from + q * inner, static_cast<size_t>(inner) * sizeof(T));
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
};

/// Runs a cell kernel over destination rows. Two lane modes: across the inner elements of one cell, or,
/// where those are few and the windows repeat, along neighbouring cells of the row.
///
/// cell(reach, arrays, at, lanes): arrays point at the run's first lane; at is its place in the row.
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
        cells_(axis_.m ? axis_.stop[axis_.m - 1] - axis_.origin : 0),
        phase_((cells_ + axis_.step - 1) / axis_.step * plan.inner),
        split_(slots_ * Sources * phase_ * axis_.step),
        tags_(slots_),
        slot_rows_(slots_),
        join_(along_ && axis_.period > 1 ? (Partners + 1) * (axis_.m / axis_.period + 1) * inner_ : 0),
        table_(along_ ? axis_.widest : 0),
        taps_(flat_size(plan)),
        at_(taps_ * (kKept + 1)),
        counts_(axis_.count ? taps_ * (kKept + 1) : 0),
        places_(axis_.count ? taps_ * (kKept + 1) : 0) {
    for (int64_t i = 0; i < slots_; ++i) tags_[i] = nullptr;
  }

  template <class Cell>
  void run(Reach& reach, const Arrays& a, int64_t j0, int64_t j1, Cell&& cell) {
    const bool upper_cut = reach.cut;
    const int64_t lo = along_ ? clamp(axis_.lo, j0, j1) : j1, hi = along_ ? clamp(axis_.hi, j0, j1) : j1;
    for (bool& kept : kept_) kept = false;
    across(reach, a, j0, lo, upper_cut, cell);
    if (lo < hi) along(reach, a, lo, hi, upper_cut, cell);
    across(reach, a, hi, j1, upper_cut, cell);
    reach.cut = upper_cut;
  }

 private:
  static bool worth(const Plan& plan) {
    const Axis& axis = plan.last();
    return !plan.plain && plan.inner < kLanes<T> && (axis.hi - axis.lo) / axis.period * plan.inner >= kLanes<T>;
  }
  /// Windows of moderate size are listed tap by tap, so that kernels run one loop over them.
  static int64_t flat_size(const Plan& plan) {
    const int64_t taps = Rows::capacity(plan) * plan.last().widest;
    return taps <= 4096 ? taps : 0;
  }
  static int64_t clamp(int64_t v, int64_t lo, int64_t hi) { return v < lo ? lo : v > hi ? hi : v; }

  template <class Cell>
  void across(Reach& reach, const Arrays& a, int64_t j0, int64_t j1, bool upper_cut, Cell& cell) {
    reach.off = Offsets{nullptr, inner_};
    for (int64_t j = j0; j < j1; ++j) {
      aim(reach, j, upper_cut);
      const Reach& run = flatten(reach, j);
      Arrays here = a;
      for (auto& s : here.source) s += axis_.from(j) * inner_;
      if constexpr (Partners > 0)
        for (auto& p : here.partner) p += j * inner_;
      here.out += j * inner_;
      cell(run, here, j * inner_, inner_);
    }
  }

  /// The reach of cell j as a single row of taps, kept for the cells of this row that have the same.
  const Reach& flatten(const Reach& reach, int64_t j) {
    if (!taps_) return reach;
    const bool repeats = axis_.lo <= j && j < axis_.hi && axis_.period <= kKept;
    const int64_t slot = repeats ? (j - axis_.lo) % axis_.period : kKept;
    Reach& flat = flat_[slot];
    if (!repeats || !kept_[slot]) list(reach, flat, slot * taps_);
    kept_[slot] = repeats;
    flat.cut = reach.cut;
    return flat;
  }

  void list(const Reach& reach, Reach& flat, int64_t begin) {
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
    if (axis_.step > 1) regroup(reach, base);
    for (int64_t p = 0; p < axis_.period && lo + p < hi; ++p) {
      const int64_t first = lo + p, count = (hi - first + axis_.period - 1) / axis_.period;
      aim(reach, first, upper_cut);
      for (int64_t t = 0; t < reach.width; ++t) {
        const int64_t s = axis_.from(first) + t;
        table_[t] = axis_.step > 1 ? s % axis_.step * phase_ + s / axis_.step * inner_ : s * inner_;
      }
      reach.off = Offsets{table_.get(), 0};
      if (taps_) list(reach, flat_[kKept], kKept * taps_);
      flat_[kKept].cut = reach.cut;
      const Reach& run = taps_ ? flat_[kKept] : reach;
      if (axis_.period == 1) {
        Arrays here = base;
        if constexpr (Partners > 0)
          for (auto& q : here.partner) q += first * inner_;
        here.out += first * inner_;
        cell(run, here, first * inner_, count * inner_);
      } else {
        interleaved(run, base, first, count, cell);
      }
    }
    reach.rows = whole.rows;
  }

  /// One residue class of destination cells, through contiguous scratch.
  template <class Cell>
  void interleaved(const Reach& reach, const Arrays& base, int64_t first, int64_t count, Cell& cell) {
    Arrays here = base;
    if constexpr (Partners > 0)
      for (int i = 0; i < Partners; ++i) {
        T* to = join_.get() + (i + 1) * (axis_.m / axis_.period + 1) * inner_;
        for (int64_t q = 0; q < count; ++q)
          std::memcpy(to + q * inner_, base.partner[i] + (first + q * axis_.period) * inner_, static_cast<size_t>(inner_) * sizeof(T));
        here.partner[i] = to;
      }
    here.out = join_.get();
    cell(reach, here, first * inner_, count * inner_);
    join(join_.get(), count, inner_, axis_.period, base.out + first * inner_);
  }

  /// Source rows sorted by phase, kept from one destination row to the next.
  void regroup(Reach& reach, Arrays& base) {
    const int64_t length = axis_.n * inner_, slot_size = phase_ * axis_.step;
    for (int64_t r = 0; r < reach.nrows; ++r) {
      const int64_t slot = by_row_ ? reach.rows[r] / length % slots_ : r;
      const T* row = base.source[0] + reach.rows[r];
      slot_rows_[r] = slot * slot_size;
      if (tags_[slot] == row) continue;
      tags_[slot] = row;
      for (int i = 0; i < Sources; ++i)
        split(base.source[i] + reach.rows[r], cells_, inner_, axis_.step, phase_, split_.get() + (i * slots_ + slot) * slot_size);
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
  const int64_t cells_;  // of a source row, up to the last that is read
  const int64_t phase_;
  Scratch<T> split_;
  Scratch<const T*> tags_;
  Scratch<int64_t> slot_rows_;
  Scratch<T> join_;
  Scratch<int64_t> table_;
  const int64_t taps_;
  static constexpr int kKept = 4;  // lists of taps for cells that repeat, and one more for those that do not
  Scratch<int64_t> at_, counts_, places_;
  Reach flat_[kKept + 1];
  bool kept_[kKept + 1] = {};
};

}  // namespace poolgrad::PG_ISA
