// How items lie flat: where windows repeat along every axis, an item among neutral cells is one
// long row, in which each tap of all windows is at the same distance.
#pragma once
#include "loops/row_ring.hpp"

namespace poolgrad::PG_ISA {

/// Lanes that go through the taps together.
constexpr int kVectors = 4;
template <class T>
constexpr int64_t kBlockLanes = int64_t{kVectors} * kLanes<T>;

/// How items lie. Along an axis, source cell c is position (c + left) / S of phase (c + left) % S,
/// and destination cell j position j / P of phase j % P; each phase of all axes is a block of its
/// own, and all blocks have the same pitches. What follows the end of an axis also precedes its
/// next beginning. Some items lie one behind the other.
template <class T>
class PaddedLayout {
 public:
  using W = Wide<T>;
  static constexpr int V = kLanes<T>;

  /// `buffers`: how many arrays are kept as the source is.
  PaddedLayout(const Plan& plan, int64_t items, int buffers)
      : n(plan.last().n),
        m(plan.last().m),
        plan_(plan),
        last_(plan.rank - 1),
        items_(items),
        buffers_(buffers) {
    if (plan.plain || plan.inner != 1 || items == 0) return;
    for (int a = last_; a >= 0; --a) {
      const Axis& axis = plan.axis[a];
      const RegularAxis regular(axis, 1);
      if (!regular.fits || regular.period > kMaxPeriod || axis.n == 0) return;
      int64_t furthest = 0;
      for (int64_t q = 0; q < regular.period; ++q) {
        first_[a][q] = regular.first(q);
        width_[a][q] = regular.width(q);
        if (regular.width(q) > 0)
          furthest = most(furthest, (regular.first(q) + regular.pad_left + regular.width(q) - 1) /
                                        regular.stride);
      }
      const int64_t lead = regular.pad_left / regular.stride,
                    size = most((axis.n - 1 + regular.pad_left) / regular.stride + 1,
                                regular.cells_per_phase + furthest - lead);
      axes_[a] = {regular.stride,
                  regular.period,
                  regular.pad_left,
                  regular.cells_per_phase,
                  furthest,
                  size,
                  1,
                  blocks,
                  phases};
      blocks *= regular.stride;
      phases *= regular.period;
      cuts |= regular.cuts;
      cuts_elsewhere |= regular.cuts_elsewhere;
      taps *= axis.widest;
      if (a < last_) sources *= axis.n, dests *= axis.m;
    }
    compute_sizes();
  }

  /// Takes over the pitches of another plan where they are wider.
  void widen_to(const PaddedLayout& other) {
    if (!fits || !other.fits) return;
    for (int a = 0; a <= last_; ++a) axes_[a].size = most(axes_[a].size, other.axes_[a].size);
    compute_sizes();
  }

  int64_t stride() const { return axes_[last_].stride; }
  int64_t period() const { return axes_[last_].period; }

