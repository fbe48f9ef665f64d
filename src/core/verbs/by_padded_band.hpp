// The verbs on items that lie flat. Each returns the first cell of the first axis that it leaves to
// others.
#pragma once
#include "loops/padded_band.hpp"
#include "verbs/by_row_ring.hpp"
#include "verbs/max_grad.hpp"

namespace poolgrad::PG_ISA {

/// Reduces whole strides of lanes over taps at the same distances: begin(c), step(s, place, number
/// of the tap), end(s, c).
template <class T, bool Backwards = false, class Begin, class Step, class End>
PG_INLINE void reduce_flat(const int64_t* distance, int64_t taps, int64_t lanes, Begin&& begin,
                           Step&& step, End&& end) {
  constexpr int V = kLanes<T>;
  for (int64_t c = 0; c < lanes; c += kStride<T>) {
    decltype(begin(c)) s[kAtOnce];
#pragma GCC unroll 4
    for (int i = 0; i < kAtOnce; ++i) s[i] = begin(c + i * V);
    for (int64_t t = 0; t < taps; ++t) {
      const int64_t k = Backwards ? taps - 1 - t : t, place = c + distance[k];
#pragma GCC unroll 4
      for (int i = 0; i < kAtOnce; ++i) step(s[i], place + i * V, k);
    }
#pragma GCC unroll 4
    for (int i = 0; i < kAtOnce; ++i) end(s[i], c + i * V);
  }
}

template <class W>
void fill_with(W* to, int64_t count, W value) {
  for (int64_t k = 0; k < count; ++k) to[k] = value;
}

/// A destination row, whose phases are `run` elements apart.
template <class T>
PG_INLINE void write_row(const Wide<T>* from, int64_t run, int64_t P, int64_t cells, T* to,
                         const T* limit) {
  if (P > 1) return weave<T>(from, run, P, cells, to, limit);
  for (int64_t c = 0; c < cells; c += kLanes<T>)
    put<T>(to + c, load<kLanes<T>>(from + c), cells - c, limit);
}

/// Maxima, first along the last axis, then over all others: the first of equals wins, as in one
/// pass.
template <class T>
int64_t select_flat(const Plan& whole, const RowArrays<T, 1, 0>& a, Start start, Piece p) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>;
  if (start == Start::first) return p.h0;
  const W from = start_value<T>(start, false);
  return in_bands<T>(whole, p, 2, true, [&](const Plan& plan, int64_t s0, int64_t h0) {
    Field<T> field(whole, plan, p.i1 - p.i0, 2);
    const Flat<T>& flat = field.flat;
    if (!flat.fits || flat.phases > 1 ||
        (start == Start::infinity && flat.cuts && (flat.odd_cuts || some_row_is_empty(plan))))
      return false;
    const W neutral = start_value<T>(start, flat.cuts);
    const int64_t size = flat.blocks * flat.block;
    const int split = plan.rank > 1 && plan.last().widest > 1 && flat.taps > 6 ? plan.rank - 1 : 0;
    Scratch<W> cells(size), along(split ? size : 0), best(flat.run + V);
    Scratch<int64_t> first(flat.taps), second(flat.taps);
    const int64_t firsts = flat.distances(0, false, split, plan.rank, first.get()),
                  seconds = flat.distances(0, false, 0, split, second.get());
    fill_with(cells.get(), size, neutral);
    fill_with(along.get(), split ? size : 0, neutral);
    Phases<T> copier = flat.copier(neutral, a.source[0] + whole.outer * field.source_item);
    const T* const x = a.source[0] + s0 * whole.source_slab();
    T* const y = a.out + h0 * whole.dest_slab();
    Outlet<T> outlet(y, a.far, flat.m);
    const auto pass = [&](const int64_t* distance, int64_t taps, int64_t lanes, const W* in, W* to)
        __attribute__((noinline)) {
      reduce_flat<T>(
          distance, taps, lanes, [=](int64_t) PG_LAMBDA { return all<W, V>(from); },
          [=](auto& s, int64_t at, int64_t) PG_LAMBDA { s = larger<W, V>(s, load<V>(in + at)); },
          [=](auto& s, int64_t c) PG_LAMBDA { store<V>(to + c, s); });
    };
    field.run(
        p.i0, p.i1,
        [&](int64_t i, int64_t shift) { field.copy(copier, x, i, cells.get() + shift); },
        [&] {
          if (!split) return pass(first.get(), firsts, flat.run, cells.get(), best.get());
          for (int64_t k = 0; k < size; k += flat.S() * flat.block)
            pass(first.get(), firsts, flat.block - flat.reach, cells.get() + k, along.get() + k);
          pass(second.get(), seconds, flat.run, along.get(), best.get());
        },
        [&](int64_t at, int64_t, int64_t place, int64_t limit) {
          write_row<T>(best.get() + place, 0, 1, flat.m, outlet.open(at, flat.m),
                       outlet.limit(y + limit));
        });
    outlet.close();
    return true;
  });
}

