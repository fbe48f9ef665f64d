// The tables of schedules: for each verb, ordered rows {name, when, run}. The first row whose
// `when` holds runs; the last row of a table always does.
//
// A row's `when` may derive the geometry that its `run` needs, so that no call derives it twice.
// The choice depends on the plan, the rule and the dtype, and on the piece that a task computes:
// how many items it has, and whether it covers them completely.
#pragma once
#include <optional>
#include <utility>

#include "plan/schedule.hpp"
#include "verbs/by_along.hpp"
#include "verbs/by_row_band.hpp"
#include "verbs/indices.hpp"
#include "verbs/mean_sliding.hpp"
#include "verbs/near.hpp"
#include "verbs/near_sliding.hpp"
#include "verbs/route_by_row_band.hpp"

namespace poolgrad::PG_ISA {

/// Return the number of a type.
template <class T>
constexpr Dtype dtype_of() {
  constexpr bool same[] = {
      std::is_same_v<T, f16>,      std::is_same_v<T, bf16>,     std::is_same_v<T, float>,
      std::is_same_v<T, double>,   std::is_same_v<T, int8_t>,   std::is_same_v<T, uint8_t>,
      std::is_same_v<T, int16_t>,  std::is_same_v<T, uint16_t>, std::is_same_v<T, int32_t>,
      std::is_same_v<T, uint32_t>, std::is_same_v<T, int64_t>,  std::is_same_v<T, uint64_t>};
  int number = 0;
  while (!same[number]) ++number;
  return Dtype(number);
}

/// The row that a table chose before, for calls that compute a plan at once.
struct KnownRow {
  std::atomic<uint8_t>* slot = nullptr;
  int first = 0;  ///< the rows before it did not fit

  void remember(int row) const {
    if (slot && first < row) slot->store(static_cast<uint8_t>(row), std::memory_order_relaxed);
  }
};

/// Find the row that runs a call, if its plan knows it. The rows before it are not asked again; its
/// own `when` derives its geometry.
template <class Call>
PG_INLINE KnownRow known_row(const Call& call) {
  const Plan& over = call.over();
  const Piece p = call.piece;
  if (p.i0 != 0 || p.h0 != 0 || p.i1 != over.outer || p.h1 != over.axis[0].m || !over.chosen)
    return {};
  std::atomic<uint8_t>* const slot = over.chosen + call.choice();
  return {slot, slot->load(std::memory_order_relaxed)};
}

/// A table of rows.
template <class... Rows>
struct ScheduleTable {
  using Indices = std::index_sequence_for<Rows...>;

  /// True if some row derives geometry, which takes longer than to remember the choice.
  static constexpr bool remembers = ((Rows::exists && !std::is_empty_v<Rows>) || ...);

  /// Run a call; this moves the start of its piece. A row returns the first cell of the first axis
  /// that it leaves to the rows below it.
  template <class Call>
  static void run(Call& call) {
    run_rows(call, remembers ? known_row(call) : KnownRow{}, Indices{});
  }
  /// Return the schedule that runs a call, or the first part of it.
  template <class Call>
  [[gnu::noinline, gnu::cold]] static Schedule choose(const Call& call) {
    return choose_row(call, Indices{});
  }
  /// The schedules of the rows, a bit for each.
  static constexpr uint32_t names() { return (names_of<Rows>() | ...); }

