// Repeated calls of poolgrad.torch's functions on plain tensors, from the arguments as Python gives them to the result.
// Python resolves a call when it first occurs and teaches its windows; all rules about arguments stay there.
#pragma once
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <torch/csrc/autograd/python_variable.h>

#include "overrides.hpp"
#include "pieces.hpp"

namespace poolgrad::aten {

enum class Kind : int { best, mean, norm };

/// The way to draw windows: between borders, or of one size.
struct Recipe {
  std::vector<int64_t> lengths, sizes, kernel;
  bool pseudo_random = false, overlapping = false;
};

/// Two seeds of random windows.
struct Seeds {
  uint64_t first, second;
};

/// The windows of one call, and their cells if they are few.
struct Bound {
  Shared w;
  std::shared_ptr<const Few> few;
};

/// A call that Python resolved.
struct Taught {
  int rank = 0;
  int64_t outer = 1, inner = 1;
  Kind kind = Kind::best;
  bool least = false, indices = false, wide = false;
  MeanRules rules;
  double power = 2;              ///< of a norm
  std::optional<Recipe> recipe;  ///< of windows that each call draws
  Bound bound;                   ///< windows that all calls share
  PyObject* pool = nullptr;      ///< the resolved pool, for gradients that torch watches

  Taught() = default;
  Taught(const Taught&) = delete;
  ~Taught() {
    if (!pool || !Py_IsInitialized()) return;
    const PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(pool);
    PyGILState_Release(state);
  }
  bool euclidean() const { return kind == Kind::norm && power == 2; }
  const Pieces& pieces(bool back) const {
    std::call_once(cut_[back], [&] { pieces_[back] = std::make_unique<Pieces>(*bound.w, back); });
    return *pieces_[back];
  }
  at::ScalarType tap_type() const { return wide ? at::kInt : at::kByte; }

