// Small items at once: where windows repeat along every axis, an item that lies among neutral cells is one long row, in which each
// tap of all windows is at the same distance.
#pragma once
#include "along.hpp"
#include "route.hpp"

namespace poolgrad::PG_ISA {

/// How items lie. Along an axis, source cell c is position (c + left) / S of phase (c + left) % S, and destination cell j position
/// j / P of phase j % P; each phase of all axes is a block of its own, and all blocks have the same pitches. What follows the end of
/// an axis also precedes its next beginning. Some items lie one behind the other.
template <class T>
class Flat {
 public:
  using W = Wide<T>;
  static constexpr int V = kLanes<T>;

  /// `buffers`: how many arrays are kept as the source is.
  Flat(const Plan& plan, int64_t items, int buffers) : n(plan.last().n), m(plan.last().m), plan_(plan), last_(plan.rank - 1), items_(items), buffers_(buffers) {
    if (plan.plain || plan.inner != 1 || items == 0) return;
    for (int a = last_; a >= 0; --a) {
      const Axis& axis = plan.axis[a];
      const Comb comb(axis, 1);
      if (!comb.fits || comb.P > kPhases || axis.n == 0) return;
      int64_t furthest = 0;
      for (int64_t q = 0; q < comb.P; ++q) {
        first_[a][q] = comb.first(q);
        width_[a][q] = comb.width(q);
        if (comb.width(q) > 0) furthest = most(furthest, (comb.first(q) + comb.left + comb.width(q) - 1) / comb.S);
      }
      const int64_t lead = comb.left / comb.S, size = most((axis.n - 1 + comb.left) / comb.S + 1, comb.teeth + furthest - lead);
      lie_[a] = {comb.S, comb.P, comb.left, comb.teeth, furthest, size, 1, blocks, phases};
      blocks *= comb.S;
      phases *= comb.P;
      cuts |= comb.cuts;
      odd_cuts |= comb.odd_cuts;
      taps *= axis.widest;
      if (a < last_) sources *= axis.n, dests *= axis.m;
    }
    settle();
  }

  /// Takes over the pitches of another plan where they are wider.
  void widen(const Flat& other) {
    if (!fits || !other.fits) return;
    for (int a = 0; a <= last_; ++a) lie_[a].size = most(lie_[a].size, other.lie_[a].size);
    settle();
  }

  int64_t S() const { return lie_[last_].S; }
  int64_t P() const { return lie_[last_].P; }
  /// Cells of neutral before a row, for a copy of rows that begins with them.
  int64_t left() const { return lie_[last_].left; }

