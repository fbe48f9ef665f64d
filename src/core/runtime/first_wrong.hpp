// Remember the first element at which a call found an error.
#pragma once
#include <atomic>
#include <cstdint>

namespace poolgrad {

/// Keep the smallest position that a task reports, so that the answer does not depend on timing.
class FirstWrong {
 public:
  void report(int64_t at) {
    if (at < 0) return;
    for (int64_t now = at_; (now < 0 || at < now) && !at_.compare_exchange_weak(now, at);) {
    }
  }
  int64_t get() const { return at_; }

 private:
  std::atomic<int64_t> at_{-1};
};

}  // namespace poolgrad
