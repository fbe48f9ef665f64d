// When a schedule pays, and how large its tiles are. verbs/schedules.hpp puts these conditions into
// order. runtime/caches.hpp has the limits in bytes. The geometry classes (PaddedRow, RouteAxes,
// RegularAxis) tell if they can run a plan at all.
#pragma once
#include "loops/taps.hpp"
#include "runtime/caches.hpp"

namespace poolgrad::PG_ISA {

/// True for types that have the row schedules (row_band, global). They are not worth their code
/// size with 16-byte vectors: x86-64-v2 and arm64.
template <class T>
constexpr bool has_row_schedules = is_real<T> && (kBytes > 16);

/// True for the types whose taps and gradients run by row bands: with AVX2 float32 alone, for their
/// code size.
template <class T>
constexpr bool has_tap_bands = has_row_schedules<T> && (kBytes == 64 || std::is_same_v<T, float>);

/// Return a plan with one more axis in front, which has one cell.
inline Plan with_unit_axis(const Plan& plan) {
  static constexpr int64_t zero = 0, one = 1;
  static constexpr uint8_t whole_block = 1;
  Plan p = plan;
  for (int a = p.rank++; a > 0; --a) p.axis[a] = plan.axis[a - 1];
  Axis& unit = p.axis[0] = {};
  unit.n = unit.m = unit.widest = 1;
  unit.start = &zero;
  unit.stop = &one;
  if (plan.axis[0].count) unit.count = &one, unit.base = &zero;
  unit.whole = {1, 1, 1, 0, true};
  unit.blocks = &whole_block;
  return p;
}

/// Return a one-axis plan as a two-axis plan whose first axis has one cell.
inline Plan two_axes(const Plan& plan) { return plan.rank > 1 ? plan : with_unit_axis(plan); }

/// Return the most taps of a window.
inline int64_t most_taps(const Plan& plan) {
  return SourceRows::capacity(plan) * plan.last().widest;
}

/// Return true if some window in [j0, j1) is empty.
inline bool has_empty_window(const Axis& axis, int64_t j0, int64_t j1) {
  for (int64_t j = j0; j < j1; ++j)
    if (axis.length(j) == 0) return true;
  return false;
}
inline bool has_empty_window(const Axis& axis) { return has_empty_window(axis, 0, axis.m); }

/// Return true if some window reads no rows; the neutral cells along the last axis would count as
/// its padding.
[[gnu::noinline]] inline bool some_window_has_no_rows(const Plan& plan) {
  for (int a = 0; a + 1 < plan.rank; ++a)
    if (has_empty_window(plan.axis[a])) return true;
  return false;
}

/// Return true if every window has more than kLongSum cells.
[[gnu::noinline]] inline bool all_windows_long(const Plan& plan) {
  int64_t least = 1;
  for (int a = 0; a < plan.rank; ++a) {
    int64_t shortest = plan.axis[a].n;
    for (int64_t j = 0; j < plan.axis[a].m; j = plan.axis[a].next_other(j))
      shortest = plan.axis[a].length(j) < shortest ? plan.axis[a].length(j) : shortest;
    least *= shortest;
  }
  return least > kLongSum;
}

// ---- streaming stores

/// Return true if a result exceeds the streaming threshold.
template <class T>
[[gnu::noinline]] bool exceeds_cache(const Plan& plan) {
  return plan.outer * plan.axis[0].m * plan.dest_slab() * static_cast<int64_t>(sizeof(T)) >=
         stream_threshold.load(std::memory_order_relaxed);
}

/// Return true if streaming pays: the result is large, and windows are so small that writing is
/// most of the work.
template <class T>
[[gnu::noinline]] bool worth_streaming(const Plan& plan) {
  return exceeds_cache<T>(plan) && most_taps(plan) <= 4;
}

// ---- transposed tiles

/// Return the number of images per tile; 1 if inner elements fill vectors, or images are too few.
template <class T>
int64_t images_per_tile(const Plan& plan, int64_t items) {
  if (plan.plain || plan.only == Schedule::direct || plan.inner >= kLanes<T> || items < kLanes<T>)
    return 1;
  const int64_t most = 4 * kLanes<T> / plan.inner;
  return items < most ? (items + kLanes<T> - 1) / kLanes<T> * kLanes<T> : most;
}

/// Return the destination cells of the first axis per tile.
template <class T>
int64_t rows_per_tile(const Plan& plan, int64_t group, int arrays) {
  const Axis& axis = plan.axis[0];
  const int64_t slab = plan.source_slab() + plan.dest_slab();
  const int64_t slabs =
      kTileBytes / (slab * group * arrays * static_cast<int64_t>(sizeof(T)) / 2 + 1);
  const int64_t ratio = axis.n > axis.m ? (axis.n + axis.m - 1) / (axis.m ? axis.m : 1) : 1;
  const int64_t cells = (slabs - axis.widest) / ratio;
  const int64_t least = axis.widest < 4 ? 4 : axis.widest;
  return cells < least ? least : cells;
}

/// Return the time of a transposed tile, compared with one on a processor that shuffles two vectors
/// per cycle: half of it and more is transposition.
inline double tile_price() {
  return shuffles_per_cycle.load(std::memory_order_relaxed) == 1 ? 1.4 : 1;
}

// ---- sliding

/// One sliding step costs as much as this many visits to a cell: for sums, and for maxima. The one
/// for sums settles their order, so it is the same on every machine.
constexpr double kSlidingSum = 16, kSlidingMax = 12;

/// The same for plans with one inner element, if the other schedules fill vectors with cells of a
/// row or of several images: for keys of maxima and positions, and for gradients to cells near a
/// maximum, which slide first and then look at cells one by one.
constexpr double kSlidingKeys = 24, kSlidingNear = 96;

/// Return true if sliding is possible and saves work: one step of it costs as much as `step` visits
/// to a cell. Sums depend on this: all instruction sets, every batch and all parts of an array
/// decide alike, by the lengths and windows of the whole axes. Axes that are not pooled cost
/// nothing in both ways.
[[gnu::noinline]] inline bool worth_sliding(const Plan& plan, double step) {
  double visits = 1, passes = 0, read = 1, left = 1, written = 1;
  if (plan.outer * plan.inner == 0) return false;
  for (int k = 0; k < plan.rank; ++k) {
    const Whole& whole = plan.axis[k].whole;
    if (!plan.axis[k].blocks) return false;
    if (whole.pooled()) written = left *= static_cast<double>(whole.m);
  }
  for (int k = 0; k < plan.rank; ++k) {
    const Whole& whole = plan.axis[k].whole;
    if (!whole.pooled()) continue;
    visits *= static_cast<double>(whole.m * whole.widest);
    read *= static_cast<double>(whole.n);
    left /= static_cast<double>(whole.m);
    passes += read * left;
  }
  return passes > 0 && visits > step * (passes > written ? passes : written);
}

/// Return true if rows fill vectors by themselves; shorter rows use transposed tiles.
inline bool long_rows(const Plan& plan) { return plan.last().m * plan.inner >= 64; }

/// Return true to slide over maxima. A plan that is bound to sliding does not ask if it pays.
/// `one`: the cost of a step with one inner element, if windows repeat or images fill a tile.
[[gnu::noinline]] inline bool slides_over_maxima(const Plan& plan, double one = kSlidingMax) {
  const Axis& last = plan.last();
  constexpr int64_t kImages = 16;
  const bool fills = 2 * (last.hi - last.lo) > last.m || plan.outer >= kImages;
  const double step = plan.inner == 1 && fills ? one : kSlidingMax;
  return !plan.plain && worth_sliding(plan, plan.only == Schedule::sliding ? 0 : step);
}
[[gnu::noinline]] inline bool slides_over_keys(const Plan& plan) {
  return slides_over_maxima(plan, kSlidingKeys) && plan.axis[0].n * plan.source_slab() < int64_t{1}
                                                                                             << 32;
}

// ---- windows along the rows

/// Return true if one window covers the axis.
inline bool is_covered(const Axis& axis) { return axis.m == 1 && axis.length(0) == axis.n; }

/// Return true if windows along a row are so far apart that neighbours share no vectors.
inline bool lie_apart(const Axis& axis) { return axis.n >= 16 * axis.m; }

/// Find the rows of windows that lie one after the other: the axis along which windows follow each
/// other, and the elements of a run per cell of it.
struct RunsAlong {
  int axis;
  int64_t run;
  bool covered;  ///< windows cover all axes behind `axis`, and perhaps that one