  /// Where each source row begins, `left` neutral cells included, and each destination row.
  void rows(int64_t* source, int64_t* dest) const {
    each([&](int a) { return plan_.axis[a].n; }, [&](int64_t k, const int64_t* at) {
      source[k] = 0;
      for (int a = 0; a < last_; ++a) source[k] += (at[a] + lie_[a].left) / lie_[a].S * lie_[a].pitch + (at[a] + lie_[a].left) % lie_[a].S * lie_[a].block * block;
    });
    each([&](int a) { return plan_.axis[a].m; }, [&](int64_t k, const int64_t* at) {
      dest[k] = 0;
      for (int a = 0; a < last_; ++a) dest[k] += at[a] / lie_[a].P * lie_[a].pitch + at[a] % lie_[a].P * lie_[a].phase * run;
    });
  }
  /// The product of the lengths along all axes but the last, for each row of m or of n cells.
  template <class Cells, class Length>
  void products(Cells&& cells, Length&& length, int64_t* to) const {
    each([&](int a) { return cells(plan_.axis[a]); }, [&](int64_t k, const int64_t* at) {
      to[k] = 1;
      for (int a = 0; a < last_; ++a) to[k] *= length(plan_.axis[a], at[a]);
    });
  }
  /// The distances of the taps of destination phase `number` along axes [a0, a1), in the order in which they are visited. Returns how many
  /// there are.
  int64_t distances(int64_t number, bool reversed, int a0, int a1, int64_t* to) const {
    int64_t first[kMaxRank], width[kMaxRank], at[kMaxRank] = {}, count = 1, k = 0;
    for (int a = a0; a < a1; ++a) {
      const int64_t q = number / lie_[a].phase % lie_[a].P;
      first[a] = first_[a][q] + lie_[a].left;
      count *= width[a] = width_[a][q];
    }
    for (; k < count; ++k) {
      to[k] = 0;
      for (int a = a0; a < a1; ++a) to[k] += (first[a] + at[a]) / lie_[a].S * lie_[a].pitch + (first[a] + at[a]) % lie_[a].S * lie_[a].block * block;
      for (int i = 0; i < a1 - a0; ++i) {
        const int a = reversed ? a0 + i : a1 - 1 - i;
        if (++at[a] < width[a]) break;
        at[a] = 0;
      }
    }
    return count;
  }
  /// From where a destination cell of another plan lies, whose cells are this one's source, to where it is kept here.
  int64_t shift() const {
    int64_t sum = 0;
    for (int a = 0; a <= last_; ++a) sum += lie_[a].left / lie_[a].S * lie_[a].pitch;
    return sum;
  }
  /// Of a transposed plan: for each of those distances, which tap of the window there the cell is.
  void codes(const Flat& forward, int64_t number, uint8_t* to) const {
    int64_t code[kMaxRank], width[kMaxRank], at[kMaxRank] = {}, count = 1;
    for (int a = 0; a <= last_; ++a) {
      const int64_t q = number / lie_[a].phase % lie_[a].P;
      code[a] = q - lie_[a].P * first_[a][q] - forward.first_[a][0];
      count *= width[a] = width_[a][q];
    }
    for (int64_t k = 0; k < count; ++k) {
      int64_t tap = 0;
      for (int a = 0; a <= last_; ++a) tap = tap * forward.width_[a][0] + code[a] - lie_[a].P * at[a];
      to[k] = static_cast<uint8_t>(tap);
      int a = last_;
      while (a >= 0 && ++at[a] == width[a]) at[a--] = 0;
    }
  }
  /// A copier of rows.
  Phases<T> copier(W neutral, const T* end) const { return Phases<T>(plan_.last().n, S(), left(), 0, neutral, end, block); }

  /// Whether another plan's destination, one cell a tooth, is this one's source, parted as its source is.
  bool answers(const Flat& forward) const {
    bool may = blocks == 1 && forward.phases == 1;
    for (int a = 0; may && a <= last_; ++a) may = lie_[a].P == forward.lie_[a].S;
    return may;
  }

  bool fits = false, cuts = false, odd_cuts = false;
  int64_t n, m;  ///< cells of a source row, and of a destination row
  int64_t blocks = 1, phases = 1;  ///< of the source, and of the destination
  int64_t block = 0, run = 0;      ///< elements of one of those
  int64_t bytes = 0;               ///< of all of them
  int64_t reach = 0;               ///< how far the taps along the last axis are, in whole vectors
  int64_t item = 0, group = 1;     ///< elements of an item in a block; items that lie behind each other
  int64_t sources = 1, dests = 1, taps = 1;  ///< rows of an item, and the most taps of a window

 private:
  struct Lie {
    int64_t S, P, left, teeth, furthest, size, pitch;
    int64_t block, phase;  ///< how many of those the next phase of this axis is away
  };
  static constexpr int64_t kSome = 2048, kMost = 320 << 10, kPhases = 4;
  static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
  static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

