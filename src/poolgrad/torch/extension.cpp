// The compiled part of poolgrad.torch: a Python module over the core's table of functions.
#include "calls.hpp"

namespace {

using namespace poolgrad::aten;

/// Call f; turn a C++ exception into one of Python.
template <class F>
PyObject* guarded(F&& f) {
  try {
    return f();
  } catch (python_error& error) {
    error.restore();
  } catch (pybind11::error_already_set& error) {
    error.restore();
  } catch (const std::exception& error) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

PyObject* connect(PyObject*, PyObject* capsule) {
  const auto* table = static_cast<const pg_table*>(PyCapsule_GetPointer(capsule, PG_CAPSULE));
  if (!table) return nullptr;
  if (!pg_table_fits(table)) {
    PyErr_SetString(PyExc_RuntimeError, "it was built for another version of poolgrad: build it again");
    return nullptr;
  }
  poolgrad::aten::core = table;
  Py_RETURN_NONE;
}

PyObject* override_torch(PyObject*, PyObject* on) {
  const int wanted = PyObject_IsTrue(on);
  if (wanted < 0) return nullptr;
  return guarded([&]() -> PyObject* {
    switch_to(wanted);
    Py_RETURN_NONE;
  });
}

PyObject* set_policy(PyObject*, PyObject* on) {
  policy = PyObject_IsTrue(on) == 1;
  Py_RETURN_NONE;
}

/// Return {operator: {way: calls}}.
PyObject* counters(PyObject*, PyObject*) {
  PyObject* made = PyDict_New();
  for (int op = 0; made && op < kOps; ++op) {
    PyObject* ways = PyDict_New();
    for (int way = 0; ways && way < kWays; ++way) {
      PyObject* calls = PyLong_FromLongLong(counts[op][way]);
      if (!calls || PyDict_SetItemString(ways, kWayNames[way], calls)) Py_CLEAR(ways);
      Py_XDECREF(calls);
    }
    if (!ways || PyDict_SetItemString(made, kOpNames[op], ways)) Py_CLEAR(made);
    Py_XDECREF(ways);
  }
  return made;
}

/// repeat(function, rank, args, named): the result of a taught call, or None.
PyObject* repeat_call(PyObject*, PyObject* const* words, Py_ssize_t n) {
  if (n != 4 || !PyTuple_CheckExact(words[2]) || !PyDict_CheckExact(words[3])) {
    PyErr_SetString(PyExc_TypeError, "repeat: got other arguments, wanted function, rank, args, named");
    return nullptr;
  }
  return guarded([&] { return repeat(PyLong_AsLongLong(words[0]), static_cast<int>(PyLong_AsLong(words[1])), words[2], words[3]); });
}

/// teach(function, rank, args, named, pool, lesson)
PyObject* teach_call(PyObject*, PyObject* words) {
  long long function;
  int rank;
  PyObject *args, *named, *pool, *lesson;
  if (!PyArg_ParseTuple(words, "LiO!O!OO", &function, &rank, &PyTuple_Type, &args, &PyDict_Type, &named, &pool, &lesson)) return nullptr;
  return guarded([&] { return PyBool_FromLong(teach(function, rank, args, named, pool, lesson)); });
}

PyMethodDef methods[] = {
    {"repeat", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(repeat_call)), METH_FASTCALL, "Return the result of a taught call, or None."},
    {"teach", teach_call, METH_VARARGS, "Learn a call that Python resolved."},
    {"connect", connect, METH_O, "Take the core's table of functions."},
    {"override", override_torch, METH_O, "Register the kernels in place of torch's, or give torch's back."},
    {"policy", set_policy, METH_O, "Leave calls that torch computes faster to torch, or compute all that are the same."},
    {"counters", counters, METH_NOARGS, "Return, per operator, how many calls went where."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef module = {PyModuleDef_HEAD_INIT, "_compiled", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__compiled() { return PyModule_Create(&module); }
