// The compiled instruction sets (levels), and those that this machine supports. Only module.cpp
// includes this.
#pragma once
#include <nanobind/nanobind.h>

#include <cstring>
#include <string>

#include "verbs/cells.hpp"
#include "verbs/table.hpp"

namespace nb = nanobind;

namespace poolgrad {
namespace {

struct Level {
  const char* name;
  bool supported;
  VerbTable verbs;
  CellTable cells;
};

const Level* levels(size_t& count) {
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
bool has_a_level() {
  size_t count;
  return levels(count)[count - 1].supported;
}

/// Return the highest level that this machine supports, up to the named one if a name is given.
const Level& choose_level(const char* highest) {
  size_t count;
  const Level* list = levels(count);
  size_t i = 0;
  if (highest && *highest) {
    while (i < count && std::strcmp(list[i].name, highest) != 0) ++i;
    if (i == count)
      throw nb::value_error(
          (std::string("POOLGRAD_ISA: there is no level '") + highest + "'").c_str());
  }
  while (!list[i].supported) ++i;
  return list[i];
}

}  // namespace
}  // namespace poolgrad