  void settle() {
    int64_t cells = 1, far = 0, end = 0;
    item = 1;
    for (int a = last_; a >= 0; --a) {
      Lie& lie = lie_[a];
      lie.pitch = item;
      item *= lie.size;
      cells *= lie.teeth;
      far += lie.furthest * lie.pitch;
      end += (lie.teeth - 1) * lie.pitch;
    }
    group = least(most(kSome / item, 1), items_);
    reach = Phases<T>::full(lie_[last_].furthest);
    run = Phases<T>::full((group - 1) * item + end + 1) + V;  // where a row may be written to its last vector
    block = Phases<T>::full(most(group * item, run + far)) + V + reach;
    bytes = (blocks * block * buffers_ + phases * run) * static_cast<int64_t>(sizeof(W));
    fits = lie_[last_].teeth >= V && 2 * cells >= item && bytes <= kMost && taps > 0 && sources + dests + taps * phases <= 1 << 13;
  }

  template <class Length, class F>
  void each(Length&& length, F&& f) const {
    int64_t at[kMaxRank] = {};
    for (int64_t k = 0;; ++k) {
      f(k, at);
      int a = last_ - 1;
      while (a >= 0 && ++at[a] == length(a)) at[a--] = 0;
      if (a < 0) return;
    }
  }

  const Plan& plan_;
  const int last_;
  const int64_t items_;
  const int buffers_;
  Lie lie_[kMaxRank];
  int64_t first_[kMaxRank][kPhases], width_[kMaxRank][kPhases];  ///< of the windows of each phase
};

/// Cells [h, end) of the first axis as a plan of their own, for the source cells that they read.
class Band {
 public:
  Band(const Plan& whole, int64_t h, int64_t end) : from(whole.axis[0].start[h]), plan(strip(whole, h, end, 0)), start_(end - h), stop_(end - h) {
    Axis& axis = plan.axis[0];
    axis.n = axis.stop[axis.m - 1] - from;
    for (int64_t j = 0; j < axis.m; ++j) start_[j] = axis.start[j] - from, stop_[j] = axis.stop[j] - from;
    axis.start = start_.get();
    axis.stop = stop_.get();
    if (axis.count) axis.count += from;
  }
  const int64_t from;  ///< the first source cell
  Plan plan;

 private:
  Scratch<int64_t> start_, stop_;
};

/// Items of some arrays, or bands of them, that lie flat: the shape, where rows are, and how far items are apart in the arrays.
template <class T>
struct Field {
  Field(const Plan& whole, const Plan& plan, int64_t items, int buffers)
      : flat(plan, items, buffers), source_item(whole.axis[0].n * whole.source_slab()), dest_item(whole.axis[0].m * whole.dest_slab()), source(flat.fits ? flat.sources : 0), dest(flat.fits ? flat.dests : 0) {
    if (flat.fits) flat.rows(source.get(), dest.get());
  }