template <class T>
int64_t fold_flat(const Plan& whole, const RowArrays<T, 1, 0>& a, Mean mean, Piece p) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>;
  return in_bands<T>(whole, p, 1, true, [&](const Plan& plan, int64_t s0, int64_t h0) {
    Field<T> field(whole, plan, p.i1 - p.i0, 1);
    const Flat<T>& flat = field.flat;
    if (!flat.fits || flat.phases > 1 || flat.taps > kLongSum) return false;
    const int64_t size = flat.blocks * flat.block, m = flat.m, lanes = Phases<T>::full(m);
    Scratch<W> cells(size), sums(flat.run + V);
    Scratch<int64_t> distance(flat.taps), counts(flat.dests);
    flat.products([](const Axis& axis) { return axis.m; },
                  [](const Axis& axis, int64_t j) { return axis.length(j); }, counts.get());
    const int64_t taps = flat.distances(0, false, 0, plan.rank, distance.get());
    fill_with(cells.get(), size, W{0});
    Phases<T> copier = flat.copier(W{0}, a.source[0] + whole.outer * field.source_item);
    RowPerCount<W> divisors(2 * lanes);
    const T* const x = a.source[0] + s0 * whole.source_slab();
    T* const y = a.out + h0 * whole.dest_slab();
    W *const in = cells.get(), *const sum = sums.get();
    Outlet<T> outlet(y, a.far, m);
    field.run(
        p.i0, p.i1, [&](int64_t i, int64_t shift) { field.copy(copier, x, i, in + shift); },
        [&] {
          reduce_flat<T>(
              distance.get(), taps, flat.run, [=](int64_t) PG_LAMBDA { return Vec<W, V>{}; },
              [=](auto& s, int64_t at, int64_t)
                  PG_LAMBDA { s = rounded<T, V>(s + load<V>(in + at)); },
              [=](auto& s, int64_t c) PG_LAMBDA { store<V>(sum + c, s); });
        },
        [&](int64_t at, int64_t u, int64_t place, int64_t limit) {
          T* const to = outlet.open(at, m);
          const T* end = outlet.limit(y + limit);
          const W* const by = divisors(counts[u], [&](int64_t k) {
            return divisor_or_over<T>(k, lanes, m, counts[u], plan.last(), mean);
          });
          for (int64_t c = 0; c < m; c += V)
            put<T>(
                to + c,
                divided<T, V>(load<V>(sum + place + c), load<V>(by + c), load<V>(by + lanes + c)),
                m - c, end);
        });
    outlet.close();
    return true;
  });
}

