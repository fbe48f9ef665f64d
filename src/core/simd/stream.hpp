// Results far larger than the caches: to read a line into them only to write over it would cost as
// much again.
#pragma once
#include "loops/taps.hpp"
#include "runtime/memory.hpp"

namespace poolgrad::PG_ISA {

/// Whether a result is far larger than the caches.
template <class T>
bool is_large(const Plan& plan) {
  return plan.outer * plan.axis[0].m * plan.dest_slab() * static_cast<int64_t>(sizeof(T)) >=
         far_from.load(std::memory_order_relaxed);
}

/// Whether a result had better go past the caches: it is large, and so little is computed for a
/// cell that writing it is most of the work.
template <class T>
bool goes_far(const Plan& plan) {
  return is_large<T>(plan) && Rows::capacity(plan) * plan.last().widest <= 4;
}

/// Where the rows of a result are written: in place.
template <class T>
class InPlace {
 public:
  InPlace(T* out, bool, int64_t) : out_(out) {}
  PG_INLINE T* open(int64_t at, int64_t) { return out_ + at; }
  PG_INLINE void close() {}

 private:
  T* const out_;
};

/// Where the rows of a result are written: in place, or near the core, from where they leave in
/// whole lines.
template <class T>
class Outlet {
 public:
  Outlet(T* out, bool far, int64_t row)
      : out_(out),
        size_(row + kRoom),
        far_(far && row <= kMost),
        near_(far_ ? size_ + 2 * kPer : 0) {}

  /// Where to write `count` elements, at most a row, that belong at out + at; nothing else is to be
  /// open.
  PG_INLINE T* open(int64_t at, int64_t count) { return far_ ? open_near(at, count) : out_ + at; }
  /// All that was written leaves.
  void close() {
    if (!far_) return;
    leave(false);
    settle_memory();
  }
  /// Where what may be written at the end of a row ends: its own memory, or what begins after it in
  /// place.
  const T* limit(const T* in_place) { return far_ ? near_.get() + size_ + 2 * kPer : in_place; }

 private:
  static constexpr int64_t kPer = kLine / static_cast<int64_t>(sizeof(T));  ///< elements of a line
  static constexpr int64_t kRoom =
      (8 << 10) / static_cast<int64_t>(sizeof(T));  ///< so that short rows leave together
  static constexpr int64_t kMost =
      (256 << 10) / static_cast<int64_t>(sizeof(T));  ///< of a row that is still near

  /// The beginning of the line that holds an element; it may lie before the result.
  int64_t line_of(int64_t at) const {
    return at - static_cast<int64_t>(reinterpret_cast<uintptr_t>(out_ + at) % kLine) /
                    static_cast<int64_t>(sizeof(T));
  }

  [[gnu::noinline]] T* open_near(int64_t at, int64_t count) {
    if (at != to_) {
      leave(false);
      base_ = line_of(from_ = at);
    } else if (at + count - base_ > size_) {
      leave(true);
    }
    to_ = at + count;
    return near_.get() + (at - base_);
  }

  /// Whole lines leave; what is left of the last one stays if more of it will come.
  [[gnu::noinline]] void leave(bool more) {
    if (from_ == to_) return;
    const int64_t first = line_of(from_ + kPer - 1), last = line_of(to_);
    if (first > last) {
      if (!more) copy(from_, to_);
      return;
    }
    copy(from_, first);
    past_caches(reinterpret_cast<char*>(out_ + first),
                reinterpret_cast<const char*>(near_.get() + (first - base_)),
                (last - first) * static_cast<int64_t>(sizeof(T)));
    if (!more) return copy(last, to_);
    std::memmove(static_cast<void*>(near_.get()), near_.get() + (last - base_),
                 static_cast<size_t>(to_ - last) * sizeof(T));
    base_ = from_ = last;
  }
  void copy(int64_t a, int64_t b) {
    std::memcpy(static_cast<void*>(out_ + a), near_.get() + (a - base_),
                static_cast<size_t>(b - a) * sizeof(T));
  }

  T* const out_;
  const int64_t size_;
  const bool far_;
  int64_t base_ = 0, from_ = -1,
          to_ = -1;  ///< the element that near_ begins with, the first and the last that are in it
  Scratch<T> near_;
};

}  // namespace poolgrad::PG_ISA
