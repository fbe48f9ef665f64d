#pragma once
// Wrap what operating systems do differently: pages, forks, processors.

#include <cstddef>
#include <cstdint>
#if !defined(_WIN32)
#include <signal.h>
#endif

namespace poolgrad {

constexpr size_t kHugePage = size_t{2} << 20;

/// Allocate a multiple of kHugePage bytes, aligned to it. Throws std::bad_alloc.
void* map_pages(size_t bytes);
void unmap_pages(void* memory, size_t bytes);

/// Allocate a multiple of 64 bytes, aligned to 64; return null if there is no memory.
void* allocate_aligned(size_t bytes);
void free_aligned(void* memory);

/// Call these functions around every fork.
void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)());

/// Block signals in this thread, and in threads that it starts, while in scope.
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

/// Return the address of a function of a library that the process has loaded; null if there is
/// none.
void* loaded_function(const char* library, const char* name);

/// Count the processors that this process may use; 0 if unknown.
unsigned usable_processors();

/// Return the size of a processor's first, second or third cache in bytes; 0 if unknown.
int64_t cache_size(int level);

}  // namespace poolgrad
