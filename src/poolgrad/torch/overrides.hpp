// torch's own pooling operators on the CPU, computed by the core: the same results. What the core cannot give the same,
// or not faster, goes to torch's own kernel in the same call.
#pragma once
#include <ATen/core/grad_mode.h>
#include <ATen/native/FractionalMaxPooling.h>
#include <ATen/ops/_adaptive_avg_pool2d_backward_cpu_dispatch.h>
#include <ATen/ops/_adaptive_avg_pool2d_cpu_dispatch.h>
#include <ATen/ops/_adaptive_avg_pool3d_backward_cpu_dispatch.h>
#include <ATen/ops/_adaptive_avg_pool3d_cpu_dispatch.h>
#include <ATen/ops/adaptive_avg_pool2d_cpu_dispatch.h>
#include <ATen/ops/adaptive_avg_pool3d_backward_cpu_dispatch.h>
#include <ATen/ops/adaptive_avg_pool3d_cpu_dispatch.h>
#include <ATen/ops/adaptive_max_pool2d_backward_cpu_dispatch.h>
#include <ATen/ops/adaptive_max_pool2d_cpu_dispatch.h>
#include <ATen/ops/adaptive_max_pool3d_backward_cpu_dispatch.h>
#include <ATen/ops/adaptive_max_pool3d_cpu_dispatch.h>
#include <ATen/ops/avg_pool2d_backward_cpu_dispatch.h>
#include <ATen/ops/avg_pool2d_cpu_dispatch.h>
#include <ATen/ops/avg_pool3d_backward_cpu_dispatch.h>
#include <ATen/ops/avg_pool3d_cpu_dispatch.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/fractional_max_pool2d_backward_cpu_dispatch.h>
#include <ATen/ops/fractional_max_pool2d_cpu_dispatch.h>
#include <ATen/ops/fractional_max_pool3d_backward_cpu_dispatch.h>
#include <ATen/ops/fractional_max_pool3d_cpu_dispatch.h>
#include <ATen/ops/max_pool2d_native.h>
#include <ATen/ops/max_pool2d_with_indices_backward.h>
#include <ATen/ops/max_pool2d_with_indices_backward_cpu_dispatch.h>
#include <ATen/ops/max_pool2d_with_indices_cpu_dispatch.h>
#include <ATen/ops/max_pool3d_native.h>
#include <ATen/ops/max_pool3d_with_indices_backward.h>
#include <ATen/ops/max_pool3d_with_indices_backward_cpu_dispatch.h>
#include <ATen/ops/max_pool3d_with_indices_cpu_dispatch.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <c10/util/bit_cast.h>
#include <torch/library.h>

#include <optional>
#include <tuple>

#include "gradients.hpp"

