// Pools that are verbs over changed cells: minima, maxima that mind NaN, sums and means that leave
// out NaN, divide by another number, or add integers. Parts that need no change run the verb on the
// array itself; the others run it box by box.
#pragma once
#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "api/boxes.hpp"
#include "api/row_folds.hpp"
#include "api/tasks.hpp"

namespace poolgrad {

constexpr bool is_float(Dtype dtype) { return dtype <= Dtype::f64; }

/// Count the cells of the largest window.
inline int64_t largest_window(const Plan& plan) {
  int64_t cells = 1;
  for (int a = 0; a < plan.rank; ++a) cells *= std::max<int64_t>(plan.axis[a].widest, 1);
  return cells;
}

// ---- maxima and minima

/// Return the value that a maximum starts from under a rule for NaN.
constexpr Start start_of(NanRule nan) {
  return nan == NanRule::tf ? Start::lowest : Start::infinity;
}

/// The largest or least cell of each window, and its tap if `taps` is given: the first of equals.
struct BestCall {
  const Plan& plan;
  Dtype dtype;
  const char* x;
  char* y;
  char* taps;
  bool least;
  NanRule nan;

  void run(Piece p) const {
    if (!taps && by_runs(p)) return;
    if (!taps && joins_rows()) return by_rows(p);
    if (least) return by_boxes(p);
    if (!minds_nan()) return directly(p);
    const NanScan scan(plan, verbs(), x, width());
    scan.each(p, [&](Piece part) {
      scan.clean(part) ? directly(part) : by_boxes(part);
      return true;
    });
  }

 private:
  Start start() const { return start_of(nan); }
  const Verbs* verbs() const { return chosen_verbs(dtype); }
  int64_t width() const { return item_bytes(dtype); }
  int64_t tap_width() const { return !taps ? 0 : largest_window(plan) > 256 ? 4 : 1; }
  bool minds_nan() const { return is_float(dtype) && nan != NanRule::tf; }

  void directly(Piece p) const { call(plan, dtype, x, y, taps, p); }

  bool by_runs(Piece p) const {
    Arrays a;
    a.x = x;
    a.out = y;
    return verbs()->best_runs(plan, a, start(), nan, least, p);
  }

  /// Return true if the arrays exceed 16 second caches, and windows have so few cells that memory
  /// sets the time: it is longer for joined rows.
  bool waits_for_memory() const {
    constexpr CacheShare kNearBytes{second_cache, 16 * 16};
    constexpr int64_t kFewTaps = 9, kShortStep = 2;
    const int64_t cells = plan.axis[0].n * plan.source_slab() + plan.axis[0].m * plan.dest_slab();
    return largest_window(plan) <= kFewTaps && plan.last().step <= kShortStep &&
           plan.outer * cells * width() >= kNearBytes;
  }

  /// Return true if to join whole rows first costs less than to visit the taps: integers, rows that
  /// are long and that few windows share, windows of some cells if memory sets the time. Minima
  /// always gain: else boxes change their cells.
  bool joins_rows() const {
    constexpr double kTimes = 4;
    constexpr int64_t kLongRow = 64, kLongWindow = 1 << 14;
    const Axis& last = plan.last();
    if (!chosen_cells(dtype)->largest.join || plan.inner != 1 || plan.plain ||
        plan.only != kAnySchedule || last.n < kLongRow || last.widest > kLongWindow ||
        last.period != 1 || (!least && waits_for_memory()))
      return false;
    double times = 1;  // that a row is read
    for (int a = 0; a + 1 < plan.rank; ++a)
      times *= static_cast<double>(plan.axis[a].widest) * static_cast<double>(plan.axis[a].m) /
               static_cast<double>(std::max<int64_t>(plan.axis[a].n, 1));
    return times <= kTimes;
  }

  /// Join the rows of windows first, then the columns.
  void by_rows(Piece p) const {
    const RowLoops& loops = least ? chosen_cells(dtype)->least : chosen_cells(dtype)->largest;
    const int top = plan.rank - 1;
    in_stretches_of_rows(plan, p, [&](BoxRange range) {
      const int64_t row = range.s1 - range.s0;
      const RowFolds along(plan.last(), 1, range, loops, width());
      BoxMemory columns(row * width());
      for (int64_t i = p.i0; i < p.i1; ++i) {
        int64_t at[kMaxRank] = {p.h0};
        for (;;) {
          int64_t place = i;
          for (int a = 0; a < top; ++a) place = place * plan.axis[a].m + at[a];
          join_rows(loops, i, at, range.s0, row, columns.get());
          along.run(columns.get(), y + (place * plan.last().m + range.j0) * width());
          int a = top - 1;
          while (a >= 0 && ++at[a] == (a ? plan.axis[a].m : p.h1)) at[a] = a ? 0 : p.h0, --a;
          if (a < 0) break;
        }
      }
    });
  }

