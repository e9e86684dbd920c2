// Real: a number that is an option of a layer, and prints as it was given.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>

#include "kiln/core/json.h"

namespace kiln::nn {

// Reads as a double. Dropout(1) prints p=1 and Dropout(1.0) p=1.0, as in Python.
class Real {
 public:
  Real() = default;
  template <std::floating_point T>
  Real(T value) : value_(static_cast<double>(value)) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Real(T value) : value_(static_cast<double>(value)), whole_(true) {}

  operator double() const { return value_; }
  bool is_whole() const { return whole_; }  // given as an integer

 private:
  double value_ = 0.0;
  bool whole_ = false;
};

// In a configuration: a number.
Json to_config_json(const Real& value);
bool from_config_json(const Json& json, Real& value);
inline std::string config_type(const Real&) { return "number"; }

}  // namespace kiln::nn
