// The objects that a pickle makes while it is read.
//
// Note [Pickle nodes]. Objects refer to each other by number, and all live in one arena: a pickle
// can tie them into loops and share them without end, and neither may leak, recurse or multiply.
// Only what passes pickle_tree() becomes a PickleValue.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "kiln/io/pickle_input.h"
#include "kiln/io/pickle_value.h"

namespace kiln::io::detail {

using NodeRef = uint32_t;
using NodePairs = std::vector<std::pair<NodeRef, NodeRef>>;

struct ListNode {
  std::vector<NodeRef> items;
};
struct TupleNode {
  std::vector<NodeRef> items;
};
struct SetNode {
  std::vector<NodeRef> items;
};
struct DictNode {
  NodePairs items;
  NodeRef attributes = 0;  // a dict, or None
};
// A name from the list of those that a file may use: "collections.OrderedDict".
struct GlobalNode {
  std::string name;
};
struct ObjectNode {
  std::string name;
  std::vector<NodeRef> arguments;
};
// A storage class of PyTorch.
struct StorageType {
  const char* name;        // "FloatStorage"
  const char* dtype_name;  // "float32"
  DType dtype;             // when there is no refusal
  size_t element;          // bytes
  const char* refusal;     // why Kiln cannot read its tensors; null when it can
};
// A storage, or a part of one; see TorchObjects.
struct StorageNode {
  uint32_t storage = 0;
  int64_t offset = 0;  // in bytes
  int64_t bytes = 0;
  const StorageType* type = nullptr;
};

using Node = std::variant<std::monostate, bool, int64_t, PickleBigInt, double, std::complex<double>,
                          std::string, PickleBytes, ListNode, TupleNode, SetNode, DictNode,
                          GlobalNode, ObjectNode, StorageNode, std::unique_ptr<StoredTensorInfo>>;

class PickleArena {
 public:
  // The most nodes that the file may ask for, by its size.
  explicit PickleArena(const InputFile& file);

  NodeRef add(Node node);
  // Counts `items` references that are copied from one object to another as if they were nodes:
  // else a short pickle could copy a long list again and again.
  void charge(size_t items);
  NodeRef none() const { return 0; }
  NodeRef boolean(bool value) const { return value ? 2 : 1; }

  const Node& operator[](NodeRef ref) const { return nodes_[ref]; }
  Node& operator[](NodeRef ref) { return nodes_[ref]; }
  template <class T>
  const T* get(NodeRef ref) const {
    return std::get_if<T>(&nodes_[ref]);
  }
  template <class T>
  T* get(NodeRef ref) {
    return std::get_if<T>(&nodes_[ref]);
  }
  // The items of a list or tuple; null for anything else.
  const std::vector<NodeRef>* sequence(NodeRef ref) const;
  const InputFile& file() const { return file_; }
  size_t limit() const { return limit_; }

 private:
  const InputFile& file_;
  size_t limit_;
  size_t charged_ = 0;
  std::vector<Node> nodes_;
};

// "a list", "the name 'torch.Size'": for messages.
std::string describe(const PickleArena& arena, NodeRef ref);

// The object as a tree. Throws IoError when it is nested too deeply, contains itself, repeats a key
// of a dict, or is much larger than the file because it repeats its parts.
class TorchObjects;
PickleValue pickle_tree(const PickleArena& arena, const TorchObjects& objects, NodeRef root);

}  // namespace kiln::io::detail
