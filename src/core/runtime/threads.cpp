#include "runtime/threads.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "runtime/system.hpp"

namespace poolgrad {
namespace {

/// Set default rounding and subnormals while in scope, whatever the program has set.
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
  FloatState() {}  // unknown processor
#endif
};

constexpr std::chrono::milliseconds kPollInterval{25};  // between two calls of should_stop
constexpr std::chrono::microseconds kSpinTime{
    1000};  // a program that calls in a loop calls again within this time
constexpr int64_t kStepsPerPoll =
    1 << 19;  // between two looks at the clock: a few milliseconds at most

// Forks since the module was loaded. A change means that all other threads are gone.
std::atomic<unsigned> forks{0};

struct Job {
  void (*body)(void*, int64_t);
  void* context;
  int64_t tasks;
  std::atomic<int64_t> next{0};
  std::atomic<int> helpers{0};  // workers inside this job
  std::atomic<bool> stopped{false};
  std::exception_ptr failure;  // the exception of the task that stopped the job

  /// Run tasks, at most so many of them, until there are none left.
  void work(StopCheck should_stop, int64_t most = INT64_MAX);
};

/// The job of a thread, and when it last polled.
struct TaskWatch {
  StepBudget step_budget;
  Job* job;
  StopCheck should_stop;
  std::chrono::steady_clock::time_point polled;

  void poll() {
    step_budget.left = kStepsPerPoll;
    if (!job) return;
    if (job->stopped.load(std::memory_order_relaxed)) throw Stopped{};
    if (!should_stop) return;
    const auto now = std::chrono::steady_clock::now();
    if (polled.time_since_epoch().count() == 0) polled = now;
    if (now - polled < kPollInterval) return;
    const bool stop = should_stop();
    polled = std::chrono::steady_clock::now();
    if (stop) throw Stopped{};
  }
};

constinit thread_local TaskWatch watch{{0}, nullptr, nullptr, {}};
constinit thread_local const Executor* executor = nullptr;
constinit thread_local Executor limited_here{};

void Job::work(StopCheck should_stop, int64_t most) {
  FloatState state;
  const TaskWatch before = watch;  // of the call that a signal handler interrupted
  watch = TaskWatch{{kStepsPerPoll}, this, should_stop, {}};
  for (int64_t i; most-- > 0 && (i = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) {
    try {
      body(context, i);
    } catch (...) {
      if (!stopped.exchange(true)) failure = std::current_exception();
      next.store(tasks, std::memory_order_relaxed);
    }
  }
  watch = before;
}

/// Spin for a moment before sleeping: the event is often near, and waking up takes longer. Yield to
/// other threads.
template <class F>
void spin(F&& ready) {
  const auto end = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < 64; ++i) {
      if (ready()) return;
#if defined(__x86_64__)
      _mm_pause();
#endif
    }
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < end);
}

/// Run one job at a time. A second caller does its work alone instead of waiting.
class Pool {
 public:
  /// Return false if the job is still to be done: the pool is busy, or this process is a forked
  /// child without workers.
  bool run(Job& job, int helpers, StopCheck should_stop) {
    if (busy_.exchange(true, std::memory_order_acquire)) return false;
    const unsigned here = forks;
    {
      std::lock_guard lock(lock_);
      grow(helpers);
      job_ = &job;
      wanted_ = helpers;
      ++round_;
    }
    wake_.notify_all();
    job.work(should_stop);
    if (forks != here) return false;
    {
      std::lock_guard lock(lock_);
      job_ = nullptr;
    }
    spin([&] { return job.helpers.load() == 0; });
    if (!await(job, should_stop, here)) return false;
    busy_.store(false, std::memory_order_release);
    return true;
  }

 private:
  /// Start workers up to `number`. Fewer do the work if the system has no more threads.
  void grow(int number) {
    if (size_ >= number) return;
    const NoSignals
        quiet;  // workers inherit the mask; signals belong to the threads of the program
    try {
      for (; size_ < number; ++size_) std::thread([this, id = size_] { loop(id); }).detach();
    } catch (const std::system_error&) {
    } catch (const std::bad_alloc&) {
    }
  }

