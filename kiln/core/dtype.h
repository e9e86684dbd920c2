// Element types: their names, sizes, kinds and promotion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "kiln/core/half.h"

namespace kiln {

enum class DType : uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean, c64, c128, q8 };

// Short names as a user writes them: zeros({2, 3}, f32). (DType::boolean is `bool_`, since C++ owns
// `bool`.)
inline constexpr DType f64 = DType::f64;
inline constexpr DType f32 = DType::f32;
inline constexpr DType f16 = DType::f16;
inline constexpr DType bf16 = DType::bf16;
inline constexpr DType i64 = DType::i64;
inline constexpr DType i32 = DType::i32;
inline constexpr DType i16 = DType::i16;
inline constexpr DType i8 = DType::i8;
inline constexpr DType u8 = DType::u8;
inline constexpr DType bool_ = DType::boolean;

// Which of a backend's four primitives holds a tensor of this dtype. Complex numbers are floats
// here: they differentiate. (c64 and c128 are pairs above the backends, which see the parts: see
// docs/architecture.md.)
enum class Kind : uint8_t { floating, integer, boolean, quantized };

constexpr Kind kind_of(DType t) {
  switch (t) {
    case DType::i64:
    case DType::i32:
    case DType::i16:
    case DType::i8:
    case DType::u8:
      return Kind::integer;
    case DType::boolean:
      return Kind::boolean;
    case DType::q8:
      return Kind::quantized;
    default:
      return Kind::floating;
  }
}

constexpr bool is_floating_point(DType t) { return t == f64 || t == f32 || t == f16 || t == bf16; }
constexpr bool is_integral(DType t) { return kind_of(t) == Kind::integer; }

// Bytes of one element.
constexpr size_t size_of(DType t) {
  switch (t) {
    case DType::f64:
    case DType::i64:
    case DType::c64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f16:
    case DType::bf16:
    case DType::i16:
      return 2;
    case DType::c128:
      return 16;
    default:
      return 1;
  }
}

// "float32", "int64", "bool", ...: PyTorch's and NumPy's names.
std::string_view name_of(DType t);
inline std::string to_string(DType t) { return std::string(name_of(t)); }
// The inverse of name_of; also accepts the short names ("f32", "half", "float", ...). Throws
// DTypeError.
DType parse_dtype(std::string_view name);

// The dtype that holds a result of `a` and `b` together, by PyTorch's lattice:
// bool < u8, i8 < i16 < i32 < i64 < f16, bf16 < f32 < f64; u8 with i8 gives i16; f16 with bf16
// gives f32.
DType promote_types(DType a, DType b);

// The dtype that new floating point tensors get when none is named. f32 unless set; throws
// DTypeError for a dtype that is not floating point.
DType default_dtype();
void set_default_dtype(DType t);

// C++ type <-> DType.
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<double> : std::integral_constant<DType, DType::f64> {};
template <>
struct DTypeOf<float> : std::integral_constant<DType, DType::f32> {};
template <>
struct DTypeOf<float16> : std::integral_constant<DType, DType::f16> {};
template <>
struct DTypeOf<bfloat16> : std::integral_constant<DType, DType::bf16> {};
template <>
struct DTypeOf<int64_t> : std::integral_constant<DType, DType::i64> {};
template <>
struct DTypeOf<int32_t> : std::integral_constant<DType, DType::i32> {};
template <>
struct DTypeOf<int16_t> : std::integral_constant<DType, DType::i16> {};
template <>
struct DTypeOf<int8_t> : std::integral_constant<DType, DType::i8> {};
template <>
struct DTypeOf<uint8_t> : std::integral_constant<DType, DType::u8> {};
template <>
struct DTypeOf<bool> : std::integral_constant<DType, DType::boolean> {};
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

[[noreturn]] void throw_unsupported_dtype(const char* where, DType t);

// Calls f.template operator()<T>() with the C++ type of `t`.
// Use: visit_dtype("op", t, [&]<class T>() { ... }).
template <class F>
decltype(auto) visit_float(const char* where, DType t, F&& f) {
  switch (t) {
    case DType::f64:
      return f.template operator()<double>();
    case DType::f32:
      return f.template operator()<float>();
    case DType::f16:
      return f.template operator()<float16>();
    case DType::bf16:
      return f.template operator()<bfloat16>();
    default:
      throw_unsupported_dtype(where, t);
  }
}

template <class F>
decltype(auto) visit_int(const char* where, DType t, F&& f) {
  switch (t) {
    case DType::i64:
      return f.template operator()<int64_t>();
    case DType::i32:
      return f.template operator()<int32_t>();
    case DType::i16:
      return f.template operator()<int16_t>();
    case DType::i8:
      return f.template operator()<int8_t>();
    case DType::u8:
      return f.template operator()<uint8_t>();
    default:
      throw_unsupported_dtype(where, t);
  }
}

template <class F>
decltype(auto) visit_dtype(const char* where, DType t, F&& f) {
  if (t == DType::boolean) return f.template operator()<bool>();
  if (kind_of(t) == Kind::integer) return visit_int(where, t, static_cast<F&&>(f));
  return visit_float(where, t, static_cast<F&&>(f));
}

}  // namespace kiln
