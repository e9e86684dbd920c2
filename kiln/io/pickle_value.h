// PickleValue: what a PyTorch file holds, as a tree of plain values and tensors.
#pragma once

#include <complex>
#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "kiln/core/box.h"
#include "kiln/tensor/tensor.h"

namespace kiln::io {

class PickleValue;
struct PickleItem;

using PickleList = std::vector<PickleValue>;
struct PickleTuple {
  std::vector<PickleValue> items;
};
struct PickleSet {
  std::vector<PickleValue> items;
  bool frozen = false;  // a frozenset
};
// A dict or OrderedDict, in its order.
struct PickleDict {
  std::vector<PickleItem> items;
  // What was set on the object itself, as PyTorch sets `_metadata` on a state dict.
  std::vector<PickleItem> attributes;
  bool ordered = false;  // an OrderedDict; one with attributes is written as such, too

  // Null when there is none.
  const PickleValue* find(std::string_view key) const;
  void set(std::string key, PickleValue value);
};
struct PickleBytes {
  std::string bytes;
};
// An integer beyond 64 bits.
struct PickleBigInt {
  std::string decimal;
};
// A name that stands for itself ("torch.strided"), or an object described by its arguments
// ("torch.device" of "cuda", 0). Nothing was called.
struct PickleObject {
  std::string name;
  std::vector<PickleValue> arguments;
};
// A tensor that still lies in the file. Checked: every element lies in its storage.
struct StoredTensorInfo {
  size_t storage = 0;  // its number in the file; tensors over one storage share memory
  DType dtype = DType::f32;
  Shape shape;
  Strides stride;      // in elements
  int64_t offset = 0;  // in elements
  bool requires_grad = false;
  bool is_parameter = false;
  // Empty for a tensor that Kiln can read; else its PyTorch dtype or layout, and why not.
  std::string type_name;
  std::string refusal;
  // Of a sparse tensor, which `refusal` keeps from those that want dense ones: what PyTorch's
  // function for it is given, the layout and a tuple of parts. Nothing of them was checked.
  std::shared_ptr<const PickleObject> parts = {};
};
using StoredTensor = std::shared_ptr<const StoredTensorInfo>;

namespace detail {

// The kinds of value that lie on the heap: a file may hold millions of small ones.
template <class T>
concept BoxedPickle =
    std::same_as<T, PickleBigInt> || std::same_as<T, std::complex<double>> ||
    std::same_as<T, std::string> || std::same_as<T, PickleBytes> || std::same_as<T, PickleList> ||
    std::same_as<T, PickleTuple> || std::same_as<T, PickleSet> || std::same_as<T, PickleDict> ||
    std::same_as<T, PickleObject>;
template <class T>
concept PickleKind = BoxedPickle<T> || std::same_as<T, std::monostate> || std::same_as<T, DType> ||
                     std::same_as<T, StoredTensor> || std::same_as<T, Tensor>;

}  // namespace detail

class PickleValue {
 public:
  PickleValue();  // None
  PickleValue(bool value);
  PickleValue(int value);
  PickleValue(int64_t value);
  PickleValue(double value);
  PickleValue(const char* text);
  template <class T>
    requires detail::PickleKind<std::remove_cvref_t<T>>
  PickleValue(T&& value);

  bool is_none() const { return std::holds_alternative<std::monostate>(value_); }
  template <class T>
  bool is() const {
    return std::holds_alternative<Held<T>>(value_);
  }
  // Null when the value is of another kind.
  template <class T>
  const T* get() const {
    return const_cast<PickleValue*>(this)->get<T>();
  }
  template <class T>
  T* get() {
    auto* held = std::get_if<Held<T>>(&value_);
    if constexpr (detail::BoxedPickle<T>) {
      return held == nullptr ? nullptr : held->get();
    } else {
      return held;
    }
  }
  bool is_tensor() const { return is<Tensor>() || is<StoredTensor>(); }
  // f(value), of whichever kind it is; std::monostate for None.
  template <class F>
  decltype(auto) visit(F&& f) const {
    return std::visit(
        [&]<class T>(const T& held) -> decltype(auto) {
          if constexpr (requires {
                          held.get();
                          *held;
                        } && !std::same_as<T, StoredTensor>) {
            return f(*held);
          } else {
            return f(held);
          }
        },
        value_);
  }

  // The entry of a dict. Throws ValueError when this is no dict or has no such key.
  const PickleValue& operator[](std::string_view key) const;

 private:
  template <class T>
  using Held = std::conditional_t<detail::BoxedPickle<T>, Box<T>, T>;

  std::variant<std::monostate, bool, int64_t, double, DType, Box<PickleBigInt>,
               Box<std::complex<double>>, Box<std::string>, Box<PickleBytes>, Box<PickleList>,
               Box<PickleTuple>, Box<PickleSet>, Box<PickleDict>, Box<PickleObject>, StoredTensor,
               Tensor>
      value_;
};

struct PickleItem {
  PickleValue key;
  PickleValue value;
};

// Here and not in the class: what makes a value may destroy one, and a vector of items can be
// destroyed only after PickleItem is complete.
inline PickleValue::PickleValue() = default;
inline PickleValue::PickleValue(bool value) : value_(value) {}
inline PickleValue::PickleValue(int value) : value_(int64_t{value}) {}
inline PickleValue::PickleValue(int64_t value) : value_(value) {}
inline PickleValue::PickleValue(double value) : value_(value) {}
inline PickleValue::PickleValue(const char* text) : value_(Box(std::string(text))) {}
template <class T>
  requires detail::PickleKind<std::remove_cvref_t<T>>
PickleValue::PickleValue(T&& value)
    : value_(Held<std::remove_cvref_t<T>>(std::forward<T>(value))) {}

// "dict", "int", "torch.Tensor", ...: Python's name of the kind.
std::string kind_name(const PickleValue& value);
// As Python prints it, tensors as "tensor(float32 [2, 3])"; cut with "..." after about `longest`
// bytes.
std::string to_text(const PickleValue& value, size_t longest = 200);
// The value as a number, name or text in one line when it has that form (None, bool, int, float,
// str, dtype); else "".
std::string scalar_text(const PickleValue& value);

}  // namespace kiln::io
