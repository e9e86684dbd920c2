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

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::detail {

// Which of `words` ("none, mean, sum") the word is, from 0. Throws ValueError for none of them.
uint8_t choice_of(const char* type, std::string_view words, std::string_view word);

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
  friend auto kiln_config_enum(Name) {                                                      \
    return std::pair(std::string_view(#__VA_ARGS__), std::vector<Name>{__VA_ARGS__});       \
  }                                                                                         \
                                                                                            \
 private:                                                                                   \
  Value value_;                                                                             \
                                                                                            \
 public:
