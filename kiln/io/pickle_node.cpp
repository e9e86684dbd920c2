#include "kiln/io/pickle_node.h"

#include "kiln/core/error.h"

namespace kiln::io::detail {

namespace {
constexpr int64_t kSmallIntegers = 256;
constexpr NodeRef kFirstInteger = 3;
}  // namespace

PickleArena::PickleArena(const InputFile& file) : file_(file) {
  nodes_.resize(kFirstInteger + kSmallIntegers);  // None, False, True, 0, 1, ...
  nodes_[1] = false;
  nodes_[2] = true;
  for (int64_t i = 0; i < kSmallIntegers; ++i) nodes_[static_cast<size_t>(kFirstInteger + i)] = i;
}

NodeRef PickleArena::add(Node node, uint64_t bytes) {
  charge(sizeof(Node) + bytes);
  nodes_.push_back(std::move(node));
  return static_cast<NodeRef>(nodes_.size() - 1);
}

NodeRef PickleArena::add(ObjectNode object) {
  const uint64_t bytes = sizeof(ObjectNode) + 64 + object.arguments.size() * sizeof(NodeRef);
  return add(Node(std::make_unique<ObjectNode>(std::move(object))), bytes);
}

NodeRef PickleArena::integer(int64_t value) {
  if (value >= 0 && value < kSmallIntegers) return kFirstInteger + static_cast<NodeRef>(value);
  return add(value);
}

ObjectNode* PickleArena::object(NodeRef ref) const {
  const auto* object = get<std::unique_ptr<ObjectNode>>(ref);
  return object == nullptr ? nullptr : object->get();
}

const std::vector<NodeRef>* PickleArena::sequence(NodeRef ref) const {
  if (const auto* list = get<ListNode>(ref)) return &list->items;
  if (const auto* tuple = get<TupleNode>(ref)) return &tuple->items;
  return nullptr;
}

std::string describe(const PickleArena& arena, NodeRef ref) {
  struct Namer {
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(bool) const { return "a bool"; }
    std::string operator()(int64_t i) const { return concat("the number ", i); }
    std::string operator()(const PickleBigInt&) const { return "a large number"; }
    std::string operator()(double) const { return "a float"; }
    std::string operator()(std::complex<double>) const { return "a complex number"; }
    std::string operator()(const std::string& s) const { return "'" + printable(s) + "'"; }
    std::string operator()(const PickleBytes&) const { return "bytes"; }
    std::string operator()(const ListNode&) const { return "a list"; }
    std::string operator()(const TupleNode&) const { return "a tuple"; }
    std::string operator()(const SetNode&) const { return "a set"; }
    std::string operator()(const DictNode&) const { return "a dict"; }
    std::string operator()(const GlobalNode& g) const { return "'" + printable(g.name) + "'"; }
    std::string operator()(const std::unique_ptr<ObjectNode>& o) const {
      return "a " + printable(o->name);
    }
    std::string operator()(const StorageNode&) const { return "a storage"; }
    std::string operator()(const std::unique_ptr<StoredTensorInfo>&) const { return "a tensor"; }
  };
  return std::visit(Namer(), arena[ref]);
}

}  // namespace kiln::io::detail
