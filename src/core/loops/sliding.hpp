// Sliding: reduce long windows one axis after the other. The cost per cell hardly grows with the
// window.
//
// All axes but the last use the van Herk / Gil-Werman algorithm. The axis is cut into blocks as
// long as its longest window B. Each window is the end of one block and the start of the next, so
// it needs one join of a suffix and a prefix:
//
//   cells      a b c d | e f g h | i j k l       B = 4
//   window           [d   e f g]                 = suffix(d) join prefix(e f g)
//
// Slabs arrive one by one; memory holds one block of them, whose suffixes are computed when it is
// complete, and a running prefix.
//
// The last axis joins a line with itself, shifted by 1, 2, 4, ... cells, until its cells span whole
// windows (doubling). A window of any length is two overlapping spans (maxima) or one span per bit
// of its length (sums), the shortest first. In lines of at least 64 cells, or of two longest
// windows, a window at an edge counts as long as the longest one, with neutral cells beyond the
// edge, so that neighbours are computed together. Windows of up to 6 cells join cell by cell.
//
// Nothing is subtracted: NaN and infinity stay in their windows, and sums do not cancel. The way a
// window is composed depends on its place on its axis alone, not on tiles or pieces. A part of an
// axis knows the axis that it was cut from (`Axis::whole`), so it composes windows as the whole
// does:
//
//   whole      a b c d | e f g h | i j k l       B = 4
//   part               | . f g h | i j .         first = 5: its first block has 3 cells
// Source: M. van Herk, "A fast algorithm for local minimum and maximum filters on rectangular and
// octagonal kernels", Pattern Recognition Letters 13 (1992); J. Gil, M. Werman, "Computing 2-D min,
// median, and max filters", IEEE PAMI 15 (1993). Doubling: W. D. Hillis, G. L. Steele, "Data
// parallel algorithms", CACM 29 (1986).
#pragma once
#include "loops/transposed_tile.hpp"

namespace poolgrad::PG_ISA {

/// A row of a tile, in the source or in the destination: cells [w0, w0 + cells) of the last axis,
/// lanes [c0, c0 + lanes) of each.
struct TileRow {
  const int64_t* at;  ///< its cell along each axis but the last
  int64_t item;       ///< the item
  int64_t place;      ///< the offset of its first lane in the item
  int64_t w0, cells, c0, lanes, inner;

  /// Call f(offset in the item, offset in the row of the tile, lanes) for the contiguous spans of
  /// cells [w, end).
  template <class F>
  PG_INLINE void for_spans(int64_t w, int64_t end, F&& f) const {
    if (lanes == inner) return f(place + w * inner, w * lanes, (end - w) * lanes);
    for (; w < end; ++w) f(place + w * inner, w * lanes, lanes);
  }
  /// Call f(number, w, end) for runs of cells with equal numbers. next(w) is the first cell behind w
  /// whose number may differ.
  template <class Next, class Number, class F>
  PG_INLINE void for_equal_runs(Next&& next, Number&& number, F&& f) const {
    const int64_t stop = w0 + cells;
    for (int64_t w = w0, end; w < stop; w = end) {
      const auto n = number(w);
      for (end = next(w); end < stop && number(end) == n;) end = next(end);
      end = end < stop ? end : stop;
      f(n, w - w0, end - w0);
    }
  }
};

/// Set to = a join b; rows are whole vectors.
template <class Op>
PG_INLINE void join_rows(const typename Op::Cell* a, const typename Op::Cell* b,
                         typename Op::Cell* to, int64_t n) {
  constexpr int L = kLanes<typename Op::Cell>;
  for (int64_t c = 0; c < n; c += L)
    store<L>(to + c, Op::template join<L>(load<L>(a + c), load<L>(b + c)));
}

/// Set line[c] = (line[c] join line[c + span]) join (line[c + 2 span] join line[c + 3 span]).
template <class Op>
[[gnu::noinline]] void join_four_rows(typename Op::Cell* line, int64_t span, int64_t n) {
  constexpr int L = kLanes<typename Op::Cell>;
  for (int64_t c = 0; c < n; c += L) {
    const auto *const a = line + c, *const b = a + 2 * span;
    store<L>(line + c,
             Op::template join<L>(Op::template join<L>(load<L>(a), load<L>(a + span)),
                                  Op::template join<L>(load<L>(b), load<L>(b + span))));
  }
}

/// Windows of up to this many cells join cell by cell along a line.
constexpr int64_t kShortLine = 6;

/// Return true to make windows at an edge of the whole axis as long as its longest window, by
/// neutral cells. In a line of few inner elements, neighbouring windows then share vectors; if most
/// windows are at an edge, the neutral cells cost more than that saves.
inline bool extends_edges(const Whole& whole) {
  return whole.n >= 64 || whole.n >= 2 * whole.widest || whole.widest <= kShortLine;
}

/// Reduce a line: out[j] = op over the cells of window j.
template <class Op>
class LineReducer {
 public:
  using Cell = typename Op::Cell;
  static constexpr int L = kLanes<Cell>;

