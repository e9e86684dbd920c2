// Loading state dicts.
//
// Note [Loading]
// First the modules are gone through in order: pre-hooks run, and every entry is matched with its
// tensor, or noted as missing or misfit. Then the tensors are read and prepared. Only when all that
// went well is anything stored. Post-hooks run last, parts before owners, and may still change what
// counts as missing or unexpected; so with them a strict load can fail after it has stored.
#include <algorithm>
#include <set>

#include "kiln/backend/meta/meta_tensor.h"
#include "kiln/core/error.h"
#include "kiln/core/warning.h"
#include "kiln/nn/hook_table.h"
#include "kiln/nn/module_tree.h"
#include "kiln/nn/state_source.h"
#include "kiln/tensor/autograd/grad_mode.h"

namespace kiln::nn {
namespace detail {
namespace {

// Owns its state dict: hooks may change it.
class DictSource final : public StateSource {
 public:
  explicit DictSource(StateDict dict) : dict(std::move(dict)) {}
  std::vector<std::string> keys() const override { return dict.keys(); }
  bool contains(const std::string& key) const override { return dict.contains(key); }
  Shape shape(const std::string& key) const override { return dict.at(key).shape(); }
  Tensor read(const std::string& key) const override { return dict.at(key); }
  bool gives_away() const override { return false; }
  const StateMetadata* metadata(const std::string& path) const override {
    const auto found = dict.metadata().find(path);
    return found == dict.metadata().end() ? nullptr : &found->second;
  }
  const std::any* object(const std::string& key) const override { return dict.find_object(key); }
  std::vector<std::string> object_keys() const override {
    std::vector<std::string> out;
    for (const auto& [key, value] : dict.objects()) out.push_back(key);
    return out;
  }

  StateDict dict;
};

// Everything that the source has for the modules below `root`.
StateDict read_all(Module& root, const StateSource& source) {
  StateDict out;
  for (const std::string& key : source.keys()) out.set(key, source.read(key));
  for (const std::string& key : source.object_keys()) out.set_object(key, *source.object(key));
  for (const auto& [path, module] : root.named_modules("", false)) {
    if (const StateMetadata* saved = source.metadata(path)) out.metadata()[path] = *saved;
  }
  return out;
}

// Files from before tensors could be 0-d hold their single number with one dim.
bool is_old_scalar(const Shape& given, const Shape& wanted) {
  return wanted.empty() && given.rank() == 1 && given[0] == 1;
}

std::string size_mismatch(const std::string& key, const Shape& given, const Shape& wanted) {
  return concat("size mismatch for ", key, ": copying a param with shape ", given,
                " from checkpoint, the shape in current model is ", wanted, ".");
}

std::string quoted_list(const std::vector<std::string>& keys) {
  std::string out;
  for (const std::string& key : keys) out += (out.empty() ? "\"" : ", \"") + key + "\"";
  return out;
}

// A parameter or buffer, and the key of its tensor.
struct Entry {
  std::string key;
  Param<Tensor>* param = nullptr;  // one of the two
  Buffer* buffer = nullptr;
  Tensor value = {};

