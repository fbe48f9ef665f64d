// One case, called every way there is: at once and in pieces, on fast paths and on the generic one.
// All must agree.
#pragma once
#include <atomic>
#include <cstdio>
#include <stdexcept>

#include "cases.hpp"
#include "runtime/first_wrong.hpp"
#include "runtime/threads.hpp"
#include "verbs/table.hpp"

namespace poolgrad::fuzz {

inline std::atomic<int64_t> calls{0}, refused{0}, inputs{0};
inline std::atomic<uint64_t> digest{0};  ///< a sum, so that threads may add in any order

/// The size of the pieces of work, and the number of threads.
struct Cutting {
  int64_t blocks = 1, cuts = 1;
  int threads = 1;
};

/// Runs f over the pieces of a plan, as the border does.
template <class F>
void in_pieces(const Plan& plan, Cutting how, F&& f) {
  const int64_t cells = plan.axis[0].m;
  int64_t work = plan.outer * plan.inner * cells;
  for (int a = 1; a < plan.rank; ++a) work *= plan.axis[a].m;
  if (work == 0) return;
  const int64_t blocks = std::min(how.blocks, plan.outer), cuts = std::min(how.cuts, cells);
  parallel_for(blocks * cuts, how.threads, nullptr, [&](int64_t task) {
    const int64_t b = task / cuts, c = task % cuts;
    calls.fetch_add(1, std::memory_order_relaxed);
    f(Piece{plan.outer * b / blocks, plan.outer * (b + 1) / blocks, cells * c / cuts,
            cells * (c + 1) / cuts});
  });
}

/// The results of a call: an array, positions if it has any, and the first wrong element.
struct Result {
  Buffer out, index;
  int64_t wrong = -1;
};

/// Everything but the way in which it is called.
struct Call {
  Shape shape;
  Dtype dtype;
  Verb verb;
  int rule = 0;
  bool reversed = false, wide = false, given = false, absolute = false;
  double eps = 1e-5;
  Buffer x, v, y, g, index;
  int64_t source = 0, dest = 0;

