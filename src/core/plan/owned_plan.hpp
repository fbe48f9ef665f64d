// A plan that owns its tables and has been checked. It makes its transposed plan on first use.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "runtime/memory.hpp"

namespace poolgrad {

/// Allocate tables. Long ones use cached blocks: the system takes longer to map pages than we take
/// to fill them.
template <class T>
struct TableMemory {
  using value_type = T;
  TableMemory() = default;
  template <class U>
  TableMemory(const TableMemory<U>&) {}
  T* allocate(size_t count) {
    if (count > SIZE_MAX / sizeof(T)) throw std::bad_alloc();
    return static_cast<T*>(allocate_bytes(count * sizeof(T)));
  }
  void deallocate(T* p, size_t count) { free_bytes(p, count * sizeof(T)); }
  template <class U>
  void construct(U*) noexcept {}  // leave the elements uninitialised: the caller fills them
  bool operator==(const TableMemory&) const { return true; }
};
using Table = std::vector<int64_t, TableMemory<int64_t>>;
using Bytes = std::vector<uint8_t, TableMemory<uint8_t>>;

/// Throw std::bad_alloc if tables of so many cells do not fit the memory. Their allocation would
/// succeed; the system would kill some process once we fill them.
void afford(int64_t cells);

/// The axis that an axis was cut from, forward and transposed, as the caller gives it.
struct ParentData {
  Whole forward, transposed;
};

/// One axis as the caller gives it.
struct AxisData {
  int64_t n;
  Table start, stop, span;
  std::optional<ParentData> parent = {};
};

class OwnedPlan {
 public:
  /// Throws std::invalid_argument if any window is outside its axis, not monotone, or a size
  /// overflows.
  OwnedPlan(int64_t outer, int64_t inner, std::vector<AxisData> axes, bool plain,
            Schedule only = kAnySchedule);
  OwnedPlan(const OwnedPlan&) = delete;
  OwnedPlan& operator=(const OwnedPlan&) = delete;
  ~OwnedPlan() { delete transposed_.load(); }

  const Plan& forward() const { return forward_; }

  /// Return the transposed plan. The first call makes it, which takes a step per source cell:
  /// forward verbs never ask.
  const Plan& transposed() const {
    const Transposed* const made = transposed_.load(std::memory_order_acquire);
    return (made ? *made : make_transposed()).plan;
  }
  bool has_transposed() const { return transposed_.load(std::memory_order_relaxed); }
  int64_t source_size() const { return source_size_; }
  int64_t dest_size() const { return dest_size_; }

  /// Shapes of new arrays; their sizes are source_size() and dest_size().
  std::vector<int64_t> source_shape, dest_shape;

 private:
  struct TransposedTables {
    Table start, stop, count;
    Bytes blocks;
  };
  struct Transposed {
    std::vector<TransposedTables> axes;
    Plan plan;
  };
  const Transposed& make_transposed() const;

  std::vector<AxisData> axes_;
  std::vector<Bytes> blocks_;
  Plan forward_;
  mutable std::atomic<const Transposed*> transposed_{nullptr};
  mutable std::atomic<uint8_t> chosen_[kChoices] = {};
  int64_t source_size_ = 0, dest_size_ = 0;
};

}  // namespace poolgrad
