// Results far larger than the caches: to read a line into them only to write over it would cost as
// much again.
#pragma once
#include "loops/taps.hpp"
#include "runtime/memory.hpp"

namespace poolgrad::PG_ISA {

/// Whether a result is far larger than the caches.
template <class T>
bool exceeds_cache(const Plan& plan) {
  return plan.outer * plan.axis[0].m * plan.dest_slab() * static_cast<int64_t>(sizeof(T)) >=
         stream_threshold.load(std::memory_order_relaxed);
}

/// Whether a result had better go past the caches: it is large, and so little is computed for a
/// cell that writing it is most of the work.
template <class T>
bool worth_streaming(const Plan& plan) {
  return exceeds_cache<T>(plan) && SourceRows::capacity(plan) * plan.last().widest <= 4;
}

/// Where the rows of a result are written: in place.
template <class T>
class PlainWriter {
 public:
  PlainWriter(T* out, bool, int64_t) : out_(out) {}
  PG_INLINE T* open(int64_t at, int64_t) { return out_ + at; }
  PG_INLINE void close() {}

 private:
  T* const out_;
};

/// Where the rows of a result are written: in place, or near the core, from where they leave in
/// whole lines.
template <class T>
class StreamWriter {
 public:
  StreamWriter(T* out, bool stream, int64_t row)
      : out_(out),
        size_(row + kRoom),
        buffered_(stream && row <= kLongestRow),
        buffer_(buffered_ ? size_ + 2 * kPerLine : 0) {}

  /// Where to write `count` elements, at most a row, that belong at out + at; nothing else is to be
  /// open.
  PG_INLINE T* open(int64_t at, int64_t count) {
    return buffered_ ? open_buffered(at, count) : out_ + at;
  }
  /// All that was written leaves.
  void close() {
    if (!buffered_) return;
    flush(false);
    stream_fence();
  }
  /// Where what may be written at the end of a row ends: its own memory, or what begins after it in
  /// place.
  const T* limit(const T* in_place) {
    return buffered_ ? buffer_.get() + size_ + 2 * kPerLine : in_place;
  }

 private:
  static constexpr int64_t kPerLine =
      kCacheLine / static_cast<int64_t>(sizeof(T));  ///< elements of a line
  static constexpr int64_t kRoom =
      (8 << 10) / static_cast<int64_t>(sizeof(T));  ///< so that short rows leave together
  static constexpr int64_t kLongestRow =
      (256 << 10) / static_cast<int64_t>(sizeof(T));  ///< of a row that is still near

  /// The beginning of the line that holds an element; it may lie before the result.
  int64_t line_of(int64_t at) const {
    return at - static_cast<int64_t>(reinterpret_cast<uintptr_t>(out_ + at) % kCacheLine) /
                    static_cast<int64_t>(sizeof(T));
  }

  [[gnu::noinline]] T* open_buffered(int64_t at, int64_t count) {
    if (at != to_) {
      flush(false);
      base_ = line_of(from_ = at);
    } else if (at + count - base_ > size_) {
      flush(true);
    }
    to_ = at + count;
    return buffer_.get() + (at - base_);
  }

  /// Whole lines leave; what is left of the last one stays if more of it will come.
  [[gnu::noinline]] void flush(bool more) {
    if (from_ == to_) return;
    const int64_t first = line_of(from_ + kPerLine - 1), last = line_of(to_);
    if (first > last) {
      if (!more) copy_part(from_, to_);
      return;
    }
    copy_part(from_, first);
    stream_lines(reinterpret_cast<char*>(out_ + first),
                 reinterpret_cast<const char*>(buffer_.get() + (first - base_)),
                 (last - first) * static_cast<int64_t>(sizeof(T)));
    if (!more) return copy_part(last, to_);
    std::memmove(static_cast<void*>(buffer_.get()), buffer_.get() + (last - base_),
                 static_cast<size_t>(to_ - last) * sizeof(T));
    base_ = from_ = last;
  }
  void copy_part(int64_t a, int64_t b) {
    std::memcpy(static_cast<void*>(out_ + a), buffer_.get() + (a - base_),
                static_cast<size_t>(b - a) * sizeof(T));
  }

  T* const out_;
  const int64_t size_;
  const bool buffered_;
  int64_t base_ = 0, from_ = -1,
          to_ = -1;  ///< the element that near_ begins with, the first and the last that are in it
  Scratch<T> buffer_;
};

}  // namespace poolgrad::PG_ISA
