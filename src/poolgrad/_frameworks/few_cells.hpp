// Pools of few cells: plain loops over tables of cells, which take less time than starting the core. Its orders, so its bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace poolgrad {

constexpr int64_t kFewCells = 1024;   // elements of the input and of the result
constexpr int64_t kFewSteps = 8192;   // cells of all windows together
constexpr int64_t kAddedInTurn = 64;  // cells that the core adds one by one; more of them, in float64

/// The windows along one axis: cells from `start` to `stop`, which never decrease; `span` counts the padding, too.
struct Line {
  int64_t cells, windows;
  const int64_t *start, *stop, *span;

  int64_t length(int64_t j) const { return stop[j] - start[j]; }
};

/// The cells of each window, one window after the other.
struct Few {
  std::vector<int32_t> begin{0}, cells;
  std::vector<double> spans;  ///< the cells that each window had before the edges cut it

  int64_t size() const { return static_cast<int64_t>(begin.size()) - 1; }
  double count(size_t window) const { return begin[window + 1] - begin[window]; }
};

namespace tables {

/// Add the cells of a window along the axes from `line` on.
inline void add(Few& made, const Line* line, const Line* end, const int64_t* window, int64_t row, int64_t inner) {
  if (line == end) return made.cells.push_back(static_cast<int32_t>(row * inner));
  for (int64_t j = line->start[*window]; j < line->stop[*window]; ++j) add(made, line + 1, end, window + 1, row * line->cells + j, inner);
}

/// Go to the next window; return false after the last.
inline bool next(const std::vector<Line>& lines, std::vector<int64_t>& window) {
  for (size_t a = lines.size(); a--;) {
    if (++window[a] < lines[a].windows) return true;
    window[a] = 0;
  }
  return false;
}

}  // namespace tables

/// Return the tables for an array (outer, axes, inner); empty ones if it has no cells.
inline Few few_of(int64_t outer, int64_t inner, const std::vector<Line>& lines) {
  Few made;
  if (outer == 0 || inner == 0) return made;  // no limit of cells bounds the windows of such an array
  if (std::any_of(lines.begin(), lines.end(), [](const Line& line) { return line.windows == 0; })) return made;
  std::vector<int64_t> window(lines.size());
  for (int64_t item = 0; item < outer; ++item) {
    do {
      const size_t first = made.cells.size();
      tables::add(made, lines.data(), lines.data() + lines.size(), window.data(), item, inner);
      const size_t last = made.cells.size();
      int64_t span = 1;
      for (size_t a = 0; a < lines.size(); ++a) span *= lines[a].span[window[a]];
      for (int64_t i = 0; i < inner; ++i) {
        for (size_t k = first; i && k < last; ++k) made.cells.push_back(made.cells[k] + static_cast<int32_t>(i));
        made.begin.push_back(static_cast<int32_t>(made.cells.size()));
        made.spans.push_back(static_cast<double>(span));
      }
    } while (tables::next(lines, window));
  }
  return made;
}

/// Keeps subnormals while it lives, as the core does; the caller may flush them.
class KeepSubnormals {
#if defined(__x86_64__)
 public:
  KeepSubnormals() {
    if (saved_ & kFlush) _mm_setcsr(saved_ & ~kFlush);
  }
  ~KeepSubnormals() {
    if (saved_ & kFlush) _mm_setcsr(saved_);
  }

 private:
  static constexpr unsigned kFlush = 0x8040;  // results, and operands
  unsigned saved_ = _mm_getcsr();
#elif defined(__aarch64__)
 public:
  KeepSubnormals() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" : : "r"(saved_ & ~(uint64_t{1} << 24)));
  }
  ~KeepSubnormals() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }

 private:
  uint64_t saved_;
#else
 public:
  KeepSubnormals() {}
#endif
};

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

/// True for halves: a file that has such types specialises it.
template <class T>
constexpr bool kIsHalf = false;

/// Write the best cell of each window, and its tap.
template <class T, class Tap>
void choose_few(const Few& few, bool least, const T* x, T* y, Tap* taps) {
  const KeepSubnormals subnormals;
  using Wide = std::conditional_t<kIsHalf<T>, float, T>;
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

/// Read v at the taps; return false if a tap is outside its window.
template <class T, class Tap>
bool pick_few(const Few& few, const T* v, const Tap* taps, T* y) {
  for (int64_t r = 0; r < few.size(); ++r) {
    const auto from = few.begin[static_cast<size_t>(r)], to = few.begin[static_cast<size_t>(r) + 1];
    if (static_cast<int64_t>(taps[r]) >= to - from) return false;
    y[r] = v[few.cells[static_cast<size_t>(from + static_cast<int32_t>(taps[r]))]];
  }
  return true;
}

/// Add g at the taps; return false if a tap is outside its window.
template <class T, class Tap>
bool place_few(const Few& few, int64_t cells, const T* g, const Tap* taps, T* dx) {
  using Sum = std::conditional_t<kIsHalf<T>, float, T>;
  const KeepSubnormals subnormals;
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

/// Write what `share` makes of the sum of each window, added in Sum.
template <class Sum, class T, class F>
void fold_few(const Few& few, const T* x, T* y, F&& share) {
  const KeepSubnormals subnormals;
  for (size_t r = 0; r + 1 < few.begin.size(); ++r) {
    Sum sum = 0;
    for (auto k = few.begin[r]; k < few.begin[r + 1]; ++k) sum += static_cast<Sum>(x[few.cells[static_cast<size_t>(k)]]);
    y[r] = narrowed<T>(share(sum, r));
  }
}

/// Give each cell what `share` makes of g, added in Sum.
template <class Sum, class T, class F>
void spread_few(const Few& few, int64_t cells, const T* g, T* dx, F&& share) {
  const KeepSubnormals subnormals;
  Sum sums[kFewCells];
  std::fill(sums, sums + cells, Sum{0});
  for (size_t r = 0; r + 1 < few.begin.size(); ++r) {
    const Sum part = share(static_cast<Sum>(g[r]), r);
    for (auto k = few.begin[r]; k < few.begin[r + 1]; ++k) sums[few.cells[static_cast<size_t>(k)]] += part;
  }
  for (int64_t i = 0; i < cells; ++i) dx[i] = narrowed<T>(sums[i]);
}

}  // namespace poolgrad
