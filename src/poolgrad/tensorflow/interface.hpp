// TensorFlow's C interface for ops and kernels, looked up at run time: no header of TensorFlow, one binary for several versions.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "poolgrad.h"

#define PG_API extern "C" __attribute__((visibility("default")))

extern "C" {
struct TF_KernelBuilder;
struct TF_OpDefinitionBuilder;
struct TF_OpKernelConstruction;
struct TF_OpKernelContext;
struct TF_ShapeInferenceContext;
struct TF_Status;
struct TF_Tensor;
}

namespace poolgrad {
namespace {

#define PG_TF_FUNCTIONS(X)                                                                                                        \
  X(TF_KernelBuilder*, TF_NewKernelBuilder,                                                                                       \
    (const char*, const char*, void* (*)(TF_OpKernelConstruction*), void (*)(void*, TF_OpKernelContext*), void (*)(void*)))       \
  X(void, TF_KernelBuilder_TypeConstraint, (TF_KernelBuilder*, const char*, int, TF_Status*))                                     \
  X(void, TF_KernelBuilder_Priority, (TF_KernelBuilder*, int32_t))                                                                \
  X(void, TF_RegisterKernelBuilder, (const char*, TF_KernelBuilder*, TF_Status*))                                                 \
  X(void, TF_GetInput, (TF_OpKernelContext*, int, TF_Tensor**, TF_Status*))                                                       \
  X(TF_Tensor*, TF_AllocateOutput, (TF_OpKernelContext*, int, int, const int64_t*, int, size_t, TF_Status*))                      \
  X(void, TF_OpKernelContext_Failure, (TF_OpKernelContext*, TF_Status*))                                                          \
  X(void, TF_OpKernelConstruction_Failure, (TF_OpKernelConstruction*, TF_Status*))                                                \
  X(void, TF_OpKernelConstruction_GetAttrSize, (TF_OpKernelConstruction*, const char*, int32_t*, int32_t*, TF_Status*))           \
  X(void, TF_OpKernelConstruction_GetAttrType, (TF_OpKernelConstruction*, const char*, int*, TF_Status*))                         \
  X(void, TF_OpKernelConstruction_GetAttrInt64, (TF_OpKernelConstruction*, const char*, int64_t*, TF_Status*))                    \
  X(void, TF_OpKernelConstruction_GetAttrBool, (TF_OpKernelConstruction*, const char*, unsigned char*, TF_Status*))               \
  X(void, TF_OpKernelConstruction_GetAttrInt64List, (TF_OpKernelConstruction*, const char*, int64_t*, int, TF_Status*))           \
  X(void, TF_OpKernelConstruction_GetAttrFloatList, (TF_OpKernelConstruction*, const char*, float*, int, TF_Status*))             \
  X(void, TF_OpKernelConstruction_GetAttrString, (TF_OpKernelConstruction*, const char*, char*, size_t, TF_Status*))              \
  X(TF_Status*, TF_NewStatus, ())                                                                                                 \
  X(void, TF_SetStatus, (TF_Status*, int, const char*))                                                                           \
  X(int, TF_GetCode, (const TF_Status*))                                                                                          \
  X(const char*, TF_Message, (const TF_Status*))                                                                                  \
  X(int, TF_TensorType, (const TF_Tensor*))                                                                                       \
  X(int, TF_NumDims, (const TF_Tensor*))                                                                                          \
  X(int64_t, TF_Dim, (const TF_Tensor*, int))                                                                                     \
  X(void*, TF_TensorData, (const TF_Tensor*))                                                                                     \
  X(void, TF_DeleteTensor, (TF_Tensor*))                                                                                          \
  X(void, TF_OpKernelConstruction_GetAttrTypeList, (TF_OpKernelConstruction*, const char*, int*, int, TF_Status*))                \
  X(TF_OpDefinitionBuilder*, TF_NewOpDefinitionBuilder, (const char*))                                                            \
  X(void, TF_OpDefinitionBuilderAddAttr, (TF_OpDefinitionBuilder*, const char*))                                                  \
  X(void, TF_OpDefinitionBuilderAddInput, (TF_OpDefinitionBuilder*, const char*))                                                 \
  X(void, TF_OpDefinitionBuilderAddOutput, (TF_OpDefinitionBuilder*, const char*))                                                \
  X(void, TF_OpDefinitionBuilderSetIsStateful, (TF_OpDefinitionBuilder*, bool))                                                   \
  X(void, TF_OpDefinitionBuilderSetShapeInferenceFunction,                                                                        \
    (TF_OpDefinitionBuilder*, void (*)(TF_ShapeInferenceContext*, TF_Status*)))                                                   \
  X(void, TF_RegisterOpDefinition, (TF_OpDefinitionBuilder*, TF_Status*))                                                         \
  X(void, TF_ShapeInferenceContextSetUnknownShape, (TF_ShapeInferenceContext*, TF_Status*))
#define PG_DECLARE(result, name, arguments) result(*name) arguments = nullptr;
PG_TF_FUNCTIONS(PG_DECLARE)
#undef PG_DECLARE

enum Code : int { kInvalid = 3, kExhausted = 8, kUnimplemented = 12, kInternal = 13 };

const pg_table* core = nullptr;
std::atomic<int32_t> most_threads{0};

/// An element type: TensorFlow's number, the core's, its bytes, and the end of a kernel's name.
struct Type {
  int number;
  int32_t core;
  int64_t bytes;
  const char* name;
};
constexpr Type kFloat{1, PG_F32, 4, "float"}, kDouble{2, PG_F64, 8, "double"}, kInt32{3, PG_I32, 4, "int32"},
    kUint8{4, PG_U8, 1, "uint8"}, kInt16{5, PG_I16, 2, "int16"}, kInt8{6, PG_I8, 1, "int8"}, kInt64{9, PG_I64, 8, "int64"},
    kBfloat16{14, PG_BF16, 2, "bfloat16"}, kUint16{17, PG_U16, 2, "uint16"}, kHalf{19, PG_F16, 2, "half"},
    kUint32{22, PG_U32, 4, "uint32"}, kUint64{23, PG_U64, 8, "uint64"};
constexpr Type kTypes[] = {kFloat, kDouble, kInt32, kUint8, kInt16, kInt8, kInt64, kBfloat16, kUint16, kHalf, kUint32, kUint64};

const Type& type_of(int number) {
  for (const Type& type : kTypes)
    if (type.number == number) return type;
  return kTypes[0];  // no kernel is registered for others
}

/// A call that is refused.
struct Wrong {
  int code;
  std::string text;
};

template <class... Parts>
[[noreturn]] void refuse(int code, const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw Wrong{code, text.str()};
}
template <class... Parts>
void require(bool fine, const Parts&... parts) {
  if (!fine) refuse(kInvalid, parts...);
}

/// The status of this thread, which throws what TensorFlow says. It is made once: a call takes several.
class Status {
 public:
  operator TF_Status*() { return own(); }
  void check() const {
    const int code = TF_GetCode(own());
    if (!code) return;
    Wrong wrong{code, TF_Message(own())};
    TF_SetStatus(own(), 0, "");
    throw wrong;
  }

