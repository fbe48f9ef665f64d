// Write large results with streaming stores.
//
// A plain store reads the cache line that it changes, so a result costs twice its size in memory
// traffic. A streaming (non-temporal) store writes a whole line without reading it. It needs
// aligned, complete lines, so rows are first written to a small buffer:
//
//   result   |....####|########|########|##......|     # belongs to this row
//             copy     stream   stream   kept for the next row, or copied at the end
//
// arm64 has only a hint for such stores, but its processors notice runs of whole lines and write
// them without reading: rows are written in place.
//
// Source: Intel 64 and IA-32 Optimization Reference Manual, "Memory Optimization Using Non-Temporal
// Stores"; U. Drepper, "What Every Programmer Should Know About Memory" (2007), section 6.1.
#pragma once
#include "runtime/scratch.hpp"
#include "simd/ops.hpp"

namespace poolgrad::PG_ISA {

constexpr int64_t kCacheLine = 64;  ///< bytes

#if defined(__SSE2__)
constexpr bool kStreams = true;  ///< the processor has streaming stores
#else
constexpr bool kStreams = false;
#endif

/// Copy whole lines past the caches, if the processor can; `to` begins a line.
PG_INLINE void stream_lines(char* to, const char* from, int64_t bytes) {
#if defined(__SSE2__)
  for (int64_t i = 0; i < bytes; i += kBytes) {
#if defined(__AVX512F__)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_loadu_si512(from + i));
#elif defined(__AVX2__)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
#else
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
#endif
  }
#else
  std::memcpy(to, from, static_cast<size_t>(bytes));
#endif
}

/// Complete streaming stores before another thread may read them.
PG_INLINE void stream_fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

/// Write rows in place.
template <class T>
class PlainWriter {
 public:
  PlainWriter(T* out, bool, int64_t) : out_(out) {}
  PG_INLINE T* open(int64_t at, int64_t) { return out_ + at; }
  PG_INLINE void close() {}

 private:
  T* const out_;
};

/// Write rows in place, or to a buffer that is streamed in whole lines.
template <class T>
class StreamWriter {
 public:
  StreamWriter(T* out, bool stream, int64_t row)
      : out_(out),
        size_(row + kRoom),
        buffered_(kStreams && stream && row <= kLongestRow),
        buffer_(buffered_ ? size_ + 2 * kPerLine : 0) {}

  /// Return where to write `count` elements, at most a row, of out + at. Each call ends the one
  /// before.
  PG_INLINE T* open(int64_t at, int64_t count) {
    return buffered_ ? open_buffered(at, count) : out_ + at;
  }
  /// The same for a row that is written in parts, one after the other: `left` elements of it, from
  /// out + at on, are not written yet.
  PG_INLINE T* open_part(int64_t at, int64_t left) {
    return buffered_ ? open_part_buffered(at, left) : out_ + at;
  }
  /// Flush the buffer.
  void close() {
    if (!buffered_) return;
    flush(false);
    stream_fence();
  }
  /// Return the end of the memory that a row may overwrite behind its end: the buffer, or what is
  /// written later in place.
  const T* limit(const T* in_place) {
    return buffered_ ? buffer_.get() + size_ + 2 * kPerLine : in_place;
  }

 private:
  static constexpr int64_t kPerLine =
      kCacheLine / static_cast<int64_t>(sizeof(T));  ///< elements per line
  static constexpr int64_t kRoom =
      (8 << 10) / static_cast<int64_t>(sizeof(T));  ///< flush several short rows together
  static constexpr int64_t kLongestRow =
      (256 << 10) / static_cast<int64_t>(
                        sizeof(T));  ///< longer rows would leave the cache before they are flushed

  /// Return the first element of the line that holds an element; it may lie before the result.
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

  [[gnu::noinline]] T* open_part_buffered(int64_t at, int64_t left) {
    const int64_t row = size_ - kRoom;
    if (left == row) part_of_ = open_buffered(at, row);
    return part_of_ + (row - left);
  }

  /// Stream whole lines. Keep the rest of the last line if `more` of it follows, else copy it.
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
          to_ = -1;  ///< the element at buffer_[0]; the first and the last in the buffer
  T* part_of_ = nullptr;  ///< the row that is written in parts
  Scratch<T> buffer_;
};

}  // namespace poolgrad::PG_ISA
