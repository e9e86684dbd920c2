#include "kiln/nn/transfer.h"

#include <map>
#include <set>

#include "kiln/core/error.h"
#include "kiln/nn/module.h"
#include "kiln/nn/module_tree.h"
#include "kiln/nn/state_source.h"
#include "kiln/tensor/autograd/grad_mode.h"

namespace kiln::nn {
namespace {

using detail::ModuleTree;
using detail::StateSource;

// An entry of a module's state, with what names it.
struct Place {
  StateName name;
  Param<Tensor>* param = nullptr;
  Buffer* buffer = nullptr;

  ParamId id() const { return param != nullptr ? param->id() : ParamId(0); }
  Shape shape() const { return param != nullptr ? param->lazy_shape() : buffer->get().shape(); }
};

// Containers are no modules: what stands in them belongs to the module around.
void find_places(const ModuleTree& node, const StateName& at, std::vector<Place>& out) {
  const auto named = [&at](const std::string& name) {
    StateName full = at;
    full.name = at.name + name;
    return full;
  };
  for (const auto& [name, param] : node.params) {
    if (param->defined()) out.push_back({named(name), param, nullptr});
  }
  for (const auto& [name, buffer] : node.buffers) {
    if (buffer->defined() && buffer->persistent()) out.push_back({named(name), nullptr, buffer});
  }
  for (const ModuleTree& child : node.children) {
    StateName below;
    if (child.module != nullptr) {
      StateName module = named(child.name);
      below = {module.full(), "", child.module->type_name()};
    } else {
      below = named(child.name + ".");
    }
    find_places(child, below, out);
  }
}

std::vector<Place> places_of(const Module& module) {
  std::vector<Place> out;
  find_places(detail::tree_of(module), {"", "", module.type_name()}, out);
  return out;
}

const StateAdapter& adapter_of(const TransferOptions& options) {
  static const StateAdapter identity;
  return options.adapter ? *options.adapter : identity;
}

class DictSource final : public StateSource {
 public:
  explicit DictSource(const StateDict& dict) : dict_(dict) {}
  std::vector<std::string> keys() const override { return dict_.keys(); }
  bool contains(const std::string& key) const override { return dict_.contains(key); }
  Shape shape(const std::string& key) const override { return read(key).shape(); }
  Tensor read(const std::string& key) const override { return dict_.at(key); }
  bool gives_away() const override { return false; }

 private:
  const StateDict& dict_;
};

// What is applied of another source, by the module's paths and in its layout.
class MatchedSource final : public StateSource {
 public:
  struct Match {
    StateName name;
    std::string key;  // in the source
  };
  MatchedSource(const StateSource& source, const StateAdapter& adapter)
      : source_(source), adapter_(adapter) {}
  void add(const StateName& name, std::string key) {
    matches_.emplace(name.full(), Match{name, std::move(key)});
  }
  bool empty() const { return matches_.empty(); }

  std::vector<std::string> keys() const override {
    std::vector<std::string> out;
    for (const auto& [path, match] : matches_) out.push_back(path);
    return out;
  }
  bool contains(const std::string& path) const override { return matches_.contains(path); }
  Shape shape(const std::string& path) const override {
    const Match& match = matches_.at(path);
    return adapter_.shape_in_module(match.name, source_.shape(match.key));
  }
  Tensor read(const std::string& path) const override {
    const Match& match = matches_.at(path);
    return adapter_.to_module(match.name, source_.read(match.key));
  }
  bool gives_away() const override { return source_.gives_away(); }

 private:
  const StateSource& source_;
  const StateAdapter& adapter_;
  std::map<std::string, Match> matches_;
};

[[noreturn]] void refuse(const Module& module, const char* why, const ApplyResult& result) {
  throw_error<ValueError>("apply: ", why, " for ", module.type_name(), "\n", to_string(result));
}

void append_line(std::string& out, const char* what, const std::vector<std::string>& names) {
  out += concat(what, ": ", names.size());
  constexpr size_t kShown = 8;
  for (size_t i = 0; i < names.size() && i < kShown; ++i) out += (i == 0 ? " (" : ", ") + names[i];
  if (names.size() > kShown) out += ", ...";
  out += names.empty() ? "\n" : ")\n";
}

}  // namespace

std::string to_string(const ApplyResult& result) {
  std::string out;
  append_line(out, "applied", result.applied);
  append_line(out, "skipped", result.skipped);
  append_line(out, "missing", result.missing);
  append_line(out, "unused", result.unused);
  out += concat("errors: ", result.errors.size());
  for (const auto& [path, what] : result.errors) out += concat("\n  ", path, ": ", what);
  return out;
}

StateDict collect(const Module& module, const TransferOptions& options) {
  NoGradGuard no_grad;
  const StateAdapter& adapter = adapter_of(options);
  StateDict out;
  for (const Place& place : places_of(module)) {
    if (!options.filter.matches(place.name.full(), place.id())) continue;
    const std::string name = options.remap(adapter.foreign_name(place.name));
    if (out.contains(name)) {
      throw_error<ValueError>("collect: two tensors get one name; got '", name, "' for ",
                              place.name.full(), " too; expected distinct names");
    }
    const Tensor value =
        place.param != nullptr ? place.param->transform_for_save().get() : place.buffer->get();
    out.set(name, adapter.from_module(place.name, value.detach()).detach());
  }
  return out;
}

ApplyResult apply(Module& module, const StateDict& state, const TransferOptions& options) {
  return detail::apply_source(module, DictSource(state), options);
}

ApplyResult detail::apply_source(Module& module, const StateSource& source,
                                 const TransferOptions& options) {
  std::map<std::string, std::string> by_name;  // remapped, as the source has it
  for (const std::string& key : source.keys()) {
    const std::string name = options.remap(key);
    const auto [known, fresh] = by_name.emplace(name, key);
    if (!fresh) {
      throw_error<ValueError>("apply: the remapping gives two tensors one name; got '", name,
                              "' for '", known->second, "' and '", key, "'");
    }
  }
  const StateAdapter& adapter = adapter_of(options);
  MatchedSource matched(source, adapter);
  ApplyResult result;
  std::set<std::string> used;
  for (const Place& place : places_of(module)) {
    const std::string path = place.name.full();
    const auto found = by_name.find(adapter.foreign_name(place.name));
    if (!options.filter.matches(path, place.id())) {
      result.skipped.push_back(path);
      if (found != by_name.end()) used.insert(found->first);
      continue;
    }
    if (found == by_name.end()) {
      result.missing.push_back(path);
      continue;
    }
    used.insert(found->first);
    const Shape given = adapter.shape_in_module(place.name, source.shape(found->second));
    const bool mapped = place.param != nullptr && place.param->mapper().has_load();
    if (!mapped && given != place.shape()) {
      result.errors.emplace_back(
          path, concat("another shape; got ", given, "; expected ", place.shape()));
      continue;
    }
    matched.add(place.name, found->second);
    result.applied.push_back(path);
  }
  for (const auto& [name, key] : by_name) {
    if (!used.contains(name)) result.unused.push_back(name);
  }
  if (!options.allow_partial && !result.is_complete()) {
    refuse(module, "something is missing or does not fit", result);
  }
  if (!options.allow_unused && !result.unused.empty())
    refuse(module, "something is unused", result);
  if (result.applied.empty() && !(result.missing.empty() && result.errors.empty())) {
    refuse(module, "nothing fits", result);
  }
  load_state(module, matched, false);
  return result;
}

}  // namespace kiln::nn
