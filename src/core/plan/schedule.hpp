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
  transposed_tile,  ///< several images side by side, then direct
  direct,           ///< visit every tap
  follow_taps,      ///< follow taps one by one: given ones, or the maxima that it found
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
  constexpr const char* names[] = {"sliding",         "along",  "global",     "row_band",
                                   "transposed_tile", "direct", "follow_taps"};
  return names[static_cast<int>(schedule)];
}

/// Say in a sentence when the tables choose a schedule.
constexpr const char* reason_for(Schedule schedule) {
  constexpr const char* reasons[] = {
      "windows are so long that passes along one axis after the other cost less than all visits",
      "windows are long and far apart, so the cells of one window fill vectors",
      "one window covers a whole image",
      ("windows repeat along the rows, so vectors run along rows that are joined, or copied, band "
       "by band"),
      "inner elements do not fill a vector, so neighbouring images share one",
      "inner elements fill vectors, or no other way fits: visit every cell of each window",
      "following maxima one by one costs less than comparing each cell with its windows"};
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
