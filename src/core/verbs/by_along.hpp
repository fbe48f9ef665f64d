// select and fold of long windows along their rows.
#pragma once
#include "loops/along.hpp"
#include "reducers/max.hpp"
#include "reducers/sum.hpp"
#include "simd/interleave.hpp"

namespace poolgrad::PG_ISA {

/// Return the largest of L numbers; overwrite them.
template <int L, class W>
PG_INLINE W largest(W* v) {
  if constexpr (L > 1) {
    store<L / 2>(v, larger<W, L / 2>(load<L / 2>(v), load<L / 2>(v + L / 2)));
    return largest<L / 2>(v);
  } else {
    return v[0];
  }
}

/// Return in lane i the largest lane of p[i]; overwrite p. Each round interleaves vector i with
/// vector i + n, as simd/transpose.hpp does, and joins the two halves.
template <int L, class W>
PG_INLINE Vec<W, L> largest_of_each(Vec<W, L>* p) {
  using Order = std::make_integer_sequence<int, L>;
#pragma GCC unroll 8
  for (int n = L / 2; n > 0; n /= 2)
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i)
      p[i] = larger<W, L>(interleave_halves<0>(p[i], p[i + n], Order{}),
                          interleave_halves<1>(p[i], p[i + n], Order{}));
  return p[0];
}

/// The type in which the best cells of type T are found: unsigned integers as signed ones.
template <class T>
using BestCell =
    std::conditional_t<is_real<T>, T, std::make_signed_t<typename UintOf<sizeof(T)>::type>>;

/// Find the best cells of windows along their rows. `flip` inverts bits of each cell, so that the
/// largest is the best: the sign of floats and all bits of integers for minima.
template <class T>
class BestAlong {
  using W = Wide<T>;
  using I = std::make_signed_t<typename UintOf<sizeof(W)>::type>;
  static constexpr int V = kLanes<T>;
  static constexpr bool joins = sizeof(W) >= 4;  // shuffles of smaller lanes cost too much
  static constexpr int64_t kManyCells = 1 << 18;  // a run passes a checkpoint after so many

 public:
  static constexpr I kSign = std::numeric_limits<I>::min();

  BestAlong(I flip, Start start, NanRule rule) : flip_(flip), start_(start), rule_(rule) {}

  /// Set y = the best cell of each window; there are no inner elements.
  void run(const T* x, const EqualWindows& w, T* y) const {
    constexpr int G = joins ? V : 1;
    Vec<W, V> part[G] = {};
    Zero zero[G];
    const W from = start_value<T>(start_, w.cut);
    for (int64_t k = 0; k < w.count; k += G) {
      const int here = w.count - k < G ? static_cast<int>(w.count - k) : G;
      uint32_t nan = 0;
      checkpoint(step_budget(), here * w.rows * (w.n < kManyCells ? w.n : kManyCells) / 8);
#pragma GCC unroll 1
      for (int g = 0; g < here; ++g) {
        NanSeen<W, V> seen;
        part[g] = largest_lanes(x + (k + g) * w.step, w, from, seen, zero[g]);
        if constexpr (is_real<T>) nan |= uint32_t{seen.some()} << g;
      }
      W best[V];
      if constexpr (joins) {
#pragma GCC unroll 1
        for (int g = here; g < G; ++g) part[g] = part[0];
        const Vec<W, V> all_best = largest_of_each<V, W>(part);
        if (here == G && !nan && !any<sizeof(all_best)>(all_best == W{})) {
          store<V>(y + k, flipped<V>(all_best));
          continue;
        }
        store<V>(best, all_best);
      } else {
        store<V>(best, part[0]);
        best[0] = largest<V>(best);
      }
#pragma GCC unroll 1
      for (int g = 0; g < here; ++g)
        settle(x + (k + g) * w.step, w, 1, best[g], from, nan >> g & 1, zero[g], y + k + g);
    }
  }

