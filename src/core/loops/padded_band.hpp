// How items lie flat: where windows repeat along every axis, an item among neutral cells is one
// long row, in which each tap of all windows is at the same distance.
#pragma once
#include "loops/row_ring.hpp"

namespace poolgrad::PG_ISA {

/// Lanes that go through the taps together.
constexpr int kAtOnce = 4;
template <class T>
constexpr int64_t kStride = kAtOnce* kLanes<T>;

/// How items lie. Along an axis, source cell c is position (c + left) / S of phase (c + left) % S,
/// and destination cell j position j / P of phase j % P; each phase of all axes is a block of its
/// own, and all blocks have the same pitches. What follows the end of an axis also precedes its
/// next beginning. Some items lie one behind the other.
template <class T>
class Flat {
 public:
  using W = Wide<T>;
  static constexpr int V = kLanes<T>;

  /// `buffers`: how many arrays are kept as the source is.
  Flat(const Plan& plan, int64_t items, int buffers)
      : n(plan.last().n),
        m(plan.last().m),
        plan_(plan),
        last_(plan.rank - 1),
        items_(items),
        buffers_(buffers) {
    if (plan.plain || plan.inner != 1 || items == 0) return;
    for (int a = last_; a >= 0; --a) {
      const Axis& axis = plan.axis[a];
      const Comb comb(axis, 1);
      if (!comb.fits || comb.P > kPhases || axis.n == 0) return;
      int64_t furthest = 0;
      for (int64_t q = 0; q < comb.P; ++q) {
        first_[a][q] = comb.first(q);
        width_[a][q] = comb.width(q);
        if (comb.width(q) > 0)
          furthest = most(furthest, (comb.first(q) + comb.left + comb.width(q) - 1) / comb.S);
      }
      const int64_t lead = comb.left / comb.S, size = most((axis.n - 1 + comb.left) / comb.S + 1,
                                                           comb.teeth + furthest - lead);
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

  /// Where each source row begins, with the neutral cells before it, and each destination row.
  void rows(int64_t* source, int64_t* dest) const {
    each([&](int a) { return plan_.axis[a].n; },
         [&](int64_t k, const int64_t* at) {
           source[k] = 0;
           for (int a = 0; a < last_; ++a)
             source[k] += (at[a] + lie_[a].left) / lie_[a].S * lie_[a].pitch +
                          (at[a] + lie_[a].left) % lie_[a].S * lie_[a].block * block;
         });
    each([&](int a) { return plan_.axis[a].m; },
         [&](int64_t k, const int64_t* at) {
           dest[k] = 0;
           for (int a = 0; a < last_; ++a)
             dest[k] += at[a] / lie_[a].P * lie_[a].pitch + at[a] % lie_[a].P * lie_[a].phase * run;
         });
  }
  /// The product of the lengths along all axes but the last, for each row of m or of n cells.
  template <class Cells, class Length>
  void products(Cells&& cells, Length&& length, int64_t* to) const {
    each([&](int a) { return cells(plan_.axis[a]); },
         [&](int64_t k, const int64_t* at) {
           to[k] = 1;
           for (int a = 0; a < last_; ++a) to[k] *= length(plan_.axis[a], at[a]);
         });
  }
  /// The distances of the taps of destination phase `number` along axes [a0, a1), in the order in
  /// which they are visited. Returns how many there are.
  int64_t distances(int64_t number, bool reversed, int a0, int a1, int64_t* to) const {
    int64_t first[kMaxRank], width[kMaxRank], at[kMaxRank] = {}, count = 1, k = 0;
    for (int a = a0; a < a1; ++a) {
      const int64_t q = number / lie_[a].phase % lie_[a].P;
      first[a] = first_[a][q] + lie_[a].left;
      count *= width[a] = width_[a][q];
    }
    for (; k < count; ++k) {
      to[k] = 0;
      for (int a = a0; a < a1; ++a)
        to[k] += (first[a] + at[a]) / lie_[a].S * lie_[a].pitch +
                 (first[a] + at[a]) % lie_[a].S * lie_[a].block * block;
      for (int i = 0; i < a1 - a0; ++i) {
        const int a = reversed ? a0 + i : a1 - 1 - i;
        if (++at[a] < width[a]) break;
        at[a] = 0;
      }
    }
    return count;
  }
  /// From where a destination cell of another plan lies, whose cells are this one's source, to
  /// where it is kept here.
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
      for (int a = 0; a <= last_; ++a)
        tap = tap * forward.width_[a][0] + code[a] - lie_[a].P * at[a];
      to[k] = static_cast<uint8_t>(tap);
      int a = last_;
      while (a >= 0 && ++at[a] == width[a]) at[a--] = 0;
    }
  }
  /// A copier of rows.
  Phases<T> copier(W neutral, const T* end) const {
    return Phases<T>(n, S(), lie_[last_].left, 0, neutral, end, block);
  }

  /// Whether another plan's destination, one cell a tooth, is this one's source, parted as its
  /// source is.
  bool answers(const Flat& forward) const {
    bool may = blocks == 1 && forward.phases == 1;
    for (int a = 0; may && a <= last_; ++a) may = lie_[a].P == forward.lie_[a].S;
    return may;
  }

  bool fits = false, cuts = false, odd_cuts = false;
  int64_t n, m;                    ///< cells of a source row, and of a destination row
  int64_t blocks = 1, phases = 1;  ///< of the source, and of the destination
  int64_t block = 0, run = 0;      ///< elements of one of those
  int64_t bytes = 0;               ///< of all of them
  int64_t reach = 0;               ///< how far the taps along the last axis are, in whole vectors
  int64_t item = 0,
          group = 1;  ///< elements of an item in a block; items that lie behind each other
  int64_t sources = 1, dests = 1, taps = 1;  ///< rows of an item, and the most taps of a window

