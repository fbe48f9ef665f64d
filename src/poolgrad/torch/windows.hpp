// The windows of a call as boundaries, with the core's plan for them: made once per shape and arguments, then found again.
#pragma once
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "poolgrad.h"

namespace poolgrad::aten {

using at::IntArrayRef;
using at::Tensor;

inline const pg_table* core = nullptr;  ///< the core's functions, from `connect`

/// Raise the error of a call of the core.
inline void check(int code, const pg_error& error) { TORCH_CHECK(code == PG_OK, "poolgrad: ", error.text); }

/// The windows along one axis: cells from `start` to `stop`; `span` counts the padding, too.
struct Axis {
  int64_t n = 1;
  std::vector<int64_t> start, stop, span;

  int64_t size() const { return static_cast<int64_t>(start.size()); }
  int64_t widest() const {
    int64_t most = 0;
    for (size_t j = 0; j < start.size(); ++j) most = std::max(most, stop[j] - start[j]);
    return most;
  }
  /// The largest number of windows over one cell, if boundaries never decrease; others do no harm.
  int64_t deepest() const {
    int64_t most = 0;
    for (size_t i = 0, j = 0; j < start.size(); ++j) {
      while (i <= j && stop[i] <= start[j]) ++i;
      most = std::max(most, static_cast<int64_t>(j - i + 1));
    }
    return most;
  }
};

/// All windows of a call over an array (outer, pooled axes, inner), and the plan of the core.
class Windows {
 public:
  Windows(std::vector<Axis> axes, int64_t outer, int64_t inner)
      : axes_(std::move(axes)), outer_(outer), inner_(inner), source_(outer * inner), dest_(outer * inner) {
    for (const Axis& a : axes_) {
      source_ *= a.n;
      dest_ *= a.size();
      const int64_t widest = a.widest();
      cells_ *= widest;
      depth_ *= a.deepest();
      for (size_t j = 0; j < a.start.size(); ++j) even_ &= a.stop[j] - a.start[j] == widest && a.span[j] == widest;
    }
  }
  Windows(const Windows&) = delete;
  ~Windows() {
    if (plan_) core->plan_drop(plan_);
  }

  /// The plan, made when a function of the core first needs it.
  const pg_plan* plan() const {
    std::call_once(made_, [&] {
      std::vector<pg_axis> rows;
      for (const Axis& a : axes_) {
        pg_axis row{};
        row.kind = PG_AXIS_WINDOWS;
        row.cells = a.n;
        row.windows = a.size();
        row.start = a.start.data();
        row.stop = a.stop.data();
        row.span = a.span.data();
        rows.push_back(row);
      }
      pg_error error;
      check(core->plan_new(outer_, inner_, static_cast<int32_t>(rows.size()), rows.data(), &plan_, &error), error);
    });
    return plan_;
  }
  const std::vector<Axis>& axes() const { return axes_; }
  int rank() const { return static_cast<int>(axes_.size()); }
  const Axis& axis(int a) const { return axes_[static_cast<size_t>(a)]; }
  int64_t outer() const { return outer_; }
  int64_t inner() const { return inner_; }
  int64_t source() const { return source_; }                    ///< elements of the input
  int64_t dest() const { return dest_; }                        ///< elements of the result
  int64_t tap_bytes() const { return cells_ > 256 ? 4 : 1; }    ///< bytes per tap
  int64_t cells() const { return cells_; }                      ///< cells of the largest window
  int64_t depth() const { return depth_; }                      ///< windows over one cell, at most
  bool even() const { return even_; }            ///< whether no edge cuts a window and no padding counts
  bool disjoint() const { return depth_ <= 1; }  ///< whether no two windows share a cell

 private:
  std::vector<Axis> axes_;
  int64_t outer_, inner_, source_, dest_, cells_ = 1, depth_ = 1;
  bool even_ = true;
  mutable std::once_flag made_;
  mutable pg_plan* plan_ = nullptr;
};

using Shared = std::shared_ptr<Windows>;

/// Integers that identify a call.
struct Key {
  std::array<int64_t, 56> v{};
  size_t size = 0;

  bool add(int64_t x) {
    if (size == v.size()) return false;
    v[size++] = x;
    return true;
  }
  bool operator==(const Key& o) const {
    return size == o.size && !std::memcmp(v.data(), o.v.data(), size * sizeof(int64_t));
  }
};

struct KeyHash {
  size_t operator()(const Key& key) const {
    uint64_t h = key.size;
    for (size_t i = 0; i < key.size; ++i) {
      h = (h ^ static_cast<uint64_t>(key.v[i])) * 0x9E3779B97F4A7C15u;
      h ^= h >> 32;
    }
    return static_cast<size_t>(h);
  }
};

/// A table of at most 1,024 values that several threads may ask; a full table starts anew.
template <class Value>
class Table {
 public:
  Value find(const Key& key) {
    const std::lock_guard guard(lock_);
    const auto found = kept_.find(key);
    return found == kept_.end() ? Value() : found->second;
  }
  void keep(const Key& key, Value value) {
    std::unordered_map<Key, Value, KeyHash> old;  // destroyed without the lock
    const std::lock_guard guard(lock_);
    if (kept_.size() >= 1024) kept_.swap(old);
    std::swap(kept_[key], value);  // what was kept is destroyed without the lock, too
  }

