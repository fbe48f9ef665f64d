// The transposed tile: an adaptor for plans with few inner elements. It transposes a tile of
// several images so that one cell of all images is contiguous, runs a loop with these cells as
// inner lanes, and transposes the result back:
//
//   image 0   a0 a1 a2 ...          a0 b0 c0 d0 | a1 b1 c1 d1 | ...
//   image 1   b0 b1 b2 ...    ->    one vector per cell
//   image 2   c0 c1 c2 ...
//   image 3   d0 d1 d2 ...
#pragma once
#include "loops/direct.hpp"
#include "loops/when.hpp"
#include "simd/stream.hpp"
#include "simd/transpose.hpp"

namespace poolgrad::PG_ISA {

/// A transposed tile: the elements of `group` images, cell by cell.
template <class T>
class Tile {
 public:
  Tile(int64_t elements, int64_t group) : group_(group), data_(elements * group) {}

  const T* read(const T* image, int64_t item, int64_t begin, int64_t elements, int64_t valid) {
    if (valid < group_)
      std::memset(static_cast<void*>(data_.get()), 0,
                  static_cast<size_t>(elements * group_) * sizeof(T));
    transpose(image + begin, item, valid, elements, data_.get(), group_);
    return data_.get();
  }
  void write(T* image, int64_t item, int64_t begin, int64_t elements, int64_t valid) {
    transpose(data_.get(), group_, elements, valid, image + begin, item);
  }
  T* get() { return data_.get(); }

 private:
  int64_t group_;
  Scratch<T> data_;
};

/// Call run(plan, arrays, piece). Not inlined: loops over tiles and the whole piece share its code.
template <class Run, class Arrays>
[[gnu::noinline]] void call_shared(Run& run, const Plan& plan, const Arrays& a, Piece p) {
  run(plan, a, p);
}

/// Call run(plan, arrays, piece) on the piece itself, or on its transposed tiles.
template <class T, int Sources, int Partners, class Run>
void for_tiles(const Plan& plan, const RowArrays<T, Sources, Partners>& a, Piece p, Run&& run) {
  const int64_t group = images_per_tile<T>(plan, p.i1 - p.i0);
  if (group == 1 || p.h0 == p.h1) return call_shared(run, plan, a, p);
  const Axis& axis = plan.axis[0];
  const int64_t s_slab = plan.source_slab(), d_slab = plan.dest_slab(), s_item = axis.n * s_slab,
                d_item = axis.m * d_slab;
  const int64_t cells = rows_per_tile<T>(plan, group, Sources + Partners + 1);
  int64_t most = 0;
  for (int64_t h = p.h0; h < p.h1; h += cells) {
    const int64_t end = h + cells < p.h1 ? h + cells : p.h1,
                  need = axis.stop[end - 1] - axis.start[h];
    most = need > most ? need : most;
  }
  Tile<T> first(most * s_slab, group), second(Sources > 1 ? most * s_slab : 0, group);
  Tile<T>* const source[] = {&first, &second};
  Tile<T> partner(Partners ? cells * d_slab : 0, group), out(cells * d_slab, group);
  for (int64_t i = p.i0; i < p.i1; i += group) {
    const int64_t valid = i + group < p.i1 ? group : p.i1 - i;
    for (int64_t h = p.h0; h < p.h1; h += cells) {
      const int64_t end = h + cells < p.h1 ? h + cells : p.h1, s0 = axis.start[h],
                    s1 = axis.stop[end - 1];
      Plan local = strip(plan, h, end, s0);
      local.outer = 1;
      local.in_cache = true;
      local.inner = plan.inner * group;
      RowArrays<T, Sources, Partners> b{};
      for (int k = 0; k < Sources; ++k)
        b.source[k] = source[k]->read(a.source[k] + i * s_item, s_item, s0 * s_slab,
                                      (s1 - s0) * s_slab, valid);
      if constexpr (Partners > 0)
        b.partner[0] =
            partner.read(a.partner[0] + i * d_item, d_item, h * d_slab, (end - h) * d_slab, valid);
      b.out = out.get();
      call_shared(run, local, b, Piece{0, 1, 0, end - h});
      out.write(a.out + i * d_item, d_item, h * d_slab, (end - h) * d_slab, valid);
    }
  }
}

/// Return true if some window of destination row u has at most kLongSum cells.
inline bool has_short_window(const Plan& plan, int64_t u) {
  const Axis& last = plan.last();
  int64_t least = last.n;
  for (int64_t j = 0; j < last.m; j = last.next_other(j))
    least = last.length(j) < least ? last.length(j) : least;
  for (int a = plan.rank - 2; a >= 0; u /= plan.axis[a--].m)
    least *= plan.axis[a].length(u % plan.axis[a].m);
  return least <= kLongSum;
}

/// Run a cell kernel over the rows of a piece, in transposed tiles if they fill the vectors. With
/// `only_short`, skip rows without short windows. With `Streamed`, stream the result if the arrays
/// ask for it.
template <class T, bool Streamed = false, int Sources, int Partners, class Cell>
void over_rows(const Plan& full_plan, const RowArrays<T, Sources, Partners>& arrays, bool reversed,
               Piece piece, Cell&& cell, bool only_short = false) {
  for_tiles<T>(full_plan, arrays, piece,
               [&](const Plan& plan, const RowArrays<T, Sources, Partners>& a, Piece p) {
                 SourceRows rows(plan, reversed);
                 RowRunner<T, Sources, Partners> runner(plan, reversed);
                 WindowTaps window;
                 const int64_t item = plan.axis[0].n * plan.source_slab(),
                               per = plan.rows_per_item(), row = plan.last().m * plan.inner;
                 std::conditional_t<Streamed, StreamWriter<T>, PlainWriter<T>> writer(
                     a.out, a.stream && !only_short, row);
                 each_row(plan, p, [&](int64_t i, int64_t u, int64_t j0, int64_t j1) {
                   if (only_short && !has_short_window(plan, u)) return;
                   RowArrays<T, Sources, Partners> b = a;
                   for (auto& s : b.source) s += i * item;
                   if constexpr (Partners > 0)
                     for (auto& q : b.partner) q += (i * per + u) * row;
                   b.out =
                       writer.open((i * per + u) * row + j0 * plan.inner, (j1 - j0) * plan.inner) -
                       j0 * plan.inner;
                   rows.seek(u, window);
                   runner.run(window, b, j0, j1, cell);
                 });
                 writer.close();
               });
}

}  // namespace poolgrad::PG_ISA
