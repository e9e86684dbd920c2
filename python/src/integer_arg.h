// A number that must be whole, where an argument may be a tensor or a number.
#pragma once

#include "binding.h"

namespace kiln::python {

// Throws TypeError naming `op` for a float, and OverflowError for an int beyond int64.
inline int64_t integer_arg(const char* op, const Operand& x) {
  if (x.is_tensor()) return x.tensor().item<int64_t>();
  if (x.is_uint64()) throw_error<OverflowError>(op, ": the int does not fit int64");
  if (!x.scalar().is_floating_point()) return x.scalar().to_int();
  throw nb::type_error(concat(op, ": expected an integer; got ", x.scalar().to_double()).c_str());
}

}  // namespace kiln::python
