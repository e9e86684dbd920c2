// What linear algebra throws when the numbers do not allow what was asked.
#pragma once

#include "kiln/core/error.h"

namespace kiln::linalg {

// A singular matrix that was to be inverted, one that is not positive definite, an iteration that
// did not converge.
class LinAlgError : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

}  // namespace kiln::linalg
