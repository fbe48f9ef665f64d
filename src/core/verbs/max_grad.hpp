// Select, then scatter: each gradient goes to the tap that its window chose. No index array
// outlives a strip of rows.
#pragma once
#include "verbs/max_sliding.hpp"

namespace poolgrad::PG_ISA {

/// The first of m values, which do not decrease, that is at least v.
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

/// The destination cells whose windows touch source cells [h0, h1).
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

/// The smallest normal number: a forward pass that flushes subnormals may have returned 0 for
/// anything smaller.
template <class T>
PG_INLINE Wide<T> smallest_normal() {
  if constexpr (std::is_same_v<T, f16>) return 0x1p-14f;
  else if constexpr (is_real<T>) return std::numeric_limits<Wide<T>>::min();
  else return 0;
}

/// Whether y is what a forward pass may have returned for a window whose best is `best`: equal, NaN
/// for NaN, both too small to tell, or the maximum that starts from the lowest finite value and
/// ignores NaN.
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

/// The first lane of cells [j0, j1) of row u where y is not the pooled x, or -1.
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
        continue;  // no cells, no maximum: and which strip sees such a window is chance
      if (!agrees(y[lane], values[lane], w, x + axis.from(j) * plan.inner + lane % plan.inner))
        return lane;
    }
  return -1;
}

/// The most windows over one cell that are asked one by one.
constexpr int kMaxCovering = 32;

/// One strip: source cells [a, b) of the first axis, and the destination cells [first, last) whose
/// windows touch them. x begins at source cell `origin`, y, g and the taps, if they are given, at
/// destination cell `first`, dx at source cell a.
template <class T>
struct Strip {
  const Plan& plan;
  const Plan& transposed;
  int64_t a, b, first, last, origin;
  const T *x, *y, *g;
  T* dx;
  const void* taps = nullptr;
  bool stream = false;  ///< dx had better go past the caches

  int64_t rows() const { return plan.rank == 1 ? 1 : (last - first) * plan.rows_per_slab(); }
  int64_t row() const { return (plan.rank == 1 ? last - first : plan.last().m) * plan.inner; }
};

/// True for halves if more than two windows may share a cell: only then it matters whether sums
/// round once or at each addition.
template <class T>
bool may_share_cells(const Plan& transposed) {
  return is_half<T> && SourceRows::capacity(transposed) * transposed.last().widest > 2;
}

