// The functions of src/core/simd, lane by lane against plain C++: intrinsics must give the same
// bits as the code that they replace. No Python.
//
//     simd
//
// It is compiled once per instruction set; it ends at the first lane that differs.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "simd/divide.hpp"
#include "simd/half.hpp"
#include "simd/interleave.hpp"
#include "simd/ops.hpp"
#include "simd/product.hpp"
#include "simd/transpose.hpp"

using namespace poolgrad;
using namespace poolgrad::PG_ISA;

namespace {

int64_t checks = 0;

template <class T>
bool is_nan(T v) {
  return v != v;
}

/// Compare two numbers; all NaN are equal, and both zeros if `zeros` says so.
template <class T>
void same(const char* what, int lanes, T got, T want, bool zeros = false) {
  ++checks;
  if (std::memcmp(&got, &want, sizeof got) == 0 || (is_nan(got) && is_nan(want))) return;
  if (zeros && got == T{} && want == T{}) return;
  std::fprintf(stderr, "simd: %s, %d lanes: got %.17g, want %.17g\n", what, lanes,
               static_cast<double>(got), static_cast<double>(want));
  std::exit(1);
}

/// Call f(Lane<L>) for every vector length that kernels use.
template <class F>
void each_length(F&& f) {
  f(Lane<1>{});
  f(Lane<2>{});
  f(Lane<4>{});
  if constexpr (kBytes >= 32) f(Lane<8>{});
  if constexpr (kBytes >= 64) f(Lane<16>{});
}

uint64_t noise() {
  static uint64_t state = 0x9e3779b97f4a7c15ull;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state * 0x2545f4914f6cdd1dull;
}

/// Numbers that kernels get wrong, and others.
template <class T>
std::vector<T> numbers(int more) {
  std::vector<T> made;
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_floating_point_v<T>) {
    for (const T v : {T{0}, T{1}, T{3}, T{0.1f}, Limits::min(), Limits::denorm_min(), Limits::max(),
                      Limits::infinity(), Limits::quiet_NaN()}) {
      made.push_back(v);
      made.push_back(-v);
    }
    for (int i = 0; i < more; ++i)
      made.push_back(bitcast<T>(static_cast<typename UintOf<sizeof(T)>::type>(noise())));
  } else {
    made = {T{0}, T{1}, Limits::max(), Limits::lowest()};
    for (int i = 0; i < more; ++i) made.push_back(static_cast<T>(noise()));
  }
  while (made.size() % 16) made.push_back(T{1});
  return made;
}

template <int L, class T>
Vec<T, L> vector_at(const T* p) {
  Vec<T, L> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// ---- float16 and bfloat16

/// Return the value of float16 bits.
double value_of_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double v = exponent == 0   ? std::ldexp(mantissa, -24)
             : exponent < 31 ? std::ldexp(1024 + mantissa, exponent - 25)
             : mantissa == 0 ? std::numeric_limits<double>::infinity()
                             : std::numeric_limits<double>::quiet_NaN();
  return bits >> 15 ? -v : v;
}

/// Return the float16 bits nearest to a number that is not NaN; the even one of two.
uint16_t nearest_half(double v) {
  const uint16_t sign = std::signbit(v) ? 0x8000 : 0;
  v = std::fabs(v);
  if (v >= 65520) return static_cast<uint16_t>(sign | 0x7c00);
  const int exponent = v < 0x1p-14 ? -14 : std::ilogb(v);
  // Units of the last place. Rounding up to the next power of two carries into the exponent.
  const auto units = static_cast<int>(std::nearbyint(std::ldexp(v, 10 - exponent)));
  return static_cast<uint16_t>(sign | (units + (exponent + 14) * 1024));
}

void check_halves() {
  for (uint32_t bits = 0; bits < 0x10000; bits += 16) {
    uint16_t h[16];
    for (uint32_t i = 0; i < 16; ++i) h[i] = static_cast<uint16_t>(bits + i);
    each_length([&](auto lane) {
      constexpr int L = decltype(lane)::count;
      for (int at = 0; at < 16; at += L) {
        const Vec<float, L> f = widen<L>(vector_at<L>(h + at), f16{}),
                            b = widen<L>(vector_at<L>(h + at), bf16{});
        for (int i = 0; i < L; ++i) {
          same("widen float16", L, f[i], static_cast<float>(value_of_half(h[at + i])));
          same("widen bfloat16", L, bitcast<uint32_t>(float{b[i]}), uint32_t{h[at + i]} << 16);
        }
      }
    });
  }
}

