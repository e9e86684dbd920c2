// StateSource: where a module takes its state from: a state dict, or a file that is read tensor by
// tensor.
#pragma once

#include <string>
#include <vector>

#include "kiln/nn/module.h"

namespace kiln::nn::detail {

class StateSource {
 public:
  virtual ~StateSource() = default;

  virtual std::vector<std::string> keys() const = 0;
  virtual bool contains(const std::string& key) const = 0;
  virtual Shape shape(const std::string& key) const = 0;
  virtual Tensor read(const std::string& key) const = 0;
  // What is known of the module at a path; null when nothing is.
  virtual const StateMetadata* metadata(const std::string&) const { return nullptr; }
  virtual const std::any* object(const std::string&) const { return nullptr; }
  virtual std::vector<std::string> object_keys() const { return {}; }
  // Whether what read() gives belongs to nobody else, so that a lazy parameter can take it as it
  // is.
  virtual bool gives_away() const = 0;
};

// What Module::load_state_dict does, from any source. Shapes are compared before anything is read,
// and everything is read before anything is changed. (When a module has load_state_dict pre-hooks,
// all of the source is read first: they are shown a state dict.)
IncompatibleKeys load_state(Module& module, const StateSource& source, bool strict,
                            bool assign = false);

}  // namespace kiln::nn::detail