/// Second order: cells outside are NaN, which equals nothing.
template <class T>
int64_t recall_flat(const Plan& whole, const RowArrays<T, 2, 1>& a, Piece p) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>;
  return in_bands<T>(whole, p, 2, true, [&](const Plan& plan, int64_t s0, int64_t h0) {
    Field<T> field(whole, plan, p.i1 - p.i0, 2);
    const Flat<T>& flat = field.flat;
    if (!flat.fits || flat.phases > 1 || flat.taps > 32) return false;
    const int64_t size = flat.blocks * flat.block, m = flat.m, from = s0 * whole.source_slab(),
                  to = h0 * whole.dest_slab();
    Scratch<W> cells(2 * size), found(flat.run + 2 * V);
    Scratch<int64_t> distance(flat.taps);
    const int64_t taps = flat.distances(0, false, 0, plan.rank, distance.get());
    const W nan = std::numeric_limits<W>::quiet_NaN();
    fill_with(cells.get(), size, nan);
    fill_with(cells.get() + size, size, W{0});
    fill_with(found.get(), flat.run + 2 * V, W{0});
    Phases<T> xs = flat.copier(nan, a.source[0] + whole.outer * field.source_item),
              vs = flat.copier(W{0}, a.source[1] + whole.outer * field.source_item);
    Phases<T> ys(m, 1, 0, 0, W{0}, a.partner[0] + whole.outer * field.dest_item, 1);
    W *const x = cells.get(), *const v = x + size, *const y = found.get();
    Outlet<T> outlet(a.out + to, a.far, m);
    field.run(
        p.i0, p.i1,
        [&](int64_t i, int64_t shift) {
          field.copy(xs, a.source[0] + from, i, x + shift);
          field.copy(vs, a.source[1] + from, i, v + shift);
          for (int64_t u = 0; u < flat.dests; ++u)
            ys.fill(a.partner[0] + to + i * field.dest_item + u * m,
                    y + field.dest[u] + shift);  // where the results will be
        },
        [&] {
          reduce_flat<T, true>(
              distance.get(), taps, flat.run,
              [=](int64_t c) PG_LAMBDA {
                return Recall<T, V>{load<V>(y + c), Vec<W, V>{}};
              },
              [=](auto& s, int64_t at, int64_t)
                  PG_LAMBDA { s.found = (load<V>(x + at) == s.best) ? load<V>(v + at) : s.found; },
              [=](auto& s, int64_t c) PG_LAMBDA { store<V>(y + c, s.found); });
        },
        [&](int64_t at, int64_t, int64_t place, int64_t limit) {
          write_row<T>(y + place, 0, 1, m, outlet.open(at, m), outlet.limit(a.out + to + limit));
        });
    outlet.close();
    return true;
  });
}

/// Transposed means: the source rows are weighed as they are read, then added tap after tap.
template <class T>
int64_t spread_flat(const Plan& whole, const RowArrays<T, 1, 0>& a, Share share, bool reversed,
                    Piece p) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>;
  if (rounds_once<T>(share)) return p.h0;
  return in_bands<T>(whole, p, 1, false, [&](const Plan& plan, int64_t s0, int64_t h0) {
    Field<T> field(whole, plan, p.i1 - p.i0, 1);
    const Flat<T>& flat = field.flat;
    if (!flat.fits || flat.blocks > 1 || flat.taps > kLongSum) return false;
    const Axis& last = plan.last();
    const int64_t m = flat.m, n = flat.n;
    Scratch<W> cells(flat.block), sums(flat.phases * flat.run + V);
    Scratch<int64_t> distance(flat.taps * flat.phases), taps(flat.phases), counts(flat.sources);
    flat.products([](const Axis& axis) { return axis.n; },
                  [](const Axis& axis, int64_t j) { return axis.count[j]; }, counts.get());
    for (int64_t q = 0; q < flat.phases; ++q)
      taps[q] = flat.distances(q, reversed, 0, plan.rank, distance.get() + q * flat.taps);
    fill_with(cells.get(), flat.block, W{0});
    Phases<T> copier = flat.copier(W{0}, a.source[0] + whole.outer * field.source_item);
    RowPerCount<W> weights(Phases<T>::full(n));
    T* const dx = a.out + h0 * whole.dest_slab();
    W *const g = cells.get(), *const sum = sums.get();
    Outlet<T> outlet(dx, a.far, m);
    field.run(
        p.i0, p.i1,
        [&](int64_t i, int64_t shift) {
          const T* row = a.source[0] + s0 * whole.source_slab() + i * field.source_item;
          for (int64_t r = 0; r < flat.sources; ++r, row += n)
            copier.fill(row, g + field.source[r] + shift, weights(counts[r], [&](int64_t c) {
                          return reciprocal<T>(c < n ? counts[r] * last.count[c] : 1, share);
                        }));
        },
        [&] {
          for (int64_t q = 0; q < flat.phases; ++q) {
            W* const to = sum + q * flat.run;
            reduce_flat<T>(
                distance.get() + q * flat.taps, taps[q], flat.run,
                [=](int64_t) PG_LAMBDA { return Vec<W, V>{}; },
                [=](auto& s, int64_t at, int64_t)
                    PG_LAMBDA { s = rounded<T, V>(s + load<V>(g + at)); },
                [=](auto& s, int64_t c) PG_LAMBDA { store<V>(to + c, s); });
          }
        },
        [&](int64_t at, int64_t, int64_t place, int64_t limit) {
          write_row<T>(sum + place, flat.run, flat.P(), m, outlet.open(at, m),
                       outlet.limit(dx + limit));
        });
    outlet.close();
    return true;
  });
}

