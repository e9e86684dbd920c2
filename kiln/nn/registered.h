// Registered: what register_module, register_parameter and register_buffer return.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "kiln/nn/member_visitor.h"

namespace kiln::nn {

// Leads to the part that the module now holds: a reference to it (Linear& fc = ...), a pointer
// (fc->weight), or, for a module, a std::shared_ptr that shares it. It does not turn into a copy,
// which would be a part of nothing.
template <class T>
class Registered {
 public:
  explicit Registered(std::shared_ptr<T> part) : part_(std::move(part)) {}

  T& operator*() const { return *part_; }
  T* operator->() const { return part_.get(); }
  template <class U>
    requires std::is_base_of_v<U, T>
  operator U&() const {
    return *part_;
  }
  template <class U>
    requires(std::is_base_of_v<Module, T> && std::is_convertible_v<T*, U*>)
  operator std::shared_ptr<U>() const {
    return part_;
  }
  // The tensor itself, which the module holds too.
  operator const Tensor&() const
    requires std::is_convertible_v<const T&, const Tensor&>
  {
    return part_->get();
  }
  operator T() const {
    static_assert(detail::always_false<T>,
                  "register_module, register_parameter, register_buffer: the module holds the "
                  "part, and a member that is a copy of it would never be trained. Make it an "
                  "ordinary member and name it in KILN_MODULE: Linear fc{2, 2}; KILN_MODULE(Net, "
                  "fc). A reference to the registered part is Linear& fc = register_module(..).");
    return *part_;
  }
  // Calls the module.
  template <class... Args>
    requires std::is_base_of_v<Module, T>
  decltype(auto) operator()(Args&&... args) const {
    return (*part_)(std::forward<Args>(args)...);
  }

 private:
  std::shared_ptr<T> part_;
};

}  // namespace kiln::nn
