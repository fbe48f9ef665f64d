// The best tap of each window, and what is done with it: kept, followed back, or followed forth.
#pragma once
#include "loops/tap_places.hpp"
#include "loops/transposed_tile.hpp"

namespace poolgrad::PG_ISA {

template <class T>
PG_INLINE Wide<T> start_value(Start start, bool cut) {
  return start == Start::lowest || cut ? lowest<T>() : minus_infinity<T>();
}

/// Whether none of n cells is NaN: those have more magnitude than infinity.
template <class T>
bool no_nan(const T* x, int64_t n) {
  using U = typename UintOf<sizeof(T)>::type;
  constexpr int L = kBytes / static_cast<int>(sizeof(T)), N = 4;
  constexpr U magnitude = static_cast<U>(~U{0}) >> 1;
  Vec<U, L> most[N] = {};
  const auto scan = [&](const T* from, int i) PG_LAMBDA {
    Vec<U, L> v;
    std::memcpy(&v, from, sizeof v);
    v &= all<U, L>(magnitude);
    most[i] = v > most[i] ? v : most[i];
  };
  int64_t c = 0;
  for (; c + N * L <= n; c += N * L)
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) scan(x + c + i * L, i);
  T rest[N * L] = {};
  std::memcpy(static_cast<void*>(rest), x + c, static_cast<size_t>(n - c) * sizeof(T));
  for (int i = 0; i < N; ++i) scan(rest + i * L, i);
  for (int i = 0; i < N; ++i)
    for (int lane = 0; lane < L; ++lane)
      if (most[i][lane] > infinity_bits<T>()) return false;
  return true;
}

/// Best value of a run of windows. A tap replaces the best so far only if it is greater: the first
/// wins ties, NaN never replaces.
template <class T>
PG_INLINE void best_values(const WindowTaps& w, const T* x, T* y, int64_t lanes, Start start) {
  const bool first = start == Start::first && w.nrows * w.width > 0;
  const int64_t first_tap = first ? w.rows[0] + w.off[0] : 0;
  const Wide<T> from = start_value<T>(start, w.cut);
  reduce<T, Order::rows>(
      w, lanes,
      [=](auto lane, int64_t, int64_t shift) {
        constexpr int L = decltype(lane)::count;
        return first ? load<L>(x + first_tap + shift) : all<Wide<T>, L>(from);
      },
      [x](auto lane, auto& best, int64_t at, int64_t) {
        constexpr int L = decltype(lane)::count;
        best = larger<Wide<T>, L>(best, load<L>(x + at));
      },
      [y](auto lane, auto& best, int64_t c) { store<decltype(lane)::count>(y + c, best); });
}

template <class T, class Count, int L>
struct BestTap {
  Vec<Wide<T>, L> value;
  Vec<Count, L> tap;
};

/// Best value and its tap number, kept as Tap; the first cell is taken whatever it is.
template <class T, class Tap>
PG_INLINE void best_taps(const WindowTaps& w, const T* x, T* y, Tap* taps, int64_t lanes) {
  using Count = std::conditional_t<(sizeof(Tap) > sizeof(TapLane<T>)), Tap, TapLane<T>>;
  const bool any = w.nrows * w.width > 0;
  const int64_t first_tap = any ? w.rows[0] + w.off[0] : 0;
  reduce<T, Order::rows>(
      w, lanes,
      [=](auto lane, int64_t, int64_t shift) {
        constexpr int L = decltype(lane)::count;
        return BestTap<T, Count, L>{
            any ? load<L>(x + first_tap + shift) : all<Wide<T>, L>(lowest<T>()), Vec<Count, L>{}};
      },
      [x](auto lane, auto& best, int64_t at, int64_t k) {
        constexpr int L = decltype(lane)::count;
        const Vec<Wide<T>, L> v = load<L>(x + at);
        const auto better = best.value < v;
        best.value = better ? v : best.value;
        const auto mask =
            convert<std::make_signed_t<Count>, L, std::make_signed_t<TapLane<T>>>(better);
        best.tap = mask ? all<Count, L>(static_cast<Count>(k)) : best.tap;
      },
      [y, taps](auto lane, auto& best, int64_t c) {
        constexpr int L = decltype(lane)::count;
        if (y) store<L>(y + c, best.value);
        const Vec<Tap, L> kept = convert<Tap, L, Count>(best.tap);
        std::memcpy(taps + c, &kept, sizeof kept);
      });
}

