// A number as the bytes of one element of a dtype. Internal to the Cpu backend.
#pragma once

#include <cstring>

#include "kiln/core/convert.h"
#include "kiln/core/dtype.h"
#include "kiln/core/scalar.h"

namespace kiln::cpu {

struct Element {
  alignas(8) char bytes[8] = {};

  Element(Scalar value, DType dtype) {
    visit_dtype("full", dtype, [&]<class T>() {
      const T v = value.is_floating_point() ? convert_element<T>(value.to_double())
                                            : convert_element<T>(value.to_int());
      std::memcpy(bytes, &v, sizeof(T));
    });
  }
};

}  // namespace kiln::cpu
