// Long windows, one axis after the other: the cost per cell does not grow with the window.
//
// Each axis is cut into blocks as long as its longest window. Every window then is the end of one block and the beginning of
// the next, so two running results, one from each block's end and one from its beginning, give it by a single step. Nothing is
// ever subtracted: NaN and infinity stay in their windows, and sums do not cancel.
#pragma once
#include "select.hpp"

namespace poolgrad::PG_ISA {

/// The greater of two values, the earlier of equals.
template <class T>
struct Greater {
  using Cell = T;
  template <int L>
  PG_INLINE static Vec<Wide<T>, L> join(Vec<Wide<T>, L> a, Vec<Wide<T>, L> b) { return (a < b) ? b : a; }
};

template <class A>
struct Sum {
  using Cell = A;
  template <int L>
  PG_INLINE static Vec<A, L> join(Vec<A, L> a, Vec<A, L> b) { return a + b; }
};

/// One axis: out[j] = op over in[start[j]:stop[j]], each cell a run of lanes, `from` and `to` elements apart.
template <class Op>
void slide(const Axis& axis, const typename Op::Cell* in, int64_t from, int64_t lanes, typename Op::Cell* out, int64_t to) {
  using Cell = typename Op::Cell;
  constexpr int kMost = kLanes<Cell>;
  const int64_t B = axis.widest, c0 = axis.start[0], cells = axis.stop[axis.m - 1] - c0, phase = c0 % B;
  Scratch<Cell> ends(cells * kMost), begins(cells * kMost);
  in += (c0 - axis.origin) * from;
  Meter& steps = meter();
  for_lanes<Cell>(lanes, [&](auto lane, auto many, int64_t first) {
    constexpr int L = decltype(lane)::count, N = decltype(many)::count;
    for (int64_t c = first; c < first + N * L; c += L) {
      Cell *end = ends.get(), *begin = begins.get();
      checkpoint(steps, 3 * L * cells);
      Vec<Wide<Cell>, L> run{};
      for (int64_t k = 0, left = 0; k < cells; ++k, --left) {
        const auto v = load<L>(in + k * from + c);
        if (left == 0) run = v, left = k == 0 ? B - phase : B;
        else run = Op::template join<L>(run, v);
        store<L>(begin + k * kMost, run);
      }
      for (int64_t k = cells - 1, left = 0; k >= 0; --k, --left) {
        const auto v = load<L>(in + k * from + c);
        if (left == 0) run = v, left = k == cells - 1 ? (phase + k) % B + 1 : B;
        else run = Op::template join<L>(v, run);
        store<L>(end + k * kMost, run);
      }
      for (int64_t j = 0; j < axis.m; ++j) {
        const Cell *last = begin + (axis.stop[j] - 1 - c0) * kMost, *start = end + (axis.start[j] - c0) * kMost;
        Vec<Wide<Cell>, L> y = load<L>(axis.blocks[j] == 2 ? start : last);
        if (axis.blocks[j] == 0) y = Op::template join<L>(load<L>(start), y);
        store<L>(out + j * to + c, y);
      }
    }
  });
}

/// Destination cells [a, b) of the first axis: every other axis first, slab by slab, then along it. read(cell, row, cells)
/// supplies a source row, write(cell, slab) takes a destination slab.
template <class Op>
class Slider {
 public:
  using Cell = typename Op::Cell;
  Slider(const Plan& plan, int64_t strip)
      : plan_(plan), slab_(plan.dest_slab()), row_(plan.last().n * plan.inner), spare_(between()), rows_(between()),
        slabs_((most_cells(strip)) * slab_), out_(strip * slab_) {}

  template <class Read, class Write>
  void run(int64_t a, int64_t b, Read&& read, Write&& write) {
    const Plan here = strip(plan_, a, b, plan_.axis[0].start[a]);
    const Axis& axis = here.axis[0];
    const int64_t c1 = axis.stop[axis.m - 1];
    if (plan_.rank == 2) {
      along_last(c1 - axis.origin, slabs_.get(), [&](int64_t r, Cell* row) { read(axis.origin + r, 0, row); });
    } else {
      for (int64_t h = axis.origin; h < c1; ++h) slab(slabs_.get() + (h - axis.origin) * slab_, [&](int64_t r, Cell* row) { read(h, r, row); });
    }
    slide<Op>(axis, slabs_.get(), slab_, slab_, out_.get(), slab_);
    for (int64_t j = a; j < b; ++j) write(j, out_.get() + (j - a) * slab_);
  }

 private:
  /// The widest intermediate result of one slab.
  int64_t between() const {
    int64_t most = 0, size;
    for (int k = 2; k < plan_.rank; ++k) {
      size = plan_.inner;
      for (int a = 1; a < plan_.rank; ++a) size *= a < k ? plan_.axis[a].n : plan_.axis[a].m;
      most = size > most ? size : most;
    }
    return most;
  }
  int64_t most_cells(int64_t strip) const {
    const Axis& axis = plan_.axis[0];
    int64_t most = 0;
    for (int64_t a = 0; a < axis.m; ++a) {
      const int64_t b = a + strip < axis.m ? a + strip : axis.m, need = axis.stop[b - 1] - axis.start[a];
      most = need > most ? need : most;
    }
    return most;
  }

