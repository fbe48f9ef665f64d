// The direct loop: visit every tap of every window. It runs every plan; tests compare all schedules
// with a plain plan (Plan::plain), which visits taps one by one.
//
// A lane is one element of a vector. Two meanings of a lane:
//
//   inner lanes   the inner elements of one destination cell (channels last)
//   row lanes     neighbouring destination cells of a row, if windows repeat: with a stride of 1,
//                 or if inner is smaller than a vector; then a stride above 1 first sorts the
//                 source row by phase
#pragma once
#include "loops/when.hpp"
#include "simd/interleave.hpp"
#include "simd/stream.hpp"

namespace poolgrad::PG_ISA {

/// True if runs fetch ahead: for integers and old processors it is not worth its code size.
template <class T>
constexpr bool kFetches = is_real<T>&& kBytes >= 32;

/// Fetch `bytes` from byte `at` of each place that a run fetches ahead. Loads of several rows in
/// turns are no stream that a processor fetches by itself. Not inlined: every kernel calls it.
[[gnu::noinline]] inline void fetch_ahead(const WindowTaps& w, int64_t at, int64_t bytes) {
  asm volatile("");  // without it GCC drops the calls: to fetch is no effect
  for (const char* const source : w.sources)
    for (int64_t r = 0; source && r < w.fetched; ++r)
      for (int64_t b = 0; b < bytes; b += kCacheLine)
        __builtin_prefetch(source + w.ahead[r] + at + b);
}

/// Reduce each lane over its taps: s = begin(lane, c, shift of the offsets); step(lane, s, offset
/// of the tap, number of the tap); end(lane, s, c). Several vectors visit the taps together,
/// because each step waits for the previous one. A lane may be computed twice: `end` must store,
/// not add.
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
  if (w.slot < 0) {  // the window has too many taps to list
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
      constexpr int64_t kSize = sizeof(T), kCells = decltype(lane)::count * decltype(many)::count;
      if constexpr (kFetches<T> && kCells >= kLanes<T>)
        if (w.fetched) fetch_ahead(w, (q * from + c * w.step) * kSize, kCells * w.step * kSize);
      run(lane, many, c + q * to, c + q * from,
          [&](auto&& tap) PG_LAMBDA { each_listed<order>(place, taps, tap); });
    });
}

/// Add up term(lane, offset of the tap, number of the tap). Round to T at each step but the first,
/// which is exact.
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

/// Sort cells of 4 phases, in registers; return the cells of each phase that are sorted.
template <class T>
int64_t deinterleave_four(const T* row, int64_t cells, int64_t phase, T* out) {
  constexpr int V = kLanes<T>;
  using Order = std::make_integer_sequence<int, V>;
  int64_t q = 0;
  for (; 4 * (q + V) <= cells; q += V) {
    Vec<T, V> v[4], even[2], odd[2];
    for (int k = 0; k < 4; ++k) v[k] = load<V>(row + 4 * q + k * V);
    for (int k = 0; k < 2; ++k) {
      even[k] = deinterleave<0, 2>(v + 2 * k, Order{});
      odd[k] = deinterleave<1, 2>(v + 2 * k, Order{});
    }
    store<V>(out + q, deinterleave<0, 2>(even, Order{}));
    store<V>(out + phase + q, deinterleave<0, 2>(odd, Order{}));
    store<V>(out + 2 * phase + q, deinterleave<1, 2>(even, Order{}));
    store<V>(out + 3 * phase + q, deinterleave<1, 2>(odd, Order{}));
  }
  return q;
}

/// Sort the cells of a row by phase: phase p holds cells p, p + S, p + 2 S, ...
template <class T>
void deinterleave_cells(const T* row, int64_t cells, int64_t inner, int64_t S, int64_t phase,
                        T* out) {
  int64_t sorted = 0;
  if constexpr (sizeof(T) >= 4)  // shuffles of smaller lanes cost too much
    if (inner == 1 && S == 4) sorted = deinterleave_four(row, cells, phase, out);
  for (int64_t p = 0; p < S; ++p) {
    T* to = out + p * phase;
    const T* from = row + p * inner;
    const int64_t count = p < cells ? (cells - p + S - 1) / S : 0;
    if (inner == 1 && S == 2)
      for (int64_t q = 0; q < count; ++q) to[q] = from[2 * q];
    else if (inner == 1)
      for (int64_t q = sorted; q < count; ++q) to[q] = from[q * S];
    else
      for (int64_t q = 0; q < count; ++q)
        std::memcpy(to + q * inner, from + q * S * inner, static_cast<size_t>(inner) * sizeof(T));
  }
}

