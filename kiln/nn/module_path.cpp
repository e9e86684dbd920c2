// Parts of a module by path, and putting others in their place.
#include "kiln/nn/module_path.h"

#include "kiln/core/error.h"
#include "kiln/nn/module_registry.h"

namespace kiln::nn {
namespace detail {
namespace {

// Finds a direct part by name. What stands in a container has the path "layers.0".
class PartFinder final : public MemberVisitor {
 public:
  explicit PartFinder(std::string_view name) : name_(name) {}

  void parameter(std::string_view name, Param<Tensor>& value) override {
    if (name == name_) part.param = &value;
  }
  void buffer(std::string_view name, Buffer& value) override {
    if (name == name_) part.buffer = &value;
  }
  void module(std::string_view name, Module& value) override {
    if (name == name_) part.module = &value;
  }
  void group(std::string_view name, MemberGroup& elements) override {
    if (name == name_) part.group = true;
    if (!name_.starts_with(name) || name_.size() <= name.size() || name_[name.size()] != '.')
      return;
    PartFinder inner(name_.substr(name.size() + 1));
    elements.visit_members(inner);
    part = inner.part;
  }

  Part part;

 private:
  std::string_view name_;
};

}  // namespace

Part find_part(Module& module, std::string_view name) {
  PartFinder finder(name);
  module.visit_parts(finder);
  return finder.part;
}

namespace {

// Where the first name that stands for a module ends: a module's own name has no dot, an element of
// a container has as many as containers are nested.
Module* next_module(Module& from, std::string_view& path) {
  for (size_t end = path.find('.');; end = path.find('.', end + 1)) {
    const std::string_view name = path.substr(0, end);
    const Part part = find_part(from, name);
    if (part.module != nullptr) {
      path = end == std::string_view::npos ? std::string_view() : path.substr(end + 1);
      return part.module;
    }
    if (!part.group || end == std::string_view::npos) {
      if (part.exists()) {
        throw_error<AttributeError>("`", name, "` is not an nn.Module; it is a part of ",
                                    from.type_name());
      }
      throw_error<AttributeError>(from.type_name(), " has no attribute `", name, "`");
    }
  }
}

// "a.b.weight" -> the module at a.b, and "weight". The name keeps the containers that it is in.
std::pair<Module*, std::string_view> owner_of(Module& root, std::string_view target) {
  Module* at = &root;
  while (true) {
    if (find_part(*at, target).exists() || target.find('.') == std::string_view::npos) {
      return {at, target};
    }
    at = next_module(*at, target);
  }
}

}  // namespace

// Puts a module in the place of one that is there.
class SubmoduleSetter final : public MemberVisitor {
 public:
  SubmoduleSetter(std::string_view name, std::shared_ptr<Module> module)
      : name_(name), module_(std::move(module)) {}

  void parameter(std::string_view, Param<Tensor>&) override {}
  void buffer(std::string_view, Buffer&) override {}
  void module(std::string_view name, Module& value) override {
    if (name != name_ || value.assign_module(*module_)) return;
    throw_error<TypeError>("set_submodule: '", name_, "' holds a ", value.type_name(),
                           " by value; got a ", module_->type_name(),
                           "; expected a module of the same class that can be copied");
  }
  void shared_module(std::string_view name, SharedModule& value) override {
    if (name == name_) value.set(module_);
  }
  void group(std::string_view name, MemberGroup& elements) override {
    if (!name_.starts_with(name) || name_.size() <= name.size() || name_[name.size()] != '.')
      return;
    SubmoduleSetter inner(name_.substr(name.size() + 1), module_);
    elements.visit_members(inner);
  }

 private:
  std::string_view name_;
  std::shared_ptr<Module> module_;
};

}  // namespace detail

Module& Module::get_submodule(std::string_view target) {
  Module* at = this;
  while (!target.empty()) at = detail::next_module(*at, target);
  return *at;
}

Param<Tensor>& Module::get_parameter(std::string_view target) {
  const auto [owner, name] = detail::owner_of(*this, target);
  const detail::Part part = detail::find_part(*owner, name);
  if (!part.exists()) {
    throw_error<AttributeError>(owner->type_name(), " has no attribute `", name, "`");
  }
  if (part.param == nullptr || !part.param->defined()) {
    throw_error<AttributeError>("`", name, "` is not an nn.Parameter");
  }
  return *part.param;
}

Buffer& Module::get_buffer(std::string_view target) {
  const auto [owner, name] = detail::owner_of(*this, target);
  const detail::Part part = detail::find_part(*owner, name);
  if (!part.exists()) {
    throw_error<AttributeError>(owner->type_name(), " has no attribute `", name, "`");
  }
  if (part.buffer == nullptr) throw_error<AttributeError>("`", name, "` is not a buffer");
  return *part.buffer;
}

void Module::set_submodule(std::string_view target, std::shared_ptr<Module> module, bool strict) {
  if (target.empty()) {
    throw_error<ValueError>("set_submodule: cannot set the submodule without a target name");
  }
  if (module == nullptr) {
    throw_error<ValueError>("set_submodule: expected a module for '", target, "'; got null");
  }
  const auto [owner, name] = detail::owner_of(*this, target);
  const detail::Part part = detail::find_part(*owner, name);
  if (part.exists() && part.module == nullptr) {
    throw_error<AttributeError>("`", name, "` is not an nn.Module");
  }
  if (part.module == nullptr) {
    if (strict) throw_error<AttributeError>(owner->type_name(), " has no attribute `", name, "`");
    owner->add_module(std::string(name), std::move(module));
    return;
  }
  if (owner->registry_ && owner->registry_->has_module(name)) {
    owner->registry_->set_module(std::string(name), std::move(module));
    return;
  }
  detail::SubmoduleSetter setter(name, std::move(module));
  owner->visit_parts(setter);
}

}  // namespace kiln::nn
