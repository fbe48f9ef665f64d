// Working memory of a task.
#pragma once
#include <cstring>

#include "plan/inline.hpp"
#include "runtime/threads.hpp"

namespace poolgrad::PG_ISA {

/// An array for one task, on the stack if it is small. Destroy arrays in reverse order.
template <class T, int Small = 64>
class Scratch {
 public:
  explicit Scratch(int64_t count)
      : count_(count), p_(count <= Small ? small_ : static_cast<T*>(push_scratch(bytes()))) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (p_ != small_) pop_scratch(p_, bytes());
  }
  T* get() { return p_; }
  T& operator[](int64_t i) { return p_[i]; }

 private:
  int64_t bytes() const { return count_ * static_cast<int64_t>(sizeof(T)); }

  int64_t count_;
  T small_[Small];
  T* p_;
};

/// A task passes a checkpoint after at most this many steps, about a millisecond.
constexpr int64_t kStepsPerCheckpoint = 1 << 20;

/// Set `count` elements to zero.
template <class T>
void clear(T* p, int64_t count) {
  for (int64_t i = 0; i < count; i += kStepsPerCheckpoint) {
    const int64_t here = count - i < kStepsPerCheckpoint ? count - i : kStepsPerCheckpoint;
    std::memset(static_cast<void*>(p + i), 0, static_cast<size_t>(here) * sizeof(T));
    checkpoint(step_budget(), here);
  }
}

}  // namespace poolgrad::PG_ISA