  /// Set `columns` = the source rows of a row of results, joined.
  void join_rows(const RowLoops& loops, int64_t item, const int64_t* at, int64_t from, int64_t row,
                 char* columns) const {
    const int top = plan.rank - 1;
    const void* rows[kRowsTogether];
    int many = 0;
    const auto flush = [&] {
      checkpoint(step_budget(), (many + 1) * row / 8);
      loops.join(rows, many, columns, row);
      rows[0] = columns;
      many = 1;
    };
    int64_t source[kMaxRank];
    bool some = true;
    for (int a = 0; a < top; ++a) {
      source[a] = plan.axis[a].start[at[a]];
      some = some && plan.axis[a].length(at[a]) > 0;
    }
    while (some) {
      int64_t place = item;
      for (int a = 0; a < top; ++a) place = place * plan.axis[a].n + source[a];
      if (many == kRowsTogether) flush();
      rows[many++] = x + (place * plan.last().n + from) * width();
      int a = top - 1;
      while (a >= 0 && ++source[a] == plan.axis[a].stop[at[a]])
        source[a] = plan.axis[a].start[at[a]], --a;
      some = a >= 0;
    }
    flush();
  }

  void call(const Plan& over, Dtype type, const void* from, void* to, void* to_taps,
            Piece p) const {
    Arrays a;
    a.x = from;
    a.out = to;
    a.out_index = to_taps;
    if (taps) chosen_verbs(type)->choose(over, a, p);
    else chosen_verbs(type)->select(over, a, start(), p);
  }

  void by_boxes(Piece p) const {
    const CellLoops& loops = *chosen_cells(dtype);
    const bool top = nan == NanRule::propagate;
    Box box(plan, p, {width(), width() + tap_width()});
    box.each([&] {
      const int64_t parts = taps ? 1 : box.parts(width()), results = box.dest_cells();
      BoxMemory best(results * width()), best_taps(results * tap_width()),
          of_parts(parts > 1 ? parts * results * width() : 0);
      NanFound found{};
      box.each_part(parts, [&](int64_t part) {
        BoxMemory cells(box.source_cells() * width());
        box.each_source_run([&](int64_t place, int64_t at, int64_t n) {
          const char* const from = x + place * width();
          char* const to = cells.get() + at * width();
          if (!minds_nan()) return static_cast<void>(loops.copy(from, to, n, least));
          const NanFound here = loops.replace_nan(from, to, n, least, top);
          found = {found.nan || here.nan, found.clash || here.clash};
        });
        char* const to = parts > 1 ? of_parts.get() + part * results * width() : best.get();
        if (!(found.nan && found.clash))
          call(box.plan(), dtype, cells.get(), to, best_taps.get(), box.piece());
      });
      const bool clashes = found.nan && found.clash;
      if (clashes) {
        choose_among_nan(box, loops, best, best_taps);
      } else if (parts > 1) {
        const PartsPlan joined(parts, results);
        call(joined.plan, dtype, of_parts.get(), best.get(), nullptr, PartsPlan::piece);
      }
      box.each_dest_run([&](int64_t place, int64_t at, int64_t n) {
        const char* const from = best.get() + at * width();
        if (found.nan && !clashes) loops.restore_nan(from, y + place * width(), n, least, top);
        else loops.copy(from, y + place * width(), n, least);
        if (taps)
          std::memcpy(taps + place * tap_width(), best_taps.get() + at * tap_width(),
                      static_cast<size_t>(n * tap_width()));
      });
    });
  }