template <class T>
void select_direct(const Plan& plan, const RowArrays<T, 1, 0>& arrays, Start start, Piece piece) {
  over_rows<T>(plan, arrays, false, piece,
               [&](const WindowTaps& w, const auto& a, int64_t, int64_t lanes) {
                 best_values<T>(w, a.source[0], a.out, lanes, start);
               });
}

template <class T, int L>
struct MatchState {
  Vec<Wide<T>, L> best, found;
};

/// out[i] = v at the first tap of window i where x equals y[i], 0 if there is none. Backwards, so
/// that the first match is kept.
template <class T>
void recall_direct(const Plan& plan, const RowArrays<T, 2, 1>& arrays, Piece piece) {
  over_rows<T>(plan, arrays, false, piece,
               [&](const WindowTaps& w, const auto& a, int64_t, int64_t lanes) {
                 const T *x = a.source[0], *v = a.source[1], *y = a.partner[0];
                 T* out = a.out;
                 reduce<T, Order::backwards>(
                     w, lanes,
                     [y](auto lane, int64_t c, int64_t) {
                       constexpr int L = decltype(lane)::count;
                       return MatchState<T, L>{load<L>(y + c), Vec<Wide<T>, L>{}};
                     },
                     [x, v](auto lane, auto& s, int64_t at, int64_t) {
                       constexpr int L = decltype(lane)::count;
                       s.found = (load<L>(x + at) == s.best) ? load<L>(v + at) : s.found;
                     },
                     [out](auto lane, auto& s, int64_t c) {
                       store<decltype(lane)::count>(out + c, s.found);
                     });
               });
}

/// The taps of some lanes, and what was found at them.
template <class T, int L>
struct ComparedTaps {
  Vec<uint8_t, L> taps;
  Vec<T, L> found;
};

/// Row after row of taps.
template <class T, class Tap>
class TapRows {
 public:
  explicit TapRows(const Plan& plan) : plan_(plan), rows_(plan, false), runner_(plan) {}

  /// Moves to destination row u of an item.
  void seek(int64_t u) { rows_.seek(u, window_); }

  /// Finds the taps of destination row u; y, if given, receives the values.
  void find(const T* x_item, int64_t u, Tap* taps, T* y, int64_t j0, int64_t j1) {
    seek(u);
    runner_.run(window_, {{x_item}, {}, y}, j0, j1,
                [&](const WindowTaps& w, const auto& a, int64_t at, int64_t lanes) {
                  best_taps<T, Tap>(w, a.source[0], y ? a.out : nullptr, taps + at, lanes);
                });
  }