/// Check float32 numbers around every middle of two half numbers.
void check_narrow() {
  for (uint32_t high = 0; high < 1u << 19; high += 2) {
    float v[16];
    for (uint32_t i = 0; i < 16; ++i) {
      constexpr uint32_t low[] = {0, 1, 0xfff, 0x1000, 0x1001, 0x1fff, 0x0800, 0x1800};
      v[i] = bitcast<float>((high + i / 8) << 13 | low[i % 8]);
    }
    uint16_t half[16], brain[16];
    for (int i = 0; i < 16; ++i) {
      if (is_nan(v[i])) v[i] = std::numeric_limits<float>::quiet_NaN();
      const uint32_t u = bitcast<uint32_t>(v[i]);
      half[i] = is_nan(v[i]) ? 0x7e00 : nearest_half(v[i]);
      brain[i] = static_cast<uint16_t>(is_nan(v[i]) ? 0x7fc0 : (u + 0x7fff + (u >> 16 & 1)) >> 16);
    }
    each_length([&](auto lane) {
      constexpr int L = decltype(lane)::count;
      for (int at = 0; at < 16; at += L) {
        const Vec<uint16_t, L> f = narrow<L>(vector_at<L>(v + at), f16{}),
                               b = narrow<L>(vector_at<L>(v + at), bf16{});
        for (int i = 0; i < L; ++i) {
          same("narrow to float16", L, uint16_t{f[i]}, half[at + i]);
          same("narrow to bfloat16", L, uint16_t{b[i]}, brain[at + i]);
        }
      }
    });
  }
}

/// Check sums of halves that round at each step.
template <class T>
void check_sums(const char* name) {
  const auto to_wide = [](uint16_t bits) { return widen<1>(Vec<uint16_t, 1>{bits}, T{})[0]; };
  for (int k = 0; k < 20000; ++k) {
    float a[16], b[16];
    for (int i = 0; i < 16; ++i) {
      a[i] = to_wide(static_cast<uint16_t>(noise() >> 48));
      b[i] = to_wide(static_cast<uint16_t>(noise() >> 48));
    }
    each_length([&](auto lane) {
      constexpr int L = decltype(lane)::count;
      for (int at = 0; at < 16; at += L) {
        const Vec<float, L> first = plus<T, L>(Vec<float, L>{}, vector_at<L>(a + at)),
                            sum = total<T, L>(plus_rounded<T, L>(first, vector_at<L>(b + at)));
        for (int i = 0; i < L; ++i)
          same(name, L, float{sum[i]},
               to_wide(narrow<1>(Vec<float, 1>{a[at + i] + b[at + i]}, T{})[0]));
      }
    });
  }
}

// ---- conversions, comparisons

template <class To, class From>
void check_convert(const char* name) {
  const std::vector<From> v = numbers<From>(1000);
  each_length([&](auto lane) {
    constexpr int L = decltype(lane)::count;
    for (size_t at = 0; at < v.size(); at += L) {
      const Vec<To, L> got = convert<To, L, From>(vector_at<L>(v.data() + at));
      for (int i = 0; i < L; ++i) same(name, L, To{got[i]}, static_cast<To>(v[at + size_t(i)]));
    }
  });
}

template <class T>
void check_larger(const char* name) {
  const std::vector<T> v = numbers<T>(45);
  each_length([&](auto lane) {
    constexpr int L = decltype(lane)::count;
    for (const T best : v)
      for (size_t at = 0; at < v.size(); at += L) {
        const Vec<T, L> got = larger<T, L>(all<T, L>(best), vector_at<L>(v.data() + at));
        for (int i = 0; i < L; ++i) {
          const T x = v[at + size_t(i)], want = best < x ? x : best;
          same(name, L, T{got[i]}, want);
          if (want == T{}) same(name, L, std::signbit(double(got[i])), std::signbit(double(want)));
        }
      }
  });
}

template <class T>
void check_taps(const char* name) {
  const std::vector<T> v = numbers<T>(1000);
  each_length([&](auto lane) {
    constexpr int L = decltype(lane)::count;
    for (size_t at = 0; at < v.size(); at += L) {
      uint8_t taps[16];
      for (uint8_t& tap : taps) tap = static_cast<uint8_t>(noise() & 1 ? 250 : noise());
      const Vec<T, L> got = where_tap<L, T>(taps, 250, vector_at<L>(v.data() + at));
      for (int i = 0; i < L; ++i)
        same(name, L, T{got[i]}, taps[i] == 250 ? v[at + size_t(i)] : T{0});
    }
  });
}

// ---- division

void check_division() {
  const std::vector<float> v = numbers<float>(400);
  for (int k = 0; k < 3000; ++k) {
    const auto by = static_cast<float>(k < 1500 ? k + 1 : noise() % (1 << 22) + 1), over = 1 / by;
    each_length([&](auto lane) {
      constexpr int L = decltype(lane)::count;
      for (size_t at = 0; at < v.size(); at += L) {
        const Vec<float, L> a = vector_at<L>(v.data() + at),
                            got = divided<float, L>(a, all<float, L>(by), all<float, L>(over));
        for (int i = 0; i < L; ++i) same("divided", L, float{got[i]}, a[i] / by, true);
        if constexpr (L * sizeof(double) <= kBytes) {
          const double n = by;
          const Vec<double, L> wide = convert<double, L, float>(a),
                               exact = quotient<float, L>(wide, n, 1 / n);
          for (int i = 0; i < L; ++i) same("quotient", L, double{exact[i]}, wide[i] / n, true);
        }
      }
    });
  }
}

