// OptionalField: an option that may be left out.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>

namespace kiln {

namespace detail {

// Types that take numbers in braces: {3, 5}.
template <class T>
concept FromList = std::constructible_from<T, std::initializer_list<int64_t>>;
template <class T, class... Numbers>
concept FromNumbers = sizeof...(Numbers) > 1 && (std::integral<Numbers> && ...) &&
                      !FromList<T> && std::constructible_from<T, Numbers...>;

// {3} is 3, for a type that one number stands for.
template <FromList T>
T from_list(std::initializer_list<int64_t> values) {
  if constexpr (std::convertible_to<int64_t, T>) {
    if (values.size() == 1) return T(*values.begin());
  }
  return T(values);
}

}  // namespace detail

// As std::optional, and takes in braces what T takes: .stride = {2, 1}.
template <class T>
class OptionalField : public std::optional<T> {
 public:
  using KilnShown = std::optional<T>;  // what who reads and writes a configuration sees
  using std::optional<T>::optional;
  OptionalField() = default;
  OptionalField(std::optional<T> value) : std::optional<T>(std::move(value)) {}
  OptionalField(std::initializer_list<int64_t> values)
    requires detail::FromList<T>
      : std::optional<T>(detail::from_list<T>(values)) {}
  template <class... Numbers>
    requires detail::FromNumbers<T, Numbers...>
  OptionalField(Numbers... values) : std::optional<T>(T(values...)) {}
};

}  // namespace kiln
