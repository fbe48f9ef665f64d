// route and place: add each gradient to the cell that its window chose.
//
// Two ways to add. They are not the verbs `gather` and `scatter`, which follow given positions.
// - gather: each source cell sums the gradients of the covering windows that chose it. No zero
// fill, one write per cell. Needs the taps of a strip of rows, one byte per window, which stay in
// cache.
// - scatter: each window adds its gradient at its tap. The cost does not grow with the window.
//
// Both add in row-major order of the windows, from +0. A gather also adds +0 for each covering
// window that chose another cell, which changes no bit.
#pragma once
#include "verbs/max_sliding.hpp"

namespace poolgrad::PG_ISA {

/// Return the index of the first of m ascending values that is at least v.
inline int64_t lower_bound_of(const int64_t* values, int64_t m, int64_t v) {
  int64_t from = 0;
  while (m > 0) {
    const int64_t half = m / 2;
    const bool less = values[from + half] < v;
    from += less ? half + 1 : 0;
    m = less ? m - half - 1 : half;
  }
  return from;
}

/// Find the destination cells whose windows touch source cells [h0, h1).
inline void windows_touching(const Axis& axis, int64_t h0, int64_t h1, int64_t& first,
                             int64_t& last) {
  first = lower_bound_of(axis.stop, axis.m, h0 + 1);
  last = first + lower_bound_of(axis.start + first, axis.m - first, h1);
}

template <class T>
PG_INLINE T sum_of(T a, T b) {
  if constexpr (is_half<T>) {
    T r;
    store<1>(&r, load<1>(&a) + load<1>(&b));
    return r;
  } else {
    return static_cast<T>(a + b);
  }
}

/// Return the smallest normal number. A forward pass that flushes subnormals may return 0 for
/// anything smaller.
template <class T>
PG_INLINE Wide<T> smallest_normal() {
  if constexpr (std::is_same_v<T, f16>) return 0x1p-14f;
  else if constexpr (is_real<T>) return std::numeric_limits<Wide<T>>::min();
  else return 0;
}

/// Return true if a forward pass may have returned y for a window with maximum `best`: equal, NaN
/// for NaN, both too small to distinguish, or the maximum that starts from the lowest finite value
/// and ignores NaN.
template <class T>
bool agrees(T y, T best, const WindowTaps& w, const T* x) {
  const Wide<T> got = load<1>(&y)[0], want = load<1>(&best)[0];
  if (got == want || (got != got && want != want)) return true;
  const Wide<T> tiny = smallest_normal<T>();
  if (is_real<T> && got < tiny && got > -tiny && want < tiny && want > -tiny) return true;
  T forward{};
  best_values<T>(w, x, &forward, 1, Start::lowest);
  return got == load<1>(&forward)[0];
}

/// Return the first lane of cells [j0, j1) of row u where y is not the pooled x, or -1.
template <class T>
int64_t disagreement(const Plan& plan, const T* x, const T* y, const T* values, int64_t u,
                     int64_t j0, int64_t j1) {
  const Axis& axis = plan.last();
  for (int64_t j = j0; j < j1; ++j)
    for (int64_t lane = j * plan.inner; lane < (j + 1) * plan.inner; ++lane) {
      if (load<1>(y + lane)[0] == load<1>(values + lane)[0]) continue;
      SourceRows rows(plan, false);
      WindowTaps w;
      rows.seek(u, w);
      w.off = Offsets{nullptr, plan.inner};
      w.width = axis.length(j);
      if (w.nrows * w.width == 0)
        continue;  // an empty window has no maximum, and belongs to an arbitrary strip
      if (!agrees(y[lane], values[lane], w, x + axis.from(j) * plan.inner + lane % plan.inner))
        return lane;
    }
  return -1;
}

/// A strip: source cells [a, b) of the first axis, and destination cells [first, last), whose
/// windows touch them. x begins at source cell `origin`; y, g and taps, if given, at destination
/// cell `first`; dx at source cell a.
template <class T>
struct Strip {
  const Plan& plan;
  const Plan& transposed;
  int64_t a, b, first, last, origin;
  const T *x, *y, *g;
  T* dx;
  const void* taps = nullptr;
  bool stream = false;  ///< stream dx past the caches

