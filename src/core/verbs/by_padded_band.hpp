// fold, spread, near and route over padded bands, for plans with inner == 1.
#pragma once
#include "loops/padded_band.hpp"
#include "reducers/near.hpp"
#include "verbs/by_row_ring.hpp"
#include "verbs/max_grad.hpp"

namespace poolgrad::PG_ISA {

/// Reduce lanes over taps at fixed distances: begin(c), step(s, offset, number of the tap), end(s,
/// c).
template <class T, class Begin, class Step, class End>
PG_INLINE void reduce_band(const int64_t* distance, int64_t taps, int64_t lanes, Begin&& begin,
                           Step&& step, End&& end) {
  constexpr int V = kLanes<T>;
  for (int64_t c = 0; c < lanes; c += kBlockLanes<T>) {
    decltype(begin(c)) s[kVectors];
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) s[i] = begin(c + i * V);
    for (int64_t t = 0; t < taps; ++t) {
      const int64_t place = c + distance[t];
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) step(s[i], place + i * V, t);
    }
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) end(s[i], c + i * V);
  }
}

template <class W>
void fill_with(W* to, int64_t count, W value) {
  for (int64_t k = 0; k < count; ++k) to[k] = value;
}

/// Write a destination row, whose phases are `run` elements apart.
template <class T>
PG_INLINE void write_row(const Wide<T>* from, int64_t run, int64_t period, int64_t cells, T* to,
                         const T* limit) {
  if (period > 1) return interleave_row<T>(from, run, period, cells, to, limit);
  for (int64_t c = 0; c < cells; c += kLanes<T>)
    store_within<T>(to + c, load<kLanes<T>>(from + c), cells - c, limit);
}

template <class T>
void fold_by_padded_band(const Plan& full_plan, BandOfPiece<T>& part, const RowArrays<T, 1, 0>& a,
                         Mean mean, Piece p) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>;
  const Plan& plan = part.part.plan;
  const int64_t s0 = part.part.from, h0 = part.h0;
  PaddedBand<T>& band = part.band;
  const PaddedLayout<T>& layout = band.layout;
  const int64_t size = layout.blocks * layout.block, m = layout.m,
                lanes = RowPacker<T>::round_up(m);
  Scratch<W> cells(size), sums(layout.run + V);
  Scratch<int64_t> distance(layout.taps), counts(layout.dests);
  layout.products([](const Axis& axis) { return axis.m; },
                  [mean](const Axis& axis, int64_t j) { return counted_cells(axis, j, mean); },
                  counts.get());
  const int64_t taps = layout.distances(0, false, 0, plan.rank, distance.get());
  fill_with(cells.get(), size, W{0});
  RowPacker<T> packer = layout.packer(W{0}, a.source[0] + full_plan.outer * band.source_item);
  RowPerCount<W> divisors(2 * lanes);
  const T* const x = a.source[0] + s0 * full_plan.source_slab();
  T* const y = a.out + h0 * full_plan.dest_slab();
  W *const in = cells.get(), *const sum = sums.get();
  StreamWriter<T> writer(y, a.stream, m);
  band.run(
      p.i0, p.i1, [&](int64_t i, int64_t shift) { band.pack_item(packer, x, i, in + shift); },
      [&] {
        reduce_band<T>(
            distance.get(), taps, layout.run, [=](int64_t) PG_LAMBDA { return Vec<W, V>{}; },
            [=](auto& s, int64_t at, int64_t)
                PG_LAMBDA { s = rounded<T, V>(s + load<V>(in + at)); },
            [=](auto& s, int64_t c) PG_LAMBDA { store<V>(sum + c, s); });
      },
      [&](int64_t at, int64_t u, int64_t place, int64_t limit) {
        T* const to = writer.open(at, m);
        const T* end = writer.limit(y + limit);
        const W* const by = divisors(counts[u], [&](int64_t k) {
          return divisor_or_over<T>(k, lanes, m, counts[u], plan.last(), mean);
        });
        for (int64_t c = 0; c < m; c += V)
          store_within<T>(
              to + c,
              divided<T, V>(load<V>(sum + place + c), load<V>(by + c), load<V>(by + lanes + c)),
              m - c, end);
      });
  writer.close();
}

