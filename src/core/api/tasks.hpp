// Cut a call into tasks: by items, and by cells of the first axis.
#pragma once
#include <algorithm>
#include <atomic>

#include "runtime/caches.hpp"
#include "runtime/first_wrong.hpp"
#include "runtime/threads.hpp"
#include "verbs/cells.hpp"
#include "verbs/table.hpp"

namespace poolgrad {

/// The most threads of a call, and whether the program itself set that number.
inline std::atomic<int> thread_limit{1};
inline std::atomic<bool> thread_limit_given{false};

/// Another library of the process: the threads that a call of this thread may use, their number if
/// nobody has set it, and whether that library runs this thread as one of several already.
struct ThreadHost {
  int (*threads)();
  int usual;
  bool (*busy)();
};
inline std::atomic<const ThreadHost*> thread_host{nullptr};

/// Return the threads that the host leaves to calls of this thread.
inline int host_threads() {
  constexpr int kAny = 1024;
  const ThreadHost* host = thread_host.load(std::memory_order_acquire);
  if (!host) return kAny;
  if (host->busy()) return 1;
  const int threads = host->threads();
  return threads < host->usual ? std::max(threads, 1) : kAny;
}

/// Return the most threads that a call of this thread may use: the number of the program, or the
/// least of the default, of its executor's and of its host's.
inline int allowed_threads() {
  const int limit = thread_limit.load(), own = executor_threads();
  if (own) return std::min(own, limit);
  return thread_limit_given.load() ? limit : std::min(limit, host_threads());
}

/// The verbs of the chosen level; set once, when the module is loaded.
inline VerbTable chosen_verbs = nullptr;
inline CellTable chosen_cells = nullptr;

/// The most bytes of a box (boxes.hpp); 0 for the usual number. Tests set it.
inline std::atomic<int64_t> given_box_bytes{0};
inline int64_t box_bytes() {
  const int64_t given = given_box_bytes.load(std::memory_order_relaxed);
  return given ? given : static_cast<int64_t>(kBoxBytes);
}

/// A second thread costs more than it saves below this many bytes, even if it is awake.
constexpr int64_t kWorthThreads = 1 << 18;

/// Below this many bytes a call is over before a sleeping thread has begun.
constexpr int64_t kWorthWaking = 1 << 21;

/// Return the number of threads for a call that reads or writes so many bytes.
inline int threads_for(int64_t bytes) {
  const int limit = bytes < kWorthThreads ? 1 : allowed_threads();
  return limit > 1 && bytes < kWorthWaking && !calls_follow_closely() ? 1 : limit;
}

/// Count the cells of the destination.
inline int64_t work_of(const Plan& plan) {
  int64_t work = plan.outer * plan.inner;
  for (int a = 0; a < plan.rank; ++a) work *= plan.axis[a].m;
  return work;
}

/// The cuts of a call: blocks of items, each cut into ranges of cells of the first axis.
struct Cuts {
  int threads;
  int64_t blocks, cuts;

