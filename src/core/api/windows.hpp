// Make the tables of axes for Python, as read-only arrays. Only module.cpp includes this.
#pragma once
#include "api/arrays.hpp"
#include "api/gil.hpp"
#include "plan/fractional.hpp"
#include "plan/windows.hpp"

namespace poolgrad {
namespace {

/// Release the GIL for tables of more windows. Taking it again may cost a wait.
constexpr int64_t kLongTable = 1 << 14;

/// The most cells and windows of an axis: products of two of them fit 128 bits, sums 64.
constexpr int64_t kMostCells = int64_t{1} << 62;

/// Run f with the usual rounding; a signal may end the work on long tables.
template <class F>
void filling(int64_t entries, F&& f) {
  const auto run = [&](StopCheck stop) { parallel_for(1, 1, stop, [&](int64_t) { f(); }); };
  if (entries <= kLongTable) run(nullptr);
  else unlocked(run);
}

/// Create a table of m entries.
nb::object new_table(int64_t m) {
  npy_intp size = static_cast<npy_intp>(m);
  PyObject* const made = PyArray_SimpleNew(1, &size, NPY_INT64);
  if (!made) throw nb::python_error();
  return nb::steal(made);
}

int64_t* entries_of(const nb::object& table) {
  return static_cast<int64_t*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(table.ptr())));
}

void freeze(const nb::object& table) {
  PyArray_CLEARFLAGS(reinterpret_cast<PyArrayObject*>(table.ptr()), NPY_ARRAY_WRITEABLE);
}

/// The new tables of an axis. Spans that are equal to the counts are the same array.
class AxisTables {
 public:
  AxisTables(int64_t n, int64_t m, int64_t step, bool spans)
      : start_(new_table(m)),
        stop_(new_table(m)),
        count_(new_table(m)),
        span_(spans ? new_table(m) : count_),
        tables{n,
               m,
               step,
               entries_of(start_),
               entries_of(stop_),
               entries_of(count_),
               spans ? entries_of(span_) : nullptr} {}

  /// Return (fault, start, stop, count, span).
  nb::object result(WindowFault fault) const {
    const WindowTables& t = tables;
    const bool uncut = !t.span || std::equal(t.span, t.span + t.m, t.count);
    const nb::object& span = uncut ? count_ : span_;
    for (const nb::object* table : {&start_, &stop_, &count_, &span}) freeze(*table);
    return nb::make_tuple(static_cast<int>(fault), start_, stop_, count_, span);
  }

 private:
  nb::object start_, stop_, count_, span_;

 public:
  const WindowTables tables;
};

void check_sizes(int64_t n, int64_t m, int64_t step) {
  if (m < 0 || m > kMostCells || n > kMostCells) throw nb::value_error("windows: no such number");
  if (step < 1 || step > kMostCells) throw nb::value_error("step: must be positive");
}

/// Copy the borders of windows into new tables, and check them.
nb::object copy_windows(int64_t n, nb::handle start, nb::handle stop, nb::handle span,
                        int64_t step) {
  const Borrowed from = int64_vector(start, "start"), to = int64_vector(stop, "stop");
  const Borrowed spans = span.is_none() ? Borrowed{} : int64_vector(span, "span");
  const int64_t m = from.size;
  if (to.size != m || (!span.is_none() && spans.size != m))
    throw nb::value_error("start, stop and span: differ in length");
  check_sizes(0, m, step);
  const AxisTables made(n, m, step, !span.is_none());
  WindowFault fault = WindowFault::none;
  filling(m, [&] {
    copy_entries(from, made.tables.start);
    copy_entries(to, made.tables.stop);
    if (made.tables.span) copy_entries(spans, made.tables.span);
    fault = count_and_check(made.tables);
  });
  return made.result(fault);
}

/// Slide m windows; see fill_sliding. Return the tables and the first empty window, or -1.
nb::object slide_windows(int64_t n, int64_t k, int64_t s, int64_t step, int64_t before,
                         int64_t after, int64_t m) {
  check_sizes(n, m, step);
  const AxisTables made(n, m, step, true);
  WindowFault fault = WindowFault::none;
  int64_t empty = -1;
  filling(m, [&] {
    empty = fill_sliding(made.tables, k, s, before, after);
    fault = count_and_check(made.tables);
  });
  return nb::make_tuple(made.result(fault), empty);
}

