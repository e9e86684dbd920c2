// Direct parts of a module by name. Internal to kiln/nn.
#pragma once

#include <string_view>

#include "kiln/nn/module.h"

namespace kiln::nn::detail {

// At most one is set.
struct Part {
  Param<Tensor>* param = nullptr;  // also one that is undefined
  Buffer* buffer = nullptr;
  Module* module = nullptr;
  bool group = false;  // a std container

  bool exists() const {
    return param != nullptr || buffer != nullptr || module != nullptr || group;
  }
};

// Elements of containers are named "layers.0".
Part find_part(Module& module, std::string_view name);

}  // namespace kiln::nn::detail