namespace poolgrad::aten {

// ---- where calls went ----

enum Op : int {
  kMax2, kMax3, kMaxIndex2, kMaxIndex3, kAvg2, kAvg3, kAvgBack2, kAvgBack3,
  kAdaptiveMax2, kAdaptiveMax3, kAdaptiveAvg2, kAdaptiveAvg3,
  kMaxBack2, kMaxBack3, kAdaptiveMaxBack2, kAdaptiveMaxBack3, kAdaptiveAvgBack2, kAdaptiveAvgBack3,
  kFractional2, kFractional3, kFractionalBack2, kFractionalBack3,
  kOps
};
constexpr const char* kOpNames[kOps] = {
    "max_pool2d", "max_pool3d", "max_pool2d_with_indices", "max_pool3d_with_indices",
    "avg_pool2d", "avg_pool3d", "avg_pool2d_backward", "avg_pool3d_backward",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d",
    "max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward",
    "adaptive_max_pool2d_backward", "adaptive_max_pool3d_backward",
    "_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward",
    "fractional_max_pool2d", "fractional_max_pool3d", "fractional_max_pool2d_backward", "fractional_max_pool3d_backward"};

/// Who computed a call, and why torch did.
enum Way : int { kOurs, kFew, kArguments, kDtype, kLayout, kSums, kValues, kWatched, kOut, kWays };
constexpr const char* kWayNames[kWays] = {"poolgrad", "small", "arguments", "dtype", "layout", "sums", "values", "watched", "out"};

inline std::atomic<int64_t> counts[kOps][kWays];
inline std::atomic<bool> policy = true;  ///< leave calls that torch computes faster to torch

inline bool went(Op op, Way way) {
  counts[op][way].fetch_add(1, std::memory_order_relaxed);
  return way == kOurs;
}

constexpr int64_t kSmall = 4096;   // elements of an input that torch pools in less time than ours needs to start

/// Return whether torch pools so few cells faster.
inline bool few(const Tensor& x) { return policy.load(std::memory_order_relaxed) && x.numel() < kSmall; }

/// The result of a call, for the rules below.
enum class Work { values, taps, sums, shares };

/// Return whether torch is as fast: the core fills vectors with 16 planes, or with 32 cells of a row, or with channels.
/// docs/dev/adapters.md has the measurements.
inline bool torch_is_fast(const Windows& w, const Layout& layout, Work work, bool repeats) {
  if (!policy.load(std::memory_order_relaxed)) return false;
  if (!layout.last) return w.outer() < 16 * at::get_num_threads() && !(repeats && w.axis(w.rank() - 1).n >= 32);
  if (work == Work::values) return w.rank() == 3 && w.inner() < 16;
  if (work == Work::taps) return w.rank() == 3 || w.cells() < 9;
  return work == Work::shares;
}

/// Return whether torch is as fast at the gradient of an adaptive mean.
inline bool torch_shares_fast(const Windows& w, const Layout& layout) {
  if (!policy.load(std::memory_order_relaxed)) return false;
  return layout.last ? w.dest() * 32 > w.source() : !is_long(w) && w.outer() < 16 * at::get_num_threads();
}

/// Return whether torch is as fast at fractional maxima over so many cells of all windows.
inline bool torch_chooses_fast(int64_t steps) { return policy.load(std::memory_order_relaxed) && steps < (1 << 17); }

// ---- maxima ----

using Pair = std::tuple<Tensor, Tensor>;

/// Compute values and taps into y and taps; return the way that the call takes.
inline Way choose_as_torch(const Windows& w, const Layout& layout, const Tensor& x, Tensor& y, Tensor& taps) {
  choose(w, x, y, taps);
  // torch takes the last NaN of a window; channels last in three dimensions it loses the depth of windows of -inf
  return special(y, layout.last && w.rank() == 3) ? kValues : kOurs;
}

/// Return whether a result may be written into `to`: it is not given, or has the shape, dtype and layout, and memory of its own.
inline bool suits(const Tensor& to, IntArrayRef sizes, const Layout& layout, at::ScalarType type, const Tensor& read) {
  return !to.defined() || (to.scalar_type() == type && to.is_cpu() && to.sizes() == sizes &&
                           to.is_contiguous(layout.format) && !to.is_alias_of(read));
}

inline bool suits(const Tensor& to, const Tensor& like, const Windows& w, const Layout& layout, at::ScalarType type, bool pooled) {
  return !to.defined() || suits(to, sizes_of(like, w, pooled), layout, type, like);
}

/// Maxima and indices over windows from `make(layout)`; into `y` and `index`, if they are defined. `shared` windows are adaptive.
template <class Make>
Way max_with_indices(int rank, const Tensor& x, Tensor& y, Tensor& index, bool shared, Make&& make) {
  const int type = number_of(x.scalar_type());
  if (few(x)) return kFew;
  if (type < 0 || (shared && !floating(type))) return kDtype;
  const Layout layout = shared && rank == 3 ? plain_layout(x, rank) : layout_of(x, rank);
  if (!layout.outer) return kLayout;
  if (layout.last && !floating(type)) return kDtype;  // torch refuses planes that a short integer cannot number
  const Shared w = make(layout);
  if (!w) return kArguments;
  if (torch_is_fast(*w, layout, Work::taps, !shared)) return layout.last ? kLayout : kFew;
  if (!suits(y, x, *w, layout, x.scalar_type(), true) || !suits(index, x, *w, layout, at::kLong, true)) return kOut;
  const Tensor in = x.contiguous(layout.format);
  Tensor values = y.defined() ? y : blank(x, *w, layout, x.scalar_type(), true);
  Tensor taps = blank(x, *w, layout, tap_type(*w), true);
  if (const Way way = choose_as_torch(*w, layout, in, values, taps); way != kOurs) return way;
  if (!index.defined()) index = blank(x, *w, layout, at::kLong, true);
  positions(*w, taps, index);
  y = values;
  return kOurs;
}

template <int rank>
Pair max_pool_with_indices(const Tensor& x, IntArrayRef k, IntArrayRef s, IntArrayRef p, IntArrayRef d, bool c) {
  Tensor y, index;
  const Way way = max_with_indices(rank, x, y, index, false, [&](const Layout& l) { return sliding(x, rank, l, k, s, p, d, c); });
  if (went(rank == 2 ? kMaxIndex2 : kMaxIndex3, way)) return {y, index};
  if constexpr (rank == 2) return at::cpu::max_pool2d_with_indices(x, k, s, p, d, c);
  else return at::cpu::max_pool3d_with_indices(x, k, s, p, d, c);
}

template <int rank>
std::tuple<Tensor&, Tensor&> max_pool_with_indices_out(const Tensor& x, IntArrayRef k, IntArrayRef s, IntArrayRef p,
                                                       IntArrayRef d, bool c, Tensor& out, Tensor& indices) {
  Tensor y = out, index = indices;
  const Way way = max_with_indices(rank, x, y, index, false, [&](const Layout& l) { return sliding(x, rank, l, k, s, p, d, c); });
  if (went(rank == 2 ? kMaxIndex2 : kMaxIndex3, way)) return {out, indices};
  if constexpr (rank == 2) return at::cpu::max_pool2d_with_indices_outf(x, k, s, p, d, c, out, indices);
  else return at::cpu::max_pool3d_with_indices_outf(x, k, s, p, d, c, out, indices);
}

template <int rank>
Pair adaptive_max_pool(const Tensor& x, IntArrayRef sizes) {
  Tensor y, index;
  const Way way = max_with_indices(rank, x, y, index, true, [&](const Layout& l) { return adaptive(x, rank, l, sizes); });
  if (went(rank == 2 ? kAdaptiveMax2 : kAdaptiveMax3, way)) return {y, index};
  if constexpr (rank == 2) return at::cpu::adaptive_max_pool2d(x, sizes);
  else return at::cpu::adaptive_max_pool3d(x, sizes);
}

template <int rank>
std::tuple<Tensor&, Tensor&> adaptive_max_pool_out(const Tensor& x, IntArrayRef sizes, Tensor& out, Tensor& indices) {
  Tensor y = out, index = indices;
  const Way way = max_with_indices(rank, x, y, index, true, [&](const Layout& l) { return adaptive(x, rank, l, sizes); });
  if (went(rank == 2 ? kAdaptiveMax2 : kAdaptiveMax3, way)) return {out, indices};
  if constexpr (rank == 2) return at::cpu::adaptive_max_pool2d_outf(x, sizes, out, indices);
  else return at::cpu::adaptive_max_pool3d_outf(x, sizes, out, indices);
}

// ---- maxima without indices: backward needs the taps alone ----

/// Return whether nothing but autograd looks on: a plain tensor, and no transform, mode, trace or tangent.
inline bool plain(const Tensor& x) {
  using K = c10::DispatchKey;
  static const c10::DispatchKeySet usual{K::CPU, K::ADInplaceOrView, K::AutogradCPU, K::AutocastCPU};
  static const c10::DispatchKeySet inference{K::CPU, K::AutocastCPU};
  static const c10::DispatchKeySet idle{K::BackendSelect, K::ADInplaceOrView};
  const auto keys = x.key_set();
  if (keys != usual && keys != inference) return false;
  const auto tls = c10::impl::tls_local_dispatch_key_set();
  return (tls.included_ - tls.excluded_ - idle).empty() && !x._fw_grad(0).defined();
}

/// The arguments of a max pool, for torch's backward.
struct Words {
  c10::SmallVector<int64_t, 3> k, s, p, d;
  bool c = false;
};

/// The backward of a max pool: adds the gradient at the taps.
struct MaxPoolBackward : torch::autograd::Node {
  Shared w;
  Layout layout;
  Words words;
  c10::SmallVector<int64_t, 5> sizes;  // of the input
  torch::autograd::SavedVariable taps;

