#include "kiln/io/pickle_node.h"

#include <algorithm>

#include "kiln/core/error.h"

namespace kiln::io::detail {

namespace {
constexpr uint64_t kFewNodes = 64 * 1024;
constexpr uint64_t kMostNodes = 4 * 1024 * 1024;
}  // namespace

PickleArena::PickleArena(const InputFile& file)
    : file_(file),
      // An uncompressed pickle makes no more nodes than it has bytes.
      limit_(static_cast<size_t>(std::min(kMostNodes, kFewNodes + file.size()))) {
  nodes_.emplace_back(std::monostate());
  nodes_.emplace_back(false);
  nodes_.emplace_back(true);
}

void PickleArena::charge(size_t items) {
  charged_ += items;
  if (charged_ > limit_) {
    throw_error<IoError>(file_.op(), ": '", file_.path(),
                         "' is refused: its pickle makes too many objects; got more than ", limit_,
                         "; expected fewer in a file of ", file_.size(), " bytes");
  }
}

NodeRef PickleArena::add(Node node) {
  charge(1);
  nodes_.push_back(std::move(node));
  return static_cast<NodeRef>(nodes_.size() - 1);
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
    std::string operator()(const ObjectNode& o) const { return "a " + printable(o.name); }
    std::string operator()(const StorageNode&) const { return "a storage"; }
    std::string operator()(const std::unique_ptr<StoredTensorInfo>&) const { return "a tensor"; }
  };
  return std::visit(Namer(), arena[ref]);
}

}  // namespace kiln::io::detail
