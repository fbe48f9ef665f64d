// One small pool of threads behind one function.
#pragma once
#include <cstdint>

namespace poolgrad {

/// Runs body(0) … body(tasks - 1), each once, on up to `threads` threads, the caller's among them. Which thread runs
/// which task never matters: a task owns what it writes. The first exception is thrown again in the caller.
void parallel_for(int64_t tasks, int threads, void (*body)(void* context, int64_t task), void* context);

template <class F>
void parallel_for(int64_t tasks, int threads, F&& f) {
  parallel_for(tasks, threads, [](void* context, int64_t task) { (*static_cast<F*>(context))(task); }, &f);
}

/// Working memory of the calling thread, given back in reverse order. It is kept between calls, up to 1 MiB a thread.
void* borrow(int64_t bytes);
void give_back(void* memory, int64_t bytes);

/// Threads this process may run on.
int available_threads();

}  // namespace poolgrad
