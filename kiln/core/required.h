// Required: an option that must be given.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>

#include "kiln/core/error.h"
#include "kiln/core/optional_field.h"

namespace kiln {

// A field without a default; takes in braces what T takes. Reading one that was never set throws
// ValueError. (What is made from a configuration says which one: see check_required.)
template <class T>
class Required {
 public:
  Required() = default;
  template <class U>
    requires std::convertible_to<U, T>
  Required(U&& value) : value_(T(std::forward<U>(value))) {}
  Required(std::initializer_list<int64_t> values)
    requires detail::FromList<T>
      : value_(detail::from_list<T>(values)) {}
  template <class... Numbers>
    requires detail::FromNumbers<T, Numbers...>
  Required(Numbers... values) : value_(T(values...)) {}

  bool has_value() const { return value_.has_value(); }
  const T& value() const {
    if (!value_) {
      throw_error<ValueError>("Required: the field was never set; give it in the configuration");
    }
    return *value_;
  }
  operator const T&() const { return value(); }
  friend bool operator==(const Required&, const Required&) = default;

 private:
  std::optional<T> value_;
};

namespace detail {

template <class T>
inline constexpr bool is_required = false;
template <class T>
inline constexpr bool is_required<Required<T>> = true;

}  // namespace detail
}  // namespace kiln
