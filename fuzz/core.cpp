// The core under libFuzzer: bytes in, every way of calling the verbs, all results alike.
#include "oracle.hpp"
#include "runtime/caches.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool once = [] {
    poolgrad::start_threads();
    return std::atexit(poolgrad::fuzz::report) == 0;
  }();
  (void)once;
  poolgrad::stream_threshold = size % 2 ? poolgrad::default_stream_threshold() : 0;
  poolgrad::fuzz::test(data, size, poolgrad::verbs_baseline);
  return 0;
}
