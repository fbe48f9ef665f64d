// select, choose, argmax and recall by the direct loop.
#pragma once
#include "loops/tap_places.hpp"
#include "loops/transposed_tile.hpp"
#include "reducers/match.hpp"
#include "reducers/max.hpp"

namespace poolgrad::PG_ISA {

template <class T>
void select_direct(const Plan& plan, const RowArrays<T, 1, 0>& arrays, Start start, Piece piece) {
  over_rows<T>(plan, arrays, false, piece,
               [&](const WindowTaps& w, const auto& a, int64_t, int64_t lanes) {
                 best_values<T>(w, a.source[0], a.out, lanes, start);
               });
}

/// Set out[i] = v at the first tap of window i where x equals y[i], 0 if there is none. Visit taps
/// backwards, so that the first match stays.
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
                       s.step(load<L>(x + at), load<L>(v + at));
                     },
                     [out](auto lane, auto& s, int64_t c) {
                       store<decltype(lane)::count>(out + c, s.found);
                     });
               });
}

/// The taps of some lanes, and the cells found at them.
template <class T, int L>
struct ComparedTaps {
  Vec<uint8_t, L> taps;
  Vec<T, L> found;
};

/// Find, compare or copy the taps of one destination row after the other.
template <class T, class Tap>
class TapRows {
 public:
  explicit TapRows(const Plan& plan) : plan_(plan), rows_(plan, false), runner_(plan) {}

  /// Move to destination row u of an item.
  void seek(int64_t u) { rows_.seek(u, window_); }

  /// Find the taps of destination row u; write the maxima to y if it is given. Not inlined: several
  /// verbs share this code.
  [[gnu::noinline]] void find(const T* x_item, int64_t u, Tap* taps, T* y, int64_t j0, int64_t j1) {
    seek(u);
    runner_.run(window_, {{x_item}, {}, y}, j0, j1,
                [&](const WindowTaps& w, const auto& a, int64_t at, int64_t lanes) {
                  best_taps<T, Tap>(w, a.source[0], y ? a.out : nullptr, taps + at, lanes);
                });
  }

  /// Set out = v at the taps of this row by comparing every cell of a window, for small windows.
  /// Another thread may write the taps: each is read once, then used and checked. Return a lane at
  /// or before the first tap outside its window, or -1. Empty windows have no taps to check.
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

  /// Return the first lane from `lane` on, up to cell j1, whose tap is outside its window now;
  /// return `lane` if another thread has corrected it.
  int64_t outside(const Tap* taps, int64_t lane, int64_t j1) const {
    for (int64_t k = lane; k < j1 * plan_.inner; ++k)
      if (taps[k] > static_cast<Tap>(plan_.last().length(k / plan_.inner) * window_.nrows - 1))
        return k;
    return lane;
  }

  /// Copy the taps of cells [j0, j1) of this row, which another thread may write, and check the
  /// copy. Return the first lane whose tap is outside its window, or -1. Empty windows have no taps
  /// to check.
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
    asm volatile("" : : "r"(own) : "memory");  // the compiler must read the copy from here on
    return -1;
  }

 private:
  /// Return the end of the run of windows that are as long as window j.
  PG_INLINE int64_t end_of_equal(int64_t j, int64_t j1) const {
    const Axis& axis = plan_.last();
    if (axis.lo <= j && j < axis.hi)
      return axis.hi < j1 ? axis.hi : j1;  // windows that repeat have equal lengths
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

/// Compute the tap of each window, and its maximum if y is given.
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

/// Do the same, in transposed tiles if they fill the vectors.
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
      local.in_cache = true;
      local.inner = plan.inner * group;
      choose_rows(local, from.read(x + i * s_item, s_item, s0 * s_slab, (s1 - s0) * s_slab, valid),
                  y ? best.get() : nullptr, where.get(), Piece{0, 1, 0, end - h});
      if (y) best.write(y + i * d_item, d_item, h * d_slab, count, valid);
      where.write(taps + i * d_item, d_item, h * d_slab, count, valid);
    }
}

/// Call f(Tap{}) with the tap type of the lanes if it holds every tap of the plan, else with a
/// wider one.
template <class T, class F>
void with_tap_type(const Plan& plan, F&& f) {
  using Own = TapLane<T>;
  if constexpr (sizeof(Own) >= 4) f(Own{});
  else if (most_taps(plan) <= static_cast<int64_t>(std::numeric_limits<Own>::max())) f(Own{});
  else f(uint32_t{});
}

/// Compute maxima and their flat positions, as int64 if `wide`, else as int32; `modulo` keeps a position within its item.
template <class T>
void argmax_direct(const Plan& plan, const T* x, T* y, void* index, bool wide, int64_t modulo,
                   Piece piece) {
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
      int64_t* const wide_out = static_cast<int64_t*>(index) + row;
      int32_t* const out = static_cast<int32_t*>(index) + row;
      places.seek(u);
      places.each(taps.get(), j0 * plan.inner, j1 * plan.inner, [&](int64_t lane, int64_t at) {
        const int64_t position = (i * size + at) % modulo;
        if (wide) wide_out[lane] = position;
        else out[lane] = static_cast<int32_t>(position);
      });
    });
  });
}

}  // namespace poolgrad::PG_ISA
