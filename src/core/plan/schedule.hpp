// The names of verbs and schedules. A schedule is one way to run a call; verbs/schedules.hpp has
// the rows that choose between them, loops/when.hpp their conditions.
#pragma once
#include <cstring>

#include "plan/dtype.hpp"

namespace poolgrad {

enum class Verb : int {
  fold,
  spread,
  near,
  select,
  argmax,
  route,
  recall,
  gather,
  scatter,
  choose,
  pick,
  place,
  count
};

enum class Schedule : int {
  sliding,          ///< long windows, one axis after the other
  along,            ///< long windows far apart, reduced along their rows
  global,           ///< gradients: one window covers an item
  row_band,         ///< a band of padded rows, then windows along them; select joins rows first
  padded_band,      ///< an item, or a band of its rows, packed as one long row
  row_ring,         ///< a ring of packed rows
  weighed,          ///< spread of half types: weigh the gradient first, then direct
  image_scatter,    ///< find the taps of several images, then follow them
  transposed_tile,  ///< several images side by side, then direct
  direct,           ///< visit every tap
  scatter_tile,     ///< several images side by side, then scatter
  scatter,          ///< find the taps row by row and follow them
  follow_taps,      ///< follow given taps one by one
  count
};
constexpr int kSchedules = static_cast<int>(Schedule::count);

/// The schedule of plans that are bound to none: the tables choose.
constexpr Schedule kAnySchedule = Schedule::count;

constexpr const char* name_of(Verb verb) {
  constexpr const char* names[] = {"fold",   "spread", "near",    "select", "argmax", "route",
                                   "recall", "gather", "scatter", "choose", "pick",   "place"};
  return names[static_cast<int>(verb)];
}

constexpr const char* name_of(Schedule schedule) {
  constexpr const char* names[] = {"sliding",     "along",         "global",  "row_band", "padded_band",
                                   "row_ring",    "weighed",       "image_scatter",   "transposed_tile",
                                   "direct",      "scatter_tile",  "scatter",         "follow_taps"};
  return names[static_cast<int>(schedule)];
}

/// Say in a sentence when the tables choose a schedule.
constexpr const char* reason_for(Schedule schedule) {
  constexpr const char* reasons[] = {
      "windows are so long that passes along one axis after the other cost less than all visits",
      "windows are long and far apart, so the cells of one window fill vectors",
      "one window covers a whole image",
      "windows repeat along the rows, so vectors run along rows that are joined, or copied, band by band",
      "windows repeat along every axis, and images, or bands of their rows, fit the cache in one "
      "long row",
      "windows repeat along the rows, and the rows of a window fit the cache",
      "a gradient of a half type is weighed once per cell, before windows add it up",
      "images are small and have few windows, so the maxima of many images are found together",
      "inner elements do not fill a vector, so neighbouring images share one",
      "inner elements fill vectors, or no other way fits: visit every cell of each window",
      "more windows share a cell than vectors compare, and neighbouring images share a vector",
      "more windows share a cell than vectors compare, so each maximum is found and followed",
      "positions are given, and following them one by one costs less than comparing"};
  return reasons[static_cast<int>(schedule)];
}

/// Number the choices of a plan: by verb, dtype and rule.
constexpr int kRules = 8,
              kChoices = static_cast<int>(Verb::count) * static_cast<int>(Dtype::count) * kRules;
constexpr int choice_of(Verb verb, Dtype dtype, int rule) {
  return (static_cast<int>(verb) * static_cast<int>(Dtype::count) + static_cast<int>(dtype)) *
             kRules +
         rule;
}

/// Find a schedule by its name; kAnySchedule if there is none.
inline Schedule schedule_of(const char* name) {
  int s = 0;
  while (s < kSchedules && std::strcmp(name, name_of(Schedule(s))) != 0) ++s;
  return Schedule(s);
}

}  // namespace poolgrad
