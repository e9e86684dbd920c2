// ParamId: which parameter this is, wherever its values go: through copies of its module, saving
// and loading.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace kiln::nn {

class ParamId {
 public:
  // A fresh id: 64 random bits that do not come from the default generator, so that ids differ
  // between programs with the same seed.
  ParamId();
  constexpr explicit ParamId(uint64_t value) : value_(value) {}
  // The inverse of to_string. Throws ValueError.
  static ParamId parse(std::string_view text);

  constexpr uint64_t value() const { return value_; }
  friend constexpr auto operator<=>(const ParamId&, const ParamId&) = default;

 private:
  uint64_t value_;
};

// The 8 bytes, lowest first, as 13 digits of base 32 (0-9, a-v): the form that Burn writes.
std::string to_string(ParamId id);

}  // namespace kiln::nn
