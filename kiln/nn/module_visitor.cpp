#include "kiln/nn/module_visitor.h"

#include <algorithm>

#include "kiln/nn/module_tree.h"
#include "kiln/tensor/autograd/grad_mode.h"

namespace kiln::nn {

using detail::ModuleTree;
using detail::tree_of;

ParamKind param_kind(const Param<Tensor>& param) {
  const DType dtype = param.lazy_dtype().value_or(DType::f32);
  if (dtype == DType::boolean) return ParamKind::boolean;
  return is_integral(dtype) ? ParamKind::integer : ParamKind::floating;
}

namespace {

std::string joined(const std::vector<std::string>& names, std::string_view last) {
  std::string out;
  for (const std::string& name : names) out += name + ".";
  out += last;
  return out;
}

// Walks a tree with `leave` and `enter` around everything below the root.
template <class Walker, class F>
void walk(const ModuleTree& node, Walker& walker, std::vector<std::string>& names, const F& own) {
  own(node);
  for (const ModuleTree& child : node.children) {
    const std::string type = child.module != nullptr ? child.module->type_name() : "Vec";
    walker.enter_module(child.name, type);
    names.push_back(child.name);
    walk(child, walker, names, own);
    names.pop_back();
    walker.exit_module(child.name, type);
  }
}

}  // namespace

void ModuleVisitor::visit_float(std::string_view, const Param<Tensor>&) {}
void ModuleVisitor::visit_int(std::string_view, const Param<Tensor>&) {}
void ModuleVisitor::visit_bool(std::string_view, const Param<Tensor>&) {}
void ModuleVisitor::visit_buffer(std::string_view, const Buffer&) {}
void ModuleVisitor::enter_module(std::string_view, std::string_view) {}
void ModuleVisitor::exit_module(std::string_view, std::string_view) {}
std::string ModuleVisitor::path(std::string_view name) const { return joined(names_, name); }

Param<Tensor> ModuleMapper::map_float(std::string_view, Param<Tensor> param) { return param; }
Param<Tensor> ModuleMapper::map_int(std::string_view, Param<Tensor> param) { return param; }
Param<Tensor> ModuleMapper::map_bool(std::string_view, Param<Tensor> param) { return param; }
void ModuleMapper::enter_module(std::string_view, std::string_view) {}
void ModuleMapper::exit_module(std::string_view, std::string_view) {}
std::string ModuleMapper::path(std::string_view name) const { return joined(names_, name); }

namespace detail {

void show(ModuleVisitor& visitor, std::string_view name, const Param<Tensor>& param) {
  switch (param_kind(param)) {
    case ParamKind::floating:
      return visitor.visit_float(name, param);
    case ParamKind::integer:
      return visitor.visit_int(name, param);
    case ParamKind::boolean:
      return visitor.visit_bool(name, param);
  }
}

Param<Tensor> mapped(ModuleMapper& mapper, std::string_view name, Param<Tensor> param) {
  switch (param_kind(param)) {
    case ParamKind::integer:
      return mapper.map_int(name, std::move(param));
    case ParamKind::boolean:
      return mapper.map_bool(name, std::move(param));
    default:
      return mapper.map_float(name, std::move(param));
  }
}

}  // namespace detail

void Module::visit(ModuleVisitor& visitor) const {
  const auto own = [&visitor](const ModuleTree& node) {
    for (const auto& [name, param] : node.params) {
      if (param->defined()) detail::show(visitor, name, *param);
    }
    for (const auto& [name, buffer] : node.buffers) {
      if (buffer->defined()) visitor.visit_buffer(name, *buffer);
    }
  };
  walk(tree_of(*this), visitor, visitor.names_, own);
}

Module& Module::map(ModuleMapper& mapper) {
  // A parameter of a module that occurs twice is mapped once; those that are tied stay tied.
  std::vector<Param<Tensor>*> done;
  std::vector<std::pair<Tensor, Param<Tensor>*>> before;
  const auto own = [&](const ModuleTree& node) {
    for (const auto& [name, param] : node.params) {
      if (!param->defined() || std::find(done.begin(), done.end(), param) != done.end()) continue;
      done.push_back(param);
      if (param->is_initialized()) {
        const Tensor value = param->val();
        const auto tied = std::find_if(before.begin(), before.end(), [&value](const auto& known) {
          return known.first.is_same(value);
        });
        if (tied != before.end()) {
          param->replace(tied->second->val());
          continue;
        }
        before.emplace_back(value, param);
      }
      *param = detail::mapped(mapper, name, std::move(*param));
    }
  };
  walk(tree_of(*this), mapper, mapper.names_, own);
  return *this;
}

// ---- Devices

std::vector<Device> Module::collect_devices(std::vector<Device> devices) const {
  const auto add = [&devices](Device device) {
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) {
      devices.push_back(device);
    }
  };
  tree_of(*this).for_each("", [&add](const std::string&, const ModuleTree& node) {
    for (const auto& [name, param] : node.params) {
      if (param->defined()) add(param->lazy_device());
    }
    for (const auto& [name, buffer] : node.buffers) {
      if (buffer->defined()) add(buffer->get().device());
    }
  });
  return devices;
}

