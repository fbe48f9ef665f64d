// The Python module. It checks every argument once, before a kernel sees it.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "api/arrays.hpp"
#include "api/boxed_verbs.hpp"
#include "api/gil.hpp"
#include "api/levels.hpp"
#include "api/plan_type.hpp"
#include "api/planes.hpp"
#include "api/poolgrad.h"
#include "api/tasks.hpp"
#include "api/windows.hpp"
#include "runtime/first_wrong.hpp"
#include "runtime/system.hpp"
#include "verbs/table.hpp"

namespace poolgrad {
namespace {

const Level* level = nullptr;

/// Cut the destination into pieces and run them without the GIL.
template <class F>
void in_pieces(const Plan& plan, int64_t bytes, F&& f, bool reject_overlap = false) {
  if (work_of(plan))
    unlocked(
        [&](StopCheck should_stop) { piecewise(plan, bytes, should_stop, f, reject_overlap); });
}

/// Do the same. With `nan_free`, stop at NaN in x and return false.
template <class F>
bool in_pieces_of(const Plan& plan, const Verbs* verbs, const Checked& x, bool nan_free, F&& f) {
  if (!nan_free) return in_pieces(plan, x.bytes, f), true;
  NanGuard guard(plan, verbs, x.data, x.bytes);
  in_pieces(plan, x.bytes, [&](Piece p) { guard.run(p, f); });
  return !guard.found_nan();
}

/// A part of a call that one verb computes: windows of a plan, from the cells at x into the results
/// at y, which begin at element `dest` of all results.
struct CallPart {
  const Plan& plan;
  const char* x;
  char* y;
  int64_t dest;
  Piece piece;
};

/// Call f(part) for all windows. The parts of a plan are tasks.
template <class F>
void in_parts(const Windows& windows, const Checked& in, const Checked& out, F&& f) {
  const int64_t bytes = std::max(in.bytes, out.bytes);
  if (windows.plan) {
    const Plan& plan = windows.plan->forward();
    return in_pieces(plan, bytes, [&](Piece p) { f(CallPart{plan, in.data, out.data, 0, p}); });
  }
  const PlanParts& parts = *windows.parts;
  if (!out.elements) return;
  const int64_t from = item_bytes(in.dtype), to = item_bytes(out.dtype);
  unlocked([&](StopCheck should_stop) {
    parallel_for(parts.tasks(), threads_for(bytes), should_stop, [&](int64_t t) {
      const PlanParts::Task task = parts.task(t);
      const Plan& plan = task.plan.forward();
      f(CallPart{plan, in.data + task.source * from, out.data + task.dest * to, task.dest,
                 Piece{0, 1, 0, plan.axis[0].m}});
    });
  });
}

void require_verb(const void* verb) {
  if (!verb) throw nb::type_error("x: this verb does not exist for its dtype");
}

/// Return the transposed plan; make it without the GIL, so that a signal can end that work.
const Plan& transposed_of(const OwnedPlan& plan) {
  if (!plan.has_transposed()) {
    try {
      unlocked([&](StopCheck should_stop) {
        parallel_for(1, 1, should_stop, [&](int64_t) { plan.transposed(); });
      });
    } catch (const std::bad_alloc&) {
      raise_memory_error("axes: got windows whose tables need too much");
    }
  }
  return plan.transposed();
}

// ---- schedules: ask for the one that runs a call, refuse a call that a bound plan cannot run

/// A call, as far as the choice of its schedule goes.
struct Choice {
  const OwnedPlan& plan;
  Verb verb;
  Dtype dtype;
  int rule = 0;
  bool verify = false;  ///< route checks y

