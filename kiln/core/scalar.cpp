#include "kiln/core/scalar.h"

#include "kiln/core/convert.h"

namespace kiln {

int64_t Scalar::to_int() const {
  return kind_ == Kind::floating ? convert_element<int64_t>(value_.d) : value_.i;
}

}  // namespace kiln
