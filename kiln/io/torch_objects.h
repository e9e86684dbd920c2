// What PyTorch's pickles may name, and what those names make: tensors over storages, and
// containers.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "kiln/io/pickle_node.h"

namespace kiln::io::detail {

// A storage that the pickle names. Tensors were checked against `bytes`; whoever reads the data
// checks that the file has as many.
struct TorchStorage {
  std::string key;
  const StorageType* type = nullptr;
  int64_t bytes = 0;
  std::string location;
};

class TorchObjects {
 public:
  explicit TorchObjects(const InputFile& file) : file_(file) {}

  const std::vector<TorchStorage>& storages() const { return storages_; }

  // ---- For the pickle machine. Each throws IoError.

  // A name of the list.
  NodeRef global(PickleArena& arena, const std::string& module, const std::string& name) const;
  // A storage: ('storage', class, key, location, elements[, view]).
  NodeRef persistent(PickleArena& arena, NodeRef id);
  // What calling a name of the list makes.
  NodeRef reduce(PickleArena& arena, const std::string& function,
                 const std::vector<NodeRef>& arguments);
  // Whether `state` may be set on `target`.
  bool build(PickleArena& arena, NodeRef target, NodeRef state) const;
  // What the parts of a sparse tensor are; null for others.
  const std::vector<NodeRef>* parts_of(const StoredTensorInfo* tensor) const {
    const auto found = parts_.find(tensor);
    return found == parts_.end() ? nullptr : &found->second;
  }
  // A storage that is no tensor's, as a tensor of one dim.
  StoredTensor whole_storage(const StorageNode& storage) const;

 private:
  NodeRef rebuild_tensor(PickleArena& arena, const std::vector<NodeRef>& arguments, int version);
  NodeRef rebuild_parameter(PickleArena& arena, const std::vector<NodeRef>& arguments);
  NodeRef rebuild_unsupported(PickleArena& arena, const std::vector<NodeRef>& arguments,
                              const std::string& function);
  NodeRef rebuild_typed(PickleArena& arena, const std::vector<NodeRef>& arguments);
  NodeRef reduce_container(PickleArena& arena, const std::string& function,
                           const std::vector<NodeRef>& arguments);
  NodeRef reduce_plain(PickleArena& arena, const std::string& function,
                       const std::vector<NodeRef>& arguments);
  void check_view(const StoredTensorInfo& tensor, const StorageNode& storage, size_t element);
  [[noreturn]] void malformed(const std::string& what, const std::string& got,
                              const std::string& expected) const;

  const InputFile& file_;
  std::vector<TorchStorage> storages_;
  std::unordered_map<std::string, uint32_t> index_;
  std::unordered_map<const StoredTensorInfo*, std::vector<NodeRef>> parts_;
  int64_t repeated_ = 0;  // bytes
};

}  // namespace kiln::io::detail
