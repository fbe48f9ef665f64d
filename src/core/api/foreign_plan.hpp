// Plans of the C interface (poolgrad.h): axes in words become tables; dilated windows become plain
// ones.
//
// Windows whose cells lie d apart never mix cells of different remainders by d. Sorted by
// remainder, the cells of each window are neighbours, and windows in the same order are plain
// windows:
//
//   d = 2   cells   0 1 2 3 4 5 6   sorted   0 2 4 6 | 1 3 5
//   windows   0,2,4   1,3,5   2,4,6   sorted   0,2,4   2,4,6 | 1,3,5
//
// A verb reads copies of its arrays in that order, and its results are put back.
#pragma once
#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "api/poolgrad.h"
#include "api/tasks.hpp"
#include "plan/owned_plan.hpp"
#include "plan/windows.hpp"

namespace poolgrad {

/// A refused argument: "x: got ..., wanted ...".
struct Refused : std::invalid_argument {
  Refused(const std::string& argument, const std::string& got, const std::string& wanted,
          int64_t at = -1)
      : std::invalid_argument(argument + ": got " + got + ", wanted " + wanted), at(at) {}
  int64_t at;  ///< the flat position of a wrong element, or -1
};

/// The order of the cells of one axis, and of its windows, by which its windows are plain. Empty: no
/// change.
struct AxisOrder {
  std::vector<int64_t> cells, windows;
};

/// The windows of an axis, and their order.
struct MadeAxis {
  AxisData data;
  AxisOrder order;
};

/// Make the tables of one axis of the C interface.
class AxisMaker {
 public:
  AxisMaker(const pg_axis& axis, int number)
      : a_(axis), name_("axes[" + std::to_string(number) + "]") {}

  MadeAxis make() {
    const int flags = a_.kind == PG_AXIS_SLIDING   ? PG_CEIL | PG_REACH | PG_SHIFT
                      : a_.kind == PG_AXIS_BETWEEN ? PG_OVERLAPPING
                                                   : 0;
    if (a_.flags & ~flags) refuse("flags", a_.flags, "flags of its kind");
    within("cells", a_.cells, 0, kMost);
    within("windows", a_.windows, 0, kMost);
    switch (a_.kind) {
      case PG_AXIS_SLIDING: return sliding();
      case PG_AXIS_WINDOWS: return given();
      case PG_AXIS_BETWEEN: return between();
      case PG_AXIS_SHARES: return shares();
      case PG_AXIS_PLACED: return placed();
    }
    refuse("kind", a_.kind, "a pg_axis_kind");
  }

 private:
  using Wide = detail::Wide;
  static constexpr int64_t kMost = int64_t{1} << 62;

  [[noreturn]] void refuse(const char* field, int64_t got, const std::string& wanted) const {
    throw Refused(name_ + "." + field, std::to_string(got), wanted);
  }
  void within(const char* field, int64_t got, int64_t least, int64_t most) const {
    if (got < least || got > most)
      refuse(field, got, std::to_string(least) + " to " + std::to_string(most));
  }
  void present(const char* field, const void* table) const {
    if (!table && a_.windows) throw Refused(name_ + "." + field, "NULL", "an array");
  }

  /// New tables of m windows.
  static AxisData tables(int64_t n, int64_t m, bool spans) {
    afford(m);
    const auto size = static_cast<size_t>(m);
    AxisData data{n, {}, {}, {}, {}};
    data.start.resize(size);
    data.stop.resize(size);
    if (spans) data.span.resize(size);
    return data;
  }
  static WindowTables entries(AxisData& data, Table& count, int64_t step) {
    count.resize(data.start.size());
    return {data.n,
            static_cast<int64_t>(data.start.size()),
            step,
            data.start.data(),
            data.stop.data(),
            count.data(),
            data.span.empty() ? nullptr : data.span.data()};
  }

  MadeAxis given() const {
    present("start", a_.start);
    present("stop", a_.stop);
    AxisData data = tables(a_.cells, a_.windows, a_.span != nullptr);
    std::copy_n(a_.start, a_.windows, data.start.data());
    std::copy_n(a_.stop, a_.windows, data.stop.data());
    if (a_.span) std::copy_n(a_.span, a_.windows, data.span.data());
    return {std::move(data), {}};  // OwnedPlan checks them
  }