  /// The last axis of many rows. Where a cell has few inner elements, rows side by side fill the vectors.
  template <class Read>
  void along_last(int64_t rows, Cell* to, Read&& read) {
    const Axis& last = plan_.last();
    const int64_t inner = plan_.inner, out = last.m * inner, group = inner < kLanes<Cell> && rows > 1 ? kLanes<Cell> : 1;
    Scratch<Cell> lines(group * row_), turned(group > 1 ? group * row_ : 0), done(group > 1 ? group * out : 0);
    for (int64_t r = 0; r < rows; r += group) {
      const int64_t count = r + group < rows ? group : rows - r;
      for (int64_t i = 0; i < count; ++i) read(r + i, lines.get() + i * row_);
      if (group == 1) {
        slide<Op>(last, lines.get(), inner, inner, to + r * out, inner);
        continue;
      }
      if (count < group) std::memset(static_cast<void*>(turned.get()), 0, static_cast<size_t>(group * row_) * sizeof(Cell));
      turn(lines.get(), row_, count, row_, turned.get(), group);
      slide<Op>(last, turned.get(), inner * group, inner * group, done.get(), inner * group);
      turn(done.get(), group, out, count, to + r * out, out);
    }
  }

  template <class Read>
  void slab(Cell* out, Read&& read) {
    const Axis& last = plan_.last();
    int64_t outer = 1, inner = plan_.inner;
    for (int a = 1; a + 1 < plan_.rank; ++a) outer *= plan_.axis[a].n;
    Cell* to = spare_.get();
    along_last(outer, to, read);
    inner *= last.m;
    for (int a = plan_.rank - 2; a >= 1; --a) {
      const Axis& axis = plan_.axis[a];
      const Cell* from = to;
      to = a == 1 ? out : to == spare_.get() ? rows_.get() : spare_.get();
      outer /= axis.n;
      for (int64_t r = 0; r < outer; ++r) slide<Op>(axis, from + r * axis.n * inner, inner, inner, to + r * axis.m * inner, inner);
      inner *= axis.m;
    }
  }

  const Plan& plan_;
  const int64_t slab_, row_;
  Scratch<Cell> spare_, rows_, slabs_, out_;
};

/// Calls f(item, a, b) for strips of destination cells: as many as a core's own memory holds, but not so few that reading
/// their surroundings again would cost most of the time.
template <class F>
void each_strip(Piece p, int64_t strip, F&& f) {
  for (int64_t i = p.i0; i < p.i1; ++i)
    for (int64_t a = p.h0; a < p.h1; a += strip) f(i, a, a + strip < p.h1 ? a + strip : p.h1);
}
inline int64_t strip_cells(const Plan& plan, int64_t cell_bytes) {
  const Axis& axis = plan.axis[0];
  const int64_t most = (160 << 10) / (plan.dest_slab() * cell_bytes + 1) - axis.widest;
  return most > axis.widest ? most : axis.widest;
}

/// Whether sliding is possible, and saves work: a step of it costs as much as `step` visits to a cell. The same at every ISA
/// level, since sums depend on it.
inline bool slides(const Plan& plan, double step) {
  double direct = 1, passes = 0;
  if (plan.rank < 2 || plan.outer * plan.inner == 0) return false;
  for (int k = 0; k < plan.rank; ++k) {
    const Axis& axis = plan.axis[k];
    if (!axis.blocks) return false;
    direct *= static_cast<double>(axis.m * axis.widest);
    double size = 1;
    for (int a = 0; a < plan.rank; ++a) size *= static_cast<double>(a <= k ? plan.axis[a].n : plan.axis[a].m);
    passes += size;
  }
  return direct > step * passes;
}

/// The cells of a destination slab, cell by cell: f(cell along each axis but the first, lanes' offset).
template <class F>
PG_INLINE void each_cell(const Plan& plan, F&& f) {
  int64_t cells = 1, at[kMaxRank];
  for (int a = 1; a < plan.rank; ++a) cells *= plan.axis[a].m;
  for (int64_t k = 0; k < cells; ++k) {
    int64_t rest = k;
    for (int a = plan.rank - 1; a >= 1; --a) {
      at[a] = rest % plan.axis[a].m;
      rest /= plan.axis[a].m;
    }
    f(at, k * plan.inner);
  }
}

/// Where rows are read from: row r of cell h of the first axis.
struct RowsOf {
  explicit RowsOf(const Plan& plan)
      : row(plan.last().n * plan.inner), slab(plan.source_slab()), origin(plan.axis[0].origin) {}
  PG_INLINE int64_t operator()(int64_t h, int64_t r) const { return (h - origin) * slab + r * row; }
  int64_t row, slab, origin;
};

}  // namespace poolgrad::PG_ISA