  bool goes_back() const {
    return verb == Verb::spread || verb == Verb::near || verb == Verb::route || verb == Verb::place;
  }
  const Plan& over() const { return goes_back() ? transposed_of(plan) : plan.forward(); }
  /// Return the schedules that run the pieces of the call, cut as if the workers were awake, if it
  /// is bound to `only`. A call without cells has none.
  std::vector<Schedule> found(Schedule only) const {
    const Verbs* const verbs = level->verbs(dtype);
    const bool follows = verb == Verb::pick || verb == Verb::place;
    const int64_t cells =
        follows ? std::max(plan.source_size(), plan.dest_size()) : plan.source_size();
    Plan forward = plan.forward(), transposed = over();
    forward.only = transposed.only = only;
    const bool worth = cells * item_bytes(dtype) >= kWorthThreads;
    const Cuts cuts =
        cut_call(over(), worth ? allowed_threads() : 1, follows && follows_single_taps(forward));
    std::vector<Schedule> all;
    for (int64_t task = 0; work_of(over()) && task < cuts.tasks(); ++task) {
      const Schedule one =
          verbs->schedule(forward, transposed, verb, rule, verify, cuts.piece(over(), task));
      if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
    }
    return all;
  }
  /// Return true if a schedule runs every piece.
  bool can_run(Schedule one) const {
    const std::vector<Schedule> all = found(one);
    return all.empty() || (all.size() == 1 && all[0] == one);
  }
  /// Return the names of the schedules that run the call, joined by "+" if its pieces differ.
  std::string names() const {
    std::string text;
    for (const Schedule one : found(plan.forward().only))
      text += (text.empty() ? "" : "+") + std::string(name_of(one));
    return text;
  }
  /// Return the names of all schedules that can run the call.
  std::vector<const char*> able() const {
    std::vector<const char*> names;
    for (int i = 0; i < kSchedules; ++i)
      if (level->verbs(dtype)->schedules(verb) >> i & 1 && can_run(Schedule(i)))
        names.push_back(name_of(Schedule(i)));
    return names;
  }
};

/// The list that receives the calls of a thread, if someone asks for them.
thread_local PyObject* watched = nullptr;
std::atomic<int> watchers{0};

[[gnu::noinline, gnu::cold]] void append_call(Verb verb, nb::handle like, nb::handle source,
                                              nb::handle dest, const std::string& names) {
  nb::borrow<nb::list>(watched).append(nb::make_tuple(
      name_of(verb),
      nb::borrow(
          reinterpret_cast<PyObject*>(PyArray_DESCR(reinterpret_cast<PyArrayObject*>(like.ptr())))),
      source, dest, names.c_str()));
}

nb::object as_tuple(const std::vector<int64_t>& shape) {
  nb::list sizes;
  for (const int64_t size : shape) sizes.append(size);
  return nb::steal(PyList_AsTuple(sizes.ptr()));
}

[[gnu::noinline, gnu::cold]] void announce_slowly(const Choice& call, nb::handle like) {
  const Schedule only = call.plan.forward().only;
  if (only != kAnySchedule && !call.can_run(only)) {
    std::string text = std::string(name_of(call.verb)) + ": schedule: got " + name_of(only) +
                       ", which cannot run this call, wanted";
    const char* join = " ";
    for (const char* const name : call.able())
      text += std::exchange(join, " or ") + std::string(name);
    throw nb::value_error(text.c_str());
  }
  if (watched)
    append_call(call.verb, like, as_tuple(call.plan.source_shape), as_tuple(call.plan.dest_shape),
                call.names());
}

/// Tell whoever watches this thread of a call. Refuse it if its plan is bound to a schedule that
/// cannot run it.
void announce(const OwnedPlan& plan, Verb verb, nb::handle like, Dtype dtype, int rule = 0,
              bool verify = false) {
  if (watchers.load(std::memory_order_relaxed) == 0 && plan.forward().only == kAnySchedule) return;
  announce_slowly({plan, verb, dtype, rule, verify}, like);
}

/// Do the same for each plan of a call in parts, under the shapes of the whole.
void announce(const Windows& windows, Verb verb, nb::handle like, Dtype dtype, int rule = 0) {
  if (windows.plan) return announce(*windows.plan, verb, like, dtype, rule);
  if (watchers.load(std::memory_order_relaxed) == 0 || !watched) return;
  std::string names;
  windows.each_plan([&](const OwnedPlan& plan) {
    const std::string here = Choice{plan, verb, dtype, rule, false}.names();
    if (("+" + names + "+").find("+" + here + "+") == std::string::npos)
      names += (names.empty() ? "" : "+") + here;
  });
  append_call(verb, like, as_tuple(windows.source_shape()), as_tuple(windows.dest_shape()), names);
}

/// Do the same for a verb without a plan.
void announce_indexed(Verb verb, nb::handle like, nb::handle out) {
  if (watchers.load(std::memory_order_relaxed) == 0 || !watched) return;
  append_call(verb, like, like.attr("shape"), out.attr("shape"), name_of(Schedule::follow_taps));
}

/// Append the calls of this thread to a list from now on: (verb, dtype, source, dest, schedule).
/// Return the list that received them before, or None.
nb::object watch(nb::handle list) {
  if (!list.is_none() && !PyList_Check(list.ptr())) throw nb::type_error("list: not a list");
  const nb::object before = watched ? nb::steal(watched) : nb::none();
  watchers += !list.is_none() - (watched != nullptr);
  watched = list.is_none() ? nullptr : nb::borrow(list).release().ptr();
  return before;
}

/// Find a verb that takes a plan by its name.
Verb verb_of(const char* name) {
  for (int v = 0; v < static_cast<int>(Verb::count); ++v)
    if (std::strcmp(name, name_of(Verb(v))) == 0 && Verb(v) != Verb::gather &&
        Verb(v) != Verb::scatter)
      return Verb(v);
  throw nb::value_error("verb: unknown");
}

/// The rules of means that a caller can name.
constexpr int kMeans = static_cast<int>(Mean::short_spanned);

Choice choice(const OwnedPlan& plan, const char* name, nb::handle like, int rule, bool verify) {
  if (!PyArray_Check(like.ptr())) throw nb::type_error("like: not a NumPy array");
  const Dtype dtype = dtype_of(reinterpret_cast<PyArrayObject*>(like.ptr()), "like");
  const Verb verb = verb_of(name);
  const Verbs* verbs = level->verbs(dtype);
  if (verb == Verb::fold) require_verb(reinterpret_cast<const void*>(verbs->fold));
  if (verb == Verb::spread) require_verb(reinterpret_cast<const void*>(verbs->spread));
  const int rules = verb == Verb::fold     ? kMeans
                    : verb == Verb::spread ? 4
                    : verb == Verb::select ? 3
                                           : 1;
  if (rule < 0 || rule >= rules) throw nb::value_error("rule: unknown");
  return {plan, verb, dtype, rule, verify};
}

nb::object fold(const Windows& windows, int mean, nb::handle x, nb::handle given) {
  const nb::object y = given_or_new(given, windows.dest_shape(), x, "x");
  const Checked in = check(x, "x", windows.source_size(), false),
                out = check(y, "y", windows.dest_size(), true);
  same_type(in, out, "y");
  reject_overlap(out, in);
  const Verbs* verbs = level->verbs(in.dtype);
  require_verb(reinterpret_cast<const void*>(verbs->fold));
  if (mean < 0 || mean >= kMeans) throw nb::value_error("mean: unknown");
  if (!takes_mean(in.dtype, Mean(mean))) throw nb::value_error("mean: not for this dtype");
  announce(windows, Verb::fold, x, in.dtype, mean);
  in_parts(windows, in, out, [&](const CallPart& s) {
    Arrays a;
    a.x = s.x;
    a.out = s.y;
    verbs->fold(s.plan, a, Mean(mean), s.piece);
  });
  return y;
}

nb::object spread(const OwnedPlan& plan, int share, bool reversed, nb::handle g, nb::handle given) {
  const nb::object dx = given_or_new(given, plan.source_shape, g, "g");
  const Checked in = check(g, "g", plan.dest_size(), false),
                out = check(dx, "dx", plan.source_size(), true);
  same_type(in, out, "dx");
  reject_overlap(out, in);
  const Verbs* verbs = level->verbs(in.dtype);
  require_verb(reinterpret_cast<const void*>(verbs->spread));
  if (share < 0 || share > 3) throw nb::value_error("share: unknown");
  if (in.dtype > Dtype::f64 && Share(share) != Share::quotient)
    throw nb::type_error("g: integers can only be spread as quotients");
  Arrays a;
  a.g = in.data;
  a.out = out.data;
  announce(plan, Verb::spread, g, in.dtype, share);
  in_pieces(transposed_of(plan), out.bytes,
            [&](Piece p) { verbs->spread(plan.transposed(), a, Share(share), reversed, p); });
  return dx;
}

/// The arrays of the verbs that read x, y and a third array.
struct ThreeArrays {
  Arrays arrays;
  const Verbs* verbs;
  int64_t bytes;
  Dtype dtype;
};

ThreeArrays three_arrays(const OwnedPlan& plan, nb::handle x, nb::handle y, nb::handle g,
                         nb::handle out, bool g_is_dest, bool out_is_dest) {
  const int64_t n = plan.source_size(), m = plan.dest_size();
  const Checked cx = check(x, "x", n, false),
                cg = check(g, g_is_dest ? "g" : "v", g_is_dest ? m : n, false),
                co = check(out, "out", out_is_dest ? m : n, true);
  same_type(cx, cg, "g");
  same_type(cx, co, "out");
  reject_overlap(co, cx);
  reject_overlap(co, cg);
  ThreeArrays r{{}, level->verbs(cx.dtype), cx.bytes, cx.dtype};
  r.arrays.x = cx.data;
  r.arrays.g = cg.data;
  r.arrays.out = co.data;
  if (!y.is_none()) {
    const Checked cy = check(y, "y", m, false);
    same_type(cx, cy, "y");
    reject_overlap(co, cy);
    r.arrays.y = cy.data;
  }
  return r;
}

nb::object near(const OwnedPlan& plan, double eps, nb::handle x, nb::handle y, nb::handle g,
                nb::handle given) {
  const nb::object dx = given_or_new(given, plan.source_shape, x, "x");
  if (y.is_none()) throw nb::type_error("y: not a NumPy array");
  const ThreeArrays t = three_arrays(plan, x, y, g, dx, true, false);
  announce(plan, Verb::near, x, t.dtype);
  in_pieces(transposed_of(plan), t.bytes,
            [&](Piece p) { t.verbs->near(plan.transposed(), t.arrays, eps, p); });
  return dx;
}

nb::object recall(const OwnedPlan& plan, nb::handle x, nb::handle y, nb::handle v,
                  nb::handle given) {
  const nb::object out = given_or_new(given, plan.dest_shape, x, "x");
  if (y.is_none()) throw nb::type_error("y: not a NumPy array");
  const ThreeArrays t = three_arrays(plan, x, y, v, out, false, true);
  announce(plan, Verb::recall, x, t.dtype);
  in_pieces(plan.forward(), t.bytes,
            [&](Piece p) { t.verbs->recall(plan.forward(), t.arrays, p); });
  return out;
}

/// Return dx, or an integer: the flat position where y is not the pooled x.
nb::object route(const OwnedPlan& owned, nb::handle x, nb::handle y, nb::handle g,
                 nb::handle given) {
  const nb::object dx = given_or_new(given, owned.source_shape, x, "x");
  const ThreeArrays t = three_arrays(owned, x, y, g, dx, true, false);
  FirstWrong wrong;
  announce(owned, Verb::route, x, t.dtype, 0, t.arrays.y != nullptr);
  in_pieces(transposed_of(owned), t.bytes, [&](Piece p) {
    wrong.report(t.verbs->route(owned.forward(), owned.transposed(), t.arrays, p));
  });
  return wrong.get() < 0 ? dx : nb::cast(wrong.get());
}

/// Return y. With `nan_free`, return None if x has NaN; y is then undefined.
nb::object select_best(const Windows& windows, int start, nb::handle x, nb::handle given,
                       bool nan_free) {
  const nb::object y = given_or_new(given, windows.dest_shape(), x, "x");
  const Checked in = check(x, "x", windows.source_size(), false),
                out = check(y, "y", windows.dest_size(), true);
  same_type(in, out, "y");
  reject_overlap(out, in);
  if (start < 0 || start > 2) throw nb::value_error("start: unknown");
  const Verbs* verbs = level->verbs(in.dtype);
  announce(windows, Verb::select, x, in.dtype, start);
  std::atomic<bool> nan{false};
  in_parts(windows, in, out, [&](const CallPart& s) {
    Arrays a;
    a.x = s.x;
    a.out = s.y;
    const auto run = [&](Piece p) { verbs->select(s.plan, a, Start(start), p); };
    if (!nan_free) return run(s.piece);
    const NanScan scan(s.plan, verbs, s.x, item_bytes(in.dtype));
    scan.each(s.piece, [&](Piece part) {
      if (nan || !scan.clean(part)) return nan = true, false;
      return run(part), true;
    });
  });
  return nan ? nb::none() : y;
}

struct BestRule {
  bool least;
  NanRule nan;
};

/// Read a rule of `best`: 1 for minima, plus twice the rule for NaN.
BestRule best_rule(int rule) {
  if (rule < 0 || rule > 5) throw nb::value_error("rule: unknown");
  return {(rule & 1) != 0, NanRule(rule >> 1)};
}

/// Return the largest or least cell of each window.
nb::object best(const Windows& windows, int rule, nb::handle x, nb::handle given) {
  const nb::object y = given_or_new(given, windows.dest_shape(), x, "x");
  const Checked in = check(x, "x", windows.source_size(), false),
                out = check(y, "y", windows.dest_size(), true);
  same_type(in, out, "y");
  reject_overlap(out, in);
  const BestRule read = best_rule(rule);
  announce(windows, Verb::select, x, in.dtype, static_cast<int>(start_of(read.nan)));
  in_parts(windows, in, out, [&](const CallPart& s) {
    BestCall{s.plan, in.dtype, s.x, s.y, nullptr, read.least, read.nan}.run(s.piece);
  });
  return y;
}

/// Refuse sums of integers with more than 51 bits, and divisors that are 0 or no numbers.
void check_integer_sums(const Windows& windows, Dtype dtype, Divisor by, double number) {
  windows.each_plan([&](const OwnedPlan& plan) {
    if (largest_window(plan.forward()) > int64_t{1} << (51 - 8 * item_bytes(dtype)))
      throw nb::value_error("plan: a window has too many cells for exact sums");
  });
  if (by == Divisor::number && !(std::abs(number) > 0 && std::isfinite(number)))
    throw nb::value_error("by: must be finite and not 0");
}

/// Return the sum of each window, divided: by its cells (`by` is None), by its cells before it was
/// cut ("span"), or by a number. The result has the dtype of `like`. Return None if that dtype does
/// not hold a result.
nb::object mean(const Windows& windows, nb::handle x, nb::handle by, bool ignore_nan,
                nb::handle like, int rounding) {
  const Checked in = check(x, "x", windows.source_size(), false);
  const nb::object y = given_or_new(nb::none(), windows.dest_shape(), like, "like");
  const Checked out = check(y, "y", windows.dest_size(), true);
  if (rounding < 0 || rounding > 3) throw nb::value_error("rounding: unknown");
  const Divisor divisor = by.is_none()                ? Divisor::count
                          : PyUnicode_Check(by.ptr()) ? Divisor::span
                                                      : Divisor::number;
  double number = 1;
  if (divisor == Divisor::number && !nb::try_cast<double>(by, number))
    throw nb::type_error("by: must be None, 'span' or a number");
  if (is_float(in.dtype)) same_type(in, out, "like");
  else if (!chosen_cells(in.dtype)->terms) throw nb::type_error("x: integers of at most 32 bits");
  else if (!chosen_cells(out.dtype)->settle) throw nb::type_error("like: not of half types");
  else check_integer_sums(windows, in.dtype, divisor, number);
  const auto call = [&](const Plan& plan, const char* from, char* to) {
    return MeanCall{plan,   in.dtype,   out.dtype,         from, to, divisor,
                    number, ignore_nan, Rounding(rounding)};
  };
  Dtype sums = in.dtype;  // of the plan, or of the last part, which says enough
  windows.each_plan(
      [&](const OwnedPlan& plan) { sums = call(plan.forward(), in.data, out.data).sum_type(); });
  announce(windows, Verb::fold, x, sums, static_cast<int>(Mean::total));
  std::atomic<bool> fits{true};
  in_parts(windows, in, out, [&](const CallPart& s) {
    if (fits && !call(s.plan, s.x, s.y).run(s.piece)) fits = false;
  });
  return fits ? y : nb::none();
}

/// Return the norm of each window, for p = 1 or 2. Return None if a sum overflowed, or is below
/// `small` and may have lost digits.
nb::object norm(const Windows& windows, nb::handle x, int p, double small) {
  const Checked in = check(x, "x", windows.source_size(), false);
  const nb::object y = given_or_new(nb::none(), windows.dest_shape(), x, "x");
  const Checked out = check(y, "y", windows.dest_size(), true);
  if (!is_float(in.dtype)) throw nb::type_error("x: must be floats");
  if (p != 1 && p != 2) throw nb::value_error("p: must be 1 or 2");
  const Dtype sums = in.dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32;
  announce(windows, Verb::fold, x, sums, static_cast<int>(Mean::total));
  std::atomic<bool> good{true};
  in_parts(windows, in, out, [&](const CallPart& s) {
    if (good && !NormCall{s.plan, in.dtype, s.x, s.y, p == 2, small}.run(s.piece)) good = false;
  });
  return good ? y : nb::none();
}

bool is_nan_free(nb::handle x) {
  const Checked in = check(x, "x", -1, false);
  const Verbs* verbs = level->verbs(in.dtype);
  if (!verbs->nan_free || !in.bytes) return true;
  constexpr int64_t kBytes = 1 << 18;
  const int64_t width = in.bytes / in.elements;
  const int threads = threads_for(in.bytes);
  std::atomic<bool> nan{false};
  unlocked([&](StopCheck should_stop) {
    parallel_for((in.bytes + kBytes - 1) / kBytes, threads, should_stop, [&](int64_t task) {
      const int64_t from = task * kBytes, bytes = std::min(kBytes, in.bytes - from);
      checkpoint(step_budget(), bytes / width);
      if (!nan && !verbs->nan_free(in.data + from, bytes / width)) nan = true;
    });
  });
  return !nan;
}

bool is_wide(const Checked& index, const char* name) {
  if (index.dtype != Dtype::i32 && index.dtype != Dtype::i64)
    throw nb::type_error((std::string(name) + ": must be int32 or int64").c_str());
  return index.dtype == Dtype::i64;
}

void argmax(const OwnedPlan& plan, int64_t modulo, nb::handle x, nb::handle y, nb::handle index) {
  const Checked in = check(x, "x", plan.source_size(), false),
                out = check(y, "y", plan.dest_size(), true);
  const Checked where = check(index, "index", plan.dest_size(), true);
  same_type(in, out, "y");
  reject_overlap(out, in);
  reject_overlap(where, in);
  reject_overlap(where, out);
  const bool wide = is_wide(where, "index");
  if (modulo <= 0) throw nb::value_error("modulo: must be positive");
  if (!wide && modulo - 1 > std::numeric_limits<int32_t>::max())
    throw nb::value_error("index: int32 does not hold positions below modulo");
  const Verbs* verbs = level->verbs(in.dtype);
  Arrays a;
  a.x = in.data;
  a.out = out.data;
  a.out_index = where.data;
  announce(plan, Verb::argmax, x, in.dtype);
  in_pieces(plan.forward(), in.bytes,
            [&](Piece p) { verbs->argmax(plan.forward(), a, wide, modulo, p); });
}

/// The most cells of a window that taps can number.
constexpr int64_t kMostTaps = std::numeric_limits<uint32_t>::max();

/// Check taps, one per destination cell: uint8, or uint32 if some window has more than 256 cells.
Checked check_taps(const Windows& windows, nb::handle taps, bool written) {
  const Checked c = check(taps, "taps", windows.dest_size(), written);
  int64_t cells = 1;
  windows.each_plan([&](const OwnedPlan& plan) {
    int64_t here = 1;
    for (int a = 0; a < plan.forward().rank && here <= kMostTaps; ++a)
      here *= std::max<int64_t>(plan.forward().axis[a].widest, 1);
    cells = std::max(cells, here);
  });
  const Dtype wanted = cells > 256 ? Dtype::u32 : Dtype::u8;
  if (cells > kMostTaps)
    throw nb::value_error("plan: a window has more cells than uint32 can number");
  if (c.dtype != wanted)
    throw nb::type_error(wanted == Dtype::u8 ? "taps: must be uint8" : "taps: must be uint32");
  return c;
}

/// Return true. With `nan_free`, return false if x has NaN; y and taps are then undefined.
bool choose(const OwnedPlan& plan, nb::handle x, nb::handle y, nb::handle taps, bool nan_free) {
  const Checked in = check(x, "x", plan.source_size(), false),
                out = check(y, "y", plan.dest_size(), true),
                where = check_taps({&plan}, taps, true);
  same_type(in, out, "y");
  reject_overlap(out, in);
  reject_overlap(where, in);
  reject_overlap(where, out);
  const Verbs* verbs = level->verbs(in.dtype);
  Arrays a;
  a.x = in.data;
  a.out = out.data;
  a.out_index = where.data;
  announce(plan, Verb::choose, x, in.dtype);
  return in_pieces_of(plan.forward(), verbs, in, nan_free,
                      [&](Piece p) { verbs->choose(plan.forward(), a, p); });
}

/// Follow taps: pick reads at them, place (`back`) adds at them. Return the result, or an integer:
/// the first cell whose tap is outside its window.
nb::object follow(const OwnedPlan& plan, nb::handle v, nb::handle taps, nb::handle given,
                  bool back) {
  const nb::object result =
      given_or_new(given, back ? plan.source_shape : plan.dest_shape, v, back ? "g" : "v");
  const int64_t n = plan.source_size(), m = plan.dest_size();
  const Checked in = check(v, back ? "g" : "v", back ? m : n, false),
                out = check(result, "out", back ? n : m, true),
                where = check_taps({&plan}, taps, false);
  same_type(in, out, "out");
  reject_overlap(out, in);
  reject_overlap(out, where);
  const Verbs* verbs = level->verbs(in.dtype);
  Arrays a;
  a.g = in.data;
  a.index = where.data;
  a.out = out.data;
  FirstWrong wrong;
  announce(plan, back ? Verb::place : Verb::pick, v, in.dtype);
  in_pieces(
      back ? transposed_of(plan) : plan.forward(), std::max(in.bytes, out.bytes),
      [&](Piece p) {
        wrong.report(back ? verbs->route(plan.forward(), plan.transposed(), a, p)
                          : verbs->pick(plan.forward(), a, p));
      },
      follows_single_taps(plan.forward()));
  return wrong.get() < 0 ? result : nb::cast(wrong.get());
}

/// Find the largest or least cell of each window, and its tap.
void best_taps(const Windows& windows, int rule, nb::handle x, nb::handle y, nb::handle taps) {
  const Checked in = check(x, "x", windows.source_size(), false),
                out = check(y, "y", windows.dest_size(), true),
                where = check_taps(windows, taps, true);
  same_type(in, out, "y");
  reject_overlap(out, in);
  reject_overlap(where, in);
  reject_overlap(where, out);
  const BestRule read = best_rule(rule);
  announce(windows, Verb::choose, x, in.dtype);
  const int64_t width = item_bytes(where.dtype);
  in_parts(windows, in, out, [&](const CallPart& s) {
    BestCall{s.plan, in.dtype, s.x, s.y, where.data + s.dest * width, read.least, read.nan}.run(
        s.piece);
  });
}

struct Indexed {
  Arrays arrays;
  const Verbs* verbs;
  bool wide, half;
  int64_t n, m, total, bytes;
};

Indexed indexed(int64_t items, nb::handle v, nb::handle index, nb::handle out, bool index_like_v) {
  const Checked cv = check(v, "v", -1, false), co = check(out, "out", -1, true),
                ci = check(index, "index", -1, false);
  same_type(cv, co, "out");
  reject_overlap(co, cv);
  reject_overlap(co, ci);
  const int64_t source = (index_like_v ? co : cv).elements, dest = ci.elements;
  if (dest != (index_like_v ? cv : co).elements)
    throw nb::value_error("index: must have one position per cell");
  if (items < 0 || (items == 0 && (source || dest)) || (items && (source % items || dest % items)))
    throw nb::value_error("items: does not divide the arrays");
  Indexed r{{},
            level->verbs(cv.dtype),
            is_wide(ci, "index"),
            cv.dtype <= Dtype::bf16,
            items ? source / items : 0,
            items ? dest / items : 0,
            source,
            co.bytes + cv.bytes};
  r.arrays.g = cv.data;
  r.arrays.index = ci.data;
  r.arrays.out = co.data;
  return r;
}

int64_t gather(int64_t items, bool absolute, nb::handle v, nb::handle index, nb::handle out) {
  const Indexed k = indexed(items, v, index, out, false);
  announce_indexed(Verb::gather, v, out);
  if (k.total == 0 && k.m == 0) return -1;  // any number of items divides nothing
  constexpr int64_t kCells = 1 << 15;
  const int64_t cells = items * k.m;
  const int threads = threads_for(k.bytes);
  FirstWrong wrong;
  unlocked([&](StopCheck should_stop) {
    parallel_for((cells + kCells - 1) / kCells, threads, should_stop, [&](int64_t task) {
      wrong.report(k.verbs->gather(k.arrays, k.wide, k.n, k.m, k.total, absolute, task * kCells,
                                   std::min(cells, (task + 1) * kCells)));
    });
  });
  return wrong.get();
}

/// Add at positions; return the first that is wrong, or -1. See scatter_pieces.
int64_t scatter(int64_t items, bool absolute, nb::handle g, nb::handle index, nb::handle out,
                bool once) {
  const Indexed k = indexed(items, g, index, out, true);
  announce_indexed(Verb::scatter, g, out);
  if (k.total == 0 && k.m == 0) return -1;
  int64_t wrong = -1;
  unlocked([&](StopCheck should_stop) {
    wrong = scatter_pieces(k.verbs, k.arrays, {k.wide, absolute, once && k.half},
                           {items, k.n, k.m, k.total, k.bytes}, should_stop);
  });
  return wrong;
}

/// Read the axis that an axis was cut from.
ParentData parent_of(nb::handle given) {
  if (!PyTuple_Check(given.ptr()) || PyTuple_Size(given.ptr()) != 8)
    throw nb::type_error(
        "parent: must be (length, windows, origin, first, widest, overlap, fits, fits_back)");
  const nb::tuple t = nb::borrow<nb::tuple>(given);
  const auto field = [&](int i) { return integer(t[i], "parent"); };
  const int64_t n = field(0), m = field(1);
  return {{n, m, field(4), field(2), field(6) != 0}, {m, n, field(5), field(3), field(7) != 0}};
}

nb::object make_plan(nb::handle source, nb::handle dest, int64_t outer, int64_t inner,
                     nb::handle axes, nb::handle bound) {
  const bool plain = bound.ptr() == Py_True;
  Schedule only = kAnySchedule;
  if (PyUnicode_Check(bound.ptr())) {
    const char* const name = PyUnicode_AsUTF8AndSize(bound.ptr(), nullptr);
    if (!name) throw nb::python_error();
    only = schedule_of(name);
    if (only == kAnySchedule)
      throw nb::value_error(
          ("schedule: got " + std::string(name) + ", wanted a name of schedules()").c_str());
  } else if (!bound.is_none() && !PyBool_Check(bound.ptr())) {
    throw nb::type_error("schedule: must be a name, None, or True for the simplest way");
  }
  struct Given {
    int64_t n;
    Borrowed start, stop, span;
    std::optional<ParentData> parent;
  };
  std::vector<Given> list;
  for (nb::handle item : axes) {
    if (list.size() == static_cast<size_t>(kMaxRank))
      throw nb::value_error(
          ("axes: got more than " + std::to_string(kMaxRank) + ", wanted at most so many").c_str());
    const Py_ssize_t fields = PyTuple_Check(item.ptr()) ? PyTuple_Size(item.ptr()) : 0;
    if (fields != 4 && fields != 5)
      throw nb::type_error("axes: each must be (n, start, stop, span) or (..., parent)");
    const nb::tuple t = nb::borrow<nb::tuple>(item);
    list.push_back(
        {integer(t[0], "axes"), int64_vector(t[1], "start"), int64_vector(t[2], "stop"), {}, {}});
    if (!t[3].is_none()) list.back().span = int64_vector(t[3], "span");
    if (fields == 5 && !t[4].is_none()) list.back().parent = parent_of(t[4]);
  }
  std::unique_ptr<OwnedPlan> plan;
  try {
    int64_t windows = 0;
    for (const Given& g : list) windows += g.start.size;
    filling(windows, [&] {
      std::vector<AxisData> data;
      for (const Given& g : list)
        data.push_back({g.n, copied(g.start), copied(g.stop), copied(g.span), g.parent});
      plan = std::make_unique<OwnedPlan>(outer, inner, std::move(data), plain, only);
    });
  } catch (const std::bad_alloc&) {
    raise_memory_error("axes: got windows whose tables need too much");
  }
  plan->source_shape = shape_of(source, "source", plan->source_size());
  plan->dest_shape = shape_of(dest, "dest", plan->dest_size());
  return PlanObject::make(std::move(plan));
}

/// Join plans of one item to a plan in parts, each a number of a plan and the cell at which it
/// begins.
nb::object make_parts(nb::handle source, nb::handle dest, int64_t outer, int64_t n,
                      nb::handle plans, nb::handle places) {
  const nb::tuple kept = nb::tuple(nb::borrow(plans));
  std::vector<PlanParts::Part> parts;
  for (nb::handle item : places) {
    if (!PyTuple_Check(item.ptr()) || PyTuple_Size(item.ptr()) != 2)
      throw nb::type_error("parts: each must be (number of a plan, cell)");
    const nb::tuple place = nb::borrow<nb::tuple>(item);
    const int64_t number = integer(place[0], "parts");
    if (number < 0 || number >= static_cast<int64_t>(kept.size()))
      throw nb::value_error("parts: there is no such plan");
    const nb::handle plan = kept[static_cast<size_t>(number)];
    if (Py_TYPE(plan.ptr()) != PlanObject::type) throw nb::type_error("plans: must be plans");
    parts.push_back({PlanObject::in(plan.ptr())->plan, integer(place[1], "parts")});
  }
  auto made = std::make_unique<PlanParts>(outer, n, std::move(parts));
  made->source_shape = shape_of(source, "source", made->source_size());
  made->dest_shape = shape_of(dest, "dest", made->dest_size());
  return PartsObject::make(std::move(made), kept);
}

int import_numpy() {
  import_array1(-1);
  return 0;
}

}  // namespace
}  // namespace poolgrad