 private:
  mutable std::once_flag cut_[2];
  mutable std::unique_ptr<Pieces> pieces_[2];
};

/// Make the table of cells, if plain loops are the shortest way for tensors of that type.
inline Bound bound_of(const Taught& call, Shared w) {
  Bound made{std::move(w), nullptr};
  const bool few = call.kind == Kind::best ? is_few(*made.w) : call.kind == Kind::mean && is_few_to_add(*made.w);
  if (few) made.few = std::make_shared<const Few>(few_of(*made.w));
  return made;
}

/// Draw the windows of a call, from torch's generator if there are no seeds.
inline Bound drawn(const Taught& call, const std::optional<Seeds>& seeds) {
  const Recipe& r = *call.recipe;
  const auto rank = static_cast<size_t>(call.rank);
  std::vector<Axis> axes(rank);
  if (r.kernel.empty()) {
    Seeds pair{};
    if (seeds) {
      pair = *seeds;
    } else {
      const Tensor numbers = at::randint(int64_t{1} << 31, {2}, at::TensorOptions(at::kLong));
      const int64_t* words = numbers.const_data_ptr<int64_t>();
      pair = {static_cast<uint64_t>(words[0]), static_cast<uint64_t>(words[1])};
    }
    int64_t many = 0;
    for (const int64_t m : r.sizes) many += m + 1;
    std::vector<int64_t> borders(static_cast<size_t>(many));
    pg_error error;
    check(core->draw(call.rank, r.lengths.data(), r.sizes.data(), r.pseudo_random, pair.first, pair.second, borders.data(), many,
                     &error), error);
    const int64_t* border = borders.data();
    for (size_t a = 0; a < rank; border += r.sizes[a] + 1, ++a) {
      axes[a].n = r.lengths[a];
      for (int64_t j = 0; j < r.sizes[a]; ++j) {
        axes[a].start.push_back(border[j]);
        axes[a].stop.push_back(border[j + 1] < axes[a].n ? border[j + 1] + r.overlapping : axes[a].n);
        axes[a].span.push_back(axes[a].stop.back() - border[j]);
      }
    }
  } else {
    const Tensor numbers = at::rand({call.rank}, at::TensorOptions(at::kDouble));
    const double* offsets = numbers.const_data_ptr<double>();
    for (size_t a = 0; a < rank; ++a) {
      const double u = offsets[rank == 2 ? 1 - a : a];  // torch gives the first sample of two to the last axis
      const int64_t n = r.lengths[a], k = r.kernel[a], m = r.sizes[a];
      const double step = static_cast<double>(n - k) / static_cast<double>(std::max<int64_t>(m - 1, 1));
      const auto first = static_cast<int64_t>(u * step);
      axes[a].n = n;
      for (int64_t j = 0; j < m; ++j) {
        const int64_t start = j + 1 < m ? static_cast<int64_t>((static_cast<double>(j) + u) * step) - first : n - k;
        axes[a].start.push_back(start);
        axes[a].stop.push_back(start + k);
        axes[a].span.push_back(k);
      }
    }
  }
  return bound_of(call, std::make_shared<Windows>(std::move(axes), call.outer, call.inner));
}

/// Return taps in the type that the core has, or that Python has.
inline Tensor as_taps(const Tensor& taps, at::ScalarType type) { return taps.scalar_type() == type ? taps : taps.to(type); }

inline void average(const Taught& call, const Bound& bound, const Tensor& x, Tensor& y) {
  if (bound.few) return fold(*bound.few, call.rules, x, y);
  if (!call.rules.divides_sums()) return fold(*bound.w, call.rules.mean, x, y);
  average(*bound.w, call.rules.divide == Divide::spans ? PG_BY_SPAN : PG_BY_NUMBER, call.rules.by, x, y);
}

/// Share g over the cells of the windows.
inline void average_back(const Taught& call, const Bound& bound, const Tensor& g, Tensor& dx) {
  const Windows& w = *bound.w;
  if (bound.few) return spread(*bound.few, call.rules, g, dx);
  if (!call.rules.divides()) {
    if (call.rules.share == PG_SHARE_WHOLE || !is_long(w)) return spread(w, call.rules.share, g, dx);
    return spread_long(w, Sharing::reciprocal, g, dx);
  }
  if (halves(number_of(g.scalar_type()))) return spread_wide(call.pieces(true), call.rules, g, dx);
  Tensor shares = at::empty_like(g);
  divide(w, divisor_of(call.rules), g, shares);
  spread(w, PG_SHARE_WHOLE, shares, dx);
}

inline Table<std::shared_ptr<Taught>>& taught_calls() {
  static auto* table = new Table<std::shared_ptr<Taught>>;  // never destroyed: Python may be gone by then
  return *table;
}

/// Append a word of a call to its key: a number, a truth value, None, a short text, or a tuple of these.
inline bool add_word(Key& key, PyObject* word) {
  enum : int64_t { none = 1, yes, no, whole, real, text, tuple };
  if (word == Py_None) return key.add(none);
  if (word == Py_True) return key.add(yes);
  if (word == Py_False) return key.add(no);
  if (PyLong_CheckExact(word)) {
    int overflow = 0;
    const int64_t value = PyLong_AsLongLongAndOverflow(word, &overflow);
    return !overflow && key.add(whole) && key.add(value);
  }
  if (PyFloat_CheckExact(word)) {
    const double value = PyFloat_AS_DOUBLE(word);
    int64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return key.add(real) && key.add(bits);
  }
  if (PyUnicode_CheckExact(word)) {
    Py_ssize_t size = 0;
    const char* letters = PyUnicode_AsUTF8AndSize(word, &size);
    int64_t parts[2] = {0, 0};
    if (!letters) PyErr_Clear();
    if (!letters || size > static_cast<Py_ssize_t>(sizeof parts)) return false;
    std::memcpy(parts, letters, static_cast<size_t>(size));
    return key.add(text) && key.add(size) && key.add(parts[0]) && key.add(parts[1]);
  }
  if (!PyTuple_CheckExact(word)) return false;
  const Py_ssize_t n = PyTuple_GET_SIZE(word);
  if (!key.add(tuple) || !key.add(n)) return false;
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!add_word(key, PyTuple_GET_ITEM(word, i))) return false;
  return true;
}

/// Return the layout in which the core reads x without a copy, or outer = 0.
inline Layout own_layout(const Tensor& x, int rank) {
  Layout made;
  const int64_t dim = x.dim();
  if (dim != rank + 1 && dim != rank + 2) return made;
  if (x.is_contiguous()) {
    made.outer = 1;
  } else if (rank > 1 && dim == rank + 2) {
    made.format = rank == 2 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d;
    made.last = true;
    made.outer = x.is_contiguous(made.format);
  }
  return made;
}