  Shape shape() const { return param != nullptr ? param->lazy_shape() : buffer->get().shape(); }
  bool is_mapped() const { return param != nullptr && param->mapper().has_load(); }
};

// The value as the module will hold it, in memory that nobody else has when the module keeps it.
Tensor prepared(const Entry& entry, Tensor value, bool owned, bool assign) {
  const Shape wanted = entry.shape();
  if (is_old_scalar(value.shape(), wanted)) value = value.reshape({});
  if (entry.is_mapped()) {
    value = entry.param->mapper().on_load(value).detach();
    owned = false;
  }
  if (assign) return value.detach();
  const Device device =
      entry.param != nullptr ? entry.param->lazy_device() : entry.buffer->get().device();
  if (device.type == kMeta && value.device().type != kMeta) {
    warn(concat("for ", entry.key,
                ": copying from a tensor with values in the checkpoint to a meta tensor in the "
                "current model, which keeps nothing; did you mean to pass assign = true?"));
  }
  const std::optional<DType> dtype =
      entry.param != nullptr ? entry.param->lazy_dtype() : entry.buffer->get().dtype();
  const bool kept = entry.param != nullptr && !entry.param->is_initialized();
  if (value.device() != device || value.dtype() != dtype.value_or(value.dtype())) {
    return value.detach().to(device, dtype.value_or(value.dtype()));
  }
  value = value.detach();
  return kept && !owned ? value.clone() : value;
}

void store(Entry& entry, bool assign) {
  if (entry.buffer != nullptr) {
    if (assign) {
      *entry.buffer = std::move(entry.value);
    } else {
      (*entry.buffer)->copy_(entry.value);
    }
  } else if (entry.param->is_initialized() && !assign) {
    (*entry.param)->copy_(entry.value);
  } else {
    const bool floating = entry.value.is_floating_point();
    if (floating && entry.param->lazy_is_require_grad()) entry.value.requires_grad_();
    entry.param->replace(std::move(entry.value));
  }
}

}  // namespace

class StateLoader {
 public:
  StateLoader(const StateSource& source, bool strict, bool assign)
      : source_(&source), strict_(strict), assign_(assign) {}

  IncompatibleKeys load(Module& root) {
    if (has_pre_hooks(root)) {
      own_source_.emplace(read_all(root, *source_));
      source_ = &*own_source_;
    }
    gather(root, "");
    find_unexpected();
    NoGradGuard no_grad;
    if (errors_.empty()) read_values();
    // Post-hooks may forgive missing keys; a value that does not fit nobody can.
    if (!errors_.empty() || (post_hooks_.empty() && fails())) throw_errors(root);
    store_values();
    for (const auto& run : post_hooks_) run();
    if (fails()) throw_errors(root);
    return std::move(keys_);
  }

 private:
  static bool has_pre_hooks(Module& root) {
    for (const Module* module : root.modules()) {
      const HookTable* table = HookTable::of(*module);
      if (table != nullptr && table->load_pre.size() > 0) return true;
    }
    return false;
  }

  bool fails() const {
    return strict_ && !(keys_.missing_keys.empty() && keys_.unexpected_keys.empty());
  }

  // Matches the entries of a module and of what is below it.
  void gather(Module& module, const std::string& prefix) {
    const std::string path = prefix.substr(0, prefix.empty() ? 0 : prefix.size() - 1);
    const StateMetadata* saved = source_->metadata(path);
    const StateMetadata metadata = saved != nullptr ? *saved : StateMetadata();
    HookTable* const table = HookTable::of(module);
    if (table != nullptr) {
      LoadProgress progress{strict_, keys_.missing_keys, keys_.unexpected_keys, errors_};
      for_each_hook(table->load_pre.snapshot(), [&](const auto& entry) {
        entry.hook(module, own_source_->dict, prefix, metadata, progress);
      });
    }
    gather_parts(module, parts_of(module), prefix, "", metadata);
    if (table == nullptr) return;
    for_each_hook(table->load_post.snapshot(), [&](const auto& entry) {
      post_hooks_.push_back([this, &module, hook = entry.hook] { hook(module, keys_); });
    });
  }

  // `inner` is the path from the module to a container in it, with a dot.
  void gather_parts(Module& module, const ModuleTree& node, const std::string& prefix,
                    const std::string& inner, const StateMetadata& metadata) {
    for (const auto& [name, param] : node.params) {
      if (param->defined()) match(module, {prefix + name, param}, inner + name, metadata);
    }
    for (const auto& [name, buffer] : node.buffers) {
      if (!buffer->defined() || !buffer->persistent()) continue;
      match(module, {prefix + name, nullptr, buffer}, inner + name, metadata);
    }
    if (node.module != nullptr && node.module->extra_state().set) match_extra(module, prefix);
    for (const ModuleTree& child : node.children) {
      if (child.module != nullptr) {
        gather(*child.module, prefix + child.name + ".");
      } else {
        gather_parts(module, child, prefix + child.name + ".", inner + child.name + ".", metadata);
      }
    }
  }

