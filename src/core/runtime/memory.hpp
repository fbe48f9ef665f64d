// Memory for large results: pages that were paid for once are used again.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace poolgrad {

/// Blocks from this size on are worth keeping.
constexpr size_t kLargeBlock = size_t{1} << 20;

/// A block of at least that many bytes, on huge pages where the system has them. Throws
/// std::bad_alloc.
void* take_block(size_t bytes);

/// Keeps the block for the next taker, or frees the oldest ones if more would be kept than allowed.
void return_block(void* block, size_t bytes);

/// Memory of any size: a block if it is large.
inline void* allocate_bytes(size_t bytes) {
  return bytes >= kLargeBlock ? take_block(bytes) : ::operator new(bytes);
}
inline void free_bytes(void* memory, size_t bytes) {
  bytes >= kLargeBlock ? return_block(memory, bytes) : ::operator delete(memory);
}

/// How many bytes may be kept; 0 keeps none.
void set_cache_limit(size_t bytes);

/// Results of so many bytes may go past the caches. Smaller ones are still in some cache when they
/// are read next; tests make it 0.
extern std::atomic<int64_t> stream_threshold;
/// What it is unless somebody moves it: half of the last cache, at most 64 MiB.
int64_t default_stream_threshold();

}  // namespace poolgrad