/// Return whether the memory of a tensor begins where its elements may.
inline bool aligned(const Tensor& x) {
  return reinterpret_cast<uintptr_t>(x.const_data_ptr()) % static_cast<uintptr_t>(x.element_size()) == 0;
}

/// The key of a call, with what is no part of it: the layout of its input, and its seed.
struct Asked {
  Key key;
  Layout layout;
  bool has_seed = false;
  std::optional<Seeds> seeds;
};

/// Read a seed: None, or an integer of 62 bits.
inline bool read_seed(Asked& asked, PyObject* value) {
  asked.has_seed = true;
  if (value == Py_None) return true;
  if (!PyLong_CheckExact(value)) return false;
  int overflow = 0;
  const int64_t seed = PyLong_AsLongLongAndOverflow(value, &overflow);
  constexpr int64_t kEnd = int64_t{1} << 62;
  if (overflow || seed <= -kEnd || seed >= kEnd) return false;
  asked.seeds = {static_cast<uint64_t>(seed), 0};
  return true;
}

/// Make the key of a call; false if calls like it are never taught.
inline bool ask(Asked& asked, int64_t function, int rank, PyObject* args, PyObject* named) {
  static PyObject* const seed = PyUnicode_InternFromString("seed");
  const Py_ssize_t given = PyTuple_GET_SIZE(args);
  if (given < 1 || !THPVariable_CheckExact(PyTuple_GET_ITEM(args, 0))) return false;
  const Tensor& x = THPVariable_Unpack(PyTuple_GET_ITEM(args, 0));
  if (!plain(x)) return false;
  const int type = number_of(x.scalar_type());
  asked.layout = own_layout(x, rank);
  if (type < 0 || !asked.layout.outer || !aligned(x)) return false;
  Key& key = asked.key;
  key.add(function);
  key.add(type * 2 + asked.layout.last);
  key.add(x.dim());
  for (const int64_t n : x.sizes()) key.add(n);
  for (Py_ssize_t i = 1; i < given; ++i)
    if (!add_word(key, PyTuple_GET_ITEM(args, i))) return false;
  PyObject *name, *value;
  Py_ssize_t at = 0;
  while (named && PyDict_Next(named, &at, &name, &value)) {
    if (name == seed) {
      if (!read_seed(asked, value)) return false;
    } else if (!key.add(reinterpret_cast<int64_t>(name)) || !add_word(key, value)) {  // names are interned, and `teach` keeps them
      return false;
    }
  }
  return true;
}

/// The gradient of a taught call.
struct TaughtBackward : torch::autograd::Node {
  std::shared_ptr<Taught> call;
  Bound bound;
  Layout layout;
  c10::SmallVector<int64_t, 5> sizes;
  torch::autograd::SavedVariable kept, input;  // taps, or sums of powers; the input of a norm

