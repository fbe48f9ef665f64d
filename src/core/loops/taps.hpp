// From a plan to taps: which source rows a destination row reads, in which order, and how lanes are
// reduced over them.
#pragma once
#include "plan/plan.hpp"
#include "runtime/threads.hpp"
#include "simd/vec.hpp"

namespace poolgrad::PG_ISA {

/// Memory for one task, from the stack while it is small. Destroyed in reverse order of
/// construction.
template <class T, int Small = 64>
class Scratch {
 public:
  explicit Scratch(int64_t count)
      : count_(count), p_(count <= Small ? small_ : static_cast<T*>(push_scratch(bytes()))) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (p_ != small_) pop_scratch(p_, bytes());
  }
  T* get() { return p_; }
  T& operator[](int64_t i) { return p_[i]; }

 private:
  int64_t bytes() const { return count_ * static_cast<int64_t>(sizeof(T)); }

  int64_t count_;
  T small_[Small];
  T* p_;
};

/// Steps of a task after which it must have passed a checkpoint: a millisecond or so.
constexpr int64_t kStepsPerCheckpoint = 1 << 20;

/// Zeros, however many.
template <class T>
void clear(T* p, int64_t count) {
  for (int64_t i = 0; i < count; i += kStepsPerCheckpoint) {
    const int64_t here = count - i < kStepsPerCheckpoint ? count - i : kStepsPerCheckpoint;
    std::memset(static_cast<void*>(p + i), 0, static_cast<size_t>(here) * sizeof(T));
    checkpoint(step_budget(), here);
  }
}

/// float32 sums, each rounded to a half type.
template <class T>
void round_sums(const float* sums, T* to, int64_t count) {
  for (int64_t i = 0; i < count; i += kStepsPerCheckpoint) {
    const int64_t here = count - i < kStepsPerCheckpoint ? count - i : kStepsPerCheckpoint;
    for_lanes<float>(here, [&](auto lane, auto many, int64_t first) {
      constexpr int L = decltype(lane)::count, N = decltype(many)::count;
      for (int64_t c = i + first; c < i + first + N * L; c += L)
        store<L>(to + c, load<L>(sums + c));
    });
    checkpoint(step_budget(), here);
  }
}

/// Element offset of each tap within a row: a table, or a constant step.
struct Offsets {
  const int64_t* table = nullptr;
  int64_t step = 0;
  PG_INLINE int64_t operator[](int64_t t) const { return table ? table[t] : t * step; }
};

/// What one run of lanes reads: tap t of row r is at rows[r] + off[t].
struct WindowTaps {
  const int64_t* rows = nullptr;
  int64_t nrows = 0;
  Offsets off;
  int64_t width = 0;
  bool cut = false;  ///< the window was cut off at an edge
  int64_t slot = -1,
          version =
              0;  ///< which list of taps this is, and whether it has changed; -1: it is no list
  int64_t repeat = 1, from = 0, to = 0;  ///< cells with these taps: each is `from` elements further
                                         ///< on in the source, `to` in the destination
  // Of a transposed plan only, about the windows that cover a cell:
  const int64_t* row_count = nullptr;  ///< product of the other axes' window lengths, per row
  const int64_t* row_tap =
      nullptr;  ///< the cell's place in the window, by all axes but the last, per row
  const int64_t* col_count = nullptr;  ///< window length along the last axis, per tap
  const int64_t* col_base = nullptr;   ///< where the window begins along the last axis, per tap
  int64_t cell = 0;                    ///< the cell along the last axis

  /// Which tap of the covering window the cell is.
  PG_INLINE int64_t tap(int64_t r, int64_t t) const {
    return row_tap[r] * col_count[t] + cell - col_base[t];
  }
};