  /// Choose among integer keys that tell NaN from infinity, then read the cells at the taps.
  void choose_among_nan(const Box& box, const CellLoops& loops, const BoxMemory& best,
                        const BoxMemory& best_taps) const {
    if (largest_window(plan) > std::numeric_limits<uint32_t>::max())
      throw std::overflow_error("x: a window with NaN and infinity has more than 2^32 cells");
    const Dtype whole = width() == 2 ? Dtype::i16 : width() == 4 ? Dtype::i32 : Dtype::i64;
    BoxMemory cells(box.source_cells() * width()), keys(box.source_cells() * width()),
        own_taps(taps ? 0 : box.dest_cells() * (largest_window(plan) > 256 ? 4 : 1));
    box.each_source_run([&](int64_t place, int64_t at, int64_t n) {
      loops.copy(x + place * width(), cells.get() + at * width(), n, least);
    });
    loops.rank(cells.get(), keys.get(), box.source_cells(), nan == NanRule::propagate);
    Arrays a;
    a.x = keys.get();
    a.out_index = taps ? best_taps.get() : own_taps.get();
    chosen_verbs(whole)->choose(box.plan(), a, box.piece());
    a.index = a.out_index;
    a.g = cells.get();
    a.out = best.get();
    verbs()->pick(box.plan(), a, box.piece());
  }
};

// ---- sums and means

/// The divisor of a sum: the cells of its window, those before an edge cut it, or a number.
enum class Divisor : int { count, span, number };

/// The sum of each window, divided. Integers are summed exactly: the caller checks that the sums
/// have at most 51 bits, and that no divisor is 0.
struct MeanCall {
  const Plan& plan;
  Dtype dtype, result;  ///< the same for floats
  const char* x;
  char* y;
  Divisor by;
  double number;
  bool ignore_nan;
  Rounding rounding;

  /// Return false if the result dtype does not hold a result.
  bool run(Piece p) const {
    if (!is_float(dtype)) return integers(p);
    if (!ignore_nan && folds_directly()) return directly(p), true;
    const NanScan scan(plan, chosen_verbs(dtype), x, width());
    scan.each(p, [&](Piece part) {
      const bool changes = half() && !folds_directly();
      !changes && (!ignore_nan || scan.clean(part)) ? directly(part) : floats(part);
      return true;
    });
    return true;
  }

  /// Return the type of the sums.
  Dtype sum_type() const {
    if (is_float(dtype)) return half() && !sums_only() ? Dtype::f32 : dtype;
    return wide() ? Dtype::f64 : Dtype::f32;
  }

 private:
  int64_t width() const { return item_bytes(dtype); }
  bool half() const { return dtype <= Dtype::bf16; }
  bool sums_only() const { return by == Divisor::number && number == 1; }
  bool folds_directly() const { return by == Divisor::count || sums_only() || spans_directly(); }
  /// True if the core divides float32 sums of half types itself; without inner elements, copies in
  /// float32 fill vectors better.
  bool spans_directly() const {
    constexpr int64_t kManyInner = 16;
    return by == Divisor::span && half() && plan.inner >= kManyInner &&
           largest_window(plan) <= kLongSum;
  }
  /// True if float32 cannot hold every sum of integers; for half types, if sums are divided.
  bool wide() const {
    if (is_float(dtype)) return half() && !sums_only();
    return width() == 4 || largest_window(plan) > (int64_t{1} << 24) >> 8 * width();
  }
  /// True if a mean that is divided in the core differs from a sum that is divided afterwards.
  bool rounds_in_core() const {
    return by == Divisor::count &&
           (half() || (dtype == Dtype::f32 && largest_window(plan) > kLongSum));
  }

  static void fold(Dtype type, const Plan& over, const void* from, void* to, Mean mean, Piece p) {
    Arrays a;
    a.x = from;
    a.out = to;
    chosen_verbs(type)->fold(over, a, mean, p);
  }

  /// Compute a part from the array itself.
  void directly(Piece p) const {
    fold(dtype, plan, x, y,
         by == Divisor::count ? Mean::once : spans_directly() ? Mean::short_spanned : Mean::total,
         p);
    if (folds_directly()) return;
    BoxRange range[kMaxRank];
    for (int a = 0; a < plan.rank; ++a) range[a] = {0, plan.axis[a].m, 0, 0};
    range[0] = {p.h0, p.h1, 0, 0};
    each_divisor(range, p.i0, p.i1, [&](int64_t place, int64_t, int64_t n, double, double span) {
      char* const to = y + place * width();
      chosen_cells(dtype)->divide(to, to, n, by == Divisor::span ? span : number);
    });
  }