// Refuse a second interpreter before nanobind sees it: it would take the types from the first.
// Refuse an old processor before any other code runs.
#undef NB_EXPORT
#define NB_EXPORT
extern "C" PyObject* PyInit__inner();
extern "C" __attribute__((visibility("default"))) PyObject* PyInit__core();
PyObject* PyInit__core() {
  const char* refusal = nullptr;
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0)
    refusal = "poolgrad: does not work in sub-interpreters";
  if (!poolgrad::has_a_level())
    refusal = "poolgrad: needs a processor with SSE4.2 and POPCNT (x86-64-v2)";
  if (!refusal) return PyInit__inner();
  PyErr_SetString(PyExc_ImportError, refusal);
  return nullptr;
}

/// The number of threads of a call; programs that look at loaded libraries know poolgrad by this
/// name.
extern "C" __attribute__((visibility("default"))) int poolgrad_threads() {
  return poolgrad::allowed_threads();
}

NB_MODULE(_inner, m) {
  using namespace poolgrad;
  if (import_numpy() < 0) throw nb::python_error();
  note_main_thread();
  // Cached plans outlive the module if something else keeps their users alive at exit.
  nb::set_leak_warnings(false);
  level = &start_core();

  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
      PyErr_SetString(PyExc_MemoryError,
                      "x: got a call that needs too much working memory, wanted no more than the "
                      "memory there is");
    }
  });
  PlanObject::make_type();
  PartsObject::make_type();
  m.def("Parts", &make_parts);
  m.def("Plan", &make_plan, nb::arg("source"), nb::arg("dest"), nb::arg("outer"), nb::arg("inner"),
        nb::arg("axes"), nb::arg("schedule").none() = nb::none());
  define_windows(m);
  define_planes(m);
  const auto out = nb::arg("out").none() = nb::none();
  m.def("fold", &fold, nb::arg(), nb::arg(), nb::arg(), out);
  m.def("spread", &spread, nb::arg(), nb::arg(), nb::arg(), nb::arg(), out);
  m.def("near", &near, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), out);
  const auto nan_free = nb::arg("whole") = false;
  m.def("select", &select_best, nb::arg(), nb::arg(), nb::arg(), out, nan_free);
  m.def("best", &best, nb::arg(), nb::arg(), nb::arg(), out);
  m.def("best_taps", &best_taps);
  m.def("mean", &mean, nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(),
        nb::arg("rounding") = 0);
  m.def("norm", &norm);
  m.def("argmax", &argmax);
  m.def("route", &route, nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), out);
  m.def("recall", &recall, nb::arg(), nb::arg(), nb::arg(), nb::arg(), out);
  m.def("whole", &is_nan_free);
  m.def("choose", &choose, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nan_free);
  m.def(
      "pick",
      [](const OwnedPlan& plan, nb::handle v, nb::handle taps, nb::handle given) {
        return follow(plan, v, taps, given, false);
      },
      nb::arg(), nb::arg(), nb::arg(), out);
  m.def(
      "place",
      [](const OwnedPlan& plan, nb::handle g, nb::handle taps, nb::handle given) {
        return follow(plan, g, taps, given, true);
      },
      nb::arg(), nb::arg(), nb::arg(), out);
  m.def("keep_at_most",
        [](int64_t bytes) { set_cache_limit(static_cast<size_t>(std::max<int64_t>(bytes, 0))); });
  m.def("go_far_from",
        [](int64_t bytes) { stream_threshold = bytes < 0 ? default_stream_threshold() : bytes; });
  m.def("box_at_most", [](int64_t bytes) { given_box_bytes = std::max<int64_t>(bytes, 0); });
  m.def("shuffles_of", [](int per_cycle) {
    shuffles_per_cycle = per_cycle == 0 ? read_shuffles() : per_cycle;
    return shuffles_per_cycle.load();
  });
  m.def("caches_of", [](int64_t first, int64_t second) {
    read_caches();
    if (first > 0) first_cache = first;
    if (second > 0) second_cache = second;
    return nb::make_tuple(first_cache.load(), second_cache.load());
  });
  m.def("empty", [](nb::handle shape, nb::handle like) {
    return given_or_new(nb::none(), any_shape(shape, "shape"), like, "like");
  });
  const auto rule = nb::arg("rule") = 0, verify = nb::arg("verify") = false;
  m.def(
      "schedule",
      [](const OwnedPlan& plan, const char* verb, nb::handle like, int rule, bool verify) {
        return nb::str(choice(plan, verb, like, rule, verify).names().c_str());
      },
      nb::arg(), nb::arg(), nb::arg(), rule, verify);
  m.def(
      "able",
      [](const OwnedPlan& plan, const char* verb, nb::handle like, int rule, bool verify) {
        nb::list names;
        for (const char* const name : choice(plan, verb, like, rule, verify).able())
          names.append(name);
        return names;
      },
      nb::arg(), nb::arg(), nb::arg(), rule, verify);
  m.def("schedules", [] {
    nb::dict all;
    for (int i = 0; i < kSchedules; ++i) all[name_of(Schedule(i))] = reason_for(Schedule(i));
    return all;
  });
  m.def("schedules_of", [](const char* verb, nb::handle like) {
    if (!PyArray_Check(like.ptr())) throw nb::type_error("like: not a NumPy array");
    const Dtype dtype = dtype_of(reinterpret_cast<PyArrayObject*>(like.ptr()), "like");
    nb::list names;
    const uint32_t rows = level->verbs(dtype)->schedules(verb_of(verb));
    for (int i = 0; i < kSchedules; ++i)
      if (rows >> i & 1) names.append(name_of(Schedule(i)));
    return names;
  });
  m.def("watch", &watch, nb::arg().none());
  m.def("gather", &gather);
  m.def("scatter", &scatter, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
        nb::arg("once") = false);
  m.def("get_num_threads", &allowed_threads);
  m.def("thread_setting",
        [] { return nb::make_tuple(thread_limit.load(), thread_limit_given.load()); });
  m.def(
      "set_num_threads",
      [](int n, bool given) {
        if (n < 1 || n > 1024)
          throw nb::value_error(
              ("threads: got " + std::to_string(n) + ", wanted 1 to 1024").c_str());
        thread_limit_given = given;
        thread_limit = n;
      },
      nb::arg(), nb::arg("given") = true);
  m.def("limit_here", [](int n) {
    if (n < 0)
      throw nb::value_error(("threads: got " + std::to_string(n) + ", wanted at least 0").c_str());
    const int before = executor_threads();
    limit_threads_here(n);
    return before;
  });
  m.def("follow_threads", [](const char* library, const char* threads, const char* busy,
                             int usual) {
    void* const ask_threads = loaded_function(library, threads);
    void* const ask_busy = loaded_function(library, busy);
    if (!ask_threads || !ask_busy)
      throw nb::value_error("library: got one without these functions, wanted one that is loaded");
    // Never freed: a call of another thread may hold it.
    thread_host = new ThreadHost{reinterpret_cast<int (*)()>(ask_threads), usual,
                                 reinterpret_cast<bool (*)()>(ask_busy)};
  });
  m.def("available_threads", &available_threads);
  m.def("use_bfloat16", [](nb::handle array) {
    if (!PyArray_Check(array.ptr())) throw nb::type_error("array: not a NumPy array");
    auto* a = reinterpret_cast<PyArrayObject*>(array.ptr());
    if (!PyTypeNum_ISUSERDEF(PyArray_TYPE(a)) || PyArray_ITEMSIZE(a) != 2)
      throw nb::type_error("array: not of bfloat16");
    bfloat16_number = PyArray_TYPE(a);
  });
  m.def("isa", [] { return level->name; });
  m.def("isa_levels", [] {
    size_t count;
    const Level* list = levels(count);
    nb::list names;
    for (size_t i = 0; i < count; ++i)
      if (list[i].supported) names.append(list[i].name);
    return names;
  });
  m.def("foreign", [] {
    return nb::steal(PyCapsule_New(const_cast<pg_table*>(pg_functions()), PG_CAPSULE, nullptr));
  });
  m.attr("compiler") = __VERSION__;
}