/// Write cells to every P-th place.
template <class T>
void interleave_cells(const T* from, int64_t count, int64_t inner, int64_t P, T* to) {
  if (inner == 1)
    for (int64_t q = 0; q < count; ++q) to[q * P] = from[q];
  else
    for (int64_t q = 0; q < count; ++q)
      std::memcpy(to + q * P * inner, from + q * inner, static_cast<size_t>(inner) * sizeof(T));
}

/// Call f(item, row of the item, j0, j1) for every destination row of a piece.
template <class F>
PG_INLINE void each_row(const Plan& plan, Piece p, F&& f) {
  const int64_t per = plan.rows_per_slab(), cells = plan.last().m;
  for (int64_t i = p.i0; i < p.i1; ++i) {
    if (plan.rank == 1) f(i, 0, p.h0, p.h1);
    else
      for (int64_t u = p.h0 * per; u < p.h1 * per; ++u) f(i, u, 0, cells);
  }
}

/// The arrays of a row: sources, which windows read, and partners, which have one cell per
/// destination cell.
template <class T, int Sources, int Partners>
struct RowArrays {
  const T* source[Sources];
  const T* partner[Partners ? Partners : 1];
  T* out;
  bool stream = false;  ///< stream the result past the caches
};

/// Keep lists of taps for windows that repeat after up to this many cells.
constexpr int kKeptLists = 16;

/// Run a cell kernel over destination rows, with inner lanes or row lanes.
///
/// cell(window, arrays, at, lanes): `arrays` point at the first lane of the run, `at` is its place
/// in the row.
template <class T, int Sources, int Partners>
class RowRunner {
 public:
  using Arrays = RowArrays<T, Sources, Partners>;

  explicit RowRunner(const Plan& plan, bool reversed = false)
      : axis_(plan.last()),
        reversed_(reversed),
        inner_(plan.inner),
        row_lanes_(has_row_lanes(plan)),
        slots_(row_lanes_ && axis_.step > 1 ? SourceRows::capacity(plan) : 0),
        by_row_(plan.rank == 2),
        stretch_(plan.rank == 1 ? kStretch : axis_.m),
        cells_(longest()),
        phase_((cells_ + axis_.step - 1) / axis_.step * plan.inner),
        phases_(slots_ * Sources * phase_ * axis_.step),
        tags_(slots_),
        slot_rows_(slots_),
        most_per_phase_((stretch_ < axis_.m ? stretch_ : axis_.m) / axis_.period + 1),
        joined_(row_lanes_ && axis_.period > 1 ? (Partners + 1) * most_per_phase_ * inner_ : 0),
        table_(row_lanes_ ? axis_.widest : 0),
        new_rows_(new_rows(plan)),
        ahead_(new_rows_ ? new_rows_ * SourceRows::capacity(plan) : 0),
        most_taps_(most_listed_taps(plan)),
        list_count_(most_taps_ <= 4096 ? kLists : 0),
        offsets_(most_taps_ * (list_count_ + 1)),
        counts_(axis_.count ? most_taps_ * (list_count_ + 1) : 0),
        places_(axis_.count ? most_taps_ * (list_count_ + 1) : 0),
        cells_per_checkpoint_(most_taps_ ? kStepsPerCheckpoint / (most_taps_ * inner_ + 1) + 1
                                         : 1) {
    for (int64_t i = 0; i < slots_; ++i) tags_[i] = nullptr;
  }

  template <class Cell>
  void run(WindowTaps& window, const Arrays& a, int64_t j0, int64_t j1, Cell&& cell) {
    const bool upper_cut = window.cut;
    const int64_t lo = row_lanes_ ? clamp(axis_.lo, j0, j1) : j1,
                  hi = row_lanes_ ? clamp(axis_.hi, j0, j1) : j1;
    for (bool& is_listed : is_listed_) is_listed = false;
    if (new_rows_) aim_ahead(window);
    for (int64_t j = j0; j < lo; j += cells_per_checkpoint_)
      run_inner_lanes(window, a, j, end_of_stretch(j, lo), upper_cut, cell);
    for (int64_t j = lo; j < hi; j += stretch_) {
      if (j > lo) checkpoint(step_budget(), stretch_ * (axis_.widest + 1));
      run_row_lanes(window, a, j, j + stretch_ < hi ? j + stretch_ : hi, upper_cut, cell);
    }
    for (int64_t j = hi; j < j1; j += cells_per_checkpoint_)
      run_inner_lanes(window, a, j, end_of_stretch(j, j1), upper_cut, cell);
    window.cut = upper_cut;
  }

