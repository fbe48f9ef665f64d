// The second derivative of a maximum: TensorFlow's MaxPoolGradGrad, in C++.
//
//     c++ -std=c++17 -Wall -Wextra -pedantic max_pool_grad_grad.cpp $(pkg-config --cflags --libs poolgrad)
//
// It pools an image of 6 x 6 x 3 numbers (NHWC) with windows of 3 x 3 every 2 cells, padding SAME. The
// pieces of each call run on the program's own threads, by the function `on_threads`.
#include <poolgrad.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

/// Call a function of the library; throw its error.
template <class Function, class... Arguments>
void call(Function* function, Arguments... arguments) {
  pg_error error;
  if (function(arguments..., &error) != PG_OK) throw std::runtime_error(error.text);
}

using Plan = std::unique_ptr<pg_plan, void (*)(pg_plan*)>;

Plan make_plan(int64_t batch, int64_t channels, const std::vector<pg_axis>& axes) {
  pg_plan* made = nullptr;
  call(pg_plan_new, batch, channels, static_cast<int32_t>(axes.size()), axes.data(), &made);
  return Plan(made, pg_plan_drop);
}

/// Run tasks on two threads. A program with a pool of threads hands them to that pool.
void on_threads(void*, int64_t tasks, void (*task)(void*, int64_t), void* argument) {
  std::atomic<int64_t> next{0};
  const auto work = [&] {
    for (int64_t i; (i = next++) < tasks;) task(argument, i);
  };
  std::thread helper(work);
  work();
  helper.join();
}

void print(const std::vector<float>& numbers) {
  for (const float number : numbers) std::printf("%g ", static_cast<double>(number));
  std::printf("\n");
}

}  // namespace

int main() {
  try {
    if (pg_abi() != PG_ABI) throw std::runtime_error("poolgrad.h and the library differ");
    const Plan plan = make_plan(1, 3, {pg_sliding(6, 3, 2, PG_SAME), pg_sliding(6, 3, 2, PG_SAME)});
    pg_plan_info info;
    call(pg_plan_describe, plan.get(), &info);
    std::vector<float> x(static_cast<size_t>(info.source)), v(x.size());
    std::vector<float> y(static_cast<size_t>(info.dest)), out(y.size());
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(i * 37 % 11);  // with ties: the first of equals counts
      v[i] = static_cast<float>(i);
    }
    const pg_run run = {2, on_threads, nullptr};
    call(pg_select, plan.get(), &run, int32_t{PG_F32}, int32_t{PG_BEST_FROM_LOWEST}, 0,
         pg_in(x.data(), info.source), pg_out(y.data(), info.dest));
    call(pg_recall, plan.get(), &run, int32_t{PG_F32}, pg_in(x.data(), info.source),
         pg_in(y.data(), info.dest), pg_in(v.data(), info.source), pg_out(out.data(), info.dest));
    print(y);
    print(out);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
