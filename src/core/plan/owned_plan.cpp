#include "plan/owned_plan.hpp"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <new>
#include <stdexcept>

#include "runtime/threads.hpp"

namespace poolgrad {
namespace {

int64_t product(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r) || r < 0)
    throw std::invalid_argument("plan: the number of elements overflows 64 bits");
  return r;
}

void check(const AxisData& axis) {
  if (axis.n < 0) throw std::invalid_argument("plan: an axis has a negative length");
  if (axis.stop.size() != axis.start.size() ||
      (!axis.span.empty() && axis.span.size() != axis.start.size()))
    throw std::invalid_argument("plan: start, stop and span differ in length");
  StepBudget& steps = step_budget();
  const int64_t *const start = axis.start.data(), *const stop = axis.stop.data();
  for (size_t j = 0; j < axis.start.size(); ++j) {
    checkpoint(steps, 1);
    const bool inside = 0 <= start[j] && start[j] <= stop[j] && stop[j] <= axis.n;
    const bool rising = j == 0 || (start[j - 1] <= start[j] && stop[j - 1] <= stop[j]);
    if (!inside)
      throw std::invalid_argument("plan: window " + std::to_string(j) + " is outside its axis");
    if (!rising)
      throw std::invalid_argument("plan: window " + std::to_string(j) +
                                  " begins or ends before its predecessor");
  }
}

/// Find the longest range in which windows repeat with this period and step.
void find_repeats(Axis& axis, int64_t period, int64_t step) {
  const auto alike = [&](int64_t a) {
    return axis.count[a] == axis.count[a + step] && axis.base[a + step] - axis.base[a] == period;
  };
  int64_t odd = 0;  // cells from the start of the last window up to this one are alike; windows
                    // only move forward
  const auto same = [&](int64_t j) {
    const int64_t k = j + period;
    if (axis.start[k] != axis.start[j] + step || axis.length(k) != axis.length(j)) return false;
    if (axis.span && axis.span[k] != axis.span[j]) return false;
    if (!axis.count) return true;
    for (odd = std::max(odd, axis.start[j]); odd < axis.stop[j] && alike(odd);) ++odd;
    return odd >= axis.stop[j];
  };
  axis.period = period;
  axis.step = step;
  StepBudget& steps = step_budget();
  for (int64_t j = 0, begin = 0; j + period < axis.m; ++j) {
    checkpoint(steps, 1);
    if (!same(j)) begin = j + 1;
    else if (j + 1 + period - begin > axis.hi - axis.lo) {
      axis.lo = begin;
      axis.hi = j + 1 + period;
    }
  }
}

/// Return the step between neighbouring windows in the middle of an axis; 0 if there is none.
int64_t usual_step(const Axis& axis) {
  const int64_t middle = axis.m > 2 ? axis.m / 2 : 0;
  return axis.m > 1 ? axis.start[middle + 1] - axis.start[middle] : 0;
}

int64_t widest(const Axis& axis) {
  int64_t most = 0;
  for (int64_t j = 0; j < axis.m; ++j) most = std::max(most, axis.stop[j] - axis.start[j]);
  return most;
}

/// Compute Axis::blocks; return an empty table if some window fits no block.
Bytes fit_blocks(const Axis& axis) {
  if (!axis.whole.fits) return {};
  Bytes fit(static_cast<size_t>(axis.m));
  const int64_t B = axis.whole.widest, first = axis.whole.first;
  int64_t block = 0;  // the start of the block that holds the start of the window
  StepBudget& steps = step_budget();
  uint8_t* const kind = fit.data();
  for (int64_t j = 0; j < axis.m; ++j) {
    checkpoint(steps, 1);
    const int64_t s = axis.start[j] + first, e = axis.stop[j] + first;
    if (s == e) return {};
    if (s - block >= B) block = s - block < 2 * B ? block + B : s / B * B;
    if (e > block + B) kind[j] = 0;
    else if (s == block) kind[j] = 1;
    else if (e == block + B || e == axis.n + first) kind[j] = 2;
    else if (s == first) kind[j] = 1;  // cells under windows that a part does not have
    else return {};
  }
  return fit;
}

/// Throw std::invalid_argument unless an axis of n cells and m windows can be a part of its parent.
void check_parent(const Whole& parent, int64_t n, int64_t m, int64_t widest, int64_t inner) {
  const int64_t most = int64_t{1} << 48;  // so that sums of lengths do not overflow
  if (parent.n < 0 || parent.n > most || parent.m < m || parent.m > most || parent.first < 0 ||
      parent.n - n < parent.first || parent.widest < widest || parent.widest > parent.n)
    throw std::invalid_argument("plan: an axis is not a part of its parent");
  afford(parent.widest);
  product(product(parent.widest, inner), 1 << 12);  // bytes of a line of sliding.hpp
}

/// Return Axis::whole: the parent, which has been checked, or else the axis itself.
Whole whole_of(const Axis& axis, const Whole* parent) {
  return parent ? *parent : Whole{axis.n, axis.m, axis.widest, 0, true};
}

