#include "kiln/io/torch_state.h"

#include <algorithm>
#include <mutex>

#include "kiln/core/error.h"

namespace kiln::io::detail {

namespace {

constexpr const char* kStateOp = "load_model";
// Names that training programs give the model in their checkpoints.
constexpr const char* kUsualNames[] = {"state_dict", "model_state_dict", "model",   "module",
                                       "net",        "network",          "weights", "params"};

constexpr const char* kNamesInIt = "the names in it";
// A tensor in the lists of TorchState and ModelReader.
constexpr uint64_t kEntryBytes = 2 * sizeof(TensorEntry) + 256;

using Place = std::pair<std::string, const PickleValue*>;

std::string join(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

bool is_container(const PickleValue& value) {
  return value.is<PickleDict>() || value.is<PickleList>() || value.is<PickleTuple>();
}

// A dict of tensors by name, with plain values among them at most.
bool is_state_dict(const PickleValue& value) {
  const auto* dict = value.get<PickleDict>();
  if (dict == nullptr) return false;
  bool any = false;
  for (const PickleItem& item : dict->items) {
    if (!item.key.is<std::string>() || is_container(item.value)) return false;
    any = any || item.value.is_tensor();
  }
  return any;
}

// The state dicts closest to the root, looking through dicts whose keys are texts.
std::vector<Place> find_candidates(const PickleValue& root, Budget& budget) {
  std::vector<Place> level{{"", &root}};
  while (!level.empty()) {
    std::vector<Place> found;
    std::vector<Place> next;
    for (const auto& [name, value] : level) {
      if (is_state_dict(*value)) found.emplace_back(name, value);
      const auto* dict = value->get<PickleDict>();
      if (dict == nullptr) continue;
      for (const PickleItem& item : dict->items) {
        const auto* key = item.key.get<std::string>();
        if (key != nullptr && is_container(item.value)) {
          budget.charge(3 * sizeof(Place) + name.size() + key->size(), kNamesInIt);
          next.emplace_back(join(name, *key), &item.value);
        }
      }
    }
    if (!found.empty()) return found;
    level = std::move(next);
  }
  return {};
}

// Follows "a.b.0": keys may have dots themselves, so the longest that fits is taken first.
const PickleValue* follow(const PickleValue& value, std::string_view key) {
  if (key.empty()) return &value;
  for (size_t end = key.size();; end = key.rfind('.', end - 1)) {
    if (end == std::string_view::npos) return nullptr;
    const std::string_view part = key.substr(0, end);
    const std::string_view rest = end == key.size() ? "" : key.substr(end + 1);
    const PickleValue* found = nullptr;
    if (const auto* dict = value.get<PickleDict>()) {
      for (const PickleItem& item : dict->items) {
        if (scalar_text(item.key) == part) found = &item.value;
      }
    } else {
      const auto* list = value.get<PickleList>();
      const auto* tuple = value.get<PickleTuple>();
      const auto* items = list != nullptr ? list : tuple != nullptr ? &tuple->items : nullptr;
      for (size_t i = 0; items != nullptr && i < items->size(); ++i) {
        if (std::to_string(i) == part) found = &(*items)[i];
      }
    }
    if (found != nullptr) {
      if (const PickleValue* end_of = follow(*found, rest)) return end_of;
    }
    if (end == 0) return nullptr;
  }
}

// Tensors by their names, nested ones joined by dots; plain values as metadata. A long name above
// many values is a long name of each.
void flatten(const PickleValue& value, const std::string& name, TorchState& out, Budget& budget) {
  budget.charge(kEntryBytes + 6 * name.size(), kNamesInIt);
  if (const auto* tensor = value.get<StoredTensor>()) {
    out.tensors.emplace_back(name.empty() ? "tensor" : name, *tensor);
  } else if (const auto* dict = value.get<PickleDict>()) {
    for (const PickleItem& item : dict->items) {
      const std::string text = scalar_text(item.key);
      flatten(item.value, join(name, text.empty() ? to_text(item.key) : text), out, budget);
    }
  } else if (const auto* list = value.get<PickleList>()) {
    for (size_t i = 0; i < list->size(); ++i)
      flatten((*list)[i], join(name, std::to_string(i)), out, budget);
  } else if (const auto* tuple = value.get<PickleTuple>()) {
    for (size_t i = 0; i < tuple->items.size(); ++i) {
      flatten(tuple->items[i], join(name, std::to_string(i)), out, budget);
    }
  } else if (!name.empty()) {
    std::string text = scalar_text(value);
    budget.charge(text.size(), kNamesInIt);
    out.metadata[name] = text.empty() ? to_text(value) : std::move(text);
  }
}

void take_attributes(const PickleValue& value, TorchState& out) {
  const auto* dict = value.get<PickleDict>();
  if (dict == nullptr) return;
  for (const PickleItem& item : dict->attributes) {
    const auto* name = item.key.get<std::string>();
    const auto* entries = item.value.get<PickleDict>();
    if (name == nullptr || entries == nullptr) continue;
    for (const PickleItem& entry : entries->items) {
      if (*name == kMetadataAttribute) {
        out.metadata[scalar_text(entry.key)] = scalar_text(entry.value);
      } else if (const auto* module = entry.value.get<PickleDict>();
                 *name == "_metadata" && module) {
        for (const PickleItem& fact : module->items) {
          const auto* number = fact.value.get<int64_t>();
          if (number != nullptr) {
            out.state_metadata[scalar_text(entry.key)][scalar_text(fact.key)] = *number;
          }
        }
      }
    }
  }
}

std::string names_of(const std::vector<Place>& places) {
  std::string out;
  for (size_t i = 0; i < places.size() && i < 10; ++i) {
    out += (i > 0 ? ", '" : "'") + printable(places[i].first) + "'";
  }
  return out + (places.size() > 10 ? ", ..." : "");
}

const PickleValue& choose(const std::string& path, const PickleValue& root, Budget& budget) {
  const std::vector<Place> candidates = find_candidates(root, budget);
  if (candidates.empty()) return root;
  if (candidates.size() == 1) return *candidates[0].second;
  for (const char* name : kUsualNames) {
    for (const auto& [place, value] : candidates) {
      if (place == name || place.ends_with(std::string(".") + name)) return *value;
    }
  }
  throw_error<IoError>(kStateOp, ": '", path, "' holds several state dicts; got ",
                       names_of(candidates),
                       "; expected one, or a key that says which ('.' for all of them)");
}

class TorchModel final : public ModelReader {
 public:
  TorchModel(const std::string& path, const ReadOptions& options)
      : reader_(path, options.max_ratio) {
    TorchState state = find_state(path, reader_.value(), options.key, reader_.budget());
    std::vector<TensorEntry> entries;
    entries.reserve(state.tensors.size());
    for (auto& [name, tensor] : state.tensors) {
      const uint64_t bytes =
          tensor->refusal.empty()
              ? static_cast<uint64_t>(tensor->shape.numel()) * size_of(tensor->dtype)
              : 0;
      entries.push_back(
          {name, tensor->shape, tensor->dtype, bytes, tensor->type_name, tensor->refusal});
      tensors_.push_back(std::move(tensor));
    }
    charged_.resize(entries.size());
    set_entries(path, std::move(entries));
    metadata_ = std::move(state.metadata);
    state_metadata_ = std::move(state.state_metadata);
  }
  FileFormat format() const override {
    return reader_.is_legacy() ? FileFormat::torch_legacy : FileFormat::torch;
  }
  const PickleValue* value() const override { return &reader_.value(); }

 private:
  // Memory of its own, though a thousand of them may see one storage. The file pays once for each.
  Tensor read_entry(size_t entry) const override {
    {
      const std::lock_guard lock(mutex_);
      if (!charged_[entry]) reader_.budget().charge(entries()[entry].bytes, "a tensor");
      charged_[entry] = true;
    }
    return reader_.read(*tensors_[entry]);
  }

  std::vector<Tensor> read_entries() const override {
    std::vector<Tensor> out = reader_.read(tensors_);
    for (Tensor& x : out) x = x.detach();
    return out;
  }

  TorchReader reader_;
  std::vector<StoredTensor> tensors_;
  mutable std::mutex mutex_;  // of what follows
  mutable std::vector<bool> charged_;
};

}  // namespace

TorchState find_state(const std::string& path, const PickleValue& value, const std::string& key,
                      Budget& budget) {
  TorchState out;
  const PickleValue* chosen = nullptr;
  if (key.empty()) {
    chosen = &choose(path, value, budget);
  } else {
    chosen = key == "." ? &value : follow(value, key);
  }
  if (chosen == nullptr) {
    throw_error<IoError>(kStateOp, ": '", path, "' has nothing at this key; got '", printable(key),
                         "'; expected a place in ", to_text(value, 300));
  }
  flatten(*chosen, "", out, budget);
  if (out.tensors.empty()) {
    throw_error<IoError>(kStateOp, ": '", path, "' has no tensors there; got ",
                         to_text(*chosen, 200), "; expected a state dict");
  }
  // What stands beside the state dict: the epoch, the loss.
  if (const auto* dict = value.get<PickleDict>(); dict != nullptr && chosen != &value) {
    for (const PickleItem& item : dict->items) {
      const std::string text = scalar_text(item.value);
      const std::string name = scalar_text(item.key);
      if (!text.empty() && !name.empty()) out.metadata.emplace(name, text);
    }
  }
  take_attributes(*chosen, out);
  return out;
}

std::unique_ptr<ModelReader> open_torch_model(const std::string& path, const ReadOptions& options) {
  return std::make_unique<TorchModel>(path, options);
}

}  // namespace kiln::io::detail
