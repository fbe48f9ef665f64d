// Gradients that plain loops write faster than the core: of few long windows, and of cells at given positions.
#pragma once
#include "few.hpp"

namespace poolgrad::aten {

// ---- means over long windows: cells under the same windows have the same gradient

/// Cells side by side that the same windows read: from..to of them.
struct Segment {
  int64_t cells, from, to;
};

inline std::vector<Segment> segments_of(const Axis& axis) {
  std::vector<int64_t> borders{0, axis.n};
  borders.insert(borders.end(), axis.start.begin(), axis.start.end());
  borders.insert(borders.end(), axis.stop.begin(), axis.stop.end());
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  std::vector<Segment> made;
  int64_t from = 0, to = 0;
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    while (from < axis.size() && axis.stop[static_cast<size_t>(from)] <= borders[i]) ++from;
    while (to < axis.size() && axis.start[static_cast<size_t>(to)] <= borders[i]) ++to;
    made.push_back({borders[i + 1] - borders[i], std::min(from, to), to});
  }
  return made;
}

/// Return whether windows are so long that their gradient is mostly a copy.
inline bool is_long(const Windows& w) {
  return w.dest() * 16 <= w.source() && w.axis(w.rank() - 1).size() * 4 <= w.axis(w.rank() - 1).n && w.depth() <= kAddedInTurn;
}

/// Write the gradient of one item, from the shares of its windows.
template <class Sum, class T>
void spread_segments(const Windows& w, const std::vector<Segment> (&along)[3], const Sum* shares, T* dx) {
  const int rank = w.rank();
  const int64_t inner = w.inner(), row = w.axis(rank - 1).n * inner, columns = w.axis(rank - 1).size() * inner;
  const int64_t rows = rank > 1 ? w.axis(rank - 2).size() : 1, plane = (rank > 1 ? w.axis(rank - 2).n : 1) * row;
  for (const Segment& z : along[0]) {
    T* const first_plane = dx;
    for (const Segment& y : along[1]) {
      T* const first_row = dx;
      for (const Segment& x : along[2]) {
        T* const first_cell = dx;
        for (int64_t lane = 0; lane < inner; ++lane) {
          Sum sum = 0;
          for (int64_t a = z.from; a < z.to; ++a)
            for (int64_t b = y.from; b < y.to; ++b)
              for (int64_t c = x.from; c < x.to; ++c) sum += shares[(a * rows + b) * columns + c * inner + lane];
          *dx++ = narrowed<T>(sum);
        }
        if (inner == 1) {
          dx = std::fill_n(dx, x.cells - 1, *first_cell);
        } else {
          for (int64_t i = 1; i < x.cells; ++i) dx = std::copy_n(first_cell, inner, dx);
        }
      }
      for (int64_t i = 1; i < y.cells; ++i) dx = std::copy_n(first_row, row, dx);
    }
    for (int64_t i = 1; i < z.cells; ++i) dx = std::copy_n(first_plane, plane, dx);
  }
}

/// The way from the gradient of a window to the share of a cell.
enum class Sharing { reciprocal, quotient, cells, lengths };

template <class Sum, class T>
void shares_of(const Windows& w, Sharing how, const T* g, Sum* shares) {
  const int rank = w.rank();
  const Axis& last = w.axis(rank - 1);
  const int64_t depths = rank == 3 ? w.axis(0).size() : 1, rows = rank == 1 ? 1 : w.axis(rank - 2).size();
  const auto length = [](const Axis& a, int64_t j) { return a.stop[static_cast<size_t>(j)] - a.start[static_cast<size_t>(j)]; };
  for (int64_t z = 0; z < depths; ++z)
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t deep = rank == 3 ? length(w.axis(0), z) : 1, high = rank == 1 ? 1 : length(w.axis(rank - 2), r);
      for (int64_t c = 0; c < last.size(); ++c) {
        const int64_t wide = length(last, c), cells = deep * high * wide;
        const auto turned = static_cast<Sum>(1.0 / static_cast<double>(cells)), count = static_cast<Sum>(cells);
        const Sum by[3] = {static_cast<Sum>(deep), static_cast<Sum>(high), static_cast<Sum>(wide)};
        for (int64_t i = 0; i < w.inner(); ++i, ++g, ++shares) {
          const auto whole = static_cast<Sum>(*g);
          *shares = how == Sharing::reciprocal ? whole * turned
                    : how == Sharing::lengths  ? whole / by[0] / by[1] / by[2]
                                               : whole / count;
        }
      }
    }
}

