// What an ISA level offers: one table of functions per element type. A null entry means the type
// cannot do it.
#pragma once
#include "plan/dtype.hpp"
#include "plan/plan.hpp"

namespace poolgrad {

/// A verb's arrays; which of them it reads, its own function says.
struct Arrays {
  const void* x = nullptr;
  const void* y = nullptr;
  const void* g = nullptr;
  const void* index = nullptr;  ///< positions, or taps: of one byte each, or of four where windows
                                ///< have more than 256 cells
  void* out = nullptr;
  void* out_index = nullptr;
};

/// What one task of a scatter reads and owns: images [i0, i1), cells [lo, hi).
struct ScatterRange {
  int64_t i0, i1, lo, hi;
  bool skip;  ///< positions elsewhere are another task's
  bool once =
      false;  ///< halves are added up in float32 and rounded at the end, not at each addition
};

struct Verbs {
  void (*fold)(const Plan&, const Arrays&, Mean, Piece);
  void (*spread)(const Plan&, const Arrays&, Share, bool reversed, Piece);
  void (*near)(const Plan&, const Arrays&, double eps, Piece);
  void (*select)(const Plan&, const Arrays&, Start, Piece);
  void (*argmax)(const Plan&, const Arrays&, bool wide, int64_t modulo, Piece);
  int64_t (*route)(const Plan&, const Plan& transposed, const Arrays&,
                   Piece);  // a piece of the transposed plan; by x or by taps
  void (*recall)(const Plan&, const Arrays&, Piece);
  void (*choose)(const Plan&, const Arrays&, Piece);
  int64_t (*pick)(const Plan&, const Arrays&, Piece);
  int64_t (*gather)(const Arrays&, bool wide, int64_t n, int64_t m, int64_t total, bool absolute,
                    int64_t k0, int64_t k1);
  bool (*nan_free)(const void* x,
                   int64_t n);  // whether none of n cells is NaN; null where none can be
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