  /// Wait until no worker is inside the job. Return false in a forked child, which has none.
  bool await(Job& job, StopCheck should_stop, unsigned here) {
    const auto idle = [&] { return job.helpers.load() == 0; };
    std::unique_lock lock(lock_);
    while (!idle()) {
      if (!should_stop || job.stopped) {
        done_.wait(lock, idle);
      } else if (!done_.wait_for(lock, kPollInterval, idle)) {
        lock.unlock();
        const bool stop = should_stop();
        if (forks != here) return false;
        if (stop && !job.stopped.exchange(true)) job.failure = std::make_exception_ptr(Stopped{});
        lock.lock();
      }
    }
    return true;
  }

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
      job->work(nullptr);
      std::lock_guard lock(lock_);
      if (--job->helpers == 0) done_.notify_all();
    }
  }

  std::atomic<bool> busy_{false};
  std::mutex lock_;
  std::condition_variable wake_, done_;
  Job* job_ = nullptr;
  std::atomic<uint64_t> round_{0};
  int wanted_ = 0, size_ = 0;
};

/// Run a job by the program's own threads. Each of its calls takes the next task, whatever number it
/// names: no task runs twice, and the caller does those that are left over.
void run_elsewhere(Job& job, const Executor& by, StopCheck should_stop) {
  by.parallel_for(
      by.context, job.tasks,
      [](void* argument, int64_t) {
        Job& job = *static_cast<Job*>(argument);
        ++job.helpers;
        job.work(nullptr, 1);
        --job.helpers;
      },
      &job);
  job.work(should_stop);
  while (job.helpers.load() != 0) std::this_thread::yield();
}

/// A stack of scratch memory; the heap takes what does not fit.
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

// Never destroy the pool: workers may outlive the interpreter. A forked child makes a new one.
std::atomic<Pool*> the_pool{nullptr};

}  // namespace

void start_threads() {
  the_pool = new Pool;
  at_fork(nullptr, nullptr, [] {
    ++forks;
    the_pool = new Pool;
  });
}

void parallel_for(int64_t tasks, int threads, StopCheck should_stop, void (*body)(void*, int64_t),
                  void* context) {
  Job job{body, context, tasks, {}, {}, {}, {}};
  const int64_t helpers = (threads < tasks ? threads : tasks) - 1;
  if (helpers <= 0) {
    job.work(should_stop);
  } else if (executor && executor->parallel_for) {
    run_elsewhere(job, *executor, should_stop);
  } else if (!the_pool.load()->run(job, static_cast<int>(helpers), should_stop)) {
    // A task may run twice: it writes every cell of its part again.
    if (!job.stopped) job.next = 0;
    job.work(should_stop);
  }
  if (job.failure) std::rethrow_exception(job.failure);
}

UseExecutor::UseExecutor(const Executor& given) : before_(executor) { executor = &given; }
UseExecutor::~UseExecutor() { executor = before_; }
int executor_threads() { return executor ? executor->threads : 0; }
void limit_threads_here(int threads) {
  limited_here.threads = threads < 0 ? 0 : threads;
  executor = threads > 0 ? &limited_here : nullptr;
}

StepBudget& step_budget() { return watch.step_budget; }
void poll() { watch.poll(); }

void* push_scratch(int64_t bytes) { return arena.push(bytes); }
void pop_scratch(void* memory, int64_t bytes) { arena.pop(memory, bytes); }

bool calls_follow_closely() {
  using Clock = std::chrono::steady_clock;
  static std::atomic<Clock::rep> last{0};
  const Clock::rep now = Clock::now().time_since_epoch().count();
  const Clock::duration since{now - last.exchange(now, std::memory_order_relaxed)};
  return since < kSpinTime / 2;
}

int available_threads() {
  const unsigned n = usable_processors();
  return n ? static_cast<int>(n) : 1;
}

}  // namespace poolgrad