 private:
  template <class Call, size_t... I>
  PG_INLINE static void run_rows(Call& call, const KnownRow& known, std::index_sequence<I...>) {
    static_cast<void>(
        (run_row<Rows, static_cast<int>(I), I + 1 == sizeof...(I)>(call, known) || ...));
  }
  template <class Call, size_t... I>
  PG_INLINE static Schedule choose_row(const Call& call, std::index_sequence<I...>) {
    Schedule found = Schedule::direct;
    static_cast<void>((takes<Rows, I + 1 == sizeof...(I)>(call, found) || ...));
    return found;
  }
  /// Return true if a plan is bound to another schedule. The last row runs what the bound one
  /// leaves over.
  template <class Row, bool Last>
  PG_INLINE static bool is_barred(const Plan& plan) {
    return !Last && !Row::settles_bits && plan.only != kAnySchedule && plan.only != Row::name;
  }
  template <class Row, int Index, bool Last, class Call>
  PG_INLINE static bool run_row(Call& call, const KnownRow& known) {
    if constexpr (!Row::exists || Row::runs_below) {
      return false;
    } else {
      if (Index < known.first || is_barred<Row, Last>(call.plan)) return false;
      if constexpr (std::is_empty_v<Row>) return try_row<Row, Index>(call, known);
      else return try_alone<Row, Index>(call, known);
    }
  }
  template <class Row, int Index, class Call>
  PG_INLINE static bool try_row(Call& call, const KnownRow& known) {
    Row row;
    if (!row.when(call)) return false;
    known.remember(Index);
    call.piece.h0 = row.run(call);
    return call.piece.h0 == call.piece.h1;
  }
  /// Try a row in a stack frame of its own: the geometry is large, and the rows below need the
  /// cache.
  template <class Row, int Index, class Call>
  [[gnu::noinline]] static bool try_alone(Call& call, const KnownRow& known) {
    return try_row<Row, Index>(call, known);
  }
  template <class Row, bool Last, class Call>
  PG_INLINE static bool takes(const Call& call, Schedule& found) {
    if constexpr (Row::exists) {
      if (is_barred<Row, Last>(call.plan)) return false;
      found = Row::name;
      Row row;
      return row.when(call);
    } else {
      return false;
    }
  }
  template <class Row>
  static constexpr uint32_t names_of() {
    return Row::exists ? uint32_t{1} << static_cast<int>(Row::name) : 0;
  }
};

/// The base of a row: its name, true if the row exists for a type, and true if the row below it
/// runs its calls. A row that settles bits runs its calls whatever a plan is bound to: the order of
/// its sums is part of the result.
template <Schedule Name, bool Exists = true, bool RunsBelow = false>
struct PlainRow {
  static constexpr Schedule name = Name;
  static constexpr bool exists = Exists, runs_below = RunsBelow, settles_bits = false;
};

/// The base of verbs over row bands: true if the verb exists for a type, if it reads copies of rows
/// by phase, and if its windows are those of a transposed plan.
template <bool Exists, bool Splits = false, bool Gathers = false>
struct BandedVerb {
  static constexpr bool exists = Exists, splits = Splits, gathers = Gathers;
};

/// The row of a table for bands of padded rows. V says which plans fit its verb, and computes it.
template <class T, class V>
struct BandSchedule : PlainRow<Schedule::row_band, has_row_schedules<T> && V::exists> {
  template <class Call>
  [[gnu::noinline]] bool when(const Call& c) {
    if (!V::allows(c) || !may_band(c.plan, c.piece)) return false;
    padded.emplace(c.plan, c.piece, kLanes<T>, V::splits);
    return padded->fits && (V::gathers || padded->regular.period == 1) && V::fits(c, *padded);
  }
  template <class Call>
  int64_t run(const Call& c) {
    V::run(c, *padded);
    return c.piece.h1;
  }

 private:
  std::optional<PaddedRow> padded;
};

/// A row for calls whose images are computed side by side. The direct row below it runs them: its
/// loop cuts the piece into tiles.
template <class T>
struct ImageTileRow : PlainRow<Schedule::transposed_tile, true, true> {
  template <class Call>
  bool when(const Call& c) {
    return images_per_tile<T>(c.plan, c.piece.i1 - c.piece.i0) > 1;
  }
};

// ---- fold

template <class T>
struct FoldCall {
  const Plan& plan;
  RowArrays<T, 1, 0> arrays;
  Mean mean;
  Piece piece;

