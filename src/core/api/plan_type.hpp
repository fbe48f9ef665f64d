#pragma once

// The type of plans in Python. Made by hand: nanobind records every instance of its own types in a
// table, and ends the process if there is no memory to grow it.
#include <memory>

#include "api/arrays.hpp"
#include "plan/owned_plan.hpp"
#include "plan/plan_parts.hpp"

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

/// The type of plans in parts. It holds the plans of its parts.
struct PartsObject {
  PyObject_HEAD PlanParts* parts;
  PyObject* plans;
  static inline PyTypeObject* type = nullptr;
  static PartsObject* in(PyObject* object) { return reinterpret_cast<PartsObject*>(object); }
  static void end(PyObject* self) {
    PyTypeObject* const held = Py_TYPE(self);
    delete in(self)->parts;
    Py_XDECREF(in(self)->plans);
    PyObject_Free(self);
    Py_DECREF(reinterpret_cast<PyObject*>(held));
  }
  static void make_type() {
    PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&end)}, {0, nullptr}};
    PyType_Spec spec{"poolgrad._core.Parts", sizeof(PartsObject), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    if (!type) throw nb::python_error();
  }
  static nb::object make(std::unique_ptr<PlanParts> parts, nb::object plans) {
    PartsObject* const made = PyObject_New(PartsObject, type);
    if (!made) throw nb::python_error();
    made->parts = parts.release();
    made->plans = plans.release().ptr();
    return nb::steal(reinterpret_cast<PyObject*>(made));
  }
};

/// The windows of a forward call: a plan, or a plan in parts.
struct Windows {
  const OwnedPlan* plan = nullptr;
  const PlanParts* parts = nullptr;

  int64_t source_size() const { return plan ? plan->source_size() : parts->source_size(); }
  int64_t dest_size() const { return plan ? plan->dest_size() : parts->dest_size(); }
  const std::vector<int64_t>& source_shape() const {
    return plan ? plan->source_shape : parts->source_shape;
  }
  const std::vector<int64_t>& dest_shape() const {
    return plan ? plan->dest_shape : parts->dest_shape;
  }
  /// Call f(plan) for the plan, or for each plan of the parts.
  template <class F>
  void each_plan(F&& f) const {
    if (plan) return f(*plan);
    for (const OwnedPlan* of_part : parts->plans()) f(*of_part);
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

template <>
struct nanobind::detail::type_caster<poolgrad::Windows> {
  using Value = poolgrad::Windows;
  static constexpr auto Name = const_name("Plan");
  template <class T>
  using Cast = const Value&;
  bool from_python(handle given, uint32_t, cleanup_list*) noexcept {
    if (Py_TYPE(given.ptr()) == poolgrad::PlanObject::type)
      windows.plan = poolgrad::PlanObject::in(given.ptr())->plan;
    else if (Py_TYPE(given.ptr()) == poolgrad::PartsObject::type)
      windows.parts = poolgrad::PartsObject::in(given.ptr())->parts;
    else return false;
    return true;
  }
  operator const Value&() { return windows; }
  Value windows;
};
