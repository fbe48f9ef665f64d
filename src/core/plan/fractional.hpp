// Draw the borders of fractional pooling from two seeds, as TensorFlow does.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "runtime/threads.hpp"

namespace poolgrad {

/// Philox-4x32-10: a counter, encrypted in ten rounds.
class Philox {
 public:
  using Block = std::array<uint32_t, 4>;
  Philox(uint64_t key, uint64_t stream) : key_(key), stream_(stream) {}

  /// Return the next four words.
  Block next() {
    Block c{low(counter_), high(counter_), low(stream_), high(stream_)};
    ++counter_;
    uint32_t k0 = low(key_), k1 = high(key_);
    for (int round = 0; round < 10; ++round) {
      const uint64_t p = uint64_t{c[0]} * 0xD2511F53, q = uint64_t{c[2]} * 0xCD9E8D57;
      c = {high(q) ^ c[1] ^ k0, low(q), high(p) ^ c[3] ^ k1, low(p)};
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    return c;
  }

 private:
  static uint32_t low(uint64_t v) { return static_cast<uint32_t>(v); }
  static uint32_t high(uint64_t v) { return static_cast<uint32_t>(v >> 32); }
  uint64_t key_, stream_, counter_ = 0;
};

namespace detail {

/// Write the lengths of m windows over n cells, n / m or one more each, in random order.
inline void shuffled_lengths(int64_t n, int64_t m, Philox& source, int64_t* lengths) {
  StepBudget& steps = step_budget();
  for (int64_t i = 0; i < m; ++i) {
    checkpoint(steps, 1);
    lengths[i] = n / m + (i < n % m);
  }
  Philox::Block words{};
  for (int64_t i = 0; i < m; ++i) {  // the last word has no effect, but is drawn
    checkpoint(steps, 4);
    if (i % 4 == 0) words = source.next();
    std::swap(lengths[i], lengths[i + words[static_cast<size_t>(i % 4)] % (m - i)]);
  }
}

/// Write the lengths of m windows over n cells whose borders follow the ratio n / m from a random
/// offset on.
inline void even_lengths(int64_t n, int64_t m, Philox& source, int64_t* lengths) {
  const Philox::Block words = source.next();
  const uint64_t mantissa = uint64_t{words[0] & 0xFFFFF} << 32 | words[1];
  const double alpha = static_cast<double>(n) / static_cast<double>(m);
  const int64_t k = n / m;
  const double u = std::ldexp(static_cast<double>(mantissa), -52) *
                   std::min(static_cast<double>(k + 2) / alpha - 1,
                            static_cast<double>(n + 1 - k) / alpha - static_cast<double>(m - 1));
  StepBudget& steps = step_budget();
  for (int64_t i = 1, last = 1; i <= m; ++i) {
    checkpoint(steps, 1);
    const int64_t border =
        i < m ? static_cast<int64_t>(std::ceil(alpha * (static_cast<double>(i) + u))) : n + 1;
    lengths[i - 1] = border - last;
    last = border;
  }
}
}  // namespace detail

/// Write the m + 1 borders of m windows over n cells, 1 <= m <= n.
inline void draw_borders(int64_t n, int64_t m, bool pseudo_random, Philox& source,
                         int64_t* borders) {
  (pseudo_random ? detail::even_lengths : detail::shuffled_lengths)(n, m, source, borders + 1);
  borders[0] = 0;
  for (int64_t i = 0; i < m; ++i) borders[i + 1] += borders[i];
}

}  // namespace poolgrad