  std::string text() const {
    return std::string(name_of(verb)) + " " + name_of(dtype) + " rule=" + std::to_string(rule) +
           " reversed=" + std::to_string(reversed) + " wide=" + std::to_string(wide) +
           " given=" + std::to_string(given) + " absolute=" + std::to_string(absolute) + " " +
           fuzz::text(shape);
  }
};

/// Return true if the result has the destination's shape.
inline bool forward(Verb verb) {
  return verb != Verb::spread && verb != Verb::near && verb != Verb::route &&
         verb != Verb::scatter && verb != Verb::place;
}

/// Taps are bytes, or four of them where a window may have more than 256 cells.
inline bool wide_taps(const Shape& shape) {
  int64_t cells = 1;
  for (const AxisData& axis : shape.axes) {
    int64_t widest = 1;
    for (size_t j = 0; j < axis.start.size(); ++j)
      widest = std::max(widest, axis.stop[j] - axis.start[j]);
    cells *= widest;
  }
  return cells > 256;
}

/// The type of the positions, or taps, of a call.
inline Dtype index_type(const Call& c) {
  if (c.verb == Verb::choose || c.verb == Verb::pick || c.verb == Verb::place)
    return wide_taps(c.shape) ? Dtype::u32 : Dtype::u8;
  return c.wide ? Dtype::i64 : Dtype::i32;
}

/// Return true if the border accepts the call: the verb exists for the type, and the rule for both.
inline bool exists(const Verbs& verbs, const Call& c) {
  if (c.verb == Verb::fold) return verbs.fold != nullptr;
  if (c.verb == Verb::spread)
    return verbs.spread && (c.dtype <= Dtype::f64 || Share(c.rule) == Share::quotient);
  return true;
}

/// By images, or, as a scatter does where those are few, by stretches of the result.
inline int64_t by_index(const Verbs& verbs, const Call& c, const Arrays& a, const Plan& plan,
                        Cutting how) {
  const int64_t items = plan.outer, n = items ? c.source / items : 0,
                m = items ? c.dest / items : 0;
  FirstWrong wrong;
  if (c.verb == Verb::gather) {
    parallel_for(items, how.threads, nullptr, [&](int64_t i) {
      wrong.report(verbs.gather(a, c.wide, n, m, c.source, c.absolute, i * m, (i + 1) * m));
    });
  } else {
    const int64_t parts = how.cuts;
    parallel_for(parts, how.threads, nullptr, [&](int64_t p) {
      wrong.report(
          verbs.scatter(a, c.wide, n, m, c.source, c.absolute,
                        {0, items, c.source / parts * p,
                         p + 1 < parts ? c.source / parts * (p + 1) : c.source, true, c.given}));
    });
  }
  calls.fetch_add(1, std::memory_order_relaxed);
  return wrong.get();
}

/// Calls the verb over the plan, cut up in that way.
inline Result run(const Verbs& verbs, const Call& c, const OwnedPlan& owned, Cutting how) {
  const int64_t cells = forward(c.verb) ? c.dest : c.source;
  Result r{Buffer(cells * size_of(c.dtype)),
           Buffer(c.verb == Verb::argmax || c.verb == Verb::choose ? cells * size_of(index_type(c))
                                                                   : 0)};
  Arrays a;
  a.x = c.verb == Verb::place ? nullptr : c.x.get();
  a.y = c.verb != Verb::place && (c.verb != Verb::route || c.given) ? c.y.get() : nullptr;
  a.g = c.verb == Verb::recall || c.verb == Verb::gather || c.verb == Verb::pick ? c.v.get()
                                                                                 : c.g.get();
  a.index = c.verb == Verb::route ? nullptr : c.index.get();
  a.out = r.out.get();
  a.out_index = r.index.get();
  const Plan &f = owned.forward(), &t = owned.transposed();
  FirstWrong wrong;
  if (c.source && c.dest && c.verb != Verb::gather && c.verb != Verb::scatter)  // reads no array
    verbs.schedule(f, t, c.verb, c.rule, c.given,
                   Piece{0, f.outer, 0, (forward(c.verb) ? f : t).axis[0].m});
  switch (c.verb) {
    case Verb::fold: in_pieces(f, how, [&](Piece p) { verbs.fold(f, a, Mean(c.rule), p); }); break;
    case Verb::spread:
      in_pieces(t, how, [&](Piece p) { verbs.spread(t, a, Share(c.rule), c.reversed, p); });
      break;
    case Verb::near: in_pieces(t, how, [&](Piece p) { verbs.near(t, a, c.eps, p); }); break;
    case Verb::select:
      in_pieces(f, how, [&](Piece p) { verbs.select(f, a, Start(c.rule), p); });
      break;
    case Verb::argmax:
      in_pieces(f, how, [&](Piece p) {
        verbs.argmax(f, a, c.wide, std::max<int64_t>(c.source / (c.absolute ? 1 : f.outer), 1), p);
      });
      break;
    case Verb::choose: in_pieces(f, how, [&](Piece p) { verbs.choose(f, a, p); }); break;
    case Verb::pick: in_pieces(f, how, [&](Piece p) { wrong.report(verbs.pick(f, a, p)); }); break;
    case Verb::place:
    case Verb::route:
      in_pieces(t, how, [&](Piece p) { wrong.report(verbs.route(f, t, a, p)); });
      break;
    case Verb::recall: in_pieces(f, how, [&](Piece p) { verbs.recall(f, a, p); }); break;
    default: wrong.report(by_index(verbs, c, a, f, how));
  }
  r.wrong = wrong.get();
  return r;
}

[[noreturn]] inline void fail(const Call& c, const char* what, int64_t at) {
  std::fprintf(stderr, "\n%s at element %lld:\n%s\n", what, static_cast<long long>(at),
               c.text().c_str());
  std::abort();
}

/// Ends the process if two results are not the same.
inline void agree(const Call& c, const Result& got, const Result& want, const char* what) {
  if (got.wrong != want.wrong) fail(c, what, got.wrong);
  if (want.wrong >= 0) return;  // refused: the array is nobody's
  int64_t at = difference(c.dtype, got.out, want.out);
  if (at < 0) at = difference(index_type(c), got.index, want.index);
  if (at >= 0) fail(c, what, at);
}

/// Add a result to the digest, which is then the same on every processor. All NaN count as one.
inline void note(const Call& c, const Result& r) {
  uint64_t hash = 0xcbf29ce484222325ull + static_cast<uint64_t>(r.wrong);
  const auto add = [&](Dtype dtype, const Buffer& a) {
    const size_t size = static_cast<size_t>(size_of(dtype));
    for (size_t i = 0; i < a.bytes() / size; ++i) {
      uint64_t bits = 0;
      std::memcpy(&bits, static_cast<const char*>(a.get()) + i * size, size);
      hash = (hash ^ (is_nan(dtype, bits) ? ~uint64_t{0} : bits)) * 0x100000001b3ull;
    }
  };
  if (r.wrong < 0) add(c.dtype, r.out), add(index_type(c), r.index);
  digest.fetch_add(hash, std::memory_order_relaxed);
}

/// Positions inside their image, but for a few.
inline Buffer positions(Bytes& in, Noise& noise, const Call& c, int64_t count) {
  const int64_t items = std::max<int64_t>(c.shape.outer, 1),
                most = std::max<int64_t>(c.absolute ? c.source : c.source / items, 1);
  Buffer buffer(count * (c.wide ? 8 : 4));
  const int64_t astray = in.rarely() && count ? in.below(count) : -1;
  for (int64_t k = 0; k < count; ++k) {
    const int64_t at = k == astray
                           ? static_cast<int64_t>(noise.next())
                           : static_cast<int64_t>(noise.next() % static_cast<uint64_t>(most));
    const int32_t narrow = static_cast<int32_t>(at);
    if (c.wide) std::memcpy(static_cast<int64_t*>(buffer.get()) + k, &at, sizeof at);
    else std::memcpy(static_cast<int32_t*>(buffer.get()) + k, &narrow, sizeof narrow);
  }
  return buffer;
}

/// A tap inside its window for each cell, but for two or three that may be anything.
inline Buffer taps(Bytes& in, Noise& noise, const Call& c, int64_t count) {
  const bool wide = wide_taps(c.shape);
  Buffer buffer(count * (wide ? 4 : 1));
  const bool spoilt = in.rarely();
  for (int64_t k = 0; k < count; ++k) {
    int64_t rest = k / c.shape.inner, cells = 1;
    for (size_t a = c.shape.axes.size(); a-- > 0;) {
      const AxisData& axis = c.shape.axes[a];
      const size_t j = static_cast<size_t>(rest) % axis.start.size();
      cells *= axis.stop[j] - axis.start[j];
      rest /= static_cast<int64_t>(axis.start.size());
    }
    const uint64_t drawn = noise.next();
    const bool any = cells == 0 || (spoilt && (drawn >> 32) % static_cast<uint64_t>(count) < 3);
    const auto tap = static_cast<uint32_t>(any ? drawn : drawn % static_cast<uint64_t>(cells));
    const auto narrow = static_cast<uint8_t>(tap);
    if (wide) std::memcpy(static_cast<uint32_t*>(buffer.get()) + k, &tap, sizeof tap);
    else std::memcpy(static_cast<uint8_t*>(buffer.get()) + k, &narrow, sizeof narrow);
  }
  return buffer;
}

/// More taps than this would make one input cost milliseconds.
constexpr double kMostTaps = 30000;

inline bool too_large(const OwnedPlan& plan) {
  double taps = static_cast<double>(plan.dest_size());
  for (int a = 0; a < plan.forward().rank; ++a)
    taps *= static_cast<double>(std::max<int64_t>(plan.forward().axis[a].widest, 1));
  return plan.source_size() > 4000 || taps > kMostTaps;
}

/// Decodes one call for a plan.
inline Call decode(Bytes& in, const Shape& shape, const OwnedPlan& plan, VerbTable table) {
  Noise noise(in.take(2));
  const int kind = static_cast<int>(in.below(3));
  const Dtype dtype = Dtype(in.below(static_cast<int64_t>(Dtype::count)));
  const int64_t n = plan.source_size(), m = plan.dest_size();
  Call c{shape,
         dtype,
         Verb(in.below(static_cast<int64_t>(Verb::count))),
         0,
         false,
         false,
         false,
         false,
         1e-5,
         filled(dtype, n, kind, noise),
         filled(dtype, n, kind, noise),
         filled(dtype, m, kind, noise),
         filled(dtype, m, kind, noise),
         Buffer(0),
         n,
         m};
  const uint64_t flags = in.take(1);
  c.rule = static_cast<int>(in.below(c.verb == Verb::fold ? 6 : c.verb == Verb::spread ? 4 : 3));
  c.reversed = flags & 1;
  c.wide = flags & 2;
  c.given = flags & 4;
  c.absolute = flags & 8;
  // Second order looks for maxima, a verified gradient refuses anything else: most of y should be
  // what was pooled.
  const bool pooled = c.verb == Verb::near || c.verb == Verb::recall || c.verb == Verb::route;
  if (pooled && (flags & 0x70) && plan.forward().outer > 0) {
    Arrays a;
    a.x = c.x.get();
    a.out = c.y.get();
    in_pieces(plan.forward(), {},
              [&](Piece p) { table(dtype)->select(plan.forward(), a, Start::first, p); });
  }
  if (c.verb == Verb::gather || c.verb == Verb::scatter) c.index = positions(in, noise, c, m);
  if (c.verb == Verb::pick || c.verb == Verb::place) c.index = taps(in, noise, c, m);
  return c;
}

/// The counts, as the tools read them.
inline void report() {
  std::fprintf(stderr,
               "core: %lld calls of verbs, %lld inputs, %lld plans refused, digest %016llx\n",
               static_cast<long long>(calls), static_cast<long long>(inputs),
               static_cast<long long>(refused), static_cast<unsigned long long>(digest));
}

}  // namespace poolgrad::fuzz
