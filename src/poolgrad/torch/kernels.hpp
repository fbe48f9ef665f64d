// The core's verbs on the memory of tensors, and the few loops that torch's results need around them.
#pragma once
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <c10/util/SmallVector.h>

#include "windows.hpp"

namespace poolgrad::aten {

/// Return the core's number of an element type, or -1.
inline int number_of(at::ScalarType type) {
  switch (type) {
    case at::kHalf: return PG_F16;
    case at::kBFloat16: return PG_BF16;
    case at::kFloat: return PG_F32;
    case at::kDouble: return PG_F64;
    case at::kChar: return PG_I8;
    case at::kByte: return PG_U8;
    case at::kShort: return PG_I16;
    case at::kInt: return PG_I32;
    case at::kLong: return PG_I64;
    default: return -1;
  }
}

inline bool floating(int type) { return type <= PG_F64; }
inline bool halves(int type) { return type <= PG_BF16; }

/// Return the pooled shape, or that of the input.
inline c10::SmallVector<int64_t, 5> sizes_of(const Tensor& like, const Windows& w, bool pooled) {
  c10::SmallVector<int64_t, 5> sizes(like.sizes().begin(), like.sizes().end());
  for (int a = 0; a < w.rank(); ++a)
    sizes[sizes.size() - static_cast<size_t>(w.rank() - a)] = pooled ? w.axis(a).size() : w.axis(a).n;
  return sizes;
}

/// Return an empty tensor of the pooled shape (or of the shape of the input) in the layout of the input.
inline Tensor blank(const Tensor& like, const Windows& w, const Layout& layout, at::ScalarType type, bool pooled) {
  return at::empty(sizes_of(like, w, pooled), like.options().dtype(type), layout.format);
}

inline at::ScalarType tap_type(const Windows& w) { return w.tap_bytes() == 1 ? at::kByte : at::kInt; }

/// Run the core's tasks on torch's threads.
inline void on_torchs_threads(void*, int64_t tasks, void (*task)(void*, int64_t), void* argument) {
  at::parallel_for(0, tasks, 1, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) task(argument, i);
  });
}

/// As many threads as torch may use here: one inside a parallel region.
inline pg_run threads() {
  const int most = at::in_parallel_region() ? 1 : at::get_num_threads();
  return {most, most > 1 ? on_torchs_threads : nullptr, nullptr};
}

/// Call the core; ask for the text of an error only after one, since writing it takes longer than a small pool.
template <class F>
void call(F&& f) {
  const pg_run run = threads();
  if (f(&run, nullptr) == PG_OK) return;
  pg_error error;
  check(f(&run, &error), error);
}

/// Return whether a call of the core was taken.
template <class F>
bool taken(F&& f) {
  const pg_run run = threads();
  return f(&run, nullptr) == PG_OK;
}

inline pg_input in(const Tensor& t) { return pg_in(t.const_data_ptr(), t.numel()); }
inline pg_output out(Tensor& t) { return pg_out(t.mutable_data_ptr(), t.numel()); }

/// Find the best cell of each window.
inline void select(const Windows& w, const Tensor& x, Tensor& y, bool least = false) {
  call([&](const pg_run* run, pg_error* error) {
    return core->select(w.plan(), run, number_of(x.scalar_type()), PG_BEST_PROPAGATE_NAN, least, in(x), out(y), error);
  });
}

/// Find the best cell of each window and its tap.
inline void choose(const Windows& w, const Tensor& x, Tensor& y, Tensor& taps, bool least = false) {
  call([&](const pg_run* run, pg_error* error) {
    return core->choose(w.plan(), run, number_of(x.scalar_type()), PG_BEST_PROPAGATE_NAN, least, in(x), out(y), out(taps), error);
  });
}

/// Add each cell of g at its tap; return false if a tap is outside its window.
inline bool place(const Windows& w, const Tensor& g, const Tensor& taps, Tensor& dx) {
  return taken([&](const pg_run* run, pg_error* error) {
    return core->place(w.plan(), run, number_of(g.scalar_type()), in(g), in(taps), out(dx), error);
  });
}

inline void fold(const Windows& w, pg_mean mean, const Tensor& x, Tensor& y) {
  call([&](const pg_run* run, pg_error* error) {
    return core->fold(w.plan(), run, number_of(x.scalar_type()), mean, in(x), out(y), error);
  });
}

