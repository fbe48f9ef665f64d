// The loops over cells of one instruction set. Each instruction set compiles this file into its own
// namespace.
#include "verbs/cells.hpp"

#include "runtime/threads.hpp"
#include "simd/byte_mask.hpp"
#include "simd/interleave.hpp"
#include "simd/ops.hpp"
#include "simd/product.hpp"

namespace poolgrad {
namespace PG_ISA {

template <class T>
using Bits = typename UintOf<sizeof(T)>::type;
template <class T>
using Signed = std::make_signed_t<Bits<T>>;

/// The bits of a cell without its sign.
template <class T>
constexpr Signed<T> kMagnitude = std::numeric_limits<Signed<T>>::max();

/// Count the cells of type T that a vector register holds.
template <class T>
constexpr int kPacked = kBytes / static_cast<int>(sizeof(T));

template <int L, class T>
PG_INLINE Vec<T, L> read(const void* from, int64_t c) {
  Vec<T, L> v;
  std::memcpy(&v, static_cast<const T*>(from) + c, sizeof v);
  return v;
}
template <int L, class T>
PG_INLINE void write(void* to, int64_t c, Vec<T, L> v) {
  std::memcpy(static_cast<T*>(to) + c, &v, sizeof v);
}

/// Call f(Lane<L>, c) for vectors of L lanes, then for single lanes.
template <int L, class F>
PG_INLINE void each_vector(int64_t n, F&& f) {
  int64_t c = 0;
  for (; c + L <= n; c += L) f(Lane<L>{}, c);
  for (; c < n; ++c) f(Lane<1>{}, c);
}

/// Call f(Lane<L>, c) for vectors of L lanes; the last one reaches back and covers lanes again.
template <int L, class F>
PG_INLINE void each_vector_twice(int64_t n, F&& f) {
  if (n < L) return each_vector<L>(n, f);
  for (int64_t c = 0; c < n; c += L) f(Lane<L>{}, c + L <= n ? c : n - L);
}

/// Do the same, N vectors at a time as long as they fit: f(Lane<L>, Lane<N>, c).
template <int L, int N, class F>
PG_INLINE void each_block_twice(int64_t n, F&& f) {
  int64_t c = 0;
  for (; c + N * L <= n; c += N * L) f(Lane<L>{}, Lane<N>{}, c);
  if (n < L)
    for (; c < n; ++c) f(Lane<1>{}, Lane<1>{}, c);
  for (; c < n; c += L) f(Lane<L>{}, Lane<1>{}, c + L <= n ? c : n - L);
}

/// Return true if a lane of a mask is set.
template <class M, int L>
PG_INLINE bool some(Vec<M, L> mask) {
  M found = 0;
  for (int k = 0; k < L; ++k) found = static_cast<M>(found | mask[k]);
  return found != 0;
}

/// The bits of infinity, as a signed integer: those of NaN without its sign are larger.
template <class T>
constexpr Signed<T> kInfinity = static_cast<Signed<T>>(infinity_bits<T>());

/// Return lanes that are -1 where a cell, given by its bits, is NaN.
template <class T, int L>
PG_INLINE Vec<Signed<T>, L> is_nan(Vec<Signed<T>, L> bits) {
  return (bits & all<Signed<T>, L>(kMagnitude<T>)) > all<Signed<T>, L>(kInfinity<T>);
}

/// Copy floats, perhaps with the other sign.
template <class T>
bool copy_floats(const void* x, void* to, int64_t n, bool flip) {
  using I = Signed<T>;
  constexpr int L = kPacked<T>, N = 4;
  const I sign = flip ? std::numeric_limits<I>::min() : I{0};
  Vec<I, L> most[N] = {};
  const auto step = [&](int64_t c, int i) PG_LAMBDA {
    const Vec<I, L> v = read<L, I>(x, c), magnitude = v & all<I, L>(kMagnitude<T>);
    write<L, I>(to, c, v ^ all<I, L>(sign));
    most[i] = magnitude > most[i] ? magnitude : most[i];
  };
  int64_t c = 0;
  for (; c + N * L <= n; c += N * L)
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) step(c + i * L, i);
  for (; c + L <= n; c += L) step(c, 0);
  bool nan = false;
  for (; c < n; ++c) {
    const I v = static_cast<const I*>(x)[c];
    static_cast<I*>(to)[c] = static_cast<I>(v ^ sign);
    nan |= static_cast<I>(v & kMagnitude<T>) > kInfinity<T>;
  }
  for (const Vec<I, L>& v : most) nan |= some<I, L>(v > all<I, L>(kInfinity<T>));
  return !nan;
}

/// Copy bytes, perhaps inverted.
inline void copy_bytes(const void* x, void* to, int64_t n, bool flip) {
  const uint8_t change = flip ? 0xff : 0;
  each_vector<kBytes>(n, [&](auto lane, int64_t c) PG_LAMBDA {
    constexpr int L = decltype(lane)::count;
    write<L, uint8_t>(to, c, read<L, uint8_t>(x, c) ^ all<uint8_t, L>(change));
  });
}

template <class T>
bool copy_cells(const void* x, void* to, int64_t n, bool flip) {
  if constexpr (is_real<T>) return copy_floats<T>(x, to, n, flip);
  else return copy_bytes(x, to, n * static_cast<int64_t>(sizeof(T)), flip), true;
}

/// The bits of the infinity that stands for NaN.
template <class T>
Signed<T> infinity_of(bool top) {
  return static_cast<Signed<T>>(
      kInfinity<T> | (top ? Signed<T>{0} : std::numeric_limits<Signed<T>>::min()));
}

template <class T>
NanFound replace_nan(const void* x, void* to, int64_t n, bool flip, bool top) {
  using I = Signed<T>;
  constexpr int V = kPacked<T>;
  const I sign = flip ? std::numeric_limits<I>::min() : I{0}, infinity = infinity_of<T>(top);
  Vec<I, V> nans{}, clashes{};
  NanFound found{};
  each_vector<V>(n, [&](auto lane, int64_t c) PG_LAMBDA {
    constexpr int L = decltype(lane)::count;
    const Vec<I, L> v = read<L, I>(x, c), nan = is_nan<T, L>(v), flipped = v ^ all<I, L>(sign),
                    clash = flipped == all<I, L>(infinity);
    write<L, I>(to, c, nan ? all<I, L>(infinity) : flipped);
    if constexpr (L == V) nans |= nan, clashes |= clash;
    else found.nan |= nan[0] != 0, found.clash |= clash[0] != 0;
  });
  return {found.nan || some<I, V>(nans), found.clash || some<I, V>(clashes)};
}

template <class T>
void restore_nan(const void* x, void* to, int64_t n, bool flip, bool top) {
  using I = Signed<T>;
  const I sign = flip ? std::numeric_limits<I>::min() : I{0}, infinity = infinity_of<T>(top),
          nan = static_cast<I>(kInfinity<T> | kInfinity<T> >> 1);  // np.nan
  each_vector<kPacked<T>>(n, [&](auto lane, int64_t c) PG_LAMBDA {
    constexpr int L = decltype(lane)::count;
    const Vec<I, L> v = read<L, I>(x, c);
    write<L, I>(to, c, v == all<I, L>(infinity) ? all<I, L>(nan) : v ^ all<I, L>(sign));
  });
}

template <class T>
void rank_cells(const void* x, void* keys, int64_t n, bool top) {
  using I = Signed<T>;
  const I other = top ? kMagnitude<T> : std::numeric_limits<I>::min();
  each_vector<kPacked<T>>(n, [&](auto lane, int64_t c) PG_LAMBDA {
    constexpr int L = decltype(lane)::count;
    const Vec<I, L> v = read<L, I>(x, c), magnitude = v & all<I, L>(kMagnitude<T>), zero{};
    const Vec<I, L> order = v < zero ? zero - magnitude : v;
    write<L, I>(keys, c, magnitude > all<I, L>(kInfinity<T>) ? all<I, L>(other) : order);
  });
}

// ---- norms

template <class T>
bool powers(const void* x, void* to, int64_t n, bool squares) {
  using W = Wide<T>;
  using I = Signed<W>;
  constexpr int V = kLanes<T>;
  Vec<I, V> gone{};
  bool vanished = false;
  each_vector<V>(n, [&](auto lane, int64_t c) PG_LAMBDA {
    constexpr int L = decltype(lane)::count;
    const Vec<W, L> v = load<L>(static_cast<const T*>(x) + c), square = v * v,
                    magnitude = bitcast<Vec<W, L>>(bitcast<Vec<I, L>>(v) &
                                                   all<I, L>(kMagnitude<W>));
    const Vec<I, L> lost = (square == W{}) & (v != W{});
    if constexpr (L == V) gone |= lost;
    else vanished |= lost[0] != 0;
    write<L, W>(to, c, squares ? square : magnitude);
  });
  return squares && (vanished || some<I, V>(gone));
}

template <class T>
bool roots(const void* sums, void* y, int64_t n, bool squares, double least, bool vanished) {
  using W = Wide<T>;
  using I = Signed<W>;
  constexpr int V = kLanes<T>;
  const W small = static_cast<W>(least), infinity = std::numeric_limits<W>::infinity();
  Vec<I, V> lost{};
  bool wrong = false;
  each_vector<V>(n, [&](auto lane, int64_t c) PG_LAMBDA {
    constexpr int L = decltype(lane)::count;
    const Vec<W, L> sum = read<L, W>(sums, c);
    const Vec<I, L> none = sum == W{}, zero{},
                    bad = (sum == infinity) | ((sum < small) & ~none) | (vanished ? none : zero);
    if constexpr (L == V) lost |= bad;
    else wrong |= bad[0] != 0;
    store<L>(static_cast<T*>(y) + c, squares ? square_root<W, L>(sum) : sum);
  });
  return !wrong && !some<I, V>(lost);
}

// ---- sums

/// Convert integers of at most 32 bits to float32 or float64, exactly if the type holds them.
template <class S, int L, class T>
PG_INLINE Vec<S, L> as_float(Vec<T, L> v) {
  if constexpr (std::is_same_v<T, uint32_t>) {  // no instruction before AVX-512 converts these
    const Vec<int32_t, L> low = bitcast<Vec<int32_t, L>>(v ^ all<uint32_t, L>(0x80000000u));
    return convert<S, L, int32_t>(low) + all<S, L>(S(0x1p31));
  } else {
    return convert<S, L, int32_t>(convert<int32_t, L, T>(v));
  }
}

template <class S, class T>
void integer_terms(const void* x, void* to, int64_t n) {
  each_vector_twice<kPacked<S>>(n, [&](auto lane, int64_t c) PG_LAMBDA {
    constexpr int L = decltype(lane)::count;
    write<L, S>(to, c, as_float<S, L, T>(read<L, T>(x, c)));
  });
}

template <class S, class T>
void add_integer_rows(const void* const* rows, int plus, int minus, void* to, int64_t n,
                      bool more) {
  constexpr int V = kPacked<S>;
  S last[V];  // the last vector reaches back; it must not add twice
  if (more && n >= V) std::memcpy(last, static_cast<S*>(to) + n - V, sizeof last);
  each_block_twice<V, 4>(n, [&](auto lane, auto many, int64_t c) PG_LAMBDA {
    constexpr int L = decltype(lane)::count, N = decltype(many)::count;
    const auto cells = [&](int r, int i) PG_LAMBDA {
      const Vec<T, L> v = read<L, T>(rows[r], c + i * L);
      if constexpr (std::is_same_v<S, double>) return as_float<S, L, T>(v);
      else return convert<S, L, T>(v);
    };
    Vec<S, L> sum[N] = {};
    if (more) {
      const S* const from =
          N == 1 && L == V && c == n - V ? last : static_cast<const S*>(to) + c;
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) sum[i] = read<L, S>(from, i * L);
    }
    for (int r = 0; r < plus; ++r)
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) sum[i] += cells(r, i);
    for (int r = plus; r < plus + minus; ++r)
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) sum[i] -= cells(r, i);
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) write<L, S>(to, c + i * L, sum[i]);
  });
}