 private:
  /// Process rows of one-axis plans in stretches of this many cells, so that the sorted cells stay
  /// in cache. Fuzz builds use a small number, because their rows are short.
#if defined(PG_STRETCH)
  static constexpr int64_t kStretch = PG_STRETCH;
#else
  static constexpr int64_t kStretch = 1 << 13;
#endif

  static bool has_row_lanes(const Plan& plan) {
    const Axis& axis = plan.last();
    return !plan.plain && plan.inner < kLanes<T> &&
           (axis.hi - axis.lo) / axis.period * plan.inner >= kLanes<T>;
  }
  /// List windows of up to 32,768 taps, so that the kernels run one loop over them.
  static int64_t most_listed_taps(const Plan& plan) {
    const int64_t taps = most_taps(plan);
    return taps <= 32768 ? taps : 0;
  }
  /// Number lists uniquely over all runners: a kernel may outlive the runner whose lists it has
  /// cached.
  static int64_t next_runner() {
    static thread_local int64_t runners = 0;
    return ++runners << 32;
  }
  static int64_t clamp(int64_t v, int64_t lo, int64_t hi) { return v < lo ? lo : v > hi ? hi : v; }

  /// Return the end of the stretch that begins at j, and pass a checkpoint between stretches.
  int64_t end_of_stretch(int64_t j, int64_t end) const {
    if (end - j <= cells_per_checkpoint_) return end;
    checkpoint(step_budget(), kStepsPerCheckpoint);
    return j + cells_per_checkpoint_;
  }
  /// Run the cell kernel on all lanes, with a checkpoint every 4,096: a multiple of every vector
  /// length.
  template <class Cell>
  PG_INLINE void run_in_parts(const WindowTaps& window, Arrays& here, int64_t at, int64_t lanes,
                              Cell& cell) {
    constexpr int64_t kMost = 4096;
    for (;;) {
      const int64_t now = lanes < kMost ? lanes : kMost;
      cell(window, here, at, now);
      if ((lanes -= now) == 0) return;
      checkpoint(step_budget(), now * window.nrows * window.width);
      at += now;
      for (auto& s : here.source) s += now;
      if constexpr (Partners > 0)
        for (auto& p : here.partner) p += now;
      here.out += now;
    }
  }

  template <class Cell>
  void run_inner_lanes(WindowTaps& window, const Arrays& a, int64_t j0, int64_t j1, bool upper_cut,
                       Cell& cell) {
    window.off = Offsets{nullptr, inner_};
    // Cells that repeat share a list of taps, which exists from the second period on.
    const bool listed = most_taps_ && axis_.period <= list_count_;
    const int64_t known = listed ? clamp(axis_.lo + axis_.period, j0 + axis_.period, j1) : j1,
                  end = listed ? clamp(axis_.hi, known, j1) : j1;
    for (int64_t j = j0; j < j1; ++j) {
      if (j == known && j < end) {
        repeated(a, j, end, cell);
        j = end - 1;
        continue;
      }
      set_column(window, j, upper_cut);
      const int64_t next = new_rows_ && j + 1 < axis_.m ? axis_.from(j + 1) - axis_.from(j) : 0;
      cell(list_window(window, j, a, next), at_cell(a, j), j * inner_, inner_);
    }
  }

