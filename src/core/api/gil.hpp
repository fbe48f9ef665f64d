// Work without the GIL, and let a signal end that work. Only module.cpp includes this.
#pragma once
#include <nanobind/nanobind.h>
#include <pthread.h>
#include <unistd.h>
#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif

#include <atomic>
#include <exception>

#include "runtime/threads.hpp"

namespace nb = nanobind;

namespace poolgrad {
namespace {

std::atomic<unsigned long> main_thread{0};

/// Remember the main thread: Python runs signal handlers only there. In a forked child it is the
/// only thread.
void note_main_thread() {
  main_thread = nb::cast<unsigned long>(
      nb::module_::import_("threading").attr("main_thread")().attr("ident"));
  pthread_atfork(nullptr, nullptr, [] { main_thread = PyThread_get_thread_ident(); });
}

/// Let Python handle pending signals. Return true if a handler raised; the exception is then set.
bool interrupted() {
  const PyGILState_STATE state = PyGILState_Ensure();
  const bool raised = PyErr_CheckSignals() != 0;
  PyGILState_Release(state);
  return raised;
}

/// Take the GIL again. If the interpreter has ended meanwhile, Python 3.11 to 3.13 unwind the stack
/// of the thread, and destructors would touch Python without the GIL. Wait for the end of the
/// process instead, as 3.14 does.
void take_lock(PyThreadState* state) {
#if defined(__GLIBCXX__)
  try {
    PyEval_RestoreThread(state);
  } catch (abi::__forced_unwind&) {
    for (;;) pause();
  }
#else
  PyEval_RestoreThread(state);
#endif
}

/// Call f(should_stop) without the GIL. If a signal handler raises meanwhile, throw its exception.
template <class F>
void unlocked(F&& f) {
  const StopCheck should_stop = PyThread_get_thread_ident() == main_thread ? interrupted : nullptr;
  PyThreadState* const state = PyEval_SaveThread();
  std::exception_ptr failure;
  try {
    f(should_stop);
  } catch (...) {
    failure = std::current_exception();
  }
  take_lock(state);
  if (!failure) return;
  if (PyErr_Occurred()) throw nb::python_error();
  std::rethrow_exception(failure);
}

}  // namespace
}  // namespace poolgrad
