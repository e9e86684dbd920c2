// State dicts of modules.
#include <algorithm>
#include <set>

#include "kiln/core/error.h"
#include "kiln/nn/module_tree.h"
#include "kiln/nn/state_source.h"
#include "kiln/tensor/grad_mode.h"

namespace kiln::nn {
namespace {

using detail::StateEntry;
using detail::StateSource;

class DictSource final : public StateSource {
 public:
  explicit DictSource(const StateDict& dict) : dict_(dict) {}
  std::vector<std::string> keys() const override { return dict_.keys(); }
  bool contains(const std::string& key) const override { return dict_.contains(key); }
  Shape shape(const std::string& key) const override { return read(key).shape(); }
  Tensor read(const std::string& key) const override {
    const Tensor& value = dict_.at(key);
    if (!value.defined()) {
      throw_error<ValueError>("load_state_dict: the tensor named \"", key, "\" is undefined");
    }
    return value;
  }
  bool gives_away() const override { return false; }

 private:
  const StateDict& dict_;
};

Shape shape_of(const StateEntry& entry) {
  return entry.param != nullptr ? entry.param->lazy_shape() : entry.buffer->get().shape();
}

// Files from before tensors could be 0-d hold their single number with one dim.
bool is_old_scalar(const Shape& given, const Shape& wanted) {
  return wanted.empty() && given.rank() == 1 && given[0] == 1;
}

std::string size_mismatch(const std::string& key, const Shape& given, const Shape& wanted) {
  return concat("size mismatch for ", key, ": copying a param with shape ", given,
                " from checkpoint, the shape in current model is ", wanted, ".");
}

// The value as the module will hold it, in memory that nobody else has when the module keeps it.
Tensor prepare(const StateEntry& entry, Tensor value, bool owned) {
  const Shape wanted = shape_of(entry);
  if (is_old_scalar(value.shape(), wanted)) value = value.reshape({});
  Device device;
  std::optional<DType> dtype;
  bool kept = false;
  if (entry.param != nullptr) {
    if (entry.param->mapper().has_load()) {
      value = entry.param->mapper().on_load(value).detach();
      owned = false;
    }
    device = entry.param->lazy_device();
    dtype = entry.param->lazy_dtype();
    kept = !entry.param->is_initialized();
  } else {
    device = entry.buffer->get().device();
    dtype = entry.buffer->get().dtype();
  }
  const bool converts = value.device() != device || value.dtype() != dtype.value_or(value.dtype());
  if (converts) return value.detach().to(device, dtype.value_or(value.dtype()));
  value = value.detach();
  return kept && !owned ? value.clone() : value;
}

void store(const StateEntry& entry, Tensor value) {
  if (entry.buffer != nullptr) {
    (*entry.buffer)->copy_(value);
  } else if (entry.param->is_initialized()) {
    (*entry.param)->copy_(value);
  } else {
    if (entry.param->lazy_is_require_grad()) value.requires_grad_();
    entry.param->replace(std::move(value));
  }
}

std::string quoted_list(const std::vector<std::string>& keys) {
  std::string out;
  for (const std::string& key : keys) out += (out.empty() ? "\"" : ", \"") + key + "\"";
  return out;
}

}  // namespace

namespace detail {

IncompatibleKeys load_state(Module& module, const StateSource& source, bool strict) {
  const std::vector<StateEntry> entries = state_entries(module, "");
  IncompatibleKeys keys;
  std::vector<std::string> errors;
  std::vector<const StateEntry*> matched;
  std::set<std::string, std::less<>> known;
  for (const StateEntry& entry : entries) {
    known.insert(entry.key);
    if (!source.contains(entry.key)) {
      keys.missing_keys.push_back(entry.key);
      continue;
    }
    const Shape given = source.shape(entry.key);
    const Shape wanted = shape_of(entry);
    const bool mapped = entry.param != nullptr && entry.param->mapper().has_load();
    if (!mapped && given != wanted && !is_old_scalar(given, wanted)) {
      errors.push_back(size_mismatch(entry.key, given, wanted));
    } else {
      matched.push_back(&entry);
    }
  }
  for (const std::string& key : source.keys()) {
    if (!known.contains(key)) keys.unexpected_keys.push_back(key);
  }
  if (strict && !keys.unexpected_keys.empty()) {
    errors.insert(errors.begin(),
                  "Unexpected key(s) in state_dict: " + quoted_list(keys.unexpected_keys) + ". ");
  }
  if (strict && !keys.missing_keys.empty()) {
    errors.insert(errors.begin(),
                  "Missing key(s) in state_dict: " + quoted_list(keys.missing_keys) + ". ");
  }

  NoGradGuard no_grad;
  std::vector<Tensor> values;
  if (errors.empty()) {
    values.reserve(matched.size());
    for (const StateEntry* entry : matched) {
      values.push_back(prepare(*entry, source.read(entry->key), source.gives_away()));
      const Shape wanted = shape_of(*entry);
      if (values.back().shape() != wanted) {  // after a load mapper
        errors.push_back(size_mismatch(entry->key, values.back().shape(), wanted));
      }
    }
  }
  if (!errors.empty()) {
    std::string message = "Error(s) in loading state_dict for " + module.type_name() + ":";
    for (const std::string& error : errors) message += "\n\t" + error;
    throw ValueError(message);
  }
  for (size_t i = 0; i < matched.size(); ++i) store(*matched[i], std::move(values[i]));
  return keys;
}

}  // namespace detail

StateDict Module::state_dict(const std::string& prefix) const {
  // In declaration order, as parameters() has it, before buffers and parts mix with them.
  StateDict out;
  for (const StateEntry& entry : detail::state_entries(*this, prefix)) {
    if (entry.param != nullptr) {
      const Tensor value = entry.param->val();
      out.set(entry.key,
              (entry.param->mapper().has_save() ? entry.param->mapper().on_save(value) : value)
                  .detach());
    } else {
      out.set(entry.key, entry.buffer->get().detach());
    }
  }
  return out;
}

IncompatibleKeys Module::load_state_dict(const StateDict& state_dict, bool strict) {
  return detail::load_state(*this, DictSource(state_dict), strict);
}

}  // namespace kiln::nn
