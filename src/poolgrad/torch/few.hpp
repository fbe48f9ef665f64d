// Pools of few cells, of tensors: the plain loops of `_frameworks/few_cells.hpp`.
#pragma once
#include <ATen/Dispatch.h>

#include "few_cells.hpp"
#include "kernels.hpp"

namespace poolgrad {

template <>
inline constexpr bool kIsHalf<at::Half> = true;
template <>
inline constexpr bool kIsHalf<at::BFloat16> = true;

namespace aten {

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

/// Return whether plain loops are the shortest way.
inline bool is_few(const Windows& w) {
  return w.source() <= kFewCells && w.dest() <= kFewCells && w.dest() * w.cells() <= kFewSteps;
}

/// Return whether plain loops add in the order of the core, too.
inline bool is_few_to_add(const Windows& w) {
  return is_few(w) && w.cells() <= kAddedInTurn && w.depth() <= kAddedInTurn;
}

inline Few few_of(const Windows& w) {
  std::vector<Line> lines;
  for (const Axis& a : w.axes()) lines.push_back({a.n, a.size(), a.start.data(), a.stop.data(), a.span.data()});
  return poolgrad::few_of(w.outer(), w.inner(), lines);
}

/// Return the function from a window to what its sum, or its share, is divided by.
inline auto divisors(const Few& few, const MeanRules& rules) {
  return [&few, divide = rules.divide, by = rules.by](size_t r) {
    return divide == Divide::number ? by : divide == Divide::spans ? few.spans[r] : few.count(r);
  };
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
  const auto share = [divide, by = divisors(few, rules)](auto sum, size_t r) { return divide ? sum / static_cast<decltype(sum)>(by(r)) : sum; };
  with_type(x.scalar_type(), [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    if constexpr (kIsHalf<T>) {
      if (rules.divides_sums()) fold_few<float>(few, read<T>(x), written<T>(y), share);
      else fold_few<double>(few, read<T>(x), written<T>(y), share);
    } else if constexpr (std::is_floating_point_v<T>) {
      fold_few<T>(few, read<T>(x), written<T>(y), share);
    }
  });
}

inline void spread(const Few& few, const MeanRules& rules, const Tensor& g, Tensor& dx) {
  const int64_t n = dx.numel();
  const auto by = divisors(few, rules);
  const auto quotient = [by](auto part, size_t r) { return part / static_cast<decltype(part)>(by(r)); };
  const auto product = [by](auto part, size_t r) { return part * static_cast<decltype(part)>(1.0 / by(r)); };
  const auto whole = [](auto part, size_t) { return part; };
  with_type(g.scalar_type(), [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    if constexpr (kIsHalf<T>) {
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

}  // namespace aten
}  // namespace poolgrad