/// Put windows between borders.
nb::object windows_between(int64_t n, nb::handle given, bool overlapping) {
  const Borrowed borders = int64_vector(given, "borders");
  const int64_t m = std::max<int64_t>(borders.size - 1, 0);
  check_sizes(n, m, 1);
  const nb::object copy = new_table(borders.size);  // the caller may change the borders meanwhile
  const AxisTables made(n, m, 1, false);
  WindowFault fault = WindowFault::none;
  filling(m, [&] {
    copy_entries(borders, entries_of(copy));
    fill_between(made.tables, entries_of(copy), overlapping);
    fault = count_and_check(made.tables);
  });
  return made.result(fault);
}

/// Return true if borders rise from 0 or more to the end of the axis, or to the cell before it.
bool are_proper(int64_t n, nb::handle given) {
  const Borrowed borders = int64_vector(given, "borders");
  const int64_t m = borders.size;
  bool good = m > 1 && borders.data[0] >= 0 && borders.data[m - 1] <= n && borders.data[m - 1] >= n - 1;
  filling(m, [&] {
    for (int64_t j = 1; j < m && good; ++j) {
      checkpoint(step_budget(), 1);
      good = borders.data[j - 1] < borders.data[j];
    }
  });
  return good;
}

/// Divide n cells into m windows.
nb::object shared_windows(int64_t n, int64_t m) {
  check_sizes(n, m, 1);
  const AxisTables made(n, m, 1, false);
  WindowFault fault = WindowFault::none;
  filling(m, [&] {
    fill_shares(made.tables);
    fault = count_and_check(made.tables);
  });
  return made.result(fault);
}

/// Place m windows of k cells from a random offset on.
nb::object placed_windows(int64_t n, int64_t k, int64_t m, double u) {
  check_sizes(n, m, 1);
  if (k < 1 || k > n) throw nb::value_error("k: wanted 1 to n");
  if (!(u >= 0 && u <= 1)) throw nb::value_error("u: wanted 0 to 1");
  const AxisTables made(n, m, 1, false);
  WindowFault fault = WindowFault::none;
  filling(m, [&] {
    fill_placed(made.tables, k, u);
    fault = count_and_check(made.tables);
  });
  return made.result(fault);
}

/// Draw the windows of fractional pooling for several axes, one after the other. Return
/// (borders, tables) of each.
nb::object draw_windows(nb::handle lengths, nb::handle sizes, bool pseudo_random, bool overlapping,
                        uint64_t seed, uint64_t seed2) {
  std::vector<int64_t> n, m;
  for (nb::handle length : lengths) n.push_back(integer(length, "lengths"));
  for (nb::handle size : sizes) m.push_back(integer(size, "sizes"));
  if (n.size() != m.size()) throw nb::value_error("sizes: not as many as lengths");
  Philox source(seed, seed2);
  nb::list drawn;
  for (size_t a = 0; a < n.size(); ++a) {
    check_sizes(n[a], m[a], 1);
    if (m[a] < 1 || m[a] > n[a]) throw nb::value_error("sizes: wanted 1 to the length");
    const nb::object borders = new_table(m[a] + 1);
    const AxisTables made(n[a], m[a], 1, false);
    WindowFault fault = WindowFault::none;
    filling(m[a], [&] {
      draw_borders(n[a], m[a], pseudo_random, source, entries_of(borders));
      fill_between(made.tables, entries_of(borders), overlapping);
      fault = count_and_check(made.tables);
    });
    drawn.append(nb::make_tuple(borders, made.result(fault)));
  }
  return drawn;
}

void define_windows(nb::module_& m) {
  m.def("windows", &copy_windows, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
  m.def("slide", &slide_windows);
  m.def("between", &windows_between);
  m.def("proper", &are_proper);
  m.def("share", &shared_windows);
  m.def("placed", &placed_windows);
  m.def("draw", &draw_windows);
}

}  // namespace
}  // namespace poolgrad
