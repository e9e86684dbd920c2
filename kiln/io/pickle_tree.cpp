// From the arena of a pickle to a tree of values.
#include <algorithm>
#include <array>
#include <cmath>

#include "kiln/core/error.h"
#include "kiln/io/pickle_node.h"
#include "kiln/io/torch_names.h"
#include "kiln/io/torch_objects.h"

namespace kiln::io::detail {

namespace {

constexpr int kDeepest = 100;

// Note [The cost of a value]. A tree is charged for itself and for what it usually becomes, Python
// objects: bytes of CPython 3.11 on x86-64, which are more than Kiln's own.
constexpr uint64_t kBoxBytes = sizeof(PickleList) + 24;  // a container on the heap, and its items
constexpr uint64_t kTextBytes = sizeof(std::string) + 16 + 56;
constexpr uint64_t kListBytes = kBoxBytes + 80;
constexpr uint64_t kSetBytes = kBoxBytes + 232;
constexpr uint64_t kDictBytes = sizeof(PickleDict) + 16 + 80;
constexpr uint64_t kNumberBytes = 32;
constexpr uint64_t kItemBytes = sizeof(PickleValue) + 8;
constexpr uint64_t kMemberBytes = sizeof(PickleItem) + 104;  // of a dict or set, with its hash
constexpr uint64_t kFirstMemberBytes = 128;                  // a dict's table
constexpr uint64_t kOrderedBytes = 512;                      // an OrderedDict in place of a dict
constexpr uint64_t kTensorBytes = sizeof(StoredTensorInfo) + 768;

// What a collections.OrderedDict has of its own: an attribute must not hide it.
constexpr std::array<std::string_view, 12> kOwnNames{
    "clear",       "copy", "fromkeys", "get",        "items",  "keys",
    "move_to_end", "pop",  "popitem",  "setdefault", "update", "values"};

bool may_be_attribute(const std::string& name) {
  const auto part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && !name.starts_with("__") && std::all_of(name.begin(), name.end(), part) &&
         std::find(kOwnNames.begin(), kOwnNames.end(), name) == kOwnNames.end();
}

// Whether Python could take it as a key.
bool is_hashable(const PickleValue& value) {
  if (value.is<PickleList>() || value.is<PickleDict>()) return false;
  if (const auto* set = value.get<PickleSet>()) return set->frozen;
  const auto* tuple = value.get<PickleTuple>();
  return tuple == nullptr || std::all_of(tuple->items.begin(), tuple->items.end(), is_hashable);
}

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
  PickleValue one(std::monostate) { return {}; }
  PickleValue one(bool value) { return value; }
  PickleValue one(int64_t value) {
    spend(value >= 0 && value <= 256 ? 0 : kNumberBytes);
    return value;
  }
  PickleValue one(double value) {
    spend(kNumberBytes);
    return value;
  }
  PickleValue one(std::complex<double> value) {
    spend(2 * kNumberBytes + 16);
    return value;
  }
  PickleValue one(const std::string& text) {
    spend(kTextBytes + 2 * text.size());
    return text;
  }
  PickleValue one(const PickleBytes& bytes) {
    spend(kTextBytes + 2 * bytes.bytes.size());
    return bytes;
  }
  PickleValue one(const PickleBigInt& number) {
    spend(kTextBytes + 2 * number.decimal.size());
    return number;
  }
  PickleValue one(const ListNode& list) {
    spend(kListBytes);
    return PickleList(items(list.items));
  }
  PickleValue one(const TupleNode& tuple) {
    spend(kListBytes);
    return PickleTuple{items(tuple.items)};
  }
  PickleValue one(const SetNode& set) {
    spend(kSetBytes + (kMemberBytes - kItemBytes) * set.items.size());
    PickleSet out{items(set.items), set.frozen};
    for (const PickleValue& item : out.items) {
      if (!is_hashable(item)) refuse("a set has a member that no set can have", kind_name(item));
    }
    return out;
  }
  PickleValue one(const DictNode& dict) {
    spend(kDictBytes);
    PickleDict out;
    out.items = pairs(dict.items);
    const auto* attributes = arena_.get<DictNode>(dict.attributes);
    out.ordered = dict.ordered || attributes != nullptr;
    if (out.ordered) spend(kOrderedBytes + kMemberBytes * out.items.size());
    if (attributes != nullptr) {
      out.attributes = pairs(attributes->items);
      for (const PickleItem& item : out.attributes) {
        const auto* name = item.key.get<std::string>();
        if (name == nullptr || !may_be_attribute(*name)) {
          refuse("it sets an attribute that a dict cannot be given", to_text(item.key, 80));
        }
      }
    }
    return out;
  }
  PickleValue one(const GlobalNode& global) {
    const StorageType* dtype = dtype_type(global.name);
    if (dtype != nullptr && dtype->refusal == nullptr) return dtype->dtype;
    spend(kListBytes + kTextBytes + 2 * global.name.size());
    return PickleObject{global.name, {}};
  }
  PickleValue one(const std::unique_ptr<ObjectNode>& object) {
    spend(kListBytes + kTextBytes + 2 * object->name.size());
    return PickleObject{object->name, items(object->arguments)};
  }
  PickleValue one(const StorageNode& storage) {
    spend(kTensorBytes);
    return objects_.whole_storage(storage);
  }
  PickleValue one(const std::unique_ptr<StoredTensorInfo>& tensor) {
    spend(kTensorBytes);
    auto out = std::make_shared<StoredTensorInfo>(*tensor);
    if (const auto* parts = objects_.parts_of(tensor.get())) {
      spend(kListBytes + kTextBytes);
      out->parts = std::make_shared<PickleObject>(PickleObject{out->type_name, items(*parts)});
    }
    return StoredTensor(std::move(out));
  }

