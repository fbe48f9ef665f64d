// The core for other compiled code: a table of plain functions, which need no Python and no GIL.
#pragma once
#include <cstdint>

namespace poolgrad {

constexpr const char* kForeignName =
    "poolgrad.foreign.1";  ///< the number changes whenever the table does

/// Why a call failed; empty after success.
struct Reason {
  char text[256];
};

/// The rules of a maximum.
struct Choice {
  bool least;     ///< compute the minimum instead
  bool nan_wins;  ///< a window with NaN gives NaN; else only a window of nothing else does
};

/// Element types are numbered like `Dtype` in plan/dtype.hpp, means and shares like `Mean` and
/// `Share`. The caller checks sizes: `source` and `dest` elements, `tap` bytes per tap. Every
/// function returns true after success.
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