  /// Call f(place in the result, place in the box, results, count, span) for runs of results that
  /// share a divisor.
  template <class F>
  void each_divisor(const BoxRange* range, int64_t i0, int64_t i1, F&& f) const {
    const int top = plan.rank - 1;
    const Axis& last = plan.axis[top];
    int64_t at[kMaxRank], box = 0;
    for (int a = 0; a < top; ++a) at[a] = range[a].j0;
    const auto length = [](const Axis& axis, int64_t j) {
      return static_cast<double>(axis.length(j));
    };
    const auto span = [&](const Axis& axis, int64_t j) {
      return axis.span ? static_cast<double>(axis.span[j]) : length(axis, j);
    };
    for (int64_t i = i0; i < i1; ++i)
      for (;;) {
        double rows = 1, all_rows = 1;
        int64_t place = i;
        for (int a = 0; a < top; ++a) {
          rows *= length(plan.axis[a], at[a]);
          all_rows *= span(plan.axis[a], at[a]);
          place = place * plan.axis[a].m + at[a];
        }
        checkpoint(step_budget(), range[top].j1 - range[top].j0);
        for (int64_t j = range[top].j0, end; j < range[top].j1; j = end) {
          end = end_of_equal(last, j, range[top].j1);
          const int64_t n = (end - j) * plan.inner;
          f((place * last.m + j) * plan.inner, box, n, rows * length(last, j),
            all_rows * span(last, j));
          box += n;
        }
        int a = top - 1;
        while (a >= 0 && ++at[a] == range[a].j1) at[a] = range[a].j0, --a;
        if (a < 0) break;
      }
  }
  /// Return the end of the run of windows with the length and span of window j.
  int64_t end_of_equal(const Axis& axis, int64_t j, int64_t j1) const {
    if (by == Divisor::number) return j1;
    const int64_t first = j;
    if (axis.period == 1 && axis.lo <= j && j < axis.hi) j = std::min(axis.hi, j1) - 1;
    while (++j < j1 && axis.length(j) == axis.length(first) &&
           (!axis.span || axis.span[j] == axis.span[first])) {
    }
    return std::min(j, j1);
  }

  bool integers(Piece p) const {
    if (windows_are_long_runs(plan)) return sums_of_runs(p);
    if (adds_rows_first()) return sums_by_rows(p);
    const CellLoops& loops = *chosen_cells(dtype);
    const int64_t sum = item_bytes(sum_type());
    Box box(plan, p, {sum, sum});
    bool fits = true;
    box.each([&] {
      const int64_t parts = box.parts(sum), results = box.dest_cells();
      BoxMemory sums(results * sum), of_parts(parts > 1 ? parts * results * sum : 0);
      box.each_part(parts, [&](int64_t part) {
        BoxMemory terms(box.source_cells() * sum);
        box.each_source_run([&](int64_t place, int64_t at, int64_t n) {
          loops.terms(x + place * width(), terms.get() + at * sum, n, wide(), nullptr, false);
        });
        char* const to = parts > 1 ? of_parts.get() + part * results * sum : sums.get();
        fold(sum_type(), box.plan(), terms.get(), to, Mean::total, box.piece());
      });
      if (parts > 1) {
        const PartsPlan joined(parts, results);
        fold(sum_type(), joined.plan, of_parts.get(), sums.get(), Mean::total, PartsPlan::piece);
      }
      fits &= settle(box, sums, wide());
    });
    return fits;
  }

  /// Divide the sums of a box. Return false if the result dtype does not hold a result.
  bool settle(const Box& box, const BoxMemory& sums, bool in_float64) const {
    const CellLoops& ends = *chosen_cells(result);
    bool fits = true;
    each_divisor(box.range, box.i0, box.i1,
                 [&](int64_t place, int64_t at, int64_t n, double count, double span) {
                   fits &= ends.settle(sums.get() + at * (in_float64 ? 8 : 4), in_float64,
                                       y + place * item_bytes(result), n, divisor(count, span),
                                       rounding);
                 });
    return fits;
  }

  /// Return true if each window is one long run of cells.
  static bool windows_are_long_runs(const Plan& plan) {
    constexpr int64_t kLong = 64;
    int64_t run = plan.inner == 1;
    for (int a = 1; a < plan.rank; ++a)
      run *= plan.axis[a].m == 1 && plan.axis[a].length(0) == plan.axis[a].n ? plan.axis[a].n : 0;
    return run * plan.axis[0].widest >= kLong && plan.axis[0].n >= 16 * plan.axis[0].m;
  }

