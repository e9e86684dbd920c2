#include "kiln/backend/functions.h"

namespace kiln {

const char* name_of(UnaryFunction::Type type) {
  static constexpr const char* names[] = {
#define KILN_UNARY_FUNCTION(type, node, ...) node,
#include "kiln/backend/functions.def"
  };
  return names[static_cast<int>(type)];
}

const char* name_of(BinaryFunction::Type type) {
  static constexpr const char* names[] = {
#define KILN_BINARY_FUNCTION(type, node, ...) node,
#include "kiln/backend/functions.def"
  };
  return names[static_cast<int>(type)];
}

const char* name_of(TernaryFunction::Type type) {
  static constexpr const char* names[] = {
#define KILN_TERNARY_FUNCTION(type, node, ...) node,
#include "kiln/backend/functions.def"
  };
  return names[static_cast<int>(type)];
}

const char* name_of(ComplexFunction function) {
  static constexpr const char* names[] = {
#define KILN_COMPLEX_FUNCTION(type) #type,
#include "kiln/backend/functions.def"
  };
  return names[static_cast<int>(function)];
}

}  // namespace kiln