  /// Items in groups: fill(item, shift) of each, make() of the group, then use(place in the result, row of the item, place, limit) for their rows. Up to
  /// the limit, what is written behind a row is written again.
  template <class Fill, class Make, class Use>
  void run(int64_t i0, int64_t i1, Fill&& fill, Make&& make, Use&& use) {
    for (int64_t i = i0; i < i1; i += flat.group) {
      const int64_t items = i + flat.group < i1 ? flat.group : i1 - i;
      checkpoint(meter(), flat.run * flat.phases * flat.taps);
      for (int64_t k = 0; k < items; ++k) fill(i + k, k * flat.item);
      make();
      for (int64_t k = 0; k < items; ++k) {
        const int64_t begin = (i + k) * dest_item, size = flat.dests * flat.m, limit = size == dest_item ? i1 * dest_item : begin + size;
        for (int64_t u = 0; u < flat.dests; ++u) use(begin + u * flat.m, u, dest[u] + k * flat.item, limit);
      }
    }
  }
  /// Copies the source rows of an item.
  void copy(Phases<T>& copier, const T* x, int64_t i, Wide<T>* to) {
    x += i * source_item;
    for (int64_t r = 0; r < flat.sources; ++r, x += flat.n) copier.fill(x, to + source[r]);
  }
  Flat<T> flat;
  const int64_t source_item, dest_item;
  Scratch<int64_t> source, dest;
};

/// Runs run(plan of a band, its first source cell, its first destination cell) for the bands of a piece, until one refuses. Returns the first cell that
/// is left. Long rows are left to others, and what takes several bands if it is to be at once.
template <class T, class Run>
int64_t in_bands(const Plan& plan, Piece p, int buffers, bool at_once, Run&& run) {
  constexpr int64_t kBand = 128 << 10, kLongRow = 256;  // bytes that stay near a core; cells for which a row is worth the trouble by itself
  const Axis& top = plan.axis[0];
  const int64_t cells = p.h1 - p.h0;
  if (plan.plain || plan.inner != 1 || cells == 0 || plan.last().m > kLongRow || (plan.rank == 1 && cells < top.m)) return p.h0;
  const int64_t bytes = (top.n * plan.source_slab() / top.m * buffers + plan.dest_slab()) * static_cast<int64_t>(sizeof(Wide<T>)) + 1;
  const int64_t most = plan.rank == 1 ? cells : kBand / bytes + top.period, bands = (cells + most - 1) / most;
  if (at_once && bands > 1) return p.h0;
  const int64_t band = ((cells + bands - 1) / bands + top.period - 1) / top.period * top.period;
  for (int64_t h = p.h0; h < p.h1; h += band) {
    const Band part(plan, h, h + band < p.h1 ? h + band : p.h1);
    if (!run(part.plan, part.from, h)) return h;
  }
  return p.h1;
}

/// Reduces all lanes of a block over taps at the same distances: begin(c), step(s, place, number of the tap), end(s, c).
template <class T, bool Backwards = false, class Begin, class Step, class End>
PG_INLINE void reduce_flat(const int64_t* distance, int64_t taps, int64_t lanes, Begin&& begin, Step&& step, End&& end) {
  constexpr int V = kLanes<T>;
  const auto some = [&](auto many, int64_t c) PG_LAMBDA {
    constexpr int N = decltype(many)::count;
    decltype(begin(c)) s[N];
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) s[i] = begin(c + i * V);
    for (int64_t t = 0; t < taps; ++t) {
      const int64_t k = Backwards ? taps - 1 - t : t, place = c + distance[k];
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) step(s[i], place + i * V, k);
    }
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) end(s[i], c + i * V);
  };
  int64_t c = 0;
  for (; c + 4 * V <= lanes; c += 4 * V) some(Lane<4>{}, c);
  for (; c < lanes; c += V) some(Lane<1>{}, c);
}

template <class W>
void fill_with(W* to, int64_t count, W value) {
  for (int64_t k = 0; k < count; ++k) to[k] = value;
}

/// A destination row, whose phases are `run` elements apart.
template <class T>
PG_INLINE void write_row(const Wide<T>* from, int64_t run, int64_t P, int64_t cells, T* to, const T* limit) {
  if (P > 1) return weave<T>(from, run, P, cells, to, limit);
  for (int64_t c = 0; c < cells; c += kLanes<T>) put<T>(to + c, load<kLanes<T>>(from + c), cells - c, limit);
}

// The verbs, as along rows. Each returns the first cell of the first axis that it leaves to others.