  void match(const Module& module, Entry entry, const std::string& name,
             const StateMetadata& metadata) {
    known_.insert(entry.key);
    if (!source_->contains(entry.key)) {
      if (!module.may_lack(name, metadata)) keys_.missing_keys.push_back(entry.key);
      return;
    }
    if (is_none(entry.key)) {
      errors_.push_back(concat("While copying the parameter named \"", entry.key,
                               "\", expected a tensor from checkpoint but received None."));
      return;
    }
    const Shape given = source_->shape(entry.key);
    const Shape wanted = entry.shape();
    if (!entry.is_mapped() && given != wanted && !is_old_scalar(given, wanted)) {
      errors_.push_back(size_mismatch(entry.key, given, wanted));
    } else {
      matched_.push_back(std::move(entry));
    }
  }

  bool is_none(const std::string& key) const {
    const auto* dict = dynamic_cast<const DictSource*>(source_);
    return dict != nullptr && !dict->dict.at(key).defined();
  }

  void match_extra(Module& module, const std::string& prefix) {
    const std::string key = prefix + "_extra_state";
    known_.insert(key);
    if (const std::any* object = source_->object(key)) {
      extra_.emplace_back(&module, *object);
    } else if (source_->contains(key)) {
      extra_.emplace_back(&module, source_->read(key));
    } else {
      keys_.missing_keys.push_back(key);
    }
  }

  void find_unexpected() {
    for (const auto& keys : {source_->keys(), source_->object_keys()}) {
      for (const std::string& key : keys) {
        if (!known_.contains(key)) keys_.unexpected_keys.push_back(key);
      }
    }
  }

  void read_values() {
    for (Entry& entry : matched_) {
      entry.value = prepared(entry, source_->read(entry.key), source_->gives_away(), assign_);
      const Shape wanted = entry.shape();
      if (entry.value.shape() != wanted) {  // after a load mapper
        errors_.push_back(size_mismatch(entry.key, entry.value.shape(), wanted));
      }
    }
  }

  void store_values() {
    for (Entry& entry : matched_) store(entry, assign_);
    for (auto& [module, state] : extra_) module->set_extra_state(state);
  }

  [[noreturn]] void throw_errors(const Module& root) {
    if (strict_ && !keys_.unexpected_keys.empty()) {
      errors_.insert(errors_.begin(), "Unexpected key(s) in state_dict: " +
                                          quoted_list(keys_.unexpected_keys) + ". ");
    }
    if (strict_ && !keys_.missing_keys.empty()) {
      errors_.insert(errors_.begin(),
                     "Missing key(s) in state_dict: " + quoted_list(keys_.missing_keys) + ". ");
    }
    std::string message = "Error(s) in loading state_dict for " + root.type_name() + ":";
    for (const std::string& error : errors_) message += "\n\t" + error;
    throw RuntimeError(message);
  }

  const StateSource* source_;
  bool strict_;
  bool assign_;
  std::optional<DictSource> own_source_;  // for pre-hooks
  IncompatibleKeys keys_;
  std::vector<std::string> errors_;
  std::vector<Entry> matched_;
  std::set<std::string, std::less<>> known_;
  std::vector<std::pair<Module*, std::any>> extra_;
  std::vector<std::function<void()>> post_hooks_;
};

IncompatibleKeys load_state(Module& module, const StateSource& source, bool strict, bool assign) {
  return StateLoader(source, strict, assign).load(module);
}

}  // namespace detail

IncompatibleKeys Module::load_state_dict(const StateDict& state_dict, bool strict, bool assign) {
  return detail::load_state(*this, detail::DictSource(state_dict), strict, assign);
}

}  // namespace kiln::nn