template <class T>
void add_rows(const void* const* rows, int plus, int minus, void* to, int64_t n,
              [[maybe_unused]] Dtype sum, bool more) {
  if constexpr (sizeof(T) == 1)
    if (sum == Dtype::u16)
      return add_integer_rows<uint16_t, T>(rows, plus, minus, to, n, more);
  using Sum = std::conditional_t<(sizeof(T) < 4), int32_t, double>;
  add_integer_rows<Sum, T>(rows, plus, minus, to, n, more);
}

// ---- rows of windows

/// Join two cells; `none` changes no cell.
struct Sum {
  template <class S>
  static constexpr S none = 0;
  template <class V>
  PG_INLINE static V join(V a, V b) {
    return static_cast<V>(a + b);
  }
};
struct Largest {
  template <class S>
  static constexpr S none = std::numeric_limits<S>::lowest();
  template <class V>
  PG_INLINE static V join(V a, V b) {
    return b > a ? b : a;
  }
};
struct Least {
  template <class S>
  static constexpr S none = std::numeric_limits<S>::max();
  template <class V>
  PG_INLINE static V join(V a, V b) {
    return b < a ? b : a;
  }
};

template <class Op, class S>
void join(const void* const* from, int count, void* to, int64_t n) {
  each_block_twice<kPacked<S>, std::is_same_v<Op, Sum> ? 4 : 2>(n, [&](auto lane, auto many, int64_t c) PG_LAMBDA {
    constexpr int L = decltype(lane)::count, N = decltype(many)::count;
    Vec<S, L> found[N];
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) found[i] = Vec<S, L>{} + Op::template none<S>;
    for (int k = 0; k < count; ++k)
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) found[i] = Op::join(found[i], read<L, S>(from[k], c + i * L));
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) write<L, S>(to, c + i * L, found[i]);
  });
}

