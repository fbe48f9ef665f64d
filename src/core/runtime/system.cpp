#include "runtime/system.hpp"

#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "runtime/caches.hpp"

#if defined(_WIN32)
#include <malloc.h>
#else
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sched.h>
#include <unistd.h>
#endif

namespace poolgrad {

#if defined(_WIN32)

void* map_pages(size_t bytes) {
  // The C library maps aligned blocks of this size directly and unmaps them when they are freed.
  void* p = _aligned_malloc(bytes, kHugePage);
  if (!p) throw std::bad_alloc();
  return p;
}

void unmap_pages(void* memory, size_t) { _aligned_free(memory); }
void* allocate_aligned(size_t bytes) { return _aligned_malloc(bytes, 64); }
void free_aligned(void* memory) { _aligned_free(memory); }
void at_fork(void (*)(), void (*)(), void (*)()) {}
void* loaded_function(const char*, const char*) { return nullptr; }

#else

void* loaded_function(const char* library, const char* name) {
  void* const handle =
      dlopen(library, RTLD_LAZY | RTLD_NOLOAD);  // stays open, so the address stays
  return handle ? dlsym(handle, name) : nullptr;
}

void* map_pages(size_t bytes) {
  void* p =
      mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  char* begin = static_cast<char*>(p);
  char* start = begin + (kHugePage - reinterpret_cast<size_t>(begin) % kHugePage) % kHugePage;
  if (start > begin) munmap(begin, static_cast<size_t>(start - begin));
  munmap(start + bytes, static_cast<size_t>(begin + kHugePage - start));
#if defined(MADV_HUGEPAGE)
  madvise(start, bytes, MADV_HUGEPAGE);
#endif
  return start;
}

void unmap_pages(void* memory, size_t bytes) { munmap(memory, bytes); }
void* allocate_aligned(size_t bytes) { return std::aligned_alloc(64, bytes); }
void free_aligned(void* memory) { std::free(memory); }
void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) {
  pthread_atfork(before, in_parent, in_child);
}

#endif

unsigned usable_processors() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<unsigned>(CPU_COUNT(&set));
#endif
  return std::thread::hardware_concurrency();
}

int64_t cache_size([[maybe_unused]] int level) {
#if defined(_SC_LEVEL3_CACHE_SIZE)
  const int names[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
  return sysconf(names[level - 1]);
#else
  return 0;
#endif
}

namespace {

/// Return the size of a cache between two limits, or what is usual if the machine does not tell.
int64_t cache_between(int level, int64_t least, int64_t usual, int64_t most) {
  const int64_t size = cache_size(level);
  return size <= 0 ? usual : size < least ? least : size < most ? size : most;
}

}  // namespace

std::atomic<int64_t> first_cache, second_cache;

void read_caches() {
  first_cache = cache_between(1, 16 << 10, 32 << 10, 64 << 10);
  second_cache = cache_between(2, 256 << 10, 1 << 20, 1 << 20);
}

int64_t default_stream_threshold() {
  constexpr int64_t kMost = int64_t{64} << 20;
  return cache_between(3, 0, 2 * kMost, 2 * kMost) / 2;
}

std::atomic<int64_t> stream_threshold{(read_caches(), default_stream_threshold())};

int read_shuffles() {
#if defined(__x86_64__)
  unsigned highest = 0, maker[3] = {};  // the maker's name: its first, last and middle four letters
  __get_cpuid(0, &highest, &maker[0], &maker[1], &maker[2]);
  return std::memcmp(maker, "GenuntelineI", sizeof maker) == 0 ? 1 : 2;
#else
  return 2;
#endif
}

std::atomic<int> shuffles_per_cycle{read_shuffles()};

}  // namespace poolgrad