  /// Sum windows that are runs.
  bool sums_of_runs(Piece p) const {
    const CellLoops& loops = *chosen_cells(dtype);
    const Axis& axis = plan.axis[0];
    const int64_t slab = plan.source_slab();
    Box box(plan, p, {0, 8});
    bool fits = true;
    box.each([&] {
      BoxMemory sums(box.dest_cells() * 8);
      double* to = sums.as<double>();
      for (int64_t i = box.i0; i < box.i1; ++i)
        for (int64_t j = box.range[0].j0; j < box.range[0].j1; ++j) {
          const char* const run = x + (i * axis.n + axis.start[j]) * slab * width();
          int64_t sum = 0;
          for (int64_t c = 0, n; c < axis.length(j) * slab; c += n) {
            n = std::min(Box::kRun, axis.length(j) * slab - c);
            checkpoint(step_budget(), n / 8);
            sum += loops.total(run + c * width(), n);
          }
          *to++ = static_cast<double>(sum);
        }
      fits &= settle(box, sums, true);
    });
    return fits;
  }

  /// Return the type of sums of rows, which holds the sum of every window; count if none does.
  Dtype row_type() const {
    const int64_t cells = largest_window(plan);
    if (width() == 1 && cells <= 256) return Dtype::u16;
    if (width() < 4) return cells <= int64_t{1} << (31 - 8 * width()) ? Dtype::i32 : Dtype::count;
    return Dtype::f64;
  }

  /// Return true if to add whole rows first costs less than to convert all cells: rows are long, and
  /// those that a row of results reads are few, or enter and leave its windows one by one.
  bool adds_rows_first() const {
    constexpr double kTimes = 4, kRows = 24;
    constexpr int64_t kLongRow = 64, kLongWindow = 1 << 14;
    double read = 1, cells = 1, rows = 1;
    const int top = plan.rank - 1;
    for (int a = 0; a < top; ++a) {
      const Axis& axis = plan.axis[a];
      const double longest = static_cast<double>(std::max<int64_t>(axis.widest, 1)),
                   moved = 2 * static_cast<double>(axis.n) / static_cast<double>(axis.m) + 1;
      rows *= a + 1 == top ? std::min(longest, moved) : longest;
      read *= longest * static_cast<double>(axis.m);
      cells *= static_cast<double>(axis.n);
    }
    return row_type() != Dtype::count && plan.last().n * plan.inner >= kLongRow &&
           plan.last().widest * plan.inner <= kLongWindow &&
           (read <= kTimes * cells || rows <= kRows);
  }

  /// Add the rows of windows first, then the columns.
  bool sums_by_rows(Piece p) const {
    bool fits = true;
    in_stretches_of_rows(plan, p, [&](BoxRange range) { fits &= sums_of_stretch(p, range); });
    return fits;
  }

  /// Sums that one divisor divides: their place in the result, and among the sums.
  struct SumRun {
    int64_t place, at, n;
    double count, by;

    bool continues(const SumRun& next) const {
      return next.place == place + n && next.at == at + n && next.count == count && next.by == by;
    }
  };

