// Rows as combs: where windows repeat along the last axis, neighbouring cells of a row are the
// lanes.
#pragma once
#include "loops/transposed_tile.hpp"

namespace poolgrad::PG_ISA {

/// Cells P, P + S, P + 2 S, … of S vectors.
template <int P, int S, class V, int... I>
PG_INLINE V deinterleave(const V* v, std::integer_sequence<int, I...>) {
  constexpr int L = sizeof...(I);
  const V two = __builtin_shufflevector(v[0], v[1], (P + S * I < 2 * L ? P + S * I : 0)...);
  if constexpr (S == 2) return two;
  else return __builtin_shufflevector(two, v[2], (P + S * I < 2 * L ? I : P + S * I - L)...);
}

/// The P-th of S vectors that hold the cells of S vectors in turn: every() back again.
template <int P, int S, class V, int... I>
PG_INLINE V interleave(const V* v, std::integer_sequence<int, I...>) {
  constexpr int L = sizeof...(I);
  const V two = __builtin_shufflevector(
      v[0], v[1], ((P * L + I) % S < 2 ? (P * L + I) % S * L + (P * L + I) / S : 0)...);
  if constexpr (S == 2) return two;
  else
    return __builtin_shufflevector(two, v[2], ((P * L + I) % S < 2 ? I : L + (P * L + I) / S)...);
}

/// An axis as a comb: destination cell P q + p reads source cells S q + first(p) + t, 0 <= t <
/// width(p), as far as there are such. S is at most 3: into more, rows are parted only cell by
/// cell.
struct RegularAxis {
  /// Looks at every window, if it is wanted.
  RegularAxis(const Axis& a, int lanes, bool wanted = true)
      : axis(a), stride(a.step), period(a.period), cells_per_phase((a.m + period - 1) / period) {
    if (!wanted || axis.hi - axis.lo <= period || stride > 3) return;
    const auto inside = [&](int64_t c) { return c < 0 ? 0 : c > axis.n ? axis.n : c; };
    for (int64_t p = 0; p < period; ++p) {
      const int64_t length = width(p);
      for (int64_t j = p, from = first(p); j < axis.m; j += period, from += stride) {
        const int64_t to = from + length;
        if (axis.start[j] != inside(from) || axis.stop[j] != inside(to)) return;
        const bool is_cut = axis.span && axis.span[j] != axis.length(j),
                   sticks_out = from < 0 || to > axis.n;
        cuts |= is_cut;
        cuts_elsewhere |= is_cut != sticks_out;
        pad_left = -from > pad_left ? -from : pad_left;
      }
    }
    pad_left = (pad_left + lanes * stride - 1) / (lanes * stride) *
               (lanes * stride);  // rows begin where vectors do
    fits = true;
  }
  int64_t first(int64_t p) const { return axis.start[sample(p)] - sample(p) / period * stride; }
  int64_t width(int64_t p) const { return axis.length(sample(p)); }
  /// How far behind its own place the last cell of a tooth reads.
  int64_t overhang() const {
    int64_t most = 0;
    for (int64_t p = 0; p < period; ++p)
      most = first(p) + pad_left + width(p) > most ? first(p) + pad_left + width(p) : most;
    return most / stride + 1;
  }

  const Axis& axis;
  const int64_t stride, period, cells_per_phase;
  int64_t pad_left = 0;
  bool fits = false, cuts = false, cuts_elsewhere = false;

 private:
  int64_t sample(int64_t p) const { return axis.lo + (p - axis.lo % period + period) % period; }
};

/// Bytes of rows that stay near a core.
constexpr int64_t kRingBytes = 512 << 10;

/// Rows in phases, each a run of its own: counted from `left` cells before the row, phase p has
/// cells p, p + S, …. What is before and after the row is neutral, so that no window is cut and no
/// vector is partly filled.
template <class T>
class RowPacker {
 public:
  using W = Wide<T>;
  static constexpr int V = kLanes<T>;
  static constexpr int64_t round_up(int64_t n) { return (n + V - 1) / V * V; }