/// Compute spread: weigh the rows of the gradient while packing, then add tap after tap.
template <class T>
void spread_by_padded_band(const Plan& full_plan, BandOfPiece<T>& part, const RowArrays<T, 1, 0>& a,
                           Share share, bool reversed, Piece p) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>;
  const Plan& plan = part.part.plan;
  const int64_t s0 = part.part.from, h0 = part.h0;
  PaddedBand<T>& band = part.band;
  const PaddedLayout<T>& layout = band.layout;
  const Axis& last = plan.last();
  const int64_t m = layout.m, n = layout.n;
  Scratch<W> cells(layout.block), sums(layout.phases * layout.run + V);
  Scratch<int64_t> distance(layout.taps * layout.phases), taps(layout.phases),
      counts(layout.sources);
  layout.products([](const Axis& axis) { return axis.n; },
                  [](const Axis& axis, int64_t j) { return axis.count[j]; }, counts.get());
  for (int64_t q = 0; q < layout.phases; ++q)
    taps[q] = layout.distances(q, reversed, 0, plan.rank, distance.get() + q * layout.taps);
  fill_with(cells.get(), layout.block, W{0});
  RowPacker<T> packer = layout.packer(W{0}, a.source[0] + full_plan.outer * band.source_item);
  RowPerCount<W> weights(RowPacker<T>::round_up(n));
  T* const dx = a.out + h0 * full_plan.dest_slab();
  W *const g = cells.get(), *const sum = sums.get();
  StreamWriter<T> writer(dx, a.stream, m);
  band.run(
      p.i0, p.i1,
      [&](int64_t i, int64_t shift) {
        const T* row = a.source[0] + s0 * full_plan.source_slab() + i * band.source_item;
        for (int64_t r = 0; r < layout.sources; ++r, row += n)
          packer.pack(row, g + band.source[r] + shift, weights(counts[r], [&](int64_t c) {
                        return reciprocal<T>(c < n ? counts[r] * last.count[c] : 1, share);
                      }));
      },
      [&] {
        for (int64_t q = 0; q < layout.phases; ++q) {
          W* const to = sum + q * layout.run;
          reduce_band<T>(
              distance.get() + q * layout.taps, taps[q], layout.run,
              [=](int64_t) PG_LAMBDA { return Vec<W, V>{}; },
              [=](auto& s, int64_t at, int64_t)
                  PG_LAMBDA { s = rounded<T, V>(s + load<V>(g + at)); },
              [=](auto& s, int64_t c) PG_LAMBDA { store<V>(to + c, s); });
        }
      },
      [&](int64_t at, int64_t, int64_t place, int64_t limit) {
        write_row<T>(sum + place, layout.run, layout.period(), m, writer.open(at, m),
                     writer.limit(dx + limit));
      });
  writer.close();
}

