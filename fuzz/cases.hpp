// From bytes to a case: a plan, a type, a rule, arrays of just the right size. Whatever the bytes
// are, they mean something.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "plan/dtype.hpp"
#include "plan/owned_plan.hpp"

namespace poolgrad::fuzz {

/// A small generator for the elements of arrays, which would make the bytes too many.
class Noise {
 public:
  explicit Noise(uint64_t seed) : state_((seed + 1) * 0x9e3779b97f4a7c15ull | 1) {}
  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ * 0x2545f4914f6cdd1dull;
  }

 private:
  uint64_t state_;
};

/// Reads numbers from bytes, and goes on with noise that they decide when they have run out: short
/// inputs are cases too.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : at_(data), end_(data + size), more_(0) {
    uint64_t hash = 0xcbf29ce484222325ull;
    for (size_t i = 0; i < size; ++i) hash = (hash ^ data[i]) * 0x100000001b3ull;
    more_ = Noise(hash);
  }

  uint64_t take(int bytes) {
    uint64_t v = 0;
    for (int i = 0; i < bytes; ++i) v = v << 8 | (at_ < end_ ? *at_++ : more_.next() >> 56);
    return v;
  }
  int64_t below(int64_t n) {
    return static_cast<int64_t>(take(n > 256 ? 2 : 1) % static_cast<uint64_t>(n));
  }
  int64_t between(int64_t lo, int64_t hi) { return lo + below(hi - lo + 1); }
  bool rarely() { return below(16) == 15; }

 private:
  const uint8_t *at_, *end_;
  Noise more_;
};

inline int64_t size_of(Dtype dtype) {
  constexpr int64_t sizes[] = {2, 2, 4, 8, 1, 1, 2, 2, 4, 4, 8, 8};
  return sizes[static_cast<int>(dtype)];
}
inline const char* name_of(Dtype dtype) {
  constexpr const char* names[] = {"float16", "bfloat16", "float32", "float64", "int8",  "uint8",
                                   "int16",   "uint16",   "int32",   "uint32",  "int64", "uint64"};
  return names[static_cast<int>(dtype)];
}

