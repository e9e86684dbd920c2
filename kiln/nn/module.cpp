#include "kiln/nn/module.h"

#include <algorithm>

#include "kiln/core/error.h"
#include "kiln/nn/module_registry.h"
#include "kiln/nn/module_tree.h"
#include "kiln/tensor/grad_mode.h"

namespace kiln::nn {

using detail::ModuleTree;
using detail::tree_of;

Module::Module() = default;
Module::~Module() = default;
Module::Module(Module&& other) noexcept = default;
Module& Module::operator=(Module&& other) noexcept = default;

Module::Module(const Module& other) : hooks_(other.hooks_), training_(other.training_) {
  if (other.registry_) registry_ = std::make_unique<detail::ModuleRegistry>(*other.registry_);
}

Module& Module::operator=(const Module& other) {
  if (this == &other) return *this;
  hooks_ = other.hooks_;
  training_ = other.training_;
  registry_ =
      other.registry_ ? std::make_unique<detail::ModuleRegistry>(*other.registry_) : nullptr;
  return *this;
}

void Module::visit_members(MemberVisitor&) {}

void Module::visit_parts(MemberVisitor& visitor) {
  visit_members(visitor);
  if (registry_) registry_->visit(visitor);
}

std::unique_ptr<Module> Module::clone() const { return clone_module(); }

// ---- Parameters and buffers

namespace {

using NamedTensorList = std::vector<std::pair<std::string, Tensor>>;

void append(NamedTensorList& out, std::string name, const Tensor& value, bool remove_duplicate) {
  if (remove_duplicate && std::any_of(out.begin(), out.end(), [&value](const auto& known) {
        return known.second.is_same(value);
      })) {
    return;
  }
  out.emplace_back(std::move(name), value);
}

std::vector<Tensor> without_names(NamedTensorList named) {
  std::vector<Tensor> out;
  out.reserve(named.size());
  for (auto& [name, value] : named) out.push_back(std::move(value));
  return out;
}

std::string as_path(const std::string& prefix) { return prefix.empty() ? "" : prefix + "."; }

}  // namespace

std::vector<std::pair<std::string, Tensor>> Module::named_parameters(const std::string& prefix,
                                                                     bool recurse,
                                                                     bool remove_duplicate) const {
  NamedTensorList out;
  tree_of(*this, recurse).for_each(as_path(prefix), [&](const auto& path, const ModuleTree& node) {
    for (const auto& [name, param] : node.params) {
      if (param->defined()) append(out, path + name, param->get(), remove_duplicate);
    }
  });
  return out;
}

std::vector<std::pair<std::string, Tensor>> Module::named_buffers(const std::string& prefix,
                                                                  bool recurse,
                                                                  bool remove_duplicate) const {
  NamedTensorList out;
  tree_of(*this, recurse).for_each(as_path(prefix), [&](const auto& path, const ModuleTree& node) {
    for (const auto& [name, buffer] : node.buffers) {
      if (buffer->defined()) append(out, path + name, buffer->get(), remove_duplicate);
    }
  });
  return out;
}

std::vector<Tensor> Module::parameters(bool recurse) const {
  return without_names(named_parameters("", recurse));
}

std::vector<Tensor> Module::buffers(bool recurse) const {
  return without_names(named_buffers("", recurse));
}

void Module::for_each_parameter(const std::function<void(const std::string&, Param<Tensor>&)>& f) {
  tree_of(*this).for_each("", [&f](const std::string& path, const ModuleTree& node) {
    for (const auto& [name, param] : node.params) {
      if (param->defined()) f(path + name, *param);
    }
  });
}

Module& Module::materialize() {
  for (Param<Tensor>* param : detail::all_params(*this)) param->get();
  return *this;
}

int64_t Module::num_params() const {
  std::vector<Param<Tensor>*> counted;
  int64_t n = 0;
  for (Param<Tensor>* param : detail::all_params(*this)) {
    const auto same = [param](Param<Tensor>* other) {
      return other == param || (other->is_initialized() && param->is_initialized() &&
                                other->get().is_same(param->get()));
    };
    if (!param->defined() || std::any_of(counted.begin(), counted.end(), same)) continue;
    counted.push_back(param);
    n += param->lazy_shape().numel();
  }
  return n;
}

// ---- Modules

namespace {

void append(std::vector<std::pair<std::string, Module*>>& out, std::string name, Module* module,
            bool remove_duplicate) {
  if (remove_duplicate && std::any_of(out.begin(), out.end(), [module](const auto& known) {
        return known.second == module;
      })) {
    return;
  }
  out.emplace_back(std::move(name), module);
}

// Containers are no modules: their elements stand in their place.
void append_children(const ModuleTree& node, const std::string& path,
                     std::vector<std::pair<std::string, Module*>>& out) {
  for (const ModuleTree& child : node.children) {
    if (child.module != nullptr) {
      append(out, path + child.name, child.module, true);
    } else {
      append_children(child, path + child.name + ".", out);
    }
  }
}

std::vector<Module*> without_names(const std::vector<std::pair<std::string, Module*>>& named) {
  std::vector<Module*> out;
  for (const auto& [name, module] : named) out.push_back(module);
  return out;
}

void apply_below(const ModuleTree& node, const std::function<void(Module&)>& fn) {
  for (const ModuleTree& child : node.children) apply_below(child, fn);
  if (node.module != nullptr) fn(*node.module);
}

}  // namespace

std::vector<std::pair<std::string, Module*>> Module::named_children() {
  std::vector<std::pair<std::string, Module*>> out;
  append_children(tree_of(*this), "", out);
  return out;
}

std::vector<Module*> Module::children() { return without_names(named_children()); }

std::vector<std::pair<std::string, Module*>> Module::named_modules(const std::string& prefix,
                                                                   bool remove_duplicate) {
  std::vector<std::pair<std::string, Module*>> out;
  tree_of(*this).for_each(as_path(prefix), [&](const std::string& path, const ModuleTree& node) {
    if (node.module == nullptr) return;
    append(out, path.substr(0, path.empty() ? 0 : path.size() - 1), node.module, remove_duplicate);
  });
  return out;
}

std::vector<Module*> Module::modules() { return without_names(named_modules()); }

Module& Module::apply(const std::function<void(Module&)>& fn) {
  apply_below(tree_of(*this), fn);
  return *this;
}

// ---- State of training

Module& Module::train(bool mode) {
  for (Module* module : modules()) module->training_ = mode;
  return *this;
}

Module& Module::requires_grad_(bool requires_grad) {
  for_each_parameter([requires_grad](const std::string&, Param<Tensor>& param) {
    param.set_require_grad(requires_grad);
  });
  return *this;
}

void Module::zero_grad(bool set_to_none) {
  for_each_parameter([set_to_none](const std::string&, Param<Tensor>& param) {
    if (param.is_initialized()) param->zero_grad(set_to_none);
  });
}

// ---- Parts registered at run time

namespace {

// Whether a part of that name exists, and of which kind.
class NameFinder final : public MemberVisitor {
 public:
  explicit NameFinder(std::string_view name) : name_(name) {}
  void parameter(std::string_view name, Param<Tensor>&) override { found(name, "parameter"); }
  void buffer(std::string_view name, Buffer&) override { found(name, "buffer"); }
  void module(std::string_view name, Module&) override { found(name, "module"); }
  void group(std::string_view name, MemberGroup&) override { found(name, "container"); }