  explicit LineReducer(const Axis& axis)
      : axis_(axis), widest_(axis.whole.widest), at_end_(axis.m) {
    const Whole& whole = axis.whole;
    if (Op::idempotent || extends_edges(whole)) {
      while (inside_ < axis.m && axis.start[inside_] + whole.first == 0) ++inside_;
      while (at_end_ > inside_ && axis.stop[at_end_ - 1] + whole.first == whole.n) --at_end_;
    }
    unit_step_ = axis.m == 0 || begin(axis.m - 1) == begin(0) + axis.m - 1;
    for (int64_t j = 0; j < axis.m && alike_; j = axis.next_other(j)) {
      alike_ = end(j) == begin(j) + widest_;
      unit_step_ &= begin(j) == begin(0) + j;
    }
    unit_step_ &= alike_;
  }

  /// Return the begin and the end of window j, neutral cells included.
  int64_t begin(int64_t j) const { return j < inside_ ? axis_.stop[j] - widest_ : axis_.start[j]; }
  int64_t end(int64_t j) const { return j < at_end_ ? axis_.stop[j] : begin(j) + widest_; }

  /// Return the elements that the line of windows [j0, j1) needs, with room for vectors that read
  /// past its end.
  int64_t room(int64_t j0, int64_t j1, int64_t lanes) const {
    const int64_t cells = end(j1 - 1) - begin(j0);
    return (cells + widest_ + (fills_gaps(j0, j1, lanes) ? cells : 0)) * lanes + 3 * L;
  }

  /// Reduce the line of windows [j0, j1). The line begins at window j0, holds its cells, and is
  /// overwritten.
  [[gnu::noinline]] void run(int64_t j0, int64_t j1, int64_t lanes, Cell* line, Cell* out) const {
    const int64_t B = widest_, cells = end(j1 - 1) - begin(j0),
                  lead = axis_.start[j0] - begin(j0), tail = axis_.stop[j1 - 1] - begin(j0);
    for (int64_t c = 0; c < lead * lanes; ++c) line[c] = Op::neutral();
    for (int64_t c = tail * lanes; c < cells * lanes; ++c) line[c] = Op::neutral();
    if (fills_gaps(j0, j1, lanes)) return reduce_gaps(j0, j1, lanes, cells, line, out);
    if (B <= kShortLine && unit_step_) return reduce_short(line, lanes, (j1 - j0) * lanes, out);
    if (B <= kShortLine)
      return each_window(j0, j1, [&](int64_t j, int64_t first, int64_t length) {
        reduce_short_of(line + first * lanes, length, lanes, out + (j - j0) * lanes);
      });
    double_spans(line, cells, lanes, [&](int64_t span) PG_LAMBDA {
      if (unit_step_) combine_span(line, span, B, lanes, (j1 - j0) * lanes, out);
      else
        each_window(j0, j1, [&](int64_t j, int64_t first, int64_t length) {
          combine_span_of(line + first * lanes, span, length, lanes, out + (j - j0) * lanes);
        });
    });
  }

