#include "kiln/nn/record.h"

#include <algorithm>
#include <any>
#include <cmath>
#include <limits>

#include "kiln/core/error.h"
#include "kiln/nn/module.h"
#include "kiln/nn/module_tree.h"
#include "kiln/nn/state_source.h"
#include "kiln/tensor/autograd/grad_mode.h"

namespace kiln::nn {

// ---- Entries and values

void Record::add(std::string path, std::optional<ParamId> id, Tensor value) {
  if (!index_.try_emplace(path, entries_.size()).second) {
    throw_error<ValueError>("Record: '", path, "' is there already");
  }
  entries_.push_back({std::move(path), id, std::move(value)});
}

const Record::Entry* Record::find(std::string_view path) const {
  const auto found = index_.find(path);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

void Record::set(std::string_view name, RecordValue value) {
  values_.insert_or_assign(std::string(name), std::move(value));
}
void Record::set_integer(std::string_view name, int64_t value) { set(name, value); }
void Record::set_value(std::string_view name, bool value) { set(name, value); }
void Record::set_value(std::string_view name, double value) { set(name, value); }
void Record::set_value(std::string_view name, std::string_view value) {
  set(name, std::string(value));
}
void Record::set_value(std::string_view name, const char* value) { set(name, std::string(value)); }

const RecordValue& Record::at(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) throw_error<ValueError>("Record: there is no value '", name, "'");
  return found->second;
}

void Record::merge(std::string_view prefix, Record other) {
  const std::string path = concat(prefix, '.');
  for (Entry& entry : other.entries_) add(path + entry.path, entry.id, std::move(entry.value));
  for (auto& [name, value] : other.values_) set(path + name, std::move(value));
}

Record Record::part(std::string_view prefix) const {
  const std::string path = concat(prefix, '.');
  Record out;
  for (const Entry& entry : entries_) {
    if (entry.path.starts_with(path))
      out.add(entry.path.substr(path.size()), entry.id, entry.value);
  }
  for (const auto& [name, value] : values_) {
    if (name.starts_with(path)) out.set(name.substr(path.size()), value);
  }
  return out;
}

namespace detail {

void throw_wrong_value(std::string_view name, const RecordValue& got, const char* expected) {
  struct Describe {
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(int64_t value) const { return std::to_string(value); }
    std::string operator()(double value) const { return concat(value); }
    std::string operator()(const std::string& value) const { return "'" + value + "'"; }
  };
  throw_error<ValueError>("Record: the value '", name, "' has another type; got ",
                          std::visit(Describe(), got), "; expected ", expected);
}

}  // namespace detail

// ---- Items

namespace {

// The first value that is finite in one dtype and infinite in a narrower one, or an integer outside
// the narrower range.
std::optional<double> first_lost(const TensorData& wide, const TensorData& narrow) {
  const std::vector<double> before = wide.to_doubles();
  const std::vector<double> after = narrow.to_doubles();
  for (size_t i = 0; i < before.size(); ++i) {
    const bool lost = is_floating_point(wide.dtype())
                          ? std::isfinite(before[i]) && !std::isfinite(after[i])
                          : before[i] != after[i];
    if (lost) return before[i];
  }
  return std::nullopt;
}

TensorData narrowed(const std::string& path, const TensorData& data,
                    const PrecisionSettings& settings) {
  DType to = data.dtype();
  if (is_floating_point(to)) {
    to = settings.float_type;
  } else if (is_integral(to) && size_of(to) > size_of(settings.int_type)) {
    to = settings.int_type;
  }
  if (to == data.dtype()) return data;
  TensorData out = data.cast(to);
  if (size_of(to) < size_of(data.dtype()) || to == f16) {
    if (const auto lost = first_lost(data, out)) {
      throw_error<ValueError>("into_item: a value of '", path, "' does not fit into ", to, "; got ",
                              *lost, "; expected wider settings than ", settings.name);
    }
  }
  return out;
}

}  // namespace

RecordItem Record::into_item(const PrecisionSettings& settings) const {
  RecordItem item;
  item.settings = settings;
  item.values = values_;
  item.entries.reserve(entries_.size());
  for (const Entry& entry : entries_) {
    item.entries.push_back(
        {entry.path, entry.id, narrowed(entry.path, entry.value.to_data(), settings)});
  }
  return item;
}

Record Record::from_item(const RecordItem& item, const Device& device) {
  Record out;
  out.values_ = item.values;
  for (const RecordItem::Entry& entry : item.entries) {
    out.add(entry.path, entry.id, Tensor(entry.data, device));
  }
  return out;
}

// ---- Modules

namespace {

constexpr std::string_view kExtraState = "_extra_state";

class RecordSource final : public detail::StateSource {
 public:
  RecordSource(const Record& record, bool owned) : record_(record), owned_(owned) {
    for (const auto& [name, value] : record.values()) {
      if (!name.ends_with(kExtraState)) continue;
      objects_[name] = std::visit([](const auto& held) { return std::any(held); }, value);
    }
  }
  std::vector<std::string> keys() const override {
    std::vector<std::string> out;
    for (const Record::Entry& entry : record_.entries()) out.push_back(entry.path);
    return out;
  }
  bool contains(const std::string& key) const override { return record_.find(key) != nullptr; }
  Shape shape(const std::string& key) const override { return record_.find(key)->value.shape(); }
  Tensor read(const std::string& key) const override { return record_.find(key)->value; }
  const std::any* object(const std::string& key) const override {
    const auto found = objects_.find(key);
    return found == objects_.end() ? nullptr : &found->second;
  }
  std::vector<std::string> object_keys() const override {
    std::vector<std::string> out;
    for (const auto& [name, value] : objects_) out.push_back(name);
    return out;
  }
  bool gives_away() const override { return owned_; }

