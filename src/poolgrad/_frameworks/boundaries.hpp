// Pool over windows whose boundaries come with the call, as in spec.py: shared by the extensions that run inside compiled programs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "few_cells.hpp"
#include "poolgrad.h"

namespace poolgrad {

/// A call that is refused; `code` is a pg_code.
struct Refused {
  int code;
  std::string text;
};

/// Numbers that somebody else owns.
template <class T>
struct Span {
  const T* data;
  size_t size;
  const T& operator[](size_t i) const { return data[i]; }
  size_t bytes() const { return size * sizeof(T); }
  bool operator==(const std::vector<T>& kept) const { return size == kept.size() && (!size || !std::memcmp(data, kept.data(), bytes())); }
};
using Numbers = Span<int64_t>;

/// A bfloat16, for plain loops.
struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  explicit BFloat16(float value) {
    uint32_t wide;
    std::memcpy(&wide, &value, sizeof wide);
    bits = value != value ? 0x7fc0 : static_cast<uint16_t>((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
  }
  operator float() const {
    const uint32_t wide = uint32_t{bits} << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
  }
};
template <>
inline constexpr bool kIsHalf<BFloat16> = true;

/// An array of a call: `type` is a pg_dtype, or -1.
struct Array {
  void* data;
  int64_t size;
  int32_t type;
  Numbers dims;
  pg_input in() const { return pg_in(data, size); }
  pg_output out() const { return pg_out(data, size); }
};

/// Call a function of the core; throw its error.
template <class F, class... Arguments>
void call(F* function, Arguments... arguments) {
  pg_error error;
  if (const int code = function(arguments..., &error); code != PG_OK) throw Refused{code, error.text};
}

/// Windows as a call brought them, and what the core makes of them.
struct Windows {
  std::vector<int64_t> dims, axes;
  std::vector<int32_t> rows;
  int64_t outer = 1, inner = 1;
  std::vector<int64_t> n, m, start, stop, span;
  std::unique_ptr<pg_plan, pg_plan_drop_function*> plan;
  pg_plan_info info{};
  Few few;                     ///< empty if plain loops are not the shortest way
  bool added_in_turn = false;  ///< whether plain loops add in the order of the core

  /// `axes` are triples (dimension, cells, windows); `rows` are three, start, stop and span, with a column per window. Where they
  /// would be too many, dimensions between two pooled ones become one axis.
  Windows(const pg_table& core, Numbers dims_, Numbers axes_, Span<int32_t> rows_)
      : dims(dims_.data, dims_.data + dims_.size), axes(axes_.data, axes_.data + axes_.size), rows(rows_.data, rows_.data + rows_.size), plan(nullptr, core.plan_drop) {
    if (axes.empty() || axes.size() % 3 || rows.size() % 3) throw Refused{PG_INVALID, "windows: unknown form"};
    for (size_t i = 0; i < axes.size(); i += 3)
      if (axes[i] < 0 || static_cast<size_t>(axes[i]) >= dims.size() || (i && axes[i] <= axes[i - 3])) throw Refused{PG_INVALID, "windows: unknown axes"};
    read();
    std::vector<pg_axis> made;
    const int64_t *first = start.data(), *last = stop.data();
    for (size_t a = 0; a < n.size(); ++a) {
      pg_axis axis{};
      axis.kind = PG_AXIS_WINDOWS;
      axis.cells = n[a];
      axis.windows = m[a];
      axis.start = first;
      axis.stop = last;
      first += axis.windows;
      last += axis.windows;
      made.push_back(axis);
    }
    pg_plan* drawn = nullptr;
    call(core.plan_new, outer, inner, static_cast<int32_t>(made.size()), made.data(), &drawn);
    plan.reset(drawn);
    call(core.plan_describe, drawn, &info);
    list();
  }

 private:
  /// List the cells of all windows if they are few, and each window has one.
  void list() {
    std::vector<Line> lines;
    int64_t cells = 1, over = 1;
    for (size_t a = 0, at = 0; a < n.size(); at += static_cast<size_t>(m[a++])) {
      const Line line{n[a], m[a], start.data() + at, stop.data() + at, span.data() + at};
      int64_t widest = 0, deepest = 0;
      for (int64_t i = 0, j = 0; j < line.windows; ++j) {
        if (line.length(j) < 1) return;
        while (line.stop[i] <= line.start[j]) ++i;
        widest = std::max(widest, line.length(j));
        deepest = std::max(deepest, j - i + 1);
      }
      cells *= widest;
      over *= deepest;
      lines.push_back(line);
    }
    if (info.taps != PG_U8 || info.source > kFewCells || info.dest > kFewCells || info.dest * cells > kFewSteps) return;
    few = few_of(outer, inner, lines);
    added_in_turn = cells <= kAddedInTurn && over <= kAddedInTurn;
  }

  void read() {
    constexpr size_t kMost = 16;
    const size_t first = static_cast<size_t>(axes[0]), last = static_cast<size_t>(axes[axes.size() - 3]), columns = rows.size() / 3;
    for (size_t d = 0; d < first; ++d) outer *= dims[d];
    for (size_t d = last + 1; d < dims.size(); ++d) inner *= dims[d];
    size_t column = 0, d = first;
    for (size_t at = 0; at < axes.size(); at += 3, ++d) {
      int64_t between = 1;
      for (; d < static_cast<size_t>(axes[at]); ++d) {
        if (last - first < kMost) keep(dims[d]);
        else between *= dims[d];
      }
      if (between != 1) keep(between);
      const int64_t windows = axes[at + 2];
      if (axes[at + 1] != dims[d]) throw Refused{PG_INVALID, "windows: they are over axes of another length"};
      if (windows < 0 || static_cast<uint64_t>(windows) > columns - column) throw Refused{PG_INVALID, "windows: there are fewer of them than the result has cells"};
      n.push_back(dims[d]);
      m.push_back(windows);
      for (const size_t end = column + static_cast<size_t>(windows); column < end; ++column) {
        start.push_back(rows[column]);
        stop.push_back(rows[columns + column]);
        span.push_back(rows[2 * columns + column]);
      }
    }
  }

  /// Add an axis that is not pooled.
  void keep(int64_t cells) {
    n.push_back(cells);
    m.push_back(cells);
    for (int64_t i = 0; i < cells; ++i) {
      start.push_back(i);
      stop.push_back(i + 1);
      span.push_back(1);
    }
  }
};
using Kept = std::shared_ptr<const Windows>;

/// Return the windows of a call. They are kept, since a program brings the same ones at every call: each thread compares with its last few
/// before it looks among all, where it needs a lock and a copy. What is compared is what was read: nobody reads `rows` again.
inline Kept windows_of(const pg_table& core, Numbers dims, Numbers axes, Span<int32_t> rows) {
  static thread_local std::array<Kept, 8> recent;
  static thread_local size_t oldest = 0;
  for (const Kept& kept : recent)
    if (kept && dims == kept->dims && axes == kept->axes && rows == kept->rows) return kept;
  std::string key;
  key.reserve(dims.bytes() + axes.bytes() + rows.bytes() + 2);
  for (const std::string_view part : {std::string_view(reinterpret_cast<const char*>(dims.data), dims.bytes()), std::string_view("|"),
                                      std::string_view(reinterpret_cast<const char*>(axes.data), axes.bytes()), std::string_view("|"),
                                      std::string_view(reinterpret_cast<const char*>(rows.data), rows.bytes())})
    key += part;
  static std::mutex lock;
  static std::unordered_map<std::string, Kept> all;
  const auto remember = [](const Kept& kept) { return recent[oldest++ % recent.size()] = kept; };
  {
    const std::lock_guard guard(lock);
    if (const auto found = all.find(key); found != all.end()) return remember(found->second);
  }
  std::vector<int32_t> copied(rows.size);  // another thread may write an array of NumPy's meanwhile: plan and key are of the same numbers
  if (rows.size) std::memcpy(copied.data(), key.data() + key.size() - rows.bytes(), rows.bytes());
  const auto made = std::make_shared<const Windows>(core, dims, axes, Span<int32_t>{copied.data(), copied.size()});
  const std::lock_guard guard(lock);
  if (all.size() >= 256) all.clear();
  all.emplace(std::move(key), made);
  return remember(made);
}

/// A call over boundaries, without its arrays.
struct Pool {
  const pg_table& core;
  pg_run how;
  Numbers axes;
  Span<int32_t> rows;

  /// y and taps: the best cell of each window, and its number.
  void choose(const Array& x, const Array& y, const Array& taps, bool least, bool nan_wins) const {
    const Kept w = windows_of(core, x.dims, axes, rows);
    check_taps(taps, *w);
    const int32_t type = typed(x, y);
    if (nan_wins && fits(*w, x, w->info.source, y, w->info.dest) && taps.size == y.size) {
      const bool done = with_type(type, [&](auto* t) {
        choose_few(w->few, least, at(t, x), at(t, y), static_cast<uint8_t*>(taps.data));
        return true;
      });
      if (done) return;
    }
    const int32_t best = nan_wins ? PG_BEST_PROPAGATE_NAN : PG_BEST_IGNORE_NAN;
    call(core.choose, w->plan.get(), &how, type, best, static_cast<int>(least), x.in(), y.out(), taps.out());
  }

  /// result: v at the taps; if `back`, v added at the taps.
  void follow(const Array& v, const Array& taps, const Array& result, bool back) const {
    const Kept w = windows_of(core, (back ? result : v).dims, axes, rows);
    check_taps(taps, *w);
    const int32_t type = typed(v, result);
    const int64_t from = back ? w->info.dest : w->info.source, to = back ? w->info.source : w->info.dest;
    if (fits(*w, v, from, result, to) && taps.size == w->info.dest) {
      const bool done = with_type(type, [&](auto* t) {
        const auto* own = static_cast<const uint8_t*>(taps.data);
        return back ? place_few(w->few, result.size, at(t, v), own, at(t, result)) : pick_few(w->few, at(t, v), own, at(t, result));
      });
      if (done) return;
    }
    call(back ? core.place : core.pick, w->plan.get(), &how, type, v.in(), taps.in(), result.out());
  }

  /// result: sums, or means, or sums divided by a factor or by the spans of their windows; if `back`, the transpose.
  void fold(const Array& v, const Array& result, bool back, bool mean, bool spans, double factor) const {
    const Kept w = windows_of(core, (back ? result : v).dims, axes, rows);
    const int32_t type = typed(v, result);
    if (type > PG_F64) throw Refused{PG_INVALID, "v: got integers, wanted a floating type"};
    const bool divided = spans || factor != 1;
    const int64_t from = back ? w->info.dest : w->info.source, to = back ? w->info.source : w->info.dest;
    if (w->added_in_turn && !(divided && type <= PG_BF16) && fits(*w, v, from, result, to)) {
      const bool done = with_type(type, [&](auto* t) {
        fold_plainly(w->few, back, mean && !divided, spans, factor, result.size, at(t, v), at(t, result));
        return true;
      });
      if (done) return;
    }
    if (!back) {
      call(core.fold, w->plan.get(), &how, type, int32_t{mean ? PG_MEAN_ONCE : PG_MEAN_TOTAL}, v.in(), result.out());
      if (divided) divide(*w, type, result.data, result.data, factor, spans);
      return;
    }
    if (v.size != w->info.dest) throw Refused{PG_INVALID, "v: got another number of elements than there are windows"};
    const int32_t share = !mean ? PG_SHARE_WHOLE : type <= PG_BF16 ? PG_SHARE_QUOTIENT : PG_SHARE_RECIPROCAL;
    const std::unique_ptr<char[]> shares(divided ? new char[static_cast<size_t>(v.size) * (type == PG_F64 ? 8 : 4)] : nullptr);
    if (divided) divide(*w, type, v.data, shares.get(), factor, spans);
    const pg_input g = divided ? pg_in(shares.get(), w->info.dest) : v.in();
    call(core.spread, w->plan.get(), &how, type, share, 0, g, result.out());
  }

 private:
  static void check_taps(const Array& taps, const Windows& w) {
    if (taps.type != w.info.taps) throw Refused{PG_INVALID, "taps: got another type than the windows want"};
  }

  static int32_t typed(const Array& in, const Array& out) {
    if (in.type < 0 || in.type != out.type) throw Refused{PG_INVALID, "x: got an element type that cannot be pooled"};
    return in.type;
  }

  static bool fits(const Windows& w, const Array& in, int64_t from, const Array& out, int64_t to) {
    return w.few.size() > 0 && in.size == from && out.size == to;
  }

  /// Call f(a pointer of the type of elements, whose value is null); return false for types that are left to the core.
  template <class F>
  static bool with_type(int32_t type, F&& f) {
    switch (type) {
      case PG_F32: return f(static_cast<float*>(nullptr));
      case PG_F64: return f(static_cast<double*>(nullptr));
      case PG_BF16: return f(static_cast<BFloat16*>(nullptr));
      default: return false;
    }
  }

  template <class T>
  static T* at(T*, const Array& array) { return static_cast<T*>(array.data); }

  /// As the core: a mean divides by the cells, and shares of floats are multiplied by the reciprocal.
  template <class T>
  static void fold_plainly(const Few& few, bool back, bool mean, bool spans, double factor, int64_t cells, const T* from, T* to) {
    using Sum = std::conditional_t<kIsHalf<T>, double, T>;
    const bool whole = !mean && !spans && factor == 1, multiply = back && mean && !kIsHalf<T>;
    const auto share = [=, &few](Sum part, size_t r) {
      if (whole) return part;
      const double by = mean ? few.count(r) : spans ? few.spans[r] : factor;
      return multiply ? part * static_cast<Sum>(1.0 / by) : part / static_cast<Sum>(by);
    };
    back ? spread_few<Sum>(few, cells, from, to, share) : fold_few<Sum>(few, from, to, share);
  }

  static void divide(const Windows& w, int32_t type, const void* from, void* to, double factor, bool spans) {
    if (type == PG_F32) return divide(w, static_cast<const float*>(from), static_cast<float*>(to), factor, spans);
    if (type == PG_F64) return divide(w, static_cast<const double*>(from), static_cast<double*>(to), factor, spans);
    throw Refused{PG_INVALID, "divisor: got an element type that is not divided here"};
  }

  /// to[i] = from[i] / (factor, or the product of the window's spans), in the element's own type.
  template <class T>
  static void divide(const Windows& w, const T* from, T* to, double factor, bool spans) {
    std::vector<int64_t> by{1};
    const int64_t* span = w.span.data();
    for (const int64_t m : w.m) {
      std::vector<int64_t> longer;
      for (const int64_t b : by)
        for (int64_t j = 0; j < m; ++j) longer.push_back(b * span[j]);
      by = std::move(longer);
      span += m;
    }
    for (int64_t o = 0, i = 0; o < w.outer; ++o)
      for (const int64_t b : by) {
        const T divisor = static_cast<T>(spans ? static_cast<double>(b) : factor);
        for (const int64_t end = i + w.inner; i < end; ++i) to[i] = from[i] / divisor;
      }
  }
};

}  // namespace poolgrad
