// The core for compiled code that is not part of it: a table of plain functions, which need no
// Python and no lock.
#pragma once
#include <cstdint>

namespace poolgrad {

constexpr const char* kForeignName = "poolgrad.foreign.1";  ///< the number changes with the table

/// Why a call failed; empty if it did not.
struct Reason {
  char text[256];
};

/// What a maximum is told besides its windows.
struct Choice {
  bool least;     ///< the minimum instead
  bool nan_wins;  ///< a window with NaN is NaN; else only one with nothing else
};

/// Element types are numbered as `Dtype` in dtype.hpp, means and shares as `Mean` and `Share`.
/// Sizes are the caller's to check: `source` and `dest` elements, and `tap` bytes per tap. All
/// return whether it went well.
struct Foreign {
  void* (*plan)(int64_t outer, int64_t inner, int rank, const int64_t* n, const int64_t* m,
                const int64_t* start, const int64_t* stop, Reason*);
  void (*drop)(void* plan);
  void (*sizes)(const void* plan, int64_t* source, int64_t* dest, int64_t* tap);
  bool (*fold)(const void* plan, int dtype, int mean, const void* x, void* y, Reason*);
  bool (*spread)(const void* plan, int dtype, int share, const void* g, void* dx, Reason*);
  bool (*choose)(const void* plan, int dtype, Choice, const void* x, void* y, void* taps, Reason*);
  bool (*pick)(const void* plan, int dtype, const void* v, const void* taps, void* out, Reason*);
  bool (*place)(const void* plan, int dtype, const void* g, const void* taps, void* dx, Reason*);
};

const Foreign& foreign();

}  // namespace poolgrad
