// Faults on purpose: a run under sanitizers that does not end at these sees nothing.
#include <climits>
#include <cstdlib>

extern "C" __attribute__((visibility("default"), no_sanitize("undefined"))) int overflow_heap(
    int at) {
  volatile char* p = static_cast<char*>(std::malloc(16));
  p[at] = 1;
  const int v = p[at];
  std::free(const_cast<char*>(p));
  return v;
}

extern "C" __attribute__((visibility("default"))) int overflow_int(int by) { return INT_MAX + by; }