 private:
  /// Call combine(span) when the cells of the line span 1, 2, 4, ... cells, up to the longest
  /// window; leave out spans that no window needs.
  template <class Combine>
  PG_INLINE void double_spans(Cell* line, int64_t cells, int64_t lanes, Combine&& combine) const {
    for (int64_t span = 1;;) {
      combine(span);
      if (2 * span > widest_) return;
      const bool twice = alike_ && 4 * span <= widest_ && (Op::idempotent || !(widest_ & 2 * span));
      if (twice) join_four_rows<Op>(line, span * lanes, (cells - 4 * span + 1) * lanes);
      else join_rows<Op>(line, line + span * lanes, line, (cells - 2 * span + 1) * lanes);
      span *= twice ? 4 : 2;
    }
  }

  /// Return true to compute a window at every cell, and keep those that exist: vectors do not fit
  /// between windows that are a few cells apart.
  bool fills_gaps(int64_t j0, int64_t j1, int64_t lanes) const {
    return alike_ && !unit_step_ && widest_ > kShortLine &&
           (begin(j1 - 1) - begin(j0)) * lanes <= 4 * L * (j1 - 1 - j0);
  }
  void reduce_gaps(int64_t j0, int64_t j1, int64_t lanes, int64_t cells, Cell* line,
                   Cell* out) const {
    Cell* const every = line + (cells + widest_) * lanes + L;
    double_spans(line, cells, lanes, [&](int64_t span) PG_LAMBDA {
      combine_span(line, span, widest_, lanes, (cells - widest_ + 1) * lanes, every);
    });
    each_window(j0, j1, [&](int64_t j, int64_t first, int64_t) PG_LAMBDA {
      std::memcpy(out + (j - j0) * lanes, every + first * lanes,
                  static_cast<size_t>(lanes) * sizeof(Cell));
    });
  }

  /// Call f(j, first cell in the line, cells) for windows [j0, j1), whose line begins at window j0.
  template <class F>
  PG_INLINE void each_window(int64_t j0, int64_t j1, F&& f) const {
    const int64_t *const start = axis_.start, *const stop = axis_.stop, line = begin(j0);
    for (int64_t j = j0; j < j1; ++j) {
      const bool at_start = j < inside_;
      f(j, (at_start ? stop[j] - widest_ : start[j]) - line,
        at_start || j >= at_end_ ? widest_ : stop[j] - start[j]);
    }
  }

  void reduce_short(const Cell* line, int64_t lanes, int64_t n, Cell* out) const {
    for (int64_t c = 0; c < n; c += L) {
      auto v = load<L>(line + c);
      for (int64_t t = 1; t < widest_; ++t)
        v = Op::template join<L>(v, load<L>(line + c + t * lanes));
      store<L>(out + c, v);
    }
  }

  /// Do the same for one window; leave its neighbours in `out` alone.
  [[gnu::noinline]] static void reduce_short_of(const Cell* line, int64_t length, int64_t lanes,
                                                Cell* out) {
    for_lanes<Cell>(lanes, [&](auto lane, auto many, int64_t first) {
      constexpr int V = decltype(lane)::count, N = decltype(many)::count;
      for (int64_t c = first; c < first + N * V; c += V) {
        auto v = load<V>(line + c);
        for (int64_t t = 1; t < length; ++t)
          v = Op::template join<V>(v, load<V>(line + c + t * lanes));
        store<V>(out + c, v);
      }
    });
  }

