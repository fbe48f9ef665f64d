// Copy rows into the form that the row schedules read.
#pragma once
#include "simd/interleave.hpp"
#include "simd/ops.hpp"

namespace poolgrad::PG_ISA {

/// Pack rows by phase, between neutral cells. Counted from `pad_left` cells before the row, phase p
/// holds cells p, p + stride, p + 2 stride, …. Because of the neutral cells no window is cut and no
/// vector is partly filled.
template <class T>
class RowPacker {
 public:
  using W = Wide<T>;
  static constexpr int V = kLanes<T>;
  static constexpr int64_t round_up(int64_t n) { return (n + V - 1) / V * V; }

  /// Return the elements of a phase that windows read up to `read`.
  static int64_t phase_size_of(int64_t n, int64_t stride, int64_t pad_left, int64_t read) {
    return round_up((n + pad_left) / stride + 2 * V > read ? (n + pad_left) / stride + 2 * V
                                                           : read);
  }

  /// `phase_size`: elements from one phase to the next; computed if 0.
  RowPacker(int64_t n, int64_t stride, int64_t pad_left, int64_t read, W neutral, const T* end,
            int64_t phase_size = 0)
      : n_(n),
        stride_(stride),
        pad_left_(pad_left),
        phase_size_(phase_size ? phase_size : phase_size_of(n, stride, pad_left, read)),
        neutral_(neutral),
        end_(end) {
    for (int64_t c = 0; c < stride * V; ++c) mask_[c] = c < n % (stride * V) ? -1 : 0;
  }
  int64_t size() const { return stride_ * phase_size_; }
  /// Return the offset of source cell c - pad_left.
  int64_t offset_of(int64_t c) const { return c % stride_ * phase_size_ + c / stride_; }
  void fill_neutral(W* to) const {
    for (int64_t k = 0; k < size(); ++k) to[k] = neutral_;
  }

  /// Pack a row; multiply each cell by its weight if weights are given.
  [[gnu::noinline]] void pack(const T* row, W* to, const W* weights = nullptr) {
    if (stride_ == 1)
      return weights ? pack_unit_stride<true>(row, to + pad_left_, weights)
                     : pack_unit_stride<false>(row, to + pad_left_, weights);
    stride_ == 2 ? pack_strided<2>(row, to + offset_of(pad_left_))
                 : pack_strided<3>(row, to + offset_of(pad_left_));
  }

 private:
  using Mask = std::make_signed_t<TapLane<T>>;

  /// Return the last cells of a row with whatever follows them. Copy them only at the end of the
  /// array.
  PG_INLINE const T* tail(const T* from, int64_t cells, int block) {
    if (end_ - from >= block) return from;
    std::memcpy(static_cast<void*>(tail_), from, static_cast<size_t>(cells) * sizeof(T));
    return tail_;
  }
  PG_INLINE Vec<W, V> masked(Vec<W, V> v, int from) const {
    Vec<Mask, V> mask;
    std::memcpy(&mask, mask_ + from, sizeof mask);
    return mask ? v : all<W, V>(neutral_);
  }
  template <bool Weighted>
  PG_INLINE Vec<W, V> weighed(Vec<W, V> v, const W* weights) const {
    if constexpr (Weighted) return rounded<T, V>(v * load<V>(weights));
    else return v;
  }
  template <bool Weighted>
  void pack_unit_stride(const T* row, W* to, const W* weights) {
    int64_t c = 0;
    for (; c + V <= n_; c += V) store<V>(to + c, weighed<Weighted>(load<V>(row + c), weights + c));
    if (c < n_)
      store<V>(to + c,
               masked(weighed<Weighted>(load<V>(tail(row + c, n_ - c, V)), weights + c), 0));
  }
  template <int S>
  void pack_strided(const T* row, W* to) {
    int64_t c = 0;
    for (; c + S * V <= n_; c += S * V) {
      Vec<W, V> v[S];
      for (int p = 0; p < S; ++p) v[p] = load<V>(row + c + p * V);
      store_phases<S>(v, to + c / S);
    }
    if (c == n_) return;
    const T* last = tail(row + c, n_ - c, S * V);
    Vec<W, V> v[S];
    for (int p = 0; p < S; ++p) v[p] = masked(load<V>(last + p * V), p * V);
    store_phases<S>(v, to + c / S);
  }
  template <int S>
  PG_INLINE void store_phases(const Vec<W, V>* v, W* to) const {
    using Order = std::make_integer_sequence<int, V>;
    store<V>(to, deinterleave<0, S>(v, Order{}));
    store<V>(to + phase_size_, deinterleave<1, S>(v, Order{}));
    if constexpr (S == 3) store<V>(to + 2 * phase_size_, deinterleave<2, S>(v, Order{}));
  }

  const int64_t n_, stride_, pad_left_, phase_size_;
  const W neutral_;
  const T* const end_;
  Mask mask_[3 * V] = {};
  T tail_[3 * V] = {};
};

/// Write a part of a vector; kept out of the hot code.
template <class T>
[[gnu::noinline, gnu::cold]] void store_part(T* to, const T* from, int64_t count) {
  if (count > 0) std::memcpy(static_cast<void*>(to), from, static_cast<size_t>(count) * sizeof(T));
}

/// Write a vector to a row that ends after `room` cells. It may overwrite memory behind the row, up
/// to `limit`, which is written later.
template <class T>
PG_INLINE void store_within(T* to, Vec<Wide<T>, kLanes<T>> v, int64_t room, const T* limit) {
  constexpr int V = kLanes<T>;
  if (limit - to >= V) return store<V>(to, v);
  T rest[V];
  store<V>(rest, v);
  store_part<T>(to, rest, room < V ? room : V);
}

/// Write the last `rest` cells of a row, less than a vector, in the same way. A shorter store
/// crosses fewer cache lines.
template <class T>
PG_INLINE void store_rest(T* to, Vec<Wide<T>, kLanes<T>> v, int64_t rest, const T* limit) {
  constexpr int V = kLanes<T>;
  if (limit - to < V) return store_within<T>(to, v, rest, limit);
  if constexpr (V >= 4) {
    if (rest <= V / 4) return store<V / 4>(to, first_bytes<Vec<Wide<T>, V / 4>>(v));
    if (rest <= V / 2) return store<V / 2>(to, first_bytes<Vec<Wide<T>, V / 2>>(v));
  }
  store<V>(to, v);
}

}  // namespace poolgrad::PG_ISA