/// Return the even and the odd ones of 2 L cells: a pair of integers is a wider integer.
template <class S, int L>
PG_INLINE std::pair<Vec<S, L>, Vec<S, L>> pairs(const void* from, int64_t c) {
  if constexpr (std::is_same_v<S, double>) {
    const Vec<S, L> v[] = {read<L, S>(from, c), read<L, S>(from, c + L)};
    using Order = std::make_integer_sequence<int, L>;
    return {deinterleave<0, 2>(v, Order{}), deinterleave<1, 2>(v, Order{})};
  } else {
    using Pair = typename UintOf<2 * sizeof(S)>::type;
    const Vec<Pair, L> v = read<L, Pair>(static_cast<const S*>(from) + c, 0);
    return {__builtin_convertvector(v, Vec<S, L>),
            __builtin_convertvector(v >> 8 * sizeof(S), Vec<S, L>)};
  }
}

template <class Op, class S>
void join_pairs(const void* from, void* to, int64_t n) {
  constexpr int V = std::is_same_v<S, double> ? kPacked<S> : kPacked<S> / 2;
  each_vector_twice<V>(n, [&](auto lane, int64_t c) PG_LAMBDA {
    constexpr int L = decltype(lane)::count;
    if constexpr (L == 1) {
      const auto* const two = static_cast<const S*>(from) + 2 * c;
      static_cast<S*>(to)[c] = Op::template join<S>(two[0], two[1]);
    } else {
      const auto [even, odd] = pairs<S, L>(from, 2 * c);
      write<L, S>(to, c, Op::join(even, odd));
    }
  });
}

