// One small pool of threads behind one function.
#pragma once
#include <cstdint>

namespace poolgrad {

/// Whether the call is to end before it is done; asked by the calling thread, every 25 ms or so.
using StopCheck = bool (*)();

/// Runs body(0) … body(tasks - 1), each once, on up to `threads` threads, the caller's among them.
/// Which thread runs which task never matters: a task owns what it writes. The first exception is
/// thrown again in the caller; it is Stopped if `ask`, which may be null, said so.
void parallel_for(int64_t tasks, int threads, StopCheck should_stop,
                  void (*body)(void* context, int64_t task), void* context);

template <class F>
void parallel_for(int64_t tasks, int threads, StopCheck should_stop, F&& f) {
  parallel_for(
      tasks, threads, should_stop,
      [](void* context, int64_t task) { (*static_cast<F*>(context))(task); }, &f);
}

/// Thrown inside a task whose call is to end.
struct Stopped {};

/// Counts the steps of a thread's tasks down to the next look at the clock.
struct StepBudget {
  int64_t left;
};
StepBudget& step_budget();
void poll();

/// To be passed now and then by a task, with the steps it has done since, roughly: throws Stopped
/// if its call is to end.
[[gnu::always_inline]] inline void checkpoint(StepBudget& m, int64_t steps) {
  if ((m.left -= steps) <= 0) [[unlikely]]
    poll();
}

/// Makes the pool ready, and a child's after a fork. Once, before anything else.
void start_threads();

/// Working memory of the calling thread, given back in reverse order. It is kept between calls, up
/// to 1 MiB a thread.
void* push_scratch(int64_t bytes);
void pop_scratch(void* memory, int64_t bytes);

/// Threads this process may run on.
int available_threads();

}  // namespace poolgrad
