// Pools of few cells: plain loops over tables of cells, which take less time than starting the core. Its orders, so its bits.
#pragma once
#include <ATen/Dispatch.h>

#include <cmath>
#include <limits>

#include "kernels.hpp"

namespace poolgrad::aten {

constexpr int64_t kFewCells = 1024;   // elements of the input and of the result
constexpr int64_t kFewSteps = 8192;   // cells of all windows together
constexpr int64_t kAddedInTurn = 64;  // cells that the core adds one by one; more of them, in float64

/// By what sums and shares are divided: the numbers of the core's rules, or numbers that are given.
enum class Divide { rules, spans, number };

/// The rules of means, and of shares of their cells.
struct MeanRules {
  pg_mean mean = PG_MEAN_ONCE;
  pg_share share = PG_SHARE_RECIPROCAL;
  Divide divide = Divide::rules;
  double by = 1;

  bool divides() const { return divide != Divide::rules; }
  bool divides_sums() const { return divides() && mean == PG_MEAN_TOTAL; }  ///< whether the core only adds up
};

/// The cells of each window, one window after the other.
struct Few {
  std::vector<int32_t> begin, cells;
  std::vector<double> by;  ///< the divisor of each window

  int64_t size() const { return static_cast<int64_t>(begin.size()) - 1; }
};

/// Return whether plain loops are the shortest way.
inline bool is_few(const Windows& w) {
  return w.source() <= kFewCells && w.dest() <= kFewCells && w.dest() * w.cells() <= kFewSteps;
}

/// Return whether plain loops add in the order of the core, too.
inline bool is_few_to_add(const Windows& w) {
  return is_few(w) && w.cells() <= kAddedInTurn && w.depth() <= kAddedInTurn;
}

inline Few few_of(const Windows& w, const MeanRules* rules = nullptr) {
  static const Axis one{1, {0}, {1}, {1}};
  const int rank = w.rank();
  const Axis &z = rank == 3 ? w.axis(0) : one, &y = rank > 1 ? w.axis(rank - 2) : one, &x = w.axis(rank - 1);
  const int64_t inner = w.inner(), lane = 1, column = inner * lane, row = x.n * column, plane = y.n * row;
  Few made;
  made.begin.reserve(static_cast<size_t>(w.dest()) + 1);
  made.cells.reserve(static_cast<size_t>(w.dest() * w.cells()));
  made.begin.push_back(0);
  const auto at = [](int64_t j) { return static_cast<size_t>(j); };
  for (int64_t item = 0; item < w.outer(); ++item)
    for (int64_t a = 0; a < z.size(); ++a)
      for (int64_t b = 0; b < y.size(); ++b)
        for (int64_t c = 0; c < x.size(); ++c)
          for (int64_t i = 0; i < inner; ++i) {
            for (int64_t d = z.start[at(a)]; d < z.stop[at(a)]; ++d)
              for (int64_t h = y.start[at(b)]; h < y.stop[at(b)]; ++h)
                for (int64_t v = x.start[at(c)]; v < x.stop[at(c)]; ++v)
                  made.cells.push_back(static_cast<int32_t>((item * z.n + d) * plane + h * row + v * column + i));
            made.begin.push_back(static_cast<int32_t>(made.cells.size()));
            if (!rules) continue;
            const auto cells = made.begin.back() - made.begin[made.begin.size() - 2];
            const int64_t span = z.span[at(a)] * y.span[at(b)] * x.span[at(c)];
            made.by.push_back(rules->divide == Divide::spans ? static_cast<double>(span)
                              : rules->divide == Divide::number ? rules->by : static_cast<double>(cells));
          }
  return made;
}

/// Round float64 to a half once: through a float that keeps in its last bit whether digits were lost.
template <class T>
T narrowed(double value) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    return static_cast<T>(value);
  } else {
    auto rounded = static_cast<float>(value);
    const auto back = static_cast<double>(rounded);
    if (back != value && std::isfinite(rounded)) {
      uint32_t bits;
      std::memcpy(&bits, &rounded, sizeof bits);
      if (std::abs(back) > std::abs(value)) --bits;
      bits |= 1;
      std::memcpy(&rounded, &bits, sizeof bits);
    }
    return T(rounded);
  }
}

template <class T>
constexpr bool kHalf = std::is_same_v<T, at::Half> || std::is_same_v<T, at::BFloat16>;

/// Write the best cell of each window, and its tap.
template <class T, class Tap>
void choose_few(const Few& few, bool least, const T* x, T* y, Tap* taps) {
  using Wide = std::conditional_t<kHalf<T>, float, T>;
  for (int64_t r = 0; r < few.size(); ++r) {
    const auto* cells = few.cells.data() + few.begin[static_cast<size_t>(r)];
    const auto n = few.begin[static_cast<size_t>(r) + 1] - few.begin[static_cast<size_t>(r)];
    int32_t found = 0;
    auto best = static_cast<Wide>(x[cells[0]]);
    for (int32_t k = 1; k < n; ++k) {
      const auto value = static_cast<Wide>(x[cells[k]]);
      if ((least ? value < best : value > best) || (value != value && best == best)) {
        best = value;
        found = k;
      }
    }
    y[r] = x[cells[found]];
    if (taps) taps[r] = static_cast<Tap>(found);
  }
}

