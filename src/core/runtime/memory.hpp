// Cache the memory of large results: a new result reuses pages that the system has mapped before.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace poolgrad {

/// Cache blocks of this size or more.
constexpr size_t kLargeBlock = size_t{1} << 20;

/// Return a block of at least that many bytes, on huge pages if the system has them. Throws
/// std::bad_alloc.
void* take_block(size_t bytes);

/// Put a block into the cache; free the oldest blocks if the cache exceeds its limit.
void return_block(void* block, size_t bytes);

/// Allocate and free memory of any size; large blocks come from the cache.
inline void* allocate_bytes(size_t bytes) {
  return bytes >= kLargeBlock ? take_block(bytes) : ::operator new(bytes);
}
inline void free_bytes(void* memory, size_t bytes) {
  bytes >= kLargeBlock ? return_block(memory, bytes) : ::operator delete(memory);
}

/// Set the limit of the cache in bytes; 0 caches nothing.
void set_cache_limit(size_t bytes);

}  // namespace poolgrad