/// Maxima, first along the last axis, then over all others: the first of equals wins, as in one pass.
template <class T>
int64_t select_flat(const Plan& whole, const RowArrays<T, 1, 0>& a, Start start, Piece p) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>;
  if (start == Start::first) return p.h0;
  const W from = start_value<T>(start, false);
  return in_bands<T>(whole, p, 2, true, [&](const Plan& plan, int64_t s0, int64_t h0) {
    Field<T> field(whole, plan, p.i1 - p.i0, 2);
    const Flat<T>& flat = field.flat;
    if (!flat.fits || flat.phases > 1 || (start == Start::infinity && flat.cuts && flat.odd_cuts)) return false;
    const W neutral = start_value<T>(start, flat.cuts);
    const int64_t size = flat.blocks * flat.block;
    const int split = plan.rank > 1 && plan.last().widest > 1 && flat.taps > 6 ? plan.rank - 1 : 0;
    Scratch<W> cells(size), along(split ? size : 0), best(flat.run + V);
    Scratch<int64_t> first(flat.taps), second(flat.taps);
    const int64_t firsts = flat.distances(0, false, split, plan.rank, first.get()), seconds = flat.distances(0, false, 0, split, second.get());
    fill_with(cells.get(), size, neutral);
    fill_with(along.get(), split ? size : 0, neutral);
    Phases<T> copier = flat.copier(neutral, a.source[0] + whole.outer * field.source_item);
    const T* const x = a.source[0] + s0 * whole.source_slab();
    T* const y = a.out + h0 * whole.dest_slab();
    Outlet<T> outlet(y, a.far, flat.m);
    const auto pass = [&](const int64_t* distance, int64_t taps, int64_t lanes, const W* in, W* to) {
      reduce_flat<T>(
          distance, taps, lanes, [=](int64_t) PG_LAMBDA { return all<W, V>(from); }, [=](auto& s, int64_t at, int64_t) PG_LAMBDA { s = larger<W, V>(s, load<V>(in + at)); },
          [=](auto& s, int64_t c) PG_LAMBDA { store<V>(to + c, s); });
    };
    field.run(
        p.i0, p.i1, [&](int64_t i, int64_t shift) { field.copy(copier, x, i, cells.get() + shift); },
        [&] {
          if (!split) return pass(first.get(), firsts, flat.run, cells.get(), best.get());
          for (int64_t k = 0; k < size; k += flat.S() * flat.block) pass(first.get(), firsts, flat.block - flat.reach, cells.get() + k, along.get() + k);
          pass(second.get(), seconds, flat.run, along.get(), best.get());
        },
        [&](int64_t at, int64_t, int64_t place, int64_t limit) { write_row<T>(best.get() + place, 0, 1, flat.m, outlet.open(at, flat.m), outlet.limit(y + limit)); });
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
    flat.products([](const Axis& axis) { return axis.m; }, [](const Axis& axis, int64_t j) { return axis.length(j); }, counts.get());
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
              distance.get(), taps, flat.run, [=](int64_t) PG_LAMBDA { return Vec<W, V>{}; }, [=](auto& s, int64_t at, int64_t) PG_LAMBDA { s = rounded<T, V>(s + load<V>(in + at)); },
              [=](auto& s, int64_t c) PG_LAMBDA { store<V>(sum + c, s); });
        },
        [&](int64_t at, int64_t u, int64_t place, int64_t limit) {
          T* const to = outlet.open(at, m);
          const T* end = outlet.limit(y + limit);
          const W* const by = divisors(counts[u], [&](int64_t k) { return divisor_or_over<T>(k, lanes, m, counts[u], plan.last(), mean); });
          for (int64_t c = 0; c < m; c += V) put<T>(to + c, divided<T, V>(load<V>(sum + place + c), load<V>(by + c), load<V>(by + lanes + c)), m - c, end);
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
    const int64_t size = flat.blocks * flat.block, m = flat.m, from = s0 * whole.source_slab(), to = h0 * whole.dest_slab();
    Scratch<W> cells(2 * size), found(flat.run + 2 * V);
    Scratch<int64_t> distance(flat.taps);
    const int64_t taps = flat.distances(0, false, 0, plan.rank, distance.get());
    const W nan = std::numeric_limits<W>::quiet_NaN();
    fill_with(cells.get(), size, nan);
    fill_with(cells.get() + size, size, W{0});
    fill_with(found.get(), flat.run + 2 * V, W{0});
    Phases<T> xs = flat.copier(nan, a.source[0] + whole.outer * field.source_item), vs = flat.copier(W{0}, a.source[1] + whole.outer * field.source_item);
    Phases<T> ys(m, 1, 0, 0, W{0}, a.partner[0] + whole.outer * field.dest_item, 1);
    W *const x = cells.get(), *const v = x + size, *const y = found.get();
    Outlet<T> outlet(a.out + to, a.far, m);
    field.run(
        p.i0, p.i1,
        [&](int64_t i, int64_t shift) {
          field.copy(xs, a.source[0] + from, i, x + shift);
          field.copy(vs, a.source[1] + from, i, v + shift);
          for (int64_t u = 0; u < flat.dests; ++u) ys.fill(a.partner[0] + to + i * field.dest_item + u * m, y + field.dest[u] + shift);  // where the results will be
        },
        [&] {
          reduce_flat<T, true>(
              distance.get(), taps, flat.run, [=](int64_t c) PG_LAMBDA { return Recall<T, V>{load<V>(y + c), Vec<W, V>{}}; },
              [=](auto& s, int64_t at, int64_t) PG_LAMBDA { s.found = (load<V>(x + at) == s.best) ? load<V>(v + at) : s.found; }, [=](auto& s, int64_t c) PG_LAMBDA { store<V>(y + c, s.found); });
        },
        [&](int64_t at, int64_t, int64_t place, int64_t limit) { write_row<T>(y + place, 0, 1, m, outlet.open(at, m), outlet.limit(a.out + to + limit)); });
    outlet.close();
    return true;
  });
}