  std::string name() const override { return w->rank() == 2 ? "PoolgradMaxPool2DBackward" : "PoolgradMaxPool3DBackward"; }
  void release_variables() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    taps.reset_data();
  }
  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
    Tensor kept;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      kept = taps.unpack();
    }
    const Tensor& g = grads[0];
    if (!g.defined() || !task_should_compute_output(0)) return {Tensor()};
    const bool simple = plain(g) && plain(kept) && !(at::GradMode::is_enabled() && g.requires_grad()) &&
                        g.numel() == w->dest() && kept.numel() == w->dest() && kept.scalar_type() == tap_type(*w);
    if (!simple) return {watched(g, kept)};
    const at::AutoDispatchBelowADInplaceOrView guard;
    const Tensor in = g.contiguous(layout.format), where = kept.contiguous(layout.format);
    Tensor dx = at::empty(sizes, g.options(), layout.format);
    TORCH_CHECK(place(*w, in, where, dx), "poolgrad: a hook changed saved taps: one is outside its window");
    return {dx};
  }

 private:
  /// Return the gradient by torch's operator, which transforms and further derivatives know.
  Tensor watched(const Tensor& g, const Tensor& kept) const {
    Tensor index, x;
    {
      const at::AutoDispatchBelowADInplaceOrView guard;
      const Tensor where = kept.contiguous(layout.format);
      index = at::empty(where.sizes(), where.options().dtype(at::kLong), layout.format);
      positions(*w, where, index);
      x = at::empty(sizes, where.options().dtype(g.scalar_type()), layout.format);  // whose shape alone matters
    }
    if (w->rank() == 2) return at::max_pool2d_with_indices_backward(g, x, words.k, words.s, words.p, words.d, words.c, index);
    return at::max_pool3d_with_indices_backward(g, x, words.k, words.s, words.p, words.d, words.c, index);
  }
};

template <int rank>
Tensor max_pool(const Tensor& x, IntArrayRef k, IntArrayRef s, IntArrayRef p, IntArrayRef d, bool c) {
  constexpr Op op = rank == 2 ? kMax2 : kMax3;
  const auto theirs = [&](Way way) {
    went(op, way);
    if constexpr (rank == 2) return at::native::max_pool2d(x, k, s, p, d, c);
    else return at::native::max_pool3d(x, k, s, p, d, c);
  };
  if (few(x)) return theirs(kFew);
  if (!plain(x)) return theirs(kWatched);
  const int type = number_of(x.scalar_type());
  if (type < 0) return theirs(kDtype);
  const Layout layout = layout_of(x, rank);
  if (!layout.outer) return theirs(kLayout);
  if (layout.last && !floating(type)) return theirs(kDtype);
  const Shared w = sliding(x, rank, layout, k, s, p, d, c);
  if (!w) return theirs(kArguments);
  const bool recorded = at::GradMode::is_enabled() && x.requires_grad();
  if (torch_is_fast(*w, layout, recorded ? Work::taps : Work::values, true)) return theirs(layout.last ? kLayout : kFew);
  // torch rounds after each addition of halves; the core once
  if (recorded && !w->disjoint() && (halves(type) || w->depth() > kAddedInTurn)) return theirs(kSums);
  Tensor y, taps;
  Way way = kOurs;
  {
    const at::AutoDispatchBelowADInplaceOrView guard;
    const Tensor in = x.contiguous(layout.format);
    y = blank(x, *w, layout, x.scalar_type(), true);
    if (recorded) {
      taps = blank(x, *w, layout, tap_type(*w), true);
      way = choose_as_torch(*w, layout, in, y, taps);
    } else {
      select(*w, in, y);
    }
  }
  if (way != kOurs) return theirs(way);
  went(op, kOurs);
  if (!recorded) return y;
  auto node = c10::make_intrusive<MaxPoolBackward>();
  node->set_next_edges(torch::autograd::collect_next_edges(x));
  node->w = w;
  node->layout = layout;
  node->words = {{k.begin(), k.end()}, {s.begin(), s.end()}, {p.begin(), p.end()}, {d.begin(), d.end()}, c};
  node->sizes.assign(x.sizes().begin(), x.sizes().end());
  node->taps = torch::autograd::SavedVariable(taps, false);
  torch::autograd::set_history(y, node);
  return y;
}

// ---- means ----

struct Averages {
  IntArrayRef k, s, p;
  bool ceil_mode, include;
  std::optional<int64_t> divisor;
};

/// Return what torch divides the sums of these windows by.
inline Divisor divisor_of(const Windows& w, const Averages& a) {
  if (a.divisor) return {Divisor::number, static_cast<double>(*a.divisor)};
  return {a.include && !w.even() ? Divisor::spans : Divisor::cells, 1};
}

/// Return the windows of a mean, or why torch should compute it.
template <class Make>
Way means_of(int rank, const Tensor& x, Layout& layout, Shared& w, Make&& make) {
  if (few(x)) return kFew;
  const int type = number_of(x.scalar_type());
  if (type != PG_F32 && type != PG_F64) return kDtype;  // torch adds halves in an order of its own
  layout = rank == 3 ? plain_layout(x, rank) : layout_of(x, rank);  // torch's means over three axes have one layout
  if (!layout.outer) return kLayout;
  w = make(layout);
  return w ? kOurs : kArguments;
}

inline Shared mean_windows(const Tensor& x, int rank, const Layout& layout, const Averages& a) {
  const int64_t one[] = {1};
  if (a.divisor && (*a.divisor <= 0 || *a.divisor > kMost)) return nullptr;  // which torch refuses, or takes the sign of a zero from
  for (int d = 0; rank == 3 && d < rank; ++d)
    if (fits(a.k, rank) && x.size(d - rank) < each(a.k, d)) return nullptr;  // which torch refuses
  return sliding(x, rank, layout, a.k, a.s, a.p, one, a.ceil_mode);
}