 private:
  const Record& record_;
  std::map<std::string, std::any> objects_;  // extra state that is no tensor
  bool owned_;
};

RecordValue as_value(const std::string& key, const std::any& object) {
  if (const auto* b = std::any_cast<bool>(&object)) return *b;
  if (const auto* i = std::any_cast<int64_t>(&object)) return *i;
  if (const auto* d = std::any_cast<double>(&object)) return *d;
  if (const auto* s = std::any_cast<std::string>(&object)) return *s;
  throw_error<ValueError>("into_record: extra state of a type that records do not hold; got '", key,
                          "' as ", object.has_value() ? object.type().name() : "nothing",
                          "; expected a Tensor, bool, int64_t, double or std::string");
}

// `owned`: the record's tensors belong to nobody else, and the module may keep them.
void load(Module& module, const Record& record, bool owned) {
  detail::load_state(module, RecordSource(record, owned), true);
  for (const detail::StateEntry& entry : detail::state_entries(module, "")) {
    const Record::Entry* saved = record.find(entry.key);
    if (entry.param != nullptr && saved != nullptr && saved->id) entry.param->set_id(*saved->id);
  }
}

}  // namespace

Record Module::into_record() const {
  NoGradGuard no_grad;
  std::map<std::string, ParamId> ids;
  for (const detail::StateEntry& entry : detail::state_entries(*this, "")) {
    if (entry.param != nullptr) ids.emplace(entry.key, entry.param->id());
  }
  const StateDict state = state_dict();
  Record out;
  for (const auto& [key, value] : state) {
    const auto id = ids.find(key);
    out.add(key, id == ids.end() ? std::nullopt : std::optional(id->second), value.detach());
  }
  for (const auto& [key, object] : state.objects()) out.set_value(key, as_value(key, object));
  return out;
}

Module& Module::load_record(const Record& record) {
  load(*this, record, false);
  return *this;
}

void Module::save_file(const std::string& path, const Recorder& recorder) const {
  recorder.record(into_record(), path);
}

Module& Module::load_file(const std::string& path, const Recorder& recorder,
                          std::optional<Device> device) {
  load(*this, recorder.load_record(path), true);
  if (device) to(*device);
  return *this;
}

void Recorder::record(const Record& record, const std::string& path) const {
  this->record(record.into_item(settings()), path);
}
Record Recorder::load_record(const std::string& path, const Device& device) const {
  return Record::from_item(load(path), device);
}

}  // namespace kiln::nn
