// Pools in a wider type than their tensors have: piece by piece, so that the wider numbers stay in the cache.
#pragma once
#include <ATen/ops/abs.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sgn.h>
#include <ATen/ops/sqrt.h>

#include "few.hpp"

namespace poolgrad::aten {

constexpr int64_t kPiece = 1 << 16;  // elements of a piece, about
constexpr int64_t kPlanes = 16;      // planes that fill the core's vectors, if channels do not

/// A part of a call: its windows, and where its elements begin.
struct Piece {
  Shared w;  ///< null if no window reads these cells
  int64_t source = 0, dest = 0, cells = 0;
};

/// The pieces of a call, for the sums over windows or for their transpose.
class Pieces {
 public:
  Pieces(const Windows& w, bool back) {
    const int64_t item = w.source() / w.outer(), result = w.dest() / w.outer();
    // the core adds more than 64 numbers by their positions, which a band would change
    if (item <= kPiece || (back ? w.depth() : w.cells()) > kAddedInTurn) {
      by_items(w, item, result);
      return;
    }
    const std::vector<Piece> bands = back ? bands_of_cells(w, item, result) : bands_of_windows(w, item, result);
    for (int64_t i = 0; i < w.outer(); ++i)
      for (const Piece& band : bands)
        all_.push_back({band.w, band.source + i * item, band.dest + i * result, band.cells});
  }
  /// Call f(piece) for all pieces, on torch's threads.
  template <class F>
  void each(F&& f) const {
    at::parallel_for(0, static_cast<int64_t>(all_.size()), 1, [&](int64_t from, int64_t to) {
      const at::AutoDispatchBelowADInplaceOrView guard;
      for (int64_t i = from; i < to; ++i) f(all_[static_cast<size_t>(i)]);
    });
  }

 private:
  void by_items(const Windows& w, int64_t item, int64_t result) {
    int64_t group = std::max<int64_t>(1, kPiece / item);
    if (w.inner() < kPlanes && group * 4 >= kPlanes) group = (group + kPlanes - 1) / kPlanes * kPlanes;
    group = std::min(w.outer(), group);
    const auto of = [&](int64_t items) { return std::make_shared<Windows>(w.axes(), items, w.inner()); };
    const Shared usual = of(group);
    for (int64_t i = 0; i < w.outer(); i += group) {
      const int64_t items = std::min(group, w.outer() - i);
      all_.push_back({items == group ? usual : of(items), i * item, i * result, items * item});
    }
  }
  /// The windows along the first axis, some at a time: a piece has the cells that they read.
  static std::vector<Piece> bands_of_windows(const Windows& w, int64_t item, int64_t result) {
    const Axis& axis = w.axis(0);
    const int64_t many = axis.size(), row = item / axis.n, each = result / many;
    const int64_t most = std::max<int64_t>(1, many * kPiece / item);
    std::vector<Piece> made;
    for (int64_t from = 0; from < many; from += most) {
      const int64_t to = std::min(many, from + most);
      const int64_t begin = axis.start[static_cast<size_t>(from)], end = axis.stop[static_cast<size_t>(to - 1)];
      made.push_back({part(w, from, to, begin, end), begin * row, from * each, (end - begin) * row});
    }
    return made;
  }
  /// The cells along the first axis, some at a time: a piece has the windows over them, cut off at its edges.
  static std::vector<Piece> bands_of_cells(const Windows& w, int64_t item, int64_t result) {
    const Axis& axis = w.axis(0);
    const int64_t row = item / axis.n, each = result / axis.size(), most = std::max<int64_t>(1, kPiece / row);
    std::vector<Piece> made;
    for (int64_t begin = 0; begin < axis.n; begin += most) {
      const int64_t end = std::min(axis.n, begin + most);
      int64_t from = 0;
      while (from < axis.size() && axis.stop[static_cast<size_t>(from)] <= begin) ++from;
      int64_t to = from;
      while (to < axis.size() && axis.start[static_cast<size_t>(to)] < end) ++to;
      made.push_back({from < to ? part(w, from, to, begin, end) : nullptr, begin * row, from * each, (end - begin) * row});
    }
    return made;
  }
  /// The windows from-to of the first axis over the cells begin-end.
  static Shared part(const Windows& w, int64_t from, int64_t to, int64_t begin, int64_t end) {
    std::vector<Axis> axes = w.axes();
    Axis cut;
    cut.n = end - begin;
    for (int64_t j = from; j < to; ++j) {
      const auto i = static_cast<size_t>(j);
      cut.start.push_back(std::max(axes[0].start[i], begin) - begin);
      cut.stop.push_back(std::min(axes[0].stop[i], end) - begin);
      cut.span.push_back(axes[0].span[i]);
    }
    axes[0] = std::move(cut);
    return std::make_shared<Windows>(std::move(axes), 1, w.inner());
  }

