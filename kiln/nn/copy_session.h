// CopySession: parameters that are tied stay tied in a copy of their module.
//
// Note [Copies keep ties]
// Two parameters are tied when they hold one tensor. A module is copied member by member, and each
// Param makes a clone of its own, so something must tell the second that the first has cloned their
// tensor already. The copy constructor of Module, the first that runs, opens a session; the member
// that KILN_MODULE declares behind the parts, the last that is copied, closes it. Sessions of
// modules within modules are parts of the outermost one, and so is what clone() copies besides.
#pragma once

#include "kiln/tensor/tensor.h"

namespace kiln::nn {

class Module;

namespace detail {

struct ModuleClass;

class CopySession {
 public:
  // Lasts at least as long as this object.
  CopySession();
  ~CopySession();
  CopySession(const CopySession&) = delete;
  CopySession& operator=(const CopySession&) = delete;

  // The copy of `original` begins at `copy`.
  static void begin(const Module* copy, const Module& original);
  // All parts of class `of` are copied, by the object whose end mark is at `end`.
  static void end(const void* end, const ModuleClass& of) noexcept;
  // The copy at this address ended otherwise.
  static void drop(const Module* copy) noexcept;

  // The value of a parameter's copy: a clone, which parameters of one session share when the
  // originals share `value`. One that is copied twice gets two clones.
  static Tensor clone(const void* param, const Tensor& value);
};

// The last member that a module copies.
template <class Name>
class CopyEnd {
 public:
  CopyEnd() noexcept { end(); }
  CopyEnd(const CopyEnd&) noexcept { end(); }
  CopyEnd(CopyEnd&&) noexcept {}
  CopyEnd& operator=(const CopyEnd&) noexcept {
    end();
    return *this;
  }
  CopyEnd& operator=(CopyEnd&&) noexcept { return *this; }

 private:
  [[maybe_unused]] char place_ = 0;  // so that it lies behind what is declared before it
  void end() noexcept { CopySession::end(this, Name::kiln_class()); }
};

}  // namespace detail
}  // namespace kiln::nn