template <class Op, class S>
void join_cells(const void* from, int64_t cells, [[maybe_unused]] int64_t inner, void* to) {
  if constexpr (std::is_same_v<Op, Sum>)
    if (inner > 1)
      return each_vector<kPacked<S>>(inner, [&](auto lane, int64_t e) PG_LAMBDA {
        constexpr int L = decltype(lane)::count;
        Vec<S, L> found{};
        for (int64_t c = 0; c < cells; ++c) found += read<L, S>(from, c * inner + e);
        write<L, S>(to, e, found);
      });
  S found = Op::template none<S>;
  if constexpr (!std::is_same_v<Op, Sum>) {  // few windows: those that an edge cut
    for (int64_t c = 0; c < cells; ++c)
      found = Op::template join<S>(found, static_cast<const S*>(from)[c]);
  } else {
    constexpr int V = kPacked<S>;
    Vec<S, V> many{};
    each_vector<V>(cells, [&](auto lane, int64_t c) PG_LAMBDA {
      constexpr int L = decltype(lane)::count;
      if constexpr (L == V) many += read<L, S>(from, c);
      else found = static_cast<S>(found + static_cast<const S*>(from)[c]);
    });
    if (cells >= V)
      for (int k = 0; k < V; ++k) found = static_cast<S>(found + many[k]);
  }
  *static_cast<S*>(to) = found;
}

