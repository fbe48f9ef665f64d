// Boxes: an adaptor for calls whose cells must be changed before a verb reads them. It cuts a piece
// into boxes that stay in cache, copies the source cells of a box into scratch memory, and gives a
// plan of the box to the verb:
//
//   source   . . . . . .        cells that the box reads   a b c      dest   . . .
//            . a b c . .   ->   in scratch memory          d e f  ->         . y .   of the box
//            . d e f . .                                   g h i             . . .
//            . g h i . .
//
// A plan of a box is a plan that was cut (Axis::whole), so its sums have the bits of the whole.
#pragma once
#include <algorithm>
#include <vector>

#include "api/tasks.hpp"

namespace poolgrad {

/// Scratch memory of a task. Destroy in reverse order.
class BoxMemory {
 public:
  explicit BoxMemory(int64_t bytes) : bytes_(bytes), p_(bytes ? push_scratch(bytes) : nullptr) {}
  BoxMemory(const BoxMemory&) = delete;
  BoxMemory& operator=(const BoxMemory&) = delete;
  ~BoxMemory() {
    if (p_) pop_scratch(p_, bytes_);
  }
  char* get() const { return static_cast<char*>(p_); }
  template <class T>
  T* as() const {
    return static_cast<T*>(p_);
  }

 private:
  int64_t bytes_;
  void* p_;
};

/// The bytes of scratch memory that a call needs for each source cell and for each result.
struct BoxCost {
  int64_t source, dest;
};

/// The plan that joins the results of parts: each is a cell of the source.
class PartsPlan {
 public:
  PartsPlan(int64_t parts, int64_t results) : stop_(parts) {
    plan.inner = results;
    plan.rank = 1;
    Axis& axis = plan.axis[0];
    axis.n = axis.widest = parts;
    axis.m = 1;
    axis.start = &start_;
    axis.stop = &stop_;
    axis.whole = {parts, 1, parts, 0, true};
  }
  PartsPlan(const PartsPlan&) = delete;
  PartsPlan& operator=(const PartsPlan&) = delete;
  static constexpr Piece piece{0, 1, 0, 1};
  Plan plan;

 private:
  int64_t start_ = 0, stop_;
};

/// A range of an axis: destination cells [j0, j1), which read source cells [s0, s1).
struct BoxRange {
  int64_t j0, j1, s0, s1;
};

class Box {
 public:
  static constexpr int64_t kRun = 1 << 16;  ///< the most cells of a run

  /// Choose the size of the boxes of a piece.
  Box(const Plan& whole, Piece piece, BoxCost cost) : whole_(whole), piece_(piece) {
    const bool long_rows = whole.last().m * whole.inner >= 64;
    const int64_t least = long_rows ? 1 : 64;  // transposed tiles compute neighbours together
    items_ = piece.i1 - piece.i0;
    for (int a = 0; a < whole.rank; ++a)
      cells_[a] = a ? whole.axis[a].m : piece.h1 - piece.h0;
    const int64_t most = box_bytes();
    while (measure(cost) > most) {
      int cut = -1;
      if (items_ > least) items_ = std::max((items_ + 1) / 2, least);
      else if ((cut = cheapest_cut()) >= 0) cells_[cut] = (cells_[cut] + 1) / 2;
      else if (items_ > 1) items_ = (items_ + 1) / 2;
      else break;
    }
  }

  /// Call f() for each box; this object is that box meanwhile.
  template <class F>
  void each(F&& f) {
    for (i0 = piece_.i0; i0 < piece_.i1; i0 = i1) {
      i1 = std::min(i0 + items_, piece_.i1);
      int64_t from[kMaxRank];
      for (int a = 0; a < whole_.rank; ++a) from[a] = begin(a);
      for (;;) {
        for (int a = 0; a < whole_.rank; ++a) set_range(a, from[a]);
        bind();
        f();
        int a = whole_.rank - 1;
        while (a >= 0 && (from[a] += cells_[a]) >= end(a)) from[a] = begin(a), --a;
        if (a < 0) break;
      }
    }
  }