/// Add g at the taps; return false if a tap is outside its window.
template <class T, class Tap>
bool place_few(const Few& few, int64_t cells, const T* g, const Tap* taps, T* dx) {
  using Sum = std::conditional_t<kHalf<T>, float, T>;
  Sum sums[kFewCells];
  std::fill(sums, sums + cells, Sum{0});
  for (int64_t r = 0; r < few.size(); ++r) {
    const auto from = few.begin[static_cast<size_t>(r)], to = few.begin[static_cast<size_t>(r) + 1];
    if (static_cast<int64_t>(taps[r]) >= to - from) return false;
    sums[few.cells[static_cast<size_t>(from + static_cast<int32_t>(taps[r]))]] += static_cast<Sum>(g[r]);
  }
  for (int64_t i = 0; i < cells; ++i) dx[i] = static_cast<T>(sums[i]);
  return true;
}

/// Write the means or sums; those of halves are added in Sum.
template <class Sum, class T>
void fold_few(const Few& few, bool divide, const T* x, T* y) {
  for (int64_t r = 0; r < few.size(); ++r) {
    Sum sum = 0;
    for (auto k = few.begin[static_cast<size_t>(r)]; k < few.begin[static_cast<size_t>(r) + 1]; ++k)
      sum += static_cast<Sum>(x[few.cells[static_cast<size_t>(k)]]);
    y[r] = narrowed<T>(divide ? sum / static_cast<Sum>(few.by[static_cast<size_t>(r)]) : sum);
  }
}

/// Give each cell its shares of g, by `share(g, divisor)`.
template <class Sum, class T, class F>
void spread_few(const Few& few, int64_t cells, const T* g, T* dx, F&& share) {
  Sum sums[kFewCells];
  std::fill(sums, sums + cells, Sum{0});
  for (int64_t r = 0; r < few.size(); ++r) {
    const Sum part = share(static_cast<Sum>(g[r]), few.by[static_cast<size_t>(r)]);
    for (auto k = few.begin[static_cast<size_t>(r)]; k < few.begin[static_cast<size_t>(r) + 1]; ++k)
      sums[few.cells[static_cast<size_t>(k)]] += part;
  }
  for (int64_t i = 0; i < cells; ++i) dx[i] = narrowed<T>(sums[i]);
}

/// Call f(a pointer of the type of elements, whose value is null).
template <class F>
void with_type(at::ScalarType type, F&& f) {
  switch (type) {
    case at::kHalf: return f(static_cast<at::Half*>(nullptr));
    case at::kBFloat16: return f(static_cast<at::BFloat16*>(nullptr));
    case at::kFloat: return f(static_cast<float*>(nullptr));
    case at::kDouble: return f(static_cast<double*>(nullptr));
    case at::kChar: return f(static_cast<int8_t*>(nullptr));
    case at::kByte: return f(static_cast<uint8_t*>(nullptr));
    case at::kShort: return f(static_cast<int16_t*>(nullptr));
    case at::kInt: return f(static_cast<int32_t*>(nullptr));
    default: return f(static_cast<int64_t*>(nullptr));
  }
}

template <class T>
const T* read(const Tensor& t) { return static_cast<const T*>(t.const_data_ptr()); }
template <class T>
T* written(Tensor& t) { return static_cast<T*>(t.mutable_data_ptr()); }

/// Find the best cells; their taps too, if `taps` is defined.
inline void choose(const Few& few, bool least, const Tensor& x, Tensor& y, Tensor& taps) {
  with_type(x.scalar_type(), [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    if (taps.defined() && taps.scalar_type() == at::kInt)
      choose_few(few, least, read<T>(x), written<T>(y), written<int32_t>(taps));
    else
      choose_few(few, least, read<T>(x), written<T>(y), taps.defined() ? written<uint8_t>(taps) : nullptr);
  });
}

inline bool place(const Few& few, const Tensor& g, const Tensor& taps, Tensor& dx) {
  bool inside = true;
  with_type(g.scalar_type(), [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    if (taps.scalar_type() == at::kInt)
      inside = place_few(few, dx.numel(), read<T>(g), read<uint32_t>(taps), written<T>(dx));
    else
      inside = place_few(few, dx.numel(), read<T>(g), read<uint8_t>(taps), written<T>(dx));
  });
  return inside;
}

inline void fold(const Few& few, const MeanRules& rules, const Tensor& x, Tensor& y) {
  const bool divide = rules.mean != PG_MEAN_TOTAL || rules.divides();
  with_type(x.scalar_type(), [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    if constexpr (kHalf<T>) {
      if (rules.divides_sums()) fold_few<float>(few, divide, read<T>(x), written<T>(y));
      else fold_few<double>(few, divide, read<T>(x), written<T>(y));
    } else if constexpr (std::is_floating_point_v<T>) {
      fold_few<T>(few, divide, read<T>(x), written<T>(y));
    }
  });
}

inline void spread(const Few& few, const MeanRules& rules, const Tensor& g, Tensor& dx) {
  const int64_t n = dx.numel();
  const auto quotient = [](auto part, double by) { return part / static_cast<decltype(part)>(by); };
  const auto product = [](auto part, double by) { return part * static_cast<decltype(part)>(1.0 / by); };
  const auto whole = [](auto part, double) { return part; };
  with_type(g.scalar_type(), [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    if constexpr (kHalf<T>) {
      if (rules.divides()) spread_few<float>(few, n, read<T>(g), written<T>(dx), quotient);
      else if (rules.share == PG_SHARE_WHOLE) spread_few<double>(few, n, read<T>(g), written<T>(dx), whole);
      else spread_few<double>(few, n, read<T>(g), written<T>(dx), quotient);
    } else if constexpr (std::is_floating_point_v<T>) {
      if (rules.divides()) spread_few<T>(few, n, read<T>(g), written<T>(dx), quotient);
      else if (rules.share == PG_SHARE_WHOLE) spread_few<T>(few, n, read<T>(g), written<T>(dx), whole);
      else spread_few<T>(few, n, read<T>(g), written<T>(dx), product);
    }
  });
}

}  // namespace poolgrad::aten