/// Add up the windows, and divide by their spans or by a number.
inline void average(const Windows& w, pg_divisor divisor, double number, const Tensor& x, Tensor& y) {
  call([&](const pg_run* run, pg_error* error) {
    return core->average(w.plan(), run, number_of(x.scalar_type()), divisor, number, in(x), out(y), error);
  });
}

/// Add up the squares of the windows; y is a float for halves.
inline void squares(const Windows& w, const Tensor& x, Tensor& y) {
  call([&](const pg_run* run, pg_error* error) {
    return core->squares(w.plan(), run, number_of(x.scalar_type()), in(x), out(y), error);
  });
}

inline void spread(const Windows& w, pg_share share, const Tensor& g, Tensor& dx) {
  call([&](const pg_run* run, pg_error* error) {
    return core->spread(w.plan(), run, number_of(g.scalar_type()), share, 0, in(g), out(dx), error);
  });
}

constexpr int64_t kGrain = 1 << 15;  // elements that are worth a thread

/// Call f(from, to) over stretches of outer items of `each` elements, on torch's threads if that pays.
template <class F>
void over_items(int64_t items, int64_t each, F&& f) {
  at::parallel_for(0, items, std::max<int64_t>(1, kGrain / std::max<int64_t>(each, 1)), f);
}

// ---- maxima: what torch numbers and treats differently ----

template <class Bits>
bool any_special(const Bits* y, int64_t n, Bits infinity, bool lowest) {
  constexpr Bits kMagnitude = static_cast<Bits>(~Bits{0}) >> 1;
  const Bits minus = static_cast<Bits>(infinity | static_cast<Bits>(~kMagnitude));
  Bits found = 0;
  if (lowest)
    for (int64_t i = 0; i < n; ++i) found |= static_cast<Bits>(y[i] == minus);
  for (int64_t i = 0; i < n; ++i) found |= static_cast<Bits>((y[i] & kMagnitude) > infinity);
  return found;
}

/// Return whether y holds NaN, or minus infinity if `lowest`.
inline bool special(const Tensor& y, bool lowest = false) {
  const int type = number_of(y.scalar_type());
  if (!floating(type)) return false;
  std::atomic<bool> found = false;
  const void* data = y.const_data_ptr();
  at::parallel_for(0, y.numel(), kGrain, [&](int64_t a, int64_t b) {
    bool here = false;
    if (type == PG_F32) here = any_special<uint32_t>(static_cast<const uint32_t*>(data) + a, b - a, 0x7F800000, lowest);
    if (type == PG_F64)
      here = any_special<uint64_t>(static_cast<const uint64_t*>(data) + a, b - a, 0x7FF0000000000000, lowest);
    if (halves(type))
      here = any_special<uint16_t>(static_cast<const uint16_t*>(data) + a, b - a, type == PG_BF16 ? 0x7F80 : 0x7C00, lowest);
    if (here) found = true;
  });
  return found;
}

/// The positions of all taps of windows of equal lengths, from the window's first cell.
class Steps {
 public:
  explicit Steps(const Windows& w) {
    const int rank = w.rank();
    const Axis& last = w.axis(rank - 1);
    for (int64_t j = 0; j < last.size(); ++j) kind_.push_back(number(lengths_, last.stop[j] - last.start[j]));
    const Axis* middle = rank == 3 ? &w.axis(1) : nullptr;
    std::vector<int64_t> heights;
    if (middle)
      for (int64_t j = 0; j < middle->size(); ++j) row_kind_.push_back(number(heights, middle->stop[j] - middle->start[j]));
    else
      heights.push_back(1);
    const int64_t row = last.n, plane = middle ? last.n * middle->n : 0;
    const int64_t deep = rank == 1 ? 1 : w.axis(0).widest();
    for (const int64_t height : heights)
      for (const int64_t length : lengths_) {
        std::vector<int64_t> table;
        for (int64_t z = 0; z < deep; ++z)
          for (int64_t y = 0; y < height; ++y)
            for (int64_t x = 0; x < length; ++x)
              table.push_back(middle ? z * plane + y * row + x : z * row + x);
        tables_.push_back(std::move(table));
      }
  }
  const int64_t* table(int64_t middle, int64_t column) const {
    const size_t row = row_kind_.empty() ? 0 : row_kind_[static_cast<size_t>(middle)];
    return tables_[row * lengths_.size() + kind_[static_cast<size_t>(column)]].data();
  }