  std::string name() const override {
    constexpr const char* kNames[] = {"PoolgradBestBackward", "PoolgradMeansBackward", "PoolgradNormsBackward"};
    return kNames[static_cast<int>(call->kind)];
  }
  void release_variables() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    kept.reset_data();
    input.reset_data();
  }
  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
    Tensor state, x;
    if (call->kind != Kind::mean) {
      const std::lock_guard<std::mutex> lock(mutex_);
      state = kept.unpack();
      if (call->kind == Kind::norm) x = input.unpack();
    }
    const Tensor& g = grads[0];
    if (!g.defined() || !task_should_compute_output(0)) return {Tensor()};
    const Tensor dx = quickly(g, state, x);
    return {dx.defined() ? dx : watched(g, call->kind == Kind::norm ? x : state)};
  }

 private:
  /// Return the gradient, or nothing if torch watches the tensors or a hook changed them.
  Tensor quickly(const Tensor& g, const Tensor& state, const Tensor& x) const {
    const Windows& w = *bound.w;
    const auto quiet = [&](const Tensor& t) { return plain(t) && !(at::GradMode::is_enabled() && t.requires_grad()); };
    if (!quiet(g) || g.numel() != w.dest()) return {};
    if (call->kind == Kind::best && (!plain(state) || state.numel() != w.dest() || state.scalar_type() != call->tap_type())) return {};
    if (call->kind == Kind::norm &&
        (!plain(state) || state.numel() != w.dest() || !state.is_contiguous() || !aligned(state) || !quiet(x) || x.numel() != w.source() ||
         !x.is_contiguous(layout.format) || !aligned(x) || x.scalar_type() != g.scalar_type()))
      return {};
    const at::AutoDispatchBelowADInplaceOrView guard;
    const Tensor in = g.contiguous(layout.format);
    if (!aligned(in)) return {};
    Tensor dx = at::empty(sizes, g.options(), layout.format);
    if (call->kind == Kind::mean) {
      average_back(*call, bound, in, dx);
    } else if (call->kind == Kind::norm) {
      if (call->euclidean()) euclidean_back(call->pieces(true), state, x, in, dx);
      else norms_back(call->pieces(true), call->power, state, x, in, dx);
    } else {
      const Tensor taps = state.contiguous(layout.format);
      if (bound.few ? !place(*bound.few, in, taps, dx) : !place(w, in, as_taps(taps, tap_type(w)), dx)) return {};
    }
    return dx;
  }

  /// Return the gradient by the pool of Python, which transforms and further derivatives know, and which says what is wrong.
  Tensor watched(const Tensor& g, const Tensor& state) const {
    const pybind11::gil_scoped_acquire gil;
    const auto own = [](const Tensor& t) {
      return t.defined() ? pybind11::reinterpret_steal<pybind11::object>(THPVariable_Wrap(t)) : pybind11::object(pybind11::none());
    };
    const auto made = pybind11::reinterpret_steal<pybind11::object>(PyObject_CallMethod(
        call->pool, "backward", "OOO", own(g).ptr(), own(state).ptr(), own(call->recipe ? rows() : Tensor()).ptr()));
    if (!made) {
      python_error error;
      error.persist();
      throw error;
    }
    return THPVariable_Unpack(made.ptr());
  }

  /// Return the windows as rows (start, stop), axis after axis.
  Tensor rows() const {
    std::vector<int64_t> numbers;
    for (const Axis& axis : bound.w->axes())
      for (size_t j = 0; j < axis.start.size(); ++j) numbers.insert(numbers.end(), {axis.start[j], axis.stop[j]});
    return at::tensor(numbers, at::TensorOptions(at::kLong)).view({-1, 2});
  }
};

/// The results of a call.
struct Given {
  Tensor y, index;
};

inline Given run(const std::shared_ptr<Taught>& call, const Asked& asked, const Tensor& x) {
  const Layout& layout = asked.layout;
  const bool recorded = x.requires_grad() && at::GradMode::is_enabled();
  const Bound bound = call->recipe ? drawn(*call, asked.seeds) : call->bound;
  const Windows& w = *bound.w;
  Given made;
  Tensor state;
  {
    const at::AutoDispatchBelowADInplaceOrView guard;
    made.y = blank(x, w, layout, x.scalar_type(), true);
    if (call->kind == Kind::mean) {
      average(*call, bound, x, made.y);
    } else if (call->kind == Kind::norm) {
      const at::ScalarType wide = halves(number_of(x.scalar_type())) ? at::kFloat : x.scalar_type();
      if (call->euclidean()) state = euclidean(w, wide, x, made.y);
      else state = norms(call->pieces(false), call->power, wide, x, made.y);
    } else {
      const bool wanted = recorded || call->indices;
      if (bound.few) {
        if (wanted) state = blank(x, w, layout, call->tap_type(), true);
        choose(*bound.few, call->least, x, made.y, state);
      } else if (!wanted) {
        select(w, x, made.y, call->least);
      } else {
        state = blank(x, w, layout, tap_type(w), true);
        choose(w, x, made.y, state, call->least);
      }
    }
    if (call->indices) {
      made.index = blank(x, w, layout, at::kLong, true);
      positions(w, as_taps(state, tap_type(w)), made.index);
    }
    if (call->kind == Kind::best && recorded) state = as_taps(state, call->tap_type());
  }
  if (!recorded) return made;
  auto node = c10::make_intrusive<TaughtBackward>();
  node->set_next_edges(torch::autograd::collect_next_edges(x));
  node->call = call;
  node->bound = bound;
  node->layout = layout;
  node->sizes.assign(x.sizes().begin(), x.sizes().end());
  if (call->kind != Kind::mean) node->kept = torch::autograd::SavedVariable(state, false);
  if (call->kind == Kind::norm) node->input = torch::autograd::SavedVariable(x, false);
  torch::autograd::set_history(made.y, node);
  return made;
}