  const Plan& over() const { return plan; }
  int choice() const { return choice_of(Verb::fold, dtype_of<T>(), static_cast<int>(mean)); }
};

template <class T>
struct FoldSliding : PlainRow<Schedule::sliding, is_real<T>> {
  static constexpr bool settles_bits = true;
  bool when(const FoldCall<T>& c) {
    return c.mean != Mean::strict && worth_sliding(c.plan, kSlidingSum);
  }
  int64_t run(const FoldCall<T>& c) {
    fold_sliding<T>(c.plan, c.arrays, c.mean, c.piece);
    return c.piece.h1;
  }
};

template <class T>
struct FoldAlong : PlainRow<Schedule::along, is_real<T>> {
  bool when(const FoldCall<T>& c) { return sums_by_columns(c.mean) && fold_runs_along<T>(c.plan); }
  int64_t run(const FoldCall<T>& c) {
    fold_along<T>(c.plan, c.arrays, c.mean, c.piece);
    return c.piece.h1;
  }
};

/// Return true if rows fill the vectors of fold, or lack little and are read where they are.
template <class T>
bool fills_fold_bands(const PaddedRow& row) {
  const Axis& last = row.plan.last();
  return fills_vector(last, kLanes<T>) ||
         (kKnowsWidths<T> && row.inside && last.widest <= 3 && row.cells * 4 >= 3 * kLanes<T>);
}

template <class T>
struct FoldByBand : BandedVerb<true, true> {
  static bool allows(const FoldCall<T>& c) {
    return !rounds_once<T>(c.mean) && most_taps(c.plan) <= kLongSum;
  }
  static bool fits(const FoldCall<T>& c, const PaddedRow& row) {
    if (c.mean == Mean::spanned && spans_more_than(c.plan, static_cast<int64_t>(kExactCount)))
      return false;
    return c.plan.only == Schedule::row_band ||
           means_pay<T>(c.plan, c.piece.i1 - c.piece.i0, fills_fold_bands<T>(row));
  }
  static void run(const FoldCall<T>& c, const PaddedRow& row) {
    FoldRows<T>(row, c.arrays, c.mean).run();
  }
};

template <class T>
struct FoldDirect : PlainRow<Schedule::direct> {
  bool when(const FoldCall<T>&) { return true; }
  int64_t run(const FoldCall<T>& c) {
    fold_direct<T>(c.plan, c.arrays, c.mean, c.piece);
    return c.piece.h1;
  }
};

template <class T>
using FoldTable = ScheduleTable<FoldSliding<T>, FoldAlong<T>, BandSchedule<T, FoldByBand<T>>,
                                ImageTileRow<T>, FoldDirect<T>>;

// ---- spread

template <class T>
struct SpreadCall {
  const Plan& plan;  ///< transposed
  RowArrays<T, 1, 0> arrays;
  Share share;
  Piece piece;

