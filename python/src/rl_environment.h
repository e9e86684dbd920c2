// Environments between C++ and Python: C++'s as Python objects, and Python's as C++ environments.
#pragma once

#include <memory>

#include "binding.h"
#include "kiln/rl/rl.h"

namespace kiln::python {

// An environment of C++'s as a Python object.
struct EnvironmentBox {
  std::shared_ptr<rl::Environment> environment;
};

// What an object's observation_space or action_space is: kiln.rl's or Gymnasium's. Throws
// TypeError.
rl::Space space_of(nb::handle object);
// The environment that a Python object is: C++'s own, or one with Gymnasium's methods
// reset(seed=..) and step(action).
std::shared_ptr<rl::Environment> environment_of(nb::object object);

void bind_rl_environments(nb::module_& m);
void bind_rl_training(nb::module_& m);

}  // namespace kiln::python