  /// Compute a stretch of each row of results.
  bool sums_of_stretch(Piece p, BoxRange range) const {
    const Dtype type = row_type();
    const int top = plan.rank - 1;
    const Axis& last = plan.last();
    const int64_t bytes = item_bytes(type), row = (range.s1 - range.s0) * plan.inner,
                  results = (range.j1 - range.j0) * plan.inner;
    const int64_t room = results + box_bytes() / 256;
    BoxMemory columns(row * bytes), sums(room * bytes),
        terms(type == Dtype::f64 ? 0 : room * item_bytes(sum_type()));
    const RowFolds along(last, plan.inner, range, chosen_cells(type)->sums, bytes);
    int64_t filled = 0;
    bool fits = true;
    SumRun run{};
    const auto settle_run = [&] {
      if (run.n)
        fits &= settle_run_of(run, sums.get() + run.at * bytes, type, terms.get());
      run.n = 0;
    };
    for (int64_t i = p.i0; i < p.i1; ++i) {
      int64_t at[kMaxRank] = {p.h0};
      BoxRange kept{};  // the source rows whose sum `columns` holds, along the axis before the last
      for (;;) {
        if (filled + results > room) settle_run(), filled = 0;
        add_rows(i, at, range, row, type, kept, columns.get());
        along.run(columns.get(), sums.get() + filled * bytes);
        double count = 1, span = 1;
        int64_t place = i;
        for (int a = 0; a < top; ++a) {
          const Axis& axis = plan.axis[a];
          count *= static_cast<double>(axis.length(at[a]));
          span *= static_cast<double>(axis.span ? axis.span[at[a]] : axis.length(at[a]));
          place = place * axis.m + at[a];
        }
        for (int64_t j = range.j0, j1; j < range.j1; j = j1) {
          j1 = end_of_equal(last, j, range.j1);
          const double length = static_cast<double>(last.length(j)),
                       spanned = last.span ? static_cast<double>(last.span[j]) : length;
          const SumRun next{(place * last.m + j) * plan.inner, filled + (j - range.j0) * plan.inner,
                            (j1 - j) * plan.inner, count * length,
                            divisor(count * length, span * spanned)};
          if (run.n && run.continues(next)) run.n += next.n;
          else settle_run(), run = next;
        }
        filled += results;
        int a = top - 1;
        while (a >= 0 && ++at[a] == (a ? plan.axis[a].m : p.h1)) at[a] = a ? 0 : p.h0, --a;
        if (a < 0) break;
        if (a < top - 1) kept = {};
      }
    }
    settle_run();
    return fits;
  }

  /// Set `columns` = the sum of the source rows of a row of results; add and subtract the rows that
  /// enter and leave its windows if these are fewer.
  void add_rows(int64_t item, const int64_t* at, BoxRange range, int64_t row, Dtype type,
                BoxRange& kept, char* columns) const {
    const int top = plan.rank - 1;
    const CellLoops& loops = *chosen_cells(dtype);
    const void* rows[kRowsTogether];
    int plus = 0, minus = 0;
    bool more = false;
    const auto flush = [&] {
      checkpoint(step_budget(), (plus + minus + 1) * row / 8);
      loops.add_rows(rows, plus, minus, columns, row, type, more);
      more = true;
      plus = minus = 0;
    };
    // Call f(source row) for rows [s0, s1) along the axis before the last, of all cells above them.
    const auto each = [&](int64_t s0, int64_t s1, auto&& f) {
      int64_t source[kMaxRank];
      bool some = s0 < s1;
      for (int a = 0; a + 1 < top; ++a) {
        source[a] = plan.axis[a].start[at[a]];
        some = some && plan.axis[a].length(at[a]) > 0;
      }
      while (some) {
        int64_t place = item;
        for (int a = 0; a + 1 < top; ++a) place = place * plan.axis[a].n + source[a];
        for (int64_t s = s0; s < s1; ++s)
          f((place * plan.axis[top - 1].n + s) * plan.last().n + range.s0);
        int a = top - 2;
        while (a >= 0 && ++source[a] == plan.axis[a].stop[at[a]])
          source[a] = plan.axis[a].start[at[a]], --a;
        some = a >= 0;
      }
    };
    const auto enter = [&](int64_t cell) {
      if (plus + minus == kRowsTogether) flush();
      rows[plus++] = x + cell * plan.inner * width();
    };
    const auto leave = [&](int64_t cell) {
      if (plus + minus == kRowsTogether) flush();
      rows[plus + minus++] = x + cell * plan.inner * width();
    };
    if (top == 0) {
      enter(item * plan.last().n + range.s0);
      return flush();
    }
    const int64_t s0 = plan.axis[top - 1].start[at[top - 1]],
                  s1 = plan.axis[top - 1].stop[at[top - 1]];
    const bool moves = kept.s0 <= s0 && s0 < kept.s1 && kept.s1 <= s1 &&
                       (s0 - kept.s0) + (s1 - kept.s1) + 1 < s1 - s0;
    more = moves;
    each(moves ? kept.s1 : s0, s1, enter);
    if (moves) each(kept.s0, s0, leave);
    if (plus + minus > 0 || !more) flush();
    kept.s0 = s0, kept.s1 = s1;
  }