  /// `apart`: from one phase to the next, if that is given.
  RowPacker(int64_t n, int64_t stride, int64_t pad_left, int64_t read, W neutral, const T* end,
            int64_t phase_size = 0)
      : n_(n),
        stride_(stride),
        pad_left_(pad_left),
        phase_size_(phase_size ? phase_size
                               : round_up((n + pad_left) / stride + 2 * V > read
                                              ? (n + pad_left) / stride + 2 * V
                                              : read)),
        neutral_(neutral),
        end_(end) {
    for (int64_t c = 0; c < stride * V; ++c) mask_[c] = c < n % (stride * V) ? -1 : 0;
  }
  int64_t size() const { return stride_ * phase_size_; }
  /// Where source cell c + left is kept.
  int64_t offset_of(int64_t c) const { return c % stride_ * phase_size_ + c / stride_; }
  void fill_neutral(W* to) const {
    for (int64_t k = 0; k < size(); ++k) to[k] = neutral_;
  }

  /// Puts a row in its place, each cell times its weight where there are weights.
  [[gnu::noinline]] void pack(const T* row, W* to, const W* weights = nullptr) {
    if (stride_ == 1)
      return weights ? pack_unit_stride<true>(row, to + pad_left_, weights)
                     : pack_unit_stride<false>(row, to + pad_left_, weights);
    stride_ == 2 ? pack_strided<2>(row, to + offset_of(pad_left_))
                 : pack_strided<3>(row, to + offset_of(pad_left_));
  }

 private:
  using Mask = std::make_signed_t<TapLane<T>>;

  /// The last cells of a row with whatever follows them, copied only where the array ends.
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

/// Apart from what is done often.
template <class T>
[[gnu::noinline, gnu::cold]] void store_part(T* to, const T* from, int64_t count) {
  if (count > 0) std::memcpy(static_cast<void*>(to), from, static_cast<size_t>(count) * sizeof(T));
}

/// Writes a vector to a row that ends after `room` cells. Behind the row it may write what is
/// written later, up to `limit`.
template <class T>
PG_INLINE void store_within(T* to, Vec<Wide<T>, kLanes<T>> v, int64_t room, const T* limit) {
  constexpr int V = kLanes<T>;
  if (limit - to >= V) return store<V>(to, v);
  T rest[V];
  store<V>(rest, v);
  store_part<T>(to, rest, room < V ? room : V);
}

/// Taps of a window: each of the rows at `rows`, each of the places `off` in it.
struct RowTaps {
  const int64_t* rows;
  int64_t nrows;
  const int64_t* off;
  int64_t width;
};

/// Reduces whole vectors of lanes over their taps, several at a time. K: the width if it is known,
/// else 0.
template <class T, Order order, int K, class Begin, class Step, class End>
PG_INLINE void reduce_rows_of(const RowTaps& w, int64_t lanes, Begin&& begin, Step&& step,
                              End&& end) {
  constexpr int V = kLanes<T>;
  const int64_t nrows = w.nrows, *const rows = w.rows;
  int64_t off[K ? K : 1];
  for (int t = 0; t < K; ++t) off[t] = w.off[t];
  const auto block = [&](auto many, int64_t c) {
    constexpr int N = decltype(many)::count;
    decltype(begin(c)) s[N];
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) s[i] = begin(c + i * V);
    WindowTaps window;
    window.nrows = nrows;
    window.width = K ? K : w.width;
    each_tap<order>(window, [&](int64_t r, int64_t t) {
      const int64_t place = rows[r] + (K ? off[t] : w.off[t]) + c;
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) step(s[i], place + i * V);
    });
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) end(s[i], c + i * V);
  };
  int64_t c = 0;
  for (; c + 4 * V <= lanes; c += 4 * V) block(Lane<4>{}, c);
  for (; c < lanes; c += V) block(Lane<1>{}, c);
}