inline Way avg(int rank, const Tensor& x, const Averages& a, Tensor& y) {
  Layout layout;
  Shared w;
  if (const Way way = means_of(rank, x, layout, w, [&](const Layout& l) { return mean_windows(x, rank, l, a); }); way != kOurs)
    return way;
  if (torch_is_fast(*w, layout, Work::sums, true)) return layout.last ? kLayout : kFew;
  const Divisor by = divisor_of(*w, a);
  if (w->cells() > kAddedInTurn && by.kind != Divisor::cells) return kSums;
  if (!suits(y, x, *w, layout, x.scalar_type(), true)) return kOut;
  if (!y.defined()) y = blank(x, *w, layout, x.scalar_type(), true);
  const Tensor in = x.contiguous(layout.format);
  if (by.kind == Divisor::spans) {
    fold(*w, PG_MEAN_SPANNED, in, y);
    return kOurs;
  }
  if (by.kind == Divisor::cells) {
    fold(*w, w->cells() > kAddedInTurn ? PG_MEAN_STRICT : PG_MEAN_EXACT, in, y);
    return kOurs;
  }
  fold(*w, PG_MEAN_TOTAL, in, y);
  divide(*w, by, y, y);
  return kOurs;
}

/// Spread g over the cells of its windows, each share divided as torch divides it.
inline void share(const Windows& w, Divisor by, const Tensor& g, Tensor& dx) {
  const int64_t cells = w.cells();
  if (by.kind != Divisor::number && w.even() && !(cells & (cells - 1))) return spread(w, PG_SHARE_RECIPROCAL, g, dx);
  Tensor shares = at::empty_like(g);
  divide(w, by, g, shares);
  spread(w, PG_SHARE_WHOLE, shares, dx);
}

inline Way avg_backward(int rank, const Tensor& g, const Tensor& x, const Averages& a, Tensor& dx) {
  Layout layout;
  Shared w;
  if (const Way way = means_of(rank, x, layout, w, [&](const Layout& l) { return mean_windows(x, rank, l, a); }); way != kOurs)
    return way;
  if (torch_is_fast(*w, layout, Work::shares, true)) return layout.last ? kLayout : kFew;
  if (w->depth() > kAddedInTurn) return kSums;
  Tensor shape = g;
  if (g.dim() != x.dim() || !g.is_cpu() || !suits(shape, x, *w, layout, x.scalar_type(), true)) {
    shape = g.contiguous(layout.format);
    if (g.dim() != x.dim() || !suits(shape, x, *w, layout, x.scalar_type(), true)) return kArguments;
  }
  if (!suits(dx, x, *w, layout, x.scalar_type(), false)) return kOut;
  if (!dx.defined()) dx = blank(x, *w, layout, x.scalar_type(), false);
  share(*w, divisor_of(*w, a), shape, dx);
  return kOurs;
}

template <int rank>
Tensor avg_pool(const Tensor& x, IntArrayRef k, IntArrayRef s, IntArrayRef p, bool c, bool i, std::optional<int64_t> o) {
  Tensor y;
  if (went(rank == 2 ? kAvg2 : kAvg3, avg(rank, x, {k, s, p, c, i, o}, y))) return y;
  if constexpr (rank == 2) return at::cpu::avg_pool2d(x, k, s, p, c, i, o);
  else return at::cpu::avg_pool3d(x, k, s, p, c, i, o);
}

template <int rank>
Tensor& avg_pool_out(const Tensor& x, IntArrayRef k, IntArrayRef s, IntArrayRef p, bool c, bool i, std::optional<int64_t> o,
                     Tensor& out) {
  Tensor y = out;
  if (went(rank == 2 ? kAvg2 : kAvg3, avg(rank, x, {k, s, p, c, i, o}, y))) return out;
  if constexpr (rank == 2) return at::cpu::avg_pool2d_outf(x, k, s, p, c, i, o, out);
  else return at::cpu::avg_pool3d_outf(x, k, s, p, c, i, o, out);
}

template <int rank>
Tensor avg_pool_backward(const Tensor& g, const Tensor& x, IntArrayRef k, IntArrayRef s, IntArrayRef p, bool c, bool i,
                         std::optional<int64_t> o) {
  Tensor dx;
  if (went(rank == 2 ? kAvgBack2 : kAvgBack3, avg_backward(rank, g, x, {k, s, p, c, i, o}, dx))) return dx;
  if constexpr (rank == 2) return at::cpu::avg_pool2d_backward(g, x, k, s, p, c, i, o);
  else return at::cpu::avg_pool3d_backward(g, x, k, s, p, c, i, o);
}

template <int rank>
Tensor& avg_pool_backward_out(const Tensor& g, const Tensor& x, IntArrayRef k, IntArrayRef s, IntArrayRef p, bool c, bool i,
                              std::optional<int64_t> o, Tensor& out) {
  Tensor dx = out;
  if (went(rank == 2 ? kAvgBack2 : kAvgBack3, avg_backward(rank, g, x, {k, s, p, c, i, o}, dx))) return out;
  if constexpr (rank == 2) return at::cpu::avg_pool2d_backward_outf(g, x, k, s, p, c, i, o, out);
  else return at::cpu::avg_pool3d_backward_outf(g, x, k, s, p, c, i, o, out);
}

/// Adaptive means: torch divides their sums by one length after the other.
inline Way adaptive_avg(int rank, const Tensor& x, IntArrayRef sizes, Tensor& y) {
  Layout layout;
  Shared w;
  if (const Way way = means_of(rank, x, layout, w, [&](const Layout& l) { return adaptive(x, rank, l, sizes); }); way != kOurs)
    return way;
  if (layout.last || !x.is_contiguous()) return kLayout;  // torch divides by one number there, but in the last lanes by two
  if (w->cells() > kAddedInTurn) return kSums;
  if (torch_is_fast(*w, layout, Work::sums, false)) return kFew;
  if (!suits(y, x, *w, layout, x.scalar_type(), true)) return kOut;
  if (!y.defined()) y = blank(x, *w, layout, x.scalar_type(), true);
  fold(*w, PG_MEAN_TOTAL, x, y);
  divide(*w, {Divisor::lengths, 1}, y, y);
  return kOurs;
}

template <int rank>
Tensor adaptive_avg_pool(const Tensor& x, c10::SymIntArrayRef sizes) {
  Tensor y;
  const auto known = c10::asIntArrayRefSlowOpt(sizes);
  const Way way = known ? adaptive_avg(rank, x, *known, y) : kArguments;
  if (went(rank == 2 ? kAdaptiveAvg2 : kAdaptiveAvg3, way)) return y;
  if constexpr (rank == 2) return at::cpu::_adaptive_avg_pool2d_symint(x, sizes);
  else return at::cpu::_adaptive_avg_pool3d_symint(x, sizes);
}

template <int rank>
Tensor& adaptive_avg_pool_out(const Tensor& x, c10::SymIntArrayRef sizes, Tensor& out) {
  Tensor y = out;
  const auto known = c10::asIntArrayRefSlowOpt(sizes);
  const Way way = known ? adaptive_avg(rank, x, *known, y) : kArguments;
  if (went(rank == 2 ? kAdaptiveAvg2 : kAdaptiveAvg3, way)) return out;
  if constexpr (rank == 2) return at::cpu::adaptive_avg_pool2d_symint_outf(x, sizes, out);
  else return at::cpu::adaptive_avg_pool3d_symint_outf(x, sizes, out);
}

/// Return whether g is a gradient of planes of x: the same planes, the same dtype.
inline bool belongs(int rank, const Tensor& g, const Tensor& x) {
  if (g.dim() != x.dim() || g.scalar_type() != x.scalar_type() || !g.is_cpu() || !g.numel()) return false;
  for (int64_t d = 0; d < x.dim() - rank; ++d)
    if (g.size(d) != x.size(d)) return false;
  return true;
}

inline Way adaptive_avg_backward(int rank, const Tensor& g, const Tensor& x, Tensor& dx) {
  if (x.dim() <= rank || !belongs(rank, g, x)) return kArguments;
  Layout layout;
  Shared w;
  const auto make = [&](const Layout& l) { return adaptive(x, rank, l, g.sizes().slice(static_cast<size_t>(x.dim() - rank))); };
  if (const Way way = means_of(rank, x, layout, w, make); way != kOurs) return way;
  // channels last torch divides by one number, but in lanes that do not fill a vector by two
  if (layout.last && w->inner() * x.element_size() % 64) return kLayout;
  if (!x.is_contiguous(layout.format) || !g.is_contiguous(layout.format)) return kLayout;
  if (torch_shares_fast(*w, layout)) return layout.last ? kLayout : kFew;
  if (w->depth() > kAddedInTurn) return kSums;
  if (!suits(dx, x.sizes(), layout, x.scalar_type(), x) || !suits(dx, x.sizes(), layout, x.scalar_type(), g)) return kOut;
  if (!dx.defined()) dx = blank(x, *w, layout, x.scalar_type(), false);
  if (is_long(*w)) {
    spread_long(*w, layout.last ? Sharing::cells : Sharing::lengths, g, dx);
  } else {
    Tensor shares = at::empty_like(g);
    divide(*w, {layout.last ? Divisor::cells : Divisor::lengths, 1}, g, shares);
    spread(*w, PG_SHARE_WHOLE, shares, dx);
  }
  return kOurs;
}

template <int rank>
Tensor adaptive_avg_pool_backward(const Tensor& g, const Tensor& x) {
  Tensor dx;
  if (went(rank == 2 ? kAdaptiveAvgBack2 : kAdaptiveAvgBack3, adaptive_avg_backward(rank, g, x, dx))) return dx;
  if constexpr (rank == 2) return at::cpu::_adaptive_avg_pool2d_backward(g, x);
  else return at::cpu::_adaptive_avg_pool3d_backward(g, x);
}

inline Tensor& adaptive_avg_pool3d_backward_out(const Tensor& g, const Tensor& x, Tensor& out) {
  Tensor dx = out;
  if (went(kAdaptiveAvgBack3, adaptive_avg_backward(3, g, x, dx))) return out;
  return at::cpu::adaptive_avg_pool3d_backward_outf(g, x, out);
}

// ---- gradients of maxima, by their indices ----

/// Add g at the indices, in planes of the shape of x.
inline Way max_backward(int rank, const Tensor& g, const Tensor& x, const Tensor& index, const Layout& layout, Tensor& dx) {
  if (few(x)) return kFew;
  const int type = number_of(x.scalar_type());
  if (type < 0 || !floating(type) || (layout.last && halves(type))) return kDtype;
  if (!layout.outer) return kLayout;
  if (!belongs(rank, g, x) || index.scalar_type() != at::kLong || index.sizes() != g.sizes() || !index.is_cpu()) return kArguments;
  if (!x.numel()) return kFew;
  const Planes planes{layout.outer, layout.inner, x.numel() / (layout.outer * layout.inner), g.numel() / (layout.outer * layout.inner)};
  for (const Tensor* read : {&g, &x, &index})
    if (!suits(dx, x.sizes(), layout, x.scalar_type(), *read)) return kOut;
  Tensor made = dx.defined() ? dx : at::empty(x.sizes(), x.options(), layout.format);
  if (!add_at(planes, g.contiguous(layout.format), index.contiguous(layout.format), made)) return kValues;
  dx = made;
  return kOurs;
}

template <int rank>
Way sliding_max_backward(const Tensor& g, const Tensor& x, IntArrayRef k, IntArrayRef s, IntArrayRef p, IntArrayRef d, bool c,
                         const Tensor& index, Tensor& dx) {
  const Layout layout = layout_of(x, rank);
  const Shared w = few(x) ? nullptr : sliding(x, rank, layout, k, s, p, d, c);
  if (!w || g.sizes() != IntArrayRef(sizes_of(x, *w, true))) return few(x) ? kFew : kArguments;
  return max_backward(rank, g, x, index, layout, dx);
}

template <int rank>
Tensor max_pool_backward(const Tensor& g, const Tensor& x, IntArrayRef k, IntArrayRef s, IntArrayRef p, IntArrayRef d, bool c,
                         const Tensor& index) {
  Tensor dx;
  if (went(rank == 2 ? kMaxBack2 : kMaxBack3, sliding_max_backward<rank>(g, x, k, s, p, d, c, index, dx))) return dx;
  if constexpr (rank == 2) return at::cpu::max_pool2d_with_indices_backward(g, x, k, s, p, d, c, index);
  else return at::cpu::max_pool3d_with_indices_backward(g, x, k, s, p, d, c, index);
}

template <int rank>
Tensor& max_pool_backward_out(const Tensor& g, const Tensor& x, IntArrayRef k, IntArrayRef s, IntArrayRef p, IntArrayRef d,
                              bool c, const Tensor& index, Tensor& out) {
  Tensor dx = out;
  if (went(rank == 2 ? kMaxBack2 : kMaxBack3, sliding_max_backward<rank>(g, x, k, s, p, d, c, index, dx))) return out;
  if constexpr (rank == 2) return at::cpu::max_pool2d_with_indices_backward_outf(g, x, k, s, p, d, c, index, out);
  else return at::cpu::max_pool3d_with_indices_backward_outf(g, x, k, s, p, d, c, index, out);
}

inline Way adaptive_max_backward(int rank, const Tensor& g, const Tensor& x, const Tensor& index, Tensor& dx) {
  return max_backward(rank, g, x, index, rank == 3 ? plain_layout(x, rank) : layout_of(x, rank), dx);
}

template <int rank>
Tensor adaptive_max_pool_backward(const Tensor& g, const Tensor& x, const Tensor& index) {
  Tensor dx;
  if (went(rank == 2 ? kAdaptiveMaxBack2 : kAdaptiveMaxBack3, adaptive_max_backward(rank, g, x, index, dx))) return dx;
  if constexpr (rank == 2) return at::cpu::adaptive_max_pool2d_backward(g, x, index);
  else return at::cpu::adaptive_max_pool3d_backward(g, x, index);
}

template <int rank>
Tensor& adaptive_max_pool_backward_out(const Tensor& g, const Tensor& x, const Tensor& index, Tensor& out) {
  Tensor dx = out;
  if (went(rank == 2 ? kAdaptiveMaxBack2 : kAdaptiveMaxBack3, adaptive_max_backward(rank, g, x, index, dx))) return out;
  if constexpr (rank == 2) return at::cpu::adaptive_max_pool2d_backward_outf(g, x, index, out);
  else return at::cpu::adaptive_max_pool3d_backward_outf(g, x, index, out);
}

// ---- fractional maxima: each plane has windows of its own ----

/// The windows of all planes: of `kernel` cells, from the starts that torch's samples give.
struct PlaneWindows {
  int rank;
  IntArrayRef kernel, sizes, lengths;
  int64_t planes;

  /// Call f(plane, starts of its windows along each axis) for the planes from..to; return false if a window leaves its plane.
  template <class T, class F>
  bool each(const Tensor& samples, int64_t from, int64_t to, F&& f) const {
    const T* sample = read<T>(samples) + from * rank;
    std::vector<int64_t> starts[3] = {{0}, {0}, {0}};
    for (int64_t plane = from; plane < to; ++plane, sample += rank) {
      for (int a = 0; a < rank; ++a) {
        const auto i = static_cast<size_t>(a);
        const T u = sample[rank == 2 ? 1 - a : a];  // torch gives the first sample of two to the last axis
        starts[3 - rank + a] = at::native::generate_intervals<T>(u, lengths[i], sizes[i], kernel[i]);
        for (const int64_t start : starts[3 - rank + a])
          if (start < 0 || start + kernel[i] > lengths[i]) return false;
      }
      f(plane, starts);
    }
    return true;
  }
};

/// Return an integer in the order of floats, 0 for both zeros; note NaN.
template <class T>
int64_t rank_of(T value, bool& nan) {
  using Bits = std::conditional_t<sizeof(T) == 8, int64_t, std::conditional_t<sizeof(T) == 4, int32_t, int16_t>>;
  constexpr auto kMagnitude = std::numeric_limits<Bits>::max();
  const auto infinity = c10::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  const auto bits = c10::bit_cast<Bits>(value);
  const auto magnitude = static_cast<Bits>(bits & kMagnitude);
  nan |= magnitude > infinity;
  return bits < 0 ? -static_cast<int64_t>(magnitude) : static_cast<int64_t>(magnitude);
}

/// Return the first of the largest cells of a window, at these steps from its first cell: without a branch, since data decide.
template <int known, class T>
int64_t largest(const T* cells, const int64_t* steps, int64_t many, bool& nan) {
  int64_t best = rank_of(cells[0], nan), at = 0;
  const int64_t end = known ? known : many;
  for (int64_t k = 1; k < end; ++k) {
    const int64_t rank = rank_of(cells[steps[k]], nan), better = -static_cast<int64_t>(rank > best);
    at ^= (at ^ steps[k]) & better;
    best ^= (best ^ rank) & better;
  }
  return at;
}

template <class T, int known>
Way fractional_planes(const PlaneWindows& p, const std::vector<int64_t>& steps, const Tensor& x, const Tensor& samples, Tensor& y,
                      Tensor& index) {
  const int64_t cells = x.numel() / p.planes, results = y.numel() / p.planes, many = static_cast<int64_t>(steps.size());
  const int64_t row = p.lengths[p.lengths.size() - 1], plane_row = p.lengths[p.lengths.size() - 2];
  std::atomic<bool> inside = true, special = false;
  over_items(p.planes, results * many, [&](int64_t from, int64_t to) {
    bool nan = false;
    const bool fine = p.each<T>(samples, from, to, [&](int64_t plane, const std::vector<int64_t>(&starts)[3]) {
      const T* const source = read<T>(x) + plane * cells;
      T* value = written<T>(y) + plane * results;
      int64_t* place = index.mutable_data_ptr<int64_t>() + plane * results;
      for (const int64_t a : starts[0])
        for (const int64_t b : starts[1])
          for (const int64_t c : starts[2]) {
            const int64_t first = (a * plane_row + b) * row + c;
            const int64_t at = first + largest<known>(source + first, steps.data(), many, nan);
            *value++ = source[at];
            *place++ = at;
          }
    });
    if (!fine) inside = false;
    if (nan) special = true;
  });
  return !inside ? kArguments : special ? kValues : kOurs;
}

template <class T>
Way fractional_planes(const PlaneWindows& p, const Tensor& x, const Tensor& samples, Tensor& y, Tensor& index) {
  std::vector<int64_t> steps;  // of each tap, from the first cell of its window
  int64_t window = 1;
  for (const int64_t k : p.kernel) window *= k;
  for (int64_t tap = 0; tap < window; ++tap) {
    int64_t left = tap, step = 1, at = 0;
    for (size_t a = p.kernel.size(); a-- > 0; left /= p.kernel[a], step *= p.lengths[a]) at += left % p.kernel[a] * step;
    steps.push_back(at);
  }
  if (window == 4) return fractional_planes<T, 4>(p, steps, x, samples, y, index);
  if (window == 8) return fractional_planes<T, 8>(p, steps, x, samples, y, index);
  if (window == 9) return fractional_planes<T, 9>(p, steps, x, samples, y, index);
  return fractional_planes<T, 0>(p, steps, x, samples, y, index);
}

inline Way fractional(int rank, const Tensor& x, IntArrayRef k, IntArrayRef m, const Tensor& samples, Tensor& y, Tensor& index) {
  if (few(x)) return kFew;
  const int type = number_of(x.scalar_type());
  if (type < 0 || !floating(type)) return kDtype;
  const Layout layout = plain_layout(x, rank);
  const auto per_axis = static_cast<size_t>(rank);
  if (!layout.outer || k.size() != per_axis || m.size() != per_axis) return kArguments;
  const IntArrayRef lengths = x.sizes().slice(static_cast<size_t>(x.dim() - rank));
  int64_t windows = 1;
  c10::SmallVector<int64_t, 5> sizes(x.sizes().begin(), x.sizes().end());
  for (size_t a = 0; a < per_axis; ++a) {
    if (k[a] < 1 || m[a] < 1 || lengths[a] > kMost || m[a] > lengths[a] - k[a] + (rank == 2)) return kArguments;  // torch's limits
    windows *= k[a];
    sizes[sizes.size() - per_axis + a] = m[a];
  }
  const int64_t batch = x.dim() == rank + 2 ? x.size(0) : 1;
  if (windows > kMost || samples.dim() != 3 || samples.scalar_type() != x.scalar_type() || !samples.is_cpu() ||
      samples.size(0) < batch || samples.size(1) != x.size(x.dim() - rank - 1) || samples.size(2) != rank)
    return kArguments;
  const PlaneWindows planes{rank, k, m, lengths, layout.outer};
  if (torch_chooses_fast(c10::multiply_integers(sizes) * windows)) return kFew;
  for (const Tensor* read : {&x, &samples})
    if (!suits(y, sizes, layout, x.scalar_type(), *read) || !suits(index, sizes, layout, at::kLong, *read)) return kOut;
  const Tensor in = x.contiguous(), drawn = samples.contiguous();
  Tensor values = y.defined() ? y : at::empty(sizes, x.options(), layout.format);
  Tensor found = index.defined() ? index : at::empty(sizes, x.options().dtype(at::kLong), layout.format);
  Way way = kDtype;
  with_type(x.scalar_type(), [&](auto* known) {
    using T = std::remove_pointer_t<decltype(known)>;
    if constexpr (kIsHalf<T> || std::is_floating_point_v<T>) way = fractional_planes<T>(planes, in, drawn, values, found);
  });
  if (way != kOurs) return way;
  y = values;
  index = found;
  return kOurs;
}

template <int rank>
Pair fractional_max_pool(const Tensor& x, IntArrayRef k, IntArrayRef m, const Tensor& samples) {
  Tensor y, index;
  if (went(rank == 2 ? kFractional2 : kFractional3, fractional(rank, x, k, m, samples, y, index))) return {y, index};
  if constexpr (rank == 2) return at::cpu::fractional_max_pool2d(x, k, m, samples);
  else return at::cpu::fractional_max_pool3d(x, k, m, samples);
}

template <int rank>
std::tuple<Tensor&, Tensor&> fractional_max_pool_out(const Tensor& x, IntArrayRef k, IntArrayRef m, const Tensor& samples,
                                                     Tensor& out, Tensor& indices) {
  Tensor y = out, index = indices;
  if (went(rank == 2 ? kFractional2 : kFractional3, fractional(rank, x, k, m, samples, y, index))) return {out, indices};
  if constexpr (rank == 2) return at::cpu::fractional_max_pool2d_outf(x, k, m, samples, out, indices);
  else return at::cpu::fractional_max_pool3d_outf(x, k, m, samples, out, indices);
}

inline Way fractional_backward(int rank, const Tensor& g, const Tensor& x, IntArrayRef m, const Tensor& index, Tensor& dx) {
  const auto per_axis = static_cast<size_t>(rank);
  if (x.dim() <= rank || m.size() != per_axis || !belongs(rank, g, x)) return kArguments;
  if (g.sizes().slice(static_cast<size_t>(x.dim() - rank)) != m) return kArguments;
  return max_backward(rank, g, x, index, plain_layout(x, rank), dx);
}

template <int rank>
Tensor fractional_max_pool_backward(const Tensor& g, const Tensor& x, IntArrayRef k, IntArrayRef m, const Tensor& index) {
  Tensor dx;
  if (went(rank == 2 ? kFractionalBack2 : kFractionalBack3, fractional_backward(rank, g, x, m, index, dx))) return dx;
  if constexpr (rank == 2) return at::cpu::fractional_max_pool2d_backward(g, x, k, m, index);
  else return at::cpu::fractional_max_pool3d_backward(g, x, k, m, index);
}

template <int rank>
Tensor& fractional_max_pool_backward_out(const Tensor& g, const Tensor& x, IntArrayRef k, IntArrayRef m, const Tensor& index,
                                         Tensor& out) {
  Tensor dx = out;
  if (went(rank == 2 ? kFractionalBack2 : kFractionalBack3, fractional_backward(rank, g, x, m, index, dx))) return out;
  if constexpr (rank == 2) return at::cpu::fractional_max_pool2d_backward_outf(g, x, k, m, index, out);
  else return at::cpu::fractional_max_pool3d_backward_outf(g, x, k, m, index, out);
}

// ---- switching ----

/// torch warns that kernels are overridden, which is what the caller wants.
struct Silence : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

inline std::mutex switching;
inline std::vector<std::unique_ptr<torch::Library>> registered;

/// Register the kernels in place of torch's, or give torch's back.
inline void switch_to(bool on) {
  const std::lock_guard guard(switching);
  Silence silence;
  const c10::WarningUtils::WarningHandlerGuard quiet(&silence);
  registered.clear();
  if (!on) return;
  const auto open = [&](c10::DispatchKey key) -> torch::Library& {
    registered.push_back(std::make_unique<torch::Library>(torch::Library::IMPL, "aten", key, "poolgrad", 0));
    return *registered.back();
  };
  auto& cpu = open(c10::DispatchKey::CPU);
  cpu.impl("max_pool2d_with_indices", TORCH_FN(max_pool_with_indices<2>));
  cpu.impl("max_pool3d_with_indices", TORCH_FN(max_pool_with_indices<3>));
  cpu.impl("max_pool2d_with_indices.out", TORCH_FN(max_pool_with_indices_out<2>));
  cpu.impl("max_pool3d_with_indices.out", TORCH_FN(max_pool_with_indices_out<3>));
  cpu.impl("adaptive_max_pool2d", TORCH_FN(adaptive_max_pool<2>));
  cpu.impl("adaptive_max_pool3d", TORCH_FN(adaptive_max_pool<3>));
  cpu.impl("adaptive_max_pool2d.out", TORCH_FN(adaptive_max_pool_out<2>));
  cpu.impl("adaptive_max_pool3d.out", TORCH_FN(adaptive_max_pool_out<3>));
  cpu.impl("avg_pool2d", TORCH_FN(avg_pool<2>));
  cpu.impl("avg_pool3d", TORCH_FN(avg_pool<3>));
  cpu.impl("avg_pool2d.out", TORCH_FN(avg_pool_out<2>));
  cpu.impl("avg_pool3d.out", TORCH_FN(avg_pool_out<3>));
  cpu.impl("avg_pool2d_backward", TORCH_FN(avg_pool_backward<2>));
  cpu.impl("avg_pool3d_backward", TORCH_FN(avg_pool_backward<3>));
  cpu.impl("avg_pool2d_backward.grad_input", TORCH_FN(avg_pool_backward_out<2>));
  cpu.impl("avg_pool3d_backward.grad_input", TORCH_FN(avg_pool_backward_out<3>));
  cpu.impl("_adaptive_avg_pool2d", TORCH_FN(adaptive_avg_pool<2>));
  cpu.impl("_adaptive_avg_pool3d", TORCH_FN(adaptive_avg_pool<3>));
  cpu.impl("adaptive_avg_pool2d.out", TORCH_FN(adaptive_avg_pool_out<2>));
  cpu.impl("adaptive_avg_pool3d.out", TORCH_FN(adaptive_avg_pool_out<3>));
  cpu.impl("_adaptive_avg_pool2d_backward", TORCH_FN(adaptive_avg_pool_backward<2>));
  cpu.impl("_adaptive_avg_pool3d_backward", TORCH_FN(adaptive_avg_pool_backward<3>));
  cpu.impl("adaptive_avg_pool3d_backward.grad_input", TORCH_FN(adaptive_avg_pool3d_backward_out));
  cpu.impl("max_pool2d_with_indices_backward", TORCH_FN(max_pool_backward<2>));
  cpu.impl("max_pool3d_with_indices_backward", TORCH_FN(max_pool_backward<3>));
  cpu.impl("max_pool2d_with_indices_backward.grad_input", TORCH_FN(max_pool_backward_out<2>));
  cpu.impl("max_pool3d_with_indices_backward.grad_input", TORCH_FN(max_pool_backward_out<3>));
  cpu.impl("adaptive_max_pool2d_backward", TORCH_FN(adaptive_max_pool_backward<2>));
  cpu.impl("adaptive_max_pool3d_backward", TORCH_FN(adaptive_max_pool_backward<3>));
  cpu.impl("adaptive_max_pool2d_backward.grad_input", TORCH_FN(adaptive_max_pool_backward_out<2>));
  cpu.impl("adaptive_max_pool3d_backward.grad_input", TORCH_FN(adaptive_max_pool_backward_out<3>));
  cpu.impl("fractional_max_pool2d", TORCH_FN(fractional_max_pool<2>));
  cpu.impl("fractional_max_pool3d", TORCH_FN(fractional_max_pool<3>));
  cpu.impl("fractional_max_pool2d.output", TORCH_FN(fractional_max_pool_out<2>));
  cpu.impl("fractional_max_pool3d.output", TORCH_FN(fractional_max_pool_out<3>));
  cpu.impl("fractional_max_pool2d_backward", TORCH_FN(fractional_max_pool_backward<2>));
  cpu.impl("fractional_max_pool3d_backward", TORCH_FN(fractional_max_pool_backward<3>));
  cpu.impl("fractional_max_pool2d_backward.grad_input", TORCH_FN(fractional_max_pool_backward_out<2>));
  cpu.impl("fractional_max_pool3d_backward.grad_input", TORCH_FN(fractional_max_pool_backward_out<3>));
  // At CPU too: a composite operator with a kernel at AutogradCPU alone would lose it in inference mode.
  for (const auto key : {c10::DispatchKey::AutogradCPU, c10::DispatchKey::CPU}) {
    auto& both = open(key);
    both.impl("max_pool2d", TORCH_FN(max_pool<2>));
    both.impl("max_pool3d", TORCH_FN(max_pool<3>));
  }
}

}  // namespace poolgrad::aten
