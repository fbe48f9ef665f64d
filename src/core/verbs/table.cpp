// The table of verbs of one instruction set. Each instruction set compiles this file into its own
// namespace.
#include "verbs/table.hpp"

#include "verbs/schedules.hpp"

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

template <class T, bool Reversed>
void spread(const Plan& plan, const Arrays& a, Share share, Piece p) {
  SpreadCall<T> call{plan, {{in<T>(a.g)}, {}, out<T>(a.out), worth_streaming<T>(plan)}, share, p};
  SpreadTable<T, Reversed>::run(call);
}

template <class T>
Verbs make() {
  Verbs v{};
  v.schedule = choose_schedule<T>;
  v.schedules = schedules_of<T>;
  if constexpr (folds<T>)
    v.fold = [](const Plan& plan, const Arrays& a, Mean mean, Piece p) {
      FoldCall<T> call{plan, {{in<T>(a.x)}, {}, out<T>(a.out), exceeds_cache<T>(plan)}, mean, p};
      FoldTable<T>::run(call);
    };
  if constexpr (spreads<T>)
    v.spread = [](const Plan& plan, const Arrays& a, Share share, bool reversed, Piece p) {
      reversed ? spread<T, true>(plan, a, share, p) : spread<T, false>(plan, a, share, p);
    };
  v.near = [](const Plan& plan, const Arrays& a, double eps, Piece p) {
    NearCall<T> call{
        plan,
        {{in<T>(a.y), in<T>(a.g)}, {in<T>(a.x)}, out<T>(a.out), worth_streaming<T>(plan)},
        eps,
        p};
    NearTable<T>::run(call);
  };
  v.select = [](const Plan& plan, const Arrays& a, Start start, Piece p) {
    SelectCall<T> call{plan, {{in<T>(a.x)}, {}, out<T>(a.out), exceeds_cache<T>(plan)}, start, p};
    SelectTable<T>::run(call);
  };
  v.best_runs = [](const Plan& plan, const Arrays& a, Start start, NanRule nan, bool least,
                   Piece p) {
    if (!best_runs_along(plan, kLanes<T>) || slides_over_maxima(plan)) return false;
    best_along<T>(plan, in<T>(a.x), out<T>(a.out), start, nan, least, p);
    return true;
  };
  v.argmax = [](const Plan& plan, const Arrays& a, bool wide, int64_t modulo, Piece p) {
    argmax_direct<T>(plan, in<T>(a.x), out<T>(a.out), a.out_index, wide, modulo, p);
  };
  v.route = [](const Plan& plan, const Plan& transposed, const Arrays& a, Piece p) {
    int64_t wrong = -1;
    RouteCall<T> call{plan,    transposed,    in<T>(a.x), in<T>(a.y), in<T>(a.g),
                      a.index, out<T>(a.out), p,          wrong};
    a.index ? PlaceTable<T>::run(call) : RouteTable<T>::run(call);
    return wrong;
  };
  v.recall = [](const Plan& plan, const Arrays& a, Piece p) {
    RecallCall<T> call{
        plan, {{in<T>(a.x), in<T>(a.g)}, {in<T>(a.y)}, out<T>(a.out), exceeds_cache<T>(plan)}, p};
    RecallTable<T>::run(call);
  };
  v.choose = [](const Plan& plan, const Arrays& a, Piece p) {
    const auto run = [&](auto* taps) {
      using Tap = std::remove_pointer_t<decltype(taps)>;
      ChooseCall<T, Tap> call{plan, in<T>(a.x), out<T>(a.out), taps, p};
      ChooseTable<T, Tap>::run(call);
    };
    needs_wide_taps(plan) ? run(out<uint32_t>(a.out_index)) : run(out<uint8_t>(a.out_index));
  };
  v.pick = [](const Plan& plan, const Arrays& a, Piece p) {
    using Bits = typename UintOf<sizeof(T)>::type;  // pick moves bits
    int64_t wrong = -1;
    const auto run = [&](const auto* taps) {
      using Tap = std::remove_const_t<std::remove_pointer_t<decltype(taps)>>;
      PickCall<Bits, Tap> call{plan, in<Bits>(a.g), taps, out<Bits>(a.out), p, wrong};
      PickTable<Bits, Tap>::run(call);
    };
    needs_wide_taps(plan) ? run(in<uint32_t>(a.index)) : run(in<uint8_t>(a.index));
    return wrong;
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