// ---- moves

template <class T>
void check_transpose(const char* name) {
  constexpr int64_t rows = 37, cols = 41, from = 43, to = 39;
  const std::vector<T> in = numbers<T>(rows * from);
  std::vector<T> out(cols * to);
  transpose(in.data(), from, rows, cols, out.data(), to);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c)
      same(name, kSquare<T>, out[size_t(c * to + r)], in[size_t(r * from + c)]);
}

template <int P, int S, class T>
void check_phase(const char* name) {
  constexpr int L = kBytes / static_cast<int>(sizeof(T));
  using Order = std::make_integer_sequence<int, L>;
  const std::vector<T> in = numbers<T>(3 * L);
  Vec<T, L> v[3], joined[3];
  for (int i = 0; i < S; ++i) v[i] = vector_at<L>(in.data() + i * L);
  const Vec<T, L> phase = deinterleave<P, S>(v, Order{});
  for (int i = 0; i < L; ++i) same(name, L, T{phase[i]}, in[size_t(P + S * i)]);
  for (int i = 0; i < S; ++i)
    for (int k = 0; k < L; ++k) joined[i][k] = in[size_t(i + S * k)];
  const Vec<T, L> again = interleave<P, S>(joined, Order{});
  for (int i = 0; i < L; ++i) same(name, L, T{again[i]}, in[size_t(P * L + i)]);
}

template <class T>
void check_phases(const char* name) {
  check_phase<0, 2, T>(name);
  check_phase<1, 2, T>(name);
  check_phase<0, 3, T>(name);
  check_phase<1, 3, T>(name);
  check_phase<2, 3, T>(name);
}

void check_products() {
  constexpr int L = kBytes / 2;
  for (int round = 0; round < 4096; ++round) {
    Vec<uint16_t, L> a{}, b{};
    for (int k = 0; k < L; ++k) a[k] = uint16_t(noise()), b[k] = uint16_t(noise());
    if (round % 8 == 0) b[0] = a[0] = 0xffff;
    const Vec<uint16_t, L> high = high_product<L>(a, b);
    for (int k = 0; k < L; ++k) {
      const Vec<uint16_t, 1> one = high_product<1>(Vec<uint16_t, 1>{a[k]}, Vec<uint16_t, 1>{b[k]});
      const auto want = uint16_t(uint32_t{a[k]} * b[k] >> 16);
      same("high product", L, uint16_t{high[k]}, want);
      same("high product", 1, uint16_t{one[0]}, want);
    }
  }
}

}  // namespace

int main() {
  check_halves();
  check_narrow();
  check_sums<f16>("sum of float16");
  check_sums<bf16>("sum of bfloat16");
  check_convert<uint16_t, uint8_t>("uint8 to uint16");
  check_convert<uint32_t, uint8_t>("uint8 to uint32");
  check_convert<uint64_t, uint8_t>("uint8 to uint64");
  check_convert<uint32_t, uint16_t>("uint16 to uint32");
  check_convert<uint64_t, uint32_t>("uint32 to uint64");
  check_convert<uint8_t, uint16_t>("uint16 to uint8");
  check_convert<uint8_t, uint32_t>("uint32 to uint8");
  check_convert<uint8_t, uint64_t>("uint64 to uint8");
  check_convert<uint32_t, uint64_t>("uint64 to uint32");
  check_convert<int32_t, int8_t>("int8 to int32");
  check_convert<int64_t, int8_t>("int8 to int64");
  check_convert<int64_t, int16_t>("int16 to int64");
  check_convert<int64_t, int32_t>("int32 to int64");
  check_convert<int8_t, int64_t>("int64 to int8");
  check_convert<double, float>("float32 to float64");
  check_convert<float, double>("float64 to float32");
  check_larger<float>("larger of float32");
  check_larger<double>("larger of float64");
  check_larger<int8_t>("larger of int8");
  check_larger<uint16_t>("larger of uint16");
  check_larger<int64_t>("larger of int64");
  check_taps<float>("where_tap of float32");
  check_taps<double>("where_tap of float64");
  check_taps<int16_t>("where_tap of int16");
  check_taps<int8_t>("where_tap of int8");
  check_division();
  check_products();
  check_transpose<uint8_t>("transpose of bytes");
  check_transpose<uint16_t>("transpose of 2 bytes");
  check_transpose<float>("transpose of float32");
  check_transpose<double>("transpose of float64");
  check_phases<uint8_t>("phases of bytes");
  check_phases<uint16_t>("phases of 2 bytes");
  check_phases<float>("phases of float32");
  check_phases<double>("phases of float64");
  std::fprintf(stderr, "simd: %lld lanes right, vectors of %d bytes\n",
               static_cast<long long>(checks), kBytes);
  return 0;
}
