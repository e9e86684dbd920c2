#include "kiln/core/scalar.h"

#include "kiln/core/convert.h"
#include "kiln/core/error.h"

namespace kiln {

void detail::throw_too_large(uint64_t value) {
  throw_error<ValueError>("Scalar: the number is too large; got ", value,
                          "; expected at most 9223372036854775807");
}

int64_t Scalar::to_int() const {
  return kind_ == Kind::floating ? convert_element<int64_t>(value_.d) : value_.i;
}

}  // namespace kiln
