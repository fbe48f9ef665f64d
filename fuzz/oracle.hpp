// Maxima, their positions, and what is found by them, cell by cell: for the verbs that only compare
// and copy. Then the test itself.
#pragma once
#include <optional>

#include "calls.hpp"

namespace poolgrad::fuzz {

/// The bits of one element.
inline uint64_t bits_at(Dtype dtype, const Buffer& a, int64_t i) {
  uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const char*>(a.get()) + i * size_of(dtype),
              static_cast<size_t>(size_of(dtype)));
  return bits;
}
inline void put(Dtype dtype, const Buffer& a, int64_t i, uint64_t bits) {
  std::memcpy(static_cast<char*>(a.get()) + i * size_of(dtype), &bits,
              static_cast<size_t>(size_of(dtype)));
}

/// Bits as a number that orders like the values, both zeros alike. NaN has none.
inline uint64_t rank_of(Dtype dtype, uint64_t bits) {
  const int width = static_cast<int>(8 * size_of(dtype));
  const uint64_t sign = uint64_t{1} << (width - 1), mask = sign | (sign - 1);
  const bool is_signed =
      dtype == Dtype::i8 || dtype == Dtype::i16 || dtype == Dtype::i32 || dtype == Dtype::i64;
  if (dtype > Dtype::f64) return is_signed ? bits ^ sign : bits;
  if ((bits & ~sign & mask) == 0) return sign;
  return bits & sign ? ~bits & mask : bits | sign;
}
inline bool less(Dtype dtype, uint64_t a, uint64_t b) {
  return !is_nan(dtype, a) && !is_nan(dtype, b) && rank_of(dtype, a) < rank_of(dtype, b);
}
inline bool equal(Dtype dtype, uint64_t a, uint64_t b) {
  return !is_nan(dtype, a) && !is_nan(dtype, b) && rank_of(dtype, a) == rank_of(dtype, b);
}

/// Return the start of a maximum: the lowest finite value, or minus infinity where there is one.
inline uint64_t least(Dtype dtype, bool infinite) {
  constexpr uint64_t finite[] = {0xfbff, 0xff7f, 0xff7fffff, 0xffefffffffffffff},
                     infinity[] = {0xfc00, 0xff80, 0xff800000, 0xfff0000000000000};
  if (dtype <= Dtype::f64) return (infinite ? infinity : finite)[static_cast<int>(dtype)];
  const bool is_signed =
      dtype == Dtype::i8 || dtype == Dtype::i16 || dtype == Dtype::i32 || dtype == Dtype::i64;
  return is_signed ? uint64_t{1} << (8 * size_of(dtype) - 1) : 0;
}

/// The source cells of one window in row-major order, and whether it was cut at an edge.
struct Window {
  std::vector<int64_t> cells;
  bool cut = false;
};

inline Window window(const Shape& s, int64_t cell) {
  Window w{{0}, false};
  std::vector<int64_t> at(s.axes.size());
  for (size_t a = s.axes.size(); a-- > 0;) {
    const int64_t m = static_cast<int64_t>(s.axes[a].start.size());
    at[a] = cell % m;
    cell /= m;
  }
  for (size_t a = 0; a < s.axes.size(); ++a) {
    const AxisData& axis = s.axes[a];
    const size_t j = static_cast<size_t>(at[a]);
    w.cut |= !axis.span.empty() && axis.span[j] != axis.stop[j] - axis.start[j];
    std::vector<int64_t> next;
    for (const int64_t c : w.cells)
      for (int64_t i = axis.start[j]; i < axis.stop[j]; ++i) next.push_back(c * axis.n + i);
    w.cells = std::move(next);
  }
  return w;
}

/// The first cell of a window that is greater than what came before it; -1 if none exceeds the
/// start.
inline int64_t best_of(const Call& c, const Window& w, int64_t base, Start start, uint64_t& best) {
  int64_t found = -1;
  best = least(c.dtype, start == Start::infinity && !w.cut);
  for (const int64_t cell : w.cells) {
    const uint64_t v = bits_at(c.dtype, c.x, base + cell * c.shape.inner);
    const bool first = found < 0 && start == Start::first;
    if (first || less(c.dtype, best, v)) best = v, found = cell;
  }
  return found;
}

/// The number of a cell in its window.
inline int64_t tap_of(const Window& w, int64_t cell) {
  return std::find(w.cells.begin(), w.cells.end(), cell) - w.cells.begin();
}

