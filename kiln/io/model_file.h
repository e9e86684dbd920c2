// Models and optimizers in safetensors files. Every function that writes replaces a file only when
// the new one is complete; every function that reads changes nothing when the file is malformed or
// does not fit.
#pragma once

#include <string>

#include "kiln/io/safetensors.h"
#include "kiln/nn/state_dict.h"

namespace kiln::nn {
class Module;
}
namespace kiln::optim {
class Optimizer;
}

namespace kiln::io {

// What a file gave beside the values.
struct LoadedModel {
  nn::IncompatibleKeys keys;
  Metadata metadata;
};

// Writes a module's state dict.
void save_model(const nn::Module& module, const std::string& path, const Metadata& metadata = {});
// Reads it back: lazy parameters take the tensors as they come from the file, initialized ones are
// copied into, both converted to the module's dtypes and devices. Throws IoError for a malformed
// file, and RuntimeError with all that does not fit, as Module::load_state_dict does; nothing is
// changed then.
LoadedModel load_model(nn::Module& module, const std::string& path, bool strict = true);

// An optimizer's state; see optim::OptimizerState for the names.
void save_optimizer(const optim::Optimizer& optimizer, const std::string& path,
                    const Metadata& metadata = {});
Metadata load_optimizer(optim::Optimizer& optimizer, const std::string& path);

// All that training continues from, in one file: the module ("model." before its names), the
// optimizer ("optimizer."), the state of the default random generator, and `metadata`, which the
// loader returns.
void save_checkpoint(const std::string& path, const nn::Module& module,
                     const optim::Optimizer& optimizer, const Metadata& metadata = {});
Metadata load_checkpoint(const std::string& path, nn::Module& module, optim::Optimizer& optimizer);

}  // namespace kiln::io