  const Plan& plan() const { return complete_ ? whole_ : plan_; }
  Piece piece() const { return {0, i1 - i0, 0, range[0].j1 - range[0].j0}; }
  int64_t source_cells() const {
    int64_t n = (i1 - i0) * whole_.inner;
    for (int a = 0; a < whole_.rank; ++a) n *= range[a].s1 - range[a].s0;
    return n;
  }
  int64_t dest_cells() const {
    int64_t n = (i1 - i0) * whole_.inner;
    for (int a = 0; a < whole_.rank; ++a) n *= range[a].j1 - range[a].j0;
    return n;
  }

  /// Count the parts into which to cut the windows of this box along the first axis, so that a part
  /// stays in cache; 1 if it does, or if the box has several cells along that axis. Maxima and
  /// exact sums of parts may be joined.
  int64_t parts(int64_t bytes_per_cell) const {
    const BoxRange r = range[0];
    const int64_t rows = r.s1 - r.s0, bytes = source_cells() * bytes_per_cell,
                  most = box_bytes();
    if (r.j1 - r.j0 != 1 || bytes <= most) return 1;
    return std::min(rows, (bytes + most - 1) / most);
  }
  /// Call f(part) for each of these parts; this object is that part meanwhile.
  template <class F>
  void each_part(int64_t parts, F&& f) {
    if (parts == 1) return f(0);
    const BoxRange all = range[0];
    for (int64_t k = 0; k < parts; ++k) {
      range[0].s0 = all.s0 + (all.s1 - all.s0) * k / parts;
      range[0].s1 = all.s0 + (all.s1 - all.s0) * (k + 1) / parts;
      bind();
      f(k);
    }
    range[0] = all;
    bind();
  }

  /// Call f(place in the whole array, place in the box, cells) for the contiguous runs of the
  /// source, or of the destination.
  template <class F>
  void each_source_run(F&& f) const {
    runs([&](int a) { return Span{whole_.axis[a].n, range[a].s0, range[a].s1 - range[a].s0}; }, f);
  }
  template <class F>
  void each_dest_run(F&& f) const {
    runs([&](int a) { return Span{whole_.axis[a].m, range[a].j0, range[a].j1 - range[a].j0}; }, f);
  }

  int64_t i0 = 0, i1 = 0;  ///< items
  BoxRange range[kMaxRank];

 private:

  struct Span {
    int64_t all, from, length;
  };

  int64_t begin(int a) const { return a ? 0 : piece_.h0; }
  int64_t end(int a) const { return a ? whole_.axis[a].m : piece_.h1; }
  /// Return the approximate distance of windows, and the cells that neighbours share.
  int64_t step(int a) const {
    const Axis& axis = whole_.axis[a];
    return std::max<int64_t>(axis.n / std::max<int64_t>(axis.m, 1), 1);
  }
  int64_t shared(int a) const {
    return std::max<int64_t>(whole_.axis[a].widest - step(a), 0);
  }
  int64_t measure(BoxCost cost) const {
    int64_t source = items_ * whole_.inner, dest = source;
    for (int a = 0; a < whole_.rank; ++a) {
      source *= std::min(cells_[a] * step(a) + shared(a), whole_.axis[a].n);
      dest *= cells_[a];
    }
    return source * cost.source + dest * cost.dest;
  }

  /// Return the axis to cut: the outermost whose windows share few cells across a cut, else the one
  /// whose windows share least. Both sides of a cut copy and compute the shared cells. Return -1
  /// if the cells of every axis are few, compared with those that windows share.
  int cheapest_cut() const {
    constexpr int64_t kFew = 8, kSome = 2;
    int best = -1;
    double least = 0;
    for (int a = 0; a < whole_.rank; ++a) {
      const int64_t half = cells_[a] / 2 * step(a);
      if (cells_[a] < 2 || half < kSome * shared(a)) continue;
      if (half >= kFew * shared(a)) return a;
      const double cost = static_cast<double>(shared(a)) / static_cast<double>(half);
      if (best < 0 || cost < least) best = a, least = cost;
    }
    return best;
  }

