// Maxima of long windows, and where they are: by sliding over values, or over keys that hold value and position.
#pragma once
#include "slide.hpp"

namespace poolgrad::PG_ISA {

/// A window that was cut at an edge has seen the lowest finite value there.
template <class T>
void raise_cut(const Plan& plan, int64_t j, T* slab) {
  const auto cut = [](const Axis& axis, int64_t k) { return axis.span && axis.span[k] != axis.length(k); };
  each_cell(plan, [&](const int64_t* at, int64_t lane) {
    bool any = cut(plan.axis[0], j);
    for (int k = 1; k < plan.rank; ++k) any |= cut(plan.axis[k], at[k]);
    if (!any) return;
    for (int64_t c = lane; c < lane + plan.inner; ++c)
      if (load<1>(slab + c)[0] < lowest<T>()) store<1>(slab + c, Vec<Wide<T>, 1>{lowest<T>()});
  });
}

/// Maxima by sliding. Whatever is not greater than the start value counts as the start value, NaN included.
template <class T>
void select_sliding(const Plan& whole, const RowArrays<T, 1, 0>& arrays, Start start, Piece piece) {
  in_tiles<T>(whole, arrays, piece, [&](const Plan& plan, const RowArrays<T, 1, 0>& a, Piece p) {
    const RowsOf rows(plan);
    const int64_t d_slab = plan.dest_slab(), cells = strip_cells(plan, sizeof(T));
    const Wide<T> from = start_value<T>(start, false);
    Slider<Greater<T>> slider(plan, cells);
    each_strip(p, cells, [&](int64_t i, int64_t h0, int64_t h1) {
      const T* x = a.source[0] + i * plan.axis[0].n * rows.slab;
      T* y = a.out + i * plan.axis[0].m * d_slab;
      const auto read = [&](int64_t h, int64_t r, T* to) {
        const T* source = x + rows(h, r);
        for_lanes<T>(rows.row, [&](auto lane, auto many, int64_t c) {
          constexpr int L = decltype(lane)::count, N = decltype(many)::count;
          for (int k = 0; k < N; ++k) {
            const Vec<Wide<T>, L> v = load<L>(source + c + k * L), s = all<Wide<T>, L>(from);
            store<L>(to + c + k * L, (s < v) ? v : s);
          }
        });
      };
      slider.run(h0, h1, read, [&](int64_t j, T* slab) {
        std::memcpy(static_cast<void*>(y + j * d_slab), slab, static_cast<size_t>(d_slab) * sizeof(T));
        if (start == Start::infinity) raise_cut(plan, j, y + j * d_slab);
      });
    });
  });
}

/// A number that orders cells as their values do, both zeros alike, NaN lowest.
template <class T, int L>
PG_INLINE Vec<uint32_t, L> rank_of(Vec<Wide<T>, L> v) {
  if constexpr (is_real<T>) {
    const Vec<uint32_t, L> u = bitcast<Vec<uint32_t, L>>(v + 0.0f);
    const Vec<uint32_t, L> ordered = (u >> 31) != 0 ? ~u : u | 0x80000000u;
    return (v == v) ? ordered : Vec<uint32_t, L>{};
  } else if constexpr (std::is_signed_v<T>) {
    return bitcast<Vec<uint32_t, L>>(convert<int32_t, L, T>(v)) ^ 0x80000000u;
  } else {
    return convert<uint32_t, L, T>(v);
  }
}

/// Types whose value and position fit one 64-bit key.
template <class T>
constexpr bool has_keys = sizeof(Wide<T>) <= 4;

inline bool keyed(const Plan& plan) { return slides(plan, 12) && plan.axis[0].n * plan.source_slab() < int64_t{1} << 32; }

/// The first maximum of each window by sliding over keys of (value, position): f(item, cell of the first axis, positions, at)
/// for every destination slab, positions being cells of the item.
template <class T, class F>
void positions_sliding(const Plan& plan, const T* x, Piece p, F&& f) {
  const RowsOf rows(plan);
  const int64_t cells = strip_cells(plan, 8), per_slab = rows.slab / plan.inner, per_row = plan.last().n;
  Slider<Greater<uint64_t>> slider(plan, cells);
  each_strip(p, cells, [&](int64_t i, int64_t h0, int64_t h1) {
    const T* item = x + i * plan.axis[0].n * rows.slab;
    const auto read = [&](int64_t h, int64_t r, uint64_t* to) {
      const T* source = item + rows(h, r);
      for (int64_t w = 0; w < per_row; ++w) {
        const uint64_t place = 0xffffffffu - static_cast<uint64_t>(h * per_slab + r * per_row + w);
        for_lanes<T>(plan.inner, [&](auto lane, auto many, int64_t first) {
          constexpr int L = decltype(lane)::count, N = decltype(many)::count;
          for (int64_t c = w * plan.inner + first; c < w * plan.inner + first + N * L; c += L) {
            const Vec<uint64_t, L> key = (convert<uint64_t, L, uint32_t>(rank_of<T, L>(load<L>(source + c))) << 32) | place;
            std::memcpy(to + c, &key, sizeof key);
          }
        });
      }
    };
    slider.run(h0, h1, read, [&](int64_t j, const uint64_t* keys) {
      each_cell(plan, [&](const int64_t* at, int64_t lane) {
        int64_t first = plan.axis[0].start[j];
        for (int a = 1; a < plan.rank; ++a) first = first * plan.axis[a].n + plan.axis[a].start[at[a]];
        f(i, j, at, lane, keys + lane, first);
      });
    });
  });
}

/// The cell that a key names; the window's first cell if that is NaN, which nothing replaces.
template <class T>
PG_INLINE int64_t chosen(const T* x, uint64_t key, int64_t first, int64_t inner, int64_t c) {
  if constexpr (is_real<T>) {
    const Wide<T> v = load<1>(x + first * inner + c)[0];
    if (v != v) return first;
  }
  return static_cast<int64_t>(0xffffffffu - (key & 0xffffffffu));
}

/// v at the first cell of one window where x equals y.
template <class T>
T search(const Plan& plan, const T* x, const T* v, T y, int64_t j, const int64_t* cell, int64_t c) {
  int64_t at[kMaxRank], lo[kMaxRank], hi[kMaxRank], steps = 0;
  for (int a = 0; a < plan.rank; ++a) {
    const int64_t k = a ? cell[a] : j;
    at[a] = lo[a] = plan.axis[a].start[k];
    hi[a] = plan.axis[a].stop[k];
  }
  for (;;) {
    int64_t place = 0;
    for (int a = 0; a < plan.rank; ++a) place = place * plan.axis[a].n + at[a];
    if (load<1>(x + place * plan.inner + c)[0] == load<1>(&y)[0]) return v[place * plan.inner + c];
    if (++steps % 1024 == 0) checkpoint(meter(), 1024 * 4);
    int a = plan.rank - 1;
    while (a >= 0 && ++at[a] == hi[a]) at[a] = lo[a], --a;
    if (a < 0) return T{};
  }
}

/// out = v where x first equals y. Where y is not the window's maximum the window is searched.
template <class T>
void recall_sliding(const Plan& whole, const RowArrays<T, 2, 1>& arrays, Piece piece) {
  in_tiles<T>(whole, arrays, piece, [&](const Plan& plan, const RowArrays<T, 2, 1>& a, Piece p) {
    const int64_t slab = plan.source_slab(), d_slab = plan.dest_slab(), item = plan.axis[0].n * slab, shift = plan.axis[0].origin * slab;
    positions_sliding<T>(plan, a.source[0], p, [&](int64_t i, int64_t j, const int64_t* at, int64_t lane, const uint64_t* keys, int64_t) {
      const T *x = a.source[0] + i * item - shift, *v = a.source[1] + i * item - shift;
      const int64_t place = i * plan.axis[0].m * d_slab + j * d_slab + lane;
      for (int64_t c = 0; c < plan.inner; ++c) {
        const int64_t best = static_cast<int64_t>(0xffffffffu - (keys[c] & 0xffffffffu)) * plan.inner + c;
        if (load<1>(x + best)[0] == load<1>(a.partner[0] + place + c)[0]) a.out[place + c] = v[best];
        else a.out[place + c] = search(plan, x, v, a.partner[0][place + c], j, at, c);
      }
    });
  });
}

}  // namespace poolgrad::PG_ISA