  int64_t rows() const { return plan.rank == 1 ? 1 : (last - first) * plan.rows_per_slab(); }
  int64_t row() const { return (plan.rank == 1 ? last - first : plan.last().m) * plan.inner; }
};

/// Gather: each cell sums the gradients of the covering windows whose tap it is. With `once`, sum
/// half types in float32 and round once; else round at each addition.
template <class T>
void gather_gradients(const Strip<T>& s, const uint8_t* taps, bool once) {
  const Plan backward = strip(s.transposed, s.a, s.b, s.first);
  SourceRows covering(backward, false);
  RowRunner<T, 1, 0> runner(backward);
  WindowTaps window;
  const int64_t out_row = backward.last().m * backward.inner;
  std::conditional_t<is_real<T>, StreamWriter<T>, PlainWriter<T>> writer(
      s.dx, s.stream, out_row);  // not worth its code size for integers
  each_row(
      backward, Piece{0, 1, 0, backward.axis[0].m},
      [&](int64_t, int64_t u, int64_t j0, int64_t j1) {
        covering.seek(u, window);
        T* const here = writer.open(u * out_row + j0 * backward.inner, (j1 - j0) * backward.inner) -
                        j0 * backward.inner;
        runner.run(
            window, {{s.g}, {}, here}, j0, j1,
            [&](const WindowTaps& w, const auto& a, int64_t, int64_t lanes) {
              const uint8_t* chosen = taps + (a.source[0] - s.g);
              uint8_t codes[kMaxCovering];
              int64_t k = 0;
              each_tap<Order::rows>(
                  w, [&](int64_t r, int64_t t) { codes[k++] = static_cast<uint8_t>(w.tap(r, t)); });
              const T* g = a.source[0];
              T* dx = a.out;
              const uint8_t* code = codes;
              if constexpr (is_half<T>)
                if (once)
                  return reduce<T, Order::rows>(
                      w, lanes,
                      [](auto lane, int64_t, int64_t) {
                        return Vec<float, decltype(lane)::count>{};
                      },
                      [=](auto lane, auto& sum, int64_t at, int64_t k) {
                        sum += where_tap<decltype(lane)::count, float>(
                            chosen + at, code[k], load<decltype(lane)::count>(g + at));
                      },
                      [dx](auto lane, auto& sum, int64_t c) {
                        store<decltype(lane)::count>(dx + c, sum);
                      });
              add_up<T, Order::rows>(
                  w, lanes,
                  [=](auto lane, int64_t at, int64_t k) {
                    constexpr int L = decltype(lane)::count;
                    return where_tap<L, Wide<T>>(chosen + at, code[k], load<L>(g + at));
                  },
                  [dx](auto lane, auto& sum, int64_t c) {
                    store<decltype(lane)::count>(dx + c, total<T, decltype(lane)::count>(sum));
                  });
            });
      });
  writer.close();
}

/// Find the taps, check y if it is given, then gather. Return the first position where y is wrong,
/// or -1.
template <class T>
int64_t gather_found_taps(const Strip<T>& s) {
  const Plan forward = strip(s.plan, s.first, s.last, s.origin);
  const int64_t row = s.row(), rows = s.rows();
  Scratch<uint8_t> taps(rows * row);
  Scratch<T> values(s.y ? row : 0);
  TapRows<T, uint8_t> finder(forward);
  for (int64_t u = 0; u < rows; ++u) {
    finder.find(s.x, u, taps.get() + u * row, s.y ? values.get() : nullptr, 0, forward.last().m);
    if (!s.y) continue;
    const int64_t lane =
        disagreement(forward, s.x, s.y + u * row, values.get(), u, 0, forward.last().m);
    if (lane >= 0) return u * row + lane;
  }
  gather_gradients(s, taps.get(), false);
  return -1;
}

/// Gather with given taps. Return the first position whose tap is outside its window, or -1.
template <class T>
int64_t gather_given_taps(const Strip<T>& s) {
  const Plan forward = strip(s.plan, s.first, s.last, s.origin);
  const int64_t row = s.row(), rows = s.rows();
  const uint8_t* given = static_cast<const uint8_t*>(s.taps);
  Scratch<uint8_t> own(rows * row);  // another thread may write the given taps
  TapRows<T, uint8_t> finder(forward);
  for (int64_t u = 0; u < rows; ++u) {
    finder.seek(u);
    const int64_t lane =
        finder.copy_checked(given + u * row, own.get() + u * row, 0, forward.last().m);
    if (lane >= 0) return u * row + lane;
  }
  gather_gradients(s, own.get(), may_share_cells<T>(s.transposed));
  return -1;
}

/// Scatter with given taps: add each gradient at its tap.
template <class T, class Tap>
int64_t scatter_given_taps(const Plan& plan, const Tap* taps, const T* g, T* dx, Piece p) {
  int64_t first, last;
  windows_touching(plan.axis[0], p.h0, p.h1, first, last);
  const int64_t slab = plan.source_slab(), item = plan.axis[0].n * slab, begin = p.h0 * slab,
                size = (p.h1 - p.h0) * slab;
  const bool entire = size == item;
  TapPlaces<Tap> places(plan, entire && first == 0 && last == plan.axis[0].m,
                        Piece{p.i0, p.i1, first, last});
  const int64_t group = places.items() ? places.items() : 1,
                many = kSumBytes / (size * static_cast<int64_t>(sizeof(T)) * group + 1) * group +
                       group;
  int64_t wrong = -1;
  for (int64_t i = p.i0; i < p.i1 && wrong < 0; i += many) {
    const int64_t end = i + many < p.i1 ? i + many : p.i1;
    for (int64_t k = i; k < end; ++k) clear(dx + k * item + begin, size);
    wrong = follow(places, plan, taps, Piece{i, end, first, last},
                   [&](int64_t place, int64_t to, int64_t at) {
                     if (entire || static_cast<uint64_t>(at - begin) < static_cast<uint64_t>(size))
                       dx[to] = sum_of(dx[to], g[place]);
                   });
  }
  return wrong;
}

/// Scatter half types with given taps: sum strips in float32, then round.
template <class T, class Tap>
int64_t scatter_given_in_float(const Plan& plan, const Tap* taps, const T* g, T* dx, Piece p) {
  constexpr int64_t kWidth = sizeof(float);
  const Axis& axis = plan.axis[0];
  const int64_t slab = plan.source_slab(), item = axis.n * slab;
  const bool entire = p.h0 == 0 && p.h1 == axis.n &&
                      item * kWidth <= kSumBytes;  // complete items instead of strips
  int64_t first, last;
  windows_touching(axis, p.h0, p.h1, first, last);
  TapPlaces<Tap> places(plan, entire && first == 0 && last == axis.m,
                        Piece{p.i0, p.i1, first, last});
  const int64_t group = places.items() ? places.items() : 1,
                many = entire ? kSumBytes / (item * kWidth * group + 1) * group + group : 1;
  const int64_t rows = kSumBytes / (slab * kWidth + 1), cells = entire ? axis.n
                                                                : rows > 4 * axis.widest
                                                                    ? rows
                                                                    : 4 * axis.widest;
  const auto least = [](int64_t a, int64_t b) { return a < b ? a : b; };
  Scratch<float> sums(entire ? least(many, p.i1 - p.i0) * item : least(cells, p.h1 - p.h0) * slab);
  float* const to = sums.get();
  for (int64_t i = p.i0; i < p.i1; i += many)
    for (int64_t a = p.h0; a < p.h1; a += cells) {
      const int64_t end = least(i + many, p.i1), b = least(a + cells, p.h1),
                    begin = i * item + a * slab, size = entire ? (end - i) * item : (b - a) * slab;
      windows_touching(axis, a, b, first, last);
      clear(to, size);
      const int64_t wrong = follow(places, plan, taps, Piece{i, end, first, last},
                                   [&](int64_t place, int64_t at, int64_t) {
                                     const auto k = static_cast<uint64_t>(at - begin);
                                     if (k < static_cast<uint64_t>(size))
                                       to[k] += load<1>(g + place)[0];
                                   });
      if (wrong >= 0) return wrong;
      round_sums(to, dx + begin, size);
    }
  return -1;
}

/// Scatter with given taps; sum half types in float32 if several windows may share a cell.
template <class T, class Tap>
int64_t scatter_given(const Plan& plan, const Plan& transposed, const Tap* taps, const T* g, T* dx,
                      Piece p) {
  if constexpr (is_half<T>)
    if (may_share_cells<T>(transposed)) return scatter_given_in_float(plan, taps, g, dx, p);
  return scatter_given_taps(plan, taps, g, dx, p);
}

/// Follow taps, images at a time: find the taps of `many` images in transposed tiles, then scatter.
template <class T>
void route_by_images(const Plan& plan, const T* x, const T* g, T* dx, Piece p, int64_t many) {
  const int64_t item = plan.axis[0].n * plan.source_slab(),
                d_item = plan.axis[0].m * plan.dest_slab();
  int64_t first, last;
  windows_touching(plan.axis[0], p.h0, p.h1, first, last);
  const auto run = [&](auto tag) {
    using Tap = decltype(tag);
    Scratch<Tap> taps((many + kLanes<T>)*d_item);
    for (int64_t i = p.i0, n; i < p.i1; i += n) {
      n = p.i1 - i < many + kLanes<T> ? p.i1 - i : many;  // take the last few images with these
      choose_direct<T, Tap>(plan, x + i * item, nullptr, taps.get(), Piece{0, n, first, last});
      scatter_given_taps<T, Tap>(plan, taps.get(), g + i * d_item, dx + i * item,
                                 Piece{0, n, p.h0, p.h1});
    }
  };
  needs_wide_taps(plan) ? run(uint32_t{}) : run(uint8_t{});
}

/// Find the taps row by row, check y if it is given, and scatter. Return the first position where y
/// is wrong, or -1.
template <class T>
int64_t follow_found_taps(const Strip<T>& s) {
  int64_t wrong = -1;
  const Plan forward = strip(s.plan, s.first, s.last, s.origin);
  const int64_t slab = s.plan.source_slab(), size = (s.b - s.a) * slab,
                shift = (s.origin - s.a) * slab, row = s.row(), cells = forward.last().m;
  clear(s.dx, size);
  with_tap_type<T>(s.plan, [&](auto tag) {
    using Tap = decltype(tag);
    TapRows<T, Tap> finder(forward);
    TapPlaces<Tap> places(forward);
    Scratch<Tap> taps(row);
    Scratch<T> values(s.y ? row : 0);
    for (int64_t u = 0; u < s.rows() && wrong < 0; ++u) {
      finder.find(s.x, u, taps.get(), s.y ? values.get() : nullptr, 0, cells);
      const int64_t lane =
          s.y ? disagreement(forward, s.x, s.y + u * row, values.get(), u, 0, cells) : -1;
      if (lane >= 0) wrong = u * row + lane;
      const T* from = s.g + u * row;
      places.seek(u);
      places.each(taps.get(), 0, cells * forward.inner, [&](int64_t k, int64_t at) {
        const int64_t to = at + shift;
        if (static_cast<uint64_t>(to) < static_cast<uint64_t>(size))
          s.dx[to] = sum_of(s.dx[to], from[k]);
      });
    }
  });
  return wrong;
}

/// Find the taps by sliding, and scatter: not even the search grows with the window.
template <class T>
int64_t follow_slid_taps(const Strip<T>& s) {
  const bool one_axis = s.plan.rank == 1;
  const Plan forward = two_axes(strip(s.plan, s.first, s.last, one_axis ? 0 : s.origin));
  const int64_t slab = s.plan.source_slab(), size = (s.b - s.a) * slab, inner = s.plan.inner;
  clear(s.dx, size);
  if (s.first == s.last) return -1;
  const T* x = s.x - s.origin * slab;
  positions_sliding<T>(
      forward, one_axis ? x : s.x, Piece{0, 1, 0, forward.axis[0].m}, true,
      [&](const TileRow& row, const uint64_t* keys) {
        int64_t upper = forward.axis[0].start[row.at[0]];
        for (int a = 1; a + 1 < forward.rank; ++a)
          upper = upper * forward.axis[a].n + forward.axis[a].start[row.at[a]];
        const T* g = s.g + row.place;
        const auto put = [&](int64_t to, T sum) {
          if (static_cast<uint64_t>(to) < static_cast<uint64_t>(size)) s.dx[to] = sum;
        };
        int64_t last = -1;
        T sum{};
        for (int64_t w = 0; w < row.cells; ++w, g += inner, keys += row.lanes) {
          // A NaN in the first cell of a window stays chosen: nothing is greater.
          const int64_t first =
              (upper * forward.last().n + forward.last().start[row.w0 + w]) * inner + row.c0;
          for (int64_t c = 0; c < row.lanes; ++c) {
            const Wide<T> v = load<1>(x + first + c)[0];
            const int64_t to =
                (v == v ? cell_of_key(keys[c]) * inner + row.c0 : first) + c - s.a * slab;
            // Sum neighbours that chose the same cell in a register.
            if (to != last) {
              put(last, sum);
              sum = static_cast<uint64_t>(to) < static_cast<uint64_t>(size) ? s.dx[to] : T{};
              last = to;
            }
            sum = sum_of(sum, g[c]);
          }
        }
        put(last, sum);
      });
  return -1;
}

/// Gather or scatter, with taps that are given, found, or found by sliding.
enum class StripWay { gather_given, gather_found, follow_found, follow_slid };

/// Compute a piece of the transposed plan strip by strip, in tiles of `group` images: add g at the
/// maxima of x, or at given taps, which replace x. y, if given, must be the pooled x. Return the
/// first flat position where y is wrong or a tap is outside its window, or -1.
template <class T>
int64_t route_by_strips(const Plan& plan, const Plan& transposed, const T* x, const T* y,
                        const T* g, const void* taps, T* dx, Piece p, StripWay way, int64_t group) {
  const Axis& axis = plan.axis[0];
  const int64_t slab = plan.source_slab(), d_slab = plan.dest_slab(), item = axis.n * slab,
                d_item = axis.m * d_slab;
  const bool stream = worth_streaming<T>(transposed);
  const auto go = [&](const Strip<T>& s) {
    if (way == StripWay::gather_given) return gather_given_taps(s);
    if constexpr (has_keys<T>)
      if (way == StripWay::follow_slid) return follow_slid_taps(s);
    return way == StripWay::gather_found ? gather_found_taps(s) : follow_found_taps(s);
  };
  const bool follows = way == StripWay::follow_found || way == StripWay::follow_slid;
  const int64_t by_taps = kTileBytes / 2 / (d_slab + 1) * (axis.n / (axis.m ? axis.m : 1) + 1);
  const int64_t cells = group > 1                   ? rows_per_tile<T>(transposed, group, 3)
                        : follows                   ? p.h1 - p.h0 + 1
                        : by_taps > 4 * axis.widest ? by_taps
                                                    : 4 * axis.widest;
  Plan forward = plan, backward = transposed;
  forward.outer = backward.outer = group > 1 ? 1 : plan.outer;
  forward.in_cache = backward.in_cache = group > 1;
  forward.inner = backward.inner = plan.inner * group;
  for (int64_t i = p.i0; i < p.i1; i += group) {
    const int64_t valid = i + group < p.i1 ? group : p.i1 - i;
    for (int64_t a = p.h0; a < p.h1; a += cells) {
      const int64_t b = a + cells < p.h1 ? a + cells : p.h1;
      int64_t first, last;
      windows_touching(axis, a, b, first, last);
      const int64_t x0 = last > first ? axis.start[first] : a,
                    x1 = last > first ? axis.stop[last - 1] : a;
      Strip<T> s{forward,
                 backward,
                 a,
                 b,
                 first,
                 last,
                 x0,
                 taps ? nullptr : x + i * item + x0 * slab,
                 nullptr,
                 g + i * d_item + first * d_slab,
                 dx + i * item + a * slab};
      const int64_t place = i * d_item + first * d_slab;
      if (y) s.y = y + place;
      if (taps) s.taps = static_cast<const uint8_t*>(taps) + place;
      int64_t wrong;
      if (group == 1) {
        s.stream = stream;
        wrong = go(s);
      } else {
        Tile<T> tx(taps ? 0 : (x1 - x0) * slab, group), tg((last - first) * d_slab, group),
            td((b - a) * slab, group);
        Tile<uint8_t> tt(taps ? (last - first) * d_slab : 0, group);
        if (taps)
          s.taps = tt.read(static_cast<const uint8_t*>(taps) + i * d_item, d_item, first * d_slab,
                           (last - first) * d_slab, valid);
        else s.x = tx.read(x + i * item, item, x0 * slab, (x1 - x0) * slab, valid);
        s.g = tg.read(g + i * d_item, d_item, first * d_slab, (last - first) * d_slab, valid);
        s.dx = td.get();
        wrong = go(s);
        td.write(dx + i * item, item, a * slab, (b - a) * slab, valid);
      }
      if (wrong < 0) continue;
      if (group == 1) return place + wrong;
      return route_by_strips<T>(plan, transposed, x, y, g, taps, dx,
                                Piece{i, i + valid, p.h0, p.h1}, way,
                                1);  // within a tile, a later item may have an earlier error
    }
  }
  return -1;
}

}  // namespace poolgrad::PG_ISA
