// A thread pool behind one function.
#pragma once
#include <cstdint>

namespace poolgrad {

/// Return true to end the call early. The calling thread asks about every 25 ms.
using StopCheck = bool (*)();

/// Run body(0) … body(tasks - 1), each once, on up to `threads` threads, the caller included. A
/// task owns what it writes, so it does not matter which thread runs it. Rethrow the first
/// exception in the caller; it is Stopped if `should_stop`, which may be null, returned true.
void parallel_for(int64_t tasks, int threads, StopCheck should_stop,
                  void (*body)(void* context, int64_t task), void* context);

template <class F>
void parallel_for(int64_t tasks, int threads, StopCheck should_stop, F&& f) {
  parallel_for(
      tasks, threads, should_stop,
      [](void* context, int64_t task) { (*static_cast<F*>(context))(task); }, &f);
}

/// The program's own way to run the tasks of a call.
struct Executor {
  int threads = 0;  ///< at most so many; 0: as many as the process allows
  /// Call task(argument, i) for each i < tasks, on any threads, and return after the last; null: the
  /// pool does.
  void (*parallel_for)(void* context, int64_t tasks, void (*task)(void* argument, int64_t i),
                       void* argument) = nullptr;
  void* context = nullptr;
};

/// Let the calls of this thread use an executor while in scope.
class UseExecutor {
 public:
  explicit UseExecutor(const Executor& executor);
  UseExecutor(const UseExecutor&) = delete;
  UseExecutor& operator=(const UseExecutor&) = delete;
  ~UseExecutor();

 private:
  const Executor* before_;
};

/// Return the number of threads that the executor of this thread allows; 0 if it does not say.
int executor_threads();

/// Let the calls of this thread use at most so many threads of the pool; 0: as many as the process allows.
void limit_threads_here(int threads);

/// Thrown inside a task to end its call.
struct Stopped {};

/// The steps that a thread may still make before it polls the clock.
struct StepBudget {
  int64_t left;
};
StepBudget& step_budget();
void poll();

/// Report the approximate steps since the last checkpoint. Throws Stopped if the call must end.
[[gnu::always_inline]] inline void checkpoint(StepBudget& m, int64_t steps) {
  if ((m.left -= steps) <= 0) [[unlikely]]
    poll();
}

/// Create the pool, and a new one in every forked child. Call it once, first.
void start_threads();

/// Scratch memory of the calling thread, a stack. It keeps up to 1 MiB per thread between calls.
void* push_scratch(int64_t bytes);
void pop_scratch(void* memory, int64_t bytes);

/// Note that a call could use threads, and return true if the last such call came a moment ago: the
/// workers are then awake, or worth waking for the calls to come.
bool calls_follow_closely();

/// Count the threads that this process may run.
int available_threads();

}  // namespace poolgrad
