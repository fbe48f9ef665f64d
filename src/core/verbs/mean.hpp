// Sums over windows, and their transposes: sums over the windows that cover a cell.
#pragma once
#include "loops/transposed_tile.hpp"
#include "simd/divide.hpp"

namespace poolgrad::PG_ISA {

/// The type in which long sums are added up: sums of halves are exact in it, whatever their order.
template <class T>
using Long = double;

/// One number per count, kept while the count stays the same.
template <class W>
class PerCount {
 public:
  template <class F>
  PG_INLINE W operator()(int64_t count, F&& f) {
    if (count != count_) {
      count_ = count;
      value_ = f(count);
    }
    return value_;
  }

 private:
  int64_t count_ = -1;
  W value_ = 0;
};

/// The count at which adding one in T no longer changes it.
template <class T>
constexpr int64_t count_limit() {
  if constexpr (std::is_same_v<T, f16>) return int64_t{1} << 11;
  else if constexpr (std::is_same_v<T, bf16>) return int64_t{1} << 8;
  else if constexpr (std::is_same_v<T, float>) return int64_t{1} << 24;
  else if constexpr (std::is_same_v<T, double>) return int64_t{1} << 53;
  else return std::numeric_limits<int64_t>::max();
}

/// Whether sums are kept in float64, however short.
template <class T>
PG_INLINE bool rounds_once(Mean mean) {
  return is_half<T> && (mean == Mean::total || mean == Mean::once);
}
template <class T>
PG_INLINE bool rounds_once(Share share) {
  return share == Share::quotient || (is_half<T> && share == Share::whole);
}

template <class T>
PG_INLINE Wide<T> divisor(int64_t count, Mean mean) {
  if (mean == Mean::total) count = 1;
  if constexpr (is_real<T>)
    return as<T>(static_cast<double>(
        mean == Mean::counted && count > count_limit<T>() ? count_limit<T>() : count));
  else return static_cast<T>(count);
}

/// y[i] = mean of x over window i, added cell by cell in row-major order: the order fixes the
/// rounding.
template <class T>
void fold_direct(const Plan& plan, const RowArrays<T, 1, 0>& arrays, Mean mean, Piece piece,
                 bool only_short = false) {
  PerCount<Wide<T>> divisors;
  over_rows<T>(
      plan, arrays, false, piece,
      [&](const WindowTaps& w, const auto& a, int64_t, int64_t lanes) {
        const T* x = a.source[0];
        T* y = a.out;
        const int64_t count = w.nrows * w.width;
        if (only_short && count > kLongSum) return;
        if constexpr (!is_real<T>)
          if (mean == Mean::wide)
            return reduce<T, Order::rows>(
                w, lanes,
                [](auto lane, int64_t, int64_t) { return Vec<int64_t, decltype(lane)::count>{}; },
                [x](auto lane, auto& sum, int64_t at, int64_t) {
                  sum += convert<int64_t, decltype(lane)::count, T>(
                      load<decltype(lane)::count>(x + at));
                },
                [y, count](auto lane, auto& sum, int64_t c) {
                  store<decltype(lane)::count>(
                      y + c, convert<T, decltype(lane)::count, int64_t>(count ? sum / count : sum));
                });
        if constexpr (is_real<T>)
          if ((count > kLongSum && mean != Mean::strict) || rounds_once<T>(mean)) {
            const auto by = static_cast<Long<T>>(mean == Mean::total ? 1 : count);
            return reduce<T, Order::rows>(
                w, lanes,
                [](auto lane, int64_t, int64_t) { return Vec<Long<T>, decltype(lane)::count>{}; },
                [x](auto lane, auto& sum, int64_t at, int64_t) {
                  sum += convert<Long<T>, decltype(lane)::count, Wide<T>>(
                      load<decltype(lane)::count>(x + at));
                },
                [y, by](auto lane, auto& sum, int64_t c) {
                  store<decltype(lane)::count>(
                      y + c, convert<Wide<T>, decltype(lane)::count, Long<T>>(sum / by));
                });
          }
        const Wide<T> by = divisors(count, [mean](int64_t n) { return divisor<T>(n, mean); });
        [[maybe_unused]] const Wide<T> over = is_real<T> ? 1 / by : 0;
        add_up<T, Order::rows>(
            w, lanes,
            [x](auto lane, int64_t at, int64_t) { return load<decltype(lane)::count>(x + at); },
            [=](auto lane, auto& s, int64_t c) {
              constexpr int L = decltype(lane)::count;
              const Vec<Wide<T>, L> sum = total<T, L>(s);
              if constexpr (is_real<T>)
                store<L>(y + c, by <= kExactCount
                                    ? divided<T, L>(sum, all<Wide<T>, L>(by), all<Wide<T>, L>(over))
                                    : sum / by);
              else store<L>(y + c, by != 0 ? sum / by : sum);
            });
      },
      only_short);
}

/// float64 sums to T; what no integer of type T can hold becomes its lowest value.
template <class T, int L>
PG_INLINE Vec<Wide<T>, L> to_cells(Vec<double, L> sum) {
  if constexpr (is_real<T>) return __builtin_convertvector(sum, Vec<Wide<T>, L>);
  else {
    const Vec<double, L> top =
        all<double, L>(-2.0 * static_cast<double>(std::numeric_limits<T>::lowest() / 2));
    const auto fits = (sum < top) & (sum > -top - 1.0);
    const Vec<double, L> safe =
        fits ? sum : all<double, L>(static_cast<double>(std::numeric_limits<T>::lowest()));
    return __builtin_convertvector(safe, Vec<T, L>);
  }
}

/// What a window of n cells gives each of them.
template <class T>
PG_INLINE Wide<T> reciprocal(int64_t n, Share share) {
  if (share == Share::whole) return 1;
  return as<T>(share == Share::short_reciprocal ? static_cast<double>(1.0f / static_cast<float>(n))
                                                : 1.0 / static_cast<double>(n));
}

/// Lanes times a number, rounded.
template <class T>
PG_INLINE void scale_row(const T* from, T* to, int64_t lanes, Wide<T> by) {
  for_lanes<T>(lanes, [&](auto lane, auto many, int64_t first) {
    constexpr int L = decltype(lane)::count, N = decltype(many)::count;
    for (int64_t c = first; c < first + N * L; c += L) store<L>(to + c, load<L>(from + c) * by);
  });
}

/// Rows of g that are weighed together.
template <class T>
int64_t weighed_rows(const Plan& plan) {
  return kTileBytes / (plan.source_slab() * static_cast<int64_t>(sizeof(T)) + 1);
}
template <class T>
bool weighed_rows_fit(const Plan& plan) {
  return !plan.plain && weighed_rows<T>(plan) >= 2 * plan.axis[0].widest;
}

/// Cells [h0, h1) of g, each times its weight, rounded.
template <class T>
void weigh(const Plan& plan, const T* g, int64_t h0, int64_t h1, Share share,
           PerCount<Wide<T>>& weight, T* to) {
  const Axis &first = plan.axis[0], &last = plan.last();
  const int64_t inner = plan.inner;
  int64_t rows = 1;
  for (int a = 1; a + 1 < plan.rank; ++a) rows *= plan.axis[a].n;
  if (plan.rank == 1) {
    for (int64_t h = h0; h < h1; ++h, g += inner, to += inner)
      scale_row<T>(g, to, inner,
                   weight(first.count[h], [&](int64_t n) { return reciprocal<T>(n, share); }));
    return;
  }
  for (int64_t h = h0; h < h1; ++h)
    for (int64_t row = 0; row < rows; ++row) {
      int64_t upper = first.count[h], r = row;
      for (int a = plan.rank - 2; a >= 1; --a) {
        upper *= plan.axis[a].count[r % plan.axis[a].n];
        r /= plan.axis[a].n;
      }
      for (int64_t w = 0; w < last.n;) {
        const int64_t begin = w;
        while (w < last.n && last.count[w] == last.count[begin]) ++w;
        scale_row<T>(g, to, (w - begin) * inner, weight(upper * last.count[begin], [&](int64_t n) {
                       return reciprocal<T>(n, share);
                     }));
        g += (w - begin) * inner;
        to += (w - begin) * inner;
      }
    }
}

/// As spread_piece. A half times its weight takes as long to round as a sum, so each cell of g is
/// weighed once, not once per cell that it covers.
template <class T, bool Reversed>
void spread_weighed(const Plan& full_plan, const RowArrays<T, 1, 0>& arrays, Share share,
                    Piece piece, bool only_short) {
  constexpr Order order = Reversed ? Order::columns : Order::rows;
  PerCount<Wide<T>> weight;
  const auto cell = [&](const WindowTaps& w, const auto& a, int64_t, int64_t lanes) {
    const T* g = a.source[0];
    T* dx = a.out;
    const int64_t taps = w.nrows * w.width;
    if (taps > kLongSum) {
      if (only_short) return;
      return reduce<T, order>(
          w, lanes,
          [](auto lane, int64_t, int64_t) { return Vec<Long<T>, decltype(lane)::count>{}; },
          [g](auto lane, auto& sum, int64_t at, int64_t) {
            sum +=
                convert<Long<T>, decltype(lane)::count, float>(load<decltype(lane)::count>(g + at));
          },
          [dx](auto lane, auto& sum, int64_t c) {
            store<decltype(lane)::count>(dx + c,
                                         convert<float, decltype(lane)::count, Long<T>>(sum));
          });
    }
    add_up<T, order>(
        w, lanes,
        [g](auto lane, int64_t at, int64_t) { return load<decltype(lane)::count>(g + at); },
        [dx](auto lane, auto& sum, int64_t c) {
          store<decltype(lane)::count>(dx + c, total<T, decltype(lane)::count>(sum));
        });
  };
  for_tiles<T>(full_plan, arrays, piece,
               [&](const Plan& plan, const RowArrays<T, 1, 0>& a, Piece p) {
                 const Axis& axis = plan.axis[0];
                 const int64_t slab = plan.source_slab(), d_slab = plan.dest_slab(),
                               rows = weighed_rows<T>(plan);
                 const int64_t cells = axis.n > axis.widest && rows > axis.widest
                                           ? (rows - axis.widest) * axis.m / axis.n + 1
                                           : axis.m;
                 int64_t most = 0;
                 for (int64_t h = p.h0; h < p.h1; h += cells) {
                   const int64_t end = h + cells < p.h1 ? h + cells : p.h1,
                                 need = axis.stop[end - 1] - axis.start[h];
                   most = need > most ? need : most;
                 }
                 Scratch<T> weighed(most * slab);
                 for (int64_t i = p.i0; i < p.i1; ++i)
                   for (int64_t h = p.h0; h < p.h1; h += cells) {
                     const int64_t end = h + cells < p.h1 ? h + cells : p.h1, g0 = axis.start[h],
                                   g1 = axis.stop[end - 1];
                     weigh<T>(plan, a.source[0] + i * axis.n * slab + (g0 - axis.origin) * slab, g0,
                              g1, share, weight, weighed.get());
                     Plan local = strip(plan, h, end, g0);
                     local.outer = 1;
                     const RowArrays<T, 1, 0> b{
                         {weighed.get()}, {}, a.out + (i * axis.m + h) * d_slab, a.stream};
                     over_rows<T, true>(local, b, Reversed, Piece{0, 1, 0, end - h}, cell);
                   }
               });
}

/// dx[i] = sum of g over the windows that cover i, each weighed by the length of its window.
template <class T, bool Reversed>
void spread_direct(const Plan& plan, const RowArrays<T, 1, 0>& arrays, Share share, Piece piece,
                   bool only_short = false) {
  constexpr Order order = Reversed ? Order::columns : Order::rows;
  if constexpr (is_half<T>)
    if (!rounds_once<T>(share) && weighed_rows_fit<T>(plan))
      return spread_weighed<T, Reversed>(plan, arrays, share, piece, only_short);
  PerCount<Wide<T>> weight;
  // Weights of the lists of taps that the runner keeps.
  constexpr int kLists = 5, kTaps = 16;
  Wide<T> kept[kLists][kTaps];
  int64_t version[kLists] = {-1, -1, -1, -1, -1};
  over_rows<T, is_real<T>>(
      plan, arrays, Reversed, piece,
      [&](const WindowTaps& w, const auto& a, int64_t, int64_t lanes) {
        const T* g = a.source[0];
        T* dx = a.out;
        if (only_short && w.nrows * w.width > kLongSum) return;
        if (rounds_once<T>(share)) {
          const int64_t taps = w.nrows * w.width;
          Scratch<double> counts(2 * taps);
          double *const by = counts.get(), *const over = by + taps;
          int64_t k = 0;
          each_tap<order>(w, [&](int64_t r, int64_t t) {
            by[k] =
                share == Share::whole ? 1 : static_cast<double>(w.row_count[r] * w.col_count[t]);
            over[k] = 1 / by[k];
            ++k;
          });
          return reduce<double, order>(
              w, lanes,
              [](auto lane, int64_t, int64_t) { return Vec<double, decltype(lane)::count>{}; },
              [g, by, over](auto lane, auto& sum, int64_t at, int64_t k) {
                constexpr int L = decltype(lane)::count;
                sum += quotient<T, L>(convert<double, L, Wide<T>>(load<L>(g + at)), by[k], over[k]);
              },
              [dx](auto lane, auto& sum, int64_t c) {
                store<decltype(lane)::count>(dx + c, to_cells<T, decltype(lane)::count>(sum));
              });
        }
        if constexpr (is_real<T>) {
          const int64_t taps = w.nrows * w.width;
          const bool keeps = w.slot >= 0 && taps <= kTaps;
          Scratch<Wide<T>> weights(keeps ? 0 : taps);
          Wide<T>* const q = keeps ? kept[w.slot] : weights.get();
          if (!keeps || version[w.slot] != w.version) {
            int64_t k = 0;
            each_tap<order>(w, [&](int64_t r, int64_t t) {
              q[k++] = weight(w.row_count[r] * w.col_count[t],
                              [&](int64_t n) { return reciprocal<T>(n, share); });
            });
            if (keeps) version[w.slot] = w.version;
          }
          if (taps > kLongSum)
            return reduce<T, order>(
                w, lanes,
                [](auto lane, int64_t, int64_t) { return Vec<Long<T>, decltype(lane)::count>{}; },
                [g, q](auto lane, auto& sum, int64_t at, int64_t k) {
                  constexpr int L = decltype(lane)::count;
                  sum += convert<Long<T>, L, Wide<T>>(rounded<T, L>(load<L>(g + at) * q[k]));
                },
                [dx](auto lane, auto& sum, int64_t c) {
                  store<decltype(lane)::count>(
                      dx + c, convert<Wide<T>, decltype(lane)::count, Long<T>>(sum));
                });
          add_up<T, order>(
              w, lanes,
              [g, q](auto lane, int64_t at, int64_t k) {
                return rounded<T, decltype(lane)::count>(load<decltype(lane)::count>(g + at) *
                                                         q[k]);
              },
              [dx](auto lane, auto& sum, int64_t c) {
                store<decltype(lane)::count>(dx + c, total<T, decltype(lane)::count>(sum));
              });
        }
      },
      only_short);
}

/// A cell of x and the sum of what it was given.
template <class T, int L>
struct NearSum {
  Vec<Wide<T>, L> here, sum;
};

/// The smallest number that rounds to a positive limit or beyond: what is less than it is less than
/// the limit once rounded.
template <class T>
Wide<T> smallest_rounding_to(Wide<T> limit) {
  if constexpr (is_half<T>) {
    uint32_t below = 0, reached = bitcast<uint32_t>(limit);
    while (reached - below > 1) {
      const uint32_t middle = below + (reached - below) / 2;
      (rounded<T, 1>(Vec<float, 1>{bitcast<float>(middle)})[0] < limit ? below : reached) = middle;
    }
    return bitcast<float>(reached);
  } else {
    return limit;
  }
}

/// dx = sum of g over the windows w that cover a run of cells and whose y is nearer to x than near,
/// once rounded.
template <class T>
PG_INLINE void sum_near(const WindowTaps& w, const T* x, const T* y, const T* g, T* dx,
                        int64_t lanes, Wide<T> near) {
  reduce<T, Order::columns>(
      w, lanes,
      [x](auto lane, int64_t c, int64_t) {
        constexpr int L = decltype(lane)::count;
        return NearSum<T, L>{load<L>(x + c), Vec<Wide<T>, L>{}};
      },
      [=](auto lane, auto& s, int64_t at, int64_t) {
        constexpr int L = decltype(lane)::count;
        const Vec<Wide<T>, L> best = load<L>(y + at), add = load<L>(g + at), zero{};
        if constexpr (is_real<T>) {
          const Vec<Wide<T>, L> d = s.here - best;
          s.sum = plus_rounded<T, L>(s.sum, ((d < near) & (d > -near)) ? add : zero);
        } else {
          s.sum += (s.here == best) ? add : zero;
        }
      },
      [dx](auto lane, auto& s, int64_t c) {
        store<decltype(lane)::count>(dx + c, total<T, decltype(lane)::count>(s.sum));
      });
}

/// dx[i] = sum of g over the windows that cover i and whose y is nearer to x[i] than eps.
template <class T>
void near_direct(const Plan& plan, const RowArrays<T, 2, 1>& arrays, double eps, Piece piece) {
  const Wide<T> near = smallest_rounding_to<T>(as<T>(eps));
  over_rows<T, is_real<T>>(
      plan, arrays, true, piece, [&](const WindowTaps& w, const auto& a, int64_t, int64_t lanes) {
        sum_near<T>(w, a.partner[0], a.source[0], a.source[1], a.out, lanes, near);
      });
}

}  // namespace poolgrad::PG_ISA