/// Compute near. The cells of x lie where their results will be.
template <class T>
void near_by_padded_band(const Plan& full_plan, BandOfPiece<T>& part, const RowArrays<T, 2, 1>& a,
                         double eps, Piece p) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>;
  const W near = smallest_rounding_to<T>(as<T>(eps));
  const Plan& plan = part.part.plan;
  const int64_t s0 = part.part.from, h0 = part.h0;
  PaddedBand<T>& band = part.band;
  const PaddedLayout<T>& layout = band.layout;
  const int64_t m = layout.m, from = s0 * full_plan.source_slab(), to = h0 * full_plan.dest_slab(),
                size = layout.phases * layout.run + layout.period() * V;
  Scratch<W> cells(2 * layout.block), sums(size);
  Scratch<int64_t> distance(layout.taps * layout.phases), taps(layout.phases);
  for (int64_t q = 0; q < layout.phases; ++q)
    taps[q] = layout.distances(q, true, 0, plan.rank, distance.get() + q * layout.taps);
  fill_with(cells.get(), layout.block,
            std::numeric_limits<W>::quiet_NaN());  // nothing is near to NaN
  fill_with(cells.get() + layout.block, layout.block, W{0});
  fill_with(sums.get(), size, W{0});
  RowPacker<T> ys = layout.packer(std::numeric_limits<W>::quiet_NaN(),
                                  a.source[0] + full_plan.outer * band.source_item),
               gs = layout.packer(W{0}, a.source[1] + full_plan.outer * band.source_item);
  RowPacker<T> xs(m, layout.period(), 0, 0, W{0}, a.partner[0] + full_plan.outer * band.dest_item,
                  layout.run);
  W *const y = cells.get(), *const g = y + layout.block, *const x = sums.get();
  StreamWriter<T> writer(a.out + to, a.stream, m);
  band.run(
      p.i0, p.i1,
      [&](int64_t i, int64_t shift) {
        band.pack_item(ys, a.source[0] + from, i, y + shift);
        band.pack_item(gs, a.source[1] + from, i, g + shift);
        for (int64_t u = 0; u < layout.dests; ++u)
          xs.pack(a.partner[0] + to + i * band.dest_item + u * m, x + band.dest[u] + shift);
      },
      [&] {
        for (int64_t q = 0; q < layout.phases; ++q) {
          W* const here = x + q * layout.run;
          reduce_band<T>(
              distance.get() + q * layout.taps, taps[q], layout.run,
              [=](int64_t c) PG_LAMBDA {
                return NearSum<T, V>{load<V>(here + c), Vec<W, V>{}};
              },
              [=](auto& s, int64_t at, int64_t) PG_LAMBDA {
                s.sum = rounded<T, V>(s.sum + s.where_near(load<V>(y + at), load<V>(g + at), near));
              },
              [=](auto& s, int64_t c) PG_LAMBDA { store<V>(here + c, s.sum); });
        }
      },
      [&](int64_t at, int64_t, int64_t place, int64_t limit) {
        write_row<T>(x + place, layout.run, layout.period(), m, writer.open(at, m),
                     writer.limit(a.out + to + limit));
      });
  writer.close();
}

/// Return true if all of n cells are greater than minus infinity; NaN is not.
template <class T>
bool all_greater(const T* x, int64_t n) {
  constexpr int V = kLanes<T>;
  const auto least = all<Wide<T>, V>(minus_infinity<T>());
  auto greater = least == least;
  int64_t c = 0;
  for (; c + V <= n; c += V) greater &= load<V>(x + c) > least;
  bool every = true;
  for (int k = 0; k < V; ++k) every &= greater[k] != 0;
  for (; c < n; ++c) every &= load<1>(x + c)[0] > minus_infinity<T>();
  return every;
}

/// The layouts of route: of the forward plan, and of the transposed plan.
template <class T>
struct RouteBands {
  RouteBands(const Plan& plan, const Plan& transposed, int64_t items)
      : ahead(plan, plan, items, 1), behind(transposed, transposed, items, 1) {}

  /// Give both layouts equal pitches; return true if they still fit.
  bool align() {
    ahead.layout.widen_to(behind.layout);
    behind.layout.widen_to(ahead.layout);
    if (!ahead.layout.fits || !behind.layout.fits) return false;
    ahead.layout.rows(ahead.source.get(), ahead.dest.get());
    behind.layout.rows(behind.source.get(), behind.dest.get());
    return true;
  }

  PaddedBand<T> ahead, behind;
};