  /// Each cell of the line spans `span` cells: join what that gives to windows of `length` cells,
  /// which begin at successive cells.
  static void combine_span(const Cell* line, int64_t span, int64_t length, int64_t lanes, int64_t n,
                           Cell* out) {
    if constexpr (Op::idempotent) {
      if (span <= length && length < 2 * span)
        join_rows<Op>(line, line + (length - span) * lanes, out, n);
    } else if (length & span) {
      const int64_t done = length & (span - 1);
      if (done) join_rows<Op>(out, line + done * lanes, out, n);
      else std::memcpy(out, line, static_cast<size_t>(n) * sizeof(Cell));
    }
  }
  /// Do the same for one window; leave its neighbours in `out` alone.
  static void combine_span_of(const Cell* line, int64_t span, int64_t length, int64_t lanes,
                              Cell* out) {
    const int64_t done = Op::idempotent ? length - span : length & (span - 1);
    if (Op::idempotent ? length < span || length >= 2 * span : !(length & span)) return;
    const Cell* earlier = Op::idempotent ? line : out;
    if (done == 0) std::memcpy(out, line, static_cast<size_t>(lanes) * sizeof(Cell));
    else
      for_lanes<Cell>(lanes, [&](auto lane, auto many, int64_t first) {
        constexpr int V = decltype(lane)::count, N = decltype(many)::count;
        for (int64_t c = first; c < first + N * V; c += V)
          store<V>(out + c,
                   Op::template join<V>(load<V>(earlier + c), load<V>(line + done * lanes + c)));
      });
  }

  const Axis& axis_;
  const int64_t widest_;
  int64_t inside_ = 0;     // windows before this one begin before the line
  int64_t at_end_;         // windows from this one on end after the line
  bool alike_ = true;      // windows are equally long
  bool unit_step_ = true;  // neighbouring windows are also one cell apart
};

/// Slide over a piece of a plan, tile by tile. read(row, cells) supplies a source row, write(row,
/// cells) receives a destination row. With `keep_order`, the rows of each lane arrive in order.
template <class Op>
class SlidingReducer {
 public:
  using Cell = typename Op::Cell;
  explicit SlidingReducer(const Plan& plan, bool keep_order = false)
      : plan_(plan), top_(plan.rank - 1), line_(plan.last()), memory_(measure(keep_order)) {
    std::memset(memory_.get(), 0, static_cast<size_t>(total_) * sizeof(Cell));
    Cell* p = memory_.get();
    for (int a = 0; a < top_; ++a) {
      ring_[a] = p;
      begin_[a] = p + slots(plan.axis[a]) * size_[a + 1];
      p = begin_[a] + size_[a + 1];
    }
    slab_ = p;
    row_ = p + size_[1];
  }

  template <class Read, class Write>
  void run(Piece p, Read&& read, Write&& write) {
    for (int64_t i = p.i0; i < p.i1; ++i) {
      for (int a = 1; a <= top_; ++a) from_[a] = 0;
      for (int64_t c = 0; c < plan_.inner; c += lanes_) {
        do {
          for (int a = 1; a <= top_; ++a) to_[a] = least(from_[a] + tile_[a], plan_.axis[a].m);
          row_of_ = TileRow{at_, i, 0, 0, 0, c, least(lanes_, plan_.inner - c), plan_.inner};
          from_[0] = p.h0, to_[0] = p.h1;
          reduce_axis(0, slab_, read, [&](int64_t j) { emit_rows(j, write); });
        } while (next_tile());
      }
    }
  }

 private:
  static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
  /// Count the slabs of a ring: those of a block.
  static int64_t slots(const Axis& axis) { return least(axis.whole.widest, axis.n); }
  static constexpr int64_t padded(int64_t n) {
    return (n + kLanes<Cell> - 1) / kLanes<Cell> * kLanes<Cell>;
  }

