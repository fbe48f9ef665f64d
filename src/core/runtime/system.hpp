#pragma once
// What operating systems do in different ways: pages, forks, processors.

#include <cstddef>
#include <cstdint>
#if !defined(_WIN32)
#include <signal.h>
#endif

namespace poolgrad {

constexpr size_t kHugePage = size_t{2} << 20;

/// Memory that begins at a multiple of kHugePage, for a multiple of it; std::bad_alloc if there is
/// none.
void* map_pages(size_t bytes);
void unmap_pages(void* memory, size_t bytes);

/// Memory that begins at a multiple of 64, for a multiple of it; null if there is none.
void* allocate_aligned(size_t bytes);
void free_aligned(void* memory);

/// Calls these around every fork, where there are forks.
void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)());

/// Keeps signals from the calling thread, and from threads that it starts, while in scope.
class NoSignals {
#if defined(_WIN32)
 public:
  NoSignals() {}
#else
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
#endif
};

/// How many processors this process may use, 0 if nobody knows.
unsigned usable_processors();

/// Bytes of the last cache before memory, 0 if nobody knows.
int64_t last_cache();

}  // namespace poolgrad