/// Compute route: the tap of each window, then for each cell the sum over the covering windows that
/// chose it. Neutral cells are minus infinity, which no cell may equal: items with NaN or minus
/// infinity go to other(piece).
template <class T, class Other>
void route_by_padded_band(const Plan& plan, const Plan& transposed, RouteBands<T>& bands,
                          const T* x, const T* g, T* dx, Piece p, Other&& other) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>;
  PaddedBand<T>&ahead = bands.ahead, &behind = bands.behind;
  const PaddedLayout<T>&layout = ahead.layout, &back = behind.layout;
  const int64_t n = plan.last().n, shift = back.shift(), size = layout.blocks * layout.block;
  const W least = minus_infinity<T>();
  Scratch<W> cells(size), grads(back.block), sums(back.phases * back.run + V);
  Scratch<uint8_t> chosen(shift + back.block);
  Scratch<int64_t> distance(layout.taps), backward(back.taps * back.phases), windows(back.phases);
  Scratch<uint8_t> tap_numbers(back.taps * back.phases);
  const int64_t taps = layout.distances(0, false, 0, plan.rank, distance.get());
  for (int64_t q = 0; q < back.phases; ++q) {
    windows[q] = back.distances(q, false, 0, plan.rank, backward.get() + q * back.taps);
    back.tap_numbers(layout, q, tap_numbers.get() + q * back.taps);
  }
  fill_with(cells.get(), size, least);
  fill_with(grads.get(), back.block, W{0});
  fill_with(chosen.get(), shift + back.block, uint8_t{0});
  RowPacker<T> xs = layout.packer(least, x + plan.outer * ahead.source_item),
               gs = back.packer(W{0}, g + plan.outer * behind.source_item);
  StreamWriter<T> writer(dx, exceeds_cache<T>(transposed), n);
  W *const in = cells.get(), *const from = grads.get(), *const out = sums.get();
  uint8_t *const to = chosen.get() + shift, *const taps_from = chosen.get();
  for (int64_t i = p.i0; i < p.i1; i += layout.group) {
    const int64_t items = i + layout.group < p.i1 ? layout.group : p.i1 - i;
    if (!all_greater(x + i * ahead.source_item, items * ahead.source_item)) {
      writer.close();
      other(Piece{i, i + items, p.h0, p.h1});
      continue;
    }
    behind.run(
        i, i + items,
        [&](int64_t k, int64_t place) {
          ahead.pack_item(xs, x, k, in + place);
          behind.pack_item(gs, g, k, from + place);
        },
        [&] {
          reduce_band<T>(
              distance.get(), taps, layout.run,
              [=](int64_t) PG_LAMBDA {
                return BestTap<T, TapLane<T>, V>{all<W, V>(least), {}};
              },
              [=](auto& best, int64_t at, int64_t k) PG_LAMBDA {
                best.step(load<V>(in + at), all<TapLane<T>, V>(static_cast<TapLane<T>>(k)));
              },
              [=](auto& best, int64_t c) PG_LAMBDA {
                const Vec<uint8_t, V> kept = convert<uint8_t, V, TapLane<T>>(best.tap);
                std::memcpy(to + c, &kept, sizeof kept);
              });
          for (int64_t q = 0; q < back.phases; ++q) {
            const uint8_t* const numbers = tap_numbers.get() + q * back.taps;
            W* const sum = out + q * back.run;
            reduce_band<T>(
                backward.get() + q * back.taps, windows[q], back.run,
                [=](int64_t) PG_LAMBDA { return Vec<W, V>{}; },
                [=](auto& s, int64_t at, int64_t k) PG_LAMBDA {
                  s = rounded<T, V>(
                      s + where_tap<V, W>(taps_from + at, numbers[k], load<V>(from + at)));
                },
                [=](auto& s, int64_t c) PG_LAMBDA { store<V>(sum + c, s); });
          }
        },
        [&](int64_t at, int64_t, int64_t place, int64_t limit) {
          write_row<T>(out + place, back.run, back.period(), n, writer.open(at, n),
                       writer.limit(dx + limit));
        });
  }
  writer.close();
}

}  // namespace poolgrad::PG_ISA
