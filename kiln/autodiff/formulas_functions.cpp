#include "kiln/autodiff/formulas_functions.h"

#include "kiln/core/error.h"

namespace kiln::autodiff {

void throw_no_derivative(const char* op, const char* operand) {
  throw_error<NotImplementedError>(op, ": has no derivative with respect to its ", operand,
                                   " operand; detach() that one");
}

}  // namespace kiln::autodiff