  /// Compute cells [j, end), whose lists exist: one run per list, over so few cells that the next
  /// list finds the source in cache.
  template <class Cell>
  void repeated(const Arrays& a, int64_t j, int64_t end, Cell& cell) {
    const int64_t period = axis_.period,
                  cells = period == 1
                              ? end - j
                              : (1 + 4096 / (inner_ * period * static_cast<int64_t>(sizeof(T)))) *
                                    period;
    const bool joined = period == 1 && axis_.step == 1;  // the lanes of all cells follow each other
    for (; j < end; j += cells)
      for (int64_t p = j; p < j + period && p < end; ++p) {
        const int64_t stop = j + cells < end ? j + cells : end;
        WindowTaps& run = windows_[(p - axis_.lo) % period];
        const int64_t count = (stop - p + period - 1) / period;
        run.repeat = joined ? 1 : count;
        run.from = axis_.step * inner_;
        run.to = period * inner_;
        if (new_rows_) fetch_beside(run, a, p, p == j ? axis_.step : 0);
        cell(run, at_cell(a, p), p * inner_, joined ? count * inner_ : inner_);
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

  /// Return the window of cell j as one row of taps; reuse the list if the window repeats.
  const WindowTaps& list_window(const WindowTaps& window, int64_t j, const Arrays& a,
                                int64_t step) {
    if (!most_taps_) return window;
    const bool repeats = axis_.lo <= j && j < axis_.hi && axis_.period <= list_count_;
    const int64_t slot = repeats ? (j - axis_.lo) % axis_.period : list_count_;
    WindowTaps& listed = windows_[slot];
    if (!repeats || !is_listed_[slot]) list_taps(window, listed, slot * most_taps_);
    is_listed_[slot] = repeats;
    listed.cut = window.cut;
    listed.span = window.span;
    if (new_rows_) fetch_beside(listed, a, j, step);
    return listed;
  }

  /// Count the neighbouring source rows that no destination row above a row reads; 0 if the sources
  /// are in a cache.
  static int64_t new_rows(const Plan& plan) {
    constexpr int64_t kSize = sizeof(T);
    if (!kFetches<T> || Sources > 1 || plan.plain || plan.in_cache || plan.rank == 1 ||
        plan.inner * kSize < kCacheLine ||
        plan.outer * plan.axis[0].n * plan.source_slab() * kSize < kFetchedBytes)
      return 0;
    const Axis& above = plan.axis[plan.rank - 2];
    return above.step > above.period ? (above.step + above.period - 1) / above.period : 1;
  }
  /// List what to fetch ahead: the next cells of the rows that a destination row reads first, which
  /// are the last ones of each run of rows.
  void aim_ahead(const WindowTaps& window) {
    constexpr int64_t kSize = sizeof(T), kAhead = 4096;
    const int64_t row = axis_.n * inner_;
    fetched_ = 0;
    for (int64_t r = 0, first = 0; r < window.nrows; ++r) {
      if (r + 1 < window.nrows && window.rows[r + 1] == window.rows[r] + row) continue;
      for (int64_t k = 0; k < new_rows_ && k <= r - first; ++k)
        ahead_[fetched_++] = window.rows[r - k] * kSize + kAhead;
      first = r + 1;
    }
  }
  /// Let the lanes of cells from j on fetch ahead, `step` source lanes each; none if it is 0.
  PG_INLINE void fetch_beside(WindowTaps& run, const Arrays& a, int64_t j, int64_t step) {
    run.fetched = step ? fetched_ : 0;
    if (!run.fetched) return;
    run.ahead = ahead_.get();
    run.step = step;
    for (int i = 0; i < Sources; ++i)
      run.sources[i] = reinterpret_cast<const char*>(a.source[i] + axis_.from(j) * inner_);
  }

  void list_taps(const WindowTaps& window, WindowTaps& listed, int64_t begin) {
    listed.slot = begin / most_taps_;
    listed.version = ++versions_;
    int64_t k = begin;
    const auto add = [&](int64_t r, int64_t t) {
      offsets_[k] = window.rows[r] + window.off[t];
      if (axis_.count) {
        counts_[k] = window.row_count[r] * window.col_count[t];
        places_[k] = -window.tap(r, t);
      }
      ++k;
    };
    if (reversed_) each_tap<Order::columns>(window, add);
    else each_tap<Order::rows>(window, add);
    static constexpr int64_t zero = 0, one = 1;
    listed.rows = listed.row_tap = &zero;
    listed.nrows = 1;
    listed.row_count = &one;
    listed.off = Offsets{offsets_.get() + begin, 0};
    listed.width = k - begin;
    listed.columns = window.width;
    listed.col_count = counts_.get() + begin;
    listed.col_base = places_.get() + begin;
  }

  void set_column(WindowTaps& window, int64_t j, bool upper_cut) const {
    window.width = axis_.length(j);
    const int64_t span = axis_.span ? axis_.span[j] : window.width;
    window.cut = upper_cut || span != window.width;
    window.span = window.upper_span * span;
    if (!axis_.count) return;
    window.col_count = axis_.count + axis_.start[j];
    window.col_base = axis_.base + axis_.start[j];
    window.cell = axis_.first + j;
  }

  template <class Cell>
  void run_row_lanes(WindowTaps& window, const Arrays& a, int64_t lo, int64_t hi, bool upper_cut,
                     Cell& cell) {
    Arrays base = a;
    const WindowTaps before = window;
    if (axis_.step > 1)
      deinterleave_rows(window, base, axis_.from(lo) / axis_.step * axis_.step,
                        axis_.from(hi - 1) + axis_.length(hi - 1));
    for (int64_t p = 0; p < axis_.period && lo + p < hi; ++p) {
      const int64_t first = lo + p, count = (hi - first + axis_.period - 1) / axis_.period;
      set_column(window, first, upper_cut);
      for (int64_t t = 0; t < window.width; ++t) {
        const int64_t s = axis_.from(first) + t - from_;
        table_[t] = axis_.step > 1 ? s % axis_.step * phase_ + s / axis_.step * inner_ : s * inner_;
      }
      window.off = Offsets{table_.get(), 0};
      if (most_taps_) list_taps(window, windows_[list_count_], list_count_ * most_taps_);
      windows_[list_count_].cut = window.cut;
      windows_[list_count_].span = window.span;
      const WindowTaps& run = most_taps_ ? windows_[list_count_] : window;
      if (axis_.period == 1) {
        Arrays here = base;
        if constexpr (Partners > 0)
          for (auto& q : here.partner) q += first * inner_;
        here.out += first * inner_;
        run_in_parts(run, here, first * inner_, count * inner_, cell);
      } else {
        run_one_phase(run, base, first, count, cell);
      }
    }
    window.rows = before.rows;
  }

  /// Compute one phase of the destination cells in contiguous scratch memory.
  template <class Cell>
  void run_one_phase(const WindowTaps& window, const Arrays& base, int64_t first, int64_t count,
                     Cell& cell) {
    Arrays here = base;
    if constexpr (Partners > 0)
      for (int i = 0; i < Partners; ++i) {
        T* to = joined_.get() + (i + 1) * most_per_phase_ * inner_;
        for (int64_t q = 0; q < count; ++q)
          std::memcpy(to + q * inner_, base.partner[i] + (first + q * axis_.period) * inner_,
                      static_cast<size_t>(inner_) * sizeof(T));
        here.partner[i] = to;
      }
    here.out = joined_.get();
    run_in_parts(window, here, first * inner_, count * inner_, cell);
    interleave_cells(joined_.get(), count, inner_, axis_.period, base.out + first * inner_);
  }

  /// Return the most source cells that a stretch reads.
  int64_t longest() const {
    const int64_t all = axis_.m ? axis_.stop[axis_.m - 1] - axis_.origin : 0,
                  some = (stretch_ / axis_.period + 3) * axis_.step + axis_.widest;
    return all < some ? all : some;
  }

  /// Sort the cells that windows read in the source rows by phase. Keep them for the next
  /// destination row.
  void deinterleave_rows(WindowTaps& window, Arrays& base, int64_t from, int64_t to) {
    const int64_t length = axis_.n * inner_, slot_size = phase_ * axis_.step;
    if (from != from_ || to != to_)
      for (int64_t i = 0; i < slots_; ++i) tags_[i] = nullptr;
    from_ = from;
    to_ = to;
    for (int64_t r = 0; r < window.nrows; ++r) {
      const int64_t slot = by_row_ ? window.rows[r] / length % slots_ : r;
      const T* row = base.source[0] + window.rows[r];
      slot_rows_[r] = slot * slot_size;
      if (tags_[slot] == row) continue;
      tags_[slot] = row;
      for (int i = 0; i < Sources; ++i)
        deinterleave_cells(base.source[i] + window.rows[r] + from * inner_, to - from, inner_,
                           axis_.step, phase_, phases_.get() + (i * slots_ + slot) * slot_size);
    }
    for (int i = 0; i < Sources; ++i) base.source[i] = phases_.get() + i * slots_ * slot_size;
    window.rows = slot_rows_.get();
  }

  const Axis& axis_;
  const bool reversed_;
  const int64_t inner_;
  const bool row_lanes_;
  const int64_t slots_;
  const bool by_row_;
  const int64_t stretch_;  // destination cells per stretch
  const int64_t cells_;    // the most source cells that a stretch reads
  const int64_t phase_;
  int64_t from_ = 0, to_ = 0;  // the sorted range of the source rows
  Scratch<T> phases_;
  Scratch<const T*> tags_;
  Scratch<int64_t> slot_rows_;
  const int64_t most_per_phase_;  // the most destination cells of one phase
  Scratch<T> joined_;
  Scratch<int64_t> table_;
  const int64_t new_rows_;
  Scratch<int64_t> ahead_;
  int64_t fetched_ = 0;
  const int64_t most_taps_;
  static constexpr int kLists = kKeptLists;
  const int64_t
      list_count_;  // lists for windows that repeat; one more list serves all other windows
  Scratch<int64_t> offsets_, counts_, places_;
  const int64_t cells_per_checkpoint_;  // destination cells between two checkpoints
  WindowTaps windows_[kLists + 1];
  int64_t versions_ = next_runner();
  bool is_listed_[kLists + 1] = {};
};

}  // namespace poolgrad::PG_ISA
