// The verbs of an instruction set: one table of functions per element type. A null entry means that
// the type lacks the verb.
#pragma once
#include "plan/dtype.hpp"
#include "plan/plan.hpp"
#include "plan/schedule.hpp"

namespace poolgrad {

/// The arrays of a verb; each verb reads some of them.
struct Arrays {
  const void* x = nullptr;
  const void* y = nullptr;
  const void* g = nullptr;
  const void* index =
      nullptr;  ///< positions, or taps: one byte each, four if some window has more than 256 cells
  void* out = nullptr;
  void* out_index = nullptr;
};

/// The part of a scatter that one task owns: it reads items [i0, i1) and writes cells [lo, hi).
struct ScatterRange {
  int64_t i0, i1, lo, hi;
  bool skip;          ///< other tasks add at other positions
  bool once = false;  ///< sum half types in float32 and round once
};

struct Verbs {
  Schedule (*schedule)(const Plan&, const Plan& transposed, Verb, int rule, bool verify, Piece);
  uint32_t (*schedules)(Verb);  // the schedules of a verb, a bit for each
  void (*fold)(const Plan&, const Arrays&, Mean, Piece);
  void (*spread)(const Plan&, const Arrays&, Share, bool reversed, Piece);
  void (*near)(const Plan&, const Arrays&, double eps, Piece);
  void (*select)(const Plan&, const Arrays&, Start, Piece);
  /// The largest or least cell of each window, with a rule for NaN, if the along loop fits; else
  /// return false.
  bool (*best_runs)(const Plan&, const Arrays&, Start, NanRule, bool least, Piece);
  void (*argmax)(const Plan&, const Arrays&, bool wide, int64_t modulo, Piece);
  int64_t (*route)(const Plan&, const Plan& transposed, const Arrays&,
                   Piece);  // a piece of the transposed plan; place if index has taps
  void (*recall)(const Plan&, const Arrays&, Piece);
  void (*choose)(const Plan&, const Arrays&, Piece);
  int64_t (*pick)(const Plan&, const Arrays&, Piece);
  int64_t (*gather)(const Arrays&, bool wide, int64_t n, int64_t m, int64_t total, bool absolute,
                    int64_t k0, int64_t k1);
  bool (*nan_free)(const void* x,
                   int64_t n);  // true if none of n cells is NaN; null for integers
  int64_t (*scatter)(const Arrays&, bool wide, int64_t n, int64_t m, int64_t total, bool absolute,
                     ScatterRange);
};

using VerbTable = const Verbs* (*)(Dtype);

const Verbs* verbs_baseline(Dtype);
#if defined(PG_X86)
const Verbs* verbs_v3(Dtype);
const Verbs* verbs_v4(Dtype);
#endif

}  // namespace poolgrad