  const Plan& over() const { return plan; }
  int choice() const { return choice_of(Verb::spread, dtype_of<T>(), static_cast<int>(share)); }
};

template <class T, bool Reversed>
struct SpreadSliding : PlainRow<Schedule::sliding, is_real<T>> {
  static constexpr bool settles_bits = true;
  bool when(const SpreadCall<T>& c) {
    return c.share != Share::quotient && worth_sliding(c.plan, kSlidingSum);
  }
  int64_t run(const SpreadCall<T>& c) {
    spread_sliding<T, Reversed>(c.plan, c.arrays, c.share, c.piece);
    return c.piece.h1;
  }
};

template <class T>
struct SpreadGlobal : PlainRow<Schedule::global, has_row_schedules<T>> {
  bool when(const SpreadCall<T>& c) {
    return !rounds_once<T>(c.share) && global_window_count(c.plan) > 0;
  }
  int64_t run(const SpreadCall<T>& c) {
    spread_global<T>(c.plan, c.arrays, c.share, c.piece);
    return c.piece.h1;
  }
};

template <class T, bool Reversed>
struct SpreadByBand : BandedVerb<true, false, true> {
  static bool allows(const SpreadCall<T>& c) {
    return !rounds_once<T>(c.share) && most_taps(c.plan) <= kLongSum &&
           (c.plan.only == Schedule::row_band ||
            means_pay<T>(c.plan, c.piece.i1 - c.piece.i0, fills_vector(c.plan.last(), kLanes<T>)));
  }
  static bool fits(const SpreadCall<T>&, const PaddedRow& row) { return row.regular.stride == 1; }
  static void run(const SpreadCall<T>& c, const PaddedRow& row) {
    SpreadRows<T>(row, c.arrays, c.share, Reversed).run();
  }
};

template <class T, bool Reversed>
struct SpreadDirect : PlainRow<Schedule::direct> {
  bool when(const SpreadCall<T>&) { return true; }
  int64_t run(const SpreadCall<T>& c) {
    spread_taps<T, Reversed>(c.plan, c.arrays, c.share, c.piece);
    return c.piece.h1;
  }
};

template <class T, bool Reversed>
using SpreadTable = ScheduleTable<SpreadSliding<T, Reversed>, SpreadGlobal<T>,
                                  BandSchedule<T, SpreadByBand<T, Reversed>>, ImageTileRow<T>,
                                  SpreadDirect<T, Reversed>>;

// ---- select

template <class T>
struct SelectCall {
  const Plan& plan;
  RowArrays<T, 1, 0> arrays;
  Start start;
  Piece piece;

  const Plan& over() const { return plan; }
  int choice() const { return choice_of(Verb::select, dtype_of<T>(), static_cast<int>(start)); }
};

/// Return true if neutral cells can stand for the padding of windows: the windows that an edge cut
/// are exactly those that neutral cells complete, and windows without cells are cut alike.
inline bool pads_as_cut(Start start, bool cuts, bool cuts_elsewhere, const Plan& plan) {
  if (start != Start::infinity) return true;
  return cuts ? !cuts_elsewhere && !some_window_has_no_rows(plan)
              : !cuts_elsewhere || !has_empty_window(plan.last());
}

template <class T>
struct SelectSliding : PlainRow<Schedule::sliding> {
  bool when(const SelectCall<T>& c) {
    return c.start != Start::first && slides_over_maxima(c.plan);
  }
  int64_t run(const SelectCall<T>& c) {
    select_sliding<T>(c.plan, c.arrays, c.start, c.piece);
    return c.piece.h1;
  }
};

template <class T>
struct SelectAlong : PlainRow<Schedule::along> {
  bool when(const SelectCall<T>& c) {
    return c.start != Start::first && select_runs_along(c.plan, kLanes<T>);
  }
  int64_t run(const SelectCall<T>& c) {
    select_along<T>(c.plan, c.arrays, c.start, c.piece);
    return c.piece.h1;
  }
};

template <class T>
struct SelectDirect : PlainRow<Schedule::direct> {
  bool when(const SelectCall<T>&) { return true; }
  int64_t run(const SelectCall<T>& c) {
    select_direct<T>(c.plan, c.arrays, c.start, c.piece);
    return c.piece.h1;
  }
};

template <class T>
struct SelectByBand : BandedVerb<true> {
  static bool allows(const SelectCall<T>& c) {
    return c.start != Start::first && joins_rather_than_slides(c.plan, kLanes<T>);
  }
  static bool fits(const SelectCall<T>& c, const PaddedRow& row) {
    return pads_as_cut(c.start, row.regular.cuts, row.regular.cuts_elsewhere, row.plan);
  }
  static void run(const SelectCall<T>& c, const PaddedRow& row) {
    SelectRows<T>(row, c.arrays, c.start).run();
  }
};

template <class T>
using SelectTable = ScheduleTable<BandSchedule<T, SelectByBand<T>>, SelectSliding<T>,
                                  SelectAlong<T>, ImageTileRow<T>, SelectDirect<T>>;

// ---- recall

template <class T>
struct RecallCall {
  const Plan& plan;
  RowArrays<T, 2, 1> arrays;
  Piece piece;