  /// Divide a run of sums; `terms` has room for them as floats.
  bool settle_run_of(const SumRun& run, const char* sums, Dtype type, char* terms) const {
    const CellLoops& ends = *chosen_cells(result);
    char* const to = y + run.place * item_bytes(result);
    if (type == Dtype::f64) return ends.settle(sums, true, to, run.n, run.by, rounding);
    if (type == Dtype::u16 && result == dtype && run.by >= 1 && run.by <= 256 &&
        run.by == static_cast<double>(static_cast<int>(run.by)) &&
        (dtype == Dtype::u8 || run.by >= run.count))
      return ends.settle_bytes(sums, to, run.n, static_cast<int64_t>(run.by), rounding);
    const Dtype cells = type == Dtype::u16 && dtype == Dtype::i8 ? Dtype::i16 : type;
    chosen_cells(cells)->terms(sums, terms, run.n, wide(), nullptr, false);
    return ends.settle(terms, wide(), to, run.n, run.by, rounding);
  }

  double divisor(double count, double span) const {
    return by == Divisor::count ? count : by == Divisor::span ? span : number;
  }

  void floats(Piece p) const {
    const CellLoops& loops = *chosen_cells(dtype);
    const Dtype type = sum_type();
    const int64_t sum = item_bytes(type);
    const bool bytes = largest_window(plan) <= 255;
    const int64_t mark = !ignore_nan ? 0 : bytes ? 1 : 8;
    Box box(plan, p, {sum + mark, sum + mark + width()});
    box.each([&] {
      // The terms of one window stay together, because their order settles the bits of a sum. Their
      // mask may be cut: a large one is made again, in parts.
      const bool keeps_mask = bytes || box.parts(sum + mark) == 1;
      BoxMemory terms(box.source_cells() * sum),
          mask(!ignore_nan   ? 0
               : keeps_mask ? box.source_cells() * mark
                            : Box::kRun * mark),
          sums(box.dest_cells() * sum), means(box.dest_cells() * width());
      bool clean = true;
      box.each_source_run([&](int64_t place, int64_t at, int64_t n) {
        clean &= loops.terms(x + place * width(), terms.get() + at * sum, n, wide(),
                             ignore_nan ? mask.get() + (keeps_mask ? at * mark : 0) : nullptr,
                             bytes);
      });
      clean |= !ignore_nan;
      if (rounds_in_core() && clean) {
        mean_of_terms(box, loops, terms, means);
        box.each_dest_run([&](int64_t place, int64_t at, int64_t n) {
          std::memcpy(y + place * width(), means.get() + at * width(),
                      static_cast<size_t>(n * width()));
        });
        return;
      }
      fold(type, box.plan(), terms.get(), sums.get(), Mean::total, box.piece());
      if (sums_only()) {
        box.each_dest_run([&](int64_t place, int64_t at, int64_t n) {
          std::memcpy(y + place * width(), sums.get() + at * sum, static_cast<size_t>(n * width()));
        });
      } else if (clean || by == Divisor::number) {
        each_divisor(box.range, box.i0, box.i1,
                     [&](int64_t place, int64_t at, int64_t n, double count, double span) {
                       loops.divide(sums.get() + at * sum, y + place * width(), n,
                                    divisor(count, span));
                     });
      } else {
        BoxMemory counts(box.dest_cells() * mark);
        if (keeps_mask) count(box.plan(), mask, counts.get(), bytes, box.piece());
        else count_in_parts(box, loops, counts, sum);
        divide_by_counts(box, loops, {terms, counts, sums, means}, bytes, sum);
      }
    });
  }

  struct Buffers {
    const BoxMemory &terms, &counts, &sums, &means;
  };

  static void count(const Plan& over, const BoxMemory& mask, char* to, bool bytes, Piece p) {
    const MeanCall counts{over, Dtype::u8, Dtype::u8, mask.get(), to, Divisor::number,
                          1,    false,     Rounding::nearest};
    if (bytes && counts.adds_rows_first()) return static_cast<void>(counts.sums_by_rows(p));
    fold(bytes ? Dtype::u8 : Dtype::f64, over, mask.get(), to, Mean::total, p);
  }

