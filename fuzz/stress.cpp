// Many callers at once, each with helpers, on plans that they share: what a race detector has to
// see. No Python.
//
//     stress SECONDS [CALLERS] [--race | --unwritten]
//
// --race writes one number from two threads, --unwritten decides by one that nobody wrote: so that
// one can see that it is noticed.
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "oracle.hpp"
#include "runtime/caches.hpp"
#include "runtime/memory.hpp"

namespace {

using namespace poolgrad;
using Clock = std::chrono::steady_clock;

/// Random inputs, the verbs of each called by several threads.
void inputs_of_its_own(uint64_t seed, Clock::time_point end) {
  fuzz::Noise noise(seed);
  uint8_t bytes[64];
  while (Clock::now() < end) {
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(noise.next() >> 56);
    fuzz::test(bytes, sizeof bytes, verbs_baseline, 2 + static_cast<int>(noise.next() >> 62));
  }
}

/// One plan and one input for everybody; results on memory that is handed round.
void shared_plan(const OwnedPlan& plan, const fuzz::Buffer& x, const fuzz::Buffer& want,
                 Clock::time_point end) {
  while (Clock::now() < end) {
    void* block = take_block(kLargeBlock + want.bytes());
    Arrays a;
    a.x = x.get();
    a.out = block;
    fuzz::in_pieces(plan.forward(), {3, 4, 4}, [&](Piece p) {
      verbs_baseline(Dtype::f32)->select(plan.forward(), a, Start::lowest, p);
    });
    if (std::memcmp(block, want.get(), want.bytes()) != 0) {
      std::fprintf(stderr, "a shared plan gave another result\n");
      std::abort();
    }
    return_block(block, kLargeBlock + want.bytes());
  }
}

// MemorySanitizer takes an exception for unwritten: it is the C++ library that writes it, which is
// not instrumented.
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define PG_NO_FAILURES
#endif
#endif

/// A task that fails is heard of by its caller, and by nobody else.
[[maybe_unused]] void failing_tasks(Clock::time_point end) {
  while (Clock::now() < end) {
    bool heard = false;
    try {
      parallel_for(16, 4, nullptr, [](int64_t task) {
        if (task == 7) throw std::runtime_error("seven");
      });
    } catch (const std::runtime_error&) {
      heard = true;
    }
    if (!heard) std::abort();
    fuzz::calls.fetch_add(1, std::memory_order_relaxed);
  }
}

void race() {
  int number = 0;
  std::thread other([&] { ++number; });
  ++number;
  other.join();
  std::fprintf(stderr, "%d\n", number);
}

void unwritten() {
  const std::unique_ptr<volatile int> number(new volatile int);
  if (*number > 0) std::fprintf(stderr, "a number that nobody wrote\n");
}

}  // namespace

int main(int argc, char** argv) {
  const auto end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(argc > 1 ? std::atof(argv[1]) : 5));
  const int callers = argc > 2 ? std::atoi(argv[2]) : 4;
  if (argc > 3 && std::strcmp(argv[3], "--race") == 0) race();
  if (argc > 3 && std::strcmp(argv[3], "--unwritten") == 0) unwritten();
  set_cache_limit(size_t{8} << 20);
  start_threads();
  stream_threshold = 0;
  const OwnedPlan plan(
      4, 3, {{33, {0, 8, 16, 24}, {12, 20, 28, 33}, {}}, {17, {0, 3, 6, 9}, {5, 8, 11, 17}, {}}},
      false);
  fuzz::Noise noise(7);
  const fuzz::Buffer x = fuzz::filled(Dtype::f32, plan.source_size(), 0, noise);
  const fuzz::Buffer want(plan.dest_size() * 4);
  Arrays a;
  a.x = x.get();
  a.out = want.get();
  fuzz::in_pieces(plan.forward(), {}, [&](Piece p) {
    verbs_baseline(Dtype::f32)->select(plan.forward(), a, Start::lowest, p);
  });

  std::vector<std::thread> threads;
  for (int i = 0; i < callers; ++i) {
    threads.emplace_back([=] { inputs_of_its_own(static_cast<uint64_t>(i) + 1, end); });
    threads.emplace_back([&] { shared_plan(plan, x, want, end); });
#if !defined(PG_NO_FAILURES)
    threads.emplace_back([=] { failing_tasks(end); });
#endif
  }
  for (std::thread& t : threads) t.join();
  set_cache_limit(0);
  fuzz::report();
  return 0;
}