  std::vector<Piece> all_;
};

/// View elements of a dense tensor, in the order of memory.
inline Tensor stretch(const Tensor& t, int64_t from, int64_t size) {
  char* const data = static_cast<char*>(const_cast<void*>(t.const_data_ptr()));
  return at::from_blob(data + from * t.element_size(), {size}, t.options().requires_grad(false));
}

inline Tensor widened(const Tensor& t, at::ScalarType wide) { return t.scalar_type() == wide ? t : t.to(wide); }

/// Write a value into a stretch of a result, whose memory it may be.
inline void put(const Tensor& to, const Tensor& value) {
  if (!to.is_alias_of(value)) to.copy_(value);
}

inline Divisor divisor_of(const MeanRules& rules) {
  return {rules.divide == Divide::spans ? Divisor::spans : Divisor::number, rules.by};
}

/// The transpose of means of halves whose sums are divided by given numbers: quotients and sums in float32.
inline void spread_wide(const Pieces& pieces, const MeanRules& rules, const Tensor& g, Tensor& dx) {
  pieces.each([&](const Piece& piece) {
    const Tensor to = stretch(dx, piece.source, piece.cells);
    if (!piece.w) return void(to.zero_());
    const Windows& w = *piece.w;
    Tensor shares = stretch(g, piece.dest, w.dest()).to(at::kFloat);
    divide(w, divisor_of(rules), shares, shares);
    Tensor cells = at::empty({piece.cells}, shares.options());
    spread(w, PG_SHARE_WHOLE, shares, cells);
    to.copy_(cells);
  });
}

// ---- norms: the p-th root of the sum of p-th powers, by torch's operators on each piece, so torch's powers; p is not 2

/// Return 1 where the sum is 0, else 0; and 0 where it is 0, else 1.
inline Tensor none_of(const Tensor& sums) { return at::eq(sums, 0).to(sums.scalar_type()); }
inline Tensor some_of(const Tensor& sums) { return at::ne(sums, 0).to(sums.scalar_type()); }

/// Write the norms; return the sums of powers.
inline Tensor norms(const Pieces& pieces, double p, at::ScalarType wide, const Tensor& x, Tensor& y) {
  Tensor totals = at::empty({y.numel()}, x.options().dtype(wide).requires_grad(false));
  pieces.each([&](const Piece& piece) {
    const Windows& w = *piece.w;
    const Tensor cells = widened(stretch(x, piece.source, piece.cells), wide);
    Tensor sums = stretch(totals, piece.dest, w.dest());
    fold(w, PG_MEAN_TOTAL, at::pow(at::abs(cells), p), sums);
    stretch(y, piece.dest, w.dest()).copy_(sums.add(none_of(sums)).pow_(1 / p).mul_(some_of(sums)));
  });
  return totals;
}

/// Write the gradient of the norms with respect to x.
inline void norms_back(const Pieces& pieces, double p, const Tensor& totals, const Tensor& x, const Tensor& g, Tensor& dx) {
  const at::ScalarType wide = totals.scalar_type();
  pieces.each([&](const Piece& piece) {
    const Tensor to = stretch(dx, piece.source, piece.cells);
    if (!piece.w) return void(to.zero_());
    const Windows& w = *piece.w;
    const Tensor sums = stretch(totals, piece.dest, w.dest());
    const Tensor slope = sums.add(none_of(sums)).pow_(1 / p - 1).mul_(1 / p);
    const Tensor shares = widened(stretch(g, piece.dest, w.dest()), wide).mul(some_of(sums)).mul_(slope);
    const Tensor cells = widened(stretch(x, piece.source, piece.cells), wide);
    Tensor spent = to.scalar_type() == wide ? to : at::empty({piece.cells}, shares.options());
    spread(w, PG_SHARE_WHOLE, shares, spent);
    spent.mul_(at::pow(at::abs(cells), p - 1).mul_(p)).mul_(at::sgn(cells));
    put(to, spent);
  });
}

// ---- Euclidean norms: the core adds the squares; torch's roots

/// Set infinity to 0: the slope of the root of a sum of 0.
template <class T>
void flatten(T* values, int64_t n) {
  constexpr int64_t kTogether = 16;  // so that the compiler takes vectors
  const auto flat = [](T& value) { value = value == std::numeric_limits<T>::infinity() ? T{0} : value; };
  for (; n >= kTogether; n -= kTogether, values += kTogether)
    for (int64_t i = 0; i < kTogether; ++i) flat(values[i]);
  for (; n > 0; --n) flat(*values++);
}

/// Write the norms; return the sums of squares.
inline Tensor euclidean(const Windows& w, at::ScalarType wide, const Tensor& x, Tensor& y) {
  Tensor totals = at::empty({w.dest()}, x.options().dtype(wide).requires_grad(false));
  squares(w, x, totals);
  Tensor roots = stretch(y, 0, w.dest());
  if (y.scalar_type() == wide) at::sqrt_out(roots, totals);
  else roots.copy_(totals.sqrt());
  return totals;
}

/// Write the gradient with respect to x: x times the sum of g over the roots.
inline void euclidean_back(const Pieces& pieces, const Tensor& totals, const Tensor& x, const Tensor& g, Tensor& dx) {
  const at::ScalarType wide = totals.scalar_type();
  pieces.each([&](const Piece& piece) {
    Tensor to = stretch(dx, piece.source, piece.cells);
    if (!piece.w) return void(to.zero_());
    const Windows& w = *piece.w;
    const Tensor shares = stretch(totals, piece.dest, w.dest()).rsqrt();
    if (wide == at::kFloat) flatten(shares.mutable_data_ptr<float>(), w.dest());
    else flatten(shares.mutable_data_ptr<double>(), w.dest());
    shares.mul_(stretch(g, piece.dest, w.dest()));
    Tensor sums = to.scalar_type() == wide ? to : at::empty({piece.cells}, shares.options());
    spread(w, PG_SHARE_WHOLE, shares, sums);
    put(to, sums.mul_(stretch(x, piece.source, piece.cells)));
  });
}

}  // namespace poolgrad::aten