 private:
  static size_t number(std::vector<int64_t>& known, int64_t value) {
    const auto found = std::find(known.begin(), known.end(), value);
    const auto at = static_cast<size_t>(found - known.begin());
    if (found == known.end()) known.push_back(value);
    return at;
  }
  std::vector<int64_t> lengths_;
  std::vector<size_t> kind_, row_kind_;
  std::vector<std::vector<int64_t>> tables_;
};

template <class Tap>
void number_cells(const Windows& w, const Steps& steps, const Tap* taps, int64_t* index, int64_t from, int64_t to) {
  const int rank = w.rank();
  const Axis& last = w.axis(rank - 1);
  const int64_t depths = rank == 3 ? w.axis(0).size() : 1, rows = rank == 1 ? 1 : w.axis(rank - 2).size();
  const int64_t columns = last.size(), inner = w.inner(), each = depths * rows * columns * inner;
  taps += from * each;
  index += from * each;
  for (int64_t item = from; item < to; ++item)
    for (int64_t z = 0; z < depths; ++z)
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t height = rank == 1 ? 0 : w.axis(rank - 2).start[r];
        const int64_t depth = rank == 3 ? w.axis(0).start[z] * w.axis(1).n : 0;
        const int64_t base = (depth + height) * last.n;
        for (int64_t c = 0; c < columns; ++c) {
          const int64_t here = base + last.start[c];
          const int64_t* table = steps.table(r, c);
          for (int64_t i = 0; i < inner; ++i) *index++ = here + table[*taps++];
        }
      }
}

/// Write the positions of the taps in their planes: torch's indices.
inline void positions(const Windows& w, const Tensor& taps, Tensor& index) {
  const Steps steps(w);
  over_items(w.outer(), w.dest() / w.outer(), [&](int64_t from, int64_t to) {
    int64_t* out = index.mutable_data_ptr<int64_t>();
    if (w.tap_bytes() == 1)
      number_cells(w, steps, static_cast<const uint8_t*>(taps.const_data_ptr()), out, from, to);
    else
      number_cells(w, steps, static_cast<const uint32_t*>(taps.const_data_ptr()), out, from, to);
  });
}

// ---- means: sums divided as torch divides them ----

/// By what torch divides a sum: one number, the cells of a window, the cells and padding, or one length after the other.
struct Divisor {
  enum Kind { number, cells, spans, lengths } kind = cells;
  double by = 1;
};

template <class T>
void divide(const Windows& w, Divisor d, const T* from, T* to, int64_t items) {
  const int rank = w.rank();
  const Axis& last = w.axis(rank - 1);
  const int64_t depths = rank == 3 ? w.axis(0).size() : 1, rows = rank == 1 ? 1 : w.axis(rank - 2).size();
  const auto length = [&](const Axis& a, int64_t j) { return d.kind == Divisor::spans ? a.span[j] : a.stop[j] - a.start[j]; };
  for (int64_t item = 0; item < items; ++item)
    for (int64_t z = 0; z < depths; ++z)
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t deep = rank == 3 ? length(w.axis(0), z) : 1, high = rank == 1 ? 1 : length(w.axis(rank - 2), r);
        for (int64_t c = 0; c < last.size(); ++c) {
          const int64_t wide = length(last, c);
          if (d.kind == Divisor::lengths) {
            const T by[3] = {static_cast<T>(deep), static_cast<T>(high), static_cast<T>(wide)};
            for (int64_t i = 0; i < w.inner(); ++i) *to++ = *from++ / by[0] / by[1] / by[2];
          } else {
            const T by = d.kind == Divisor::number ? static_cast<T>(d.by) : static_cast<T>(deep * high * wide);
            for (int64_t i = 0; i < w.inner(); ++i) *to++ = *from++ / by;
          }
        }
      }
}

/// Divide the sums of all windows; `to` may be `from`.
inline void divide(const Windows& w, Divisor d, const Tensor& from, Tensor& to) {
  const int64_t each = w.dest() / w.outer();
  over_items(w.outer(), each, [&](int64_t a, int64_t b) {
    if (from.scalar_type() == at::kFloat)
      divide(w, d, static_cast<const float*>(from.const_data_ptr()) + a * each,
             static_cast<float*>(to.mutable_data_ptr()) + a * each, b - a);
    else
      divide(w, d, static_cast<const double*>(from.const_data_ptr()) + a * each,
             static_cast<double*>(to.mutable_data_ptr()) + a * each, b - a);
  });
}

}  // namespace poolgrad::aten
