// The compiled part of poolgrad.torch: a Python module over the core's table of functions.
#include <torch/csrc/autograd/python_variable.h>

#include "overrides.hpp"

namespace {

using namespace poolgrad::aten;

/// Call f; turn a C++ exception into one of Python.
template <class F>
PyObject* guarded(F&& f) {
  try {
    return f();
  } catch (const std::exception& error) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

PyObject* connect(PyObject*, PyObject* capsule) {
  poolgrad::aten::core = static_cast<const poolgrad::Foreign*>(PyCapsule_GetPointer(capsule, poolgrad::kForeignName));
  if (!poolgrad::aten::core) return nullptr;
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

PyMethodDef methods[] = {
    {"connect", connect, METH_O, "Take the core's table of functions."},
    {"override", override_torch, METH_O, "Register the kernels in place of torch's, or give torch's back."},
    {"policy", set_policy, METH_O, "Leave calls that torch computes faster to torch, or compute all that are the same."},
    {"counters", counters, METH_NOARGS, "Return, per operator, how many calls went where."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef module = {PyModuleDef_HEAD_INIT, "_compiled", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__compiled() { return PyModule_Create(&module); }