  const Plan& over() const { return plan; }
  int choice() const { return choice_of(Verb::recall, dtype_of<T>(), 0); }
};

template <class T>
struct RecallSliding : PlainRow<Schedule::sliding, has_keys<T>> {
  bool when(const RecallCall<T>& c) { return slides_over_keys(c.plan); }
  int64_t run(const RecallCall<T>& c) {
    recall_sliding<T>(c.plan, c.arrays, c.piece);
    return c.piece.h1;
  }
};

template <class T>
struct RecallByBand : BandedVerb<true, true> {
  static bool allows(const RecallCall<T>& c) { return most_taps(c.plan) <= kMostListedTaps; }
  static bool fits(const RecallCall<T>& c, const PaddedRow&) {
    return bands_rather_than_tiles<T>(c.plan, c.piece.i1 - c.piece.i0, 2, 2);
  }
  static void run(const RecallCall<T>& c, const PaddedRow& row) {
    RecallRows<T>(row, c.arrays).run();
  }
};

template <class T>
struct RecallDirect : PlainRow<Schedule::direct> {
  bool when(const RecallCall<T>&) { return true; }
  int64_t run(const RecallCall<T>& c) {
    recall_direct<T>(c.plan, c.arrays, c.piece);
    return c.piece.h1;
  }
};

template <class T>
using RecallTable = ScheduleTable<RecallSliding<T>, BandSchedule<T, RecallByBand<T>>,
                                  ImageTileRow<T>, RecallDirect<T>>;

// ---- near

template <class T>
struct NearCall {
  const Plan& plan;  ///< transposed
  RowArrays<T, 2, 1> arrays;
  double eps;
  Piece piece;

  const Plan& over() const { return plan; }
  int choice() const { return choice_of(Verb::near, dtype_of<T>(), 0); }
};

/// Not worth its code size for integers, which have no gradients.
template <class T>
struct NearSliding : PlainRow<Schedule::sliding, is_real<T>> {
  bool when(const NearCall<T>& c) {
    const bool tiles = images_per_tile<T>(c.plan, c.piece.i1 - c.piece.i0) > 1,
               bands = most_taps(c.plan) <= kMaxCovering && fills_vector(c.plan.last(), kLanes<T>);
    return slides_over_maxima(c.plan, tiles || bands ? kSlidingNear : kSlidingMax);
  }
  int64_t run(const NearCall<T>& c) {
    near_sliding<T>(c.plan, c.arrays, c.eps, c.piece);
    return c.piece.h1;
  }
};

template <class T>
struct NearByBand : BandedVerb<true, false, true> {
  static bool allows(const NearCall<T>& c) {
    const int64_t items = c.piece.i1 - c.piece.i0;
    return most_taps(c.plan) <= kMaxCovering &&
           (c.plan.only == Schedule::row_band || fills_vector(c.plan.last(), kLanes<T>) ||
            (c.plan.rank > 1 && images_per_tile<T>(c.plan, items) > 1 &&
             bands_rather_than_tiles<T>(c.plan, items, 2, 2)));
  }
  static bool fits(const NearCall<T>&, const PaddedRow& row) { return row.regular.stride == 1; }
  static void run(const NearCall<T>& c, const PaddedRow& row) {
    NearRows<T>(row, c.arrays, c.eps).run();
  }
};

template <class T>
struct NearDirect : PlainRow<Schedule::direct> {
  bool when(const NearCall<T>&) { return true; }
  int64_t run(const NearCall<T>& c) {
    near_direct<T>(c.plan, c.arrays, c.eps, c.piece);
    return c.piece.h1;
  }
};

template <class T>
using NearTable =
    ScheduleTable<NearSliding<T>, BandSchedule<T, NearByBand<T>>, ImageTileRow<T>, NearDirect<T>>;

// ---- choose

template <class T, class Tap>
struct ChooseCall {
  const Plan& plan;
  const T* x;
  T* y;
  Tap* taps;
  Piece piece;