/// Give each cell its shares of g.
template <class Sum, class T>
void spread_long(const Windows& w, Sharing how, const Tensor& g, Tensor& dx) {
  std::vector<Segment> along[3];
  for (int a = 0; a < 3; ++a) {
    const int axis = a - (3 - w.rank());
    along[a] = axis < 0 ? std::vector<Segment>{{1, 0, 1}} : segments_of(w.axis(axis));
  }
  const int64_t cells = w.source() / w.outer(), results = w.dest() / w.outer();
  over_items(w.outer(), cells, [&](int64_t from, int64_t to) {
    std::vector<Sum> shares(static_cast<size_t>(results));
    for (int64_t item = from; item < to; ++item) {
      shares_of(w, how, read<T>(g) + item * results, shares.data());
      spread_segments(w, along, shares.data(), written<T>(dx) + item * cells);
    }
  });
}

inline void spread_long(const Windows& w, Sharing how, const Tensor& g, Tensor& dx) {
  switch (g.scalar_type()) {
    case at::kFloat: return spread_long<float, float>(w, how, g, dx);
    case at::kDouble: return spread_long<double, double>(w, how, g, dx);
    case at::kHalf: return spread_long<double, at::Half>(w, Sharing::quotient, g, dx);
    default: return spread_long<double, at::BFloat16>(w, Sharing::quotient, g, dx);
  }
}

// ---- maxima: cells at torch's indices

/// Planes of cells, and the results that were chosen from them.
struct Planes {
  int64_t outer, inner, cells, results;
};

/// Add the values of one item at their positions, in order; return false if one is outside the plane.
template <bool channels, class T>
bool add_item(const Planes& p, const T* values, const int64_t* at, T* cells) {
  bool inside = true;
  const auto end = static_cast<uint64_t>(p.cells);
  for (int64_t r = 0; r < p.results; ++r)
    for (int64_t i = 0; i < (channels ? p.inner : 1); ++i, ++values, ++at) {
      if (static_cast<uint64_t>(*at) >= end) inside = false;
      else cells[channels ? *at * p.inner + i : *at] += *values;
    }
  return inside;
}

/// Add g at its positions; return false if one is outside its plane.
template <class T>
bool add_at(const Planes& p, const T* g, const int64_t* index, T* dx) {
  std::atomic<bool> inside = true;
  const int64_t each = p.cells * p.inner, group = std::max<int64_t>(1, kGrain / each);  // of items whose zeros stay in the cache
  over_items(p.outer, each + p.results * p.inner, [&](int64_t from, int64_t to) {
    for (int64_t item = from; item < to; ++item) {
      const int64_t first = item * p.results * p.inner;
      T* const cells = dx + item * each;
      if ((item - from) % group == 0)
        std::memset(static_cast<void*>(cells), 0, static_cast<size_t>(std::min(group, to - item) * each) * sizeof(T));
      const bool fine = p.inner == 1 ? add_item<false>(p, g + first, index + first, cells) : add_item<true>(p, g + first, index + first, cells);
      if (!fine) inside = false;
    }
  });
  return inside;
}

inline bool add_at(const Planes& p, const Tensor& g, const Tensor& index, Tensor& dx) {
  bool inside = false;
  const auto* at = index.const_data_ptr<int64_t>();
  with_type(g.scalar_type(), [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    if constexpr (kIsHalf<T> || std::is_floating_point_v<T>) inside = add_at(p, read<T>(g), at, written<T>(dx));
  });
  return inside;
}

}  // namespace poolgrad::aten
