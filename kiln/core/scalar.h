// A number that goes with a tensor into an op without becoming a tensor.
#pragma once

#include <concepts>
#include <cstdint>

#include "kiln/core/dtype.h"

namespace kiln {

namespace detail {
[[noreturn]] void throw_too_large(uint64_t value);
}

class Scalar {
 public:
  Scalar() : Scalar(0) {}
  // A template, so that nothing else (a pointer, say) turns into a bool on its way here.
  template <std::same_as<bool> T>
  Scalar(T v) : kind_(Kind::boolean) {
    value_.i = v;
  }
  Scalar(float16 v) : Scalar(static_cast<float>(v)) {}
  Scalar(bfloat16 v) : Scalar(static_cast<float>(v)) {}
  template <std::floating_point T>
  Scalar(T v) : kind_(Kind::floating) {
    value_.d = static_cast<double>(v);
  }
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Scalar(T v) : kind_(Kind::integer) {
    // A number of 64 bits without a sign may be too large: ValueError.
    if constexpr (std::unsigned_integral<T> && sizeof(T) == sizeof(int64_t)) {
      if (static_cast<int64_t>(v) < 0) [[unlikely]]
        detail::throw_too_large(v);
    }
    value_.i = static_cast<int64_t>(v);
  }

  Kind kind() const { return kind_; }
  bool is_floating_point() const { return kind_ == Kind::floating; }
  bool is_integral() const { return kind_ == Kind::integer; }
  bool is_bool() const { return kind_ == Kind::boolean; }

  double to_double() const {
    return kind_ == Kind::floating ? value_.d : static_cast<double>(value_.i);
  }
  // A floating point value is truncated; outside the range of int64 it saturates and NaN gives 0.
  int64_t to_int() const;
  bool to_bool() const { return kind_ == Kind::floating ? value_.d != 0.0 : value_.i != 0; }

 private:
  Kind kind_;
  union {
    double d;
    int64_t i;
  } value_;
};

}  // namespace kiln
