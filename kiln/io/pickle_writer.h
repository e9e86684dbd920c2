// Writing pickles of protocol 2, as PyTorch's restricted reader takes them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kiln/io/pickle_value.h"

namespace kiln::io::detail {

// One storage of the file to be: the bytes from `begin` to `end` of what its tensors share.
struct SavedStorage {
  Handle<Storage> storage;
  DType dtype = DType::f32;
  size_t begin = 0;
  size_t end = 0;
};

// Collects the storages of a value's tensors and pickles the value.
class PickleWriter {
 public:
  // Throws ValueError for a StoredTensor, DTypeError for a tensor of a dtype that PyTorch's files
  // lack.
  explicit PickleWriter(const PickleValue& value);

  const std::string& pickle() const { return out_; }
  // Storage i is named std::to_string(i).
  const std::vector<SavedStorage>& storages() const { return storages_; }

 private:
  struct View {
    size_t storage = 0;
    Strides stride;
    int64_t offset = 0;  // in elements, from the start of the memory
  };
  void collect(const PickleValue& value, int depth);
  void collect_tensor(const Tensor& x);
  void write(const PickleValue& value);
  void write_key(const PickleValue& value);
  void write_tensor(const Tensor& x);
  void write_dict(const PickleDict& dict);
  void write_items(const std::vector<PickleItem>& items);
  void write_tuple(const std::vector<PickleValue>& items);
  void write_shape(const Shape& numbers);
  void write_object(const PickleObject& object);
  void write_bytes(const std::string& bytes);
  void write_decimal(const std::string& decimal);
  void integer(int64_t value);
  void text(std::string_view value);
  void global(const std::string& module_and_name);
  void number(uint64_t value, size_t bytes);

  std::string out_;
  bool in_key_ = false;
  std::vector<SavedStorage> storages_;
  std::map<std::pair<const void*, DType>, size_t> by_memory_;
  std::vector<View> views_;  // of the tensors, in the order of the tree
  size_t next_view_ = 0;
  std::unordered_map<std::string, size_t> memo_;  // of globals
};

}  // namespace kiln::io::detail
