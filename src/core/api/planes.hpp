// Maxima of planes with windows of their own, all of one size. Only module.cpp includes this.
#pragma once
#include "api/arrays.hpp"
#include "api/gil.hpp"
#include "api/tasks.hpp"
#include "runtime/first_wrong.hpp"

namespace poolgrad {
namespace {

/// Planes of equal lengths. Along axis a each has sizes[a] windows of kernel[a] cells; their starts
/// follow each other axis by axis, then plane by plane.
struct Planes {
  std::vector<int64_t> lengths, sizes, kernel;
  Borrowed starts;
  int64_t planes = 0, source = 1, dest = 1, windows = 0, taps = 1;

  Planes(nb::handle n, nb::handle m, nb::handle k, nb::handle given)
      : lengths(any_shape(n, "lengths")),
        sizes(any_shape(m, "sizes")),
        kernel(any_shape(k, "kernel")),
        starts(int64_vector(given, "starts")) {
    if (lengths.empty() || lengths.size() > static_cast<size_t>(kMaxRank) ||
        sizes.size() != lengths.size() || kernel.size() != lengths.size())
      throw nb::value_error("lengths, sizes, kernel: wanted one to 16 each, as many of each");
    for (size_t a = 0; a < lengths.size(); ++a) {
      source *= lengths[a];
      dest *= sizes[a];
      taps *= kernel[a];
      windows += sizes[a];
    }
    if (!dest || !source || !taps || starts.size % windows)
      throw nb::value_error("starts: wanted one for each window of each plane");
    planes = starts.size / windows;
    int64_t all = 0;
    if (__builtin_mul_overflow(planes, std::max(source, dest), &all) || all > kMostElements)
      throw nb::value_error("starts: too many planes");
  }

  Dtype tap_type() const {
    if (taps > std::numeric_limits<uint32_t>::max())
      throw nb::value_error("kernel: has more cells than uint32 can number");
    return taps > 256 ? Dtype::u32 : Dtype::u8;
  }

  OwnedPlan plan(int64_t plane) const {
    std::vector<AxisData> axes;
    const int64_t* from = starts.data + plane * windows;
    for (size_t a = 0; a < lengths.size(); ++a) {
      const auto m = static_cast<size_t>(sizes[a]);
      axes.push_back({lengths[a], Table(m), Table(m), {}, {}});
      for (size_t j = 0; j < m; ++j) {
        axes.back().start[j] = from[j];
        if (__builtin_add_overflow(axes.back().start[j], kernel[a], &axes.back().stop[j]))
          throw std::invalid_argument("starts: a window is outside its axis");
      }
      from += m;
    }
    return OwnedPlan(1, 1, std::move(axes), false);
  }

  /// Call f(plan, plane) for all planes, without the GIL.
  template <class F>
  void each(int64_t bytes, F&& f) const {
    const int threads = threads_for(bytes);
    const int64_t tasks = threads == 1 ? 1 : std::min<int64_t>(planes, int64_t{threads} * 4);
    unlocked([&](StopCheck should_stop) {
      parallel_for(tasks, threads, should_stop, [&](int64_t task) {
        for (int64_t p = planes * task / tasks; p < planes * (task + 1) / tasks; ++p)
          f(plan(p), p);
      });
    });
  }
};

Checked check_plane_taps(const Planes& planes, nb::handle taps, bool written) {
  const Checked c = check(taps, "taps", planes.planes * planes.dest, written);
  if (c.dtype != planes.tap_type()) throw nb::type_error("taps: must be uint8, or uint32 if windows have more than 256 cells");
  return c;
}

/// Write the maximum of each window and its tap. Return false if x has NaN; both are then
/// undefined.
bool choose_planes(nb::handle lengths, nb::handle sizes, nb::handle kernel, nb::handle starts,
                   nb::handle x, nb::handle y, nb::handle taps) {
  const Planes planes(lengths, sizes, kernel, starts);
  const Checked in = check(x, "x", planes.planes * planes.source, false),
                out = check(y, "y", planes.planes * planes.dest, true),
                where = check_plane_taps(planes, taps, true);
  same_type(in, out, "y");
  for (const Checked& other : {in, out}) reject_overlap(where, other);
  reject_overlap(out, in);
  const Verbs* const verbs = chosen_verbs(in.dtype);
  const int64_t width = in.elements ? in.bytes / in.elements : 1,
                tap = where.elements ? where.bytes / where.elements : 1;
  std::atomic<bool> nan{false};
  planes.each(in.bytes, [&](const OwnedPlan& plan, int64_t p) {
    Arrays a;
    const char* const cells = in.data + p * planes.source * width;
    a.x = cells;
    a.out = out.data + p * planes.dest * width;
    a.out_index = where.data + p * planes.dest * tap;
    if (nan) return;
    if (verbs->nan_free && !scan_nan_free(verbs->nan_free, cells, planes.source, width)) nan = true;
    else verbs->choose(plan.forward(), a, {0, 1, 0, plan.forward().axis[0].m});
  });
  return !nan;
}

/// Add g at the taps. Return -1, or the first cell whose tap is outside its window.
int64_t place_planes(nb::handle lengths, nb::handle sizes, nb::handle kernel, nb::handle starts,
                     nb::handle g, nb::handle taps, nb::handle dx) {
  const Planes planes(lengths, sizes, kernel, starts);
  const Checked in = check(g, "g", planes.planes * planes.dest, false),
                out = check(dx, "dx", planes.planes * planes.source, true),
                where = check_plane_taps(planes, taps, false);
  same_type(in, out, "dx");
  reject_overlap(out, in);
  reject_overlap(out, where);
  const Verbs* const verbs = chosen_verbs(in.dtype);
  const int64_t width = in.elements ? in.bytes / in.elements : 1,
                tap = where.elements ? where.bytes / where.elements : 1;
  FirstWrong wrong;
  planes.each(out.bytes, [&](const OwnedPlan& plan, int64_t p) {
    Arrays a;
    a.g = in.data + p * planes.dest * width;
    a.index = where.data + p * planes.dest * tap;
    a.out = out.data + p * planes.source * width;
    const int64_t at =
        verbs->route(plan.forward(), plan.transposed(), a, {0, 1, 0, plan.transposed().axis[0].m});
    wrong.report(at < 0 ? at : at + p * planes.dest);
  });
  return wrong.get();
}

void define_planes(nb::module_& m) {
  m.def("choose_planes", &choose_planes);
  m.def("place_planes", &place_planes);
}

}  // namespace
}  // namespace poolgrad
