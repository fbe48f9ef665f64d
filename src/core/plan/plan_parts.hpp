// The parts of a plan whose first axis is long. Parts with the same windows share a plan, so that
// tables take memory per kind of part, not per window.
#pragma once
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "plan/owned_plan.hpp"

namespace poolgrad {

/// Each part computes, for one item, a range of destination cells of the first axis.
class PlanParts {
 public:
  struct Part {
    const OwnedPlan* plan;  ///< of one item
    int64_t cell;           ///< the source cell at which the part begins
    int64_t window = 0;     ///< the destination cell at which the part begins
  };
  /// A part of one item: its plan, and the first elements that it reads and writes.
  struct Task {
    const OwnedPlan& plan;
    int64_t source, dest;
  };

  /// Throws std::invalid_argument unless the parts have one shape but for their first axis, and lie
  /// inside n cells of it. Their destinations follow one another.
  PlanParts(int64_t outer, int64_t n, std::vector<Part> parts)
      : outer_(outer), n_(n), parts_(std::move(parts)) {
    if (parts_.empty() || outer < 0) throw std::invalid_argument("parts: none");
    const Plan& one = parts_[0].plan->forward();
    for (Part& part : parts_) {
      const Plan& plan = part.plan->forward();
      const Axis& first = plan.axis[0];
      bool fits = plan.outer == 1 && plan.rank == one.rank && plan.inner == one.inner &&
                  first.m > 0 && 0 <= part.cell && part.cell <= n && first.n <= n - part.cell;
      for (int a = 1; fits && a < plan.rank; ++a)
        fits = plan.axis[a].n == one.axis[a].n && plan.axis[a].m == one.axis[a].m;
      if (!fits) throw std::invalid_argument("parts: a part does not fit the others");
      part.window = m_;
      if (__builtin_add_overflow(m_, first.m, &m_)) throw std::invalid_argument("parts: too many");
      if (std::none_of(plans_.begin(), plans_.end(),
                       [&](const OwnedPlan* plan) { return plan == part.plan; }))
        plans_.push_back(part.plan);
    }
    source_slab_ = one.source_slab(), dest_slab_ = one.dest_slab();
    source_size_ = product(outer, product(n, source_slab_));
    dest_size_ = product(outer, product(m_, dest_slab_));
  }

  int64_t tasks() const { return outer_ * static_cast<int64_t>(parts_.size()); }
  Task task(int64_t t) const {
    const auto many = static_cast<int64_t>(parts_.size());
    const Part& part = parts_[static_cast<size_t>(t % many)];
    return {*part.plan, (t / many * n_ + part.cell) * source_slab_,
            (t / many * m_ + part.window) * dest_slab_};
  }
  /// The different plans of the parts.
  const std::vector<const OwnedPlan*>& plans() const { return plans_; }
  int64_t source_size() const { return source_size_; }
  int64_t dest_size() const { return dest_size_; }
  std::vector<int64_t> source_shape, dest_shape;

 private:
  static int64_t product(int64_t a, int64_t b) {
    int64_t r;
    if (__builtin_mul_overflow(a, b, &r))
      throw std::invalid_argument("parts: the number of elements overflows 64 bits");
    return r;
  }

  int64_t outer_, n_, m_ = 0, source_slab_ = 0, dest_slab_ = 0, source_size_ = 0, dest_size_ = 0;
  std::vector<Part> parts_;
  std::vector<const OwnedPlan*> plans_;
};

}  // namespace poolgrad
