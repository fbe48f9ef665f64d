#include "threads.hpp"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "system.hpp"

namespace poolgrad {
namespace {

/// Default rounding and subnormals while in scope, whatever the calling program has set.
class FloatState {
 public:
#if defined(__x86_64__)
  FloatState() : saved_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~FloatState() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
#elif defined(__aarch64__)
  FloatState() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" : : "r"(uint64_t{0}));
  }
  ~FloatState() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }

 private:
  uint64_t saved_;
#else
  FloatState() {}  // nothing is known about this processor's state
#endif
};

struct Job {
  void (*body)(void*, int64_t);
  void* context;
  int64_t tasks;
  std::atomic<int64_t> next{0};
  std::atomic<int> helpers{0};  // workers inside this job
  std::mutex failure_lock;
  std::exception_ptr failure;

  void work() {
    FloatState state;
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) {
      try {
        body(context, i);
      } catch (...) {
        std::lock_guard lock(failure_lock);
        if (!failure) failure = std::current_exception();
        next.store(tasks, std::memory_order_relaxed);
      }
    }
  }
};

/// Waits a few microseconds for something that often comes at once; sleeping and waking would take longer.
template <class F>
void spin(F&& ready) {
  for (int i = 0; i < 2000 && !ready(); ++i) {
#if defined(__x86_64__)
    _mm_pause();
#endif
  }
}

/// Workers wait for a job; one job at a time. A second caller does its work alone rather than wait.
class Pool {
 public:
  bool run(Job& job, int helpers) {
    std::unique_lock busy(busy_, std::try_to_lock);
    if (!busy) return false;
    {
      std::lock_guard lock(lock_);
      for (; size_ < helpers; ++size_) std::thread([this, id = size_] { loop(id); }).detach();
      job_ = &job;
      wanted_ = helpers;
      ++round_;
    }
    wake_.notify_all();
    job.work();
    {
      std::lock_guard lock(lock_);
      job_ = nullptr;
    }
    spin([&] { return job.helpers.load() == 0; });
    std::unique_lock lock(lock_);
    done_.wait(lock, [&] { return job.helpers.load() == 0; });
    return true;
  }

 private:
  void loop(int id) {
    uint64_t seen = 0;
    for (;;) {
      Job* job;
      spin([&] { return round_.load(std::memory_order_relaxed) != seen; });
      {
        std::unique_lock lock(lock_);
        wake_.wait(lock, [&] { return round_ != seen; });
        seen = round_;
        job = id < wanted_ ? job_ : nullptr;
        if (!job) continue;
        ++job->helpers;
      }
      job->work();
      std::lock_guard lock(lock_);
      if (--job->helpers == 0) done_.notify_all();
    }
  }

  std::mutex busy_, lock_;
  std::condition_variable wake_, done_;
  Job* job_ = nullptr;
  std::atomic<uint64_t> round_{0};
  int wanted_ = 0, size_ = 0;
};

/// A stack of memory. What does not fit comes from the heap.
class Arena {
 public:
  ~Arena() { free_aligned(memory_); }

  void* push(int64_t bytes) {
    const int64_t size = rounded(bytes);
    if (!memory_) memory_ = static_cast<char*>(allocate_aligned(kSize));
    if (memory_ && used_ + size <= kSize) {
      used_ += size;
      return memory_ + used_ - size;
    }
    void* p = allocate_aligned(static_cast<size_t>(size));
    if (!p) throw std::bad_alloc();
    return p;
  }
  void pop(void* p, int64_t bytes) {
    if (memory_ <= p && p < memory_ + kSize) used_ -= rounded(bytes);
    else free_aligned(p);
  }

 private:
  static constexpr int64_t kSize = 1 << 20;
  static int64_t rounded(int64_t bytes) { return (bytes + 63) / 64 * 64; }
  char* memory_ = nullptr;
  int64_t used_ = 0;
};

thread_local Arena arena;

// Never destroyed: workers may outlive the interpreter. A forked child has no workers, so it starts a new pool.
std::atomic<Pool*> the_pool{nullptr};

Pool& pool() {
  static const bool once = [] {
    the_pool = new Pool;
    at_fork(nullptr, nullptr, [] { the_pool = new Pool; });
    return true;
  }();
  (void)once;
  return *the_pool.load();
}

}  // namespace

void parallel_for(int64_t tasks, int threads, void (*body)(void*, int64_t), void* context) {
  Job job;
  job.body = body;
  job.context = context;
  job.tasks = tasks;
  const int64_t helpers = (threads < tasks ? threads : tasks) - 1;
  if (helpers <= 0 || !pool().run(job, static_cast<int>(helpers))) job.work();
  if (job.failure) std::rethrow_exception(job.failure);
}

void* borrow(int64_t bytes) { return arena.push(bytes); }
void give_back(void* memory, int64_t bytes) { arena.pop(memory, bytes); }

int available_threads() {
  const unsigned n = usable_processors();
  return n ? static_cast<int>(n) : 1;
}

}  // namespace poolgrad
