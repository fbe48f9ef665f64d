// The table of verbs of one instruction set. Each instruction set compiles this file into its own
// namespace.
#include "verbs/table.hpp"

#include "verbs/by_padded_band.hpp"
#include "verbs/indices.hpp"
#include "verbs/mean_sliding.hpp"
#include "verbs/near.hpp"
#include "verbs/near_sliding.hpp"

namespace poolgrad {
namespace PG_ISA {

template <class T>
const T* in(const void* p) {
  return static_cast<const T*>(p);
}
template <class T>
T* out(void* p) {
  return static_cast<T*>(p);
}

template <class T>
constexpr bool folds = is_real<T> || (std::is_integral_v<T> && !std::is_same_v<T, uint32_t> &&
                                      !std::is_same_v<T, uint64_t>);
template <class T>
constexpr bool spreads = is_real<T> || std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>;

/// True for types that have the row schedules (global, padded_band, row_ring). They are not worth
/// their code size with 16-byte vectors.
template <class T>
constexpr bool has_row_schedules = is_real<T>&& kBytes > 16;

/// Continue a piece at cell `left`; return true if nothing is left.
inline bool fills(Piece& p, int64_t left) {
  p.h0 = left;
  return p.h0 == p.h1;
}

template <class T>
void fold_any(const Plan& plan, const Arrays& a, Mean mean, Piece p) {
  const RowArrays<T, 1, 0> arrays{{in<T>(a.x)}, {}, out<T>(a.out), exceeds_cache<T>(plan)};
  if constexpr (is_real<T>)
    if (mean != Mean::strict && worth_sliding(plan, 16))
      return fold_sliding<T>(plan, arrays, mean, p);
  if constexpr (has_row_schedules<T>)
    if (!rounds_once<T>(mean) && (fills(p, fold_by_padded_band<T>(plan, arrays, mean, p)) ||
                                  fold_by_row_ring<T>(plan, arrays, mean, p)))
      return;
  fold_direct<T>(plan, arrays, mean, p);
}

template <class T, bool Reversed>
void spread_any(const Plan& plan, const Arrays& a, Share share, Piece p) {
  const RowArrays<T, 1, 0> arrays{{in<T>(a.g)}, {}, out<T>(a.out), worth_streaming<T>(plan)};
  if constexpr (is_real<T>)
    if (share != Share::quotient && worth_sliding(plan, 16))
      return spread_sliding<T, Reversed>(plan, arrays, share, p);
  if constexpr (has_row_schedules<T>)
    if (spread_global<T>(plan, arrays, share, p) ||
        fills(p, spread_by_padded_band<T>(plan, arrays, share, Reversed, p)) ||
        spread_by_row_ring<T, Reversed>(plan, arrays, share, p))
      return;
  spread_direct<T, Reversed>(plan, arrays, share, p);
}

template <class T>
void select_any(const Plan& plan, const Arrays& a, Start start, Piece p) {
  const RowArrays<T, 1, 0> arrays{{in<T>(a.x)}, {}, out<T>(a.out), exceeds_cache<T>(plan)};
  if (start != Start::first && !plan.plain && worth_sliding(plan, 12))
    return select_sliding<T>(plan, arrays, start, p);
  if constexpr (has_row_schedules<T>)
    if (select_global<T>(plan, arrays, start, p) ||
        fills(p, select_by_padded_band<T>(plan, arrays, start, p)) ||
        select_by_row_ring<T>(plan, arrays, start, p))
      return;
  select_direct<T>(plan, arrays, start, p);
}

template <class T>
void recall_any(const Plan& plan, const Arrays& a, Piece p) {
  const RowArrays<T, 2, 1> arrays{
      {in<T>(a.x), in<T>(a.g)}, {in<T>(a.y)}, out<T>(a.out), exceeds_cache<T>(plan)};
  if constexpr (has_keys<T>)
    if (!plan.plain && slides_over_keys(plan)) return recall_sliding<T>(plan, arrays, p);
  if constexpr (has_row_schedules<T>)
    if (fills(p, recall_by_padded_band<T>(plan, arrays, p)) ||
        recall_by_row_ring<T>(plan, arrays, p))
      return;
  recall_direct<T>(plan, arrays, p);
}

template <class T>
void near_any(const Plan& plan, const Arrays& a, double eps, Piece p) {
  const RowArrays<T, 2, 1> arrays{
      {in<T>(a.y), in<T>(a.g)}, {in<T>(a.x)}, out<T>(a.out), worth_streaming<T>(plan)};
  if constexpr (is_real<T>)  // not worth its code size for integers, which have no gradients
    if (!plan.plain && worth_sliding(plan, 12)) return near_sliding<T>(plan, arrays, eps, p);
  if constexpr (has_row_schedules<T>)
    if (fills(p, near_by_padded_band<T>(plan, arrays, eps, p))) return;
  near_direct<T>(plan, arrays, eps, p);
}

template <class T>
Verbs make() {
  Verbs v{};
  if constexpr (folds<T>) v.fold = fold_any<T>;
  if constexpr (spreads<T>)
    v.spread = [](const Plan& plan, const Arrays& a, Share share, bool reversed, Piece p) {
      reversed ? spread_any<T, true>(plan, a, share, p) : spread_any<T, false>(plan, a, share, p);
    };
  v.near = near_any<T>;
  v.select = select_any<T>;
  v.argmax = [](const Plan& plan, const Arrays& a, bool wide, int64_t modulo, Piece p) {
    if (wide)
      argmax_direct<T>(plan, in<T>(a.x), out<T>(a.out), out<int64_t>(a.out_index), modulo, p);
    else argmax_direct<T>(plan, in<T>(a.x), out<T>(a.out), out<int32_t>(a.out_index), modulo, p);
  };
  v.route = [](const Plan& plan, const Plan& transposed, const Arrays& a, Piece p) {
    if constexpr (has_row_schedules<T>)
      if (!a.y && !a.index && windows_are_dense(plan) && !slides_over_keys(plan) &&
          route_by_padded_band<T>(plan, transposed, in<T>(a.x), in<T>(a.g), out<T>(a.out), p))
        return int64_t{-1};
    return route_by_strips<T>(plan, transposed, in<T>(a.x), in<T>(a.y), in<T>(a.g), a.index,
                              out<T>(a.out), p);
  };
  v.recall = recall_any<T>;
  v.choose = [](const Plan& plan, const Arrays& a, Piece p) {
    needs_wide_taps(plan)
        ? choose_direct<T>(plan, in<T>(a.x), out<T>(a.out), out<uint32_t>(a.out_index), p)
        : choose_direct<T>(plan, in<T>(a.x), out<T>(a.out), out<uint8_t>(a.out_index), p);
  };
  v.pick = [](const Plan& plan, const Arrays& a, Piece p) {
    using Bits = typename UintOf<sizeof(T)>::type;  // pick moves bits
    return needs_wide_taps(plan)
               ? pick_taps<Bits>(plan, in<Bits>(a.g), in<uint32_t>(a.index), out<Bits>(a.out), p)
               : pick_taps<Bits>(plan, in<Bits>(a.g), in<uint8_t>(a.index), out<Bits>(a.out), p);
  };
  if constexpr (is_real<T>)
    v.nan_free = [](const void* x, int64_t n) { return no_nan<T>(in<T>(x), n); };
  v.gather = [](const Arrays& a, bool wide, int64_t n, int64_t m, int64_t total, bool absolute,
                int64_t k0, int64_t k1) {
    using Bits = typename UintOf<sizeof(T)>::type;
    return wide ? gather_items<Bits>(in<Bits>(a.g), in<int64_t>(a.index), out<Bits>(a.out), n, m,
                                     total, absolute, k0, k1)
                : gather_items<Bits>(in<Bits>(a.g), in<int32_t>(a.index), out<Bits>(a.out), n, m,
                                     total, absolute, k0, k1);
  };
  v.scatter = [](const Arrays& a, bool wide, int64_t n, int64_t m, int64_t total, bool absolute,
                 ScatterRange r) {
    using Cell =
        std::conditional_t<is_real<T>, T,
                           typename UintOf<sizeof(T)>::type>;  // signed and unsigned integers wrap
                                                               // around alike
    return wide ? scatter_items<Cell>(in<Cell>(a.g), in<int64_t>(a.index), out<Cell>(a.out), n, m,
                                      total, absolute, r)
                : scatter_items<Cell>(in<Cell>(a.g), in<int32_t>(a.index), out<Cell>(a.out), n, m,
                                      total, absolute, r);
  };
  return v;
}

// Two parts, by type, compile in parallel.
PG_OTHER template Verbs make<float>();
PG_OTHER template Verbs make<double>();
PG_OTHER template Verbs make<int32_t>();
PG_OTHER template Verbs make<uint32_t>();
PG_OTHER template Verbs make<int64_t>();
PG_OTHER template Verbs make<uint64_t>();

#if !defined(PG_SECOND)
const Verbs* table(Dtype dtype) {
  static const Verbs verbs[] = {make<f16>(),      make<bf16>(),     make<float>(),
                                make<double>(),   make<int8_t>(),   make<uint8_t>(),
                                make<int16_t>(),  make<uint16_t>(), make<int32_t>(),
                                make<uint32_t>(), make<int64_t>(),  make<uint64_t>()};
  return &verbs[static_cast<int>(dtype)];
}
#endif

}  // namespace PG_ISA

#if !defined(PG_SECOND)
#define PG_JOIN2(a, b) a##b
#define PG_JOIN(a, b) PG_JOIN2(a, b)
const Verbs* PG_JOIN(verbs_, PG_ISA)(Dtype dtype) { return PG_ISA::table(dtype); }
#endif

}  // namespace poolgrad
