// The objects that a pickle makes while it is read.
//
// Note [Pickle nodes]. Objects refer to each other by number, and all live in one arena: a pickle
// can tie them into loops and share them without end, and neither may leak, recurse or multiply.
// Only what passes pickle_tree() becomes a PickleValue.
#pragma once

#include <complex>
#include <cstdint>
#include <deque>
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
  bool frozen = false;
};
struct DictNode {
  NodePairs items;
  NodeRef attributes = 0;  // a dict, or None
  bool ordered = false;    // an OrderedDict
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

using Node =
    std::variant<std::monostate, bool, int64_t, PickleBigInt, double, std::complex<double>,
                 std::string, PickleBytes, ListNode, TupleNode, SetNode, DictNode, GlobalNode,
                 std::unique_ptr<ObjectNode>, StorageNode, std::unique_ptr<StoredTensorInfo>>;

// Everything that it holds is charged to the file's budget.
class PickleArena {
 public:
  explicit PickleArena(const InputFile& file);

  // `bytes`: what the node holds beside itself.
  NodeRef add(Node node, uint64_t bytes = 0);
  NodeRef add(ObjectNode object);
  NodeRef none() const { return 0; }
  NodeRef boolean(bool value) const { return value ? 2 : 1; }
  // Small ones are there already.
  NodeRef integer(int64_t value);

  // For what refers to nodes: the stack, the items of containers.
  void charge(uint64_t bytes) { file_.budget().charge(bytes, kWhat); }
  template <class Vector>
  void grow(Vector& items, size_t more) {
    file_.budget().grow(items, more, kWhat);
  }

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
  // Null for anything else.
  ObjectNode* object(NodeRef ref) const;
  // The items of a list or tuple; null for anything else.
  const std::vector<NodeRef>* sequence(NodeRef ref) const;
  const InputFile& file() const { return file_; }

 private:
  static constexpr const char* kWhat = "the objects of its pickle";

  const InputFile& file_;
  std::deque<Node> nodes_;  // which stay where they are when there are more
};

// "a list", "the name 'torch.Size'": for messages.
std::string describe(const PickleArena& arena, NodeRef ref);

// The object as a tree. Throws IoError when it is nested too deeply, contains itself, repeats a key
// of a dict, cannot be in Python (a list as a key), or costs too much because it repeats its parts.
class TorchObjects;
PickleValue pickle_tree(const PickleArena& arena, const TorchObjects& objects, NodeRef root);

}  // namespace kiln::io::detail
