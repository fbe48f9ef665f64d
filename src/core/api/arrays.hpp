// Check arrays, shapes and windows that come from Python; create arrays for results. Only
// module.cpp includes this.
#pragma once
#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#include <nanobind/nanobind.h>
#include <numpy/arrayobject.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plan/dtype.hpp"
#include "plan/owned_plan.hpp"
#include "runtime/memory.hpp"
#include "runtime/threads.hpp"

namespace nb = nanobind;

namespace poolgrad {
namespace {

int bfloat16_number = -1;

/// The most elements of an array: 64 bits count the bytes of any dtype.
constexpr int64_t kMostElements = int64_t{1} << 58;

Dtype dtype_of(PyArrayObject* a, const char* name) {
  const int number = PyArray_TYPE(a);
  if (number == bfloat16_number) return Dtype::bf16;
  switch (number) {
    case NPY_HALF: return Dtype::f16;
    case NPY_FLOAT: return Dtype::f32;
    case NPY_DOUBLE: return Dtype::f64;
    default: break;
  }
  if (PyTypeNum_ISINTEGER(number)) {
    const bool is_signed = PyTypeNum_ISSIGNED(number);
    switch (PyArray_ITEMSIZE(a)) {
      case 1: return is_signed ? Dtype::i8 : Dtype::u8;
      case 2: return is_signed ? Dtype::i16 : Dtype::u16;
      case 4: return is_signed ? Dtype::i32 : Dtype::u32;
      case 8: return is_signed ? Dtype::i64 : Dtype::u64;
      default: break;
    }
  }
  throw nb::type_error((std::string(name) + ": unsupported dtype").c_str());
}

/// An array that passed the check: contiguous, aligned, native byte order, of a known size.
struct Checked {
  char* data;
  int64_t elements, bytes;
  Dtype dtype;
};

Checked check(nb::handle object, const char* name, int64_t elements, bool written) {
  if (!PyArray_Check(object.ptr()))
    throw nb::type_error((std::string(name) + ": not a NumPy array").c_str());
  auto* a = reinterpret_cast<PyArrayObject*>(object.ptr());
  if (!PyArray_IS_C_CONTIGUOUS(a) || !PyArray_ISALIGNED(a) || !PyArray_ISNOTSWAPPED(a))
    throw nb::value_error(
        (std::string(name) + ": must be C-contiguous, aligned and in native byte order").c_str());
  if (written && !PyArray_ISWRITEABLE(a))
    throw nb::value_error((std::string(name) + ": must be writable").c_str());
  const Dtype dtype = dtype_of(a, name);
  const auto size = static_cast<int64_t>(PyArray_SIZE(a));
  if (elements >= 0 && size != elements)
    throw nb::value_error((std::string(name) + ": has " + std::to_string(size) +
                           " elements, the plan has " + std::to_string(elements))
                              .c_str());
  return {static_cast<char*>(PyArray_DATA(a)), size,
          size * static_cast<int64_t>(PyArray_ITEMSIZE(a)), dtype};
}

void same_type(const Checked& a, const Checked& b, const char* name) {
  if (a.dtype != b.dtype)
    throw nb::type_error(
        (std::string(name) + ": its dtype differs from the other arrays'").c_str());
}

void reject_overlap(const Checked& out, const Checked& other) {
  if (out.bytes && other.bytes && out.data < other.data + other.bytes &&
      other.data < out.data + out.bytes)
    throw nb::value_error("out: shares memory with another array");
}

/// Raise a MemoryError that names what needs the memory.
[[noreturn]] void raise_memory_error(const std::string& what) {
  PyErr_SetString(PyExc_MemoryError, (what + ", wanted no more than the memory there is").c_str());
  throw nb::python_error();
}

/// Create an array with this shape and the dtype of another; large ones use cached blocks.
nb::object new_array(const std::vector<int64_t>& shape, PyArray_Descr* descr) {
  npy_intp dims[NPY_MAXDIMS];
  int64_t bytes = PyDataType_ELSIZE(descr);
  for (size_t i = 0; i < shape.size(); ++i) {
    dims[i] = static_cast<npy_intp>(shape[i]);
    if (__builtin_mul_overflow(bytes, shape[i], &bytes))
      raise_memory_error("out: got a result whose bytes 64 bits cannot count");
  }
  const int rank = static_cast<int>(shape.size());
  Py_INCREF(reinterpret_cast<PyObject*>(descr));
  if (static_cast<size_t>(bytes) < kLargeBlock) {
    PyObject* small =
        PyArray_NewFromDescr(&PyArray_Type, descr, rank, dims, nullptr, nullptr, 0, nullptr);
    if (!small)
      throw nb::python_error();  // such as (0, 2^62, 2^62), whose strides overflow in NumPy
    return nb::steal(small);
  }
  void* block;
  try {
    block = take_block(static_cast<size_t>(bytes));
  } catch (const std::bad_alloc&) {
    Py_DECREF(reinterpret_cast<PyObject*>(descr));
    raise_memory_error("out: got a result of " + std::to_string(bytes) + " bytes");
  }
  nb::object array = nb::steal(PyArray_NewFromDescr(&PyArray_Type, descr, rank, dims, nullptr,
                                                    block, NPY_ARRAY_CARRAY, nullptr));
  PyObject* owner = array.is_valid() ? PyCapsule_New(block, nullptr, nullptr) : nullptr;
  if (!owner) {
    return_block(block, static_cast<size_t>(bytes));
    throw nb::python_error();
  }
  PyCapsule_SetContext(owner, reinterpret_cast<void*>(bytes));
  PyCapsule_SetDestructor(owner, [](PyObject* o) {
    return_block(PyCapsule_GetPointer(o, nullptr),
                 reinterpret_cast<size_t>(PyCapsule_GetContext(o)));
  });
  PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array.ptr()), owner);
  return array;
}