  int64_t tasks() const { return blocks * cuts; }
  Piece piece(const Plan& plan, int64_t task) const {
    const int64_t b = task / cuts, c = task % cuts, cells = plan.axis[0].m;
    return Piece{plan.outer * b / blocks, plan.outer * (b + 1) / blocks, cells * c / cuts,
                 cells * (c + 1) / cuts};
  }
};

/// Cut a call for so many threads. `item_by_item`: it computes items one by one, so that any cut
/// between items is free.
inline Cuts cut_call(const Plan& plan, int threads, bool item_by_item = false) {
  const int64_t cells = plan.axis[0].m;
  // Keep at least 32 items together, because transposed tiles compute neighbours together; then cut
  // each block of items into ranges of rows. Both sides of a cut compute the rows of long windows:
  // cut these between items, or once per thread.
  const int64_t wanted = threads == 1 ? 1 : int64_t{threads} * 4,
                longest = std::max<int64_t>(plan.axis[0].widest, 1);
  const bool long_windows = longest > 4 && 16 * longest > cells;
  item_by_item |= plan.inner >= 64 || (long_windows && plan.last().m * plan.inner >= 64);
  const int64_t blocks =
      std::clamp<int64_t>(item_by_item ? plan.outer : plan.outer / 32, 1, wanted);
  const int64_t cuts = std::clamp<int64_t>(
      cells / (2 * longest), 1, ((long_windows ? threads : wanted) + blocks - 1) / blocks);
  return {threads, blocks, cuts};
}

/// Call f(piece) for all pieces of a destination that is not empty.
template <class F>
void piecewise(const Plan& plan, int64_t bytes, StopCheck should_stop, F&& f,
               bool item_by_item = false) {
  const Cuts cuts = cut_call(plan, threads_for(bytes), item_by_item);
  parallel_for(cuts.tasks(), cuts.threads, should_stop,
               [&](int64_t task) { f(cuts.piece(plan, task)); });
}

/// The rules and the sizes of a scatter: `items` images of n cells, m positions each.
struct ScatterRules {
  bool wide, absolute;
  bool once;  ///< sum half types in float32 and round at the end
};
struct ScatterSizes {
  int64_t items, n, m, total, bytes;
};

/// Scatter item by item, each in its own task. If items are few, or a position leaves its item,
/// scatter by ranges of the result. With `once`, half types are summed in scratch memory, so no
/// task owns too many cells. Return the first wrong position, or -1.
inline int64_t scatter_pieces(const Verbs* verbs, const Arrays& arrays, ScatterRules rules,
                              ScatterSizes k, StopCheck should_stop) {
  constexpr int64_t kMostSums = 1 << 23;
  const int threads = threads_for(k.bytes);
  const auto run = [&](ScatterRange r) {
    return verbs->scatter(arrays, rules.wide, k.n, k.m, k.total, rules.absolute, r);
  };
  const bool by_items = rules.once ? k.items > 1 && k.items >= threads && k.n <= kMostSums
                                   : k.items >= threads && threads > 1;
  const int64_t parts =
      rules.once ? std::max<int64_t>(threads, (k.total + kMostSums - 1) / kMostSums) : threads;
  if (by_items) {
    FirstWrong outside;
    parallel_for(k.items, threads, should_stop, [&](int64_t i) {
      outside.report(run({i, i + 1, i * k.n, (i + 1) * k.n, false, rules.once}));
    });
    if (outside.get() < 0) return -1;
  }
  FirstWrong wrong;
  parallel_for(parts, threads, should_stop, [&](int64_t p) {
    wrong.report(run({0, k.items, k.total / parts * p,
                      p + 1 < parts ? k.total / parts * (p + 1) : k.total, true, rules.once}));
  });
  return wrong.get();
}

/// Return true if none of n cells is NaN; pass checkpoints.
inline bool scan_nan_free(bool (*nan_free)(const void*, int64_t), const char* x, int64_t n,
                          int64_t width) {
  constexpr int64_t kCells = 1 << 14;
  for (int64_t c = 0; c < n; c += kCells) {
    const int64_t here = std::min(kCells, n - c);
    checkpoint(step_budget(), here);
    if (!nan_free(x + c * width, here)) return false;
  }
  return true;
}

/// Cut a piece into parts that are still in cache when a verb reads them after a scan for NaN.
class NanScan {
 public:
  NanScan(const Plan& plan, const Verbs* verbs, const void* x, int64_t width)
      : plan_(plan),
        nan_free_(verbs->nan_free),
        x_(static_cast<const char*>(x)),
        slab_(plan.source_slab()),
        width_(width) {}

  /// Call f(part) for parts of a piece, as long as it returns true.
  template <class F>
  void each(Piece p, F&& f) const {
    if (!nan_free_) return static_cast<void>(f(p));
    const Axis& axis = plan_.axis[0];
    const int64_t least = plan_.inner >= 64 ? 1 : 64, per = axis.n / axis.m + 1,
                  row = slab_ * width_ + 1;
    const int64_t bytes = box_bytes();
    const int64_t items = std::max(bytes / (row * axis.n + 1) / least * least, least);
    const int64_t rows = std::max(bytes / (row * per * items), 8 * axis.widest + 1);
    for (int64_t i = p.i0; i < p.i1; i += items)
      for (int64_t h = p.h0; h < p.h1; h += rows)
        if (!f(Piece{i, std::min(i + items, p.i1), h, std::min(h + rows, p.h1)})) return;
  }

  /// Return true if a part reads no NaN.
  bool clean(Piece p) const {
    if (!nan_free_) return true;
    const Axis& axis = plan_.axis[0];
    const int64_t from = axis.start[p.h0], cells = (axis.stop[p.h1 - 1] - from) * slab_;
    for (int64_t i = p.i0; i < p.i1; ++i)
      if (!scan_nan_free(nan_free_, x_ + (i * axis.n + from) * slab_ * width_, cells, width_))
        return false;
    return true;
  }

 private:
  const Plan& plan_;
  bool (*const nan_free_)(const void*, int64_t);
  const char* const x_;
  const int64_t slab_, width_;
};

/// End a call that meets NaN.
class NanGuard {
 public:
  NanGuard(const Plan& plan, const Verbs* verbs, const void* x, int64_t bytes)
      : scan_(plan, verbs, x,
              bytes / std::max<int64_t>(plan.outer * plan.axis[0].n * plan.source_slab(), 1)) {}

  /// Call f(piece) for parts of a piece until one contains NaN.
  template <class F>
  void run(Piece p, F&& f) {
    scan_.each(p, [&](Piece part) {
      if (nan_ || !scan_.clean(part)) return nan_ = true, false;
      return f(part), true;
    });
  }
  bool found_nan() const { return nan_; }

 private:
  const NanScan scan_;
  std::atomic<bool> nan_{false};
};

}  // namespace poolgrad
