#pragma once

// The type of plans in Python. Made by hand: nanobind records every instance of its own types in a
// table, and ends the process if there is no memory to grow it.
#include <memory>

#include "api/arrays.hpp"
#include "plan/owned_plan.hpp"

namespace poolgrad {
struct PlanObject {
  PyObject_HEAD OwnedPlan* plan;
  static inline PyTypeObject* type = nullptr;
  static PlanObject* in(PyObject* object) { return reinterpret_cast<PlanObject*>(object); }
  static void end(PyObject* self) {
    PyTypeObject* const held = Py_TYPE(self);
    delete in(self)->plan;
    PyObject_Free(self);
    Py_DECREF(reinterpret_cast<PyObject*>(held));
  }
  static void make_type() {
    PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&end)}, {0, nullptr}};
    PyType_Spec spec{"poolgrad._core.Plan", sizeof(PlanObject), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    if (!type) throw nb::python_error();
  }
  static nb::object make(std::unique_ptr<OwnedPlan> plan) {
    PlanObject* const made = PyObject_New(PlanObject, type);
    if (!made) throw nb::python_error();
    made->plan = plan.release();
    return nb::steal(reinterpret_cast<PyObject*>(made));
  }
};

}  // namespace poolgrad

template <>
struct nanobind::detail::type_caster<poolgrad::OwnedPlan> {
  using Value = poolgrad::OwnedPlan;
  static constexpr auto Name = const_name("Plan");
  template <class T>
  using Cast = const Value&;
  bool from_python(handle given, uint32_t, cleanup_list*) noexcept {
    if (Py_TYPE(given.ptr()) != poolgrad::PlanObject::type) return false;
    plan = poolgrad::PlanObject::in(given.ptr())->plan;
    return true;
  }
  operator const Value&() { return *plan; }
  const Value* plan = nullptr;
};