  std::vector<PickleValue> items(const std::vector<NodeRef>& refs) {
    spend(kItemBytes * refs.size());
    std::vector<PickleValue> out;
    out.reserve(refs.size());
    for (const NodeRef ref : refs) out.push_back(make(ref));
    return out;
  }

  std::vector<PickleItem> pairs(const NodePairs& refs) {
    spend(refs.empty() ? 0 : kFirstMemberBytes + kMemberBytes * refs.size());
    check_keys(refs);
    std::vector<PickleItem> out;
    out.reserve(refs.size());
    for (const auto& [key, value] : refs) {
      PickleValue made_key = make(key);
      if (!is_hashable(made_key)) {
        refuse("a dict has a key that no dict can have", kind_name(made_key));
      }
      out.push_back({std::move(made_key), make(value)});
    }
    return out;
  }

  // A later entry of the same key would silently replace the first.
  void check_keys(const NodePairs& refs) {
    std::vector<NodeRef> texts;
    std::vector<std::pair<int64_t, NodeRef>> numbers;
    for (const auto& [key, value] : refs) {
      const auto* flag = arena_.get<bool>(key);
      const auto* number = arena_.get<int64_t>(key);
      const auto* real = arena_.get<double>(key);
      if (arena_.get<std::string>(key) != nullptr) texts.push_back(key);
      // True, 1 and 1.0 are one key.
      if (flag != nullptr) numbers.emplace_back(*flag ? 1 : 0, key);
      if (number != nullptr) numbers.emplace_back(*number, key);
      if (real != nullptr && std::trunc(*real) == *real && std::abs(*real) < 9e15) {
        numbers.emplace_back(static_cast<int64_t>(*real), key);
      }
    }
    const auto text = [this](NodeRef ref) -> const std::string& {
      return *arena_.get<std::string>(ref);
    };
    // One text many times is found by its number: comparing it with itself would take its length.
    std::sort(texts.begin(), texts.end());
    const auto same = std::adjacent_find(texts.begin(), texts.end());
    if (same != texts.end()) refuse("a dict has a key twice", describe(arena_, *same));
    std::sort(texts.begin(), texts.end(), [&](NodeRef a, NodeRef b) { return text(a) < text(b); });
    const auto twin = std::adjacent_find(texts.begin(), texts.end(),
                                         [&](NodeRef a, NodeRef b) { return text(a) == text(b); });
    if (twin != texts.end()) refuse("a dict has a key twice", describe(arena_, *twin));
    std::sort(numbers.begin(), numbers.end());
    const auto pair = std::adjacent_find(numbers.begin(), numbers.end(),
                                         [](auto& a, auto& b) { return a.first == b.first; });
    if (pair != numbers.end()) refuse("a dict has a key twice", describe(arena_, pair->second));
  }

  // Shared parts are copied: what a short pickle repeats without end must stop somewhere.
  void spend(uint64_t bytes) { arena_.file().budget().charge(bytes, "what its pickle describes"); }

  [[noreturn]] void refuse(const char* what, const std::string& got) const {
    throw_error<IoError>(arena_.file().op(), ": '", arena_.file().path(), "' is refused: ", what,
                         "; got ", got, "; expected a model or checkpoint");
  }

  const PickleArena& arena_;
  const TorchObjects& objects_;
  int depth_ = 0;
};

}  // namespace

PickleValue pickle_tree(const PickleArena& arena, const TorchObjects& objects, NodeRef root) {
  return TreeMaker(arena, objects).make(root);
}

}  // namespace kiln::io::detail