  MadeAxis between() const {
    if (!a_.start) throw Refused(name_ + ".start", "NULL", "the borders, one more than windows");
    AxisData data = tables(a_.cells, a_.windows, false);
    Table count, borders;
    borders.resize(static_cast<size_t>(a_.windows) + 1);
    std::copy_n(a_.start, a_.windows + 1, borders.data());
    for (int64_t j = 0; j <= a_.windows; ++j)
      if (borders[static_cast<size_t>(j)] < 0 ||
          (j && borders[static_cast<size_t>(j)] < borders[static_cast<size_t>(j) - 1]))
        refuse("start", borders[static_cast<size_t>(j)], "borders from 0 on that do not fall");
    fill_between(entries(data, count, 1), borders.data(), (a_.flags & PG_OVERLAPPING) != 0);
    return {std::move(data), {}};
  }

  MadeAxis shares() const {
    AxisData data = tables(a_.cells, a_.windows, false);
    Table count;
    fill_shares(entries(data, count, 1));
    return {std::move(data), {}};
  }

  MadeAxis placed() const {
    within("window", a_.window, 1, a_.cells);
    if (!(a_.offset >= 0 && a_.offset <= 1))
      throw Refused(name_ + ".offset", std::to_string(a_.offset), "0 to 1");
    AxisData data = tables(a_.cells, a_.windows, false);
    Table count;
    fill_placed(entries(data, count, 1), a_.window, a_.offset);
    return {std::move(data), {}};
  }

  MadeAxis sliding() {
    within("window", a_.window, 1, kMost);
    within("stride", a_.stride, 1, kMost);
    within("dilation", a_.dilation, 1, kMost);
    within("padding", a_.padding, PG_VALID, PG_EXPLICIT);
    const bool own = a_.padding == PG_EXPLICIT;
    within("before", a_.before, 0, own ? kMost : 0);
    within("after", a_.after, 0, own ? kMost : 0);
    const int64_t step = a_.window == 1 ? 1 : a_.dilation;
    if (step > 1 && (a_.flags & (PG_REACH | PG_SHIFT)))
      refuse("dilation", a_.dilation, "1 with PG_REACH or PG_SHIFT");
    const Wide reach = Wide{step} * (Wide{a_.window} - 1) + 1;
    Wide m, before = a_.before, after = a_.after;
    if (a_.padding == PG_SAME || a_.padding == PG_SAME_LOWER) {
      m = detail::ceil_divide(a_.cells, a_.stride);
      Wide total = (m - 1) * a_.stride + reach - a_.cells;
      if (!(a_.flags & PG_SHIFT)) total = std::max<Wide>(total, 0);
      before = total / 2;
      after = total - before;
      if (a_.padding == PG_SAME_LOWER) std::swap(before, after);
    } else {
      const Wide over = Wide{a_.cells} + before + after - reach;
      m = (over + a_.stride) / a_.stride;  // toward zero
      if (a_.flags & PG_CEIL) {
        m = std::max<Wide>(detail::ceil_divide(over, a_.stride) + 1, 0);
        m = std::min<Wide>(m, detail::ceil_divide(Wide{a_.cells} + before, a_.stride));
      }
      if (m < 0)
        refuse("window", a_.window,
               "one that fits the axis of " + std::to_string(a_.cells) + " cells");
    }
    if (a_.windows) m = a_.windows;
    if (m > kMost) throw std::bad_alloc();
    AxisData data = tables(a_.cells, static_cast<int64_t>(m), true);
    Table count;
    const WindowTables t = entries(data, count, step);
    const int64_t empty =
        fill_sliding(t, a_.window, a_.stride, detail::narrowed(before), detail::narrowed(after));
    if (empty >= 0 && a_.cells)
      throw Refused(name_, "a window without a cell: number " + std::to_string(empty),
                    "no such window");
    if ((a_.flags & PG_REACH) && a_.window > a_.cells)
      for (int64_t j = 0; j < t.m && Wide{j} * a_.stride < before; ++j) t.stop[j] = a_.cells;
    if (step == 1) return {std::move(data), {}};
    return sort(std::move(data), step);
  }