 private:
  struct Lie {
    int64_t S, P, left, teeth, furthest, size, pitch;
    int64_t block, phase;  ///< how many of those the next phase of this axis is away
  };
  static constexpr int64_t kSome = 2048, kMost = 320 << 10, kPhases = 4;
  static int64_t strides(int64_t lanes) {
    return (lanes + kStride<T> - 1) / kStride<T> * kStride<T>;
  }
  static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
  static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

  void settle() {
    int64_t cells = 1, far = 0, end = 0;
    item = 1;
    fits = false;
    for (int a = last_; a >= 0; --a) {
      Lie& lie = lie_[a];
      if (lie.size > kMost / item) return;
      lie.pitch = item;
      item *= lie.size;
      cells *= lie.teeth;
      far += lie.furthest * lie.pitch;
      end += (lie.teeth - 1) * lie.pitch;
    }
    group = least(most(kSome / item, 1), items_);
    reach = Phases<T>::full(lie_[last_].furthest);
    run = strides((group - 1) * item + end + 1 + V);  // a row may be written to its last vector
    block = strides(most(group * item + V, run + far)) + reach;
    bytes = (blocks * block * buffers_ + phases * run) * static_cast<int64_t>(sizeof(W));
    fits = lie_[last_].teeth >= V && 2 * cells >= item && bytes <= kMost && taps > 0 &&
           sources + dests + taps * phases <= 1 << 13;
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
  Band(const Plan& whole, int64_t h, int64_t end)
      : from(whole.axis[0].start[h]),
        plan(strip(whole, h, end, 0)),
        start_(end - h),
        stop_(end - h) {
    Axis& axis = plan.axis[0];
    axis.n = axis.stop[axis.m - 1] - from;
    for (int64_t j = 0; j < axis.m; ++j)
      start_[j] = axis.start[j] - from, stop_[j] = axis.stop[j] - from;
    axis.start = start_.get();
    axis.stop = stop_.get();
    if (axis.count) axis.count += from;
  }
  const int64_t from;  ///< the first source cell
  Plan plan;

 private:
  Scratch<int64_t> start_, stop_;
};

/// Items of some arrays, or bands of them, that lie flat: the shape, where rows are, and how far
/// items are apart in the arrays.
template <class T>
struct Field {
  Field(const Plan& whole, const Plan& plan, int64_t items, int buffers)
      : flat(plan, items, buffers),
        source_item(whole.axis[0].n * whole.source_slab()),
        dest_item(whole.axis[0].m * whole.dest_slab()),
        source(flat.fits ? flat.sources : 0),
        dest(flat.fits ? flat.dests : 0) {
    if (flat.fits) flat.rows(source.get(), dest.get());
  }

  /// Items in groups: fill(item, shift) of each, make() of the group, then use(place in the result,
  /// row of the item, place, limit) for their rows. Up to the limit, what is written behind a row
  /// is written again.
  template <class Fill, class Make, class Use>
  void run(int64_t i0, int64_t i1, Fill&& fill, Make&& make, Use&& use) {
    for (int64_t i = i0; i < i1; i += flat.group) {
      const int64_t items = i + flat.group < i1 ? flat.group : i1 - i;
      checkpoint(meter(), flat.run * flat.phases * flat.taps);
      for (int64_t k = 0; k < items; ++k) fill(i + k, k * flat.item);
      make();
      for (int64_t k = 0; k < items; ++k) {
        const int64_t begin = (i + k) * dest_item, size = flat.dests * flat.m,
                      limit = size == dest_item ? i1 * dest_item : begin + size;
        for (int64_t u = 0; u < flat.dests; ++u)
          use(begin + u * flat.m, u, dest[u] + k * flat.item, limit);
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

/// Runs run(plan of a band, its first source cell, its first destination cell) for the bands of a
/// piece, until one refuses. Returns the first cell that is left. Long rows are left to others, and
/// what takes several bands if it is to be at once.
template <class T, class Run>
int64_t in_bands(const Plan& plan, Piece p, int buffers, bool at_once, Run&& run) {
  constexpr int64_t
      kBand = 128 << 10,
      kLongRow =
          256;  // bytes that stay near a core; cells for which a row is worth the trouble by itself
  const Axis& top = plan.axis[0];
  const int64_t cells = p.h1 - p.h0;
  if (plan.plain || plan.inner != 1 || cells == 0 || plan.last().m > kLongRow ||
      top.period > kLongRow || (plan.rank == 1 && cells < top.m))
    return p.h0;
  const int64_t bytes = (top.n * plan.source_slab() / top.m * buffers + plan.dest_slab()) *
                            static_cast<int64_t>(sizeof(Wide<T>)) +
                        1;
  const int64_t most = plan.rank == 1 ? cells : kBand / bytes + top.period,
                bands = (cells + most - 1) / most;
  if (at_once && bands > 1) return p.h0;
  const int64_t band = ((cells + bands - 1) / bands + top.period - 1) / top.period * top.period;
  for (int64_t h = p.h0; h < p.h1; h += band) {
    const Band part(plan, h, h + band < p.h1 ? h + band : p.h1);
    if (!run(part.plan, part.from, h)) return h;
  }
  return p.h1;
}

}  // namespace poolgrad::PG_ISA
