// HookValue and HookArgs: what hooks see of a call, without its static types.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln::nn {

// Where the tensors of a value stand. Specialize it for a type of yours whose tensors hooks should
// find (a struct of outputs, an object of another language).
template <class T>
struct HookTraits {
  // The tensor that the value is, or null.
  static Tensor* tensor(T&) { return nullptr; }
  // One entry for each element of the value, null where it is no tensor. A value that is no
  // collection is one element.
  static void elements(T&, std::vector<Tensor*>& out) { out.push_back(nullptr); }
};

template <>
struct HookTraits<Tensor> {
  static Tensor* tensor(Tensor& x) { return &x; }
  static void elements(Tensor& x, std::vector<Tensor*>& out) { out.push_back(&x); }
};

namespace detail {

// Collections of tensors and other things.
template <class T>
struct HookTraitsOfCollection {
  static Tensor* tensor(T&) { return nullptr; }
  static void elements(T& value, std::vector<Tensor*>& out) {
    const auto one = [&out](auto& element) {
      if constexpr (std::is_same_v<std::remove_reference_t<decltype(element)>, Tensor>) {
        out.push_back(&element);
      } else {
        out.push_back(nullptr);
      }
    };
    if constexpr (requires { value.begin(); }) {
      for (auto& element : value) one(element);
    } else {
      std::apply([&one](auto&... element) { (one(element), ...); }, value);
    }
  }
};

}  // namespace detail

template <class... T>
struct HookTraits<std::tuple<T...>> : detail::HookTraitsOfCollection<std::tuple<T...>> {};
template <class A, class B>
struct HookTraits<std::pair<A, B>> : detail::HookTraitsOfCollection<std::pair<A, B>> {};
template <>
struct HookTraits<std::vector<Tensor>> : detail::HookTraitsOfCollection<std::vector<Tensor>> {};
template <size_t N>
struct HookTraits<std::array<Tensor, N>> : detail::HookTraitsOfCollection<std::array<Tensor, N>> {};

// One argument or result of a forward: by reference (to what the call holds), or owned (what a hook
// put in its place).
class HookValue {
 public:
  HookValue() = default;
  template <class T>
    requires(!std::is_same_v<std::remove_cv_t<T>, HookValue>)
  explicit HookValue(T& value)
      : type_(&kType<std::remove_cv_t<T>>), value_(const_cast<std::remove_cv_t<T>*>(&value)) {}
  template <class T>
  static HookValue own(T value) {
    auto owned = std::make_shared<T>(std::move(value));
    HookValue out(*owned);
    out.owned_ = std::move(owned);
    return out;
  }

  // False for the result of a forward that returns void, or that threw.
  bool has_value() const { return value_ != nullptr; }
  // Null when it is no T.
  template <class T>
  T* get_if() const {
    return value_ != nullptr && *type_->info == typeid(T) ? static_cast<T*>(value_) : nullptr;
  }
  bool is_tensor() const { return tensor_if() != nullptr; }
  Tensor* tensor_if() const { return value_ == nullptr ? nullptr : type_->tensor(value_); }
  // Assign to it to replace the value. Throws TypeError when it is no tensor.
  Tensor& tensor() const;
  // Of a collection, its elements, null where one is no tensor; else one entry for the value.
  std::vector<Tensor*> elements() const {
    std::vector<Tensor*> out;
    if (value_ != nullptr) type_->elements(value_, out);
    return out;
  }
  // Where the value is: tells whether a hook put another in its place.
  const void* address() const { return value_; }
  const std::type_info& type() const { return value_ == nullptr ? typeid(void) : *type_->info; }

 private:
  struct Type {
    const std::type_info* info;
    Tensor* (*tensor)(void*);
    void (*elements)(void*, std::vector<Tensor*>&);
  };
  template <class T>
  static constexpr Type kType = {
      &typeid(T), [](void* value) { return HookTraits<T>::tensor(*static_cast<T*>(value)); },
      [](void* value, std::vector<Tensor*>& out) {
        HookTraits<T>::elements(*static_cast<T*>(value), out);
      }};

  const Type* type_ = nullptr;
  void* value_ = nullptr;
  std::shared_ptr<void> owned_;
};

// The arguments of a call. A forward of C++ has positional ones only, whose number and types are
// fixed; a caller without static types (Python) may also have keywords, and lets hooks change all
// of it. Hooks may take it as std::span<const HookValue> instead.
struct HookArgs {
  std::vector<HookValue> args;
  std::vector<std::pair<std::string, HookValue>> kwargs;

  size_t size() const { return args.size(); }
  HookValue& operator[](size_t i) { return args[i]; }
  const HookValue& operator[](size_t i) const { return args[i]; }
  operator std::span<const HookValue>() const { return args; }
};

}  // namespace kiln::nn