  /// Cut the work into tiles that fit the memory: first by lanes, which costs nothing, then along
  /// the axis whose windows overlap a cut least.
  int64_t measure(bool keep_order) {
    lanes_ = plan_.inner;
    for (int a = 1; a <= top_; ++a) tile_[a] = plan_.axis[a].m;
    while (size() * static_cast<int64_t>(sizeof(Cell)) > kSlideBytes) {
      if (lanes_ > (keep_order ? 4 : 16)) {
        lanes_ = (lanes_ + 1) / 2;
        continue;
      }
      int longest = 0;
      for (int a = 1; a <= top_ && !keep_order; ++a)
        if (tile_[a] >= 2 * plan_.axis[a].widest &&
            (!longest ||
             tile_[a] * plan_.axis[longest].widest > tile_[longest] * plan_.axis[a].widest))
          longest = a;
      if (!longest) break;
      tile_[longest] = (tile_[longest] + 1) / 2;
    }
    return total_ = size();
  }
  int64_t size() {
    size_[top_] = padded(tile_[top_] * lanes_);
    int64_t sum = 0, room = 0;
    for (int a = top_; a-- > 0;) {
      sum += (slots(plan_.axis[a]) + 1) * size_[a + 1];
      size_[a] = (a ? tile_[a] : 1) * size_[a + 1];
    }
    for (int64_t j = 0; j < plan_.last().m; j += tile_[top_]) {
      const int64_t need = line_.room(j, least(j + tile_[top_], plan_.last().m), lanes_);
      room = need > room ? need : room;
    }
    return sum + size_[1] + room;
  }

  bool next_tile() {
    for (int a = top_; a >= 1; --a) {
      if ((from_[a] += tile_[a]) < plan_.axis[a].m) return true;
      from_[a] = 0;
    }
    return false;
  }

  /// Reduce axes `a` and following at the current source cell of the axes before.
  template <class Read>
  [[gnu::noinline]] void reduce_slab(int a, Cell* to, Read&& read) {
    if (a < top_) return reduce_axis(a, to, read, [](int64_t) {});
    const int64_t j0 = from_[a], j1 = to_[a];
    TileRow row = row_of_;
    row.w0 = plan_.axis[a].start[j0];
    row.cells = plan_.axis[a].stop[j1 - 1] - row.w0;
    checkpoint(steps_, 8 * row.cells * row.lanes);
    row.place = at_[0] - plan_.axis[0].origin;
    for (int k = 1; k < a; ++k) row.place = row.place * plan_.axis[k].n + at_[k];
    row.place = (row.place * plan_.axis[a].n + row.w0) * row.inner + row.c0;
    read(row, row_ + (row.w0 - line_.begin(j0)) * row.lanes);
    line_.run(j0, j1, row.lanes, row_, to);
  }

  /// Reduce axis a of the tile: `out` receives its destination cells one after the other, or all in
  /// one place if a is the first axis.
  template <class Read, class Done>
  void reduce_axis(int a, Cell* out, Read&& read, Done&& done) {
    const Axis& axis = plan_.axis[a];
    const int64_t B = axis.whole.widest, slots = SlidingReducer::slots(axis), n = size_[a + 1],
                  j1 = to_[a], s0 = axis.start[from_[a]], s1 = axis.stop[j1 - 1], step = a ? n : 0;
    Cell *const ring = ring_[a], *const ring_end = ring + slots * n, *run = nullptr,
                *slab = ring + s0 % slots * n;
    const auto end_of_block = [&](int64_t j) { return ring + axis.start[j] % slots * n; };
    int64_t j = from_[a];
    for (int64_t s = s0, r = (s0 + axis.whole.first) % B; s < s1;
         ++s, r = r + 1 == B ? 0 : r + 1, slab = slab + n == ring_end ? ring : slab + n) {
      at_[a] = s;
      reduce_slab(a + 1, slab, read);
      const bool fresh = s == s0 || r == 0,
                 both = !fresh && j < j1 && axis.stop[j] == s + 1 && axis.blocks[j] == 0;
      if (both) extend_and_join(run, slab, begin_[a], end_of_block(j), out, n);
      else if (!fresh) join_rows<Op>(run, slab, begin_[a], n);
      run = fresh ? slab : begin_[a];
      for (bool made = both; j < j1 && axis.stop[j] == s + 1 && axis.blocks[j] != 2;
           made = false, out += step, done(j++))
        if (axis.blocks[j] == 1) std::memcpy(out, run, static_cast<size_t>(n) * sizeof(Cell));
        else if (!made) join_rows<Op>(end_of_block(j), run, out, n);
      if (j == j1 || (r < B - 1 && s < axis.n - 1)) continue;
      Cell* next = slab;
      for (int64_t k = least(r, s - s0); k > 0; --k) {
        Cell* const here = (next == ring ? ring_end : next) - n;
        join_rows<Op>(here, next, here, n);
        next = here;
      }
      for (; j < j1 && axis.stop[j] == s + 1; out += step, done(j++))
        std::memcpy(out, end_of_block(j), static_cast<size_t>(n) * sizeof(Cell));
    }
  }