  /// Count the numbers of large windows, in float64.
  void count_in_parts(Box& box, const CellLoops& loops, const BoxMemory& counts,
                      int64_t sum) const {
    const int64_t parts = box.parts(8), results = box.dest_cells();
    BoxMemory of_parts(parts * results * 8), terms(Box::kRun * sum);
    box.each_part(parts, [&](int64_t part) {
      BoxMemory mask(box.source_cells() * 8);
      box.each_source_run([&](int64_t place, int64_t at, int64_t n) {
        loops.terms(x + place * width(), terms.get(), n, wide(), mask.get() + at * 8, false);
      });
      count(box.plan(), mask, of_parts.get() + part * results * 8, false, box.piece());
    });
    const PartsPlan joined(parts, results);
    count(joined.plan, of_parts, counts.get(), false, PartsPlan::piece);
  }

  /// Divide the sums of a box by the numbers that each window has.
  void divide_by_counts(const Box& box, const CellLoops& loops, const Buffers& b, bool bytes,
                        int64_t sum) const {
    const int64_t mark = bytes ? 1 : 8;
    const BoxMemory& counts = b.counts;
    bool complete = false;
    if (rounds_in_core())
      each_divisor(box.range, box.i0, box.i1,
                   [&](int64_t, int64_t at, int64_t n, double count, double) {
                     complete = complete ||
                                (bytes ? std::memchr(counts.get() + at, static_cast<int>(count),
                                                     static_cast<size_t>(n)) != nullptr
                                       : std::count(counts.as<double>() + at,
                                                    counts.as<double>() + at + n, count) > 0);
                   });
    if (complete) mean_of_terms(box, loops, b.terms, b.means);
    each_divisor(box.range, box.i0, box.i1,
                 [&](int64_t place, int64_t at, int64_t n, double count, double span) {
                   loops.divide_each(
                       b.sums.get() + at * sum, y + place * width(), n,
                       {counts.get() + at * mark, bytes, by == Divisor::span ? span - count : 0,
                        count, complete ? b.means.get() + at * width() : nullptr});
                 });
  }

  /// Set means = the means of windows, rounded once; NaN counts as 0.
  void mean_of_terms(const Box& box, const CellLoops& loops, const BoxMemory& terms,
                     const BoxMemory& means) const {
    if (!half()) return fold(dtype, box.plan(), terms.get(), means.get(), Mean::once, box.piece());
    BoxMemory cells(box.source_cells() * width()), mask(box.source_cells());
    box.each_source_run([&](int64_t place, int64_t at, int64_t n) {
      loops.terms(x + place * width(), cells.get() + at * width(), n, false, mask.get() + at, true);
    });
    fold(dtype, box.plan(), cells.get(), means.get(), Mean::once, box.piece());
  }
};

// ---- norms

/// The norm of each window: the sum of magnitudes (p = 1), or the root of the sum of squares (p =
/// 2). The sums are those of float32 for half types.
struct NormCall {
  const Plan& plan;
  Dtype dtype;
  const char* x;
  char* y;
  bool squares;
  double small;            ///< sums below this have lost digits
  bool takes_roots = true;  ///< else y receives the sums, in their type

  /// Return false if a sum has lost digits, or overflowed.
  bool run(Piece p) const {
    const CellLoops& loops = *chosen_cells(dtype);
    const int64_t width = item_bytes(dtype), sum = std::max<int64_t>(width, 4);
    const Dtype type = sum == 8 ? Dtype::f64 : Dtype::f32;
    bool good = true;
    Box box(plan, p, {sum, sum + width});
    box.each([&] {
      BoxMemory sums(box.dest_cells() * sum), norms(box.dest_cells() * width),
          terms(box.source_cells() * sum);
      bool vanished = false;
      box.each_source_run([&](int64_t place, int64_t at, int64_t n) {
        vanished |= loops.powers(x + place * width, terms.get() + at * sum, n, squares);
      });
      Arrays a;
      a.x = terms.get();
      a.out = sums.get();
      chosen_verbs(type)->fold(box.plan(), a, Mean::total, box.piece());
      if (!takes_roots)
        return box.each_dest_run([&](int64_t place, int64_t at, int64_t n) {
          std::memcpy(y + place * sum, sums.get() + at * sum, static_cast<size_t>(n * sum));
        });
      good = good && loops.roots(sums.get(), norms.get(), box.dest_cells(), squares, small,
                                 vanished);
      box.each_dest_run([&](int64_t place, int64_t at, int64_t n) {
        std::memcpy(y + place * width, norms.get() + at * width, static_cast<size_t>(n * width));
      });
    });
    return good;
  }
};

}  // namespace poolgrad
