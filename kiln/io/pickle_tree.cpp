// From the arena of a pickle to a tree of values.
#include <unordered_set>

#include "kiln/core/error.h"
#include "kiln/io/pickle_node.h"
#include "kiln/io/torch_names.h"
#include "kiln/io/torch_objects.h"

namespace kiln::io::detail {

namespace {

constexpr int kDeepest = 100;

class TreeMaker {
 public:
  TreeMaker(const PickleArena& arena, const TorchObjects& objects)
      : arena_(arena), objects_(objects) {}

  PickleValue make(NodeRef ref) {
    // Depth is also what ends a loop of objects that contain each other.
    if (depth_ == kDeepest) {
      refuse("its objects are nested too deeply, or contain themselves",
             concat("more than ", kDeepest, " levels"));
    }
    ++depth_;
    PickleValue out = std::visit([this](const auto& node) { return one(node); }, arena_[ref]);
    --depth_;
    return out;
  }

 private:
  template <class T>
  PickleValue one(const T& plain) {
    return PickleValue(plain);
  }
  PickleValue one(const std::string& text) {
    spend(text.size() / 64);
    return PickleValue(text);
  }
  PickleValue one(const PickleBytes& bytes) {
    spend(bytes.bytes.size() / 64);
    return PickleValue(bytes);
  }
  PickleValue one(const PickleBigInt& number) {
    spend(number.decimal.size() / 64);
    return PickleValue(number);
  }
  PickleValue one(const ListNode& list) { return PickleValue(PickleList(items(list.items))); }
  PickleValue one(const TupleNode& tuple) { return PickleValue(PickleTuple{items(tuple.items)}); }
  PickleValue one(const SetNode& set) { return PickleValue(PickleSet{items(set.items)}); }
  PickleValue one(const DictNode& dict) {
    PickleDict out;
    out.items = pairs(dict.items);
    if (const auto* attributes = arena_.get<DictNode>(dict.attributes)) {
      out.attributes = pairs(attributes->items);
    }
    return PickleValue(std::move(out));
  }
  PickleValue one(const GlobalNode& global) {
    const StorageType* dtype = dtype_type(global.name);
    if (dtype != nullptr && dtype->refusal == nullptr) return PickleValue(dtype->dtype);
    return PickleValue(PickleObject{global.name, {}});
  }
  PickleValue one(const ObjectNode& object) {
    return PickleValue(PickleObject{object.name, items(object.arguments)});
  }
  PickleValue one(const StorageNode& storage) {
    return PickleValue(objects_.whole_storage(storage));
  }
  PickleValue one(const std::unique_ptr<StoredTensorInfo>& tensor) {
    spend(4);
    return PickleValue(StoredTensor(std::make_shared<StoredTensorInfo>(*tensor)));
  }

  std::vector<PickleValue> items(const std::vector<NodeRef>& refs) {
    spend(refs.size());
    std::vector<PickleValue> out;
    out.reserve(refs.size());
    for (const NodeRef ref : refs) out.push_back(make(ref));
    return out;
  }

  std::vector<PickleItem> pairs(const NodePairs& refs) {
    spend(2 * refs.size());
    std::vector<PickleItem> out;
    out.reserve(refs.size());
    std::unordered_set<std::string> names;
    std::unordered_set<int64_t> numbers;
    for (const auto& [key, value] : refs) {
      const auto* name = arena_.get<std::string>(key);
      const auto* number = arena_.get<int64_t>(key);
      if ((name != nullptr && !names.insert(*name).second) ||
          (number != nullptr && !numbers.insert(*number).second)) {
        refuse("a dict has a key twice", describe(arena_, key));
      }
      PickleValue made_key = make(key);
      out.push_back({std::move(made_key), make(value)});
    }
    return out;
  }

  // Shared parts are copied: what a short pickle repeats without end must stop somewhere.
  void spend(size_t values) {
    spent_ += values;
    if (spent_ > arena_.limit()) {
      refuse("it repeats its parts too often", concat("more than ", arena_.limit(), " values"));
    }
  }

  [[noreturn]] void refuse(const char* what, const std::string& got) const {
    throw_error<IoError>(arena_.file().op(), ": '", arena_.file().path(), "' is refused: ", what,
                         "; got ", got, "; expected a model or checkpoint");
  }

  const PickleArena& arena_;
  const TorchObjects& objects_;
  int depth_ = 0;
  size_t spent_ = 0;
};

}  // namespace

PickleValue pickle_tree(const PickleArena& arena, const TorchObjects& objects, NodeRef root) {
  return TreeMaker(arena, objects).make(root);
}

}  // namespace kiln::io::detail
