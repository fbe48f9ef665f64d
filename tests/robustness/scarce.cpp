// Makes the n-th request for memory fail, and all after it if that is wanted, of those that come from one module:
// fail_at(n, for good), module(begin, end).
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<long> left{0}, seen{0};
std::atomic<bool> for_good{false};
char *first = nullptr, *last = nullptr;

bool fails(void* from) {
  if (from < first || from >= last) return false;
  ++seen;
  return left.load() > 0 ? --left == 0 : for_good.load();
}
template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}
}  // namespace

extern "C" {
void module(char* begin, char* end) { first = begin, last = end; }
void fail_at(long n, int lasting) { left = n, seen = 0, for_good = lasting; }
long requests() { return seen; }
int failed() { return left == 0; }

void* malloc(size_t n) {
  static auto* const real = next<void* (*)(size_t)>("malloc");
  return fails(__builtin_return_address(0)) ? nullptr : real(n);
}
void* aligned_alloc(size_t a, size_t n) {
  static auto* const real = next<void* (*)(size_t, size_t)>("aligned_alloc");
  return fails(__builtin_return_address(0)) ? nullptr : real(a, n);
}
void* mmap(void* p, size_t n, int a, int b, int c, off_t d) noexcept {
  static auto* const real = next<void* (*)(void*, size_t, int, int, int, off_t)>("mmap");
  if (!fails(__builtin_return_address(0))) return real(p, n, a, b, c, d);
  errno = ENOMEM;
  return MAP_FAILED;
}
}

void* operator new(size_t n) {
  void* p = fails(__builtin_return_address(0)) ? nullptr : malloc(n);
  if (!p) throw std::bad_alloc();
  return p;
}