  /// Set y = the best cell of each window and inner element. A block holds whole cells, so that each
  /// lane keeps its own element.
  void run_inner(const T* x, const EqualWindows& w, int64_t inner, W* block, T* y) const {
    const int64_t size = inner * V;
    const W from = start_value<T>(start_, w.cut);
    for (int64_t k = 0; k < w.count; ++k, x += w.step, y += inner) {
      for (int64_t c = 0; c < size; ++c) block[c] = from;
      for (int64_t r = 0; r < w.rows; ++r)
        for (int64_t b = 0, c = 0; b < w.n; b += V, c = c + V == size ? 0 : c + V) {
          const T* const at = x + w.row[r] + b;
          Vec<W, V> v = all<W, V>(from);
          if (b + V <= w.n) v = flipped<V>(load<V>(at));
          else
            for (int64_t e = 0; e < w.n - b; ++e) v[e] = flipped<1>(load<1>(at + e))[0];
          store<V>(block + c, larger<W, V>(load<V>(block + c), v));
        }
      checkpoint(step_budget(), w.rows * w.n / 4);
      for (int64_t l = 0; l < inner; ++l) {
        W most = block[l];
        for (int64_t c = l + inner; c < size; c += inner) most = block[c] > most ? block[c] : most;
        settle(x + l, w, inner, most, from, false, {}, y + l);
      }
    }
  }

 private:
  template <int L>
  PG_INLINE Vec<W, L> flipped(Vec<W, L> v) const {
    return bitcast<Vec<W, L>>(bitcast<Vec<I, L>>(v) ^ all<I, L>(flip_));
  }

  /// The place from which to look for the first zero of a window, if its largest cell is zero.
  struct Zero {
    int64_t row = 0, cell = 0;
  };

  /// Return the largest of V parts of a window whose runs have at least V cells.
  PG_INLINE Vec<W, V> largest_lanes(const T* x, const EqualWindows& w, W from, NanSeen<W, V>& nan,
                                    Zero& zero) const {
    constexpr int N = 4;
    Vec<W, V> best[N];
    for (auto& b : best) b = all<W, V>(from);
    const auto pair = [&](const T* a, const T* b, int i) PG_LAMBDA {
      const Vec<W, V> v = load<V>(a), u = load<V>(b);
      if constexpr (is_real<T>) nan.add(v, u);
      best[i] = larger<W, V>(best[i], flipped<V>(v));
      best[i + 1] = larger<W, V>(best[i + 1], flipped<V>(u));
    };
    const auto so_far = [&]() PG_LAMBDA {
      return larger<W, V>(larger<W, V>(best[0], best[1]), larger<W, V>(best[2], best[3]));
    };
    const int64_t n = w.n;
    bool seeks = is_real<T> && n > kManyCells;
    zero = {};
    const auto seek = [&](int64_t row, int64_t cell) PG_LAMBDA {
      const Vec<W, V> most = so_far();
      if (any<sizeof(most)>(most == W{})) zero = {row, cell}, seeks = false;
    };
    for (int64_t r = 0; r < w.rows; ++r) {
      const T* const run = x + w.row[r];
      int64_t c = 0;
      if (n >= 16 * V) {  // go on at the start of a line
        pair(run, run + V, 0);
        constexpr auto line = static_cast<uintptr_t>(V) * sizeof(T);
        c = static_cast<int64_t>((line - reinterpret_cast<uintptr_t>(run) % line) / sizeof(T));
      }
      for (int64_t end = c; c + N * V <= n;) {
        end = n - c > kManyCells ? c + kManyCells : n;
        if (n > kManyCells) checkpoint(step_budget(), kManyCells / 8);
        const int64_t first = c < 2 * V ? 0 : c;
        for (; c + N * V <= end; c += N * V)
#pragma GCC unroll 2
          for (int i = 0; i < N; i += 2) pair(run + c + i * V, run + c + i * V + V, i);
        if (seeks) seek(r, first);
      }
      const auto at = [&](int64_t i) PG_LAMBDA {
        return run + (c + i * V + V < n ? c + i * V : n - V);
      };
      if (c < n) pair(at(0), at(1), 0);
      if (c + 2 * V < n) pair(at(2), at(3), 2);
      if (seeks) seek(r, c);  // else the next row would count a zero of these cells as its own
    }
    return so_far();
  }