template <class S>
void pick(const void* from, void* to, int64_t n, int64_t step, int64_t inner) {
  constexpr int V = kPacked<S> / 2;
  if (step == 2 && inner == 1 && n > V) {  // a vector reads the cell behind its last one
    each_vector_twice<V>(n - 1, [&](auto lane, int64_t c) PG_LAMBDA {
      constexpr int L = decltype(lane)::count;
      if constexpr (L == V) write<L, S>(to, c, pairs<S, L>(from, 2 * c).first);
    });
    static_cast<S*>(to)[n - 1] = static_cast<const S*>(from)[2 * (n - 1)];
    return;
  }
  const S* x = static_cast<const S*>(from);
  S* y = static_cast<S*>(to);
  for (; n > 0; --n, x += step * inner, y += inner)
    for (int64_t e = 0; e < inner; ++e) y[e] = x[e];
}

template <class T>
bool settle_bytes(const void* sums, void* y, int64_t n, int64_t by, Rounding rounding) {
  using U = uint16_t;
  constexpr int V = kPacked<U>;
  constexpr bool is_signed = std::is_signed_v<T>;
  // A quotient below 0 becomes a positive one: add 128 to it.
  const U divisor = static_cast<U>(by), over = static_cast<U>(by == 1 ? 0 : 0x10000 / by),
          bias = static_cast<U>(is_signed ? 128 * by : 0), most = static_cast<U>(by - 1),
          add = rounding == Rounding::nearest ? static_cast<U>(by / 2)
                : rounding == Rounding::ceil  ? most
                                              : U{0};
  const bool ties = rounding == Rounding::nearest && by % 2 == 0,
             up_below = is_signed && rounding == Rounding::toward_zero;
  Vec<U, V> high{};
  bool fits = true;
  each_vector_twice<V>(n, [&](auto lane, int64_t c) PG_LAMBDA {
    constexpr int L = decltype(lane)::count;
    using Lanes = Vec<U, L>;
    const Lanes zero{}, one = all<U, L>(1), sum = read<L, U>(sums, c) + all<U, L>(bias),
                        upper = sum + (up_below ? (sum < all<U, L>(bias) ? all<U, L>(most) : zero)
                                                : all<U, L>(add));
    // The product with a reciprocal that is rounded down is the quotient, or one less.
    Lanes q = by == 1 ? upper : high_product<L>(upper, all<U, L>(over));
    const Lanes rest = upper - q * divisor, short_by = rest >= divisor ? one : zero;
    q += short_by;
    if (ties) q -= (rest - short_by * divisor == zero ? one : zero) & q;
    if constexpr (L == V) high |= q;
    else fits &= q[0] < 256;
    write<L, uint8_t>(y, c,
                      __builtin_convertvector(q ^ all<U, L>(is_signed ? 128 : 0), Vec<uint8_t, L>));
  });
  return fits && !some<U, V>(high >> 8);
}