/// Transposed means: the source rows are weighed as they are read, then added tap after tap.
template <class T, bool Reversed>
int64_t spread_flat(const Plan& whole, const RowArrays<T, 1, 0>& a, Share share, Piece p) {
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
    flat.products([](const Axis& axis) { return axis.n; }, [](const Axis& axis, int64_t j) { return axis.count[j]; }, counts.get());
    for (int64_t q = 0; q < flat.phases; ++q) taps[q] = flat.distances(q, Reversed, 0, plan.rank, distance.get() + q * flat.taps);
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
            copier.fill(row, g + field.source[r] + shift, weights(counts[r], [&](int64_t c) { return reciprocal<T>(c < n ? counts[r] * last.count[c] : 1, share); }));
        },
        [&] {
          for (int64_t q = 0; q < flat.phases; ++q) {
            W* const to = sum + q * flat.run;
            reduce_flat<T>(
                distance.get() + q * flat.taps, taps[q], flat.run, [=](int64_t) PG_LAMBDA { return Vec<W, V>{}; }, [=](auto& s, int64_t at, int64_t) PG_LAMBDA { s = rounded<T, V>(s + load<V>(g + at)); },
                [=](auto& s, int64_t c) PG_LAMBDA { store<V>(to + c, s); });
          }
        },
        [&](int64_t at, int64_t, int64_t place, int64_t limit) { write_row<T>(sum + place, flat.run, flat.P(), m, outlet.open(at, m), outlet.limit(dx + limit)); });
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
    const int64_t m = flat.m, from = s0 * whole.source_slab(), to = h0 * whole.dest_slab(), size = flat.phases * flat.run + flat.P() * V;
    Scratch<W> cells(2 * flat.block), sums(size);
    Scratch<int64_t> distance(flat.taps * flat.phases), taps(flat.phases);
    for (int64_t q = 0; q < flat.phases; ++q) taps[q] = flat.distances(q, true, 0, plan.rank, distance.get() + q * flat.taps);
    fill_with(cells.get(), flat.block, std::numeric_limits<W>::quiet_NaN());  // which nothing is near to
    fill_with(cells.get() + flat.block, flat.block, W{0});
    fill_with(sums.get(), size, W{0});
    Phases<T> ys = flat.copier(std::numeric_limits<W>::quiet_NaN(), a.source[0] + whole.outer * field.source_item), gs = flat.copier(W{0}, a.source[1] + whole.outer * field.source_item);
    Phases<T> xs(m, flat.P(), 0, 0, W{0}, a.partner[0] + whole.outer * field.dest_item, flat.run);
    W *const y = cells.get(), *const g = y + flat.block, *const x = sums.get();
    Outlet<T> outlet(a.out + to, a.far, m);
    field.run(
        p.i0, p.i1,
        [&](int64_t i, int64_t shift) {
          field.copy(ys, a.source[0] + from, i, y + shift);
          field.copy(gs, a.source[1] + from, i, g + shift);
          for (int64_t u = 0; u < flat.dests; ++u) xs.fill(a.partner[0] + to + i * field.dest_item + u * m, x + field.dest[u] + shift);
        },
        [&] {
          for (int64_t q = 0; q < flat.phases; ++q) {
            W* const here = x + q * flat.run;
            reduce_flat<T>(
                distance.get() + q * flat.taps, taps[q], flat.run, [=](int64_t c) PG_LAMBDA { return Claim<T, V>{load<V>(here + c), Vec<W, V>{}}; },
                [=](auto& s, int64_t at, int64_t) PG_LAMBDA {
                  const Vec<W, V> d = s.here - load<V>(y + at), add = load<V>(g + at), zero{};
                  s.sum = rounded<T, V>(s.sum + (((d < near) & (d > -near)) ? add : zero));
                },
                [=](auto& s, int64_t c) PG_LAMBDA { store<V>(here + c, s.sum); });
          }
        },
        [&](int64_t at, int64_t, int64_t place, int64_t limit) { write_row<T>(x + place, flat.run, flat.P(), m, outlet.open(at, m), outlet.limit(a.out + to + limit)); });
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

