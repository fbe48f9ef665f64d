// How a call is cut into tasks: by outer items and by cells of the first axis.
#pragma once
#include <algorithm>
#include <atomic>

#include "kernels.hpp"
#include "threads.hpp"

namespace poolgrad {

inline std::atomic<int> thread_limit{1};

/// The verbs of the level that this machine has; set once, when the module is loaded.
inline VerbTable chosen_verbs = nullptr;

/// Below this many bytes a second thread costs more than it brings.
constexpr int64_t kWorthThreads = 1 << 18;

/// Cells of the destination.
inline int64_t work_of(const Plan& plan) {
  int64_t work = plan.outer * plan.inner;
  for (int a = 0; a < plan.rank; ++a) work *= plan.axis[a].m;
  return work;
}

/// Runs f(piece) for all pieces of a destination that is not empty.
template <class F>
void piecewise(const Plan& plan, int64_t bytes, Ask ask, F&& f) {
  const int64_t cells = plan.axis[0].m;
  const int threads = bytes < kWorthThreads ? 1 : thread_limit.load();
  // Items are kept together, up to 64, since neighbours may be computed side by side; then each is cut into stretches of rows.
  // Not so under long windows, whose rows both sides of a cut compute: those are cut between items, or once per thread.
  const int64_t wanted = threads == 1 ? 1 : int64_t{threads} * 4, reach = std::max<int64_t>(plan.axis[0].widest, 1);
  const bool far = reach > 4 && 16 * reach > cells, apart = plan.inner >= 64 || (far && plan.last().m * plan.inner >= 64);
  const int64_t blocks = std::clamp<int64_t>(apart ? plan.outer : plan.outer / 64, 1, wanted);
  const int64_t cuts = std::clamp<int64_t>(cells / (2 * reach), 1, ((far ? threads : wanted) + blocks - 1) / blocks);
  parallel_for(blocks * cuts, threads, ask, [&](int64_t task) {
    const int64_t b = task / cuts, c = task % cuts;
    f(Piece{plan.outer * b / blocks, plan.outer * (b + 1) / blocks, cells * c / cuts, cells * (c + 1) / cuts});
  });
}

}  // namespace poolgrad