  const char* kind = nullptr;

 private:
  void found(std::string_view name, const char* what) {
    if (name == name_) kind = what;
  }
  std::string_view name_;
};

}  // namespace

detail::ModuleRegistry& Module::registry(const std::string& name, const char* kind) {
  const auto fail = [&](const char* why) {
    throw_error<ValueError>("register_", kind, ": ", why, "; got '", name, "' in ", type_name());
  };
  if (name.empty()) fail("a name must not be empty");
  if (name.find('.') != std::string::npos) fail("a name must not contain '.'");
  NameFinder member(name);
  visit_members(member);
  if (member.kind != nullptr) fail("a member has that name");
  if (registry_ == nullptr) registry_ = std::make_unique<detail::ModuleRegistry>();
  NameFinder registered(name);
  registry_->visit(registered);
  if (registered.kind != nullptr && std::string_view(registered.kind) != kind) {
    fail("a part of another kind has that name");
  }
  return *registry_;
}

void Module::add_module(const std::string& name, std::shared_ptr<Module> module) {
  if (module == nullptr) throw_error<ValueError>("register_module: no module for '", name, "'");
  registry(name, "module").set_module(name, std::move(module));
}

Param<Tensor>& Module::register_parameter(const std::string& name, Param<Tensor> param) {
  return registry(name, "parameter").set_param(name, std::move(param));
}

Param<Tensor>& Module::register_parameter(const std::string& name, const Tensor& value) {
  if (value.defined() && !value.is_leaf()) {
    throw_error<ValueError>("register_parameter: '", name, "' is the result of recorded ops (",
                            value.grad_fn(), "); a parameter must be a leaf, try detach()");
  }
  return register_parameter(name,
                            value.defined() ? Param<Tensor>::from_tensor(value) : Param<Tensor>());
}

Buffer& Module::register_buffer(const std::string& name, Tensor value, bool persistent) {
  return registry(name, "buffer").set_buffer(name, Buffer(std::move(value), persistent));
}

// ---- Hooks

namespace {

// The hooks with one more; a call in progress goes on with those that it began with.
template <class F>
HookHandle add_hook(std::shared_ptr<const detail::ModuleHooks>& hooks,
                    std::vector<detail::ModuleHooks::Entry<F>> detail::ModuleHooks::*list, F hook) {
  auto changed = hooks ? std::make_shared<detail::ModuleHooks>(*hooks)
                       : std::make_shared<detail::ModuleHooks>();
  auto alive = std::make_shared<bool>(true);
  ((*changed).*list).push_back({alive, std::move(hook)});
  hooks = std::move(changed);
  return HookHandle(std::move(alive));
}

}  // namespace

HookHandle Module::register_forward_pre_hook(ForwardPreHook hook) {
  return add_hook(hooks_, &detail::ModuleHooks::forward_pre, std::move(hook));
}

HookHandle Module::register_forward_hook(ForwardHook hook) {
  return add_hook(hooks_, &detail::ModuleHooks::forward, std::move(hook));
}

}  // namespace kiln::nn
