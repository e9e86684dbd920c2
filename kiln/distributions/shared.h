// Shared<T>: an object of some class derived from T, which copies of the handle share.
#pragma once

#include <concepts>
#include <memory>
#include <utility>

#include "kiln/core/error.h"

namespace kiln::distributions {

// What functions take that keep a distribution or a transform: an object (it is moved into memory
// of its own), a shared pointer, or a unique one. The object is constant from then on. Throws
// ValueError for a null pointer.
template <class T>
class Shared {
 public:
  template <std::derived_from<T> D>
  Shared(D object) : pointer_(std::make_shared<const D>(std::move(object))) {}
  template <std::convertible_to<std::shared_ptr<const T>> P>
  Shared(P pointer) : pointer_(std::move(pointer)) {
    if (!pointer_) throw_error<ValueError>("Shared: expected an object; got a null pointer");
  }

  const T& operator*() const { return *pointer_; }
  const T* operator->() const { return pointer_.get(); }
  const std::shared_ptr<const T>& pointer() const { return pointer_; }

 private:
  std::shared_ptr<const T> pointer_;
};

}  // namespace kiln::distributions
