// The compiled instruction sets (levels), and those that this machine supports; the start of the
// core.
#pragma once
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "api/tasks.hpp"
#include "verbs/cells.hpp"
#include "verbs/table.hpp"

namespace poolgrad {

struct Level {
  const char* name;
  bool supported;
  VerbTable verbs;
  CellTable cells;
};

inline const Level* levels(size_t& count) {
#if defined(PG_X86)
  static const Level list[] = {
      {"x86-64-v4",
       __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd"),
       verbs_v4, cells_v4},
      {"x86-64-v3",
       __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("bmi"),
       verbs_v3, cells_v3},
      {"x86-64-v2", __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt"),
       verbs_baseline, cells_baseline}};
#else
  static const Level list[] = {{"baseline", true, verbs_baseline, cells_baseline}};
#endif
  count = sizeof list / sizeof *list;
  return list;
}

/// Return true if this machine supports the lowest level.
inline bool has_a_level() {
  size_t count;
  return levels(count)[count - 1].supported;
}

/// Return the highest level that this machine supports, up to the named one if a name is given.
inline const Level& choose_level(const char* highest) {
  size_t count;
  const Level* list = levels(count);
  size_t i = 0;
  if (highest && *highest) {
    while (i < count && std::strcmp(list[i].name, highest) != 0) ++i;
    if (i == count)
      throw std::invalid_argument(std::string("POOLGRAD_ISA: there is no level '") + highest + "'");
  }
  while (!list[i].supported) ++i;
  return list[i];
}

/// Start the core once: its threads, and the verbs of the level. Return that level.
inline const Level& start_core() {
  static const Level& level = []() -> const Level& {
    const Level& chosen = choose_level(std::getenv("POOLGRAD_ISA"));
    start_threads();
    chosen_verbs = chosen.verbs;
    chosen_cells = chosen.cells;
    thread_limit = available_threads();
    return chosen;
  }();
  return level;
}

}  // namespace poolgrad
