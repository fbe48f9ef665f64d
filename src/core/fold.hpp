// Sums over windows, and their transposes: sums over the windows that cover a cell.
#pragma once
#include "planes.hpp"

namespace poolgrad::PG_ISA {

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

template <class T>
PG_INLINE Wide<T> divisor(int64_t count, Mean mean) {
  if constexpr (is_real<T>) return as<T>(static_cast<double>(mean == Mean::counted && count > count_limit<T>() ? count_limit<T>() : count));
  else return static_cast<T>(count);
}

/// y[i] = mean of x over window i, added cell by cell in row-major order: the order fixes the rounding.
template <class T>
void fold_piece(const Plan& plan, const RowArrays<T, 1, 0>& arrays, Mean mean, Piece piece) {
  over_rows<T>(plan, arrays, false, piece,
               [&](const Reach& w, const auto& a, int64_t, int64_t lanes) {
                 const int64_t count = w.nrows * w.width;
                 const Wide<T> by = divisor<T>(count, mean);
                 for_lanes<T>(lanes, [&](auto lane, int64_t c) {
                   constexpr int L = decltype(lane)::count;
                   if constexpr (!is_real<T>) {
                     if (mean == Mean::wide) {
                       Vec<int64_t, L> sum{};
                       each_tap<false>(w, [&](int64_t r, int64_t t) { sum += convert<int64_t, L, T>(load<L>(a.source[0] + w.rows[r] + w.off[t] + c)); });
                       store<L>(a.out + c, __builtin_convertvector(count ? sum / count : sum, Vec<T, L>));
                       return;
                     }
                   }
                   Vec<Wide<T>, L> sum{};
                   each_tap<false>(w, [&](int64_t r, int64_t t) { sum = rounded<T, L>(sum + load<L>(a.source[0] + w.rows[r] + w.off[t] + c)); });
                   if (is_real<T> || by != 0) sum = sum / by;
                   store<L>(a.out + c, sum);
                 });
               });
}

/// float64 sums to T; what no integer of type T can hold becomes its lowest value.
template <class T, int L>
PG_INLINE Vec<Wide<T>, L> settle(Vec<double, L> sum) {
  if constexpr (is_real<T>) return __builtin_convertvector(sum, Vec<Wide<T>, L>);
  else {
    const Vec<double, L> top = all<double, L>(-2.0 * static_cast<double>(std::numeric_limits<T>::lowest() / 2));
    const auto fits = (sum < top) & (sum > -top - 1.0);
    const Vec<double, L> safe = fits ? sum : all<double, L>(static_cast<double>(std::numeric_limits<T>::lowest()));
    return __builtin_convertvector(safe, Vec<T, L>);
  }
}

/// dx[i] = sum of g over the windows that cover i, each weighed by the length of its window.
template <class T, bool Reversed>
void spread_piece(const Plan& plan, const RowArrays<T, 1, 0>& arrays, Share share, Piece piece) {
  PerCount<Wide<T>> weight;
  const auto reciprocal = [share](int64_t n) {
    return as<T>(share == Share::short_reciprocal ? static_cast<double>(1.0f / static_cast<float>(n)) : 1.0 / static_cast<double>(n));
  };
  over_rows<T>(plan, arrays, Reversed, piece,
               [&](const Reach& w, const auto& a, int64_t, int64_t lanes) {
                 Scratch<Wide<T>> weights(w.nrows * w.width);
                 if (is_real<T> && share != Share::quotient) {
                   int64_t k = 0;
                   each_tap<Reversed>(w, [&](int64_t r, int64_t t) { weights[k++] = weight(w.row_count[r] * w.col_count[t], reciprocal); });
                 }
                 for_lanes<T>(lanes, [&](auto lane, int64_t c) {
                   constexpr int L = decltype(lane)::count;
                   if (share == Share::quotient) {
                     Vec<double, L> sum{};
                     each_tap<Reversed>(w, [&](int64_t r, int64_t t) {
                       const Vec<double, L> v = __builtin_convertvector(load<L>(a.source[0] + w.rows[r] + w.off[t] + c), Vec<double, L>);
                       sum += v / static_cast<double>(w.row_count[r] * w.col_count[t]);
                     });
                     store<L>(a.out + c, settle<T, L>(sum));
                   } else if constexpr (is_real<T>) {
                     Vec<Wide<T>, L> sum{};
                     const Wide<T>* q = weights.get();
                     each_tap<Reversed>(w, [&](int64_t r, int64_t t) {
                       sum = rounded<T, L>(sum + rounded<T, L>(load<L>(a.source[0] + w.rows[r] + w.off[t] + c) * *q++));
                     });
                     store<L>(a.out + c, sum);
                   }
                 });
               });
}

/// dx[i] = sum of g over the windows that cover i and whose y is nearer to x[i] than eps.
template <class T>
void near_piece(const Plan& plan, const RowArrays<T, 2, 1>& arrays, double eps, Piece piece) {
  const Wide<T> near = as<T>(eps);
  over_rows<T>(plan, arrays, true, piece,
               [&](const Reach& w, const auto& a, int64_t, int64_t lanes) {
                 for_lanes<T>(lanes, [&](auto lane, int64_t c) {
                   constexpr int L = decltype(lane)::count;
                   const Vec<Wide<T>, L> here = load<L>(a.partner[0] + c), zero{};
                   Vec<Wide<T>, L> sum{};
                   each_tap<true>(w, [&](int64_t r, int64_t t) {
                     const int64_t at = w.rows[r] + w.off[t] + c;
                     const Vec<Wide<T>, L> best = load<L>(a.source[0] + at);
                     const Vec<Wide<T>, L> add = load<L>(a.source[1] + at);
                     if constexpr (is_real<T>) {
                       const Vec<Wide<T>, L> d = rounded<T, L>(here - best);
                       sum = rounded<T, L>(sum + (((d < near) & (d > -near)) ? add : zero));
                     } else {
                       sum += (here == best) ? add : zero;
                     }
                   });
                   store<L>(a.out + c, sum);
                 });
               });
}

}  // namespace poolgrad::PG_ISA