/// dx by asking for each cell which of the windows that cover it chose it: no zero fill, one write
/// per cell. Halves round at each addition, or are added in float32 and round once.
template <class T>
void gather_gradients(const Strip<T>& s, const uint8_t* taps, bool once) {
  const Plan backward = strip(s.transposed, s.a, s.b, s.first);
  SourceRows covering(backward, false);
  RowRunner<T, 1, 0> runner(backward);
  WindowTaps window;
  const int64_t out_row = backward.last().m * backward.inner;
  std::conditional_t<is_real<T>, StreamWriter<T>, PlainWriter<T>> writer(
      s.dx, s.stream, out_row);  // integers: not worth the room
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

/// Finds the taps, then asks.
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

/// dx from taps that were given, by asking; the first that is outside its window is returned.
template <class T>
int64_t gather_given_taps(const Strip<T>& s) {
  const Plan forward = strip(s.plan, s.first, s.last, s.origin);
  const int64_t row = s.row(), rows = s.rows();
  const uint8_t* given = static_cast<const uint8_t*>(s.taps);
  Scratch<uint8_t> own(rows * row);  // others may write those that were given
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

/// A piece of the transposed plan from taps that were given: each gradient is added where its tap
/// is.
template <class T, class Tap>
int64_t scatter_given_taps(const Plan& plan, const Tap* taps, const T* g, T* dx, Piece p) {
  constexpr int64_t kNear = 128 << 10;  // bytes that are still in cache when gradients come
  int64_t first, last;
  windows_touching(plan.axis[0], p.h0, p.h1, first, last);
  const int64_t slab = plan.source_slab(), item = plan.axis[0].n * slab, begin = p.h0 * slab,
                size = (p.h1 - p.h0) * slab;
  const bool entire = size == item;
  TapPlaces<Tap> places(plan, entire && first == 0 && last == plan.axis[0].m,
                        Piece{p.i0, p.i1, first, last});
  const int64_t group = places.items() ? places.items() : 1,
                many = kNear / (size * static_cast<int64_t>(sizeof(T)) * group + 1) * group + group;
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

/// The same for halves of which several may share a cell: strip by strip, in float32, rounded at
/// the end.
template <class T, class Tap>
int64_t scatter_given_in_float(const Plan& plan, const Tap* taps, const T* g, T* dx, Piece p) {
  constexpr int64_t kNear = 128 << 10, kWidth = sizeof(float);  // bytes of sums at a time
  const Axis& axis = plan.axis[0];
  const int64_t slab = plan.source_slab(), item = axis.n * slab;
  const bool entire =
      p.h0 == 0 && p.h1 == axis.n && item * kWidth <= kNear;  // items, not strips of them
  int64_t first, last;
  windows_touching(axis, p.h0, p.h1, first, last);
  TapPlaces<Tap> places(plan, entire && first == 0 && last == axis.m,
                        Piece{p.i0, p.i1, first, last});
  const int64_t group = places.items() ? places.items() : 1,
                many = entire ? kNear / (item * kWidth * group + 1) * group + group : 1;
  const int64_t rows = kNear / (slab * kWidth + 1), cells = entire ? axis.n
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

/// A piece of the transposed plan from taps that were given, one by one.
template <class T, class Tap>
int64_t scatter_given(const Plan& plan, const Plan& transposed, const Tap* taps, const T* g, T* dx,
                      Piece p) {
  if constexpr (is_half<T>)
    if (may_share_cells<T>(transposed)) return scatter_given_in_float(plan, taps, g, dx, p);
  return scatter_given_taps(plan, taps, g, dx, p);
}

/// Images whose taps are found before they are followed, one by one: as many as fill vectors, 0 if
/// those have none or too many to keep.
template <class T>
int64_t images_per_scatter(const Plan& plan) {
  constexpr int64_t kTapBytes = 192 << 10, kMost = 4096;
  const int64_t taps = plan.axis[0].m * plan.dest_slab(), some = kTapBytes / (taps + 1);
  return taps && follows_single_taps(plan) && !plan.plain
             ? (some < kMost ? some : kMost) / kLanes<T> * kLanes<T>
             : 0;
}

/// dx of whole images, some at a time: their taps, found side by side, then followed as if they had
/// been given.
template <class T>
int64_t scatter_images(const Plan& plan, const T* x, const T* g, T* dx, int64_t i0, int64_t i1,
                       int64_t many) {
  const int64_t item = plan.axis[0].n * plan.source_slab(),
                d_item = plan.axis[0].m * plan.dest_slab();
  Scratch<uint8_t> taps((many + kLanes<T>)*d_item);
  for (int64_t i = i0, n; i < i1; i += n) {
    n = i1 - i < many + kLanes<T> ? i1 - i : many;  // no few are left for the end
    choose_direct<T, uint8_t>(plan, x + i * item, nullptr, taps.get(),
                              Piece{0, n, 0, plan.axis[0].m});
    scatter_given_taps<T, uint8_t>(plan, taps.get(), g + i * d_item, dx + i * item,
                                   Piece{0, n, 0, plan.axis[0].n});
  }
  return -1;
}

/// dx by adding each gradient where its window chose: the cost does not grow with the window.
template <class T>
int64_t scatter_found_taps(const Strip<T>& s) {
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

/// dx likewise, the taps found by sliding: not even finding them grows with the window.
template <class T>
int64_t scatter_slid_taps(const Strip<T>& s) {
  const Plan forward = strip(s.plan, s.first, s.last, s.origin);
  const int64_t slab = s.plan.source_slab(), size = (s.b - s.a) * slab, inner = s.plan.inner;
  clear(s.dx, size);
  if (s.first == s.last) return -1;
  const T* x = s.x - s.origin * slab;
  positions_sliding<T>(
      forward, s.x, Piece{0, 1, 0, forward.axis[0].m}, true,
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
          // A window's first cell that is NaN stays chosen: nothing is greater.
          const int64_t first =
              (upper * forward.last().n + forward.last().start[row.w0 + w]) * inner + row.c0;
          for (int64_t c = 0; c < row.lanes; ++c) {
            const Wide<T> v = load<1>(x + first + c)[0];
            const int64_t to =
                (v == v ? cell_of_key(keys[c]) * inner + row.c0 : first) + c - s.a * slab;
            // Neighbours that chose the same cell do not wait for memory.
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

/// Few enough windows per cell to ask each, and taps that fit a byte.
inline bool can_gather(const Plan& plan, const Plan& transposed) {
  return !plan.plain && SourceRows::capacity(plan) * plan.last().widest <= 255 &&
         SourceRows::capacity(transposed) * transposed.last().widest <= kMaxCovering;
}

/// Whether windows are so many, against cells, that to ask is as quick as to add.
inline bool windows_are_dense(const Plan& plan) {
  return 2 * plan.axis[0].m * plan.dest_slab() > plan.axis[0].n * plan.source_slab();
}

/// Whether taps of a plan take more than a byte.
inline bool needs_wide_taps(const Plan& plan) {
  return SourceRows::capacity(plan) * plan.last().widest > 256;
}

/// A piece of the transposed plan: dx = g put where x has its maxima, or where the taps say, which
/// then stand in for x. If y is given it must be the pooled x; the first flat position where it is
/// not, or whose tap is outside its window, is returned, else -1.
template <class T>
int64_t route_by_strips(const Plan& plan, const Plan& transposed, const T* x, const T* y,
                        const T* g, const void* taps, T* dx, Piece p, bool without_tiles = false) {
  const Axis& axis = plan.axis[0];
  const int64_t slab = plan.source_slab(), d_slab = plan.dest_slab(), item = axis.n * slab,
                d_item = axis.m * d_slab;
  const bool gathers = can_gather(plan, transposed),
             slide = has_keys<T> && !y && !taps && !plan.plain && slides_over_keys(plan);
  if (taps && needs_wide_taps(plan))
    return scatter_given(plan, transposed, static_cast<const uint32_t*>(taps), g, dx, p);
  if (taps && (!gathers || follows_single_taps(plan)))
    return scatter_given(plan, transposed, static_cast<const uint8_t*>(taps), g, dx, p);
  const bool stream = worth_streaming<T>(transposed);
  const bool images = p.h0 == 0 && p.h1 == axis.n && p.i1 - p.i0 >= kLanes<T>;
  if (const int64_t many = images_per_scatter<T>(plan);
      many && images && !windows_are_dense(plan) && gathers && !slide && !taps && !y)
    return scatter_images(plan, x, g, dx, p.i0, p.i1, many);
  const int64_t group =
      y || (slide && long_rows(plan)) || without_tiles ? 1 : images_per_tile<T>(plan, p.i1 - p.i0);
  const auto go = [&](const Strip<T>& s) {
    if (taps) return gather_given_taps(s);
    if constexpr (has_keys<T>)
      if (slide) return scatter_slid_taps(s);
    return gathers ? gather_found_taps(s) : scatter_found_taps(s);
  };
  const int64_t by_taps = kTileBytes / 2 / (d_slab + 1) * (axis.n / (axis.m ? axis.m : 1) + 1);
  const int64_t cells = group > 1                   ? rows_per_tile<T>(transposed, group, 3)
                        : !gathers || slide         ? p.h1 - p.h0 + 1
                        : by_taps > 4 * axis.widest ? by_taps
                                                    : 4 * axis.widest;
  Plan forward = plan, backward = transposed;
  forward.outer = backward.outer = 1;
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
                                Piece{i, i + valid, p.h0, p.h1},
                                true);  // side by side, another image's cell may come first
    }
  }
  return -1;
}

}  // namespace poolgrad::PG_ISA