  /// Set begin = run join slab, and out = end join begin.
  static void extend_and_join(const Cell* run, const Cell* slab, Cell* begin, const Cell* end,
                              Cell* out, int64_t n) {
    constexpr int L = kLanes<Cell>;
    for (int64_t c = 0; c < n; c += L) {
      const auto v = Op::template join<L>(load<L>(run + c), load<L>(slab + c));
      store<L>(begin + c, v);
      store<L>(out + c, Op::template join<L>(load<L>(end + c), v));
    }
  }

  /// Write the rows of destination cell j.
  template <class Write>
  [[gnu::noinline]] void emit_rows(int64_t j, Write&& write) {
    int64_t rows = 1, at[kMaxRank] = {j};
    for (int a = 1; a < top_; ++a) rows *= to_[a] - from_[a];
    TileRow row = row_of_;
    row.at = at;
    row.w0 = from_[top_];
    row.cells = to_[top_] - row.w0;
    for (int64_t r = 0; r < rows; ++r) {
      int64_t rest = r, place = j;
      for (int a = top_ - 1; a >= 1; --a) {
        at[a] = from_[a] + rest % (to_[a] - from_[a]);
        rest /= to_[a] - from_[a];
      }
      for (int a = 1; a < top_; ++a) place = place * plan_.axis[a].m + at[a];
      row.place = (place * plan_.axis[top_].m + row.w0) * row.inner + row.c0;
      write(row, static_cast<const Cell*>(slab_ + r * size_[top_]));
    }
  }

  const Plan& plan_;
  StepBudget& steps_ = step_budget();
  const int top_;  // the last axis
  LineReducer<Op> line_;
  int64_t lanes_ = 1, total_ = 0, tile_[kMaxRank], size_[kMaxRank], from_[kMaxRank], to_[kMaxRank],
          at_[kMaxRank];
  TileRow row_of_{};
  Scratch<Cell> memory_;
  Cell *ring_[kMaxRank], *begin_[kMaxRank], *slab_, *row_;
};

/// Call run(plan, arrays, piece) on rows, or on transposed tiles. A plan of one axis gets a second
/// one, item by item, because its pieces are cut along the only axis.
template <class T, int Sources, int Partners, class Run>
void for_rows_or_tiles(const Plan& full_plan, const RowArrays<T, Sources, Partners>& arrays,
                       Piece piece, bool rows, Run&& run) {
  const auto lift = [&](const Plan& plan, const RowArrays<T, Sources, Partners>& a, Piece p) {
    if (plan.rank > 1) return call_shared(run, plan, a, p);
    const Axis& axis = plan.axis[0];
    Plan lifted = two_axes(strip(plan, p.h0, p.h1, 0));
    lifted.outer = 1;
    for (int64_t i = p.i0; i < p.i1; ++i) {
      const int64_t at = (i * axis.m + p.h0) * plan.inner;
      RowArrays<T, Sources, Partners> b = a;
      for (auto& s : b.source) s += (i * axis.n - axis.origin) * plan.inner;
      if constexpr (Partners > 0)
        for (auto& q : b.partner) q += at;
      b.out += at;
      call_shared(run, lifted, b, Piece{0, 1, 0, 1});
    }
  };
  if (piece.h0 == piece.h1) return;
  if (rows) call_shared(lift, full_plan, arrays, piece);
  else for_tiles<T>(full_plan, arrays, piece, lift);
}

}  // namespace poolgrad::PG_ISA