 private:
  std::mutex lock_;
  std::unordered_map<Key, Value, KeyHash> kept_;
};

constexpr int64_t kMost = (int64_t{1} << 31) - 1;  // which torch's kernels take as sizes
constexpr int64_t kLong = 1 << 16;                 // windows along the axes of a plan that is kept
constexpr int64_t kMany = 1 << 20;                 // windows along an axis, of more of which torch judges

/// The order of an input's axes in memory.
struct Layout {
  bool last = false;  ///< the channels lie behind the pooled axes
  at::MemoryFormat format = at::MemoryFormat::Contiguous;
  int64_t outer = 0, inner = 1;
};

/// Return the layout that torch's kernels choose for x, or outer = 0 if torch should pool it.
inline Layout layout_of(const Tensor& x, int rank) {
  Layout made;
  const int64_t dim = x.dim();
  if (dim != rank + 1 && dim != rank + 2) return made;
  const bool batch = dim == rank + 2;
  const auto suggested = x.suggest_memory_format();
  if (suggested != at::MemoryFormat::Contiguous) {
    if (!batch || suggested != (rank == 2 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d))
      return made;
    made.last = true;
    made.format = suggested;
  } else if (!batch && rank == 3 && !x.is_contiguous()) {
    return made;  // torch looks for channels last in a way of its own
  }
  const auto sizes = x.sizes();
  made.outer = made.last || !batch ? sizes[0] : sizes[0] * sizes[1];
  made.inner = made.last ? sizes[1] : 1;
  if (!made.inner) made.outer = 0;
  return made;
}

/// Return the layout in the order of the axes.
inline Layout plain_layout(const Tensor& x, int rank) {
  Layout made;
  if (x.dim() == rank + 1 || x.dim() == rank + 2) made.outer = x.dim() == rank + 1 ? x.size(0) : x.size(0) * x.size(1);
  return made;
}

inline Table<Shared>& kept_windows() {
  static Table<Shared> table;
  return table;
}

inline Shared keep(const Key& key, std::vector<Axis> axes, const Layout& layout) {
  int64_t entries = 0;
  for (const Axis& a : axes) entries += a.size();
  auto made = std::make_shared<Windows>(std::move(axes), layout.outer, layout.inner);
  if (entries <= kLong) kept_windows().keep(key, made);
  return made;
}

/// One number per axis, from one or `rank` of them.
inline int64_t each(IntArrayRef list, int a) { return list[list.size() == 1 ? 0 : static_cast<size_t>(a)]; }
inline bool fits(IntArrayRef list, int rank) { return list.size() == 1 || list.size() == static_cast<size_t>(rank); }

/// Return the windows of sliding pools by torch's rules, or null if torch should judge the arguments.
inline Shared sliding(const Tensor& x, int rank, const Layout& layout, IntArrayRef k, IntArrayRef s, IntArrayRef p,
                      IntArrayRef d, bool ceil_mode) {
  if (!layout.outer || !fits(k, rank) || !fits(p, rank) || !fits(d, rank) || (!s.empty() && !fits(s, rank)))
    return nullptr;
  Key key;
  key.add(rank * 4 + layout.last * 2 + ceil_mode);
  key.add(layout.outer);
  key.add(layout.inner);
  for (int a = 0; a < rank; ++a) {
    const int64_t n = x.size(a - rank), ka = each(k, a), sa = s.empty() ? ka : each(s, a), pa = each(p, a);
    if (n < 1 || n > kMost || ka < 1 || ka > kMost / 4 || sa < 1 || sa > kMost / 4 || pa < 0 || 2 * pa > ka ||
        each(d, a) != 1)
      return nullptr;
    for (const int64_t word : {n, ka, sa, pa}) key.add(word);
  }
  if (auto found = kept_windows().find(key)) return found;
  std::vector<Axis> axes(static_cast<size_t>(rank));
  for (int a = 0; a < rank; ++a) {
    const int64_t n = x.size(a - rank), ka = each(k, a), sa = s.empty() ? ka : each(s, a), pa = each(p, a);
    const int64_t over = n + 2 * pa - ka + (ceil_mode ? sa - 1 : 0);
    int64_t m = over < 0 ? 0 : over / sa + 1;
    if (ceil_mode && m > 0 && (m - 1) * sa >= n + pa) --m;
    if (m < 1) return nullptr;
    Axis& axis = axes[static_cast<size_t>(a)];
    axis.n = n;
    for (int64_t j = 0; j < m; ++j) {
      const int64_t from = j * sa - pa, to = std::min(from + ka, n + pa);
      axis.start.push_back(std::max<int64_t>(from, 0));
      axis.stop.push_back(std::min(to, n));
      axis.span.push_back(to - from);
      if (axis.start.back() >= axis.stop.back()) return nullptr;  // a window of padding alone
    }
  }
  return keep(key, std::move(axes), layout);
}

/// Return the windows of adaptive pools, or null if torch should judge the arguments.
inline Shared adaptive(const Tensor& x, int rank, const Layout& layout, IntArrayRef sizes) {
  if (!layout.outer || sizes.size() != static_cast<size_t>(rank)) return nullptr;
  Key key;
  key.add(64 + rank * 4 + layout.last * 2);
  key.add(layout.outer);
  key.add(layout.inner);
  for (int a = 0; a < rank; ++a) {
    const int64_t n = x.size(a - rank), m = sizes[static_cast<size_t>(a)];
    if (n < 1 || n > kMost || m < 1 || m > kMany) return nullptr;
    key.add(n);
    key.add(m);
  }
  if (auto found = kept_windows().find(key)) return found;
  std::vector<Axis> axes(static_cast<size_t>(rank));
  for (int a = 0; a < rank; ++a) {
    const int64_t n = x.size(a - rank), m = sizes[static_cast<size_t>(a)];
    Axis& axis = axes[static_cast<size_t>(a)];
    axis.n = n;
    for (int64_t j = 0; j < m; ++j) {
      axis.start.push_back(j * n / m);
      axis.stop.push_back(((j + 1) * n + m - 1) / m);
      axis.span.push_back(axis.stop.back() - axis.start.back());
    }
  }
  return keep(key, std::move(axes), layout);
}

}  // namespace poolgrad::aten