template <class T, Order order, class Begin, class Step, class End>
PG_INLINE void reduce_rows(const RowTaps& w, int64_t lanes, Begin&& begin, Step&& step, End&& end) {
  if (w.width == 2) return reduce_rows_of<T, order, 2>(w, lanes, begin, step, end);
  if (w.width == 3) return reduce_rows_of<T, order, 3>(w, lanes, begin, step, end);
  reduce_rows_of<T, order, 0>(w, lanes, begin, step, end);
}

/// One destination row: the kept source rows that it reads, in order, and where it is.
struct RingRow {
  const int64_t* rows;
  int64_t nrows, item, row;  ///< of all rows
  bool cut;
};

/// The rows of a piece, one after the other. make(source row, upper count, to) keeps a source row,
/// next(to) goes on with it, and use(CombRow) computes a destination row from those that are kept.
/// Windows that overlap find their common rows kept. Several rows are made before any is read: a
/// vector that is read across two that were just written has to wait for both.
template <class W>
class RowRing {
 public:
  RowRing(const Plan& plan, bool reversed, int64_t size)
      : plan_(plan),
        reversed_(reversed),
        size_(size),
        rows_per_slab_(plan.rows_per_slab()),
        source_rows_(plan.source_slab() / plan.last().n),
        most_(SourceRows::capacity(plan)),
        width_(most_ / plan.axis[0].widest),
        disjoint_(all_disjoint(plan)),
        slot_count_(slots(plan)),
        slot_of_(plan.axis[0].n),
        lists_(rows_per_slab_ * width_),
        lengths_(rows_per_slab_),
        cuts_(rows_per_slab_),
        counts_(plan.last().count ? source_rows_ : 0),
        rows_(most_),
        ring_(slot_count_ * size) {
    for (int64_t h = 0; h < plan.axis[0].n; ++h)
      slot_of_[h] = h * source_rows_ % slot_count_ * size;
    Plan below = plan;
    --below.rank;
    for (int a = 0; a < below.rank; ++a) below.axis[a] = plan.axis[a + 1];
    SourceRows rows(below, reversed);
    WindowTaps window;
    for (int64_t u = 0; u < rows_per_slab_; ++u) {
      rows.seek(u, window);
      lengths_[u] = window.nrows;
      cuts_[u] = window.cut;
      for (int64_t r = 0; r < window.nrows; ++r)
        lists_[u * width_ + r] = window.rows[r] / plan.last().n * (disjoint_ ? 1 : size);
    }
    if (!plan.last().count) return;
    for (int64_t r = 0; r < source_rows_; ++r) {
      int64_t rest = r;
      counts_[r] = 1;
      for (int a = plan.rank - 2; a >= 1; rest /= plan.axis[a].n, --a)
        counts_[r] *= plan.axis[a].count[rest % plan.axis[a].n];
    }
  }

  /// Whether the lists and the kept rows are small enough to stay near a core.
  static bool fits_cache(const Plan& plan, int64_t size) {
    if (plan.axis[0].widest == 0 || SourceRows::capacity(plan) == 0 || plan.last().n == 0)
      return false;
    return slots(plan) * size * static_cast<int64_t>(sizeof(W)) <= kRingBytes &&
           plan.rows_per_slab() * SourceRows::capacity(plan) <= 1 << 15;
  }

  W* data() { return ring_.get(); }
  int64_t slot_count() const { return slot_count_; }