  const Plan& over() const { return plan; }
  int choice() const { return choice_of(Verb::choose, dtype_of<T>(), 0); }
};

template <class T>
struct ChooseByBand : BandedVerb<has_tap_bands<T>> {
  static bool allows(const ChooseCall<T, uint8_t>& c) {
    return most_taps(c.plan) <= kMostListedTaps;
  }
  static bool fits(const ChooseCall<T, uint8_t>& c, const PaddedRow&) {
    return bands_rather_than_tiles<T>(c.plan, c.piece.i1 - c.piece.i0, 1, 1) &&
           !has_empty_window(c.plan.last());
  }
  static void run(const ChooseCall<T, uint8_t>& c, const PaddedRow& row) {
    ChooseRows<T>(row, c.x, c.y, {c.taps, c.plan.last().m, false}).run();
  }
};
/// Taps of more than a byte do not have it.
template <class T, class Tap>
struct ChooseBandSchedule : PlainRow<Schedule::row_band, false> {};
template <class T>
struct ChooseBandSchedule<T, uint8_t> : BandSchedule<T, ChooseByBand<T>> {};

template <class T, class Tap>
struct ChooseDirect : PlainRow<Schedule::direct> {
  bool when(const ChooseCall<T, Tap>&) { return true; }
  int64_t run(const ChooseCall<T, Tap>& c) {
    choose_direct<T>(c.plan, c.x, c.y, c.taps, c.piece);
    return c.piece.h1;
  }
};

template <class T, class Tap>
using ChooseTable =
    ScheduleTable<ChooseBandSchedule<T, Tap>, ImageTileRow<T>, ChooseDirect<T, Tap>>;

// ---- pick

template <class T, class Tap>
struct PickCall {
  const Plan& plan;
  const T* v;
  const Tap* taps;
  T* out;
  Piece piece;
  int64_t& wrong;

  const Plan& over() const { return plan; }
  int choice() const { return choice_of(Verb::pick, dtype_of<T>(), 0); }
};

template <class T, class Tap>
struct PickCompare : PlainRow<Schedule::direct, sizeof(Tap) == 1> {
  bool when(const PickCall<T, Tap>& c) { return compares_taps(c.plan); }
  int64_t run(const PickCall<T, Tap>& c) {
    c.wrong = pick_by_compare<T>(c.plan, c.v, c.taps, c.out, c.piece);
    return c.piece.h1;
  }
};

template <class T, class Tap>
struct PickFollow : PlainRow<Schedule::follow_taps> {
  bool when(const PickCall<T, Tap>&) { return true; }
  int64_t run(const PickCall<T, Tap>& c) {
    c.wrong = pick_by_following<T, Tap>(c.plan, c.v, c.taps, c.out, c.piece);
    return c.piece.h1;
  }
};

template <class T, class Tap>
using PickTable = ScheduleTable<PickCompare<T, Tap>, PickFollow<T, Tap>>;

// ---- place: route with given taps

template <class T>
struct RouteCall {
  const Plan& plan;
  const Plan& transposed;
  const T* x;
  const T* y;  ///< null if y is not checked
  const T* g;
  const void* taps;  ///< place only
  T* dx;
  Piece piece;  ///< of the transposed plan
  int64_t& wrong;

