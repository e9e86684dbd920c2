// The functions that float_unary, float_binary, float_ternary, float_complex_unary and int_binary
// compute: rarer than those that have an op of their own, so that a backend gives them one loop
// each. functions.def lists them and says what each is.
#pragma once

#include <cstdint>

namespace kiln {

// y = f(x).
struct UnaryFunction {
  enum class Type : uint8_t {
#define KILN_UNARY_FUNCTION(type, ...) type,
#include "kiln/backend/functions.def"
    count,
  };
  Type type;
  double a = 0.0;
  double b = 0.0;
  double c = 0.0;
};

// The families of orthogonal polynomials that BinaryFunction's `polynomial` has.
enum class PolynomialFamily : uint8_t {
  chebyshev_t,
  chebyshev_u,
  chebyshev_v,
  chebyshev_w,
  hermite_h,
  hermite_he,
  laguerre_l,
  legendre_p,
};
// Derivatives of this order and above are not computed.
inline constexpr int kPolynomialOrders = 16;

// z = f(x, y).
struct BinaryFunction {
  enum class Type : uint8_t {
#define KILN_BINARY_FUNCTION(type, ...) type,
#include "kiln/backend/functions.def"
    count,
  };

  constexpr BinaryFunction() = default;
  constexpr BinaryFunction(Type f, double first = 0.0, double second = 0.0, double third = 0.0)
      : type(f), a(first), b(second), c(third) {}

  Type type = Type::fmod;
  double a = 0.0;
  double b = 0.0;
  double c = 0.0;
};

// w = f(x, y, z).
struct TernaryFunction {
  enum class Type : uint8_t {
#define KILN_TERNARY_FUNCTION(type, ...) type,
#include "kiln/backend/functions.def"
    count,
  };
  Type type;
  double value = 1.0;
  double divisor = 1.0;
};

// Of complex numbers.
enum class ComplexFunction : uint8_t {
#define KILN_COMPLEX_FUNCTION(type) type,
#include "kiln/backend/functions.def"
  count,
};

// Of integers. No divisor may be 0 (ValueError).
enum class IntFunction : uint8_t {
#define KILN_INT_FUNCTION(type) type,
#include "kiln/backend/functions.def"
  count,
};

// PyTorch's names of them.
const char* name_of(UnaryFunction::Type type);
const char* name_of(BinaryFunction::Type type);
const char* name_of(TernaryFunction::Type type);
const char* name_of(ComplexFunction function);

}  // namespace kiln
