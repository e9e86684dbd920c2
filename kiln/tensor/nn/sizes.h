// The sizes that window ops take for the spatial dims of their input.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kiln/core/shape.h"

namespace kiln {

// One number for every spatial dim, or one for each: 3, {3, 5}, a Shape.
class Sizes {
 public:
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Sizes(T each) : values_{static_cast<int64_t>(each)} {}
  Sizes(int64_t first, int64_t second) : values_{first, second} {}
  Sizes(int64_t first, int64_t second, int64_t third) : values_{first, second, third} {}
  Sizes(const Shape& values) : values_(values) {}
  Sizes(const std::array<int64_t, 2>& pair) : values_{pair[0], pair[1]} {}

  const Shape& values() const { return values_; }

 private:
  Shape values_;
};

// By what sizes are multiplied: one number for every spatial dim, or one for each. Empty: not
// given.
class ScaleFactors : public std::vector<double> {
 public:
  using KilnShown = std::vector<double>;  // what who reads and writes a configuration sees
  ScaleFactors() = default;
  template <class T>
    requires std::integral<T> || std::floating_point<T>
  ScaleFactors(T each) : vector{static_cast<double>(each)} {}
  ScaleFactors(std::initializer_list<double> values) : vector(values) {}
  ScaleFactors(std::vector<double> values) : vector(std::move(values)) {}
};

// How far a convolution's input is padded with zeros: the same on both sides (a number, or one for
// each spatial dim); so that the output has the input's size (same: the larger part at the end);
// not at all (valid); or differently on both sides (Padding::sides).
class Padding {
 public:
  enum class Mode : uint8_t { sizes, same, valid };

  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Padding(T each) : before_(each), after_(each) {}
  Padding(int64_t first, int64_t second) : Padding(Sizes(first, second)) {}
  Padding(int64_t first, int64_t second, int64_t third) : Padding(Sizes(first, second, third)) {}
  Padding(const Sizes& sizes) : before_(sizes), after_(sizes) {}
  static Padding sides(const Sizes& before, const Sizes& after) {
    Padding out(before);
    out.after_ = after;
    return out;
  }
  Padding(Mode mode) : mode_(mode), before_(0), after_(0) {}
  // "same" or "valid". Throws ValueError for anything else.
  Padding(const char* mode);
  Padding(const std::string& mode) : Padding(mode.c_str()) {}

  Mode mode() const { return mode_; }
  const Sizes& before() const { return before_; }
  const Sizes& after() const { return after_; }

 private:
  Mode mode_ = Mode::sizes;
  Sizes before_;
  Sizes after_;
};

}  // namespace kiln
