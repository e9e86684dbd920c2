// kiln.nn.functional: the neural ops without modules.
#include "functional.h"

namespace kiln::python {

void bind_functional(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("_functional", "The neural ops without modules.");
  bind_functional_convolutions(m);
  bind_functional_pooling(m);
  bind_functional_norms(m);
  bind_functional_activations(m);
  bind_functional_losses(m);
  bind_functional_images(m);
}

}  // namespace kiln::python