 private:
  static TF_Status* own() {
    static thread_local TF_Status* const made = TF_NewStatus();
    return made;
  }
};

using Dims = std::vector<int64_t>;

std::string text_of(const Dims& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? "," : "") + std::to_string(dims[i]);
  return text + "]";
}

/// Count elements; refuse negative sizes and products that overflow, as TensorFlow does.
int64_t count(const Dims& dims) {
  int64_t all = 1;
  for (const int64_t n : dims) {
    require(n >= 0, "Expected a non-negative size, got ", n);
    int64_t product;
    require(!__builtin_mul_overflow(all, n, &product), "Encountered overflow when multiplying ", all, " with ", n, ", result: -1");
    all = product;
  }
  return all;
}

/// An input or an output of a kernel.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(TF_Tensor* t) : t_(t) {
    const int rank = TF_NumDims(t);
    dims.reserve(static_cast<size_t>(rank));
    for (int i = 0; i < rank; ++i) dims.push_back(TF_Dim(t, i));
    size = count(dims);
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  Tensor(Tensor&& other) noexcept : dims(std::move(other.dims)), size(other.size), t_(std::exchange(other.t_, nullptr)) {}
  ~Tensor() {
    if (t_) TF_DeleteTensor(t_);
  }
  template <class T = void>
  T* data() const {
    return static_cast<T*>(TF_TensorData(t_));
  }
  int type() const { return TF_TensorType(t_); }
  pg_input in() const { return pg_in(data(), size); }
  pg_output out() const { return pg_out(data(), size); }

  Dims dims;
  int64_t size = 0;

 private:
  TF_Tensor* t_ = nullptr;
};

/// The call of a kernel.
class Context {
 public:
  explicit Context(TF_OpKernelContext* c) : c_(c) {}
  Tensor input(int i) const {
    Status status;
    TF_Tensor* t = nullptr;
    TF_GetInput(c_, i, &t, status);
    status.check();
    return Tensor(t);
  }
  Tensor output(int i, const Type& type, const Dims& dims) const {
    Status status;
    const int64_t size = count(dims);
    require(size <= std::numeric_limits<int64_t>::max() / 16, "Encountered overflow when multiplying sizes of ", text_of(dims));
    TF_Tensor* t = TF_AllocateOutput(c_, i, type.number, dims.data(), static_cast<int>(dims.size()), static_cast<size_t>(size * type.bytes), status);
    status.check();
    return Tensor(t);
  }

