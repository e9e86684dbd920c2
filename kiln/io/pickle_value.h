// PickleValue: what a PyTorch file holds, as a tree of plain values and tensors.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

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
};
// A dict or OrderedDict, in its order.
struct PickleDict {
  std::vector<PickleItem> items;
  // What was set on the object itself, as PyTorch sets `_metadata` on a state dict.
  std::vector<PickleItem> attributes;

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
};
using StoredTensor = std::shared_ptr<const StoredTensorInfo>;

class PickleValue {
 public:
  using Variant =
      std::variant<std::monostate, bool, int64_t, PickleBigInt, double, std::complex<double>,
                   std::string, PickleBytes, DType, PickleList, PickleTuple, PickleSet, PickleDict,
                   PickleObject, StoredTensor, Tensor>;

  PickleValue() = default;  // None
  PickleValue(bool value) : value_(value) {}
  PickleValue(int value) : value_(int64_t{value}) {}
  PickleValue(int64_t value) : value_(value) {}
  PickleValue(double value) : value_(value) {}
  PickleValue(const char* text) : value_(std::string(text)) {}
  template <class T>
    requires(std::is_constructible_v<Variant, T> && !std::is_arithmetic_v<std::decay_t<T>> &&
             !std::is_same_v<std::decay_t<T>, PickleValue>)
  PickleValue(T&& value) : value_(std::forward<T>(value)) {}

  bool is_none() const { return std::holds_alternative<std::monostate>(value_); }
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(value_);
  }
  // Null when the value is of another kind.
  template <class T>
  const T* get() const {
    return std::get_if<T>(&value_);
  }
  template <class T>
  T* get() {
    return std::get_if<T>(&value_);
  }
  bool is_tensor() const { return is<Tensor>() || is<StoredTensor>(); }
  const Variant& variant() const { return value_; }

  // The entry of a dict. Throws ValueError when this is no dict or has no such key.
  const PickleValue& operator[](std::string_view key) const;

 private:
  Variant value_;
};

struct PickleItem {
  PickleValue key;
  PickleValue value;
};

// "dict", "int", "torch.Tensor", ...: Python's name of the kind.
std::string kind_name(const PickleValue& value);
// As Python prints it, tensors as "tensor(float32 [2, 3])"; cut with "..." after about `longest`
// bytes.
std::string to_text(const PickleValue& value, size_t longest = 200);
// The value as a number, name or text in one line when it has that form (None, bool, int, float,
// str, dtype); else "".
std::string scalar_text(const PickleValue& value);

}  // namespace kiln::io