template <class T>
int64_t total(const void* x, int64_t n) {
  using Sum = std::conditional_t<(sizeof(T) < 4), int32_t, int64_t>;
  constexpr int L = kPacked<Sum>, N = 4;
  Vec<Sum, L> sum[N] = {};
  int64_t c = 0, all = 0;
  for (; c + N * L <= n; c += N * L)
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) sum[i] += convert<Sum, L, T>(read<L, T>(x, c + i * L));
  for (; c < n; ++c) all += static_cast<const T*>(x)[c];
  for (const Vec<Sum, L>& part : sum)
    for (int lane = 0; lane < L; ++lane) all += part[lane];
  return all;
}

/// Copy floats of type T as S; with a mask, NaN becomes 0.
template <class S, class T, class Mark>
bool float_terms(const void* x, void* to, int64_t n, Mark&& mark) {
  constexpr int V = kLanes<T>;
  using I = Signed<Wide<T>>;
  Vec<I, V> found{};
  bool nan = false;
  each_vector<V>(n, [&](auto lane, int64_t c) PG_LAMBDA {
    constexpr int L = decltype(lane)::count;
    const Vec<Wide<T>, L> v = load<L>(static_cast<const T*>(x) + c);
    const Vec<I, L> number = v == v;
    const bool zero = mark(lane, c, number);
    store<L>(static_cast<S*>(to) + c, zero ? (number ? v : Vec<Wide<T>, L>{}) : v);
    if constexpr (L == V) found |= ~number;
    else nan |= number[0] == 0;
  });
  return !nan && !some<I, V>(found);
}

template <class T>
bool terms(const void* x, void* to, int64_t n, bool wide, void* mask, bool bytes) {
  if constexpr (!is_real<T>) {
    if constexpr (sizeof(T) < 4 || std::is_same_v<T, int32_t>)
      if (!wide) return integer_terms<float, T>(x, to, n), true;
    if constexpr (sizeof(T) <= 4) integer_terms<double, T>(x, to, n);
    return true;
  } else {
    using W = Wide<T>;
    const auto run = [&](auto mark) {
      if constexpr (is_half<T>)
        if (!wide) return float_terms<T, T>(x, to, n, mark);
      return float_terms<W, T>(x, to, n, mark);
    };
    if (!mask) return run([](auto, int64_t, auto) PG_LAMBDA { return false; });
    if (bytes)
      return run([mask](auto lane, int64_t c, auto number) PG_LAMBDA {
        constexpr int L = decltype(lane)::count;
        write<L, uint8_t>(mask, c, byte_mask<Signed<W>, L>(number));
        return true;
      });
    return run([mask](auto lane, int64_t c, auto number) PG_LAMBDA {
      constexpr int L = decltype(lane)::count;
      const Vec<W, L> one = number ? all<W, L>(1) : Vec<W, L>{};
      write<L, double>(mask, c, convert<double, L, W>(one));
      return true;
    });
  }
}

/// Return true if 1 / by is exact, so that a product has the bits of the quotient.
inline bool has_exact_reciprocal(double by) {
  const uint64_t bits = std::bit_cast<uint64_t>(by), exponent = bits >> 52 & 0x7ff;
  return (bits & 0xfffffffffffffu) == 0 && exponent > 1023 - 100 && exponent < 1023 + 100;
}

