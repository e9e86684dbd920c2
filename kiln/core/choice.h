// KILN_CHOICE: an option that is one of several words, given as a constant or, as in Python, by its
// name.
//
//   class Reduction {
//     KILN_CHOICE(Reduction, none, mean, sum)
//   };
//
//   Reduction a = Reduction::sum;
//   Reduction b = "sum";  // another word: ValueError, which lists these
//   switch (a) { case Reduction::sum: ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kiln::detail {

// Which of `words` ("none, mean, sum") the word is, from 0. Throws ValueError for none of them.
uint8_t choice_of(const char* type, std::string_view words, std::string_view word);

// The words of a choice ("none, mean, sum") and their values, in one order.
template <class T>
struct EnumValues {
  std::string_view names;
  const T* first;
  size_t count;

  const T* begin() const { return first; }
  const T* end() const { return first + count; }
};

}  // namespace kiln::detail

// What follows it in the class is public. A configuration holds it as it holds an enumeration with
// a KILN_CONFIG_ENUM.
#define KILN_CHOICE(Name, ...)                                                              \
 public:                                                                                    \
  enum class Value : uint8_t { __VA_ARGS__ };                                               \
  using enum Value;                                                                         \
  using KilnChoice = Name;                                                                  \
  constexpr Name(Value value) : value_(value) {}                                            \
  Name(std::string_view word)                                                               \
      : value_(static_cast<Value>(::kiln::detail::choice_of(#Name, #__VA_ARGS__, word))) {} \
  Name(const char* word) : Name(std::string_view(word)) {}                                  \
  Name(const std::string& word) : Name(std::string_view(word)) {}                           \
  constexpr operator Value() const { return value_; }                                       \
  friend ::kiln::detail::EnumValues<Name> kiln_config_enum(Name) {                          \
    static constexpr Name kiln_values[] = {__VA_ARGS__};                                    \
    return {#__VA_ARGS__, kiln_values, sizeof kiln_values / sizeof kiln_values[0]};         \
  }                                                                                         \
                                                                                            \
 private:                                                                                   \
  Value value_;                                                                             \
                                                                                            \
 public:
