// torch's own pooling operators on the CPU, computed by the core: the same results. What the core cannot give the same,
// or not faster, goes to torch's own kernel in the same call.
#pragma once
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_adaptive_avg_pool2d_cpu_dispatch.h>
#include <ATen/ops/_adaptive_avg_pool3d_cpu_dispatch.h>
#include <ATen/ops/adaptive_max_pool2d_cpu_dispatch.h>
#include <ATen/ops/adaptive_max_pool3d_cpu_dispatch.h>
#include <ATen/ops/avg_pool2d_backward_cpu_dispatch.h>
#include <ATen/ops/avg_pool2d_cpu_dispatch.h>
#include <ATen/ops/avg_pool3d_backward_cpu_dispatch.h>
#include <ATen/ops/avg_pool3d_cpu_dispatch.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/max_pool2d_native.h>
#include <ATen/ops/max_pool2d_with_indices_backward.h>
#include <ATen/ops/max_pool2d_with_indices_cpu_dispatch.h>
#include <ATen/ops/max_pool3d_native.h>
#include <ATen/ops/max_pool3d_with_indices_backward.h>
#include <ATen/ops/max_pool3d_with_indices_cpu_dispatch.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/library.h>

#include <optional>
#include <tuple>

#include "kernels.hpp"

namespace poolgrad::aten {

// ---- where calls went ----

enum Op : int {
  kMax2, kMax3, kMaxIndex2, kMaxIndex3, kAvg2, kAvg3, kAvgBack2, kAvgBack3,
  kAdaptiveMax2, kAdaptiveMax3, kAdaptiveAvg2, kAdaptiveAvg3,
  kOps
};
constexpr const char* kOpNames[kOps] = {
    "max_pool2d", "max_pool3d", "max_pool2d_with_indices", "max_pool3d_with_indices",
    "avg_pool2d", "avg_pool3d", "avg_pool2d_backward", "avg_pool3d_backward",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d"};

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

// ---- maxima ----

using Pair = std::tuple<Tensor, Tensor>;

/// Compute values and taps into y and taps; return the way that the call takes.
inline Way choose_as_torch(const Windows& w, const Layout& layout, const Tensor& x, Tensor& y, Tensor& taps) {
  choose(w, x, y, taps);
  // torch takes the last NaN of a window; channels last in three dimensions it loses the depth of windows of -inf
  return special(y, layout.last && w.rank() == 3) ? kValues : kOurs;
}

inline bool suits(const Tensor& to, const Tensor& like, const Windows& w, const Layout& layout, at::ScalarType type, bool pooled) {
  if (!to.defined()) return true;
  if (to.scalar_type() != type || to.dim() != like.dim() || !to.is_contiguous(layout.format) || !to.is_cpu()) return false;
  if (to.is_alias_of(like)) return false;
  for (int64_t d = 0; d < to.dim(); ++d) {
    const int a = static_cast<int>(d - (to.dim() - w.rank()));
    if (to.size(d) != (a < 0 ? like.size(d) : pooled ? w.axis(a).size() : w.axis(a).n)) return false;
  }
  return true;
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
  if (a.divisor) return {Divisor::number, *a.divisor};
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
  if (a.divisor && *a.divisor <= 0) return nullptr;  // which torch refuses, or takes the sign of a zero from
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

/// Adaptive means: torch divides their sums by one length after the other. Their backward stays torch's, which is as fast.
inline Way adaptive_avg(int rank, const Tensor& x, IntArrayRef sizes, Tensor& y) {
  Layout layout;
  Shared w;
  if (const Way way = means_of(rank, x, layout, w, [&](const Layout& l) { return adaptive(x, rank, l, sizes); }); way != kOurs)
    return way;
  if (layout.last || !x.is_contiguous()) return kLayout;  // torch divides by one number there, but in the last lanes by two
  if (w->cells() > kAddedInTurn) return kSums;
  if (torch_is_fast(*w, layout, Work::sums, false)) return kFew;
  y = blank(x, *w, layout, x.scalar_type(), true);
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
  // At CPU too: a composite operator with a kernel at AutogradCPU alone would lose it in inference mode.
  for (const auto key : {c10::DispatchKey::AutogradCPU, c10::DispatchKey::CPU}) {
    auto& both = open(key);
    both.impl("max_pool2d", TORCH_FN(max_pool<2>));
    both.impl("max_pool3d", TORCH_FN(max_pool<3>));
  }
}

}  // namespace poolgrad::aten
