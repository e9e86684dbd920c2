// The names that a PyTorch file may use. Everything else is refused: nothing is looked up, imported
// or called.
#pragma once

#include <string>
#include <string_view>

#include "kiln/io/torch_objects.h"

namespace kiln::io::detail {

// "FloatStorage" of the modules torch, torch.cuda and torch.storage; null for another name.
const StorageType* storage_type(std::string_view global);
// "torch.float32" and so on; null for a name that is no dtype.
const StorageType* dtype_type(std::string_view global);
// Whether a file may use the name; "builtins" for the "__builtin__" of Python 2.
bool is_known_name(std::string_view global);
// "torch.FloatStorage" for "torch.cuda.FloatStorage", "builtins.set" for "__builtin__.set", ...
std::string canonical_name(const std::string& module, const std::string& name);

}  // namespace kiln::io::detail
