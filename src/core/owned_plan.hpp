// A plan that owns its numbers, checked once; with it comes its transpose.
#pragma once
#include <string>
#include <vector>

#include "plan.hpp"

namespace poolgrad {

/// One axis as it comes from outside.
struct AxisData {
  int64_t n;
  std::vector<int64_t> start, stop, span;
};

class OwnedPlan {
 public:
  /// Throws std::invalid_argument if any window is outside its axis, not monotone, or a size overflows.
  OwnedPlan(int64_t outer, int64_t inner, std::vector<AxisData> axes, bool plain);
  OwnedPlan(const OwnedPlan&) = delete;
  OwnedPlan& operator=(const OwnedPlan&) = delete;

  const Plan& forward() const { return forward_; }
  const Plan& transposed() const { return transposed_; }
  int64_t source_size() const { return source_size_; }
  int64_t dest_size() const { return dest_size_; }

  /// The shapes of new arrays: of the source and of the destination, which have as many elements.
  std::vector<int64_t> source_shape, dest_shape;

 private:
  struct Transposed {
    std::vector<int64_t> start, stop, count;
  };
  std::vector<AxisData> axes_;
  std::vector<Transposed> transposed_axes_;
  std::vector<std::vector<uint8_t>> blocks_;
  Plan forward_, transposed_;
  int64_t source_size_ = 0, dest_size_ = 0;
};

}  // namespace poolgrad