  /// out = v at the taps of this row, every cell of a window looked at: for windows of few cells.
  /// Others may write the taps meanwhile: each is read once, to be followed and to be checked.
  /// Returns a lane of this row before which no tap is outside its window, or -1 if none is; an
  /// empty window has none to miss.
  int64_t pick_by_compare(const T* v_item, const uint8_t* taps, T* out, int64_t j0, int64_t j1) {
    int64_t wrong = -1;
    runner_.run(window_, {{v_item}, {}, out}, j0, j1,
                [&](const WindowTaps& w, const auto& a, int64_t at, int64_t lanes) {
                  const T* v = a.source[0];
                  T* to = a.out;
                  const uint8_t* here = taps + at;
                  const auto most = static_cast<uint8_t>(w.nrows * w.width - 1);
                  Vec<uint8_t, kLanes<T>> top{};
                  bool outside = false;
                  reduce<T, Order::rows>(
                      w, lanes,
                      [=](auto lane, int64_t c, int64_t) {
                        ComparedTaps<T, decltype(lane)::count> s{};
                        std::memcpy(&s.taps, here + c, sizeof s.taps);
                        return s;
                      },
                      [v](auto lane, auto& s, int64_t place, int64_t k) {
                        constexpr int L = decltype(lane)::count;
                        s.found +=
                            where_tap<L, T>(s.taps, static_cast<uint8_t>(k), load<L>(v + place));
                      },
                      [to, most, &top, &outside](auto lane, auto& s, int64_t c) {
                        constexpr int L = decltype(lane)::count;
                        store<L>(to + c, s.found);
                        if constexpr (L == kLanes<T>) top = s.taps > top ? s.taps : top;
                        else outside |= any<L>(s.taps > most);
                      });
                  outside |= any<kLanes<T>>(top > most);
                  if (outside && (wrong < 0 || at < wrong)) wrong = at;
                });
    return wrong;
  }

  /// The first lane from `lane` on, up to cell j1, whose tap is outside its window now; `lane`
  /// itself if others have mended it meanwhile.
  int64_t outside(const Tap* taps, int64_t lane, int64_t j1) const {
    for (int64_t k = lane; k < j1 * plan_.inner; ++k)
      if (taps[k] > static_cast<Tap>(plan_.last().length(k / plan_.inner) * window_.nrows - 1))
        return k;
    return lane;
  }

  /// Copies the taps of cells j0 to j1 - 1 of this row, which others may write meanwhile, and
  /// checks the copy. Returns the first lane whose tap is outside its window, or -1; an empty
  /// window has none to miss.
  int64_t copy_checked(const uint8_t* given, uint8_t* own, int64_t j0, int64_t j1) const {
    const Axis& axis = plan_.last();
    for (int64_t j = j0, end; j < j1; j = end) {
      end = end_of_equal(j, j1);
      const auto most = static_cast<uint8_t>(axis.length(j) * window_.nrows - 1);
      const int64_t begin = j * plan_.inner;
      Vec<uint8_t, kBytes> top{};
      bool outside = false;
      for_lanes<uint8_t, true>((end - j) * plan_.inner, [&](auto lane, auto many, int64_t first) {
        constexpr int L = decltype(lane)::count, N = decltype(many)::count;
        for (int64_t c = begin + first; c < begin + first + N * L; c += L) {
          Vec<uint8_t, L> taps;
          std::memcpy(&taps, given + c, sizeof taps);
          std::memcpy(own + c, &taps, sizeof taps);
          if constexpr (L == kBytes) top = taps > top ? taps : top;
          else outside |= any<L>(taps > most);
        }
      });
      if (!outside && !any<kBytes>(top > most)) continue;
      for (int64_t lane = j * plan_.inner; lane < end * plan_.inner; ++lane)
        if (own[lane] > most) return lane;
      return j * plan_.inner;
    }
    asm volatile("" : : "r"(own) : "memory");  // the compiler must not go back to what was given
    return -1;
  }

 private:
  /// Where windows end to be as long as window j.
  PG_INLINE int64_t end_of_equal(int64_t j, int64_t j1) const {
    const Axis& axis = plan_.last();
    if (axis.lo <= j && j < axis.hi)
      return axis.hi < j1 ? axis.hi : j1;  // where they repeat nobody need look
    const int64_t width = axis.length(j);
    while (++j < j1 && axis.length(j) == width) {
    }
    return j;
  }

  const Plan& plan_;
  SourceRows rows_;
  RowRunner<T, 1, 0> runner_;
  WindowTaps window_;
};

