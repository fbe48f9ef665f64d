// The caches of this machine, and the limits that come from them: what has to stay in which cache;
// and how fast it shuffles the elements of vectors.
//
// Results do not depend on these limits, only their speed. What settles the order of sums is a
// constant: kLongSum and kSlidingSum.
#pragma once
#include <atomic>
#include <cstdint>

#include "plan/inline.hpp"

namespace poolgrad {

/// The bytes of a processor's first and second cache. Tests set them.
extern std::atomic<int64_t> first_cache, second_cache;
/// Read both from the machine: 32 KiB and 1 MiB if it does not tell. The first one counts as 16 to
/// 64 KiB, the second one as 256 KiB to 1 MiB: processors may share a larger one, and a task takes
/// at most 1 MiB of scratch memory.
void read_caches();

/// Stream results of this many bytes or more. Smaller ones are still in a cache when the caller
/// reads them. Tests set it to 0.
extern std::atomic<int64_t> stream_threshold;
/// Return the default: half of the last cache, at most 64 MiB.
int64_t default_stream_threshold();

/// A limit in bytes: some sixteenths of a cache.
struct CacheShare {
  const std::atomic<int64_t>& cache;
  int64_t sixteenths;

  PG_INLINE operator int64_t() const {
    return cache.load(std::memory_order_relaxed) * sixteenths / 16;
  }
};

/// Sources of this many bytes or more come from memory: they are fetched ahead. What the last cache
/// leaves to one program is not known, so this is a multiple of the second one.
constexpr CacheShare kFetchedBytes{second_cache, 256};

/// A transposed tile, beside the images that it is read from and written to.
constexpr CacheShare kTileBytes{second_cache, 3};

/// The rows of a tile for sliding: every pass over an axis reads and writes all of them, and
/// little else.
constexpr CacheShare kSlideBytes{second_cache, 7};

/// The taps of many images, from the search to the additions; both also read these images.
constexpr CacheShare kFoundTapBytes{second_cache, 3};

/// The cells of a gradient between its zero fill and the additions.
constexpr CacheShare kSumBytes{second_cache, 2};

/// The changed cells and the results of a box (api/boxes.hpp), beside the scratch memory of a verb.
constexpr CacheShare kBoxBytes{second_cache, 8};

/// One padded row, of which a band needs several.
constexpr CacheShare kPaddedRowBytes{second_cache, 8};

/// The padded rows of a band, beside the source rows that fill them and the results.
constexpr CacheShare kBandBytes{first_cache, 8};

/// The taps of a strip, a byte per window: each is read once per cell of its window.
constexpr CacheShare kStripTapBytes{first_cache, 16};

/// The vectors that a processor shuffles per cycle: 1 on Intel's, 2 on others. Tests set it.
extern std::atomic<int> shuffles_per_cycle;
/// Return what this machine does.
int read_shuffles();

}  // namespace poolgrad
