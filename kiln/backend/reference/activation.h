// Activations of numbers. Internal to the reference backend.
#pragma once

#include "kiln/backend/options.h"

namespace kiln::reference {

double activated(double x, Activation activation);

}  // namespace kiln::reference