 private:
  TF_OpKernelContext* c_;
};

/// The attributes of a node.
class Attributes {
 public:
  explicit Attributes(TF_OpKernelConstruction* c) : c_(c) {}
  const Type& type(const char* name) const {
    Status status;
    int number = 0;
    TF_OpKernelConstruction_GetAttrType(c_, name, &number, status);
    status.check();
    return type_of(number);
  }
  bool flag(const char* name) const {
    Status status;
    unsigned char value = 0;
    TF_OpKernelConstruction_GetAttrBool(c_, name, &value, status);
    status.check();
    return value != 0;
  }
  int64_t integer(const char* name) const {
    Status status;
    int64_t value = 0;
    TF_OpKernelConstruction_GetAttrInt64(c_, name, &value, status);
    status.check();
    return value;
  }
  std::string word(const char* name) const {
    Status status;
    std::string value(size(name).second, '\0');
    TF_OpKernelConstruction_GetAttrString(c_, name, value.data(), value.size(), status);
    status.check();
    return value;
  }
  std::vector<int> types(const char* name) const {
    std::vector<int> values(size(name).first);
    Status status;
    TF_OpKernelConstruction_GetAttrTypeList(c_, name, values.data(), static_cast<int>(values.size()), status);
    status.check();
    return values;
  }
  Dims integers(const char* name) const {
    const Dims values = long_integers(name);
    for (const int64_t value : values)  // TensorFlow reads them as int32
      require(value >= INT32_MIN && value <= INT32_MAX, "Attr ", name, " has value ", value, " out of range for an int32");
    return values;
  }
  Dims long_integers(const char* name) const {
    Dims values(size(name).first);
    Status status;
    TF_OpKernelConstruction_GetAttrInt64List(c_, name, values.data(), static_cast<int>(values.size()), status);
    status.check();
    return values;
  }
  std::vector<float> numbers(const char* name) const {
    std::vector<float> values(size(name).first);
    Status status;
    TF_OpKernelConstruction_GetAttrFloatList(c_, name, values.data(), static_cast<int>(values.size()), status);
    status.check();
    return values;
  }

 private:
  /// The elements of a list, and the bytes of a text.
  std::pair<size_t, size_t> size(const char* name) const {
    Status status;
    int32_t list = 0, total = 0;
    TF_OpKernelConstruction_GetAttrSize(c_, name, &list, &total, status);
    status.check();
    return {static_cast<size_t>(std::max(list, int32_t{0})), static_cast<size_t>(std::max(total, int32_t{0}))};
  }
  TF_OpKernelConstruction* c_;
};

/// Look up TensorFlow's functions in its loaded libraries, separated by ':'. Return the first that is missing, or "".
const char* find_functions(const char* libraries) {
  std::vector<void*> handles;
  std::istringstream paths(libraries);
  for (std::string path; std::getline(paths, path, ':');)
    if (void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD)) handles.push_back(handle);
  const auto find = [&](const char* name) -> void* {
    for (void* const handle : handles)
      if (void* const found = dlsym(handle, name)) return found;
    return nullptr;
  };
#define PG_FIND(result, name, arguments)                                        \
  if (!(poolgrad::name = reinterpret_cast<result(*) arguments>(find(#name)))) \
    return #name;
  PG_TF_FUNCTIONS(PG_FIND)
#undef PG_FIND
  return "";
}

/// Return TensorFlow's code for one of the core's.
int code_of(int code) { return code == PG_NO_MEMORY ? kExhausted : code == PG_INVALID ? kInvalid : code == PG_UNSUPPORTED ? kUnimplemented : kInternal; }

/// Throw the error of the core.
void check(int code, const pg_error& error) {
  if (code != PG_OK) throw Wrong{code_of(code), std::string("poolgrad: ") + error.text};
}

/// Return how a call runs: on at most as many threads as TensorFlow uses inside an op.
pg_run threads() { return {most_threads.load(std::memory_order_relaxed), nullptr, nullptr}; }

/// Call f(); return an exception as a status that `fail` receives.
template <class F, class Fail>
void guarded(F&& f, Fail&& fail) {
  Wrong wrong{0, ""};
  try {
    return f();
  } catch (const Wrong& caught) {
    wrong = caught;
  } catch (const std::bad_alloc&) {
    wrong = {kExhausted, "poolgrad: the call needs more memory than there is"};
  } catch (const std::exception& e) {
    wrong = {kInternal, std::string("poolgrad: ") + e.what()};
  }
  Status status;
  TF_SetStatus(status, wrong.code, wrong.text.c_str());
  fail(static_cast<TF_Status*>(status));
  TF_SetStatus(status, 0, "");
}

}  // namespace
}  // namespace poolgrad
