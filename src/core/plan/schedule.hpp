// The names of verbs and schedules. A schedule is one way to run a call; verbs/schedules.hpp has
// the rows that choose between them, loops/when.hpp their conditions.
#pragma once

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
  global,           ///< one window covers an item
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

constexpr const char* name_of(Verb verb) {
  constexpr const char* names[] = {"fold",   "spread", "near",    "select", "argmax", "route",
                                   "recall", "gather", "scatter", "choose", "pick",   "place"};
  return names[static_cast<int>(verb)];
}

constexpr const char* name_of(Schedule schedule) {
  constexpr const char* names[] = {"sliding",      "global",        "padded_band",     "row_ring",
                                   "weighed",      "image_scatter", "transposed_tile", "direct",
                                   "scatter_tile", "scatter",       "follow_taps"};
  return names[static_cast<int>(schedule)];
}

}  // namespace poolgrad