  const Plan& over() const { return transposed; }
  int choice() const {
    return choice_of(taps ? Verb::place : Verb::route, dtype_of<T>(), y ? 1 : 0);
  }
  int64_t tile() const { return images_per_tile<T>(plan, piece.i1 - piece.i0); }
  int64_t by_strips(StripWay way, int64_t group) const {
    wrong = route_by_strips<T>(plan, transposed, x, y, g, taps, dx, piece, way, group);
    return piece.h1;
  }
};

template <class T>
struct PlaceTile : PlainRow<Schedule::transposed_tile> {
  bool when(const RouteCall<T>& c) {
    return can_gather_given(c.plan, c.transposed) && c.tile() > 1;
  }
  int64_t run(const RouteCall<T>& c) { return c.by_strips(StripWay::gather_given, c.tile()); }
};

template <class T>
struct PlaceDirect : PlainRow<Schedule::direct> {
  bool when(const RouteCall<T>& c) { return can_gather_given(c.plan, c.transposed); }
  int64_t run(const RouteCall<T>& c) { return c.by_strips(StripWay::gather_given, 1); }
};

template <class T>
struct PlaceFollow : PlainRow<Schedule::follow_taps> {
  bool when(const RouteCall<T>&) { return true; }
  int64_t run(const RouteCall<T>& c) {
    const auto follow = [&](const auto* taps) {
      return scatter_given(c.plan, c.transposed, taps, c.g, c.dx, c.piece);
    };
    c.wrong = needs_wide_taps(c.plan) ? follow(static_cast<const uint32_t*>(c.taps))
                                      : follow(static_cast<const uint8_t*>(c.taps));
    return c.piece.h1;
  }
};

template <class T>
using PlaceTable = ScheduleTable<PlaceTile<T>, PlaceDirect<T>, PlaceFollow<T>>;

// ---- route

/// Find the taps of many images together, then follow them: images have few windows, or too many
/// windows share a cell to gather. In the second case neighbouring windows often chose one cell;
/// halves, whose sums are rounded one after the other, then follow the taps of tiles, in which
/// neighbours are cells of other images.
template <class T>
struct RouteImages : PlainRow<Schedule::follow_taps> {
  bool when(const RouteCall<T>& c) {
    if (c.y || c.piece.i1 - c.piece.i0 < kLanes<T> || !images_per_search<T>(c.plan)) return false;
    if (c.plan.only == Schedule::follow_taps) return true;
    const bool pays = can_gather(c.plan, c.transposed) ? has_planes(c) && scattering_pays<T>(c.plan)
                                                       : !is_half<T>;
    return pays && !(has_keys<T> && slides_over_keys(c.plan));
  }
  int64_t run(const RouteCall<T>& c) {
    route_by_images(c.plan, c.x, c.g, c.dx, c.piece, images_per_search<T>(c.plan));
    c.wrong = -1;
    return c.piece.h1;
  }

 private:
  /// Return true if the piece has complete images of few inner elements.
  static bool has_planes(const RouteCall<T>& c) {
    return c.piece.h0 == 0 && c.piece.h1 == c.plan.axis[0].n && follows_single_taps(c.plan);
  }
};

template <class T>
struct RouteSliding : PlainRow<Schedule::sliding, has_keys<T>> {
  bool when(const RouteCall<T>& c) { return !c.y && slides_over_keys(c.plan); }
  int64_t run(const RouteCall<T>& c) {
    return c.by_strips(StripWay::follow_slid, long_rows(c.plan) ? 1 : c.tile());
  }
};

template <class T>
struct RouteTile : PlainRow<Schedule::transposed_tile> {
  bool when(const RouteCall<T>& c) {
    return !c.y && can_gather(c.plan, c.transposed) && c.tile() > 1;
  }
  int64_t run(const RouteCall<T>& c) { return c.by_strips(StripWay::gather_found, c.tile()); }
};

template <class T>
struct RouteDirect : PlainRow<Schedule::direct> {
  bool when(const RouteCall<T>& c) { return can_gather(c.plan, c.transposed); }
  int64_t run(const RouteCall<T>& c) { return c.by_strips(StripWay::gather_found, 1); }
};

/// Find the taps row by row, in tiles if rows are short, and follow them.
template <class T>
struct RouteFollow : PlainRow<Schedule::follow_taps> {
  bool when(const RouteCall<T>&) { return true; }
  int64_t run(const RouteCall<T>& c) {
    return c.by_strips(StripWay::follow_found, c.y || long_rows(c.plan) ? 1 : c.tile());
  }
};

template <class T>
struct RouteBandSchedule : PlainRow<Schedule::row_band, has_tap_bands<T>> {
  [[gnu::noinline]] bool when(const RouteCall<T>& c) {
    if (c.y || !can_gather(c.plan, c.transposed)) return false;
    if (c.tile() > 1 && c.plan.only != Schedule::row_band && !rows_rather_than_tiles<T>(c.plan))
      return false;
    const bool entire = c.piece.h0 == 0 && c.piece.h1 == c.plan.axis[0].n;
    if (!may_band(c.plan, {0, 1, 0, c.plan.axis[0].m}) || (c.plan.rank == 1 && !entire))
      return false;
    axes.emplace(c.plan, c.transposed);
    return axes->fits;
  }
  int64_t run(const RouteCall<T>& c) {
    c.wrong = -1;
    RouteRows<T>(*axes, c.x, c.g, c.dx, c.piece, worth_streaming<T>(c.transposed)).run();
    return c.piece.h1;
  }

