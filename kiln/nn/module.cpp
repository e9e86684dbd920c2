#include "kiln/nn/module.h"

#include <algorithm>
#include <unordered_set>

#include "kiln/core/error.h"
#include "kiln/nn/hook_table.h"
#include "kiln/nn/module_entries.h"
#include "kiln/nn/module_registry.h"
#include "kiln/nn/module_tree.h"
#include "kiln/tensor/autograd/grad_mode.h"

namespace kiln::nn {

using detail::HookTable;
using detail::ModuleTree;
using detail::tree_of;

Module::Module() = default;

Module::~Module() {
  drop_hooks();
  detail::CopySession::drop(this);
}

Module::Module(const Module& other) : training_(other.training_) {
  if (const HookTable* table = HookTable::of(other)) hook_table().assign(*table);
  detail::CopySession::begin(this, other);
  try {
    if (other.registry_) registry_ = std::make_unique<detail::ModuleRegistry>(*other.registry_);
  } catch (...) {
    detail::CopySession::drop(this);
    throw;
  }
}

Module::Module(Module&& other) noexcept
    : hooks_(other.hooks_.exchange(nullptr)),
      registry_(std::move(other.registry_)),
      training_(other.training_) {
  if (HookTable* table = HookTable::of(*this)) table->owner = this;
}

Module& Module::operator=(const Module& other) {
  if (this == &other) return *this;
  auto parts =
      other.registry_ ? std::make_unique<detail::ModuleRegistry>(*other.registry_) : nullptr;
  if (const HookTable* table = HookTable::of(other)) {
    hook_table().assign(*table);
  } else if (HookTable* own = HookTable::of(*this)) {
    own->clear();
  }
  registry_ = std::move(parts);
  training_ = other.training_;
  checked_as_ = nullptr;
  detail::CopySession::begin(this, other);
  return *this;
}

Module& Module::operator=(Module&& other) noexcept {
  if (this == &other) return *this;
  drop_hooks();
  hooks_ = other.hooks_.exchange(nullptr);
  if (HookTable* table = HookTable::of(*this)) table->owner = this;
  registry_ = std::move(other.registry_);
  training_ = other.training_;
  checked_as_ = nullptr;
  return *this;
}

void Module::drop_hooks() noexcept {
  auto* const table = static_cast<HookTable*>(hooks_.exchange(nullptr));
  if (table == nullptr) return;
  table->owner = nullptr;
  table->clear();
  table->release();
}

void Module::visit_members(MemberVisitor&) {}

void Module::visit_parts(MemberVisitor& visitor) {
  if (checked_as_.load(std::memory_order_acquire) != &module_class()) check_parts();
  visit_members(visitor);
  if (registry_) registry_->visit(visitor);
}

std::unique_ptr<Module> Module::clone() const { return clone_module(); }

Tensor Module::call_with_tensor(Tensor x) { return module_class().call(*this, std::move(x)); }

namespace detail {

void throw_no_tensor_call(const Module& module) {
  throw_error<NotImplementedError>("Module: the forward of ", module.type_name(),
                                   " does not take one tensor and return one");
}

void throw_null_module(const std::string& name) {
  throw_error<TypeError>("register_module: the pointer for '", name,
                         "' is null; try add_module, which registers the name without a module");
}

}  // namespace detail

// ---- Parameters and buffers

namespace {

using NamedTensorList = std::vector<std::pair<std::string, Tensor>>;

// Lists tensors by name, each once unless told otherwise.
class TensorLister {
 public:
  explicit TensorLister(bool remove_duplicate) : remove_duplicate_(remove_duplicate) {}
  void add(std::string name, const Tensor& value) {
    if (remove_duplicate_ && !known_.insert(value.impl().address()).second) return;
    list.emplace_back(std::move(name), value);
  }
  NamedTensorList list;