namespace {

// Each parameter through f, on `device`.
template <class F>
class DeviceMapper final : public ModuleMapper {
 public:
  DeviceMapper(Device device, F f) : device_(device), f_(f) {}
  Param<Tensor> map_float(std::string_view, Param<Tensor> param) override { return move(param); }
  Param<Tensor> map_int(std::string_view, Param<Tensor> param) override { return move(param); }
  Param<Tensor> map_bool(std::string_view, Param<Tensor> param) override { return move(param); }

 private:
  Param<Tensor> move(Param<Tensor>& param) {
    if (!param.set_lazy_device(device_)) param.replace(f_(param.val(), device_));
    return std::move(param);
  }
  Device device_;
  F f_;
};

void move_buffers(Module& module, Device device) {
  tree_of(module).for_each("", [device](const std::string&, const ModuleTree& node) {
    for (const auto& [name, buffer] : node.buffers) {
      if (buffer->defined()) *buffer = buffer->get().detach().to(device);
    }
  });
}

}  // namespace

Module& Module::to_device(Device device) {
  DeviceMapper mapper(device, [](const Tensor& x, Device to) { return x.to(to); });
  map(mapper);
  move_buffers(*this, device);
  return *this;
}

Module& Module::fork(Device device) {
  DeviceMapper mapper(device, [](const Tensor& x, Device to) {
    Tensor out = x.detach().to(to);
    if (x.requires_grad()) out.requires_grad_();
    return out;
  });
  map(mapper);
  move_buffers(*this, device);
  return *this;
}

// ---- Without autodiff, and back

std::unique_ptr<Module> Module::valid_module() const {
  const_cast<Module*>(this)->materialize();  // or the copy's lazy parameters would be others
  detail::ShareOnCopy share;
  std::unique_ptr<Module> copy = clone_module();
  const std::vector<Param<Tensor>*> params = detail::all_params(*copy);
  for (Param<Tensor>* param : params) {  // all, before the first of two that are tied changes
    if (param->defined() && !param->require_grad_before_valid()) {
      param->note_before_valid(param->get().requires_grad());
    }
  }
  for (Param<Tensor>* param : params) {
    if (param->defined()) (**param).requires_grad_(false);
  }
  copy->eval();
  return copy;
}

std::unique_ptr<Module> Module::training_module() const {
  const_cast<Module*>(this)->materialize();
  detail::ShareOnCopy share;
  std::unique_ptr<Module> copy = clone_module();
  for (Param<Tensor>* param : detail::all_params(*copy)) {
    if (!param->defined()) continue;
    if (const auto before = param->require_grad_before_valid()) {
      (**param).requires_grad_(*before);
      param->note_before_valid({});
    }
  }
  copy->train();
  return copy;
}

}  // namespace kiln::nn
