// When the interpreter's lock is held, and when not.
#pragma once

#include <memory>
#include <optional>

#include <nanobind/nanobind.h>
#include <unistd.h>

#include "kiln/tensor/exchange.h"
#include "kiln/tensor/tensor.h"

namespace kiln::python {

// Note [The interpreter's lock]
// Kernels run without it, so that other Python threads go on. Giving it up and taking it back costs
// about as much as a small op, so that ops on fewer than kUnlockedFrom elements keep it: nobody
// waits a microsecond for it.
inline constexpr int64_t kUnlockedFrom = 4096;

// Note [Threads at the end]
// A daemon thread that asks for the lock while the interpreter shuts down is ended by Python, with
// pthread_exit, which unwinds its stack. No C++ frame is made for that (a destructor would call
// terminate, a catch (...) abort), so such a thread sleeps instead until the process is gone.
[[noreturn]] inline void sleep_until_the_end() {
  for (;;) ::pause();
}

// Note [What others exchange]
// While a thread computes without the lock, another may assign to a parameter's data. A section
// keeps what the thread reads; see Note [Exchanged values] in kiln/tensor/exchange.h. Python that
// is called from the middle of an op may do the same, and sees what is newest.

// Holds the lock, on whatever thread.
class Locked {
 public:
  Locked() {
    try {
      state_ = PyGILState_Ensure();
    } catch (...) {
      sleep_until_the_end();
    }
    section_.emplace(interop::ReadSection::Sees::newest);
  }
  ~Locked() {
    section_.reset();
    PyGILState_Release(state_);
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  PyGILState_STATE state_;
  std::optional<interop::ReadSection> section_;
};

class Unlocked {
 public:
  // Always.
  Unlocked() { release(); }
  // For an op on these tensors.
  template <class... T>
  explicit Unlocked(const Tensor& first, const T&... others) {
    if (is_large(first) || (is_large(others) || ...)) release();
  }
  // For an op that makes `numel` elements.
  explicit Unlocked(int64_t numel) {
    if (numel >= kUnlockedFrom) release();
  }
  // The section ends under the lock: what it kept may be Python's.
  ~Unlocked() {
    if (state_ == nullptr) return;
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {
      sleep_until_the_end();
    }
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  static bool is_large(const Tensor& x) { return x.defined() && x.numel() >= kUnlockedFrom; }

  void release() {
    section_.emplace();
    state_ = PyEval_SaveThread();
  }

  std::optional<interop::ReadSection> section_;
  PyThreadState* state_ = nullptr;
};

// A reference to a Python object for code that runs without the lock, and may end on any thread.
class HeldObject {
 public:
  explicit HeldObject(nanobind::object object)
      : object_(new nanobind::object(std::move(object)), [](nanobind::object* o) {
          if (!nanobind::is_alive() || !Py_IsInitialized()) {
            o->release();  // the interpreter has gone, and the object with it
          } else {
            Locked lock;
            o->reset();
          }
          delete o;
        }) {}

  // To be used under the lock only.
  const nanobind::object& get() const { return *object_; }

  // The same reference for what knows no Python: see interop::ForeignCall.
  std::shared_ptr<void> foreign() const { return object_; }
  static const nanobind::object& from(void* foreign) {
    return *static_cast<const nanobind::object*>(foreign);
  }

 private:
  std::shared_ptr<nanobind::object> object_;
};

}  // namespace kiln::python
