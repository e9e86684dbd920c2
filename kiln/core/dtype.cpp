#include "kiln/core/dtype.h"

#include <array>
#include <atomic>
#include <utility>

#include "kiln/core/complex.h"
#include "kiln/core/error.h"

namespace kiln {
namespace {

struct Alias {
  std::string_view name;
  DType dtype;
};

constexpr std::array kAliases = {
    Alias{"f64", DType::f64},      Alias{"double", DType::f64},    Alias{"f32", DType::f32},
    Alias{"float", DType::f32},    Alias{"f16", DType::f16},       Alias{"half", DType::f16},
    Alias{"bf16", DType::bf16},    Alias{"i64", DType::i64},       Alias{"long", DType::i64},
    Alias{"i32", DType::i32},      Alias{"int", DType::i32},       Alias{"i16", DType::i16},
    Alias{"short", DType::i16},    Alias{"i8", DType::i8},         Alias{"u8", DType::u8},
    Alias{"byte", DType::u8},      Alias{"bool_", DType::boolean}, Alias{"boolean", DType::boolean},
    Alias{"c64", DType::c64},      Alias{"cfloat", DType::c64},    Alias{"c128", DType::c128},
    Alias{"cdouble", DType::c128}, Alias{"q8", DType::q8},
};

std::atomic<DType> default_dtype_value{DType::f32};

}  // namespace

std::string_view name_of(DType t) {
  switch (t) {
    case DType::f64:
      return "float64";
    case DType::f32:
      return "float32";
    case DType::f16:
      return "float16";
    case DType::bf16:
      return "bfloat16";
    case DType::i64:
      return "int64";
    case DType::i32:
      return "int32";
    case DType::i16:
      return "int16";
    case DType::i8:
      return "int8";
    case DType::u8:
      return "uint8";
    case DType::boolean:
      return "bool";
    case DType::c64:
      return "complex64";
    case DType::c128:
      return "complex128";
    case DType::q8:
      return "qint8";
  }
  return "unknown";
}

DType parse_dtype(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(DType::q8); ++i) {
    if (name_of(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  }
  for (const Alias& alias : kAliases) {
    if (alias.name == name) return alias.dtype;
  }
  throw_error<DTypeError>("parse_dtype: no such dtype; got '", name,
                          "'; expected a name such as 'float32', 'int64', 'bool' or 'f32'");
}

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::q8 || b == DType::q8) {
    throw_error<DTypeError>("promote_types: quantized values do not promote; got ", a, " and ", b,
                            "; try dequantize() first");
  }
  if (is_complex(a) || is_complex(b)) {
    const bool wide = size_of(a) == 16 || size_of(b) == 16 || a == DType::f64 || b == DType::f64;
    return wide ? DType::c128 : DType::c64;
  }
  const bool a_floats = is_floating_point(a);
  const bool b_floats = is_floating_point(b);
  if (a_floats && b_floats) {
    if (size_of(a) == size_of(b)) return DType::f32;  // f16 with bf16: neither holds the other
    return size_of(a) > size_of(b) ? a : b;
  }
  if (a_floats || b_floats) return a_floats ? a : b;
  if (a == DType::boolean) return b;
  if (b == DType::boolean) return a;
  if (size_of(a) == size_of(b)) return DType::i16;  // u8 with i8
  return size_of(a) > size_of(b) ? a : b;
}

DType default_dtype() { return default_dtype_value.load(std::memory_order_relaxed); }

void set_default_dtype(DType t) {
  if (!is_floating_point(t)) {
    throw_error<DTypeError>("set_default_dtype: not a floating point dtype; got ", t,
                            "; expected float64, float32, float16 or bfloat16");
  }
  default_dtype_value.store(t, std::memory_order_relaxed);
}

[[gnu::cold]] void throw_unsupported_dtype(const char* where, DType t) {
  throw_error<DTypeError>(where, ": dtype not supported here; got ", t);
}

}  // namespace kiln