  void set_range(int a, int64_t j0) {
    const Axis& axis = whole_.axis[a];
    const int64_t j1 = std::min(j0 + cells_[a], end(a));
    range[a] = {j0, j1, axis.start[j0], axis.stop[j1 - 1]};
  }

  /// Make the plan of the box.
  void bind() {
    complete_ = i0 == 0 && i1 == whole_.outer;
    for (int a = 0; a < whole_.rank; ++a) complete_ = complete_ && covers(a);
    if (complete_) return;
    plan_ = whole_;
    plan_.outer = i1 - i0;
    plan_.chosen = nullptr;  // which belongs to the whole
    int64_t rows = 0;
    for (int a = 0; a < whole_.rank; ++a)
      if (!covers(a)) rows += range[a].j1 - range[a].j0;
    if (static_cast<int64_t>(tables_.size()) < 2 * rows)
      tables_.resize(static_cast<size_t>(2 * rows));
    int64_t* table = tables_.data();
    for (int a = 0; a < whole_.rank; ++a) {
      if (covers(a)) continue;
      const BoxRange r = range[a];
      const int64_t m = r.j1 - r.j0;
      plan_.axis[a] = part_of(whole_.axis[a], r);
      for (int64_t j = 0; j < m; ++j) {
        const int64_t start = whole_.axis[a].start[r.j0 + j], stop = whole_.axis[a].stop[r.j0 + j];
        table[j] = std::max(start, r.s0) - r.s0;
        table[m + j] = std::min(stop, r.s1) - r.s0;
        if (start < r.s0 || stop > r.s1)  // a part of a window
          plan_.axis[a].span = nullptr, plan_.axis[a].blocks = nullptr;
      }
      plan_.axis[a].start = table;
      plan_.axis[a].stop = table + m;
      table += 2 * m;
    }
  }
  bool covers(int a) const {
    const Axis& axis = whole_.axis[a];
    return range[a].j0 == 0 && range[a].j1 == axis.m && range[a].s0 == 0 && range[a].s1 == axis.n;
  }
  /// Return a part of an axis, all but its windows.
  static Axis part_of(const Axis& axis, BoxRange r) {
    Axis part = axis;
    part.n = r.s1 - r.s0;
    part.m = r.j1 - r.j0;
    if (part.span) part.span += r.j0;
    if (part.blocks) part.blocks += r.j0;
    part.first += r.j0;
    part.whole.first += r.s0;
    part.lo = std::max<int64_t>(axis.lo - r.j0, 0);
    part.hi = std::min(axis.hi, r.j1) - r.j0;
    if (part.hi < part.lo) part.lo = part.hi = 0;
    return part;
  }

  template <class SpanOf, class F>
  void runs(SpanOf&& span, F&& f) const {
    for (int a = 0; a < whole_.rank; ++a)
      if (span(a).length == 0) return;
    int k = whole_.rank;  // axes from k on are complete
    int64_t run = whole_.inner;
    while (k > 0 && span(k - 1).length == span(k - 1).all) run *= span(--k).all;
    if (k == 0) return in_steps(i0 * run, 0, (i1 - i0) * run, f);
    const int64_t unit = run;
    run *= span(k - 1).length;
    int64_t at[kMaxRank] = {}, box = 0;
    for (int64_t i = i0; i < i1; ++i)
      for (;;) {
        int64_t place = i;
        for (int a = 0; a < k; ++a)
          place = place * span(a).all + span(a).from + (a < k - 1 ? at[a] : 0);
        in_steps(place * unit, box, run, f);
        box += run;
        int a = k - 2;
        while (a >= 0 && ++at[a] == span(a).length) at[a] = 0, --a;
        if (a < 0) break;
      }
  }
  template <class F>
  static void in_steps(int64_t place, int64_t box, int64_t cells, F&& f) {
    for (int64_t c = 0; c < cells; c += kRun) {
      const int64_t here = std::min(kRun, cells - c);
      checkpoint(step_budget(), here);
      f(place + c, box + c, here);
    }
  }

  const Plan& whole_;
  const Piece piece_;
  int64_t items_, cells_[kMaxRank];
  bool complete_ = false;
  Plan plan_;
  std::vector<int64_t> tables_;
};

}  // namespace poolgrad