  /// Set y by the largest cell of a window. Both zeros are equal, and the first of equals wins.
  [[gnu::noinline]] void settle(const T* x, const EqualWindows& w, int64_t inner, W most, W from,
                                bool nan, Zero zero, T* y) const {
    if constexpr (is_real<T>) {
      const auto find = [&](bool number) {  // the first number, or the first zero
        for (int64_t r = number ? 0 : zero.row; r < w.rows; ++r) {
          const T* const run = x + w.row[r];
          int64_t e = !number && r == zero.row ? zero.cell : 0;
          if (inner == 1)
            for (; e + V <= w.n; e += V) {
              const Vec<W, V> v = load<V>(run + e);
              if (any<sizeof(v)>(number ? v == v : v == W{})) break;
            }
          for (; e < w.n; e += inner) {
            const W v = load<1>(run + e)[0];
            if (v == 0 || (number && v == v)) return *y = run[e], true;
          }
        }
        return false;
      };
      if (nan && (rule_ == NanRule::propagate ||
                  (rule_ == NanRule::ignore && most == from && !find(true))))
        return store<1>(y, Vec<W, 1>{std::numeric_limits<W>::quiet_NaN()});
      if (most == 0 && find(false)) return;
    }
    store<1>(y, flipped<1>(Vec<W, 1>{most}));
  }

  const I flip_;
  const Start start_;
  const NanRule rule_;
};

/// Compute the largest or least cells of windows along their rows.
template <class T>
[[gnu::noinline]] void best_along(const Plan& full_plan, const T* source, T* out, Start start,
                                  NanRule rule, bool least, Piece p) {
  using Cell = BestCell<T>;
  using Best = BestAlong<Cell>;
  const auto least_bits = is_real<T> ? Best::kSign : ~decltype(Best::kSign){0};
  const auto unsigned_bits = std::is_unsigned_v<T> ? Best::kSign : decltype(Best::kSign){0};
  const Best best(static_cast<decltype(Best::kSign)>((least ? least_bits : 0) ^ unsigned_bits),
                  start, rule);
  const Cell* const x = reinterpret_cast<const Cell*>(source);
  Cell* const y = reinterpret_cast<Cell*>(out);
  const Plan plan = join_covered_axes(full_plan);
  const int64_t inner = full_plan.inner;
  bool cut = false;
  for (int k = plan.rank; k < full_plan.rank; ++k)
    cut |= full_plan.axis[k].span && full_plan.axis[k].span[0] != full_plan.axis[k].n;
  Scratch<Wide<Cell>> block(inner == 1 ? 0 : inner * kLanes<T>);
  const auto each = [&](const EqualWindows& w) {
    if (inner == 1) best.run(x + w.from, w, y + w.dest);
    else best.run_inner(x + w.from, w, inner, block.get(), y + w.dest * inner);
  };
  each_equal_windows(plan, cut, p, each);
}

/// Compute maxima along the rows of windows.
template <class T>
void select_along(const Plan& plan, const RowArrays<T, 1, 0>& a, Start start, Piece p) {
  best_along<T>(plan, a.source[0], a.out, start, NanRule::tf, false, p);
}

/// The partial sums of a window without inner elements, in registers: element e of a row belongs to
/// sum e % kSumColumns.
template <class T>
class ColumnSums {
  static constexpr int D = kLanes<double>, K = static_cast<int>(kSumColumns) / D;

