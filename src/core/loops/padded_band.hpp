// The padded band: if windows repeat along every axis, copy an item, or a band of its rows, among
// neutral cells and treat it as one long row. Each tap of all windows is then at one distance, and
// one loop over the long row computes everything:
//
//   item          padded, as one row (neutral cells are dots)
//   a b c         . a b c . d e f . g h i .
//   d e f    ->     ^-^-^ taps at +0, +1, +2; the next row of the window is +4 away
//   g h i
//
// An axis with stride S is split into S phases, and each phase of all axes becomes a block of its
// own.
#pragma once
#include "loops/regular_axis.hpp"
#include "loops/row_packer.hpp"
#include "runtime/scratch.hpp"

namespace poolgrad::PG_ISA {

/// Vectors that visit the taps together.
constexpr int kVectors = 4;
template <class T>
constexpr int64_t kBlockLanes = int64_t{kVectors} * kLanes<T>;

/// The cells of the padded copy. Along an axis, source cell c is position (c + pad_left) /
/// stride of phase (c + pad_left) % stride; destination cell j is position j / period of phase j %
/// period. Each phase of all axes is a block of its own; all blocks have the same pitches. The
/// neutral cells behind the end of an axis also precede its next beginning. A group of items lies
/// one behind the other.
template <class T>
class PaddedLayout {
 public:
  using W = Wide<T>;
  static constexpr int V = kLanes<T>;

  /// `buffers`: the number of arrays with the layout of the source.
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

  /// Take over the pitches of another layout if they are wider.
  void widen_to(const PaddedLayout& other) {
    if (!fits || !other.fits) return;
    for (int a = 0; a <= last_; ++a) axes_[a].size = most(axes_[a].size, other.axes_[a].size);
    compute_sizes();
  }

  int64_t stride() const { return axes_[last_].stride; }
  int64_t period() const { return axes_[last_].period; }

  /// Compute the offset of each source row, neutral cells before it included, and of each
  /// destination row.
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
  /// Compute, for each row, the product of the lengths along all axes but the last.
  template <class Cells, class Length>
  void products(Cells&& cells, Length&& length, int64_t* to) const {
    for_rows([&](int a) { return cells(plan_.axis[a]); },
             [&](int64_t k, const int64_t* at) {
               to[k] = 1;
               for (int a = 0; a < last_; ++a) to[k] *= length(plan_.axis[a], at[a]);
             });
  }
  /// Compute the distances of the taps of destination phase `number` along axes [a0, a1), in the
  /// order of visits. Return their number.
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
  /// Return the distance from the place of a destination cell of the forward layout to its place as
  /// a source cell of this one.
  int64_t shift() const {
    int64_t sum = 0;
    for (int a = 0; a <= last_; ++a) sum += axes_[a].pad_left / axes_[a].stride * axes_[a].pitch;
    return sum;
  }
  /// For a transposed plan: compute, for each of these distances, which tap of that window the cell
  /// is.
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
  /// Return a packer for source rows.
  RowPacker<T> packer(W neutral, const T* end) const {
    return RowPacker<T>(n, stride(), axes_[last_].pad_left, 0, neutral, end, block);
  }

  /// Return true if this is the transpose of `forward` with equal phases: the destination of
  /// `forward` is the source here.
  bool inverts(const PaddedLayout& forward) const {
    bool may = blocks == 1 && forward.phases == 1;
    for (int a = 0; may && a <= last_; ++a) may = axes_[a].period == forward.axes_[a].stride;
    return may;
  }

  bool fits = false, cuts = false, cuts_elsewhere = false;
  int64_t n, m;                    ///< cells of a source row, and of a destination row
  int64_t blocks = 1, phases = 1;  ///< phases of the source, and of the destination
  int64_t block = 0, run = 0;      ///< elements per phase of the source, and of the destination
  int64_t bytes = 0;               ///< bytes of all phases
  int64_t overhang = 0;            ///< the farthest tap along the last axis, in whole vectors
  int64_t item = 0,
          group = 1;  ///< elements of an item in a block; items per group
  int64_t sources = 1, dests = 1,
          taps = 1;  ///< source rows and destination rows of an item; the most taps of a window

 private:
  struct AxisLayout {
    int64_t stride, period, pad_left, cells_per_phase, furthest, size, pitch;
    int64_t block, phase;  ///< blocks, and phases, from one phase of this axis to the next
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
    run = block_lanes((group - 1) * item + end + 1 + V);  // rows are written in whole vectors
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
      width_[kMaxRank][kMaxPeriod];  ///< windows of each phase
};

/// The plan of destination cells [h, end) of the first axis and the source cells that they read.
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

/// The items of a call, or a band of their rows, in padded layout: the layout, where rows are, and
/// the distance between items in the arrays.
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

  /// Process items in groups: pack(item, shift) for each, reduce() for the group, then write(place
  /// in the result, row of the item, offset, limit) for each row. Memory up to the limit is written
  /// again later.
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
  /// Pack the source rows of an item.
  void pack_item(RowPacker<T>& packer, const T* x, int64_t i, Wide<T>* to) {
    x += i * source_item;
    for (int64_t r = 0; r < layout.sources; ++r, x += layout.n) packer.pack(x, to + source[r]);
  }

  PaddedLayout<T> layout;
  const int64_t source_item, dest_item;
  Scratch<int64_t> source, dest;
};

/// One band of a piece: destination cells [h, end) of the first axis.
template <class T>
struct BandOfPiece {
  BandOfPiece(const Plan& full_plan, Piece p, int64_t h, int64_t end, int buffers)
      : h0(h), part(full_plan, h, end), band(full_plan, part.plan, p.i1 - p.i0, buffers) {}

  const int64_t h0;    ///< the first destination cell
  BandPlan part;       ///< its plan, and its first source cell
  PaddedBand<T> band;  ///< its layout
};

}  // namespace poolgrad::PG_ISA
