#include "kiln/compile/module_compile.h"

#include <utility>

#include "kiln/core/error.h"
#include "kiln/nn/hook_table.h"
#include "kiln/nn/module.h"

namespace kiln::nn {

Module& Module::compile() { return compile(CompileOptions{}); }

Module& Module::compile(const CompileOptions& options) {
  auto calls = std::make_shared<CompiledCalls>(options);  // says what is wrong with the options
  hook_table().replace_forward(std::move(calls));
  return *this;
}

CompiledCalls* Module::compiled() const {
  const auto* const table = detail::HookTable::of(*this);
  return table == nullptr ? nullptr : dynamic_cast<CompiledCalls*>(table->replacement().get());
}

CompiledCalls::CompiledCalls(CompileOptions options) : options_(std::move(options)) {
  Compiled([](const TensorList& xs) { return xs; }, {.max_variants = options_.max_variants});
}

std::shared_ptr<Compiled> CompiledCalls::compiled_for(Module& module,
                                                      const detail::TensorForward& forward) {
  const std::lock_guard lock(mutex_);
  if (module_ != &module) {
    compiled_.clear();
    module_ = &module;
  }
  std::shared_ptr<Compiled>& compiled = compiled_[forward.args];
  if (compiled == nullptr) {
    CompileOptions options = options_;
    options.modules.push_back(&module);
    // A second derivative calls it later. The module empties its table when it goes.
    compiled = std::make_shared<Compiled>(
        [table = Handle<detail::HookTable>::share(detail::HookTable::of(module)),
         call = forward.forward](const TensorList& xs) {
          Module* const owner = table->owner;
          if (owner == nullptr) throw_error<RuntimeError>("compile: the module is gone");
          return call(*owner, xs);
        },
        std::move(options), module.type_name());
  }
  return compiled;
}

HookValue CompiledCalls::call(Module& module, const HookArgs& args,
                              const detail::TensorForward* tensors) {
  if (tensors == nullptr) {
    if (options_.fullgraph) {
      throw_error<TypeError>("compile: ", module.type_name(),
                             " was called with arguments, or gives a result, that are not tensors "
                             "alone; it cannot be one graph");
    }
    const std::lock_guard lock(mutex_);
    ++other_calls_;
    return {};
  }
  TensorList list;
  list.reserve(args.size());
  for (const HookValue& value : args.args) list.push_back(value.tensor());
  if (list.size() != tensors->args) {
    detail::throw_argument_count(module, list.size(), tensors->args);
  }
  return tensors->result((*compiled_for(module, *tensors))(list));
}

std::vector<std::shared_ptr<Compiled>> CompiledCalls::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Compiled>> out;
  for (const auto& [args, compiled] : compiled_) out.push_back(compiled);
  return out;
}

std::string CompiledCalls::explain() const {
  std::string out;
  for (const auto& compiled : all()) out += compiled->explain();
  const std::lock_guard lock(mutex_);
  if (other_calls_ > 0) {
    out += concat(other_calls_, " calls had arguments or results that are not tensors alone\n");
  }
  return out;
}

std::string CompiledCalls::graphs() const {
  std::string out;
  for (const auto& compiled : all()) out += compiled->graphs();
  return out;
}

Compiled::Counts CompiledCalls::counts() const {
  Compiled::Counts sum;
  for (const auto& compiled : all()) sum += compiled->counts();
  const std::lock_guard lock(mutex_);
  sum.eager += other_calls_;
  return sum;
}

void CompiledCalls::reset() const {
  for (const auto& compiled : all()) compiled->reset();
}

}  // namespace kiln::nn