template <class T>
void divide(const void* sums, void* y, int64_t n, double number) {
  using W = Wide<T>;
  const W by = static_cast<W>(number), over = 1 / by;
  const bool exact = has_exact_reciprocal(by);
  each_vector<kLanes<T>>(n, [&](auto lane, int64_t c) PG_LAMBDA {
    constexpr int L = decltype(lane)::count;
    const Vec<W, L> sum = read<L, W>(sums, c);
    store<L>(static_cast<T*>(y) + c, exact ? sum * over : sum / by);
  });
}

/// Divide sums by the counts that `count` reads, of type C; a count and what is added to it are
/// exact in C.
template <class T, class C, class Count>
PG_INLINE void divide_by(const void* sums, void* y, int64_t n, const Counts& by, Count&& count) {
  using W = Wide<T>;
  using I = Signed<W>;
  const C extra = static_cast<C>(by.extra), whole = static_cast<C>(by.all);
  each_vector<kLanes<T>>(n, [&](auto lane, int64_t c) PG_LAMBDA {
    constexpr int L = decltype(lane)::count;
    const Vec<C, L> cells = count(lane, c);
    const Vec<W, L> mean = read<L, W>(sums, c) / convert<W, L, C>(cells + extra);
    if (!by.complete_mean) return store<L>(static_cast<T*>(y) + c, mean);
    const Vec<I, L> complete = convert<I, L, Signed<C>>(cells == all<C, L>(whole));
    store<L>(static_cast<T*>(y) + c,
             complete ? load<L>(static_cast<const T*>(by.complete_mean) + c) : mean);
  });
}

template <class T>
void divide_each(const void* sums, void* y, int64_t n, const Counts& by) {
  using W = Wide<T>;
  if (by.bytes && by.extra < 0x1p23)  // a window of bytes has at most 255 cells
    return divide_by<T, W>(sums, y, n, by, [&](auto lane, int64_t c) PG_LAMBDA {
      constexpr int L = decltype(lane)::count;
      return as_float<W, L, uint8_t>(read<L, uint8_t>(by.counts, c));
    });
  divide_by<T, double>(sums, y, n, by, [&](auto lane, int64_t c) PG_LAMBDA {
    constexpr int L = decltype(lane)::count;
    if (by.bytes) return as_float<double, L, uint8_t>(read<L, uint8_t>(by.counts, c));
    return read<L, double>(by.counts, c);
  });
}

/// Round numbers to integers: of at most 2^51, or 2^22 in float32.
template <class Q, int L>
PG_INLINE Vec<Q, L> rounded_to_integer(Vec<Q, L> v, Rounding rounding) {
  const Vec<Q, L> big = all<Q, L>(sizeof(Q) == 8 ? Q(0x1.8p52) : Q(0x1.8p23)), one = all<Q, L>(1),
                  zero{};
  const Vec<Q, L> near = (v + big) - big;
  const Vec<Q, L> below = near - (near > v ? one : zero), above = near + (near < v ? one : zero);
  switch (rounding) {
    case Rounding::floor: return below;
    case Rounding::ceil: return above;
    case Rounding::toward_zero: return v < zero ? above : below;
    default: return near;
  }
}

