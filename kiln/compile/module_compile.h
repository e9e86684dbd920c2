// CompiledCalls: what Module::compile captured.
//
//   net.compile();
//   Tensor y = net(x);  // captured; later calls are replayed
//   std::puts(net.compiled()->explain().c_str());
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kiln/compile/compile.h"
#include "kiln/nn/module_hooks.h"

namespace kiln::nn {

// Belongs to one module, and ends with it. Any number of threads may call the module.
class CompiledCalls final : public detail::ForwardReplacement {
 public:
  explicit CompiledCalls(CompileOptions options);

  // As of kiln::Compiled, over the calls with any number of arguments.
  std::string explain() const;
  std::string graphs() const;
  Compiled::Counts counts() const;
  // Forgets what was captured.
  void reset() const;

  HookValue call(Module& module, const HookArgs& args,
                 const detail::TensorForward* tensors) override;

 private:
  std::shared_ptr<Compiled> compiled_for(Module& module, const detail::TensorForward& forward);
  std::vector<std::shared_ptr<Compiled>> all() const;

  CompileOptions options_;
  mutable std::mutex mutex_;
  Module* module_ = nullptr;  // that it was captured from: a module may be moved
  // By the number of arguments: as lists, all calls with so many go to one forward.
  std::map<size_t, std::shared_ptr<Compiled>> compiled_;
  int64_t other_calls_ = 0;  // with arguments or results that are not tensors alone
};

}  // namespace kiln::nn
