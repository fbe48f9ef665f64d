#include "memory.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

namespace poolgrad {
namespace {

constexpr size_t kPage = size_t{2} << 20;
constexpr size_t kMostBlocks = 1024;  // so many are kept that the list never has to grow, which could fail

struct Block {
  void* memory;
  size_t bytes;
};

struct Kept {
  std::mutex lock;
  std::vector<Block> blocks;  // oldest first
  size_t total = 0, limit = 0;
};

Kept& kept() {
  // Never destroyed: arrays may outlive static objects. The lock is held across a fork, so that the child finds it free.
  static Kept* k = [] {
    static Kept* made = new Kept;
    made->blocks.reserve(kMostBlocks);
    pthread_atfork([] { made->lock.lock(); }, [] { made->lock.unlock(); }, [] { made->lock.unlock(); });
    return made;
  }();
  return *k;
}

size_t rounded(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

void drop_oldest(Kept& k) {
  munmap(k.blocks.front().memory, k.blocks.front().bytes);
  k.total -= k.blocks.front().bytes;
  k.blocks.erase(k.blocks.begin());
}

/// Frees what is kept, where memory has become scarce.
void drop_all() {
  Kept& k = kept();
  std::lock_guard lock(k.lock);
  while (!k.blocks.empty()) drop_oldest(k);
}

/// A mapping that begins at a multiple of the huge page's size.
void* map_aligned(size_t size) {
  void* p = mmap(nullptr, size + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  char* begin = static_cast<char*>(p);
  char* start = begin + (kPage - reinterpret_cast<size_t>(begin) % kPage) % kPage;
  if (start > begin) munmap(begin, static_cast<size_t>(start - begin));
  munmap(start + size, static_cast<size_t>(begin + kPage - start));
#if defined(MADV_HUGEPAGE)
  madvise(start, size, MADV_HUGEPAGE);
#endif
  return start;
}

}  // namespace

void* take_block(size_t bytes) {
  const size_t size = rounded(bytes);
  if (size < bytes || size + kPage < size) throw std::bad_alloc();
  {
    Kept& k = kept();
    std::lock_guard lock(k.lock);
    const auto same = std::find_if(k.blocks.rbegin(), k.blocks.rend(), [&](const Block& b) { return b.bytes == size; });
    if (same != k.blocks.rend()) {
      void* memory = same->memory;
      k.total -= size;
      k.blocks.erase(std::next(same).base());
      return memory;
    }
  }
  try {
    return map_aligned(size);
  } catch (const std::bad_alloc&) {
    drop_all();
    return map_aligned(size);
  }
}

void return_block(void* block, size_t bytes) {
  const size_t size = rounded(bytes);
  Kept& k = kept();
  std::lock_guard lock(k.lock);
  if (size > k.limit) {
    munmap(block, size);
    return;
  }
  while (k.total + size > k.limit || k.blocks.size() == kMostBlocks) drop_oldest(k);
  k.blocks.push_back({block, size});
  k.total += size;
}

void keep_at_most(size_t bytes) {
  Kept& k = kept();
  std::lock_guard lock(k.lock);
  k.limit = bytes;
  while (k.total > k.limit) drop_oldest(k);
}

}  // namespace poolgrad