/// Divide sums of type S in Q, and round to T.
template <class T, class S, class Q>
bool settle_sums(const void* sums, void* y, int64_t n, double divisor, Rounding rounding) {
  constexpr int V = kPacked<Q>;
  using I = Signed<Q>;
  const Q by = static_cast<Q>(divisor), over = 1 / by;
  const bool exact = has_exact_reciprocal(divisor);
  [[maybe_unused]] Vec<I, V> outside{};
  [[maybe_unused]] bool wrong = false;
  each_vector_twice<V>(n, [&](auto lane, int64_t c) PG_LAMBDA {
    constexpr int L = decltype(lane)::count;
    const Vec<Q, L> sum = convert<Q, L, S>(read<L, S>(sums, c)),
                    mean = exact ? sum * over : sum / by;
    if constexpr (is_real<T>) {
      write<L, T>(y, c, convert<T, L, Q>(mean));
    } else {
      constexpr Q lowest = static_cast<Q>(std::numeric_limits<T>::lowest()),
                  top = static_cast<Q>(std::numeric_limits<T>::max());
      const Vec<Q, L> whole = rounded_to_integer<Q, L>(mean, rounding);
      const Vec<I, L> bad = (whole < lowest) | (whole > top);
      if constexpr (L == V) outside |= bad;
      else wrong |= bad[0] != 0;
      const Vec<Q, L> safe = bad ? Vec<Q, L>{} : whole;
      using Step = std::conditional_t<(sizeof(T) < 4 || std::is_same_v<T, int32_t>), int32_t,
                                      int64_t>;
      const Vec<Step, L> cell = convert<Step, L, Q>(safe);
      write<L, T>(y, c, __builtin_convertvector(cell, Vec<T, L>));
    }
  });
  if constexpr (is_real<T>) return true;
  else return !wrong && !some<I, V>(outside);
}

template <class T>
bool settle(const void* sums, bool wide, void* y, int64_t n, double by, Rounding rounding) {
  if (wide) return settle_sums<T, double, double>(sums, y, n, by, rounding);
  // A mean of T has a sum below 2^23. So the error of a float32 quotient is below 1 / (2 by), the
  // least distance of a quotient from a boundary of rounding that it does not lie on.
  if constexpr (!is_real<T> && sizeof(T) < 4)
    if (by >= 1 && by == std::floor(by) && by <= (sizeof(T) == 1 ? 0x1p15 : 0x1p7) - 1)
      return settle_sums<T, float, float>(sums, y, n, by, rounding);
  return settle_sums<T, float, double>(sums, y, n, by, rounding);
}

template <class Op, class S>
constexpr RowLoops row_loops() {
  return {join<Op, S>, join_pairs<Op, S>, join_cells<Op, S>, pick<S>};
}

template <class T>
constexpr CellLoops loops() {
  CellLoops l{};
  l.copy = copy_cells<T>;
  if constexpr (is_real<T> || sizeof(T) < 8) l.terms = terms<T>;
  if constexpr (!is_half<T>) l.settle = settle<T>;
  if constexpr (!is_real<T> && sizeof(T) < 8) {
    l.add_rows = add_rows<T>;
    l.total = total<T>;
  }
  if constexpr (!is_real<T> && sizeof(T) == 1) l.settle_bytes = settle_bytes<T>;
  if constexpr (std::is_same_v<T, uint16_t> || std::is_same_v<T, int32_t> ||
                std::is_same_v<T, double>) {
    l.sums = row_loops<Sum, T>();
  }
  if constexpr (!is_real<T> && sizeof(T) < 4) {
    l.largest = row_loops<Largest, T>();
    l.least = row_loops<Least, T>();
  }
  if constexpr (is_real<T>) {
    l.replace_nan = replace_nan<T>;
    l.restore_nan = restore_nan<T>;
    l.rank = rank_cells<T>;
    l.powers = powers<T>;
    l.roots = roots<T>;
    l.divide = divide<T>;
    l.divide_each = divide_each<T>;
  }
  return l;
}

const CellLoops* cell_table(Dtype dtype) {
  static constexpr CellLoops all[] = {loops<f16>(),      loops<bf16>(),     loops<float>(),
                                  loops<double>(),   loops<int8_t>(),   loops<uint8_t>(),
                                  loops<int16_t>(),  loops<uint16_t>(), loops<int32_t>(),
                                  loops<uint32_t>(), loops<int64_t>(),  loops<uint64_t>()};
  return &all[static_cast<int>(dtype)];
}

}  // namespace PG_ISA

#define PG_JOIN2(a, b) a##b
#define PG_JOIN(a, b) PG_JOIN2(a, b)
const CellLoops* PG_JOIN(cells_, PG_ISA)(Dtype dtype) { return PG_ISA::cell_table(dtype); }

}  // namespace poolgrad