/// Return the most windows that cover one cell, without a table of cells.
int64_t most_overlapping(const Axis& axis) {
  StepBudget& steps = step_budget();
  int64_t most = 0;
  for (int64_t j = 0, first = 0, last = 0; j < axis.m && axis.start[j] < axis.n; ++j) {
    checkpoint(steps, 1);
    while (first < axis.m && axis.stop[first] <= axis.start[j]) ++first;
    while (last < axis.m && axis.start[last] <= axis.start[j]) ++last;
    most = std::max(most, last - first);
  }
  return most;
}

/// Compare the tables of an axis with the memory of the machine from this length on.
constexpr int64_t kLongAxis = 1 << 24;

}  // namespace

void afford(int64_t cells) {
  if (cells > kLongAxis && cells / (sysconf(_SC_PAGE_SIZE) / 64) > sysconf(_SC_PHYS_PAGES))
    throw std::bad_alloc();
}

OwnedPlan::OwnedPlan(int64_t outer, int64_t inner, std::vector<AxisData> axes, bool plain,
                     Schedule only)
    : axes_(std::move(axes)) {
  if (outer < 0 || inner < 0) throw std::invalid_argument("plan: a negative size");
  if (axes_.empty() || axes_.size() > static_cast<size_t>(kMaxRank))
    throw std::invalid_argument("plan: got " + std::to_string(axes_.size()) +
                                " axes, wanted 1 to 16");
  forward_.outer = outer;
  forward_.inner = inner;
  forward_.rank = static_cast<int>(axes_.size());
  forward_.plain = plain;
  forward_.only = only;
  forward_.chosen = chosen_;
  source_size_ = dest_size_ = product(outer, inner);
  for (size_t a = 0; a < axes_.size(); ++a) {
    const AxisData& data = axes_[a];
    check(data);
    Axis& axis = forward_.axis[a];
    axis.n = data.n;
    axis.m = static_cast<int64_t>(data.start.size());
    axis.start = data.start.data();
    axis.stop = data.stop.data();
    axis.span = data.span.empty() ? nullptr : data.span.data();
    axis.widest = widest(axis);
    source_size_ = product(source_size_, axis.n);
    dest_size_ = product(dest_size_, axis.m);
    const int64_t step = usual_step(axis);
    if (step > 0) find_repeats(axis, 1, step);
    if (data.parent) {
      check_parent(data.parent->forward, axis.n, axis.m, axis.widest, inner);
      check_parent(data.parent->transposed, axis.m, axis.n, most_overlapping(axis), inner);
    }
    axis.whole = whole_of(axis, data.parent ? &data.parent->forward : nullptr);
    blocks_.push_back(fit_blocks(axis));
    axis.blocks = blocks_.back().empty() ? nullptr : blocks_.back().data();
  }
}

/// Several threads may make the plan at once: the first to finish keeps its own, and no thread
/// waits for another.
const OwnedPlan::Transposed& OwnedPlan::make_transposed() const {
  auto made = std::make_unique<Transposed>();
  made->plan = forward_;
  made->axes.resize(axes_.size());
  StepBudget& steps = step_budget();
  for (size_t a = 0; a < axes_.size(); ++a) {
    const AxisData& data = axes_[a];
    const Axis& f = forward_.axis[a];
    TransposedTables& t = made->axes[a];
    afford(f.n);
    t.start.resize(static_cast<size_t>(f.n));
    t.stop.resize(static_cast<size_t>(f.n));
    t.count.resize(static_cast<size_t>(f.m));
    int64_t *const count = t.count.data(), *const from = t.start.data(), *const to = t.stop.data();
    for (int64_t j = 0; j < f.m; ++j) {
      checkpoint(steps, 1);
      count[j] = f.length(j);
    }
    // The windows that cover cell i end behind it and begin at or before it.
    for (int64_t i = 0, first = 0, last = 0; i < f.n; ++i) {
      checkpoint(steps, 1);
      while (first < f.m && f.stop[first] <= i) ++first;
      while (last < f.m && f.start[last] <= i) ++last;
      from[i] = std::min(first, last);
      to[i] = last;
    }
    Axis& b = made->plan.axis[a] = {};
    b.n = f.m;
    b.m = f.n;
    b.start = from;
    b.stop = to;
    b.count = count;
    b.base = f.start;
    b.widest = widest(b);
    const int64_t step = usual_step(f);
    if (step > 0) find_repeats(b, step, 1);
    b.whole = whole_of(b, data.parent ? &data.parent->transposed : nullptr);
    t.blocks = fit_blocks(b);
    b.blocks = t.blocks.empty() ? nullptr : t.blocks.data();
  }
  const Transposed* kept = nullptr;
  return transposed_.compare_exchange_strong(kept, made.get()) ? *made.release() : *kept;
}

}  // namespace poolgrad