/// Reads at a tap; false if it is outside its window.
inline bool picked(const Call& c, const Window& w, int64_t base, int64_t to, const Result& r) {
  const uint64_t tap = bits_at(index_type(c), c.index, to);
  if (!w.cells.empty() && tap >= w.cells.size()) return false;
  put(c.dtype, r.out, to,
      w.cells.empty() ? 0 : bits_at(c.dtype, c.v, base + w.cells[tap] * c.shape.inner));
  return true;
}

inline void one_cell(const Call& c, const Window& w, int64_t base, int64_t to, int64_t modulo,
                     const Result& r) {
  uint64_t best = 0;
  if (c.verb == Verb::recall) {
    for (const int64_t cell : w.cells)
      if (equal(c.dtype, bits_at(c.dtype, c.x, base + cell * c.shape.inner),
                bits_at(c.dtype, c.y, to)))
        return put(c.dtype, r.out, to, bits_at(c.dtype, c.v, base + cell * c.shape.inner));
    return put(c.dtype, r.out, to, 0);
  }
  const int64_t cell =
      best_of(c, w, base, c.verb == Verb::select ? Start(c.rule) : Start::first, best);
  put(c.dtype, r.out, to, best);
  if (c.verb == Verb::choose)
    put(index_type(c), r.index, to, w.cells.empty() ? 0 : static_cast<uint64_t>(tap_of(w, cell)));
  if (c.verb == Verb::argmax)
    put(index_type(c), r.index, to, static_cast<uint64_t>((base + cell * c.shape.inner) % modulo));
}

/// Return the exact result of a call that only compares and copies. No promise covers the first
/// cell of a window without cells.
inline std::optional<Result> expected(const Call& c) {
  if (c.verb != Verb::select && c.verb != Verb::argmax && c.verb != Verb::recall &&
      c.verb != Verb::choose && c.verb != Verb::pick)
    return std::nullopt;
  const int64_t outer = c.shape.outer, inner = c.shape.inner,
                modulo =
                    std::max<int64_t>(c.source / (c.absolute ? 1 : std::max<int64_t>(outer, 1)), 1);
  Result r{Buffer(c.dest * size_of(c.dtype)),
           Buffer(c.verb == Verb::argmax || c.verb == Verb::choose ? c.dest * size_of(index_type(c))
                                                                   : 0)};
  const int64_t cells = outer > 0 && inner > 0 ? c.dest / (outer * inner) : 0,
                item = outer ? c.source / outer : 0;
  for (int64_t k = 0; k < cells; ++k) {
    const Window w = window(c.shape, k);
    if (w.cells.empty() &&
        (c.verb == Verb::argmax || (c.verb == Verb::select && Start(c.rule) == Start::first)))
      return std::nullopt;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        const int64_t to = (o * cells + k) * inner + i;
        if (c.verb != Verb::pick) one_cell(c, w, o * item + i, to, modulo, r);
        else if (!picked(c, w, o * item + i, to, r) && (r.wrong < 0 || to < r.wrong)) r.wrong = to;
      }
  }
  return r;
}

/// One input: a plan that is refused, or calls that must agree.
inline void test(const uint8_t* data, size_t size, VerbTable table, int threads = 1) {
  Bytes in(data, size);
  inputs.fetch_add(1, std::memory_order_relaxed);
  const Shape drawn = shape(in);
  try {
    const OwnedPlan fast = drawn.plan(false), plain = drawn.plan(true);
    if (too_large(fast)) return;
    for (int64_t more = in.below(8); more >= 0; --more) {
      const Call call = decode(in, drawn, fast, table);
      const Verbs& verbs = *table(call.dtype);
      if (!exists(verbs, call)) continue;
      const Cutting cut{in.between(1, 3), in.between(1, 4), threads};
      const Result want = run(verbs, call, plain, {});
      note(call, want);
      agree(call, run(verbs, call, fast, {}), want, "the fast path differs from the generic one");
      agree(call, run(verbs, call, fast, cut), want,
            "the fast path differs when it is cut in pieces");
      if (const auto true_one = expected(call))
        agree(call, want, *true_one, "the generic path is wrong");
    }
  } catch (const std::invalid_argument&) {
    refused.fetch_add(1, std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {
    refused.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace poolgrad::fuzz
