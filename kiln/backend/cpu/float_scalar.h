// A Scalar as an operand of a float kernel.
#pragma once

#include "kiln/core/convert.h"
#include "kiln/core/dtype.h"
#include "kiln/core/scalar.h"

namespace kiln::cpu {

// The scalar rounded to a floating point dtype, in the type that the dtype's kernels compute with:
// double for f64, else float.
class FloatScalar {
 public:
  FloatScalar(Scalar value, DType dtype) {
    const double exact = value.to_double();
    if (dtype == DType::f64) {
      value_.d = exact;
    } else if (dtype == DType::f16) {
      value_.f = convert_element<float16>(exact);
    } else if (dtype == DType::bf16) {
      value_.f = convert_element<bfloat16>(exact);
    } else {
      value_.f = static_cast<float>(exact);
    }
  }
  const void* data() const { return &value_; }

 private:
  union {
    double d;
    float f;
  } value_;
};

}  // namespace kiln::cpu