/// Memory of exactly that many bytes, so that a sanitizer sees the first one too many. Full of
/// poison.
class Buffer {
 public:
  explicit Buffer(int64_t bytes)
      : bytes_(static_cast<size_t>(bytes)), data_(std::malloc(bytes_ ? bytes_ : 1)) {
    if (!data_) throw std::bad_alloc();
    std::memset(data_, 0xa5, bytes_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer(Buffer&& other) noexcept : bytes_(other.bytes_), data_(other.data_) {
    other.data_ = nullptr;
  }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~Buffer() { std::free(data_); }
  void* get() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_;
  void* data_;
};

/// Return true if one element is NaN; nobody promises the bits of NaN.
inline bool is_nan(Dtype dtype, uint64_t bits) {
  switch (dtype) {
    case Dtype::f16: return (bits & 0x7fff) > 0x7c00;
    case Dtype::bf16: return (bits & 0x7fff) > 0x7f80;
    case Dtype::f32: return (bits & 0x7fffffff) > 0x7f800000;
    case Dtype::f64: return (bits & 0x7fffffffffffffff) > 0x7ff0000000000000;
    default: return false;
  }
}

/// The first element in which two arrays differ, or -1.
inline int64_t difference(Dtype dtype, const Buffer& a, const Buffer& b) {
  if (std::memcmp(a.get(), b.get(), a.bytes()) == 0) return -1;
  const size_t size = static_cast<size_t>(size_of(dtype));
  for (size_t i = 0; i < a.bytes() / size; ++i) {
    uint64_t p = 0, q = 0;
    std::memcpy(&p, static_cast<const char*>(a.get()) + i * size, size);
    std::memcpy(&q, static_cast<const char*>(b.get()) + i * size, size);
    if (p != q && !(is_nan(dtype, p) && is_nan(dtype, q))) return static_cast<int64_t>(i);
  }
  return -1;
}

/// Bits of small integers as each type writes them, of the numbers that kernels get wrong, or of
/// anything.
inline uint64_t element(Dtype dtype, int kind, uint64_t noise) {
  const int small = static_cast<int>(noise >> 32) % 4;
  static constexpr uint64_t tiny[][8] = {
      {0, 0x3c00, 0x4000, 0xbc00, 0x7e00, 0x7c00, 0x8000, 0x0001},
      {0, 0x3f80, 0x4000, 0xbf80, 0x7fc0, 0xff80, 0x8000, 0x0001},
      {0, 0x3f800000, 0x40000000, 0xbf800000, 0x7fc00000, 0xff800000, 0x80000000, 0x00000001},
      {0, 0x3ff0000000000000, 0x4000000000000000, 0xbff0000000000000, 0x7ff8000000000000,
       0xfff0000000000000, 0x8000000000000000, 1}};
  if (kind == 2) return noise;
  if (dtype <= Dtype::f64)
    return tiny[static_cast<int>(dtype)]
               [kind == 0 ? static_cast<size_t>(small & 3) : noise >> 40 & 7];
  if (kind == 0) return static_cast<uint64_t>(small);
  return (noise >> 40 & 7) == 7 ? uint64_t{1} << (8 * size_of(dtype) - 1)
                                : static_cast<uint64_t>(static_cast<int64_t>(small) - 2);
}

inline Buffer filled(Dtype dtype, int64_t count, int kind, Noise& noise) {
  Buffer buffer(count * size_of(dtype));
  const size_t size = static_cast<size_t>(size_of(dtype));
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const uint64_t bits = element(dtype, kind, noise.next());
    std::memcpy(static_cast<char*>(buffer.get()) + i * size, &bits, size);
  }
  return buffer;
}

/// Windows of k every s from -pad on, cut at the edges as makers do.
inline AxisData clipped(Bytes& in, int64_t most) {
  AxisData d{in.between(1, most), {}, {}, {}};
  const int64_t k = in.between(1, in.rarely() ? 2 * most : std::min<int64_t>(most, 12)),
                s = in.between(1, in.rarely() ? most : 4), pad = in.below(k);
  for (int64_t first = -pad; first < d.n && d.start.size() < static_cast<size_t>(most);
       first += s) {
    const int64_t stop = std::min(first + k, d.n);
    d.start.push_back(std::min(std::max<int64_t>(first, 0), stop));
    d.stop.push_back(stop);
    d.span.push_back(k);
  }
  return d;
}

/// Any windows that rise, empty ones among them.
inline AxisData rising(Bytes& in, int64_t most) {
  AxisData d{in.between(0, most), {}, {}, {}};
  int64_t start = 0, stop = 0;
  for (int64_t m = in.between(0, most / 2); m > 0; --m) {
    start = std::min(start + in.below(4), d.n);
    stop = std::min(std::max({stop, start}) + in.below(4), d.n);
    d.start.push_back(start);
    d.stop.push_back(stop);
  }
  return d;
}

/// Windows between borders, sharing the cell at the border or not.
inline AxisData bordered(Bytes& in, int64_t most) {
  AxisData d{0, {}, {}, {}};
  const int64_t over = in.below(2);
  for (int64_t m = in.between(1, most / 4 + 1); m > 0; --m) {
    d.start.push_back(d.n);
    d.n = std::min(d.n + in.between(1, 4), 2 * most);
    d.stop.push_back(d.n + over);
  }
  for (int64_t& stop : d.stop) stop = std::min(stop, d.n);
  return d;
}

/// Numbers as they come: a constructor that lets them through has to be right.
inline AxisData raw(Bytes& in) {
  const auto number = [&] {
    return in.rarely() ? static_cast<int64_t>(in.take(8)) : in.between(-2, 9);
  };
  AxisData d{number(), {}, {}, {}};
  for (int64_t m = in.below(4); m > 0; --m) d.start.push_back(number());
  for (int64_t m = in.rarely() ? in.below(4) : static_cast<int64_t>(d.start.size()); m > 0; --m)
    d.stop.push_back(number());
  for (int64_t m = in.rarely() ? in.below(4) : 0; m > 0; --m) d.span.push_back(number());
  if (d.n > 4096)
    d.n = std::numeric_limits<int64_t>::max() - d.n % 4096;  // more than any memory, or little
  return d;
}

/// Windows as a caller may spell them: as many of one cell as there are cells, the same ones again,
/// late ones, two far apart, with empty ones between them.
inline AxisData spelled(Bytes& in, int64_t most) {
  AxisData d{in.between(1, most), {}, {}, {}};
  const auto add = [&](int64_t start, int64_t stop) {
    start = std::max(start, d.start.empty() ? 0 : d.start.back());
    d.start.push_back(std::min(start, d.n));
    d.stop.push_back(std::min(std::max({stop, start, d.stop.empty() ? 0 : d.stop.back()}), d.n));
  };
  const int64_t kind = in.below(5);
  int64_t at = kind == 2 ? d.n / 2 : 0;
  if (kind == 3) return {d.n, {0, d.n - 1}, {1, d.n}, {}};
  for (int64_t k = 0; k < d.n; ++k) {
    const int64_t start = std::min(at, d.n - 1), cells = kind == 0 ? 1
                                                         : kind == 4 && in.below(3) == 0
                                                             ? 0
                                                             : in.between(1, 3);
    for (int64_t times = kind == 1 ? in.between(1, 3) : 1; times > 0; --times)
      add(start, start + cells);
    at += in.below(3);
  }
  return d;
}

inline AxisData axis(Bytes& in, int64_t most) {
  switch (in.below(8)) {
    case 0: return rising(in, most);
    case 1: return bordered(in, most);
    case 2: return in.rarely() ? raw(in) : AxisData{most, {0}, {most}, {}};
    case 3: return spelled(in, most);
    default: return clipped(in, most);
  }
}

/// A plan as it comes from outside, twice: for the fast paths and for the generic one.
struct Shape {
  int64_t outer, inner;
  std::vector<AxisData> axes;

  OwnedPlan plan(bool plain) const { return OwnedPlan(outer, inner, axes, plain); }
};

inline Shape shape(Bytes& in) {
  Shape s{};
  constexpr int64_t longest[] = {0, 200, 40, 12, 6, 4};
  const int64_t rank = in.rarely() ? in.between(0, 5) : in.between(1, 3);
  s.outer = in.rarely() ? in.between(-1, 140) : in.between(1, 3);
  s.inner = in.rarely()        ? in.between(-1, 140)
            : in.below(3) == 0 ? in.between(1, 40)
                               : in.between(1, 3);
  for (int64_t a = 0; a < rank; ++a) s.axes.push_back(axis(in, longest[rank]));
  return s;
}

/// The plan in words, to be read in a report.
inline std::string text(const Shape& s) {
  const auto list = [](const Table& v) {
    std::string t = "[";
    for (const int64_t i : v) t += (t.size() > 1 ? ", " : "") + std::to_string(i);
    return t + "]";
  };
  std::string t = "outer=" + std::to_string(s.outer) + " inner=" + std::to_string(s.inner);
  for (const AxisData& a : s.axes)
    t += "\n  axis n=" + std::to_string(a.n) + " start=" + list(a.start) + " stop=" + list(a.stop) +
         " span=" + list(a.span);
  return t;
}

}  // namespace poolgrad::fuzz