  /// Where each source row begins, with the neutral cells before it, and each destination row.
  void rows(int64_t* source, int64_t* dest) const {
    for_rows([&](int a) { return plan_.axis[a].n; },
             [&](int64_t k, const int64_t* at) {
               source[k] = 0;
               for (int a = 0; a < last_; ++a)
                 source[k] +=
                     (at[a] + axes_[a].pad_left) / axes_[a].stride * axes_[a].pitch +
                     (at[a] + axes_[a].pad_left) % axes_[a].stride * axes_[a].block * block;
             });
    for_rows([&](int a) { return plan_.axis[a].m; },
             [&](int64_t k, const int64_t* at) {
               dest[k] = 0;
               for (int a = 0; a < last_; ++a)
                 dest[k] += at[a] / axes_[a].period * axes_[a].pitch +
                            at[a] % axes_[a].period * axes_[a].phase * run;
             });
  }
  /// The product of the lengths along all axes but the last, for each row of m or of n cells.
  template <class Cells, class Length>
  void products(Cells&& cells, Length&& length, int64_t* to) const {
    for_rows([&](int a) { return cells(plan_.axis[a]); },
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
      const int64_t q = number / axes_[a].phase % axes_[a].period;
      first[a] = first_[a][q] + axes_[a].pad_left;
      count *= width[a] = width_[a][q];
    }
    for (; k < count; ++k) {
      to[k] = 0;
      for (int a = a0; a < a1; ++a)
        to[k] += (first[a] + at[a]) / axes_[a].stride * axes_[a].pitch +
                 (first[a] + at[a]) % axes_[a].stride * axes_[a].block * block;
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
    for (int a = 0; a <= last_; ++a) sum += axes_[a].pad_left / axes_[a].stride * axes_[a].pitch;
    return sum;
  }
  /// Of a transposed plan: for each of those distances, which tap of the window there the cell is.
  void tap_numbers(const PaddedLayout& forward, int64_t number, uint8_t* to) const {
    int64_t first_number[kMaxRank], width[kMaxRank], at[kMaxRank] = {}, count = 1;
    for (int a = 0; a <= last_; ++a) {
      const int64_t q = number / axes_[a].phase % axes_[a].period;
      first_number[a] = q - axes_[a].period * first_[a][q] - forward.first_[a][0];
      count *= width[a] = width_[a][q];
    }
    for (int64_t k = 0; k < count; ++k) {
      int64_t tap = 0;
      for (int a = 0; a <= last_; ++a)
        tap = tap * forward.width_[a][0] + first_number[a] - axes_[a].period * at[a];
      to[k] = static_cast<uint8_t>(tap);
      int a = last_;
      while (a >= 0 && ++at[a] == width[a]) at[a--] = 0;
    }
  }
  /// A copier of rows.
  RowPacker<T> packer(W neutral, const T* end) const {
    return RowPacker<T>(n, stride(), axes_[last_].pad_left, 0, neutral, end, block);
  }

  /// Whether another plan's destination, one cell a tooth, is this one's source, parted as its
  /// source is.
  bool inverts(const PaddedLayout& forward) const {
    bool may = blocks == 1 && forward.phases == 1;
    for (int a = 0; may && a <= last_; ++a) may = axes_[a].period == forward.axes_[a].stride;
    return may;
  }

  bool fits = false, cuts = false, cuts_elsewhere = false;
  int64_t n, m;                    ///< cells of a source row, and of a destination row
  int64_t blocks = 1, phases = 1;  ///< of the source, and of the destination
  int64_t block = 0, run = 0;      ///< elements of one of those
  int64_t bytes = 0;               ///< of all of them
  int64_t overhang = 0;            ///< how far the taps along the last axis are, in whole vectors
  int64_t item = 0,
          group = 1;  ///< elements of an item in a block; items that lie behind each other
  int64_t sources = 1, dests = 1, taps = 1;  ///< rows of an item, and the most taps of a window

 private:
  struct AxisLayout {
    int64_t stride, period, pad_left, cells_per_phase, furthest, size, pitch;
    int64_t block, phase;  ///< how many of those the next phase of this axis is away
  };
  static constexpr int64_t kGroupElements = 2048, kMaxBytes = 320 << 10, kMaxPeriod = 4;
  static int64_t block_lanes(int64_t lanes) {
    return (lanes + kBlockLanes<T> - 1) / kBlockLanes<T> * kBlockLanes<T>;
  }
  static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
  static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

  void compute_sizes() {
    int64_t cells = 1, furthest_tap = 0, end = 0;
    item = 1;
    fits = false;
    for (int a = last_; a >= 0; --a) {
      AxisLayout& axis = axes_[a];
      if (axis.size > kMaxBytes / item) return;
      axis.pitch = item;
      item *= axis.size;
      cells *= axis.cells_per_phase;
      furthest_tap += axis.furthest * axis.pitch;
      end += (axis.cells_per_phase - 1) * axis.pitch;
    }
    group = least(most(kGroupElements / item, 1), items_);
    overhang = RowPacker<T>::round_up(axes_[last_].furthest);
    run = block_lanes((group - 1) * item + end + 1 + V);  // a row may be written to its last vector
    block = block_lanes(most(group * item + V, run + furthest_tap)) + overhang;
    bytes = (blocks * block * buffers_ + phases * run) * static_cast<int64_t>(sizeof(W));
    fits = axes_[last_].cells_per_phase >= V && 2 * cells >= item && bytes <= kMaxBytes &&
           taps > 0 && sources + dests + taps * phases <= 1 << 13;
  }

  template <class Length, class F>
  void for_rows(Length&& length, F&& f) const {
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
  AxisLayout axes_[kMaxRank];
  int64_t first_[kMaxRank][kMaxPeriod],
      width_[kMaxRank][kMaxPeriod];  ///< of the windows of each phase
};

/// Cells [h, end) of the first axis as a plan of their own, for the source cells that they read.
class BandPlan {
 public:
  BandPlan(const Plan& full_plan, int64_t h, int64_t end)
      : from(full_plan.axis[0].start[h]),
        plan(strip(full_plan, h, end, 0)),
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
struct PaddedBand {
  PaddedBand(const Plan& full_plan, const Plan& plan, int64_t items, int buffers)
      : layout(plan, items, buffers),
        source_item(full_plan.axis[0].n * full_plan.source_slab()),
        dest_item(full_plan.axis[0].m * full_plan.dest_slab()),
        source(layout.fits ? layout.sources : 0),
        dest(layout.fits ? layout.dests : 0) {
    if (layout.fits) layout.rows(source.get(), dest.get());
  }

  /// Items in groups: fill(item, shift) of each, make() of the group, then use(place in the result,
  /// row of the item, place, limit) for their rows. Up to the limit, what is written behind a row
  /// is written again.
  template <class Pack, class Reduce, class Write>
  void run(int64_t i0, int64_t i1, Pack&& pack, Reduce&& reduce, Write&& write) {
    for (int64_t i = i0; i < i1; i += layout.group) {
      const int64_t items = i + layout.group < i1 ? layout.group : i1 - i;
      checkpoint(step_budget(), layout.run * layout.phases * layout.taps);
      for (int64_t k = 0; k < items; ++k) pack(i + k, k * layout.item);
      reduce();
      for (int64_t k = 0; k < items; ++k) {
        const int64_t begin = (i + k) * dest_item, size = layout.dests * layout.m,
                      limit = size == dest_item ? i1 * dest_item : begin + size;
        for (int64_t u = 0; u < layout.dests; ++u)
          write(begin + u * layout.m, u, dest[u] + k * layout.item, limit);
      }
    }
  }
  /// Copies the source rows of an item.
  void pack_item(RowPacker<T>& packer, const T* x, int64_t i, Wide<T>* to) {
    x += i * source_item;
    for (int64_t r = 0; r < layout.sources; ++r, x += layout.n) packer.pack(x, to + source[r]);
  }

  PaddedLayout<T> layout;
  const int64_t source_item, dest_item;
  Scratch<int64_t> source, dest;
};

/// Runs run(plan of a band, its first source cell, its first destination cell) for the bands of a
/// piece, until one refuses. Returns the first cell that is left. Long rows are left to others, and
/// what takes several bands if it is to be at once.
template <class T, class Run>
int64_t for_bands(const Plan& plan, Piece p, int buffers, bool one_band, Run&& run) {
  constexpr int64_t
      kBandBytes = 128 << 10,
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
  const int64_t most = plan.rank == 1 ? cells : kBandBytes / bytes + top.period,
                bands = (cells + most - 1) / most;
  if (one_band && bands > 1) return p.h0;
  const int64_t height = ((cells + bands - 1) / bands + top.period - 1) / top.period * top.period;
  for (int64_t h = p.h0; h < p.h1; h += height) {
    const BandPlan part(plan, h, h + height < p.h1 ? h + height : p.h1);
    if (!run(part.plan, part.from, h)) return h;
  }
  return p.h1;
}

}  // namespace poolgrad::PG_ISA
