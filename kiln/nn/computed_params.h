// Every Param of a module's tree by path, computed ones as themselves: what attaches
// parametrizations. For lora.cpp and quantized.cpp.
#pragma once

#include <functional>
#include <string>

#include "kiln/nn/module.h"

namespace kiln::nn::detail {

// f("fc1.weight", the parameter, the module that owns it). A module that is met twice is shown
// once. Parts of parametrizations are not shown. f may change what a parameter is computed by.
void for_each_param(Module& module,
                    const std::function<void(const std::string&, Param<Tensor>&, Module&)>& f);

}  // namespace kiln::nn::detail