  template <class Pack, class Prereduce, class Compute>
  void run(Piece p, Pack&& pack, Prereduce&& prereduce, Compute&& compute) {
    const Axis& top = plan_.axis[0];
    for (int64_t i = p.i0; i < p.i1; ++i) {
      int64_t made = 0;
      for (int64_t j = p.h0; j < p.h1; ++j) {
        checkpoint(step_budget(), (width_ * rows_per_slab_ + 1) * size_);
        if (!disjoint_ && made < top.stop[j])
          made = ahead(i, made > top.start[j] ? made : top.start[j], top.stop[j],
                       top.stop[p.h1 - 1], pack, prereduce);
        const bool cut = top.span && top.span[j] != top.length(j);
        for (int64_t u = 0; u < rows_per_slab_; ++u)
          compute(RingRow{rows_.get(), list(i, j, u, pack, prereduce), i,
                          (i * top.m + j) * rows_per_slab_ + u, cut || cuts_[u]});
      }
    }
  }

 private:
  static constexpr int64_t kRowsAhead = 3;
  static int64_t slots(const Plan& plan) {
    return all_disjoint(plan) ? SourceRows::capacity(plan)
                              : (plan.axis[0].widest + (plan.rank == 2 ? kRowsAhead : 0)) *
                                    (plan.source_slab() / plan.last().n);
  }
  static bool all_disjoint(const Plan& plan) {
    for (int a = 0; a + 1 < plan.rank; ++a)
      for (int64_t j = 1; j < plan.axis[a].m; ++j)
        if (plan.axis[a].stop[j - 1] > plan.axis[a].start[j]) return false;
    return true;
  }
  template <class Pack>
  PG_INLINE void pack_row(int64_t i, int64_t h, int64_t r, int64_t at, Pack&& pack) {
    const Axis& top = plan_.axis[0];
    pack((i * top.n + h) * source_rows_ + r, top.count ? top.count[h] * counts_[r] : 1,
         ring_.get() + at);
  }
  /// Makes the rows of source cells [from, to) of the first axis, and of some more where a cell has
  /// but one row.
  template <class Pack, class Prereduce>
  int64_t ahead(int64_t i, int64_t from, int64_t to, int64_t end, Pack&& pack,
                Prereduce&& prereduce) {
    if (plan_.rank == 2) to = to + kRowsAhead < end ? to + kRowsAhead : end;
    for (int64_t h = from; h < to; ++h)
      for (int64_t r = 0; r < source_rows_; ++r) pack_row(i, h, r, slot_of_[h] + r * size_, pack);
    for (int64_t h = from; h < to; ++h)
      for (int64_t r = 0; r < source_rows_; ++r) prereduce(ring_.get() + slot_of_[h] + r * size_);
    return to;
  }
  /// The places of the rows that destination row u of slab j reads, in the order of its taps.
  template <class Pack, class Prereduce>
  PG_INLINE int64_t list(int64_t i, int64_t j, int64_t u, Pack&& pack, Prereduce&& prereduce) {
    const Axis& top = plan_.axis[0];
    const int64_t *below = lists_.get() + u * width_, h0 = top.start[j], h1 = top.stop[j],
                  n = lengths_[u];
    int64_t k = 0;
    const auto add = [&](int64_t h, int64_t r) {
      const int64_t at = disjoint_ ? k * size_ : slot_of_[h] + r;
      if (disjoint_) pack_row(i, h, r, at, pack);
      rows_[k++] = at;
    };
    if (reversed_)
      for (int64_t r = 0; r < n; ++r)
        for (int64_t h = h0; h < h1; ++h) add(h, below[r]);
    else
      for (int64_t h = h0; h < h1; ++h)
        for (int64_t r = 0; r < n; ++r) add(h, below[r]);
    if (disjoint_)
      for (int64_t r = 0; r < k; ++r) prereduce(ring_.get() + rows_[r]);
    return k;
  }

  const Plan& plan_;
  const bool reversed_;
  const int64_t size_, rows_per_slab_, source_rows_, most_, width_;
  const bool disjoint_;
  const int64_t slot_count_;
  Scratch<int64_t> slot_of_, lists_, lengths_;
  Scratch<bool> cuts_;
  Scratch<int64_t> counts_, rows_;
  Scratch<W> ring_;
};

}  // namespace poolgrad::PG_ISA
