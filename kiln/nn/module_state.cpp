// State dicts of modules: saving. Loading is in module_load.cpp.
#include "kiln/core/error.h"
#include "kiln/nn/hook_table.h"
#include "kiln/nn/module_tree.h"

namespace kiln::nn {
namespace detail {

// Module by module, own entries before those of the parts, as PyTorch does it: each module's hooks
// run before and after its own subtree.
class StateSaver {
 public:
  StateSaver(StateDict& out, bool keep_vars) : out_(out), keep_vars_(keep_vars) {}

  void save(Module& module, const std::string& prefix) {
    HookTable* const table = HookTable::of(module);
    if (table != nullptr) {
      for_each_hook(table->state_dict_pre.snapshot(),
                    [&](const auto& entry) { entry.hook(module, prefix, keep_vars_); });
    }
    const std::string path = prefix.substr(0, prefix.empty() ? 0 : prefix.size() - 1);
    out_.metadata()[path] = {{"version", module.state_version()}};
    save_parts(parts_of(module), prefix);
    if (table != nullptr) {
      for_each_hook(table->state_dict_post.snapshot(), [&](const auto& entry) {
        entry.hook(module, out_, prefix, out_.metadata()[path]);
      });
    }
  }

 private:
  void save_parts(const ModuleTree& node, const std::string& prefix) {
    for (const auto& [name, param] : node.params) {
      if (param->defined()) out_.set(prefix + name, value_of(*param));
    }
    for (const auto& [name, buffer] : node.buffers) {
      if (!buffer->defined() || !buffer->persistent()) continue;
      out_.set(prefix + name, keep_vars_ ? buffer->get() : buffer->get().detach());
    }
    if (node.module != nullptr && node.module->extra_state().get) {
      save_extra(prefix + "_extra_state", node.module->get_extra_state());
    }
    for (const ModuleTree& child : node.children) {
      if (child.module != nullptr) {
        save(*child.module, prefix + child.name + ".");
      } else {
        save_parts(child, prefix + child.name + ".");
      }
    }
  }

  Tensor value_of(const Param<Tensor>& param) const {
    const Tensor value = param.val();
    if (keep_vars_) return value;
    return (param.mapper().has_save() ? param.mapper().on_save(value) : value).detach();
  }

  void save_extra(const std::string& key, std::any state) {
    if (const Tensor* tensor = std::any_cast<Tensor>(&state)) {
      out_.set(key, *tensor);
    } else {
      out_.set_object(key, std::move(state));
    }
  }

  StateDict& out_;
  bool keep_vars_;
};

}  // namespace detail

StateDict Module::state_dict(const std::string& prefix, bool keep_vars) const {
  StateDict out;
  state_dict(out, prefix, keep_vars);
  return out;
}

StateDict& Module::state_dict(StateDict& destination, const std::string& prefix,
                              bool keep_vars) const {
  // Hooks get the module to change; without them nothing is.
  detail::StateSaver(destination, keep_vars).save(const_cast<Module&>(*this), prefix);
  return destination;
}

std::any Module::get_extra_state() const {
  throw_error<RuntimeError>("get_extra_state: ", type_name(),
                            " has no extra state; a class that has some overrides this function");
}

void Module::set_extra_state(const std::any&) {
  throw_error<RuntimeError>("set_extra_state: ", type_name(),
                            " has no extra state; a class that has some overrides this function");
}

bool Module::may_lack(std::string_view, const StateMetadata&) const { return false; }

}  // namespace kiln::nn