/// Return the given array, or a new one.
nb::object given_or_new(nb::handle out, const std::vector<int64_t>& shape, nb::handle like,
                        const char* name) {
  if (!out.is_none()) return nb::borrow(out);
  if (!PyArray_Check(like.ptr()))
    throw nb::type_error((std::string(name) + ": not a NumPy array").c_str());
  auto* a = reinterpret_cast<PyArrayObject*>(like.ptr());
  dtype_of(a, name);  // reject object arrays: cached memory holds anything, which NumPy would
                      // follow as pointers
  return new_array(shape, PyArray_DESCR(a));
}

/// A vector of window boundaries, to be copied without the GIL.
struct Borrowed {
  nb::object owner;
  const int64_t* data = nullptr;
  int64_t size = 0;
};

Borrowed int64_vector(nb::handle object, const char* name) {
  if (!PyArray_Check(object.ptr()))
    throw nb::type_error((std::string(name) + ": not a NumPy array").c_str());
  auto* a = reinterpret_cast<PyArrayObject*>(object.ptr());
  if (PyArray_NDIM(a) != 1)
    throw nb::value_error((std::string(name) + ": must have one dimension").c_str());
  const Checked c = check(object, name, -1, false);
  if (c.dtype != Dtype::i64) throw nb::type_error((std::string(name) + ": must be int64").c_str());
  return {nb::borrow(object), reinterpret_cast<const int64_t*>(c.data), c.elements};
}

/// Copy the entries of a vector, so that nobody can change them after the check.
void copy_entries(const Borrowed& from, int64_t* to) {
  constexpr int64_t kStep = 1 << 16;
  for (int64_t i = 0; i < from.size; i += kStep) {
    checkpoint(step_budget(), std::min(kStep, from.size - i));
    std::copy(from.data + i, from.data + std::min(i + kStep, from.size), to + i);
  }
}

Table copied(const Borrowed& b) {
  Table v(static_cast<size_t>(b.size));
  copy_entries(b, v.data());
  return v;
}

int64_t integer(nb::handle object, const char* name) {
  int64_t value = 0;
  if (!nb::try_cast<int64_t>(object, value))
    throw nb::type_error((std::string(name) + ": wanted integers within 64 bits").c_str());
  return value;
}

/// Read a shape with as many dimensions and elements as an array can have.
std::vector<int64_t> any_shape(nb::handle object, const char* name) {
  std::vector<int64_t> shape;
  int64_t size = 1;
  for (nb::handle n : object) {
    if (shape.size() == NPY_MAXDIMS)
      throw nb::value_error((std::string(name) + ": too many dimensions").c_str());
    shape.push_back(integer(n, name));
    if (shape.back() < 0 || __builtin_mul_overflow(size, shape.back(), &size) ||
        size > kMostElements)
      throw nb::value_error((std::string(name) + ": no shape").c_str());
  }
  return shape;
}

/// Read a shape with this many elements.
std::vector<int64_t> shape_of(nb::handle object, const char* name, int64_t elements) {
  const std::vector<int64_t> shape = any_shape(object, name);
  int64_t size = 1;
  for (const int64_t n : shape) size *= n;
  if (size != elements)
    throw nb::value_error((std::string(name) + ": has not as many elements as the plan").c_str());
  return shape;
}

}  // namespace
}  // namespace poolgrad
