// Arg<T>: how a tensor is handed to an op: lent, given away, or to be written over.
#pragma once

#include <utility>

namespace kiln {

// A kernel always writes to a destination. Which one follows from how its operands were handed
// over:
//   borrowed  (from an lvalue)   the result gets memory of its own;
//   donated   (from an rvalue)   the result may take over the operand's memory, when nobody else
//   holds it; in place  (Arg::in_place)    the result is the operand: its memory is written, every
//   view of it sees the change.
// An op that cannot honour `in_place` ignores it and returns a fresh result; its caller then
// assigns that (the tensor layer does). A backend that cares for none of this declares its
// parameters `const T&`: Arg converts.
template <class T>
class Arg {
 public:
  Arg(const T& value) : value_(&value), mode_(Mode::borrowed) {}
  Arg(T&& value) : value_(&value), mode_(Mode::donated) {}
  static Arg in_place(const T& value) { return Arg(&value, Mode::in_place); }

  // The same way of handing over, for another tensor: e.g. the one inside an autodiff tensor.
  template <class U>
  Arg<U> with(const U& other) const {
    return Arg<U>(&other, static_cast<typename Arg<U>::Mode>(mode_));
  }

  const T& get() const { return *value_; }
  operator const T&() const { return *value_; }
  // Through to what a handle points at, as in x->shape(); to the value itself when it is no
  // handle.
  decltype(auto) operator->() const {
    if constexpr (requires(const T& value) { value.operator->(); }) {
      return static_cast<const T&>(*value_);
    } else {
      return value_;
    }
  }

  bool is_donated() const { return mode_ == Mode::donated; }
  bool is_in_place() const { return mode_ == Mode::in_place; }

  // The tensor itself: moved out when it was donated, copied otherwise.
  T take() const { return is_donated() ? T(std::move(const_cast<T&>(*value_))) : T(*value_); }

 private:
  template <class>
  friend class Arg;
  enum class Mode : unsigned char { borrowed, donated, in_place };
  Arg(const T* value, Mode mode) : value_(value), mode_(mode) {}

  const T* value_;
  Mode mode_;
};

}  // namespace kiln
