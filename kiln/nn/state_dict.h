// StateDict: a module's parameters and persistent buffers by name, in PyTorch's order.
#pragma once

#include <any>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln::nn {

// What a state dict says of one module apart from its tensors: {"version": 1}.
using StateMetadata = std::map<std::string, int64_t, std::less<>>;

class StateDict {
 public:
  using Item = std::pair<std::string, Tensor>;

  StateDict() = default;
  StateDict(std::initializer_list<Item> items);

  // In the order of insertion.
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  std::vector<std::string> keys() const;

  bool contains(std::string_view key) const { return find(key) != nullptr; }
  // Null when there is none.
  const Tensor* find(std::string_view key) const;
  // Throws KeyError when there is none.
  const Tensor& at(std::string_view key) const;
  // Inserts an undefined tensor when there is none.
  Tensor& operator[](std::string_view key);
  void set(std::string_view key, Tensor value) { (*this)[key] = std::move(value); }
  // False when there was none.
  bool erase(std::string_view key);

  // Extra state that is no tensor (see Module::get_extra_state), apart from the items above. Files
  // hold tensors only.
  void set_object(std::string_view key, std::any value);
  const std::any* find_object(std::string_view key) const;
  bool erase_object(std::string_view key);
  const std::map<std::string, std::any, std::less<>>& objects() const { return objects_; }

  // By module path ("" for the root, "layers.0").
  std::map<std::string, StateMetadata, std::less<>>& metadata() { return metadata_; }
  const std::map<std::string, StateMetadata, std::less<>>& metadata() const { return metadata_; }

 private:
  std::vector<Item> items_;
  std::map<std::string, std::any, std::less<>> objects_;
  std::map<std::string, StateMetadata, std::less<>> metadata_;
  std::map<std::string, size_t, std::less<>> index_;
};

// What load_state_dict did not find a counterpart for.
struct IncompatibleKeys {
  std::vector<std::string> missing_keys;     // of the module, not in the state dict
  std::vector<std::string> unexpected_keys;  // of the state dict, not in the module

  bool empty() const { return missing_keys.empty() && unexpected_keys.empty(); }
};
// "<All keys matched successfully>", or both lists.
std::string to_string(const IncompatibleKeys& keys);

}  // namespace kiln::nn