 private:
  std::optional<RouteAxes> axes;
};

template <class T>
using RouteTable = ScheduleTable<RouteBandSchedule<T>, RouteImages<T>, RouteSliding<T>,
                                 RouteTile<T>, RouteDirect<T>, RouteFollow<T>>;

// ---- the choice without the call

/// Return the schedules that a verb has for a type, a bit for each.
template <class T>
[[gnu::cold]] uint32_t schedules_of(Verb verb) {
  using Bits = typename UintOf<sizeof(T)>::type;
  switch (verb) {
    case Verb::fold: return FoldTable<T>::names();
    case Verb::spread: return SpreadTable<T, false>::names();
    case Verb::select: return SelectTable<T>::names();
    case Verb::recall: return RecallTable<T>::names();
    case Verb::near: return NearTable<T>::names();
    case Verb::choose: return ChooseTable<T, uint8_t>::names();
    case Verb::pick: return PickTable<Bits, uint8_t>::names();
    case Verb::place: return PlaceTable<T>::names();
    case Verb::route: return RouteTable<T>::names();
    case Verb::argmax: return 1u << static_cast<int>(Schedule::direct);
    default: return 1u << static_cast<int>(Schedule::follow_taps);
  }
}

/// Return the schedule of a verb on a piece. `rule`: Mean, Share or Start. `verify`: route checks
/// y.
template <class T>
[[gnu::cold]] Schedule choose_schedule(const Plan& plan, const Plan& transposed, Verb verb,
                                       int rule, bool verify, Piece p) {
  int64_t wrong = -1;
  const T cell{};
  const RouteCall<T> route{plan,    transposed, nullptr, verify ? &cell : nullptr, nullptr, nullptr,
                           nullptr, p,          wrong};
  switch (verb) {
    case Verb::fold: return FoldTable<T>::choose(FoldCall<T>{plan, {}, Mean(rule), p});
    case Verb::spread:
      return SpreadTable<T, false>::choose(SpreadCall<T>{transposed, {}, Share(rule), p});
    case Verb::select: return SelectTable<T>::choose(SelectCall<T>{plan, {}, Start(rule), p});
    case Verb::recall: return RecallTable<T>::choose(RecallCall<T>{plan, {}, p});
    case Verb::near: return NearTable<T>::choose(NearCall<T>{transposed, {}, 0, p});
    case Verb::choose:
      return ChooseTable<T, uint8_t>::choose(
          ChooseCall<T, uint8_t>{plan, nullptr, nullptr, nullptr, p});
    case Verb::pick:
      if (needs_wide_taps(plan)) return Schedule::follow_taps;
      return PickTable<T, uint8_t>::choose(
          PickCall<T, uint8_t>{plan, nullptr, nullptr, nullptr, p, wrong});
    case Verb::place: return PlaceTable<T>::choose(route);
    case Verb::route: return RouteTable<T>::choose(route);
    default: return Schedule::direct;
  }
}

}  // namespace poolgrad::PG_ISA