/// Near maxima, as near_piece. The cells of x lie where their results will.
template <class T>
int64_t near_flat(const Plan& whole, const RowArrays<T, 2, 1>& a, double eps, Piece p) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>;
  const W near = reaching<T>(as<T>(eps));
  return in_bands<T>(whole, p, 2, false, [&](const Plan& plan, int64_t s0, int64_t h0) {
    Field<T> field(whole, plan, p.i1 - p.i0, 2);
    const Flat<T>& flat = field.flat;
    if (!flat.fits || flat.blocks > 1 || flat.P() > 3 || flat.taps > kMostWindows) return false;
    const int64_t m = flat.m, from = s0 * whole.source_slab(), to = h0 * whole.dest_slab(),
                  size = flat.phases * flat.run + flat.P() * V;
    Scratch<W> cells(2 * flat.block), sums(size);
    Scratch<int64_t> distance(flat.taps * flat.phases), taps(flat.phases);
    for (int64_t q = 0; q < flat.phases; ++q)
      taps[q] = flat.distances(q, true, 0, plan.rank, distance.get() + q * flat.taps);
    fill_with(cells.get(), flat.block,
              std::numeric_limits<W>::quiet_NaN());  // which nothing is near to
    fill_with(cells.get() + flat.block, flat.block, W{0});
    fill_with(sums.get(), size, W{0});
    Phases<T> ys = flat.copier(std::numeric_limits<W>::quiet_NaN(),
                               a.source[0] + whole.outer * field.source_item),
              gs = flat.copier(W{0}, a.source[1] + whole.outer * field.source_item);
    Phases<T> xs(m, flat.P(), 0, 0, W{0}, a.partner[0] + whole.outer * field.dest_item, flat.run);
    W *const y = cells.get(), *const g = y + flat.block, *const x = sums.get();
    Outlet<T> outlet(a.out + to, a.far, m);
    field.run(
        p.i0, p.i1,
        [&](int64_t i, int64_t shift) {
          field.copy(ys, a.source[0] + from, i, y + shift);
          field.copy(gs, a.source[1] + from, i, g + shift);
          for (int64_t u = 0; u < flat.dests; ++u)
            xs.fill(a.partner[0] + to + i * field.dest_item + u * m, x + field.dest[u] + shift);
        },
        [&] {
          for (int64_t q = 0; q < flat.phases; ++q) {
            W* const here = x + q * flat.run;
            reduce_flat<T>(
                distance.get() + q * flat.taps, taps[q], flat.run,
                [=](int64_t c) PG_LAMBDA {
                  return Claim<T, V>{load<V>(here + c), Vec<W, V>{}};
                },
                [=](auto& s, int64_t at, int64_t) PG_LAMBDA {
                  const Vec<W, V> d = s.here - load<V>(y + at), add = load<V>(g + at), zero{};
                  s.sum = rounded<T, V>(s.sum + (((d < near) & (d > -near)) ? add : zero));
                },
                [=](auto& s, int64_t c) PG_LAMBDA { store<V>(here + c, s.sum); });
          }
        },
        [&](int64_t at, int64_t, int64_t place, int64_t limit) {
          write_row<T>(x + place, flat.run, flat.P(), m, outlet.open(at, m),
                       outlet.limit(a.out + to + limit));
        });
    outlet.close();
    return true;
  });
}

/// Whether all of n cells are greater than minus infinity, which NaN is not.
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