 private:
  bool remove_duplicate_;
  std::unordered_set<const void*> known_;
};

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
  TensorLister out(remove_duplicate);
  tree_of(*this, recurse).for_each(as_path(prefix), [&](const auto& path, const ModuleTree& node) {
    for (const auto& [name, param] : node.params) {
      if (param->defined()) out.add(path + name, param->get());
    }
  });
  return std::move(out.list);
}

std::vector<std::pair<std::string, Tensor>> Module::named_buffers(const std::string& prefix,
                                                                  bool recurse,
                                                                  bool remove_duplicate) const {
  TensorLister out(remove_duplicate);
  tree_of(*this, recurse).for_each(as_path(prefix), [&](const auto& path, const ModuleTree& node) {
    for (const auto& [name, buffer] : node.buffers) {
      if (buffer->defined()) out.add(path + name, buffer->get());
    }
  });
  return std::move(out.list);
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

// Modules below `node` that `memo` does not have yet; what is below one that it has is passed over.
void list_modules(const ModuleTree& node, const std::string& path, bool remove_duplicate,
                  std::set<const Module*>& memo,
                  std::vector<std::pair<std::string, Module*>>& out) {
  if (node.module != nullptr) {
    if (remove_duplicate) {
      if (!memo.insert(node.module).second) return;
    } else if (memo.contains(node.module)) {
      return;
    }
    out.emplace_back(path, node.module);
  }
  for (const ModuleTree& child : node.children) {
    list_modules(child, path.empty() ? child.name : concat(path, ".", child.name), remove_duplicate,
                 memo, out);
  }
}

// Containers are no modules: their elements stand in their place.
void append_children(const ModuleTree& node, const std::string& path,
                     std::vector<std::pair<std::string, Module*>>& out) {
  for (const ModuleTree& child : node.children) {
    if (child.module != nullptr) {
      const bool known = std::any_of(out.begin(), out.end(), [&child](const auto& other) {
        return other.second == child.module;
      });
      if (!known) out.emplace_back(path + child.name, child.module);
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
  std::set<const Module*> memo;
  return named_modules(memo, prefix, remove_duplicate);
}

std::vector<std::pair<std::string, Module*>> Module::named_modules(std::set<const Module*>& memo,
                                                                   const std::string& prefix,
                                                                   bool remove_duplicate) {
  std::vector<std::pair<std::string, Module*>> out;
  list_modules(tree_of(*this), prefix, remove_duplicate, memo, out);
  return out;
}

std::vector<Module*> Module::modules() { return without_names(named_modules()); }

namespace {

std::vector<std::pair<std::string, const Module*>> read_only(
    const std::vector<std::pair<std::string, Module*>>& modules) {
  return {modules.begin(), modules.end()};
}
std::vector<const Module*> read_only(const std::vector<Module*>& modules) {
  return {modules.begin(), modules.end()};
}

}  // namespace

std::vector<const Module*> Module::children() const {
  return read_only(const_cast<Module*>(this)->children());
}
std::vector<std::pair<std::string, const Module*>> Module::named_children() const {
  return read_only(const_cast<Module*>(this)->named_children());
}
std::vector<const Module*> Module::modules() const {
  return read_only(const_cast<Module*>(this)->modules());
}
std::vector<std::pair<std::string, const Module*>> Module::named_modules(
    const std::string& prefix, bool remove_duplicate) const {
  return read_only(const_cast<Module*>(this)->named_modules(prefix, remove_duplicate));
}

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
    throw_error<KeyError>("register_", kind, ": ", why, "; got '", name, "' in ", type_name());
  };
  if (name.empty()) fail("a name must not be empty");
  if (name.find('.') != std::string::npos) fail("a name must not contain '.'");
  NameFinder member(name);
  visit_members(member);
  if (member.kind != nullptr) fail("a member has that name");
  if (registry_ == nullptr) registry_ = std::make_unique<detail::ModuleRegistry>();
  NameFinder registered(name);
  registry_->visit(registered);
  if (registered.kind == nullptr && registry_->has_module(name)) registered.kind = "module";
  if (registered.kind != nullptr && std::string_view(registered.kind) != kind) {
    fail("a part of another kind has that name");
  }
  return *registry_;
}

void Module::add_module(const std::string& name, std::shared_ptr<Module> module) {
  registry(name, "module")
      .set_module(name, detail::checked_part("add_module", *this, std::move(module)));
}

Registered<Param<Tensor>> Module::register_parameter(const std::string& name, Param<Tensor> param) {
  return Registered(registry(name, "parameter").set_param(name, std::move(param)));
}

Registered<Param<Tensor>> Module::register_parameter(const std::string& name, const Tensor& value) {
  if (value.defined() && !value.is_leaf()) {
    throw_error<ValueError>("register_parameter: '", name, "' is the result of recorded ops (",
                            value.grad_fn(), "); a parameter must be a leaf, try detach()");
  }
  return register_parameter(name,
                            value.defined() ? Param<Tensor>::from_tensor(value) : Param<Tensor>());
}

Registered<Buffer> Module::register_buffer(const std::string& name, Tensor value, bool persistent) {
  return Registered(
      registry(name, "buffer").set_buffer(name, Buffer(std::move(value), persistent)));
}

}  // namespace kiln::nn