/// The source rows of one destination row after the other.
class SourceRows {
 public:
  SourceRows(const Plan& plan, bool reversed)
      : plan_(plan),
        reversed_(reversed),
        budget_(step_budget()),
        steps_(row_steps(plan)),
        rows_(capacity(plan)),
        counts_(capacity(plan)),
        taps_(capacity(plan)) {
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
  void seek(int64_t u, WindowTaps& window) {
    checkpoint(budget_, steps_);
    int64_t at[kMaxRank], digit[kMaxRank], len[kMaxRank], cell[kMaxRank];
    const int upper = plan_.rank - 1;
    int64_t total = 1;
    window.cut = false;
    for (int a = upper - 1; a >= 0; --a) {
      const Axis& axis = plan_.axis[a];
      const int64_t j = u % axis.m;
      u /= axis.m;
      at[a] = axis.start[j];
      cell[a] = axis.first + j;
      len[a] = axis.length(j);
      digit[a] = 0;
      total *= len[a];
      if (axis.span) window.cut |= axis.span[j] != len[a];
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
    window.rows = rows_.get();
    window.row_count = counts_.get();
    window.row_tap = taps_.get();
    window.nrows = total;
  }

 private:
  void advance(int64_t* digit, const int64_t* len, int upper) const {
    for (int i = 0; i < upper; ++i) {
      const int a = reversed_ ? i : upper - 1 - i;
      if (++digit[a] < len[a]) return;
      digit[a] = 0;
    }
  }

  /// Lanes times taps of a whole row, or a number that is large enough.
  static int64_t row_steps(const Plan& plan) {
    int64_t steps;
    if (__builtin_mul_overflow(plan.last().m * plan.inner, capacity(plan) * plan.last().widest,
                               &steps) ||
        steps > kStepsPerCheckpoint)
      return kStepsPerCheckpoint;
    return steps;
  }

  const Plan& plan_;
  bool reversed_;
  StepBudget& budget_;
  int64_t steps_;
  Scratch<int64_t> rows_, counts_, taps_;
  int64_t stride_[kMaxRank];
};

/// The order in which the taps of a window are visited.
enum class Order { rows, columns, backwards };

/// Calls f(row, tap) over a reach.
template <Order order, class F>
PG_INLINE void each_tap(const WindowTaps& window, F&& f) {
  const int64_t rows = window.nrows, width = window.width;
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

/// Calls f(place, number) over the taps of a reach that is a list.
template <Order order, class F>
PG_INLINE void each_listed(const int64_t* place, int64_t taps, F&& f) {
  if constexpr (order == Order::backwards) {
    for (int64_t k = taps; k-- > 0;) f(place[k], k);
  } else {
    for (int64_t k = 0; k < taps; ++k) f(place[k], k);
  }
}

/// Reduces each lane of a run over its taps: s = begin(lane, c, shift of the places), step(lane, s,
/// place of the tap, number of the tap), end(lane, s, c). Several vectors go through the taps
/// together, since each step waits for the one before. Lanes may be computed twice: ends must
/// store, never add.
template <class T, Order order, class Begin, class Step, class End>
PG_INLINE void reduce(const WindowTaps& w, int64_t lanes, Begin&& begin, Step&& step, End&& end) {
  const int64_t* const rows = w.rows;
  const Offsets off = w.off;
  const int64_t taps = w.width;
  const auto run = [&](auto lane, auto many, int64_t c, int64_t from, auto&& each) PG_LAMBDA {
    constexpr int L = decltype(lane)::count, N = decltype(many)::count;
    decltype(begin(lane, c, from)) s[N];
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) s[i] = begin(lane, c + i * L, from + i * L);
    each([&](int64_t at, int64_t k) PG_LAMBDA {
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) step(lane, s[i], at + from + i * L, k);
    });
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) end(lane, s[i], c + i * L);
  };
  if (w.slot < 0) {  // a window too large to be listed
    const auto visit = [&](auto&& tap) PG_LAMBDA {
      int64_t k = 0;
      each_tap<order>(w, [&](int64_t r, int64_t t) PG_LAMBDA { tap(rows[r] + off[t], k++); });
    };
    int64_t c = 0;
    for (; c + kLanes<T> <= lanes; c += kLanes<T>) run(Lane<kLanes<T>>{}, Lane<1>{}, c, c, visit);
    for (; c < lanes; ++c) run(Lane<1>{}, Lane<1>{}, c, c, visit);
    return;
  }
  const int64_t* const place = off.table;
  const int64_t repeat = w.repeat, from = w.from, to = w.to;
  for (int64_t q = 0; q < repeat; ++q)
    for_lanes<T, true>(lanes, [&](auto lane, auto many, int64_t c) PG_LAMBDA {
      run(lane, many, c + q * to, c + q * from,
          [&](auto&& tap) PG_LAMBDA { each_listed<order>(place, taps, tap); });
    });
}

/// Adds up term(lane, place of the tap, number of the tap), rounding to T at each step but the
/// first, which is exact.
template <class T, Order order, class Term, class End>
PG_INLINE void add_up(const WindowTaps& w, int64_t lanes, Term&& term, End&& end) {
  if constexpr (is_half<T>)
    if (w.slot >= 0 && w.width > 0) {
      WindowTaps rest = w;
      ++rest.off.table;
      --rest.width;
      const int64_t first = w.off[0];
      return reduce<T, order>(
          rest, lanes,
          [&](auto lane, int64_t, int64_t shift) {
            return plus<T, decltype(lane)::count>(Vec<Wide<T>, decltype(lane)::count>{},
                                                  term(lane, first + shift, 0));
          },
          [&](auto lane, auto& sum, int64_t at, int64_t k) {
            sum = plus_rounded<T, decltype(lane)::count>(sum, term(lane, at, k + 1));
          },
          end);
    }
  reduce<T, order>(
      w, lanes, [](auto lane, int64_t, int64_t) { return Vec<Wide<T>, decltype(lane)::count>{}; },
      [&](auto lane, auto& sum, int64_t at, int64_t k) {
        sum = plus_rounded<T, decltype(lane)::count>(sum, term(lane, at, k));
      },
      end);
}

}  // namespace poolgrad::PG_ISA
