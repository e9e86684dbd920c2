// Integers as floating point numbers in the same order, for ops that only compare them.
#pragma once

#include "kiln/tensor/tensor.h"

namespace kiln::detail {

struct OrderedFloats {
  // x [..]: integers.
  explicit OrderedFloats(const Tensor& x);
  // The integers that some of `floats` stand for.
  Tensor integers(const Tensor& chosen) const;

  Tensor floats;  // f64
  Tensor table;   // the integer of each, where not every one fits a double
  DType dtype;
};

inline bool is_whole(DType dtype) {
  return dtype == u8 || dtype == i8 || dtype == i16 || dtype == i32 || dtype == i64;
}

}  // namespace kiln::detail