  explicit RunsAlong(const Plan& plan) : axis(plan.rank - 1), run(plan.inner) {
    for (; axis > 0 && is_covered(plan.axis[axis]); --axis) run *= plan.axis[axis].n;
    covered = axis + 1 < plan.rank || is_covered(plan.axis[axis]);
  }
};

/// Return true if an edge cut some window.
[[gnu::noinline]] inline bool cuts_windows(const Plan& plan) {
  for (int k = 0; k < plan.rank; ++k) {
    const Axis& axis = plan.axis[k];
    for (int64_t j = 0; axis.span && j < axis.m; j = axis.next_other(j))
      if (axis.span[j] != axis.length(j)) return true;
  }
  return false;
}

/// Return true if the cells of a window's rows fill vectors of `lanes`, and neighbouring windows do
/// not.
[[gnu::noinline]] inline bool select_runs_along(const Plan& plan, int lanes) {
  if (plan.plain || plan.inner >= lanes) return false;
  const RunsAlong runs(plan);
  const Axis& axis = plan.axis[runs.axis];
  if (!runs.covered && !lie_apart(axis)) return false;
  if (plan.inner > 1)  // tiles of many small images cost less than to join the lanes of each
    return runs.run * axis.widest >= (runs.covered && plan.outer >= lanes ? 16 : 1) * lanes;
  int64_t shortest = axis.n;
  for (int64_t j = 0; j < axis.m; j = axis.next_other(j))
    shortest = axis.length(j) < shortest ? axis.length(j) : shortest;
  return runs.run * shortest >= lanes;
}

/// Return true if a call for the best cells can take the along loop, which also minds NaN.
[[gnu::noinline]] inline bool best_runs_along(const Plan& plan, int lanes) {
  return (plan.only == kAnySchedule || plan.only == Schedule::along) && plan.inner == 1 &&
         select_runs_along(plan, lanes) && !cuts_windows(plan);
}

/// Return true to sum long windows along their rows. With many inner elements the partial sums of a
/// window fill a cache; then it pays for rows that visit each of them several times.
template <class T>
[[gnu::noinline]] bool fold_runs_along(const Plan& plan) {
  constexpr int64_t kMostInner = 512, kManyColumns = 64;
  const int64_t columns = plan.last().widest;
  return !plan.plain && lie_apart(plan.last()) &&
         (plan.inner < kLanes<T> ? columns * plan.inner >= 16
                                 : columns >= kManyColumns && plan.inner <= kMostInner) &&
         all_windows_long(plan);
}

// ---- global windows

/// Return the cells of the one window that covers everything if a transposed plan has such a
/// window, else 0.
[[gnu::noinline]] inline int64_t global_window_count(const Plan& transposed) {
  if (transposed.plain || transposed.inner != 1) return 0;
  int64_t count = 1;
  for (int k = 0; k < transposed.rank; ++k) {
    const Axis& axis = transposed.axis[k];
    if (axis.n != 1) return 0;
    count *= axis.count[0];
    for (int64_t j = 0; j < axis.m; ++j)
      if (axis.length(j) != 1) return 0;
  }
  return count;
}

// ---- rows

/// Return true if the destination cells of each phase of a row fill a vector, as the row schedules
/// need. This is cheap, and spares short rows the check of every window.
PG_INLINE bool fills_vector(const Axis& last, int lanes) {
  return last.m > (lanes - 1) * last.period;
}

// ---- row bands

/// The most taps of a window that a band lists: the lists of its rows are scratch memory, too.
constexpr int64_t kMostListedTaps = 256;

/// Return true if some window had more cells than `most` before edges cut it.
[[gnu::noinline]] inline bool spans_more_than(const Plan& plan, int64_t most) {
  int64_t cells = 1;
  for (int k = 0; k < plan.rank; ++k) {
    const Axis& axis = plan.axis[k];
    int64_t longest = 1;
    for (int64_t j = 0; j < axis.m; j = axis.next_other(j)) {
      const int64_t span = axis.span ? axis.span[j] : axis.length(j);
      longest = span > longest ? span : longest;
    }
    if (longest > most / cells) return true;
    cells *= longest;
  }
  return false;
}

/// Return true if row bands may fit: rows are complete, not too long, and windows read some. Cells
/// of a gradient may be under no window.
[[gnu::noinline]] inline bool may_band(const Plan& plan, Piece p) {
  const bool entire = plan.rank > 1 || (p.h0 == 0 && p.h1 == plan.axis[0].m);
  const Axis& last = plan.last();
  return entire && !plan.plain && plan.inner == 1 && last.step <= 3 && last.period <= 3 &&
         last.n <= kPaddedRowBytes / 4 && SourceRows::capacity(plan) > 0 &&
         plan.rows_per_slab() * SourceRows::capacity(plan) <= 1 << 15 &&
         (last.count || !some_window_has_no_rows(plan));
}

/// Return true if joining source rows and running along them costs less than sliding. Rows take
/// whole vectors of cells, and those of less than one cost half as much again.
[[gnu::noinline]] inline bool joins_rather_than_slides(const Plan& plan, int lanes) {
  double rows = 1, passes = 0, read = 1, left = 1;
  for (int k = 0; k < plan.rank; ++k) left *= static_cast<double>(plan.axis[k].m);
  const double written = left;
  for (int k = 0; k < plan.rank; ++k) {
    const Axis& axis = plan.axis[k];
    if (k + 1 < plan.rank) rows *= static_cast<double>(axis.m);
    read *= static_cast<double>(axis.n);
    left /= static_cast<double>(axis.m ? axis.m : 1);
    passes += read * left;
  }
  const Axis& last = plan.last();
  const auto padded = [&](int64_t n) { return (n + lanes - 1) / lanes * lanes; };
  const double visits = rows * static_cast<double>(SourceRows::capacity(plan) * padded(last.n) +
                                                   padded(last.m) * last.widest);
  return visits * (last.n < lanes ? 1.5 : 1) <= kSlidingMax * (passes > written ? passes : written);
}

/// Return true if visiting the taps of windows along rows costs less than to transpose several
/// images and to visit them there. The unit is the visit of a vector to a tap.
///
/// - A row of a band takes 8 units, each of its vectors 3 and its taps: one load, or several loads
///   and shuffles if the stride is above 1. Rows among neutral cells are copied.
/// - A tile fills its vectors unless images are left over. It takes 3.2 units per vector of the
///   rows that windows read, and more if its images are so large that their rows lie in many pages;
///   6 per vector of its results; and its taps come from the second cache. Processors that shuffle
///   less take longer.
template <class T>
[[gnu::noinline]] bool bands_rather_than_tiles(const Plan& plan, int64_t items, int sources,
                                               int results) {
  const int64_t group = images_per_tile<T>(plan, items);
  if (group == 1 || plan.only == Schedule::row_band) return true;
  constexpr int64_t kLargeImage = 32 << 10;
  constexpr int V = kLanes<T>;
  const Axis& last = plan.last();
  const auto vectors = [](int64_t n) { return static_cast<double>((n + V - 1) / V); };
  const int64_t image = plan.axis[0].n * plan.source_slab(),
                written = plan.axis[0].m * plan.dest_slab();
  double rows_read = 1;
  for (int k = 0; k + 1 < plan.rank; ++k) {
    const Axis& axis = plan.axis[k];
    rows_read *= static_cast<double>(axis.m * axis.widest < axis.n ? axis.m * axis.widest : axis.n);
  }
  const double read = rows_read * static_cast<double>(last.n),
               rows = static_cast<double>(plan.rows_per_item()),
               taps = static_cast<double>(most_taps(plan) * sources),
               copied = cuts_windows(plan) ? rows_read : 0;
  const double phases = static_cast<double>(last.period),
               filling = phases * vectors((last.m + last.period - 1) / last.period);
  const double band = rows * (8 + filling * (3 + (last.step > 1 ? 2 : 1) * taps)) +
                      copied * vectors(last.n) * 3 * sources;
  const bool large = image * static_cast<int64_t>(sizeof(T)) > kLargeImage;
  const double tile = static_cast<double>(written) / V * (6 * results + 1.15 * taps) +
                      read * sources / V * (large ? 10 : 3.2);
  const double filled =
      static_cast<double>((items + group - 1) / group * group) / static_cast<double>(items);
  return band <= tile * filled * tile_price();
}

/// Return true if row bands pay for means and their gradients. `fills`: rows fill a vector. Shorter
/// ones pay beside tiles alone. The direct loop also runs along the rows of one-axis plans, without
/// a list of divisors or weights of all columns. There bands pay if cells have several phases,
/// which it visits one by one, and rows share the list.
template <class T>
bool means_pay(const Plan& plan, int64_t items, bool fills) {
  constexpr int64_t kFew = 4;
  if (plan.rank == 1) return fills && plan.axis[0].period > 1 && items >= kFew;
  return (fills || images_per_tile<T>(plan, items) > 1) &&
         bands_rather_than_tiles<T>(plan, items, 1, 1);
}

/// Return true if windows are so many, compared with cells, that gathering is as fast as
/// scattering.
inline bool windows_are_dense(const Plan& plan) {
  return 2 * plan.axis[0].m * plan.dest_slab() > plan.axis[0].n * plan.source_slab();
}

/// Return true if scattering costs less than gathering in tiles. Halves convert the sum at every
/// addition: that takes as long as 14 visits of gathering to a tap, 16 for bfloat16, and a tile as
/// long as 1.5 per cell.
template <class T>
bool scattering_pays(const Plan& plan) {
  if (windows_are_dense(plan)) return false;
  const double windows = static_cast<double>(plan.axis[0].m * plan.dest_slab()),
               cells = static_cast<double>(plan.axis[0].n * plan.source_slab()),
               addition = std::is_same_v<T, f16> ? 14 : 16;
  return !is_half<T> || 2 * windows * (addition - static_cast<double>(most_taps(plan))) <=
                            3 * tile_price() * cells;
}

/// Return true if gradients of maxima run along rows rather than in tiles of images: windows are
/// dense, and a tile of complete images exceeds its bytes, or a third of them where shuffles are
/// slow. Half types pay for converting each gradient, which only slow shuffles outweigh.
template <class T>
bool rows_rather_than_tiles(const Plan& plan) {
  const bool slow = shuffles_per_cycle.load(std::memory_order_relaxed) == 1;
  const int64_t tile =
      plan.axis[0].n * plan.source_slab() * kLanes<T> * static_cast<int64_t>(sizeof(T));
  return windows_are_dense(plan) &&
         (slow || !is_half<T>)&&tile > (slow && !is_half<T> ? kTileBytes / 3 : kTileBytes);
}

// ---- weighed gradients

/// Count the rows of g that are weighed together.
template <class T>
int64_t weighed_rows(const Plan& plan) {
  return kTileBytes / (plan.source_slab() * static_cast<int64_t>(sizeof(T)) + 1);
}
template <class T>
bool weighed_rows_fit(const Plan& plan) {
  return !plan.plain && weighed_rows<T>(plan) >= 2 * plan.axis[0].widest;
}

// ---- taps

/// The most taps of a window that vectors compare with each cell.
constexpr int64_t kMostComparedTaps = 32;

/// Return true if vectors compare all cells of a window faster than single taps are followed.
inline bool compares_taps(const Plan& plan) {
  return !follows_single_taps(plan) && most_taps(plan) <= kMostComparedTaps;
}

/// Return true if taps need more than a byte.
inline bool needs_wide_taps(const Plan& plan) { return most_taps(plan) > 256; }

/// The most covering windows that gathering compares with a cell.
constexpr int kMaxCovering = 32;

/// Return true if gathering is possible: taps fit a byte, and few windows cover a cell.
[[gnu::noinline]] inline bool can_gather(const Plan& plan, const Plan& transposed) {
  return !plan.plain && most_taps(plan) <= 255 && most_taps(transposed) <= kMaxCovering;
}

/// Return true if taps are given that gathering can read.
inline bool can_gather_given(const Plan& plan, const Plan& transposed) {
  return can_gather(plan, transposed) && !follows_single_taps(plan);
}

/// Return true for half types if more than two windows may share a cell: then it matters when sums
/// are rounded.
template <class T>
bool may_share_cells(const Plan& transposed) {
  return is_half<T> && most_taps(transposed) > 2;
}

/// Return how many images to search for taps before following these: a multiple of the vector
/// length, 0 if taps are none or too many.
template <class T>
int64_t images_per_search(const Plan& plan) {
  constexpr int64_t kMost = 4096;
  const int64_t taps = plan.axis[0].m * plan.dest_slab(),
                some = kFoundTapBytes / (taps * (needs_wide_taps(plan) ? 4 : 1) + 1);
  return taps && plan.inner < kLanes<T> && !plan.plain
             ? (some < kMost ? some : kMost) / kLanes<T> * kLanes<T>
             : 0;
}

}  // namespace poolgrad::PG_ISA
