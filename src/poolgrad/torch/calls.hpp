// Repeated calls of poolgrad.torch's functions on plain tensors, from the arguments as Python gives them to the result.
// Python resolves a call when it first occurs and teaches its windows; all rules about arguments stay there.
#pragma once
#include <torch/csrc/autograd/python_variable.h>

#include "overrides.hpp"

namespace poolgrad::aten {

/// A call that Python resolved.
struct Taught {
  Shared w;
  int rank = 0;
  bool best = false, least = false, indices = false;
  pg_mean mean = PG_MEAN_ONCE;
  pg_share share = PG_SHARE_RECIPROCAL;
  std::vector<int32_t> few;  ///< the cells of each window, of a mean of few cells
  PyObject* pool = nullptr;  ///< the resolved pool, for gradients that torch watches

  Taught() = default;
  Taught(const Taught&) = delete;
  ~Taught() {
    if (!pool || !Py_IsInitialized()) return;
    const PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(pool);
    PyGILState_Release(state);
  }
};

/// Take the means, by plain loops if there are few cells.
inline void average(const Taught& call, const Tensor& x, Tensor& y) {
  if (call.few.empty()) return fold(*call.w, call.mean, x, y);
  if (x.scalar_type() == at::kFloat)
    fold_few(*call.w, call.few, static_cast<const float*>(x.const_data_ptr()), static_cast<float*>(y.mutable_data_ptr()));
  else
    fold_few(*call.w, call.few, static_cast<const double*>(x.const_data_ptr()), static_cast<double*>(y.mutable_data_ptr()));
}

/// Share g over the cells of the windows.
inline void average_back(const Taught& call, const Tensor& g, Tensor& dx) {
  if (call.few.empty()) return spread(*call.w, call.share, g, dx);
  if (g.scalar_type() == at::kFloat)
    spread_few(*call.w, call.few, static_cast<const float*>(g.const_data_ptr()), static_cast<float*>(dx.mutable_data_ptr()));
  else
    spread_few(*call.w, call.few, static_cast<const double*>(g.const_data_ptr()), static_cast<double*>(dx.mutable_data_ptr()));
}

inline Table<std::shared_ptr<Taught>>& taught_calls() {
  static auto* table = new Table<std::shared_ptr<Taught>>;  // never destroyed: Python may be gone by then
  return *table;
}

/// Append a word of a call to its key: an integer, a truth value, None, or a tuple of these.
inline bool add_word(Key& key, PyObject* word) {
  enum : int64_t { none = 1, yes, no, whole, tuple };
  if (word == Py_None) return key.add(none);
  if (word == Py_True) return key.add(yes);
  if (word == Py_False) return key.add(no);
  if (PyLong_CheckExact(word)) {
    int overflow = 0;
    const int64_t value = PyLong_AsLongLongAndOverflow(word, &overflow);
    return !overflow && key.add(whole) && key.add(value);
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

/// Make the key of a call; false if calls like it are never taught.
inline bool key_of(Key& key, Layout& layout, int64_t function, int rank, PyObject* args, PyObject* named) {
  const Py_ssize_t given = PyTuple_GET_SIZE(args);
  if (given < 1 || !THPVariable_CheckExact(PyTuple_GET_ITEM(args, 0))) return false;
  const Tensor& x = THPVariable_Unpack(PyTuple_GET_ITEM(args, 0));
  if (!plain(x)) return false;
  const int type = number_of(x.scalar_type());
  layout = own_layout(x, rank);
  if (type < 0 || !layout.outer || !aligned(x)) return false;
  key.add(function);
  key.add(type * 2 + layout.last);
  key.add(x.dim());
  for (const int64_t n : x.sizes()) key.add(n);
  for (Py_ssize_t i = 1; i < given; ++i)
    if (!add_word(key, PyTuple_GET_ITEM(args, i))) return false;
  PyObject *name, *value;
  Py_ssize_t at = 0;
  while (named && PyDict_Next(named, &at, &name, &value))  // names are interned, and `teach` keeps them
    if (!key.add(reinterpret_cast<int64_t>(name)) || !add_word(key, value)) return false;
  return true;
}

/// The gradient of a taught call.
struct TaughtBackward : torch::autograd::Node {
  std::shared_ptr<Taught> call;
  Layout layout;
  c10::SmallVector<int64_t, 5> sizes;
  torch::autograd::SavedVariable taps;

  std::string name() const override { return call->best ? "PoolgradBestBackward" : "PoolgradMeansBackward"; }
  void release_variables() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    taps.reset_data();
  }
  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
    Tensor kept;
    if (call->best) {
      const std::lock_guard<std::mutex> lock(mutex_);
      kept = taps.unpack();
    }
    const Tensor& g = grads[0];
    if (!g.defined() || !task_should_compute_output(0)) return {Tensor()};
    const Windows& w = *call->w;
    bool simple = plain(g) && !(at::GradMode::is_enabled() && g.requires_grad()) && g.numel() == w.dest();
    if (call->best) simple = simple && plain(kept) && kept.numel() == w.dest() && kept.scalar_type() == tap_type(w);
    if (!simple) return {watched(g, kept)};
    const at::AutoDispatchBelowADInplaceOrView guard;
    const Tensor in = g.contiguous(layout.format);
    if (!aligned(in)) return {watched(g, kept)};
    Tensor dx = at::empty(sizes, g.options(), layout.format);
    if (!call->best) {
      average_back(*call, in, dx);
      return {dx};
    }
    if (place(w, in, kept.contiguous(layout.format), dx)) return {dx};
    return {watched(g, kept)};  // which says what is wrong
  }

 private:
  /// Return the gradient by the pool of Python, which transforms and further derivatives know.
  Tensor watched(const Tensor& g, const Tensor& kept) const {
    const pybind11::gil_scoped_acquire gil;
    const auto own = [](const Tensor& t) { return pybind11::reinterpret_steal<pybind11::object>(THPVariable_Wrap(t)); };
    const auto gradient = own(g), taps_ = call->best ? own(kept) : pybind11::object(pybind11::none());
    const auto made = pybind11::reinterpret_steal<pybind11::object>(
        PyObject_CallMethod(call->pool, "backward", "OO", gradient.ptr(), taps_.ptr()));
    if (!made) {
      python_error error;
      error.persist();
      throw error;
    }
    return THPVariable_Unpack(made.ptr());
  }
};

/// The results of a call.
struct Given {
  Tensor y, index;
};

inline Given run(const std::shared_ptr<Taught>& call, const Layout& layout, const Tensor& x) {
  const Windows& w = *call->w;
  const bool recorded = x.requires_grad() && at::GradMode::is_enabled();
  Given made;
  Tensor taps;
  {
    const at::AutoDispatchBelowADInplaceOrView guard;
    made.y = blank(x, w, layout, x.scalar_type(), true);
    if (!call->best) {
      average(*call, x, made.y);
    } else if (!recorded && !call->indices) {
      select(w, x, made.y, call->least);
    } else {
      taps = blank(x, w, layout, tap_type(w), true);
      choose(w, x, made.y, taps, call->least);
    }
    if (call->indices) {
      made.index = blank(x, w, layout, at::kLong, true);
      positions(w, taps, made.index);
    }
  }
  if (!recorded) return made;
  auto node = c10::make_intrusive<TaughtBackward>();
  node->set_next_edges(torch::autograd::collect_next_edges(x));
  node->call = call;
  node->layout = layout;
  node->sizes.assign(x.sizes().begin(), x.sizes().end());
  if (call->best) node->taps = torch::autograd::SavedVariable(taps, false);
  torch::autograd::set_history(made.y, node);
  return made;
}

constexpr int64_t kShort = 1 << 14;  // elements that are pooled before another thread could use Python

/// Return the result of a call that was taught, or None.
inline PyObject* repeat(int64_t function, int rank, PyObject* args, PyObject* named) {
  Key key;
  Layout layout;
  if (!key_of(key, layout, function, rank, args, named)) Py_RETURN_NONE;
  const auto call = taught_calls().find(key);
  if (!call) Py_RETURN_NONE;
  const Tensor& x = THPVariable_Unpack(PyTuple_GET_ITEM(args, 0));
  Given made;
  if (x.numel() <= kShort) {
    made = run(call, layout, x);
  } else {
    const pybind11::gil_scoped_release released;
    made = run(call, layout, x);
  }
  PyObject* y = THPVariable_Wrap(std::move(made.y));
  if (!y || !call->indices) return y;
  PyObject* index = THPVariable_Wrap(std::move(made.index));
  PyObject* both = index ? PyTuple_Pack(2, y, index) : nullptr;
  Py_DECREF(y);
  Py_XDECREF(index);
  return both;
}

/// Learn a call: its windows as ((length, starts, stops), ...), and rules.
inline bool teach(int64_t function, int rank, PyObject* args, PyObject* named, PyObject* pool, int64_t outer,
                  int64_t inner, PyObject* axes, bool best, bool least, bool indices, int mean, int share, bool wide) {
  Key key;
  Layout layout;
  if (!key_of(key, layout, function, rank, args, named)) return false;
  std::vector<Axis> made;
  for (const auto row : pybind11::reinterpret_borrow<pybind11::sequence>(axes)) {
    const auto words = pybind11::reinterpret_borrow<pybind11::sequence>(row);
    Axis axis;
    axis.n = words[0].cast<int64_t>();
    axis.start = words[1].cast<std::vector<int64_t>>();
    axis.stop = words[2].cast<std::vector<int64_t>>();
    for (size_t j = 0; j < axis.start.size(); ++j) axis.span.push_back(axis.stop[j] - axis.start[j]);
    made.push_back(std::move(axis));
  }
  if (static_cast<int>(made.size()) != rank || outer < 1 || inner < 1) return false;
  auto call = std::make_shared<Taught>();
  call->w = std::make_shared<Windows>(std::move(made), outer, inner);
  if (!call->w->dest() || (best && wide != (call->w->tap_bytes() == 4))) return false;
  call->rank = rank;
  call->best = best;
  call->least = least;
  call->indices = indices;
  call->mean = static_cast<pg_mean>(mean);
  call->share = static_cast<pg_share>(share);
  const Windows& w = *call->w;
  const at::ScalarType type = THPVariable_Unpack(PyTuple_GET_ITEM(args, 0)).scalar_type();
  const bool plainly = type == at::kFloat || type == at::kDouble;
  if (!best && plainly && w.source() <= kFewCells && w.dest() <= kFewCells && w.cells() <= kAddedInTurn && w.depth() <= kAddedInTurn)
    call->few = counts_of(w);
  call->pool = Py_NewRef(pool);
  PyObject *name, *value;
  Py_ssize_t at = 0;
  while (named && PyDict_Next(named, &at, &name, &value)) Py_INCREF(name);  // for ever: their addresses are in keys
  taught_calls().keep(key, std::move(call));
  return true;
}

}  // namespace poolgrad::aten
