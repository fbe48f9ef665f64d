// Working without Python's lock, and how a signal ends that work. Included by module.cpp alone.
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

/// Only there does Python run signal handlers. In the child of a fork it is the one thread that is
/// left.
void note_main_thread() {
  main_thread = nb::cast<unsigned long>(
      nb::module_::import_("threading").attr("main_thread")().attr("ident"));
  pthread_atfork(nullptr, nullptr, [] { main_thread = PyThread_get_thread_ident(); });
}

/// Lets Python handle signals that have come; true if a handler raised, and the exception is then
/// set.
bool interrupted() {
  const PyGILState_STATE state = PyGILState_Ensure();
  const bool raised = PyErr_CheckSignals() != 0;
  PyGILState_Release(state);
  return raised;
}

/// Takes the lock again. Where the interpreter has ended meanwhile, Python 3.11 to 3.13 end the
/// thread by unwinding its stack; destructors would then touch Python without the lock. As in 3.14,
/// the thread waits for the end of the process instead.
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

/// f(ask) without the lock. If a signal handler raises meanwhile, its exception is what leaves.
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