 public:
  /// Add the rows of a window.
  void add(const T* x, const WindowRuns& w) {
    Vec<double, D> sum[K] = {};
    const auto block = [&](const T* from) PG_LAMBDA {
#pragma GCC unroll 16
      for (int k = 0; k < K; ++k)
        sum[k] += convert<double, D, Wide<T>>(load<D>(from + k * D));
    };
    for (int64_t r = 0; r < w.rows; ++r) {
      const T* const row = x + w.row[r];
      const int64_t whole = w.length / kSumColumns * kSumColumns;
      for (int64_t b = 0, end; b < whole; b = end) {
        end = whole - b < kPerCheckpoint ? whole : b + kPerCheckpoint;
        for (int64_t c = b; c < end; c += kSumColumns) block(row + c);
        checkpoint(step_budget(), (end - b) / 8);
      }
      if (whole == w.length) continue;
      T rest[kSumColumns] = {};  // + 0 changes no sum: none is -0
      std::memcpy(static_cast<void*>(rest), row + whole,
                  static_cast<size_t>(w.length - whole) * sizeof(T));
      block(rest);
    }
    std::memcpy(sums_, sum, sizeof sum);
  }
  double total() const {
    double all = 0;
    for (const double sum : sums_) all += sum;
    return all;
  }

 private:
  static constexpr int64_t kPerCheckpoint = 1 << 18;
  double sums_[kSumColumns];
};

/// Add the rows of a window with inner elements to its partial sums, a block of cells at a time.
template <class T>
void add_blocks(const T* x, const WindowRuns& w, double* sums, int64_t block) {
  for (int64_t r = 0; r < w.rows; ++r)
    for (int64_t b = 0; b < w.length; b += block) {
      const T* const run = x + w.row[r] + b;
      const int64_t n = w.length - b < block ? w.length - b : block;
      checkpoint(step_budget(), n / 8);
      for_lanes<double>(n, [&](auto lane, auto many, int64_t first) PG_LAMBDA {
        constexpr int L = decltype(lane)::count, N = decltype(many)::count;
        for (int64_t c = first; c < first + N * L; c += L)
          store<L>(sums + c, load<L>(sums + c) + convert<double, L, Wide<T>>(load<L>(run + c)));
      });
    }
}

/// Compute sums and means of long windows along their rows, in the order of sum_by_columns.
template <class T>
void fold_along(const Plan& plan, const RowArrays<T, 1, 0>& a, Mean mean, Piece p) {
  const int64_t inner = plan.inner, block = kSumColumns * inner,
                item = plan.axis[0].n * plan.source_slab(),
                windows = plan.axis[0].m * plan.dest_slab();
  Scratch<double> sums(inner == 1 ? 0 : block);
  const auto each = [&](const WindowRuns& w) {
    const T* const x = a.source[0] + w.item * item + w.from;
    T* const y = a.out + w.item * windows + w.cell * inner;
    const double by = terms_divisor(w.rows * w.columns, w.span, mean);
    const auto end = [&](auto lane, auto total, int64_t l) PG_LAMBDA {
      constexpr int L = decltype(lane)::count;
      store<L>(y + l, convert<Wide<T>, L, double>(total / by));
    };
    if (inner == 1) {
      ColumnSums<T> columns;
      columns.add(x, w);
      return end(Lane<1>{}, Vec<double, 1>{columns.total()}, 0);
    }
    const int64_t used = w.length < block ? w.length : block;
    std::memset(sums.get(), 0, static_cast<size_t>(used) * sizeof(double));
    add_blocks<T>(x, w, sums.get(), block);
    for_vectors<kLanes<double>, false>(inner, 0, [&](auto lane, auto, int64_t l) PG_LAMBDA {
      constexpr int L = decltype(lane)::count;
      Vec<double, L> total{};
      for (int64_t c = l; c < used; c += inner) total += load<L>(sums.get() + c);
      end(lane, total, l);
    });
    for (int64_t l = inner / kLanes<double> * kLanes<double>; l < inner; ++l) {
      Vec<double, 1> total{};
      for (int64_t c = l; c < used; c += inner) total += load<1>(sums.get() + c);
      end(Lane<1>{}, total, l);
    }
  };
  each_window(plan, p, each);
}

}  // namespace poolgrad::PG_ISA
