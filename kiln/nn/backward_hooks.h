// What full backward hooks do to one call of a module. Internal to kiln/nn.
//
// Note [Full backward hooks]
// The tensors that go in pass through one identity node, and those that come out through another.
// A backward pass meets the second node first: the gradients there are grad_output, which pre-hooks
// may replace. When it meets the first node, its gradients are grad_input, and the hooks run. When
// no argument requires a gradient there is no first node, and the hooks run at the second.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "kiln/nn/hook_table.h"
#include "kiln/tensor/autograd/graph_hooks.h"

namespace kiln::nn::detail {

// What keeps a module alive while a graph may still call its hooks: null for a module that C++
// owns, whose hooks end with it. A language whose modules are counted sets it once.
using ModuleKeeper = std::shared_ptr<void> (*)(Module&);
void set_module_keeper(ModuleKeeper keeper);

struct BackwardHooks {
  std::vector<BackwardPreHook> pre;
  std::vector<BackwardHook> full;
  std::vector<BackwardHook> deprecated;
};

class BackwardCall {
 public:
  // Puts views in the place of the tensor arguments.
  static std::shared_ptr<BackwardCall> begin(Module& module, BackwardHooks hooks, HookArgs& args);
  // And of the tensors of the output.
  static void end(const std::shared_ptr<BackwardCall>& call, HookValue& output);

 private:
  void see_outputs(Gradient& grads);
  void see_inputs(Gradient& grads);
  // The hooks of a module that is gone are not run.
  Module* module() const { return table_->owner.load(std::memory_order_acquire); }

  Handle<HookTable> table_;
  std::shared_ptr<void> kept_;  // see ModuleKeeper
  BackwardHooks hooks_;
  struct Like {
    Shape shape;
    DType dtype;
    Device device;
  };
  std::vector<std::optional<Like>> like_;  // for each argument that is a floating point tensor
  bool has_inputs_ = false;                // whether some argument requires a gradient

  // Between the two nodes of a pass: grad_output, by thread, as several may differentiate at once.
  std::mutex mutex_;
  std::map<std::thread::id, Gradient> grad_outputs_;
};

// The deprecated kind: hooks on the op that made the (first) result.
void register_deprecated(Module& module, const std::vector<BackwardHook>& hooks,
                         const HookValue& output);

}  // namespace kiln::nn::detail