/// dx = g put where x has its maxima, as route_piece: each window's tap, then for each cell the
/// windows over it that chose it. Neutral cells lie where windows are cut, which no cell may equal:
/// items that have NaN or minus infinity are left to route_piece.
template <class T>
bool route_flat(const Plan& plan, const Plan& transposed, const T* x, const T* g, T* dx, Piece p) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>;
  if (p.h0 != 0 || p.h1 != plan.axis[0].n) return false;
  Field<T> ahead(plan, plan, p.i1 - p.i0, 1), behind(transposed, transposed, p.i1 - p.i0, 1);
  Flat<T>&flat = ahead.flat, &back = behind.flat;
  if (!flat.fits || !back.fits || !back.answers(flat) || flat.taps > 32 || back.taps > kMostWindows)
    return false;
  flat.widen(back);
  back.widen(flat);
  if (!flat.fits || !back.fits) return false;
  flat.rows(ahead.source.get(), ahead.dest.get());
  back.rows(behind.source.get(), behind.dest.get());
  const int64_t n = plan.last().n, shift = back.shift(), size = flat.blocks * flat.block;
  const W least = minus_infinity<T>();
  Scratch<W> cells(size), grads(back.block), sums(back.phases * back.run + V);
  Scratch<uint8_t> chosen(shift + back.block);
  Scratch<int64_t> distance(flat.taps), backward(back.taps * back.phases), windows(back.phases);
  Scratch<uint8_t> codes(back.taps * back.phases);
  const int64_t taps = flat.distances(0, false, 0, plan.rank, distance.get());
  for (int64_t q = 0; q < back.phases; ++q) {
    windows[q] = back.distances(q, false, 0, plan.rank, backward.get() + q * back.taps);
    back.codes(flat, q, codes.get() + q * back.taps);
  }
  fill_with(cells.get(), size, least);
  fill_with(grads.get(), back.block, W{0});
  fill_with(chosen.get(), shift + back.block, uint8_t{0});
  Phases<T> xs = flat.copier(least, x + plan.outer * ahead.source_item),
            gs = back.copier(W{0}, g + plan.outer * behind.source_item);
  Outlet<T> outlet(dx, is_large<T>(transposed), n);
  W *const in = cells.get(), *const from = grads.get(), *const out = sums.get();
  uint8_t *const to = chosen.get() + shift, *const asked = chosen.get();
  for (int64_t i = p.i0; i < p.i1; i += flat.group) {
    const int64_t items = i + flat.group < p.i1 ? flat.group : p.i1 - i;
    if (!all_greater(x + i * ahead.source_item, items * ahead.source_item)) {
      outlet.close();
      route_piece<T>(plan, transposed, x, nullptr, g, nullptr, dx, Piece{i, i + items, p.h0, p.h1});
      continue;
    }
    behind.run(
        i, i + items,
        [&](int64_t k, int64_t place) {
          ahead.copy(xs, x, k, in + place);
          behind.copy(gs, g, k, from + place);
        },
        [&] {
          reduce_flat<T>(
              distance.get(), taps, flat.run,
              [=](int64_t) PG_LAMBDA {
                return Best<T, TapLane<T>, V>{all<W, V>(least), {}};
              },
              [=](auto& best, int64_t at, int64_t k) PG_LAMBDA {
                const Vec<W, V> v = load<V>(in + at);
                best.tap =
                    best.value < v ? all<TapLane<T>, V>(static_cast<TapLane<T>>(k)) : best.tap;
                best.value = larger<W, V>(best.value, v);
              },
              [=](auto& best, int64_t c) PG_LAMBDA {
                const Vec<uint8_t, V> kept = convert<uint8_t, V, TapLane<T>>(best.tap);
                std::memcpy(to + c, &kept, sizeof kept);
              });
          for (int64_t q = 0; q < back.phases; ++q) {
            const uint8_t* const code = codes.get() + q * back.taps;
            W* const sum = out + q * back.run;
            reduce_flat<T>(
                backward.get() + q * back.taps, windows[q], back.run,
                [=](int64_t) PG_LAMBDA { return Vec<W, V>{}; },
                [=](auto& s, int64_t at, int64_t k) PG_LAMBDA {
                  s = rounded<T, V>(s + where_tap<V, W>(asked + at, code[k], load<V>(from + at)));
                },
                [=](auto& s, int64_t c) PG_LAMBDA { store<V>(sum + c, s); });
          }
        },
        [&](int64_t at, int64_t, int64_t place, int64_t limit) {
          write_row<T>(out + place, back.run, back.P(), n, outlet.open(at, n),
                       outlet.limit(dx + limit));
        });
  }
  outlet.close();
  return true;
}

}  // namespace poolgrad::PG_ISA