/// The best of each window, if y is given, and its tap: of rows as they lie.
template <class T, class Tap>
void choose_rows(const Plan& plan, const T* x, T* y, Tap* taps, Piece piece) {
  TapRows<T, Tap> rows(plan);
  const int64_t size = plan.axis[0].n * plan.source_slab(), per = plan.rows_per_item(),
                out_row = plan.last().m * plan.inner;
  each_row(plan, piece, [&](int64_t i, int64_t u, int64_t j0, int64_t j1) {
    const int64_t row = (i * per + u) * out_row;
    rows.find(x + i * size, u, taps + row, y ? y + row : nullptr, j0, j1);
  });
}

/// The same, images side by side where that fills the vectors.
template <class T, class Tap>
void choose_direct(const Plan& plan, const T* x, T* y, Tap* taps, Piece p) {
  const int64_t group = images_per_tile<T>(plan, p.i1 - p.i0);
  if (group == 1) return choose_rows(plan, x, y, taps, p);
  const Axis& axis = plan.axis[0];
  const int64_t s_slab = plan.source_slab(), d_slab = plan.dest_slab(), s_item = axis.n * s_slab,
                d_item = axis.m * d_slab, cells = rows_per_tile<T>(plan, group, 2);
  for (int64_t i = p.i0; i < p.i1; i += group)
    for (int64_t h = p.h0; h < p.h1; h += cells) {
      const int64_t valid = i + group < p.i1 ? group : p.i1 - i,
                    end = h + cells < p.h1 ? h + cells : p.h1, s0 = axis.start[h],
                    s1 = axis.stop[end - 1], count = (end - h) * d_slab;
      Tile<T> from((s1 - s0) * s_slab, group), best(y ? count : 0, group);
      Tile<Tap> where(count, group);
      Plan local = strip(plan, h, end, s0);
      local.outer = 1;
      local.inner = plan.inner * group;
      choose_rows(local, from.read(x + i * s_item, s_item, s0 * s_slab, (s1 - s0) * s_slab, valid),
                  y ? best.get() : nullptr, where.get(), Piece{0, 1, 0, end - h});
      if (y) best.write(y + i * d_item, d_item, h * d_slab, count, valid);
      where.write(taps + i * d_item, d_item, h * d_slab, count, valid);
    }
}

/// Calls f(Tap{}) with the lane's own tap type if it holds every tap of the plan, else with a wider
/// one.
template <class T, class F>
void with_tap_type(const Plan& plan, F&& f) {
  using Own = TapLane<T>;
  if constexpr (sizeof(Own) >= 4) f(Own{});
  else if (SourceRows::capacity(plan) * plan.last().widest <=
           static_cast<int64_t>(std::numeric_limits<Own>::max()))
    f(Own{});
  else f(uint32_t{});
}

/// Values and flat positions of the best taps; modulo keeps a position within its image.
template <class T, class Index>
void argmax_direct(const Plan& plan, const T* x, T* y, Index* index, int64_t modulo, Piece piece) {
  with_tap_type<T>(plan, [&](auto tag) {
    using Tap = decltype(tag);
    TapRows<T, Tap> rows(plan);
    TapPlaces<Tap> places(plan, false, piece);
    const int64_t size = plan.axis[0].n * plan.source_slab(), per = plan.rows_per_item(),
                  out_row = plan.last().m * plan.inner;
    Scratch<Tap> taps(out_row);
    each_row(plan, piece, [&](int64_t i, int64_t u, int64_t j0, int64_t j1) {
      const int64_t row = (i * per + u) * out_row;
      rows.find(x + i * size, u, taps.get(), y + row, j0, j1);
      Index* out = index + row;
      places.seek(u);
      places.each(taps.get(), j0 * plan.inner, j1 * plan.inner, [&](int64_t lane, int64_t at) {
        out[lane] = static_cast<Index>((i * size + at) % modulo);
      });
    });
  });
}

}  // namespace poolgrad::PG_ISA