/// dx = g put where x has its maxima, as route_piece: each window's tap, then for each cell the windows over it that chose it. Neutral cells
/// lie where windows are cut, which no cell may equal: items that have NaN or minus infinity are left to route_piece.
template <class T>
bool route_flat(const Plan& plan, const Plan& transposed, const T* x, const T* g, T* dx, Piece p) {
  using W = Wide<T>;
  constexpr int V = kLanes<T>;
  if (p.h0 != 0 || p.h1 != plan.axis[0].n) return false;
  Field<T> ahead(plan, plan, p.i1 - p.i0, 1), behind(transposed, transposed, p.i1 - p.i0, 1);
  Flat<T>&flat = ahead.flat, &back = behind.flat;
  if (!flat.fits || !back.fits || !back.answers(flat) || flat.taps > 32 || back.taps > kMostWindows) return false;
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
  Phases<T> xs = flat.copier(least, x + plan.outer * ahead.source_item), gs = back.copier(W{0}, g + plan.outer * behind.source_item);
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
              distance.get(), taps, flat.run, [=](int64_t) PG_LAMBDA { return Best<T, TapLane<T>, V>{all<W, V>(least), {}}; },
              [=](auto& best, int64_t at, int64_t k) PG_LAMBDA {
                const Vec<W, V> v = load<V>(in + at);
                best.tap = best.value < v ? all<TapLane<T>, V>(static_cast<TapLane<T>>(k)) : best.tap;
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
                backward.get() + q * back.taps, windows[q], back.run, [=](int64_t) PG_LAMBDA { return Vec<W, V>{}; },
                [=](auto& s, int64_t at, int64_t k) PG_LAMBDA { s = rounded<T, V>(s + where_tap<V, W>(asked + at, code[k], load<V>(from + at))); }, [=](auto& s, int64_t c) PG_LAMBDA { store<V>(sum + c, s); });
          }
        },
        [&](int64_t at, int64_t, int64_t place, int64_t limit) { write_row<T>(out + place, back.run, back.P(), n, outlet.open(at, n), outlet.limit(dx + limit)); });
  }
  outlet.close();
  return true;
}

}  // namespace poolgrad::PG_ISA