constexpr int64_t kShort = 1 << 14;  // elements that are pooled before another thread could use Python

/// Return the result of a call that was taught, or None.
inline PyObject* repeat(int64_t function, int rank, PyObject* args, PyObject* named) {
  Asked asked;
  if (!ask(asked, function, rank, args, named)) Py_RETURN_NONE;
  const auto call = taught_calls().find(asked.key);
  if (!call || (asked.has_seed && !call->recipe) || (asked.seeds && !call->recipe->kernel.empty())) Py_RETURN_NONE;
  const Tensor& x = THPVariable_Unpack(PyTuple_GET_ITEM(args, 0));
  Given made;
  if (x.numel() <= kShort) {
    made = run(call, asked, x);
  } else {
    const pybind11::gil_scoped_release released;
    made = run(call, asked, x);
  }
  PyObject* y = THPVariable_Wrap(std::move(made.y));
  if (!y || !call->indices) return y;
  PyObject* index = THPVariable_Wrap(std::move(made.index));
  PyObject* both = index ? PyTuple_Pack(2, y, index) : nullptr;
  Py_DECREF(y);
  Py_XDECREF(index);
  return both;
}

/// Read windows ((length, starts, stops, spans), ...).
inline std::vector<Axis> read_axes(const pybind11::handle& rows) {
  std::vector<Axis> made;
  for (const auto row : pybind11::reinterpret_borrow<pybind11::sequence>(rows)) {
    const auto words = pybind11::reinterpret_borrow<pybind11::sequence>(row);
    made.push_back({words[0].cast<int64_t>(), words[1].cast<std::vector<int64_t>>(), words[2].cast<std::vector<int64_t>>(),
                    words[3].cast<std::vector<int64_t>>()});
    const Axis& axis = made.back();
    TORCH_CHECK_VALUE(axis.stop.size() == axis.start.size() && axis.span.size() == axis.start.size(), "axes: got ",
                      axis.start.size(), " starts, ", axis.stop.size(), " stops and ", axis.span.size(), " spans, wanted as many of each");
  }
  return made;
}

/// Learn a call from a `Lesson` of _resolved.py.
inline bool teach(int64_t function, int rank, PyObject* args, PyObject* named, PyObject* pool, PyObject* given) {
  Asked asked;
  if (!ask(asked, function, rank, args, named)) return false;
  const pybind11::handle lesson(given);
  const auto whole = [&](const char* name) { return lesson.attr(name).cast<int>(); };
  auto call = std::make_shared<Taught>();
  call->rank = rank;
  call->outer = lesson.attr("outer").cast<int64_t>();
  call->inner = lesson.attr("inner").cast<int64_t>();
  if (call->outer < 1 || call->inner < 1) return false;
  call->kind = static_cast<Kind>(whole("kind"));
  call->least = whole("least");
  call->indices = whole("indices");
  call->wide = whole("wide");
  call->rules = {static_cast<pg_mean>(whole("mean")), static_cast<pg_share>(whole("share")), static_cast<Divide>(whole("divide")),
                 lesson.attr("by").cast<double>()};
  call->power = lesson.attr("power").cast<double>();
  if (const pybind11::object axes = lesson.attr("axes"); !axes.is_none()) {
    auto w = std::make_shared<Windows>(read_axes(axes), call->outer, call->inner);
    if (w->rank() != rank || !w->dest()) return false;
    if (call->kind == Kind::best && call->wide != (w->tap_bytes() == 4)) return false;
    w->plan();  // which checks the windows
    call->bound = bound_of(*call, std::move(w));
  } else {
    const auto list = [&](const char* name) { return lesson.attr(name).cast<std::vector<int64_t>>(); };
    call->recipe = Recipe{list("lengths"), list("sizes"), list("kernel"), whole("pseudo_random") != 0, whole("overlapping") != 0};
  }
  call->pool = Py_NewRef(pool);
  PyObject *name, *value;
  Py_ssize_t at = 0;
  while (named && PyDict_Next(named, &at, &name, &value)) Py_INCREF(name);  // for ever: their addresses are in keys
  taught_calls().keep(asked.key, std::move(call));
  return true;
}

}  // namespace poolgrad::aten
