#include "runtime/memory.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

#include "runtime/system.hpp"

namespace poolgrad {
namespace {

constexpr size_t kMostBlocks = 1024;  // the list reserves this many, because growing it could fail

struct Block {
  void* memory;
  size_t bytes;
};

struct BlockCache {
  std::mutex lock;
  std::vector<Block> blocks;  // oldest first
  size_t total = 0, limit = 0;
};

BlockCache& cache() {
  // Never destroy the cache: arrays may outlive static objects. Hold the lock across a fork, so
  // that the child finds it free.
  static BlockCache* k = [] {
    static BlockCache* made = new BlockCache;
    made->blocks.reserve(kMostBlocks);
    at_fork([] { made->lock.lock(); }, [] { made->lock.unlock(); }, [] { made->lock.unlock(); });
    return made;
  }();
  return *k;
}

size_t rounded(size_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }

void drop_oldest(BlockCache& k) {
  unmap_pages(k.blocks.front().memory, k.blocks.front().bytes);
  k.total -= k.blocks.front().bytes;
  k.blocks.erase(k.blocks.begin());
}

/// Free all cached blocks when the system has no memory left.
void drop_all() {
  BlockCache& k = cache();
  std::lock_guard lock(k.lock);
  while (!k.blocks.empty()) drop_oldest(k);
}

}  // namespace

void* take_block(size_t bytes) {
  const size_t size = rounded(bytes);
  if (size < bytes || size + kHugePage < size) throw std::bad_alloc();
  {
    BlockCache& k = cache();
    std::lock_guard lock(k.lock);
    const auto same = std::find_if(k.blocks.rbegin(), k.blocks.rend(),
                                   [&](const Block& b) { return b.bytes == size; });
    if (same != k.blocks.rend()) {
      void* memory = same->memory;
      k.total -= size;
      k.blocks.erase(std::next(same).base());
      return memory;
    }
  }
  try {
    return map_pages(size);
  } catch (const std::bad_alloc&) {
    drop_all();
    return map_pages(size);
  }
}

void return_block(void* block, size_t bytes) {
  const size_t size = rounded(bytes);
  BlockCache& k = cache();
  std::lock_guard lock(k.lock);
  if (size > k.limit) {
    unmap_pages(block, size);
    return;
  }
  while (k.total + size > k.limit || k.blocks.size() == kMostBlocks) drop_oldest(k);
  k.blocks.push_back({block, size});
  k.total += size;
}

void set_cache_limit(size_t bytes) {
  BlockCache& k = cache();
  std::lock_guard lock(k.lock);
  k.limit = bytes;
  while (k.total > k.limit) drop_oldest(k);
}

}  // namespace poolgrad