  /// Sort cells and windows by their remainders, so that windows are plain.
  static MadeAxis sort(AxisData&& data, int64_t step) {
    const int64_t n = data.n, m = static_cast<int64_t>(data.start.size());
    afford(n);
    MadeAxis made{tables(n, m, true), {}};
    AxisOrder& order = made.order;
    order.windows.resize(static_cast<size_t>(m));
    std::iota(order.windows.begin(), order.windows.end(), int64_t{0});
    const auto remainder = [&](int64_t j) { return data.start[static_cast<size_t>(j)] % step; };
    std::stable_sort(order.windows.begin(), order.windows.end(),
                     [&](int64_t a, int64_t b) { return remainder(a) < remainder(b); });
    const auto cells_of = [&](int64_t r) { return r < n ? (n - r + step - 1) / step : 0; };
    for (int64_t r = 0; r < std::min(step, n); ++r)
      for (int64_t i = r; i < n; i += step) order.cells.push_back(i);
    int64_t r = 0, first = 0;  // the place of the first cell of remainder r
    for (size_t k = 0; k < order.windows.size(); ++k) {
      const auto j = static_cast<size_t>(order.windows[k]);
      for (; r < data.start[j] % step; ++r) first += cells_of(r);
      const int64_t count = (data.stop[j] - data.start[j] + step - 1) / step;
      made.data.start[k] = first + data.start[j] / step;
      made.data.stop[k] = made.data.start[k] + count;
      made.data.span[k] = data.span[j];
    }
    return made;
  }

  const pg_axis a_;
  const std::string name_;
};

/// A side of a plan.
enum class Side { source, dest };

}  // namespace poolgrad

/// A plan, and the order of its cells if windows were dilated.
struct pg_plan {
  pg_plan(int64_t outer, int64_t inner, std::vector<poolgrad::AxisData> axes,
          std::vector<poolgrad::AxisOrder> order)
      : owned(outer, inner, std::move(axes), false), order_(std::move(order)) {
    for (const poolgrad::AxisOrder& axis : order_) sorted_ = sorted_ || !axis.cells.empty();
  }

  bool sorted() const { return sorted_; }

  /// Copy an array into the order of the plan, or back.
  void copy(poolgrad::Side side, int64_t width, const void* from, void* to, bool back) const {
    const poolgrad::Plan& plan = owned.forward();
    const int last = plan.rank - 1;
    const int64_t cells = length(side, last), run = plan.inner * width;
    int64_t lines = plan.outer;
    for (int a = 0; a < last; ++a) lines *= length(side, a);
    if (!lines || !cells || !run) return;
    const std::vector<int64_t>& inside = table(side, last);
    const int threads = poolgrad::threads_for(lines * cells * run);
    const int64_t tasks = std::min<int64_t>(lines, threads == 1 ? 1 : 4 * threads);
    poolgrad::parallel_for(tasks, threads, nullptr, [&](int64_t task) {
      for (int64_t line = lines * task / tasks; line < lines * (task + 1) / tasks; ++line) {
        poolgrad::checkpoint(poolgrad::step_budget(), cells);
        const int64_t other = line_of(side, line);
        const char* const in = static_cast<const char*>(from) + (back ? line : other) * cells * run;
        char* const out = static_cast<char*>(to) + (back ? other : line) * cells * run;
        for (int64_t i = 0; i < cells; ++i) {
          const int64_t at = inside.empty() ? i : inside[static_cast<size_t>(i)];
          std::memcpy(out + (back ? at : i) * run, in + (back ? i : at) * run,
                      static_cast<size_t>(run));
        }
      }
    });
  }

  /// Return the flat position in the caller's array of a flat position in the plan's.
  int64_t position(poolgrad::Side side, int64_t flat) const {
    if (!sorted_) return flat;
    const poolgrad::Plan& plan = owned.forward();
    const int last = plan.rank - 1;
    const int64_t inner = flat % plan.inner, row = flat / plan.inner, cells = length(side, last);
    const std::vector<int64_t>& inside = table(side, last);
    const int64_t i = row % cells, at = inside.empty() ? i : inside[static_cast<size_t>(i)];
    return (line_of(side, row / cells) * cells + at) * plan.inner + inner;
  }

  const poolgrad::OwnedPlan owned;

 private:
  int64_t length(poolgrad::Side side, int a) const {
    const poolgrad::Axis& axis = owned.forward().axis[a];
    return side == poolgrad::Side::source ? axis.n : axis.m;
  }
  const std::vector<int64_t>& table(poolgrad::Side side, int a) const {
    const poolgrad::AxisOrder& order = order_[static_cast<size_t>(a)];
    return side == poolgrad::Side::source ? order.cells : order.windows;
  }
  /// Return the line, all axes but the last, of the caller's array.
  int64_t line_of(poolgrad::Side side, int64_t line) const {
    int64_t other = 0, scale = 1;
    for (int a = owned.forward().rank - 2; a >= 0; --a) {
      const int64_t n = length(side, a), i = line % n;
      const std::vector<int64_t>& order = table(side, a);
      other += scale * (order.empty() ? i : order[static_cast<size_t>(i)]);
      scale *= n;
      line /= n;
    }
    return other + scale * line;
  }

  std::vector<poolgrad::AxisOrder> order_;
  bool sorted_ = false;
};
